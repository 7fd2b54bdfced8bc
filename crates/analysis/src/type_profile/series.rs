//! A value over time in few slots: the maximum of each; slots become wider as time passes.

/// Slots kept.
const SLOTS_MAX: usize = 256;

/// A value over the numbers of records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    width: u64,
    slots: Vec<u64>,
    latest: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { width: 1, slots: Vec::new(), latest: 0 }
    }
}

impl Series {
    /// Sets the value from a record on. Records must not decrease.
    pub fn put(&mut self, seq: u64, value: u64) {
        self.reach(seq);
        if let Some(slot) = self.slots.last_mut() {
            *slot = (*slot).max(value);
        }
        self.latest = value;
    }

    /// The value is unchanged up to the last record.
    pub fn finish(&mut self, records: u64, value: u64) {
        if let Some(last) = records.checked_sub(1) {
            self.put(last, value);
        }
    }

    /// Makes room for a record: records in between have the latest value.
    fn reach(&mut self, seq: u64) {
        while seq / self.width >= SLOTS_MAX as u64 {
            self.slots = self.slots.chunks(2).map(|pair| pair.iter().copied().max().unwrap_or(0)).collect();
            self.width = self.width.saturating_mul(2);
        }
        let count = usize::try_from(seq / self.width).unwrap_or(SLOTS_MAX - 1) + 1;
        while self.slots.len() < count {
            self.slots.push(self.latest);
        }
    }

    /// Records of a slot.
    pub fn width(&self) -> u64 {
        self.width
    }

    /// The greatest value in each slot.
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// As many bars as asked for, or fewer: a small picture in text. Empty where the value was always 0.
    pub fn sparkline(&self, columns: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let most = self.slots.iter().copied().max().unwrap_or(0);
        if most == 0 || columns == 0 {
            return String::new();
        }
        let columns = columns.min(self.slots.len());
        let bar = |column: usize| {
            let (from, to) = (column * self.slots.len() / columns, (column + 1) * self.slots.len() / columns);
            let value = self.slots.get(from..to.max(from + 1)).into_iter().flatten().copied().max().unwrap_or(0);
            if value == 0 {
                return ' ';
            }
            let eighth = (u128::from(value) * 8).div_ceil(u128::from(most)).clamp(1, 8) - 1;
            BARS.get(usize::try_from(eighth).unwrap_or(7)).copied().unwrap_or('█')
        };
        (0..columns).map(bar).collect::<String>().trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_long_time_is_the_peak_stays() {
        let mut series = Series::default();
        series.put(0, 1);
        series.put(1000, 77);
        series.put(1001, 2);
        series.finish(1_000_000, 2);
        assert!(series.slots().len() <= SLOTS_MAX && series.slots().contains(&77));
        assert_eq!(series.slots().last(), Some(&2));
        assert_eq!(series.slots().len() as u64, 999_999 / series.width() + 1);
        series.put(u64::MAX, 3);
        assert_eq!(series.slots().last(), Some(&3));
    }

    #[test]
    fn a_sparkline_has_a_bar_for_each_part() {
        let mut series = Series::default();
        for (seq, value) in [0, 1, 8, 4, 4].into_iter().enumerate() {
            series.put(seq as u64, value);
        }
        assert_eq!(series.sparkline(5), " ▁██▄");
        assert_eq!(Series::default().sparkline(10), "");
    }
}
