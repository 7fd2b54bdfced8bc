//! Compares the sampled lines during a burst with the sampled lines at all times: bursts from phases that are
//! overrepresented get less weight.
//!
//! Sampled lines are seen in every record, bursts only here and there. Where, for example, the share of distant touches
//! among sampled lines correlates with the share among all lines of a burst, it predicts what bursts would have seen
//! elsewhere. That is a regression estimator (Cochran, Sampling Techniques, 1977, chapter 7): where the sampled lines
//! predict nothing about a burst, as in programs without phases, its slopes are about zero, and bursts are used
//! unchanged.

/// Kinds of touches of sampled lines that are counted separately.
pub(super) const SIGNALS: usize = 3;

/// Distances of the kinds begin here; the last kind includes first touches.
const KINDS_FROM: [u64; SIGNALS] = [0, 128, 1024];

/// Most of a square distance between bursts and everything, in units of the bursts' own spread. Beyond, some bursts
/// would get weights below zero.
const SHIFT_MAX: f64 = 0.25;

/// Minimum number of bursts from which a correlation with the signals can be estimated.
const BURSTS_MIN: u64 = 16;

/// Touches of sampled lines, by kind.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Signals([f64; SIGNALS]);

impl Signals {
    /// Counts a touch; a first one has no distance.
    #[inline]
    pub(super) fn add(&mut self, distance: Option<u64>, weight: f64) {
        let kind =
            distance.map_or(SIGNALS - 1, |distance| KINDS_FROM.iter().filter(|from| distance >= **from).count() - 1);
        if let Some(sum) = self.0.get_mut(kind) {
            *sum += weight;
        }
    }

    /// A record's share of them.
    pub(super) fn of_each(self, records: u64) -> Self {
        Self(self.0.map(|sum| if records > 0 { sum / records as f64 } else { 0.0 }))
    }

    pub(super) fn values(self) -> [f64; SIGNALS] {
        self.0
    }
}

/// How the signals are spread over bursts.
#[derive(Debug, Default)]
pub(super) struct Spread {
    bursts: u64,
    weight: f64,
    sums: [f64; SIGNALS],
    products: [[f64; SIGNALS]; SIGNALS],
}

impl Spread {
    /// Counts a burst with the weight it has in all sums.
    pub(super) fn add(&mut self, signals: Signals, weight: f64) {
        self.bursts += 1;
        self.weight += weight;
        for ((value, sum), products) in signals.0.into_iter().zip(&mut self.sums).zip(&mut self.products) {
            *sum += value * weight;
            for (product, other) in products.iter_mut().zip(signals.0) {
                *product += value * other * weight;
            }
        }
    }

    /// Factors that turn sums over bursts into the sum over everything, if all records have such signals on average:
    /// first the factor of the plain sum, then those of the products with each signal.
    pub(super) fn factors(&self, everything: Signals) -> [f64; SIGNALS + 1] {
        let mut factors = [0.0; SIGNALS + 1];
        factors[0] = 1.0;
        if self.bursts < BURSTS_MIN || self.weight <= 0.0 {
            return factors;
        }
        let mean = self.sums.map(|sum| sum / self.weight);
        let mut shift = everything.0;
        shift.iter_mut().zip(mean).for_each(|(value, mean)| *value -= mean);
        let mut covariance = self.products;
        for (row, of_row) in covariance.iter_mut().zip(mean) {
            row.iter_mut().zip(mean).for_each(|(product, mean)| *product = *product / self.weight - of_row * mean);
        }
        let slopes = solved(covariance, shift);
        let distance: f64 = slopes.iter().zip(shift).map(|(slope, shift)| slope * shift).sum();
        let kept = if distance > SHIFT_MAX { (SHIFT_MAX / distance).sqrt() } else { 1.0 };
        for ((slope, mean), factor) in slopes.into_iter().zip(mean).zip(1..) {
            factors[factor] = slope * kept;
            factors[0] -= slope * kept * mean;
        }
        factors
    }
}

/// Solves a symmetric, positive system (Gauss); a signal that hardly varies, or only with others, is left out.
fn solved(mut rows: [[f64; SIGNALS]; SIGNALS], mut right: [f64; SIGNALS]) -> [f64; SIGNALS] {
    let least: [f64; SIGNALS] = std::array::from_fn(|at| rows[at][at] * 1e-3 + 1e-12);
    let mut is_used = [false; SIGNALS];
    for pivot in 0..SIGNALS {
        if rows[pivot][pivot] <= least[pivot] {
            continue;
        }
        is_used[pivot] = true;
        let (row, of_row) = (rows[pivot], right[pivot]);
        for other in (0..SIGNALS).filter(|other| *other != pivot) {
            let times = rows[other][pivot] / row[pivot];
            rows[other].iter_mut().zip(row).for_each(|(value, of_pivot)| *value -= times * of_pivot);
            right[other] -= times * of_row;
        }
    }
    std::array::from_fn(|at| if is_used[at] { right[at] / rows[at][at] } else { 0.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(low: f64, mid: f64, far: f64) -> Signals {
        Signals([low, mid, far])
    }

    #[test]
    fn touches_are_counted_by_distance_and_first_ones_are_far() {
        let mut found = Signals::default();
        for distance in [Some(0), Some(127), Some(128), Some(1023), Some(1024), Some(u64::MAX), None] {
            found.add(distance, 10.0);
        }
        assert_eq!(found.of_each(10), signals(2.0, 2.0, 3.0));
        assert_eq!(found.of_each(0), Signals::default());
    }

    /// Bursts of a program with two phases, of which 30 of 100 bursts show the first; the value counted in a burst is 1
    /// in the first phase.
    fn estimate(noise: f64, far_of_everything: f64) -> f64 {
        let mut spread = Spread::default();
        let mut sums = [0.0; SIGNALS + 1];
        for burst in 0..100 {
            let is_first = burst % 10 < 3;
            let sign = if burst % 4 < 2 { noise } else { -noise };
            let of_burst = signals(1.0, 0.0, if is_first { 0.8 } else { 0.2 } + sign);
            spread.add(of_burst, 2.0);
            let factors = std::iter::once(1.0).chain(of_burst.values());
            sums.iter_mut().zip(factors).for_each(|(sum, factor)| *sum += 2.0 * factor * f64::from(u8::from(is_first)));
        }
        let factors = spread.factors(signals(1.0, 0.0, far_of_everything));
        sums.iter().zip(factors).map(|(sum, factor)| sum * factor).sum::<f64>() / 200.0
    }

    #[test]
    fn phases_that_bursts_have_too_few_of_are_given_more_weight() {
        // As many of each phase as there are bursts; and half of the records really are in the first.
        assert!((estimate(0.0, 0.3 * 0.8 + 0.7 * 0.2) - 0.3).abs() < 1e-9);
        assert!((estimate(0.0, 0.5) - 0.5).abs() < 1e-9);
        // Signals with little information change little.
        assert!((estimate(5.0, 0.5) - 0.3).abs() < 0.03);
    }

    #[test]
    fn few_bursts_are_taken_as_they_are_and_shifts_are_bounded() {
        let mut spread = Spread::default();
        for burst in 0..10 {
            spread.add(signals(1.0, 0.0, f64::from(burst)), 1.0);
        }
        assert_eq!(spread.factors(signals(1.0, 0.0, 9.0)), [1.0, 0.0, 0.0, 0.0]);
        assert!((estimate(0.0, 1000.0) - estimate(0.0, 2000.0)).abs() < 1e-9);
    }

    #[test]
    fn signals_that_do_not_vary_or_only_with_others_are_left_out() {
        let found = solved([[0.0, 0.0, 0.0], [0.0, 2.0, 2.0], [0.0, 2.0, 2.0]], [1.0, 4.0, 4.0]);
        assert_eq!(found, [0.0, 2.0, 0.0]);
        let found = solved([[2.0, 1.0, 0.0], [1.0, 3.0, 0.0], [0.0, 0.0, 4.0]], [4.0, 7.0, 8.0]);
        assert!(found.iter().zip([1.0, 2.0, 2.0]).all(|(found, due)| (found - due).abs() < 1e-12), "{found:?}");
    }
}
