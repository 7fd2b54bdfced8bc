//! The crate as other programs use it: `Reader`, `Writer`, `parse`, the options of the verbs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Format, Input, Kind, Limits, OpenOptions, Plan, Selection, Settings, Step,
    TargetOptions, TimeBound,
};
use anytrace_perf::{Layout, Need, Perf, Reader, Record, Writer, parse};

const TEXT: &[u8] = include_bytes!("../corpus/stacks.perf");
const LINES: &[u8] = include_bytes!("../corpus/side-band.perf");
const DATA: &[u8] = include_bytes!("../corpus/callgraph.data");
const TWO: &[u8] = include_bytes!("../corpus/two-events.data");
const STREAM: &[u8] = include_bytes!("../corpus/stream.data");

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

#[test]
fn a_copy_of_all_records_is_the_same_recording() {
    for bytes in [TEXT, DATA, STREAM] {
        let mut reader = reader(bytes);
        let layout: Layout = *reader.layout();
        let mut writer = Writer::with_layout(Vec::new(), &layout);
        while let Some(step) = reader.next().unwrap() {
            let Step::Record(place, record) = step else { panic!("the sample is not damaged") };
            if !matches!(record, Record::Features(_)) {
                let own = &bytes[usize::try_from(place.offset).unwrap()..];
                let (parsed, used) = parse(own, &layout).unwrap();
                assert_eq!(parsed, record);
                for have in 0..used.min(300) {
                    assert!(matches!(parse(&own[..have], &layout), Err(Need::More(need)) if need as usize <= used));
                }
            }
            writer.write(&record).unwrap();
        }
        assert!(reader.next().unwrap().is_none(), "the end stays the end");
        assert!(writer.finish().unwrap() == bytes);
    }
}

#[test]
fn records_longer_than_the_limit_are_damage_and_reading_goes_on() {
    let mut limits = Limits::default();
    limits.record_bytes_max = 100;
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let codes = |bytes: Vec<u8>| {
        let mut damage = Collect::default();
        let trace = Perf.open(Input::from_bytes("x", bytes), &options).unwrap();
        let info = trace.info(&mut damage).unwrap();
        (damage.codes(), info.records, damage.0[0].skipped_bytes)
    };
    let text = format!("t 1 1.0: e: \n\t1 {} (x)\n\t2 b (x)\n\n", "f".repeat(300));
    assert_eq!(codes(text.into_bytes()), (vec!["perf/record-too-long"], 3, 308));
    let (found, records, _) = codes(DATA.to_vec());
    assert!(records > 5 && found.iter().all(|code| *code == "perf/record-too-long"), "{found:?}");
}

fn details(bytes: &[u8]) -> String {
    examine(&Perf, bytes).info.0.details.iter().find(|(key, _)| *key == "events").unwrap().1.to_string()
}

#[test]
fn events_have_the_names_that_follow_the_records() {
    assert!(details(TWO).contains(r#""name":"page-faults""#), "{}", details(TWO));
    assert!(details(include_bytes!("../corpus/switches.data")).contains("sched:sched_switch"));
    assert!(details(STREAM).contains(r#""name":"cpu-clock""#), "{}", details(STREAM));
}

#[test]
fn a_trim_keeps_samples_with_their_stacks_and_what_they_need() {
    let trim =
        |bytes: &[u8], selection| rewrite(&Perf, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap().0;
    let all = examine(&Perf, TEXT).info.0;
    let time = all.time.unwrap();
    let middle = time.start + (time.end - time.start) / 2;
    let early = || Selection { time: Some((TimeBound::Open, TimeBound::Native(middle))), ..Selection::default() };
    let late = Selection { time: Some((TimeBound::Native(middle), TimeBound::Open)), ..Selection::default() };
    let (first, second) = (trim(TEXT, early()), trim(TEXT, late));
    assert!([first.as_slice(), second.as_slice()].concat() == TEXT, "the two halves are all of it");
    let part = trim(DATA, early());
    let (own, exam) = (examine(&Perf, DATA), examine(&Perf, &part));
    assert!(exam.check.is_empty(), "{:?}", exam.check);
    let count = |exam: &anytrace_core::testing::Exam, kind: &str| {
        exam.info.0.kinds.iter().find(|(name, _)| name == kind).map_or(0, |(_, count)| *count)
    };
    assert_eq!(count(&exam, "mmap2"), count(&own, "mmap2"));
    assert!(count(&exam, "sample") > 0 && count(&exam, "sample") < count(&own, "sample"));
    assert_eq!(details(&part).matches("cpu-clock").count(), 1, "the tables behind the records were moved");
    let none = Selection { name: Some(Box::new(|_| false)), ..Selection::default() };
    assert!(trim(LINES, none).is_empty());
}

#[test]
fn an_unfinished_file_is_finished_by_repair() {
    let bad = include_bytes!("../corpus/bad/unfinished.data");
    let (fixed, _, _) = rewrite(&Perf, bad, &Plan::Repair(TargetOptions::default())).unwrap();
    assert_eq!(fixed.len(), bad.len());
    let exam = examine(&Perf, &fixed);
    assert!(exam.check.is_empty(), "{:?}", exam.check);
    assert_eq!(exam.info.0.records, examine(&Perf, bad).info.0.records);
}

#[test]
fn a_sample_with_a_damaged_line_is_left_out_by_repair() {
    let text = b"t 1 1.0: e: \n\t1 a (x)\nnoise\n\t2 b (x)\n\nt 1 2.0: e: 1 a (x)\nnoise\nt 1 3.0: e: \n\t1 a (x)\n\n";
    let (fixed, outcome, _) = rewrite(&Perf, text, &Plan::Repair(TargetOptions::default())).unwrap();
    assert_eq!(String::from_utf8(fixed).unwrap(), "\nt 1 2.0: e: 1 a (x)\nt 1 3.0: e: \n\t1 a (x)\n\n");
    assert_eq!(outcome.bytes_lost, 12 + 2 * 6 + 2 * 9 + 1);
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let refused = |target: TargetOptions| rewrite(&Perf, TEXT, &Plan::Convert(target)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("other".into()), ..TargetOptions::default() }), Kind::Usage);
    let options = OpenOptions { own: Settings::default().with("event", -1), ..OpenOptions::default() };
    assert!(Perf.open(Input::from_bytes("x", TEXT.to_vec()), &options).is_err());
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 4];
    let mut writer = Writer::new(&mut full[..]);
    writer.write(&parse(b"app 7 1.5: cycles: \n", &Layout::default()).unwrap().0).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), Kind::Io);
}

#[test]
fn dump_takes_ranges_of_records_and_threads() {
    let lines = |selection| {
        let options = DumpOptions { form: DumpForm::Text, selection, ..DumpOptions::default() };
        let mut out = Vec::new();
        let trace = Perf.open(Input::from_bytes("x", DATA.to_vec()), &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert_eq!(lines(Selection { records: Some(1..3), ..Selection::default() }).lines().count(), 2);
    let all = lines(Selection::default());
    let thread = all.lines().find(|line| line.contains(" sample ")).unwrap();
    let thread = thread.split("thread=").nth(1).unwrap().split(' ').next().unwrap();
    let own = lines(Selection { threads: vec![thread.parse().unwrap()], ..Selection::default() });
    assert!(own.lines().count() > 2 && own.lines().all(|line| line.contains(&format!("thread={thread}"))), "{own}");
}
