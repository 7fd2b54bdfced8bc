//! Synthesised records that lead a checker from nothing to a [`State`].
//!
//! The order matters: memory is written while nothing is a table yet, since such writes are free; locks and owners of
//! roots are named before the roots are registered; then come registers, which register roots and so mark tables. Last,
//! entries that are not yet clean are invalidated again, with the barriers and TLBIs that counted for them, under the
//! locks that were held then; and the locks that are held at the end are taken.

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::Error;

use crate::record::{Barrier, HintKind, MemoryOrder, Record, Source, Spelling, Sysreg, Transition};
use crate::rewrite::{Emitter, Out};
use crate::state::{BASE_REGISTER, CONTROL_REGISTER, STAGE_1, STAGE_2, State, Step, Thread};
use crate::trim::PREAMBLE_SOURCE;

/// Takes records one by one: thread and transition.
type Emit<'a> = &'a mut dyn FnMut(u32, Transition) -> Result<(), Error>;

/// Writes the preamble before the record `first`; returns how many records it has.
pub(crate) fn write(state: &State, first: &Record<'_>, emitter: &mut Emitter, out: &mut Out<'_>) -> Result<u64, Error> {
    let mut records = 0_u64;
    make(state, first.thread, &mut |_, _| {
        records += 1;
        Ok(())
    })?;
    // Ids end right before the first of the part, where there is room for so many.
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

/// What the user should know of the preamble.
pub(crate) fn notes(state: &State, records: u64) -> Vec<String> {
    let mut notes = Vec::new();
    if records > 0 {
        notes.push(format!(
            "{records} records with src \"{PREAMBLE_SOURCE}\" were made up: they rebuild the state at the start of the part."
        ));
    }
    if state.homeless_writes > 0 {
        notes.push(format!("{} writes to memory that was never initialised are not rebuilt.", state.homeless_writes));
    }
    if state.unclean_lost > 0 {
        notes
            .push(format!("{} entries that were not yet clean are not rebuilt: too many at once.", state.unclean_lost));
    }
    notes
}

fn make(state: &State, thread: u32, emit: Emit<'_>) -> Result<(), Error> {
    memory(state, thread, emit)?;
    let mut written = Registers::default();
    written.prepare(state, emit)?;
    written.register_roots(state, emit)?;
    written.finish(state, emit)?;
    let mut replay = Replay::default();
    replay.steps(state, emit)?;
    replay.locks(state, emit)
}

fn memory(state: &State, thread: u32, emit: Emit<'_>) -> Result<(), Error> {
    let memory = &state.memory;
    for range in memory.initialised.iter() {
        emit(thread, Transition::MemInit { address: range.start, size: range.end - range.start })?;
    }
    for (value, ranges) in &memory.fills {
        for range in ranges.iter() {
            let size = range.end - range.start;
            emit(thread, Transition::MemSet { address: range.start, size, value: *value })?;
        }
    }
    let hint = |hint, (location, value): (&u64, &u64)| Transition::Hint { hint, location: *location, value: *value };
    for association in &state.root_locks {
        emit(thread, hint(HintKind::SetRootLock, association))?;
    }
    for owner in &state.owner_roots {
        emit(thread, hint(HintKind::SetOwnerRoot, owner))?;
    }
    // Entries not yet clean still hold what they held when they were valid.
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

    /// Geometry and attributes, and what enables the stages whose roots come next.
    fn prepare(&mut self, state: &State, emit: Emit<'_>) -> Result<(), Error> {
        for (thread, registers) in &state.threads {
            for register in [Sysreg::VtcrEl2, Sysreg::TcrEl2, Sysreg::MairEl2] {
                if let Some(value) = registers.registers.get(&register) {
                    self.write(*thread, register, *value, emit)?;
                }
            }
            for stage in [STAGE_1, STAGE_2] {
                if let Some(value) = registers.enabling[stage] {
                    self.write(*thread, CONTROL_REGISTER[stage], value, emit)?;
                }
            }
        }
        Ok(())
    }

    fn register_roots(&mut self, state: &State, emit: Emit<'_>) -> Result<(), Error> {
        for root in &state.roots {
            self.write(root.thread, BASE_REGISTER[root.stage], root.value, emit)?;
        }
        for (thread, registers) in &state.threads {
            for stage in [STAGE_1, STAGE_2] {
                if let Some(value) = registers.current[stage] {
                    self.write(*thread, BASE_REGISTER[stage], value, emit)?;
                }
            }
        }
        Ok(())
    }

    /// Turns stages off again, and records bases written while they were off.
    fn finish(&mut self, state: &State, emit: Emit<'_>) -> Result<(), Error> {
        for (thread, Thread { registers, .. }) in &state.threads {
            for stage in [STAGE_1, STAGE_2] {
                for register in [CONTROL_REGISTER[stage], BASE_REGISTER[stage]] {
                    if let Some(value) = registers.get(&register) {
                        self.write(*thread, register, *value, emit)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Locks while entries are invalidated again.
#[derive(Debug, Default)]
struct Replay {
    held: BTreeMap<u64, u32>,
    /// Locks under which a plain write would be one too many.
    used: BTreeSet<u64>,
}

impl Replay {
    fn steps(&mut self, state: &State, emit: Emit<'_>) -> Result<(), Error> {
        let of_entries = state.unclean.values().flat_map(|unclean| unclean.steps.iter().chain(&unclean.overwritten));
        let steps: BTreeMap<u64, &Step> =
            of_entries.chain(state.thread_owners.values()).map(|step| (step.seq, step)).collect();
        let relevant: BTreeSet<u64> = state.root_locks.values().copied().collect();
        for step in steps.values() {
            self.hold(step, &relevant, emit)?;
            match step.transition {
                Transition::MemWrite { .. } => self.used.extend(step.held.iter().copied()),
                Transition::Barrier(Barrier::Dsb(_)) => {
                    let (held, thread) = (&self.held, step.thread);
                    self.used.retain(|lock| held.get(lock) != Some(&thread));
                }
                _ => {}
            }
            emit(step.thread, step.transition)?;
        }
        Ok(())
    }

    /// Gives the thread exactly the locks it held at the step, of those that guard a root.
    fn hold(&mut self, step: &Step, relevant: &BTreeSet<u64>, emit: Emit<'_>) -> Result<(), Error> {
        let wanted = |lock: &u64| relevant.contains(lock) && step.held.contains(lock);
        let is_write = matches!(step.transition, Transition::MemWrite { .. });
        let given_up: Vec<(u64, u32)> = self
            .held
            .iter()
            .map(|(lock, thread)| (*lock, *thread))
            .filter(|(lock, thread)| match (*thread == step.thread, wanted(lock)) {
                (true, true) => is_write && self.used.contains(lock),
                (true, false) | (false, true) => true,
                (false, false) => false,
            })
            .collect();
        for (lock, thread) in given_up {
            self.unlock(lock, thread, emit)?;
        }
        for lock in step.held.iter().filter(|lock| wanted(lock)) {
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

    /// The locks at the start of the part, as often as they are held, and whether a plain write is still free.
    fn locks(&mut self, state: &State, emit: Emit<'_>) -> Result<(), Error> {
        for (lock, thread) in self.held.clone() {
            self.unlock(lock, thread, emit)?;
        }
        for (lock, held) in &state.locks {
            emit(held.thread, Transition::Lock { address: *lock })?;
            for _ in 1..held.count {
                emit(held.thread, Transition::Trylock { address: *lock })?;
            }
        }
        for held in state.locks.values() {
            let Some(word) = held.written else { continue };
            let value = state.memory.value(word);
            // Writing a valid table entry again would break the rule itself.
            let is_free =
                value & 1 == 0 || value & 3 != 3 || state.tables.get(&(word & !0xfff)).is_some_and(|t| t.level == 3);
            if is_free {
                let order = MemoryOrder::Release;
                emit(held.thread, Transition::MemWrite { order, address: word, value })?;
            }
        }
        Ok(())
    }
}
