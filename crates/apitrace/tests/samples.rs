//! The output of the verbs for the samples in `corpus`, stored as files next to them.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{Exam, assert_repairs, examine};
use anytrace_core::{Confidence, Format, Input};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn samples(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut samples: Vec<_> = entries.filter(|path| path.extension().is_some_and(|e| e == "trace")).collect();
    samples.sort();
    samples
}

fn shown_info(exam: &Exam) -> String {
    let info = &exam.info.0;
    let mut out = format!(
        "version {}\ncontainer {}\nbytes {}\nrecords {}\n",
        info.format_version.as_deref().unwrap_or("?"),
        info.container.as_deref().unwrap_or("?"),
        info.bytes,
        info.records
    );
    for (name, count) in &info.kinds {
        out += &format!("kind {name} {count}\n");
    }
    for (name, count) in &info.threads {
        out += &format!("thread {name} {count}\n");
    }
    for (name, value) in &info.details {
        out += &format!("{name} {value}\n");
    }
    out
}

fn shown_check(exam: &Exam) -> String {
    exam.check.iter().fold(String::new(), |mut out, diagnostic| {
        diagnostic.render("event", &mut out).unwrap();
        out.push('\n');
        out
    })
}

fn assert_golden(sample: &Path, extension: &str, found: &str) {
    let path = sample.with_extension(extension);
    if std::env::var_os("UPDATE_GOLDENS").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(found == expected, "{} has changed; UPDATE_GOLDENS=1 writes it anew. Now:\n{found}", path.display());
}

#[test]
fn samples_read_as_they_did() {
    for sample in samples(&corpus()) {
        let exam = examine(&Apitrace, &std::fs::read(&sample).unwrap());
        assert_golden(&sample, "info", &shown_info(&exam));
        assert_golden(&sample, "check", &shown_check(&exam));
        // The variants of one trace need one dump.
        let name = sample.file_stem().unwrap().to_str().unwrap();
        if !name.starts_with("container") && !name.starts_with("uncompressed") {
            assert_golden(&sample, "dump", &String::from_utf8(exam.text).unwrap());
        }
    }
}

#[test]
fn bad_samples_are_complained_about_as_they_were_and_repair() {
    for sample in samples(&corpus().join("bad")) {
        let bytes = std::fs::read(&sample).unwrap();
        let exam = examine(&Apitrace, &bytes);
        assert_golden(&sample, "check", &shown_check(&exam));
        assert_repairs(&Apitrace, &bytes, &sample.display().to_string());
    }
}

#[test]
fn probes_are_sure_of_traces_and_leave_other_files_alone() {
    let probe = |name: &str, bytes: &[u8]| Apitrace.probe(&Input::from_bytes(name, bytes.to_vec()).head());
    for sample in samples(&corpus()) {
        let bytes = std::fs::read(&sample).unwrap();
        let is_small = sample.to_str().unwrap().contains("empty") || sample.to_str().unwrap().contains("future");
        let least = if is_small { Confidence::Likely } else { Confidence::Certain };
        let found = probe("x", &bytes);
        assert!(found >= least || bytes.len() < 150, "{}: {found:?}", sample.display());
    }
    let others: [&[u8]; 8] = [
        &[0; 4096],
        b"(mem-write (id 0) (tid 1))\n",
        b"at the beginning there was text, and it went on for quite a while without being a trace",
        &[3, 0, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[5, 0, 1, 0, 7, 0, 0, 0, 0, 0xd0, 0xed, 0x90, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0xff; 64],
        b"\x75\xd1\x1d\x4d\x00\x00\x00\x20",
        b"---\nheader:\n  version: 3\n",
    ];
    for bytes in others {
        assert!(probe("x", bytes) <= Confidence::Maybe, "{bytes:?}");
    }
}
