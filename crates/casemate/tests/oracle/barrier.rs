//! Barriers and TLB maintenance (2.5, 2.6).

use anytrace_casemate::{Domain, Sysreg, TlbiOp};

use super::descriptor::Shape;
use super::maintenance::maintenance;
use super::memory::{Automaton, Cell, Lis};
use super::model::{Act, Model};
use super::tables::Visit;
use super::verdict::{Fault, NOT_BROADCAST, NSH, UNCLEAN_CHILDREN};

/// What a DSB waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everything, as `ish`: also `sy` and `osh`, which contain it.
    Full,
    /// The same, for all but accesses with the XS attribute and TLBIs without nXS.
    FullNxs,
    /// Stores: `ishst` and those that contain it. It orders the write before a TLBI, and completes none.
    Stores,
    /// Loads: nothing that matters here.
    Loads,
    /// This core only.
    Local,
}

fn reach(domain: Domain) -> Reach {
    if let Some(plain) = domain.name().strip_suffix("nxs") {
        return if plain == "nsh" { Reach::Local } else { Reach::FullNxs };
    }
    match domain {
        Domain::Ish | Domain::Sy | Domain::Osh => Reach::Full,
        Domain::Ishst | Domain::Oshst | Domain::St => Reach::Stores,
        Domain::Nsh | Domain::Nshst | Domain::Nshld => Reach::Local,
        _ => Reach::Loads,
    }
}

impl Model {
    /// A DSB (2.5).
    pub(crate) fn dsb(&mut self, act: Act, domain: Domain) -> Result<(), Fault> {
        let reach = reach(domain);
        self.dsb_pending(act, reach)?;
        for address in self.unclean.clone() {
            let Some((cell, invalidator, lis)) = self.unclean_cell(address) else { continue };
            if !self.is_locked(act, &cell) {
                continue;
            }
            if reach == Reach::Local && self.options.quirks.nsh_fires {
                return Err(Fault::Fire(NSH));
            }
            if invalidator != act.thread {
                continue;
            }
            let is_complete = reach == Reach::Full || reach == Reach::FullNxs && self.sent_nxs.contains(&address);
            match lis {
                Lis::Unguarded if reach != Reach::Loads && reach != Reach::Local => self.set_lis(address, Lis::Dsbed),
                Lis::TlbiIpa if is_complete => self.set_lis(address, Lis::TlbiIpaDsbed),
                Lis::Tlbied if is_complete => self.clean(act, address, &cell)?,
                _ => {}
            }
        }
        let unclean = std::mem::take(&mut self.unclean);
        self.unclean = unclean.into_iter().filter(|at| self.unclean_cell(*at).is_some()).collect();
        for held in self.held.values_mut().filter(|held| held.thread == act.thread) {
            held.is_authorised = true;
        }
        self.finish_flushes(act, domain);
        Ok(())
    }

    fn unclean_cell(&self, address: u64) -> Option<(Cell, u32, Lis)> {
        let cell = *self.memory.pte(address)?;
        match cell.automaton {
            Automaton::Unclean { invalidator, lis } => Some((cell, invalidator, lis)),
            _ => None,
        }
    }

    fn set_lis(&mut self, address: u64, next: Lis) {
        if let Some(cell) = self.memory.get_mut(address)
            && let Automaton::Unclean { lis, .. } = &mut cell.automaton
        {
            *lis = next;
        }
    }

    fn clean(&mut self, act: Act, address: u64, cell: &Cell) -> Result<(), Fault> {
        let Some(place) = cell.desc else { return Ok(()) };
        let was_table = matches!(place.shape, Shape::Table(_));
        if was_table {
            if !self.children_clean(act, address)? {
                return Err(Fault::Fire(UNCLEAN_CHILDREN));
            }
            self.walk_children(act, address, Visit::Unmark)?;
        }
        self.set_desc(address, place.with(cell.value)?);
        if let Some(cell) = self.memory.get_mut(address) {
            cell.automaton = Automaton::Clean { was_table };
            cell.was_accessed = false;
        }
        Ok(())
    }

    /// May the thread clean this entry?
    fn is_locked(&self, act: Act, cell: &Cell) -> bool {
        if self.options.racy {
            return true;
        }
        if let Some(owner) = cell.thread() {
            return owner == act.thread;
        }
        let held = self.lock_of(cell.owner).and_then(|lock| self.held.get(&lock));
        held.is_some_and(|held| held.thread == act.thread)
    }

    /// A TLBI (2.6).
    pub(crate) fn tlbi(&mut self, act: Act, op: TlbiOp, operand: u64) -> Result<(), Fault> {
        let hcr = self.recorded(act, Sysreg::HcrEl2).unwrap_or(0);
        let tlbi = maintenance(op.name(), operand, hcr >> 34 & 1 == 1 && hcr >> 27 & 1 == 1);
        self.flush(act, &tlbi, operand);
        self.tlbi_pending(act, &tlbi);
        for address in self.unclean.clone() {
            let Some((cell, invalidator, lis)) = self.unclean_cell(address) else { continue };
            let Some(desc) = cell.desc.filter(|desc| tlbi.visits(desc.stage)) else { continue };
            if !self.is_locked(act, &cell) {
                continue;
            }
            if !tlbi.is_broadcast {
                if self.options.quirks.local_tlbi_fires {
                    return Err(Fault::Fire(NOT_BROADCAST));
                }
                continue;
            }
            let old = self.old_values.get(&address).copied().unwrap_or(0);
            if !self.reaches(act, &tlbi, address, &cell, &desc, old) || invalidator != act.thread {
                continue;
            }
            let is_one_stage = desc.stage.is_one();
            let next = match (lis, is_one_stage, tlbi.one, tlbi.two) {
                (Lis::Dsbed, true, ..) | (Lis::Dsbed, false, true, true) => Lis::Tlbied,
                (Lis::Dsbed, false, false, true) => Lis::TlbiIpa,
                (Lis::TlbiIpaDsbed, _, true, _) => Lis::Tlbied,
                // Another one, for a DSB with nXS to complete.
                (Lis::Tlbied, ..) if tlbi.is_nxs && (is_one_stage || tlbi.one && tlbi.two) => Lis::Tlbied,
                _ => continue,
            };
            self.set_lis(address, next);
            if tlbi.is_nxs {
                self.sent_nxs.insert(address);
            } else {
                self.sent_nxs.remove(&address);
            }
        }
        Ok(())
    }

    /// A TLBI that is in no table may have dropped whatever is not clean.
    pub(crate) fn unknown_tlbi(&mut self) {
        self.doubts.push("unmodelled-tlbi");
    }
}
