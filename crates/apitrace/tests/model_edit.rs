//! `apitrace sed` and `trim` of random traces against the same edits of plain values.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod model;
mod random;

use std::collections::BTreeMap;

use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::sed::{Replacement, SedOptions, sed};
use anytrace_apitrace::tools::trim::{TrimOptions, trim};
use anytrace_apitrace::{Apitrace, Container, Reader};
use anytrace_core::testing::{dripping, rewrite, through_jsonl};
use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions, Outcome, Plan, TargetOptions};
use model::text::{END_FRAME, flags};
use model::{Event, Trace, Value, encode, random_trace};
use random::Random;

fn input(bytes: &[u8]) -> Input {
    Input::from_bytes("x.trace", bytes.to_vec())
}

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(input(bytes), &OpenOptions::default()).unwrap()
}

fn set(text: &str) -> CallSet {
    CallSet::parse([text], &mut |_| Err(std::io::Error::other("no files here"))).unwrap()
}

fn edited(reader: Reader, options: &SedOptions) -> (Vec<u8>, Outcome) {
    let (mut out, mut sink) = (MemoryTarget::default(), Collect::default());
    let outcome = sed(reader, options, &mut out, &mut sink).unwrap();
    assert_eq!(sink.errors(), 0, "{:?}", sink.0);
    (out.0, outcome)
}

/// The texts that may be searched and written: names of the random traces, strings, pointers.
const TEXTS: [&str; 12] =
    ["GL_ZERO", "GL_ONE", "GL_ALSO_ONE", "GL_MINUS", "NONE", "A_BIT", "B_BIT", "AB_BITS", "TOP_BIT", "a", "b", ""];

fn options(replacements: &[(String, String)]) -> SedOptions {
    let parse = |(from, to): &(String, String)| {
        Replacement::parse(&format!("s|{from}|{to}|"), &mut |_| Err(std::io::Error::other("none"))).unwrap()
    };
    SedOptions { replacements: replacements.iter().map(parse).collect(), ..SedOptions::default() }
}

/// One replacement of one value, after the page about `apitrace sed`.
fn replace(trace: &Trace, value: &mut Value, from: &str, to: &str) {
    match value {
        Value::Text(text) if *text == from.as_bytes() => *text = to.as_bytes().to_vec(),
        Value::Enum(id, number) => {
            let names = &trace.enums[id];
            let shown = names.iter().find(|(_, known)| known == number);
            let new = names.iter().find(|(name, _)| *name == to.as_bytes());
            if let (Some((shown, _)), Some((_, new))) = (shown, new)
                && *shown == from.as_bytes()
            {
                *number = *new;
            }
        }
        Value::Mask(id, number) => {
            let bits = |name: &str| {
                let known = trace.masks[id].iter().find(|(known, _)| *known == name.as_bytes());
                if name.is_empty() { Some(0) } else { known.map(|(_, bits)| *bits) }
            };
            if let (Some(from), Some(to)) = (bits(from).filter(|bits| *bits != 0), bits(to))
                && *number & from == from
            {
                *number = *number & !from | to;
            }
        }
        Value::Pointer(address) if from.starts_with("0x") && u64::from_str_radix(&from[2..], 16) == Ok(*address) => {
            *address = u64::from_str_radix(&to[2..], 16).unwrap();
        }
        _ => {}
    }
}

fn text(random: &mut Random) -> String {
    TEXTS[random.below(TEXTS.len() as u64) as usize].to_owned()
}

#[test]
fn values_are_replaced_one_after_another_and_every_other_byte_stays() {
    let mut random = Random(21);
    for round in 0..150 {
        let trace = random_trace(&mut random, 40);
        let replacements: Vec<_> = (0..1 + random.below(3)).map(|_| (text(&mut random), text(&mut random))).collect();
        let mut expected = trace.clone();
        expected.change(|value| {
            for (from, to) in &replacements {
                replace(&trace, value, from, to);
            }
        });
        let (found, outcome) = edited(reader(&encode(&trace)), &options(&replacements));
        assert!(found == encode(&expected), "round {round}: {replacements:?}");
        assert_eq!(outcome.records_written, trace.events.len() as u64);
    }
}

#[test]
fn pointers_of_a_trace_are_replaced_by_number() {
    let mut random = Random(22);
    for round in 0..40 {
        let trace = random_trace(&mut random, 40);
        let mut addresses = Vec::new();
        trace.clone().change(|value| {
            if let Value::Pointer(address) = value {
                addresses.push(*address);
            }
        });
        let Some(address) = addresses.get(random.below(addresses.len() as u64) as usize) else { continue };
        let pair = (format!("{address:#x}"), "0xfeedface12345678".to_owned());
        let mut expected = trace.clone();
        expected.change(|value| replace(&trace, value, &pair.0, &pair.1));
        let (found, _) = edited(reader(&encode(&trace)), &options(&[pair]));
        assert!(found == encode(&expected), "round {round}");
        assert!(expected != trace, "round {round}: nothing was to be replaced");
    }
}

#[test]
fn only_calls_of_the_set_are_edited_in_both_their_events() {
    let mut random = Random(23);
    let known = flags();
    for round in 0..60 {
        let trace = random_trace(&mut random, 40);
        let from = random.below(30);
        let (text, keeps): (String, Box<dyn Fn(u64, u32) -> bool>) = match random.below(3) {
            0 => (format!("{from}-{}", from + 5), Box::new(move |call, _| (from..=from + 5).contains(&call))),
            1 => ("draw".to_owned(), Box::new(|_, flags| flags & 8 != 0)),
            _ => (format!("{from}-/frame"), Box::new(move |call, flags| call >= from && flags & END_FRAME != 0)),
        };
        let replacements = [("a".to_owned(), "b".to_owned()), ("GL_ONE".to_owned(), "GL_MINUS".to_owned())];
        let functions: Vec<u64> = enters(&trace);
        let mut expected = trace.clone();
        let mut next = 0;
        for event in &mut expected.events {
            let call = match event {
                Event::Leave(call, _) => *call,
                Event::Enter(..) => {
                    next += 1;
                    next - 1
                }
            };
            let name = trace.name(functions[call as usize]);
            if keeps(call, known.get(name).copied().unwrap_or(0)) {
                let mut alone = Trace { events: vec![event.clone()], ..Trace::default() };
                alone.change(|value| replacements.iter().for_each(|(from, to)| replace(&trace, value, from, to)));
                *event = alone.events.remove(0);
            }
        }
        let options = SedOptions { calls: set(&text), ..options(&replacements) };
        let (found, _) = edited(reader(&encode(&trace)), &options);
        assert!(found == encode(&expected), "round {round}: --calls={text}");
    }
}

/// The function of each call.
fn enters(trace: &Trace) -> Vec<u64> {
    let functions = trace.events.iter().filter_map(|event| match event {
        Event::Enter(_, function, _) => Some(*function),
        Event::Leave(..) => None,
    });
    functions.collect()
}

#[test]
fn properties_are_set_in_their_place_added_at_the_end_and_removed_everywhere() {
    let mut random = Random(24);
    for round in 0..60 {
        let trace = random_trace(&mut random, 3);
        let name = ["os", "app", "new"][random.below(3) as usize].as_bytes().to_vec();
        let value = (random.below(3) > 0).then(|| b"other".to_vec());
        let mut expected = trace.clone();
        match &value {
            None => expected.properties.retain(|(known, _)| *known != name),
            Some(value) => match expected.properties.iter_mut().rfind(|(known, _)| *known == name) {
                Some(place) => place.1.clone_from(value),
                None => expected.properties.push((name.clone(), value.clone())),
            },
        }
        let options = SedOptions { properties: vec![(name, value)], ..SedOptions::default() };
        let (found, _) = edited(reader(&encode(&trace)), &options);
        assert!(found == encode(&expected), "round {round}: {:?}", trace.properties);
    }
}

fn trimmed(reader: Reader, options: &TrimOptions) -> (Vec<u8>, Outcome) {
    let (mut out, mut sink) = (MemoryTarget::default(), Collect::default());
    let outcome = trim(reader, options, &mut out, &mut sink).unwrap();
    assert_eq!(sink.errors(), 0, "{:?}", sink.0);
    (out.0, outcome)
}

/// The events of some calls, with new numbers.
fn part(trace: &Trace, keeps: &dyn Fn(u64) -> bool) -> Trace {
    let (mut next, mut numbers) = (0, BTreeMap::new());
    let mut part = trace.clone();
    part.events.clear();
    for event in &trace.events {
        match event {
            Event::Enter(..) => {
                if keeps(next) {
                    numbers.insert(next, numbers.len() as u64);
                    part.events.push(event.clone());
                }
                next += 1;
            }
            Event::Leave(call, details) => {
                if let Some(new) = numbers.get(call) {
                    part.events.push(Event::Leave(*new, details.clone()));
                }
            }
        }
    }
    part
}

struct Choice {
    options: TrimOptions,
    words: String,
    kept: Vec<u64>,
}

/// A selection and the calls it takes, found by walking over the calls in the order they are left.
fn choose(random: &mut Random, trace: &Trace) -> Choice {
    let known = flags();
    let (from, to) = (random.below(40), random.below(40));
    let calls = match random.below(4) {
        0 => None,
        1 => Some(format!("{from}-{to}")),
        2 => Some(format!("{from}-")),
        _ => Some("draw".to_owned()),
    };
    let (first, last) = (random.below(4), random.below(6));
    let frames = match random.below(4) {
        0 | 1 => None,
        2 => Some(format!("{first}-{last}")),
        _ => Some(format!("{first}-{last}/draw")),
    };
    let threads = if random.below(3) == 0 { vec![random.below(3) * 100] } else { Vec::new() };
    let (mut kept, mut frame) = (Vec::new(), 0);
    for call in trace.calls() {
        let bits = known.get(trace.name(call.function)).copied().unwrap_or(0);
        let is_draw = bits & 8 != 0;
        let in_calls = calls.as_deref().is_some_and(|text| match text {
            "draw" => is_draw,
            text if text.ends_with('-') => call.number >= from,
            _ => (from..=to).contains(&call.number),
        });
        let in_frames = frames
            .as_deref()
            .is_some_and(|text| (first..=last).contains(&frame) && (is_draw || !text.ends_with("draw")));
        let is_of_thread = threads.is_empty() || threads.contains(&call.thread);
        if is_of_thread && (in_calls || in_frames || calls.is_none() && frames.is_none()) {
            kept.push(call.number);
        }
        frame += u64::from(bits & END_FRAME != 0);
    }
    let words = format!("--calls={calls:?} --frames={frames:?} {threads:?}");
    let of = |text: &Option<String>| text.as_deref().map(set);
    let options = TrimOptions { calls: of(&calls), frames: of(&frames), threads, ..TrimOptions::default() };
    Choice { options, words, kept }
}

#[test]
fn a_part_has_the_bytes_of_its_events_with_new_numbers_and_its_own_definitions() {
    let mut random = Random(25);
    for round in 0..200 {
        let trace = random_trace(&mut random, 50);
        let choice = choose(&mut random, &trace);
        let expected = part(&trace, &|call| choice.kept.contains(&call));
        let bytes = encode(&trace);
        let (found, outcome) = trimmed(reader(&bytes), &choice.options);
        assert!(found == encode(&expected), "round {round}: {}", choice.words);
        assert_eq!(outcome.records_written, expected.events.len() as u64, "round {round}: {}", choice.words);
        let slow = Reader::new(dripping("x.trace", &bytes, 7), &OpenOptions::default()).unwrap();
        assert!(trimmed(slow, &choice.options).0 == found, "round {round}: {}", choice.words);
    }
}

#[test]
fn parts_of_older_versions_are_of_their_version() {
    let mut random = Random(29);
    for round in 0..120 {
        let trace = random_trace(&mut random, 50).older(round % 6);
        let choice = choose(&mut random, &trace);
        let expected = part(&trace, &|call| choice.kept.contains(&call));
        let (found, _) = trimmed(reader(&encode(&trace)), &choice.options);
        assert!(found == encode(&expected), "version {}, round {round}: {}", trace.version, choice.words);
    }
}

#[test]
fn strings_flags_and_pointers_of_older_versions_are_replaced() {
    let mut random = Random(30);
    for round in 0..60 {
        let trace = random_trace(&mut random, 40).older(round % 6);
        let pairs = [("a", "b"), ("A_BIT", "B_BIT"), ("TOP_BIT", ""), ("0x0", "0x1234")];
        let replacements = pairs.map(|(from, to)| (from.to_owned(), to.to_owned()));
        let mut expected = trace.clone();
        expected.change(|value| {
            for (from, to) in &replacements {
                replace(&trace, value, from, to);
            }
        });
        let (found, _) = edited(reader(&encode(&trace)), &options(&replacements));
        assert!(found == encode(&expected), "version {}, round {round}", trace.version);
    }
}

#[test]
fn versions_that_hold_the_same_are_converted_into_each_other() {
    let mut random = Random(31);
    for round in 0..60 {
        let (from, to) = [(4, 5), (5, 4), (3, 3), (5, 5), (4, 6), (6, 5)][random.below(6) as usize];
        // Of version 4 in both: without backtraces.
        let trace = random_trace(&mut random, 30).older(from.min(to).min(4));
        let of = |version| encode(&Trace { version, ..trace.clone() });
        let target = TargetOptions { version: Some(to as u32), ..TargetOptions::default() };
        let found = rewrite(&Apitrace, &of(from), &Plan::Convert(target)).unwrap().0;
        // The semantic version is that of the source, which only version 6 holds.
        let mut wanted = of(to);
        if (from, to) == (4, 6) {
            wanted[1] = 4;
        }
        assert!(found == wanted, "round {round}: {from} to {to}");
    }
}

#[test]
fn parts_of_compressed_traces_are_compressed_parts() {
    let mut random = Random(26);
    for round in 0..30 {
        let trace = random_trace(&mut random, 50);
        let choice = choose(&mut random, &trace);
        let bytes = build::snappy(&encode(&trace), 1 + random.below(200) as usize);
        let wanted = encode(&part(&trace, &|call| choice.kept.contains(&call)));
        let raw = TrimOptions { container: Some(Container::Raw), ..choice.options.clone() };
        assert!(trimmed(reader(&bytes), &raw).0 == wanted, "round {round}: {}", choice.words);
        let (packed, _) = trimmed(reader(&bytes), &choice.options);
        assert!(packed.starts_with(b"at"), "round {round}");
        let (unpacked, _) =
            trimmed(reader(&packed), &TrimOptions { container: Some(Container::Raw), ..Default::default() });
        assert!(unpacked == wanted, "round {round}: {}", choice.words);
    }
}

/// An edit of a part is the part of the edit, if the edit is of all calls.
#[test]
fn edits_and_parts_can_change_places() {
    let mut random = Random(27);
    for round in 0..60 {
        let trace = random_trace(&mut random, 40);
        let choice = choose(&mut random, &trace);
        let edit = options(&[(text(&mut random), text(&mut random))]);
        let bytes = encode(&trace);
        let one = edited(reader(&trimmed(reader(&bytes), &choice.options).0), &edit).0;
        let other = trimmed(reader(&edited(reader(&bytes), &edit).0), &choice.options).0;
        assert!(one == other, "round {round}: {}", choice.words);
    }
}

#[test]
fn random_traces_are_copied_repaired_and_sent_through_json_lines_without_a_change() {
    let mut random = Random(28);
    for round in 0..60 {
        let bytes = encode(&random_trace(&mut random, 40));
        let convert = rewrite(&Apitrace, &bytes, &Plan::Convert(TargetOptions::default())).unwrap().0;
        assert!(convert == bytes, "round {round}: convert");
        let repair = rewrite(&Apitrace, &bytes, &Plan::Repair(TargetOptions::default())).unwrap().0;
        assert!(repair == bytes, "round {round}: repair");
        let lines = through_jsonl(&Apitrace, &OpenOptions::default(), &bytes).unwrap();
        assert!(lines == bytes, "round {round}: JSON lines");
    }
}
