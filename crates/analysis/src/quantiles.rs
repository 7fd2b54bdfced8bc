//! Exact order statistics of many numbers in memory that grows with the distinct ones only.
//!
//! Small numbers are counted in a table; the rest are gathered, sorted and folded into runs of number and count, which
//! are merged when they are of one size. A table is never longer than the numbers it was given, so that thousands of
//! these with few numbers each stay small.

/// Numbers below this may be counted in the table: 256 KiB.
const TABLE_MAX: usize = 1 << 16;

/// Numbers gathered before they are sorted.
const GATHERED_MAX: usize = 4096;

/// Tables begin at this many numbers seen.
const TABLE_AT: u64 = 256;

/// Numbers, by count. See [`Sorted`] for the queries.
#[derive(Debug, Clone, Default)]
pub struct Quantiles {
    /// How often each small number was added.
    table: Vec<u32>,
    gathered: Vec<u64>,
    /// Sorted runs, longest first, each at least about twice as long as the next.
    runs: Vec<Vec<(u64, u64)>>,
    /// Numbers that are not in the table.
    others: Others,
}

/// Numbers that are not in the table, together.
#[derive(Debug, Clone, Default)]
struct Others {
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Others {
    fn add(&mut self, value: u64, count: u64) {
        self.min = if self.count == 0 { value } else { self.min.min(value) };
        self.max = self.max.max(value);
        self.count += count;
        self.sum += u128::from(value) * u128::from(count);
    }
}

impl Quantiles {
    /// Adds a number. For a small one this is a single increment.
    #[inline]
    pub fn push(&mut self, value: u64) {
        match usize::try_from(value).ok().and_then(|n| self.table.get_mut(n)) {
            // A full counter stays full; further ones are gathered, and `sorted` adds both up.
            Some(count) if *count < u32::MAX => *count += 1,
            _ => self.gather(value),
        }
    }

    /// Adds all numbers of another.
    pub fn merge(&mut self, other: Self) {
        for (value, count) in other.sorted().counts {
            // Most go into the table; the others become one more run.
            match usize::try_from(value).ok().and_then(|n| self.table.get_mut(n)) {
                Some(own) if u64::from(*own) + count <= u64::from(u32::MAX) => {
                    *own += u32::try_from(count).unwrap_or(0);
                }
                _ => self.spare(value, count),
            }
        }
        self.fold();
    }

    /// How many numbers were added. Walks the table, as do the methods below.
    pub fn count(&self) -> u64 {
        self.others.count + self.small().map(|(_, count)| count).sum::<u64>()
    }

    /// Their sum.
    pub fn sum(&self) -> u128 {
        self.others.sum + self.small().map(|(value, count)| u128::from(value) * u128::from(count)).sum::<u128>()
    }

    /// The smallest; 0 of none.
    pub fn min(&self) -> u64 {
        let small = self.small().next().map(|(value, _)| value);
        let other = (self.others.count > 0).then_some(self.others.min);
        small.into_iter().chain(other).min().unwrap_or(0)
    }

    /// The largest; 0 of none.
    pub fn max(&self) -> u64 {
        let small = self.small().next_back().map_or(0, |(value, _)| value);
        self.others.max.max(small)
    }

    /// The counts in the table.
    fn small(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        let counted = self.table.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(value, &count)| (value as u64, u64::from(count)))
    }

    /// All numbers in order.
    pub fn sorted(mut self) -> Sorted {
        self.fold();
        let mut all: Vec<(u64, u64)> = self.small().collect();
        drop(std::mem::take(&mut self.table));
        // The shortest run is last: merging from the short end moves each number the fewest times.
        while let Some(run) = self.runs.pop() {
            all = merged(&all, &run);
        }
        Sorted { counts: all }
    }

    #[cold]
    fn gather(&mut self, value: u64) {
        self.others.add(value, 1);
        self.gathered.push(value);
        // The second condition makes the first table as soon as it is worth its memory, instead of after 4,096 numbers.
        if self.gathered.len() >= GATHERED_MAX || (self.table.is_empty() && self.others.count == TABLE_AT) {
            self.fold();
        }
    }

    fn spare(&mut self, value: u64, count: u64) {
        self.others.add(value, count);
        match self.runs.last_mut() {
            // Ascending values make a run by themselves.
            Some(run) if run.last().is_some_and(|&(last, _)| last < value) => run.push((value, count)),
            _ => self.runs.push(vec![(value, count)]),
        }
    }

    /// Sorts the gathered numbers into a run, and lets the table grow with its contents.
    fn fold(&mut self) {
        self.gathered.sort_unstable();
        let mut run: Vec<(u64, u64)> = Vec::new();
        for value in self.gathered.drain(..) {
            match run.last_mut() {
                Some((last, count)) if *last == value => *count += 1,
                _ => run.push((value, 1)),
            }
        }
        if !run.is_empty() {
            self.runs.push(run);
        }
        // Merging only runs of similar length keeps the number of runs logarithmic and the total work O(n log n).
        while let [.., longer, last] = self.runs.as_slice()
            && longer.len() <= last.len() * 2
        {
            let both = merged(longer, last);
            self.runs.truncate(self.runs.len() - 2);
            self.runs.push(both);
        }
        // Numbers already gathered stay in the runs when the table grows: only later ones are counted in it.
        if self.table.len() == TABLE_MAX || self.others.count < TABLE_AT {
            return;
        }
        let room = usize::try_from(self.count()).unwrap_or(TABLE_MAX).min(TABLE_MAX);
        // Doubling bounds the cost of all resizes by the final length.
        if room == TABLE_MAX || room >= self.table.len() * 2 {
            self.table.resize(room, 0);
        }
    }
}

/// Merges two sorted runs; the counts of one value are added.
fn merged(a: &[(u64, u64)], b: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut out = Vec::with_capacity(a.len() + b.len());
    let (mut a, mut b) = (a.iter().copied().peekable(), b.iter().copied().peekable());
    loop {
        out.push(match (a.peek(), b.peek()) {
            (Some(x), Some(y)) if x.0 == y.0 => {
                let both = (x.0, x.1 + y.1);
                a.next();
                b.next();
                both
            }
            (Some(x), Some(y)) if x.0 > y.0 => {
                let next = *y;
                b.next();
                next
            }
            (Some(x), _) => {
                let next = *x;
                a.next();
                next
            }
            (None, Some(y)) => {
                let next = *y;
                b.next();
                next
            }
            (None, None) => break,
        });
    }
    out.shrink_to_fit();
    out
}

/// Numbers in order.
///
/// ```
/// use anytrace_analysis::quantiles::Quantiles;
///
/// let mut lengths = Quantiles::default();
/// [7, 3, 3, 9].into_iter().for_each(|length| lengths.push(length));
/// let (count, sorted) = (lengths.count(), lengths.sorted());
/// assert_eq!((sorted.nth(count / 2), sorted.nth(0)), (Some(7), Some(3)));
/// assert_eq!(sorted.nth(4), None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sorted {
    counts: Vec<(u64, u64)>,
}

impl Sorted {
    /// The number at a place of the sorted list, from 0; `None` past its end.
    pub fn nth(&self, place: u64) -> Option<u64> {
        let mut before = 0_u64;
        for &(value, count) in &self.counts {
            before += count;
            if place < before {
                return Some(value);
            }
        }
        None
    }

    /// The number at the fraction `numerator / denominator` of the list, rounded down: `(1, 2)` is the median, the upper
    /// of two. `None` of none.
    pub fn fraction(&self, numerator: u64, denominator: u64) -> Option<u64> {
        let count: u64 = self.counts.iter().map(|(_, n)| n).sum();
        let place = u128::from(count) * u128::from(numerator) / u128::from(denominator.max(1));
        self.nth(u64::try_from(place).unwrap_or(u64::MAX).min(count.checked_sub(1)?))
    }

    /// Each distinct number, with how often it was added, in order.
    pub fn counts(&self) -> &[(u64, u64)] {
        &self.counts
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Quantiles {
        let mut all = Quantiles::default();
        values.iter().for_each(|&value| all.push(value));
        all
    }

    /// The slow obvious version: a sorted list.
    fn assert_same(found: Quantiles, values: &[u64]) {
        let mut list = values.to_vec();
        list.sort_unstable();
        assert_eq!(found.count(), list.len() as u64);
        assert_eq!(found.sum(), list.iter().map(|&v| u128::from(v)).sum::<u128>());
        assert_eq!(found.min(), list.first().copied().unwrap_or(0));
        assert_eq!(found.max(), list.last().copied().unwrap_or(0));
        let sorted = found.sorted();
        let flat = |(value, count): &(u64, u64)| vec![*value; usize::try_from(*count).unwrap()];
        assert_eq!(sorted.counts().iter().flat_map(flat).collect::<Vec<_>>(), list);
        for (numerator, denominator) in [(0, 1), (1, 2), (9, 10), (99, 100), (1, 1)] {
            let n = list.len() as u64;
            let place = usize::try_from(n * numerator / denominator).unwrap();
            let expected = list.get(place).or(list.last()).copied();
            assert_eq!(sorted.fraction(numerator, denominator), expected);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn answers_are_those_of_a_sorted_list(
            values in prop::collection::vec(prop_oneof![0..50_u64, 0..200_000_u64, any::<u64>()], 0..12_000),
            split in 0.0..1.0_f64,
        ) {
            assert_same(of(&values), &values);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
            let at = (values.len() as f64 * split) as usize;
            let (left, right) = values.split_at(at);
            let mut both = of(left);
            both.merge(of(right));
            assert_same(both, &values);
        }
    }

    #[test]
    fn memory_follows_distinct_values_not_their_number() {
        let mut all = Quantiles::default();
        for n in 0..2_000_000_u64 {
            all.push((1 << 40) + n % 1000);
        }
        let kept: usize = all.runs.iter().map(Vec::len).sum();
        assert!(kept <= 4000, "{kept} entries for 1,000 values");
        assert_eq!(all.sorted().counts().len(), 1000);
    }

    #[test]
    fn few_numbers_take_little_room() {
        let few = of(&[5, 6, 60_000]);
        assert!(few.table.is_empty() && few.gathered.capacity() <= 8);
    }

    #[test]
    fn a_full_count_goes_on_in_a_run() {
        let mut all = of(&(0..1000).map(|n| n % 3).collect::<Vec<_>>());
        let in_runs = all.clone().sorted().nth(0);
        assert_eq!(in_runs, Some(0));
        let before = all.count();
        let mut added = 3;
        if let Some(count) = all.table.get_mut(1) {
            added += u64::from(u32::MAX - *count);
            *count = u32::MAX;
        }
        all.push(1);
        all.merge(of(&[1, 1]));
        assert_eq!((all.count(), all.min(), all.max()), (before + added, 0, 2));
        let sorted = all.sorted();
        assert_eq!(sorted.counts().iter().map(|(_, n)| n).sum::<u64>(), before + added);
    }
}
