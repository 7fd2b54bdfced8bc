//! Snooping MESI between the private caches of cores (Papamarcos & Patel 1984), by the definitions of the corpus.
//!
//! A core's private levels count as one: it has a line while any of them does.

use anytrace_core::hash::{Map, Set};

use super::results::CoherenceCounts;

/// What one line's copies are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MesiState {
    Modified,
    Exclusive,
    Shared,
}

/// A line that some core had once.
#[derive(Debug)]
struct Line {
    state: MesiState,
    /// Cores that have it; a bit for each.
    holders: u64,
    /// Cores that ever had it.
    ever: u64,
    /// Cores that lost it to another's write and have not had it since.
    lost: u64,
    /// For each core that lost it: what others have written since, a bit for each 64th of the line.
    written: Vec<u64>,
}

/// What the other cores' copies must become before an access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Order {
    /// Cores with a copy that must be invalidated or cleaned.
    pub(super) others: u64,
    /// True where the copies are invalidated, false where they become shared.
    pub(super) invalidates: bool,
}

/// All lines.
#[derive(Debug)]
pub(super) struct Coherence {
    /// Levels that are private.
    pub(super) private: usize,
    pub(super) counts: CoherenceCounts,
    lines: Map<u64, Line>,
    /// False while there is only one core, which needs no coherence.
    is_active: bool,
    /// Lines that the only core asked for while there was only one.
    seen: Set<u64>,
}

impl Coherence {
    pub(super) fn new(private: usize) -> Self {
        let (lines, seen) = (Map::default(), Set::default());
        Self { private, counts: CoherenceCounts::default(), lines, is_active: false, seen }
    }

    /// True when there is more than one core.
    pub(super) fn is_active(&self) -> bool {
        self.is_active
    }

    /// Takes a line that the only core missed.
    #[inline]
    pub(super) fn see(&mut self, line: u64) {
        self.seen.insert(line);
    }

    /// Called when a second core appears. `resident` are the first core's lines and whether they were written, `misses`
    /// is the number of its misses so far.
    pub(super) fn activate(&mut self, resident: &[(u64, bool)], misses: u64) {
        self.counts = self.counts_of_one(misses);
        self.is_active = true;
        let mut ever = |line, holders, state| {
            let known =
                self.lines.entry(line).or_insert(Line { state, holders, ever: 1, lost: 0, written: Vec::new() });
            known.holders |= holders;
            if state == MesiState::Modified {
                known.state = state;
            }
        };
        for line in self.seen.drain() {
            ever(line, 0, MesiState::Exclusive);
        }
        for (line, is_dirty) in resident {
            ever(*line, 1, if *is_dirty { MesiState::Modified } else { MesiState::Exclusive });
        }
    }

    /// The counts, where the only core had this many misses.
    pub(super) fn counts_of_one(&self, misses: u64) -> CoherenceCounts {
        if self.is_active {
            return self.counts;
        }
        let cold_misses = self.seen.len() as u64;
        CoherenceCounts { cold_misses, replacement_misses: misses.saturating_sub(cold_misses), ..self.counts }
    }

    /// True when another core has a line.
    pub(super) fn is_elsewhere(&self, core: usize, line: u64) -> bool {
        self.lines.get(&line).is_some_and(|line| line.holders & !bit(core) != 0)
    }

    /// What an access requires of the other cores' copies.
    pub(super) fn access(&mut self, core: usize, line: u64, is_write: bool, bytes: u64) -> Order {
        let own = bit(core);
        let line = self.lines.entry(line).or_insert_with(|| Line {
            state: MesiState::Exclusive,
            holders: 0,
            ever: 0,
            lost: 0,
            written: Vec::new(),
        });
        let others = line.holders & !own;
        let has_it = line.holders & own != 0;
        if !has_it {
            count_miss(&mut self.counts, line, core, bytes);
        }
        let mut order = Order::default();
        if is_write {
            if has_it && line.state == MesiState::Shared {
                self.counts.upgrades += 1;
            }
            if others != 0 {
                self.counts.invalidations += u64::from(others.count_ones());
                self.counts.interventions += u64::from(!has_it && line.state == MesiState::Modified);
                order = Order { others, invalidates: true };
            }
            line.write(core, others, bytes);
        } else if !has_it {
            if others != 0 {
                self.counts.interventions += u64::from(line.state == MesiState::Modified);
                order = Order { others, invalidates: false };
            }
            line.state = if others == 0 { MesiState::Exclusive } else { MesiState::Shared };
            line.holders |= own;
        }
        line.ever |= own;
        line.lost &= !own;
        order
    }

    /// Records whether a core has a line now.
    pub(super) fn note(&mut self, core: usize, line: u64, has_it: bool) {
        let own = bit(core);
        let Some(line) = self.lines.get_mut(&line) else {
            if has_it {
                let (state, written) = (MesiState::Exclusive, Vec::new());
                self.lines.insert(line, Line { state, holders: own, ever: own, lost: 0, written });
            }
            return;
        };
        if has_it {
            if line.holders == 0 {
                // A prefetch brought it, which takes only lines that no other core has.
                line.state = MesiState::Exclusive;
            }
            line.holders |= own;
            line.ever |= own;
            line.lost &= !own;
        } else {
            line.holders &= !own;
        }
    }
}

impl Line {
    fn write(&mut self, core: usize, others: u64, bytes: u64) {
        let own = bit(core);
        self.holders = own;
        self.state = MesiState::Modified;
        self.lost |= others;
        for other in (0..64).filter(|other| self.lost & !own & bit(*other) != 0) {
            if other >= self.written.len() {
                self.written.resize(other + 1, 0);
            }
            if let Some(written) = self.written.get_mut(other) {
                // The write that took the copy away is the first that counts.
                *written = if others & bit(other) != 0 { bytes } else { *written | bytes };
            }
        }
    }
}

fn count_miss(counts: &mut CoherenceCounts, line: &Line, core: usize, bytes: u64) {
    let own = bit(core);
    if line.lost & own != 0 {
        counts.coherence_misses += 1;
        let is_true = line.written.get(core).is_some_and(|written| written & bytes != 0);
        *(if is_true { &mut counts.true_sharing_misses } else { &mut counts.false_sharing_misses }) += 1;
    } else if line.ever & own != 0 {
        counts.replacement_misses += 1;
    } else {
        counts.cold_misses += 1;
    }
}

fn bit(core: usize) -> u64 {
    1 << (core % 64)
}
