//! Parts of traces are traces.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use anytrace_apitrace::Apitrace;
use anytrace_core::testing::{examine, rewrite};
use anytrace_core::{Plan, Selection, Settings, TargetOptions, TimeBound};
use build::rich;

fn trim(bytes: &[u8], selection: Selection) -> Vec<u8> {
    let (part, _, sink) = rewrite(&Apitrace, bytes, &Plan::Trim(selection, TargetOptions::default())).unwrap();
    assert_eq!(sink.errors(), 0);
    assert!(examine(&Apitrace, &part).errors().is_empty());
    part
}

/// Lines of the dump without offset and event number.
fn lines(bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8(examine(&Apitrace, bytes).text).unwrap();
    text.lines().map(|line| line.splitn(3, ' ').nth(2).unwrap().to_owned()).collect()
}

#[test]
fn a_frame_keeps_its_calls_and_the_definitions_they_need() {
    let bytes = rich().bytes;
    let part = trim(&bytes, Selection { own: Settings::default().with("frames", 1..2), ..Selection::default() });
    assert_eq!(
        lines(&part),
        [
            "enter @0 0 glFirst(c = A) backtrace [m :12, +0x3]",
            "leave @0 0 glFirst(b = repr(\"h\" / 5)) = -1",
            "enter @7 1 glSecond(s = L\"wĀ\")",
            "leave @7 1 glSecond()",
            "enter @0 2 glXSwapBuffers(d = 0x0)",
            "leave @0 2 glXSwapBuffers()",
        ]
    );
}

#[test]
fn every_part_by_every_condition_passes_check() {
    let samples: [&[u8]; 4] = [
        &rich().bytes,
        include_bytes!("../corpus/allvals_v2.trace"),
        include_bytes!("../corpus/allvals_v6.trace"),
        include_bytes!("../corpus/threads.trace"),
    ];
    for bytes in samples {
        let entire = lines(bytes).len() as u64;
        for start in (0..entire).step_by(13) {
            let records = Some(start..start + 10);
            let part = trim(bytes, Selection { records, ..Selection::default() });
            assert!(lines(&part).len() <= 20);
        }
        for thread in 0..3 {
            let part = trim(bytes, Selection { threads: vec![thread], ..Selection::default() });
            assert!(lines(&part).iter().all(|line| line.contains(&format!("@{thread} "))));
        }
        let name: anytrace_core::NameMatch = Box::new(|name| name.starts_with(b"glX"));
        let part = trim(bytes, Selection { name: Some(name), ..Selection::default() });
        assert!(lines(&part).iter().all(|line| line.contains("glX")));
        assert_eq!(lines(&trim(bytes, Selection::default())), lines(bytes));
    }
}

#[test]
fn leaves_come_with_their_enters_and_calls_are_renumbered() {
    let bytes = rich().bytes;
    // Event 1 enters call 1 in thread 7; its leave is event 2, the leave of call 0 comes later.
    let part = trim(&bytes, Selection { records: Some(1..2), ..Selection::default() });
    let found = lines(&part);
    assert_eq!(found.len(), 2);
    assert!(found[0].starts_with("enter @7 0 glSecond") && found[1].starts_with("leave @7 0 glSecond"), "{found:?}");
}

#[test]
fn conditions_without_meaning_are_refused() {
    let bytes = rich().bytes;
    for selection in [
        Selection { time: Some((TimeBound::Open, TimeBound::Open)), ..Selection::default() },
        Selection { own: Settings::default().with("buffers", 0..1), ..Selection::default() },
    ] {
        let plan = Plan::Trim(selection, TargetOptions::default());
        assert_eq!(rewrite(&Apitrace, &bytes, &plan).err().unwrap().kind(), anytrace_core::Kind::Usage);
    }
}
