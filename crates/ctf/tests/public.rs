//! The crate as other programs use it: `Reader`, `Writer`, `parse`, the options of the verbs.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::path::Path;

use anytrace_core::archive::unpack;
use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{
    Collect, Format, Input, InputOptions, Kind, Limits, OpenOptions, Plan, Selection, Step, TargetOptions, TimeBound,
};
use anytrace_ctf::{Ctf, Layout, Need, Reader, Writer, parse};

const SAMPLE: &[u8] = include_bytes!("../corpus/features.tar");
const BIG: &[u8] = include_bytes!("../corpus/features-be.tar");

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("sample", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(examine(&Ctf, bytes).text).unwrap()
}

/// The lines of events, without their numbers and offsets.
fn events(bytes: &[u8]) -> Vec<String> {
    text(bytes).lines().filter_map(|line| Some(line.split_once(" event ")?.1.to_owned())).collect()
}

#[test]
fn a_copy_of_all_records_is_the_same_trace() {
    let mut reader = reader(SAMPLE);
    let mut writer = Writer::with_layout(Vec::new(), reader.layout());
    let mut layout = reader.layout().clone();
    let mut at = 0;
    while let Some(step) = reader.next().unwrap() {
        let Step::Record(place, record) = step else { panic!("the sample is not damaged") };
        assert_eq!(place.offset, at as u64);
        // The layout is that of the last record: only the first ones are parsed alike.
        if at == 0 {
            let (parsed, used) = parse(&SAMPLE[at..], &layout).unwrap();
            assert_eq!(parsed, record);
            for have in 0..used {
                assert_eq!(parse(&SAMPLE[at..at + have], &layout), Err(Need::More(512)));
            }
            layout = Layout::default();
        }
        at += record.bytes().len();
        writer.write(&record).unwrap();
    }
    assert!(reader.next().unwrap().is_none(), "the end stays the end");
    assert!(writer.finish().unwrap() == SAMPLE);
}

#[test]
fn an_event_longer_than_the_limit_is_damage_and_reading_goes_on() {
    let long = vec![b'x'; 5000];
    let event = [&long[..], b"\0"].concat();
    let meta =
        b"/* CTF 1.8 */ trace { major = 1; minor = 8; byte_order = le; }; event { fields := struct { string s; }; };";
    let mut trace = anytrace_core::archive::Header::file("metadata", meta.len() as u64).to_bytes();
    trace.extend_from_slice(meta);
    trace.resize(trace.len().next_multiple_of(512), 0);
    for name in ["a", "b"] {
        let bytes: &[u8] = if name == "a" { &event } else { b"short\0" };
        trace.extend(anytrace_core::archive::Header::file(name, bytes.len() as u64).to_bytes());
        trace.extend_from_slice(bytes);
        trace.resize(trace.len().next_multiple_of(512), 0);
    }
    let mut limits = Limits::default();
    limits.record_bytes_max = 1000;
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let opened = Ctf.open(Input::from_bytes("x", trace.clone()), &options).unwrap();
    let mut damage = Collect::default();
    let info = opened.info(&mut damage).unwrap();
    assert_eq!(damage.codes(), ["ctf/event-too-long"]);
    assert!(info.kinds.contains(&("event".to_owned(), 1)), "{:?}", info.kinds);
    assert_eq!(events(&trace).len(), 2);
}

#[test]
fn every_type_is_printed_with_its_values() {
    let text = text(SAMPLE);
    for line in [
        "event name=\"work_begin\" time_ns=101006000000 header={\"id\":\"compact\",\"v\":{\"timestamp\":1001}} \
         context={\"vtid\":42} fields={\"label\":\"outer\"}",
        "event name=\"far\" time_ns=105005000000 header={\"id\":\"extended\",\"v\":{\"id\":900,\"timestamp\":5000}} \
         context={\"vtid\":42} fields={\"bit\":1}",
        "event name=\"types\" time_ns=106006000000 header={\"id\":\"compact\",\"v\":{\"timestamp\":881}} \
         context={\"vtid\":42} event_context={\"depth\":3} fields={\"big\":4660,\"little\":3735928559,\"f32\":1.5,\
         \"f64\":-2.25,\"color\":\"GREEN\",\"pairs\":[{\"a\":-1,\"b\":0x1f},{\"a\":3,\"b\":0x0}],\
         \"grid\":[[1,2,3],[4,5,6]],\"count\":3,\"words\":[{\"kind_length\":3,\"text\":\"one\"},\
         {\"kind_length\":0,\"text\":\"\"},{\"kind_length\":5,\"text\":\"three\"}],\"kind\":\"number\",\
         \"value\":43981,\"name\":\"abc\"}",
        "event name=\"scoped\" time_ns=101032000000 header={\"id\":\"compact\",\"v\":{\"timestamp\":3}} \
         context={\"vtid\":42} fields={\"bytes\":[7,8,9]}",
        "event name=\"irq_exit\" time_ns=101605000000 header={\"id\":8,\"timestamp\":1600} fields={\"ret\":-1}",
    ] {
        assert_eq!(text.lines().filter(|own| own.ends_with(line)).count(), 1, "{line}\n{text}");
    }
}

#[test]
fn both_byte_orders_have_the_same_events() {
    // The other sample is of two traces in folders, one of them big-endian with its description in packets.
    assert_eq!(events(SAMPLE), events(BIG));
}

#[test]
fn a_folder_and_its_description_are_the_same_trace() {
    let folder = std::env::temp_dir().join(format!("anytrace-ctf-folder-{}", std::process::id()));
    unpack(BIG, &folder).unwrap();
    let open = |path: &Path| Input::open(path, InputOptions::default()).unwrap();
    let dump = |input: Input| {
        let mut out = Vec::new();
        let trace = Ctf.open(input, &OpenOptions::default()).unwrap();
        trace.dump(&anytrace_core::DumpOptions::default(), &mut out, &mut Collect::default()).unwrap();
        String::from_utf8(out).unwrap()
    };
    let all = dump(open(&folder));
    assert_eq!(all.matches(" event ").count(), events(BIG).len());
    let path = folder.join("a/metadata");
    let (input, note) = Ctf.completed(&path, open(&path)).unwrap();
    assert_eq!(note, None);
    assert_eq!(dump(input).matches(" event ").count(), 13);
    // By itself it is a trace without packets.
    assert_eq!(dump(open(&path)).matches(" metadata ").count(), 1);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_description_may_come_last() {
    let packets = SAMPLE.windows(11).position(|name| name == b"channel0_0\0").unwrap();
    let end = SAMPLE.len() - 1024;
    let turned = [&SAMPLE[packets..end], &SAMPLE[..packets], &SAMPLE[end..]].concat();
    assert_eq!(events(&turned), events(SAMPLE));
}

#[test]
fn what_is_wrong_is_found_by_check() {
    let codes = |bytes: &[u8]| examine(&Ctf, bytes).check.iter().map(|d| d.code()).collect::<Vec<_>>();
    assert_eq!(codes(SAMPLE), ["ctf/events-discarded"]);
    assert_eq!(codes(include_bytes!("../corpus/bare.tar")), ["ctf/no-clock"]);
    let start = SAMPLE.windows(4).position(|four| four == [0xc1, 0x1f, 0xfc, 0xc1]).unwrap();
    let changed = |at: usize, bytes: &[u8]| {
        let mut trace = SAMPLE.to_vec();
        trace[start + at..start + at + bytes.len()].copy_from_slice(bytes);
        codes(&trace)
    };
    assert_eq!(changed(4, &[9]), ["ctf/other-uuid", "ctf/events-discarded"]);
    // The end of the packet's time.
    assert_eq!(changed(29, &1010_u64.to_le_bytes()), ["ctf/time-outside", "ctf/events-discarded"]);
    // Its number.
    let second = 181 + 56;
    assert_eq!(changed(second, &[7]), ["ctf/events-discarded", "ctf/packets-lost"]);
}

#[test]
fn a_trim_keeps_what_gives_events_their_meaning() {
    for sample in [SAMPLE, BIG] {
        let trim = |selection| rewrite(&Ctf, sample, &Plan::Trim(selection, TargetOptions::default())).unwrap().0;
        let all = events(sample);
        let thread = trim(Selection { threads: vec![43], ..Selection::default() });
        let expected: Vec<_> = all.iter().filter(|event| event.contains("\"vtid\":43")).cloned().collect();
        assert_eq!(events(&thread), expected);
        let name = |wanted: &'static [u8]| {
            trim(Selection { name: Some(Box::new(move |own| own == wanted)), ..Selection::default() })
        };
        let mut far = events(&name(b"far"));
        assert_eq!(far.len(), 1);
        assert!(far.pop().unwrap().ends_with("fields={\"bit\":1}"));
        // Unaligned events of a packet that now begins later.
        let types = events(&name(b"types"));
        assert_eq!(types, all.iter().filter(|event| event.starts_with("name=\"types\"")).cloned().collect::<Vec<_>>());
        assert!(examine(&Ctf, &name(b"types")).errors().is_empty());
        let time = (TimeBound::Native(106_000_000_000), TimeBound::Open);
        assert_eq!(events(&trim(Selection { time: Some(time), ..Selection::default() })).len(), 6);
        let time = (TimeBound::Nanoseconds(0), TimeBound::Nanoseconds(30_000_000));
        assert_eq!(events(&trim(Selection { time: Some(time), ..Selection::default() })).len(), 7);
        assert_eq!(events(&name(b"no such")).len(), 0);
    }
}

#[test]
fn a_repair_leaves_out_what_cannot_be_read() {
    let repair = |bytes: &[u8]| {
        let (repaired, outcome, _) = rewrite(&Ctf, bytes, &Plan::Repair(TargetOptions::default())).unwrap();
        (events(&repaired), outcome.bytes_lost, examine(&Ctf, &repaired))
    };
    // From the event on that is of no class, the packet is lost.
    let (found, lost, exam) = repair(include_bytes!("../corpus/bad/bad-event--unknown-id.tar"));
    assert_eq!((found.len(), found[..3] == events(SAMPLE)[..3], lost > 0), (events(SAMPLE).len() - 4, true, true));
    assert!(exam.errors().is_empty());
    let (found, _, exam) = repair(include_bytes!("../corpus/bad/bad-packet--magic.tar"));
    assert_eq!((found.len(), exam.errors().len()), (events(SAMPLE).len() - 7, 0));
    let (found, _, _) = repair(include_bytes!("../corpus/bad/truncated--in-packet.tar"));
    assert_eq!(found.len(), events(SAMPLE).len() - 3);
    // A declaration that cannot be read costs the events that it is of, and those after them in their packets.
    let (found, _, exam) = repair(include_bytes!("../corpus/bad/bad-metadata--unknown-type.tar"));
    assert!(found.len() >= 6 && exam.errors().is_empty(), "{found:?}");
}

#[test]
fn faults_of_a_description_have_line_and_column() {
    let exam = examine(&Ctf, include_bytes!("../corpus/bad/bad-metadata--unknown-type.tar"));
    let fault = exam.check.first().unwrap();
    assert_eq!(fault.code(), "ctf/bad-metadata");
    assert_eq!((fault.within.as_deref(), fault.line), (Some("file metadata"), Some((28, 72))));
    assert_eq!((fault.found.as_deref(), fault.expected.as_deref()), (Some("strung"), Some("a type that is declared")));
}

#[test]
fn what_the_format_does_not_have_is_refused() {
    let refused = |target: TargetOptions| rewrite(&Ctf, SAMPLE, &Plan::Convert(target)).unwrap_err().kind();
    assert_eq!(refused(TargetOptions { version: Some(2), ..TargetOptions::default() }), Kind::Usage);
    assert_eq!(refused(TargetOptions { to: Some("other".into()), ..TargetOptions::default() }), Kind::Usage);
}
