//! Values of JSON lines of calls as bytes of a trace, and the signatures they need.

use std::collections::HashMap;

use anytrace_core::{Error, jsonl};
use base64_simd::STANDARD;
use serde_json::Value;

use crate::wire::scan::{push_signed, push_string, push_uint};
use crate::{Signed, Space};

/// Most bytes of all signatures.
const SIGNATURE_BYTES_MAX: usize = 1 << 26;

/// Writes events with their signatures.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Ids by definition, for each space.
    ids: [HashMap<Box<[u8]>, u64>; 5],
    signature_bytes: usize,
    pub(crate) next_call: u64,
}

/// "field: expected this, found that value".
pub(crate) fn wrong(line: &jsonl::Object, field: &str, expected: &str, found: &Value) -> Error {
    let mut text = found.to_string();
    if let Some((at, _)) = text.char_indices().nth(80) {
        text.truncate(at);
        text.push('…');
    }
    line.wrong(field, expected, text)
}

impl Writer {
    /// Writes the id of a definition, and the definition itself at its first use.
    fn sign(&mut self, space: Space, definition: Vec<u8>, out: &mut Vec<u8>) -> Result<(), Error> {
        let ids = &mut self.ids[space as usize];
        if let Some(id) = ids.get(definition.as_slice()) {
            push_uint(out, *id);
            return Ok(());
        }
        self.signature_bytes += definition.len() + size_of::<(Box<[u8]>, u64)>();
        if self.signature_bytes > SIGNATURE_BYTES_MAX {
            return Err(Error::limit(format!(
                "functions, enumerations and other signatures need more than {SIGNATURE_BYTES_MAX} bytes"
            )));
        }
        let id = ids.len() as u64;
        push_uint(out, id);
        out.extend_from_slice(&definition);
        ids.insert(definition.into_boxed_slice(), id);
        Ok(())
    }

    /// Writes a function with the names of its arguments.
    pub(crate) fn function(
        &mut self,
        line: &jsonl::Object,
        name: &[u8],
        arguments: &[Value],
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut definition = Vec::new();
        push_string(&mut definition, name);
        push_names(line, "args", arguments, &mut definition)?;
        self.sign(Space::Function, definition, out)
    }

    /// Writes a backtrace.
    pub(crate) fn backtrace(&mut self, line: &jsonl::Object, frames: &[Value], out: &mut Vec<u8>) -> Result<(), Error> {
        out.push(4);
        push_uint(out, frames.len() as u64);
        for frame in frames {
            let mut definition = Vec::new();
            let fields = frame.as_object().ok_or_else(|| wrong(line, "backtrace", "objects", frame))?;
            for (tag, key) in (1..).zip(["module", "function", "file", "line", "offset"]) {
                let Some(value) = fields.get(key) else { continue };
                definition.push(tag);
                if tag < 4 {
                    let bytes = jsonl::value_bytes(value);
                    push_string(&mut definition, &bytes.ok_or_else(|| wrong(line, "backtrace", "text", value))?);
                } else {
                    let number = value.as_u64();
                    push_uint(&mut definition, number.ok_or_else(|| wrong(line, "backtrace", "a number", value))?);
                }
            }
            definition.push(0);
            self.sign(Space::Frame, definition, out)?;
        }
        Ok(())
    }

    /// Writes a value. Values nest as deep as the JSON reader allows, 128 levels.
    pub(crate) fn value(
        &mut self,
        line: &jsonl::Object,
        field: &str,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match value {
            Value::Null => out.push(0),
            Value::Bool(value) => out.push(if *value { 2 } else { 1 }),
            Value::Number(number) => match signed(value) {
                Some(integer) => push_signed(out, integer),
                None => {
                    let float = number.as_f64().ok_or_else(|| wrong(line, field, "a number", value))?;
                    push_float(out, float as f32);
                }
            },
            Value::String(text) => {
                out.push(7);
                push_string(out, text.as_bytes());
            }
            Value::Array(values) => {
                out.push(11);
                push_uint(out, values.len() as u64);
                for value in values {
                    self.value(line, field, value, out)?;
                }
            }
            Value::Object(_) => self.object(line, field, value, out)?,
        }
        Ok(())
    }

    fn object(&mut self, line: &jsonl::Object, field: &str, value: &Value, out: &mut Vec<u8>) -> Result<(), Error> {
        let get = |key: &str| value.get(key);
        let bad = |expected: &str| wrong(line, field, expected, value);
        if get("minus").is_some() {
            push_signed(out, signed(value).ok_or_else(|| bad("a number"))?);
        } else if get("hex").is_some() {
            out.push(7);
            push_string(out, &jsonl::value_bytes(value).ok_or_else(|| bad("hex digits"))?);
        } else if get("blob").is_some() {
            let Some(Value::String(text)) = get("base64") else {
                return Err(bad("a blob with its content in base64: write the lines with --blobs=base64"));
            };
            let bytes = STANDARD.decode_to_vec(text).map_err(|_| bad("base64"))?;
            out.push(8);
            push_string(out, &bytes);
        } else if let Some(float) = get("float") {
            let bits = get("bits").map(|bits| bits.as_u64().and_then(|bits| u32::try_from(bits).ok()));
            let float = match bits {
                Some(bits) => f32::from_bits(bits.ok_or_else(|| bad("32 bits"))?),
                None => special(float).ok_or_else(|| bad("a number, inf, -inf or nan"))? as f32,
            };
            push_float(out, float);
        } else if let Some(double) = get("double") {
            let double = match get("bits") {
                Some(bits) => f64::from_bits(bits.as_u64().ok_or_else(|| bad("64 bits"))?),
                None => special(double).ok_or_else(|| bad("a number, inf, -inf or nan"))?,
            };
            out.push(6);
            out.extend_from_slice(&double.to_le_bytes());
        } else if let Some(pointer) = get("ptr") {
            out.push(13);
            push_uint(out, address(pointer).ok_or_else(|| bad("an address, as \"0x10\""))?);
        } else if let Some(chars) = get("wide") {
            push_wide(out, chars).ok_or_else(|| bad("text or numbers of characters"))?;
        } else if let Some(pair) = get("repr") {
            let pair = pair.as_array().filter(|pair| pair.len() == 2).ok_or_else(|| bad("two values"))?;
            out.push(14);
            for value in pair {
                self.value(line, field, value, out)?;
            }
        } else {
            return self.signed_object(line, field, value, out);
        }
        Ok(())
    }

    /// Values with signatures.
    fn signed_object(
        &mut self,
        line: &jsonl::Object,
        field: &str,
        value: &Value,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let bad = |expected: &str| wrong(line, field, expected, value);
        let number = value.get("value");
        if let Some(name) = value.get("enum") {
            let number = number.and_then(signed).ok_or_else(|| bad("an enumeration with its value"))?;
            let mut definition = Vec::new();
            if name.is_null() {
                definition.push(0);
            } else {
                definition.push(1);
                push_string(&mut definition, &jsonl::value_bytes(name).ok_or_else(|| bad("a name"))?);
                push_signed(&mut definition, number);
            }
            out.push(9);
            self.sign(Space::Enum, definition, out)?;
            push_signed(out, number);
        } else if let Some(flags) = value.get("bitmask") {
            let flags = flags.as_array().ok_or_else(|| bad("an array of flags"))?;
            let mut definition = Vec::new();
            push_uint(&mut definition, flags.len() as u64);
            let mut all = 0;
            for flag in flags {
                let name = flag.get(0).and_then(jsonl::value_bytes);
                let bits = flag.get(1).and_then(Value::as_u64);
                let (Some(name), Some(bits)) = (name, bits) else { return Err(bad("flags with name and value")) };
                push_string(&mut definition, &name);
                push_uint(&mut definition, bits);
                all |= bits;
            }
            // Without a value, use the union of the flags.
            let number = number.map_or(Some(all), Value::as_u64).ok_or_else(|| bad("an unsigned value"))?;
            out.push(10);
            self.sign(Space::Bitmask, definition, out)?;
            push_uint(out, number);
        } else if let Some(members) = value.get("struct") {
            let members = members.as_array().ok_or_else(|| bad("members"))?;
            let name = value.get("name").map_or(Some(Vec::new()), jsonl::value_bytes);
            let mut definition = Vec::new();
            push_string(&mut definition, &name.ok_or_else(|| bad("a name"))?);
            push_names(line, field, members, &mut definition)?;
            out.push(12);
            self.sign(Space::Struct, definition, out)?;
            for member in members {
                let member = member.get(1).ok_or_else(|| bad("pairs of name and value"))?;
                self.value(line, field, member, out)?;
            }
        } else {
            return Err(bad("a value of a known kind"));
        }
        Ok(())
    }
}

/// The names of pairs of name and value.
fn push_names(line: &jsonl::Object, field: &str, pairs: &[Value], out: &mut Vec<u8>) -> Result<(), Error> {
    push_uint(out, pairs.len() as u64);
    for pair in pairs {
        let name = pair.as_array().filter(|pair| pair.len() == 2).and_then(|pair| jsonl::value_bytes(pair.first()?));
        push_string(out, &name.ok_or_else(|| wrong(line, field, "pairs of name and value", pair))?);
    }
    Ok(())
}

fn push_float(out: &mut Vec<u8>, value: f32) {
    out.push(5);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A number as a 64-bit float, or one of the names for infinities and NaN.
fn special(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match text.as_str() {
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            "nan" => Some(f64::NAN),
            _ => None,
        },
        _ => value.as_f64(),
    }
}

fn address(value: &Value) -> Option<u64> {
    match value {
        Value::String(text) => u64::from_str_radix(text.strip_prefix("0x")?, 16).ok(),
        _ => value.as_u64(),
    }
}

fn push_wide(out: &mut Vec<u8>, chars: &Value) -> Option<()> {
    out.push(15);
    match chars {
        Value::String(text) => {
            push_uint(out, text.chars().count() as u64);
            text.chars().for_each(|char| push_uint(out, u64::from(char)));
        }
        _ => {
            let chars = chars.as_array()?;
            push_uint(out, chars.len() as u64);
            for char in chars {
                push_uint(out, char.as_u64()?);
            }
        }
    }
    Some(())
}

/// An integer: plain, or `{"minus":magnitude}`.
fn signed(value: &Value) -> Option<Signed> {
    let minus = |magnitude| Signed { is_negative: true, magnitude };
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(magnitude) => Some(Signed { is_negative: false, magnitude }),
            None => Some(minus(number.as_i64()?.unsigned_abs())),
        },
        _ => Some(minus(value.get("minus")?.as_u64()?)),
    }
}
