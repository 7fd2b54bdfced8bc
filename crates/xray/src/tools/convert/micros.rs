//! Ticks to microseconds in decimal digits, by integer arithmetic.

use anytrace_core::text::push_dec;

/// Decimals if the clock needs no more: the peer's.
const DECIMALS_MIN: u32 = 4;

/// Times from this many microseconds on are counted from the first time in the trace: viewers store times in doubles,
/// whose steps above this value are far larger than a tenth of a nanosecond.
const ABSOLUTE_MICROS_MAX: u128 = 1 << 40;

/// Writes times as microseconds, exact to a fraction of a tick, rounded half up.
#[derive(Debug, Clone)]
pub(super) struct Micros {
    /// Ticks a second; 0 where unknown.
    hz: u64,
    decimals: u32,
    /// Units of the last decimal per second.
    scale: u128,
    origin: u64,
    /// The last time, in full units, and the remainder, in ticks times the scale.
    last: (u64, u64, u64),
}

impl Micros {
    pub(super) fn new(hz: u64) -> Self {
        let mut decimals = DECIMALS_MIN;
        // At most half a tick may be lost, and a viewer's double has no more digits than this anyway.
        while decimals < 9 && 10_u128.pow(6 + decimals) < 2 * u128::from(hz) {
            decimals += 1;
        }
        Self { hz, decimals, scale: 10_u128.pow(6 + decimals), origin: 0, last: (0, 0, 0) }
    }

    /// The time from which times are counted, in ticks, for a trace whose first time is `first`.
    pub(super) fn origin(hz: u64, first: u64) -> u64 {
        let micros = u128::from(first) * 1_000_000;
        if u128::from(hz).checked_mul(ABSOLUTE_MICROS_MAX).is_some_and(|most| hz > 0 && micros < most) {
            0
        } else {
            first
        }
    }

    /// Counts times from another one.
    pub(super) fn set_origin(&mut self, origin: u64) {
        if self.origin != origin {
            (self.origin, self.last) = (origin, (origin, 0, 0));
        }
    }

    /// Appends a time in microseconds, or in ticks if the frequency is unknown.
    #[inline]
    pub(super) fn push(&mut self, out: &mut Vec<u8>, tsc: u64) {
        match self.units(tsc) {
            Some(units) if self.decimals == DECIMALS_MIN => push_ten_thousandths(out, units),
            Some(units) => push_fixed(out, units, self.decimals),
            None => self.push_slowly(out, tsc),
        }
    }

    /// The time in units of the last decimal, if everything fits in 64 bits.
    #[inline]
    fn units(&mut self, tsc: u64) -> Option<u64> {
        let (last, units, rest) = self.last;
        let scaled = tsc.checked_sub(last)?.checked_mul(u64::try_from(self.scale).ok()?)?.checked_add(rest)?;
        let integer = scaled.checked_div(self.hz)?;
        let (units, rest) = (units.checked_add(integer)?, scaled - integer * self.hz);
        self.last = (tsc, units, rest);
        units.checked_add(u64::from(rest >= self.hz.div_ceil(2)))
    }

    /// Times before the last one, far from it, or without a unit.
    #[cold]
    fn push_slowly(&mut self, out: &mut Vec<u8>, tsc: u64) {
        let distance = tsc.abs_diff(self.origin);
        if tsc < self.origin {
            out.push(b'-');
        }
        if self.hz == 0 {
            push_dec(out, distance);
            return;
        }
        let (hz, scaled) = (u128::from(self.hz), u128::from(distance) * self.scale);
        let (units, rest) = (scaled / hz, scaled % hz);
        if let (true, Ok(units), Ok(rest)) = (tsc >= self.origin, u64::try_from(units), u64::try_from(rest)) {
            self.last = (tsc, units, rest);
        }
        push_fixed(out, units + u128::from(rest >= hz.div_ceil(2)), self.decimals);
    }
}

/// Appends a number of units of the fourth decimal.
#[inline]
fn push_ten_thousandths(out: &mut Vec<u8>, units: u64) {
    push_dec(out, units / 10_000);
    let part = (units % 10_000) as u16;
    let digit = |n: u16| b'0' + (n % 10) as u8;
    out.extend_from_slice(&[b'.', digit(part / 1000), digit(part / 100), digit(part / 10), digit(part)]);
}

/// Appends a number of units of the last decimal.
#[inline]
fn push_fixed(out: &mut Vec<u8>, units: impl itoa::Integer, decimals: u32) {
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(units).as_bytes();
    let decimals = decimals as usize;
    match digits.len().checked_sub(decimals) {
        None | Some(0) => {
            out.extend_from_slice(b"0.");
            out.resize(out.len() + decimals - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
        Some(integer) => {
            let (integer, part) = digits.split_at(integer);
            out.extend_from_slice(integer);
            out.push(b'.');
            out.extend_from_slice(part);
        }
    }
}

/// Appends what the peer prints for a time: a double, with a fixed number of decimals, rounded half to even.
pub(super) fn push_as_peer(out: &mut Vec<u8>, hz: u64, tsc: u64, decimals: u32) {
    let micros = 1_000_000_f64 / hz as f64 * tsc as f64;
    if !micros.is_finite() {
        out.extend_from_slice(if micros.is_nan() { b"nan" } else { b"INF" });
        return;
    }
    // A double is an integer times a power of two, so its decimals can be computed exactly.
    let bits = micros.to_bits();
    let exponent = i32::try_from(bits >> 52).unwrap_or(0) - 1075;
    let mantissa = u128::from(bits & ((1 << 52) - 1) | 1 << 52) * 10_u128.pow(decimals);
    let units = match exponent {
        0..64 => u128::checked_mul(mantissa, 1 << exponent),
        -120..0 => {
            let shift = exponent.unsigned_abs();
            let (integer, rest) = (mantissa >> shift, mantissa & ((1 << shift) - 1));
            let half = 1_u128 << (shift - 1);
            Some(integer + u128::from(rest > half || (rest == half && integer & 1 == 1)))
        }
        // Less than one unit, or zero.
        ..-120 => Some(0),
        _ => None,
    };
    match units {
        Some(units) => push_fixed(out, units, decimals),
        None => out.extend_from_slice(format!("{micros:.*}", decimals as usize).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(hz: u64, origin: u64, tsc: u64) -> String {
        let mut micros = Micros::new(hz);
        micros.set_origin(origin);
        let mut out = Vec::new();
        micros.push(&mut out, tsc);
        String::from_utf8(out).unwrap()
    }

    fn peer(hz: u64, tsc: u64, decimals: u32) -> String {
        let mut out = Vec::new();
        push_as_peer(&mut out, hz, tsc, decimals);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn times_are_microseconds_with_four_decimals() {
        assert_eq!(exact(2_500_000_000, 0, 1_000_000_000_010), "400000000.0040");
        assert_eq!(exact(1_000_000_000, 0, 1), "0.0010");
        assert_eq!(exact(3_000_000_000, 0, 2), "0.0007");
        assert_eq!(exact(1_000_000_000, 1_800_000_000_000_000_001, 1_800_000_000_000_000_002), "0.0010");
        assert_eq!(exact(1_000_000_000, 10, 3), "-0.0070");
        assert_eq!(exact(0, 10, 13), "3");
    }

    #[test]
    fn fast_clocks_get_more_decimals() {
        assert_eq!(exact(50_000_000_000, 0, 1), "0.00002");
        assert_eq!(exact(u64::MAX, 0, u64::MAX), "1000000.000000000");
    }

    #[test]
    fn large_times_are_counted_from_the_first() {
        assert_eq!(Micros::origin(2_500_000_000, 1_000_000_000_010), 0);
        assert_eq!(Micros::origin(1_000_000_000, 1_800_000_000_000_000_001), 1_800_000_000_000_000_001);
        assert_eq!(Micros::origin(0, 7), 7);
    }

    #[test]
    fn the_peers_times_are_doubles() {
        // synth/v5-wide-ids.trace_event.json, synth/v5-freq-zero.trace_event.json, synth/v2.trace_event.json.
        assert_eq!(peer(2_500_000_000, 9_223_372_036_854_775_813, 4), "3689348814741910.5000");
        assert_eq!(peer(0, 1, 4), "INF");
        assert_eq!(peer(2_500_000_000, 1_000_000_000_022, 3), "400000000.009");
        assert_eq!(peer(2_500_000_000, 0, 4), "0.0000");
    }

    proptest! {
        #[test]
        fn exact_times_are_those_of_wide_arithmetic(hz in 1_u64.., times in prop::collection::vec(any::<u64>(), 1..20), bits in 0_u32..64) {
            let mut micros = Micros::new(hz);
            for time in times {
                let (time, mut out) = (time >> bits, Vec::new());
                micros.push(&mut out, time);
                let units = (u128::from(time) * micros.scale * 2 + u128::from(hz)) / (2 * u128::from(hz));
                let one = 10_u128.pow(micros.decimals);
                let expected = format!("{}.{:0digits$}", units / one, units % one, digits = micros.decimals as usize);
                prop_assert_eq!(String::from_utf8(out).unwrap(), expected);
            }
        }

        #[test]
        fn the_peers_times_are_those_of_the_standard_library(hz in 1_u64.., tsc: u64, cut in 0_u32..64, decimals in 3_u32..5) {
            let (hz, tsc) = ((hz >> cut).max(1), tsc >> (cut / 2));
            let expected = format!("{:.*}", decimals as usize, 1_000_000_f64 / hz as f64 * tsc as f64);
            prop_assert_eq!(peer(hz, tsc, decimals), expected);
        }
    }
}
