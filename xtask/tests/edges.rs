//! The house's edges (ARCHITECTURE.md): who may depend on whom.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

const FORMATS: &[&str] = &[
    // One a line, so that another is one line more.
    "anytrace-apitrace",
    "anytrace-cacheray",
    "anytrace-casemate",
    "anytrace-heph",
    "anytrace-lackey",
    "anytrace-xray",
];

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
fn allowed(package: &str) -> BTreeSet<&'static str> {
    let of = |names: &[&'static str]| names.iter().copied().collect::<BTreeSet<_>>();
    match package {
        "anytrace-core" | "xtask" => of(&[]),
        // What is linked into other people's programs depends on nothing of the house; the derive macro is its own.
        "anytrace-recorder-cacheray" => of(&["anytrace-recorder-cacheray-derive"]),
        "anytrace-recorder-cacheray-derive" => of(&[]),
        // Recorders are linked into other people's programs: nothing of the house but an encoder comes with them.
        "heph-encoder" => of(&[]),
        "tracing-heph" => of(&["heph-encoder"]),
        "anytrace-analysis" | "anytrace-export" | "anytrace-symbols" => of(&["anytrace-core"]),
        name if FORMATS.contains(&name) => of(&["anytrace-core"]),
        "anytrace-live" => of(&["anytrace-core", "anytrace-analysis", "anytrace-export", "anytrace-heph"]),
        "anytrace-formats" => FORMATS.iter().copied().chain(["anytrace-core"]).collect(),
        "anytrace-cli" => {
            let own_verbs =
                ["anytrace-apitrace", "anytrace-casemate", "anytrace-heph", "anytrace-live", "anytrace-xray"];
            of(&["anytrace-core", "anytrace-analysis", "anytrace-export", "anytrace-formats", "anytrace-symbols"])
                .into_iter()
                .chain(own_verbs)
                .collect()
        }
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
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let allowed = allowed(name);
        for dependency in dependencies(package).filter(|d| d["kind"] != "dev") {
            let to = dependency["name"].as_str().unwrap();
            let is_of_tools =
                FORMATS.contains(&name) && TOOLS.contains(&to) && dependency["optional"] == Value::Bool(true);
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
        ("clap", "anytrace-cli"),
        ("regex", "anytrace-cli"),
        ("indicatif", "anytrace-cli"),
        ("tempfile", "anytrace-cli"),
        ("tempfile", "anytrace-apitrace"),
        ("ratatui", "anytrace-cli"),
        ("tempfile", "anytrace-heph"),
        ("datafusion", "anytrace-query"),
        ("brotli", "anytrace-apitrace"),
        ("object", "anytrace-symbols"),
        ("gimli", "anytrace-symbols"),
        ("inferno", "anytrace-export"),
        ("syn", "anytrace-recorder-cacheray-derive"),
    ];
    for package in metadata()["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        for dependency in dependencies(package).filter(|d| d["kind"] != "dev") {
            let to = dependency["name"].as_str().unwrap();
            let wanted: Vec<&str> = homes.iter().filter(|(library, _)| *library == to).map(|(_, home)| *home).collect();
            assert!(
                wanted.is_empty() || wanted.contains(&name),
                "{to} belongs into {}, not {name}",
                wanted.join(" or ")
            );
            let is_for_tools = FORMATS.contains(&name) && to == "tempfile";
            assert!(!is_for_tools || dependency["optional"] == Value::Bool(true), "{name}: {to} only behind `tools`");
            assert!(!FORMATS.contains(&name) || !to.starts_with("arrow"), "{name}: arrow only behind a feature");
        }
    }
}

#[test]
fn a_format_crate_used_alone_pulls_neither_clap_nor_arrow() {
    for format in FORMATS {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--locked", "--package", format, "--edges", "normal", "--prefix", "none"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        let tree = String::from_utf8(output.stdout).unwrap();
        assert!(tree.starts_with(format), "{tree}");
        for line in tree.lines() {
            assert!(!line.starts_with("clap") && !line.starts_with("arrow"), "{format} pulls {line}");
        }
    }
}
