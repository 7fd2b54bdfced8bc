//! Differences of traces and of state dumps: the output of apitrace 11.1, and properties that hold for any input.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;

use std::path::{Path, PathBuf};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::diff::{DiffForm, DiffOptions, DiffTotals, LineForm, Source, diff};
use anytrace_apitrace::tools::diff_state::{StateOptions, diff_state, parse, write_text};
use anytrace_core::testing::shared_corpus;
use anytrace_core::{Collect, Input, OpenOptions};
use build::{Build, blob, string, uint};
use proptest::prelude::*;
use serde_json::Value;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn compare(a: &[u8], b: &[u8], options: &DiffOptions) -> (String, DiffTotals, usize) {
    let calls = [CallSet::default(), CallSet::default()];
    compare_some(a, b, options, calls)
}

fn compare_some(a: &[u8], b: &[u8], options: &DiffOptions, calls: [CallSet; 2]) -> (String, DiffTotals, usize) {
    let open = |bytes: &[u8]| Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default());
    let (open_a, open_b) = (|| open(a), || open(b));
    let (mut damage_a, mut damage_b) = (Collect::default(), Collect::default());
    let mut out = Vec::new();
    let (mut first, mut second) = (Source::new(&open_a, &mut damage_a), Source::new(&open_b, &mut damage_b));
    [first.calls, second.calls] = calls;
    let totals = diff(first, second, options, &mut out).unwrap();
    // The peer's forms contain the bytes of the trace unchanged.
    let is_peer_s = matches!(options.form, DiffForm::Python | DiffForm::Lines(_));
    let text = if is_peer_s { String::from_utf8_lossy(&out).into_owned() } else { String::from_utf8(out).unwrap() };
    (text, totals, damage_a.errors() + damage_b.errors())
}

fn peer(form: DiffForm, has_numbers: bool, hides_common: bool, width: usize) -> DiffOptions {
    DiffOptions { form, has_numbers, hides_common, width, ..DiffOptions::default() }
}

fn assert_same(found: &str, expected: &str, what: &str) {
    for (at, (x, y)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(x, y, "{what}: line {}", at + 1);
    }
    assert_eq!(found, expected, "{what}");
}

#[test]
fn an_edited_trace_differs_as_apitrace_says() {
    let folder = corpus().join("peer");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let (a, b) = (read("vbo.trace"), read("vbo-sed.trace"));
    for (name, options) in [
        ("vbo-vs-sed.python.txt", peer(DiffForm::Python, true, false, 80)),
        ("vbo-vs-sed.python-suppress.txt", peer(DiffForm::Python, false, true, 80)),
        ("vbo-vs-sed.diff.txt", peer(DiffForm::Lines(LineForm::Below), true, false, 80)),
        ("vbo-vs-sed.sdiff.txt", peer(DiffForm::Lines(LineForm::Beside), true, false, 160)),
    ] {
        let (text, totals, _) = compare(&a, &b, &options);
        assert_same(&text, &String::from_utf8(read(name)).unwrap(), name);
        assert!(!totals.is_equal());
    }
    let words = peer(DiffForm::Lines(LineForm::Words), false, true, 80);
    let (text, ..) = compare(&a, &b, &words);
    assert!(
        text.contains("[-glDrawElements(GL_TRIANGLES,-] {+glDrawElements(GL_LINES,+} 6, GL_UNSIGNED_SHORT, NULL)"),
        "{text}"
    );
}

#[test]
fn other_programs_differ_as_apitrace_says() {
    let Some(root) = shared_corpus("apitrace") else { return };
    let folder = root.join("tools");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let expected = String::from_utf8(read("imm-vs-varray.python.diff.txt")).unwrap();
    for has_numbers in [true, false] {
        let options = peer(DiffForm::Python, has_numbers, false, 80);
        let (text, ..) = compare(&read("imm.trace"), &read("varray.trace"), &options);
        if text.len() == expected.len() {
            return assert_same(&text, &expected, "imm and varray");
        }
    }
    panic!("neither with numbers nor without");
}

#[test]
fn states_differ_as_apitrace_says() {
    let folder = corpus().join("peer");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (a, b) = (read("fbo.state-81.json"), read("vbo.state-53.json"));
    for (name, ignores_added, keeps_images) in [
        ("fbo-vs-vbo.state.txt", false, false),
        ("fbo-vs-vbo.state-ignore-added.txt", true, false),
        ("fbo-vs-vbo.state-keep-images.txt", false, true),
    ] {
        let (a, b) = (parse(&a, keeps_images).unwrap(), parse(&b, keeps_images).unwrap());
        let mut out = Vec::new();
        write_text(&a, &b, StateOptions { ignores_added }, &mut out).unwrap();
        assert_same(&String::from_utf8(out).unwrap(), &read(name), name);
        assert!(!diff_state(&a, &b, StateOptions { ignores_added }).is_empty());
        assert!(diff_state(&a, &a, StateOptions { ignores_added }).is_empty());
    }
}

/// A call of one of four functions with one of a few values; occasionally one that ends a frame.
type Call = (u8, u8);

const NAMES: [&str; 4] = ["glA", "glB", "glC", "glXSwapBuffers"];

fn trace(calls: &[Call]) -> Vec<u8> {
    let mut build = Build::version(6);
    let mut known = [false; 4];
    for (number, (function, value)) in calls.iter().enumerate() {
        let id = u64::from(*function);
        if std::mem::replace(&mut known[usize::from(*function)], true) {
            build.enter(0, id);
        } else {
            build.enter_new(0, id, NAMES[usize::from(*function)], &["x", "y"]);
        }
        build.argument(0, &uint(u64::from(*value))).argument(1, &string("same")).end();
        build.leave(number as u64).end();
    }
    build.bytes
}

fn shown((function, value): Call) -> String {
    format!("{}(x = {value}, y = \"same\")", NAMES[usize::from(function)])
}

/// Makes the second trace's calls from the first's and the differences.
fn patched(a: &[Call], differences: &Value) -> Vec<String> {
    let mut calls: Vec<Option<String>> = a.iter().map(|call| Some(shown(*call))).collect();
    let mut added = Vec::new();
    for one in differences["differences"].as_array().unwrap() {
        let at = |side: &str| usize::try_from(one[side].as_u64().unwrap()).unwrap();
        match one["op"].as_str().unwrap() {
            "removed" => {
                assert_eq!(calls[at("a")].take().as_deref(), one["call"].as_str());
            }
            "added" => added.push((at("b"), one["call"].as_str().unwrap().to_owned())),
            "changed" => {
                let [argument] = one["arguments"].as_array().unwrap().as_slice() else { panic!("{one}") };
                let old = format!("x = {}", argument["old"].as_str().unwrap());
                let call = calls[at("a")].as_mut().unwrap();
                assert!(call.contains(&old), "{call} {one}");
                *call = call.replace(&old, &format!("x = {}", argument["new"].as_str().unwrap()));
            }
            other => panic!("{other}"),
        }
    }
    let mut calls: Vec<String> = calls.into_iter().flatten().collect();
    for (at, call) in added {
        calls.insert(at, call);
    }
    calls
}

fn json(a: &[Call], b: &[Call]) -> (Value, DiffTotals) {
    let options = DiffOptions { form: DiffForm::Json, ..DiffOptions::default() };
    let (text, totals, _) = compare(&trace(a), &trace(b), &options);
    (serde_json::from_str(&text).unwrap(), totals)
}

/// The minimum number of calls removed and added, computed in the slow obvious way.
fn fewest(a: &[Call], b: &[Call]) -> usize {
    let mut common = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..a.len() {
        for j in 0..b.len() {
            common[i + 1][j + 1] = if a[i] == b[j] { common[i][j] + 1 } else { common[i][j + 1].max(common[i + 1][j]) };
        }
    }
    a.len() + b.len() - 2 * common[a.len()][b.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_differences_make_the_second_trace_of_the_first(
        a in proptest::collection::vec((0_u8..4, 0_u8..3), 0..60),
        b in proptest::collection::vec((0_u8..4, 0_u8..3), 0..60),
    ) {
        let (value, totals) = json(&a, &b);
        let expected: Vec<String> = b.iter().map(|call| shown(*call)).collect();
        prop_assert_eq!(patched(&a, &value), expected);
        prop_assert_eq!(totals.same + totals.removed + totals.changed, a.len() as u64);
        prop_assert_eq!(totals.same + totals.added + totals.changed, b.len() as u64);
        prop_assert_eq!(totals.is_equal(), a == b);
        prop_assert!((totals.removed + totals.added + totals.changed * 2) as usize >= fewest(&a, &b));
    }

    #[test]
    fn an_edit_is_found_and_nothing_else(
        a in proptest::collection::vec((0_u8..4, 0_u8..255), 20..200),
        at in 0_usize..20,
    ) {
        let mut b = a.clone();
        b[at].1 ^= 1;
        let (value, totals) = json(&a, &b);
        let expected: Vec<String> = b.iter().map(|call| shown(*call)).collect();
        prop_assert_eq!(patched(&a, &value), expected);
        prop_assert_eq!((totals.changed, totals.removed, totals.added), (1, 0, 0));
    }

    #[test]
    fn every_form_of_random_traces_counts_the_same_lines(
        a in proptest::collection::vec((0_u8..4, 0_u8..3), 0..40),
        b in proptest::collection::vec((0_u8..4, 0_u8..3), 0..40),
    ) {
        let below = |a: &[Call], b: &[Call]| {
            let options = peer(DiffForm::Lines(LineForm::Below), false, false, 80);
            compare(&trace(a), &trace(b), &options).0
        };
        // Lines without their signs are the dump of one side or of the other.
        let text = below(&a, &b);
        let side = |sign: &str| {
            let lines = text.lines().filter(|line| !line.starts_with(sign)).map(|line| line.get(2..).unwrap().to_owned());
            lines.collect::<Vec<_>>()
        };
        let dump = |calls: &[Call]| below(calls, calls).lines().map(|line| line.get(2..).unwrap().to_owned()).collect::<Vec<_>>();
        prop_assert_eq!(side("+ "), dump(&a));
        prop_assert_eq!(side("- "), dump(&b));
        let changed = text.lines().filter(|line| !line.starts_with("  ")).count();
        let lines = |calls: &[Call]| calls.len() + calls.iter().filter(|call| call.0 == 3).count();
        prop_assert!(changed <= lines(&a) + lines(&b));
    }
}

/// Frames of this many calls, all of them different.
fn frames(count: usize, calls: usize) -> Vec<Vec<Call>> {
    let frame = |n: usize| {
        let draws = (0..calls).map(move |at| (((n * 7 + at) % 3) as u8, ((n * 31 + at * 17) % 251) as u8));
        draws.chain([(3, 0)]).collect()
    };
    (0..count).map(frame).collect()
}

#[test]
fn a_frame_put_in_moves_no_other_however_long_it_is() {
    let a = frames(12, 3000);
    let mut b = a.clone();
    b.insert(5, (0..6000).map(|at| (0, (at % 250) as u8)).chain([(3, 9)]).collect());
    let (value, totals) = json(&a.concat(), &b.concat());
    assert_eq!((totals.removed, totals.added, totals.changed), (0, 6001, 0));
    assert_eq!(totals.frames, [12, 0, 1, 0]);
    assert_eq!(value["differences"][0]["frame_b"], 5);
    let (value, totals) = json(&b.concat(), &a.concat());
    assert_eq!((totals.removed, totals.frames), (6001, [12, 1, 0, 0]));
    assert_eq!(value["differences"][0]["frame_a"], 5);
}

#[test]
fn long_traces_in_the_peer_s_forms_are_aligned_by_frames() {
    let a = frames(10, 2500);
    let mut b = a.clone();
    b.remove(4);
    b[7][1200].1 ^= 1;
    let (a, b) = (trace(&a.concat()), trace(&b.concat()));
    let (text, totals, _) = compare(&a, &b, &peer(DiffForm::Python, false, true, 80));
    assert_eq!((totals.removed, totals.added, totals.changed), (2501, 0, 1));
    assert_eq!(text.lines().filter(|line| line.starts_with("- ")).count(), 2501);
    assert_eq!(text.lines().filter(|line| line.starts_with("| ") && line.contains(" -> ")).count(), 1);
    let (text, ..) = compare(&a, &b, &peer(DiffForm::Lines(LineForm::Below), false, true, 80));
    // The empty line after the removed frame is removed too.
    assert_eq!(text.lines().filter(|line| line.starts_with("- ")).count(), 2501 + 1 + 1);
    assert_eq!(text.lines().filter(|line| line.starts_with("+ ")).count(), 1);
}

fn one(value: &[u8], pointer: u64) -> Vec<u8> {
    let mut build = Build::version(6);
    build.enter_new(0, 1, "glF", &["v", "p"]).argument(0, value).argument(1, &pointed(pointer)).end();
    build.leave(0).end().enter(0, 1).argument(1, &pointed(pointer)).end().leave(1).end();
    build.bytes
}

fn pointed(pointer: u64) -> Vec<u8> {
    [vec![13], build::leb(pointer)].concat()
}

#[test]
fn contents_of_blobs_count_whether_they_are_short_or_long() {
    for length in [3_usize, 100_000, 3_000_000] {
        let mut content = vec![7; length];
        let a = one(&blob(&content), 1);
        content[length - 1] = 8;
        let b = one(&blob(&content), 1);
        let (text, totals, errors) = compare(&a, &b, &DiffOptions::default());
        assert_eq!((totals.changed, totals.same, errors), (1, 1, 0), "{length}");
        assert!(text.contains(&format!("v = blob({length}) -> blob({length}) (other content), p = 0x1")), "{text}");
        assert!(compare(&a, &a, &DiffOptions::default()).1.is_equal());
    }
}

#[test]
fn numbers_that_print_alike_are_distinguished() {
    let float = |value: f32| [vec![5], value.to_le_bytes().to_vec()].concat();
    let (a, b) = (one(&float(0.1), 1), one(&float(0.100_000_01), 1));
    let (text, ..) = compare(&a, &b, &DiffOptions::default());
    assert!(text.contains("v = 0.1 -> 0.10000001"), "{text}");
}

#[test]
fn pointers_that_differ_everywhere_alike_can_be_ignored() {
    let options = DiffOptions { ignores_pointers: true, ..DiffOptions::default() };
    let (a, b) = (one(&uint(1), 0x10), one(&uint(1), 0x20));
    assert_eq!(compare(&a, &b, &DiffOptions::default()).1.changed, 2);
    assert!(compare(&a, &b, &options).1.is_equal());
    // If two pointers of one trace are a single one in the other, the difference is reported where it shows.
    let two = |second: u64| {
        let mut build = Build::version(6);
        build.enter_new(0, 1, "glF", &["p"]).argument(0, &pointed(5)).end().leave(0).end();
        build.enter(0, 1).argument(0, &pointed(second)).end().leave(1).end();
        build.bytes
    };
    let (text, totals, _) = compare(&two(6), &two(5), &options);
    assert_eq!((totals.same, totals.changed), (1, 1));
    assert!(text.contains("| ") && text.contains("p = 0x6 -> 0x5"), "{text}");
}

#[test]
fn sets_of_calls_are_chosen_for_each_side() {
    let calls = frames(3, 4).concat();
    let bytes = trace(&calls);
    let set = |text: &str| CallSet::parse([text], &mut |_| unreachable!()).unwrap();
    let (_, totals, _) = compare_some(&bytes, &bytes, &DiffOptions::default(), [set("0-9"), set("0-11")]);
    assert_eq!((totals.same, totals.removed, totals.added), (10, 0, 2));
    let (_, totals, _) = compare_some(&bytes, &bytes, &DiffOptions::default(), [set("frame"), set("frame")]);
    assert_eq!((totals.same, totals.is_equal()), (3, true));
}

#[test]
fn damaged_traces_are_compared_as_far_as_they_go() {
    let entire = std::fs::read(corpus().join("allvals_v6.trace")).unwrap();
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(corpus().join("bad")).unwrap().map(|entry| entry.unwrap().path()).collect();
    if let Some(root) = shared_corpus("apitrace") {
        found.extend(std::fs::read_dir(root.join("broken")).unwrap().map(|entry| entry.unwrap().path()));
    }
    let forms = [DiffForm::Text, DiffForm::Json, DiffForm::Python, DiffForm::Lines(LineForm::Beside)];
    for path in found.iter().filter(|path| path.extension().is_some_and(|extension| extension == "trace")) {
        let bytes = std::fs::read(path).unwrap();
        for form in forms {
            let options = peer(form, true, false, 40);
            compare(&entire, &bytes, &options);
            assert!(compare(&bytes, &bytes, &DiffOptions { form: DiffForm::Text, ..options }).1.is_equal(), "{path:?}");
        }
    }
    for at in (0..entire.len()).step_by(11) {
        let mut bytes = entire.clone();
        bytes[at] ^= 1 << (at % 8);
        compare(&entire, &bytes, &DiffOptions::default());
        compare(&bytes[..at], &entire, &peer(DiffForm::Python, false, false, 80));
    }
}
