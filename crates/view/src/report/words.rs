//! Times as the page has them.

use anytrace_core::text::{grouped, nanoseconds};
use serde_json::Value;

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

    /// A length in its unit where that is a time, else as a number of units.
    pub(super) fn length(&self, length: f64) -> String {
        let Some(ns) = self.ns.map(|ns| ns * length) else {
            return format!("{} {}", grouped(crate::axis::to_u64(length.round()).into()), self.word);
        };
        nanoseconds(crate::axis::to_u64(ns.round()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
