//! The working set over time: distinct lines in each window of records (Denning 1968), exact for windows of every power
//! of two, in memory that does not grow with the trace; and the phases of a program.
//!
//! Time is counted in epochs of some records. A touch is the first of its line in a window exactly when the line's
//! previous touch was in another window; with windows of doubling lengths that is so up to some length. Counted by
//! epoch and by that length, distinct lines of longer windows are sums, and epochs can be merged as the trace grows.

/// Records per epoch, as long as there are few epochs.
pub(super) const EPOCH_RECORDS: u64 = 1024;

/// Lengths of windows: 2 to the power of 0 to 31 epochs, and all.
const LENGTHS: usize = 33;

/// Most rows kept; when there are more, pairs of rows are merged.
const ROWS_MAX: usize = 512;

/// Lines kept in a signature.
const SIGNATURE_LINES: usize = 64;

/// Windows whose signatures share at least this part belong to one phase.
const ALIKE: f64 = 0.5;

/// The lines a window touched.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// First record.
    pub from: u64,
    /// Distinct lines.
    pub lines: u64,
    /// Lines never touched before.
    pub new_lines: u64,
}

/// A stretch of time in which about the same lines are touched.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Number of the phase: the same where a program returns to earlier behavior.
    pub number: usize,
    /// First record.
    pub from: u64,
    /// First record after it.
    pub to: u64,
    /// Distinct lines in one of its windows, in the middle.
    pub lines: u64,
}

/// The working set over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct WorkingSet {
    /// Records a window; the last may be shorter.
    pub window_records: u64,
    /// The windows, in order and without gaps.
    pub windows: Vec<Window>,
    /// Lengths of windows in records, and how many distinct lines a window of each length touches on average.
    pub by_length: Vec<(u64, f64)>,
    /// The phases, in order and without gaps.
    pub phases: Vec<Phase>,
}

/// First touches of one or some epochs.
#[derive(Debug, Clone)]
struct Row {
    /// By the length up to which they are the first of their window.
    firsts: [f64; LENGTHS],
    signature: Signature,
}

impl Default for Row {
    fn default() -> Self {
        Self { firsts: [0.0; LENGTHS], signature: Signature::default() }
    }
}

/// Counts working sets.
#[derive(Debug)]
pub(super) struct Windows {
    epoch_records: u64,
    /// A row has 2 to the power of this many epochs.
    length: u32,
    rows: Vec<Row>,
    rows_max: usize,
}

impl Windows {
    /// Windows of about this many records, or of a length that suits the trace.
    pub(super) fn new(window_records: Option<u64>) -> Self {
        let epoch_records = window_records.unwrap_or(EPOCH_RECORDS).max(1);
        let rows_max = if window_records.is_some() { ROWS_MAX * 32 } else { ROWS_MAX };
        Self { epoch_records, length: 0, rows: Vec::new(), rows_max }
    }

    /// The epoch of a record.
    #[inline]
    pub(super) fn epoch(&self, seq: u64) -> u32 {
        u32::try_from(seq / self.epoch_records).unwrap_or(u32::MAX)
    }

    /// First record of the epoch after that.
    pub(super) fn epoch_end(&self, epoch: u32) -> u64 {
        (u64::from(epoch) + 1).saturating_mul(self.epoch_records)
    }

    /// Adds a touch with a weight, of a line last touched in epoch `before`, or never. Touches in the same epoch as the
    /// previous one do not matter.
    #[inline]
    pub(super) fn touch(&mut self, epoch: u32, before: Option<u32>, hash: u64, weight: f64) {
        let length = match before {
            None => LENGTHS - 1,
            Some(before) if before == epoch => return,
            // Windows of this length, in epochs, are the longest that part the two.
            Some(before) => (epoch ^ before).ilog2() as usize,
        };
        self.count(epoch, length, hash, weight);
    }

    fn count(&mut self, epoch: u32, length: usize, hash: u64, weight: f64) {
        while (epoch >> self.length) as usize >= self.rows_max {
            self.put_together();
        }
        let at = (epoch >> self.length) as usize;
        if at >= self.rows.len() {
            self.rows.resize(at + 1, Row::default());
        }
        let Some(row) = self.rows.get_mut(at) else { return };
        if let Some(firsts) = row.firsts.get_mut(length) {
            *firsts += weight;
        }
        row.signature.add(hash);
    }

    #[cold]
    fn put_together(&mut self) {
        let rows = std::mem::take(&mut self.rows);
        self.length += 1;
        self.rows = rows
            .chunks(2)
            .map(|pair| {
                let mut pair = pair.iter().cloned();
                let mut row = pair.next().unwrap_or_default();
                for other in pair {
                    row.firsts.iter_mut().zip(other.firsts).for_each(|(sum, firsts)| *sum += firsts);
                    row.signature.unite(&other.signature);
                }
                row
            })
            .collect();
    }

    /// The result, for a trace of this many records.
    pub(super) fn finish(mut self, records: u64) -> WorkingSet {
        let window_records = self.epoch_records.saturating_mul(1 << self.length);
        let wanted = usize::try_from(records.div_ceil(window_records)).unwrap_or(self.rows_max).min(self.rows_max);
        self.rows.resize(self.rows.len().max(wanted), Row::default());
        let windows: Vec<Window> = (0..)
            .zip(&self.rows)
            .map(|(at, row): (u64, &Row)| Window {
                from: at.saturating_mul(window_records),
                lines: rounded(row.firsts.iter().skip(self.length as usize).sum()),
                new_lines: rounded(*row.firsts.last().unwrap_or(&0.0)),
            })
            .collect();
        WorkingSet {
            window_records,
            by_length: self.by_length(records, window_records),
            phases: phases(&self.rows, &windows, window_records, records),
            windows,
        }
    }

    fn by_length(&self, records: u64, window_records: u64) -> Vec<(u64, f64)> {
        let mut sums = [0.0; LENGTHS];
        for row in &self.rows {
            sums.iter_mut().zip(row.firsts).for_each(|(sum, firsts)| *sum += firsts);
        }
        let mut lengths = Vec::new();
        let mut length = self.length as usize;
        while length < LENGTHS {
            let window = window_records.saturating_mul(1 << (length - self.length as usize));
            let windows = records.div_ceil(window).max(1);
            lengths.push((window, sums.iter().skip(length).sum::<f64>() / windows as f64));
            if windows == 1 {
                break;
            }
            length += 1;
        }
        lengths
    }
}

fn rounded(weight: f64) -> u64 {
    // Never negative; a float beyond the range becomes the greatest number.
    weight.round() as u64
}

/// The lines with the lowest hashes of those touched (Broder 1997): two such samples yield the similarity of the sets,
/// however large they are.
#[derive(Debug, Clone, Default)]
struct Signature {
    /// Ascending.
    lowest: Vec<u64>,
}

impl Signature {
    #[inline]
    fn add(&mut self, hash: u64) {
        let is_low = self.lowest.len() < SIGNATURE_LINES || self.lowest.last().is_some_and(|last| hash < *last);
        if is_low && let Err(at) = self.lowest.binary_search(&hash) {
            self.lowest.truncate(SIGNATURE_LINES - 1);
            self.lowest.insert(at, hash);
        }
    }

    fn unite(&mut self, other: &Self) {
        other.lowest.iter().for_each(|hash| self.add(*hash));
    }

    /// Lines of both among lines of either, 0 to 1.
    fn likeness(&self, other: &Self) -> f64 {
        let (mut a, mut b) = (self.lowest.as_slice(), other.lowest.as_slice());
        let (mut either, mut both) = (0, 0);
        while either < SIGNATURE_LINES
            && let Some(lower) = [a.first(), b.first()].into_iter().flatten().min().copied()
        {
            let (is_a, is_b) = (a.first() == Some(&lower), b.first() == Some(&lower));
            a = a.get(usize::from(is_a)..).unwrap_or_default();
            b = b.get(usize::from(is_b)..).unwrap_or_default();
            either += 1;
            both += usize::from(is_a && is_b);
        }
        // Two empty windows are alike.
        if either == 0 { 1.0 } else { both as f64 / either as f64 }
    }
}

/// Windows that touch about the same lines are of one phase (after Dhodapkar & Smith 2003).
fn phases(rows: &[Row], windows: &[Window], window_records: u64, records: u64) -> Vec<Phase> {
    let mut known: Vec<&Signature> = Vec::new();
    let mut runs: Vec<(usize, u64, Vec<u64>)> = Vec::new();
    for (row, window) in rows.iter().zip(windows).take(PHASE_WINDOWS_MAX) {
        let alike = |number: usize| known.get(number).map_or(0.0, |known| known.likeness(&row.signature));
        let current = runs.last().map(|(number, ..)| *number);
        let number = match current.filter(|number| alike(*number) >= ALIKE) {
            Some(number) => number,
            None => {
                let all = (0..known.len()).map(|number| (alike(number), number));
                // Of equals the first.
                let best = all.max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
                best.filter(|(likeness, _)| *likeness >= ALIKE).map_or_else(
                    || {
                        known.push(&row.signature);
                        known.len() - 1
                    },
                    |(_, number)| number,
                )
            }
        };
        match runs.last_mut() {
            Some((last, _, lines)) if *last == number => lines.push(window.lines),
            _ => runs.push((number, window.from, vec![window.lines])),
        }
    }
    let ends = runs.iter().skip(1).map(|(_, from, _)| *from);
    let last = windows.get(..PHASE_WINDOWS_MAX).and_then(<[_]>::last).map(|w| w.from.saturating_add(window_records));
    let ends: Vec<u64> = ends.chain([last.unwrap_or(records).min(records)]).collect();
    runs.into_iter()
        .zip(ends)
        .map(|((number, from, mut lines), to)| {
            lines.sort_unstable();
            Phase { number, from, to, lines: lines.get(lines.len() / 2).copied().unwrap_or(0) }
        })
        .collect()
}

/// Most windows among which phases are searched: the work is up to its square.
const PHASE_WINDOWS_MAX: usize = 2 * ROWS_MAX;

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use super::*;

    /// Passes touches at records to windows as an engine does.
    fn working_set(touches: &[(u64, u64)], records: u64, window: Option<u64>) -> WorkingSet {
        let mut windows = Windows::new(window);
        let mut last = HashMap::new();
        for (seq, line) in touches {
            let epoch = windows.epoch(*seq);
            let before = last.insert(*line, epoch);
            windows.touch(epoch, before, anytrace_core::access::Sieve::hash(*line), 1.0);
        }
        windows.finish(records)
    }

    fn distinct(touches: &[(u64, u64)], from: u64, to: u64) -> u64 {
        let lines = touches.iter().filter(|(seq, _)| (from..to).contains(seq)).map(|(_, line)| *line);
        lines.collect::<HashSet<_>>().len() as u64
    }

    #[test]
    fn every_window_has_the_distinct_lines_that_a_set_counts() {
        let mut state = 9_u64;
        for (records, window) in [(5_000, Some(100)), (700_000, None), (3_000_000, None), (999, Some(1000)), (0, None)]
        {
            let step = (records / 20_000).max(1);
            let touches: Vec<_> = (0..records)
                .step_by(usize::try_from(step).unwrap())
                .map(|seq| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    (seq, (state >> 40) % (1 + seq / step / 4))
                })
                .collect();
            let found = working_set(&touches, records, window);
            assert!(found.windows.len() <= ROWS_MAX && found.windows.len() as u64 * found.window_records >= records);
            for window in &found.windows {
                let to = window.from + found.window_records;
                assert_eq!(window.lines, distinct(&touches, window.from, to), "{window:?}");
                assert_eq!(window.new_lines, distinct(&touches, 0, to) - distinct(&touches, 0, window.from));
            }
            for (length, lines) in &found.by_length {
                let starts = (0..records).step_by(usize::try_from(*length).unwrap());
                let all: Vec<_> = starts.map(|from| distinct(&touches, from, from + length)).collect();
                assert_eq!(*lines, all.iter().sum::<u64>() as f64 / all.len().max(1) as f64);
            }
        }
    }

    #[test]
    fn a_program_that_returns_to_earlier_behavior_is_in_the_same_phase() {
        let mut touches = Vec::new();
        for (phase, base) in [(0, 0), (1, 100_000), (2, 0), (3, 500_000)] {
            touches.extend((0..50_000_u64).map(|n| (phase * 50_000 + n, base + n % 300)));
        }
        let found = working_set(&touches, 200_000, None);
        let numbers: Vec<_> = found.phases.iter().map(|phase| phase.number).collect();
        // Windows that contain two phases may form one of their own.
        let long: Vec<_> = found.phases.iter().filter(|p| p.to - p.from > 40_000).map(|phase| phase.number).collect();
        assert_eq!((long[0], long[2], long.len()), (long[0], long[0], 4), "{numbers:?}");
        assert!(long[1] != long[0] && long[3] != long[0] && long[3] != long[1]);
        assert_eq!(found.phases.first().map(|p| p.from), Some(0));
        assert_eq!(found.phases.last().map(|p| p.to), Some(200_000));
        assert!(found.phases.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert!(found.phases.iter().all(|phase| (300..=600).contains(&phase.lines)));
    }
}
