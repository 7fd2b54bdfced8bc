//! Lines that threads of real programs take from each other, against the corpus' expectations.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::path::Path;

use anytrace_analysis::sharing::{Found, Sharing, SharingOptions};
use anytrace_cacheray::Cacheray;
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Format, Input, OpenOptions};
use serde_json::{Map, Value, json};

fn found(path: &Path) -> Found {
    let input = Input::from_bytes("a.trace", std::fs::read(path).unwrap());
    let trace = Cacheray.open(input, &OpenOptions::default()).unwrap();
    let mut sharing = Sharing::new(SharingOptions::default(), None);
    trace.accesses(&mut sharing, &mut Collect::default()).unwrap();
    sharing.finish()
}

/// The counts by name, and the lines by address, as the corpus has them.
fn mesi(found: &Found) -> (Value, BTreeMap<String, Value>) {
    let s = &found.stats;
    let stats = json!({
        "read_hits": s.read_hits, "read_misses": s.read_misses, "write_hits": s.write_hits,
        "write_misses": s.write_misses, "cold_misses": s.cold_misses, "replacement_misses": s.replacement_misses,
        "coherence_misses": s.coherence_misses, "false_sharing_misses": s.false_sharing_misses,
        "true_sharing_misses": s.true_sharing_misses, "upgrades": s.upgrades, "invalidations": s.invalidations,
        "interventions": s.interventions, "writebacks": s.writebacks, "evictions": s.evictions,
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
            "line": address, "threads": cores.collect::<Map<_, _>>(), "false_sharing_misses": line.false_misses,
            "true_sharing_misses": line.true_misses, "invalidations": line.invalidations,
        });
        (address, value)
    };
    (stats, found.contended.iter().map(line).collect())
}

#[test]
fn contended_lines_of_the_corpus_are_those_expected() {
    let Some(corpus) = shared_corpus("cacheray") else { return };
    for name in ["falseshare.rh14-O0", "falseshare.rh14-O0.be", "prodcons.rh19-O1"] {
        let found = found(&corpus.join("traces").join(format!("{name}.trace")));
        let expected = corpus.join("expected").join(format!("{}.sim.json", name.trim_end_matches(".be")));
        let expected: Value = serde_json::from_slice(&std::fs::read(expected).unwrap()).unwrap();
        let (stats, lines) = mesi(&found);
        assert_eq!(stats, expected["mesi"]["stats"], "{name}");
        let wanted = expected["mesi"]["contended_lines"].as_array().unwrap().iter();
        let wanted: BTreeMap<_, _> =
            wanted.map(|line| (line["line"].as_str().unwrap().to_owned(), line.clone())).collect();
        assert_eq!(lines, wanted, "{name}");
    }
}

#[test]
fn the_counters_that_share_a_line_are_named_with_their_threads() {
    let Some(corpus) = shared_corpus("cacheray") else { return };
    let found = found(&corpus.join("traces/falseshare.rh14-O0.trace"));
    let dearest = found.pairs.iter().max_by_key(|pair| pair.false_misses).unwrap();
    let sides: Vec<_> = dearest
        .sides
        .iter()
        .map(|side| (found.threads_of(side.core).next().unwrap(), side.field.to_string()))
        .collect();
    assert_eq!(sides, [(Some(1), "struct.Counters 0+8".to_owned()), (Some(2), "struct.Counters 8+8".to_owned())]);
    assert!(dearest.false_misses > 290 && dearest.is_one_instance);
}
