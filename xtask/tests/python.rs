//! The Python package is a workspace of its own: what it would inherit from the root's agrees with it.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The lines of a table of a manifest, without comments.
fn table(manifest: &str, name: &str) -> Vec<String> {
    let text = read(manifest);
    let lines = text.lines().skip_while(|line| *line != format!("[{name}]")).skip(1);
    let lines =
        lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(str::to_owned).collect()
}

/// Versions of the packages that a lock file takes from the registry.
fn locked(path: &str) -> BTreeMap<String, Vec<String>> {
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in read(path).split("[[package]]").filter(|package| package.contains("source = ")) {
        let field = |name: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(&format!("{name} = \"")));
            line.unwrap().trim_end_matches('"').to_owned()
        };
        versions.entry(field("name")).or_default().push(field("version"));
    }
    versions
}

#[test]
fn lints_version_and_license_are_those_of_the_root() {
    for kind in ["rust", "clippy"] {
        let of_root = table("Cargo.toml", &format!("workspace.lints.{kind}"));
        assert!(!of_root.is_empty());
        assert_eq!(table("python/Cargo.toml", &format!("lints.{kind}")), of_root, "{kind}");
    }
    let package = table("python/Cargo.toml", "package");
    for line in table("Cargo.toml", "workspace.package") {
        assert!(package.contains(&line), "python/Cargo.toml lacks {line}");
    }
}

#[test]
fn libraries_that_both_lock_have_the_same_versions() {
    let (of_root, of_python) = (locked("Cargo.lock"), locked("python/Cargo.lock"));
    for (name, versions) in &of_python {
        let Some(known) = of_root.get(name) else { continue };
        assert!(versions.iter().all(|version| known.contains(version)), "{name}: {versions:?}, root {known:?}");
    }
}

#[test]
fn the_package_depends_on_libraries_of_the_house_only_and_of_arrow_on_arrays_only() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked", "--manifest-path", "python/Cargo.toml"])
        .current_dir(root())
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let dependencies = metadata["packages"][0]["dependencies"].as_array().unwrap();
    let names: Vec<&str> = dependencies.iter().map(|one| one["name"].as_str().unwrap()).collect();
    let house =
        ["analysis", "arrow", "cacheray", "core", "export", "formats", "heph"].map(|name| format!("anytrace-{name}"));
    let others = ["arrow-array", "arrow-schema", "pyo3", "serde_json", "tempfile"];
    assert!(names.iter().all(|name| others.contains(name) || house.iter().any(|one| one == name)), "{names:?}");
    assert!(!names.is_empty());
}

#[test]
fn nothing_of_the_root_depends_on_python_or_its_bindings() {
    let of_root = locked("Cargo.lock");
    assert!(of_root.keys().all(|name| !name.starts_with("pyo3")));
}

#[test]
fn python_has_the_licenses_of_the_root() {
    for name in ["LICENSE-APACHE", "LICENSE-MIT"] {
        assert_eq!(read(&format!("python/{name}")), read(name), "{name}");
    }
}
