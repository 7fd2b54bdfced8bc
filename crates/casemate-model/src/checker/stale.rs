//! Live entries that were changed in place: what TLBs may still grant, the barriers and TLBIs that end it, and the
//! records at which a trace relies on the end.

use alloc::vec::Vec;

use super::handover::{Handover, StaleUse, Use};
use super::sync::Sync;
use super::tlbi::Tlbi;
use super::walk::Visit;
use super::{Checker, Flow};
use crate::attributes::{self, NOT_GLOBAL};
use crate::breach::breach;
use crate::descriptor::{ACCESS_FLAG, Descriptor};
use crate::memory::{PAGE_BYTES, Table, WORDS, position};
use crate::quirk::Quirk;
use crate::rights::{Regime, Rights};
use crate::room;
use crate::stale::{Request, Stale, level_bit};
use crate::tlbi::Stages;
use crate::tree::TreeKind;
use crate::unclean::Progress;
use crate::watch::{Change, Miss, Watch};

/// A change in place, as it concerns TLBs.
#[derive(Debug, Clone, Copy)]
pub(super) struct InPlace {
    pub(super) thread: u32,
    pub(super) cell: u64,
    pub(super) table: Table,
    pub(super) old: u64,
    pub(super) new: u64,
    /// The rights of the old value.
    pub(super) granted: Rights,
    /// That of the table's tree.
    pub(super) regime: Regime,
    /// The size changed, or the mark that permits such a change.
    pub(super) is_resized: bool,
    /// The levels at which TLBs may contain it, as bits.
    pub(super) levels: u8,
    /// The table entry above it that changed instead of itself.
    pub(super) above: Option<u64>,
}

/// What entries of a table get from the block in whose place it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Inherited {
    /// The value that an entry above the table would have as a block.
    pub(super) block: u64,
    /// The rights that TLBs may grant.
    pub(super) granted: Rights,
    /// That of the table's tree.
    pub(super) regime: Regime,
    /// The levels at which TLBs may contain it, as bits.
    pub(super) levels: u8,
}

/// What a valid block or page below tables with these limits permits; nothing for others.
pub(super) fn rights_within(table: Table, value: u64, limits: u64, regime: Regime) -> Rights {
    match table.decode(value) {
        Descriptor::Map(_) => Rights::of(table.stage(), value, regime).limited(limits, regime),
        _ => Rights::default(),
    }
}

impl<W: Watch> Checker<W> {
    /// A live entry was changed in place, and TLBs may contain its old value.
    pub(super) fn changed_in_place(&mut self, change: InPlace) {
        let InPlace { cell, table, new, regime, is_resized, above, .. } = change;
        let is_tracked = !self.has(Quirk::StaleIgnored);
        let granted = if is_tracked { change.granted } else { Rights::default() };
        let kept = self.rights(table, new, regime);
        let takes = !granted.without(kept).is_empty();
        let before = self.stale.remove(cell);
        if before.is_none() && !takes && !is_resized {
            return;
        }
        let stale = match before {
            Some(before) if !takes && !is_resized => before,
            before => renewed(change, granted, before),
        };
        let output = match table.decode(new) {
            Descriptor::Map(output) => Some((table.format.shift(table.level) as u8, output)),
            _ => None,
        };
        let lost = output.map_or_else(Rights::default, |_| stale.granted.without(kept));
        if lost.is_empty() && !stale.is_resized {
            return self.report_stale(cell, Change::Fresh);
        }
        let old = stale.old;
        self.stale.put(cell, Stale { lost, ..stale }, output);
        self.report_stale(cell, Change::Stale { old, lost, above });
    }

    fn report_stale(&mut self, cell: u64, change: Change) {
        if W::IS_ON {
            self.watch.change(cell, change);
        }
    }

    /// Nothing is stale about an entry that leaves its place; what is left of a table in its place leaves the tree.
    pub(super) fn drop_stale(&mut self, thread: u32, cell: u64, table: Table) -> Flow {
        let Some(stale) = self.stale.remove(cell) else { return Ok(()) };
        match table.decode(stale.old) {
            Descriptor::Table(next) if stale.is_resized => {
                self.traverse(thread, Visit::Unmark, next, table.below(cell, position(cell)))?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The same for every entry of a page.
    #[cold]
    pub(super) fn drop_stale_page(&mut self, thread: u32, base: u64, table: Table) -> Flow {
        self.stale.of_page(base).into_iter().try_for_each(|cell| self.drop_stale(thread, cell, table))
    }

    /// The value from which an entry that is made invalid has to be cleaned: TLBs may contain a table in its place.
    pub(super) fn oldest_value(&mut self, cell: u64, table: Table, old: u64) -> u64 {
        let stale = if self.stale.is_empty() { None } else { self.stale.remove(cell) };
        let is_table = |stale: &Stale| stale.is_resized && table.decode(stale.old).is_table();
        stale.filter(is_table).map_or(old, |stale| stale.old)
    }

    /// True when TLBs may contain an entry of a tree in another size.
    pub(super) fn has_resized(&self, root: u64, kind: TreeKind) -> bool {
        self.stale.cells.iter().any(|(cell, stale)| {
            let table = self.table_of(cell);
            stale.is_resized && table.is_some_and(|table| (table.root, table.kind) == (root, kind))
        })
    }

    /// The place of an entry.
    pub(super) fn table_of(&self, cell: u64) -> Option<Table> {
        let page = self.memory.pages.get(self.memory.peek(cell)?)?;
        page.entry.has(position(cell)).then(|| page.table_of(position(cell)))
    }

    /// A barrier or TLBI of a thread.
    #[cold]
    pub(super) fn sync_stale(&mut self, thread: u32, sync: &Sync) -> Flow {
        self.work += self.stale.cells.len() as u64;
        match sync {
            Sync::Full | Sync::FullNxs | Sync::Stores => return self.dsb_stale(thread, sync),
            Sync::Tlbi(tlbi) => self.tlbi_stale(thread, tlbi),
            Sync::Loads => self.miss_stale(Miss::WeakBarrier),
            Sync::Local => self.miss_stale(Miss::LocalBarrier),
        }
        Ok(())
    }

    fn miss_stale(&mut self, miss: Miss) {
        if W::IS_ON {
            self.stale.waiting.keys().for_each(|cell| self.watch.miss(cell, miss));
        }
    }

    /// A DSB completes writes that its thread made, or knows of because it has the lock, and the TLBIs of its thread.
    fn dsb_stale(&mut self, thread: u32, sync: &Sync) -> Flow {
        for cell in room::collected(self.stale.waiting.keys()) {
            let Some(table) = self.table_of(cell) else { continue };
            let has_lock = self.options.is_racy || self.locks.guards(table.root, thread);
            let Some(stale) = self.stale.cells.get_mut(&cell) else { continue };
            if !stale.is_written {
                if stale.thread == thread || has_lock {
                    stale.is_written = true;
                    self.stale.waiting.remove(&cell);
                    self.report_stale(cell, Change::StaleAdvanced(Progress::Dsbed));
                } else if W::IS_ON {
                    self.watch.miss(cell, Miss::OtherWriter);
                }
                continue;
            }
            let Some(at) = stale.requests.iter().position(|request| request.thread == thread) else { continue };
            if stale.requests.get(at).is_some_and(|request| !sync.completes(request.is_plain)) {
                if W::IS_ON {
                    let is_nxs = matches!(sync, Sync::FullNxs);
                    self.watch.miss(cell, if is_nxs { Miss::XsAccesses } else { Miss::WeakBarrier });
                }
                continue;
            }
            if room::swap_remove(&mut stale.requests, at).is_some_and(|request| request.is_full) {
                self.drop_stale(thread, cell, table)?;
                self.report_stale(cell, Change::Fresh);
                continue;
            }
            stale.is_stage_two_done = true;
            if stale.requests.is_empty() {
                self.stale.waiting.remove(&cell);
            }
            self.report_stale(cell, Change::StaleAdvanced(Progress::TlbiIpaDsbed));
        }
        Ok(())
    }

    /// A broadcast TLBI counts from every thread, with or without the lock.
    fn tlbi_stale(&mut self, thread: u32, tlbi: &Tlbi) {
        let cells = room::collected(self.stale.cells.keys());
        for cell in cells {
            let (Some(table), Some(stale)) = (self.table_of(cell), self.stale.get(cell)) else { continue };
            if let Some(miss) = self.stale_miss(thread, tlbi, (cell, table), stale) {
                if W::IS_ON {
                    self.watch.miss(cell, miss);
                }
                continue;
            }
            // What drops stage 1 drops both once stage 2 is gone.
            let is_full = table.stage() == 1 || tlbi.drops != Stages::Two;
            let is_plain = !tlbi.op.is_nxs();
            let Some(stale) = self.stale.cells.get_mut(&cell) else { continue };
            match stale.requests.iter_mut().find(|request| request.thread == thread) {
                Some(request) => {
                    // Of two TLBIs, the one that does more has to be complete.
                    request.is_plain = match (request.is_full, is_full) {
                        (false, true) => is_plain,
                        (true, false) => request.is_plain,
                        _ => request.is_plain && is_plain,
                    };
                    request.is_full |= is_full;
                }
                None => drop(room::push(&mut stale.requests, Request { thread, is_full, is_plain })),
            }
            let progress = stale.progress();
            self.stale.waiting.insert(cell, ());
            self.report_stale(cell, Change::StaleAdvanced(progress));
        }
    }

    /// Why a TLBI drops nothing of what TLBs may contain for an entry.
    fn stale_miss(&self, thread: u32, tlbi: &Tlbi, at: (u64, Table), stale: &Stale) -> Option<Miss> {
        let (cell, table) = at;
        if !tlbi.concerns(table.kind) {
            return Some(Miss::WrongStage);
        }
        if !tlbi.is_broadcast {
            return Some(Miss::NotBroadcast);
        }
        // What TLBs have of a table above has a level of its own, may be for accesses with XS, and is never global.
        if stale.above.is_some() && (tlbi.op.is_last_level() || tlbi.op.is_nxs()) {
            return Some(if tlbi.op.is_nxs() { Miss::XsAccesses } else { Miss::TableAbove });
        }
        let miss = self.scope_miss(tlbi, (table, position(cell)), stale.old);
        let hint = tlbi.level_hint().filter(|_| !self.has(Quirk::TtlIgnored));
        let is_other = hint.is_some_and(|level| stale.levels != level_bit(level));
        if miss.is_some() || is_other {
            return miss.or(Some(Miss::WrongLevel));
        }
        let tagged = if stale.above.is_some() { NOT_GLOBAL } else { 0 };
        if let Some(miss) = self.id_miss(thread, tlbi, table, stale.old | tagged) {
            return Some(miss);
        }
        match (table.stage(), tlbi.drops) {
            _ if !stale.is_written => Some(Miss::NoBarrierBefore),
            (2, Stages::One) if !stale.is_stage_two_done => Some(Miss::StageOneOnly),
            (2, Stages::Two) if stale.is_stage_two_done => Some(Miss::StageTwoAgain),
            _ => None,
        }
    }

    /// True when TLBs may contain an entry as part of a block above it.
    pub(super) fn is_below_block(&self, table: Table) -> bool {
        let mut parent = table.parent;
        for _ in 0..5 {
            let Some(above) = self.table_of(parent) else { return false };
            let is_block = |stale: &Stale| !above.decode(stale.old).is_table();
            if self.stale.get(parent).is_some_and(|stale| stale.is_resized && is_block(stale)) {
                return true;
            }
            parent = above.parent;
        }
        false
    }

    /// Memory gets another owner in this step.
    #[inline]
    pub(super) fn hand_over(&mut self, first: u64, bytes: u64, handover: Handover) {
        if !self.stale.is_empty()
            && let Some(end) = first.checked_add(bytes)
        {
            room::push(&mut self.uses, Use { first, end, handover, before: self.stale.next });
        }
    }

    /// A block or page of a tree has a value that it did not have before.
    #[inline]
    pub(super) fn map(&mut self, table: Table, value: u64) {
        if self.stale.is_empty() || table.stage() != 2 {
            return;
        }
        if let Descriptor::Map(output) = table.decode(value) {
            self.hand_over(output, table.entry_bytes(), Handover::Mapped { root: table.root });
        }
    }

    /// Of the handovers of this step from a number on, those of tables: other memory was mapped before.
    pub(super) fn keep_tables(&mut self, from: usize) {
        let mut number = 0;
        self.uses.retain(|one| {
            number += 1;
            number <= from || one.handover == Handover::Table
        });
    }

    /// The handovers of the current step, at its end: what is stale about their memory is relied on too early.
    #[cold]
    pub(super) fn check_uses(&mut self, thread: u32) -> Flow {
        for one in core::mem::take(&mut self.uses) {
            for cell in self.stale.mapping(one.first, one.end) {
                let (Some(table), Some(stale)) = (self.table_of(cell), self.stale.get(cell)) else { continue };
                let is_relied_on = match one.handover {
                    // Stage 1 of EL1&0 may map what stage 2 takes away.
                    _ if table.kind.is_el1() => false,
                    Handover::Mapped { root } => table.stage() == 1 || root != table.root,
                    // The hypervisor owns its tables itself.
                    _ => table.stage() == 2,
                };
                if !is_relied_on || stale.number >= one.before {
                    continue;
                }
                let new = self.memory.peek_value(cell).unwrap_or(0);
                let Descriptor::Map(output) = table.decode(new) else { continue };
                let found = StaleUse {
                    memory: output.max(one.first),
                    handover: one.handover,
                    lost: stale.lost,
                    old: stale.old,
                    new,
                    progress: stale.progress(),
                    stage: table.stage(),
                    above: stale.above,
                };
                let fired = self.fire(&breach::STALE_PERMISSIONS, cell);
                self.explain_stale(cell, found);
                fired?;
                // Recovery: as if the maintenance had been complete.
                self.drop_stale(thread, cell, table)?;
                self.report_stale(cell, Change::Fresh);
            }
        }
        Ok(())
    }

    /// The blocks and pages of a table that entered a tree by a change of size: TLBs may contain the block in their
    /// place, with its rights and its access flag.
    pub(super) fn inherit(&mut self, thread: u32, base: u64, table: Table, from: Inherited) {
        for number in 0..table.pages() {
            let first = WORDS * number as usize;
            self.inherit_page(thread, (base.wrapping_add(number * PAGE_BYTES), first), table.part(number), from);
        }
    }

    /// `first`: the number of the page's first entry in its table.
    fn inherit_page(&mut self, thread: u32, (base, first): (u64, usize), table: Table, from: Inherited) {
        let Some(index) = self.memory.find(base) else { return };
        for at in self.memory.pages.get(index).map(|page| page.valid).unwrap_or_default().ones() {
            let Some(page) = self.memory.pages.get_mut(index) else { return };
            let (value, cell) = (page.value(at), page.address(at));
            let old = attributes::part(table.format, from.block, table.level - 1, first + at);
            let levels = from.levels | level_bit(table.level);
            if let Descriptor::Table(next) = table.decode(value) {
                self.inherit(thread, next, table.below(cell, at), Inherited { block: old, levels, ..from });
                continue;
            }
            page.aged.put(at, value & ACCESS_FLAG == 0);
            let Inherited { granted, regime, .. } = from;
            let (is_resized, above) = (false, None);
            let change = InPlace { thread, cell, table, old, new: value, granted, regime, is_resized, levels, above };
            self.changed_in_place(change);
        }
    }
}

/// The record of a change that takes rights or changes the size: maintenance begins anew.
fn renewed(change: InPlace, granted: Rights, before: Option<Stale>) -> Stale {
    let first = before.as_ref().map_or(change.old, |before| before.old);
    let above = change.above.or(before.as_ref().and_then(|before| before.above));
    let (earlier, was_resized, kept) =
        before.map_or_else(Default::default, |before| (before.granted, before.is_resized, before.levels));
    Stale {
        number: 0,
        thread: change.thread,
        old: first,
        granted: granted.with(earlier),
        lost: Rights::default(),
        is_resized: change.is_resized || was_resized,
        levels: change.levels | kept,
        above,
        is_written: false,
        is_stage_two_done: false,
        requests: Vec::new(),
    }
}

impl<W: Watch> Checker<W> {
    #[cold]
    fn explain_stale(&mut self, cell: u64, stale: StaleUse) {
        let found = self.found_mut(&breach::STALE_PERMISSIONS).filter(|found| found.location == Some(cell));
        if let Some(found) = found {
            found.stale.get_or_insert(stale);
        }
    }
}

const _: () = assert!(PAGE_BYTES == 0x1000, "of_page covers one page");
