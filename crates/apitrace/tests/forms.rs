//! Conversions between all containers and versions, in both directions.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{examine, rewrite, through_jsonl};
use anytrace_core::{
    Error, Format, ImportOptions, Input, Kind, Limits, MemoryTarget, OpenOptions, Plan, Settings, TargetOptions,
};
use build::{Build, enum_known, enum_new, rich, text, uint};

const CONTAINERS: [&str; 6] = ["snappy", "gzip", "brotli", "zstd", "zstd-seekable", "raw"];

fn convert(bytes: &[u8], target: TargetOptions) -> Result<Vec<u8>, Error> {
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).map(|(bytes, _, _)| bytes)
}

fn into(container: &str) -> TargetOptions {
    TargetOptions { own: Settings::default().with("container", container), ..TargetOptions::default() }
}

fn version(version: u32) -> TargetOptions {
    TargetOptions {
        version: Some(version),
        own: Settings::default().with("container", "raw"),
        ..TargetOptions::default()
    }
}

#[test]
fn the_raw_stream_survives_every_pair_of_containers() {
    let raw = [rich().bytes, include_bytes!("../corpus/uncompressed.trace").to_vec()];
    for raw in raw {
        for first in CONTAINERS {
            let once = convert(&raw, into(first)).unwrap();
            let info = examine(&Apitrace, &once).info.0;
            assert_eq!(info.container.as_deref(), Some(first));
            assert_eq!(convert(&once, into("raw")).unwrap(), raw, "{first}");
            // By default, the container is kept.
            let same = convert(&once, TargetOptions::default()).unwrap();
            assert_eq!(examine(&Apitrace, &same).info.0.container.as_deref(), Some(first));
            for second in CONTAINERS {
                let twice = convert(&once, into(second)).unwrap();
                assert_eq!(convert(&twice, into("raw")).unwrap(), raw, "{first} to {second}");
            }
        }
    }
}

#[test]
fn levels_and_containers_are_checked() {
    let raw = rich().bytes;
    for (container, level, is_good) in [
        ("gzip", 9, true),
        ("gzip", 10, false),
        ("brotli", 11, true),
        ("zstd", 0, false),
        ("zstd", 19, true),
        ("snappy", 1, false),
        ("raw", 1, false),
    ] {
        let result = convert(
            &raw,
            TargetOptions {
                own: Settings::default().with("container", container).with("level", i64::from(level)),
                ..TargetOptions::default()
            },
        );
        assert_eq!(result.is_ok(), is_good, "{container} {level}");
        assert!(result.err().is_none_or(|e| e.kind() == Kind::Usage));
    }
    assert_eq!(convert(&raw, into("rar")).unwrap_err().kind(), Kind::Usage);
    let to = TargetOptions { to: Some("yaml".into()), ..TargetOptions::default() };
    assert_eq!(convert(&raw, to).unwrap_err().kind(), Kind::Usage);
    assert_eq!(convert(&raw, version(7)).unwrap_err().kind(), Kind::Usage);
}

#[test]
fn snappy_chunks_hold_a_mebibyte_each() {
    let mut b = Build::version(6);
    b.enter_new(0, 0, "f", &["x"]).end().leave(0).end().calls(0, 1, 200_000);
    let bytes = convert(&b.bytes, into("snappy")).unwrap();
    let mut at = 2;
    let mut sizes = Vec::new();
    while at < bytes.len() {
        let length = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        sizes.push(snap::raw::decompress_len(&bytes[at + 4..at + 4 + length]).unwrap());
        at += 4 + length;
    }
    assert!(sizes.len() > 2 && sizes[..sizes.len() - 1].iter().all(|size| *size == 1 << 20), "{sizes:?}");
}

#[test]
fn a_version_up_and_down_again_gives_the_same_bytes() {
    // What every version can express: thread 0, no properties, an enumeration of one value.
    let mut b = Build::version(2);
    b.add(&[0, 4])
        .add(&text("glEnable"))
        .add(&[1])
        .add(&text("cap"))
        .argument(0, &[9, 7, 6, b'G', b'L', b'_', b'C', b'A', b'P', 4, 11])
        .end();
    b.leave(0).end();
    b.add(&[0, 4]).argument(0, &[9, 7]).end().leave(1).add(&[2]).add(&uint(3)).end();
    for to in 0..=6 {
        let other = convert(&b.bytes, version(to)).unwrap();
        let info = examine(&Apitrace, &other).info.0;
        assert_eq!((info.format_version.as_deref(), info.records), (Some(to.to_string().as_str()), 4));
        let names = String::from_utf8(examine(&Apitrace, &other).text).unwrap();
        assert_eq!(names.matches("glEnable(cap = GL_CAP)").count(), 2, "version {to}: {names}");
        assert_eq!(convert(&other, version(2)).unwrap(), b.bytes, "through version {to}");
    }
}

#[test]
fn old_enumerations_get_an_id_for_each_value() {
    let mut b = Build::version(4);
    b.enter_new(0, 0, "f", &["e"]).argument(0, &enum_new(3, &[("ZERO", 0), ("ONE", 1)], 1)).end().leave(0).end();
    for (call, value) in [(1, 0), (2, 1), (3, 0)] {
        b.enter(0, 0).argument(0, &enum_known(3, value)).end().leave(call).end();
    }
    let old = convert(&b.bytes, version(2)).unwrap();
    let text = String::from_utf8(examine(&Apitrace, &old).text).unwrap();
    let shown: Vec<_> =
        text.lines().filter_map(|l| l.split_once("e = ").map(|(_, v)| v.trim_end_matches(')'))).collect();
    assert_eq!(shown, ["ONE", "ZERO", "ONE", "ZERO"]);
    assert!(examine(&Apitrace, &old).errors().is_empty());
}

#[test]
fn what_a_version_cannot_hold_is_refused_by_event_and_name() {
    let refused = |b: &Build, to: u32, what: &str| {
        let error = convert(&b.bytes, version(to)).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains(what) && error.to_string().contains(&format!("version {to}")), "{error}");
    };
    let mut properties = Build::default();
    properties.add(&[6, 6]).add(&text("process.name")).add(&text("x")).end();
    refused(&properties, 5, "properties");
    let begin = |v: u64| {
        let mut b = Build::version(v);
        b.enter_new(0, 0, "f", &["x"]).end().leave(0).end();
        b
    };
    let mut flags = begin(6);
    flags.enter(0, 0).add(&[5, 1]).end().leave(1).end();
    refused(&flags, 5, "event 2 (call 1) has call flags");
    let mut wide = begin(6);
    wide.enter(0, 0).argument(0, &[15, 1, 65]).end().leave(1).end();
    refused(&wide, 5, "wide string");
    let mut backtrace = begin(5);
    backtrace.enter(0, 0).add(&[4, 1, 0, 1, 1, b'm', 0]).end().leave(1).end();
    refused(&backtrace, 4, "backtrace");
    let mut thread = begin(4);
    thread.enter(3, 0).end().leave(1).end();
    refused(&thread, 3, "thread number 3");
    let mut nameless = begin(4);
    nameless.enter(0, 0).argument(0, &enum_new(1, &[("A", 1)], 2)).end().leave(1).end();
    refused(&nameless, 2, "enumeration value 2");
    assert!(convert(&nameless.bytes, version(3)).is_ok());
}

#[test]
fn a_thread_detail_becomes_a_thread_number() {
    let mut b = Build::version(3);
    b.add(&[0, 0]).add(&text("f")).add(&[0]).add(&[3, 0x85, 1]).end().leave(0).end();
    let up = convert(&b.bytes, version(5)).unwrap();
    let mut expected = Build::version(5);
    expected.enter_new(133, 0, "f", &[]).end().leave(0).end();
    assert_eq!(up, expected.bytes);
    // By default, nothing is changed.
    assert_eq!(convert(&b.bytes, TargetOptions::default()).unwrap(), b.bytes);
}

#[test]
fn the_semantic_version_is_kept_where_the_version_has_one() {
    let mut old = Build::version(5);
    old.enter_new(9, 0, "f", &["x"]).add(&[4, 1, 0, 1, 1, b'm', 0]).argument(0, &uint(1)).end().leave(0).end();
    let new = convert(&old.bytes, version(6)).unwrap();
    assert_eq!(new[..3], [6, 5, 0]);
    assert_eq!(convert(&new, version(5)).unwrap(), old.bytes);
}

#[test]
fn json_lines_give_the_same_raw_stream_for_all_samples() {
    let samples: [&[u8]; 8] = [
        include_bytes!("../corpus/allvals_v0.trace"),
        include_bytes!("../corpus/allvals_v3.trace"),
        include_bytes!("../corpus/allvals_v6.trace"),
        include_bytes!("../corpus/container_brotli.trace"),
        include_bytes!("../corpus/bad/deep-nesting--levels-of-1000.trace"),
        include_bytes!("../corpus/bad/long-number--of-12-bytes.trace"),
        include_bytes!("../corpus/upstream_zlib-no-eof.trace"),
        include_bytes!("../corpus/empty_snappy_header_only.trace"),
    ];
    for bytes in samples {
        let back = through_jsonl(&Apitrace, &OpenOptions::default(), bytes).unwrap();
        assert_eq!(convert(&back, into("raw")).unwrap(), convert(bytes, into("raw")).unwrap());
        let container = |bytes: &[u8]| examine(&Apitrace, bytes).info.0.container;
        assert_eq!(container(&back), container(bytes));
    }
}

#[test]
fn overlong_numbers_survive_json_lines_everywhere() {
    let mut b = Build::version(6);
    b.add(&[0, 0x80, 0, 0x80, 0, 0x81, 0, b'f', 0x81, 0, 1, b'x', 1, 0x80, 0, 4, 0x85, 0, 0, 1, 0x80, 0, 0]);
    b.add(&[0, 0x81, 0, 0, 0, 1, 1, 0, 0, 0, 0x80, 0, 0, 1, 0x82, 0, 5, 0x81, 0, 0]);
    let back = through_jsonl(&Apitrace, &OpenOptions::default(), &b.bytes).unwrap();
    assert_eq!(back, b.bytes);
    assert_eq!(examine(&Apitrace, &b.bytes).info.0.records, 6);
}

#[test]
fn convert_to_jsonl_is_the_dump() {
    let bytes = rich().bytes;
    let target = TargetOptions { to: Some("jsonl".into()), ..TargetOptions::default() };
    let mut dump = Vec::new();
    let options = anytrace_core::DumpOptions { form: anytrace_core::DumpForm::Jsonl, ..Default::default() };
    let trace = Apitrace.open(Input::from_bytes("x", bytes.clone()), &OpenOptions::default()).unwrap();
    trace.dump(&options, &mut dump, &mut anytrace_core::Collect::default()).unwrap();
    assert_eq!(convert(&bytes, target).unwrap(), dump);
    for line in dump.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        serde_json::from_slice::<serde_json::Value>(line).unwrap();
    }
}

#[test]
fn wrong_json_lines_are_refused_with_line_and_field() {
    let head = r#"{"anytrace":"jsonl","version":1,"format":"apitrace","format_version":6,"semantic_version":6,"properties":[],"container":"raw"}"#;
    for (line, field) in [
        (r#"{"kind":"enter","thread":0,"function":0,"details":[]}"#, "details"),
        (r#"{"kind":"enter","thread":-1,"function":0,"name":"f","arguments":[],"details":[]}"#, "thread"),
        (r#"{"kind":"jump"}"#, "kind"),
        (r#"{"kind":"leave","call":0,"details":[{"argument":0,"value":{"x":1}}]}"#, "details"),
        (r#"{"kind":"leave","call":0,"details":[{"return":{"struct":1,"members":[]}}]}"#, "details"),
        (r#"{"kind":"leave","call":0,"details":[],"raw":"0100"}"#, "details"),
        (r#"{"kind":"leave","call":0,"details":[],"damaged":true}"#, "damaged"),
    ] {
        let input = Input::from_bytes("x", format!("{head}\n{line}\n").into_bytes());
        let import = ImportOptions { target: &TargetOptions::default(), limits: Limits::default() };
        let result =
            Apitrace.import(input, &import, &mut MemoryTarget::default(), &mut anytrace_core::Collect::default());
        let error = result.unwrap_err();
        let diagnostic = error.diagnostic().unwrap_or_else(|| panic!("{line}: {error}"));
        assert_eq!((diagnostic.field.as_deref(), diagnostic.line.map(|l| l.0)), (Some(field), Some(2)), "{line}");
    }
}

#[test]
fn json_lines_say_that_a_small_zstd_file_is_seekable() {
    let sample = include_bytes!("../corpus/container_zstdseek.trace");
    let jsonl = String::from_utf8(examine(&Apitrace, sample).jsonl).unwrap();
    assert!(jsonl.lines().next().unwrap().contains("\"container\":\"zstd-seekable\""), "{:?}", jsonl.lines().next());
}
