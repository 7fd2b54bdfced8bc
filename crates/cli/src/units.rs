//! Times and numbers as people read them.

use anytrace_core::span::TimeUnit;

/// Growth in percent from a base to what is shown: `+12.3%`, `new`, `gone`, `=`, `from 0`.
pub(crate) fn growth(has_base: bool, has_shown: bool, percent: Option<f64>) -> String {
    match (has_base, has_shown, percent) {
        (false, _, _) => "new".to_owned(),
        (_, false, _) => "gone".to_owned(),
        (_, _, None | Some(0.0)) => "=".to_owned(),
        (_, _, Some(percent)) if percent.is_infinite() => "from 0".to_owned(),
        (_, _, Some(percent)) => format!("{percent:+.1}%"),
    }
}

/// Shows times of one trace: with a unit where ticks are of known length, else as plain numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times(pub(crate) TimeUnit);

impl Times {
    /// A length in the trace's unit: `1.234 ms`, or `1,234` where a unit is of no known length.
    pub(crate) fn length(self, units: u128) -> String {
        match self.ns(units) {
            Some(ns) => nanoseconds(ns),
            None => grouped(units),
        }
    }

    /// Nanoseconds, where the unit is of known length.
    pub(crate) fn ns(self, units: u128) -> Option<u128> {
        self.0.sum_to_ns(units)
    }

    /// The number for programs: nanoseconds where the unit is of known length, else the trace's unit.
    pub(crate) fn number(self, units: u128) -> u64 {
        self.0.number(units)
    }

    /// What [`Self::number`] counts: `ns`, `tick` or `record`.
    pub(crate) fn word(self) -> &'static str {
        self.0.number_word()
    }

    /// What to say in a heading: nothing where each number has its unit.
    pub(crate) fn heading(self) -> &'static str {
        match self.word() {
            "ns" => "",
            "tick" => "times in ticks",
            _ => "no clock: times count records",
        }
    }
}

/// Nanoseconds with four digits and a unit: `999 ns`, `1.234 µs`, `12.35 ms`, `123.5 s`.
pub(crate) fn nanoseconds(ns: u128) -> String {
    if ns < 1000 {
        return format!("{ns} ns");
    }
    let (mut unit, mut divisor) = ("s", 1_000_000_000_u128);
    for (smaller, size) in [("ms", 1_000_000), ("µs", 1000)] {
        // What would round up to 1000 of a unit is one of the next.
        if (ns + size / 20) / size < 1000 {
            (unit, divisor) = (smaller, size);
        }
    }
    let integer = ns / divisor;
    let digits: u32 = match integer {
        0..10 => 3,
        10..100 => 2,
        _ => 1,
    };
    let scale = 10_u128.pow(digits);
    let rounded = (ns * scale + divisor / 2) / divisor;
    format!("{}.{:0width$} {unit}", grouped(rounded / scale), rounded % scale, width = digits as usize)
}

/// Digits in groups of three.
pub(crate) fn grouped(number: u128) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A share with one decimal: `12.3%`.
pub(crate) fn percent(part: f64, total: f64) -> String {
    let share = if total > 0.0 { part / total * 100.0 } else { 0.0 };
    format!("{share:.1}%")
}

/// A number and its noun: "1 span", "2,000 spans".
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(u128::from(number)), if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_four_digits_and_the_unit_that_fits() {
        let shown =
            [0, 999, 1000, 1234, 12_345, 123_456, 999_949, 999_999, 1_234_567, 59_999_999_999, 12_345_600_000_000];
        assert_eq!(
            shown.map(nanoseconds),
            [
                "0 ns",
                "999 ns",
                "1.000 µs",
                "1.234 µs",
                "12.35 µs",
                "123.5 µs",
                "999.9 µs",
                "1.000 ms",
                "1.235 ms",
                "60.00 s",
                "12,345.6 s"
            ]
        );
    }

    #[test]
    fn ticks_are_times_only_where_their_length_is_known() {
        let known = Times(TimeUnit::Ticks { per_second: Some(2_000_000_000) });
        assert_eq!((known.length(3000), known.number(3000), known.word()), ("1.500 µs".to_owned(), 1500, "ns"));
        let unknown = Times(TimeUnit::Ticks { per_second: None });
        assert_eq!((unknown.length(3000), unknown.number(3000), unknown.word()), ("3,000".to_owned(), 3000, "tick"));
        assert_eq!(Times(TimeUnit::Order).heading(), "no clock: times count records");
        assert_eq!(known.number(u128::MAX), u64::MAX);
    }

    #[test]
    fn digits_are_grouped_from_the_right() {
        assert_eq!([0, 999, 1_234_567].map(grouped), ["0", "999", "1,234,567"]);
        assert_eq!((counted(1, "span"), counted(2000, "span")), ("1 span".to_owned(), "2,000 spans".to_owned()));
    }
}
