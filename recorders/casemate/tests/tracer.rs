//! `include/casemate_trace.h`: traces that C programs write by it, checked.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_casemate::model::Options;
use anytrace_casemate::tools::{CheckOptions, Report, Verdict, check};
use anytrace_casemate::{Kind, Reader};
use anytrace_core::{Collect, Input, OpenOptions, Step, testing};

/// Each standard language that the header is for.
const LANGUAGES: [&[&str]; 2] = [&["cc", "-std=c11"], &["c++", "-std=c++11", "-x", "c++"]];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Builds `tests/programs/tracer.c` or another source; none without a compiler that has the options.
fn build(language: &[&str], options: &[&str], source: &Path, name: &str) -> Option<PathBuf> {
    let [compiler, standard @ ..] = language else { return None };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tracer-{name}-{compiler}"));
    let mut command = Command::new(compiler);
    command.args(standard).args(["-Wall", "-Wextra", "-Werror", "-Wconversion", "-g", "-pthread", "-I"]);
    command.arg(folder().join("include")).args(options).arg("-o").arg(&program).arg(source);
    let Ok(output) = command.output() else {
        testing::skip(&format!("{compiler} is missing"));
        return None;
    };
    let complaint = String::from_utf8_lossy(&output.stderr);
    if complaint.contains("cannot find") && complaint.contains("san") {
        testing::skip(&format!("{compiler} has no {options:?}"));
        return None;
    }
    assert!(output.status.success(), "{compiler} {options:?}: {complaint}");
    Some(program)
}

fn tracer(language: &[&str], options: &[&str], name: &str) -> Option<PathBuf> {
    build(language, options, &folder().join("tests/programs/tracer.c"), name)
}

fn run(program: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = Command::new(program).args(arguments).output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "{arguments:?}: {} {complaint}", output.status);
    output.stdout
}

fn report(log: &[u8]) -> Report {
    let options = CheckOptions { model: Options { goes_on: true, ..Options::ARCHITECTURE }, ..CheckOptions::default() };
    let mut sink = Collect::default();
    let report = check(Input::from_bytes("t.log", log.to_vec()), &OpenOptions::default(), &options, &mut sink).unwrap();
    assert!(sink.0.is_empty(), "{:?}", sink.0);
    report
}

/// The kinds of the records and how many there are, and their ids.
fn records(log: &[u8]) -> (BTreeMap<Kind, usize>, Vec<u64>) {
    let mut reader = Reader::new(Input::from_bytes("t.log", log.to_vec()), &OpenOptions::default()).unwrap();
    let (mut kinds, mut ids) = (BTreeMap::new(), Vec::new());
    while let Some(step) = reader.next().unwrap() {
        let Step::Record(_, record) = step else { panic!("{step:?}") };
        *kinds.entry(record.kind()).or_default() += 1;
        ids.push(record.id);
    }
    (kinds, ids)
}

/// Four processors that make each kind of record, with room for all: a complete trace of no violations, in order.
fn is_complete(log: &[u8], rounds: usize) {
    let report = report(log);
    assert_eq!((report.verdict, report.errors, report.warnings, report.lost), (Verdict::Ok, 0, 0, 0));
    let (kinds, ids) = records(log);
    assert!(Kind::ALL.iter().all(|kind| kinds.contains_key(kind)), "{kinds:?}");
    assert_eq!(kinds.get(&Kind::Lock), Some(&(4 * rounds)));
    assert!(ids.iter().copied().eq(0..ids.len() as u64));
}

#[test]
fn threads_write_traces_in_both_forms_from_c_and_cpp() {
    for language in LANGUAGES {
        let Some(program) = tracer(language, &["-O2"], "plain") else { return };
        for form in ["keyed", "positional"] {
            let log = run(&program, &[form, "4194304", "500"]);
            is_complete(&log, 500);
            let has_keys = log.windows(6).any(|word| word == b"(value");
            assert_eq!(has_keys, form == "keyed");
            // The same when all is taken out at the end.
            is_complete(&run(&program, &[form, "4194304", "500", "slow"]), 500);
        }
    }
}

#[test]
fn dropped_records_are_counted_in_the_trace_and_make_the_verdict_unknown() {
    let Some(program) = tracer(LANGUAGES[0], &["-O2"], "drops") else { return };
    let rounds = 300;
    for form in ["keyed", "positional"] {
        let log = run(&program, &[form, "4096", "300", "slow"]);
        let text = String::from_utf8(log.clone()).unwrap();
        let counts = text.lines().filter_map(|line| line.strip_prefix("; a full ring dropped "));
        let dropped: u64 = counts.map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        let report = report(&log);
        assert_eq!(report.verdict, Verdict::Unknown, "{text}");
        assert_eq!(report.reasons(), ["records were lost"]);
        // 9 of the set-up, 10 of each kind, 9 a round.
        assert_eq!(report.events + dropped, 19 + 4 * 9 * rounds, "{text}");
        assert!(dropped > 1000);
        assert!(text.starts_with(';'), "a drop is known before any record that may depend on it");
    }
}

#[test]
fn sanitizers_find_nothing() {
    for (options, name) in [
        (["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], "asan"),
        (["-fsanitize=thread", "-O1"], "tsan"),
    ] {
        let Some(program) = tracer(LANGUAGES[0], &options, name) else { continue };
        is_complete(&run(&program, &["keyed", "4194304", "200"]), 200);
        let log = run(&program, &["positional", "4096", "200"]);
        assert!(report(&log).events > 19);
    }
}

#[test]
fn it_needs_no_c_library() {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bare.c");
    let text = "#include \"casemate_trace.h\"\nvoid step(struct cmt_session *trace, cmt_emit *emit);\n\
                void step(struct cmt_session *trace, cmt_emit *emit)\n{\n\tCMT_MEM_WRITE(trace, 0, \"plain\", 1, 2);\n\
                \tcmt_drain(trace, emit, 0, 1);\n}\n";
    std::fs::write(&source, text).unwrap();
    let options = ["-ffreestanding", "-nostdlib", "-O2", "-c"];
    let Some(object) = build(LANGUAGES[0], &options, &source, "bare") else { return };
    let Ok(output) = Command::new("nm").arg("-u").arg(&object).output() else {
        return testing::skip("nm is missing");
    };
    let symbols = String::from_utf8_lossy(&output.stdout).into_owned();
    // What compilers may call of their own, and every freestanding program has.
    let needed = symbols.split_whitespace().filter(|word| word.len() > 1);
    let own = ["memcpy", "memset", "memmove", "memcmp", "_GLOBAL_OFFSET_TABLE_", "__stack_chk_fail"];
    assert!(needed.clone().all(|symbol| own.contains(&symbol)), "{symbols}");
}
