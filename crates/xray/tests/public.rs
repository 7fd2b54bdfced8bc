//! The public surface: what a program sees that uses `parse`, `Reader` and `Writer`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may panic")]

use std::path::PathBuf;

use anytrace_core::testing::public::{
    Sample, assert_cuts_keep_records, assert_for_each_is_a_loop, assert_parser_agrees, assert_refuses_other_options,
    assert_verbs_agree, assert_windows_read_alike, ends_by_next, in_memory, read,
};
use anytrace_core::{Kind, OpenOptions, Step, surface};
use anytrace_xray::record::{Body, CustomTime, Function, FunctionKind, Header, Metadata};
use anytrace_xray::{Layout, LayoutForm, Reader, Record, Writer, Xray, YamlEntry, YamlHeader, parse};

surface!(Public, anytrace_xray);

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn samples() -> Vec<Sample> {
    let found = Sample::all(&corpus(), &["", "bad", "found"], &["xray", "yaml"]);
    assert!(found.len() > 50);
    found
}

/// Made by a fuzzer: garbage at odd offsets reads as records. The borders of version 1 buffers are multiples of the
/// header's buffer size, and without the damaged bytes, which are no records, other bytes are at them.
const GARBAGE: [&str; 2] = ["/tiny-version-1-buffers.xray", "found/odd-version-1-buffers.xray"];

#[test]
fn every_sample_that_is_copied_reads_back_as_the_same_records() {
    for sample in samples() {
        let name = &sample.name;
        let all = read::<Public>(sample.input(), &OpenOptions::default());
        let again = read::<Public>(in_memory(all.copy()), &OpenOptions::default());
        if GARBAGE.contains(&name.as_str()) {
            assert!(!all.damage().is_empty() && !again.records().is_empty(), "{name}");
            continue;
        }
        assert_eq!(again.rows(), all.rows(), "{name}");
        assert!(!all.damage().is_empty() || again.damage().is_empty(), "{name}: {:?}", again.damage());
    }
}

#[test]
fn a_copy_of_a_trace_without_gaps_has_the_same_bytes() {
    for name in ["v5.xray", "v4.xray", "v2.xray", "be-v5.xray", "be-v2.xray", "basic-v3.xray", "be-basic-v3.xray"] {
        let sample = Sample::read(&corpus(), name);
        let all = read::<Public>(sample.input(), &OpenOptions::default());
        let (copied, bytes) = (all.copy(), &sample.bytes);
        let differs = copied.iter().zip(bytes).position(|(a, b)| a != b);
        assert!(copied == bytes, "{name}: {differs:?}, {} and {}", copied.len(), bytes.len());
    }
}

#[test]
fn the_steps_are_what_the_verbs_report() {
    for sample in samples() {
        let (read, exam) =
            assert_verbs_agree::<Public>(&Xray, &sample.name, &|| sample.input(), &OpenOptions::default());
        let jsonl = String::from_utf8(exam.jsonl).unwrap();
        let offsets: Vec<u64> = jsonl
            .lines()
            .skip(1)
            .filter(|line| !line.contains("\"kind\":\"gap\""))
            .filter_map(|line| line.rsplit_once("\"offset\":")?.1.trim_end_matches('}').parse().ok())
            .collect();
        let places: Vec<u64> = read.records().iter().map(|(place, _)| place.offset).collect();
        assert_eq!(places, offsets, "{}", sample.name);
    }
}

#[test]
fn a_pipe_that_gives_a_byte_at_a_time_reads_as_a_file() {
    for sample in samples() {
        let windows: &[usize] = if sample.bytes.len() > 20_000 { &[7, 4096] } else { &[1, 7, 4096] };
        assert_windows_read_alike::<Public>(&sample, &OpenOptions::default(), windows);
    }
}

#[test]
fn a_trace_cut_anywhere_keeps_the_records_before_the_cut() {
    for name in ["v5.xray", "v1.xray", "be-v5.xray", "basic-v3.xray", "args.yaml", "v5-event-payloads.xray"] {
        let sample = Sample::read(&corpus(), name);
        let records = read::<Public>(sample.input(), &OpenOptions::default()).records();
        let (part, ends) = (&sample.bytes[..sample.bytes.len().min(2500)], ends_by_next(&records));
        let options = OpenOptions::default();
        assert_cuts_keep_records::<Public>(name, part, &options, (&records, &ends), 2500, |_, _, _| {});
    }
}

#[test]
fn for_each_is_a_loop_over_next() {
    for sample in samples() {
        let all = assert_for_each_is_a_loop::<Public>(&sample, &OpenOptions::default());
        assert_eq!(all.passed.bytes, sample.bytes.len() as u64, "{}", sample.name);
    }
    let mut reader = Reader::new(samples()[60].input(), &OpenOptions::default()).unwrap();
    let ended = reader.for_each(|_| Err(anytrace_core::Error::usage("enough")));
    assert_eq!(ended.unwrap_err().kind(), Kind::Usage);
}

#[test]
fn parse_at_the_place_of_a_record_returns_it() {
    for name in ["v5.xray", "v1.xray", "be-v5.xray", "basic-v3.xray", "args.yaml"] {
        let sample = Sample::read(&corpus(), name);
        let layout = *Reader::new(sample.input(), &OpenOptions::default()).unwrap().layout();
        let records = read::<Public>(sample.input(), &OpenOptions::default()).records();
        let parse = |bytes: &[u8]| parse(bytes, &layout).map(|(record, used)| (format!("{record:?}"), used));
        assert!(!assert_parser_agrees(&sample.bytes, &records, parse), "{name}: its header is no record");
    }
}

#[test]
fn options_of_other_formats_are_refused() {
    assert_refuses_other_options::<Public>("pointer-width", "8");
}

#[test]
fn a_record_that_the_layout_cannot_store_is_refused_by_field() {
    let event = |time, data| Record::Metadata(Metadata { body: Body::CustomEvent { time, data }, reserved: &[] });
    let mut writer = Writer::new(Vec::new());
    for (record, field) in [
        (Record::Function(Function { kind: FunctionKind::Enter, id: 1 << 28, delta: 0 }), "id"),
        (event(CustomTime::Absolute { tsc: 1 }, b"x"), "time"),
        (event(CustomTime::Delta { delta: 1 }, b""), "data"),
        (Record::Metadata(Metadata { body: Body::EndOfBuffer, reserved: &[] }), "kind"),
        (Record::Entry(YamlEntry::default()), "kind"),
    ] {
        let error = writer.write(&record).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains(&format!("record 0: {field}:")), "{error}");
    }
    assert_eq!(writer.finish().unwrap().len(), 32, "nothing of a refused record is written");
}

#[test]
fn a_written_yaml_trace_has_a_header_and_an_end() {
    let header = YamlHeader { version: 3, cycle_frequency: 5, ..YamlHeader::default() };
    let layout = Layout { form: LayoutForm::Yaml(header), ..Layout::default() };
    let empty = Writer::with_layout(Vec::new(), &layout).finish().unwrap();
    assert!(empty.ends_with(b"records:         []\n...\n"));
    let mut writer = Writer::with_layout(Vec::new(), &layout);
    let entry = YamlEntry { data: b"a, b\xff".to_vec(), thread: 7, ..YamlEntry::default() };
    writer.write(&Record::Entry(entry.clone())).unwrap();
    let bytes = writer.finish().unwrap();
    let mut reader = Reader::new(in_memory(&bytes), &OpenOptions::default()).unwrap();
    assert_eq!(reader.layout().form, layout.form);
    assert!(matches!(reader.next().unwrap(), Some(Step::Record(_, Record::Entry(again))) if again == entry));
    assert!(reader.next().unwrap().is_none());
}

#[test]
fn a_version_1_buffer_is_filled_to_the_size_in_the_header() {
    let header = Header { version: 1, type_code: 1, buffer_size: 256, ..Header::default() };
    let layout = Layout { form: LayoutForm::Fdr(header), ..Layout::default() };
    let mut writer = Writer::with_layout(Vec::new(), &layout);
    for _ in 0..2 {
        for body in [Body::NewBuffer { thread: 1 }, Body::WallTime { seconds: 0, micros: 0 }, Body::EndOfBuffer] {
            writer.write(&Record::Metadata(Metadata { body, reserved: &[] })).unwrap();
        }
    }
    let bytes = writer.finish().unwrap();
    assert_eq!(bytes.len(), 32 + 2 * 256);
    let read = read::<Public>(in_memory(&bytes), &OpenOptions::default());
    assert_eq!((read.records().len(), read.damage().len()), (6, 0));
}
