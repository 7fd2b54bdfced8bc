//! The text of `apitrace dump`: the output of apitrace 11.1, and properties that hold for any bytes.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dump::{DumpOptions, Escape, dump};
use anytrace_core::testing::{dripping, shared_corpus};
use anytrace_core::{Collect, Input, OpenOptions, Severity};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn set(text: &str) -> CallSet {
    CallSet::parse([text], &mut |_| Err(std::io::Error::other("no files here"))).unwrap()
}

fn from(input: Input, options: &DumpOptions) -> (Vec<u8>, Collect) {
    let mut out = Vec::new();
    let mut sink = Collect::default();
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    dump(&mut reader, options, &mut out, None, &mut sink).unwrap();
    (out, sink)
}

fn text(bytes: &[u8], options: &DumpOptions) -> Vec<u8> {
    from(Input::from_bytes("x.trace", bytes.to_vec()), options).0
}

/// The options a file of the corpus was made with, by the last part of its name.
fn options(part: &str) -> Option<DumpOptions> {
    let verbose = DumpOptions { verbose: true, ..DumpOptions::default() };
    Some(match part {
        "dump" | "trim-frames2-4.dump" => DumpOptions::default(),
        "dump-v" => verbose,
        "dump-v-threads" => DumpOptions { has_threads: true, ..verbose },
        "dump-nomultiline" => DumpOptions { has_lines: false, ..DumpOptions::default() },
        "dump-threads-nonos-noargs-nomultiline" => DumpOptions {
            has_threads: true,
            has_numbers: false,
            has_argument_names: false,
            has_lines: false,
            ..DumpOptions::default()
        },
        "dump-calls-frame" => DumpOptions { calls: set("frame"), ..verbose },
        "dump-calls-mixed" => DumpOptions { calls: set("draw,0-9/3,*/rendertarget"), ..verbose },
        "dump-color-head60" => DumpOptions { has_color: true, ..DumpOptions::default() },
        "dump-grep" => DumpOptions {
            grep: Some(Box::new(|name: &[u8]| name.starts_with(b"glClear") || name.starts_with(b"glDraw"))),
            ..DumpOptions::default()
        },
        _ => return None,
    })
}

fn first_lines(text: &[u8], count: usize) -> &[u8] {
    let end = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').nth(count - 1);
    end.map_or(text, |(at, _)| &text[..=at])
}

fn assert_same(found: &[u8], expected: &[u8], what: &str) {
    let at = found.iter().zip(expected).position(|(a, b)| a != b);
    let at = at.unwrap_or(found.len().min(expected.len()));
    let near = |bytes: &[u8]| {
        String::from_utf8_lossy(&bytes[at.saturating_sub(60).min(bytes.len())..(at + 60).min(bytes.len())]).into_owned()
    };
    assert!(found == expected, "{what}: differs at {at}:\n{}\nfor\n{}", near(found), near(expected));
}

/// Compares one file of expected text, with and without other threads. Returns false for files of another kind.
fn compare(trace: &Path, expected: &Path, part: &str) -> bool {
    let Some(mut options) = options(part) else { return false };
    // Files that show the output of other tools show all calls.
    options.verbose |= expected.parent().is_some_and(|folder| folder.ends_with("tools"));
    let bytes = std::fs::read(trace).unwrap();
    let wanted = std::fs::read(expected).unwrap();
    for workers in [0, 1, 3] {
        options.workers = workers;
        let mut found = text(&bytes, &options);
        if part.ends_with("head60") {
            found = first_lines(&found, 60).to_vec();
        }
        assert_same(&found, &wanted, &expected.display().to_string());
    }
    true
}

#[test]
fn samples_print_as_apitrace_prints_them() {
    let peer = corpus().join("peer");
    let mut compared = 0;
    for entry in std::fs::read_dir(&peer).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((sample, part)) = name.strip_suffix(".txt").and_then(|name| name.split_once('.')) else { continue };
        let trace = corpus().join(format!("{sample}.trace"));
        let trace = if trace.exists() { trace } else { peer.join(format!("{sample}.trace")) };
        compared += u32::from(compare(&trace, &path, part));
    }
    assert!(compared >= 40, "{compared}");
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

#[test]
fn the_entire_corpus_prints_as_in_apitrace() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let mut found = Vec::new();
    files(&root, &mut found);
    found.sort();
    let mut compared = 0;
    for path in found.iter().filter(|path| !path.starts_with(root.join("broken"))) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let folder = path.parent().unwrap();
        let Some(stem) = name.strip_suffix(".txt").filter(|stem| stem.contains("dump")) else { continue };
        let of_program = folder.join(format!("{}.trace", folder.file_name().unwrap().to_str().unwrap()));
        let (trace, part) = match stem.split_once('.') {
            // The peer's own trim damages traces with backtraces.
            Some((_, part)) if part.starts_with("trim") => continue,
            Some((sample, part)) => (folder.join(format!("{sample}.trace")), part),
            None => (of_program, stem),
        };
        if trace.exists() {
            compared += u32::from(compare(&trace, path, part));
        }
    }
    assert!(compared > 150, "{compared}");
}

#[test]
fn hidden_calls_are_hidden_as_apitrace_hides_them() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let bytes = std::fs::read(root.join("all-known-functions.trace")).unwrap();
    let expected = std::fs::read(root.join("all-known-functions.dump-default.txt")).unwrap();
    assert_same(&text(&bytes, &DumpOptions::default()), &expected, "all known functions");
}

/// Damaged traces: everything that apitrace prints before the damage, and more.
#[test]
fn damaged_traces_print_all_that_apitrace_prints() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let mut found = Vec::new();
    files(&root.join("broken"), &mut found);
    let mut compared = 0;
    for path in found.iter().filter(|path| path.to_str().unwrap().ends_with(".dump.txt")) {
        let trace = path.to_str().unwrap().replace(".dump.txt", ".trace");
        if trace.contains("rawtrunc_30") || trace.contains("trunc_20.") {
            // Cut inside a property: apitrace prints what was in its memory.
            continue;
        }
        let expected = std::fs::read(path).unwrap();
        let input = Input::from_bytes("x.trace", std::fs::read(&trace).unwrap());
        let (found, damage) = from(input, &DumpOptions { verbose: true, ..DumpOptions::default() });
        let found = String::from_utf8_lossy(&found).into_owned();
        let mut lines = found.lines();
        for line in String::from_utf8_lossy(&expected).lines().filter(|line| !line.ends_with("// incomplete")) {
            assert!(lines.any(|ours| ours == line), "{trace}: {line} is missing");
        }
        let is_undamaged =
            ["varint12", "deepnest", "bitmask_zero", "gzip_trunc"].iter().any(|name| trace.contains(name));
        let errors = damage.0.iter().filter(|one| one.severity == Severity::Error).count();
        assert!(is_undamaged || errors > 0, "{trace}");
        compared += 1;
    }
    assert!(compared >= 8, "{compared}");
}

#[test]
fn call_sets_select_what_apitrace_selects() {
    let peer = corpus().join("peer");
    let bytes = std::fs::read(peer.join("callflags.trace")).unwrap();
    let examples = std::fs::read_to_string(peer.join("callset-examples.txt")).unwrap();
    let mut compared = 0;
    for example in examples.split("### --calls='").skip(1) {
        let (calls, rest) = example.split_once("'\n").unwrap();
        let (expected, end) = rest.rsplit_once("rc=").unwrap();
        if end.trim() != "0" || calls == "draw/2" {
            continue;
        }
        let options = DumpOptions { verbose: true, calls: set(calls), ..DumpOptions::default() };
        assert_same(&text(&bytes, &options), expected.as_bytes(), calls);
        compared += 1;
    }
    assert!(compared >= 14, "{compared}");
}

#[test]
fn reading_ends_after_the_set_and_reports_open_calls() {
    // Call 0 is left after calls 1 to 4.
    let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00".to_vec();
    for call in 1..5 {
        bytes.extend([0, 0, 0, 0, 1, call, 0]);
    }
    bytes.extend([1, 0, 0]);
    let dumped = |calls: &str| {
        let options = DumpOptions { calls: set(calls), ..DumpOptions::default() };
        let (text, damage) = from(Input::from_bytes("x.trace", bytes.clone()), &options);
        (String::from_utf8(text).unwrap(), damage.0.iter().map(|one| one.code()).collect::<Vec<_>>())
    };
    // As apitrace 11.1 does on these bytes.
    assert_eq!(dumped("*"), ("1 f()\n2 f()\n3 f()\n4 f()\n0 f()\n".to_owned(), vec![]));
    assert_eq!(dumped("0,2"), ("2 f()\n".to_owned(), vec!["apitrace/late-call"]));
    assert_eq!(dumped("1"), ("1 f()\n".to_owned(), vec![]));
    assert_eq!(dumped("10-5"), (String::new(), vec![]));
}

#[test]
fn strings_for_c_read_back() {
    let bytes = std::fs::read(corpus().join("allvals_v6.trace")).unwrap();
    let found = text(&bytes, &DumpOptions { escape: Escape::C, ..DumpOptions::default() });
    let found = String::from_utf8(found).unwrap();
    for line in [
        "// utf8 = \"caf\\303\\251\"",
        "57 glTake(a = \"line1\\nline2\")",
        "58 glTake(a = \"cr\\r\\nlf\")",
        "59 glTake(a = \"\\001\\007\\037\\177\")",
    ] {
        assert!(found.lines().any(|ours| ours == line), "{line}");
    }
}

#[test]
fn blobs_go_to_whoever_takes_them() {
    let bytes = std::fs::read(corpus().join("allvals_v6.trace")).unwrap();
    let mut taken = Vec::new();
    let mut take = |name: &str, content: &[u8]| {
        taken.push((name.to_owned(), content.len()));
        Ok(())
    };
    let mut out = Vec::new();
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes), &OpenOptions::default()).unwrap();
    dump(&mut reader, &DumpOptions::default(), &mut out, Some(&mut take), &mut Collect::default()).unwrap();
    assert!(taken.contains(&("blob_call64.bin".to_owned(), 256)), "{taken:?}");
    assert!(String::from_utf8_lossy(&out).contains("64 glTake(a = blob(\"blob_call64.bin\"))"));
}

/// An event with a string and a blob that come in several pieces.
#[test]
fn long_values_print_completely_and_blobs_by_their_size() {
    let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x02\x01a\x01b\x01\x00\x07\xc0\x84\x3d".to_vec();
    bytes.extend(vec![b'x'; 1_000_000]);
    bytes.extend(b"\x01\x01\x08\xc0\x84\x3d");
    bytes.extend(vec![0; 1_000_000]);
    bytes.extend(b"\x00\x01\x00\x00");
    for input in [Input::from_bytes("x.trace", bytes.clone()), dripping("x.trace", &bytes, 4096)] {
        let (text, damage) = from(input, &DumpOptions::default());
        assert!(damage.0.is_empty());
        assert_eq!(text.len(), "0 f(a = \"\", b = blob(1000000))\n".len() + 1_000_000);
        assert!(text.ends_with(b"xx\", b = blob(1000000))\n"));
    }
}

#[test]
fn a_value_beyond_the_limit_is_left_out_and_said_to_be() {
    let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x02\x01a\x01b\x01\x00\x07\xc0\x84\x3d".to_vec();
    bytes.extend(vec![b'x'; 1_000_000]);
    bytes.extend(b"\x01\x01\x04\x05\x00\x01\x00\x00");
    let limits = anytrace_core::Limits::default().with_record_bytes_max(100_000);
    let options = OpenOptions { limits, ..OpenOptions::default() };
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes), &options).unwrap();
    let (mut out, mut damage) = (Vec::new(), Collect::default());
    dump(&mut reader, &DumpOptions::default(), &mut out, None, &mut damage).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), "0 f(a = ?, b = 5)\n");
    assert_eq!(damage.0.iter().map(|one| one.code()).collect::<Vec<_>>(), ["apitrace/value-limit"]);
}

#[test]
fn windows_of_any_size_give_the_same_text() {
    for name in ["allvals_v0", "allvals_v2", "allvals_v6", "interleave", "nested", "upstream_incomplete-call"] {
        let bytes = std::fs::read(corpus().join(format!("{name}.trace"))).unwrap();
        let options = DumpOptions { verbose: true, has_threads: true, ..DumpOptions::default() };
        let entire = text(&bytes, &options);
        for at_once in [1, 7, 4096] {
            assert_same(&from(dripping("x.trace", &bytes, at_once), &options).0, &entire, name);
        }
    }
}

#[test]
fn any_cut_or_changed_byte_ends_well() {
    for name in ["allvals_v6", "allvals_v2", "interleave", "threads"] {
        let bytes = std::fs::read(corpus().join(format!("{name}.trace"))).unwrap();
        let step = (bytes.len() / 400).max(1);
        let entire = text(&bytes, &DumpOptions::default());
        for at in (0..bytes.len()).step_by(step) {
            let cut = text(&bytes[..at], &DumpOptions::default());
            assert!(cut.len() <= entire.len() + 400 * 20, "{name} cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let alone = text(&changed, &DumpOptions::default());
            let helped = text(&changed, &DumpOptions { workers: 2, ..DumpOptions::default() });
            assert_same(&helped, &alone, &format!("{name} changed at {at}"));
        }
    }
}
