//! A short, deterministic substitute for the fuzz targets: every small sample of every format, changed in seeded ways,
//! must be read to its end without a panic, its repair must pass `check`, input that reads without error must come back
//! unchanged, and recognizing it must choose at most one format.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};

use anytrace_core::{Confidence, Format, Input, testing};
use anytrace_formats::{Recognized, all, recognize};

/// Changed copies of each sample.
const ROUNDS: usize = 12;

/// Larger samples are left to the formats' own tests.
const SAMPLE_BYTES_MAX: u64 = 16 * 1024;

fn samples(format: &dyn Format) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(format.name()).join("corpus");
    let mut found = Vec::new();
    collect(&folder, &mut found);
    found.sort();
    assert!(found.len() >= 3, "{} has {} samples", folder.display(), found.len());
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if entry.metadata().unwrap().len() <= SAMPLE_BYTES_MAX {
            found.push(path);
        }
    }
}

fn mutate(name: &str) {
    let format = anytrace_formats::by_name(name).unwrap();
    mutate_as(format);
}

fn mutate_as(format: &dyn Format) {
    for (number, path) in samples(format).iter().enumerate() {
        let bytes = std::fs::read(path).unwrap();
        // `convert` removes compression: its output for these samples is another file.
        let is_compressed = path.extension().is_some_and(|extension| extension == "gz");
        let visit = |changed: &[u8]| {
            testing::fuzz_parse(format, changed);
            if !is_compressed {
                testing::fuzz_roundtrip(format, changed, &|a, b| is_unchanged(format, a, b));
            }
            if let Recognized::Trace(found) = recognize(&Input::from_bytes("changed", changed.to_vec()).head()) {
                testing::examine(found, changed);
            }
        };
        visit(&bytes);
        testing::mutations(&bytes, 0x5eed + number as u64, ROUNDS, visit);
    }
}

/// apitrace may cut its container elsewhere, casemate drop white space on the way through JSON.
fn is_unchanged(format: &dyn Format, a: &[u8], b: &[u8]) -> bool {
    match format.name() {
        "apitrace" | "casemate" => testing::same_records(format, a, b),
        _ => testing::same_bytes_or_text_records(format, a, b),
    }
}

#[test]
fn changed_apitrace_samples_are_read_and_repaired() {
    mutate("apitrace");
}

#[test]
fn changed_cacheray_samples_are_read_and_repaired() {
    mutate("cacheray");
}

#[test]
fn changed_casemate_samples_are_read_and_repaired() {
    // What repair promises is a well-written trace, not a program without fault.
    mutate_as(&anytrace_casemate::GrammarOnly);
}

#[test]
fn changed_heph_samples_are_read_and_repaired() {
    mutate("heph");
}

#[test]
fn changed_lackey_samples_are_read_and_repaired() {
    mutate("lackey");
}

#[test]
fn changed_xray_samples_are_read_and_repaired() {
    mutate("xray");
}

#[test]
fn changed_chrome_samples_are_read_and_repaired() {
    mutate("chrome");
}

#[test]
fn changed_perfetto_samples_are_read_and_repaired() {
    mutate("perfetto");
}

#[test]
fn changed_perf_samples_are_read_and_repaired() {
    mutate("perf");
}

#[test]
fn changed_ctf_samples_are_read_and_repaired() {
    mutate("ctf");
}

#[test]
fn changed_fuchsia_samples_are_read_and_repaired() {
    mutate("fuchsia");
}

#[test]
fn random_bytes_are_never_certain() {
    let mut state = 1_u64;
    for length in 0..2000 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        let input = Input::from_bytes("random", bytes);
        for format in all() {
            assert!(
                format.probe(&input.head()) < Confidence::Certain,
                "{} claims {length} random bytes",
                format.name()
            );
        }
    }
}

#[test]
fn an_empty_input_is_empty_and_plain_text_is_unknown() {
    assert!(matches!(recognize(&Input::from_bytes("x", Vec::new()).head()), Recognized::Empty));
    let text = b"It was a dark and stormy night; the rain fell in torrents.\n".repeat(40);
    let found = recognize(&Input::from_bytes("x.txt", text).head());
    assert!(matches!(found, Recognized::Unknown), "{found:?}");
}
