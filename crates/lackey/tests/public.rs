//! The crate as other programs use it: `Reader`, `Writer`, `parse`, and nothing else.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::testing::mutations;
use anytrace_core::testing::public::{
    Read, Sample, assert_cuts_keep_records, assert_damage_comes_in_order, assert_for_each_is_a_loop,
    assert_verbs_agree, assert_windows_read_alike, in_memory, read,
};
use anytrace_core::{Kind as ErrorKind, OpenOptions, surface};
use anytrace_lackey::{Fault, Kind, Lackey, Layout, Need, Record, Writer, parse};

surface!(Public, anytrace_lackey, Row, row_of);

/// The fields of a record, and its line.
type Row = ((Kind, u64, u16, bool), Vec<u8>);

fn row_of(record: &Record<'_>) -> Row {
    ((record.kind, record.address, record.size, record.is_usual), record.text.to_vec())
}

fn samples() -> Vec<Sample> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let found = Sample::all(&corpus, &["", "odd", "bad"], &["lackey"]);
    assert!(found.len() > 10);
    found
}

#[test]
fn every_sample_survives_reader_and_writer() {
    let mut same = 0;
    for Sample { name, bytes, .. } in samples() {
        let first = read::<Public>(in_memory(&bytes), &OpenOptions::default());
        let second = read::<Public>(in_memory(first.copy()), &OpenOptions::default());
        // The writer adds a line end where it is missing.
        let without_ends = |read: &Read<Row>| {
            read.rows().into_iter().map(|(fields, text)| (fields, text.trim_ascii_end().to_vec())).collect::<Vec<_>>()
        };
        assert_eq!(without_ends(&second), without_ends(&first), "{name}");
        assert!(second.damage().iter().all(|d| d.code() == "lackey/no-line-end"), "{name}: {:?}", second.damage());
        // What is no record is left out: a trace of records alone is copied byte for byte.
        let record_bytes: usize = first.rows().iter().map(|(_, text)| text.len()).sum();
        if record_bytes == bytes.len() {
            same += 1;
            assert!(first.copy() == bytes, "{name}");
        }
    }
    assert!(same > 2, "{same}");
}

#[test]
fn next_returns_what_the_verbs_report() {
    for Sample { name, bytes, .. } in samples() {
        mutations(&bytes[..bytes.len().min(4000)], 3, 5, |bytes| {
            let (all, exam) =
                assert_verbs_agree::<Public>(&Lackey, &name, &|| in_memory(bytes), &OpenOptions::default());
            assert_eq!(exam.text_places(), all.places(), "{name}");
        });
    }
}

#[test]
fn damage_is_returned_before_the_records_after_it() {
    for Sample { name, bytes, .. } in samples() {
        let all = read::<Public>(in_memory(&bytes), &OpenOptions::default());
        assert_damage_comes_in_order(&name, &all, |_| false);
        for (place, (_, text)) in all.records() {
            assert!(bytes[usize::try_from(place.offset).unwrap()..].starts_with(&text), "{name}");
        }
    }
}

#[test]
fn windows_and_pipes_do_not_matter() {
    for sample in samples() {
        assert_windows_read_alike::<Public>(&sample, &OpenOptions::default(), &[1, 7, 4096]);
    }
}

#[test]
fn for_each_is_a_loop_over_next() {
    for sample in samples() {
        let all = assert_for_each_is_a_loop::<Public>(&sample, &OpenOptions::default());
        let bytes_lost: u64 = all.damage().iter().map(|damage| damage.skipped_bytes).sum();
        assert_eq!(
            (all.passed.bytes, all.passed.bytes_lost),
            (sample.bytes.len() as u64, bytes_lost),
            "{}",
            sample.name
        );
    }
}

#[test]
fn a_cut_anywhere_loses_no_earlier_record() {
    for Sample { name, bytes, .. } in samples().into_iter().filter(|sample| sample.bytes.len() < 2000) {
        let all = read::<Public>(in_memory(&bytes), &OpenOptions::default()).records();
        let ends: Vec<u64> = all.iter().map(|(place, (_, text))| place.offset + text.len() as u64).collect();
        let options = OpenOptions::default();
        assert_cuts_keep_records::<Public>(&name, &bytes, &options, (&all, &ends), usize::MAX, |cut, kept, part| {
            // The size of the last record may be cut.
            assert!(part.records().len() <= kept + 1, "{name} cut at {cut}");
        });
    }
}

#[test]
fn the_parser_reads_each_line_of_the_reader() {
    let layout = Layout::default();
    for Sample { name, bytes, .. } in samples() {
        for row in read::<Public>(in_memory(&bytes), &OpenOptions::default()).rows() {
            let text = row.1.as_slice();
            if !text.ends_with(b"\n") {
                continue;
            }
            let (parsed, used) = parse(text, &layout).unwrap();
            assert_eq!((&row_of(&parsed), used), (&row, text.len()), "{name}");
            for have in 0..used {
                assert_eq!(parse(&text[..have], &layout), Err(Need::More(have as u64 + 1)));
            }
        }
    }
    assert_eq!(parse(b"hello\n", &layout), Err(Need::Bad(Fault::Other)));
    assert!(matches!(parse(b"I  0401ab7x,3\n", &layout), Err(Need::Bad(Fault::Damaged(fault))) if fault.at == 10));
}

#[test]
fn a_record_that_the_format_cannot_hold_is_refused() {
    let mut writer = Writer::new(Vec::new());
    let error = writer.write(&Record::new(Kind::Block, 0x1000, 8)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("record 0: size 8"), "{error}");
    writer.write(&Record::new(Kind::Block, 0x1000, 0)).unwrap();
    assert_eq!(writer.finish().unwrap(), b"SB 00001000\n");
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 10];
    let mut writer = Writer::new(&mut full[..]);
    writer.write(&Record::new(Kind::Read, 1, 8)).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Io);
}
