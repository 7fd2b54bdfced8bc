//! A short, deterministic substitute for the fuzz targets: every sample, changed in seeded ways, is demangled, opened
//! and searched without a panic, and within a time in proportion to its length.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use anytrace_core::testing::mutations;
use anytrace_symbols::{Binary, ObjectFile, testing};

/// Changed copies of each sample.
const ROUNDS: usize = 60;

fn samples(is_wanted: impl Fn(&str) -> bool) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.retain(|path| path.extension().is_some_and(|extension| is_wanted(&extension.to_string_lossy())));
    paths.into_iter().map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
}

fn objects() -> Vec<(PathBuf, Vec<u8>)> {
    let found = samples(|extension| matches!(extension, "o" | "so" | "dwo"));
    assert!(found.len() >= 14, "{} object files", found.len());
    found
}

#[test]
fn the_samples_are_object_files_with_their_intended_contents() {
    let with_lines = |bytes: &Vec<u8>| {
        let binary = Binary::from_bytes("sample", bytes.clone());
        let object = ObjectFile::parse(&binary, None).unwrap();
        let data = object.debug_data().unwrap();
        !data.is_empty() && data.lines().is_ok()
    };
    let objects = objects();
    let found: Vec<_> = objects.iter().filter(|(_, bytes)| with_lines(bytes)).map(|(path, _)| path).collect();
    assert!(found.len() >= 11, "lines in {found:?}");
    for (path, bytes) in objects {
        let binary = Binary::from_bytes("sample", bytes);
        let symbols = ObjectFile::parse(&binary, None).unwrap().symbols().symbols().len();
        // Split and stripped ones have none; that is their purpose.
        let has_none = ["dwo", "so"].iter().any(|end| path.extension().unwrap() == *end);
        assert!(symbols > 0 || has_none, "{}", path.display());
    }
}

#[test]
fn changed_names_are_demangled_or_left() {
    let (_, bytes) = samples(|extension| extension == "txt").remove(0);
    testing::fuzz_demangle(&bytes);
    for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        mutations(line, 0x6e_61_6d + number as u64, 4 * ROUNDS, testing::fuzz_demangle);
    }
}

#[test]
fn changed_object_files_are_opened_or_refused() {
    for (number, (_, bytes)) in objects().into_iter().enumerate() {
        testing::fuzz_object(&bytes);
        mutations(&bytes, 0x6f_62_6a + number as u64, ROUNDS, testing::fuzz_object);
        anytrace_core::testing::truncations(&bytes, 100, |_, cut| testing::fuzz_object(cut));
    }
}

#[test]
fn changed_debug_data_are_read_or_refused() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("changed-debug-data-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let scratch = folder.join("changed.o");
    for (number, (_, bytes)) in objects().into_iter().enumerate() {
        testing::fuzz_debug_data(&bytes, &scratch);
        // Small changes: most of these end at the first header.
        mutations(&bytes, 0x64_77_61 + number as u64, ROUNDS, |changed| testing::fuzz_debug_data(changed, &scratch));
        anytrace_core::testing::bit_flips(&bytes, 200, |_, changed| testing::fuzz_debug_data(changed, &scratch));
    }
    fs::remove_dir_all(&folder).unwrap();
}
