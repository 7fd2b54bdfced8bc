//! Values as JSON.

use super::Value;
use crate::text::{self, shown};

/// Greatest number that every reader of JSON keeps exactly (2^53 - 1).
const EXACT_MAX: u64 = (1 << 53) - 1;

/// A value as JSON: numbers that JavaScript cannot represent and floats that JSON cannot are strings, addresses are
/// hexadecimal strings, bytes that are not text are `{"hex":"…"}`.
pub fn push_json_value(out: &mut Vec<u8>, value: Value<'_>) {
    match value {
        Value::U64(v) if v > EXACT_MAX => quoted(out, |out| text::push_dec(out, v)),
        Value::U64(v) => text::push_dec(out, v),
        Value::I64(v) if v.unsigned_abs() > EXACT_MAX => quoted(out, |out| text::push_dec(out, v)),
        Value::I64(v) => text::push_dec(out, v),
        Value::F64(v) if v.is_finite() => out.extend_from_slice(format!("{v:?}").as_bytes()),
        Value::F64(v) => quoted(out, |out| out.extend_from_slice(v.to_string().as_bytes())),
        Value::Bool(v) => out.extend_from_slice(if v { b"true" } else { b"false" }),
        Value::Address(v) => quoted(out, |out| text::push_hex(out, v)),
        Value::Text(v) => text::push_json_str(out, &shown(v)),
        Value::Bytes(v) => {
            out.extend_from_slice(b"{\"hex\":\"");
            text::push_hex_bytes(out, v);
            out.extend_from_slice(b"\"}");
        }
        Value::Array(items) => {
            out.push(b'[');
            for (n, item) in items.enumerate() {
                if n > 0 {
                    out.push(b',');
                }
                push_json_value(out, item);
            }
            out.push(b']');
        }
    }
}

fn quoted(out: &mut Vec<u8>, inner: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    inner(out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Items;

    #[test]
    fn every_value_is_valid_json_and_no_number_loses_digits() {
        let mut list = Vec::new();
        Items::push(&mut list, Value::U64(1));
        Items::push(&mut list, Value::Text(b"\""));
        let nested = {
            let mut outer = Vec::new();
            Items::push(&mut outer, Value::Array(Items::of(&list)));
            outer
        };
        let values = [
            (Value::Array(Items::of(&list)), "[1,\"\\\"\"]"),
            (Value::Array(Items::of(&nested)), "[[1,\"\\\"\"]]"),
            (Value::Array(Items::of(&[])), "[]"),
            (Value::U64(u64::MAX), "\"18446744073709551615\""),
            (Value::U64(EXACT_MAX), "9007199254740991"),
            (Value::I64(i64::MIN), "\"-9223372036854775808\""),
            (Value::I64(-5), "-5"),
            (Value::F64(0.1), "0.1"),
            (Value::F64(1e300), "1e300"),
            (Value::F64(f64::NAN), "\"NaN\""),
            (Value::F64(f64::NEG_INFINITY), "\"-inf\""),
            (Value::Address(0xdead), "\"0xdead\""),
            (Value::Text(b"q\"\xff\x1b"), "\"q\\\"\\\\xff\\u001b\""),
            (Value::Bytes(&[0, 255]), "{\"hex\":\"00ff\"}"),
            (Value::Bool(true), "true"),
        ];
        for (value, wanted) in values {
            let mut out = Vec::new();
            push_json_value(&mut out, value);
            assert_eq!(String::from_utf8(out.clone()).unwrap(), wanted);
            serde_json::from_slice::<serde_json::Value>(&out).unwrap();
        }
    }
}
