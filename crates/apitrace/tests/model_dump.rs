//! `apitrace dump` of random traces against a slow printer written after the format's document.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod model;
mod random;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::dump::{DumpOptions, Escape, dump};
use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Input, OpenOptions};
use model::text::{END_FRAME, Look, flags, general};
use model::{Call, Trace, Value, decode, encode, random_trace};
use random::Random;

fn dumped(input: Input, options: &DumpOptions) -> String {
    let (mut out, mut sink) = (Vec::new(), Collect::default());
    let mut reader = Reader::new(input, &OpenOptions::default()).unwrap();
    dump(&mut reader, options, &mut out, None, &mut sink).unwrap();
    String::from_utf8_lossy(&out).into_owned()
}

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn set(text: &str) -> CallSet {
    CallSet::parse([text], &mut |_| Err(std::io::Error::other("no files here"))).unwrap()
}

fn look(options: &DumpOptions) -> Look {
    Look {
        numbers: options.has_numbers,
        threads: options.has_threads,
        names: options.has_argument_names,
        lines: options.has_lines,
        is_c: options.escape == Escape::C,
    }
}

/// What must be shown of the calls that `keeps` takes: each with its flags and the frame it is left in.
fn expected(trace: &Trace, options: &DumpOptions, keeps: impl Fn(&Call, u32, u64) -> bool) -> String {
    let known = flags();
    let look = look(options);
    let mut out = model::text::properties(trace, look);
    let mut frame = 0;
    for call in trace.calls() {
        let flags = known.get(trace.name(call.function)).copied().unwrap_or(0);
        if keeps(&call, flags, frame) && (options.verbose || !model::text::is_hidden(trace, &call, flags)) {
            out.extend(model::text::call(trace, &call, flags, look));
        }
        frame += u64::from(flags & END_FRAME != 0);
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn any_options(random: &mut Random) -> DumpOptions {
    let mut yes = || random.below(2) == 0;
    DumpOptions {
        verbose: yes(),
        has_numbers: yes(),
        has_threads: yes(),
        has_argument_names: yes(),
        has_lines: yes(),
        escape: if yes() { Escape::C } else { Escape::Peer },
        workers: if yes() { 2 } else { 0 },
        ..DumpOptions::default()
    }
}

fn assert_same(found: &str, expected: &str, what: &str) {
    for (line, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "{what}: line {line}");
    }
    assert_eq!(found.len(), expected.len(), "{what}: the length");
}

#[test]
fn the_oracle_reads_what_it_writes() {
    let mut random = Random(11);
    for _ in 0..30 {
        let trace = random_trace(&mut random, 60);
        let again = decode(&encode(&trace));
        assert_eq!((&again.events, &again.properties), (&trace.events, &trace.properties));
        assert_eq!(encode(&again), encode(&trace));
    }
}

#[test]
fn numbers_of_the_oracle_are_those_of_c() {
    // Printed by printf of glibc 2.36.
    for (value, digits, text) in [
        (0.0, 7, "0"),
        (-0.0, 7, "-0"),
        (1e7, 7, "1e+07"),
        (999_999.96, 7, "1000000"),
        (9_999_999.5, 7, "1e+07"),
        (0.0001, 7, "0.0001"),
        (0.00001, 7, "1e-05"),
        (123_456_789.0, 16, "123456789"),
        (0.1, 16, "0.1"),
        (0.1 + 0.2, 16, "0.3"),
        (1.5e300, 16, "1.5e+300"),
        (-2.5, 16, "-2.5"),
        (f64::MIN_POSITIVE, 16, "2.225073858507201e-308"),
    ] {
        assert_eq!(general(value, digits), text);
    }
}

#[test]
fn random_traces_print_as_the_document_says() {
    let mut random = Random(1);
    for round in 0..150 {
        let trace = random_trace(&mut random, 40);
        let bytes = encode(&trace);
        let options = any_options(&mut random);
        let found = dumped(input(&bytes), &options);
        assert_same(&found, &expected(&trace, &options, |_, _, _| true), &format!("round {round}"));
    }
}

#[test]
fn windows_and_containers_change_no_line() {
    let mut random = Random(2);
    for round in 0..20 {
        let trace = random_trace(&mut random, 30);
        let bytes = encode(&trace);
        let options = DumpOptions { verbose: true, ..DumpOptions::default() };
        let wanted = expected(&trace, &options, |_, _, _| true);
        for at_once in [1, 7, 4096] {
            assert_same(&dumped(dripping("x.trace", &bytes, at_once), &options), &wanted, &format!("{round}"));
        }
        for chunk in [1, 13, 100, 1 << 20] {
            assert_same(&dumped(input(&build::snappy(&bytes, chunk)), &options), &wanted, &format!("{round}"));
        }
    }
}

#[test]
fn sets_of_calls_and_frames_show_what_a_filter_over_all_lines_shows() {
    let mut random = Random(3);
    for round in 0..80 {
        let trace = random_trace(&mut random, 50);
        let bytes = encode(&trace);
        let (from, length, step) = (random.below(30), random.below(20), 1 + random.below(4));
        let calls = set(&format!("{from}-{}/{step}", from + length));
        let (first, last) = (random.below(4), random.below(4) + 2);
        let frames = (random.below(2) == 0).then(|| set(&format!("{first}-{last}")));
        let mut options = any_options(&mut random);
        (options.calls, options.frames) = (calls, frames);
        let has_frames = options.frames.is_some();
        let in_calls =
            |call: &Call| (from..=from + length).contains(&call.number) && (call.number - from).is_multiple_of(step);
        let in_frames = |frame: u64| has_frames && (first..=last).contains(&frame);
        // Reading ends at the first call above the set: what is left later is not shown. With frames, at the first that
        // is also above the frames.
        let frames_last = if first <= last { last } else { 0 };
        let mut is_over = false;
        let mut frame = 0;
        let known = flags();
        let mut shown = Vec::new();
        for call in trace.calls() {
            is_over |= call.number > from + length && (!has_frames || frame > frames_last);
            if !is_over && (in_calls(&call) || in_frames(frame)) {
                shown.push(call.number);
            }
            frame += u64::from(known.get(trace.name(call.function)).copied().unwrap_or(0) & END_FRAME != 0);
        }
        let wanted = expected(&trace, &options, |call, _, _| shown.contains(&call.number));
        assert_same(&dumped(input(&bytes), &options), &wanted, &format!("round {round}"));
    }
}

#[test]
fn kinds_of_calls_are_those_of_the_table_of_flags() {
    let mut random = Random(4);
    for (kind, bits) in [("frame", 32), ("draw", 8), ("render", 8), ("fbo", 48), ("rendertarget", 48)] {
        for _ in 0..10 {
            let trace = random_trace(&mut random, 60);
            let options = DumpOptions { verbose: true, calls: set(kind), ..DumpOptions::default() };
            let wanted = expected(&trace, &options, |_, flags, _| flags & bits != 0);
            assert_same(&dumped(input(&encode(&trace)), &options), &wanted, kind);
        }
    }
}

#[test]
fn only_functions_that_match_are_shown_and_no_properties() {
    let mut random = Random(5);
    for _ in 0..20 {
        let mut trace = random_trace(&mut random, 40);
        let bytes = encode(&trace);
        let grep: anytrace_core::NameMatch = Box::new(|name: &[u8]| name.ends_with(b"Buffers"));
        let options = DumpOptions { grep: Some(grep), ..DumpOptions::default() };
        trace.properties.clear();
        let named = trace.clone();
        let wanted = expected(&trace, &options, |call, _, _| named.name(call.function).ends_with(b"Buffers"));
        assert_same(&dumped(input(&bytes), &options), &wanted, "grep");
    }
}

#[test]
fn colors_are_the_only_difference_between_colored_and_plain_text() {
    let mut random = Random(6);
    for _ in 0..40 {
        let trace = random_trace(&mut random, 30);
        let mut options = any_options(&mut random);
        let plain = dumped(input(&encode(&trace)), &options);
        options.has_color = true;
        let colored = dumped(input(&encode(&trace)), &options);
        let mut rest = colored.as_str();
        let mut without = String::new();
        while let Some((before, after)) = rest.split_once('\x1b') {
            without.push_str(before);
            let end = after.find('m').unwrap();
            assert!(after[1..end].bytes().all(|byte| byte.is_ascii_digit()), "{after:?}");
            rest = &after[end + 1..];
        }
        without.push_str(rest);
        assert_same(&without, &plain, "without colors");
    }
}

/// Each prefix of a trace that ends between events shows the calls left so far, and then those still open.
#[test]
fn a_trace_that_ends_early_shows_open_calls_as_incomplete() {
    let mut random = Random(7);
    for _ in 0..10 {
        let trace = random_trace(&mut random, 20);
        let options = DumpOptions { verbose: true, ..DumpOptions::default() };
        for count in 0..trace.events.len() {
            let mut part = trace.clone();
            part.events.truncate(count);
            let wanted = expected(&part, &options, |_, _, _| true);
            assert_same(&dumped(input(&encode(&part)), &options), &wanted, &format!("{count} events"));
        }
    }
}

#[test]
fn leaves_of_unknown_and_of_left_calls_change_nothing() {
    let mut random = Random(8);
    for round in 0..20 {
        let trace = random_trace(&mut random, 20);
        let options = DumpOptions { verbose: true, ..DumpOptions::default() };
        let wanted = expected(&trace, &options, |_, _, _| true);
        let mut odd = trace.clone();
        let last = odd.events.len();
        // At the end every number is known; of those left no second leave counts, and no other exists.
        let left = trace.calls().iter().find(|call| !call.is_incomplete).map(|call| call.number);
        let details = vec![model::Detail::Return(Value::Number(77))];
        odd.events.insert(last, model::Event::Leave(1_000_000, details.clone()));
        odd.events.extend(left.map(|number| model::Event::Leave(number, details)));
        assert_same(&dumped(input(&encode(&odd)), &options), &wanted, &format!("round {round}"));
    }
}

#[test]
fn older_versions_print_the_same_calls() {
    let mut random = Random(9);
    for round in 0..60 {
        let trace = random_trace(&mut random, 40).older(round % 6);
        let bytes = encode(&trace);
        let options = any_options(&mut random);
        let wanted = expected(&trace, &options, |_, _, _| true);
        let what = format!("version {} in round {round}", trace.version);
        assert_same(&dumped(input(&bytes), &options), &wanted, &what);
        assert_same(&dumped(dripping("x.trace", &bytes, 5), &options), &wanted, &what);
    }
}
