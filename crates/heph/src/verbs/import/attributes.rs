//! Attributes of JSON lines back to the wire.

use anytrace_core::text::parse_hex_bytes;
use serde_json::Value;

use crate::wire::record::{NESTING_MAX, Scalar};
use crate::wire::writer::Builder;

/// Adds `[name, type, value]`; `None` where they do not fit each other.
pub(super) fn push_attribute(builder: &mut Builder, attribute: &Value) -> Option<()> {
    let [name, kind, value] = attribute.as_array()?.as_slice() else { return None };
    let kind = kind.as_str()?;
    let base = kind.trim_end_matches("[]");
    let levels = u8::try_from((kind.len() - base.len()) / 2).ok().filter(|levels| *levels <= NESTING_MAX + 1)?;
    let scalar = match base {
        "u64" => Scalar::Unsigned,
        "i64" => Scalar::Signed,
        "f64" => Scalar::Float,
        "str" => Scalar::Text,
        _ => return None,
    };
    builder.attribute(name.as_str()?, scalar, levels > 0);
    push_value(builder, scalar, levels, value)
}

/// Recursion is bounded by the number of levels that the caller allows.
fn push_value(builder: &mut Builder, scalar: Scalar, levels: u8, value: &Value) -> Option<()> {
    if let Some(inner) = levels.checked_sub(1) {
        let values = value.as_array()?;
        builder.count(values.len());
        return values.iter().try_for_each(|value| push_value(builder, scalar, inner, value));
    }
    match scalar {
        Scalar::Unsigned => builder.word(value.as_u64()?),
        Scalar::Signed => builder.word(value.as_i64()?.cast_unsigned()),
        Scalar::Float => builder.word(float_bits(value)?),
        Scalar::Text => builder.text(value.as_str()?),
    }
    Some(())
}

/// The bits of `{"bits":"…"}`, or of a plain number.
fn float_bits(value: &Value) -> Option<u64> {
    match value.get("bits") {
        Some(bits) => {
            let bytes = parse_hex_bytes(bits.as_str()?)?;
            bytes.try_into().ok().map(u64::from_be_bytes)
        }
        None => value.as_f64().map(f64::to_bits),
    }
}
