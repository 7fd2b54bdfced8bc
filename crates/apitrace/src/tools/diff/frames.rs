//! Aligns the frames of two traces.
//!
//! A first pass over both traces computes for each frame a hash of its calls, a hash of its functions' names and a
//! sketch of its calls. The sketch distinguishes similar frames from those that have nothing in common.

use std::hash::{DefaultHasher, Hasher};

use anytrace_analysis::diff::{Record, Step, align_steps};
use anytrace_core::Error;

use crate::tools::diff::entry::Maker;
use crate::tools::diff::side::{Consumer, Property};

/// Most frames tracked; later ones count as part of the last one.
const FRAMES_MAX: usize = 1 << 18;

/// Numbers of a sketch.
const SKETCH: usize = 8;

/// A frame of a trace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameRow {
    hash: u64,
    names: u64,
    /// A MinHash sketch (Broder 1997): for each of several mixing functions, the smallest mixed hash of the calls.
    sketch: [u32; SKETCH],
    /// The number of its calls.
    pub(crate) calls: u64,
}

impl Record for FrameRow {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn buffered_bytes(&self) -> usize {
        size_of::<Self>()
    }
}

impl FrameRow {
    const EMPTY: Self = Self { hash: 0, names: 0, sketch: [u32::MAX; SKETCH], calls: 0 };

    fn add(&mut self, maker: &Maker) {
        let mix = |old: u64, new: u64| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u64(old);
            hasher.write_u64(new);
            hasher.finish()
        };
        self.hash = mix(self.hash, maker.hash);
        self.names = mix(self.names, maker.name_hash);
        for (at, least) in (1_u64..).zip(&mut self.sketch) {
            let mixed = maker.hash.wrapping_mul(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            *least = (*least).min((mixed >> 32) as u32);
        }
        self.calls += 1;
    }

    /// The similarity of two frames; 0: nothing in common.
    fn likeness(&self, other: &Self) -> u32 {
        let same = self.sketch.iter().zip(&other.sketch).filter(|(x, y)| x == y).count() as u32;
        if self.names == other.names { same + SKETCH as u32 } else { same }
    }
}

/// The frames of a trace.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) rows: Vec<FrameRow>,
    pub(crate) properties: Vec<Property>,
}

/// The tracked frame that a call's frame belongs to.
pub(crate) fn frame_slot(frame: u64) -> usize {
    usize::try_from(frame).unwrap_or(usize::MAX).min(FRAMES_MAX - 1)
}

impl Consumer for Frames {
    fn properties(&mut self, properties: Vec<Property>) -> Result<(), Error> {
        self.properties = properties;
        Ok(())
    }

    fn call(&mut self, maker: &Maker) -> Result<bool, Error> {
        let at = frame_slot(maker.frame);
        if self.rows.len() <= at {
            self.rows.resize(at + 1, FrameRow::EMPTY);
        }
        if let Some(row) = self.rows.get_mut(at) {
            row.add(maker);
        }
        Ok(true)
    }
}

/// How a frame was aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Both traces have it, with the same calls.
    Same(usize, usize),
    /// Both traces have it, with other calls.
    Changed(usize, usize),
    /// Only the first trace has it.
    Removed(usize),
    /// Only the second trace has it.
    Added(usize),
}

/// Aligns the frames of two traces.
pub(crate) fn align(a: &[FrameRow], b: &[FrameRow]) -> Vec<Fate> {
    let mut fates = Vec::with_capacity(a.len().max(b.len()));
    let result: Result<(), std::convert::Infallible> = align_steps(a.iter().copied(), b.iter().copied(), &mut |step| {
        match step {
            Step::Same((i, _), (j, _)) => fates.push(Fate::Same(i as usize, j as usize)),
            Step::Differ(x, y) => pair(&x, &y, &mut fates),
        }
        Ok(())
    });
    match result {
        Ok(()) => fates,
    }
}

/// Pairs frames that differ, in order, so that the total similarity is maximal.
fn pair(x: &[(u64, FrameRow)], y: &[(u64, FrameRow)], fates: &mut Vec<Fate>) {
    let width = y.len() + 1;
    // best[i][j]: total similarity of the best pairs from frames i and j on.
    let mut best = vec![0_u32; (x.len() + 1) * width];
    let at = |best: &[u32], i: usize, j: usize| best.get(i * width + j).copied().unwrap_or(0);
    // If both sides have equally many frames, they are paired by position, however little they have in common.
    let bonus = u32::from(x.len() == y.len());
    let likeness = |i: usize, j: usize| match (x.get(i), y.get(j)) {
        (Some((_, x)), Some((_, y))) => x.likeness(y) + bonus,
        _ => 0,
    };
    for i in (0..x.len()).rev() {
        for j in (0..y.len()).rev() {
            let alike = likeness(i, j);
            let paired = if alike > 0 { at(&best, i + 1, j + 1) + alike } else { 0 };
            let most = paired.max(at(&best, i + 1, j)).max(at(&best, i, j + 1));
            if let Some(place) = best.get_mut(i * width + j) {
                *place = most;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    loop {
        let alike = likeness(i, j);
        match (x.get(i), y.get(j)) {
            (None, None) => return,
            (Some((p, _)), Some((q, _))) if alike > 0 && at(&best, i, j) == at(&best, i + 1, j + 1) + alike => {
                fates.push(Fate::Changed(*p as usize, *q as usize));
                (i, j) = (i + 1, j + 1);
            }
            (Some((p, _)), other) if other.is_none() || at(&best, i, j) == at(&best, i + 1, j) => {
                fates.push(Fate::Removed(*p as usize));
                i += 1;
            }
            (_, Some((q, _))) => {
                fates.push(Fate::Added(*q as usize));
                j += 1;
            }
            // Not reached: a frame that only the first has was removed above.
            (Some(_), None) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(hashes: &[u64]) -> Vec<FrameRow> {
        hashes
            .iter()
            .map(|hash| FrameRow { hash: *hash, names: hash / 10, sketch: [*hash as u32; SKETCH], calls: 1 })
            .collect()
    }

    #[test]
    fn an_inserted_frame_moves_no_other() {
        let a = rows(&[10, 20, 30, 40, 50, 60, 70, 80]);
        let b = rows(&[10, 20, 30, 99, 40, 50, 60, 70, 80]);
        let fates = align(&a, &b);
        assert_eq!(fates.iter().filter(|fate| matches!(fate, Fate::Same(..))).count(), 8);
        assert!(fates.contains(&Fate::Added(3)) && fates.contains(&Fate::Same(7, 8)));
    }

    #[test]
    fn frames_that_are_alike_are_pairs_and_others_are_not() {
        // 31 calls the functions of 30; 99 has nothing in common with any.
        let fates = align(&rows(&[10, 30, 50]), &rows(&[10, 99, 31, 50]));
        assert_eq!(fates, [Fate::Same(0, 0), Fate::Added(1), Fate::Changed(1, 2), Fate::Same(2, 3)]);
        let fates = align(&rows(&[10, 30, 50]), &rows(&[10, 99, 50]));
        assert_eq!(fates, [Fate::Same(0, 0), Fate::Changed(1, 1), Fate::Same(2, 2)]);
    }
}
