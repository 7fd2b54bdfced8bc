//! Verbs with an index beside the trace, as a user runs them.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_anytrace")).current_dir(folder).args(arguments).output().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A folder with a trace of many chunks, `x.trace`.
fn folder() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("x.trace");
    std::fs::write(&trace, trace_of(4000)).unwrap();
    age(&trace, 100);
    (folder, trace)
}

/// Sets the time of a file so many seconds back.
fn age(path: &Path, seconds: u64) {
    let time = SystemTime::now() - Duration::from_secs(seconds);
    std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

fn leb(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

/// Calls `f(n = NUMBER)` with a frame's end every hundred, without a container: anything can be sought.
fn trace_of(calls: u64) -> Vec<u8> {
    let mut raw = b"\x06\x06\x01k\x01v\x00".to_vec();
    for call in 0..calls {
        let id = u8::from(call % 100 == 99);
        raw.extend([0, 0, id]);
        if call == 0 {
            raw.extend(b"\x01f\x01\x01n");
        }
        if call == 99 {
            raw.extend(b"\x0eglXSwapBuffers\x00");
        }
        if id == 0 {
            raw.extend([1, 0, 4]);
            raw.extend(leb(call));
        }
        raw.extend([0, 1]);
        raw.extend(leb(call));
        raw.push(0);
    }
    raw
}

#[test]
fn a_call_and_frames_come_out_the_same_with_the_index_that_lies_beside() {
    let (folder, _trace) = folder();
    let made = run(folder.path(), &["apitrace", "index", "--every", "1k", "x.trace"]);
    assert_eq!(made.status.code(), Some(0), "{}", stderr(&made));
    assert!(folder.path().join("x.trace.index").exists());
    for set in ["3000-3004", "3999", "3950-", "1-3", "4000"] {
        let calls = format!("--calls={set}");
        let with = run(folder.path(), &["apitrace", "dump", &calls, "x.trace"]);
        let without = run(folder.path(), &["apitrace", "dump", "--index=none", &calls, "x.trace"]);
        assert_eq!((with.status.code(), &with.stdout), (Some(0), &without.stdout), "{set}");
        assert_eq!(stderr(&with), "", "{set}");
    }
    for (arguments, index) in
        [("--frames=30-32", "auto"), ("--calls=3100-3105", "x.trace.index"), ("--frames=39-", "auto")]
    {
        let index = format!("--index={index}");
        let with = run(folder.path(), &["apitrace", "trim", arguments, &index, "--force", "-o", "a.trace", "x.trace"]);
        let none = ["apitrace", "trim", arguments, "--index=none", "--force", "-o", "b.trace", "x.trace"];
        assert_eq!((with.status.code(), stderr(&with)), (Some(0), String::new()), "{arguments}");
        assert_eq!(run(folder.path(), &none).status.code(), Some(0));
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert!(read("a.trace") == read("b.trace"), "{arguments}");
    }
}

#[test]
fn an_index_that_does_not_fit_is_reported_and_not_used() {
    let (folder, trace) = folder();
    run(folder.path(), &["apitrace", "index", "--every", "1k", "x.trace"]);
    let dump = || run(folder.path(), &["apitrace", "dump", "--calls=3000", "x.trace"]);
    let expected = dump().stdout;
    let show = || run(folder.path(), &["apitrace", "index", "--show", "x.trace"]);
    assert_eq!(show().status.code(), Some(0));
    // A number in the middle is another one, and the file has the time of today.
    let mut bytes = std::fs::read(&trace).unwrap();
    let at = bytes.len() / 3;
    let at = at + bytes[at..].windows(3).position(|three| three == [1, 0, 4]).unwrap() + 3;
    bytes[at] ^= 1;
    std::fs::write(&trace, &bytes).unwrap();
    let changed = dump();
    assert!(stderr(&changed).contains("note: x.trace: the index is not used: the trace has different contents"));
    assert_eq!((changed.status.code(), &changed.stdout), (Some(0), &expected));
    let shown = show();
    assert_eq!(shown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&shown.stdout).contains("does not fit: the trace has different contents"));
    // A longer one is reported whatever its time.
    bytes.extend([0, 0, 1, 0, 1]);
    bytes.extend(leb(4000));
    bytes.push(0);
    std::fs::write(&trace, &bytes).unwrap();
    age(&trace, 100);
    assert!(stderr(&dump()).contains("but the index expects"));
    std::fs::write(folder.path().join("x.trace.index"), b"something else").unwrap();
    let other = dump();
    assert!(stderr(&other).contains("not an index of an apitrace trace"));
    assert_eq!((other.status.code(), other.stdout), (Some(0), expected));
    assert_eq!(show().status.code(), Some(1));
}

#[test]
fn a_damaged_trace_is_indexed_up_to_its_damage_and_no_use_of_it_ends_well() {
    let (folder, trace) = folder();
    let bytes = std::fs::read(&trace).unwrap();
    std::fs::write(&trace, &bytes[..bytes.len() - 2]).unwrap();
    age(&trace, 100);
    let made = run(folder.path(), &["apitrace", "index", "--every", "1k", "x.trace"]);
    assert_eq!(made.status.code(), Some(1));
    assert!(stderr(&made).contains("apitrace/truncated-event"));
    let dump = run(folder.path(), &["apitrace", "dump", "--calls=3000", "x.trace"]);
    assert_eq!(String::from_utf8_lossy(&dump.stdout), "// k = \"v\"\n3000 f(n = 3000)\n");
    assert_eq!(dump.status.code(), Some(1));
    assert!(stderr(&dump).contains("apitrace/damaged-when-indexed"), "{}", stderr(&dump));
    let trim = run(folder.path(), &["apitrace", "trim", "--frames=20", "-o", "a.trace", "x.trace"]);
    assert_eq!(trim.status.code(), Some(1));
    assert_eq!(run(folder.path(), &["apitrace", "index", "--show", "x.trace"]).status.code(), Some(1));
}

#[test]
fn nothing_is_replaced_and_what_cannot_be_done_is_said() {
    let (folder, _trace) = folder();
    let code = |arguments: &[&str]| {
        let output = run(folder.path(), arguments);
        (output.status.code(), stderr(&output))
    };
    assert_eq!(code(&["apitrace", "index", "x.trace"]).0, Some(0));
    let (exit, message) = code(&["apitrace", "index", "x.trace"]);
    assert!(exit == Some(2) && message.contains("use --force to replace it"), "{message}");
    assert_eq!(code(&["apitrace", "index", "--force", "x.trace"]).0, Some(0));
    for arguments in [
        &["apitrace", "index", "-"][..],
        &["apitrace", "index", "none.trace"],
        &["apitrace", "index", "--every=0", "x.trace"],
        &["apitrace", "dump", "--calls=9", "--index=none.index", "x.trace"],
        &["apitrace", "dump", "--calls=9", "--index=", "x.trace"],
        &["apitrace", "index", "--show", "-o", "none.index", "x.trace"],
    ] {
        assert_eq!(code(arguments).0, Some(2), "{arguments:?}");
    }
    let (exit, message) = code(&["apitrace", "dump", "--calls=3000", "--no-mmap", "--index=x.trace.index", "x.trace"]);
    assert!(exit == Some(0) && message.contains("do not support seeking"), "{message}");
    std::fs::write(folder.path().join("empty.trace"), b"").unwrap();
    assert_eq!(code(&["apitrace", "index", "empty.trace"]).0, Some(1));
    std::fs::write(folder.path().join("new.trace"), [7, 0, 0]).unwrap();
    assert_eq!(code(&["apitrace", "index", "--input-format=apitrace", "new.trace"]).0, Some(1));
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}
