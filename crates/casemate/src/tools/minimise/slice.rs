//! The causal slice: the records that can have led to a violation, the latest of each kind first.
//!
//! It starts at the entry, lock or register of the violation and collects what happened to it last, the tables above it
//! with their memory, the locks held meanwhile, the roots with their hints, and the registers of the threads involved.
//! How many of the last events of each are collected is the *depth*. A slice is a proposal: the checker decides.

use std::collections::BTreeSet;

use anytrace_core::hash::{Map, Set};

use super::steps::{Step, Steps};
use crate::model::{Cell, Checker};
use crate::wire::record::{Barrier, HintKind, Sysreg, Transition};

/// Pages of one wide write, initialization or release that are found by page; larger ones are found by looking at each.
const PAGES_MAX: u64 = 64;

/// Locks that a thread held around a record, and tables below one another.
const NESTED_MAX: usize = 64;

/// Unclean entries below a table that count as causes.
const BELOW_MAX: usize = 64;

const ADDRESS: u64 = 0xffff_ffff_f000;

/// What events can concern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    /// Writes of a word.
    Word(u64),
    /// Initialization, release and wide writes that cover a page.
    Area(u64),
    /// The same, of more pages than are stored.
    WideArea,
    /// Writes of a value that may be the address of a table.
    Link(u64),
    /// Barriers and TLBIs that changed an entry.
    Effect(u64),
    /// Those that changed many.
    WideEffect,
    Lock(u64),
    Register(u32, Sysreg),
    /// Writes of base registers, by address and by identifier.
    Base(u64),
    Id(u64),
    Hint(u64),
    /// All DSBs, and all records, of a thread.
    Dsb(u32),
    Thread(u32),
}

/// From the acquisition of a lock to its release, if that follows.
#[derive(Debug, Clone, Copy)]
struct Held {
    lock: u64,
    start: usize,
    end: usize,
}

/// Finds the events of each key.
pub(super) struct Index<'a> {
    steps: &'a Steps,
    events: Map<Key, Vec<usize>>,
    held: Map<u32, Vec<Held>>,
}

impl<'a> Index<'a> {
    pub(super) fn new(steps: &'a Steps) -> Self {
        let mut index = Self { steps, events: Map::default(), held: Map::default() };
        let mut open: Map<u64, (u32, usize, u64)> = Map::default();
        for (at, step) in steps.all.iter().enumerate() {
            index.add(Key::Thread(step.thread), at);
            index.add_transition(at, step);
            index.add_lock(&mut open, at, step);
        }
        for (at, cell) in &steps.effects {
            index.add(Key::Effect(*cell), *at);
        }
        for at in &steps.wide_effects {
            index.add(Key::WideEffect, *at);
        }
        for (lock, (thread, start, _)) in open {
            index.held.entry(thread).or_default().push(Held { lock, start, end: usize::MAX });
        }
        index.held.values_mut().for_each(|held| held.sort_unstable_by_key(|held| held.start));
        index
    }

    fn add(&mut self, key: Key, at: usize) {
        self.events.entry(key).or_default().push(at);
    }

    fn add_transition(&mut self, at: usize, step: &Step) {
        match step.transition {
            Transition::MemWrite { address, value, .. } | Transition::MemAtomic { address, value, .. } => {
                self.add(Key::Word(address & !7), at);
                if value & 3 == 3 {
                    self.add(Key::Link(value & ADDRESS), at);
                }
            }
            Transition::MemInit { address, size }
            | Transition::MemFree { address, size }
            | Transition::MemSet { address, size, .. } => {
                let (first, last) = (address >> 12, address.saturating_add(size.saturating_sub(1)) >> 12);
                if last - first >= PAGES_MAX {
                    return self.add(Key::WideArea, at);
                }
                (first..=last).for_each(|page| self.add(Key::Area(page), at));
            }
            Transition::Barrier(Barrier::Dsb(_)) => self.add(Key::Dsb(step.thread), at),
            Transition::SysregWrite { register, value } => {
                self.add(Key::Register(step.thread, register), at);
                if register.is_base() {
                    self.add(Key::Base(value & ADDRESS), at);
                    self.add(Key::Id(value >> 48), at);
                }
            }
            Transition::Hint { location, .. } => self.add(Key::Hint(location & ADDRESS), at),
            Transition::Lock { address } | Transition::Trylock { address } | Transition::Unlock { address } => {
                self.add(Key::Lock(address), at);
            }
            _ => {}
        }
    }

    /// Follows a lock; `open` has the holder, the step at which it took the lock, and how many times it has it.
    fn add_lock(&mut self, open: &mut Map<u64, (u32, usize, u64)>, at: usize, step: &Step) {
        match step.transition {
            Transition::Lock { address } | Transition::Trylock { address } => match open.get_mut(&address) {
                Some((thread, _, count)) if *thread == step.thread => *count += 1,
                Some(_) => {}
                None => drop(open.insert(address, (step.thread, at, 1))),
            },
            Transition::Unlock { address } => match open.get_mut(&address) {
                Some((_, _, count)) if *count > 1 => *count -= 1,
                Some(&mut (thread, start, _)) => {
                    open.remove(&address);
                    self.held.entry(thread).or_default().push(Held { lock: address, start, end: at });
                }
                None => {}
            },
            _ => {}
        }
    }

    fn of(&self, key: Key) -> &[usize] {
        self.events.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The last events before a step.
    fn last(&self, key: Key, before: usize, count: usize) -> &[usize] {
        let all = self.of(key);
        let end = all.partition_point(|at| *at < before);
        all.get(end.saturating_sub(count)..end).unwrap_or_default()
    }

    /// The locks that a thread held at a step, or took or released by it.
    fn held_at(&self, thread: u32, at: usize) -> impl Iterator<Item = Held> + '_ {
        let all = self.held.get(&thread).map_or(&[][..], Vec::as_slice);
        let end = all.partition_point(|held| held.start <= at);
        let near = all.get(end.saturating_sub(NESTED_MAX)..end).unwrap_or_default();
        near.iter().copied().filter(move |held| held.end >= at)
    }
}

/// A slice under construction.
pub(super) struct Slice<'a> {
    index: &'a Index<'a>,
    depth: usize,
    /// The violation: the last step.
    end: usize,
    kept: BTreeSet<usize>,
    waiting: Vec<usize>,
    pages: Set<u64>,
    threads: Set<u32>,
    has_roots: Set<u64>,
}

/// Where a slice starts: a location, and the step before which its events count.
pub(super) type Seed = (Option<u64>, usize);

impl<'a> Slice<'a> {
    /// The slice of some seeds at a depth, in order of the trace.
    pub(super) fn of(index: &'a Index<'a>, seeds: &[Seed], depth: usize) -> Vec<usize> {
        let end = index.steps.all.len().saturating_sub(1);
        let mut slice = Self {
            index,
            depth,
            end,
            kept: BTreeSet::new(),
            waiting: Vec::new(),
            pages: Set::default(),
            threads: Set::default(),
            has_roots: Set::default(),
        };
        for (location, at) in seeds {
            slice.seed(*location, *at);
        }
        while let Some(at) = slice.waiting.pop() {
            slice.context(at);
        }
        slice.kept.into_iter().collect()
    }

    fn checker(&self) -> &'a Checker<super::steps::Changed> {
        &self.index.steps.checker
    }

    fn keep(&mut self, at: usize) {
        if at <= self.end && self.kept.insert(at) {
            self.waiting.push(at);
        }
    }

    fn want(&mut self, key: Key, before: usize, count: usize) {
        let index = self.index;
        index.last(key, before, count).iter().for_each(|at| self.keep(*at));
    }

    fn seed(&mut self, location: Option<u64>, at: usize) {
        self.keep(at);
        let Some(step) = self.index.steps.all.get(at) else { return };
        // The thread's own last records: another entry may have used up its authorization.
        self.want(Key::Thread(step.thread), at, self.depth);
        if let Transition::SysregWrite { value, .. } = step.transition {
            self.want(Key::Id(value >> 48), at, self.depth);
            self.root(value & ADDRESS);
            self.page(value & ADDRESS);
        }
        for location in location.into_iter().chain(step.location()) {
            self.history(location, at);
        }
    }

    /// What happened to an entry, lock, table or root.
    fn history(&mut self, location: u64, before: usize) {
        let word = location & !7;
        let mut events: Vec<usize> = [Key::Word(word), Key::Effect(word), Key::WideEffect, Key::Hint(word & ADDRESS)]
            .into_iter()
            .flat_map(|key| self.index.last(key, before, self.depth))
            .copied()
            .collect();
        events.sort_unstable();
        let first = events.len().saturating_sub(self.depth);
        events.iter().skip(first).for_each(|at| self.keep(*at));
        self.want(Key::Lock(location), before, self.depth);
        self.want(Key::Base(word & ADDRESS), before, self.depth);
        self.page(word);
    }

    /// A page: its memory, and the tables above it.
    fn page(&mut self, address: u64) {
        let page = address >> 12;
        if !self.pages.insert(page) {
            return;
        }
        self.area(page);
        let base = page << 12;
        self.want(Key::Hint(base), self.end, self.depth);
        let cells = self.checker();
        let cell = cells.cell(address).or_else(|| cells.cells_of_page(base).first().copied());
        let Some(cell) = cell else {
            self.want(Key::Link(base), self.end, self.depth);
            if !self.index.of(Key::Base(base)).is_empty() {
                self.root(base);
            }
            return;
        };
        self.rest_of_table(&cell, base);
        self.root(cell.place.root);
        if let Some(parent) = cell.place.parent {
            self.want(Key::Word(parent), self.end, self.depth.min(2));
            self.page(parent);
        }
    }

    /// A table of a larger granule has several pages.
    fn rest_of_table(&mut self, cell: &Cell, base: u64) {
        let bytes = cell.place.format.entry_bytes(3);
        if bytes > 0x1000 {
            let first = base & !(bytes - 1);
            (0..bytes >> 12).for_each(|number| self.area((first >> 12) + number));
        }
    }

    fn area(&mut self, page: u64) {
        self.want(Key::Area(page), self.end, self.depth);
        let index = self.index;
        let covers = |at: &&usize| index.steps.all.get(**at).is_some_and(|step| step.covers(page));
        let wide = index.of(Key::WideArea);
        wide.iter().rev().filter(covers).take(self.depth).for_each(|at| self.keep(*at));
    }

    /// A root: its lock, its registration, and all pages of its first tables.
    fn root(&mut self, base: u64) {
        if !self.has_roots.insert(base) {
            return;
        }
        let pages = self.checker().registered_roots().find(|root| root.base == base).map_or(1, |root| root.pages);
        (0..u64::from(pages)).for_each(|number| self.area((base >> 12) + number));
        self.page(base);
        let all = self.index;
        let is_release = |at: &&usize| {
            let step = all.steps.all.get(**at);
            step.is_some_and(|step| matches!(step.transition, Transition::Hint { hint: HintKind::ReleaseTable, .. }))
        };
        let released = all.of(Key::Hint(base & ADDRESS)).iter().rev().find(is_release).copied();
        let bases = all.of(Key::Base(base & ADDRESS));
        let first = bases.partition_point(|at| released.is_some_and(|released| *at < released));
        bases.get(first..).unwrap_or_default().iter().take(self.depth.min(2)).for_each(|at| self.keep(*at));
    }

    /// What a record needs around it: its thread's locks and registers, its memory.
    fn context(&mut self, at: usize) {
        let index = self.index;
        let Some(step) = index.steps.all.get(at) else { return };
        match step.transition {
            Transition::MemWrite { address, value, .. } | Transition::MemAtomic { address, value, .. } => {
                self.locks(step.thread, at);
                self.page(address);
                if value & 3 == 3 {
                    self.area((value & ADDRESS) >> 12);
                }
                // It authorizes the next plain write.
                let later = index.of(Key::Dsb(step.thread));
                let next = later.get(later.partition_point(|dsb| *dsb < at)).copied();
                next.into_iter().for_each(|dsb| self.keep(dsb));
                self.thread(step.thread);
            }
            Transition::MemSet { .. } => self.locks(step.thread, at),
            Transition::Lock { address } | Transition::Trylock { address } | Transition::Unlock { address } => {
                let held = index.held_at(step.thread, at).find(|held| held.lock == address);
                held.into_iter().for_each(|held| self.nested(held));
            }
            Transition::Barrier(_) | Transition::Tlbi { .. } => {
                self.locks(step.thread, at);
                self.thread(step.thread);
            }
            Transition::SysregWrite { register, value } if register.is_base() => {
                self.root(value & ADDRESS);
                for control in Sysreg::ALL {
                    if !control.is_base() {
                        self.want(Key::Register(step.thread, *control), at, 1);
                    }
                }
            }
            _ => {}
        }
    }

    fn locks(&mut self, thread: u32, at: usize) {
        let index = self.index;
        for held in index.held_at(thread, at) {
            self.keep(held.start);
            self.keep(held.end);
        }
    }

    /// All that happened to a lock from its acquisition to its release.
    fn nested(&mut self, held: Held) {
        let index = self.index;
        let all = index.of(Key::Lock(held.lock));
        let first = all.partition_point(|at| *at < held.start);
        let nested = all.get(first..).unwrap_or_default().iter().take_while(|at| **at <= held.end);
        nested.take(NESTED_MAX).for_each(|at| self.keep(*at));
    }

    /// A thread's registers.
    fn thread(&mut self, thread: u32) {
        if self.threads.insert(thread) {
            Sysreg::ALL.iter().for_each(|register| self.want(Key::Register(thread, *register), self.end, 1));
        }
    }
}

/// The unclean entries that can be causes of a violation at a location: those below it.
pub(super) fn unclean_below(steps: &Steps) -> Vec<u64> {
    let checker = &steps.checker;
    let own = steps.all.last().and_then(Step::location).map(|address| address & !7);
    let tops = [steps.verdict.location, own];
    let is_below = |cell: &Cell| {
        let is_top = |address: u64| tops.contains(&Some(address));
        is_top(cell.place.root) || checker.parents(cell).iter().any(|above| is_top(above.address))
    };
    let unclean = checker.unclean_entries();
    let cells = unclean.iter().filter_map(|entry| checker.cell(entry.address));
    cells.filter(is_below).take(BELOW_MAX).map(|cell| cell.address).collect()
}

impl Step {
    /// The word, lock, table or base that the step names.
    fn location(&self) -> Option<u64> {
        match self.transition {
            Transition::MemWrite { address, .. }
            | Transition::MemAtomic { address, .. }
            | Transition::MemInit { address, .. }
            | Transition::MemFree { address, .. }
            | Transition::MemSet { address, .. }
            | Transition::Lock { address }
            | Transition::Unlock { address }
            | Transition::Trylock { address } => Some(address),
            Transition::Hint { location, .. } => Some(location),
            Transition::SysregWrite { register, value } if register.is_base() => Some(value & ADDRESS),
            _ => None,
        }
    }

    fn covers(&self, page: u64) -> bool {
        match self.transition {
            Transition::MemInit { address, size }
            | Transition::MemFree { address, size }
            | Transition::MemSet { address, size, .. } => {
                (address >> 12..=address.saturating_add(size.saturating_sub(1)) >> 12).contains(&page)
            }
            _ => false,
        }
    }
}
