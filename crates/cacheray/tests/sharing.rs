//! Lines that threads of real programs take from each other, against the corpus' expectations.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anytrace_analysis::sharing::{Pair, Sharing, SharingOptions, SharingResults};
use anytrace_cacheray::Cacheray;
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Format, Input, InputOptions, OpenOptions};
use serde_json::{Map, Value, json};

fn found(path: &Path) -> SharingResults {
    let input = Input::open(path, InputOptions::default()).unwrap();
    let trace = Cacheray.open(input, &OpenOptions::default()).unwrap();
    let mut sharing = Sharing::new(SharingOptions::default(), None);
    trace.accesses(&mut sharing, &mut Collect::default()).unwrap();
    sharing.finish()
}

/// The counts by name, and the lines by address, as the corpus has them.
fn mesi(found: &SharingResults) -> (Value, BTreeMap<String, Value>) {
    let s = &found.stats;
    let stats = json!({
        "read_hits": s.read_hits, "read_misses": s.read_misses, "write_hits": s.write_hits,
        "write_misses": s.write_misses, "cold_misses": s.coherence.cold_misses, "replacement_misses": s.coherence.replacement_misses,
        "coherence_misses": s.coherence.coherence_misses, "false_sharing_misses": s.coherence.false_sharing_misses,
        "true_sharing_misses": s.coherence.true_sharing_misses, "upgrades": s.coherence.upgrades, "invalidations": s.coherence.invalidations,
        "interventions": s.coherence.interventions, "writebacks": s.coherence.writebacks, "evictions": s.evictions,
    });
    let line = |line: &anytrace_analysis::sharing::ContendedLine| {
        let cores = line.cores.iter().map(|core| {
            let thread = found.threads_of(core.core).next().unwrap().unwrap();
            let counts = json!({
                "reads": core.reads, "writes": core.writes,
                "read_bytes": format!("{:#x}", core.read_bytes), "written_bytes": format!("{:#x}", core.written_bytes),
            });
            (thread.to_string(), counts)
        });
        let address = format!("{:#x}", line.line);
        let value = json!({
            "line": address, "threads": cores.collect::<Map<_, _>>(), "false_sharing_misses": line.misses() - line.true_at_once,
            "true_sharing_misses": line.true_at_once, "invalidations": line.invalidations,
        });
        (address, value)
    };
    (stats, found.contended.iter().map(line).collect())
}

fn own() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/curves")
}

fn compare(found: &SharingResults, expected: &Value, name: &str) {
    let (stats, lines) = mesi(found);
    assert_eq!(stats, expected["stats"], "{name}");
    let wanted = expected["contended_lines"].as_array().unwrap().iter();
    let wanted: BTreeMap<_, _> = wanted.map(|line| (line["line"].as_str().unwrap().to_owned(), line.clone())).collect();
    assert_eq!(lines, wanted, "{name}");
}

#[test]
fn contended_lines_of_the_samples_are_those_expected() {
    let expected: Value = serde_json::from_slice(&std::fs::read(own().join("expected.json")).unwrap()).unwrap();
    for name in ["falseshare.rh14-O0", "prodcons.rh19-O1"] {
        compare(&found(&own().join(format!("{name}.trace.gz"))), &expected[name]["mesi"], name);
    }
}

#[test]
fn contended_lines_of_the_corpus_are_those_expected() {
    let Some(corpus) = shared_corpus("cacheray") else { return };
    for name in ["falseshare.rh14-O0", "falseshare.rh14-O0.be", "prodcons.rh19-O1"] {
        let found = found(&corpus.join("traces").join(format!("{name}.trace")));
        let expected = corpus.join("expected").join(format!("{}.sim.json", name.trim_end_matches(".be")));
        let expected: Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        compare(&found, &expected["mesi"], name);
    }
}

fn threads_and_fields(found: &SharingResults, pair: &Pair) -> Vec<(u64, String)> {
    let thread = |core| found.threads_of(core).next().unwrap().unwrap();
    pair.sides.iter().map(|side| (thread(side.core), side.field.to_string())).collect()
}

#[test]
fn the_counters_that_share_a_line_are_named_with_their_threads() {
    let found = found(&own().join("falseshare.rh14-O0.trace.gz"));
    let dearest = found.pairs.iter().max_by_key(|pair| pair.false_misses).unwrap();
    let named = threads_and_fields(&found, dearest);
    assert_eq!(named, [(1, "struct.Counters 0+8".to_owned()), (2, "struct.Counters 8+8".to_owned())]);
    assert!(dearest.false_misses > 290 && dearest.is_one_instance);
}

#[test]
fn a_field_handed_from_producer_to_consumer_is_named() {
    let found = found(&own().join("prodcons.rh19-O1.trace.gz"));
    let named: Vec<_> = found.pairs.iter().filter(|p| p.has_atomics).map(|p| threads_and_fields(&found, p)).collect();
    for field in ["struct.Ring 0+4", "struct.Ring 4+4"] {
        assert!(named.contains(&vec![(1, field.to_owned()), (2, field.to_owned())]), "{field}: {named:?}");
    }
    assert_eq!(found.stats.coherence.false_sharing_misses, 0);
}

#[test]
fn damaged_and_odd_traces_are_analyzed_as_far_as_they_can_be_read() {
    let broken = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/broken");
    for entry in std::fs::read_dir(broken).unwrap() {
        let path = entry.unwrap().path();
        let is_trace = path.extension().is_some_and(|extension| extension == "trace");
        if is_trace && std::fs::metadata(&path).unwrap().len() > 0 {
            let found = found(&path);
            let stats = &found.stats;
            let misses =
                stats.coherence.cold_misses + stats.coherence.replacement_misses + stats.coherence.coherence_misses;
            assert_eq!(misses, stats.read_misses + stats.write_misses, "{}", path.display());
        }
    }
}
