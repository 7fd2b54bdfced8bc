//! Where records resume after damage.
//!
//! The format has no markers, so every offset is tried: records resume where the next sixteen parse and nearly all of
//! them are plausible, or where complete plausible records lead exactly to the end of the data. It is a guess, made the
//! same way whatever the window's size.

use std::cmp::Ordering;

use crate::wire::likeness::{LIKE_OTHERS, Likeness, NAME_BYTES_MAX};
use crate::wire::parse::{parse_as, parse_record};
use crate::wire::record::{Kind, Layout};

/// How many records must follow.
const RECORDS: usize = 16;

/// How many of them may be odd.
pub(crate) const ODD_MAX: usize = 3;

/// How far a candidate looks ahead: sixteen adds with names just below the longest.
const LOOK_BYTES: usize = RECORDS * (29 + NAME_BYTES_MAX);

/// The bytes that [`find`] examines: a candidate, its rivals within one record, and their look-ahead.
pub(crate) const WINDOW_BYTES: usize = 2 * LOOK_BYTES;

/// Records before a rival that score less than this on average are none (half points).
const PREFIX_MIN: u32 = 7;

/// The measure of a plausible record.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trust {
    pub(crate) layout: Layout,
    /// The appearance of the records before the damage.
    pub(crate) likeness: Likeness,
}

/// Where records resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resume {
    /// At this offset of the window.
    At(usize),
    /// Not before this offset; the window does not contain what follows.
    NotBefore(usize),
}

/// Tries every offset of `window` from `from` on. `is_end` says that the data end with the window.
/// With `from` above 0 the window starts with the damaged record.
pub(crate) fn find(window: &[u8], from: usize, is_end: bool, trust: &Trust) -> Resume {
    // A caller that was not content with this record's end asks for what comes later.
    if from > 0
        && let Some(at) = after_bad_tag(window, trust).filter(|at| *at >= from)
    {
        return Resume::At(at);
    }
    let rivals = trust.layout.access_bytes();
    for at in from..window.len() {
        if !is_end && window.len() - at < LOOK_BYTES + rivals {
            return Resume::NotBefore(at);
        }
        // The first offset at which records resume, unless a neighbor within one record explains the bytes better.
        let Some(mut best) = Chain::from(window, at, trust) else { continue };
        // A neighbor may fit better: classic 32-bit addresses, shifted by a byte, look like records too.
        for rival in at + 1..(at + rivals).min(window.len()) {
            if let Some(chain) = Chain::from(window, rival, trust).filter(|chain| chain.is_better(&best)) {
                best = chain;
            }
        }
        return Resume::At(best.at());
    }
    Resume::NotBefore(window.len())
}

/// The end of the record at the window's start, if only its tag differs from the others and records follow it.
fn after_bad_tag(window: &[u8], trust: &Trust) -> Option<usize> {
    let mut best: Option<(u32, Chain)> = None;
    for kind in [Kind::Read, Kind::RttaRemove, Kind::RttaAdd] {
        let Some((record, used)) = parse_as(window, trust.layout, kind) else { continue };
        // With the flag, misaligned accesses score as well as others: the true flag is lost.
        let score = trust.likeness.score(&record, trust.layout);
        if score + 1 < LIKE_OTHERS || used >= LOOK_BYTES {
            continue;
        }
        let Some(chain) = Chain::from(window, used, trust) else { continue };
        let is_better = |(old_score, old): &(u32, Chain)| match chain.compare(old) {
            Ordering::Equal => score > *old_score,
            order => order.is_gt(),
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some((score, chain));
        }
    }
    best.map(|(_, chain)| chain.at())
}

/// The records that follow one another from an offset on.
#[derive(Debug, Clone, Copy)]
struct Chain {
    /// Offset and score of each.
    records: [(usize, u32); RECORDS],
    count: usize,
}

impl Chain {
    /// `None` where no records resume.
    fn from(window: &[u8], at: usize, trust: &Trust) -> Option<Self> {
        let all = window.get(at..)?;
        // The same bytes decide, whatever else the window contains.
        let (near, is_complete) = match all.get(..LOOK_BYTES) {
            Some(near) if all.len() > LOOK_BYTES => (near, false),
            _ => (all, true),
        };
        let mut rest = near;
        let mut chain = Self { records: [(0, 0); RECORDS], count: 0 };
        let mut odd = 0;
        while let Some(slot) = chain.records.get_mut(chain.count) {
            match parse_record(rest, trust.layout) {
                Ok((record, used)) => {
                    let score = trust.likeness.score(&record, trust.layout);
                    odd += usize::from(score == 0);
                    // The first record must be plausible: otherwise any odd record before true ones would be taken for
                    // the resumption.
                    if odd > ODD_MAX || (chain.count == 0 && odd > 0) {
                        return None;
                    }
                    *slot = (at + near.len() - rest.len(), score);
                    chain.count += 1;
                    rest = rest.get(used..).unwrap_or_default();
                }
                Err(_) => {
                    let ends_well = rest.is_empty() || (chain.count > 1 && is_cut_record(rest, trust.layout));
                    return (is_complete && chain.count > 0 && odd == 0 && ends_well).then_some(chain);
                }
            }
        }
        Some(chain)
    }

    fn records(&self) -> &[(usize, u32)] {
        self.records.get(..self.count).unwrap_or_default()
    }

    fn at(&self) -> usize {
        self.records.first().map_or(0, |(at, _)| *at)
    }

    /// The records before an offset: how many, and the sum of their scores.
    fn before(&self, end: usize) -> (u32, u32) {
        let before = self.records().iter().take_while(|(at, _)| *at < end);
        before.fold((0, 0), |(count, sum), (_, score)| (count + 1, sum + score))
    }

    /// Compares average scores up to where both read the same records.
    fn compare(&self, other: &Self) -> Ordering {
        let is_shared = |at: usize| other.records().binary_search_by_key(&at, |(at, _)| *at).is_ok();
        let merge = self.records().iter().map(|(at, _)| *at).find(|at| is_shared(*at)).unwrap_or(usize::MAX);
        let ((our_count, our_sum), (count, sum)) = (self.before(merge), other.before(merge));
        // Averages are compared as products, exactly; the counts are at most sixteen.
        (our_sum * count).cmp(&(sum * our_count))
    }

    /// True when this one, which starts later, is the better account of the bytes.
    fn is_better(&self, earlier: &Self) -> bool {
        let is_part = earlier.records().iter().any(|(at, _)| *at == self.at());
        if is_part {
            // Everything before it is lost with it: that must be rubbish only.
            let (count, sum) = earlier.before(self.at());
            return sum * 2 < count * PREFIX_MIN;
        }
        self.compare(earlier).is_gt()
    }
}

/// True when the rest of the data can be the start of a record.
fn is_cut_record(rest: &[u8], layout: Layout) -> bool {
    let is_short = rest.len() < layout.add_bytes() + NAME_BYTES_MAX;
    is_short
        && matches!(parse_record(rest, layout), Err(crate::wire::parse::Need::More(need)) if need < (NAME_BYTES_MAX + 29) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::record::Width;

    fn accesses(layout: Layout, count: u64, base: u64, thread: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for n in 0..count {
            bytes.push(u8::from(n % 3 == 0));
            match layout.width {
                Width::Eight => bytes.extend(layout.endian.put_u64(base + n * 4)),
                Width::Four => bytes.extend(layout.endian.put_u32(u32::try_from(base + n * 4).unwrap())),
            }
            bytes.push(4);
            bytes.extend(layout.endian.put_u64(thread));
        }
        bytes
    }

    #[test]
    fn records_resume_at_the_true_boundary_in_every_layout() {
        for layout in Layout::ALL {
            let base = if layout.width == Width::Eight { 0x5555_dead_b000 } else { 0x0804_9a10 };
            for thread in [0, 1, 77] {
                let mut bytes = accesses(layout, 40, base, thread);
                bytes[0] = 0x3f;
                let stride = layout.access_bytes();
                let trust = Trust { layout, ..Trust::default() };
                assert_eq!(find(&bytes, 1, true, &trust), Resume::At(stride), "{layout:?} {thread}");
            }
        }
    }

    #[test]
    fn zeros_and_rubbish_are_no_records() {
        let trust = Trust::default();
        assert_eq!(find(&[0; 500], 0, true, &trust), Resume::NotBefore(500));
        assert_eq!(find(&[0xff; 500], 0, true, &trust), Resume::NotBefore(500));
        assert_eq!(find(&[], 0, true, &trust), Resume::NotBefore(0));
    }

    #[test]
    fn without_the_end_in_the_window_only_complete_candidates_are_judged() {
        let trust = Trust::default();
        let window = vec![0xff; WINDOW_BYTES];
        let Resume::NotBefore(at) = find(&window, 0, false, &trust) else { panic!("rubbish") };
        assert!(at > 0 && at + LOOK_BYTES + 18 >= WINDOW_BYTES);
    }

    #[test]
    fn one_last_record_that_ends_with_the_data_is_found() {
        let layout = Layout::default();
        let mut bytes = vec![0xff; 18];
        bytes.extend(accesses(layout, 1, 0x5555_dead_b008, 0));
        assert_eq!(find(&bytes, 1, true, &Trust::default()), Resume::At(18));
    }
}
