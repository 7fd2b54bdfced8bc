//! Call sets against a list of numbers, and what must hold of edits whatever the trace: parts add up, an edit that is
//! undone is undone, edits do not depend on the container.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod random;

use std::collections::BTreeSet;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dump::{DumpOptions, dump};
use anytrace_apitrace::tools::flags::CallFlags;
use anytrace_apitrace::tools::sed::{Replacement, SedOptions, sed};
use anytrace_apitrace::tools::stats::{By, StatsOptions, stats};
use anytrace_apitrace::tools::trim::{TrimOptions, trim};
use anytrace_apitrace::{Container, Reader};
use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};
use build::{Build, rich, snappy};
use random::{Random, random_stream};

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn no_files(_: &str) -> std::io::Result<String> {
    Err(std::io::Error::other("no files here"))
}

fn set(text: &str) -> CallSet {
    CallSet::parse([text], &mut no_files).unwrap()
}

const KINDS: [(&str, u16); 5] = [
    ("frame", CallFlags::END_FRAME.0),
    ("rendertarget", CallFlags::END_FRAME.0 | CallFlags::SWAP_RENDERTARGET.0),
    ("fbo", CallFlags::END_FRAME.0 | CallFlags::SWAP_RENDERTARGET.0),
    ("render", CallFlags::RENDER.0),
    ("draw", CallFlags::RENDER.0),
];

/// A range as text, and what it contains: first and last number, step, flags.
fn range(random: &mut Random) -> (String, (u64, u64, u64, Option<u16>)) {
    let (from, more) = (random.below(60), random.below(30));
    let to = from + more;
    let (text, first, last) = match random.below(9) {
        0 => (format!("{from}"), from, from),
        1 => (format!("{from}-{to}"), from, to),
        2 => (format!("{from}-"), from, u64::MAX),
        3 => ("*".to_owned(), 0, u64::MAX),
        4 => (format!("{from}..{}", to + 1), from, to),
        5 => (format!("{from}..={to}"), from, to),
        6 => (format!("{from}.."), from, u64::MAX),
        7 => (format!("..{}", to + 1), 0, to),
        _ => (format!("{from}+{}", more + 1), from, to),
    };
    match random.below(4) {
        0 => {
            let step = 1 + random.below(6);
            (format!("{text}/{step}"), (first, last, step, None))
        }
        1 => {
            let (word, flags) = KINDS[random.below(5) as usize];
            (format!("{text}/{word}"), (first, last, 1, Some(flags)))
        }
        2 if random.below(3) == 0 => {
            let (word, flags) = KINDS[random.below(5) as usize];
            (word.to_owned(), (0, u64::MAX, 1, Some(flags)))
        }
        _ => (text, (first, last, 1, None)),
    }
}

#[test]
fn a_set_contains_what_its_ranges_say() {
    let flags = [0, CallFlags::END_FRAME.0, CallFlags::SWAP_RENDERTARGET.0, CallFlags::RENDER.0, 0x2e8];
    for seed in 1..300 {
        let random = &mut Random(seed);
        let parts: Vec<_> = (0..1 + random.below(4)).map(|_| range(random)).collect();
        let separator = [",", " , ", ", "][random.below(3) as usize];
        let text = parts.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>().join(separator);
        let found = set(&text);
        let has = |number: u64, flags: u16| {
            parts.iter().any(|(_, (first, last, step, kind))| {
                let is_in_range = *first <= number && number <= *last;
                is_in_range && (number - first).is_multiple_of(*step) && kind.is_none_or(|kind| flags & kind != 0)
            })
        };
        for number in (0..140).chain([u64::MAX - 1, u64::MAX]) {
            for flags in flags {
                assert_eq!(found.has(number, CallFlags(flags)), has(number, flags), "{text}: {number} {flags}");
            }
        }
        let last = parts.iter().map(|(_, (_, last, ..))| *last).max();
        let first = parts.iter().map(|(_, (first, ..))| *first).min();
        assert_eq!((Some(found.last()), found.first()), (last, first), "{text}");
        for flags in flags {
            for number in [0, 30, 100] {
                if found.has_all_from(number, CallFlags(flags)) {
                    assert!((number..number + 200).all(|number| has(number, flags)), "{text} from {number}");
                }
            }
        }
    }
}

#[test]
fn several_sets_are_one_with_commas_and_files_are_read_in_place() {
    for seed in 1..60 {
        let random = &mut Random(seed);
        let texts: Vec<String> = (0..3).map(|_| range(random).0).collect();
        let together = set(&texts.join(","));
        assert_eq!(CallSet::parse(texts.iter().map(String::as_str), &mut no_files).unwrap(), together);
        let mut file = |name: &str| Ok(texts[name.parse::<usize>().unwrap()].clone());
        assert_eq!(CallSet::parse(["@0,@1", "@2"], &mut file).unwrap(), together);
        let mut lines = |_: &str| Ok(format!("\n{}\r\n", texts.join(",\n ")));
        assert_eq!(CallSet::parse(["@all"], &mut lines).unwrap(), together);
    }
}

#[test]
fn what_is_no_set_is_refused_where_it_goes_wrong() {
    for (text, character) in [
        ("x1", 1),
        ("1-x", 3),
        ("1,2,y9", 5),
        ("1/", 3),
        ("1/0", 3),
        ("5+0", 2),
        ("1.5", 3),
        ("99999999999999999999", 1),
        ("draws", 1),
        ("-3", 1),
        ("..0", 1),
        ("é", 1),
    ] {
        let error = CallSet::parse([text], &mut no_files).unwrap_err();
        assert_eq!(error.character, Some(character), "{error}");
        assert!(error.to_string().starts_with(&format!("{text}: character {character}: expected ")), "{error}");
    }
    let error = CallSet::parse(["@missing"], &mut no_files).unwrap_err();
    assert_eq!((error.character, error.message.as_str()), (None, "no files here"));
}

/// Lines of the dump without their numbers.
fn lines(bytes: &[u8]) -> Vec<String> {
    let how = DumpOptions { verbose: true, has_threads: true, has_lines: false, ..DumpOptions::default() };
    let mut out = Vec::new();
    dump(&mut reader(bytes), &how, &mut out, None, &mut Collect::default()).unwrap();
    let text = String::from_utf8_lossy(&out).into_owned();
    let calls = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    calls.map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

fn trimmed(bytes: &[u8], options: &TrimOptions) -> Vec<u8> {
    let mut out = MemoryTarget::default();
    trim(reader(bytes), options, &mut out, &mut Collect::default()).unwrap();
    out.0
}

fn of_calls(text: &str) -> TrimOptions {
    TrimOptions { calls: Some(set(text)), container: Some(Container::Raw), ..TrimOptions::default() }
}

fn streams() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> =
        (1..25).map(|seed| random_stream(&mut Random(seed * 77), [1, 2, 3, 4, 5, 6][seed as usize % 6], 60)).collect();
    all.push(rich().bytes);
    all
}

#[test]
fn a_part_and_the_rest_have_all_calls() {
    for bytes in streams() {
        let all = lines(&bytes);
        for cut in [0, 1, 17, 40] {
            let rest = lines(&trimmed(&bytes, &of_calls(&format!("{cut}-"))));
            let part =
                if cut == 0 { Vec::new() } else { lines(&trimmed(&bytes, &of_calls(&format!("0-{}", cut - 1)))) };
            let mut both = [part, rest].concat();
            both.sort();
            let mut expected = all.clone();
            expected.sort();
            assert_eq!(both, expected, "cut at {cut}");
        }
    }
}

#[test]
fn trimming_twice_is_trimming_once() {
    for bytes in streams() {
        for text in ["5-30", "*/3", "10-/2", "*"] {
            let once = trimmed(&bytes, &of_calls(text));
            assert_eq!(trimmed(&once, &of_calls("*")), once, "{text}: everything of a part is the part");
        }
        let outer = trimmed(&bytes, &of_calls("10-"));
        let inner = trimmed(&outer, &of_calls("0-9"));
        assert_eq!(lines(&inner), lines(&trimmed(&bytes, &of_calls("10-19"))), "numbers begin at 0 again");
    }
}

#[test]
fn threads_divide_the_calls() {
    for bytes in streams() {
        let of = |threads: Vec<u64>| {
            let options = TrimOptions { threads, container: Some(Container::Raw), ..TrimOptions::default() };
            lines(&trimmed(&bytes, &options))
        };
        let mut parts: Vec<String> = (0..8).flat_map(|thread| of(vec![thread])).collect();
        let mut all = of((0..8).collect());
        parts.sort();
        all.sort();
        let mut expected = lines(&bytes);
        expected.sort();
        assert_eq!(parts, all);
        assert_eq!(all, expected);
    }
}

fn edited(bytes: &[u8], expressions: &[&str], calls: &str, container: Option<Container>) -> Vec<u8> {
    let mut none = |_: &str| Err(std::io::Error::other("no files here"));
    let replacements = expressions.iter().map(|text| Replacement::parse(text, &mut none).unwrap()).collect();
    let options = SedOptions { replacements, calls: set(calls), container, ..SedOptions::default() };
    let mut out = MemoryTarget::default();
    sed(reader(bytes), &options, &mut out, &mut Collect::default()).unwrap();
    out.0
}

/// Calls with texts and pointers, some of them in arrays.
fn texts() -> Vec<u8> {
    let mut b = Build::version(6);
    b.enter_new(0, 0, "glSay", &["a", "b"]).argument(0, &build::string("old")).argument(1, &[13, 0x7f]).end();
    b.leave(0).end();
    for call in 1..40 {
        let text = ["old", "other", "older", ""][call as usize % 4];
        let array = [vec![11, 2], build::string(text), vec![13], build::leb(call * 8)].concat();
        b.enter(0, 0).argument(0, &array).argument(1, &build::uint(call)).end();
        b.leave(call).add(&[2]).add(&build::string("old")).end();
    }
    b.bytes
}

#[test]
fn an_edit_and_its_reverse_leave_the_bytes_as_they_were() {
    let bytes = texts();
    for (there, back) in [("s/old/brand-new/", "s/brand-new/old/"), ("s/0x18/0xabcdef/", "s/0xabcdef/0x18/")] {
        for calls in ["*", "0-20", "*/3"] {
            let changed = edited(&bytes, &[there], calls, None);
            assert_ne!(changed, bytes, "{there}");
            assert_eq!(edited(&changed, &[back], calls, None), bytes, "{there} {calls}");
        }
    }
    assert_eq!(edited(&bytes, &["s/absent/x/", "s/0x999999/0x1/"], "*", None), bytes);
    assert_eq!(
        edited(&bytes, &["s/old/a/", "s/a/b/", "s/b/old/"], "*", None),
        bytes,
        "each applies to the last result"
    );
}

#[test]
fn only_entire_strings_of_the_selected_calls_change() {
    let bytes = texts();
    let count = |bytes: &[u8], text: &str| lines(bytes).iter().map(|line| line.matches(text).count()).sum::<usize>();
    let (olds, olders) = (count(&bytes, "\"old\""), count(&bytes, "\"older\""));
    let changed = edited(&bytes, &["s/old/X/"], "*", None);
    assert_eq!((count(&changed, "\"old\""), count(&changed, "\"X\"")), (0, olds));
    assert_eq!(count(&changed, "\"older\""), olders, "a part of a string is not a match");
    let some = edited(&bytes, &["s/old/X/"], "0-9", None);
    for (number, (before, after)) in lines(&bytes).iter().zip(lines(&some)).enumerate() {
        let expected = if number < 10 { before.replace("\"old\"", "\"X\"") } else { before.clone() };
        assert_eq!(after, expected, "call {number}");
    }
}

#[test]
fn edits_of_other_containers_are_the_same_edits() {
    for bytes in [texts(), rich().bytes] {
        let plain = lines(&edited(&bytes, &["s/old/new/"], "*", Some(Container::Raw)));
        for chunk in [7, 100, 60_000] {
            let packed = snappy(&bytes, chunk);
            assert_eq!(lines(&packed), lines(&bytes), "chunks of {chunk}");
            let raw = edited(&packed, &["s/old/new/"], "*", Some(Container::Raw));
            assert_eq!(lines(&raw), plain);
            assert_eq!(raw, edited(&bytes, &["s/old/new/"], "*", Some(Container::Raw)));
        }
    }
}

#[test]
fn statistics_of_parts_add_up() {
    for bytes in streams() {
        let count = |bytes: &[u8], by: By| {
            let found = stats(&mut reader(bytes), &StatsOptions::default(), &mut Collect::default()).unwrap();
            let rows = found.rows(by).iter();
            rows.map(|row| (row.label.to_string(), row.figures.calls)).collect::<BTreeSet<_>>()
        };
        let sum = |rows: &BTreeSet<(String, u64)>| rows.iter().map(|(_, calls)| calls).sum::<u64>();
        let names = count(&bytes, By::Function);
        assert_eq!(sum(&names), lines(&bytes).len() as u64);
        for (name, calls) in &names {
            let of_name = |part: &[u8]| {
                count(part, By::Function).iter().find(|(other, _)| other == name).map_or(0, |(_, calls)| *calls)
            };
            let (front, back) = (trimmed(&bytes, &of_calls("0-29")), trimmed(&bytes, &of_calls("30-")));
            assert_eq!(of_name(&front) + of_name(&back), *calls, "{name}");
        }
    }
}
