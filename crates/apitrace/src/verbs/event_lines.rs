//! Encodes events from their JSON lines.

use anytrace_core::jsonl;
use serde_json::Value;

use crate::wire::record::VERSION_ENUM_SETS;
use crate::wire::scan::{push_signed, push_string, push_uint};

pub(crate) fn push_names(out: &mut Vec<u8>, names: &[Value]) -> Option<()> {
    push_uint(out, names.len() as u64);
    for name in names {
        push_string(out, &jsonl::value_bytes(name)?);
    }
    Some(())
}

pub(crate) fn push_detail(out: &mut Vec<u8>, detail: &Value, version: u64) -> Option<()> {
    let number = |key: &str| detail.get(key).map(|value| value.as_u64());
    if let Some(index) = number("argument") {
        out.push(1);
        push_uint(out, index?);
        return push_value(out, detail.get("value")?, version);
    }
    if let Some(value) = detail.get("return") {
        out.push(2);
        return push_value(out, value, version);
    }
    if let Some(thread) = number("thread") {
        out.push(3);
        push_uint(out, thread?);
        return Some(());
    }
    if let Some(flags) = number("flags") {
        out.push(5);
        push_uint(out, flags?);
        return Some(());
    }
    let frames = detail.get("backtrace")?.as_array()?;
    out.push(4);
    push_uint(out, frames.len() as u64);
    for frame in frames {
        push_uint(out, frame.get("frame")?.as_u64()?);
        let Some(details) = frame.get("defines") else { continue };
        for pair in details.as_array()? {
            push_frame_detail(out, pair.get(0)?.as_str()?, pair.get(1)?)?;
        }
        out.push(0);
    }
    Some(())
}

fn push_frame_detail(out: &mut Vec<u8>, key: &str, value: &Value) -> Option<()> {
    let tag = ["module", "function", "file", "line", "offset"].iter().position(|name| *name == key)?;
    out.push(u8::try_from(tag).ok()? + 1);
    if tag < 3 {
        push_string(out, &jsonl::value_bytes(value)?);
    } else {
        push_uint(out, value.as_u64()?);
    }
    Some(())
}

/// A number with sign byte: plain, or `{"minus":magnitude}`.
fn signed(value: &Value) -> Option<crate::Signed> {
    let minus = |magnitude| crate::Signed { is_negative: true, magnitude };
    match value {
        Value::Number(number) => match number.as_u64() {
            Some(magnitude) => Some(crate::Signed { is_negative: false, magnitude }),
            None => Some(minus(number.as_i64()?.unsigned_abs())),
        },
        _ => Some(minus(value.get("minus")?.as_u64()?)),
    }
}

/// Values nest as deep as the JSON reader allows, 128 levels.
fn push_value(out: &mut Vec<u8>, value: &Value, version: u64) -> Option<()> {
    match value {
        Value::Null => out.push(0),
        Value::Bool(value) => out.push(if *value { 2 } else { 1 }),
        Value::Number(_) => push_signed(out, signed(value)?),
        Value::String(text) => {
            out.push(7);
            push_string(out, text.as_bytes());
        }
        Value::Array(values) => {
            out.push(11);
            push_uint(out, values.len() as u64);
            for value in values {
                push_value(out, value, version)?;
            }
        }
        Value::Object(_) => push_object(out, value, version)?,
    }
    Some(())
}

fn push_object(out: &mut Vec<u8>, value: &Value, version: u64) -> Option<()> {
    if value.get("minus").is_some() {
        push_signed(out, signed(value)?);
    } else if value.get("hex").is_some() {
        out.push(7);
        push_string(out, &jsonl::value_bytes(value)?);
    } else if let Some(hex) = value.get("blob") {
        out.push(8);
        push_string(out, &anytrace_core::text::parse_hex_bytes(hex.as_str()?)?);
    } else if let Some(bits) = value.get("float_bits") {
        out.push(5);
        out.extend_from_slice(&u32::try_from(bits.as_u64()?).ok()?.to_le_bytes());
    } else if let Some(bits) = value.get("double_bits") {
        out.push(6);
        out.extend_from_slice(&bits.as_u64()?.to_le_bytes());
    } else if let Some(pointer) = value.get("pointer") {
        out.push(13);
        push_uint(out, pointer.as_u64()?);
    } else if let Some(chars) = value.get("wide") {
        let chars = chars.as_array()?;
        out.push(15);
        push_uint(out, chars.len() as u64);
        for char in chars {
            push_uint(out, char.as_u64()?);
        }
    } else if let Some(pair) = value.get("repr") {
        out.push(14);
        let pair = pair.as_array().filter(|pair| pair.len() == 2)?;
        for value in pair {
            push_value(out, value, version)?;
        }
    } else {
        push_signed_types(out, value, version)?;
    }
    Some(())
}

/// Values with signatures.
fn push_signed_types(out: &mut Vec<u8>, value: &Value, version: u64) -> Option<()> {
    let defines = value.get("defines").map(|defines| defines.as_array());
    if let Some(id) = value.get("enum") {
        out.push(9);
        push_uint(out, id.as_u64()?);
        if version < VERSION_ENUM_SETS {
            if let Some(pair) = defines {
                push_string(out, &jsonl::value_bytes(pair?.first()?)?);
                push_signed(out, signed(pair?.get(1)?)?);
            }
            return Some(());
        }
        if let Some(set) = defines {
            push_uint(out, set?.len() as u64);
            for pair in set? {
                push_string(out, &jsonl::value_bytes(pair.get(0)?)?);
                push_signed(out, signed(pair.get(1)?)?);
            }
        }
        push_signed(out, signed(value.get("value")?)?);
    } else if let Some(id) = value.get("bitmask") {
        out.push(10);
        push_uint(out, id.as_u64()?);
        if let Some(set) = defines {
            push_uint(out, set?.len() as u64);
            for pair in set? {
                push_string(out, &jsonl::value_bytes(pair.get(0)?)?);
                push_uint(out, pair.get(1)?.as_u64()?);
            }
        }
        push_uint(out, value.get("value")?.as_u64()?);
    } else {
        out.push(12);
        push_uint(out, value.get("struct")?.as_u64()?);
        if let Some(names) = defines {
            push_string(out, &jsonl::value_bytes(value.get("name")?)?);
            push_names(out, names?)?;
        }
        for member in value.get("members")?.as_array()? {
            push_value(out, member, version)?;
        }
    }
    Some(())
}
