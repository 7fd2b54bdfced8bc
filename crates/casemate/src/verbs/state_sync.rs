//! Barriers and TLBIs of the state at the start of a part: which entries they bring closer to clean.

use std::collections::BTreeMap;

use crate::model::may_have_xs;
use crate::verbs::state::{LEVEL_SHIFT, MachineState, PAGE_BYTES, Progress, STAGE_1, STAGE_2, TABLE_MASK, Unclean};
use crate::wire::record::{Barrier, Domain, Operand, Sysreg, Transition};
use anytrace_casemate_model::{Regime, Stages, TlbiOp, TlbiRange, TlbiScope};

impl MachineState {
    pub(super) fn dsb(&mut self, thread: u32, domain: Domain) {
        let is_nxs = matches!(domain, Domain::Ishnxs | Domain::Oshnxs | Domain::Synxs);
        let is_full = is_nxs || matches!(domain, Domain::Ish | Domain::Sy | Domain::Osh);
        let is_store = is_full || matches!(domain, Domain::Ishst | Domain::St | Domain::Oshst);
        self.advance(thread, Transition::Barrier(Barrier::Dsb(domain)), |_, unclean| {
            let is_complete = is_full && (!is_nxs || unclean.is_last_nxs());
            match unclean.progress {
                Progress::Unguarded if is_store => Some(Some(Progress::Dsbed)),
                Progress::TlbiIpa if is_complete => Some(Some(Progress::TlbiIpaDsbed)),
                Progress::Tlbied if is_complete => Some(None),
                _ => None,
            }
        });
        self.locks.values_mut().filter(|held| held.thread == thread).for_each(|held| held.is_spent = false);
    }

    pub(super) fn tlbi(&mut self, thread: u32, op: TlbiOp, operand: Operand) {
        let is_part = op.regime() == Regime::El1 && op.stages() == Stages::One && op.takes_operand();
        if !op.is_broadcast() || self.unclean.is_empty() || op.regime() == Regime::El3 || is_part {
            return;
        }
        let stage = if op.is_el2() { STAGE_1 } else { STAGE_2 };
        let value = operand.value();
        let ids: BTreeMap<u64, u64> = self.roots.iter().map(|root| (root.base, root.value >> 48)).collect();
        let current = self.current_root(thread);
        // The identifier an operation by address names: always 0 in stage 1; a thread without a root has slot 0's.
        let id = if op.is_el2() { 0 } else { current.map_or(self.slot_0_id, |value| value >> 48) };
        let mairs: Vec<u64> = match op.is_nxs() {
            true => self.threads.values().filter_map(|one| one.registers.get(&Sysreg::MairEl2).copied()).collect(),
            false => Vec::new(),
        };
        self.advance(thread, Transition::Tlbi { op, operand }, |word, unclean| {
            let table = unclean.table;
            let is_named = |value| is_in_entry(word, unclean, op, value) && ids.get(&table.root) == Some(&id);
            let is_by_address = op.scope() == TlbiScope::Address;
            let is_hit = (!is_by_address || value.is_some_and(is_named))
                && (!op.is_last_level() || table.level == 3)
                && table.stage == stage;
            let has_xs = || unclean.is_table() || may_have_xs(stage == STAGE_1, unclean.old, mairs.iter().copied());
            if !is_hit || op.is_nxs() && has_xs() {
                return None;
            }
            match (unclean.progress, op.stages()) {
                (Progress::Dsbed, Stages::Two) => Some(Some(Progress::TlbiIpa)),
                (Progress::Dsbed, Stages::Both) => Some(Some(Progress::Tlbied)),
                (Progress::TlbiIpaDsbed, Stages::One | Stages::Both) => Some(Some(Progress::Tlbied)),
                _ => None,
            }
        });
    }

    /// Advances entries: `next` returns the state after the step (none: clean), or nothing when it does not count.
    fn advance(
        &mut self,
        thread: u32,
        transition: Transition,
        next: impl Fn(u64, &Unclean) -> Option<Option<Progress>>,
    ) {
        if self.unclean.is_empty() {
            return;
        }
        let moves: Vec<(u64, Option<Progress>)> = self
            .unclean
            .iter()
            .filter(|(word, unclean)| {
                unclean.thread == thread && self.is_authorised(**word, unclean.table.root, thread)
            })
            .filter_map(|(word, unclean)| Some((*word, next(*word, unclean)?)))
            .collect();
        if moves.is_empty() {
            return;
        }
        let step = self.step(thread, transition);
        for (word, progress) in moves {
            match progress {
                Some(progress) => {
                    if let Some(unclean) = self.unclean.get_mut(&word) {
                        unclean.progress = progress;
                        unclean.steps.push(step.clone());
                    }
                }
                None => self.clean(word),
            }
        }
    }

    fn clean(&mut self, word: u64) {
        let Some(unclean) = self.unclean.remove(&word) else { return };
        if unclean.is_table() {
            self.unmark(unclean.old & TABLE_MASK, unclean.table.level + 1);
            self.was_table.insert(word);
        }
    }
}

impl Unclean {
    /// True when the last TLBI that counted was one without XS.
    fn is_last_nxs(&self) -> bool {
        let ops = self.steps.iter().rev().filter_map(|step| match step.transition {
            Transition::Tlbi { op, .. } => Some(op),
            _ => None,
        });
        ops.take(1).any(TlbiOp::is_nxs)
    }
}

/// True when the operand of an operation by address names the entry. One that pointed at a table is reached only by
/// ranges that contain all of it.
fn is_in_entry(word: u64, unclean: &Unclean, op: TlbiOp, value: u64) -> bool {
    let table = unclean.table;
    let shift = LEVEL_SHIFT[table.level];
    let start = table.address.wrapping_add((word % PAGE_BYTES / 8) << shift);
    if !op.is_range() {
        let address = (value & ((1 << 44) - 1)) << 12;
        return !unclean.is_table() && address.wrapping_sub(start) < 1 << shift;
    }
    let range = TlbiRange::of(value);
    let (first, bytes) = range.bytes(false, false);
    let (end, stop) = (first.saturating_add(bytes), start.saturating_add(1 << shift));
    let is_hit = match unclean.is_table() {
        true => !op.is_last_level() && range.level == 0 && first <= start && end >= stop,
        false => first < stop && start < end,
    };
    is_hit && range.granule_bits == Some(12)
}
