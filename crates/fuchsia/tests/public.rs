//! The crate as other programs use it: `Reader`, `Writer`, `parse`, the options of the verbs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{
    Collect, Format, Input, Kind, Limits, OpenOptions, Plan, Selection, Step, TargetOptions, TimeBound,
};
use anytrace_fuchsia::{Fuchsia, Layout, Need, Reader, Writer, parse};

const SAMPLE: &[u8] = include_bytes!("../corpus/features.fxt");
const SCHEDULING: &[u8] = include_bytes!("../corpus/scheduling.fxt");

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
            let need = if have < 8 { 8 } else { used as u64 };
            assert_eq!(parse(&SAMPLE[at..at + have], &Layout::default()), Err(Need::More(need)));
        }
        writer.write(&record).unwrap();
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    assert!(writer.finish().unwrap() == SAMPLE);
}

#[test]
fn a_record_longer_than_the_limit_is_damage_and_reading_goes_on() {
    let mut limits = Limits::default();
    limits.record_bytes_max = 64;
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let trace = Fuchsia.open(Input::from_bytes("x", SAMPLE.to_vec()), &options).unwrap();
    let mut damage = Collect::default();
    let info = trace.info(&mut damage).unwrap();
    assert!(damage.codes().iter().all(|code| *code == "fuchsia/record-too-long"), "{:?}", damage.codes());
    assert!(!damage.0.is_empty() && info.records > 20, "{}", info.records);
}

#[test]
fn every_kind_of_record_is_printed_with_its_fields() {
    let text = String::from_utf8(examine(&Fuchsia, SAMPLE).text).unwrap();
    for line in [
        "provider_info provider=1 name=\"app\"",
        "initialization ticks_per_second=1000000",
        "string number=2 text=\"outer\"",
        "thread number=1 process=100 thread=101",
        "kernel_object name=\"main\" object_type=2 koid=101 args={\"process\":100}",
        "duration_begin time_ns=1000000 process=100 thread=101 category=\"cat\" name=\"outer\" args={\"value\":-7,\"u\":7,\
         \"l\":-1099511627776,\"big\":9223372036854775808,\"d\":0.5,\"s\":\"text\",\"p\":57005,\"k\":101,\"b\":true,\
         \"n\":null}",
        "duration_complete time_ns=1170000 duration_ns=150000 process=100 thread=102 category=\"cat\" name=\"GET /\" \
         args={\"url\":\"/index\"}",
        "counter time_ns=1400000 process=100 thread=101 category=\"cat\" name=\"heap\" id=0 \
         args={\"bytes\":4096,\"ratio\":0.25}",
        "async_end time_ns=2000000 process=100 thread=102 category=\"cat\" name=\"job\" id=9",
        "flow_end time_ns=1310000 process=100 thread=102 category=\"net\" name=\"flow\" id=77",
        "log time_ns=2100000 process=100 thread=101 message=\"a message\"",
        "userspace_object name=\"Widget\" pointer=4096 args={\"size\":3}",
        "blob name=\"raw\" blob_type=1 blob_bytes=5",
        "large_blob time_ns=2200000 process=100 thread=101 category=\"cat\" name=\"shot\" blob_bytes=10 args={\"w\":640}",
        "large_blob category=\"cat2\" name=\"rest\" blob_bytes=9",
    ] {
        assert_eq!(text.lines().filter(|own| own.ends_with(line)).count(), 1, "{line}\n{text}");
    }
    let text = String::from_utf8(examine(&Fuchsia, SCHEDULING).text).unwrap();
    for line in [
        "context_switch time_ns=1500 process=20 thread=22 cpu=0 outgoing_thread=21 outgoing_state=3 args={\"weight\":5}",
        "thread_wakeup time_ns=1700 process=20 thread=21 cpu=1",
        "legacy_context_switch time_ns=3000 process=20 thread=22 cpu=2 outgoing_thread=21 outgoing_state=3",
        "unknown type=11 bytes=24",
    ] {
        assert_eq!(text.lines().filter(|own| own.ends_with(line)).count(), 1, "{line}\n{text}");
    }
}

#[test]
fn what_is_wrong_is_found_by_check() {
    let codes = |bytes: &[u8]| examine(&Fuchsia, bytes).check.iter().map(|d| d.code()).collect::<Vec<_>>();
    assert_eq!(codes(SCHEDULING), ["fuchsia/buffer-full", "fuchsia/unknown-record"]);
    assert_eq!(codes(include_bytes!("../corpus/inline.fxt")), ["fuchsia/no-rate"]);
    // Without its magic number and the tables of the provider.
    let at = SAMPLE.windows(8).position(|word| word == 1000_u64.to_le_bytes()).unwrap() - 8;
    let found = codes(&SAMPLE[at..]);
    for code in ["no-magic", "no-rate", "unknown-string", "unknown-thread"] {
        assert_eq!(found.iter().filter(|own| **own == format!("fuchsia/{code}")).count(), 1, "{code}: {found:?}");
    }
    // Twice the same: durations that are open, ends of none.
    let begin: Vec<u8> = [0x44_u64, 5, 1, 2].iter().flat_map(|word| word.to_le_bytes()).collect();
    let kind = |kind: u8| [&begin[..2], &[kind], &begin[3..]].concat();
    let trace = [&SAMPLE[..8], &kind(3), &kind(2), &kind(2)].concat();
    assert_eq!(codes(&trace), ["fuchsia/no-rate", "fuchsia/end-without-begin", "fuchsia/begin-without-end"]);
}

#[test]
fn a_trim_keeps_what_gives_events_their_meaning() {
    let trim = |selection| rewrite(&Fuchsia, SAMPLE, &Plan::Trim(selection, TargetOptions::default())).unwrap().0;
    let kinds = |bytes: &[u8], kind: &str| {
        examine(&Fuchsia, bytes).info.0.kinds.iter().find(|(name, _)| name == kind).map_or(0, |(_, count)| *count)
    };
    let part = trim(Selection { threads: vec![102], ..Selection::default() });
    assert_eq!((kinds(&part, "string"), kinds(&part, "duration_complete"), kinds(&part, "duration_begin")), (6, 2, 0));
    assert!(examine(&Fuchsia, &part).check.is_empty());
    let name =
        |wanted: &'static [u8]| Selection { name: Some(Box::new(move |own| own == wanted)), ..Selection::default() };
    assert_eq!(kinds(&trim(name(b"heap")), "counter"), 2);
    assert_eq!(kinds(&trim(name(b"no such")), "counter"), 0);
    let time = (TimeBound::Nanoseconds(0), TimeBound::Nanoseconds(150_000));
    let early = trim(Selection { time: Some(time), ..Selection::default() });
    assert_eq!((kinds(&early, "duration_begin"), kinds(&early, "instant"), kinds(&early, "counter")), (2, 0, 0));
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let refused = |target: TargetOptions| rewrite(&Fuchsia, SAMPLE, &Plan::Convert(target)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("other".into()), ..TargetOptions::default() }), Kind::Usage);
}
