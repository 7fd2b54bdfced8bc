//! `apitrace trim`: what is selected, and that it stays as it was.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod peer;
mod traces;

use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dump::{DumpOptions, dump};
use anytrace_apitrace::tools::flags::{CallFlags, call_flags};
use anytrace_apitrace::tools::trim::{TrimOptions, trim};
use anytrace_apitrace::{Apitrace, Container, Reader};
use anytrace_core::testing::{dripping, examine, rewrite, shared_corpus};
use anytrace_core::{
    Collect, Input, Limits, MemoryTarget, OpenOptions, Outcome, Plan, Settings, Severity, TargetOptions,
};
use build::{Build, blob, enum_known, enum_new, leb, string, uint};
use peer::Peer;

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn set(text: &str) -> Option<CallSet> {
    Some(CallSet::parse([text], &mut |_| Err(std::io::Error::other("no files here"))).unwrap())
}

fn options(calls: &str, frames: &str, threads: &[u64]) -> TrimOptions {
    let set_of = |text: &str| if text.is_empty() { None } else { set(text) };
    TrimOptions { calls: set_of(calls), frames: set_of(frames), threads: threads.to_vec(), ..TrimOptions::default() }
}

fn trimmed(input: Input, options: &TrimOptions, open: &OpenOptions) -> (Vec<u8>, Outcome, Collect) {
    let (mut out, mut sink) = (MemoryTarget::default(), Collect::default());
    let outcome = trim(Reader::new(input, open).unwrap(), options, &mut out, &mut sink).unwrap();
    (out.0, outcome, sink)
}

fn part(bytes: &[u8], options: &TrimOptions) -> Vec<u8> {
    trimmed(input(bytes), options, &OpenOptions::default()).0
}

fn raw(bytes: &[u8]) -> Vec<u8> {
    let target = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
    rewrite(&Apitrace, bytes, &Plan::Convert(target)).unwrap().0
}

/// A line of the dump: number, thread, name, and the rest.
#[derive(Debug, Clone, PartialEq)]
struct Line(u64, u64, String, String);

fn lines(bytes: &[u8]) -> Vec<Line> {
    let how = DumpOptions { verbose: true, has_threads: true, has_lines: false, ..DumpOptions::default() };
    let mut out = Vec::new();
    let mut reader = Reader::new(input(bytes), &OpenOptions::default()).unwrap();
    dump(&mut reader, &how, &mut out, None, &mut Collect::default()).unwrap();
    let text = String::from_utf8_lossy(&out).into_owned();
    let calls = text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    calls
        .map(|line| {
            let (number, rest) = line.split_once(" @").unwrap();
            let (thread, rest) = rest.split_once(' ').unwrap();
            let (name, rest) = rest.split_once('(').unwrap();
            let thread = u64::from_str_radix(thread, 16).unwrap();
            Line(number.parse().unwrap(), thread, name.to_owned(), rest.to_owned())
        })
        .collect()
}

/// Selects calls in the order they are left, slowly, following the page's description of apitrace.
fn selected(calls: &[Line], options: &TrimOptions) -> Vec<Line> {
    let (mut frame, mut found) = (0, Vec::new());
    for call in calls {
        let flags = call_flags(call.2.as_bytes());
        let in_calls = options.calls.as_ref().is_some_and(|set| set.has(call.0, flags));
        let in_frames = options.frames.as_ref().is_some_and(|set| set.has(frame, flags));
        let is_all = options.calls.is_none() && options.frames.is_none();
        let is_of_thread = options.threads.is_empty() || options.threads.contains(&call.1);
        if is_of_thread && (is_all || in_calls || in_frames) {
            found.push(call.clone());
        }
        frame += u64::from(flags.has(CallFlags::END_FRAME));
    }
    let mut numbers: Vec<u64> = found.iter().map(|call| call.0).collect();
    numbers.sort_unstable();
    for call in &mut found {
        call.0 = numbers.binary_search(&call.0).unwrap() as u64;
    }
    found
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    fn set(&mut self, limit: u64) -> String {
        let from = self.below(limit + 1);
        let to = from + self.below(limit / 3 + 1);
        match self.below(9) {
            0 => format!("{from}"),
            1 => format!("{from}-{to}"),
            2 => format!("{from}-"),
            3 => format!("{from}-{to}/2"),
            4 => "draw".to_owned(),
            5 => "frame".to_owned(),
            6 => format!("{from}-{to}/draw"),
            7 => format!("{from}-/fbo"),
            _ => format!("{from} {to}-{},{}", to + 2, from + to),
        }
    }
}

#[test]
fn the_selection_matches_a_slow_selection_from_the_dump() {
    let mut dice = Dice(1);
    for (name, bytes) in traces::undamaged() {
        let calls = lines(&bytes);
        let frames = calls.iter().filter(|call| call_flags(call.2.as_bytes()).has(CallFlags::END_FRAME)).count() as u64;
        for _ in 0..6 {
            let by_calls = if dice.below(2) == 0 { dice.set(calls.len() as u64) } else { String::new() };
            let by_frames = if dice.below(3) > 0 { dice.set(frames + 1) } else { String::new() };
            let thread = dice.below(calls.len() as u64);
            let thread = calls.get(usize::try_from(thread).unwrap()).map(|call| call.1);
            let threads: Vec<u64> = thread.into_iter().filter(|_| dice.below(3) == 0).collect();
            let options = options(&by_calls, &by_frames, &threads);
            let what = format!("{name}: --calls={by_calls} --frames={by_frames} {threads:?}");
            let (out, outcome, sink) = trimmed(input(&bytes), &options, &OpenOptions::default());
            assert_eq!(lines(&out), selected(&calls, &options), "{what}");
            assert!(sink.errors() == 0 && outcome.bytes_lost == 0, "{what}: {outcome:?}");
            if !out.is_empty() && raw(&out).len() > 3 {
                assert!(examine(&Apitrace, &out).errors().is_empty(), "{what}");
            }
        }
    }
}

#[test]
fn all_of_a_trace_is_the_trace() {
    for (name, bytes) in traces::undamaged() {
        let everything = TrimOptions::default();
        assert_eq!(raw(&part(&bytes, &everything)), raw(&bytes), "{name}");
        for options in [options("*", "", &[]), options("", "0-", &[])] {
            let reader = Reader::new(input(&bytes), &OpenOptions::default()).unwrap();
            let container = reader.layout().container;
            let out = part(&bytes, &options);
            assert_eq!(raw(&out), raw(&bytes), "{name}");
            assert_eq!(
                Reader::new(input(&out), &OpenOptions::default()).unwrap().layout().container,
                container,
                "{name}"
            );
        }
    }
}

/// Two threads, calls across frames, definitions in calls that are omitted, a backtrace, flags, odd numbers.
fn rich() -> Build {
    let mut b = Build::version(6);
    // Call 0 is left in frame 1; it defines what call 2 needs.
    b.enter_new(0, 1, "glFirst", &["a", "b"]).argument(0, &enum_new(3, &[("GL_ZERO", 0), ("GL_ONE", 1)], 1)).end();
    b.enter_new(7, 2, "glXSwapBuffers", &[]).end().leave(1).end();
    // Call 2: details in an unusual order, a number longer than needed, an unknown flag, an argument in the leave.
    b.label("two").enter(7, 1).argument(1, &[4, 0x85, 0]).add(&[5, 0x11]).argument(0, &enum_known(3, 0)).end();
    b.label("zero left").leave(0).add(&[2]).add(&uint(9)).end();
    b.label("two left").leave(2).argument(1, &string("out")).end();
    b.label("three").enter(7, 2).end().leave(3).end();
    b.enter(0, 1).add(&[4, 1, 0, 1, 1, b'm', 0]).end();
    b
}

#[test]
fn a_frame_is_made_of_the_calls_that_are_left_in_it() {
    let b = rich();
    let at = |label: &str| usize::try_from(b.at(label)).unwrap();
    let out = part(&b.bytes, &options("", "1", &[]));
    // Only the calls' numbers and the places of definitions differ: call 1, which defined its name, is omitted.
    let mut expected = Build::version(6);
    expected.enter_new(0, 1, "glFirst", &["a", "b"]);
    expected.argument(0, &enum_new(3, &[("GL_ZERO", 0), ("GL_ONE", 1)], 1)).end();
    expected.add(&b.bytes[at("two")..at("two left")]).leave(1).argument(1, &string("out")).end();
    expected.enter_new(7, 2, "glXSwapBuffers", &[]).end().leave(2).end();
    assert_eq!(out, expected.bytes);
}

#[test]
fn definitions_go_where_they_are_first_needed() {
    let b = rich();
    let out = part(&b.bytes, &options("2", "", &[]));
    let mut expected = Build::version(6);
    expected.enter_new(7, 1, "glFirst", &["a", "b"]).argument(1, &[4, 0x85, 0]).add(&[5, 0x11]);
    expected.argument(0, &enum_new(3, &[("GL_ZERO", 0), ("GL_ONE", 1)], 0)).end();
    expected.leave(0).argument(1, &string("out")).end();
    assert_eq!(out, expected.bytes);
    // If a call never returns, its enter is kept, with its backtrace.
    let last = part(&b.bytes, &options("4", "", &[]));
    let mut expected = Build::version(6);
    expected.enter_new(0, 1, "glFirst", &["a", "b"]).add(&[4, 1, 0, 1, 1, b'm', 0]).end();
    assert_eq!(last, expected.bytes);
}

#[test]
fn calls_left_after_the_last_of_the_set_are_kept_and_then_reading_ends() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a"]).end();
    b.calls(1, 1, 500).leave(0).argument(0, &string("late")).end();
    let entire = b.bytes.len() as u64;
    b.calls(1, 501, 500_000);
    let (out, outcome, _) = trimmed(dripping("x", &b.bytes, 4096), &options("0", "", &[]), &OpenOptions::default());
    let mut expected = Build::version(6);
    expected.enter_new(0, 1, "glFirst", &["a"]).end().leave(0).argument(0, &string("late")).end();
    assert_eq!(out, expected.bytes);
    assert!(outcome.records_read > 1000 && outcome.records_read < entire, "{outcome:?}");
}

#[test]
fn leaves_without_an_enter_stay_as_long_as_no_number_changed() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a"]).end().leave(0).end().leave(0).end().leave(9).end();
    let strays = b.bytes.clone();
    b.calls(1, 1, 3).leave(2).end();
    assert_eq!(part(&b.bytes, &options("0-1", "", &[]))[..strays.len()], strays);
    let (out, outcome, _) = trimmed(input(&b.bytes), &options("1-", "", &[]), &OpenOptions::default());
    assert_eq!(lines(&out).len(), 3);
    assert_eq!(outcome.notes, ["3 leaves without an enter left out."]);
}

#[test]
fn events_of_any_length_pass_through_little_memory() {
    let long: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a", "b"]).argument(0, &enum_new(3, &[("A", 1)], 1)).end().leave(0).end();
    b.enter(0, 1).argument(0, &blob(&long)).argument(1, &enum_known(3, 1)).end();
    b.leave(1).argument(0, &blob(&long)).end();
    let open = OpenOptions { limits: Limits::default().with_record_bytes_max(100_000), ..OpenOptions::default() };
    for select in [options("1", "", &[]), options("", "0", &[])] {
        let (out, _, sink) = trimmed(dripping("x", &b.bytes, 4096), &select, &open);
        assert_eq!(sink.errors(), 0);
        assert_eq!(out, part(&b.bytes, &select));
    }
    let (out, outcome, sink) = trimmed(input(&b.bytes[..b.bytes.len() - 9]), &options("1", "", &[]), &open);
    assert_eq!((sink.errors(), outcome.notes.len()), (1, 2), "{:?}", outcome.notes);
    assert!(examine(&Apitrace, &out).errors().is_empty());
}

#[test]
fn a_call_that_is_open_for_ever_holds_back_no_more_than_is_allowed() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a"]).end();
    b.calls(1, 1, 200_000);
    let (out, outcome, _) = trimmed(input(&b.bytes), &options("", "0", &[]), &OpenOptions::default());
    assert_eq!(out, b.bytes);
    assert!(outcome.notes.iter().any(|note| note.starts_with("1 call was open for too long")), "{:?}", outcome.notes);
}

#[test]
fn a_function_defined_twice_keeps_both_its_meanings() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirstOfAll", &[]).end().leave(0).end();
    b.enter_new(0, 1, "glSecondOfAll", &[]).end().leave(1).end();
    b.enter(0, 1).end().leave(2).end();
    let names = |bytes: &[u8]| lines(bytes).into_iter().map(|line| line.2).collect::<Vec<_>>();
    assert_eq!(names(&part(&b.bytes, &options("0,2", "", &[]))), ["glFirstOfAll", "glSecondOfAll"]);
    assert_eq!(names(&part(&b.bytes, &options("2", "", &[]))), ["glSecondOfAll"]);
}

#[test]
fn the_container_is_kept_or_chosen() {
    let b = rich();
    for (container, _) in Container::ALL {
        let boxed = part(&b.bytes, &TrimOptions { container: Some(container), ..TrimOptions::default() });
        assert_eq!(raw(&boxed), b.bytes, "{container:?}");
        let again = part(&boxed, &options("0-2", "", &[]));
        let named = |bytes: &[u8]| {
            let mut reader = Reader::new(input(bytes), &OpenOptions::default()).unwrap();
            reader.for_each(|_| Ok(())).unwrap();
            reader.layout().container
        };
        // Reading ended before the end of the file was seen: the table of frames is harmless.
        let is_unknown = container == Container::Zstd;
        let expected = if is_unknown { Container::ZstdSeekable } else { named(&boxed) };
        assert_eq!(named(&again), expected, "{container:?}");
    }
    let level = TrimOptions { container: Some(Container::Snappy), level: Some(3), ..TrimOptions::default() };
    let mut out = MemoryTarget::default();
    let reader = Reader::new(input(&b.bytes), &OpenOptions::default()).unwrap();
    let error = trim(reader, &level, &mut out, &mut Collect::default()).unwrap_err();
    assert_eq!(error.kind(), anytrace_core::Kind::Usage);
}

#[test]
fn damage_is_reported_and_the_rest_is_trimmed() {
    for folder in [Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/bad"), shared_broken()] {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "trace") {
                continue;
            }
            let bytes = std::fs::read(&path).unwrap();
            for select in [TrimOptions::default(), options("1-30/2", "", &[]), options("", "1-", &[])] {
                let (out, _, sink) = trimmed(input(&bytes), &select, &OpenOptions::default());
                if !out.is_empty() {
                    let exam = examine(&Apitrace, &out);
                    let bad: Vec<_> = exam.error_codes().into_iter().filter(|code| !KEPT.contains(code)).collect();
                    assert!(bad.is_empty(), "{}: {bad:?}", path.display());
                }
                let (_, _, reference) = rewrite(&Apitrace, &bytes, &Plan::Convert(TargetOptions::default())).unwrap();
                let is_all = select.calls.is_none() && select.frames.is_none();
                assert!(!is_all || sink.errors() == reference.errors(), "{}", path.display());
            }
        }
    }
}

/// Rule breaches inside a complete event are kept.
const KEPT: [&str; 4] = [
    "apitrace/argument-index",
    "apitrace/semantic-version",
    "apitrace/signature-redefined",
    "apitrace/unsupported-version",
];

fn shared_broken() -> PathBuf {
    shared_corpus("apitrace").map_or_else(PathBuf::new, |root| root.join("broken"))
}

#[test]
fn any_changed_byte_ends_well() {
    for name in ["allvals_v6", "allvals_v2", "interleave", "threads"] {
        let bytes = raw(&std::fs::read(traces::own(name)).unwrap());
        for at in (0..bytes.len()).step_by((bytes.len() / 300).max(1)) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            for select in [options("3-9,12", "", &[]), options("", "1-2", &[])] {
                let (entire, ..) = trimmed(input(&changed), &select, &OpenOptions::default());
                let (dripped, ..) = trimmed(dripping("x", &changed, 7), &select, &OpenOptions::default());
                assert_eq!(lines(&entire), lines(&dripped), "{name} {at}");
            }
        }
    }
}

/// The calls that apitrace's own trim keeps are kept, and also those it loses: late ones, and those never left.
#[test]
fn everything_that_apitrace_keeps_is_kept() {
    let Some(peer) = Peer::installed() else { return };
    let mut compared = 0;
    for name in ["allvals_v2", "allvals_v6", "interleave", "leak", "many_open", "nested", "threads"] {
        let bytes = std::fs::read(traces::own(name)).unwrap();
        for (calls, frames, threads) in [
            ("", "0-1", vec![]),
            ("", "1", vec![]),
            ("3-", "", vec![]),
            ("2-9/3,frame", "0/draw", vec![]),
            ("", "1-2", vec![0]),
            ("*", "", vec![1, 2]),
        ] {
            let sets = [("--calls=", calls), ("--frames=", frames)].into_iter().filter(|(_, set)| !set.is_empty());
            let sets = sets.map(|(option, set)| format!("{option}{set}"));
            let select: Vec<_> = sets.chain(threads.iter().map(|thread| format!("--thread={thread}"))).collect();
            let theirs = lines(&peer.edited("trim", &select, &bytes).unwrap());
            let ours = lines(&part(&bytes, &options(calls, frames, &threads)));
            // apitrace turns the null pointer into the null value.
            let strip =
                |line: &Line| (line.1, line.2.clone(), line.3.replace(" // incomplete", "").replace("0x0)", "NULL)"));
            let mut mine = ours.iter().map(strip);
            for line in &theirs {
                let wanted = strip(line);
                assert!(mine.any(|line| line == wanted), "{name} {calls} {frames} {threads:?}: {line:?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 1000, "{compared}");
}

#[test]
fn call_numbers_may_have_two_bytes() {
    let mut b = Build::version(6);
    b.enter_new(0, 1, "glFirst", &["a"]).end();
    b.calls(1, 1, 299).add(&[1]).add(&leb(0)).end();
    let out = part(&b.bytes, &options("150-299", "", &[]));
    assert_eq!(lines(&out).len(), 150);
    assert!(examine(&Apitrace, &out).check.iter().all(|one| one.severity != Severity::Error));
}
