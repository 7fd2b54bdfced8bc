//! A reader for apitrace's pickles, written from CPython's description of the opcodes, for tests only.
#![allow(unreachable_pub, reason = "a module of a test")]

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// An item on the stack while a pickle is read.
enum Item {
    Mark,
    Value(Value),
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (now, later) = bytes.split_at(count);
    *bytes = later;
    now
}

fn length(bytes: &mut &[u8]) -> usize {
    u32::from_le_bytes(take(bytes, 4).try_into().unwrap()) as usize
}

fn since_mark(stack: &mut Vec<Item>) -> Vec<Value> {
    let mut values = Vec::new();
    loop {
        match stack.pop().unwrap() {
            Item::Mark => break,
            Item::Value(value) => values.push(value),
        }
    }
    values.reverse();
    values
}

fn pop(stack: &mut Vec<Item>) -> Value {
    match stack.pop().unwrap() {
        Item::Value(value) => value,
        Item::Mark => panic!("a mark where a value was expected"),
    }
}

fn long(bytes: &[u8]) -> i128 {
    let fill = if bytes.last().is_some_and(|last| last & 0x80 != 0) { 0xff } else { 0 };
    let mut wide = [fill; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    i128::from_le_bytes(wide)
}

fn number(value: i128) -> Value {
    u64::try_from(value)
        .map(Value::from)
        .or_else(|_| i64::try_from(value).map(Value::from))
        .unwrap_or_else(|_| json!({"long": value.to_string()}))
}

fn float(value: f64) -> Value {
    if value.is_finite() {
        return json!(value);
    }
    json!({"float": if value.is_nan() { "nan" } else if value > 0.0 { "inf" } else { "-inf" }})
}

fn blob(bytes: &[u8]) -> Value {
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({"blob": bytes.len(), "sha256": digest})
}

/// Text as in Python; lone surrogates as `?`, because Rust's JSON has none.
fn unicode(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!(text),
        Err(_) => json!({"surrogates": bytes}),
    }
}

/// Reads one pickle, in the shapes of the shared corpus' `pickle.jsonl`.
fn one(bytes: &mut &[u8]) -> Value {
    assert_eq!(take(bytes, 2), b"\x80\x03");
    let mut stack: Vec<Item> = Vec::new();
    loop {
        let value = match take(bytes, 1)[0] {
            b'(' => {
                stack.push(Item::Mark);
                continue;
            }
            b'q' => {
                take(bytes, 1);
                continue;
            }
            b'.' => {
                let value = pop(&mut stack);
                assert!(stack.is_empty());
                return value;
            }
            b'N' => Value::Null,
            0x88 => json!(true),
            0x89 => json!(false),
            b'K' => json!(take(bytes, 1)[0]),
            b'M' => json!(u16::from_le_bytes(take(bytes, 2).try_into().unwrap())),
            b'J' => json!(i32::from_le_bytes(take(bytes, 4).try_into().unwrap())),
            0x8a => {
                let count = usize::from(take(bytes, 1)[0]);
                number(long(take(bytes, count)))
            }
            b'G' => float(f64::from_be_bytes(take(bytes, 8).try_into().unwrap())),
            b'U' => {
                let count = usize::from(take(bytes, 1)[0]);
                json!(String::from_utf8(take(bytes, count).to_vec()).unwrap())
            }
            b'T' => {
                let count = length(bytes);
                json!(String::from_utf8(take(bytes, count).to_vec()).unwrap())
            }
            b'X' => {
                let count = length(bytes);
                unicode(take(bytes, count))
            }
            b'C' => {
                let count = usize::from(take(bytes, 1)[0]);
                blob(take(bytes, count))
            }
            b'B' => {
                let count = length(bytes);
                blob(take(bytes, count))
            }
            b'c' => {
                assert_eq!(take(bytes, 17), b"unpickle\nPointer\n");
                json!("class")
            }
            0x85 => json!([pop(&mut stack)]),
            0x86 => {
                let second = pop(&mut stack);
                json!({"pair": [pop(&mut stack), second]})
            }
            b'R' => {
                let arguments = pop(&mut stack);
                assert_eq!(pop(&mut stack), json!("class"));
                let value = arguments[0].as_i64().map(i128::from).or(arguments[0].as_u64().map(i128::from)).unwrap();
                let sign = if value < 0 { "-" } else { "" };
                json!({"ptr": format!("{sign}{:#x}", value.unsigned_abs())})
            }
            b']' => json!([]),
            b'e' => {
                let items = since_mark(&mut stack);
                assert_eq!(pop(&mut stack), json!([]));
                json!(items)
            }
            b'}' => json!({"struct": []}),
            b's' => {
                let (value, key) = (pop(&mut stack), pop(&mut stack));
                let mut dict = pop(&mut stack);
                let items = dict["struct"].as_array_mut().unwrap();
                match items.iter_mut().find(|item| item[0] == key) {
                    Some(item) => item[1] = value,
                    None => items.push(json!([key, value])),
                }
                dict
            }
            b't' => json!({"tuple": since_mark(&mut stack)}),
            other => panic!("opcode {other:#x}"),
        };
        stack.push(Item::Value(value));
    }
}

/// Reads pickles of calls until there are no more.
pub fn calls(mut bytes: &[u8]) -> Vec<Value> {
    let mut calls = Vec::new();
    while !bytes.is_empty() {
        let call = one(&mut bytes);
        let call = call["tuple"].as_array().unwrap();
        assert_eq!(call.len(), 5);
        let arguments: Vec<Value> = call[2].as_array().unwrap().iter().map(|pair| pair["pair"].clone()).collect();
        calls.push(json!({"no": call[0], "name": call[1], "args": arguments, "ret": call[3], "flags": call[4]}));
    }
    calls
}
