//! What we write is read by the formats' own tools, and says the same to them.
//!
//! `cargo xtask test` installs them from Debian (llvm, apitrace); where they are missing a test says
//! that it is skipped.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::testing::has_program;

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces").join(name).display().to_string()
}

/// Runs a program that must succeed; its standard output.
fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program} {}: {}\n{}",
        arguments.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn anytrace(arguments: &[&str]) -> String {
    output(env!("CARGO_BIN_EXE_anytrace"), arguments)
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.display().to_string()
    }
}

/// The records of a YAML trace, sorted: the peer's order of threads is that of a hash table.
fn yaml_records(text: &str) -> Vec<String> {
    let mut records: Vec<String> =
        text.lines().filter(|line| line.trim_start().starts_with("- {")).map(|line| line.trim().to_owned()).collect();
    records.sort();
    records
}

#[test]
fn llvm_xray_reads_every_version_we_write_as_the_same_records() {
    if !has_program("llvm-xray") {
        return;
    }
    let folder = Folder::new();
    let source = example("threads4.xray");
    let expected = yaml_records(&output("llvm-xray", &["convert", "-f", "yaml", &source]));
    assert!(expected.len() > 1000);
    for version in ["3", "4", "5"] {
        let out = folder.file(&format!("v{version}.xray"));
        anytrace(&["convert", &source, "-o", &out, "--version", version]);
        assert_eq!(yaml_records(&output("llvm-xray", &["convert", "-f", "yaml", &out])), expected, "version {version}");
        output("llvm-xray", &["fdr-dump", "--verify", &out]);
    }
}

#[test]
fn our_yaml_holds_the_records_of_llvm_xrays() {
    if !has_program("llvm-xray") {
        return;
    }
    let folder = Folder::new();
    let (source, out) = (example("threads4.xray"), folder.file("x.yaml"));
    anytrace(&["convert", &source, "-o", &out, "--to", "yaml"]);
    let ours = yaml_records(&std::fs::read_to_string(&out).unwrap());
    assert_eq!(ours, yaml_records(&output("llvm-xray", &["convert", "-f", "yaml", &source])));
}

#[test]
fn llvm_xray_takes_a_trimmed_and_a_repaired_trace() {
    if !has_program("llvm-xray") {
        return;
    }
    let folder = Folder::new();
    let (source, cut) = (example("threads4.xray"), folder.file("cut.xray"));
    let part = folder.file("part.xray");
    anytrace(&["trim", &source, "-o", &part, "--records", "100..900"]);
    output("llvm-xray", &["convert", "-f", "yaml", &part]);
    let bytes = std::fs::read(&source).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 1003]).unwrap();
    let refused = Command::new("llvm-xray").args(["convert", "-f", "yaml", &cut]).output().unwrap();
    assert!(!refused.status.success(), "the peer is expected to refuse a cut file");
    let saved = folder.file("saved.xray");
    anytrace(&["repair", &cut, "-o", &saved]);
    output("llvm-xray", &["convert", "-f", "yaml", &saved]);
}

#[test]
fn apitrace_dumps_every_container_we_write_alike() {
    if !has_program("apitrace") {
        return;
    }
    let folder = Folder::new();
    let source = example("imm.trace");
    let dump = |file: &str| output("apitrace", &["dump", "-v", "--color=never", file]);
    let expected = dump(&source);
    assert!(expected.lines().count() > 100);
    for container in ["snappy", "gzip", "brotli"] {
        let out = folder.file(&format!("{container}.trace"));
        anytrace(&["convert", &source, "-o", &out, "--container", container]);
        assert_eq!(dump(&out), expected, "{container}");
    }
    let (lines, back) = (folder.file("x.jsonl"), folder.file("back.trace"));
    anytrace(&["convert", &source, "-o", &lines, "--to", "jsonl"]);
    anytrace(&["convert", &lines, "-o", &back, "--to", "apitrace"]);
    assert_eq!(dump(&back), expected, "by way of JSON lines");
}

#[test]
fn apitrace_dumps_a_trimmed_and_a_repaired_trace() {
    if !has_program("apitrace") {
        return;
    }
    let folder = Folder::new();
    let source = example("imm.trace");
    let part = folder.file("part.trace");
    anytrace(&["trim", &source, "-o", &part, "--frames", "1..2"]);
    let complete = output("apitrace", &["dump", "-v", "--color=never", &source]);
    let dump = output("apitrace", &["dump", "-v", "--color=never", &part]);
    let swaps = |text: &str| text.lines().filter(|line| line.contains("SwapBuffers(")).count();
    assert_eq!(swaps(&dump), 1, "{dump}");
    assert!(swaps(&complete) > 1);
    let (cut, saved) = (folder.file("cut.trace"), folder.file("saved.trace"));
    let bytes = std::fs::read(&source).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() - 100]).unwrap();
    anytrace(&["repair", &cut, "-o", &saved]);
    output("apitrace", &["dump", "-v", "--color=never", &saved]);
}

/// A xorshift generator: the sets are the same in each run.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

fn random_call_set(state: &mut u64) -> String {
    let mut set = String::new();
    for at in 0..=next(state) % 3 {
        if at > 0 {
            set.push_str([",", " ", ", "][(next(state) % 3) as usize]);
        }
        let kinds = ["frame", "draw", "fbo", "rendertarget", "render"];
        let kind = kinds[(next(state) % 5) as usize];
        let (start, step) = (next(state) % 60, next(state) % 5 + 1);
        let stop = start + next(state) % 20;
        set.push_str(&match next(state) % 8 {
            0 => kind.to_owned(),
            1 => format!("*/{kind}"),
            2 => format!("*/{step}"),
            3 => format!("{start}"),
            4 => format!("{start}-{stop}/{step}"),
            5 => format!("{start}-{stop}/{kind}"),
            6 => format!("{start} - {stop}"),
            _ => format!("{start}-/{step}"),
        });
    }
    set
}

#[test]
fn apitrace_dump_prints_what_apitrace_prints_for_any_set_of_calls() {
    if !has_program("apitrace") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus");
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for name in ["threads", "interleave", "nested", "allvals_v6", "upstream_zlib-no-eof", "peer/callflags"] {
        let trace = folder.join(format!("{name}.trace")).display().to_string();
        for _ in 0..25 {
            let calls = format!("--calls={}", random_call_set(&mut state));
            let theirs = output("apitrace", &["dump", "--color=never", &calls, &trace]);
            let ours = anytrace(&["apitrace", "dump", &calls, &trace]);
            assert!(ours == theirs, "{calls} {trace}: {ours}\nfor\n{theirs}");
        }
        for options in [vec!["-v", "--color=always"], vec!["--thread-ids", "--multiline=no"], vec!["--grep=^gl[A-C]"]] {
            let arguments = [vec!["dump"], options, vec![trace.as_str()]].concat();
            let theirs = output("apitrace", &arguments);
            let ours = anytrace(&[vec!["apitrace"], arguments.clone()].concat());
            let is_colored = arguments.contains(&"--color=always");
            assert!(is_colored == theirs.contains('\u{1b}'), "{trace}");
            assert!(ours == theirs, "{arguments:?}: {ours}\nfor\n{theirs}");
        }
    }
}
