//! The state of the traced machine, as far as a part of a trace needs it at its start.
//!
//! Follows section 2 of the format's chapter for traces that keep the rules: memory, registered roots and the tables
//! under them, entries that were invalidated and are not yet clean, locks, thread owners and system registers. It
//! reports nothing; if a trace breaks a rule, the state is as the step specifies.
//!
//! Memory grows with the words, ranges, tables and locks that the trace touches.

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::Limits;

use crate::verbs::memory::{Memory, words};
use crate::wire::record::{Barrier, HintKind, MemoryOrder, Record, Sysreg, Transition};
use anytrace_casemate_model::Name;

/// Entries not yet clean that are followed at the same time; further ones are only counted.
const UNCLEAN_MAX: usize = 4096;

/// Registers of a thread that are in no table and are remembered.
const OTHERS_MAX: usize = 256;

pub(crate) const PAGE_BYTES: u64 = 4096;
const WORDS_A_PAGE: u64 = 512;
/// Bits 47:12 of a descriptor: the next table.
pub(super) const TABLE_MASK: u64 = 0xffff_ffff_f000;
/// Bits 47:1 of a base register.
const BASE_MASK: u64 = 0xffff_ffff_fffe;
/// T0SZ of a geometry register that was never written.
pub(crate) const DEFAULT_T0SZ: u64 = 16;
/// Size of what an entry of each level maps.
pub(super) const LEVEL_SHIFT: [u32; 4] = [39, 30, 21, 12];

/// Translation stages, as indices.
pub(crate) const STAGE_1: usize = 0;
pub(crate) const STAGE_2: usize = 1;

/// The register that holds the base of each stage.
pub(crate) const BASE_REGISTER: [Sysreg; 2] = [Sysreg::Ttbr0El2, Sysreg::VttbrEl2];
/// The register whose bit 0 enables each stage.
pub(crate) const CONTROL_REGISTER: [Sysreg; 2] = [Sysreg::SctlrEl2, Sysreg::HcrEl2];
pub(crate) const GEOMETRY_REGISTER: [Sysreg; 2] = [Sysreg::TcrEl2, Sysreg::VtcrEl2];

/// A page that is a table under a registered root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) root: u64,
    pub(crate) stage: usize,
    pub(crate) level: usize,
    /// Input address of its first entry.
    pub(crate) address: u64,
}

/// A registered root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    pub(crate) base: u64,
    pub(crate) stage: usize,
    /// The register value that registered it: base and identifier.
    pub(crate) value: u64,
    pub(crate) thread: u32,
    /// The thread's geometry register then.
    pub(crate) geometry: Option<u64>,
    /// Its slot among the roots; slots of released roots are reused.
    pub(crate) slot: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Thread {
    /// Last value written, by [`Sysreg`].
    pub(crate) registers: BTreeMap<Sysreg, u64>,
    /// The same for registers that are in no table.
    pub(crate) others: BTreeMap<Name, u64>,
    /// Last value with bit 0 set written to each stage's control register.
    pub(crate) enabling: [Option<u64>; 2],
    /// The value of each stage's base register that last made a root current.
    pub(crate) current: [Option<u64>; 2],
    /// Which of them came last: both may name roots of the same stage.
    pub(crate) last: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldLock {
    pub(crate) thread: u32,
    pub(crate) count: u64,
    /// True when an entry was written under it since the lock was taken and since the thread's last DSB: the next plain
    /// write is not free.
    pub(crate) is_spent: bool,
}

/// How far the cleaning of an entry has come: the states n, d, ti, td, ta of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    Unguarded,
    Dsbed,
    TlbiIpa,
    TlbiIpaDsbed,
    Tlbied,
}

/// A step that counted for an entry not yet clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountedStep {
    pub(crate) seq: u64,
    pub(crate) thread: u32,
    pub(crate) transition: Transition,
    /// Roots whose lock the thread had.
    pub(crate) roots: Vec<u64>,
    /// The register value that made its root of stage 2 current.
    pub(crate) current: Option<u64>,
}

/// An entry that was invalidated and is not yet clean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unclean {
    pub(crate) thread: u32,
    /// The valid descriptor it had.
    pub(crate) old: u64,
    pub(crate) progress: Progress,
    /// The write that invalidated it and every DSB and TLBI that advanced it.
    pub(crate) steps: Vec<CountedStep>,
    /// The last write of a different invalid value since then.
    pub(crate) overwritten: Option<CountedStep>,
    pub(crate) table: Table,
}

/// The state after some records.
#[derive(Debug, Default)]
pub(crate) struct MachineState {
    seq: u64,
    pub(crate) memory: Memory,
    pub(crate) tables: BTreeMap<u64, Table>,
    /// By slot.
    pub(crate) roots: Vec<Root>,
    /// Identifier of the last root in slot 0.
    pub(super) slot_0_id: u64,
    pub(crate) root_locks: BTreeMap<u64, u64>,
    pub(crate) owner_roots: BTreeMap<u64, u64>,
    /// Hints that assigned an entry to a thread, by entry.
    pub(crate) thread_owners: BTreeMap<u64, CountedStep>,
    /// Hints that others replaced while entries were not clean.
    pub(crate) past_owners: Vec<CountedStep>,
    /// Entries that are clean and whose last valid descriptor was a table.
    pub(crate) was_table: BTreeSet<u64>,
    pub(crate) unclean: BTreeMap<u64, Unclean>,
    pub(crate) locks: BTreeMap<u64, HeldLock>,
    pub(crate) threads: BTreeMap<u32, Thread>,
    threads_max: usize,
    /// An entry was written without its lock: the trace is meant for a checker that requires none.
    is_racy: bool,
    /// Writes to memory that was not initialized.
    pub(crate) homeless_writes: u64,
    /// Roots whose tables have another granule than 4 KiB, or 52-bit addresses: their entries are not followed.
    pub(crate) other_shapes: u64,
    /// Tables that were linked while words of theirs belonged to a thread: a checker skips parts of them.
    pub(crate) owned_tables: u64,
    /// Entries past [`UNCLEAN_MAX`].
    pub(crate) unclean_lost: u64,
}

impl MachineState {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { threads_max: limits.distinct_max, ..Self::default() }
    }

    /// Processes the next record.
    pub(crate) fn apply(&mut self, record: &Record<'_>) {
        let thread = record.thread;
        match record.transition {
            Transition::MemWrite { order: MemoryOrder::Page, address, value } => {
                let page = address & !(PAGE_BYTES - 1);
                for word in 0..WORDS_A_PAGE {
                    self.write(thread, MemoryOrder::Plain, page + 8 * word, value);
                }
            }
            Transition::MemWrite { order, address, value } => self.write(thread, order, address & !7, value),
            Transition::MemInit { address, size } => self.init(words(address, size)),
            Transition::MemFree { address, size } => self.free(words(address, size)),
            Transition::MemSet { address, size, value } => self.set(thread, words(address, size), value),
            Transition::Barrier(Barrier::Dsb(domain)) => self.dsb(thread, domain),
            Transition::Tlbi { op, operand } => self.tlbi(thread, op, operand),
            Transition::SysregWrite { register, value } => self.write_register(thread, register, value),
            Transition::Hint { hint, location, value } => self.hint(thread, hint, location, value),
            Transition::Lock { address } | Transition::Trylock { address } => self.lock(thread, address),
            Transition::Unlock { address } => self.unlock(thread, address),
            Transition::MemAtomic { order, address, value, .. } => {
                let order = if order.is_release() { MemoryOrder::Release } else { MemoryOrder::Plain };
                self.write(thread, order, address & !7, value);
            }
            Transition::OtherSysreg { name, value } => self.write_other(thread, name, value),
            Transition::MemRead { .. } | Transition::OtherTlbi { .. } | Transition::Barrier(Barrier::Isb) => {}
        }
        self.seq += 1;
    }

    fn write(&mut self, thread: u32, order: MemoryOrder, word: u64, value: u64) {
        if !self.memory.initialised.contains(word) {
            self.homeless_writes += 1;
            return;
        }
        if let Some(table) = self.tables.get(&(word & !(PAGE_BYTES - 1))).copied() {
            self.write_entry(thread, order, word, value, table);
        }
        self.memory.store(word, value);
    }

    fn write_entry(&mut self, thread: u32, order: MemoryOrder, word: u64, value: u64, table: Table) {
        self.is_racy |= !self.is_authorised(word, table.root, thread);
        self.note_written(thread, word, table.root);
        let old = self.memory.value(word);
        let is_valid = value & 1 != 0;
        let was_unclean = self.unclean.contains_key(&word);
        if is_valid {
            self.unclean.remove(&word);
            self.was_table.remove(&word);
            self.memory.store(word, value);
            self.mark_next(word, value, table);
        } else if !was_unclean && old & 1 != 0 {
            if self.unclean.len() >= UNCLEAN_MAX {
                self.unclean_lost += 1;
                return;
            }
            let step = self.step(thread, Transition::MemWrite { order, address: word, value });
            let unclean =
                Unclean { thread, old, progress: Progress::Unguarded, steps: vec![step], overwritten: None, table };
            self.unclean.insert(word, unclean);
        } else if was_unclean {
            let step = self.step(thread, Transition::MemWrite { order, address: word, value });
            if let Some(unclean) = self.unclean.get_mut(&word) {
                unclean.overwritten = Some(step);
            }
        }
    }

    /// A plain write under the root's lock is no longer free.
    fn note_written(&mut self, thread: u32, word: u64, root: u64) {
        // An entry that belongs to a thread needs no lock.
        if self.owner(word).is_none()
            && let Some(lock) = self.lock_of(root)
            && let Some(held) = self.locks.get_mut(&lock)
            && held.thread == thread
        {
            held.is_spent = true;
        }
    }

    /// The thread that an entry belongs to; negative numbers are none.
    pub(crate) fn owner(&self, word: u64) -> Option<u32> {
        let CountedStep { transition: Transition::Hint { value, .. }, .. } = self.thread_owners.get(&word)? else {
            return None;
        };
        u32::try_from(*value & 0xffff_ffff).ok().filter(|owner| *owner <= u32::MAX >> 1)
    }

    /// The lock that guards a root.
    pub(crate) fn lock_of(&self, root: u64) -> Option<u64> {
        self.root_locks.get(&root).copied().filter(|lock| *lock != 0)
    }

    pub(super) fn step(&self, thread: u32, transition: Transition) -> CountedStep {
        let is_held = |lock: &u64| self.locks.get(lock).is_some_and(|held| held.thread == thread);
        let roots = self.root_locks.iter().filter(|(_, lock)| is_held(lock)).map(|(root, _)| *root).collect();
        let current = self.current_root(thread);
        CountedStep { seq: self.seq, thread, transition, roots, current }
    }

    /// Memory that is initialized again belongs to no thread.
    fn init(&mut self, range: std::ops::Range<u64>) {
        remove_range(&mut self.thread_owners, &range);
        self.memory.init(range);
    }

    /// The register value that made the thread's root of stage 2 current, whichever register it was.
    pub(super) fn current_root(&self, thread: u32) -> Option<u64> {
        let thread = self.threads.get(&thread)?;
        let is_of_stage_2 = |value: &u64| self.root_stage(*value) == Some(STAGE_2);
        [thread.last, 1 - thread.last].into_iter().find_map(|stage| thread.current[stage].filter(is_of_stage_2))
    }

    /// The stage of the root that a base register's value names.
    pub(crate) fn root_stage(&self, value: u64) -> Option<usize> {
        self.roots.iter().find(|root| root.base == value & BASE_MASK).map(|root| root.stage)
    }

    fn free(&mut self, range: std::ops::Range<u64>) {
        self.memory.free(range.clone());
        remove_range(&mut self.unclean, &range);
        remove_range(&mut self.thread_owners, &range);
        remove_range(&mut self.tables, &range);
    }

    fn set(&mut self, thread: u32, range: std::ops::Range<u64>, value: u64) {
        // Entries that were valid are invalidated one by one, as the model does; the rest is one range.
        let valid = |(word, old): (&u64, &u64)| (*old & 1 != 0).then_some(*word);
        let mut entries: Vec<u64> = self.memory.values.range(range.clone()).filter_map(valid).collect();
        entries.extend(self.unclean.range(range.clone()).map(|(word, _)| *word));
        for word in entries {
            self.write(thread, MemoryOrder::Plain, word, value & 0xff);
        }
        let pages = range.start & !(PAGE_BYTES - 1)..range.end;
        let tables: Vec<(u64, u64)> = self.tables.range(pages).map(|(page, table)| (*page, table.root)).collect();
        for (page, root) in tables {
            self.note_written(thread, page.max(range.start), root);
        }
        self.memory.set(range, value & 0xff);
    }

    /// Marks the table an entry points at, and those under it.
    fn mark_next(&mut self, word: u64, value: u64, table: Table) {
        if table.level >= 3 || value & 3 != 3 {
            return;
        }
        let index = word % PAGE_BYTES / 8;
        let address = table.address.wrapping_add(index << LEVEL_SHIFT[table.level]);
        self.mark(value & TABLE_MASK, Table { level: table.level + 1, address, ..table });
    }

    /// Recursion ends at level 3.
    fn mark(&mut self, page: u64, table: Table) {
        if !page.is_multiple_of(PAGE_BYTES) || self.tables.contains_key(&page) {
            return;
        }
        self.tables.insert(page, table);
        let owners = self.thread_owners.range(page..page.saturating_add(PAGE_BYTES));
        self.owned_tables += u64::from(owners.into_iter().any(|(word, _)| self.owner(*word).is_some()));
        remove_range_of_set(&mut self.was_table, page);
        for (word, value) in self.next_tables(page, table.level) {
            self.mark_next(word, value, table);
        }
    }

    pub(super) fn unmark(&mut self, page: u64, level: usize) {
        if self.tables.get(&page).is_none_or(|table| table.level != level) {
            return;
        }
        self.tables.remove(&page);
        remove_range_of_set(&mut self.was_table, page);
        for (_, value) in self.next_tables(page, level) {
            self.unmark(value & TABLE_MASK, level + 1);
        }
    }

    fn next_tables(&self, page: u64, level: usize) -> Vec<(u64, u64)> {
        if level >= 3 {
            return Vec::new();
        }
        let entries = self.memory.values.range(page..page.saturating_add(PAGE_BYTES));
        entries.filter(|(_, value)| **value & 3 == 3).map(|(word, value)| (*word, *value)).collect()
    }

    /// True when a step by the thread counts for the entry.
    pub(super) fn is_authorised(&self, word: u64, root: u64, thread: u32) -> bool {
        if self.is_racy {
            return true;
        }
        if let Some(owner) = self.owner(word) {
            return owner == thread;
        }
        let held = self.lock_of(root).and_then(|lock| self.locks.get(&lock));
        held.is_some_and(|held| held.thread == thread)
    }

    fn write_register(&mut self, thread: u32, register: Sysreg, value: u64) {
        if self.threads.len() >= self.threads_max && !self.threads.contains_key(&thread) {
            return;
        }
        let registers = &mut self.threads.entry(thread).or_default().registers;
        let was_enabled = |control: Sysreg| registers.get(&control).is_none_or(|value| value & 1 != 0);
        let base_of = |stage: usize| registers.get(&BASE_REGISTER[stage]).copied();
        let activated = (0..2).find_map(|stage| {
            let control = CONTROL_REGISTER[stage];
            if register == BASE_REGISTER[stage] && was_enabled(control) {
                return Some((stage, value));
            }
            let is_enabling = register == control && value & 1 != 0 && !was_enabled(control);
            Some((stage, base_of(stage).filter(|_| is_enabling)?))
        });
        registers.insert(register, value);
        let Some(state) = self.threads.get_mut(&thread) else { return };
        if let Some(stage) = CONTROL_REGISTER.iter().position(|control| *control == register)
            && value & 1 != 0
        {
            state.enabling[stage] = Some(value);
        }
        if let Some((stage, value)) = activated {
            state.current[stage] = Some(value);
            state.last = stage;
            self.register_root(thread, stage, value);
        }
    }

    fn write_other(&mut self, thread: u32, name: Name, value: u64) {
        if self.threads.len() >= self.threads_max && !self.threads.contains_key(&thread) {
            return;
        }
        let others = &mut self.threads.entry(thread).or_default().others;
        if others.len() < OTHERS_MAX || others.contains_key(&name) {
            others.insert(name, value);
        }
    }

    fn register_root(&mut self, thread: u32, stage: usize, value: u64) {
        let base = value & BASE_MASK;
        if self.roots.iter().any(|root| root.base == base) {
            return;
        }
        let registers = self.threads.get(&thread).map(|thread| &thread.registers);
        let geometry = registers.and_then(|registers| registers.get(&GEOMETRY_REGISTER[stage])).copied();
        let bits = 64 - (geometry.unwrap_or(DEFAULT_T0SZ) & 63);
        let level = usize::try_from(48_u64.saturating_sub(bits) / 9).unwrap_or(0).min(3);
        let slot = self.roots.iter().zip(0..).find(|(root, slot)| root.slot != *slot);
        let slot = slot.map_or(self.roots.len(), |(_, slot)| slot);
        if slot == 0 {
            self.slot_0_id = value >> 48;
        }
        self.roots.insert(slot, Root { base, stage, value, thread, geometry, slot });
        if geometry.is_some_and(has_other_shape) {
            self.other_shapes += 1;
            return;
        }
        self.mark(base, Table { root: base, stage, level, address: 0 });
    }

    fn hint(&mut self, thread: u32, hint: HintKind, location: u64, value: u64) {
        match hint {
            HintKind::SetRootLock => drop(self.root_locks.insert(location, value)),
            HintKind::SetOwnerRoot => drop(self.owner_roots.insert(location, value)),
            HintKind::ReleaseTable => self.release(location),
            HintKind::SetPteThreadOwner => {
                let word = location & !7;
                let is_last_level = self.tables.get(&(word & !(PAGE_BYTES - 1))).is_some_and(|table| table.level == 3);
                if is_last_level && self.memory.initialised.contains(word) {
                    let step = self.step(thread, Transition::Hint { hint, location, value });
                    if self.unclean.is_empty() {
                        self.past_owners.clear();
                    }
                    let past = self.thread_owners.insert(word, step);
                    if !self.unclean.is_empty() && self.past_owners.len() < UNCLEAN_MAX {
                        self.past_owners.extend(past);
                    }
                }
            }
        }
    }

    fn release(&mut self, location: u64) {
        self.root_locks.remove(&location);
        if let Some(at) = self.roots.iter().position(|root| root.base == location) {
            self.roots.remove(at);
            if let Some(table) = self.tables.get(&location).copied() {
                self.unmark(location, table.level);
            }
        }
    }

    fn lock(&mut self, thread: u32, address: u64) {
        match self.locks.get_mut(&address) {
            Some(held) if held.thread == thread => held.count += 1,
            _ => drop(self.locks.insert(address, HeldLock { thread, count: 1, is_spent: false })),
        }
    }

    fn unlock(&mut self, thread: u32, address: u64) {
        let Some(held) = self.locks.get_mut(&address).filter(|held| held.thread == thread) else { return };
        held.count -= 1;
        if held.count == 0 {
            self.locks.remove(&address);
        }
    }
}

impl Unclean {
    pub(super) fn is_table(&self) -> bool {
        self.table.level < 3 && self.old & 3 == 3
    }
}

/// True for TCR_EL2 and VTCR_EL2 with another granule or with DS.
fn has_other_shape(geometry: u64) -> bool {
    geometry >> 14 & 3 != 0 || geometry >> 32 & 1 != 0 || geometry >> 59 & 1 != 0
}

fn remove_range_of_set(words: &mut BTreeSet<u64>, page: u64) {
    while let Some(word) = words.range(page..page.saturating_add(PAGE_BYTES)).next().copied() {
        words.remove(&word);
    }
}

fn remove_range<T>(map: &mut BTreeMap<u64, T>, range: &std::ops::Range<u64>) {
    while let Some(key) = map.range(range.clone()).next().map(|(key, _)| *key) {
        map.remove(&key);
    }
}
