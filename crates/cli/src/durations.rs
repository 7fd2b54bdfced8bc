//! Times as options: `500ms`, `10s`, `1.5m`, `2h`.

use std::time::Duration;

/// Reads a time with its unit.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("expected a time: a number and ns, us, ms, s, m or h, found {text:?}");
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (digits, unit) =
        units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, *size))).ok_or_else(wrong)?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return Err(wrong());
    }
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * unit).map_err(|_| wrong())
}

/// The same, and not nothing.
pub(crate) fn some_duration(text: &str) -> Result<Duration, String> {
    let time = duration(text)?;
    if time.is_zero() { Err("expected a time above 0".to_owned()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let read = ["500ms", "10s", "1.5m", "2h", "3us", "0s"].map(|text| duration(text).unwrap().as_nanos());
        assert_eq!(read, [500_000_000, 10_000_000_000, 90_000_000_000, 7_200_000_000_000, 3_000, 0]);
        for wrong in ["", "s", "5", "-1s", "1e3s", "infs", "1 s", "99999999999999999999h", "1.2.3s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
        assert!(some_duration("0s").is_err());
    }
}
