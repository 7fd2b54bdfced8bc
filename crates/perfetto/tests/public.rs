//! The crate as other programs use it: `Reader`, `Writer`, `parse`, the options of the verbs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use anytrace_core::testing::{dripping, examine, rewrite};
use anytrace_core::{
    Collect, DumpForm, DumpOptions, Format, Input, Kind, Limits, OpenOptions, Passed, Plan, Selection, Step,
    TargetOptions, TimeBound,
};
use anytrace_perfetto::{Layout, Need, Perfetto, Reader, Record, Writer, parse};

const SAMPLE: &[u8] = include_bytes!("../corpus/features.pftrace");
const REAL: &[u8] = include_bytes!("../corpus/real/chromium.pftrace");
const DAMAGED: &[u8] = include_bytes!("../corpus/bad/bad-packet--garbage-between.pftrace");

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

#[test]
fn a_copy_of_all_packets_is_the_same_trace() {
    for sample in [SAMPLE, REAL] {
        let mut reader = reader(sample);
        let mut writer = Writer::with_layout(Vec::new(), reader.layout());
        while let Some(step) = reader.next().unwrap() {
            let Step::Record(place, record) = step else { panic!("the sample is not damaged") };
            let at = usize::try_from(place.offset).unwrap();
            let (parsed, used) = parse(&sample[at..], &Layout::default()).unwrap();
            assert_eq!(parsed, record);
            for have in 0..used {
                let need = parse(&sample[at..at + have], &Layout::default());
                assert!(matches!(need, Err(Need::More(need)) if need > have as u64 && need <= used as u64), "{have}");
            }
            writer.write(&record).unwrap();
        }
        assert!(reader.next().unwrap().is_none(), "the end stays the end");
        assert!(writer.finish().unwrap() == sample);
    }
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
fn a_packet_longer_than_the_limit_is_damage_and_reading_goes_on() {
    let short = b"\x0a\x04\x40\x05\x50\x07".repeat(3);
    let long = [&b"\x0a\xcc\x02\x8a\x03\xc8\x02"[..], &[b'x'; 328]].concat();
    let bytes = [&short[..], &long, &short].concat();
    let mut limits = Limits::default();
    limits.record_bytes_max = 100;
    for input in [Input::from_bytes("x", bytes.clone()), dripping("x", &bytes, 7)] {
        let options = OpenOptions { limits, ..OpenOptions::default() };
        let trace = Perfetto.open(input, &options).unwrap();
        let mut damage = Collect::default();
        let info = trace.info(&mut damage).unwrap();
        let found: Vec<_> = damage.0.iter().map(|d| (d.code(), d.skipped_bytes, d.offset)).collect();
        assert_eq!(found, [("perfetto/packet-too-long", long.len() as u64, 18)]);
        assert_eq!(info.records, 6);
    }
}

#[test]
fn a_length_of_many_gigabytes_takes_no_memory() {
    let bytes =
        [&b"\x0a\x04\x40\x05\x50\x07\x0a\xff\xff\xff\xff\x0f"[..], &b"\x0a\x04\x40\x05\x50\x07".repeat(3)].concat();
    let exam = examine(&Perfetto, &bytes);
    assert_eq!(exam.info.0.records, 4);
    assert_eq!(
        exam.info.1.iter().map(|d| (d.code(), d.skipped_bytes)).collect::<Vec<_>>(),
        [("perfetto/packet-too-long", 6)]
    );
}

fn kept(selection: Selection) -> Vec<u8> {
    rewrite(&Perfetto, SAMPLE, &Plan::Trim(selection, TargetOptions::default())).unwrap().0
}

fn events_of(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(examine(&Perfetto, bytes).text).unwrap();
    text.lines().filter(|line| line.contains(" type=") || line.contains("phase=")).map(str::to_owned).collect()
}

#[test]
fn trim_keeps_what_the_selected_events_need() {
    let whole = examine(&Perfetto, SAMPLE);
    // The worker's times are differences, and its names are interned by others.
    let part = kept(Selection { threads: vec![102], ..Selection::default() });
    let exam = examine(&Perfetto, &part);
    assert!(exam.check.is_empty(), "{:?}", exam.check);
    assert_eq!(events_of(&part).len(), 4);
    assert_eq!(exam.info.0.time.as_ref().map(|time| time.end), Some(1_010_000));
    let part = kept(Selection { threads: vec![101], ..Selection::default() });
    assert_eq!(events_of(&part).len(), 7, "two slices, an instant, and two values of a counter below the thread");
    assert!(part.len() < SAMPLE.len() && whole.info.0.records > examine(&Perfetto, &part).info.0.records);
    // Everything is the same trace.
    assert!(kept(Selection::default()) == SAMPLE);
}

#[test]
fn trim_and_dump_take_times_records_and_names() {
    let time = Some((TimeBound::Native(1_000_200), TimeBound::Native(1_000_231)));
    let native = kept(Selection { time, ..Selection::default() });
    let time = Some((TimeBound::Nanoseconds(100), TimeBound::Nanoseconds(131)));
    let relative = kept(Selection { time, ..Selection::default() });
    assert_eq!(events_of(&native).len(), 6, "a begin, four values and an instant");
    assert!(native == relative, "the trace starts at 1,000,100");
    assert!(examine(&Perfetto, &native).errors().is_empty());
    let records = kept(Selection { records: Some(6..8), ..Selection::default() });
    assert_eq!(events_of(&records).len(), 2);
    let lines = |selection| {
        let options = DumpOptions { form: DumpForm::Text, selection, ..DumpOptions::default() };
        let mut out = Vec::new();
        let trace = Perfetto.open(Input::from_bytes("x", SAMPLE.to_vec()), &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
        String::from_utf8(out).unwrap().lines().count()
    };
    assert_eq!(lines(Selection { records: Some(1..3), ..Selection::default() }), 2);
    let name = Some(Box::new(|name: &[u8]| name == b"inner") as anytrace_core::NameMatch);
    assert_eq!(lines(Selection { name, ..Selection::default() }), 1, "an interned name");
    assert_eq!(lines(Selection { threads: vec![201], ..Selection::default() }), 2);
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let refused = |target: TargetOptions| rewrite(&Perfetto, SAMPLE, &Plan::Convert(target)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("other".into()), ..TargetOptions::default() }), Kind::Usage);
    let fault = Record::new(b"\x50\x07\x40\x80").unwrap_err();
    assert_eq!((fault.field, fault.at), ("timestamp", 2));
}

#[test]
fn a_destination_that_fails_fails_the_writer() {
    let mut full = [0_u8; 4];
    let mut writer = Writer::new(&mut full[..]);
    writer.write(&Record::new(b"\x40\x05\x50\x07").unwrap()).unwrap();
    assert_eq!(writer.finish().unwrap_err().kind(), Kind::Io);
}

#[test]
fn json_lines_that_are_no_packets_are_refused_with_their_place() {
    let import = |line: &str| {
        let text = format!("{{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"perfetto\"}}\n{line}\n");
        let options = anytrace_core::ImportOptions { target: &TargetOptions::default(), limits: Limits::default() };
        let mut out = anytrace_core::MemoryTarget::default();
        let input = Input::from_bytes("x", text.into_bytes());
        Perfetto.import(input, &options, &mut out, &mut Collect::default()).map(|_| out.0)
    };
    assert_eq!(import(r#"{"packet":[["timestamp",5,2],[1000,"x"]]}"#).unwrap(), b"\x0a\x07\x40\x85\x00\xc2\x3e\x01x");
    assert_eq!(import(r#"{"packet":{"hex":"4005"},"length_bytes":4}"#).unwrap(), b"\x0a\x82\x80\x80\x00\x40\x05");
    for bad in [
        "{}",
        r#"{"packet":5}"#,
        r#"{"packet":[["no such field",5]]}"#,
        r#"{"packet":[["timestamp"]]}"#,
        r#"{"packet":[["timestamp",1.5]]}"#,
        r#"{"packet":[["timestamp",5,11]]}"#,
        r#"{"packet":[[0,5]]}"#,
        r#"{"packet":[["timestamp",[]]]}"#,
        r#"{"packet":[["timestamp","x"]]}"#,
        r#"{"packet":[["track_event",{"hex":"0"}]]}"#,
        r#"{"packet":[],"length_bytes":11}"#,
    ] {
        let error = import(bad).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "{bad}: {error}");
        assert!(error.to_string().contains("line 2"), "{bad}: {error}");
    }
}

#[test]
fn more_tracks_and_sequences_than_the_limit_are_reported_once() {
    let packet = |sequence: u8, track: u8| {
        [b"\x0a\x0a\x40\x05\x50", &[sequence][..], b"\x5a\x04\x48\x01\x58", &[track]].concat()
    };
    let open = |bytes: &[u8]| {
        let options = OpenOptions { limits: Limits::default().with_distinct_max(2), ..OpenOptions::default() };
        Perfetto.open(Input::from_bytes("x", bytes.to_vec()), &options).unwrap()
    };
    let tracks: Vec<u8> = (1..9).flat_map(|n| packet(1, n)).collect();
    let sequences: Vec<u8> = (1..9).flat_map(|n| packet(n, 1)).collect();
    for (bytes, field) in [(tracks, "tracks"), (sequences, "sequences")] {
        let mut damage = Collect::default();
        open(&bytes).check(&mut damage).unwrap();
        let found: Vec<_> = damage.0.iter().filter(|d| d.code() == "perfetto/limit").collect();
        assert_eq!(found.iter().map(|d| d.field.as_deref()).collect::<Vec<_>>(), [Some(field)]);
        assert_eq!(open(&bytes).info(&mut Collect::default()).unwrap().records, 8);
    }
}

#[test]
fn a_long_pipe_is_cut_by_times_from_its_first_event() {
    // The first event is not the earliest; the rest is longer than what is kept of a pipe.
    let first = b"\x0a\x08\x40\x0a\x50\x01\x5a\x02\x48\x03\x0a\x08\x40\x05\x50\x01\x5a\x02\x48\x03";
    let filler = [&b"\x0a\x80\x80\x40\xc2\x3e\xfb\xff\x3f"[..], &vec![0; (1 << 20) - 5]].concat();
    let count = anytrace_core::Cursor::BUFFERED_BYTES_MAX / filler.len() + 2;
    let bytes = [&first[..], &filler.repeat(count)].concat();
    let time = Some((TimeBound::Nanoseconds(0), TimeBound::Nanoseconds(1)));
    let dump = |input: Input| {
        let selection = Selection { time, ..Selection::default() };
        let options = DumpOptions { form: DumpForm::Text, selection, ..DumpOptions::default() };
        let (mut out, mut sink) = (Vec::new(), Collect::default());
        let trace = Perfetto.open(input, &OpenOptions::default()).unwrap();
        trace.dump(&options, &mut out, &mut sink).unwrap();
        (String::from_utf8(out).unwrap(), sink.codes())
    };
    let whole = dump(Input::from_bytes("x", bytes.clone()));
    assert!(whole.0.starts_with("1 track_event") && whole.1.is_empty(), "{whole:?}");
    let piped = dump(dripping("x", &bytes, 1 << 20));
    assert!(piped.0.starts_with("0 track_event") && piped.1 == ["perfetto/stream-time"], "{piped:?}");
}
