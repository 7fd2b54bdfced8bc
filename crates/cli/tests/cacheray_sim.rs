//! `anytrace memory sim` and `compare` against the corpus's oracle, and as their users meet them.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_core::testing::{shared_corpus, skip};
use serde_json::Value;
use tempfile::TempDir;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cacheray/corpus")
}

fn run(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.arg("cacheray").args(words).env("NO_COLOR", "1").env("COLUMNS", "100").output().unwrap()
}

fn simulate(words: &[&str]) -> Value {
    let output = run(&[&["sim", "--format", "json"], words].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {stderr}"))
}

fn expected(root: &Path, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(root.join("expected").join(name)).unwrap()).unwrap()
}

/// Every key of the oracle is there and equal; there may be more. Lists of types go by name, and what the oracle
/// shortens is compared as far as it goes.
fn compare(path: &str, expected: &Value, found: &Value) {
    match expected {
        Value::Object(keys) if keys.contains_key("first40") => {
            let complete = keys.get("distinct").or_else(|| keys.get("distinct_types")).unwrap();
            let length = found.as_object().map_or_else(|| found.as_array().unwrap().len(), serde_json::Map::len);
            assert_eq!(complete, &Value::from(length), "{path}");
            compare(path, &keys["first40"], found);
        }
        Value::Object(keys) => keys.iter().for_each(|(key, value)| {
            compare(&format!("{path}.{key}"), value, found.get(key).unwrap_or_else(|| panic!("{path}.{key} missing")));
        }),
        Value::Array(rows) if path.ends_with(".types") => rows.iter().for_each(|row| {
            let name = &row["type"];
            let ours = found.as_array().unwrap().iter().find(|of| of["type"] == *name);
            compare(&format!("{path}.{name}"), row, ours.unwrap_or_else(|| panic!("{path}: {name} missing")));
        }),
        _ => assert_eq!(expected, found, "{path}"),
    }
}

/// All traces with an expectation, simulated in all its configurations; how many there were.
fn compare_corpus(root: &Path, threads: &str) -> usize {
    let configs = root.join("expected/configs.json");
    let mut compared = 0;
    let mut files: Vec<_> =
        std::fs::read_dir(root.join("traces")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "trace")) {
        let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
        let oracle = format!("{}.sim.json", stem.trim_end_matches(".be"));
        if !root.join("expected").join(&oracle).is_file() {
            skip(&format!("{stem}: no figures to compare it with in expected/{oracle}"));
            continue;
        }
        let words = ["--config", configs.to_str().unwrap(), "--types", "--threads", threads, file.to_str().unwrap()];
        let found = simulate(&words);
        let expected = expected(root, &oracle);
        assert_eq!(found["version"], 1);
        compare(&stem, &expected["results"], &found["results"]);
        for (name, wanted) in
            expected["results"].as_object().unwrap().iter().filter(|(name, _)| name.ends_with(".types"))
        {
            if let Value::Array(rows) = &wanted["types"] {
                assert_eq!(found["results"][name]["types"].as_array().unwrap().len(), rows.len(), "{stem} {name}");
            }
        }
        compared += 1;
    }
    compared
}

#[test]
fn every_number_is_the_oracles() {
    assert_eq!(compare_corpus(&corpus(), "1"), 5);
    assert_eq!(compare_corpus(&corpus(), "3"), 5);
}

#[test]
fn every_number_is_the_oracles_in_the_entire_corpus() {
    if let Some(root) = shared_corpus("cacheray") {
        assert!(compare_corpus(&root, "1") >= 17);
        assert!(compare_corpus(&root, "2") >= 17);
    }
}

#[test]
fn coherence_is_counted_as_the_oracle_does() {
    let Some(root) = shared_corpus("cacheray") else { return };
    let files = TempDir::new().unwrap();
    let config = files.path().join("mesi.json");
    std::fs::write(&config, r#"{"levels": [{"size": 4096, "ways": 4, "private": true}]}"#).unwrap();
    for name in ["falseshare.rh14-O0", "prodcons.rh19-O1"] {
        let trace = root.join(format!("traces/{name}.trace"));
        let found = simulate(&["--config", config.to_str().unwrap(), trace.to_str().unwrap()]);
        let wanted = &expected(&root, &format!("{name}.sim.json"))["mesi"]["stats"];
        let of = &found["results"]["mesi"];
        for (key, value) in wanted.as_object().unwrap() {
            let ours = of["mesi"].get(key).unwrap_or(&of["levels"][0][key]);
            assert_eq!(ours, value, "{name} {key}");
        }
    }
}

#[test]
fn upstreams_configurations_are_read() {
    let files = TempDir::new().unwrap();
    let trace = corpus().join("traces/conflict.up14-O0.trace");
    let java = files.path().join("java.json");
    std::fs::write(
        &java,
        r#"{"caches": [{"name": "L1", "cache_size": 12, "block_size": 6, "write_policy": 0, "set_assoc": 4, "rep_policy": 0}]}"#,
    )
    .unwrap();
    let ini = files.path().join("cache.conf");
    std::fs::write(&ini, "number_of_caches=1\n[L1 cache]\ncache_size=12 # 4 KiB\nblock_size=6\nset_associativity=4\n")
        .unwrap();
    let words = ["--config", java.to_str().unwrap(), "--config", ini.to_str().unwrap(), trace.to_str().unwrap()];
    let found = simulate(&words);
    let wanted = &expected(&corpus(), "conflict.up14-O0.sim.json")["results"]["lru4k4"];
    compare("java", wanted, &found["results"]["java"]);
    compare("cache", wanted, &found["results"]["cache"]);
}

#[test]
fn wrong_configurations_are_named_with_file_and_key() {
    let files = TempDir::new().unwrap();
    let config = files.path().join("bad.json");
    let trace = corpus().join("traces/conflict.up14-O0.trace");
    for (text, message) in [
        (r#"{"a": {"levels": [{"size": 4096, "ways": "many"}]}}"#, "bad.json: a.levels[0].ways: expected a number"),
        (r#"{"a": {"levels": [{"size": 4096, "ways": 4, "line": 48}]}}"#, "a.levels[0].line: expected a power of two"),
        ("{", "bad.json: line 1, column 1: no JSON"),
        ("[L1 cache]\n", "bad.json: [L1].cache_size: expected a power of two"),
    ] {
        std::fs::write(&config, text).unwrap();
        let output = run(&["sim", "--config", config.to_str().unwrap(), trace.to_str().unwrap()]);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}: {stderr}");
        assert!(stderr.contains(message), "{text}: {stderr}");
    }
    let output = run(&["sim", "--config", "zen99", trace.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--list-presets"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn sizes_that_are_not_multiples_of_a_set_are_simulated_with_a_note() {
    let files = TempDir::new().unwrap();
    let config = files.path().join("odd.json");
    std::fs::write(&config, r#"{"odd": {"levels": [{"size": 4096, "ways": 3}]}}"#).unwrap();
    let trace = corpus().join("traces/conflict.up14-O0.trace");
    let (config, trace) = (config.to_str().unwrap(), trace.to_str().unwrap());
    for words in [&["sim", "--config", config, trace][..], &["types", "--config", config, trace]] {
        let output = run(words);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        let note = "odd.json: odd.levels[0].size: 4096 bytes are not a multiple of a set of 3 lines of 64 bytes: simulating 4032";
        assert!(stderr.contains(note), "{stderr}");
    }
}

#[test]
fn opt_is_a_bound_and_needs_a_file() {
    let files = TempDir::new().unwrap();
    let config = files.path().join("bound.json");
    let level = |policy: &str| format!(r#"{{"levels": [{{"size": 1024, "ways": 4, "policy": "{policy}"}}]}}"#);
    std::fs::write(&config, format!(r#"{{"opt": {}, "lru": {}}}"#, level("opt"), level("lru"))).unwrap();
    let trace = corpus().join("traces/nested.rh14-O0.trace");
    let found = simulate(&["--config", config.to_str().unwrap(), trace.to_str().unwrap()]);
    let misses = |name: &str| {
        let level = &found["results"][name]["levels"][0];
        level["read_misses"].as_u64().unwrap() + level["write_misses"].as_u64().unwrap()
    };
    assert!(misses("opt") < misses("lru"));
    let output = run(&["sim", "--config", config.to_str().unwrap(), "-"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("give a file"));
}

#[test]
fn damaged_traces_are_simulated_as_far_as_they_go() {
    let trace = corpus().join("broken/trunc-read-after-9.trace");
    let output = run(&["sim", "--config", "zen3", "--types", trace.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cacheray/"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("records served by L1"));
    let empty = corpus().join("broken/empty.trace");
    let found = simulate(&["--config", "zen3", empty.to_str().unwrap(), trace.to_str().unwrap()]);
    assert_eq!(found.as_array().map(Vec::len), Some(2));
    assert_eq!(found[0]["accesses"], 0);
}

#[test]
fn every_broken_sample_and_preset_ends() {
    for entry in std::fs::read_dir(corpus().join("broken")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "trace") {
            let words = ["sim", "--config", "skylake", "--types", "--classes", "--per-thread", path.to_str().unwrap()];
            let output = run(&words);
            assert!(matches!(output.status.code(), Some(0..=2)), "{}: {output:?}", path.display());
            // Where nothing but the verb says which format it is, the verb says it.
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("--input-format"), "{}: {stderr}", path.display());
        }
    }
}

#[test]
fn growth_above_a_threshold_is_shown_by_the_exit_code() {
    let (a, b) = (corpus().join("traces/packed.up14-O2.trace"), corpus().join("traces/packed.up14-O0.trace"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let configs = corpus().join("expected/configs.json");
    let caches = ["--config", configs.to_str().unwrap(), "--only", "nine2"];
    let compare = |words: &[&str]| run(&[&["compare"], &caches[..], words].concat());
    assert_eq!(compare(&[a, b]).status.code(), Some(0));
    assert_eq!(compare(&[a, a, "--fail-above", "misses=0"]).status.code(), Some(0));
    let output = compare(&[a, b, "--fail-above", "accesses=0%", "--format", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = found["results"]["nine2"]["rows"].as_array().unwrap();
    let all = rows.iter().find(|row| row["kind"] == "all").unwrap();
    let grows = all["shown"]["accesses"].as_u64() > all["base"]["accesses"].as_u64();
    assert_eq!(output.status.code(), Some(i32::from(grows)));
    assert_eq!(found["results"]["nine2"]["exceeded"].as_array().unwrap().is_empty(), !grows);
    let output = compare(&[a, b, "--fail-above", "fish=1"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn spreadsheets_get_a_line_a_counter() {
    let trace = corpus().join("traces/packed.up14-O0.trace");
    let words = ["sim", "--config", "skylake", "--types", "--per-set", "--format", "csv", trace.to_str().unwrap()];
    let text = String::from_utf8(run(&words).stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("file,config,scope,name,part,counter,value"));
    assert!(lines.clone().all(|line| line.split(',').count() == 7));
    assert!(lines.any(|line| line.contains(",skylake,field,struct.Pk,0+1,reads,")));
}
