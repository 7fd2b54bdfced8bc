//! The state table of the block verifier: every pair of kinds, every last record.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anytrace_core::testing::{assert_repairs, examine};
use anytrace_xray::Xray;

mod common;
use common::made::Made;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    NewBuffer,
    Wall,
    Pid,
    Cpu,
    Wrap,
    Custom,
    Typed,
    Function,
    Argument,
}

use Kind::{Argument, Cpu, Custom, Function, NewBuffer, Pid, Typed, Wall, Wrap};

const ALL: [Kind; 9] = [NewBuffer, Wall, Pid, Cpu, Wrap, Custom, Typed, Function, Argument];

impl Kind {
    fn put(self, made: Made) -> Made {
        match self {
            NewBuffer => made.thread(3),
            Wall => made.wall(),
            Pid => made.pid(9),
            Cpu => made.cpu(100),
            Wrap => made.wrap(200),
            Custom => made.custom_at(1, 300, 1, b"custom"),
            Typed => made.typed(b"typed"),
            Function => made.function(3, 1, 1),
            Argument => made.argument(),
        }
    }

    /// The kinds that must come before it, from the start of a buffer.
    fn way(self) -> &'static [Kind] {
        match self {
            NewBuffer => &[],
            Wall => &[NewBuffer],
            Pid => &[NewBuffer, Wall],
            Cpu => &[NewBuffer, Wall, Pid],
            Wrap | Custom | Typed | Function => &[NewBuffer, Wall, Pid, Cpu],
            Argument => &[NewBuffer, Wall, Pid, Cpu, Function],
        }
    }

    /// The state table of the format's page, row by row.
    fn may_be_followed_by(self, next: Kind) -> bool {
        let body = [Cpu, Wrap, Custom, Typed, Function];
        match self {
            NewBuffer => next == Wall,
            Wall => next == Pid || next == Cpu,
            Pid => next == Cpu,
            Cpu | Wrap | Custom | Typed => body.contains(&next),
            Function | Argument => body.contains(&next) || next == Argument,
        }
    }
}

/// A buffer of these records, with true extents.
fn buffer(made: Made, records: &[Kind]) -> Made {
    let body = |made: Made| records.iter().fold(made, |made, kind| kind.put(made));
    let start = made.bytes.len();
    let length = body(made.clone()).bytes.len() - start;
    body(made.extents(length as u64))
}

fn codes_at(bytes: &[u8], offset: usize) -> Vec<&'static str> {
    let errors = examine(&Xray, bytes).check;
    errors.iter().filter(|d| d.offset == offset as u64).map(|d| d.code()).collect()
}

#[test]
fn each_pair_of_records_is_allowed_or_reported_as_the_table_says() {
    for version in [3, 4, 5] {
        for from in ALL {
            for next in ALL {
                let mut records = from.way().to_vec();
                records.push(from);
                let behind = buffer(Made::header(version, 1, 0), &records).bytes.len();
                records.push(next);
                // A valid end, so that only the pair is tested.
                records.extend(match next {
                    NewBuffer => vec![Wall, Cpu],
                    Wall | Pid => vec![Cpu],
                    _ => vec![],
                });
                let made = buffer(Made::header(version, 1, 0), &records);
                let is_reported = codes_at(&made.bytes, behind).contains(&"xray/bad-transition");
                assert_eq!(is_reported, !from.may_be_followed_by(next), "version {version}: {from:?} then {next:?}");
                assert_repairs(&Xray, &made.bytes, &format!("{from:?} then {next:?}"));
            }
        }
    }
}

#[test]
fn each_kind_may_be_the_last_or_not_as_the_table_says() {
    for from in ALL {
        let mut records = from.way().to_vec();
        records.push(from);
        let made = buffer(Made::header(5, 1, 0), &records);
        let codes = codes_at(&made.bytes, made.bytes.len());
        let is_reported = codes.contains(&"xray/bad-buffer-end");
        assert_eq!(is_reported, matches!(from, NewBuffer | Wall | Pid), "{from:?}: {codes:?}");
        let two = buffer(made, &[NewBuffer, Wall, Pid, Cpu]);
        assert_eq!(examine(&Xray, &two.bytes).errors().len(), usize::from(is_reported), "{from:?}, then a good buffer");
    }
}

#[test]
fn each_kind_behind_extents_but_a_new_buffer_is_reported() {
    for first in ALL {
        let made = buffer(Made::header(5, 1, 0), &[first, NewBuffer, Wall, Pid, Cpu, Function]);
        let codes = examine(&Xray, &made.bytes).error_codes();
        assert!(!codes.is_empty(), "{first:?}");
        let repaired = assert_repairs(&Xray, &made.bytes, &format!("{first:?}"));
        assert!(
            examine(&Xray, &repaired).info.0.kinds.iter().any(|(kind, _)| kind == "function-enter-arg"),
            "{first:?}"
        );
    }
}

#[test]
fn an_end_of_buffer_may_follow_any_record_of_a_body_in_version_1() {
    for from in ALL.into_iter().filter(|kind| ![Pid, Typed].contains(kind)) {
        let mut records: Vec<Kind> = from.way().iter().copied().filter(|kind| *kind != Pid).collect();
        records.push(from);
        let made = records.iter().fold(Made::header(1, 1, 256), |made, kind| kind.put(made));
        let end = made.bytes.len();
        let mut bytes = made.end_of_buffer().bytes;
        bytes.resize(32 + 256, 0);
        let is_reported = codes_at(&bytes, end).contains(&"xray/bad-transition");
        assert_eq!(is_reported, matches!(from, NewBuffer | Wall), "{from:?}");
    }
}

#[test]
fn records_after_an_end_of_buffer_are_ignored() {
    let body = |made: Made, tsc| made.thread(1).wall().cpu(tsc).pair().end_of_buffer();
    let made = body(Made::header(1, 1, 256), 5).argument().wall().thread(4).end_of_buffer();
    let mut bytes = made.bytes;
    bytes.resize(32 + 256, 0x0f);
    let mut two = Made { bytes, ..Made::header(1, 1, 256) };
    two = body(two, 500);
    two.bytes.resize(32 + 512, 0);
    let exam = examine(&Xray, &two.bytes);
    assert!(exam.check.is_empty(), "{:?}", exam.check);
    assert_eq!(exam.info.0.records, 12);
}

#[test]
fn a_process_record_is_not_needed() {
    let exam = examine(&Xray, &buffer(Made::header(5, 1, 0), &[NewBuffer, Wall, Cpu, Wrap]).bytes);
    assert!(exam.check.is_empty(), "{:?}", exam.check);
}

#[test]
fn a_breach_states_the_expected_and_the_found_record() {
    let exam = examine(&Xray, &buffer(Made::header(5, 1, 0), &[NewBuffer, Wall, Pid, Function]).bytes);
    let breach = exam.check.iter().find(|d| d.code() == "xray/bad-transition").unwrap();
    assert_eq!(breach.offset, 32 + 16 + 48);
    assert_eq!(breach.record, Some(4));
    assert_eq!(breach.field.as_deref(), Some("record after pid"));
    assert_eq!(breach.expected.as_deref(), Some("new-cpu-id"));
    assert_eq!(breach.found.as_deref(), Some("a function record"));
}

#[test]
fn every_breach_is_reported_and_not_the_first_only() {
    let made = buffer(Made::header(5, 1, 0), &[NewBuffer, Wall, Pid, Function, Wall, Cpu, Argument, Function]);
    let codes = examine(&Xray, &made.bytes).error_codes();
    assert_eq!(codes, ["xray/bad-transition"; 3], "the second processor record is where it may be");
}
