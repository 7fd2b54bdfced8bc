//! Floating-point numbers with a fixed number of significant digits, as C's `%.7g` and `%.16g` print them.

use std::io::Write;

/// Appends a 32-bit float with at most 7 significant digits.
pub(crate) fn push_f32(out: &mut Vec<u8>, value: f32) {
    let bits = value.to_bits();
    if value == value.trunc() && value.abs() < 1e7 {
        return push_small(out, bits >> 31 != 0, f64::from(value.abs()) as u64);
    }
    let (mantissa, exponent) = (bits & 0x7f_ffff, (bits >> 23 & 0xff) as i32);
    // From 2^-14 on, below 10^7: all products fit 128 bits.
    if (113..151).contains(&exponent) {
        return push_exact(out, bits >> 31 != 0, u64::from(mantissa | 0x80_0000), exponent - 150, 7);
    }
    push_slow(out, f64::from(value), 7);
}

/// Appends a 64-bit float with at most 16 significant digits.
pub(crate) fn push_f64(out: &mut Vec<u8>, value: f64) {
    let bits = value.to_bits();
    if value == value.trunc() && value.abs() < 1e15 {
        return push_small(out, bits >> 63 != 0, value.abs() as u64);
    }
    let (mantissa, exponent) = (bits & 0xf_ffff_ffff_ffff, (bits >> 52 & 0x7ff) as i32);
    if (1009..1073).contains(&exponent) {
        return push_exact(out, bits >> 63 != 0, mantissa | 1 << 52, exponent - 1075, 16);
    }
    push_slow(out, value, 16);
}

fn push_small(out: &mut Vec<u8>, is_negative: bool, value: u64) {
    if is_negative {
        out.push(b'-');
    }
    if value < 10 {
        return out.push(b'0' + value as u8);
    }
    anytrace_core::text::push_dec(out, value);
}

/// Powers of ten.
const TENS: [u128; 24] = {
    let mut tens = [1; 24];
    let mut at = 1;
    while at < 24 {
        tens[at] = tens[at - 1] * 10;
        at += 1;
    }
    tens
};

/// `mantissa * 2^exponent`, where the exponent is negative and the value lies between 2^-14 and 10^16: exact, in
/// integers, rounded half to even as in C.
fn push_exact(out: &mut Vec<u8>, is_negative: bool, mantissa: u64, exponent: i32, digits: i32) {
    let down = exponent.unsigned_abs();
    let integer = mantissa.checked_shr(down).unwrap_or(0);
    // Digits before the point; for values below one, the negated number of zeros after it.
    let mut point = if integer > 0 { integer.ilog10() as i32 + 1 } else { 0 };
    if integer == 0 {
        while point > -5 && (u128::from(mantissa) * ten(1 - point)) >> down == 0 {
            point -= 1;
        }
    }
    let mut scaled = round(u128::from(mantissa) * ten(digits - point), down);
    if scaled >= ten(digits) {
        scaled /= 10;
        point += 1;
    }
    if point > digits || point < -3 {
        // Rounding crossed the boundary between the two notations.
        let value = (mantissa as f64) * 2_f64.powi(exponent);
        return push_slow(out, if is_negative { -value } else { value }, digits);
    }
    let mut text = [b'0'; 24];
    let mut rest = scaled as u64;
    let mut used = 0;
    for at in (0..digits as usize).rev() {
        let digit = (rest % 10) as u8;
        rest /= 10;
        if let Some(place) = text.get_mut(at) {
            *place = b'0' + digit;
        }
        if used == 0 && digit != 0 {
            used = at + 1;
        }
    }
    if is_negative {
        out.push(b'-');
    }
    let text = &text[..];
    if point <= 0 {
        out.extend_from_slice(b"0.0000".get(..(2 - point) as usize).unwrap_or_default());
        out.extend_from_slice(text.get(..used).unwrap_or_default());
        return;
    }
    let point = point as usize;
    out.extend_from_slice(text.get(..point).unwrap_or_default());
    if used > point {
        out.push(b'.');
        out.extend_from_slice(text.get(point..used).unwrap_or_default());
    }
}

fn ten(power: i32) -> u128 {
    usize::try_from(power).ok().and_then(|power| TENS.get(power)).copied().unwrap_or(1)
}

/// Divides by a power of two, half to even.
fn round(value: u128, down: u32) -> u128 {
    if down == 0 {
        return value;
    }
    let quotient = value >> down;
    let rest = value & ((1 << down) - 1);
    let half = 1_u128 << (down - 1);
    quotient + u128::from(rest > half || rest == half && quotient & 1 == 1)
}

/// Any value, through the library's exact digits.
fn push_slow(out: &mut Vec<u8>, value: f64, digits: i32) {
    if value.is_nan() {
        return out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
    }
    let text = format!("{:.*e}", (digits - 1) as usize, value);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-4..digits).contains(&exponent) {
        let mantissa = trimmed(mantissa);
        let sign = if exponent < 0 { '-' } else { '+' };
        // Writing to a vector cannot fail.
        let _ = write!(out, "{mantissa}e{sign}{:02}", exponent.unsigned_abs());
        return;
    }
    let places = (digits - 1 - exponent).unsigned_abs() as usize;
    out.extend_from_slice(trimmed(&format!("{value:.places$}")).as_bytes());
}

/// The text without trailing zeros and point.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn f32_text(value: f32) -> String {
        let mut out = Vec::new();
        push_f32(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn f64_text(value: f64) -> String {
        let mut out = Vec::new();
        push_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    fn slow(value: f64, digits: i32) -> String {
        let mut out = Vec::new();
        push_slow(&mut out, value, digits);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn known_values_print_as_c_prints_them() {
        // The output of `printf "%.7g"` and `"%.16g"` of glibc 2.36.
        for (value, text) in [
            (0.1_f32, "0.1"),
            (-0.0, "-0"),
            (1e10, "1e+10"),
            (1e-10, "1e-10"),
            (f32::MAX, "3.402823e+38"),
            (1e-45, "1.401298e-45"),
            (123_456.79, "123456.8"),
            (16_777_216.0, "1.677722e+07"),
            (9_999_999.0, "9999999"),
            (1.0 / 3.0, "0.3333333"),
            (0.000_1, "0.0001"),
            (0.000_099_999_99, "9.999999e-05"),
            (0.999_999_97, "0.9999999"),
            (f32::NAN, "nan"),
            (-f32::NAN, "-nan"),
            (f32::NEG_INFINITY, "-inf"),
            (8_388_607.5, "8388608"),
            (4_194_302.5, "4194302"),
            (4_194_303.5, "4194304"),
            (2_097_151.2, "2097151"),
        ] {
            assert_eq!(f32_text(value), text);
        }
        for (value, text) in [
            (0.1, "0.1"),
            (std::f64::consts::PI, "3.141592653589793"),
            (1e100, "1e+100"),
            (5e-324, "4.940656458412465e-324"),
            (1_234_567_890_123_456.0, "1234567890123456"),
            (12_345_678_901_234_567_890.0, "1.234567890123457e+19"),
            (1e15, "1000000000000000"),
            (1e16, "1e+16"),
            (0.3, "0.3"),
            (1e-5, "1e-05"),
            (0.000_123_456_789_012_345_67, "0.0001234567890123457"),
            (999_999_999_999_999.9, "999999999999999.9"),
        ] {
            assert_eq!(f64_text(value), text);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn fast_and_slow_agree_on_32_bits(bits: u32, small in 100..155_u32, mantissa: u32) {
            for bits in [bits, bits & 0x807f_ffff | small << 23, small << 23 | mantissa & 0x7f_0000] {
                let value = f32::from_bits(bits);
                prop_assert_eq!(f32_text(value), slow(f64::from(value), 7));
            }
        }

        #[test]
        fn fast_and_slow_agree_on_64_bits(bits: u64, small in 1000..1080_u64, decimal in 0..100_000_000_u64) {
            let near = decimal as f64 / 10_000.0;
            for value in [f64::from_bits(bits), f64::from_bits(bits & 0x800f_ffff_ffff_ffff | small << 52), near] {
                prop_assert_eq!(f64_text(value), slow(value, 16));
            }
        }
    }
}
