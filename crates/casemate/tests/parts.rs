//! Reading in parts gives the rows, the steps and the diagnostics of reading at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use anytrace_casemate::{Casemate, Reader};
use anytrace_core::index::{Mark, Part};
use anytrace_core::table::{EVENTS, Scan};
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::tables::rows_with;
use anytrace_core::testing::{mutations, truncations};
use anytrace_core::{Collect, Format, Input, InputOptions, Kind, OpenOptions, Step};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every trace of the corpus.
fn samples() -> Vec<PathBuf> {
    let folders =
        [corpus(), corpus().join("odd"), corpus().join("bad"), corpus().join("relax"), corpus().join("breaches")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "log"));
    paths.sort();
    paths
}

fn marks(bytes: &[u8], every_bytes: u64) -> Vec<Mark> {
    let trace = Casemate.open(Input::from_bytes("marks", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut marks = Vec::new();
    trace.marks(every_bytes, &mut marks, &mut Collect::default()).unwrap();
    marks
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let mut most = 0;
    for path in samples() {
        most = most.max(examine_parts(&Casemate, &std::fs::read(path).unwrap()));
    }
    assert!(most >= 64, "{most}");
}

#[test]
fn cut_and_changed_traces_are_the_same_in_parts() {
    for (seed, name) in ["head_bad_race.log", "color_good_bbm.log"].into_iter().enumerate() {
        let bytes = std::fs::read(corpus().join(name)).unwrap();
        truncations(&bytes, 20, |_, cut| _ = examine_parts(&Casemate, cut));
        mutations(&bytes, 5 + seed as u64, 40, |bytes| _ = examine_parts(&Casemate, bytes));
    }
}

/// A log with everything that a reader must remember or finish: comments, output of the reference in the middle, damaged
/// records with what follows on their line, strings with parentheses, records over several lines.
fn long() -> Vec<u8> {
    let mut log = Vec::new();
    for n in 0..1200 {
        let record = format!("(mem-write (id {n}) (tid {}) (mem-order plain) (address 0x{n:x}000) (value 0x7))", n % 3);
        let line = match n % 97 {
            5 => format!("; a comment\n{record} {record}"),
            11 => record.replace(" (", "\n  ("),
            23 => record.replace("(value 0x7)", "(value"),
            37 => record.replace("(tid ", "(tid (tid "),
            53 => format!("stray text {record}"),
            61 => format!("{record})"),
            71 => format!("(lock (id {n}) (tid 1) (address 42) (src \"a) (lock.c:7\"))"),
            83 if n > 600 => "*[0x10] a cell\n! a claim of the reference".to_owned(),
            _ => record,
        };
        log.extend(line.bytes());
        log.extend(if n % 7 == 0 { &b"\r\n\n  "[..] } else { b"\n" });
    }
    log
}

#[test]
fn damage_beside_marks_is_the_same_in_parts() {
    let log = long();
    assert!(examine_parts(&Casemate, &log) >= 64);
    mutations(&log, 11, 4, |bytes| assert!(examine_parts(&Casemate, bytes) >= 7 || bytes.len() < 2000));
}

#[test]
fn a_mark_has_its_line_and_whether_output_was_reported() {
    let mut log = b"(lock 0 1 42)\n".repeat(10);
    log.extend(b"*[0x10] a cell\n");
    log.extend(b"(lock 0 1 42)\n".repeat(10));
    for mark in marks(&log, 1) {
        let before = &log[..usize::try_from(mark.offset).unwrap()];
        let records = before.iter().filter(|byte| **byte == b')').count() as u64;
        let lines = before.iter().filter(|byte| **byte == b'\n').count() as u64;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at as u64 + 1);
        let numbers: Vec<_> = mark.state.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        let has_output = u64::from(mark.offset > 140);
        assert_eq!((mark.seq, &numbers[..]), (records, &[has_output, lines, start][..]), "{}", mark.offset);
    }
}

/// The records and the damage of a part, as text.
fn steps(input: Input, part: Part) -> Vec<String> {
    let mut reader = Reader::new(input, &OpenOptions { part: Some(part), ..OpenOptions::default() }).unwrap();
    let mut steps = Vec::new();
    while let Some(step) = reader.next().unwrap() {
        steps.push(match step {
            Step::Record(place, record) => format!("{place:?} {record:?}"),
            Step::Damage(diagnostic) => diagnostic.to_string(),
        });
    }
    steps
}

#[test]
fn the_reader_begins_at_every_mark_of_a_file() {
    for path in samples() {
        let open = || Input::open(&path, InputOptions::default()).unwrap();
        let all = steps(open(), Part::default());
        let mut joined = Vec::new();
        let found = marks(&std::fs::read(&path).unwrap(), 100);
        let ends = found.iter().map(|mark| Some(mark.offset)).chain([None]);
        let starts = [None].into_iter().chain(found.iter().cloned().map(Some));
        for (from, until) in starts.zip(ends) {
            joined.extend(steps(open(), Part { from, until, shared: None, ..Part::default() }));
        }
        assert_eq!(joined, all, "{}", path.display());
    }
}

#[test]
fn a_mark_that_was_changed_is_refused_or_read() {
    let bytes = std::fs::read(corpus().join("spaces_c0057.log")).unwrap();
    let mut refused = 0;
    for mark in marks(&bytes, 100) {
        let numbers = [&mark.offset.to_le_bytes()[..], &mark.seq.to_le_bytes(), &mark.state].concat();
        mutations(&numbers, mark.offset, 40, |changed| {
            let [offset, seq, state @ ..] = changed.as_chunks::<8>().0 else { return };
            let [offset, seq] = [offset, seq].map(|bytes| u64::from_le_bytes(*bytes));
            let from = Some(Mark { offset, seq, state: state.as_flattened().into() });
            // A part that ends inside a record.
            let part = Some(Part { from, until: Some(offset.saturating_add(31)), shared: None, ..Part::default() });
            let options = OpenOptions { part, ..OpenOptions::default() };
            if let Err(error) = rows_with(&Casemate, &bytes, &EVENTS, &Scan::default(), &options) {
                assert_eq!(error.kind(), Kind::Usage, "{error}");
                refused += 1;
            }
        });
    }
    assert!(refused > 100, "{refused}");
}
