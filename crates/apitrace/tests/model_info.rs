//! `apitrace info`, `stats`, `pickle` and JSON lines of random traces against the same facts of plain values.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod build;
mod model;
mod random;
mod unpickle;

use std::collections::BTreeMap;

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::from_jsonl::from_jsonl;
use anytrace_apitrace::tools::info::{FrameInfo, InfoOptions, TraceInfo, info};
use anytrace_apitrace::tools::jsonl::{JsonlOptions, jsonl};
use anytrace_apitrace::tools::pickle::{PickleOptions, pickle};
use anytrace_apitrace::tools::stats::{StatsOptions, stats};
use anytrace_core::testing::dripping;
use anytrace_core::{Collect, Input, Limits, MemoryTarget, OpenOptions, Settings, TargetOptions};
use model::text::{END_FRAME, flags};
use model::{Call, Detail, Event, Trace, Value as V, encode, random_trace};
use random::Random;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

fn reader(bytes: &[u8]) -> Reader {
    Reader::new(Input::from_bytes("x.trace", bytes.to_vec()), &OpenOptions::default()).unwrap()
}

fn flags_of(trace: &Trace, call: &Call) -> u32 {
    flags().get(trace.name(call.function)).copied().unwrap_or(0)
}

/// Frames and the bytes up to their ends, by encoding every part of the trace that begins at its beginning.
fn frames(trace: &Trace) -> Vec<FrameInfo> {
    let (mut found, mut start) = (Vec::new(), 0);
    let (mut first, mut count) = (None, 0);
    let calls = trace.calls();
    let mut left = calls.iter().filter(|call| !call.is_incomplete);
    let mut end_frame = |call: &Call, end: u64| {
        first.get_or_insert(call.number);
        count += 1;
        if flags_of(trace, call) & END_FRAME != 0 {
            let first = first.take().unwrap();
            found.push(FrameInfo { first, last: call.number, calls: count, bytes: end - start });
            (start, count) = (end, 0);
        }
    };
    for at in 0..trace.events.len() {
        if let Event::Leave(number, _) = trace.events[at] {
            let part = Trace { events: trace.events[..=at].to_vec(), ..trace.clone() };
            let call = left.next().unwrap();
            assert_eq!(call.number, number);
            end_frame(call, encode(&part).len() as u64);
        }
    }
    // Calls that are never left count as left when the trace ends.
    let end = encode(trace).len() as u64;
    calls.iter().filter(|call| call.is_incomplete).for_each(|call| end_frame(call, end));
    found
}

fn described(reader: &mut Reader) -> TraceInfo {
    let options = InfoOptions { has_frames: true, is_compatible: false };
    let mut sink = Collect::default();
    let facts = info(reader, options, &mut sink).unwrap();
    assert_eq!(sink.errors(), 0);
    facts
}

#[test]
fn frames_have_the_calls_and_bytes_up_to_the_call_that_ends_them() {
    let mut random = Random(31);
    for round in 0..40 {
        let trace = random_trace(&mut random, 40);
        let bytes = encode(&trace);
        let expected = frames(&trace);
        let slow = Reader::new(dripping("x.trace", &bytes, 7), &OpenOptions::default()).unwrap();
        let packed = reader(&build::snappy(&bytes, 100));
        for mut reader in [reader(&bytes), slow, packed] {
            let facts = described(&mut reader);
            assert_eq!(facts.frame_list.unwrap().iter().collect::<Vec<_>>(), expected, "round {round}");
            assert_eq!((facts.frames, facts.raw_bytes), (expected.len() as u64, bytes.len() as u64), "round {round}");
            assert_eq!(facts.container_version, 6);
        }
    }
}

#[test]
fn the_interface_is_that_of_the_first_function_whose_name_identifies_one() {
    let mut random = Random(32);
    for _ in 0..30 {
        let trace = random_trace(&mut random, 6);
        let names = trace.events.iter().filter_map(|event| match event {
            Event::Enter(_, function, _) => Some(trace.name(*function)),
            Event::Leave(..) => None,
        });
        let first = names.into_iter().find_map(|name| match name {
            b"glXSwapBuffers" => Some("OpenGL + GLX/WGL/CGL"),
            b"eglSwapBuffers" => Some("OpenGL/GLES1/GLES2/VG + EGL"),
            _ => None,
        });
        assert_eq!(described(&mut reader(&encode(&trace))).api.name(), first.unwrap_or("Unknown API"));
    }
}

#[test]
fn the_json_of_info_has_every_frame_and_is_json() {
    let mut random = Random(33);
    for _ in 0..20 {
        let trace = random_trace(&mut random, 30);
        let facts = described(&mut reader(&encode(&trace)));
        let mut out = Vec::new();
        facts.write("a \"b\"\n.trace", false, &mut out).unwrap();
        let read: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(read["FileName"], json!("a \"b\"\n.trace"));
        let row = |frame: FrameInfo| {
            let FrameInfo { first, last, calls, bytes } = frame;
            json!({"FirstCallId": first, "LastCallId": last, "TotalCalls": calls, "SizeInBytes": bytes})
        };
        assert_eq!(read["Frames"], json!(frames(&trace).into_iter().map(row).collect::<Vec<_>>()));
        assert_eq!(read["FramesCount"], json!(frames(&trace).len()));
    }
}

/// A value as it must be read from a line of JSON. Floats are compared as their bits.
fn line_value(trace: &Trace, value: &V) -> Value {
    match value {
        V::Null => Value::Null,
        V::Bool(value) => json!(value),
        V::Minus(magnitude) if *magnitude == 0 || *magnitude > 1 << 63 => json!({"minus": magnitude}),
        V::Minus(magnitude) => json!((*magnitude as i64).wrapping_neg()),
        V::Number(value) => json!(value),
        V::Float(bits) => {
            let value = f32::from_bits(*bits);
            if value.is_finite() {
                // The shortest decimal number that is read as this value.
                return json!(format!("{value:?}").parse::<f64>().unwrap());
            }
            json!({"float": special(value.into(), u64::from(*bits), 0x7fc0_0000)})
        }
        V::Double(bits) => {
            let value = f64::from_bits(*bits);
            json!({"double": if value.is_finite() { json!(value) } else { special(value, *bits, 0x7ff8 << 48) }})
        }
        V::Text(text) => bytes_value(text),
        V::Blob(blob) => json!({"blob": blob.len(), "base64": base64(blob)}),
        V::Enum(id, value) => {
            let name = trace.enums[id].iter().find(|(_, known)| known == value);
            json!({"enum": name.map(|(name, _)| bytes_value(name)), "value": value})
        }
        V::Mask(id, value) => json!({"bitmask": mask_names(trace, *id, *value), "value": value}),
        V::Array(values) => json!(values.iter().map(|value| line_value(trace, value)).collect::<Vec<_>>()),
        V::Struct(id, values) => {
            let (name, members) = &trace.structs[id];
            let pairs =
                members.iter().zip(values).map(|(name, value)| json!([bytes_value(name), line_value(trace, value)]));
            json!({"struct": pairs.collect::<Vec<_>>(), "name": bytes_value(name)})
        }
        V::Pointer(address) => json!({"ptr": format!("{address:#x}")}),
        V::Pair(human, machine) => json!({"repr": [line_value(trace, human), line_value(trace, machine)]}),
        V::Wide(characters) => {
            json!({"wide": characters.iter().map(|one| char::from_u32(*one as u32).unwrap()).collect::<String>()})
        }
    }
}

fn mask_names(trace: &Trace, id: u64, value: u64) -> Vec<Value> {
    let (mut rest, mut named) = (value, Vec::new());
    for (name, bits) in &trace.masks[&id] {
        let is_set = if *bits == 0 { value == 0 && named.is_empty() } else { rest & bits == *bits };
        if is_set {
            named.push(json!([bytes_value(name), bits]));
            rest &= !bits;
        }
    }
    named
}

/// Infinities and what is no number; bits are given where they are not the usual ones.
fn special(value: f64, bits: u64, usual: u64) -> Value {
    match (value.is_nan(), value > 0.0) {
        (true, _) if bits != usual => json!({"nan": bits}),
        (true, _) => json!("nan"),
        (_, true) => json!("inf"),
        _ => json!("-inf"),
    }
}

fn bytes_value(bytes: &[u8]) -> Value {
    let hex = || json!({"hex": bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()});
    std::str::from_utf8(bytes).map_or_else(|_| hex(), |text| json!(text))
}

fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let word = (0..3).fold(0, |word, at| word << 8 | u32::from(group.get(at).copied().unwrap_or(0)));
        for at in 0..4 {
            let digit = alphabet[(word >> (18 - 6 * at) & 63) as usize] as char;
            out.push(if at > group.len() { '=' } else { digit });
        }
    }
    out
}

/// Brings the two spellings of numbers without a value together: `{"float":"nan","bits":N}`.
fn plain(value: &Value) -> Value {
    match value {
        Value::Array(values) => values.iter().map(plain).collect(),
        Value::Object(map) if map.contains_key("bits") => {
            let key = if map.contains_key("float") { "float" } else { "double" };
            json!({key: {"nan": map["bits"]}})
        }
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), plain(value))).collect(),
        Value::Number(number) if number.is_f64() => json!({"bits of": number.as_f64().unwrap().to_bits()}),
        other => other.clone(),
    }
}

fn line(trace: &Trace, call: &Call) -> Value {
    let labels = &trace.functions[&call.function].1;
    let arguments = (0..).zip(labels).map(|(index, label)| {
        let value = call.arguments.get(&index).map_or(json!({"missing": true}), |value| line_value(trace, value));
        json!([bytes_value(label), value])
    });
    let flags = flags_of(trace, call) | u32::from(call.is_fake) | if call.is_incomplete { 64 } else { 0 };
    let hidden = if model::text::is_hidden(trace, call, flags) { 128 } else { 0 };
    let mut made = json!({
        "no": call.number,
        "thread": call.thread,
        "name": bytes_value(trace.name(call.function)),
        "args": arguments.collect::<Vec<_>>(),
        "flags": flags | hidden,
    });
    if let Some(result) = &call.result {
        made["ret"] = line_value(trace, result);
    }
    if call.is_incomplete {
        made["incomplete"] = json!(true);
    }
    if let Some(stack) = &call.stack {
        let frame = |id: &u64| {
            let frame = &trace.frames[id];
            let mut made = json!({});
            for (key, text) in [("module", &frame.module), ("function", &frame.function), ("file", &frame.file)] {
                if let Some(text) = text {
                    made[key] = bytes_value(text);
                }
            }
            for (key, number) in [("line", frame.line), ("offset", frame.offset)] {
                if let Some(number) = number {
                    made[key] = json!(number);
                }
            }
            made
        };
        made["backtrace"] = stack.iter().map(frame).collect();
    }
    made
}

fn lines(bytes: &[u8], workers: usize) -> String {
    let mut out = Vec::new();
    let options = JsonlOptions { workers, ..JsonlOptions::default() };
    jsonl(&mut reader(bytes), &options, &mut out, &mut Collect::default()).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn lines_have_every_value_of_every_call() {
    let mut random = Random(34);
    for round in 0..80 {
        let trace = random_trace(&mut random, 30);
        let text = lines(&encode(&trace), round % 3);
        let mut read = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let header = read.next().unwrap();
        let properties: Vec<_> =
            trace.properties.iter().map(|(name, value)| json!([bytes_value(name), bytes_value(value)])).collect();
        assert_eq!((&header["properties"], &header["semantic_version"]), (&json!(properties), &json!(6)));
        for (found, call) in read.by_ref().zip(trace.calls()) {
            let mut found = plain(&found);
            // Bits of flags without a meaning.
            found.as_object_mut().unwrap().remove("wire_flags");
            assert_eq!(found, plain(&line(&trace, &call)), "round {round}");
        }
        assert!(read.next().is_none());
        assert_eq!(text.lines().count(), trace.calls().len() + 1, "round {round}");
    }
}

#[test]
fn a_trace_made_of_the_lines_has_the_same_lines() {
    let mut random = Random(35);
    let file = tempfile::NamedTempFile::new().unwrap();
    for round in 0..40 {
        let text = lines(&encode(&random_trace(&mut random, 30)), 0);
        std::fs::write(file.path(), &text).unwrap();
        let mut out = MemoryTarget::default();
        let target = TargetOptions { own: Settings::default().with("container", "raw"), ..TargetOptions::default() };
        from_jsonl(file.path(), Limits::default(), &target, &mut out).unwrap();
        assert_eq!(lines(&out.0, 0), text, "round {round}");
    }
}

/// A value as Python reads it from a pickle, in the shapes of `unpickle`.
fn pickle_value(trace: &Trace, value: &V, is_symbolic: bool) -> Value {
    let of = |value: &V| pickle_value(trace, value, is_symbolic);
    let long = |value: i128| match u64::try_from(value) {
        Ok(value) => json!(value),
        Err(_) => i64::try_from(value).map_or(json!({"long": value.to_string()}), Value::from),
    };
    let float = |value: f64| match value {
        _ if value.is_nan() => json!({"float": "nan"}),
        f64::INFINITY => json!({"float": "inf"}),
        f64::NEG_INFINITY => json!({"float": "-inf"}),
        _ => json!(value),
    };
    match value {
        V::Null => json!(0),
        V::Bool(value) => json!(value),
        V::Minus(magnitude) => long(-i128::from(*magnitude)),
        V::Number(value) => json!(value),
        V::Float(bits) => float(f32::from_bits(*bits).into()),
        V::Double(bits) => float(f64::from_bits(*bits)),
        V::Text(text) => pickle_text(text),
        V::Blob(blob) => {
            let digest: String = Sha256::digest(blob).iter().map(|byte| format!("{byte:02x}")).collect();
            json!({"blob": blob.len(), "sha256": digest})
        }
        V::Enum(id, value) => {
            let name = trace.enums[id].iter().find(|(_, known)| known == value).filter(|_| is_symbolic);
            name.map_or(json!(value), |(name, _)| pickle_text(name))
        }
        V::Mask(id, value) if is_symbolic => {
            // A flag of zero counts only if it is the first, as the document says.
            let flags = &trace.masks[id];
            let (mut rest, mut parts) = (*value, Vec::new());
            for (at, (name, bits)) in flags.iter().enumerate() {
                let is_set = if *bits == 0 { *value == 0 && at == 0 } else { rest & bits == *bits };
                if is_set {
                    parts.push(pickle_text(name));
                    rest &= !bits;
                }
            }
            parts.extend((rest != 0).then(|| json!(rest)));
            json!({"tuple": parts})
        }
        V::Mask(_, value) => json!(value),
        V::Array(values) => values.iter().map(of).collect(),
        V::Struct(id, values) => {
            let names = &trace.structs[id].1;
            json!({"struct": names.iter().zip(values).map(|(name, value)| json!([pickle_text(name), of(value)])).collect::<Vec<_>>()})
        }
        V::Pointer(address) => json!({"ptr": format!("{address:#x}")}),
        V::Pair(human, machine) => of(if is_symbolic { human } else { machine }),
        V::Wide(characters) => {
            json!(characters.iter().map(|one| char::from_u32(*one as u32).unwrap()).collect::<String>())
        }
    }
}

/// Bytes that are no UTF-8 are those of `surrogateescape`.
fn pickle_text(bytes: &[u8]) -> Value {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return json!(text);
    }
    let mut escaped = Vec::new();
    for chunk in bytes.utf8_chunks() {
        escaped.extend(chunk.valid().bytes());
        // U+DC80 and above as three bytes.
        chunk.invalid().iter().for_each(|byte| escaped.extend([0xed, 0xb0 | byte >> 6, 0x80 | byte & 0x3f]));
    }
    json!({"surrogates": escaped})
}

#[test]
fn pickles_are_what_python_would_read() {
    let mut random = Random(36);
    for round in 0..80 {
        let trace = random_trace(&mut random, 30);
        let is_symbolic = round % 2 == 0;
        let options = PickleOptions { is_symbolic, workers: round % 3, ..PickleOptions::default() };
        let mut out = Vec::new();
        pickle(&mut reader(&encode(&trace)), &options, &mut out, &mut Collect::default()).unwrap();
        let found = unpickle::calls(&out);
        assert_eq!(found.len(), trace.calls().len());
        for (found, call) in found.iter().zip(trace.calls()) {
            let labels = &trace.functions[&call.function].1;
            let of = |value: Option<&V>| value.map_or(Value::Null, |value| pickle_value(&trace, value, is_symbolic));
            let arguments: Vec<_> = (0..)
                .zip(labels)
                .map(|(index, label)| json!([pickle_text(label), of(call.arguments.get(&index))]))
                .collect();
            assert_eq!(found["no"], json!(call.number), "round {round}");
            assert_eq!(found["name"], pickle_text(trace.name(call.function)), "round {round}");
            assert_eq!(found["args"], json!(arguments), "round {round}: call {}", call.number);
            assert_eq!(found["ret"], of(call.result.as_ref()), "round {round}: call {}", call.number);
        }
    }
}

/// Bytes of strings and blobs, and values of arrays, of everything on the wire.
fn count(value: &V, sums: &mut BTreeMap<&'static str, u64>) {
    let mut add = |name, number: usize| *sums.entry(name).or_default() += number as u64;
    match value {
        V::Text(text) => add("strings", text.len()),
        V::Wide(characters) => add("strings", characters.len() * 4),
        V::Blob(blob) => add("blobs", blob.len()),
        V::Array(values) => {
            add("arrays", values.len());
            values.iter().for_each(|value| count(value, sums));
        }
        V::Struct(_, values) => values.iter().for_each(|value| count(value, sums)),
        V::Pair(human, machine) => {
            count(human, sums);
            count(machine, sums);
        }
        _ => {}
    }
}

#[test]
fn statistics_are_the_sums_of_all_values() {
    let mut random = Random(37);
    for round in 0..60 {
        let trace = random_trace(&mut random, 40);
        let bytes = encode(&trace);
        let mut sums = BTreeMap::new();
        for event in &trace.events {
            let (Event::Enter(_, _, details) | Event::Leave(_, details)) = event;
            for detail in details {
                if let Detail::Argument(_, value) | Detail::Return(value) = detail {
                    count(value, &mut sums);
                }
            }
        }
        let sum = |name| sums.get(name).copied().unwrap_or(0);
        let found = stats(&mut reader(&bytes), &StatsOptions::default(), &mut Collect::default()).unwrap();
        let calls = trace.calls();
        let header = encode(&Trace { events: Vec::new(), ..trace.clone() }).len();
        let draws = calls.iter().filter(|call| flags_of(&trace, call) & 8 != 0).count() as u64;
        let expected =
            [calls.len() as u64, (bytes.len() - header) as u64, draws, sum("blobs"), sum("strings"), sum("arrays")];
        let total = found.total;
        let counted =
            [total.calls, total.raw_bytes, total.draws, total.blob_bytes, total.string_bytes, total.array_values];
        assert_eq!(counted, expected, "round {round}");
        assert_eq!(found.frames_ended, frames(&trace).len() as u64, "round {round}");
        assert_eq!(found.incomplete, calls.iter().filter(|call| call.is_incomplete).count() as u64, "round {round}");
    }
}
