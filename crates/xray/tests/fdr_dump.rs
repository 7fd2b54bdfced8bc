//! `fdr-dump` against the peer's output, and on damaged traces.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use anytrace_core::testing::{dripping, mutations, shared_corpus, truncations};
use anytrace_core::{Collect, Input, Kind, OpenOptions};
use anytrace_xray::tools::fdr_dump::{FdrDumpOptions, fdr_dump};
use common::made::Made;
use common::sample;

/// The output, and the codes of the diagnostics.
fn dump_input(input: Input, verify: bool, escapes: bool) -> (Vec<u8>, Vec<&'static str>) {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    fdr_dump(input, &OpenOptions::default(), FdrDumpOptions { verify, escapes }, &mut out, &mut sink).unwrap();
    (out, sink.0.iter().map(|problem| problem.code()).collect())
}

fn dump(bytes: &[u8], verify: bool) -> (Vec<u8>, Vec<&'static str>) {
    dump_input(Input::from_bytes("x", bytes.to_vec()), verify, false)
}

fn assert_same(name: &str, found: &[u8], expected: &[u8]) {
    let (found, expected) = (String::from_utf8_lossy(found), String::from_utf8_lossy(expected));
    for (n, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{name}, line {}", n + 1);
    }
    assert!(found == expected, "{name}: {} bytes, and the peer's are {}", found.len(), expected.len());
}

#[test]
fn samples_are_printed_as_by_the_peer() {
    for name in ["args", "ring", "customs", "v5", "v5-event-payloads"] {
        for (verify, kind) in [(false, "dump"), (true, "verify")] {
            let expected = sample(&format!("peer/{name}.{kind}.txt"));
            assert_same(name, &dump(&sample(&format!("{name}.xray")), verify).0, &expected);
        }
    }
}

/// Where the peer is wrong: it parses version 1 filler and false introducers as records, and stops at damage.
const PEER_IS_WRONG: [&str; 7] = [
    "v1",
    "v1-rubbish-after-end",
    "v5-gap-fake-extent",
    "v5-extent-short",
    "events",
    "typed-tinybuf",
    "v5-trailing-zero",
];

#[test]
fn all_of_the_corpus_is_printed_as_by_the_peer() {
    let Some(corpus) = shared_corpus("xray") else { return };
    let mut compared = 0;
    for folder in ["real", "synth"] {
        for entry in std::fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_string_lossy().into_owned();
            let is_trace = path.extension().is_some_and(|e| e == "xray");
            if !is_trace || name.contains("basic") || PEER_IS_WRONG.contains(&name.as_str()) {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            for (verify, kind) in [(false, "dump.txt"), (true, "verify.txt")] {
                if let Some(expected) = peer(&path, kind) {
                    assert_same(&format!("{name} {kind}"), &dump(&bytes, verify).0, &expected);
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 60, "{compared}");
}

/// The peer's output, which may be compressed; none if it failed at the start.
fn peer(trace: &Path, kind: &str) -> Option<Vec<u8>> {
    let failed = trace.with_extension(format!("{kind}.err"));
    if failed.exists() {
        return None;
    }
    let path = trace.with_extension(kind);
    let found = if path.exists() { path } else { trace.with_extension(format!("{kind}.gz")) };
    let input = Input::open(&found, anytrace_core::InputOptions::default()).ok()?;
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut input.into_read(), &mut bytes).unwrap();
    Some(bytes)
}

#[test]
fn every_complete_record_of_a_typed_event_trace_is_printed() {
    let (text, codes) = dump(&sample("typed-tinybuf.xray"), false);
    let lines = text.split(|&b| b == b'\n').filter(|line| line.starts_with(b"<")).count();
    let records = anytrace_core::testing::examine(&anytrace_xray::Xray, &sample("typed-tinybuf.xray")).info.0.records;
    assert_eq!(lines as u64, records);
    assert!(codes.iter().all(|code| *code == "xray/record-cut-by-extents") && !codes.is_empty(), "{codes:?}");
}

#[test]
fn records_before_a_cut_read_as_they_do_without_it() {
    let complete = dump(&sample("v5.xray"), false).0;
    truncations(&sample("v5.xray"), 400, |at, cut| {
        let (mut out, mut sink) = (Vec::new(), Collect::default());
        let input = Input::from_bytes("x", cut.to_vec());
        if fdr_dump(input, &OpenOptions::default(), FdrDumpOptions::default(), &mut out, &mut sink).is_ok() {
            assert!(complete.starts_with(&out), "cut at {at}");
        }
    });
}

#[test]
fn damage_costs_no_panic_and_shows_no_record_twice() {
    mutations(&sample("v5.xray"), 11, 300, |bytes| {
        for verify in [false, true] {
            let (mut out, mut sink) = (Vec::new(), Collect::default());
            let input = Input::from_bytes("x", bytes.to_vec());
            let dump = FdrDumpOptions { verify, escapes: true };
            if let Ok(summary) = fdr_dump(input, &OpenOptions::default(), dump, &mut out, &mut sink) {
                let starts = [&b"<"[..], b"-  <", b"*  <", b" : <", b" <", b" ***", b"Metadata:"];
                let is_record = |line: &&[u8]| starts.iter().any(|start| line.starts_with(start));
                let lines = out.split(|&b| b == b'\n').filter(is_record).count() as u64;
                assert!(lines <= summary.records, "{lines} lines of {} records", summary.records);
            }
        }
    });
}

#[test]
fn a_dripping_input_gives_the_same_lines() {
    for name in ["v5.xray", "typed-tinybuf.xray", "v1.xray", "be-v5.xray"] {
        let bytes = sample(name);
        for at_once in [1, 7, 4096] {
            assert_eq!(dump_input(dripping("x", &bytes, at_once), false, false), dump(&bytes, false), "{name}");
        }
    }
}

#[test]
fn grouping_needs_the_complete_file() {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let dump = FdrDumpOptions { verify: true, escapes: false };
    let input = dripping("x", &sample("v5.xray"), 4096);
    let error = fdr_dump(input, &OpenOptions::default(), dump, &mut out, &mut sink).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
}

#[test]
fn other_forms_are_refused_by_name() {
    for (name, what) in [("basic-v3.xray", "Basic trace of version 3"), ("args.yaml", "a YAML trace")] {
        let (mut out, mut sink) = (Vec::new(), Collect::default());
        let input = Input::from_bytes("x", sample(name));
        let error =
            fdr_dump(input, &OpenOptions::default(), FdrDumpOptions::default(), &mut out, &mut sink).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported);
        assert!(error.to_string().contains(what) && out.is_empty(), "{error}");
    }
}

#[test]
fn payloads_can_be_escaped() {
    let bytes = sample("v5-event-payloads.xray");
    let raw = dump(&bytes, false).0;
    let escaped = dump_input(Input::from_bytes("x", bytes), false, true).0;
    assert!(raw.contains(&0x1b) && !escaped.contains(&0x1b) && std::str::from_utf8(&escaped).is_ok());
}

#[test]
fn version_1_filler_is_not_shown() {
    let text = String::from_utf8(dump(&sample("v1-rubbish-after-end.xray"), false).0).unwrap();
    assert!(text.contains("<End of Buffer>\n<Thread ID: ") || text.ends_with("<End of Buffer>\n"), "{text}");
}

#[test]
fn verify_reports_records_in_a_wrong_order() {
    let made = Made::header(5, 1, 16384).extents(72).thread(3).wall().pid(4).cpu(9).function(0, 1, 2);
    assert_eq!(dump(&made.bytes, true).1, [""; 0]);
    let made = Made::header(5, 1, 16384).extents(56).thread(3).wall().pid(4).function(0, 1, 2);
    let (text, codes) = dump(&made.bytes, true);
    assert_eq!(codes, ["xray/bad-transition"]);
    assert!(text.ends_with(b"<PID: 4>\n-  <Function Enter: #1 delta = +2>\n"), "{}", String::from_utf8_lossy(&text));
}

#[test]
fn a_wrong_type_or_version_in_front_of_buffers_hides_nothing() {
    let good = sample("v5.xray");
    for (at, value, code) in [(2, 9, "xray/unknown-type"), (0, 77, "xray/unknown-version")] {
        let mut bytes = good.clone();
        bytes[at] = value;
        let (text, codes) = dump(&bytes, false);
        assert_eq!((text, codes), (dump(&good, false).0, vec![code]));
    }
}
