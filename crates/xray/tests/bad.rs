//! Must-fail files: one for each code, in `corpus/bad/CODE--WHAT.xray`, written once by the builder (`UPDATE_GOLDENS=1`).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anytrace_core::testing::{assert_repairs, examine};
use anytrace_core::{Confidence, Format, Input, Severity};
use anytrace_xray::Xray;

mod common;
use common::made::{Made, v5, with_buffer, yaml};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/bad")
}

fn basic() -> Made {
    Made::header(3, 0, 0)
}

/// Labels a place where no part begins.
fn at(made: Made, offset: usize) -> Made {
    let mut made = made;
    made.labels.insert("here", offset);
    made
}

fn cut(made: Made, length: usize) -> Made {
    let mut made = made;
    made.bytes.truncate(length);
    made
}

/// Code, defect, and file; the label "here" marks where the code must be reported.
fn framing() -> Vec<(&'static str, &'static str, Made)> {
    let body = || v5().extents(96).preamble(3, 100).label("here");
    vec![
        ("header-truncated", "8-bytes", Made::default().label("here").raw(&[5, 0, 1, 0, 3, 0, 0, 0])),
        ("unknown-type", "type-2", at(Made::header(5, 2, 0).extents(0).thread(1), 2)),
        ("unknown-version", "version-6", at(with_buffer(Made::header(6, 1, 0)), 0)),
        ("truncated", "in-a-function-record", at(cut(with_buffer(v5()), 123), 120)),
        ("unknown-metadata-kind", "kind-10", body().meta(10, |made| made).pair()),
        ("unknown-function-kind", "kind-7", v5().extents(88).preamble(3, 100).label("here").function(7, 1, 1).pair()),
        ("event-size", "size-0", body().custom(0, b"").pair()),
        ("event-too-long", "size-20000000", {
            let made = v5().extents(64 + 16 + 20_000_000 + 16).preamble(3, 100).label("here");
            made.custom(20_000_000, b"and no more")
        }),
        ("record-cut-by-extents", "in-a-typed-event", {
            let made = v5().extents(79).preamble(3, 100).label("here");
            with_buffer(made.raw(&[0x11, 7, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0]))
        }),
        ("extents-too-short", "between-records", {
            with_buffer(v5().extents(64).preamble(3, 100).label("here").pair())
        }),
        (
            "extents-too-long",
            "over-the-next-buffer",
            with_buffer(v5().extents(200).preamble(3, 100).pair().label("here")),
        ),
        ("extents-inside-buffer", "no-buffer-behind", body().extents(5).pair()),
        ("extents-missing", "second-buffer", with_buffer(v5()).label("here").preamble(4, 100).pair()),
        (
            "end-of-buffer-not-in-version",
            "version-5",
            v5().extents(96).preamble(3, 100).pair().label("here").end_of_buffer(),
        ),
        ("end-of-buffer-missing", "version-1", Made::header(1, 1, 64).thread(3).wall().cpu(100).pair().label("here")),
        ("empty-extents", "twice", with_buffer(v5().label("here").extents(0))),
        ("padding", "40-zeros", with_buffer(with_buffer(v5()).label("here").raw(&[0; 40]))),
        ("gap", "text", with_buffer(with_buffer(v5()).label("here").raw(b"what is this?"))),
        (
            "false-introducer",
            "without-buffer",
            with_buffer(with_buffer(v5()).label("here").extents(8).function(1, 9, 1)),
        ),
        ("unknown-basic-record", "type-514", basic().basic(0, 1, 5).label("here").raw(&[2; 32]).basic(1, 1, 9)),
        ("argument-without-function", "other-thread", {
            basic().basic(3, 1, 5).label("here").basic_argument(1, 9, 5, 7).basic(1, 1, 9)
        }),
    ]
}

fn meaning() -> Vec<(&'static str, &'static str, Made)> {
    vec![
        ("bad-transition", "function-behind-wall-time", {
            v5().extents(48).thread(3).wall().label("here").function(0, 1, 1).function(1, 1, 1)
        }),
        ("bad-buffer-end", "behind-wall-time", v5().extents(32).thread(3).wall().label("here")),
        ("kind-not-in-version", "pid-in-2", {
            Made::header(2, 1, 0).extents(80).thread(3).wall().label("here").pid(4).cpu(100).pair()
        }),
        ("argument-after-exit", "fdr", v5().extents(96).preamble(3, 100).pair().label("here").argument()),
        (
            "function-id-zero",
            "pair",
            v5().extents(80).preamble(3, 100).label("here").function(0, 0, 1).function(1, 0, 2),
        ),
        ("tsc-backwards", "new-cpu-id", v5().extents(96).preamble(3, 100).pair().label("here").cpu(50)),
        ("buffer-order", "second-earlier", {
            let made = v5().extents(80).preamble(3, 1000).pair().extents(80).thread(3).wall().pid(9).label("here");
            made.cpu(100).pair()
        }),
        ("pid-changed", "9-and-10", with_buffer(v5()).extents(64).thread(3).wall().label("here").pid(10).cpu(500)),
        ("orphan-exit", "first-record", v5().extents(72).preamble(3, 100).label("here").function(1, 1, 1)),
        ("missing-exit", "last-record", v5().extents(72).preamble(3, 100).function(0, 1, 1).label("here")),
        ("yaml-syntax", "no-colon", at(yaml("  - { kind function-enter }\n"), 112)),
        ("yaml-field", "no-tsc", yaml("  - { kind: function-enter, thread: 1 }\n")),
        ("yaml-unknown-field", "colour", {
            let pair = "  - { kind: function-enter, thread: 1, tsc: 5, colour: red }\n  - { kind: function-exit, thread: 1, tsc: 6 }\n";
            yaml(pair)
        }),
    ]
}

/// These need more than a small file: threads above the limit; arguments above it, in conversions only; long streams.
const WITHOUT_FILE: [&str; 5] = [
    "xray/threads-not-tracked",
    "xray/arguments-too-many",
    "xray/stream-order",
    "xray/stream-time",
    "xray/stream-held",
];

#[test]
fn each_must_fail_file_has_its_code_where_it_is_broken() {
    for (code, what, made) in framing().into_iter().chain(meaning()) {
        let path = folder().join(format!("{code}--{what}.xray"));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &made.bytes).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes == made.bytes, "{code}: the file is not what the builder makes");
        let exam = examine(&Xray, &bytes);
        let code = format!("xray/{code}");
        let all: Vec<_> = exam.check.iter().map(|d| (d.code(), d.offset)).collect();
        let rule = Xray.rules().iter().find(|rule| rule.code == code).unwrap();
        let here = made.labels["here"] as u64;
        assert_eq!(all.iter().filter(|found| **found == (rule.code, here)).count(), 1, "{code} at {here}: {all:?}");
        // No other error is reported: the file is broken in one way.
        let errors = exam.error_codes();
        let is_error = rule.severity == Severity::Error;
        // An event above the limit does not fit into a small file: the file ends inside it.
        let is_own =
            |error: &&str| **error == *rule.code || (rule.code.ends_with("too-long") && **error == *"xray/truncated");
        assert!(errors.iter().all(is_own), "{code}: {errors:?}");
        assert_eq!(!errors.is_empty(), is_error, "{code}");
        assert_repairs(&Xray, &bytes, &code);
    }
}

#[test]
fn every_code_has_a_must_fail_file_and_every_file_a_code() {
    let made: BTreeSet<String> = framing().iter().chain(&meaning()).map(|(code, ..)| format!("xray/{code}")).collect();
    for rule in Xray.rules().iter().filter(|rule| !WITHOUT_FILE.contains(&rule.code)) {
        assert!(made.contains(rule.code), "{} has no file", rule.code);
    }
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let (code, _) = name.split_once("--").unwrap();
        assert!(made.contains(&format!("xray/{code}")), "{name}");
    }
}

#[test]
fn every_must_fail_file_but_a_foreign_one_is_recognized() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        // The file name is no hint here: only the content.
        let input = Input::from_bytes("upload", std::fs::read(&path).unwrap());
        assert!(Xray.probe(&input.head()) >= Confidence::Likely, "{}", path.display());
    }
}

#[test]
fn a_damaged_first_record_does_not_hide_a_basic_trace() {
    let damaged: [fn(&mut Vec<u8>); 4] =
        [|bytes| bytes[35] = 4, |bytes| bytes[32] = 2, |bytes| bytes[32..64].fill(0xff), |bytes| bytes.truncate(40)];
    for version in 1..=3 {
        for big in [false, true] {
            for damage in damaged {
                let mut bytes = Made::header_in(big, version, 0, 0).basic(0, 1, 5).bytes;
                damage(&mut bytes);
                let input = Input::from_bytes("upload", bytes);
                assert!(Xray.probe(&input.head()) >= Confidence::Likely, "version {version} big {big}");
            }
        }
    }
}

#[test]
fn a_damaged_first_record_does_not_hide_an_fdr_trace() {
    for version in 1..=5 {
        for first in [0_u8, 0x1f, 0xff, b'x'] {
            let mut bytes = common::made::fdr(version, false, common::made::Content::Plain).bytes;
            bytes[32] = first;
            let input = Input::from_bytes("upload", bytes);
            assert!(Xray.probe(&input.head()) >= Confidence::Likely, "version {version}, first byte {first}");
        }
    }
}

#[test]
fn small_numbers_alone_are_no_basic_trace() {
    for bytes in [vec![0; 200], [3, 0, 0, 0, 9, 9, 9, 9].repeat(20), vec![2; 99]] {
        let input = Input::from_bytes("upload", bytes);
        assert!(Xray.probe(&input.head()) < Confidence::Likely);
    }
    let input = Input::from_bytes("upload", [1, 0, 0, 0].repeat(50));
    assert!(Xray.probe(&input.head()) < Confidence::Certain);
}

#[test]
fn a_name_decides_where_the_content_is_too_short_to() {
    for (name, expected) in [("trace.xray", Confidence::Likely), ("upload", Confidence::Maybe)] {
        let input = Input::from_bytes(name, vec![5, 0, 1]);
        assert_eq!(Xray.probe(&input.head()), expected, "{name}");
    }
    let input = Input::from_bytes("trace.xray", b"It was a dark and stormy night.".to_vec());
    assert_eq!(Xray.probe(&input.head()), Confidence::Maybe);
}
