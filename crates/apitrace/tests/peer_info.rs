//! `info`: the output of apitrace 11.1, and what it should be.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::info::{InfoOptions, info};
use anytrace_core::testing::{dripping, shared_corpus};
use anytrace_core::{Collect, Input, OpenOptions};
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn info_json(bytes: &[u8], input: Input, file: &str, is_compatible: bool) -> String {
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    let options = InfoOptions { has_frames: true, is_compatible };
    let mut found = info(&mut reader, options, &mut Collect::default()).unwrap();
    found.container_bytes = bytes.len() as u64;
    let mut out = Vec::new();
    found.write(file, is_compatible, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Compares with a file of apitrace's output.
fn compare(trace: &Path, expected: &Path) {
    let bytes = std::fs::read(trace).unwrap();
    let expected = std::fs::read_to_string(expected).unwrap();
    let name = trace.file_name().unwrap().to_str().unwrap();
    let input = Input::from_bytes("x.trace", bytes.clone());
    assert_eq!(info_json(&bytes, input, name, true), expected, "{}", trace.display());
    let dropwise = info_json(&bytes, dripping("x.trace", &bytes, 7), name, true);
    assert_eq!(dropwise, expected, "{} in small windows", trace.display());
    let right: Value =
        serde_json::from_str(&info_json(&bytes, Input::from_bytes("x", bytes.clone()), "a\"b", false)).unwrap();
    assert_eq!(right["FileName"], "a\"b");
    let theirs: Value = serde_json::from_str(&expected).unwrap();
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&right), keys(&theirs));
    assert_eq!(right["FramesCount"], right["Frames"].as_array().unwrap().len());
    if theirs["ContainerType"] != "ZLib" && theirs["FramesCount"] != 0 {
        assert_eq!(right["Frames"], theirs["Frames"]);
    }
}

#[test]
fn info_of_samples_is_that_of_apitrace() {
    let mut compared = 0;
    for entry in std::fs::read_dir(corpus().join("peer")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some(stem) = name.strip_suffix(".info.json") else { continue };
        compare(&corpus().join(format!("{stem}.trace")), &path);
        compared += 1;
    }
    assert!(compared >= 13, "{compared}");
}

#[test]
fn info_of_the_entire_corpus_is_that_of_apitrace() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let mut compared = 0;
    for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        // In damaged traces apitrace stops where we continue; files that are not traces cannot be read.
        if !folder.is_dir() || folder.ends_with("broken") {
            continue;
        }
        for path in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = path.file_name().unwrap().to_str().unwrap();
            let trace = match name.strip_suffix(".json").map(|stem| stem.strip_suffix(".info")) {
                Some(Some("empty_file")) => continue,
                Some(Some(sample)) => path.with_file_name(format!("{sample}.trace")),
                Some(None) if name == "info.json" => {
                    path.with_file_name(format!("{}.trace", folder.file_name().unwrap().to_str().unwrap()))
                }
                _ => continue,
            };
            // apitrace cannot read a trace without a container.
            if name.starts_with("uncompressed") || !trace.exists() {
                continue;
            }
            compare(&trace, &path);
            compared += 1;
        }
    }
    assert!(compared >= 50, "{compared}");
}

#[test]
fn gzip_counts_all_bytes_unless_it_is_to_be_as_apitrace_counts() {
    let bytes = std::fs::read(corpus().join("container_gzip.trace")).unwrap();
    let size = |is_compatible| {
        let text = info_json(&bytes, Input::from_bytes("x", bytes.clone()), "x", is_compatible);
        let value: Value = serde_json::from_str(&text).unwrap();
        (value["ActualDataSize"].as_u64().unwrap(), value["Frames"][0]["SizeInBytes"].as_u64().unwrap())
    };
    // The same trace in Snappy: allvals_v6.
    assert_eq!((size(false), size(true)), ((3509, 3435), (1897, 1848)));
}

#[test]
fn info_reads_any_cut_or_changed_trace() {
    for name in ["allvals_v6", "container_gzip", "interleave"] {
        let bytes = std::fs::read(corpus().join(format!("{name}.trace"))).unwrap();
        for at in (0..bytes.len()).step_by((bytes.len() / 200).max(1)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            for bytes in [&bytes[..at], &changed] {
                for is_compatible in [false, true] {
                    let text = info_json(bytes, Input::from_bytes("x", bytes.to_vec()), "x", is_compatible);
                    serde_json::from_str::<Value>(&text).unwrap();
                }
            }
        }
    }
}
