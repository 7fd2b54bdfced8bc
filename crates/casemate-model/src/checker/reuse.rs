//! VMIDs and ASIDs that get another tree: TLBs must have dropped the entries of the one before (Arm ARM D8.16 and D8.17:
//! entries are found by their VMID and ASID, global ones by their VMID alone). What may be in whose TLBs is the view of
//! one processor: TLBs are filled only by translations of the thread that walks a tree.
//!
//! The orders in which software does that are those of Linux: `check_and_switch_context` of arch/arm64/mm/context.c,
//! `cpu_uninstall_idmap` and the comments there, and `kvm_arm_vmid_update`: secondary sources.

use alloc::format;
use alloc::string::String;

use super::tlbi::Tlbi;
use super::{Checker, Flow};
use crate::attributes::NOT_GLOBAL;
use crate::breach::breach;
use crate::descriptor::Descriptor;
use crate::memory::{PAGE_BYTES, Table, position};
use crate::quirk::Quirk;
use crate::record::Domain;
use crate::roots::Root;
use crate::tags::{Drop, Held, IN_USE, Tags};
use crate::tlbi::{Stages, TlbiScope};
use crate::tree::TreeKind;
use crate::watch::Watch;

/// Two trees that a TLB cannot tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reuse {
    /// The base of the tree whose entries TLBs may contain.
    pub other: u64,
    /// What both translate.
    pub kind: TreeKind,
    /// The VMID, and the ASID if there is one, of the tree that is used from now on.
    pub vmid: Option<u64>,
    /// The ASID.
    pub asid: Option<u64>,
    /// The thread whose TLBs contain them.
    pub thread: u32,
    /// The thread used the other tree until this record.
    pub is_direct: bool,
}

impl Reuse {
    /// The identifier that both trees have: `VMID 1`, `ASID 2 of VMID 1`.
    pub fn identifier(&self) -> String {
        match (self.asid, self.vmid) {
            (Some(asid), Some(vmid)) => format!("ASID {asid} of VMID {vmid}"),
            (Some(asid), None) => format!("ASID {asid}"),
            (None, vmid) => format!("VMID {}", vmid.unwrap_or(0)),
        }
    }

    /// For people: `TLBs of thread 0 may contain entries of the tree at 0x1000 under VMID 1`.
    pub fn words(&self) -> String {
        let (thread, other) = (self.thread, self.other);
        let end = if self.is_direct { ", which it used until now" } else { "" };
        format!("TLBs of thread {thread} may contain entries of the tree at {other:#x}{end}; {}", self.identifier())
    }
}

impl<W: Watch> Checker<W> {
    /// True where identifiers are compared.
    #[inline]
    pub(super) fn tracks_reuse(&self) -> bool {
        !self.has(Quirk::ReuseIgnored)
    }

    /// A thread is about to use a root.
    pub(super) fn take_identifier(&mut self, thread: u32, slot: usize) -> Flow {
        if !self.tracks_reuse() {
            return Ok(());
        }
        let Some(root) = self.roots.slots.get(slot).and_then(Option::as_ref) else { return Ok(()) };
        let key = key_of(thread, root);
        let place = root.kind.index();
        let is_same = self.threads.get(thread).is_some_and(|known| {
            known.current.get(place) == Some(&Some(slot)) && known.tags.get(place) == Some(&Some(key.0))
        });
        if is_same {
            return Ok(());
        }
        let root = *root;
        self.leave_identifier(thread, root.kind);
        // Software sets empty tables of stage 1 under any identifier.
        if root.kind == TreeKind::StageTwo || !self.is_empty(&root) {
            self.check_identifier(thread, &root, key)?;
            self.tags.held.insert(key, Held { slot, base: root.base, serial: root.serial, left: IN_USE });
        }
        if let Some(place) = self.threads.make(thread).and_then(|known| known.tags.get_mut(place)) {
            *place = Some(key.0);
        }
        Ok(())
    }

    /// A thread uses its tree of a kind no more.
    pub(super) fn leave_identifier(&mut self, thread: u32, kind: TreeKind) {
        let known = self.threads.make(thread).and_then(|known| known.tags.get_mut(kind.index()));
        let Some(tag) = known.and_then(Option::take) else { return };
        let time = self.tags.tick();
        self.tags.has_left = true;
        let slot = self.threads.current(thread, kind);
        let root = slot.and_then(|slot| self.roots.slots.get(slot)).copied().flatten();
        let key = (tag, kind as u8);
        let (Some(root), Some(slot)) = (root, slot) else { return };
        let held = Held { slot, base: root.base, serial: root.serial, left: time };
        let is_empty = kind != TreeKind::StageTwo && self.is_empty(&root);
        if !is_empty {
            // Perhaps it got its first entries meanwhile.
            self.tags.held.insert(key, held);
        } else if let Some(known) = self.tags.held.get_mut(&key).filter(|known| known.serial == root.serial) {
            known.left = time;
        }
        if kind != TreeKind::StageTwo && !is_empty {
            self.tags.last.insert(Tags::key(thread, kind, tag >> 16, 0), held);
        }
    }

    fn check_identifier(&mut self, thread: u32, root: &Root, key: (u64, u8)) -> Flow {
        let before = self.tags.held.get(&key).copied();
        let before = before.filter(|held| held.serial != root.serial && !self.is_gone(thread, root, *held));
        if let Some(before) = before {
            self.fire_reuse(&breach::ID_REUSED, thread, root, before)?;
            // Recovery: as if a TLBI had dropped them.
        }
        // Stage 2 has no global entries.
        if root.kind == TreeKind::StageTwo {
            return Ok(());
        }
        let last = Tags::key(thread, root.kind, vmid_of(root), 0);
        let Some(held) = self.tags.last.get(&last).copied() else { return Ok(()) };
        let is_found = before.is_none_or(|before| before.serial != held.serial)
            && held.serial != root.serial
            && !self.is_all_gone(thread, root, held)
            && self.is_global(held);
        if is_found {
            self.fire_reuse(&breach::GLOBAL_KEPT, thread, root, held)?;
        }
        self.tags.last.remove(&last);
        Ok(())
    }

    #[cold]
    fn fire_reuse(&mut self, breach: &'static crate::Breach, thread: u32, root: &Root, held: Held) -> Flow {
        let other = held.base;
        let is_stage_two = root.kind == TreeKind::StageTwo;
        let asid = (!is_stage_two).then_some(root.id);
        let vmid = (is_stage_two || root.kind.is_el1()).then(|| vmid_of(root));
        // A direct change leaves in the step that arrives.
        let is_direct = held.left == self.tags.clock;
        let reuse = Reuse { other, kind: root.kind, vmid, asid, thread, is_direct };
        let flow = self.fire(breach, root.base);
        if let Some(found) = self.found_mut(breach) {
            found.reuse.get_or_insert(reuse);
        }
        flow
    }

    /// The root, if it is still registered.
    fn root_of(&self, held: Held) -> Option<Root> {
        self.roots.slots.get(held.slot).copied().flatten().filter(|root| root.serial == held.serial)
    }

    /// True when a thread's TLBs contain nothing of a tree that had the identifiers of another one, which is `root`.
    fn is_gone(&self, thread: u32, root: &Root, held: Held) -> bool {
        let is_empty = match self.root_of(held) {
            Some(old) => self.is_empty(&old),
            None => !self.tags.ghosts.contains_key(&held.serial),
        };
        is_empty || self.is_all_gone(thread, root, held) || self.is_gone_by_asid(thread, root, held)
    }

    /// The same by TLBIs that name no ASID.
    fn is_all_gone(&self, thread: u32, root: &Root, held: Held) -> bool {
        let is_dropped = |what, vmid| self.tags.is_dropped(thread, held.left, what, vmid, 0);
        let vmid = vmid_of(root);
        match root.kind {
            TreeKind::StageTwo => is_dropped(Drop::Both, 0) || is_dropped(Drop::BothOfVmid, vmid),
            TreeKind::El2 | TreeKind::El2Upper => is_dropped(Drop::El2, 0),
            TreeKind::El1 | TreeKind::El1Upper => {
                is_dropped(Drop::Both, 0) || is_dropped(Drop::One, 0) || is_dropped(Drop::OneOfVmid, vmid)
            }
        }
    }

    fn is_gone_by_asid(&self, thread: u32, root: &Root, held: Held) -> bool {
        let what = match root.kind {
            TreeKind::StageTwo => return false,
            TreeKind::El2 | TreeKind::El2Upper => Drop::El2OfAsid,
            TreeKind::El1 | TreeKind::El1Upper => Drop::OneOfAsid,
        };
        self.tags.is_dropped(thread, held.left, what, vmid_of(root), root.id) && !self.is_global(held)
    }

    /// True when a tree has global entries that TLBs may contain.
    fn is_global(&self, held: Held) -> bool {
        match self.root_of(held) {
            Some(root) => self.has_global(&root),
            None => self.tags.ghosts.get(&held.serial).copied().unwrap_or(false),
        }
    }

    /// A root is released: what it leaves in TLBs.
    pub(super) fn note_ghost(&mut self, root: &Root) {
        if self.tracks_reuse() && !self.is_empty(root) {
            let is_global = root.kind != TreeKind::StageTwo && self.has_global(root);
            self.tags.ghosts.insert(root.serial, is_global);
        }
    }

    /// True when a tree has no entry that TLBs may contain.
    fn is_empty(&self, root: &Root) -> bool {
        (0..u64::from(root.pages)).all(|number| {
            let index = self.memory.peek(root.base.wrapping_add(number * PAGE_BYTES));
            let page = index.and_then(|index| self.memory.pages.get(index));
            page.is_none_or(|page| page.entry.and(&page.valid.or(&page.unclean)).is_empty())
        })
    }

    /// True when a tree has a block or page for all ASIDs, or had one that is not clean.
    fn has_global(&self, root: &Root) -> bool {
        let top =
            Table { root: root.base, level: root.level, format: root.format, kind: root.kind, ..Table::default() };
        (0..u64::from(root.pages)).any(|number| self.page_has_global(root.base.wrapping_add(number * PAGE_BYTES), top))
    }

    fn page_has_global(&self, base: u64, table: Table) -> bool {
        let index = self.memory.peek(base);
        let Some(page) = index.and_then(|index| self.memory.pages.get(index)) else { return false };
        let mut cached = page.entry.and(&page.valid.or(&page.unclean)).ones();
        cached.any(|at| {
            let word = page.address(at);
            let old = self.unclean.get(word).filter(|_| page.unclean.has(at)).map(|unclean| unclean.old);
            match table.decode(old.unwrap_or(page.value(at))) {
                Descriptor::Map(_) => old.unwrap_or(page.value(at)) & NOT_GLOBAL == 0,
                Descriptor::Table(next) => {
                    let below = table.below(word, at);
                    (0..table.pages()).any(|number| {
                        let base = next.wrapping_add(number * PAGE_BYTES);
                        self.is_part_of(base, word) && self.page_has_global(base, below)
                    })
                }
                _ => false,
            }
        })
    }

    /// True when a page is part of the table at which an entry points: after a violation several may point at one.
    fn is_part_of(&self, base: u64, word: u64) -> bool {
        let index = self.memory.peek(base);
        index.and_then(|index| self.memory.pages.get(index)).is_some_and(|page| {
            page.entry.ones().next().is_some_and(|at| page.table_of(at).parent == word && position(word) < 512)
        })
    }

    /// A TLBI of all that has an identifier.
    #[inline]
    pub(super) fn drop_identifiers(&mut self, thread: u32, tlbi: &Tlbi) {
        if self.tags.has_left && self.tracks_reuse() && !tlbi.op.is_nxs() {
            self.send_drop(thread, tlbi);
        }
    }

    fn send_drop(&mut self, thread: u32, tlbi: &Tlbi) {
        let is_promoted = self.has(Quirk::ByIdPromoted);
        let asid = if self.has(Quirk::IdsAsidZero) { 0 } else { tlbi.asid() };
        let (is_el2, is_el1) = (tlbi.concerns(TreeKind::El2), tlbi.concerns(TreeKind::StageTwo));
        let mut send = |what, vmid, id| self.tags.send(thread, tlbi.is_broadcast, what, vmid, id);
        match (tlbi.scope, tlbi.drops) {
            (TlbiScope::All, _) if is_el2 => send(Drop::El2, 0, 0),
            (TlbiScope::Asid, _) if is_el2 => send(Drop::El2OfAsid, 0, asid),
            (TlbiScope::All, Stages::Both) if is_el1 => send(Drop::Both, 0, 0),
            (TlbiScope::Vmid, Stages::Both) if is_el1 && is_promoted => send(Drop::Both, 0, 0),
            (TlbiScope::Vmid, Stages::One) if is_el1 && is_promoted => send(Drop::One, 0, 0),
            (TlbiScope::Vmid, drops) if is_el1 => {
                let vmid = self.vmid(thread);
                if let Some(vmid) = self.named_vmid(thread).filter(|_| drops == Stages::Both) {
                    self.tags.send(thread, tlbi.is_broadcast, Drop::BothOfVmid, vmid, 0);
                }
                self.tags.send(thread, tlbi.is_broadcast, Drop::OneOfVmid, vmid, 0);
            }
            (TlbiScope::Asid, _) if is_el1 => {
                let vmid = self.vmid(thread);
                self.tags.send(thread, tlbi.is_broadcast, Drop::OneOfAsid, vmid, asid);
            }
            _ => {}
        }
    }

    /// A DSB completes the TLBIs of its thread: one for this core those for this core.
    #[inline]
    pub(super) fn complete_drops(&mut self, thread: u32, domain: Domain) {
        if !self.tags.sent.is_empty() {
            match domain {
                Domain::Ish | Domain::Osh | Domain::Sy => self.tags.complete(thread, true),
                Domain::Nsh => self.tags.complete(thread, false),
                _ => {}
            }
        }
    }
}

/// The VMID of a root's translations.
fn vmid_of(root: &Root) -> u64 {
    if root.kind == TreeKind::StageTwo { root.id } else { root.vmid }
}

fn key_of(thread: u32, root: &Root) -> (u64, u8) {
    let id = if root.kind == TreeKind::StageTwo { 0 } else { root.id };
    Tags::key(thread, root.kind, vmid_of(root), id)
}
