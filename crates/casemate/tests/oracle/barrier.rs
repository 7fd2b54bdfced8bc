//! Barriers and TLB maintenance (2.5, 2.6).

use anytrace_casemate::{Domain, TlbiOp};

use super::descriptor::{Descriptor, Shape, Stage, explode};
use super::memory::{Automaton, Cell, Lis};
use super::model::{Act, Model};
use super::tables::Visit;
use super::verdict::{Fault, NOT_BROADCAST, NSH, UNCLEAN_CHILDREN};

/// What a DSB waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everything, as `ish`: also `sy` and `osh`, which contain it.
    Full,
    /// Stores: `ishst` and those that contain it. It orders the write before a TLBI, and completes none.
    Stores,
    /// Loads: nothing that matters here.
    Loads,
    /// This core only.
    Local,
}

fn reach(domain: Domain) -> Reach {
    match domain {
        Domain::Ish | Domain::Sy | Domain::Osh => Reach::Full,
        Domain::Ishst | Domain::Oshst | Domain::St => Reach::Stores,
        Domain::Nsh | Domain::Nshst | Domain::Nshld => Reach::Local,
        _ => Reach::Loads,
    }
}

/// Which translations a TLBI names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    All,
    ById,
    Address,
}

/// The columns of the table of 2.6.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Maintenance {
    pub(crate) is_el2: bool,
    /// Stages it drops.
    pub(crate) one: bool,
    pub(crate) two: bool,
    pub(crate) is_broadcast: bool,
    pub(crate) method: Method,
    last_level: bool,
    /// Page number, TTL, ASID.
    pub(crate) operand: u64,
}

fn maintenance(op: TlbiOp, operand: u64) -> Maintenance {
    let (is_el2, one, two, is_broadcast, method, last_level) = match op {
        TlbiOp::Vmalls12e1 => (false, true, true, false, Method::ById, false),
        TlbiOp::Vmalls12e1is => (false, true, true, true, Method::ById, false),
        TlbiOp::Vmalle1 => (false, true, false, false, Method::ById, false),
        TlbiOp::Vmalle1is => (false, true, false, true, Method::ById, false),
        TlbiOp::Alle1 => (false, true, true, false, Method::All, false),
        TlbiOp::Alle1is => (false, true, true, true, Method::All, false),
        TlbiOp::Alle2 => (true, true, false, false, Method::All, false),
        TlbiOp::Alle2is => (true, true, false, true, Method::All, false),
        TlbiOp::Vae2 => (true, true, false, false, Method::Address, false),
        TlbiOp::Vae2is => (true, true, false, true, Method::Address, false),
        TlbiOp::Vale2 => (true, true, false, false, Method::Address, true),
        TlbiOp::Vale2is => (true, true, false, true, Method::Address, true),
        TlbiOp::Ipas2e1 => (false, false, true, false, Method::Address, false),
        TlbiOp::Ipas2e1is => (false, false, true, true, Method::Address, false),
        TlbiOp::Ipas2le1is => (false, false, true, true, Method::Address, true),
    };
    Maintenance { is_el2, one, two, is_broadcast, method, last_level, operand }
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
            match (lis, reach) {
                (Lis::Unguarded, Reach::Full | Reach::Stores) => self.set_lis(address, Lis::Dsbed),
                (Lis::TlbiIpa, Reach::Full) => self.set_lis(address, Lis::TlbiIpaDsbed),
                (Lis::Tlbied, Reach::Full) => self.clean(act, address, &cell)?,
                _ => {}
            }
        }
        let unclean = std::mem::take(&mut self.unclean);
        self.unclean = unclean.into_iter().filter(|at| self.unclean_cell(*at).is_some()).collect();
        for held in self.held.values_mut().filter(|held| held.thread == act.thread) {
            held.is_authorised = true;
        }
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
        self.set_desc(address, explode(place.input, cell.value, place.level, place.stage)?);
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
        let tlbi = maintenance(op, operand);
        self.tlbi_pending(act, &tlbi);
        let visited = if tlbi.is_el2 { Stage::One } else { Stage::Two };
        for address in self.unclean.clone() {
            let Some((cell, invalidator, lis)) = self.unclean_cell(address) else { continue };
            let Some(desc) = cell.desc.filter(|desc| desc.stage == visited) else { continue };
            if !self.is_locked(act, &cell) {
                continue;
            }
            if !tlbi.is_broadcast {
                if self.options.quirks.local_tlbi_fires {
                    return Err(Fault::Fire(NOT_BROADCAST));
                }
                continue;
            }
            if !self.reaches(act, &tlbi, address, &cell, &desc) || invalidator != act.thread {
                continue;
            }
            let next = match (lis, tlbi.is_el2, tlbi.one, tlbi.two) {
                (Lis::Dsbed, true, ..) | (Lis::Dsbed, false, true, true) => Lis::Tlbied,
                (Lis::Dsbed, false, false, true) => Lis::TlbiIpa,
                (Lis::TlbiIpaDsbed, _, true, _) => Lis::Tlbied,
                _ => continue,
            };
            self.set_lis(address, next);
        }
        Ok(())
    }

    /// Does the TLBI name the entry?
    pub(crate) fn reaches(
        &self,
        act: Act,
        tlbi: &Maintenance,
        address_of_cell: u64,
        cell: &Cell,
        desc: &Descriptor,
    ) -> bool {
        match tlbi.method {
            Method::All => true,
            Method::ById => self.options.quirks.by_id_promoted || self.id_matches(act, tlbi, cell, desc),
            Method::Address => {
                let address = (tlbi.operand & ((1 << 44) - 1)) << 12;
                let is_last = desc.level == 3 || !self.options.quirks.last_level_is_3;
                desc.shape == Shape::Map
                    && desc.covers(address)
                    && (!tlbi.last_level || is_last)
                    && self.ttl_matches(tlbi, address_of_cell, desc)
                    && self.id_matches(act, tlbi, cell, desc)
            }
        }
    }

    /// TTL: granule in bits 3:2 (0 none, 1 for 4 KiB), level in bits 1:0 (0 none).
    fn ttl_matches(&self, tlbi: &Maintenance, cell: u64, desc: &Descriptor) -> bool {
        let ttl = tlbi.operand >> 44 & 0xf;
        self.options.quirks.ttl_ignored
            || match (ttl >> 2, ttl & 3) {
                (0, _) | (1, 0) => true,
                (1, level) => level == desc.level && !self.is_in_old_block(cell),
                _ => false,
            }
    }

    fn id_matches(&self, act: Act, tlbi: &Maintenance, cell: &Cell, desc: &Descriptor) -> bool {
        let quirks = self.options.quirks;
        let Some(slot) = self.root_slot(desc.stage, |root| root.base == cell.owner) else { return false };
        let id = self.roots[slot].id;
        if tlbi.is_el2 {
            let asid = if quirks.ids_asid_zero { 0 } else { tlbi.operand >> 48 };
            return asid == id;
        }
        let current = self.current.get(&(act.thread, Stage::Two)).copied().flatten();
        match current {
            Some(current) => self.roots[current].id == id,
            None if quirks.no_vttbr_is_slot_0 => self.roots.first().map_or(0, |root| root.id) == id,
            None => false,
        }
    }
}
