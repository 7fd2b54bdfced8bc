//! Miss-ratio curves of real traces, against the corpus' expectations and against themselves.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(missing_docs)]

use std::path::Path;

use anytrace_analysis::reuse::{Parts, Reuse, ReuseOptions, ReuseResults, Sample};
use anytrace_cacheray::Cacheray;
use anytrace_core::testing::{dripping, shared_corpus};
use anytrace_core::{Collect, Format, Input, InputOptions, OpenOptions};
use serde_json::{Map, Value, json};

fn found(input: Input, options: ReuseOptions) -> ReuseResults {
    let trace = Cacheray.open(input, &OpenOptions::default()).unwrap();
    let mut reuse = Reuse::new(options);
    let summary = trace.accesses(&mut reuse, &mut Collect::default()).unwrap();
    reuse.finish(summary.records)
}

fn of_file(path: &Path, options: ReuseOptions) -> ReuseResults {
    found(Input::open(path, InputOptions::default()).unwrap(), options)
}

/// The object of the corpus' expectations.
fn reuse64(found: &ReuseResults) -> Value {
    let curve = &found.curve;
    let histogram: Map<_, _> = curve.distances.iter().map(|(d, n)| (d.to_string(), (*n).into())).collect();
    let misses: Map<_, _> = curve.sizes().iter().map(|c| (c.to_string(), curve.misses(*c).into())).collect();
    json!({
        "line": found.line_bytes,
        "line_accesses": curve.line_accesses,
        "cold": curve.cold,
        "histogram": histogram,
        "lru_misses_fully_assoc": misses,
    })
}

/// The crate's own samples with expectations: file, object.
fn own() -> Vec<(std::path::PathBuf, Value)> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let expected: Map<String, Value> =
        serde_json::from_slice(&std::fs::read(corpus.join("curves/expected.json")).unwrap()).unwrap();
    let path = |name: &str| {
        let plain = corpus.join(format!("traces/{name}.trace"));
        if plain.exists() { plain } else { corpus.join(format!("curves/{name}.trace.gz")) }
    };
    expected.into_iter().map(|(name, object)| (path(&name), object["reuse64"].clone())).collect()
}

fn traces() -> Vec<std::path::PathBuf> {
    let Some(corpus) = shared_corpus("cacheray") else { return Vec::new() };
    let files = std::fs::read_dir(corpus.join("traces")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|e| e == "trace")).collect();
    files.sort();
    files
}

#[test]
fn curves_of_the_samples_are_those_expected() {
    let own = own();
    assert!(own.len() >= 8);
    for (path, expected) in own {
        let found = of_file(&path, ReuseOptions::default());
        assert_eq!(reuse64(&found), expected, "{}", path.display());
    }
}

#[test]
fn damaged_and_odd_traces_give_curves_of_their_readable_records() {
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/broken");
    for entry in std::fs::read_dir(broken).unwrap() {
        let path = entry.unwrap().path();
        let is_trace = path.extension().is_some_and(|extension| extension == "trace");
        if !is_trace || std::fs::metadata(&path).unwrap().len() == 0 {
            continue;
        }
        for parts in [Parts::None, Parts::Thread, Parts::PrivateThread, Parts::Type] {
            for sample in [None, Some(Sample::Rate(0.01)), Some(Sample::Lines(3))] {
                for line_bytes in [2, 64, 1 << 40] {
                    let found = of_file(&path, ReuseOptions { line_bytes, parts, sample, ..ReuseOptions::default() });
                    let curve = &found.curve;
                    assert!(curve.misses(0) == curve.line_accesses, "{}: {found:?}", path.display());
                }
            }
        }
    }
}

#[test]
fn curves_of_the_corpus_are_those_expected() {
    let mut compared = 0;
    for path in traces() {
        let name = path.file_name().unwrap().to_str().unwrap().replace(".be.trace", ".trace");
        let expected = path.parent().unwrap().with_file_name("expected").join(name.replace(".trace", ".sim.json"));
        let expected: Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let found = of_file(&path, ReuseOptions::default());
        assert_eq!(reuse64(&found), expected["reuse64"], "{}", path.display());
        compared += 1;
    }
    assert!(compared == 0 || compared > 15, "{compared}");
}

#[test]
fn a_sample_of_a_small_trace_is_as_good_as_all_of_it() {
    for path in traces().into_iter().chain(own().into_iter().map(|(path, _)| path)) {
        let exact = of_file(&path, ReuseOptions::default()).curve;
        for sample in [Sample::Rate(0.01), Sample::Lines(256)] {
            let found = of_file(&path, ReuseOptions { sample: Some(sample), ..ReuseOptions::default() }).curve;
            let sizes = exact.sizes();
            let errors = sizes.iter().map(|lines| (exact.ratio(*lines) - found.ratio(*lines)).abs());
            let error = errors.sum::<f64>() / sizes.len() as f64;
            assert!(error < 0.02, "{} {sample:?}: {error}", path.display());
        }
    }
}

#[test]
fn how_the_bytes_come_decides_nothing() {
    // Long enough that accesses are left out between bursts.
    let mut bytes = Vec::new();
    let mut state = 1_u64;
    for n in 0..400_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let address = 0x5555_5555_8000 + (state >> 40) % 30_000 * 64 + n % 70;
        bytes.push(u8::from(n % 3 == 0));
        bytes.extend(address.to_le_bytes());
        bytes.push(if n % 50_000 == 7 { 0 } else { 8 });
        bytes.extend((n / 1000 % 3).to_le_bytes());
    }
    for parts in [Parts::Thread, Parts::PrivateThread, Parts::Type] {
        for sample in [None, Some(Sample::Rate(0.01)), Some(Sample::Lines(100))] {
            let options = ReuseOptions { parts, sample, has_windows: true, ..ReuseOptions::default() };
            let expected = found(Input::from_bytes("a.trace", bytes.clone()), options.clone());
            for at_once in [4096, 100_001] {
                assert_eq!(
                    found(dripping("a.trace", &bytes, at_once), options.clone()),
                    expected,
                    "{parts:?} {sample:?}"
                );
            }
        }
    }
}
