//! The barriers and TLBIs that advance unclean entries towards clean.

use super::{Checker, Flow, Stop};
use crate::model::breach::breach;
use crate::model::descriptor::{Descriptor, entry_bytes};
use crate::model::memory::{Table, position};
use crate::model::quirk::Quirk;
use crate::model::unclean::{Owner, Progress, Unclean};
use crate::model::watch::{Change, Miss, Watch};
use crate::wire::record::{Domain, Operand, TlbiOp};

/// Which TLBs a TLBI reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Drops {
    StageOne,
    StageTwo,
    Both,
}

/// A DSB or TLBI.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sync {
    /// Waits for all accesses and TLBIs of the domain.
    Full,
    /// Waits for stores.
    Stores,
    /// Waits for loads.
    Loads,
    /// Waits for this core.
    Local,
    Tlbi(Tlbi),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tlbi {
    op: TlbiOp,
    pub(super) is_broadcast: bool,
    pub(super) stage: u8,
    pub(super) drops: Drops,
    pub(super) by_id: bool,
    /// The register operand of operations by address.
    pub(super) operand: Option<u64>,
}

impl Tlbi {
    /// The level that the operand names, if any: TTL, bits 47:44.
    pub(super) fn level_hint(&self) -> Option<u8> {
        let operand = self.operand?;
        let level = (operand >> 44 & 3) as u8;
        (operand >> 46 & 3 != 0 && level != 0).then_some(level)
    }
}

impl Sync {
    fn dsb(domain: Domain) -> Self {
        match domain {
            Domain::Ish | Domain::Sy | Domain::Osh => Self::Full,
            Domain::Ishst | Domain::St | Domain::Oshst => Self::Stores,
            Domain::Nsh | Domain::Nshst | Domain::Nshld => Self::Local,
            Domain::Ishld | Domain::Oshld | Domain::Ld => Self::Loads,
        }
    }

    pub(crate) fn tlbi(op: TlbiOp, operand: Operand) -> Self {
        let is_el2 = op.is_el2();
        let drops = match op {
            TlbiOp::Vmalle1 | TlbiOp::Vmalle1is => Drops::StageOne,
            TlbiOp::Ipas2e1 | TlbiOp::Ipas2e1is | TlbiOp::Ipas2le1is => Drops::StageTwo,
            _ => Drops::Both,
        };
        let by_id = matches!(op, TlbiOp::Vmalls12e1 | TlbiOp::Vmalls12e1is | TlbiOp::Vmalle1 | TlbiOp::Vmalle1is);
        let operand = op.takes_operand().then(|| operand.value().unwrap_or(0));
        Self::Tlbi(Tlbi { op, is_broadcast: op.is_broadcast(), stage: 2 - u8::from(is_el2), drops, by_id, operand })
    }
}

/// An entry that a step visits.
struct Visited {
    cell: u64,
    index: usize,
    at: usize,
    table: Table,
    unclean: Unclean,
}

impl<W: Watch> Checker<W> {
    pub(crate) fn dsb(&mut self, thread: u32, domain: Domain) -> Flow {
        self.sync(thread, &Sync::dsb(domain))?;
        self.threads.count_dsb(thread);
        Ok(())
    }

    /// Visits the unclean entries on which the thread may act, newest first.
    #[inline]
    pub(crate) fn sync(&mut self, thread: u32, sync: &Sync) -> Flow {
        if !self.stale.is_empty() {
            self.sync_stale(thread, sync)?;
        }
        if self.unclean.cells.is_empty() {
            return Ok(());
        }
        if W::IS_ON {
            self.report_unlocked(thread);
        }
        let mut only = None;
        for at in 0..self.unclean.lists.len() {
            if !self.may_act(thread, at) {
                continue;
            }
            if only.is_some() {
                return self.sync_several(thread, sync);
            }
            only = Some(at);
        }
        let Some(at) = only else { return Ok(()) };
        let Some(list) = self.unclean.lists.get_mut(at) else { return Ok(()) };
        let mut entries = std::mem::take(&mut list.entries);
        let flow = self.sync_entries(thread, sync, &mut entries);
        self.put_back(at, entries);
        flow
    }

    fn put_back(&mut self, at: usize, mut entries: Vec<(u64, u64)>) {
        let cells = &self.unclean.cells;
        entries.retain(|(cell, number)| cells.get(cell).is_some_and(|unclean| unclean.number == *number));
        if entries.is_empty() && at < self.unclean.lists.len() {
            // The entries after it are already back in the list.
            self.unclean.lists.swap_remove(at);
        } else if let Some(list) = self.unclean.lists.get_mut(at) {
            list.entries = entries;
        }
    }

    fn may_act(&self, thread: u32, list: usize) -> bool {
        self.unclean.lists.get(list).is_some_and(|list| {
            !list.entries.is_empty()
                && (self.options.is_racy
                    || match list.owner {
                        Owner::Root(root) => self.locks.guards(root, thread),
                        Owner::Thread(owner) => owner as u32 == thread,
                    })
        })
    }

    #[cold]
    fn sync_several(&mut self, thread: u32, sync: &Sync) -> Flow {
        let lists: Vec<usize> = (0..self.unclean.lists.len()).filter(|at| self.may_act(thread, *at)).collect();
        let mut merged: Vec<(u64, u64)> =
            lists.iter().filter_map(|at| self.unclean.lists.get(*at)).flat_map(|list| list.entries.clone()).collect();
        merged.sort_unstable_by_key(|(_, number)| *number);
        let flow = self.sync_entries(thread, sync, &mut merged);
        for at in lists.into_iter().rev() {
            let entries = self.unclean.lists.get_mut(at).map(|list| std::mem::take(&mut list.entries));
            self.put_back(at, entries.unwrap_or_default());
        }
        flow
    }

    fn sync_entries(&mut self, thread: u32, sync: &Sync, entries: &mut [(u64, u64)]) -> Flow {
        for (cell, number) in entries.iter().rev() {
            let Some(visited) = self.visited(*cell, *number) else { continue };
            match sync {
                Sync::Tlbi(tlbi) => self.tlbi_entry(thread, tlbi, &visited)?,
                _ => self.dsb_entry(thread, sync, &visited)?,
            }
        }
        Ok(())
    }

    fn visited(&mut self, cell: u64, number: u64) -> Option<Visited> {
        let unclean = *self.unclean.get(cell).filter(|unclean| unclean.number == number)?;
        let (index, at) = (self.memory.find(cell)?, position(cell));
        let page = self.memory.pages.get(index).filter(|page| page.entry.has(at))?;
        Some(Visited { cell, index, at, table: page.table_of(at), unclean })
    }

    #[cold]
    fn report_unlocked(&mut self, thread: u32) {
        for at in 0..self.unclean.lists.len() {
            if self.may_act(thread, at) {
                continue;
            }
            let Some(list) = self.unclean.lists.get(at) else { continue };
            for (cell, number) in &list.entries {
                if self.unclean.get(*cell).is_some_and(|unclean| unclean.number == *number) {
                    self.watch.miss(*cell, Miss::NotLocked);
                }
            }
        }
    }

    fn miss(&mut self, visited: &Visited, miss: Miss) -> Flow {
        if W::IS_ON {
            self.watch.miss(visited.cell, miss);
        }
        Ok(())
    }

    fn advance(&mut self, visited: &Visited, progress: Progress) -> Flow {
        if let Some(unclean) = self.unclean.cells.get_mut(&visited.cell) {
            unclean.progress = progress;
        }
        if W::IS_ON {
            self.watch.change(visited.cell, Change::Advanced(progress));
        }
        Ok(())
    }

    fn dsb_entry(&mut self, thread: u32, sync: &Sync, visited: &Visited) -> Flow {
        if matches!(sync, Sync::Local) {
            self.miss(visited, Miss::LocalBarrier)?;
            // Recovery: the barrier does not count.
            return if self.has(Quirk::NshFires) { self.fire(&breach::DSB_NSH, visited.cell) } else { Ok(()) };
        }
        if visited.unclean.thread != thread {
            return self.miss(visited, Miss::OtherThread);
        }
        match (visited.unclean.progress, sync) {
            (_, Sync::Loads) => self.miss(visited, Miss::WeakBarrier),
            (Progress::Unguarded, _) => self.advance(visited, Progress::Dsbed),
            (Progress::TlbiIpa, Sync::Full) => self.advance(visited, Progress::TlbiIpaDsbed),
            (Progress::Tlbied, Sync::Full) => self.clean(thread, visited.index, visited.at),
            (Progress::TlbiIpa | Progress::Tlbied, _) => self.miss(visited, Miss::WeakBarrier),
            (Progress::Dsbed | Progress::TlbiIpaDsbed, _) => self.miss(visited, Miss::NoTlbiBefore),
        }
    }

    fn tlbi_entry(&mut self, thread: u32, tlbi: &Tlbi, visited: &Visited) -> Flow {
        if visited.table.stage != tlbi.stage {
            return self.miss(visited, Miss::WrongStage);
        }
        if !tlbi.is_broadcast {
            self.miss(visited, Miss::NotBroadcast)?;
            // Recovery: the TLBI does not count.
            return if self.has(Quirk::LocalTlbiFires) { self.fire(&breach::TLBI_LOCAL, visited.cell) } else { Ok(()) };
        }
        if let Some(operand) = tlbi.operand
            && let Some(miss) = self.address_miss(tlbi, operand, (visited.table, visited.at), visited.unclean.old)
        {
            return self.miss(visited, miss);
        }
        let names_id = tlbi.operand.is_some() || tlbi.by_id && !self.has(Quirk::ByIdPromoted);
        if names_id && !self.names_id_of(thread, tlbi, visited)? {
            return self.miss(visited, Miss::WrongId);
        }
        if visited.unclean.thread != thread {
            return self.miss(visited, Miss::OtherThread);
        }
        match (visited.unclean.progress, tlbi.stage, tlbi.drops) {
            (Progress::Unguarded, ..) => self.miss(visited, Miss::NoBarrierBefore),
            (Progress::Dsbed, 1, _) | (Progress::Dsbed, _, Drops::Both) => self.advance(visited, Progress::Tlbied),
            (Progress::Dsbed, _, Drops::StageTwo) => self.advance(visited, Progress::TlbiIpa),
            (Progress::Dsbed, _, Drops::StageOne) => self.miss(visited, Miss::StageOneOnly),
            (Progress::TlbiIpa, ..) => self.miss(visited, Miss::NoBarrierBefore),
            (Progress::TlbiIpaDsbed, _, Drops::StageTwo) => self.miss(visited, Miss::StageTwoAgain),
            (Progress::TlbiIpaDsbed, ..) => self.advance(visited, Progress::Tlbied),
            (Progress::Tlbied, ..) => self.miss(visited, Miss::AlreadyDone),
        }
    }

    /// Why a TLBI by address does not name the entry at a position of a table, whose value was `old`.
    pub(super) fn address_miss(&self, tlbi: &Tlbi, operand: u64, at: (Table, usize), old: u64) -> Option<Miss> {
        let (table, at) = at;
        let level = table.level;
        if Descriptor::decode(level, old).is_table() {
            return Some(Miss::TableByAddress);
        }
        let size = entry_bytes(level);
        let input = table.input.wrapping_add(size.wrapping_mul(at as u64));
        let address = (operand & ((1 << 44) - 1)) << 12;
        if address.wrapping_sub(input) >= size {
            return Some(Miss::WrongAddress);
        }
        if tlbi.op.is_last_level() && level != 3 && self.has(Quirk::LastLevelIs3) {
            return Some(Miss::WrongLevel);
        }
        if self.has(Quirk::TtlIgnored) {
            return None;
        }
        // Granule in bits 3:2 (0: no hint, 1: 4 KiB), level in bits 1:0 (level 0 is reserved and means no hint).
        match (operand >> 46 & 3, operand >> 44 & 3) {
            (0, _) | (1, 0) => None,
            // What TLBs may contain as part of a block is dropped by no TLBI of one level.
            (1, hint) if hint == u64::from(level) && (self.stale.is_empty() || !self.is_below_block(table)) => None,
            _ => Some(Miss::WrongLevel),
        }
    }

    /// True when the TLBI's VMID or ASID is that of the entry's root.
    fn names_id_of(&mut self, thread: u32, tlbi: &Tlbi, visited: &Visited) -> Result<bool, Stop> {
        let wanted = self.roots.id_of(visited.table.stage, visited.table.root, self.has(Quirk::StageBlindIds));
        let named = self.named_id(thread, tlbi);
        if named.is_none() && !self.has(Quirk::NoVttbrIsSlot0) {
            self.fire(&breach::NO_CURRENT_ROOT, visited.cell)?;
        }
        Ok(named.is_some() && named == wanted)
    }

    /// The VMID or ASID that a TLBI names; none without a current root.
    pub(super) fn named_id(&self, thread: u32, tlbi: &Tlbi) -> Option<u64> {
        if tlbi.stage == 1 {
            let asid = tlbi.operand.map_or(0, |operand| operand >> 48);
            return Some(if self.has(Quirk::IdsAsidZero) { 0 } else { asid });
        }
        match self.threads.current(thread, 2).and_then(|slot| self.roots.id_in(slot)) {
            None if self.has(Quirk::NoVttbrIsSlot0) => self.roots.id_in(0),
            id => id,
        }
    }
}
