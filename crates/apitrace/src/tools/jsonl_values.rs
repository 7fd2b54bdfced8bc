//! Simple values in the JSON lines of calls.

use anytrace_core::text;

use crate::lanes::dictionary::Dictionary;
use crate::lanes::wire::Wire;

/// A string, or `{"hex":…}` if the bytes are not text.
#[inline]
pub(super) fn push_text(out: &mut Vec<u8>, bytes: &[u8]) {
    // Examine all bytes without an early exit, so that the loop is vectorized.
    let is_odd = |byte: u8| !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\';
    if bytes.iter().fold(false, |found, byte| found | is_odd(*byte)) {
        return text::push_json_bytes(out, bytes);
    }
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
}

#[inline]
pub(super) fn push_uint(out: &mut Vec<u8>, value: u64) {
    if value < 10 {
        out.push(b'0' + value as u8);
    } else {
        text::push_dec(out, value);
    }
}

/// A negative number. Minus zero and numbers beyond 64 bits are written as a magnitude.
pub(super) fn push_negative(out: &mut Vec<u8>, magnitude: u64) {
    if magnitude == 0 || magnitude > 1 << 63 {
        out.extend_from_slice(b"{\"minus\":");
        text::push_dec(out, magnitude);
        return out.push(b'}');
    }
    text::push_dec(out, (magnitude as i64).wrapping_neg());
}

/// The bits of the default NaN.
const NAN_32: u32 = 0x7fc0_0000;
const NAN_64: u64 = 0x7ff8_0000_0000_0000;

/// The only 32-bit float whose shortest decimal text is read as a different value via 64 bits, as JSON readers do.
const TWICE_ROUNDED: u32 = 0x15ae_43fd;

pub(super) fn push_f32(out: &mut Vec<u8>, value: f32) {
    // Use an integer: without SSE 4.1, which not every machine has, rounding is a function call.
    let integer = value as i32;
    if integer as f32 == value && integer.unsigned_abs() < 10_000_000 {
        return push_integer(out, value.is_sign_negative(), u64::from(integer.unsigned_abs()));
    }
    if value.is_finite() {
        let mut buffer = zmij::Buffer::new();
        let text = if value.to_bits() & 0x7fff_ffff == TWICE_ROUNDED {
            buffer.format_finite(f64::from(value))
        } else {
            buffer.format_finite(value)
        };
        return out.extend_from_slice(text.as_bytes());
    }
    let bits =
        if value.is_nan() { Some(u64::from(value.to_bits())).filter(|bits| *bits != u64::from(NAN_32)) } else { None };
    out.extend_from_slice(b"{\"float\":");
    push_special(out, f64::from(value), bits);
}

pub(super) fn push_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(b"{\"double\":");
    if value.is_finite() {
        let integer = value as i64;
        if integer as f64 == value && integer.unsigned_abs() < 1_000_000_000_000_000 {
            push_integer(out, value.is_sign_negative(), integer.unsigned_abs());
        } else {
            out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
        }
        return out.push(b'}');
    }
    push_special(out, value, Some(value.to_bits()).filter(|bits| value.is_nan() && *bits != NAN_64));
}

/// An integral value, written so that JSON readers take it for a float.
fn push_integer(out: &mut Vec<u8>, is_negative: bool, value: u64) {
    if is_negative {
        out.push(b'-');
    }
    push_uint(out, value);
    out.extend_from_slice(b".0");
}

fn push_special(out: &mut Vec<u8>, value: f64, bits: Option<u64>) {
    out.extend_from_slice(match (value.is_nan(), value < 0.0) {
        (true, _) => b"\"nan\"",
        (_, true) => b"\"-inf\"",
        _ => b"\"inf\"",
    });
    if let Some(bits) = bits {
        out.extend_from_slice(b",\"bits\":");
        text::push_dec(out, bits);
    }
    out.push(b'}');
}

/// The flags that are set, each with its value, and the complete value.
pub(super) fn push_bitmask(out: &mut Vec<u8>, id: u64, value: u64, dictionary: &Dictionary) {
    out.extend_from_slice(b"{\"bitmask\":[");
    let (mut rest, mut is_first) = (value, true);
    if let Some(mask) = dictionary.bitmask(id) {
        for (name, flag) in mask.flags() {
            let is_set = if flag == 0 { rest == 0 } else { rest & flag == flag };
            if is_set {
                out.extend_from_slice(if is_first { b"[" } else { b",[" });
                is_first = false;
                push_text(out, name);
                out.push(b',');
                text::push_dec(out, flag);
                out.push(b']');
                rest &= !flag;
            }
            if rest == 0 {
                break;
            }
        }
    }
    out.extend_from_slice(b"],\"value\":");
    text::push_dec(out, value);
    out.push(b'}');
}

/// Text if every number is a character, otherwise the numbers.
pub(super) fn push_wide(out: &mut Vec<u8>, chars: Wire<'_>) {
    let mut numbers = chars;
    let mut string = String::new();
    while !numbers.rest().is_empty() {
        match u32::try_from(numbers.uint()).ok().and_then(char::from_u32) {
            Some(char) => string.push(char),
            None => return push_wide_numbers(out, chars),
        }
    }
    out.extend_from_slice(b"{\"wide\":");
    text::push_json_str(out, &string);
    out.push(b'}');
}

fn push_wide_numbers(out: &mut Vec<u8>, mut chars: Wire<'_>) {
    out.extend_from_slice(b"{\"wide\":[");
    let mut is_first = true;
    while !chars.rest().is_empty() {
        if !std::mem::replace(&mut is_first, false) {
            out.push(b',');
        }
        text::push_dec(out, chars.uint());
    }
    out.extend_from_slice(b"]}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn read(make: impl FnOnce(&mut Vec<u8>)) -> Value {
        let mut out = Vec::new();
        make(&mut out);
        serde_json::from_slice(&out).unwrap()
    }

    fn f32_back(value: f32) -> f32 {
        let read = read(|out| push_f32(out, value));
        assert!(!read.is_u64() && !read.is_i64(), "{value} became an integer");
        read.as_f64().unwrap() as f32
    }

    #[test]
    fn floats_that_are_hard_to_read_come_back() {
        for bits in [TWICE_ROUNDED, TWICE_ROUNDED | 1 << 31, 0x8000_0000, 1, 0x7f7f_ffff, 0x4b18_967f, 0x4b18_9680] {
            assert_eq!(f32_back(f32::from_bits(bits)).to_bits(), bits);
        }
        let nan = read(|out| push_f32(out, f32::from_bits(0xffc0_0001)));
        assert_eq!(nan, serde_json::json!({"float": "nan", "bits": 0xffc0_0001_u32}));
        assert_eq!(read(|out| push_f32(out, f32::NAN)), serde_json::json!({"float": "nan"}));
        assert_eq!(read(|out| push_f64(out, f64::NEG_INFINITY)), serde_json::json!({"double": "-inf"}));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(5000))]
        #[test]
        fn every_float_comes_back(bits: u32, double: u64) {
            let value = f32::from_bits(bits);
            if value.is_finite() {
                prop_assert_eq!(f32_back(value).to_bits(), bits);
            }
            let value = f64::from_bits(double);
            if value.is_finite() {
                let read = read(|out| push_f64(out, value));
                prop_assert_eq!(read["double"].as_f64().unwrap().to_bits(), double);
            }
        }

        #[test]
        fn any_bytes_come_back_as_text(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            let read = read(|out| push_text(out, &bytes));
            prop_assert_eq!(anytrace_core::jsonl::value_bytes(&read), Some(bytes));
        }
    }
}
