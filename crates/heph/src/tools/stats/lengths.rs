//! Summaries of lengths.

use anytrace_analysis::quantiles::Quantiles;

/// Lengths of many spans, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lengths {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total_ns: u128,
    /// The shortest.
    pub min_ns: u64,
    /// The median.
    pub p50_ns: u64,
    /// The 90th percentile.
    pub p90_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// 999 of 1,000 are shorter.
    pub p999_ns: u64,
    /// The longest.
    pub max_ns: u64,
}

impl Lengths {
    /// Summarizes the lengths; also returns each power of two from which lengths occur, with their number.
    pub(in crate::tools) fn of(lengths: Quantiles) -> (Self, Vec<(u64, u64)>) {
        let (count, total_ns) = (lengths.count(), lengths.sum());
        let (min_ns, max_ns) = (lengths.min(), lengths.max());
        let sorted = lengths.sorted();
        let at = |numerator, denominator| sorted.fraction(numerator, denominator).unwrap_or(0);
        let made = Self {
            count,
            total_ns,
            min_ns,
            p50_ns: at(1, 2),
            p90_ns: at(9, 10),
            p99_ns: at(99, 100),
            p999_ns: at(999, 1000),
            max_ns,
        };
        let mut histogram: Vec<(u64, u64)> = Vec::new();
        for &(length, count) in sorted.counts() {
            let from = length.checked_ilog2().map_or(0, |log| 1 << log);
            match histogram.last_mut() {
                Some((last, sum)) if *last == from => *sum += count,
                _ => histogram.push((from, count)),
            }
        }
        (made, histogram)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_lengths_have_their_percentiles_and_powers_of_two() {
        let mut all = Quantiles::default();
        (0..1000).for_each(|n| all.push(n));
        let (lengths, histogram) = Lengths::of(all);
        assert_eq!((lengths.count, lengths.total_ns, lengths.min_ns, lengths.max_ns), (1000, 499_500, 0, 999));
        assert_eq!((lengths.p50_ns, lengths.p90_ns, lengths.p99_ns, lengths.p999_ns), (500, 900, 990, 999));
        assert_eq!(histogram[..4], [(0, 1), (1, 1), (2, 2), (4, 4)]);
        assert_eq!(histogram.last(), Some(&(512, 488)));
    }
}
