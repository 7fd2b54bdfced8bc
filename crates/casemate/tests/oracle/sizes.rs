//! Blocks and tables that take each other's place with FEAT_BBM: both are written out as a list of what they map.

use std::collections::BTreeSet;

use super::descriptor::{ACCESS_FLAG, Descriptor, Judgement, Shape, bits_need_bbm, explode};
use super::memory::Automaton;
use super::model::{Act, Model};
use super::pending::{Changed, Rights};
use super::tables::Visit;
use super::verdict::Fault;

const BITS_47_12: u64 = 0x0000_ffff_ffff_f000;

/// What a table maps.
#[derive(Debug, Clone)]
struct Part {
    cell: u64,
    /// Distance from the start of the block.
    offset: u64,
    level: i64,
    value: u64,
    is_unclean: bool,
    is_cached: bool,
    is_mapped: bool,
    /// What the tables between limit.
    limits: Vec<u64>,
}

impl Model {
    /// May the two kinds of entry take each other's place?
    pub(crate) fn may_resize(&self, cell: u64, place: &Descriptor, old: (u64, Shape), new: (u64, Shape)) -> bool {
        let is_cached = old.0 & ACCESS_FLAG != 0 || self.memory.get(cell).is_some_and(|cell| cell.was_accessed);
        let to_table = matches!(new.1, Shape::Table(_));
        if to_table && !is_cached {
            return true;
        }
        let (block, table) = if to_table { (old.0, new) } else { (new.0, old) };
        let is_marked = self.options.bbm == 2 || self.options.bbm == 1 && block >> 16 & 1 == 1;
        if self.options.quirks.af_inverted || !is_marked || self.pending(cell).is_some_and(|one| one.is_resized) {
            return false;
        }
        if place.stage.is_one() && table.0 >> 63 == 1 {
            return false;
        }
        let mut parts = Vec::new();
        let Shape::Table(next) = table.1 else { return false };
        if !self.parts(place, next, (place.level + 1, 0, &[]), &mut parts) {
            return false;
        }
        parts.iter().all(|part| self.fits(place, block, part, to_table))
    }

    /// Everything that a table maps or does not map; false if it cannot be known, or is in another address space.
    fn parts(
        &self,
        place: &Descriptor,
        table: u64,
        (level, offset, limits): (i64, u64, &[u64]),
        parts: &mut Vec<Part>,
    ) -> bool {
        let (stage, layout) = (place.stage, place.layout);
        (0..layout.entries()).all(|i| {
            let cell = table + 8 * i;
            let offset = offset + i * layout.entry_bytes(level);
            let found = self.memory.get(cell).copied();
            let value = found.filter(|cell| cell.initialised).map_or(0, |cell| cell.value);
            let is_unclean =
                found.is_some_and(|cell| cell.is_pte && matches!(cell.automaton, Automaton::Unclean { .. }));
            let is_cached = value & ACCESS_FLAG != 0 || found.is_some_and(|cell| cell.is_pte && cell.was_accessed);
            match explode(layout, 0, value, level, stage).map(|desc| desc.shape) {
                Ok(Shape::Table(next)) => {
                    let limits = [limits, &Self::limits_of(value)].concat();
                    !(stage.is_one() && value >> 63 == 1)
                        && self.parts(place, next, (level + 1, offset, &limits), parts)
                }
                shape => {
                    let is_mapped = shape.is_ok_and(|shape| shape == Shape::Map) || value & 1 == 1;
                    let limits = limits.to_vec();
                    parts.push(Part { cell, offset, level, value, is_unclean, is_cached, is_mapped, limits });
                    true
                }
            }
        })
    }

    fn fits(&self, place: &Descriptor, block: u64, part: &Part, to_table: bool) -> bool {
        if !part.is_mapped {
            return !to_table && !part.is_unclean;
        }
        if !to_table && !part.is_cached {
            return true;
        }
        let layout = place.layout;
        let bytes = layout.entry_bytes(part.level);
        let is_same_address = layout.address(part.value, bytes) == place.output(block) + part.offset;
        // Everything but the address.
        let whole = BITS_47_12 | layout.address_bits();
        let address = layout.field(layout.address(part.value, bytes));
        let as_part = block & !whole & !3 | address | part.value & 3;
        let (old, new) = if to_table { (as_part, part.value) } else { (part.value, as_part) };
        let judgement = Judgement {
            af_inverted: false,
            identical_table: false,
            any_attribute: false,
            was_accessed: true,
            controls: &self.hardware_bits(place.stage),
            mairs: &self.values_of(place.stage.registers()[3]),
            bbm: self.options.bbm,
            is_resized: false,
            may_resize: false,
        };
        is_same_address && !bits_need_bbm((place.stage, part.level), true, u64::MAX, (old, new), &judgement)
    }

    /// Puts one kind of entry in the other's place.
    pub(crate) fn resize(
        &mut self,
        act: Act,
        cell: u64,
        place: &Descriptor,
        old: (u64, Shape),
        new: Descriptor,
        new_value: u64,
    ) -> Result<(), Fault> {
        let Some(entry) = self.memory.get(cell).copied() else { return Ok(()) };
        let levels = BTreeSet::from([place.level]);
        if let Shape::Table(next) = old.1 {
            self.walk_children(act, cell, Visit::Freeze)?;
            let mut parts = Vec::new();
            self.parts(place, next, (place.level + 1, 0, &[]), &mut parts);
            let cached: Vec<&Part> = parts.iter().filter(|part| part.is_mapped && part.is_cached).collect();
            let limits = [self.limits_above(cell), Self::limits_of(old.0)].concat();
            let rights = |part: &&Part| self.within(place.stage, part.value, &[&limits[..], &part.limits].concat());
            let granted: Rights = cached.iter().flat_map(rights).collect();
            let is_cached = !cached.is_empty();
            self.set_desc(cell, new);
            if let Some(entry) = self.memory.get_mut(cell) {
                entry.was_accessed = is_cached;
            }
            let (is_resized, by_table) = (true, false);
            self.changed(act, Changed { cell, old: old.0, new: new_value, granted, is_resized, levels, by_table });
            return Ok(());
        }
        let is_cached = old.0 & ACCESS_FLAG != 0 || entry.was_accessed;
        let mut granted = self.effective(cell, place.stage, old.0);
        granted.extend(self.pending(cell).map(|pending| pending.granted.clone()).unwrap_or_default());
        self.set_desc(cell, new);
        if let Some(entry) = self.memory.get_mut(cell) {
            entry.was_accessed = false;
            // Walks see the new value from here on.
            entry.value = new_value;
        }
        let handed = self.handed.len();
        self.walk_children(act, cell, Visit::Mark)?;
        let later = self.handed.split_off(handed);
        self.handed.extend(later.into_iter().filter(|one| one.mapped_by().is_none()));
        if !is_cached {
            return Ok(());
        }
        let (is_resized, by_table) = (true, false);
        let (old_value, rights) = (old.0, granted.clone());
        let change = Changed { cell, old: old_value, new: new_value, granted: rights, is_resized, levels, by_table };
        self.changed(act, change);
        let mut parts = Vec::new();
        let Shape::Table(next) = new.shape else { return Ok(()) };
        self.parts(place, next, (place.level + 1, 0, &[]), &mut parts);
        for part in parts {
            let low = if part.level == 3 { 3 } else { 1 };
            let first = block_part(place, old.0, part.offset) | low;
            if let Some(entry) = self.memory.get_mut(part.cell) {
                entry.was_accessed = true;
            }
            let levels = (place.level..=part.level).collect();
            let change = Changed {
                cell: part.cell,
                old: first,
                new: part.value,
                granted: granted.clone(),
                is_resized: false,
                levels,
                by_table,
            };
            self.changed(act, change);
        }
        Ok(())
    }
}

fn block_part(place: &Descriptor, block: u64, offset: u64) -> u64 {
    let layout = place.layout;
    block & !(BITS_47_12 | layout.address_bits()) & !3 | layout.field(place.output(block) + offset)
}
