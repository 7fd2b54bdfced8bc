//! Behavior of trim, dump, convert, probe and import that the corpus does not cover.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::testing::{examine, rewrite, rewrite_with};
use anytrace_core::{
    Collect, Confidence, DumpForm, DumpOptions, Format, Head, ImportOptions, Input, Kind, Limits, MemoryTarget,
    OpenOptions, Plan, Selection, Settings, Strict, TargetOptions, TimeBound,
};
use anytrace_heph::Heph;
use common::{Bytes, dump};
use serde_json::Value;

/// Two streams, a late epoch, an unknown option.
fn trace() -> Bytes {
    Bytes::new()
        .event(1, 0, 0, 0, 10, "boot")
        .end()
        .epoch()
        .event(2, 0, 0, 5, 25, "poll")
        .end()
        .metadata("host", b"box")
        .event(1, 1, 0, 30, 30, "tick")
        .end()
        .event(1, 2, 0, 31, 40, "poll")
        .end()
}

fn trim(selection: Selection) -> Vec<String> {
    let source = trace().bytes;
    let (part, outcome, sink) = rewrite(&Heph, &source, &Plan::Trim(selection, TargetOptions::default())).unwrap();
    assert_eq!((sink.0.len(), outcome.records_read), (0, 6));
    let exam = examine(&Heph, &part);
    assert_eq!(exam.errors().len(), 0);
    assert_eq!(exam.info.0.records, outcome.records_written);
    let text = dump(&part, &OpenOptions::default(), DumpForm::Text, Selection::default());
    assert_eq!(text.lines().filter(|line| line.starts_with("metadata")).count(), 2, "metadata is always carried");
    text.lines()
        .filter(|line| line.starts_with("event"))
        .map(|line| line.split('"').nth(1).unwrap().to_owned())
        .collect()
}

#[test]
fn a_trim_keeps_what_every_condition_allows() {
    assert_eq!(trim(Selection::default()), ["boot", "poll", "tick", "poll"]);
    assert_eq!(trim(Selection { records: Some(2..5), ..Selection::default() }), ["poll", "tick"]);
    assert_eq!(trim(Selection { threads: vec![2], ..Selection::default() }), ["poll"]);
    let name = |wanted: &'static [u8]| -> Selection {
        Selection { name: Some(Box::new(move |name| name == wanted)), ..Selection::default() }
    };
    assert_eq!(trim(name(b"tick")), ["tick"]);
    assert_eq!(trim(Selection { threads: vec![1], ..name(b"poll") }), ["poll"]);
}

#[test]
fn an_event_is_in_a_time_range_when_it_overlaps_it() {
    let time = |from, to| trim(Selection { time: Some((from, to)), ..Selection::default() });
    let ns = TimeBound::Nanoseconds;
    assert_eq!(time(ns(10), ns(31)), ["poll", "tick"], "ends before, starts at the end");
    assert_eq!(time(ns(9), ns(10)), ["boot", "poll"]);
    assert_eq!(time(TimeBound::Native(30), TimeBound::Open), ["tick", "poll"]);
    assert_eq!(time(TimeBound::Open, ns(5)), ["boot"]);
    assert_eq!(time(ns(25), ns(30)), [""; 0], "a point at the end is outside");
}

#[test]
fn times_with_units_count_from_the_earliest_start() {
    // The earliest event is not the first, and the epoch is long before it.
    let source = Bytes::new()
        .epoch()
        .event(1, 0, 0, 1_000_020, 1_000_025, "inner")
        .end()
        .event(1, 1, 0, 1_000_000, 1_000_030, "outer")
        .end()
        .event(2, 0, 0, 1_000_028, 1_000_040, "late")
        .end()
        .bytes;
    let names = |from, to| {
        let selection = Selection { time: Some((from, to)), ..Selection::default() };
        let text = dump(&source, &OpenOptions::default(), DumpForm::Text, selection);
        text.lines().map(|line| line.split('"').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let (ns, own) = (TimeBound::Nanoseconds, TimeBound::Native);
    assert_eq!(names(ns(0), ns(20)), ["outer"]);
    assert_eq!(names(ns(0), ns(21)), ["inner", "outer"]);
    assert_eq!(names(ns(0), ns(28)), names(own(1_000_000), own(1_000_028)));
    assert_eq!(names(ns(30), TimeBound::Open), ["late"]);
    assert_eq!(names(TimeBound::Open, own(1_000_020)), names(TimeBound::Open, ns(20)));
    let time = Some((ns(0), ns(20)));
    let plan = Plan::Trim(Selection { time, ..Selection::default() }, TargetOptions::default());
    let (part, outcome, _) = rewrite(&Heph, &source, &plan).unwrap();
    assert_eq!((outcome.records_read, outcome.records_written), (4, 2), "the epoch and one event");
    assert!(dump(&part, &OpenOptions::default(), DumpForm::Text, Selection::default()).contains("outer"));
}

#[test]
fn a_trim_to_json_lines_reads_back_as_the_trim() {
    let selection = || Selection { threads: vec![1], ..Selection::default() };
    let target = TargetOptions { to: Some("jsonl".to_owned()), ..TargetOptions::default() };
    let (lines, _, _) = rewrite(&Heph, &trace().bytes, &Plan::Trim(selection(), target)).unwrap();
    let (part, _, _) = rewrite(&Heph, &trace().bytes, &Plan::Trim(selection(), TargetOptions::default())).unwrap();
    assert_eq!(import(&lines).unwrap(), part);
}

fn import(lines: &[u8]) -> Result<Vec<u8>, anytrace_core::Error> {
    let mut out = MemoryTarget::default();
    let target = TargetOptions::default();
    let options = ImportOptions { target: &target, limits: Limits::default() };
    Heph.import(Input::from_bytes("x.jsonl", lines.to_vec()), &options, &mut out, &mut Strict)?;
    Ok(out.0)
}

#[test]
fn convert_to_json_lines_equals_the_dump() {
    for (name, bytes) in common::samples() {
        let target = TargetOptions { to: Some("jsonl".to_owned()), ..TargetOptions::default() };
        let (lines, _, _) = rewrite(&Heph, &bytes, &Plan::Convert(target)).unwrap();
        let dumped = dump(&bytes, &OpenOptions::default(), DumpForm::Jsonl, Selection::default());
        assert_eq!(String::from_utf8(lines).unwrap(), dumped, "{name}");
    }
}

#[test]
fn the_corpus_own_json_lines_are_recognized_and_read() {
    for entry in std::fs::read_dir(common::own_corpus().join("valid")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "jsonl") {
            let lines = std::fs::read(&path).unwrap();
            let input = Input::from_bytes("x", lines.clone());
            assert!(Heph.recognizes_jsonl(&input.head()), "{}", path.display());
            assert_eq!(import(&lines).unwrap(), std::fs::read(path.with_extension("")).unwrap(), "{}", path.display());
        }
    }
}

#[test]
fn other_json_lines_are_not_recognized() {
    for text in
        ["", "{}", "[1]", "{\"anytrace\":\"jsonl\",\"format\":\"xray\"}", "{\"kind\":\"event\"}", "{\"kind\":7}", "{"]
    {
        let input = Input::from_bytes("x", text.as_bytes().to_vec());
        assert!(!Heph.recognizes_jsonl(&input.head()), "{text}");
    }
    let long = format!("{{\"kind\": \"event\", \"description\": \"{}\"}}\n", "x".repeat(70_000));
    assert!(Heph.recognizes_jsonl(&Input::from_bytes("x", long.into_bytes()).head()));
}

#[test]
fn a_wrong_field_is_named_with_its_line() {
    let event = |attributes: &str| {
        format!(
            "{{\"kind\":\"event\",\"stream\":1,\"counter\":0,\"substream\":0,\"start\":0,\"end\":0,\"description\":\"\",\
             \"attributes\":{attributes}}}\n"
        )
    };
    let field = |lines: &str| {
        let error = import(lines.as_bytes()).unwrap_err();
        let diagnostic = error.diagnostic().unwrap_or_else(|| panic!("{error}"));
        (diagnostic.line.unwrap().0, diagnostic.field.clone().unwrap().into_owned())
    };
    assert!(import(event("[]").as_bytes()).is_ok());
    assert_eq!(field(&format!("{}{}", event("[]"), event("[[\"a\",\"u64\",-1]]"))), (2, "attributes[0]".to_owned()));
    for wrong in [
        "[1]",
        "[[\"a\",\"u63\",1]]",
        "[[\"a\",\"str[]\",\"x\"]]",
        "[[\"a\",\"f64\",{\"bits\":\"00\"}]]",
        "[[1,\"u64\",1]]",
    ] {
        assert_eq!(field(&event(wrong)).1, "attributes[0]", "{wrong}");
    }
    assert_eq!(field("{\"kind\":\"metadata\",\"option\":\"epoch\"}").1, "value");
    assert_eq!(field("{\"kind\":\"metadata\",\"option\":\"host\",\"value\":1}").1, "value_hex");
    assert_eq!(field("{\"kind\":\"other\"}").1, "kind");
    assert_eq!(field(&event("[]").replace("\"stream\":1", "\"stream\":4294967296")).1, "stream");
    let long = event(&format!("[[\"{}\",\"u64\",1]]", "x".repeat(65_536)));
    assert_eq!(field(&long).1, "size");
}

#[test]
fn floats_without_bits_are_read_as_numbers() {
    let line = "{\"kind\":\"event\",\"stream\":1,\"counter\":0,\"substream\":0,\"start\":0,\"end\":0,\"description\":\"\",\
                \"attributes\":[[\"f\",\"f64\",0.5]]}";
    let expected = Bytes::new().event(1, 0, 0, 0, 0, "").attribute("f", 3).u64(0.5_f64.to_bits()).end().bytes;
    assert_eq!(import(line.as_bytes()).unwrap(), expected);
}

#[test]
fn unsupported_conditions_are_rejected_by_name() {
    let refused = |plan: Plan| rewrite(&Heph, &trace().bytes, &plan).err().unwrap();
    let target = TargetOptions { version: Some(2), ..TargetOptions::default() };
    assert_eq!(refused(Plan::Convert(target)).to_string(), "--version does not apply to heph traces");
    let target = TargetOptions { endian: Some(anytrace_core::Endian::Little), ..TargetOptions::default() };
    assert_eq!(refused(Plan::Repair(target)).kind(), Kind::Usage);
    let target = TargetOptions { to: Some("yaml".to_owned()), ..TargetOptions::default() };
    assert_eq!(refused(Plan::Convert(target)).kind(), Kind::Usage);
    let selection = Selection { own: Settings::default().with("frames", 0..1), ..Selection::default() };
    assert_eq!(refused(Plan::Trim(selection, TargetOptions::default())).kind(), Kind::Usage);
    let options = OpenOptions { own: Settings::default().with("pointer-width", "4"), ..OpenOptions::default() };
    assert_eq!(
        rewrite_with(&Heph, &options, &[], &Plan::Convert(TargetOptions::default())).err().unwrap().kind(),
        Kind::Usage
    );
}

#[test]
fn a_strict_sink_ends_the_reading() {
    let bytes = std::fs::read(common::own_corpus().join("broken/bad_magic_mid.heph")).unwrap();
    for verb in ["info", "check", "dump"] {
        let trace = Heph.open(Input::from_bytes("x", bytes.clone()), &OpenOptions::default()).unwrap();
        let error = match verb {
            "info" => trace.info(&mut Strict).err(),
            "check" => trace.check(&mut Strict).err(),
            _ => trace.dump(&DumpOptions::default(), &mut Vec::new(), &mut Strict).err(),
        };
        assert_eq!(error.unwrap().diagnostic().map(|d| d.offset), Some(139), "{verb}");
    }
}

#[test]
fn a_dump_without_positions_gives_equal_lines_for_equal_records() {
    let plain = trace();
    let shifted = Bytes::new().metadata("pad", b"...").raw(&plain.bytes);
    for form in [DumpForm::Text, DumpForm::Jsonl] {
        let lines = |bytes: &[u8]| {
            let options = DumpOptions { form, offsets: true, without_positions: true, ..DumpOptions::default() };
            let mut out = Vec::new();
            let trace = Heph.open(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
            trace.dump(&options, &mut out, &mut Collect::default()).unwrap();
            String::from_utf8(out).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(lines(&shifted.bytes)[1..], lines(&plain.bytes)[..]);
    }
}

#[test]
fn a_dump_prints_what_is_selected() {
    let lines = |selection| dump(&trace().bytes, &OpenOptions::default(), DumpForm::Text, selection).lines().count();
    assert_eq!(lines(Selection { records: Some(1..3), ..Selection::default() }), 2);
    assert_eq!(lines(Selection { threads: vec![1], ..Selection::default() }), 3);
    let part = dump(
        &trace().bytes,
        &OpenOptions::default(),
        DumpForm::Jsonl,
        Selection { records: Some(4..9), ..Selection::default() },
    );
    let offsets: Vec<_> =
        part.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["offset"].as_u64().unwrap()).collect();
    assert_eq!(offsets, [132, 178]);
}

#[test]
fn no_control_character_reaches_the_terminal() {
    for (name, bytes) in common::samples() {
        for form in [DumpForm::Text, DumpForm::Jsonl] {
            let text = dump(&bytes, &OpenOptions::default(), form, Selection::default());
            assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{name}");
            assert!(!text.contains(['\u{202e}', '\u{feff}', '\u{2028}']), "{name}");
        }
    }
}

fn probe(name: &str, bytes: &[u8]) -> Confidence {
    Heph.probe(&Head { bytes, total_bytes: Some(bytes.len() as u64), name, layers: &[] })
}

#[test]
fn a_probe_is_as_sure_as_the_content_allows() {
    for (name, bytes) in common::samples() {
        let sure = probe("x", &bytes);
        match name.as_str() {
            "broken/empty.heph" | "broken/not_heph.heph" => assert_eq!(sure, Confidence::No, "{name}"),
            _ if name.starts_with("broken") => assert!(sure >= Confidence::Likely, "{name}: {sure:?}"),
            _ => assert_eq!(sure, Confidence::Certain, "{name}"),
        }
    }
    assert_eq!(probe("x.heph", b"something else"), Confidence::Maybe);
    assert_eq!(probe("app.bin.log.gz", b""), Confidence::Maybe);
    let cut = trace().bytes;
    for length in 4..cut.len() {
        assert!(probe("x", &cut[..length]) >= Confidence::Likely, "{length}");
    }
}

#[test]
fn damaged_json_lines_are_refused_or_read_but_never_panic() {
    let lines = std::fs::read(common::own_corpus().join("valid/all_types.heph.jsonl")).unwrap();
    let mut refused = 0;
    anytrace_core::testing::mutations(&lines, 3, 3000, |mutated| match import(mutated) {
        Ok(bytes) => assert_eq!(examine(&Heph, &bytes).errors().len(), 0),
        Err(error) => {
            refused += 1;
            assert!(matches!(error.kind(), Kind::Malformed | Kind::Limit), "{error:?}");
        }
    });
    assert!(refused > 500, "{refused}");
}

#[test]
fn an_epoch_of_another_length_is_refused_in_json_lines() {
    let error = import(br#"{"kind":"metadata","option":"epoch","value_hex":"00"}"#).unwrap_err();
    assert_eq!(error.diagnostic().unwrap().field.as_deref(), Some("value_hex"));
}
