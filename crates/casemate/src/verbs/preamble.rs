//! Synthesized records that bring a checker from the initial state to a [`MachineState`].
//!
//! The order matters: memory is written while nothing is a table yet, since such writes are free; locks and owners of
//! roots are announced before the roots are registered; then come registers, which register roots and so mark tables.
//! Then entries that are not yet clean are invalidated again, with the barriers and TLBIs that counted for them, under
//! the same locks and with the same current roots. Last come the registers' final values, and the locks taken at the
//! end.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use anytrace_core::Error;

use crate::verbs::emitter::Emitter;
use crate::verbs::memory::Memory;
use crate::verbs::out::Out;
use crate::verbs::state::{
    BASE_REGISTER, CONTROL_REGISTER, CountedStep, DEFAULT_T0SZ, GEOMETRY_REGISTER, MachineState, PAGE_BYTES, Root,
    STAGE_1, STAGE_2, Thread,
};
use crate::wire::record::{
    Barrier, Domain, HintKind, MemoryOrder, Operand, Record, Source, Spelling, Sysreg, Transition,
};
use anytrace_casemate_model::TlbiOp;

/// The source of the records of a preamble.
const PREAMBLE_SOURCE: &str = "anytrace-preamble:1";

/// True for records of a preamble; their ids do not matter.
#[inline]
pub(crate) fn is_preamble(source: &Source<'_>) -> bool {
    *source == Source::Text(PREAMBLE_SOURCE.as_bytes())
}

/// Receives records one by one: thread and transition.
type Emit<'a> = &'a mut dyn FnMut(u32, Transition) -> Result<(), Error>;

/// Writes the preamble before the record `first`; returns how many records it has.
pub(crate) fn write(
    state: &MachineState,
    first: &Record<'_>,
    emitter: &mut Emitter,
    out: &mut Out<'_>,
) -> Result<u64, Error> {
    let mut records = 0_u64;
    make(state, first.thread, &mut |_, _| {
        records += 1;
        Ok(())
    })?;
    // Ids end right before the first id of the part, if there is room for that many.
    let mut id = first.id.saturating_sub(records);
    let form = emitter.made_up_form();
    let mut text = Vec::new();
    make(state, first.thread, &mut |thread, transition| {
        let source = Source::Text(PREAMBLE_SOURCE.as_bytes());
        let record = Record { id, thread, transition, source, spelling: Spelling::KEYED, text: &[] };
        text.clear();
        form.push(&mut text, &record);
        emitter.record_line(&mut out.buffer, &Record { text: &text, ..record }, 0)?;
        id += 1;
        out.flush_if_full()
    })?;
    Ok(records)
}

/// What the user should know about the preamble.
pub(crate) fn notes(state: &MachineState, records: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if records > 0 {
        notes.push(format!(
            "{records} records with src \"{PREAMBLE_SOURCE}\" were added to rebuild the state at the start of the part."
        ));
    }
    if state.other_shapes > 0 {
        notes.push(format!(
            "{} trees of another granule than 4 KiB: which of their entries are not clean was not rebuilt.",
            state.other_shapes
        ));
    }
    if state.homeless_writes > 0 {
        notes.push(format!("{} writes to uninitialized memory were not rebuilt.", state.homeless_writes));
    }
    let is_left = |word: &&u64| state.owner(**word).is_some() && !state.tables.contains_key(&(**word & !0xfff));
    let left = state.thread_owners.keys().filter(is_left).count();
    if left > 0 {
        notes.push(format!("{left} words that are no longer entries belonged to a thread; this was not rebuilt."));
    }
    if state.owned_tables > 0 {
        notes.push(format!(
            "{} tables were linked while some of their words belonged to a thread; they were rebuilt as complete \
             tables.",
            state.owned_tables
        ));
    }
    if state.unclean_lost > 0 {
        notes.push(format!("{} unclean entries were not rebuilt: too many at once.", state.unclean_lost));
    }
    notes
}

fn make(state: &MachineState, thread: u32, emit: Emit<'_>) -> Result<(), Error> {
    memory(state, thread, emit)?;
    let mut written = Registers::default();
    let mut replay = Replay::default();
    written.prepare(state, emit)?;
    for root in &state.roots {
        written.register_root(root, emit)?;
        replay.past_tables(state, root, emit)?;
    }
    replay.steps(state, &mut written, emit)?;
    written.finish(state, emit)?;
    replay.locks(state, emit)
}

fn memory(state: &MachineState, thread: u32, emit: Emit<'_>) -> Result<(), Error> {
    let memory = &state.memory;
    for range in memory.initialised.iter() {
        emit(thread, Transition::MemInit { address: range.start, size: range.end - range.start })?;
    }
    for (value, ranges) in &memory.fills {
        for range in ranges.iter() {
            fill(memory, thread, range, *value, emit)?;
        }
    }
    let hint = |hint, (location, value): (&u64, &u64)| Transition::Hint { hint, location: *location, value: *value };
    for association in &state.root_locks {
        emit(thread, hint(HintKind::SetRootLock, association))?;
    }
    for owner in &state.owner_roots {
        emit(thread, hint(HintKind::SetOwnerRoot, owner))?;
    }
    // Entries that are not yet clean still have the value they had while valid.
    let old = state.unclean.iter().map(|(word, unclean)| (*word, unclean.old));
    let values = memory.values.iter().map(|(word, value)| (*word, *value));
    let current = values.filter(|(word, _)| !state.unclean.contains_key(word));
    let mut old = old.peekable();
    for (word, value) in current {
        while let Some((word, value)) = old.next_if(|(earlier, _)| *earlier < word) {
            emit(thread, plain_write(word, value))?;
        }
        emit(thread, plain_write(word, value))?;
    }
    old.try_for_each(|(word, value)| emit(thread, plain_write(word, value)))
}

/// Entire pages at once, as the reference requires, and the words before and after them one by one.
fn fill(memory: &Memory, thread: u32, range: Range<u64>, value: u64, emit: Emit<'_>) -> Result<(), Error> {
    let start = range.start.checked_next_multiple_of(PAGE_BYTES).unwrap_or(range.end).min(range.end);
    let end = (range.end & !(PAGE_BYTES - 1)).max(start);
    let edges = (range.start..start).step_by(8).chain((end..range.end).step_by(8));
    // Words written since are written later.
    let mut edges = edges.filter(|word| !memory.values.contains_key(word));
    edges.try_for_each(|word| emit(thread, plain_write(word, value)))?;
    if start < end {
        emit(thread, Transition::MemSet { address: start, size: end - start, value })?;
    }
    Ok(())
}

fn plain_write(address: u64, value: u64) -> Transition {
    Transition::MemWrite { order: MemoryOrder::Plain, address, value }
}

/// Register values written by the preamble so far.
#[derive(Debug, Default)]
struct Registers(BTreeMap<(u32, Sysreg), u64>);

impl Registers {
    fn write(&mut self, thread: u32, register: Sysreg, value: u64, emit: Emit<'_>) -> Result<(), Error> {
        if self.0.insert((thread, register), value) == Some(value) {
            return Ok(());
        }
        emit(thread, Transition::SysregWrite { register, value })
    }

    /// Attributes, and the registers that enable the stages whose roots follow.
    fn prepare(&mut self, state: &MachineState, emit: Emit<'_>) -> Result<(), Error> {
        for (thread, registers) in &state.threads {
            if let Some(value) = registers.registers.get(&Sysreg::MairEl2) {
                self.write(*thread, Sysreg::MairEl2, *value, emit)?;
            }
            for stage in [STAGE_1, STAGE_2] {
                if let Some(value) = registers.enabling[stage] {
                    self.write(*thread, CONTROL_REGISTER[stage], value, emit)?;
                }
            }
        }
        Ok(())
    }

    /// Registers a root with the geometry of that time.
    fn register_root(&mut self, root: &Root, emit: Emit<'_>) -> Result<(), Error> {
        let geometry = GEOMETRY_REGISTER[root.stage];
        let is_other = self.0.contains_key(&(root.thread, geometry));
        if let Some(value) = root.geometry.or(is_other.then_some(DEFAULT_T0SZ)) {
            self.write(root.thread, geometry, value, emit)?;
        }
        self.write(root.thread, BASE_REGISTER[root.stage], root.value, emit)
    }

    /// Makes the root of stage 2 current that was when the step was taken: operations by address name its identifier.
    fn make_current(&mut self, step: &CountedStep, state: &MachineState, emit: Emit<'_>) -> Result<(), Error> {
        let register = BASE_REGISTER[STAGE_2];
        let has_other = self.0.contains_key(&(step.thread, register));
        let first = state.roots.first().filter(|root| has_other && root.stage == STAGE_2).map(|root| root.value);
        match step.current.or(first) {
            Some(value) => self.write(step.thread, register, value, emit),
            None => Ok(()),
        }
    }

    /// Makes the last roots current, turns stages off again, and writes the bases that were written while they were
    /// off.
    fn finish(&mut self, state: &MachineState, emit: Emit<'_>) -> Result<(), Error> {
        for (thread, Thread { registers, others, current, last, .. }) in &state.threads {
            // The stage whose root became current last must do so last again.
            for stage in [1 - last, *last] {
                if let Some(value) = current[stage] {
                    let is_shared = |other| state.root_stage(other) == state.root_stage(value);
                    if current[1 - stage].is_some_and(is_shared) {
                        self.0.remove(&(*thread, BASE_REGISTER[stage]));
                    }
                    self.write(*thread, BASE_REGISTER[stage], value, emit)?;
                }
                for register in [GEOMETRY_REGISTER[stage], CONTROL_REGISTER[stage], BASE_REGISTER[stage]] {
                    if let Some(value) = registers.get(&register) {
                        self.write(*thread, register, *value, emit)?;
                    }
                }
            }
            // The rest registers no root that is followed, but its verdict may depend on it.
            for (register, value) in registers {
                self.write(*thread, *register, *value, emit)?;
            }
            for (name, value) in others {
                emit(*thread, Transition::OtherSysreg { name: *name, value: *value })?;
            }
        }
        Ok(())
    }
}

/// Locks while entries are invalidated again.
#[derive(Debug, Default)]
struct Replay {
    held: BTreeMap<u64, u32>,
    /// Locks under which no further plain write is authorized.
    used: BTreeSet<u64>,
}

impl Replay {
    /// Entries of a root that are clean but had a table as their last valid value: a checker examines the entries below
    /// them when they are made valid. Each gets a table for a moment that has no other purpose.
    fn past_tables(&mut self, state: &MachineState, root: &Root, emit: Emit<'_>) -> Result<(), Error> {
        let is_of_root =
            |word: &&u64| state.tables.get(&(**word & !0xfff)).is_some_and(|table| table.root == root.base);
        let words: Vec<u64> = state.was_table.iter().filter(is_of_root).copied().collect();
        let (Some(lock), Some(page)) = (state.lock_of(root.base), free_page(&state.memory)) else { return Ok(()) };
        if words.is_empty() {
            return Ok(());
        }
        let thread = root.thread;
        let release = |address, value| Transition::MemWrite { order: MemoryOrder::Release, address, value };
        let barrier = Transition::Barrier(Barrier::Dsb(Domain::Ish));
        let op = if root.stage == STAGE_1 { TlbiOp::Alle2is } else { TlbiOp::Alle1is };
        emit(thread, Transition::MemInit { address: page, size: PAGE_BYTES })?;
        emit(thread, Transition::Lock { address: lock })?;
        for word in words {
            emit(thread, release(word, page | 3))?;
            emit(thread, release(word, state.memory.value(word)))?;
            emit(thread, barrier)?;
            emit(thread, Transition::Tlbi { op, operand: Operand::None })?;
            emit(thread, barrier)?;
        }
        emit(thread, Transition::Unlock { address: lock })?;
        emit(thread, Transition::MemFree { address: page, size: PAGE_BYTES })
    }

    fn steps(&mut self, state: &MachineState, written: &mut Registers, emit: Emit<'_>) -> Result<(), Error> {
        let of_entries = state.unclean.values().flat_map(|unclean| unclean.steps.iter().chain(&unclean.overwritten));
        // Only entries can be assigned to a thread.
        let is_entry = |step: &&CountedStep| match step.transition {
            Transition::Hint { location, .. } => state.tables.get(&(location & !0xfff)).is_some_and(|t| t.level == 3),
            _ => false,
        };
        let owners = state.thread_owners.values().chain(&state.past_owners).filter(is_entry);
        let steps: BTreeMap<u64, &CountedStep> = of_entries.chain(owners).map(|step| (step.seq, step)).collect();
        for step in steps.values() {
            let wanted: BTreeSet<u64> = step.roots.iter().filter_map(|root| state.lock_of(*root)).collect();
            self.hold(step, &wanted, emit)?;
            match step.transition {
                Transition::MemWrite { .. } => self.used.extend(wanted),
                Transition::Barrier(Barrier::Dsb(_)) => {
                    let (held, thread) = (&self.held, step.thread);
                    self.used.retain(|lock| held.get(lock) != Some(&thread));
                }
                Transition::Tlbi { .. } => written.make_current(step, state, emit)?,
                _ => {}
            }
            emit(step.thread, step.transition)?;
        }
        Ok(())
    }

    /// Makes the thread take exactly the locks of the roots whose lock it had at the step.
    fn hold(&mut self, step: &CountedStep, wanted: &BTreeSet<u64>, emit: Emit<'_>) -> Result<(), Error> {
        let is_write = matches!(step.transition, Transition::MemWrite { .. });
        let given_up: Vec<(u64, u32)> = self
            .held
            .iter()
            .map(|(lock, thread)| (*lock, *thread))
            .filter(|(lock, thread)| match (*thread == step.thread, wanted.contains(lock)) {
                (true, true) => is_write && self.used.contains(lock),
                (true, false) | (false, true) => true,
                (false, false) => false,
            })
            .collect();
        for (lock, thread) in given_up {
            self.unlock(lock, thread, emit)?;
        }
        for lock in wanted {
            if !self.held.contains_key(lock) {
                self.held.insert(*lock, step.thread);
                emit(step.thread, Transition::Lock { address: *lock })?;
            }
        }
        Ok(())
    }

    fn unlock(&mut self, lock: u64, thread: u32, emit: Emit<'_>) -> Result<(), Error> {
        self.held.remove(&lock);
        self.used.remove(&lock);
        emit(thread, Transition::Unlock { address: lock })
    }

    /// The locks at the start of the part, with their counts, and whether a plain write is still free.
    fn locks(&mut self, state: &MachineState, emit: Emit<'_>) -> Result<(), Error> {
        for (lock, thread) in self.held.clone() {
            self.unlock(lock, thread, emit)?;
        }
        for (lock, held) in &state.locks {
            emit(held.thread, Transition::Lock { address: *lock })?;
            for _ in 1..held.count {
                emit(held.thread, Transition::Trylock { address: *lock })?;
            }
        }
        for (lock, held) in state.locks.iter().filter(|(_, held)| held.is_spent) {
            spend(state, *lock, held.thread, emit)?;
        }
        Ok(())
    }
}

/// Writes an entry under the lock again, so that the next plain write under it is not free.
fn spend(state: &MachineState, lock: u64, thread: u32, emit: Emit<'_>) -> Result<(), Error> {
    let roots = state.root_locks.iter().filter(|(_, of_root)| **of_root == lock).map(|(root, _)| *root);
    let guarded = roots.filter_map(|root| Some((root, rewritable(state, root)?))).next();
    // The hint that named the lock may have been withdrawn since.
    let other = || state.roots.iter().find_map(|root| Some((root.base, rewritable(state, root.base)?)));
    let Some((root, word)) = guarded.or_else(other) else { return Ok(()) };
    let name = |value| Transition::Hint { hint: HintKind::SetRootLock, location: root, value };
    if guarded.is_none() {
        emit(thread, name(lock))?;
    }
    let value = state.memory.value(word);
    emit(thread, Transition::MemWrite { order: MemoryOrder::Release, address: word, value })?;
    if guarded.is_none() {
        emit(thread, name(state.root_locks.get(&root).copied().unwrap_or(0)))?;
    }
    Ok(())
}

/// An entry of the root that can be written with its own value: owned by no thread, and not a table, which would break
/// the rule.
fn rewritable(state: &MachineState, root: u64) -> Option<u64> {
    let tables = state.tables.iter().filter(|(_, table)| table.root == root);
    let mut words = tables.flat_map(|(page, table)| (0..PAGE_BYTES / 8).map(move |i| (page + 8 * i, table.level)));
    let found = words.find(|(word, level)| {
        let value = state.memory.value(*word);
        (value & 1 == 0 || value & 3 == 1 || *level == 3)
            && state.memory.initialised.contains(*word)
            && state.owner(*word).is_none()
    });
    found.map(|(word, _)| word)
}

/// A page that the trace never initialized.
fn free_page(memory: &Memory) -> Option<u64> {
    let mut page = PAGE_BYTES;
    for range in memory.initialised.iter() {
        if range.start < page + PAGE_BYTES && range.end > page {
            page = range.end.checked_next_multiple_of(PAGE_BYTES)?;
        }
    }
    (page < 1 << 47).then_some(page)
}
