//! Traces from lines of calls. Shares no code with the crate.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::HashMap;

use crate::build::{Build, blob, leb, string, uint};

/// A value: `12`, `-1`, `1.5`, `null`, `"text"`, `[1, 2]` (of plain values), `blob:N`, `ptr:N`.
fn value(text: &str) -> Vec<u8> {
    if let Some(inner) = text.strip_prefix('[') {
        let items: Vec<&str> = inner.trim_end_matches(']').split(';').filter(|item| !item.is_empty()).collect();
        let mut out = [vec![11], leb(items.len() as u64)].concat();
        for item in items {
            out.extend(value(item));
        }
        return out;
    }
    if let Some(length) = text.strip_prefix("blob:") {
        return blob(&vec![7; length.parse().unwrap()]);
    }
    if let Some(address) = text.strip_prefix("ptr:") {
        return [vec![13], leb(address.parse().unwrap())].concat();
    }
    match text {
        "null" => vec![0],
        _ if text.starts_with('"') => string(text.trim_matches('"')),
        _ if text.contains('.') => [vec![5], text.parse::<f32>().unwrap().to_le_bytes().to_vec()].concat(),
        _ => match text.strip_prefix('-') {
            Some(magnitude) => [vec![3], leb(magnitude.parse().unwrap())].concat(),
            None => uint(text.parse().unwrap()),
        },
    }
}

/// A version 6 trace with one call per line: `[@THREAD] NAME [VALUE …] [= RESULT]`, `!` before the name for calls that
/// the tracer inserted. Arrays are written `[1;2]`.
pub fn trace(lines: &str) -> Vec<u8> {
    let mut b = Build::version(6);
    let mut ids: HashMap<String, u64> = HashMap::new();
    for (call_number, line) in (0..).zip(lines.lines().map(str::trim).filter(|line| !line.is_empty())) {
        let (call, result) = line.split_once(" = ").map_or((line, None), |(call, result)| (call, Some(result)));
        let mut words = call.split(' ').peekable();
        let thread = words.next_if(|word| word.starts_with('@')).map_or(0, |word| word[1..].parse().unwrap());
        let name = words.next().unwrap();
        let (name, is_fake) = name.strip_prefix('!').map_or((name, false), |name| (name, true));
        let arguments: Vec<&str> = words.collect();
        let next = ids.len() as u64;
        let id = *ids.entry(name.to_owned()).or_insert(next);
        if id == next {
            b.enter_new(thread, id, name, &["a", "b", "c", "d", "e", "f", "g", "h", "i"]);
        } else {
            b.enter(thread, id);
        }
        if is_fake {
            b.add(&[5, 1]);
        }
        for (index, argument) in (0..).zip(&arguments) {
            b.argument(index, &value(argument));
        }
        b.end();
        b.leave(call_number);
        if let Some(result) = result {
            b.add(&[2]).add(&value(result));
        }
        b.end();
    }
    b.bytes
}
