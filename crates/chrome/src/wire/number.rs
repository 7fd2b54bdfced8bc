//! Times and numbers as text.

use super::json::inner;

/// A time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Time {
    /// Nanoseconds, rounded to the nearest.
    pub(crate) ns: i64,
    /// True where the text has more than three decimals that are not zero.
    pub(crate) is_rounded: bool,
}

/// Reads microseconds: a number, or a string with one (some writers quote large numbers).
#[inline]
pub(crate) fn microseconds(raw: &[u8]) -> Option<Time> {
    let text = inner(raw).unwrap_or(raw);
    let (is_negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let mut mantissa = 0_u64;
    let mut at = 0;
    while let Some(byte) = digits.get(at).filter(|byte| byte.is_ascii_digit()) {
        // 18 digits and three decimals: longer ones take the slow way.
        if at >= 15 {
            return slow(is_negative, digits);
        }
        mantissa = mantissa * 10 + u64::from(byte - b'0');
        at += 1;
    }
    if at == 0 {
        return None;
    }
    let mut decimals = 0;
    if digits.get(at) == Some(&b'.') {
        at += 1;
        while let Some(byte) = digits.get(at).filter(|byte| byte.is_ascii_digit() && decimals < 3) {
            mantissa = mantissa * 10 + u64::from(byte - b'0');
            at += 1;
            decimals += 1;
        }
        if decimals == 0 {
            return None;
        }
    }
    if at != digits.len() {
        return slow(is_negative, digits);
    }
    for _ in decimals..3 {
        mantissa *= 10;
    }
    let ns = i64::try_from(mantissa).ok()?;
    Some(Time { ns: if is_negative { -ns } else { ns }, is_rounded: false })
}

/// Most significant digits that are read; the value of those after them is below a nanosecond in 10^8 years.
const DIGITS_MAX: u32 = 30;

/// Any spelling of a number.
#[cold]
fn slow(is_negative: bool, text: &[u8]) -> Option<Time> {
    if !super::json::is_number(text) {
        return None;
    }
    let (mut mantissa, mut digits, mut scale) = (0_u128, 0, 0_i64);
    let (mut has_point, mut is_cut) = (false, false);
    let mut exponent = 0_i64;
    for (at, &byte) in text.iter().enumerate() {
        match byte {
            b'.' => has_point = true,
            b'0'..=b'9' if digits < DIGITS_MAX => {
                mantissa = mantissa * 10 + u128::from(byte - b'0');
                digits += u32::from(mantissa > 0);
                scale += i64::from(has_point);
            }
            b'0'..=b'9' => {
                is_cut |= byte != b'0';
                scale -= i64::from(!has_point);
            }
            _ => {
                exponent = std::str::from_utf8(text.get(at + 1..)?).ok()?.parse().ok()?;
                break;
            }
        }
    }
    if mantissa == 0 {
        return Some(Time::default());
    }
    // Nanoseconds are thousandths of what is written.
    let places = scale.saturating_sub(exponent).saturating_sub(3);
    let (value, is_rounded) = if places <= 0 {
        let factor = 10_u128.checked_pow(u32::try_from(places.checked_neg()?).ok()?)?;
        (mantissa.checked_mul(factor)?, is_cut)
    } else {
        match u32::try_from(places).ok().and_then(|places| 10_u128.checked_pow(places)) {
            Some(divisor) => ((mantissa + divisor / 2) / divisor, is_cut || !mantissa.is_multiple_of(divisor)),
            None => (0, true),
        }
    };
    let ns = i64::try_from(value).ok()?;
    Some(Time { ns: if is_negative { -ns } else { ns }, is_rounded })
}

/// An integer without sign, decimals or exponent.
pub(crate) fn unsigned(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    text.iter().try_fold(0_u64, |value, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        value.checked_mul(10)?.checked_add(digit)
    })
}

/// An integer with a sign, or one in hexadecimal after `0x`.
pub(crate) fn identifier(text: &[u8]) -> Option<u64> {
    match text.strip_prefix(b"0x").or_else(|| text.strip_prefix(b"0X")) {
        Some(hex) if (1..=16).contains(&hex.len()) && hex.iter().all(u8::is_ascii_hexdigit) => {
            u64::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
        }
        Some(_) => None,
        None => unsigned(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_to_the_nanosecond_in_every_spelling() {
        let ns = |text: &str| microseconds(text.as_bytes()).map(|time| (time.ns, time.is_rounded));
        assert_eq!(ns("0"), Some((0, false)));
        assert_eq!(ns("14112071262.359"), Some((14_112_071_262_359, false)));
        assert_eq!(ns("\"12.5\""), Some((12_500, false)));
        assert_eq!(ns("-1.001"), Some((-1001, false)));
        assert_eq!(ns("1.5e3"), Some((1_500_000, false)));
        assert_eq!(ns("15E-1"), Some((1500, false)));
        assert_eq!(ns("0.1234"), Some((123, true)));
        assert_eq!(ns("0.1235"), Some((124, true)));
        assert_eq!(ns("0.1230"), Some((123, false)));
        assert_eq!(ns("9223372036854775.807"), Some((i64::MAX, false)));
        assert_eq!(ns("9223372036854775.808"), None);
        assert_eq!(ns("1e400"), None);
        assert_eq!(ns("1e-400"), Some((0, true)));
        assert_eq!(ns("0e999"), Some((0, false)));
        let long = format!("1.{}", "0".repeat(500));
        assert_eq!(ns(&long), Some((1000, false)));
        for text in ["", "-", "x", "1.", ".5", "1x", "null", "\"\"", "{}", "+1", "1e"] {
            assert_eq!(ns(text), None, "{text}");
        }
    }

    #[test]
    fn identifiers_are_decimal_or_hexadecimal() {
        assert_eq!(identifier(b"12"), Some(12));
        assert_eq!(identifier(b"0x20bb2430"), Some(0x20bb_2430));
        assert_eq!(identifier(b"18446744073709551616"), None);
        assert_eq!(identifier(b"0x"), None);
        assert_eq!(identifier(b"-1"), None);
    }
}
