//! The crate as other programs use it: `Reader`, `Writer`, `parse`, the options of the verbs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use anytrace_chrome::{Chrome, Form, Kind as EventKind, Layout, Need, Reader, Writer, parse};
use anytrace_core::testing::{dripping, examine, rewrite};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Format, Input, Kind, Limits, OpenOptions, Passed, Plan, Selection, Step,
    TargetOptions, TimeBound,
};

const SAMPLE: &[u8] = include_bytes!("../corpus/every-phase.json");
const THREADS: &[u8] = include_bytes!("../corpus/tracing-threaded.json");
const DAMAGED: &[u8] = include_bytes!("../corpus/bad/bad-event--missing-quote.json");

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

#[test]
fn a_copy_of_all_records_has_the_same_events() {
    let mut reader = reader(SAMPLE);
    let mut writer = Writer::with_layout(Vec::new(), &Layout::new(Form::Object));
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
    assert_eq!(reader.layout().form, Form::Object);
    let copy: serde_json::Value = serde_json::from_slice(&writer.finish().unwrap()).unwrap();
    let original: serde_json::Value = serde_json::from_slice(SAMPLE).unwrap();
    assert_eq!(copy["traceEvents"], original["traceEvents"]);
}

#[test]
fn the_sample_has_every_kind() {
    let info = examine(&Chrome, SAMPLE).info.0;
    let kinds: Vec<_> = info.kinds.iter().map(|(name, _)| name.as_str()).collect();
    let all: Vec<_> = EventKind::ALL.iter().map(|kind| kind.name()).filter(|name| *name != "other").collect();
    assert_eq!(kinds, all);
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
        let info = examine(&Chrome, bytes).info;
        let bytes_lost = info.1.iter().map(|damage| damage.skipped_bytes).sum();
        assert_eq!(passed.unwrap(), Passed { records: info.0.records, bytes: bytes.len() as u64, bytes_lost });
        assert_eq!(by_next.len() as u64, info.0.records + info.1.len() as u64);
    }
}

#[test]
fn an_event_longer_than_the_limit_is_damage_and_reading_goes_on() {
    let text = format!("[{{\"ph\":\"i\",\"ts\":1,\"name\":\"{}\"}},\n{{\"ph\":\"i\",\"ts\":2}}]", "x".repeat(300));
    let options = OpenOptions { limits: Limits::default().with_record_bytes_max(100), ..OpenOptions::default() };
    let trace = Chrome.open(Input::from_bytes("x", text.into_bytes()), &options).unwrap();
    let mut damage = Collect::default();
    let info = trace.info(&mut damage).unwrap();
    let found: Vec<_> = damage.0.iter().map(|d| (d.code(), d.skipped_bytes, d.resumed_at)).collect();
    assert_eq!(found, [("chrome/event-too-long", 329, Some(0))]);
    assert_eq!(info.records, 1);
}

fn trimmed(bytes: &[u8], selection: Selection) -> Vec<String> {
    let (part, outcome, sink) = rewrite(&Chrome, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap();
    assert!(sink.0.is_empty());
    let exam = examine(&Chrome, &part);
    assert!(exam.check.is_empty(), "{:?}", exam.check);
    assert_eq!(outcome.records_written, exam.info.0.records);
    let value: serde_json::Value = serde_json::from_slice(&part).unwrap();
    let events = value.get("traceEvents").unwrap_or(&value).as_array().unwrap();
    events.iter().map(|e| format!("{}{}", e["ph"].as_str().unwrap(), e["ts"])).collect()
}

#[test]
fn a_trim_keeps_names_of_threads_and_both_ends_of_spans() {
    let time = Some((TimeBound::Native(160_000), TimeBound::Native(163_000)));
    // The spans around that time, and the names.
    let kept = trimmed(THREADS, Selection { time, ..Selection::default() });
    assert_eq!(kept.iter().filter(|kept| kept.starts_with('M')).count(), 2, "{kept:?}");
    assert_eq!(kept.iter().filter(|kept| kept.starts_with('B')).count(), 2);
    assert_eq!(kept.iter().filter(|kept| kept.starts_with('E')).count(), 2);
    let thread = trimmed(THREADS, Selection { threads: vec![1], ..Selection::default() });
    assert!(thread.len() > 3 && thread.len() < 14, "{thread:?}");
    let one = trimmed(THREADS, Selection { records: Some(4..5), ..Selection::default() });
    assert!(
        one.iter().any(|event| event.starts_with('B')) && one.iter().any(|event| event.starts_with('E')),
        "{one:?}"
    );
    let name: anytrace_core::NameMatch = Box::new(|name| name == b"parse");
    let named = trimmed(SAMPLE, Selection { name: Some(name), ..Selection::default() });
    assert_eq!(named, ["Mnull", "Mnull", "X1.5"]);
}

#[test]
fn times_may_count_from_the_earliest() {
    let time = Some((TimeBound::Nanoseconds(0), TimeBound::Nanoseconds(1)));
    let options = DumpOptions { selection: Selection { time, ..Selection::default() }, ..DumpOptions::default() };
    for input in [Input::from_bytes("x", THREADS.to_vec()), dripping("x", THREADS, 100)] {
        let mut out = Vec::new();
        let trace = Chrome.open(input, &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains(" begin \"work\" ts 113.94 ") && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn dump_takes_ranges_of_records() {
    let selection = Selection { records: Some(1..3), ..Selection::default() };
    for (form, lines) in [(DumpForm::Text, 2), (DumpForm::Jsonl, 3)] {
        let selection = Selection { records: selection.records.clone(), ..Selection::default() };
        let options = DumpOptions { form, selection, ..DumpOptions::default() };
        let mut out = Vec::new();
        let trace = Chrome.open(Input::from_bytes("x", SAMPLE.to_vec()), &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().lines().count(), lines);
    }
}

#[test]
fn an_edited_field_of_json_lines_is_written_and_others_stay() {
    let text = b"[ {\"ts\": 1, \"ph\":\"i\"},\n{\"ph\":\"i\",\"ts\":2} ]";
    let exam = examine(&Chrome, text);
    let lines = String::from_utf8(exam.jsonl).unwrap().replace("\"ts\":2}", "\"ts\":3}");
    let mut out = anytrace_core::MemoryTarget::default();
    let import = anytrace_core::ImportOptions { target: &TargetOptions::default(), limits: Limits::default() };
    Chrome.import(Input::from_bytes("x", lines.into_bytes()), &import, &mut out, &mut Collect::default()).unwrap();
    assert_eq!(String::from_utf8(out.0).unwrap(), "[ {\"ts\": 1, \"ph\":\"i\"},\n{\"ph\":\"i\",\"ts\":3} ]");
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let refused = |target: TargetOptions| rewrite(&Chrome, SAMPLE, &Plan::Convert(target)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("other".into()), ..TargetOptions::default() }), Kind::Usage);
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 4];
    let mut writer = Writer::new(&mut full[..]);
    let (event, _) = parse(b"{\"ph\":\"i\",\"ts\":1}", &Layout::default()).unwrap();
    writer.write(&event).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), Kind::Io);
}
