//! Roots of trees of tables: by slot, as the reference numbers them, by base and by identifier.

use alloc::vec::Vec;

use super::descriptor::Format;
use super::room;
use super::sorted::Sorted;
use super::table::Map;
use super::tree::TreeKind;

/// A registered root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// 1 or 2.
    pub stage: u8,
    /// What it translates.
    pub kind: TreeKind,
    /// Address of the first table.
    pub base: u64,
    /// VMID or ASID: the last one, if there were several.
    pub id: u64,
    /// In stage 1 of EL1&0 the VMID: the last one.
    pub vmid: u64,
    /// It was used with several ASIDs, and with several VMIDs: TLBs may contain its entries under each.
    pub has_other_ids: bool,
    /// The same for VMIDs.
    pub has_other_vmids: bool,
    /// In stage 1 of EL1&0, the root of stage 2 that translates the addresses of its tables, each to itself.
    pub stage_two: Option<u64>,
    /// First input address.
    pub input: u64,
    /// How many threads use it.
    pub users: u64,
    /// Level of the first table.
    pub level: i8,
    /// How many tables are adjacent there.
    pub tables: u8,
    /// The layout of the descriptors.
    pub format: Format,
    /// Pages of 4 KiB that the first tables occupy.
    pub pages: u16,
    /// Which registration it is, from 0 on.
    pub serial: u64,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    pub(crate) slots: Vec<Option<Root>>,
    pub(super) free: Sorted<usize, ()>,
    pub(super) by_base: Map<(u64, u8), usize>,
    pub(super) by_id: Map<(u64, u8), usize>,
}

/// The kind as part of a key, unless stages are not distinguished.
fn key(kind: TreeKind, is_blind: bool) -> u8 {
    if is_blind && kind.is_of_reference() { 0 } else { kind as u8 }
}

impl Roots {
    pub(crate) fn id_in(&self, slot: usize) -> Option<u64> {
        self.slots.get(slot)?.as_ref().map(|root| root.id)
    }

    pub(crate) fn of_base(&self, kind: TreeKind, base: u64, is_blind: bool) -> Option<&Root> {
        self.slots.get(self.slot_in(kind, base, is_blind)?)?.as_ref()
    }

    pub(crate) fn id_of(&self, kind: TreeKind, base: u64, is_blind: bool) -> Option<u64> {
        self.of_base(kind, base, is_blind).map(|root| root.id)
    }

    /// The slot of a base of this kind.
    pub(super) fn slot_in(&self, kind: TreeKind, base: u64, is_blind: bool) -> Option<usize> {
        self.by_base.get(&(base, key(kind, is_blind))).copied()
    }

    /// The slot of the root that had an identifier last.
    pub(super) fn slot_of_id(&self, kind: TreeKind, id: u64, is_blind: bool) -> Option<usize> {
        self.by_id.get(&(id, key(kind, is_blind))).copied()
    }

    pub(super) fn set_id(&mut self, kind: TreeKind, id: u64, is_blind: bool, slot: usize) {
        self.by_id.insert((id, key(kind, is_blind)), slot);
    }

    /// The slot of a base of any kind.
    pub(super) fn slot_of(&self, base: u64, is_blind: bool) -> Option<usize> {
        use TreeKind::{El1, El1Upper, El2, El2Upper, StageTwo};
        [StageTwo, El2, El2Upper, El1, El1Upper].into_iter().find_map(|kind| self.slot_in(kind, base, is_blind))
    }

    pub(super) fn root_mut(&mut self, slot: usize) -> Option<&mut Root> {
        self.slots.get_mut(slot)?.as_mut()
    }

    /// `is_exclusive`: identifiers belong to their roots until those are released.
    pub(super) fn insert(&mut self, root: Root, is_blind: bool, is_exclusive: bool) -> usize {
        let slot = self.free.pop_first().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            room::push(&mut self.slots, None);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(root);
        }
        self.by_base.insert((root.base, key(root.kind, is_blind)), slot);
        if root.kind.is_of_reference() && is_exclusive {
            self.by_id.insert((root.id, key(root.kind, is_blind)), slot);
        }
        slot
    }

    pub(super) fn remove(&mut self, slot: usize, is_blind: bool, is_exclusive: bool) {
        let Some(root) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.by_base.remove(&(root.base, key(root.kind, is_blind)));
        let is_own = is_exclusive || self.slot_of_id(root.kind, root.id, is_blind) == Some(slot);
        if root.kind.is_of_reference() && is_own {
            self.by_id.remove(&(root.id, key(root.kind, is_blind)));
        }
        self.free.insert(slot, ());
    }

    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn change_users(&mut self, slot: usize, is_used: bool) {
        if let Some(Some(root)) = self.slots.get_mut(slot) {
            root.users = if is_used { root.users + 1 } else { root.users.saturating_sub(1) };
        }
    }
}
