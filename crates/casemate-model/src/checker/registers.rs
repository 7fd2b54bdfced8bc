//! System registers, roots, and the hints about tables.

use super::handover::Handover;
use super::nested::NoRoot;
use super::walk::Visit;
use super::{Checker, Flow, Stop};
use crate::bits::Bits;
use crate::breach::breach;
use crate::descriptor::{Granule, Start};
use crate::memory::{NOWHERE, PAGE_BYTES, Table, position};
use crate::quirk::Quirk;
use crate::record::Sysreg;
use crate::roots::Root;
use crate::tree::TreeKind;
use crate::watch::Watch;

/// The reference's table of roots.
const SLOTS: usize = 64;

/// Bits 47:1 of a base register.
const BASE_MASK: u64 = 0xffff_ffff_fffe;

/// Bits 47:6, where bits 5:2 are bits 51:48 of the base.
const WIDE_BASE_MASK: u64 = 0xffff_ffff_ffc0;

/// The value of a register that was never written.
fn default_of(register: Sysreg) -> Option<u64> {
    match register {
        Sysreg::TcrEl2 | Sysreg::VtcrEl2 => Some(16),
        Sysreg::HcrEl2 | Sysreg::SctlrEl2 => Some(1),
        Sysreg::MairEl2 => Some(0),
        Sysreg::VttbrEl2 | Sysreg::Ttbr0El2 => None,
        Sysreg::Ttbr1El2 | Sysreg::Ttbr0El1 | Sysreg::Ttbr1El1 => None,
        Sysreg::TcrEl1 => Some(16),
        Sysreg::SctlrEl1 => Some(1),
        Sysreg::MairEl1 => Some(0),
    }
}

/// The kinds of trees that the reference does not follow.
const OTHERS: [TreeKind; 3] = [TreeKind::El2Upper, TreeKind::El1, TreeKind::El1Upper];

/// What a root is registered with.
#[derive(Debug, Clone, Copy)]
struct Ids {
    id: u64,
    vmid: u64,
    stage_two: Option<u64>,
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
        self.known(thread, Sysreg::HcrEl2).is_some_and(|value| value >> 34 & 1 != 0)
    }

    /// What a thread wrote to a register.
    pub(super) fn known(&self, thread: u32, register: Sysreg) -> Option<u64> {
        self.threads.get(thread).and_then(|thread| thread.register(register))
    }

    #[inline(never)]
    pub(crate) fn write_register(&mut self, thread: u32, register: Sysreg, value: u64) -> Flow {
        let register = if self.has_host_extensions(thread) { register.redirected() } else { register };
        self.write_of_guest(thread, register, value)
    }

    /// The same for a register whose name is not redirected.
    pub(super) fn write_of_guest(&mut self, thread: u32, register: Sysreg, value: u64) -> Flow {
        if !self.has(Quirk::OtherTreesUnknown) {
            return self.write_followed(thread, register, value);
        }
        if TreeKind::of_base(register).is_some_and(|kind| !kind.is_of_reference()) {
            self.record_register(thread, register, value);
            return self.fire(&breach::UNMODELLED_REGIME, value & BASE_MASK);
        }
        self.write_of_reference(thread, register, value)
    }

    /// A write to a register of the trees that the reference follows, or to another one.
    fn write_of_reference(&mut self, thread: u32, register: Sysreg, value: u64) -> Flow {
        let (kind, control) = match register {
            Sysreg::Ttbr0El2 | Sysreg::SctlrEl2 => (TreeKind::El2, Sysreg::SctlrEl2),
            Sysreg::VttbrEl2 | Sysreg::HcrEl2 => (TreeKind::StageTwo, Sysreg::HcrEl2),
            _ => {
                self.record_register(thread, register, value);
                return Ok(());
            }
        };
        let was_enabled = self.is_enabled(thread, control);
        if register != control {
            if was_enabled {
                self.activate(thread, kind, value)?;
            }
            self.record_register(thread, register, value);
            return Ok(());
        }
        self.record_register(thread, register, value);
        if was_enabled || value & 1 == 0 {
            return Ok(());
        }
        match self.known(thread, kind.base()) {
            Some(value) => self.activate(thread, kind, value),
            None if self.options.no_sysreg => self.fire(&breach::UNSET_REGISTER, NOWHERE),
            None if self.has(Quirk::UnreadBaseAborts) => self.fire(&breach::ABORT_NO_BASE, NOWHERE),
            None => Ok(()),
        }
    }

    /// A write to a register, with the trees that it turns on and off.
    fn write_followed(&mut self, thread: u32, register: Sysreg, value: u64) -> Flow {
        let is_switch = !matches!(register, Sysreg::VttbrEl2 | Sysreg::VtcrEl2 | Sysreg::MairEl2 | Sysreg::MairEl1);
        if !is_switch || register == Sysreg::Ttbr0El2 {
            return self.write_of_reference(thread, register, value);
        }
        let was_used = OTHERS.map(|kind| self.is_used(thread, kind));
        self.write_of_reference(thread, register, value)?;
        for (kind, was_used) in OTHERS.into_iter().zip(was_used) {
            let is_written = kind.base() == register;
            match (was_used && !is_written, self.is_used(thread, kind), self.known(thread, kind.base())) {
                (false, true, Some(base)) => self.activate_other(thread, kind, base)?,
                (true, false, _) => self.leave(thread, kind),
                _ => {}
            }
        }
        Ok(())
    }

    /// True when the thread's translations may walk a tree that the reference does not follow: of the regimes of its
    /// HCR_EL2, with stage 1 on, and not switched off by EPD0 or EPD1.
    fn is_used(&self, thread: u32, kind: TreeKind) -> bool {
        let hcr = self.known(thread, Sysreg::HcrEl2).unwrap_or(0);
        let has = |bit: u32| hcr >> bit & 1 != 0;
        // TGE leaves no stage 1 of EL1&0, and neither does DC.
        let is_regime = if kind.is_el1() { !has(27) && !has(12) } else { has(34) };
        let off = if kind.is_upper() { 23 } else { 7 };
        let is_off = self.known(thread, kind.control()).is_some_and(|control| control >> off & 1 != 0);
        is_regime && !is_off && self.is_enabled(thread, kind.switch())
    }

    /// Notes what a thread wrote.
    fn record_register(&mut self, thread: u32, register: Sysreg, value: u64) {
        if let Some(known) = self.threads.make(thread)
            && let Some(place) = known.registers.get_mut(register as usize)
        {
            *place = Some(value);
        }
    }

    fn activate(&mut self, thread: u32, kind: TreeKind, value: u64) -> Flow {
        let base = self.base(thread, kind, value);
        let mut id = self.id(thread, kind, self.holder_of_id(thread, kind, value));
        let is_blind = self.has(Quirk::StageBlindIds);
        if kind == TreeKind::El2 && id != 0 && !self.has_host_extensions(thread) {
            self.fire(&breach::ASID_RESERVED, base)?;
            // Recovery: the ASID is 0.
            id = 0;
        }
        let known = self.roots.slot_in(kind, base, is_blind);
        let slot = match known {
            Some(slot) => {
                if self.roots.id_in(slot) != Some(id) {
                    // Recovery: the root keeps its identifier.
                    self.fire(&breach::ROOT_OTHER_ID, base)?;
                } else if self.is_taken(kind, id, known) {
                    self.fire(&breach::DUPLICATE_ROOT_ID, base)?;
                }
                Some(slot)
            }
            None => {
                if self.is_taken(kind, id, None) {
                    // Recovery: both roots have it.
                    self.fire(&breach::DUPLICATE_ROOT_ID, base)?;
                }
                self.register_root(thread, kind, base, Ids { id, vmid: 0, stage_two: None })?
            }
        };
        if let Some(slot) = slot {
            if let Some(id) = self.roots.id_in(slot).filter(|_| self.tracks_reuse()) {
                self.roots.set_id(kind, id, is_blind, slot);
            }
            self.take_identifier(thread, slot)?;
            self.switch(thread, slot);
        }
        Ok(())
    }

    /// True when another root may not have an identifier: it belongs to a registered root, or to one that is in use.
    fn is_taken(&self, kind: TreeKind, id: u64, known: Option<usize>) -> bool {
        let owner = self.roots.slot_of_id(kind, id, self.has(Quirk::StageBlindIds));
        let Some(owner) = owner.filter(|owner| Some(*owner) != known) else { return false };
        let users = || self.roots.slots.get(owner).and_then(Option::as_ref).map_or(0, |root| root.users);
        if self.tracks_reuse() { users() > 0 } else { known.is_none() }
    }

    /// The address in a base register, as the thread's other registers are.
    fn base(&self, thread: u32, kind: TreeKind, value: u64) -> u64 {
        match self.known(thread, kind.control()) {
            Some(control) if self.control(thread, kind, control).has_wide_base() => {
                value & WIDE_BASE_MASK | (value >> 2 & 0xf) << 48
            }
            _ => value & BASE_MASK,
        }
    }

    /// The VMID or ASID with which a thread uses the tree of a base register.
    fn id(&self, thread: u32, kind: TreeKind, value: u64) -> u64 {
        if self.has(Quirk::IdsAreWide) {
            return value >> 48;
        }
        let register = |register| self.known(thread, register).unwrap_or(0);
        let control = register(kind.control());
        let is_wide = match kind {
            TreeKind::StageTwo => control >> 19 & 1 != 0,
            // Without E2H there is no ASID: any is a violation.
            TreeKind::El2 if !self.has_host_extensions(thread) => true,
            _ => control >> 36 & 1 != 0,
        };
        if is_wide { value >> 48 } else { value >> 48 & 0xff }
    }

    /// The value of the base register that has the ASID of both halves: TTBR1 where TCR has A1, else TTBR0. `value`: that
    /// of the register that is written.
    fn holder_of_id(&self, thread: u32, kind: TreeKind, value: u64) -> u64 {
        let has_halves = kind.is_el1() || kind.stage() == 1 && self.has_host_extensions(thread);
        if !has_halves || self.has(Quirk::OtherTreesUnknown) {
            return value;
        }
        let has_upper_id = self.known(thread, kind.control()).is_some_and(|control| control >> 22 & 1 != 0);
        let holder = match (kind.is_el1(), has_upper_id) {
            (true, false) => TreeKind::El1,
            (true, true) => TreeKind::El1Upper,
            (false, false) => TreeKind::El2,
            (false, true) => TreeKind::El2Upper,
        };
        if holder == kind { value } else { self.known(thread, holder.base()).unwrap_or(0) }
    }

    /// The tree of a base register that the reference does not follow becomes the thread's.
    fn activate_other(&mut self, thread: u32, kind: TreeKind, value: u64) -> Flow {
        let base = self.base(thread, kind, value);
        let is_blind = self.has(Quirk::StageBlindIds);
        let id = self.id(thread, kind, self.holder_of_id(thread, kind, value));
        let vmid = if kind.is_el1() { self.vmid(thread) } else { 0 };
        if let Some(slot) = self.roots.slot_in(kind, base, is_blind) {
            if let Some(root) = self.roots.root_mut(slot) {
                root.has_other_ids |= root.id != id;
                root.has_other_vmids |= root.vmid != vmid;
                (root.id, root.vmid) = (id, vmid);
            }
            self.take_identifier(thread, slot)?;
            self.switch(thread, slot);
            return Ok(());
        }
        let stage_two = match self.stage_two(thread, kind) {
            Ok(stage_two) => stage_two,
            Err(NoRoot) => return self.unfollowed(thread, kind, base),
        };
        let is_known = self.memory.find(base).and_then(|index| self.memory.pages.get(index)).is_some_and(|page| {
            // A table of a guest is nothing that a trace need contain, and one of two trees is not followed.
            !page.initialised.is_empty() && page.entry.is_empty()
        });
        if !is_known || stage_two.is_some_and(|root| !self.maps_to_itself(root, base)) {
            return self.unfollowed(thread, kind, base);
        }
        match self.register_root(thread, kind, base, Ids { id, vmid, stage_two })? {
            Some(slot) => {
                self.take_identifier(thread, slot)?;
                self.switch(thread, slot);
            }
            None => self.leave(thread, kind),
        }
        Ok(())
    }

    fn unfollowed(&mut self, thread: u32, kind: TreeKind, base: u64) -> Flow {
        self.leave(thread, kind);
        self.fire(&breach::UNMODELLED_REGIME, base)
    }

    fn register_root(&mut self, thread: u32, kind: TreeKind, base: u64, ids: Ids) -> Result<Option<usize>, Stop> {
        let is_blind = self.has(Quirk::StageBlindIds);
        if self.has(Quirk::TableLimits) && self.roots.count() >= SLOTS {
            self.fire(&breach::TOO_MANY_ROOTS, base)?;
        }
        // Recovery from a bad geometry: the root is not registered.
        let Some(start) = self.geometry(thread, kind)? else { return Ok(None) };
        let Start { level, tables, format, pages, bits } = start;
        let may_be_small = format.granule != Granule::K4 || level < 0 || !kind.is_of_reference();
        if may_be_small && !base.is_multiple_of(PAGE_BYTES) {
            // A first table of few entries need not begin at a page.
            self.fire(&breach::UNMODELLED_GEOMETRY, base)?;
            return Ok(None);
        }
        let input = if kind.is_upper() { u64::MAX << bits.min(63) } else { 0 };
        let Ids { id, vmid, stage_two } = ids;
        let (stage, users) = (kind.stage(), 0);
        let serial = self.tags.serial;
        self.tags.serial += 1;
        let (has_other_ids, has_other_vmids) = (false, false);
        let root = Root {
            stage,
            kind,
            base,
            id,
            vmid,
            has_other_ids,
            has_other_vmids,
            stage_two,
            input,
            users,
            level,
            tables,
            format,
            pages,
            serial,
        };
        let slot = self.roots.insert(root, is_blind, !self.tracks_reuse());
        let top = Table { root: base, input, parent: NOWHERE, thread, level, kind, format };
        self.traverse_root(thread, Visit::Mark, top, pages)?;
        Ok(Some(slot))
    }

    fn switch(&mut self, thread: u32, slot: usize) {
        let Some(Some(root)) = self.roots.slots.get(slot) else { return };
        let kind = root.kind;
        let Some(known) = self.threads.make(thread) else { return };
        let Some(current) = known.current.get_mut(kind.index()) else { return };
        let before = current.replace(slot);
        if let Some(before) = before {
            self.roots.change_users(before, false);
        }
        self.roots.change_users(slot, true);
    }

    /// The thread walks no tree of a kind any more.
    fn leave(&mut self, thread: u32, kind: TreeKind) {
        self.leave_identifier(thread, kind);
        let Some(known) = self.threads.make(thread) else { return };
        let Some(before) = known.current.get_mut(kind.index()).and_then(Option::take) else { return };
        self.roots.change_users(before, false);
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
        let input = root.map_or(0, |root| root.input);
        let top = Table { input, parent: NOWHERE, thread, ..table };
        if self.has_unclean(thread, top, pages)? || self.has_resized(table.root, table.kind) {
            self.fire(&breach::RELEASE_UNCLEAN, location)?;
        }
        let (Some(slot), Some(root)) = (slot, root) else {
            // Recovery: nothing is released.
            return self.fire(&breach::RELEASE_NO_ROOT, location);
        };
        if root.users > 0 {
            self.fire(&breach::RELEASE_IN_USE, location)?;
        }
        self.note_ghost(&root);
        self.traverse_root(thread, Visit::Unmark, top, pages)?;
        let is_exclusive = !self.tracks_reuse();
        self.roots.remove(slot, is_blind, is_exclusive);
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
