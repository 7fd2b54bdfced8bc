//! Legal events that no tracer writes: the largest ids, empty definitions, numbers in more bytes than needed.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use anytrace_apitrace::tools::dump::{DumpOptions, dump};
use anytrace_apitrace::{Apitrace, Reader};
use anytrace_core::testing::{assert_windows_agree, examine, rewrite, through_jsonl};
use anytrace_core::{Collect, Input, OpenOptions, Plan, TargetOptions};
use build::{Build, leb, string, text, uint};

fn shown(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let options = DumpOptions { verbose: true, ..DumpOptions::default() };
    dump(&mut reader, &options, &mut out, None, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

/// The trace prints as expected, has no error, and survives every way of copying it.
fn check(bytes: &[u8], expected: &str) {
    assert_eq!(shown(bytes), expected);
    assert_eq!(examine(&Apitrace, bytes).error_codes(), Vec::<&str>::new(), "{expected}");
    for plan in [Plan::Convert(TargetOptions::default()), Plan::Repair(TargetOptions::default())] {
        assert_eq!(rewrite(&Apitrace, bytes, &plan).unwrap().0, bytes, "{expected}");
    }
    assert_eq!(through_jsonl(&Apitrace, &OpenOptions::default(), bytes).unwrap(), bytes, "{expected}");
    assert_windows_agree(&Apitrace, bytes);
}

/// `f(x)` called once with a value.
fn call(value: &[u8]) -> Vec<u8> {
    let mut b = Build::version(6);
    b.enter_new(0, 0, "f", &["x"]).argument(0, value).end().leave(0).end();
    b.bytes
}

fn check_value(value: &[u8], expected: &str) {
    check(&call(value), &format!("0 f(x = {expected})\n"));
}

const LARGEST: u64 = u64::MAX;

#[test]
fn ids_may_be_as_large_as_numbers_are() {
    let id = leb(LARGEST);
    let mut b = Build::version(6);
    b.enter_new(LARGEST >> 32, LARGEST, "f", &["x"]);
    b.add(&[4, 1]).add(&id).add(&[1]).add(&text("m")).end();
    b.argument(0, &[&[9][..], &id, &[1], &text("E"), &uint(1), &uint(1)].concat()).end().leave(0).end();
    let mask = [&[10][..], &id, &[1], &text("M"), &[1, 1]].concat();
    b.enter(0, LARGEST).argument(0, &mask).end().leave(1).end();
    let structure = [&[12][..], &id, &text("S"), &[1], &text("m"), &uint(LARGEST)].concat();
    b.enter(0, LARGEST).argument(0, &structure).end().leave(2).end();
    // All of them again, by id alone.
    b.enter(0, LARGEST).add(&[4, 1]).add(&id).argument(0, &[&[9][..], &id, &uint(1)].concat()).end().leave(3).end();
    b.enter(0, LARGEST).argument(0, &[&[10][..], &id, &leb(LARGEST)].concat()).end().leave(4).end();
    b.enter(0, LARGEST).argument(0, &[&[12][..], &id, &[0]].concat()).end().leave(5).end();
    let lines = "0 f(x = E)\nBacktrace:\nm\n1 f(x = M)\n2 f(x = {m = 18446744073709551615})\n3 f(x = E)\nBacktrace:\nm\n\
                 4 f(x = M | 0xfffffffffffffffe)\n5 f(x = {m = NULL})\n";
    check(&b.bytes, lines);
}

#[test]
fn definitions_may_be_empty() {
    let mut b = Build::version(6);
    b.enter_new(0, 0, "", &[]).end().leave(0).end();
    b.enter_new(0, 1, "f", &["", ""]).argument(0, &uint(1)).argument(1, &uint(2)).end().leave(1).end();
    check(&b.bytes, "0 ()\n1 f( = 1,  = 2)\n");
    check_value(&[9, 0, 0, 4, 7], "7");
    check_value(&[9, 0, 0, 3, 7], "-7");
    check_value(&[10, 0, 0, 0], "0x0");
    check_value(&[10, 0, 0, 6], "0x6");
    check_value(&[12, 0, 1, b'S', 0], "{}");
    check_value(&[11, 0], "{}");
    check_value(&[7, 0], "\"\"");
    check_value(&[8, 0], "blob(0)");
    check_value(&[15, 0], "L\"\"");
    let mut b = Build::version(6);
    b.enter_new(0, 0, "f", &[]).add(&[4, 0]).end().leave(0).end();
    b.enter(0, 0).add(&[4, 2, 5, 0, 5]).end().leave(1).end();
    check(&b.bytes, "0 f()\nBacktrace:\n1 f()\nBacktrace:\n?\n?\n");
}

#[test]
fn the_ends_of_every_number_are_shown() {
    for (value, expected) in [
        (vec![0], "NULL"),
        (vec![1], "false"),
        (vec![2], "true"),
        (vec![3, 0], "0"),
        ([vec![3], leb(1 << 63)].concat(), "-9223372036854775808"),
        (uint(LARGEST), "18446744073709551615"),
        ([vec![13], leb(LARGEST)].concat(), "0xffffffffffffffff"),
        (vec![13, 0], "0x0"),
        ([vec![5], f32::MAX.to_le_bytes().to_vec()].concat(), "3.402823e+38"),
        ([vec![5], 1e-45_f32.to_le_bytes().to_vec()].concat(), "1.401298e-45"),
        ([vec![5], (-0.0_f32).to_le_bytes().to_vec()].concat(), "-0"),
        ([vec![6], f64::MAX.to_le_bytes().to_vec()].concat(), "1.797693134862316e+308"),
        ([vec![6], 5e-324_f64.to_le_bytes().to_vec()].concat(), "4.940656458412465e-324"),
        ([vec![6], f64::NEG_INFINITY.to_le_bytes().to_vec()].concat(), "-inf"),
        ([vec![6], f64::NAN.to_le_bytes().to_vec()].concat(), "nan"),
        ([vec![9, 0, 1], text("E"), vec![3, 1], vec![3, 1]].concat(), "E"),
        // Minus zero is zero, in the definition as in the value.
        ([vec![9, 0, 1], text("E"), vec![3, 0], vec![4, 0]].concat(), "E"),
        ([vec![9, 0, 1], text("E"), vec![4, 0], vec![3, 0]].concat(), "E"),
    ] {
        check_value(&value, expected);
    }
}

#[test]
fn numbers_may_take_up_to_ten_bytes_whatever_they_are() {
    // A one in every length, in every place that has a number.
    for length in 1..=10 {
        let mut one = vec![0x81];
        one.resize(length - 1, 0x80);
        one.push(0);
        if length == 1 {
            one = vec![1];
        }
        let mut b = Build::version(6);
        b.add(&[0]).add(&one).add(&one).add(&one).add(b"f").add(&one).add(&one).add(b"x");
        b.add(&[4]).add(&one).add(&one).add(&[4]).add(&one).add(&[5]).add(&one).end();
        b.add(&[1, 0, 11]).add(&one).add(&[4]).add(&one).end();
        b.add(&[1, 0, 2, 10]).add(&one).add(&one).add(&one).add(b"M").add(&one).add(&one).end();
        b.add(&[0, 0]).add(&one).add(&[1, 0, 10]).add(&one).add(&one).end();
        b.add(&[1]).add(&one).end();
        check(&b.bytes, "0 f(x = &1) = M\nBacktrace:\n?+0x1\n1 f(x = M)\n");
    }
}

#[test]
fn values_nest_as_deep_as_real_programs_might() {
    let depth = 60;
    let nested = [[11, 2, 0].repeat(depth), uint(5)].concat();
    check_value(&nested, &format!("{}5{}", "{NULL, ".repeat(depth), "}".repeat(depth)));
    let singles = [[11, 1].repeat(depth), uint(5)].concat();
    check_value(&singles, &format!("{}5", "&".repeat(depth)));
    let pairs = [[14].repeat(depth), uint(5), uint(6).repeat(depth)].concat();
    check_value(&pairs, "5");
}

#[test]
fn many_arguments_come_in_any_order_and_from_both_events() {
    let names: Vec<String> = (0..300).map(|n| format!("a{n}")).collect();
    let labels: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut b = Build::version(6);
    b.enter_new(0, 0, "f", &labels);
    for index in (0..300).rev().filter(|index| index % 3 == 0) {
        b.argument(index, &uint(index));
    }
    b.end().leave(0).add(&[2]).add(&string("r"));
    for index in (0..300).filter(|index| index % 3 == 1) {
        b.argument(index, &uint(index));
    }
    b.end();
    let argument = |n: u64| if n % 3 == 2 { format!("a{n} = ?") } else { format!("a{n} = {n}") };
    let arguments: Vec<String> = (0..300).map(argument).collect();
    check(&b.bytes, &format!("0 f({}) = \"r\"\n", arguments.join(", ")));
}

#[test]
fn events_may_have_no_details_and_calls_may_leave_in_any_order() {
    let mut b = Build::version(6);
    b.enter_new(3, 9, "f", &["x"]).end();
    for _ in 0..50 {
        b.enter(3, 9).end();
    }
    // In the order of a permutation: 37 has no factor in common with 51.
    let order: Vec<u64> = (0..51).map(|n| n * 37 % 51).collect();
    for call in &order {
        b.leave(*call).end();
    }
    let lines: String = order.iter().map(|call| format!("{call} f(x = ?)\n")).collect();
    check(&b.bytes, &lines);
}

#[test]
fn a_trace_may_have_nothing_but_its_header() {
    for version in 0..=6 {
        let b = Build::version(version);
        check(&b.bytes, "");
        assert_eq!(rewrite(&Apitrace, &b.snappy(10), &Plan::Convert(TargetOptions::default())).unwrap().0, {
            let mut packed = b"at".to_vec();
            packed.extend((b.bytes.len() as u32 + 2).to_le_bytes());
            packed.extend([&leb(b.bytes.len() as u64)[..], &[(b.bytes.len() as u8 - 1) << 2], &b.bytes].concat());
            packed
        });
    }
}
