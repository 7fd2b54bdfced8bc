//! The house's edges (ARCHITECTURE.md): who may depend on whom.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

/// The packages of the formats: what the list of formats depends on.
fn formats(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().unwrap();
    let list = packages.iter().find(|package| package["name"] == "anytrace-formats").unwrap();
    let names = dependencies(list).filter(|d| d["kind"] != "dev").map(|d| d["name"].as_str().unwrap().to_owned());
    let formats: Vec<_> = names.filter(|name| name != "anytrace-core").collect();
    assert!(formats.len() >= 6, "{formats:?}");
    formats
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// What the feature `tools` of a format crate adds.
const TOOLS: [&str; 3] = ["anytrace-analysis", "anytrace-export", "anytrace-symbols"];

/// What a package of the house may depend on, of the house's own packages.
fn allowed<'a>(package: &str, formats: &'a [String]) -> BTreeSet<&'a str> {
    let of = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<&str>>();
    let is_format = |name: &str| formats.iter().any(|format| format == name);
    match package {
        "anytrace-core" | "xtask" => of(&[]),
        // What is linked into other people's programs depends on nothing of the house; the derive macro is its own.
        "anytrace-recorder-cacheray" => of(&["anytrace-recorder-cacheray-derive"]),
        "anytrace-recorder-cacheray-derive" | "anytrace-recorder-apitrace" => of(&[]),
        // Recorders are linked into other people's programs: nothing of the house but an encoder comes with them.
        "heph-encoder" => of(&[]),
        "tracing-heph" => of(&["heph-encoder"]),
        "anytrace-analysis" | "anytrace-arrow" | "anytrace-export" | "anytrace-symbols" => of(&["anytrace-core"]),
        // The checker's engine, which is also linked into hypervisors: there without anything else of the house.
        "anytrace-casemate-model" => of(&["anytrace-core"]),
        "anytrace-recorder-casemate" => of(&["anytrace-casemate-model"]),
        "anytrace-casemate" => of(&["anytrace-casemate-model", "anytrace-core"]),
        name if is_format(name) => of(&["anytrace-core"]),
        "anytrace-live" => of(&["anytrace-core", "anytrace-analysis", "anytrace-export", "anytrace-heph"]),
        "anytrace-formats" => formats.iter().map(String::as_str).chain(["anytrace-core"]).collect(),
        "anytrace" => {
            let own_verbs =
                ["anytrace-apitrace", "anytrace-casemate", "anytrace-heph", "anytrace-live", "anytrace-xray"];
            of(&["anytrace-core", "anytrace-analysis", "anytrace-export", "anytrace-formats", "anytrace-symbols"])
                .into_iter()
                .chain(["anytrace-replay", "anytrace-view"])
                .chain(own_verbs)
                .collect()
        }
        "anytrace-view" => {
            of(&["anytrace-core", "anytrace-analysis", "anytrace-export", "anytrace-formats", "anytrace-symbols"])
        }
        "anytrace-replay" => of(&["anytrace-apitrace", "anytrace-core"]),
        "anytrace-otlp" => of(&["anytrace-core", "anytrace-heph", "anytrace-live", "heph-encoder"]),
        "anytrace-query" => of(&["anytrace-arrow", "anytrace-core", "anytrace-formats", "anytrace-symbols"]),
        other => panic!("{other} has no place in the house: add it to ARCHITECTURE.md and to this test"),
    }
}

fn dependencies(package: &Value) -> impl Iterator<Item = &Value> {
    package["dependencies"].as_array().into_iter().flatten()
}

#[test]
fn edges_run_downward_only() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let formats = formats(&metadata);
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let allowed = allowed(name, &formats);
        let is_format = formats.iter().any(|format| format == name);
        for dependency in dependencies(package).filter(|d| d["kind"] != "dev") {
            let to = dependency["name"].as_str().unwrap();
            let is_of_tools = is_format && TOOLS.contains(&to) && dependency["optional"] == Value::Bool(true);
            let is_of_house = to.starts_with("anytrace-") || packages.iter().any(|package| package["name"] == *to);
            if is_of_house && !is_of_tools {
                assert!(allowed.contains(to), "{name} must not depend on {to}");
            }
        }
    }
}

#[test]
fn heavy_libraries_stay_where_they_belong() {
    let homes = [
        ("clap", "anytrace"),
        ("axum", "anytrace-view"),
        ("axum", "anytrace-otlp"),
        ("tonic", "anytrace-otlp"),
        ("opentelemetry-proto", "anytrace-otlp"),
        ("regex", "anytrace"),
        ("regex", "anytrace-view"),
        ("indicatif", "anytrace"),
        ("tempfile", "anytrace"),
        ("tempfile", "anytrace-apitrace"),
        ("tempfile", "anytrace-chrome"),
        ("ratatui", "anytrace"),
        ("tempfile", "anytrace-heph"),
        // Half packets that find no room in memory.
        ("tempfile", "anytrace-live"),
        // Where sorts larger than their memory go.
        ("tempfile", "anytrace-perfetto"),
        ("tempfile", "anytrace-query"),
        ("tempfile", "anytrace-replay"),
        ("tempfile", "anytrace-view"),
        ("khronos-egl", "anytrace-replay"),
        ("datafusion", "anytrace-query"),
        ("brotli", "anytrace-apitrace"),
        ("object", "anytrace-symbols"),
        ("gimli", "anytrace-symbols"),
        ("inferno", "anytrace-export"),
        ("syn", "anytrace-recorder-cacheray-derive"),
    ];
    let metadata = metadata();
    let formats = formats(&metadata);
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let is_format = formats.iter().any(|format| format == name);
        for dependency in dependencies(package).filter(|d| d["kind"] != "dev") {
            let to = dependency["name"].as_str().unwrap();
            let wanted: Vec<&str> = homes.iter().filter(|(library, _)| *library == to).map(|(_, home)| *home).collect();
            assert!(
                wanted.is_empty() || wanted.contains(&name),
                "{to} belongs into {}, not {name}",
                wanted.join(" or ")
            );
            let is_for_tools = is_format && to == "tempfile";
            assert!(!is_for_tools || dependency["optional"] == Value::Bool(true), "{name}: {to} only behind `tools`");
            assert!(!is_format || !to.starts_with("arrow"), "{name}: arrow only behind a feature");
        }
    }
}

#[test]
fn a_format_crate_used_alone_pulls_neither_clap_nor_arrow() {
    for format in formats(&metadata()) {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--package", &format, "--edges", "normal", "--prefix", "none"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.starts_with(&format), "{tree}");
        for line in tree.lines() {
            assert!(!line.starts_with("clap") && !line.starts_with("arrow"), "{format} pulls {line}");
        }
    }
}
