//! Every file of the shared corpus, against what is known about it.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod traces;

use std::path::Path;

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{Exam, assert_repairs, examine, rewrite, shared_corpus, through_jsonl};
use anytrace_core::{Collect, Format, Input, OpenOptions, Plan, Settings, Severity, TargetOptions};

/// The traces of a folder, `broken` or not.
fn files(is_broken: bool) -> Vec<(String, Vec<u8>)> {
    let Some(root) = shared_corpus("apitrace") else { return Vec::new() };
    traces::below(&root)
        .iter()
        .map(|path| (path.strip_prefix(&root).unwrap().display().to_string(), path))
        .filter(|(name, _)| name.starts_with("broken") == is_broken)
        .map(|(name, path)| (name, std::fs::read(path).unwrap()))
        .collect()
}

fn raw_of(name: &str, bytes: &[u8]) -> Vec<u8> {
    let target = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
    let (raw, _, _) = rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap_or_else(|e| panic!("{name}: {e}"));
    raw
}

fn errors(exam: &Exam) -> Vec<String> {
    exam.errors().iter().map(|d| format!("{} {:#x}", d.code(), d.offset)).collect()
}

#[test]
fn undamaged_traces_read_without_errors_and_are_written_back_unchanged() {
    for (name, bytes) in files(false) {
        let exam = examine(&Apitrace, &bytes);
        if name.contains("future_v7") {
            assert_eq!(exam.error_codes(), ["apitrace/unsupported-version"], "{name}");
            continue;
        }
        assert!(exam.errors().is_empty(), "{name}: {:?}", exam.errors());
        let info = &exam.info.0;
        assert_eq!(info.kinds.iter().map(|(_, n)| n).sum::<u64>(), info.records, "{name}");
        assert_eq!(info.threads.iter().map(|(_, n)| n).sum::<u64>(), info.records, "{name}");
        let raw = raw_of(&name, &bytes);
        let (copy, outcome, _) = rewrite(&Apitrace, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
        assert_eq!(raw_of(&name, &copy), raw, "{name}");
        assert!(outcome.notes.is_empty() && outcome.records_written == info.records, "{name}: {outcome:?}");
        let copied = examine(&Apitrace, &copy).info.0;
        assert_eq!((copied.container, copied.records), (info.container.clone(), info.records), "{name}");
        let back = through_jsonl(&Apitrace, &OpenOptions::default(), &bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(raw_of(&name, &back), raw, "{name} through JSON lines");
        let repaired = assert_repairs(&Apitrace, &bytes, &name);
        assert_eq!(raw_of(&name, &repaired), raw, "{name} repaired");
    }
}

/// What is wrong with each file of `broken`, and how many complete events it contains.
const BROKEN: &[(&str, u64, &[&str])] = &[
    ("argindex5", 2, &["apitrace/argument-index 0xb"]),
    ("bitmask_zero_notfirst", 2, &[]),
    ("calldetail9", 0, &["apitrace/unknown-detail 0x9"]),
    ("deepnest", 1, &[]),
    ("enum_floatvalue", 0, &["apitrace/enum-value-type 0x12"]),
    ("glxgears_cut60000", 2401, &["apitrace/container-truncated 0x2", "apitrace/truncated-event 0x2233d"]),
    ("gzip_flip", 128, &["apitrace/unknown-detail 0x532", "container/gzip-corrupt 0x637"]),
    ("gzip_trunc", 128, &["apitrace/truncated-event 0x42a"]),
    ("hugearray", 0, &["apitrace/truncated-event 0x3"]),
    ("hugeid", 1, &[]),
    ("hugestring", 0, &["apitrace/truncated-event 0x3"]),
    ("raw_event2", 228, &["apitrace/unknown-event 0xdb5"]),
    ("rawtrunc_1", 0, &["apitrace/header-truncated 0x0"]),
    ("rawtrunc_1169", 128, &["apitrace/truncated-event 0x42a"]),
    ("rawtrunc_1754", 130, &["apitrace/truncated-event 0x536"]),
    ("rawtrunc_2", 0, &["apitrace/header-truncated 0x0"]),
    ("rawtrunc_3", 0, &["apitrace/header-truncated 0x0"]),
    ("rawtrunc_30", 0, &["apitrace/header-truncated 0x0"]),
    ("rawtrunc_3508", 227, &["apitrace/truncated-event 0xdb2"]),
    ("semantic9", 0, &["apitrace/semantic-version 0x1"]),
    (
        "snappy_flip",
        227,
        &["apitrace/truncated-event 0x536", "apitrace/lost-signature 0xcf3", "apitrace/lost-signature 0xcf7"],
    ),
    ("snappy_hugelen", 228, &["apitrace/chunk-length 0x2"]),
    ("trunc_1", 0, &["apitrace/container-truncated 0x0"]),
    ("trunc_1014", 130, &["apitrace/container-truncated 0x2", "apitrace/truncated-event 0x536"]),
    ("trunc_2", 0, &[]),
    ("trunc_20", 0, &["apitrace/container-truncated 0x2", "apitrace/header-truncated 0x0"]),
    ("trunc_2028", 227, &["apitrace/container-truncated 0x2", "apitrace/truncated-event 0xdb2"]),
    ("trunc_3", 0, &["apitrace/container-truncated 0x2"]),
    ("trunc_5", 0, &["apitrace/container-truncated 0x2"]),
    ("trunc_507", 89, &["apitrace/container-truncated 0x2", "apitrace/truncated-event 0x2e4"]),
    ("trunc_6", 0, &["apitrace/container-truncated 0x2"]),
    ("type42", 0, &["apitrace/unknown-type 0xd"]),
    ("v3_thread_detail", 2, &[]),
    ("varint12", 2, &[]),
];

#[test]
fn every_broken_trace_gives_its_damage_its_place_and_its_good_events() {
    for (name, bytes) in files(true) {
        let stem = Path::new(&name).file_stem().unwrap().to_str().unwrap().to_owned();
        let known = BROKEN.iter().find(|(known, ..)| *known == stem);
        let (_, events, damage) = known.unwrap_or_else(|| panic!("{name} is not in the table"));
        let exam = examine(&Apitrace, &bytes);
        assert_eq!(
            (errors(&exam), exam.info.0.records),
            (damage.iter().map(|d| (*d).to_owned()).collect(), *events),
            "{name}"
        );
        let from_info: Vec<_> =
            exam.info.1.iter().filter(|d| d.severity == Severity::Error).map(|d| d.code()).collect();
        let expected: Vec<_> = exam.error_codes().into_iter().filter(|c| *c != "apitrace/argument-index").collect();
        assert_eq!(from_info, expected, "{name}: info and check disagree");
        let repaired = assert_repairs(&Apitrace, &bytes, &name);
        let kept = examine(&Apitrace, &repaired).info.0.records;
        let expected = if stem == "snappy_flip" { 210..=227 } else { *events..=*events };
        assert!(expected.contains(&kept), "{name}: repair kept {kept}");
    }
}

#[test]
fn the_two_container_twins_hold_the_same_events() {
    let files = files(false);
    let text = |part: &str| {
        let (name, bytes) = files.iter().find(|(name, _)| name.contains(part)).unwrap();
        (raw_of(name, bytes), examine(&Apitrace, bytes).text)
    };
    if files.is_empty() {
        return;
    }
    assert_eq!(text("rnd107_v6_zstdseek"), text("rnd107_v6_same_as"));
    for part in [
        "container_brotli",
        "container_gzip",
        "container_snappy64",
        "container_zstd.",
        "container_zstdseek",
        "uncompressed",
    ] {
        assert_eq!(text(part), text("handmade/allvals_v6.trace"), "{part}");
    }
}

#[test]
fn every_trace_is_recognized_and_opens_in_two_threads_as_in_one() {
    for (name, bytes) in files(false).into_iter().chain(files(true)) {
        let probe = |bytes: &[u8]| Apitrace.probe(&Input::from_bytes(&name, bytes.to_vec()).head());
        assert!(probe(&bytes) > anytrace_core::Confidence::No, "{name}");
        let info = |threads| {
            let options = OpenOptions { threads, ..OpenOptions::default() };
            let mut sink = Collect::default();
            let trace = Apitrace.open(Input::from_bytes(&name, bytes.clone()), &options).unwrap();
            (trace.info(&mut sink).unwrap(), sink.0)
        };
        assert_eq!(info(1), info(2), "{name}");
    }
}
