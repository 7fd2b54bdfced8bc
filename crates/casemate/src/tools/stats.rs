//! `casemate stats`: barriers and TLBIs that change nothing, how long locks are held, and the busiest entries.
//!
//! A TLBI or DSB is *unneeded* if the trace without that one record gives the same verdict and the same violations. That
//! follows from the model's state: without the record it is the same after every later record. For a TLBI it is enough
//! that its step changes no entry and reports nothing. A DSB also restores a thread's authorization for a plain write;
//! it is unneeded only if no plain write relies on it before the thread's next DSB. Each is unneeded by itself: of two
//! adjacent DSBs either can go, not both.

mod print;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anytrace_core::hash::Map;
use anytrace_core::{Error, Input, OpenOptions, Sink};

use super::history::Where;
use crate::model::{Change, Checker, Options, Watch};
use crate::wire::record::{Barrier, Record, Transition};
use crate::wire::walk::{Item, Walk};

/// Unneeded records of which the places are stored; more are counted.
pub const UNNEEDED_MAX: usize = 1 << 20;

/// Barriers or TLBIs of one operation, of one thread or of all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// How many there are.
    pub records: u64,
    /// How many are unneeded.
    pub unneeded: u64,
    /// The first unneeded one.
    pub example: Option<Where>,
}

/// A lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockHolds {
    /// Its address.
    pub lock: u64,
    /// How many times it was taken; a thread that takes it again while it has it does not count.
    pub taken: u64,
    /// Records of any thread from the one that took it to the one that released it, over all holds that ended.
    pub events: u64,
    /// The longest hold that ended.
    pub longest: Option<Hold>,
    /// The record that took it, if the trace ends before it is released.
    pub open_since: Option<u64>,
}

/// From the record that took a lock to the one that released it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The thread.
    pub thread: u32,
    /// The record that took it, by number from 0.
    pub first: u64,
    /// The record that released it.
    pub last: u64,
}

impl Hold {
    /// Records from the first to the last, of all threads.
    pub fn events(&self) -> u64 {
        self.last - self.first
    }
}

/// An entry of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HotEntry {
    /// Its address.
    pub location: u64,
    /// How many times it was written while it was an entry.
    pub writes: u64,
    /// How many times it was valid, became invalid and clean, and was made valid again.
    pub cycles: u64,
    /// The record that wrote it first, by number from 0.
    pub first: u64,
    /// The record that wrote it last.
    pub last: u64,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Live,
    Broken,
    Cleaned,
}

/// What can be trimmed of a trace's program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// The name of the file.
    pub file: String,
    /// Records in the trace.
    pub events: u64,
    /// Violations found; the checker continues after each.
    pub violations: u64,
    /// Steps that are not modelled: what is unneeded is so for the model only.
    pub doubts: u64,
    /// By operation, in order of name: `tlbi vmalls12e1is`, `dsb ish`, `isb`.
    pub operations: BTreeMap<String, Maintenance>,
    /// By operation and thread.
    pub threads: BTreeMap<(String, u32), Maintenance>,
    /// The locks, the longest hold first.
    pub locks: Vec<LockHolds>,
    /// The entries, those with the most writes first.
    pub entries: Vec<HotEntry>,
    /// The unneeded records by number from 0, in order, at most [`UNNEEDED_MAX`].
    pub unneeded: Vec<u64>,
}

/// Observes what a step changes.
#[derive(Debug, Clone, Default)]
struct Steps {
    has_changed: bool,
    relied: Vec<u32>,
    written: Vec<u64>,
    phases: Vec<(u64, Phase)>,
}

impl Watch for Steps {
    const IS_ON: bool = true;
    const HEARS_UNLOCKED: bool = false;

    fn change(&mut self, cell: u64, change: Change) {
        self.has_changed = true;
        match change {
            Change::Invalidated { .. } => self.phases.push((cell, Phase::Broken)),
            Change::Cleaned => self.phases.push((cell, Phase::Cleaned)),
            Change::MadeValid | Change::Forced { is_valid: true } => self.phases.push((cell, Phase::Live)),
            _ => {}
        }
        let is_write = matches!(
            change,
            Change::Invalidated { .. }
                | Change::MadeValid
                | Change::Rewritten(_)
                | Change::RewrittenInvalid
                | Change::Forced { .. }
        );
        // The parts of one change come one after the other.
        if is_write && self.written.last() != Some(&cell) {
            self.written.push(cell);
        }
    }

    fn relied(&mut self, thread: u32) {
        self.relied.push(thread);
    }
}

/// Counts what a trace does in one pass. Memory grows with its locks, threads and written entries.
///
/// # Errors
/// I/O errors, and whatever the sink returns.
pub fn stats(input: Input, open: &OpenOptions, options: Options, sink: &mut dyn Sink) -> Result<Stats, Error> {
    let mut run = Run {
        checker: Checker::with_watch(Options { goes_on: true, ..options }, Steps::default()),
        stats: Stats { file: input.name().to_owned(), ..Stats::default() },
        pending: BTreeMap::new(),
        holds: Map::default(),
        locks: Map::default(),
        entries: Map::default(),
    };
    Walk::new(input, open)?.for_each(sink, |item, place| {
        if let Item::Record(record) = item {
            run.take(record, place.seq);
        }
        Ok(())
    })?;
    Ok(run.finish())
}

struct Run {
    checker: Checker<Steps>,
    stats: Stats,
    /// The last DSB of each thread, if it changed nothing and no write has relied on it yet.
    pending: BTreeMap<u32, (String, Where)>,
    /// Held locks: thread, record, times.
    holds: Map<u64, (u32, u64, u64)>,
    locks: Map<u64, LockHolds>,
    entries: Map<u64, HotEntry>,
}

impl Run {
    fn take(&mut self, record: &Record<'_>, seq: u64) {
        self.stats.events += 1;
        self.checker.step(record.thread, &record.transition);
        let found = self.checker.found();
        let is_silent = found.is_empty();
        self.stats.violations += found.iter().filter(|found| found.is_error()).count() as u64;
        self.stats.doubts += found.iter().filter(|found| found.breach.is_doubt).count() as u64;
        let is_still = is_silent && !self.checker.watch.has_changed;
        self.entries(seq);
        match record.transition {
            Transition::Barrier(barrier) => self.barrier(record, seq, barrier, is_still),
            Transition::Tlbi { op, .. } => self.maintenance(format!("tlbi {}", op.name()), record, seq, is_still),
            Transition::OtherTlbi { name, .. } => {
                self.maintenance(format!("tlbi {}", name.as_str()), record, seq, false);
            }
            Transition::Lock { address } | Transition::Trylock { address } => self.acquire(record.thread, address, seq),
            Transition::Unlock { address } => self.release(record.thread, address, seq),
            _ => {}
        }
    }

    fn maintenance(&mut self, name: String, record: &Record<'_>, seq: u64, is_unneeded: bool) {
        self.count(&name, record.thread);
        if is_unneeded {
            self.unneeded(&name, Where::of(record, seq));
        }
    }

    fn barrier(&mut self, record: &Record<'_>, seq: u64, barrier: Barrier, is_still: bool) {
        let Barrier::Dsb(domain) = barrier else {
            return self.maintenance("isb".to_owned(), record, seq, is_still);
        };
        let name = format!("dsb {}", domain.name());
        self.count(&name, record.thread);
        // Whatever the one before authorized, this one does too.
        self.settle(record.thread);
        if is_still {
            self.pending.insert(record.thread, (name, Where::of(record, seq)));
        }
    }

    /// The last DSB of a thread was unneeded, if it is still pending.
    fn settle(&mut self, thread: u32) {
        if let Some((name, at)) = self.pending.remove(&thread) {
            self.unneeded(&name, at);
        }
    }

    fn count(&mut self, name: &str, thread: u32) {
        self.stats.operations.entry(name.to_owned()).or_default().records += 1;
        self.stats.threads.entry((name.to_owned(), thread)).or_default().records += 1;
    }

    fn unneeded(&mut self, name: &str, at: Where) {
        if self.stats.unneeded.len() < UNNEEDED_MAX {
            self.stats.unneeded.push(at.index);
        }
        let thread = self.stats.threads.entry((name.to_owned(), at.thread)).or_default();
        thread.unneeded += 1;
        thread.example.get_or_insert_with(|| at.clone());
        let all = self.stats.operations.entry(name.to_owned()).or_default();
        all.unneeded += 1;
        // A DSB is known to be unneeded only later.
        if all.example.as_ref().is_none_or(|example| example.index > at.index) {
            all.example = Some(at);
        }
    }

    /// What the step did to entries, and which DSBs it relied on.
    fn entries(&mut self, seq: u64) {
        let watch = &mut self.checker.watch;
        watch.has_changed = false;
        for thread in watch.relied.drain(..) {
            self.pending.remove(&thread);
        }
        for location in watch.written.drain(..) {
            let new = HotEntry { location, first: seq, ..HotEntry::default() };
            let entry = self.entries.entry(location).or_insert(new);
            entry.writes += 1;
            entry.last = seq;
        }
        for (location, phase) in watch.phases.drain(..) {
            let Some(entry) = self.entries.get_mut(&location) else { continue };
            entry.cycles += u64::from((entry.phase, phase) == (Phase::Cleaned, Phase::Live));
            // An entry that never was valid does not begin a cycle when it is cleaned.
            entry.phase = phase;
        }
    }

    fn acquire(&mut self, thread: u32, lock: u64, seq: u64) {
        match self.holds.get_mut(&lock) {
            Some((holder, _, count)) if *holder == thread => {
                *count += 1;
                return;
            }
            // A violation: the lock passes to the new thread.
            Some(hold) => *hold = (thread, seq, 1),
            None => drop(self.holds.insert(lock, (thread, seq, 1))),
        }
        let new = LockHolds { lock, taken: 0, events: 0, longest: None, open_since: None };
        self.locks.entry(lock).or_insert(new).taken += 1;
    }

    fn release(&mut self, thread: u32, lock: u64, seq: u64) {
        let Some((holder, first, count)) = self.holds.get_mut(&lock) else { return };
        if *holder != thread {
            return;
        }
        *count -= 1;
        if *count > 0 {
            return;
        }
        let hold = Hold { thread, first: *first, last: seq };
        self.holds.remove(&lock);
        let Some(known) = self.locks.get_mut(&lock) else { return };
        known.events += hold.events();
        if known.longest.is_none_or(|longest| longest.events() < hold.events()) {
            known.longest = Some(hold);
        }
    }

    fn finish(mut self) -> Stats {
        let threads: Vec<u32> = self.pending.keys().copied().collect();
        threads.into_iter().for_each(|thread| self.settle(thread));
        for (lock, (_, first, _)) in &self.holds {
            if let Some(known) = self.locks.get_mut(lock) {
                known.open_since = Some(*first);
            }
        }
        let mut stats = self.stats;
        stats.unneeded.sort_unstable();
        stats.locks = self.locks.into_values().collect();
        stats.locks.sort_unstable_by_key(|lock| {
            (std::cmp::Reverse(lock.longest.map_or(0, |longest| longest.events())), lock.lock)
        });
        stats.entries = self.entries.into_values().collect();
        stats.entries.sort_unstable_by_key(|entry| {
            (std::cmp::Reverse(entry.writes), std::cmp::Reverse(entry.cycles), entry.location)
        });
        stats
    }
}
