//! Unclean entries, and the barriers and TLBIs that advance them towards clean.
//!
//! Entries are listed by root, so that a step visits only those on which its thread may act.

use anytrace_core::hash::Map;

use super::breach::breach;
use super::checker::{Checker, Flow, Stop};
use super::descriptor::{Descriptor, entry_bytes};
use super::memory::{Table, position};
use super::quirk::Quirk;
use super::watch::{Change, Miss, Watch};
use crate::record::{Domain, Operand, TlbiOp};

/// How far the cleaning of an entry has come: the states n, d, ti, td and ta of the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Progress {
    /// Only written.
    Unguarded,
    /// A DSB waited for the write.
    Dsbed,
    /// Stage 2 was dropped by address.
    TlbiIpa,
    /// And a DSB waited for that.
    TlbiIpaDsbed,
    /// All TLBs were invalidated; a DSB is missing.
    Tlbied,
}

impl Progress {
    /// The reference's letters.
    pub fn letters(self) -> &'static str {
        match self {
            Self::Unguarded => "n",
            Self::Dsbed => "d",
            Self::TlbiIpa => "ti",
            Self::TlbiIpaDsbed => "td",
            Self::Tlbied => "ta",
        }
    }
}

/// An entry that is invalid and not yet clean.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unclean {
    pub(crate) number: u64,
    pub(crate) thread: u32,
    /// The valid value it had.
    pub(crate) old: u64,
    pub(crate) progress: Progress,
}

/// The threads that may act on the entries of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Root(u64),
    Thread(i32),
}

#[derive(Debug, Clone)]
struct List {
    owner: Owner,
    /// Cells and the numbers under which they became unclean, oldest first. Entries that are clean again may remain
    /// here until the next visit.
    entries: Vec<(u64, u64)>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct UncleanEntries {
    cells: Map<u64, Unclean>,
    lists: Vec<List>,
    next: u64,
}

impl UncleanEntries {
    pub(crate) fn push(&mut self, cell: u64, thread: u32, old: u64, root: u64, owner: i32) {
        let number = self.next;
        self.next += 1;
        self.cells.insert(cell, Unclean { number, thread, old, progress: Progress::Unguarded });
        self.list(root, owner).entries.push((cell, number));
    }

    fn list(&mut self, root: u64, owner: i32) -> &mut List {
        let owner = if owner >= 0 { Owner::Thread(owner) } else { Owner::Root(root) };
        let at = match self.lists.iter().position(|list| list.owner == owner) {
            Some(at) => at,
            None => {
                self.lists.push(List { owner, entries: Vec::new() });
                self.lists.len() - 1
            }
        };
        &mut self.lists[at]
    }

    #[inline]
    pub(crate) fn get(&self, cell: u64) -> Option<&Unclean> {
        self.cells.get(&cell)
    }

    pub(crate) fn remove(&mut self, cell: u64) {
        self.cells.remove(&cell);
    }

    /// The entry belongs to another list now.
    pub(crate) fn move_to(&mut self, cell: u64, root: u64, owner: i32) {
        let Some(number) = self.cells.get(&cell).map(|unclean| unclean.number) else { return };
        self.lists.iter_mut().for_each(|list| list.entries.retain(|(other, _)| *other != cell));
        let entries = &mut self.list(root, owner).entries;
        let at = entries.partition_point(|(_, other)| *other < number);
        entries.insert(at, (cell, number));
    }

    /// Every unclean entry, newest first.
    pub(crate) fn all(&self) -> Vec<(u64, Unclean)> {
        let mut all: Vec<_> = self.cells.iter().map(|(cell, unclean)| (*cell, *unclean)).collect();
        all.sort_unstable_by_key(|(_, unclean)| std::cmp::Reverse(unclean.number));
        all
    }
}

/// Which TLBs a TLBI reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Drops {
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
    is_broadcast: bool,
    stage: u8,
    drops: Drops,
    by_id: bool,
    /// The register operand of operations by address.
    operand: Option<u64>,
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
            && let Some(miss) = self.address_miss(tlbi, operand, visited)
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

    /// Why a TLBI by address does not name the entry.
    fn address_miss(&self, tlbi: &Tlbi, operand: u64, visited: &Visited) -> Option<Miss> {
        let level = visited.table.level;
        if Descriptor::decode(level, visited.unclean.old).is_table() {
            return Some(Miss::TableByAddress);
        }
        let size = entry_bytes(level);
        let input = visited.table.input.wrapping_add(size.wrapping_mul(visited.at as u64));
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
            (1, hint) if hint == u64::from(level) => None,
            _ => Some(Miss::WrongLevel),
        }
    }

    /// True when the TLBI's VMID or ASID is that of the entry's root.
    fn names_id_of(&mut self, thread: u32, tlbi: &Tlbi, visited: &Visited) -> Result<bool, Stop> {
        let wanted = self.roots.id_of(visited.table.stage, visited.table.root, self.has(Quirk::StageBlindIds));
        let named = if tlbi.stage == 1 {
            let asid = tlbi.operand.map_or(0, |operand| operand >> 48);
            Some(if self.has(Quirk::IdsAsidZero) { 0 } else { asid })
        } else {
            match self.threads.current(thread, 2).and_then(|slot| self.roots.id_in(slot)) {
                None if self.has(Quirk::NoVttbrIsSlot0) => self.roots.id_in(0),
                None => {
                    self.fire(&breach::NO_CURRENT_ROOT, visited.cell)?;
                    None
                }
                id => id,
            }
        };
        Ok(named.is_some() && named == wanted)
    }
}
