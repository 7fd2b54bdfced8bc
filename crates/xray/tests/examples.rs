//! The examples, run on samples of the corpus.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anytrace_core::testing::{examine, run_example};
use anytrace_xray::Xray;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

/// The output of an example on a sample.
fn run(example: &str, name: &str, arguments: &[&str]) -> (Vec<u8>, String) {
    let path = sample(name);
    let given = std::iter::once(path.as_os_str()).chain(arguments.iter().map(OsStr::new));
    run_example(&format!("xray-{example}"), &given.collect::<Vec<_>>())
}

fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_owned).collect()
}

#[test]
fn records_prints_every_record_with_its_place() {
    for name in ["v5.xray", "v1.xray", "basic-v3.xray", "args.yaml"] {
        let records = examine(&Xray, &std::fs::read(sample(name)).unwrap()).info.0.records;
        let (text, problems) = run("records", name, &[]);
        assert_eq!((lines(&text).len() as u64, problems.as_str()), (records, ""), "{name}");
    }
    let (text, _) = run("records", "v5.xray", &[]);
    assert!(lines(&text)[0].starts_with("0x20 0: Metadata(Metadata { body: BufferExtents"), "{:?}", lines(&text)[0]);
}

#[test]
fn filter_keeps_the_records_of_one_thread_and_no_damage() {
    for name in ["fib12-thr5.xray", "v1.xray", "basic-v3.xray", "args.yaml"] {
        let whole = examine(&Xray, &std::fs::read(sample(name)).unwrap());
        let jsonl = String::from_utf8(whole.jsonl).unwrap();
        let first = jsonl.lines().find_map(|line| line.split_once("\"thread\":")?.1.split([',', '}']).next());
        let thread = first.unwrap();
        let (part, _) = run("filter", name, &[thread]);
        let exam = examine(&Xray, &part);
        assert!(exam.errors().is_empty(), "{name}: {:?}", exam.errors());
        assert!(exam.info.0.records > 0 && exam.info.0.records <= whole.info.0.records, "{name}");
        let threads = String::from_utf8(exam.jsonl).unwrap();
        let named = threads.lines().filter_map(|line| line.split_once("\"thread\":")?.1.split([',', '}']).next());
        assert!(named.into_iter().all(|named| named == thread), "{name}");
    }
}

#[cfg(feature = "lanes")]
#[test]
fn spans_prints_name_begin_and_duration_of_each_call() {
    let (text, _) = run("spans", "v5.xray", &[]);
    let lines = lines(&text);
    assert!(lines[0].starts_with("# Ticks"), "{}", lines[0]);
    assert!(lines.len() > 3);
    for line in &lines[1..] {
        let words: Vec<&str> = line.rsplitn(3, ' ').collect();
        assert!(words.len() == 3 && words[..2].iter().all(|word| word.parse::<u64>().is_ok()), "{line}");
    }
}

#[cfg(feature = "lanes")]
#[test]
fn calls_prints_a_tree_with_as_many_calls_as_spans_has() {
    for name in ["v5.xray", "args.yaml"] {
        let (spans, calls) = (run("spans", name, &[]).0, run("calls", name, &[]).0);
        assert_eq!(lines(&calls).len(), lines(&spans).len() - 1, "{name}");
    }
    let (text, _) = run("calls", "v5.xray", &[]);
    assert!(lines(&text)[0].starts_with("0 function "), "{}", lines(&text)[0]);
    assert!(lines(&text).iter().any(|line| line.contains("   function ")), "nested calls are indented");
}
