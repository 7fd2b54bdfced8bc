//! The text of `apitrace dump`, after the grammar of the format's document, one call at a time and without haste.

use std::collections::BTreeMap;

use super::{Call, Frame, Trace, Value};

/// What is shown; the rest of the options selects calls.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    pub numbers: bool,
    pub threads: bool,
    pub names: bool,
    pub lines: bool,
    /// Strings so that C reads them back.
    pub is_c: bool,
}

/// Flags of functions by name, as the corpus has them from apitrace.
pub fn flags() -> BTreeMap<&'static [u8], u32> {
    let lines = include_str!("../../corpus/callflags.tsv").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let mut cells = line.split('\t');
        (cells.next().unwrap().as_bytes(), cells.next().unwrap().parse().unwrap())
    };
    lines.map(row).collect()
}

pub const END_FRAME: u32 = 32;
const VERBOSE: u32 = 128;

/// Properties by name; of equal names the last one counts.
pub fn properties(trace: &Trace, look: Look) -> Vec<u8> {
    let last: BTreeMap<_, _> = trace.properties.iter().map(|(name, value)| (name, value)).collect();
    let line = |(name, value): (&Vec<u8>, &Vec<u8>)| [b"// ", &name[..], b" = ", &quoted(value, look), b"\n"].concat();
    last.into_iter().flat_map(line).collect()
}

/// True for calls that only `--verbose` shows.
pub fn is_hidden(trace: &Trace, call: &Call, flags: u32) -> bool {
    let is_zero = match &call.result {
        Some(Value::Pair(_, machine)) => is_zero(machine),
        Some(value) => is_zero(value),
        None => false,
    };
    flags & VERBOSE != 0 || trace.name(call.function) == b"glGetError" && call.arguments.is_empty() && is_zero
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Minus(value) | Value::Number(value) | Value::Mask(_, value) | Value::Pointer(value) => *value == 0,
        Value::Enum(_, value) => *value == 0,
        // As a C++ program converts them to integers.
        Value::Float(bits) => f32::from_bits(*bits).abs() < 1.0,
        Value::Double(bits) => f64::from_bits(*bits).abs() < 1.0,
        _ => false,
    }
}

pub fn call(trace: &Trace, call: &Call, flags: u32, look: Look) -> Vec<u8> {
    let mut out = Vec::new();
    if look.numbers {
        out.extend(format!("{} ", call.number).bytes());
    }
    if look.threads {
        out.extend(format!("@{:x} ", call.thread).bytes());
    }
    let (name, labels) = &trace.functions[&call.function];
    out.extend(name);
    out.push(b'(');
    // As many as the signature has: the samples `corpus/peer/allvals_*` show what apitrace prints for missing ones.
    for (index, label) in (0..).zip(labels) {
        out.extend(if index > 0 { &b", "[..] } else { b"" });
        if look.names {
            out.extend([&label[..], b" = "].concat());
        }
        out.extend(call.arguments.get(&index).map_or(b"?".to_vec(), |shown| value(trace, shown, look)));
    }
    out.push(b')');
    if let Some(result) = &call.result {
        out.extend(b" = ");
        out.extend(value(trace, result, look));
    }
    if call.is_fake || call.is_incomplete {
        out.extend(b" //");
        out.extend(if call.is_fake { &b" fake"[..] } else { b"" });
        out.extend(if call.is_incomplete { &b" incomplete"[..] } else { b"" });
    }
    out.push(b'\n');
    if look.lines {
        if let Some(stack) = &call.stack {
            out.extend(b"Backtrace:\n");
            stack.iter().for_each(|id| out.extend(frame(&trace.frames[id])));
        }
        out.extend(if flags & END_FRAME != 0 { &b"\n"[..] } else { b"" });
    }
    out
}

fn frame(frame: &Frame) -> Vec<u8> {
    let mut out = frame.module.clone().unwrap_or(b"?".to_vec());
    if let Some(function) = &frame.function {
        out.extend([b": ", &function[..]].concat());
    }
    if let Some(offset) = frame.offset {
        out.extend(format!("+{offset:#x}").bytes());
    }
    if let Some(file) = &frame.file {
        out.extend([b": ", &file[..]].concat());
        out.extend(frame.line.map_or(String::new(), |line| format!(":{line}")).bytes());
    }
    out.push(b'\n');
    out
}

fn joined(parts: impl IntoIterator<Item = Vec<u8>>, separator: &[u8]) -> Vec<u8> {
    parts.into_iter().collect::<Vec<_>>().join(separator)
}

pub fn value(trace: &Trace, shown: &Value, look: Look) -> Vec<u8> {
    match shown {
        Value::Null => b"NULL".to_vec(),
        Value::Bool(value) => value.to_string().into_bytes(),
        Value::Minus(magnitude) => (-i128::from(*magnitude)).to_string().into_bytes(),
        Value::Number(value) => value.to_string().into_bytes(),
        Value::Float(bits) => general(f64::from(f32::from_bits(*bits)), 7).into_bytes(),
        Value::Double(bits) => general(f64::from_bits(*bits), 16).into_bytes(),
        Value::Text(text) => quoted(text, look),
        Value::Blob(blob) => format!("blob({})", blob.len()).into_bytes(),
        Value::Enum(id, value) => {
            let name = trace.enums[id].iter().find(|(_, known)| known == value).map(|(name, _)| name.clone());
            name.unwrap_or(value.to_string().into_bytes())
        }
        Value::Mask(id, value) => mask(&trace.masks[id], *value),
        Value::Array(values) if values.len() == 1 => [b"&", &value(trace, &values[0], look)[..]].concat(),
        Value::Array(values) => {
            [b"{", &joined(values.iter().map(|one| value(trace, one, look)), b", ")[..], b"}"].concat()
        }
        Value::Struct(id, values) => [b"{", &joined(members(trace, *id, values, look), b", ")[..], b"}"].concat(),
        Value::Pointer(address) => format!("{address:#x}").into_bytes(),
        Value::Pair(human, _) => value(trace, human, look),
        Value::Wide(characters) => {
            let plain = characters.iter().flat_map(|character| wide(*character, look));
            [b"L\"".to_vec(), plain.collect(), b"\"".to_vec()].concat()
        }
    }
}

/// The members of a structure; those of its members without a name count as its own.
fn members(trace: &Trace, id: u64, values: &[Value], look: Look) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (name, member) in trace.structs[&id].1.iter().zip(values) {
        match member {
            Value::Struct(id, values) if name.is_empty() => all.extend(members(trace, *id, values, look)),
            _ => all.push([&name[..], b" = ", &value(trace, member, look)].concat()),
        }
    }
    all
}

/// Flags in the order of the signature, each of bits that no earlier one has taken.
fn mask(flags: &[(Vec<u8>, u64)], value: u64) -> Vec<u8> {
    let (mut parts, mut rest) = (Vec::new(), value);
    for (at, (name, bits)) in flags.iter().enumerate() {
        let is_set = if *bits == 0 { rest == 0 } else { rest & bits == *bits };
        let is_over = rest == 0 && at > 0 && !parts.is_empty();
        if is_set && !is_over {
            parts.push(name.clone());
            rest &= !bits;
        }
    }
    if rest != 0 || parts.is_empty() {
        parts.push(format!("{rest:#x}").into_bytes());
    }
    joined(parts, b" | ")
}

fn quoted(text: &[u8], look: Look) -> Vec<u8> {
    let end = text.iter().position(|byte| *byte == 0).filter(|_| !look.is_c).unwrap_or(text.len());
    let plain = text[..end].iter().flat_map(|byte| wide(u64::from(*byte), look));
    [b"\"".to_vec(), plain.collect(), b"\"".to_vec()].concat()
}

/// A character of a string. The octal numbers of the peer are wrong: the document has the rule.
fn wide(character: u64, look: Look) -> Vec<u8> {
    let text = match (character, look.is_c) {
        (0x22 | 0x5c, _) => format!("\\{}", character as u8 as char),
        (0x20..0x7f, _) => (character as u8 as char).to_string(),
        (10, true) => "\\n".to_owned(),
        (10, false) => if look.lines { "\n" } else { "\\n" }.to_owned(),
        (9, true) => "\\t".to_owned(),
        (9, false) => "\t".to_owned(),
        (13, true) => "\\r".to_owned(),
        (13, false) => String::new(),
        (..256, true) => format!("\\{character:03o}"),
        (_, true) => format!("\\u{character:04x}"),
        (_, false) => {
            let (high, low) = (character >> 3 & 7, character & 7);
            if high == 0 { format!("\\{low}") } else { format!("\\{high}{high}{low}") }
        }
    };
    text.into_bytes()
}

/// C's `%.Ng`.
pub fn general(value: f64, digits: usize) -> String {
    let sign = if value.is_sign_negative() { "-" } else { "" };
    if value.is_nan() || value.is_infinite() {
        return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
    }
    let scientific = format!("{:.*e}", digits - 1, value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    let cut = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if exponent < -4 || exponent >= digits as i32 {
        let mark = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{}e{mark}{:02}", cut(mantissa.to_owned()), exponent.abs());
    }
    format!("{sign}{}", cut(format!("{:.*}", (digits as i32 - 1 - exponent) as usize, value.abs())))
}
