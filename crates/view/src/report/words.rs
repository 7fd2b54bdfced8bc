//! Text and numbers as the page has them.

use anytrace_core::text::printable;
use serde_json::Value;

/// Text that HTML takes for text, without characters that hide or reorder it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Digits in groups of three.
pub(super) fn grouped(number: u64) -> String {
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

/// How lengths are written.
pub(super) struct Unit {
    /// Nanoseconds of a unit, where that is known.
    ns: Option<f64>,
    word: &'static str,
}

impl Unit {
    pub(super) fn of(trace: &Value) -> Self {
        match trace["unit"].as_str() {
            Some("ns") => Self { ns: Some(1.0), word: "ns" },
            Some("tick") => {
                Self { ns: trace["ticks_per_second"].as_f64().filter(|hz| *hz > 0.0).map(|hz| 1e9 / hz), word: "ticks" }
            }
            _ => Self { ns: None, word: "records" },
        }
    }

    /// A length, with four digits where its unit is a time.
    pub(super) fn length(&self, length: f64) -> String {
        let Some(ns) = self.ns.map(|ns| ns * length) else {
            return format!("{} {}", grouped(crate::axis::to_u64(length.round())), self.word);
        };
        let (value, unit) = match ns {
            ns if ns < 1e3 => return format!("{ns:.0} ns"),
            ns if ns < 1e6 => (ns / 1e3, "µs"),
            ns if ns < 1e9 => (ns / 1e6, "ms"),
            ns => (ns / 1e9, "s"),
        };
        let digits = if value < 10.0 {
            3
        } else if value < 100.0 {
            2
        } else {
            1
        };
        format!("{value:.digits$} {unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_tags_or_hide_others() {
        assert_eq!(escaped("<b>&\"'"), "&lt;b&gt;&amp;&quot;&#39;");
        assert!(!escaped("a\u{202e}b").contains('\u{202e}'));
    }

    #[test]
    fn lengths_have_the_unit_that_fits() {
        let unit = Unit { ns: Some(0.5), word: "ticks" };
        assert_eq!(
            [3.0, 3_000.0, 30_000_000.0, 4e9].map(|length| unit.length(length)),
            ["2 ns", "1.500 µs", "15.00 ms", "2.000 s"]
        );
        assert_eq!(Unit { ns: None, word: "records" }.length(1_234_567.0), "1,234,567 records");
    }
}
