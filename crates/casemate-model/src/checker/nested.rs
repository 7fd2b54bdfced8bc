//! Trees of stage 1 whose addresses stage 2 translates: they are followed where it maps each of their tables to itself.

use super::{Checker, Flow};
use crate::breach::breach;
use crate::descriptor::Descriptor;
use crate::memory::{PAGE_BYTES, Table};
use crate::record::Sysreg;
use crate::room;
use crate::tree::TreeKind;
use crate::watch::Watch;

/// Stage 2 is on, and its root is not known.
#[derive(Debug)]
pub(super) struct NoRoot;

impl<W: Watch> Checker<W> {
    /// The base of the root of stage 2 that translates the tables of a kind of tree for a thread, if stage 2 is on: by
    /// HCR_EL2.VM. A thread that wrote neither HCR_EL2 nor VTTBR_EL2 has none.
    pub(super) fn stage_two(&self, thread: u32, kind: TreeKind) -> Result<Option<u64>, NoRoot> {
        let is_on = match self.known(thread, Sysreg::HcrEl2) {
            Some(hcr) => hcr & 1 != 0,
            None => !self.options.no_sysreg && self.known(thread, Sysreg::VttbrEl2).is_some(),
        };
        if !kind.is_el1() || !is_on {
            return Ok(None);
        }
        let slot = self.threads.current(thread, TreeKind::StageTwo);
        let root = slot.and_then(|slot| self.roots.slots.get(slot)).copied().flatten();
        root.map(|root| Some(root.base)).ok_or(NoRoot)
    }

    /// The VMID of a thread's translations of EL1&0; 0 where stage 2 is off.
    pub(super) fn vmid(&self, thread: u32) -> u64 {
        let root = self.stage_two(thread, TreeKind::El1).ok().flatten();
        let is_blind = self.has(crate::quirk::Quirk::StageBlindIds);
        root.and_then(|base| self.roots.id_of(TreeKind::StageTwo, base, is_blind)).unwrap_or(0)
    }

    /// True when a tree of stage 2 maps the page of an address to itself.
    pub(super) fn maps_to_itself(&self, root: u64, address: u64) -> bool {
        let is_blind = self.has(crate::quirk::Quirk::StageBlindIds);
        let Some(root) = self.roots.of_base(TreeKind::StageTwo, root, is_blind) else { return false };
        let (format, mut level, mut table) = (root.format, root.level, root.base);
        let mut at = address >> format.shift(level);
        if at >= u64::from(root.pages) * 512 {
            return false;
        }
        // Five levels, and no more.
        for _ in 0..5 {
            let value = self.memory.peek_value(table.wrapping_add(8 * at)).unwrap_or(0);
            match Descriptor::decode(format, level, value) {
                Descriptor::Table(next) => (table, level) = (next, level + 1),
                Descriptor::Map(output) => {
                    return output | address & (format.entry_bytes(level) - 1) == address;
                }
                _ => return false,
            }
            at = address >> format.shift(level) & (format.entries() - 1);
        }
        false
    }

    /// A page of 4 KiB becomes part of a table whose addresses stage 2 may translate; false if it is not followed.
    pub(super) fn enter_nested(&mut self, page: u64, table: Table) -> Result<bool, super::Stop> {
        let is_blind = self.has(crate::quirk::Quirk::StageBlindIds);
        let root = self.roots.of_base(table.kind, table.root, is_blind);
        let Some(stage_two) = root.and_then(|root| root.stage_two) else { return Ok(true) };
        if !self.maps_to_itself(stage_two, page) {
            self.fire(&breach::UNMODELLED_REGIME, page)?;
            return Ok(false);
        }
        self.nested.insert(page, stage_two);
        Ok(true)
    }

    /// An entry of stage 2 does not map any more: tables of stage 1 may have gone with it.
    pub(super) fn check_nested(&mut self, table: Table, at: usize) -> Flow {
        if self.nested.is_empty() || table.kind != TreeKind::StageTwo {
            return Ok(());
        }
        let first = table.input.wrapping_add(table.entry_bytes().wrapping_mul(at as u64));
        let last = first.wrapping_add(table.entry_bytes() - 1);
        let pages = self.nested.from(&(first & !(PAGE_BYTES - 1))).take_while(|(page, _)| *page <= last);
        let gone = room::collected(pages.filter(|(_, root)| **root == table.root).map(|(page, _)| page));
        for page in gone {
            self.nested.remove(&page);
            self.fire(&breach::UNMODELLED_REGIME, page)?;
        }
        Ok(())
    }
}
