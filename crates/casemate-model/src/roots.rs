//! Roots of trees of tables: by slot, as the reference numbers them, by base and by identifier.

use alloc::vec::Vec;

use super::descriptor::Format;
use super::room;
use super::sorted::Sorted;
use super::table::Map;

/// A registered root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Root {
    /// 1 or 2.
    pub stage: u8,
    /// Address of the first table.
    pub base: u64,
    /// VMID or ASID.
    pub id: u64,
    /// How many threads use it.
    pub users: u64,
    /// Level of the first table.
    pub level: u8,
    /// How many tables are adjacent there.
    pub tables: u8,
    /// The layout of the descriptors.
    pub format: Format,
    /// Pages of 4 KiB that the first tables occupy.
    pub pages: u16,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Roots {
    pub(crate) slots: Vec<Option<Root>>,
    free: Sorted<usize, ()>,
    by_base: Map<(u64, u8), usize>,
    by_id: Map<(u64, u8), usize>,
}

/// The stage as part of a key, unless stages are not distinguished.
fn key(stage: u8, is_blind: bool) -> u8 {
    if is_blind { 0 } else { stage }
}

impl Roots {
    pub(crate) fn id_in(&self, slot: usize) -> Option<u64> {
        self.slots.get(slot)?.as_ref().map(|root| root.id)
    }

    pub(crate) fn of_base(&self, stage: u8, base: u64, is_blind: bool) -> Option<&Root> {
        self.slots.get(self.slot_in(stage, base, is_blind)?)?.as_ref()
    }

    pub(crate) fn id_of(&self, stage: u8, base: u64, is_blind: bool) -> Option<u64> {
        self.of_base(stage, base, is_blind).map(|root| root.id)
    }

    /// The slot of a base of this stage.
    pub(super) fn slot_in(&self, stage: u8, base: u64, is_blind: bool) -> Option<usize> {
        self.by_base.get(&(base, key(stage, is_blind))).copied()
    }

    /// True when a root of this stage has the identifier.
    pub(super) fn has_id(&self, stage: u8, id: u64, is_blind: bool) -> bool {
        self.by_id.contains_key(&(id, key(stage, is_blind)))
    }

    /// The slot of a base of any stage.
    pub(super) fn slot_of(&self, base: u64, is_blind: bool) -> Option<usize> {
        let find = |stage| self.by_base.get(&(base, stage)).copied();
        if is_blind { find(0) } else { find(2).or(find(1)) }
    }

    pub(super) fn insert(&mut self, root: Root, is_blind: bool) -> usize {
        let slot = self.free.pop_first().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            room::push(&mut self.slots, None);
        }
        if let Some(place) = self.slots.get_mut(slot) {
            *place = Some(root);
        }
        self.by_base.insert((root.base, key(root.stage, is_blind)), slot);
        self.by_id.insert((root.id, key(root.stage, is_blind)), slot);
        slot
    }

    pub(super) fn remove(&mut self, slot: usize, is_blind: bool) {
        let Some(root) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        self.by_base.remove(&(root.base, key(root.stage, is_blind)));
        self.by_id.remove(&(root.id, key(root.stage, is_blind)));
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
