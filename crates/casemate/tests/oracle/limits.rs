//! What tables of stage 1 take from the entries below them, from the chapter's section "Stale permissions": the walk to
//! an entry is written out from its root down, with the bits that its tables have.

use anytrace_casemate::Sysreg;

use super::descriptor::{ACCESS_FLAG, Descriptor, Shape, Stage, explode, is_valid};
use super::maintenance::{Maintenance, Method};
use super::memory::Cell;
use super::model::{Act, Model};
use super::pending::{Changed, Rights};

impl Model {
    /// The numbers of the bits that a table has of APTable (62, 61), UXNTable (60) and PXNTable (59).
    pub(crate) fn limits_of(table: u64) -> Vec<u64> {
        [59, 60, 61, 62].into_iter().filter(|bit| table >> bit & 1 == 1).collect()
    }

    /// Are the bits for software to use? HPD0 and HPD1 of the layout with two halves, HPD of the other.
    fn is_disabled(&self, stage: Stage) -> bool {
        let is_host = self.values_of(Sysreg::HcrEl2).iter().any(|hcr| hcr & 1 << 34 != 0);
        let bit = match stage {
            Stage::Two => return true,
            Stage::One if !is_host => 24,
            Stage::OneUpper if !is_host => 24,
            Stage::One | Stage::Guest => 41,
            Stage::OneUpper | Stage::GuestUpper => 42,
        };
        self.values_of(stage.registers()[1]).iter().any(|control| control >> bit & 1 == 1)
    }

    /// The rights of a block or page below tables with some bits.
    pub(crate) fn within(&self, stage: Stage, value: u64, limits: &[u64]) -> Rights {
        let mut rights = self.rights(stage, value);
        let is_host = stage.is_guest() || self.values_of(Sysreg::HcrEl2).iter().any(|hcr| hcr & 1 << 34 != 0);
        for bit in limits.iter().filter(|_| !self.is_disabled(stage)) {
            let taken = match (bit, is_host) {
                (62, _) => "wW",
                (61, true) => "RW",
                (60, true) => "X",
                (60, false) | (59, true) => "x",
                _ => "",
            };
            rights.retain(|letter| !taken.contains(*letter));
        }
        rights
    }

    /// The bits that the tables on the way to an entry have.
    pub(crate) fn limits_above(&self, cell: u64) -> Vec<u64> {
        let Some(entry) = self.memory.pte(cell).copied() else { return Vec::new() };
        let Some(desc) = entry.desc else { return Vec::new() };
        let slot = self.root_slot(desc.stage, |root| root.base == entry.owner);
        let Some(geometry) = slot.and_then(|slot| self.roots[slot].geometry) else { return Vec::new() };
        let layout = desc.layout;
        let mut limits = Vec::new();
        let mut table = entry.owner;
        for level in geometry.level..desc.level {
            let from = if level == geometry.level { geometry.first } else { 0 };
            let mut number = desc.input.wrapping_sub(from) / layout.entry_bytes(level);
            if level > geometry.level {
                number %= layout.entries();
            }
            let value = self.memory.get(table + 8 * number).map_or(0, |cell| cell.value);
            match explode(layout, 0, value, level, desc.stage).map(|desc| desc.shape) {
                Ok(Shape::Table(next)) => table = next,
                _ => break,
            }
            limits.extend(Self::limits_of(value));
        }
        limits
    }

    /// What a block or page at this place permits.
    pub(crate) fn effective(&self, cell: u64, stage: Stage, value: u64) -> Rights {
        self.within(stage, value, &self.limits_above(cell))
    }

    /// A live table changed in place, and stays one.
    pub(crate) fn change_table(&mut self, act: Act, cell: u64, place: &Descriptor, old: u64, new: u64) {
        if Self::limits_of(old) == Self::limits_of(new)
            || self.is_disabled(place.stage)
            || self.options.quirks.stale_ignored
        {
            return;
        }
        // Walks see the new value from here on.
        if let Some(cell) = self.memory.get_mut(cell) {
            cell.value = new;
        }
        let limits = [self.limits_above(cell), Self::limits_of(old)].concat();
        let owner = self.memory.get(cell).map_or(0, |cell| cell.owner);
        let Ok(Shape::Table(next)) = place.with(new).map(|desc| desc.shape) else { return };
        self.limit_below(act, owner, place, (next, place.level + 1, place.input), &limits);
    }

    fn limit_below(
        &mut self,
        act: Act,
        owner: u64,
        place: &Descriptor,
        (table, level, first): (u64, i64, u64),
        limits: &[u64],
    ) {
        let (layout, stage) = (place.layout, place.stage);
        for number in 0..layout.entries() {
            let address = table + 8 * number;
            let input = first.wrapping_add(number * layout.entry_bytes(level));
            let Some(entry) = self.memory.pte(address).copied().filter(|entry| is_valid(entry.value)) else { continue };
            let is_here = |desc: Descriptor| (desc.stage, desc.level, desc.input) == (stage, level, input);
            if entry.owner != owner || !entry.desc.is_some_and(is_here) {
                continue;
            }
            match explode(layout, input, entry.value, level, stage).map(|desc| desc.shape) {
                Ok(Shape::Table(next)) => {
                    let limits = [limits, &Self::limits_of(entry.value)].concat();
                    self.limit_below(act, owner, place, (next, level + 1, input), &limits);
                }
                Ok(Shape::Map) if entry.value & ACCESS_FLAG != 0 || entry.was_accessed => {
                    let granted = self.within(stage, entry.value, limits);
                    self.changed(
                        act,
                        Changed {
                            cell: address,
                            old: entry.value,
                            new: entry.value,
                            granted,
                            is_resized: false,
                            levels: [level].into(),
                            by_table: true,
                        },
                    );
                }
                _ => {}
            }
        }
    }

    /// Does a TLBI drop what TLBs have of the tables above an entry that it names?
    pub(crate) fn reaches_tables(&self, act: Act, tlbi: &Maintenance, entry: &Cell, desc: &Descriptor) -> bool {
        if tlbi.is_nxs || tlbi.is_last_level() {
            return false;
        }
        // They are tagged with the ASID, even where the block or page is not.
        match tlbi.method {
            Method::Address | Method::Range if !tlbi.is_for_any_asid() => self.id_matches(act, tlbi, entry, desc),
            _ => true,
        }
    }
}
