//! Attributes and their values as text.

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::text::{push_dec, push_hex, push_quoted};

use crate::verbs::out::FLUSH_BYTES;
use crate::wire::record::{Attributes, Value};

/// Attributes, each with a space before it; long output goes to `to` in pieces.
pub(crate) fn push_attributes(out: &mut Vec<u8>, attributes: Attributes<'_>, to: &mut dyn Write) -> Result<(), Error> {
    for attribute in attributes {
        out.push(b' ');
        push_quoted(out, attribute.name.as_bytes());
        out.push(b'=');
        push_type(out, &attribute.value);
        push_value(out, &attribute.value, to)?;
    }
    Ok(())
}

/// Recursion is bounded by the depth that recovery searches.
fn push_value(out: &mut Vec<u8>, value: &Value<'_>, to: &mut dyn Write) -> Result<(), Error> {
    match value {
        Value::Unsigned(n) => push_dec(out, *n),
        Value::Signed(n) => push_dec(out, *n),
        Value::Float(n) => push_float(out, *n),
        Value::Text(text) => push_quoted(out, text.as_bytes()),
        Value::Array(array) => {
            out.push(b'[');
            for (index, value) in array.values().enumerate() {
                if index > 0 {
                    out.extend_from_slice(b", ");
                }
                push_value(out, &value, to)?;
                if out.len() >= FLUSH_BYTES {
                    to.write_all(out)?;
                    out.clear();
                }
            }
            out.push(b']');
        }
    }
    Ok(())
}

/// `i64:` or `f64[]:`; nothing for the two types whose notation shows the type: unsigned numbers and strings.
fn push_type(out: &mut Vec<u8>, value: &Value<'_>) {
    let name = match value {
        Value::Unsigned(_) | Value::Text(_) => return,
        Value::Signed(_) => "i64",
        Value::Float(_) => "f64",
        Value::Array(array) => array.scalar().name(),
    };
    out.extend_from_slice(name.as_bytes());
    if let Value::Array(array) = value {
        for _ in 0..=array.depth() {
            out.extend_from_slice(b"[]");
        }
    }
    out.push(b':');
}

/// The shortest form that reads back as the same number; a NaN with unusual bits shows its bits.
fn push_float(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() && value.to_bits() != 0x7ff8_0000_0000_0000 {
        out.extend_from_slice(b"NaN(");
        push_hex(out, value.to_bits());
        out.push(b')');
    } else {
        push_shortest(out, value);
    }
}

/// The shortest decimal form.
pub(crate) fn push_shortest(out: &mut Vec<u8>, value: f64) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value:?}");
}
