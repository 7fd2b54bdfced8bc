//! How much a statistic may grow from one trace to another: `total=10%`.

/// A statistic that must not grow by more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold<S> {
    /// The statistic.
    pub statistic: S,
    /// Growth allowed, in percent of the base's value.
    pub percent: f64,
}

impl<S> Threshold<S> {
    /// Reads `total=10%` (or `total=10`), where `statistic` knows the words.
    pub fn parse(text: &str, statistic: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        Self::parse_signed(text, statistic).filter(|threshold| threshold.percent >= 0.0)
    }

    /// [`Self::parse`], where a value may also be required to shrink: `total=-5%`.
    pub fn parse_signed(text: &str, statistic: impl FnOnce(&str) -> Option<S>) -> Option<Self> {
        let (word, percent) = text.split_once('=')?;
        let percent: f64 = percent.trim_end_matches('%').parse().ok()?;
        let statistic = statistic(word)?;
        percent.is_finite().then_some(Self { statistic, percent })
    }

    /// True when a value has grown by more; `None` is nothing to compare.
    pub fn is_exceeded(&self, growth_percent: Option<f64>) -> bool {
        growth_percent.is_some_and(|growth| growth > self.percent)
    }
}

/// Growth in percent of the base's value: infinite from 0, `None` where both are 0.
pub fn growth_percent(base: u128, shown: u128) -> Option<f64> {
    match (base, shown) {
        (0, 0) => None,
        (0, _) => Some(f64::INFINITY),
        _ => Some((shown as f64 - base as f64) / base as f64 * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<Threshold<u8>> {
        Threshold::parse(text, |word| (word == "total").then_some(7))
    }

    #[test]
    fn thresholds_are_read_or_refused() {
        assert_eq!(parse("total=5%"), Some(Threshold { statistic: 7, percent: 5.0 }));
        assert_eq!(parse("total=0.5"), Some(Threshold { statistic: 7, percent: 0.5 }));
        for wrong in ["", "total", "total=", "total=x%", "sum=3%", "total=-1", "total=inf", "total=nan"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        let signed = |text| Threshold::parse_signed(text, |_| Some(())).map(|threshold| threshold.percent);
        assert_eq!((signed("total=-5%"), signed("total=-inf")), (Some(-5.0), None));
    }

    #[test]
    fn growth_beyond_the_percentage_exceeds() {
        let threshold = parse("total=5%").unwrap();
        let is_exceeded = |base, shown| threshold.is_exceeded(growth_percent(base, shown));
        assert!(!is_exceeded(100, 105) && is_exceeded(100, 106) && is_exceeded(0, 1));
        assert!(!is_exceeded(0, 0) && !is_exceeded(100, 0));
    }
}
