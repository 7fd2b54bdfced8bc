//! The programs in `examples/`, run on samples: what they print.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod traces;

use std::ffi::OsStr;

use anytrace_apitrace::{EventKind, Reader};
use anytrace_core::testing::example_prints;
use anytrace_core::{Input, InputOptions, OpenOptions, Step};

#[test]
fn records_prints_places_and_damage() {
    let (out, err) = example_prints("apitrace-records", &[traces::own("interleave")]);
    let expected = [
        "0 at byte 0x18: enter 0 glA by thread 0",
        "1 at byte 0x27: enter 1 glB by thread 1",
        "2 at byte 0x36: enter 2 glXSwapBuffers by thread 200",
    ];
    assert_eq!((out.lines().take(3).collect::<Vec<_>>(), err.as_str()), (expected.to_vec(), ""));
    let (out, err) = example_prints("apitrace-records", &[traces::own("bad/unknown-event--first-byte-changed")]);
    assert!(err.contains("[apitrace/unknown-event]") && !out.is_empty(), "{out}{err}");
}

/// Names of the calls entered, in order.
fn entered(path: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    let input = Input::open(path, InputOptions::default()).unwrap();
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    while let Some(step) = reader.next().unwrap() {
        let Step::Record(_, event) = step else { panic!("{step:?}") };
        if event.kind() == EventKind::Enter {
            names.push(String::from_utf8_lossy(event.function().unwrap().name()).into_owned());
        }
    }
    names
}

#[test]
fn filter_leaves_out_one_function_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let (source, copy) = (traces::own("peer/vbo"), folder.path().join("copy.trace"));
    let arguments = [source.as_os_str(), copy.as_os_str(), OsStr::new("glEnable")];
    assert_eq!(example_prints("apitrace-filter", &arguments), (String::new(), String::new()));
    let (before, after) = (entered(&source), entered(&copy));
    let kept: Vec<_> = before.iter().filter(|name| *name != "glEnable").cloned().collect();
    assert_eq!(after, kept);
    assert!(kept.len() < before.len());
}

#[test]
fn spans_prints_the_events_between_enter_and_leave() {
    let (out, err) = example_prints("apitrace-spans", &[traces::own("interleave")]);
    assert_eq!(err, "");
    for line in ["thread 0: glA 5", "thread 1: glB 2", "thread 200: glXSwapBuffers 2"] {
        assert!(out.lines().any(|found| found == line), "{out}");
    }
}

#[test]
fn calls_prints_each_thread_as_a_tree() {
    let (out, err) = example_prints("apitrace-calls", &[traces::own("interleave")]);
    assert_eq!(err, "");
    assert!(out.starts_with("thread 0\n  glA\n  glA\n"), "{out}");
}
