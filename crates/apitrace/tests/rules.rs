//! Each rule is broken once; code, severity and place are asserted. The bytes are those of `corpus/bad` too.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use std::collections::BTreeSet;

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{assert_repairs, assert_windows_agree, examine};
use anytrace_core::{Format, Severity};
use build::*;

struct Case {
    code: &'static str,
    offset: u64,
    bytes: Vec<u8>,
}

fn case(code: &'static str, build: &Build, label: &str) -> Case {
    Case { code, offset: build.at(label), bytes: build.bytes.clone() }
}

/// Version 6 with function 0, `f(x)`, defined by call 0.
fn begun() -> Build {
    let mut b = Build::version(6);
    b.enter_new(0, 0, "function", &["x"]).argument(0, &uint(1)).end().leave(0).end();
    b
}

fn container_cases() -> Vec<Case> {
    let raw = rich().bytes;
    let entire = snappy(&raw, 100);
    let mut cases = vec![Case { code: "apitrace/container-truncated", offset: 2, bytes: entire[..50].to_vec() }];
    // The second chunk starts after a block of 100 bytes, 1 of length and 2 of tag.
    let second = 2 + 4 + 103;
    let mut corrupt = entire.clone();
    corrupt[second + 5] = 2 + (7 << 2);
    cases.push(Case { code: "apitrace/chunk-corrupt", offset: second as u64, bytes: corrupt });
    let mut length = entire.clone();
    length[second + 3] = 0x7f;
    cases.push(Case { code: "apitrace/chunk-length", offset: second as u64, bytes: length });
    let mut after = entire.clone();
    after.extend([0, 0, 0, 0, 1]);
    cases.push(Case { code: "apitrace/data-after-end", offset: entire.len() as u64, bytes: after });
    cases.push(Case { code: "apitrace/empty-stream", offset: 0, bytes: b"at".to_vec() });
    cases
}

fn header_cases() -> Vec<Case> {
    let mut semantic = Build::default();
    semantic.add(&[6]).label("here").add(&[9, 0]);
    let mut twice = Build::default();
    twice.label("here").add(&[6, 6]).add(&text("name")).add(&text("1")).add(&text("name")).add(&text("2")).end();
    let mut huge = Build::default();
    huge.label("here").add(&[6, 6]).add(&leb(1 << 40)).add(b"name");
    vec![
        Case { code: "apitrace/header-truncated", offset: 0, bytes: snappy(&[6], 10) },
        Case { code: "apitrace/unsupported-version", offset: 0, bytes: snappy(&[7, 7, 0], 10) },
        Case { code: "apitrace/header-limit", offset: 0, bytes: huge.snappy(100) },
        Case { code: "apitrace/semantic-version", offset: 1, bytes: semantic.snappy(10) },
        case("apitrace/duplicate-property", &twice, "here"),
    ]
}

fn grammar_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |code, label: &str, write: &dyn Fn(&mut Build)| {
        let mut b = begun();
        write(&mut b);
        cases.push(case(code, &b, label));
    };
    add("apitrace/truncated-event", "here", &|b| {
        b.label("here").enter(0, 0).argument(0, &[7, 50, b'a']);
    });
    add("apitrace/unknown-event", "here", &|b| {
        b.label("here").add(&[2]);
    });
    add("apitrace/unknown-detail", "here", &|b| {
        b.enter(0, 0).label("here").add(&[9]).end();
    });
    add("apitrace/unknown-type", "here", &|b| {
        b.enter(0, 0).add(&[1, 0]).label("here").add(&[66]).end();
    });
    add("apitrace/unknown-frame-detail", "here", &|b| {
        b.enter(0, 0).add(&[4, 1, 0]).label("here").add(&[6, 0]).end();
    });
    add("apitrace/enum-value-type", "here", &|b| {
        b.enter(0, 0).add(&[1, 0, 9, 0, 1, 1, b'E']).label("here").add(&[5, 0, 0, 0, 0]).end();
    });
    add("apitrace/token-limit", "here", &|b| {
        b.enter(0, 0).add(&[1, 0]).label("here").add(&[12, 0]).add(&leb(1 << 40)).add(b"name");
    });
    add("apitrace/nesting-limit", "here", &|b| {
        b.enter(0, 0).add(&[1, 0]).add(&[11, 1].repeat(1 << 18)).label("here").add(&[11, 1, 0, 0]);
    });
    add("apitrace/signature-redefined", "here", &|b| {
        b.add(&[0, 0]).label("here").add(&[0]).add(&text("function")).add(&[1]).add(&text("x")).end();
    });
    add("apitrace/lost-signature", "here", &|b| {
        b.calls(0, 1, 4).enter_new(0, 30, "lost", &[]).add(&[1, 0, 77]).end().leave(5).end();
        b.calls(0, 6, 4).add(&[0, 0]).label("here").add(&[30]).end().leave(10).end().calls(0, 11, 4);
        // The broken event seems to define function 30, unless its name is lost too.
        let at = b.bytes.windows(4).position(|w| w == b"lost").unwrap();
        b.bytes[at - 1] = 0x7f;
    });
    cases
}

fn meaning_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |code, write: &dyn Fn(&mut Build)| {
        let mut b = begun();
        write(&mut b);
        cases.push(case(code, &b, "here"));
    };
    add("apitrace/deep-nesting", &|b| {
        b.enter(0, 0).add(&[1, 0]).add(&[11, 1].repeat(64)).label("here").add(&[11, 1, 0]).end().leave(1).end();
    });
    add("apitrace/long-number", &|b| {
        b.enter(0, 0).add(&[1, 0]).label("here").add(&[4]).add(&[0xff; 11]).add(&[1, 0]).leave(1).end();
    });
    add("apitrace/leave-without-enter", &|b| {
        b.label("here").leave(99).end();
    });
    add("apitrace/repeated-leave", &|b| {
        b.label("here").leave(0).end();
    });
    add("apitrace/leave-of-lost-call", &|b| {
        b.calls(0, 1, 4).enter(0, 0).add(&[9]).end().label("here").leave(5).end().calls(0, 6, 4);
    });
    add("apitrace/incomplete-call", &|b| {
        b.enter(0, 0).end().label("here");
    });
    add("apitrace/argument-index", &|b| {
        b.enter(0, 0).label("here").argument(1, &[0]).end().leave(1).end();
    });
    add("apitrace/duplicate-argument", &|b| {
        b.enter(0, 0).argument(0, &[0]).end().leave(1).label("here").argument(0, &[1]).end();
    });
    add("apitrace/duplicate-return", &|b| {
        b.enter(0, 0).end().leave(1).add(&[2, 0]).label("here").add(&[2, 0]).end();
    });
    add("apitrace/return-in-enter", &|b| {
        b.enter(0, 0).label("here").add(&[2, 0]).end().leave(1).end();
    });
    add("apitrace/zero-flag-not-first", &|b| {
        b.enter(0, 0).add(&[1, 0]).label("here").add(&[10, 0, 2, 1, b'A', 1, 1, b'Z', 0, 1]).end().leave(1).end();
    });
    add("apitrace/unknown-flags", &|b| {
        b.enter(0, 0).label("here").add(&[5, 3]).end().leave(1).end();
    });
    let mut old = Build::version(3);
    old.add(&[0, 0]).add(&text("f")).add(&[0]).label("here").add(&[3, 2]).end().leave(0).end();
    cases.push(case("apitrace/thread-detail", &old, "here"));
    let mut early = Build::version(4);
    early.enter_new(0, 0, "f", &[]).label("here").add(&[4, 0]).end().leave(0).end();
    cases.push(case("apitrace/detail-before-version", &early, "here"));
    cases
}

fn gap_cases() -> Vec<Case> {
    let mut first = begun();
    first.calls(0, 1, 20).label("here");
    let mut lost = Build::default();
    lost.calls(0, 21, 20);
    let mut last = Build::default();
    last.calls(0, 41, 20);
    let mut bytes = first.snappy(usize::MAX);
    let at = bytes.len();
    bytes.extend(&lost.snappy(usize::MAX)[2..]);
    // A copy as the first element of the block.
    bytes[at + 6] = 2;
    bytes.extend(&last.snappy(usize::MAX)[2..]);
    vec![Case { code: "apitrace/gap", offset: first.at("here"), bytes }]
}

/// More frames than are distinguished, and more functions than keep their names.
fn bound_cases() -> Vec<Case> {
    let mut frames = begun();
    // The function is a signature too, so the last frame is one too many.
    let count = 12 * 65_536;
    frames.label("here").enter(0, 0).add(&[4]).add(&leb(count));
    for id in 0..count {
        frames.add(&leb(id)).add(&[0]);
    }
    frames.end().leave(1).end();
    let mut functions = begun();
    let name = "f".repeat(13 << 20);
    functions.enter_new(0, 1, &name, &[]).end().leave(1).end();
    functions.label("here").enter_new(0, 2, &name, &[]).end().leave(2).end();
    functions.enter(0, 2).end().leave(3).end();
    vec![case("apitrace/signature-limit", &frames, "here"), case("apitrace/definition-limit", &functions, "here")]
}

fn brotli_cases() -> Vec<Case> {
    let brotli = include_bytes!("../corpus/container_brotli.trace");
    let mut corrupt = brotli.to_vec();
    corrupt[300..500].fill(0xff);
    vec![
        Case { code: "apitrace/brotli-truncated", offset: 800, bytes: brotli[..800].to_vec() },
        Case { code: "apitrace/brotli-corrupt", offset: 1024, bytes: corrupt },
    ]
}

fn cases() -> Vec<Case> {
    [container_cases(), header_cases(), grammar_cases(), meaning_cases(), gap_cases(), brotli_cases(), bound_cases()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_rule_is_reached_at_its_place() {
    let mut reached = BTreeSet::new();
    for Case { code, offset, bytes } in cases() {
        let exam = examine(&Apitrace, &bytes);
        let found = exam.check.iter().find(|d| d.code() == code);
        let all: Vec<_> = exam.check.iter().map(|d| (d.code(), d.offset)).collect();
        assert_eq!(found.map(|d| d.offset), Some(offset), "{code}: {all:x?}");
        reached.insert(code);
    }
    // Rules of the format's own verbs, which `check` does not use: tests/index.rs, tests/peer_dump.rs and
    // lanes/calls.rs reach them.
    let of_tools = [
        "apitrace/damaged-when-indexed",
        "apitrace/late-call",
        "apitrace/object-limit",
        "apitrace/open-limit",
        "apitrace/value-limit",
    ];
    let rules: BTreeSet<_> =
        Apitrace.rules().iter().map(|rule| rule.code).filter(|code| !of_tools.contains(code)).collect();
    assert_eq!(reached, rules);
}

#[test]
fn every_bad_trace_repairs_and_reads_alike_in_any_window() {
    for Case { code, bytes, .. } in cases() {
        assert_repairs(&Apitrace, &bytes, code);
        if bytes.len() < 100_000 {
            assert_windows_agree(&Apitrace, &bytes);
        }
    }
}

#[test]
fn info_reports_the_errors_that_check_reports_where_the_grammar_is_broken() {
    for Case { code, bytes, .. } in cases() {
        let exam = examine(&Apitrace, &bytes);
        let errors = |all: &[anytrace_core::Diagnostic]| -> Vec<&'static str> {
            let errors = all.iter().filter(|d| d.severity == Severity::Error);
            errors.map(|d| d.code()).filter(|code| *code != "apitrace/argument-index").collect()
        };
        assert_eq!(errors(&exam.info.1), errors(&exam.check), "{code}");
    }
}

#[test]
fn the_book_lists_every_code() {
    let chapter = include_str!("../../../docs/book/src/formats/apitrace.md");
    for rule in Apitrace.rules() {
        assert!(chapter.contains(&format!("`{}`", rule.code)), "{} is not in the book", rule.code);
        assert!(rule.code.starts_with("apitrace/"));
    }
}
