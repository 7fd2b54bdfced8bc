//! Every form of a record in which a log was ever written.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod builder;

use anytrace_casemate::Radix;
use anytrace_casemate::{
    Barrier, Casemate, Dialect, Domain, HintKind, Kind, Layout, MemoryOrder, Operand, Record, Source, Sysreg, TlbiOp,
    Transition, parse,
};
use anytrace_core::testing::{examine, examine_with};
use anytrace_core::{Input, Need, OpenOptions, Settings};
use builder::Log;
use proptest::prelude::*;

fn read(text: &str) -> Record<'_> {
    read_as(text, Radix::Hex)
}

fn read_as(text: &str, radix: Radix) -> Record<'_> {
    match parse(text.as_bytes(), &Layout { radix, ..Layout::default() }) {
        Ok((record, used)) => {
            assert_eq!(used, text.len());
            record
        }
        Err(Need::More(_)) => panic!("{text}: more"),
        Err(Need::Bad(fault)) => panic!("{text}: {fault:?}"),
    }
}

fn refused(text: &str) -> (&'static str, usize) {
    match parse(text.as_bytes(), &Layout::default()) {
        Ok((record, _)) => panic!("{text}: {record:?}"),
        Err(Need::More(_)) => ("more", 0),
        Err(Need::Bad(fault)) => (fault.rule.code.trim_start_matches("casemate/"), fault.at),
    }
}

#[test]
fn the_same_write_reads_from_every_spelling() {
    let expected =
        Transition::MemWrite { order: MemoryOrder::Release, address: 0xaaaa_af20_0000, value: 0xaaaa_af20_1003 };
    for text in [
        r#"(mem-write (id 5) (tid 1) (mem-order release) (address 0xaaaaaf200000) (value 0xaaaaaf201003) (src "a.c:3"))"#,
        r#"(MEM-WRITE (id 5) (tid 1) (src "a.c:3") (mem-order release) (address 0xaaaaaf200000) (value 0xaaaaaf201003))"#,
        r#"(mem-write (id 5) (tid 1) (mem-order release) (address aaaaaf200000) (value aaaaaf201003) (src "a.c:3"))"#,
        r#"(mem-write (id 5) (tid 1) (mem-order release) (address 0XAAAAAF200000) (value AAAAAF201003) (src "a.c:3"))"#,
        r#"(mem-write 5 1 release aaaaaf200000 aaaaaf201003 "a.c:3")"#,
        r#"(mem-write 5 1 "a.c:3" release aaaaaf200000 aaaaaf201003)"#,
        r#"(mem-write (id 0x5) (thread 1) RELEASE (address aaaaaf200000) aaaaaf201003 (SRC "a.c:3"))"#,
        r#"(Mem-Write (src "a.c:3") (value aaaaaf201003) (address aaaaaf200000) (mem-order Release) (cpu 1) (id 5))"#,
        "(mem-write\r\n\t(id 5)\n  (tid 1) ; here\n  ( mem-order release )\n (address 0xaaaaaf200000)(value 0xaaaaaf201003)(src \"a.c:3\")\n)",
        r#"(mem-write (id 00005) (tid 01) (mem-order release) (address 0x00000000000000000000aaaaaf200000) (value aaaaaf201003) (src "a.c:3"))"#,
    ] {
        let record = read(text);
        assert_eq!((record.id, record.thread, record.transition), (5, 1, expected), "{text}");
        assert_eq!(record.source.file_line(), Some((&b"a.c"[..], 3)), "{text}");
    }
}

#[test]
fn every_kind_reads_keyed_and_positional() {
    let keyed = [
        ("(mem-read (id 1) (tid 2) (address 10) (value 20))", "(mem-read 1 2 10 20)"),
        ("(mem-init (id 1) (tid 2) (address 10) (size 20))", "(mem-zalloc 1 2 10 20)"),
        ("(mem-free (id 1) (tid 2) (address 10) (size 20))", "(mem-free 1 2 10 20)"),
        ("(mem-set (id 1) (tid 2) (address 10) (size 20) (value 3))", "(mem-set 1 2 10 20 3)"),
        ("(barrier (id 1) (tid 2) dsb (kind ish))", "(barrier 1 2 DSB ISH)"),
        ("(barrier (id 1) (tid 2) isb)", "(barrier 1 2 ISB)"),
        ("(tlbi (id 1) (tid 2) vmalle1is)", "(tlbi 1 2 VMALLE1IS)"),
        ("(tlbi (id 1) (tid 2) ipas2e1is (value 1000))", "(tlbi 1 2 ipas2e1is 1000)"),
        ("(tlbi (id 1) (tid 2) vae2is (addr 1000) (level 3))", "(tlbi 1 2 vae2is 1000 3)"),
        ("(sysreg-write (id 1) (tid 2) (sysreg ttbr0_el2) (value 93))", "(msr 1 2 TTBR_EL2 93)"),
        ("(sysreg-write (id 1) (tid 2) (sysreg vttbr_el2) (value 93))", "(msr 1 2 VTTBR 93)"),
        ("(hint (id 1) (tid 2) (kind release_table) (location 1) (value 0))", "(hint 1 2 RELEASE 1 0)"),
        (
            "(hint (id 1) (tid 2) (kind set_pte_thread_owner) (location 42) (value 93))",
            "(hint 1 2 SET_PTE_THREAD_OWNER 42 93)",
        ),
        ("(lock (id 1) (tid 2) (address 42))", "(lock 1 2 42)"),
        ("(unlock (id 1) (tid 2) (address 42))", "(LOCK 1 2 UNLOCK 42)"),
        ("(unlock (id 1) (tid 2) (address 42))", "(lock (id 1) (tid 2) (kind UNLOCK) (address 42))"),
        ("(trylock (id 1) (tid 2) (address 42))", "(trylock 1 2 42)"),
        ("(barrier (id 1) (tid 2) dsb (kind ish))", "(BARRIER (id 1) (tid 2) (DSB INNER_SHAREABLE))"),
        ("(barrier (id 1) (tid 2) isb)", "(BARRIER (id 1) (tid 2) (ISB))"),
    ];
    for (a, b) in keyed {
        assert!(read(a).means_same(&read(b)), "{a} {b}: {:?} {:?}", read(a), read(b));
    }
}

#[test]
fn every_word_of_every_enum_reads() {
    for op in TlbiOp::ALL {
        let operand = if op.takes_operand() { " (value 0x5)" } else { "" };
        let text = format!("(tlbi (id 0) (tid 0) {}{operand})", op.name());
        let expected = if op.takes_operand() { Operand::Value(5) } else { Operand::None };
        assert_eq!(read(&text).transition, Transition::Tlbi { op: *op, operand: expected });
    }
    for register in Sysreg::ALL {
        let text = format!("(sysreg-write 0 0 {} 1)", register.name().to_uppercase());
        assert_eq!(read(&text).transition, Transition::SysregWrite { register: *register, value: 1 });
    }
    for hint in HintKind::ALL {
        let text = format!("(hint 0 0 {} 1 2)", hint.name().to_uppercase());
        assert_eq!(read(&text).transition, Transition::Hint { hint: *hint, location: 1, value: 2 });
    }
    for domain in Domain::ALL {
        let text = format!("(barrier 0 0 dsb {})", domain.name());
        assert_eq!(read(&text).transition, Transition::Barrier(Barrier::Dsb(*domain)));
    }
}

#[test]
fn sources_are_strings_integers_or_absent_in_any_place() {
    assert_eq!(read("(lock 0 0 1)").source, Source::Absent);
    assert_eq!(read("(lock 0 0 1 (src 17))").source, Source::Key(17));
    assert_eq!(read("(lock 0 0 (src 17) 1)").source, Source::Key(17));
    assert_eq!(read("(lock 0 0 1 \"\")").source, Source::Text(b""));
    assert_eq!(read("(lock 0 0 1 (src \"no colon ; ( )\"))").source, Source::Text(b"no colon ; ( )"));
}

#[test]
fn unprefixed_numbers_follow_the_radix_and_ids_do_not() {
    let text = "(mem-read 16 2 100 0x20)";
    assert_eq!(read_as(text, Radix::Hex).transition, Transition::MemRead { address: 0x100, value: 0x20 });
    let record = read_as(text, Radix::Decimal);
    assert_eq!((record.id, record.transition), (16, Transition::MemRead { address: 100, value: 0x20 }));
    assert!(parse(b"(lock 0 0 1f)", &Layout { radix: Radix::Decimal, ..Layout::default() }).is_err());
    let exam = examine_with(
        &Casemate,
        &OpenOptions { own: Settings::default().with("radix", "dec"), ..OpenOptions::default() },
        &|| Input::from_bytes("x", b"(lock 0 0 42)\n".to_vec()),
    );
    assert_eq!(exam.text, b"0x0  (lock (id 0) (tid 0) (address 0x2a))\n");
}

#[test]
fn the_largest_numbers_fit_and_the_next_do_not() {
    assert_eq!(
        read("(lock 18446744073709551615 4294967295 ffffffffffffffff)").transition,
        Transition::Lock { address: u64::MAX }
    );
    assert_eq!(refused("(lock 18446744073709551616 0 0)"), ("number-too-large", 6));
    assert_eq!(refused("(lock 0 4294967296 0)"), ("number-too-large", 8));
    assert_eq!(refused("(lock 0 0 10000000000000000)"), ("number-too-large", 10));
    assert_eq!(refused("(lock 0 0 10000000000000000g)").0, "bad-number");
}

#[test]
fn misplaced_fields_are_rejected_at_their_place() {
    for (text, code, at) in [
        ("()", "record-without-name", 0),
        ("(\"x\" 1)", "record-without-name", 0),
        ("(lock 0 0 1 2)", "unexpected-field", 12),
        ("(lock 0 0 (address 1) (value 2))", "unexpected-field", 22),
        ("(lock 0 0 (id 1) 2)", "duplicate-field", 10),
        ("(lock 0 0 1 \"a\" \"b\")", "duplicate-field", 16),
        ("(barrier 0 0 isb ish)", "unexpected-field", 17),
        ("(barrier 0 0 (kind ish) isb)", "unexpected-field", 0),
        ("(tlbi 0 0 alle1is 5)", "unexpected-field", 18),
        ("(tlbi 0 0 (value 5) alle1is)", "unexpected-field", 0),
        ("(tlbi 0 0 vae2is (addr 5))", "missing-field", 25),
        ("(tlbi 0 0 vae2is (value 5) (level 1))", "missing-field", 36),
        ("(tlbi 0 0 vae2is 1 2 3)", "unexpected-field", 21),
        ("(lock (id 1) (tid 2) (dsb ish) (address 1))", "unexpected-field", 21),
        ("(lock 0 0)", "missing-field", 9),
        ("(lock)", "missing-field", 5),
        ("(lock (id) 0 1)", "malformed-field", 9),
        ("(lock (id (1)) 0 1)", "malformed-field", 10),
        ("(lock (id 1 2) 0 1)", "malformed-field", 12),
        ("(lock () 0 1)", "malformed-field", 6),
        ("(lock (id \"1\") 0 1)", "malformed-field", 10),
        ("(lock 0 0 1 (src))", "malformed-field", 16),
        ("(lock 0 0 1 (src \"a\nb\"))", "unterminated-string", 17),
        ("(lock (id 0) (lock 1 1 1))", "unclosed-record", 13),
        ("(lock 0 \x01 1)", "control-character", 8),
        ("(lock 0 0 1", "more", 0),
        ("(lock 0 0 1 ; comment)", "more", 0),
        ("(lock 0 0 1; comment\n)", "bad-number", 10),
    ] {
        assert_eq!(refused(text), (code, at), "{text}");
    }
}

#[test]
fn a_diagnostic_points_at_the_labeled_byte() {
    let log = Log::new()
        .open("mem-init")
        .key("id", "0")
        .key("tid", "0")
        .key("address", "0x1000")
        .key("size", "0x1000")
        .close()
        .open("MEM-SET")
        .key("id", "0")
        .key("tid", "0")
        .label("address")
        .raw(" ")
        .raw("(address ")
        .raw("0x1004)")
        .key("size", "0x10")
        .raw(" (value")
        .label("value")
        .bare("0x1ff)")
        .close();
    let exam = examine(&Casemate, log.bytes());
    let found: Vec<_> = exam.check.iter().map(|d| (d.code(), d.offset)).collect();
    let id = log.text.rfind("(id 0)").unwrap() as u64 + 4;
    assert!(found.contains(&("casemate/duplicate-id", id)), "{found:?}");
    assert!(found.contains(&("casemate/unaligned-address", log.at("address") + 9)), "{found:?}");
    assert!(found.contains(&("casemate/value-out-of-range", log.at("value"))), "{found:?}");
}

#[test]
fn dialects_are_distinguished() {
    let dialect = |text: &str| read(text).spelling.dialect();
    assert_eq!(dialect("(barrier (id 1) (tid 2) dsb (kind ish))"), Dialect::Head);
    assert_eq!(dialect("(BARRIER (id 1) (tid 2) (src \"a\") DSB (kind ish))"), Dialect::Seed);
    assert_eq!(dialect("(lock (id 1) (tid 2) (src \"a\") (address 1))"), Dialect::Seed);
    assert_eq!(dialect("(msr (id 1) (tid 2) (sysreg vttbr_el2) (value 1))"), Dialect::Seed);
    assert_eq!(dialect("(tlbi 1 2 alle1is \"a\")"), Dialect::Positional);
    assert_eq!(dialect("(lock (id 1) 2 1)"), Dialect::Mixed);
}

/// A record in words, from numbers.
fn any_record() -> impl Strategy<Value = String> {
    let word = |names: Vec<&'static str>| prop::sample::select(names);
    let number = prop_oneof![Just(0_u64), Just(u64::MAX), any::<u64>(), 0..0x10_0000_u64];
    (0..12_usize, any::<u64>(), any::<u32>(), number.clone(), number, 0..64_u32, word(vec!["", "a.c:1", "x y"]))
        .prop_map(|(kind, id, thread, a, b, style, src)| {
            let name = Kind::ALL[kind].name();
            let field = |key: &str, value: String| {
                if style & 1 == 0 { format!(" ({key} {value})") } else { format!(" {value}") }
            };
            let hex = |value: u64| if style & 2 == 0 { format!("{value:#x}") } else { format!("{value:X}") };
            let own = match Kind::ALL[kind] {
                Kind::MemWrite => {
                    field("mem-order", "plain".into()) + &field("address", hex(a)) + &field("value", hex(b))
                }
                Kind::MemRead => field("address", hex(a)) + &field("value", hex(b)),
                Kind::MemInit | Kind::MemFree => field("address", hex(a)) + &field("size", hex(b)),
                Kind::MemSet => field("address", hex(a)) + &field("size", hex(b)) + &field("value", hex(a ^ b)),
                Kind::Barrier => " dsb".to_owned() + &field("kind", "ish".into()),
                Kind::Tlbi => " vae2is".to_owned() + &field("value", hex(a)),
                Kind::SysregWrite => field("sysreg", "tcr_el2".into()) + &field("value", hex(a)),
                Kind::Hint => {
                    field("kind", "set_owner_root".into()) + &field("location", hex(a)) + &field("value", hex(b))
                }
                _ => field("address", hex(a)),
            };
            let source = if src.is_empty() { String::new() } else { format!(" (src \"{src}\")") };
            let head = format!("({name}{}{}", field("id", id.to_string()), field("tid", thread.to_string()));
            if style & 4 == 0 { format!("{head}{own}{source})\n") } else { format!("{head}{source}{own})\n") }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, rng_seed: prop::test_runner::RngSeed::Fixed(7), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_log_survives_every_way_back(records in prop::collection::vec(any_record(), 0..8)) {
        let bytes = records.concat().into_bytes();
        let exam = examine(&Casemate, &bytes);
        prop_assert_eq!(exam.info.0.records, records.len() as u64);
        anytrace_core::testing::fuzz_roundtrip(&Casemate, &bytes, &|a, b| a == b);
    }
}
