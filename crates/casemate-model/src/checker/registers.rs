//! System registers, roots, and the hints about tables.

use super::handover::Handover;
use super::walk::Visit;
use super::{Checker, Flow, Stop};
use crate::bits::Bits;
use crate::breach::breach;
use crate::descriptor::{Granule, Start};
use crate::memory::{NOWHERE, PAGE_BYTES, Table, position};
use crate::quirk::Quirk;
use crate::record::Sysreg;
use crate::roots::Root;
use crate::watch::Watch;

/// The reference's table of roots.
const SLOTS: usize = 64;

/// Bits 47:1 of a base register.
const BASE_MASK: u64 = 0xffff_ffff_fffe;

/// The value of a register that was never written.
fn default_of(register: Sysreg) -> Option<u64> {
    match register {
        Sysreg::TcrEl2 | Sysreg::VtcrEl2 => Some(16),
        Sysreg::HcrEl2 | Sysreg::SctlrEl2 => Some(1),
        Sysreg::MairEl2 => Some(0),
        Sysreg::VttbrEl2 | Sysreg::Ttbr0El2 => None,
        // They decide about nothing that is followed.
        Sysreg::Ttbr1El2 | Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 => None,
        Sysreg::TcrEl1 | Sysreg::SctlrEl1 | Sysreg::MairEl1 => None,
    }
}

impl<W: Watch> Checker<W> {
    /// The register as the thread reads it; a violation is recorded if it has no value.
    pub(crate) fn register(&mut self, thread: u32, register: Sysreg) -> Result<Option<u64>, Stop> {
        if let Some(value) = self.threads.get(thread).and_then(|thread| thread.register(register)) {
            return Ok(Some(value));
        }
        if self.options.no_sysreg {
            self.fire(&breach::UNSET_REGISTER, NOWHERE)?;
        }
        Ok(default_of(register))
    }

    fn is_enabled(&self, thread: u32, control: Sysreg) -> bool {
        match self.threads.get(thread).and_then(|thread| thread.register(control)) {
            Some(value) => value & 1 != 0,
            None => !self.options.no_sysreg,
        }
    }

    /// True when HCR_EL2 of the thread has E2H set: EL2 has ASIDs, and names of EL1 mean registers of EL2.
    pub(super) fn has_host_extensions(&self, thread: u32) -> bool {
        let hcr = self.threads.get(thread).and_then(|thread| thread.register(Sysreg::HcrEl2));
        hcr.is_some_and(|value| value >> 34 & 1 != 0)
    }

    pub(crate) fn write_register(&mut self, thread: u32, register: Sysreg, value: u64) -> Flow {
        let register = match register {
            Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 | Sysreg::TcrEl1 | Sysreg::SctlrEl1 | Sysreg::MairEl1
                if self.has_host_extensions(thread) =>
            {
                register.redirected()
            }
            register => register,
        };
        let (stage, control) = match register {
            Sysreg::Ttbr0El2 | Sysreg::SctlrEl2 => (1, Sysreg::SctlrEl2),
            Sysreg::VttbrEl2 | Sysreg::HcrEl2 => (2, Sysreg::HcrEl2),
            Sysreg::Ttbr1El2 | Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 => {
                self.record_register(thread, register, value);
                return self.fire(&breach::UNMODELLED_REGIME, value & BASE_MASK);
            }
            Sysreg::VtcrEl2 | Sysreg::TcrEl2 | Sysreg::MairEl2 => {
                self.record_register(thread, register, value);
                return Ok(());
            }
            Sysreg::TcrEl1 | Sysreg::SctlrEl1 | Sysreg::MairEl1 => {
                self.record_register(thread, register, value);
                return Ok(());
            }
        };
        let was_enabled = self.is_enabled(thread, control);
        if register != control {
            if was_enabled {
                self.activate(thread, stage, value)?;
            }
            self.record_register(thread, register, value);
            return Ok(());
        }
        self.record_register(thread, register, value);
        if was_enabled || value & 1 == 0 {
            return Ok(());
        }
        let base = if stage == 1 { Sysreg::Ttbr0El2 } else { Sysreg::VttbrEl2 };
        match self.threads.get(thread).and_then(|thread| thread.register(base)) {
            Some(value) => self.activate(thread, stage, value),
            None if self.options.no_sysreg => self.fire(&breach::UNSET_REGISTER, NOWHERE),
            None if self.has(Quirk::UnreadBaseAborts) => self.fire(&breach::ABORT_NO_BASE, NOWHERE),
            None => Ok(()),
        }
    }

    fn record_register(&mut self, thread: u32, register: Sysreg, value: u64) {
        if let Some(known) = self.threads.make(thread)
            && let Some(place) = known.registers.get_mut(register as usize)
        {
            *place = Some(value);
        }
    }

    fn activate(&mut self, thread: u32, stage: u8, value: u64) -> Flow {
        let (base, mut id) = self.base_and_id(thread, stage, value);
        let is_blind = self.has(Quirk::StageBlindIds);
        if stage == 1 && id != 0 && !self.has_host_extensions(thread) {
            self.fire(&breach::ASID_RESERVED, base)?;
            // Recovery: the ASID is 0.
            id = 0;
        }
        let known = self.roots.slot_in(stage, base, is_blind);
        let slot = match known {
            Some(slot) => {
                if self.roots.id_in(slot) != Some(id) {
                    // Recovery: the root keeps its identifier.
                    self.fire(&breach::ROOT_OTHER_ID, base)?;
                }
                Some(slot)
            }
            None => self.register_root(thread, stage, base, id)?,
        };
        if let Some(slot) = slot {
            self.switch(thread, slot);
        }
        Ok(())
    }

    /// The address of the first table, and the VMID or ASID.
    fn base_and_id(&self, thread: u32, stage: u8, value: u64) -> (u64, u64) {
        let (base, id) = (value & BASE_MASK, value >> 48);
        if self.has(Quirk::IdsAreWide) {
            return (base, id);
        }
        let register = |register| self.threads.get(thread).and_then(|thread| thread.register(register)).unwrap_or(0);
        let is_wide = match stage {
            // Without E2H there is no ASID: any is a violation.
            1 => !self.has_host_extensions(thread) || register(Sysreg::TcrEl2) >> 36 & 1 != 0,
            _ => register(Sysreg::VtcrEl2) >> 19 & 1 != 0,
        };
        (base, if is_wide { id } else { id & 0xff })
    }

    fn register_root(&mut self, thread: u32, stage: u8, base: u64, id: u64) -> Result<Option<usize>, Stop> {
        let is_blind = self.has(Quirk::StageBlindIds);
        if self.roots.has_id(stage, id, is_blind) {
            // Recovery: both roots have it.
            self.fire(&breach::DUPLICATE_ROOT_ID, base)?;
        }
        if self.has(Quirk::TableLimits) && self.roots.count() >= SLOTS {
            self.fire(&breach::TOO_MANY_ROOTS, base)?;
        }
        // Recovery from a bad geometry: the root is not registered.
        let Some(start) = self.geometry(thread, stage)? else { return Ok(None) };
        let Start { level, tables, format, pages } = start;
        if format.granule != Granule::K4 && !base.is_multiple_of(PAGE_BYTES) {
            // A first table of few entries need not begin at a page.
            self.fire(&breach::UNMODELLED_GEOMETRY, base)?;
            return Ok(None);
        }
        let root = Root { stage, base, id, users: 0, level, tables, format, pages };
        let slot = self.roots.insert(root, is_blind);
        let top = Table { root: base, input: 0, parent: NOWHERE, thread, level, stage, format };
        self.traverse_root(thread, Visit::Mark, top, pages)?;
        Ok(Some(slot))
    }

    fn switch(&mut self, thread: u32, slot: usize) {
        let Some(Some(root)) = self.roots.slots.get(slot) else { return };
        let stage = usize::from(root.stage) - 1;
        let Some(known) = self.threads.make(thread) else { return };
        let Some(current) = known.current.get_mut(stage) else { return };
        let before = current.replace(slot);
        if let Some(before) = before {
            self.roots.change_users(before, false);
        }
        self.roots.change_users(slot, true);
    }

    pub(crate) fn set_owner_root(&mut self, location: u64) -> Flow {
        self.hand_over(location & !(PAGE_BYTES - 1), PAGE_BYTES, Handover::OwnerRoot);
        if location.is_multiple_of(PAGE_BYTES) && self.has(Quirk::SetOwnerRootAlignedEmpty) {
            return Ok(());
        }
        let Some(page) = self.memory.find(location).and_then(|index| self.memory.pages.get(index)) else {
            return Ok(());
        };
        let first = page.entry.ones().next().map(|at| page.address(at));
        match first {
            Some(word) => self.fire(&breach::OWNER_OF_ENTRY, word),
            None => Ok(()),
        }
    }

    pub(crate) fn set_thread_owner(&mut self, word: u64, value: u64) -> Flow {
        let at = position(word);
        let found = self.memory.find(word).and_then(|index| self.memory.pages.get_mut(index));
        let Some(page) = found.filter(|page| page.initialised.has(at)) else {
            return if self.options.ignores_uninitialised {
                Ok(())
            } else {
                self.fire(&breach::OWNER_UNINITIALISED, word)
            };
        };
        let table = page.table_of(at);
        if !page.entry.has(at) {
            return self.fire(&breach::OWNER_NON_ENTRY, word);
        }
        if table.level != 3 {
            return self.fire(&breach::OWNER_NON_LEAF, word);
        }
        let owner = value as u32 as i32;
        page.set_owner(at, owner);
        self.has_thread_owners = true;
        self.unclean.move_to(word, table.root, owner);
        Ok(())
    }

    pub(crate) fn release(&mut self, thread: u32, location: u64) -> Flow {
        let at = position(location);
        let index = self.memory.find(location);
        let found = index.and_then(|index| self.memory.pages.get(index));
        let is_initialised = found.is_some_and(|page| page.initialised.has(at));
        if !is_initialised && self.options.ignores_uninitialised {
            return Ok(());
        }
        let table = found.filter(|page| page.entry.has(at)).map(|page| page.table_of(at));
        self.forget_association(location);
        let Some(table) = table else { return Ok(()) };
        let is_blind = self.has(Quirk::StageBlindIds);
        let slot = self.roots.slot_of(location, is_blind);
        let root = slot.and_then(|slot| self.roots.slots.get(slot).copied().flatten());
        let pages = root.map_or(1, |root| root.pages);
        let top = Table { input: 0, parent: NOWHERE, thread, ..table };
        if self.has_unclean(thread, top, pages)? || self.has_resized(table.root, table.stage) {
            self.fire(&breach::RELEASE_UNCLEAN, location)?;
        }
        let (Some(slot), Some(root)) = (slot, root) else {
            // Recovery: nothing is released.
            return self.fire(&breach::RELEASE_NO_ROOT, location);
        };
        if root.users > 0 {
            self.fire(&breach::RELEASE_IN_USE, location)?;
        }
        self.traverse_root(thread, Visit::Unmark, top, pages)?;
        self.roots.remove(slot, is_blind);
        Ok(())
    }

    fn has_unclean(&mut self, thread: u32, top: Table, pages: u16) -> Result<bool, Stop> {
        let is_walked = self.is_irregular || self.has_thread_owners || self.options.no_sysreg || pages > 1;
        let page = self.memory.peek(top.root).and_then(|index| self.memory.pages.get(index));
        match page {
            Some(page)
                if !is_walked && page.mixed.is_empty() && page.entry == Bits::ALL && page.table.level == top.level =>
            {
                Ok(page.unclean_below > 0)
            }
            _ => self.traverse_root(thread, Visit::Unclean, top, pages),
        }
    }
}
