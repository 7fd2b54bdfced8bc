//! What the tests of every format do to every sample: truncate it, flip its bits, read it through slow pipes.
//!
//! Only behind the feature `testing`. Panics are this module's way to fail a test.

mod dumps;
mod explanations;
pub mod goldens;
pub mod parts;
pub mod public;
pub mod tables;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use explanations::{Explained, explained};

use crate::{
    Collect, Diagnostic, DumpForm, DumpOptions, Error, Format, ImportOptions, Info, Input, Limits, MemoryTarget,
    OpenOptions, Outcome, Plan, Severity, TargetOptions,
};

/// The shared corpus of a format: `$ANYTRACE_CORPUS/NAME`, else `../shared/corpus/NAME` beside the project. Reports on
/// stderr that a test is skipped when it is absent.
pub fn shared_corpus(format: &str) -> Option<PathBuf> {
    let root = match std::env::var_os("ANYTRACE_CORPUS") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus"),
    };
    let folder = root.join(format);
    if folder.is_dir() {
        return Some(folder);
    }
    skip(&format!("no shared corpus at {} (set ANYTRACE_CORPUS)", folder.display()));
    None
}

/// Reports that a test, or a part of one, is skipped: one line `skipped: WHY` on stderr, past the test harness, which
/// captures what print macros write. Where `ANYTRACE_REQUIRE_ALL` is set (and neither empty nor `0`) the test fails
/// with that text instead.
///
/// # Panics
///
/// With `ANYTRACE_REQUIRE_ALL`.
#[track_caller]
pub fn skip(why: &str) {
    let requires_all = std::env::var_os("ANYTRACE_REQUIRE_ALL").is_some_and(|value| !value.is_empty() && value != "0");
    assert!(!requires_all, "skipped: {why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// True when a program is installed: a path, or a name that is searched in `PATH`. If it is not, the test is skipped.
///
/// # Panics
///
/// With `ANYTRACE_REQUIRE_ALL`, see [`skip`].
#[track_caller]
pub fn has_program(name: &str) -> bool {
    let is_there = |folder: PathBuf| folder.join(name).is_file();
    let has = std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(is_there));
    if !has {
        skip(&format!("{name} is not installed"));
    }
    has
}

/// Runs a program of the crate's `examples`, which `cargo test` builds beside the tests; returns what it writes to
/// standard output, and prints to standard error.
///
/// # Panics
/// When it is not there, fails, or prints no text.
pub fn run_example<A: AsRef<OsStr>>(name: &str, arguments: &[A]) -> (Vec<u8>, String) {
    let test = std::env::current_exe().unwrap_or_else(|e| panic!("{e}"));
    let program = test.ancestors().nth(2).unwrap_or(Path::new("")).join("examples").join(name);
    let output = Command::new(&program).args(arguments).output();
    let output =
        output.unwrap_or_else(|e| panic!("{}: {e}; `cargo test` without a filter builds it", program.display()));
    let err = String::from_utf8(output.stderr).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert!(output.status.success(), "{name}: {err}");
    (output.stdout, err)
}

/// [`run_example`] for one that writes text.
///
/// # Panics
/// As [`run_example`].
pub fn example_prints<A: AsRef<OsStr>>(name: &str, arguments: &[A]) -> (String, String) {
    let (out, err) = run_example(name, arguments);
    (String::from_utf8(out).unwrap_or_else(|e| panic!("{name}: {e}")), err)
}

/// An input that gives a cursor at most `at_once` bytes at a time.
pub fn dripping(name: &str, bytes: &[u8], at_once: usize) -> Input {
    let reader = std::io::Cursor::new(bytes.to_vec());
    let mut input =
        Input::from_read(name, Box::new(reader), Some(bytes.len() as u64)).unwrap_or_else(|e| panic!("{e}"));
    input.drip_bytes = Some(at_once);
    input
}

/// Everything the reading verbs report about one input.
#[derive(Debug, PartialEq)]
pub struct Exam {
    /// `info` and what it reported.
    pub info: (Info, Vec<Diagnostic>),
    /// `check`'s diagnostics.
    pub check: Vec<Diagnostic>,
    /// `dump` as text.
    pub text: Vec<u8>,
    /// `dump` as JSON lines.
    pub jsonl: Vec<u8>,
}

impl Exam {
    /// Errors that `check` reported.
    pub fn errors(&self) -> Vec<&Diagnostic> {
        self.check.iter().filter(|d| d.severity == Severity::Error).collect()
    }

    /// Offset and number of each record, with which the lines of `dump` begin.
    pub fn text_places(&self) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.text);
        text.lines().map(|line| line.splitn(3, ' ').take(2).collect::<Vec<_>>().join(" ")).collect()
    }

    /// Codes of the errors that `check` reported.
    pub fn error_codes(&self) -> Vec<&'static str> {
        self.errors().iter().map(|d| d.code()).collect()
    }
}

/// Runs `info`, `check` and both dumps; `make` returns a fresh input each time.
///
/// # Panics
/// When a verb fails outright: damage must be reported, not returned.
pub fn examine_with(format: &dyn Format, options: &OpenOptions, make: &dyn Fn() -> Input) -> Exam {
    let open = || format.open(make(), options).unwrap_or_else(|e| panic!("open: {e}"));
    let mut info_sink = Collect::default();
    let info = open().info(&mut info_sink).unwrap_or_else(|e| panic!("info: {e}"));
    let mut check = Collect::default();
    open().check(&mut check).unwrap_or_else(|e| panic!("check: {e}"));
    let dump = |form| {
        let mut out = Vec::new();
        let dump_options = DumpOptions { form, offsets: true, ..DumpOptions::default() };
        open().dump(&dump_options, &mut out, &mut Collect::default()).unwrap_or_else(|e| panic!("dump: {e}"));
        out
    };
    for diagnostic in info_sink.0.iter().chain(&check.0) {
        let known = format.rules().iter().chain(crate::layer_rules()).any(|rule| *rule == diagnostic.rule);
        assert!(known, "{} is not in the format's table of rules", diagnostic.code());
    }
    Exam { info: (info, info_sink.0), check: check.0, text: dump(DumpForm::Text), jsonl: dump(DumpForm::Jsonl) }
}

/// [`examine_with`] on bytes in memory and default options.
pub fn examine(format: &dyn Format, bytes: &[u8]) -> Exam {
    examine_with(format, &OpenOptions::default(), &|| Input::from_bytes("sample", bytes.to_vec()))
}

/// Asserts that reading through windows of 1, 7 and 4,096 bytes yields the same as reading a slice.
pub fn assert_windows_agree(format: &dyn Format, bytes: &[u8]) {
    let expected = examine(format, bytes);
    for at_once in [1, 7, 4096] {
        let dripped = examine_with(format, &OpenOptions::default(), &|| dripping("sample", bytes, at_once));
        assert_eq!(dripped, expected, "windows of {at_once} bytes");
    }
}

/// Rewrites bytes by a plan.
///
/// # Errors
/// What the format returns.
pub fn rewrite(format: &dyn Format, bytes: &[u8], plan: &Plan) -> Result<(Vec<u8>, Outcome, Collect), Error> {
    rewrite_with(format, &OpenOptions::default(), bytes, plan)
}

/// [`rewrite`] with options.
///
/// # Errors
/// What the format returns.
pub fn rewrite_with(
    format: &dyn Format,
    options: &OpenOptions,
    bytes: &[u8],
    plan: &Plan,
) -> Result<(Vec<u8>, Outcome, Collect), Error> {
    let mut sink = Collect::default();
    let mut out = MemoryTarget::default();
    let trace = format.open(Input::from_bytes("sample", bytes.to_vec()), options)?;
    let outcome = trace.rewrite(plan, &mut out, &mut sink)?;
    Ok((out.0, outcome, sink))
}

/// Trace -> JSON lines -> trace.
///
/// # Errors
/// What the format returns.
pub fn through_jsonl(format: &dyn Format, options: &OpenOptions, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let mut lines = Vec::new();
    let dump = DumpOptions { form: DumpForm::Jsonl, ..DumpOptions::default() };
    let trace = format.open(Input::from_bytes("sample", bytes.to_vec()), options)?;
    trace.dump(&dump, &mut lines, &mut Collect::default())?;
    let input = Input::from_bytes("sample.jsonl", lines);
    assert!(format.recognizes_jsonl(&input.head()), "the dump is not recognized as the format's JSON lines");
    let mut out = MemoryTarget::default();
    let import = ImportOptions { target: &TargetOptions::default(), limits: Limits::default() };
    format.import(input, &import, &mut out, &mut Collect::default())?;
    Ok(out.0)
}

/// Repairs bytes and asserts that `check` finds no error in the result. Returns the repaired bytes.
///
/// # Panics
/// When the repaired trace has errors.
pub fn assert_repairs(format: &dyn Format, bytes: &[u8], what: &str) -> Vec<u8> {
    let plan = Plan::Repair(TargetOptions::default());
    let (repaired, _, _) = rewrite(format, bytes, &plan).unwrap_or_else(|e| panic!("{what}: repair: {e}"));
    if !repaired.is_empty() {
        let mut sink = Collect::default();
        let input = Input::from_bytes("repaired", repaired.clone());
        let trace = format.open(input, &OpenOptions::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
        trace.check(&mut sink).unwrap_or_else(|e| panic!("{what}: check of the repaired: {e}"));
        let errors: Vec<_> = sink.0.iter().filter(|d| d.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{what}: the repaired trace still has errors: {errors:?}");
    }
    repaired
}

/// Cuts the sample at each of many offsets (all of them up to `all_below` bytes) and runs `visit`.
pub fn truncations(bytes: &[u8], all_below: usize, mut visit: impl FnMut(usize, &[u8])) {
    let step = if bytes.len() <= all_below { 1 } else { bytes.len() / all_below + 1 };
    for cut in (0..bytes.len()).step_by(step) {
        visit(cut, &bytes[..cut]);
    }
}

/// Flips single bits (every one up to `all_below` bits, else evenly spread) and runs `visit`.
pub fn bit_flips(bytes: &[u8], all_below: usize, mut visit: impl FnMut(usize, &[u8])) {
    let bits = bytes.len() * 8;
    let step = if bits <= all_below { 1 } else { bits / all_below + 1 };
    let mut copy = bytes.to_vec();
    for bit in (0..bits).step_by(step) {
        copy[bit / 8] ^= 1 << (bit % 8);
        visit(bit, &copy);
        copy[bit / 8] ^= 1 << (bit % 8);
    }
}

/// Changes bytes in `rounds` seeded ways (bytes set, swapped, removed, doubled, lengths made extreme) and runs `visit`
/// on each: a deterministic substitute for a fuzzer.
pub fn mutations(bytes: &[u8], seed: u64, rounds: usize, mut visit: impl FnMut(&[u8])) {
    let mut state = seed | 1;
    let mut random = move |below: usize| {
        // xorshift64 (Marsaglia 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap_or(0) % below.max(1)
    };
    for _ in 0..rounds {
        let mut copy = bytes.to_vec();
        for _ in 0..=random(4) {
            if copy.is_empty() {
                break;
            }
            let at = random(copy.len());
            match random(7) {
                0 => copy[at] = u8::try_from(random(256)).unwrap_or(0),
                1 => copy[at] ^= 1 << random(8),
                2 => copy.truncate(at),
                3 => {
                    let end = (at + random(64)).min(copy.len());
                    copy.drain(at..end);
                }
                4 => {
                    let end = (at + random(64)).min(copy.len());
                    let piece = copy[at..end].to_vec();
                    copy.splice(at..at, piece);
                }
                5 => {
                    let end = (at + 1 + random(8)).min(copy.len());
                    copy[at..end].fill([0, 0xff, 0x80, 0x7f][random(4)]);
                }
                _ => {
                    let other = random(bytes.len());
                    let end = (other + random(32)).min(bytes.len());
                    let piece = bytes[other..end].to_vec();
                    copy.splice(at..at, piece);
                }
            }
        }
        visit(&copy);
    }
}

/// The body of the fuzz targets `parse_*`: every reading verb and repair, on any bytes.
pub fn fuzz_parse(format: &dyn Format, bytes: &[u8]) {
    examine(format, bytes);
    assert_repairs(format, bytes, "fuzz input");
}

/// The body of the fuzz targets `roundtrip_*`: `convert` must write input that it reads without error back unchanged,
/// and JSON lines must lead to the same output. `equal` defines "unchanged".
pub fn fuzz_roundtrip(format: &dyn Format, bytes: &[u8], equal: &dyn Fn(&[u8], &[u8]) -> bool) {
    let plan = Plan::Convert(TargetOptions::default());
    let Ok((copy, _, sink)) = rewrite(format, bytes, &plan) else { return };
    if sink.errors() > 0 || examine(format, bytes).info.0.records == 0 {
        return;
    }
    assert!(equal(bytes, &copy), "convert changed an undamaged trace");
    let back = through_jsonl(format, &OpenOptions::default(), bytes).unwrap_or_else(|e| panic!("jsonl: {e}"));
    assert!(equal(&copy, &back), "the way through JSON lines changed an undamaged trace");
}

/// Equality for [`fuzz_roundtrip`]: the same bytes.
pub fn same_bytes(a: &[u8], b: &[u8]) -> bool {
    a == b
}

/// Equality for [`fuzz_roundtrip`] where a format also has a text form whose layout may differ: the same bytes, or for
/// text the same records.
pub fn same_bytes_or_text_records(format: &dyn Format, a: &[u8], b: &[u8]) -> bool {
    let is_text = |bytes: &[u8]| bytes.iter().take(64).all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace());
    a == b || (is_text(a) && is_text(b) && same_records(format, a, b))
}

/// Equality for [`fuzz_roundtrip`] where a container or white space may differ: the same records.
pub fn same_records(format: &dyn Format, a: &[u8], b: &[u8]) -> bool {
    let records = |bytes: &[u8]| {
        let mut out = Vec::new();
        let options = DumpOptions { form: DumpForm::Jsonl, without_positions: true, ..DumpOptions::default() };
        let input = Input::from_bytes("sample", bytes.to_vec());
        let trace = format.open(input, &OpenOptions::default()).unwrap_or_else(|e| panic!("{e}"));
        trace.dump(&options, &mut out, &mut Collect::default()).unwrap_or_else(|e| panic!("{e}"));
        out
    };
    records(a) == records(b)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::process::{Command, Output};

    use super::has_program;

    const CHILD: &str = "ANYTRACE_TEST_OF_SKIPS";

    /// Runs only in a process of the test below.
    #[test]
    fn child_that_skips() {
        if std::env::var_os(CHILD).is_some() {
            assert!(has_program("ls"));
            assert!(!has_program("no such program"));
        }
    }

    fn child(requires_all: &str) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["testing::tests::child_that_skips", "--exact"]).env(CHILD, "1");
        command.env("ANYTRACE_REQUIRE_ALL", requires_all).output().unwrap()
    }

    #[test]
    fn a_skip_is_a_line_past_the_harness_or_a_failure() {
        for requires_all in ["", "0"] {
            let output = child(requires_all);
            assert!(output.status.success());
            assert_eq!(String::from_utf8(output.stderr).unwrap(), "skipped: no such program is not installed\n");
        }
        let output = child("1");
        assert!(!output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains("skipped: no such program is not installed"), "{text}");
    }
}
