//! Floating-point numbers with the fewest digits that distinguish them.

use std::io::Write;

/// How numbers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Digits {
    /// `1`, `0.5`, `1e+20`.
    Plain,
    /// As Python's `repr`: `1.0`, `0.5`, `1e+20`.
    Python,
}

/// Appends a 32-bit float; Python has none and shows the 64-bit float of the same value.
pub(crate) fn push_f32(out: &mut Vec<u8>, value: f32, digits: Digits) {
    if digits == Digits::Python {
        return push_f64(out, f64::from(value), digits);
    }
    if push_short(out, f64::from(value)) {
        return;
    }
    push_scientific(out, &format!("{value:e}"), digits);
}

/// Appends a 64-bit float.
pub(crate) fn push_f64(out: &mut Vec<u8>, value: f64, digits: Digits) {
    if digits == Digits::Plain && push_short(out, value) {
        return;
    }
    push_scientific(out, &format!("{value:e}"), digits);
}

/// Small integers, as most numbers are.
fn push_short(out: &mut Vec<u8>, value: f64) -> bool {
    let is_short = value == value.trunc() && value.abs() < 1e6;
    if is_short {
        if value.is_sign_negative() {
            out.push(b'-');
        }
        anytrace_core::text::push_dec(out, value.abs() as u64);
    }
    is_short
}

/// Appends the output of `{:e}`: the shortest digits, with an exponent only if it is large or small.
fn push_scientific(out: &mut Vec<u8>, text: &str, digits: Digits) {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let Some((mantissa, exponent)) = text.split_once('e') else {
        // Infinity and NaN.
        out.extend_from_slice(if text == "NaN" { "" } else { sign }.as_bytes());
        return out.extend_from_slice(text.to_ascii_lowercase().as_bytes());
    };
    out.extend_from_slice(sign.as_bytes());
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let bare: String = mantissa.chars().filter(|char| *char != '.').collect();
    if !(-4..16).contains(&exponent) {
        out.extend_from_slice(mantissa.as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a vector cannot fail.
        let _ = write!(out, "e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    if exponent < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + exponent.unsigned_abs() as usize - 1, b'0');
        return out.extend_from_slice(bare.as_bytes());
    }
    let length = exponent.unsigned_abs() as usize + 1;
    if bare.len() > length {
        let (integer, rest) = bare.split_at(length);
        out.extend_from_slice(integer.as_bytes());
        out.push(b'.');
        out.extend_from_slice(rest.as_bytes());
    } else {
        out.extend_from_slice(bare.as_bytes());
        out.resize(out.len() + length - bare.len(), b'0');
        if digits == Digits::Python {
            out.extend_from_slice(b".0");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn double(value: f64, digits: Digits) -> String {
        let mut out = Vec::new();
        push_f64(&mut out, value, digits);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn python_s_numbers_come_out_the_same() {
        // The output of Python 3.11.
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (0.0001, "0.0001"),
            (0.00001234, "1.234e-05"),
            (1e15, "1000000000000000.0"),
            (1234567890123456.0, "1234567890123456.0"),
            (1e16, "1e+16"),
            (1.5e16, "1.5e+16"),
            (5e-324, "5e-324"),
            (1e100, "1e+100"),
            (-123.25, "-123.25"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (-f64::NAN, "nan"),
        ] {
            assert_eq!(double(value, Digits::Python), text);
        }
    }

    #[test]
    fn plain_numbers_are_short_and_distinguish_neighbors() {
        assert_eq!(
            [0.0, -0.0, 1.0, -2.5, 1e6, 1e20].map(|v| double(v, Digits::Plain)),
            ["0", "-0", "1", "-2.5", "1000000", "1e+20"]
        );
        for value in [0.1_f32, 16_777_215.0, 1.000_000_1, 3.4e38, 1e-45] {
            let text = |value: f32| {
                let mut out = Vec::new();
                push_f32(&mut out, value, Digits::Plain);
                String::from_utf8(out).unwrap()
            };
            assert_eq!(text(value).parse::<f32>().unwrap().to_bits(), value.to_bits());
            assert_ne!(text(value), text(f32::from_bits(value.to_bits() + 1)));
        }
    }
}
