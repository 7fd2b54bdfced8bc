//! The crate as other programs use it: `Reader`, `Writer`, `parse`, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write as _;

use anytrace_core::testing::mutations;
use anytrace_core::testing::public::{
    Sample, assert_cuts_keep_records, assert_damage_comes_in_order, assert_for_each_is_a_loop, assert_parser_agrees,
    assert_verbs_agree, assert_windows_read_alike, ends_by_next, in_memory, read,
};
use anytrace_core::{Diagnostic, Input, Kind, OpenOptions, surface};
use anytrace_heph::{Header, Heph, Layout, Need, Record, Writer, parse};
use common::{own_corpus, sample_files};

surface!(Public, anytrace_heph, String, in_words);

fn flat() -> OpenOptions {
    OpenOptions::default()
}

fn recovering() -> OpenOptions {
    OpenOptions { own: anytrace_core::Settings::default().with_flag("recover"), ..OpenOptions::default() }
}

/// Everything in a packet, in words; arrays as deep as they were recovered.
fn in_words(record: &Record<'_>) -> String {
    match record {
        Record::Metadata(metadata) => format!("{} = {:?}", metadata.option(), metadata.value()),
        Record::Event(event) => {
            let mut text = format!("{:?} {:?} {}", event.header, event.description(), event.is_recovered());
            for attribute in event.attributes() {
                write!(text, " {:?}={:?}", attribute.name, attribute.value).unwrap();
            }
            text
        }
    }
}

#[test]
fn every_sample_survives_reader_and_writer() {
    for Sample { name, bytes, .. } in sample_files() {
        for options in [flat(), recovering()] {
            let first = read::<Public>(in_memory(&bytes), &options);
            assert_eq!(first.copy() == bytes, !first.has_lost(), "{name}");
            let second = read::<Public>(in_memory(first.copy()), &options);
            assert_eq!(second.rows(), first.rows(), "{name}");
            assert_eq!(second.copy(), first.copy(), "{name}");
        }
    }
}

#[test]
fn next_returns_what_the_verbs_report() {
    for Sample { name, bytes, .. } in sample_files() {
        for options in [flat(), recovering()] {
            mutations(&bytes[..bytes.len().min(3000)], 9, 8, |bytes| {
                let as_is = || Input::from_bytes_as_is("sample", bytes.to_vec());
                assert_verbs_agree::<Public>(&Heph, &name, &as_is, &options);
            });
            let (all, exam) = assert_verbs_agree::<Public>(&Heph, &name, &|| in_memory(&bytes), &options);
            let text = String::from_utf8(exam.text).unwrap();
            let is_packet = |line: &&str| matches!(line.split(' ').nth(1), Some("event" | "metadata"));
            let dumped: Vec<_> = text.lines().filter(is_packet).collect();
            let offsets: Vec<_> = all.records().iter().map(|(place, _)| format!("{:#x}", place.offset)).collect();
            assert!(dumped.iter().map(|line| line.split(' ').next().unwrap()).eq(&offsets), "{name}");
        }
    }
}

#[test]
fn arrays_of_arrays_are_returned_as_they_were_recovered() {
    let sample = Sample::read(&own_corpus(), "broken/array_of_arrays.heph");
    let (plain, all) = (read::<Public>(sample.input(), &flat()), read::<Public>(sample.input(), &recovering()));
    assert_eq!(all.records().len(), plain.records().len() + 1);
    let recovered: Vec<_> = all.rows().into_iter().filter(|words| !plain.rows().contains(words)).collect();
    assert_eq!(recovered.len(), 1);
    let nested = "true \"a\"=Array([Array([Unsigned(1), Unsigned(2)]), Array([Unsigned(3), Unsigned(4)])])";
    assert!(recovered[0].contains(nested), "{recovered:?}");
    let codes: Vec<_> = all.damage().iter().map(Diagnostic::code).collect();
    assert_eq!(codes, ["heph/nested-array-recovered"]);
    let reported = all.steps.iter().position(Result::is_err).unwrap();
    assert!(all.steps[reported + 1].as_ref().is_ok_and(|(_, words)| *words == recovered[0]), "before its packet");
}

#[test]
fn damage_is_returned_before_the_records_after_it() {
    for sample in sample_files() {
        let all = read::<Public>(sample.input(), &recovering());
        assert_damage_comes_in_order(&sample.name, &all, |_| false);
    }
}

#[test]
fn windows_and_pipes_do_not_matter() {
    for sample in sample_files() {
        let windows: &[usize] = if sample.bytes.len() > 100_000 { &[4096] } else { &[1, 7, 4096] };
        assert_windows_read_alike::<Public>(&sample, &recovering(), windows);
    }
}

#[test]
fn for_each_is_a_loop_over_next() {
    for sample in sample_files() {
        let all = assert_for_each_is_a_loop::<Public>(&sample, &recovering());
        let (bytes, kept) = (sample.bytes.len() as u64, all.copy().len() as u64);
        assert_eq!((all.passed.bytes, all.passed.bytes_lost), (bytes, bytes - kept), "{}", sample.name);
    }
}

#[test]
fn a_cut_anywhere_loses_no_earlier_record() {
    for name in ["valid/all_types.heph", "valid/epoch_late.heph", "seed/both.heph"] {
        let sample = Sample::read(&own_corpus(), name);
        let records = read::<Public>(sample.input(), &flat()).records();
        let ends: Vec<u64> = ends_by_next(&records).into_iter().chain([sample.bytes.len() as u64]).collect();
        assert_cuts_keep_records::<Public>(
            name,
            &sample.bytes,
            &flat(),
            (&records, &ends),
            usize::MAX,
            |cut, kept, part| {
                assert_eq!(part.records().len(), kept, "{name} cut at {cut}");
                let is_between = cut == 0 || ends.contains(&(cut as u64));
                assert_eq!(part.damage().is_empty(), is_between, "{name} cut at {cut}");
            },
        );
    }
}

#[test]
fn the_parser_and_the_reader_agree() {
    let sample = Sample::read(&own_corpus(), "valid/all_types.heph");
    let records = read::<Public>(sample.input(), &flat()).records();
    let parse = |bytes: &[u8]| parse(bytes, &Layout::default()).map(|(record, used)| (in_words(&record), used));
    assert!(assert_parser_agrees(&sample.bytes, &records, parse), "every byte is of a packet");
}

#[test]
fn a_packet_above_the_limit_is_neither_read_nor_written() {
    let layout = Layout { packet_bytes_max: 50 };
    let mut writer = Writer::with_layout(Vec::new(), &layout);
    writer.event(&Header::default(), "12345678").finish().unwrap();
    let error = writer.event(&Header::default(), "123456789").finish().unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert!(error.to_string().contains("packet 1: size 51"), "{error}");
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes.len(), 50);
    let (record, used) = parse(&bytes, &layout).unwrap();
    assert_eq!(used, 50);
    let small = Layout { packet_bytes_max: 49 };
    assert!(matches!(parse(&bytes, &small), Err(Need::Bad(_))));
    assert_eq!(Writer::with_layout(Vec::new(), &small).write(&record).unwrap_err().kind(), Kind::Unsupported);
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 10];
    let mut writer = Writer::new(&mut full[..]);
    writer.epoch(1).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), Kind::Io);
}
