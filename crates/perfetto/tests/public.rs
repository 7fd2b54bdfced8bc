//! The crate as other programs use it: `Reader`, `Writer`, `parse`, the options of the verbs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Format, Input, Kind, Limits, OpenOptions, Passed, Plan, Selection, Step,
    TargetOptions,
};
use anytrace_perfetto::{Layout, Need, Perfetto, Reader, Record, Writer, parse};

const SAMPLE: &[u8] = include_bytes!("../corpus/small.perfetto");
const DAMAGED: &[u8] = include_bytes!("../corpus/bad/bad-record.perfetto");

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

#[test]
fn a_copy_of_all_records_is_the_same_trace() {
    let mut reader = reader(SAMPLE);
    let mut writer = Writer::with_layout(Vec::new(), reader.layout());
    while let Some(step) = reader.next().unwrap() {
        let Step::Record(place, record) = step else { panic!("the sample is not damaged") };
        let at = usize::try_from(place.offset).unwrap();
        let (parsed, used) = parse(&SAMPLE[at..], &Layout::default()).unwrap();
        assert_eq!(parsed, record);
        for have in 0..used {
            assert_eq!(parse(&SAMPLE[at..at + have], &Layout::default()), Err(Need::More(have as u64 + 1)));
        }
        writer.write(&record).unwrap();
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    assert!(writer.finish().unwrap() == SAMPLE);
}

#[test]
fn for_each_is_a_loop_over_next() {
    for bytes in [SAMPLE, DAMAGED, b""] {
        let (mut by_next, mut by_visit) = (Vec::new(), Vec::new());
        let mut pulled = reader(bytes);
        while let Some(step) = pulled.next().unwrap() {
            by_next.push(format!("{step:?}"));
        }
        let passed = reader(bytes).for_each(|step| {
            by_visit.push(format!("{step:?}"));
            Ok(())
        });
        assert_eq!(by_next, by_visit);
        let info = examine(&Perfetto, bytes).info;
        let bytes_lost = info.1.iter().map(|damage| damage.skipped_bytes).sum();
        assert_eq!(passed.unwrap(), Passed { records: info.0.records, bytes: bytes.len() as u64, bytes_lost });
        assert_eq!(by_next.len() as u64, info.0.records + info.1.len() as u64);
    }
}

#[test]
fn a_line_longer_than_the_limit_is_damage_and_reading_goes_on() {
    let text = format!("perfetto 1\n1 {}\n2 two\n", "x".repeat(300));
    let mut limits = Limits::default();
    limits.record_bytes_max = 100;
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let trace = Perfetto.open(Input::from_bytes("x", text.into_bytes()), &options).unwrap();
    let mut damage = Collect::default();
    let info = trace.info(&mut damage).unwrap();
    let found: Vec<_> = damage.0.iter().map(|d| (d.code(), d.skipped_bytes, d.line)).collect();
    assert_eq!(found, [("perfetto/line-too-long", 303, Some((2, 1)))]);
    assert_eq!(info.records, 1);
}

#[test]
fn numbers_that_descend_are_reported_by_check() {
    let exam = examine(&Perfetto, b"perfetto 1\n9 a\n8 b\n8 c\n");
    let found: Vec<_> = exam.check.iter().map(|d| (d.code(), d.line, d.record)).collect();
    assert_eq!(found, [("perfetto/order", Some((3, 1)), Some(1))]);
    assert!(exam.info.1.is_empty());
}

#[test]
fn trim_and_dump_take_ranges_of_records() {
    let selection = || Selection { records: Some(1..3), ..Selection::default() };
    let (part, outcome, _) = rewrite(&Perfetto, SAMPLE, &Plan::Trim(selection(), TargetOptions::default())).unwrap();
    assert_eq!(part, b"perfetto 1\n2 second, with \xff\n10 tenth\n");
    assert_eq!(outcome.records_written, 2);
    let options = DumpOptions { form: DumpForm::Text, selection: selection(), ..DumpOptions::default() };
    let mut out = Vec::new();
    let trace = Perfetto.open(Input::from_bytes("x", SAMPLE.to_vec()), &OpenOptions::default()).unwrap();
    trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
    assert_eq!(String::from_utf8(out).unwrap().lines().count(), 2);
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let refused = |target: TargetOptions| rewrite(&Perfetto, SAMPLE, &Plan::Convert(target)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("other".into()), ..TargetOptions::default() }), Kind::Usage);
    let mut writer = Writer::new(Vec::new());
    let error = writer.write(&Record { number: 1, text: b"two\nlines" }).unwrap_err();
    assert_eq!(error.kind(), Kind::Unsupported);
    assert_eq!(writer.finish().unwrap(), b"perfetto 1\n");
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 4];
    let mut writer = Writer::new(&mut full[..]);
    writer.write(&Record { number: 1, text: b"first" }).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), Kind::Io);
}
