//! The exact output of all verbs that read, for every sample. `UPDATE_GOLDENS=1` rewrites the files in `goldens`.

#![cfg(feature = "lanes")]
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panic, as tests do")]

use std::path::{Path, PathBuf};

use anytrace_core::testing::examine;
use anytrace_core::testing::goldens::{assert_golden, golden, reports};
use anytrace_perfetto::Perfetto;

fn samples(folder: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pftrace"));
    paths.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read(path).unwrap())).collect()
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(format!("{name}.txt"))
}

#[test]
fn samples_read_as_their_goldens_say() {
    let samples: Vec<_> = ["", "odd", "real"].into_iter().flat_map(samples).collect();
    assert!(samples.len() > 5);
    for (name, bytes) in samples {
        assert_golden(&path(&name), &golden(&Perfetto, &bytes));
    }
}

/// Every message about a damaged sample: place, field, what was expected and found, where reading goes on.
#[test]
fn damage_is_reported_as_the_golden_says() {
    let mut text = String::new();
    for (name, bytes) in samples("bad") {
        let exam = examine(&Perfetto, &bytes);
        text.push_str(&format!("# {name}\n{} records\n{}", exam.info.0.records, reports(&Perfetto, &exam.check)));
    }
    assert_golden(&path("bad"), &text);
}
