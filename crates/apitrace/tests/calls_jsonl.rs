//! Calls as JSON lines and back: nothing that the format's tools show is lost.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod peer;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::dump::{DumpOptions, Escape, dump};
use anytrace_apitrace::tools::from_jsonl::from_jsonl;
use anytrace_apitrace::tools::jsonl::{BlobForm, JsonlOptions, jsonl};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Error, Input, Limits, MemoryTarget, OpenOptions, Settings, TargetOptions};
use peer::Peer;
use serde_json::{Value, json};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn lines_with(bytes: &[u8], options: &JsonlOptions) -> String {
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut out = Vec::new();
    jsonl(&mut reader, options, &mut out, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

fn lines(bytes: &[u8]) -> String {
    lines_with(bytes, &JsonlOptions::default())
}

/// A separate file for each call.
struct Temporary(PathBuf);

impl Temporary {
    fn new(content: &[u8]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("anytrace-calls-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, content).unwrap();
        Self(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn back(text: &str) -> Result<Vec<u8>, Error> {
    let file = Temporary::new(text.as_bytes());
    let mut out = MemoryTarget::default();
    let target = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
    from_jsonl(&file.0, Limits::default(), &target, &mut out)?;
    Ok(out.0)
}

fn dumped(bytes: &[u8]) -> String {
    let options = DumpOptions { verbose: true, has_threads: true, escape: Escape::C, ..DumpOptions::default() };
    let mut reader = Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let mut out = Vec::new();
    dump(&mut reader, &options, &mut out, None, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

/// To lines and back: the same dump, and the same lines again.
fn round(bytes: &[u8], what: &str) {
    let there = lines(bytes);
    let trace = back(&there).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (before, after) = (dumped(bytes), dumped(&trace));
    for (ours, theirs) in after.lines().zip(before.lines()) {
        assert_eq!(ours, theirs, "{what}");
    }
    assert_eq!(after.len(), before.len(), "{what}");
    assert!(lines(&trace) == there, "{what}: other lines");
    let helped = JsonlOptions { workers: 3, ..JsonlOptions::default() };
    assert!(lines_with(bytes, &helped) == there, "{what}: other lines with other threads");
}

#[test]
fn samples_come_back_the_same() {
    let peer = ["callflags", "numbers", "oddities", "rnd105_v5_snappy"].map(|name| format!("peer/{name}"));
    let own = ["allvals_v0", "allvals_v2", "allvals_v6", "interleave", "leak", "many_open", "nested", "sparse_ids"];
    let own = own.iter().map(|name| (*name).to_owned()).chain(["threads".into(), "upstream_incomplete-call".into()]);
    for name in own.chain(peer) {
        round(&std::fs::read(corpus().join(format!("{name}.trace"))).unwrap(), &name);
    }
}

#[test]
fn the_entire_corpus_comes_back_the_same() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let mut compared = 0;
    for folder in std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()) {
        if !folder.is_dir() || folder.ends_with("broken") {
            continue;
        }
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            // Ten megabytes of text, or not a trace at all.
            let name = path.display().to_string();
            let is_other = ["glxinfo_gz", "future_v7", "empty_snappy"].iter().any(|other| name.contains(other));
            if name.ends_with(".trace") && !is_other {
                round(&std::fs::read(&path).unwrap(), &name);
                compared += 1;
            }
        }
    }
    assert!(compared >= 60, "{compared}");
}

/// What the installed apitrace prints of the trace that came back.
#[test]
fn the_installed_apitrace_dumps_alike() {
    let Some(peer) = Peer::installed() else { return };
    let shown = |path: &Path, verb: &[&str]| peer.run([verb, &[path.to_str().unwrap()]].concat()).stdout;
    for name in
        ["allvals_v1", "allvals_v6", "interleave", "many_open", "threads", "peer/rnd105_v5_snappy", "peer/numbers"]
    {
        let trace = corpus().join(format!("{name}.trace"));
        let file = Temporary::new(lines(&std::fs::read(&trace).unwrap()).as_bytes());
        let mut out = MemoryTarget::default();
        from_jsonl(&file.0, Limits::default(), &TargetOptions::default(), &mut out).unwrap();
        let made = Temporary::new(&out.0);
        for verb in [&["dump", "-v", "--thread-ids", "--color=never"][..], &["pickle"], &["pickle", "-s"]] {
            assert!(shown(&made.0, verb) == shown(&trace, verb), "{name}: {verb:?}");
        }
    }
}

#[test]
fn lines_say_what_pickles_say_and_more() {
    let bytes = std::fs::read(corpus().join("allvals_v6.trace")).unwrap();
    let text = lines(&bytes);
    let mut values = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let header = values.next().unwrap();
    assert_eq!((&header["anytrace"], &header["version"]), (&json!("apitrace-calls"), &json!(1)));
    let calls: Vec<Value> = values.collect();
    let argument = |call: usize| &calls[call]["args"][0][1];
    assert_eq!(*argument(23), json!(0.1));
    assert_eq!(*argument(31), json!({"float": "inf"}));
    assert_eq!(*argument(39), json!({"double": 0.1}));
    assert_eq!(*argument(60)["hex"].as_str().unwrap(), *"80ffc3a9");
    assert_eq!(*argument(68), json!({"enum": "GL_TEXTURE_2D", "value": 3553}));
    assert_eq!(*argument(70), json!({"enum": null, "value": 99}));
    assert_eq!(*argument(77), json!({"bitmask": [["A_BIT", 1], ["B_BIT", 2]], "value": 7}));
    assert_eq!(argument(86)["struct"], json!([["x", 1], ["y", -2]]));
    assert_eq!(*argument(94), json!({"ptr": "0xdeadbeef"}));
    assert_eq!(calls[103]["args"], json!([["p", {"missing": true}], ["q", 22], ["r", {"missing": true}]]));
    assert_eq!(calls[105]["args"][1][1], json!({"blob": 3, "base64": "YWJj"}));
    assert_eq!((&calls[105]["flags"], &calls[107]["backtrace"].is_array()), (&json!(1), &true));
    let short = lines_with(&bytes, &JsonlOptions { blobs: BlobForm::Sha256, ..JsonlOptions::default() });
    assert!(short.contains("\"sha256\":\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\""));
}

const HEADER: &str = "{\"anytrace\":\"apitrace-calls\",\"version\":1}\n";

#[test]
fn lines_written_by_hand_make_a_trace() {
    let text = format!(
        "{HEADER}{}\n\n{}\n{}\n",
        r#"{"name":"glClear","args":[["mask",{"bitmask":[["GL_COLOR_BUFFER_BIT",16384]]}]]}"#,
        r#"{"thread":1,"name":"f","args":[["x",1.5],["y",-1],["z",{"ptr":"0x10"}]],"ret":"text"}"#,
        r#"{"no":9,"name":"g","incomplete":true,"backtrace":[{"function":"main","line":3}]}"#,
    );
    let expected = "0 @0 glClear(mask = GL_COLOR_BUFFER_BIT)\n1 @1 f(x = 1.5, y = -1, z = 0x10) = \"text\"\n\
                    2 @0 g() // incomplete\nBacktrace:\n?: main\n";
    assert_eq!(dumped(&back(&text).unwrap()), expected);
}

/// Calls of two threads, one of them left late, with a call between them removed.
#[test]
fn numbers_order_the_enters_and_lines_the_leaves() {
    let call = |number: u32, thread: u32| format!("{{\"no\":{number},\"thread\":{thread},\"name\":\"f{number}\"}}\n");
    let text = [HEADER.to_owned(), call(12, 0), call(15, 0), call(11, 1), call(16, 0), call(13, 1)].concat();
    let trace = back(&text).unwrap();
    assert_eq!(dumped(&trace), "1 @0 f12()\n3 @0 f15()\n0 @1 f11()\n4 @0 f16()\n2 @1 f13()\n");
}

#[test]
fn invalid_calls_are_reported_with_line_and_field() {
    for (line, message) in [
        ("[]", "line 2:1, record 1: a line is not a JSON object: expected an object, found another JSON value"),
        ("{\"no\":1}", "line 2:1, record 1: name: expected the name of a function, found nothing"),
        ("{\"name\":\"f\",\"args\":[7]}", "args: expected pairs of name and value, found 7"),
        ("{\"name\":\"f\",\"args\":[[\"x\",{\"blob\":3}]]}", "args: expected a blob with its content in base64"),
        ("{\"name\":\"f\",\"args\":[[\"x\",{\"blob\":3,\"base64\":\"!\"}]]}", "args: expected base64"),
        ("{\"name\":\"f\",\"ret\":{\"enum\":\"A\"}}", "ret: expected an enumeration with its value"),
        ("{\"name\":\"f\",\"ret\":{\"what\":1}}", "ret: expected a value of a known kind"),
        ("{\"name\":\"f\",\"no\":-1}", "no: expected an unsigned 64-bit number, found -1"),
    ] {
        let error = back(&format!("{HEADER}{line}\n")).unwrap_err();
        assert!(error.to_string().contains(message), "{line}: {error}");
    }
    let other = back("{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"apitrace\"}\n").unwrap_err();
    assert!(other.to_string().contains("which `anytrace convert` reads"), "{other}");
}

#[test]
fn a_line_of_millions_of_values_is_refused_before_it_takes_the_memory() {
    let values = "0,".repeat(2 << 20);
    let line = format!("{HEADER}{{\"no\":0,\"name\":\"f\",\"args\":[[\"a\",[{values}0]]]}}\n");
    assert!(back(&line).unwrap_err().to_string().contains("line 2 has more than 1048576 values"));
    let behind = format!("{HEADER}{{\"args\":[[\"a\",[{values}0]]],\"name\":\"f\",\"no\":0}}\n");
    assert!(back(&behind).unwrap_err().to_string().contains("line 2 has more than 1048576 values"));
}

#[test]
fn any_cut_or_changed_byte_gives_complete_lines() {
    for name in ["allvals_v6", "allvals_v2", "interleave", "threads"] {
        let bytes = std::fs::read(corpus().join(format!("{name}.trace"))).unwrap();
        for at in (0..bytes.len()).step_by((bytes.len() / 150).max(1)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            for bytes in [&bytes[..at], &changed] {
                let text = lines(bytes);
                text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
                // The lines that could be read make a trace with the same content.
                if !text.is_empty() {
                    assert_eq!(lines(&back(&text).unwrap()).lines().count(), text.lines().count(), "{name} at {at}");
                }
            }
        }
    }
}

/// Arbitrary lines give an error or a trace, and never a panic.
#[test]
fn changed_lines_end_well() {
    let text = lines(&std::fs::read(corpus().join("allvals_v6.trace")).unwrap()).into_bytes();
    for at in (0..text.len()).step_by(37) {
        let mut changed = text.clone();
        changed[at] = b"\"{}[],:0ex"[at % 10];
        if let Ok(text) = String::from_utf8(changed) {
            let _ = back(&text);
        }
    }
}
