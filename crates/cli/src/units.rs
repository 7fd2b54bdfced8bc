//! Times and numbers as people read them.

use anytrace_core::span::TimeUnit;
pub(crate) use anytrace_core::text::{grouped, nanoseconds};

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
    fn ticks_are_times_only_where_their_length_is_known() {
        let known = Times(TimeUnit::Ticks { per_second: Some(2_000_000_000) });
        assert_eq!((known.length(3000), known.number(3000), known.word()), ("1.500 µs".to_owned(), 1500, "ns"));
        let unknown = Times(TimeUnit::Ticks { per_second: None });
        assert_eq!((unknown.length(3000), unknown.number(3000), unknown.word()), ("3,000".to_owned(), 3000, "tick"));
        assert_eq!(Times(TimeUnit::Order).heading(), "no clock: times count records");
        assert_eq!(known.number(u128::MAX), u64::MAX);
    }

    #[test]
    fn nouns_follow_their_number() {
        assert_eq!((counted(1, "span"), counted(2000, "span")), ("1 span".to_owned(), "2,000 spans".to_owned()));
    }
}
