//! The barriers and TLBIs that advance unclean entries towards clean.

use super::tlbi::Tlbi;
use super::{Checker, Flow, Stop};
use crate::breach::breach;
use crate::memory::{Table, position};
use crate::quirk::Quirk;
use crate::record::{Domain, Operand};
use crate::room;
use crate::tlbi::{Regime, Stages, TlbiOp};
use crate::unclean::{Owner, Progress, Unclean};
use crate::watch::{Change, Miss, Watch};
use alloc::vec::Vec;

/// A DSB or TLBI.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sync {
    /// Waits for all accesses and TLBIs of the domain.
    Full,
    /// The same, except for accesses with the XS attribute and TLBIs without nXS.
    FullNxs,
    /// Waits for stores.
    Stores,
    /// Waits for loads.
    Loads,
    /// Waits for this core.
    Local,
    Tlbi(Tlbi),
}

impl Sync {
    fn dsb(domain: Domain) -> Self {
        match domain {
            Domain::Ish | Domain::Sy | Domain::Osh => Self::Full,
            Domain::Ishnxs | Domain::Synxs | Domain::Oshnxs => Self::FullNxs,
            Domain::Ishst | Domain::St | Domain::Oshst => Self::Stores,
            Domain::Nsh | Domain::Nshst | Domain::Nshld | Domain::Nshnxs => Self::Local,
            Domain::Ishld | Domain::Oshld | Domain::Ld => Self::Loads,
        }
    }

    /// True when it completes a TLBI with or without nXS.
    pub(super) fn completes(&self, is_plain: bool) -> bool {
        match self {
            Self::Full => true,
            Self::FullNxs => !is_plain,
            _ => false,
        }
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
    #[inline(never)]
    pub(crate) fn tlbi(&mut self, thread: u32, op: TlbiOp, operand: Operand) -> Flow {
        let is_host = op.regime() == Regime::El1 && self.is_host(thread);
        let tlbi = Tlbi::of(op, operand, is_host);
        self.drop_identifiers(thread, &tlbi);
        self.sync(thread, &Sync::Tlbi(tlbi))
    }

    #[inline(never)]
    pub(crate) fn dsb(&mut self, thread: u32, domain: Domain) -> Flow {
        self.sync(thread, &Sync::dsb(domain))?;
        self.complete_drops(thread, domain);
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
        if W::HEARS_UNLOCKED {
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
        let mut entries = core::mem::take(&mut list.entries);
        match self.sync_entries(thread, sync, &mut entries) {
            // A TLBI cleans nothing.
            Ok(true) if matches!(sync, Sync::Tlbi(_)) => {
                if let Some(list) = self.unclean.lists.get_mut(at) {
                    list.entries = entries;
                }
                Ok(())
            }
            flow => {
                self.put_back(at, entries);
                flow.map(|_| ())
            }
        }
    }

    /// Puts the entries of a list back that are not clean.
    fn put_back(&mut self, at: usize, mut entries: Vec<(u64, u64)>) {
        let cells = &self.unclean.cells;
        if cells.is_empty() {
            entries.clear();
        } else {
            entries.retain(|(cell, number)| cells.get(cell).is_some_and(|unclean| unclean.number == *number));
        }
        if entries.is_empty() {
            // The entries after it are already back in the list.
            self.unclean.remove_list(at, entries);
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
        let lists = room::collected((0..self.unclean.lists.len()).filter(|at| self.may_act(thread, *at)));
        let chosen = lists.iter().filter_map(|at| self.unclean.lists.get(*at));
        let mut merged = room::collected(chosen.flat_map(|list| &list.entries).copied());
        room::sort_by_key(&mut merged, |(_, number)| *number);
        let flow = self.sync_entries(thread, sync, &mut merged);
        for at in lists.into_iter().rev() {
            let entries = self.unclean.lists.get_mut(at).map(|list| core::mem::take(&mut list.entries));
            self.put_back(at, entries.unwrap_or_default());
        }
        flow.map(|_| ())
    }

    /// True if all of the entries were still unclean.
    fn sync_entries(&mut self, thread: u32, sync: &Sync, entries: &mut [(u64, u64)]) -> Result<bool, Stop> {
        self.work += entries.len() as u64;
        let newest_first = entries.iter().rev();
        let mut is_each_unclean = true;
        match sync {
            Sync::Tlbi(tlbi) => {
                for (cell, number) in newest_first {
                    match self.visited(*cell, *number) {
                        Some(visited) => self.tlbi_entry(thread, tlbi, &visited)?,
                        None => is_each_unclean = false,
                    }
                }
            }
            _ => {
                for (cell, number) in newest_first {
                    match self.visited(*cell, *number) {
                        Some(visited) => self.dsb_entry(thread, sync, &visited)?,
                        None => is_each_unclean = false,
                    }
                }
            }
        }
        Ok(is_each_unclean)
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

    /// Advances an entry by a TLBI.
    fn advance_by(&mut self, visited: &Visited, tlbi: &Tlbi, progress: Progress) -> Flow {
        if let Some(unclean) = self.unclean.cells.get_mut(&visited.cell) {
            unclean.is_plain = !tlbi.op.is_nxs();
        }
        self.advance(visited, progress)
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
        let is_complete = sync.completes(visited.unclean.is_plain);
        match (visited.unclean.progress, sync) {
            (_, Sync::Loads) => self.miss(visited, Miss::WeakBarrier),
            (Progress::Unguarded, _) => self.advance(visited, Progress::Dsbed),
            (Progress::TlbiIpa, _) if is_complete => self.advance(visited, Progress::TlbiIpaDsbed),
            (Progress::Tlbied, _) if is_complete => self.clean(thread, visited.index, visited.at),
            (Progress::TlbiIpa | Progress::Tlbied, Sync::FullNxs) => self.miss(visited, Miss::XsAccesses),
            (Progress::TlbiIpa | Progress::Tlbied, _) => self.miss(visited, Miss::WeakBarrier),
            (Progress::Dsbed | Progress::TlbiIpaDsbed, _) => self.miss(visited, Miss::NoTlbiBefore),
        }
    }

    fn tlbi_entry(&mut self, thread: u32, tlbi: &Tlbi, visited: &Visited) -> Flow {
        if !tlbi.concerns(visited.table.kind) {
            return self.miss(visited, Miss::WrongStage);
        }
        if !tlbi.is_broadcast {
            self.miss(visited, Miss::NotBroadcast)?;
            // Recovery: the TLBI does not count.
            return if self.has(Quirk::LocalTlbiFires) { self.fire(&breach::TLBI_LOCAL, visited.cell) } else { Ok(()) };
        }
        if let Some(miss) = self.scope_miss(tlbi, (visited.table, visited.at), visited.unclean.old) {
            return self.miss(visited, miss);
        }
        if let Some(miss) = self.id_miss(thread, tlbi, visited.table, visited.unclean.old) {
            if self.lacks_vmid(thread, tlbi, visited.table) {
                self.fire(&breach::NO_CURRENT_ROOT, visited.cell)?;
            }
            return self.miss(visited, miss);
        }
        if visited.unclean.thread != thread {
            return self.miss(visited, Miss::OtherThread);
        }
        match (visited.unclean.progress, visited.table.stage(), tlbi.drops) {
            (Progress::Unguarded, ..) => self.miss(visited, Miss::NoBarrierBefore),
            (Progress::Dsbed, 1, _) | (Progress::Dsbed, _, Stages::Both) => {
                self.advance_by(visited, tlbi, Progress::Tlbied)
            }
            (Progress::Dsbed, _, Stages::Two) => self.advance_by(visited, tlbi, Progress::TlbiIpa),
            (Progress::Dsbed, _, Stages::One) => self.miss(visited, Miss::StageOneOnly),
            (Progress::TlbiIpa, ..) => self.miss(visited, Miss::NoBarrierBefore),
            (Progress::TlbiIpaDsbed, _, Stages::Two) => self.miss(visited, Miss::StageTwoAgain),
            (Progress::TlbiIpaDsbed, ..) => self.advance_by(visited, tlbi, Progress::Tlbied),
            // A DSB with nXS completes the second one.
            (Progress::Tlbied, stage, drops)
                if (stage == 1 || drops == Stages::Both) && visited.unclean.is_plain && tlbi.op.is_nxs() =>
            {
                self.advance_by(visited, tlbi, Progress::Tlbied)
            }
            (Progress::Tlbied, ..) => self.miss(visited, Miss::AlreadyDone),
        }
    }
}
