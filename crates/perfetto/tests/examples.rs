//! The programs in `examples/`, run on a sample: what they print.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs an example that `cargo test` built beside this test; returns what it prints.
fn run(name: &str, arguments: &[&OsStr]) -> (String, String) {
    let deps = std::env::current_exe().unwrap();
    let program = deps.ancestors().nth(2).unwrap().join("examples").join(name);
    let output = Command::new(&program).args(arguments).output();
    let output =
        output.unwrap_or_else(|e| panic!("{}: {e}; `cargo test` without a filter builds it", program.display()));
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, err) = (text(output.stdout), text(output.stderr));
    assert!(output.status.success(), "{name}: {err}");
    (out, err)
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name)
}

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = run("perfetto-records", &[path("bad/bad-record.perfetto").as_os_str()]);
    let header = "perfetto 1\n".len();
    let expected = format!("0 at byte {header:#x}: 1 has 5 bytes\n1 at byte {:#x}: 3 has 5 bytes\n", header + 8 + 11);
    assert_eq!(out, expected);
    assert_eq!(err.matches("[perfetto/").count(), 1, "{err}");
}

#[test]
fn filter_keeps_even_numbers() {
    let folder = std::env::temp_dir().join(format!("anytrace-perfetto-filter-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("copy.perfetto");
    let printed = run("perfetto-filter", &[path("small.perfetto").as_os_str(), copy.as_os_str()]);
    let bytes = std::fs::read(&copy).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(printed, (String::new(), String::new()));
    assert_eq!(bytes, b"perfetto 1\n2 second, with \xff\n10 tenth\n10 \n");
}
