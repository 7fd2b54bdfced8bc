//! Reading in parts gives the rows, the steps and the diagnostics of reading at once.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anytrace_core::index::{Mark, Part};
use anytrace_core::table::{EVENTS, Scan};
use anytrace_core::testing::parts::examine_parts;
use anytrace_core::testing::tables::rows_with;
use anytrace_core::testing::{mutations, truncations};
use anytrace_core::{Collect, Format, Input, InputOptions, Kind, OpenOptions, Step};
use anytrace_lackey::{Lackey, Reader};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// Every trace of the corpus.
fn samples() -> Vec<PathBuf> {
    let folders = [corpus(), corpus().join("odd"), corpus().join("bad")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let mut paths: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|e| e == "lackey"));
    paths.sort();
    paths
}

fn marks(bytes: &[u8], every_bytes: u64) -> Vec<Mark> {
    let trace = Lackey.open(Input::from_bytes("marks", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut marks = Vec::new();
    trace.marks(every_bytes, &mut marks, &mut Collect::default()).unwrap();
    marks
}

#[test]
fn every_sample_is_the_same_in_parts() {
    let mut most = 0;
    for path in samples() {
        most = most.max(examine_parts(&Lackey, &std::fs::read(path).unwrap()));
    }
    assert!(most >= 64, "{most}");
}

#[test]
fn cut_and_changed_traces_are_the_same_in_parts() {
    for (seed, name) in ["printed.lackey", "two-processes.lackey"].into_iter().enumerate() {
        let bytes = std::fs::read(corpus().join(name)).unwrap();
        truncations(&bytes, 20, |_, cut| _ = examine_parts(&Lackey, cut));
        mutations(&bytes, 5 + seed as u64, 40, |bytes| _ = examine_parts(&Lackey, bytes));
    }
}

#[test]
fn damage_beside_marks_is_the_same_in_parts() {
    let mut log = String::new();
    for n in 0..2000_u64 {
        let address = 0x0400_0000 + n * 8;
        // Text before a record and on several lines, control characters, lines that end early or not at all.
        match n % 97 {
            5 => writeln!(log, "hello I  {address:08x},3").unwrap(),
            11 => writeln!(log, "first line\nsecond line\n").unwrap(),
            23 => writeln!(log, " L {address:08x},").unwrap(),
            37 => writeln!(log, "a \u{1} b").unwrap(),
            53 => write!(log, " S {address:08x}").unwrap(),
            61 => writeln!(log, "==77== a message").unwrap(),
            _ => writeln!(log, " L {address:08x},8").unwrap(),
        }
    }
    assert!(examine_parts(&Lackey, log.as_bytes()) >= 64);
    mutations(log.as_bytes(), 11, 8, |bytes| assert!(examine_parts(&Lackey, bytes) >= 7 || bytes.len() < 1000));
}

#[test]
fn a_line_longer_than_the_limit_is_in_one_part() {
    let mut log = b" L 04000000,8\n".repeat(20);
    log.extend(vec![b'x'; (1 << 20) + 300]);
    log.push(b'\n');
    log.extend(b" L 04000000,8\n".repeat(20));
    // What is before the line, the line, and what is behind it: parts are divided by their length.
    assert!(examine_parts(&Lackey, &log) >= 3);
}

#[test]
fn marks_are_at_lines_of_records() {
    let log = b"text\n L 04000000,8\ntext I  04000008,3\n S 04000010,4\r\nI  04000018,3\n L 04000020,8";
    let places: Vec<_> = marks(log, 1).into_iter().map(|mark| (mark.offset, mark.seq, mark.state[0])).collect();
    // Not before a record behind text, nor before the last line, which has no end.
    assert_eq!(places, [(5, 0, 2), (38, 2, 4), (53, 3, 5)]);
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
    let bytes = std::fs::read(corpus().join("printed.lackey")).unwrap();
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
            if let Err(error) = rows_with(&Lackey, &bytes, &EVENTS, &Scan::default(), &options) {
                assert_eq!(error.kind(), Kind::Usage, "{error}");
                refused += 1;
            }
        });
    }
    assert!(refused > 100, "{refused}");
}
