//! The crate as other programs use it: `Reader`, `Writer`, `parse`, and nothing else.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

mod common;

use anytrace_cacheray::{Body, Cacheray, Kind, Layout, Reader, Record, Tag, Width, Writer, parse};
use anytrace_core::testing::public::{
    Sample, assert_cuts_keep_records, assert_damage_comes_in_order, assert_for_each_is_a_loop, assert_parser_agrees,
    assert_verbs_agree, assert_windows_read_alike, ends_by_next, in_memory, read,
};
use anytrace_core::{Endian, Input, OpenOptions, surface};
use common::{Trace, corpus};

surface!(Public, anytrace_cacheray);

fn samples() -> Vec<Sample> {
    Sample::all(&corpus(), &["broken", "traces"], &["trace"])
}

/// Options that give the layout of a trace, so that a part of it is read as the trace is.
fn given(input: Input) -> OpenOptions {
    let layout = *Reader::new(input, &OpenOptions::default()).unwrap().layout();
    let own = anytrace_core::Settings::default().with("pointer-width", layout.width.bytes().to_string().as_str());
    OpenOptions { endian: Some(layout.endian), own, ..OpenOptions::default() }
}

#[test]
fn every_sample_survives_reader_and_writer() {
    for sample in samples() {
        let first = read::<Public>(sample.input(), &OpenOptions::default());
        assert_eq!(first.copy() == sample.bytes, !first.has_lost(), "{}", sample.name);
        let second = read::<Public>(in_memory(first.copy()), &given(sample.input()));
        assert_eq!(second.rows(), first.rows(), "{}", sample.name);
    }
}

#[test]
fn next_returns_what_the_verbs_report() {
    for sample in samples() {
        let (all, exam) =
            assert_verbs_agree::<Public>(&Cacheray, &sample.name, &|| sample.input(), &OpenOptions::default());
        assert_eq!(exam.text_places(), all.places(), "{}", sample.name);
    }
}

#[test]
fn damage_is_returned_before_the_records_after_it() {
    for sample in samples() {
        // A zero tail is known at its end, and reported where it began.
        let all = read::<Public>(sample.input(), &OpenOptions::default());
        assert_damage_comes_in_order(&sample.name, &all, |damage| damage.code() == "cacheray/zero-tail");
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
        let (bytes, kept) = (sample.bytes.len() as u64, all.copy().len() as u64);
        assert_eq!((all.passed.bytes, all.passed.bytes_lost), (bytes, bytes - kept), "{}", sample.name);
    }
}

#[test]
fn a_cut_anywhere_loses_no_earlier_record() {
    for name in ["broken/remove-inside-region", "broken/overlap-nested", "broken/name-same-type-two-sizes"] {
        let sample = Sample::read(&corpus(), &format!("{name}.trace"));
        let records = read::<Public>(sample.input(), &OpenOptions::default()).records();
        let ends: Vec<u64> = ends_by_next(&records).into_iter().chain([sample.bytes.len() as u64]).collect();
        let options = given(sample.input());
        assert_cuts_keep_records::<Public>(
            name,
            &sample.bytes,
            &options,
            (&records, &ends),
            usize::MAX,
            |cut, kept, part| {
                assert_eq!(part.records().len(), kept, "{name} cut at {cut}");
                let is_between = records.iter().any(|(place, _)| place.offset == cut as u64);
                assert_eq!(part.damage().is_empty(), is_between, "{name} cut at {cut}");
            },
        );
    }
}

#[test]
fn the_parser_and_the_reader_agree() {
    let sample = Sample::read(&corpus(), "traces/conflict.up14-O0.trace");
    let layout = *Reader::new(sample.input(), &OpenOptions::default()).unwrap().layout();
    let records = read::<Public>(sample.input(), &OpenOptions::default()).records();
    let parse = |bytes: &[u8]| parse(bytes, &layout).map(|(record, used)| (format!("{record:?}"), used));
    assert!(assert_parser_agrees(&sample.bytes, &records, parse), "every byte is of a record");
}

#[test]
fn a_record_that_the_layout_cannot_hold_is_refused() {
    let layout = Layout { endian: Endian::Big, width: Width::Four };
    let mut writer = Writer::with_layout(Vec::new(), &layout);
    let tag = Tag::new(Kind::Read, false, false);
    let wide = Record { tag, address: 1 << 32, thread: 0, body: Body::Access { size: 1 } };
    let error = writer.write(&wide).unwrap_err();
    assert_eq!(error.kind(), anytrace_core::Kind::Unsupported);
    assert!(error.to_string().contains("address 0x100000000"), "{error}");
    writer.write(&Record { address: 0x1234, ..wide }).unwrap();
    assert_eq!(writer.finish().unwrap(), Trace::of(true, 4).read(0x1234, 1).bytes);
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 10];
    let mut writer = Writer::new(&mut full[..]);
    let record = parse(&[0; 18], &Layout::default()).unwrap().0;
    writer.write(&record).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), anytrace_core::Kind::Io);
}
