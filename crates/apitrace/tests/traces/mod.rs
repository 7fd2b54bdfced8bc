//! Finds sample traces: the crate's own, and those of the shared corpus if it exists.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::shared_corpus;

/// The crate's own sample with this name.
pub fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("corpus/{name}.trace"))
}

/// The traces in a folder and its subfolders, sorted.
pub fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(below(&path));
        } else if path.extension().is_some_and(|extension| extension == "trace") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// All samples.
pub fn all() -> Vec<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    [Some(own), shared_corpus("apitrace")].into_iter().flatten().flat_map(|folder| below(&folder)).collect()
}

/// The samples that are undamaged, of a known version, and not too long for many trials, with their bytes.
pub fn undamaged() -> Vec<(String, Vec<u8>)> {
    let is_undamaged =
        |path: &PathBuf| !["bad", "broken"].iter().any(|folder| path.parent().unwrap().ends_with(folder));
    let read =
        all().into_iter().filter(is_undamaged).map(|path| (path.display().to_string(), std::fs::read(path).unwrap()));
    read.filter(|(name, bytes)| bytes.len() < 400_000 && !name.contains("future_v7")).collect()
}
