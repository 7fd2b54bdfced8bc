//! What would be published on a registry: what each package says of itself, and the files in it.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// The registry's names of subjects that our packages use; it refuses others.
const CATEGORIES: [&str; 12] = [
    "algorithms",
    "command-line-utilities",
    "development-tools::debugging",
    "development-tools::procedural-macro-helpers",
    "development-tools::profiling",
    "encoding",
    "graphics",
    "network-programming",
    "no-std",
    "parser-implementations",
    "simulation",
    "visualization",
];

/// The longest package, unpacked: sources only.
const PACKAGE_BYTES_MAX: u64 = 4 << 20;

/// The only file of a corpus that is packaged: sources include it.
const INCLUDED_CORPUS: &str = "corpus/callflags.tsv";

fn packages() -> Vec<Value> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--format-version", "1", "--no-deps", "--locked"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let metadata: Value = serde_json::from_slice(&cargo.output().unwrap().stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

#[test]
fn every_package_but_the_chores_is_published() {
    let packages = packages();
    let kept: Vec<_> = packages.iter().filter(|package| package["publish"] == serde_json::json!([])).collect();
    assert_eq!(kept.iter().map(|package| package["name"].as_str().unwrap()).collect::<Vec<_>>(), ["xtask"]);
}

#[test]
fn every_published_package_has_what_a_registry_page_shows() {
    for package in packages().iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap();
        for field in ["description", "license", "readme"] {
            assert!(package[field].as_str().is_some_and(|text| !text.is_empty()), "{name} has no {field}");
        }
        let keywords = texts(&package["keywords"]);
        assert!((1..=5).contains(&keywords.len()), "{name}: {keywords:?}");
        for keyword in keywords {
            let is_fine = |c: char| c.is_ascii_alphanumeric() || "-_+".contains(c);
            assert!(keyword.len() <= 20 && keyword.chars().all(is_fine), "{name}: {keyword}");
        }
        let categories = texts(&package["categories"]);
        assert!((1..=5).contains(&categories.len()), "{name}: {categories:?}");
        assert!(categories.iter().all(|category| CATEGORIES.contains(category)), "{name}: {categories:?}");
        let readme = Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("README.md");
        for link in std::fs::read_to_string(&readme).unwrap().split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            assert!(link.starts_with("https://") || link.starts_with('#'), "{}: {link}", readme.display());
        }
    }
}

/// The files below a folder, with their paths from it.
fn files(folder: &Path) -> Vec<(String, PathBuf)> {
    let mut open = vec![folder.to_owned()];
    let mut files = Vec::new();
    while let Some(here) = open.pop() {
        for entry in std::fs::read_dir(here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                files.push((path.strip_prefix(folder).unwrap().display().to_string(), path));
            }
        }
    }
    files
}

/// Every package as the registry would get it, unpacked below `folder`: one folder each.
fn unpacked(folder: &Path) -> Vec<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["package", "--workspace", "--exclude", "xtask", "--no-verify", "--exclude-lockfile", "--allow-dirty"]);
    // Nothing is looked up: the test runs without a network, too.
    cargo.args(["--offline", "--target-dir"]).arg(folder).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = cargo.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder.join("package")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "crate") {
            let bytes = std::fs::File::open(&path).unwrap();
            tar::Archive::new(flate2::read::GzDecoder::new(bytes)).unpack(folder).unwrap();
            folders.push(folder.join(path.file_stem().unwrap()));
        }
    }
    folders
}

/// Files that a source includes: paths from its own folder, and paths from the package's with a slash in front.
fn included(source: &str) -> Vec<&str> {
    let literals = |after: &'static str| source.split(after).skip(1).filter_map(|rest| rest.split('"').next());
    let plain = literals("include_str!(\"").chain(literals("include_bytes!(\""));
    let mut paths: Vec<&str> = plain.chain(literals("env!(\"CARGO_MANIFEST_DIR\"), \"")).collect();
    // The list of the recorder's sources in the command.
    if let Some((_, list)) = source.split_once("\nsources! {\n") {
        paths.extend(list.split("\n}").next().unwrap().split('"').skip(1).step_by(2));
    }
    paths
}

#[test]
fn packages_contain_what_their_sources_include_and_no_corpora() {
    let temporary = tempfile::tempdir().unwrap();
    let folders = unpacked(temporary.path());
    assert_eq!(folders.len() + 1, packages().len());
    let mut includes = 0;
    for folder in folders {
        let files = files(&folder);
        let names: BTreeSet<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["Cargo.toml", "README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(names.contains(name), "{} has no {name}", folder.display());
        }
        let is_sample = |name: &&str| name.contains("corpus/") && *name != INCLUDED_CORPUS;
        let is_test = |name: &&str| name.starts_with("tests/") && !name.ends_with(".tsv");
        assert_eq!(names.iter().copied().find(|name| is_sample(name) || is_test(name)), None, "{}", folder.display());
        let size_bytes: u64 = files.iter().map(|(_, path)| path.metadata().unwrap().len()).sum();
        assert!(size_bytes < PACKAGE_BYTES_MAX, "{}: {size_bytes} bytes", folder.display());
        for (name, path) in files.iter().filter(|(name, _)| name.starts_with("src/") && name.ends_with(".rs")) {
            let source = std::fs::read_to_string(path).unwrap();
            for wanted in included(&source) {
                includes += 1;
                // Tests in sources look for samples at run time; what is compiled in must be there.
                let is_list = source.contains("\nsources! {\n") && wanted.ends_with(".rs") && !wanted.starts_with('/');
                let wanted_path = match wanted.strip_prefix('/') {
                    Some(rest) => folder.join(rest),
                    None if is_list => folder.join("recorder/src").join(wanted),
                    None => path.parent().unwrap().join(wanted),
                };
                assert!(wanted_path.exists(), "{}: {name} includes {wanted}", folder.display());
            }
        }
    }
    assert!(includes > 40, "only {includes} includes were found: the recorder's sources alone are more");
}

#[test]
fn every_package_compiles_on_its_own() {
    // What others build is one package with its usual features; here everything is built with all features.
    for package in packages().iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        let check = ["check", "--quiet", "--locked", "--package", name];
        let output = cargo.args(check).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !said.contains("warning"), "{name}: {said}");
    }
}
