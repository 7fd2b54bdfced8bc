//! What `convert --to chrome` writes is read back with the same spans.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn run(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    text
}

fn traces() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces");
    ["threads4.xray", "relay.heph"].map(|name| folder.join(name)).to_vec()
}

/// `stats` without the lines that name the file or its format.
fn stats(path: &Path) -> Vec<String> {
    let text = run(&["stats", "--format", "text", &path.display().to_string()]);
    text.lines().skip(1).map(str::to_owned).collect()
}

/// Counts, total times with four digits, and names.
fn sums(lines: &[String]) -> Vec<(Vec<&str>, Option<&str>)> {
    lines.iter().map(|line| (line.split_whitespace().take(3).collect(), line.split_whitespace().last())).collect()
}

#[test]
fn statistics_of_an_exported_trace_are_those_of_the_trace() {
    let folder = std::env::temp_dir().join(format!("anytrace-chrome-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    for trace in traces() {
        let (first, second) = (folder.join("first.json"), folder.join("second.json"));
        let text = |path: &Path| path.display().to_string();
        run(&["convert", &text(&trace), "-o", &text(&first), "--to", "chrome", "--force"]);
        let own = stats(&trace);
        assert!(own.len() > 3, "{own:?}");
        if trace.extension().is_some_and(|extension| extension == "heph") {
            assert_eq!(stats(&first), own, "{}", trace.display());
        }
        // Ticks are rounded to nanoseconds at both ends: a length may differ by one.
        assert_eq!(sums(&stats(&first)), sums(&own), "{}", trace.display());
        // Its own form: the same bytes.
        run(&["convert", &text(&first), "-o", &text(&second), "--to", "chrome", "--force"]);
        assert_eq!(std::fs::read(&first).unwrap(), std::fs::read(&second).unwrap());
    }
    std::fs::remove_dir_all(&folder).unwrap();
}
