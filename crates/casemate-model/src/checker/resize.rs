//! Blocks and tables that take each other's place without a break, as FEAT_BBM allows (see [`attributes`]).

use super::stale::{InPlace, Inherited, rights_within};
use super::walk::Visit;
use super::{Checker, Flow};
use crate::attributes::{self, BbmLevel, NO_CONFLICT, Obstacle};
use crate::descriptor::{ACCESS_FLAG, Descriptor};
use crate::memory::{PAGE_BYTES, Page, Table, WORDS};
use crate::quirk::Quirk;
use crate::rights::{Regime, Rights, TABLE_LIMITS};
use crate::stale::level_bit;
use crate::watch::Watch;

/// NSTable of stage 1, and NS of a block or page.
const TABLE_SPACE: u64 = 1 << 63;
const SPACE: u64 = 1 << 5;

/// Which of the two tables is compared with the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// The table was in place of the block.
    Old,
    /// It is to take the block's place.
    New,
}

impl<W: Watch> Checker<W> {
    /// Why a block and a table may not take each other's place without a break. `is_cached`: TLBs may contain the
    /// entry, if it is a block.
    pub(super) fn obstacle(
        &self,
        table: Table,
        word: u64,
        is_cached: bool,
        (old, new): (u64, u64),
    ) -> Option<Obstacle> {
        let (block, of_table, side) = match table.decode(new) {
            // What is in no TLB conflicts with nothing.
            Descriptor::Table(_) if !is_cached => return None,
            Descriptor::Table(_) => (old, new, Side::New),
            _ => (new, old, Side::Old),
        };
        match self.bbm() {
            BbmLevel::Zero => return Some(Obstacle::Level),
            BbmLevel::One if block & NO_CONFLICT == 0 => return Some(Obstacle::NotMarked),
            BbmLevel::One | BbmLevel::Two => {}
        }
        if self.stale.get(word).is_some_and(|stale| stale.is_resized) {
            return Some(Obstacle::Pending);
        }
        self.compare((word, of_table), table, block, side)
    }

    /// The level of FEAT_BBM; the reference has none.
    pub(super) fn bbm(&self) -> BbmLevel {
        if self.has(Quirk::AfInverted) { BbmLevel::Zero } else { self.options.bbm }
    }

    /// Compares what is below an entry with a block in its place. `table`: that of the entry, or one like it.
    fn compare(&self, (word, entry): (u64, u64), table: Table, block: u64, side: Side) -> Option<Obstacle> {
        if table.stage() == 1 && entry & TABLE_SPACE != 0 {
            return Some(Obstacle::Differs { location: word, deciding: SPACE });
        }
        let Descriptor::Table(next) = table.decode(entry) else { return None };
        let below = Table { level: table.level + 1, ..table };
        (0..table.pages()).find_map(|number| {
            let (base, first) = (next.wrapping_add(number * PAGE_BYTES), WORDS * number as usize);
            let Some(page) = self.memory.peek(base).and_then(|index| self.memory.pages.get(index)) else {
                return Some(Obstacle::Unmapped { location: base });
            };
            (0..WORDS).find_map(|at| {
                let part = attributes::part(table.format, block, table.level, first + at);
                self.compare_entry(page, at, below, part, side)
            })
        })
    }

    fn compare_entry(&self, page: &Page, number: usize, table: Table, part: u64, side: Side) -> Option<Obstacle> {
        let (location, value) = (page.address(number), page.value(number));
        if side == Side::Old && page.unclean.has(number) {
            return Some(Obstacle::Unclean { location });
        }
        if !page.initialised.has(number) || !page.valid.has(number) {
            // An old entry that maps nothing and is clean is in no TLB.
            return (side == Side::New).then_some(Obstacle::Unmapped { location });
        }
        match table.decode(value) {
            Descriptor::Table(_) => self.compare((location, value), table, part, side),
            Descriptor::Map(_) if side == Side::Old && !is_cached(page, number) => None,
            _ => {
                let (old, new) = if side == Side::Old { (value, part) } else { (part, value) };
                let deciding = self.by_architecture(table, (old, new), false);
                (deciding != 0).then_some(Obstacle::Differs { location, deciding })
            }
        }
    }

    /// Puts a block in a table's place, or the other way round.
    pub(super) fn resize(&mut self, thread: u32, index: usize, at: usize, is_cached: bool, new: u64) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let (old, table, cell) = (page.value(at), page.table_of(at), page.address(at));
        let regime = self.regime(table.kind);
        let mut granted = self.rights(table, old, regime);
        if let Some(stale) = self.stale.get(cell) {
            granted = granted.with(stale.granted);
        }
        self.store(index, at, new);
        self.shown.remove(&cell);
        let (is_resized, levels, above) = (true, level_bit(table.level), None);
        let change = InPlace { thread, cell, table, old, new, granted, regime, is_resized, levels, above };
        if let Descriptor::Table(next) = table.decode(old) {
            // TLBs may still walk the old table: it stays as it is until they cannot.
            self.traverse(thread, Visit::Freeze, next, table.below(cell, at))?;
            let limits = self.limits(table) | old & TABLE_LIMITS;
            let (granted, is_cached) = self.cached_below(next, table.below(cell, at), limits, regime);
            if let Some(page) = self.memory.pages.get_mut(index) {
                page.aged.put(at, is_cached);
            }
            self.changed_in_place(InPlace { granted, ..change });
            return Ok(());
        }
        if let Some(page) = self.memory.pages.get_mut(index) {
            page.aged.put(at, false);
        }
        let known = self.uses.len();
        self.mark_below(thread, table, cell, at, new)?;
        self.keep_tables(known);
        let Descriptor::Table(next) = table.decode(new) else { return Ok(()) };
        if is_cached {
            let inherited = Inherited { block: old, granted, regime, levels };
            self.changed_in_place(change);
            self.inherit(thread, next, table.below(cell, at), inherited);
        }
        Ok(())
    }

    /// The rights that TLBs may grant by entries of a table and below it, and whether they may contain any. `limits`:
    /// those of the tables above.
    fn cached_below(&self, base: u64, table: Table, limits: u64, regime: Regime) -> (Rights, bool) {
        let pages = (0..table.pages()).map(|number| (base.wrapping_add(number * PAGE_BYTES), table.part(number)));
        pages.fold((Rights::default(), false), |(granted, is_any), (base, part)| {
            let (rights, is_cached) = self.cached_in_page(base, part, limits, regime);
            (granted.with(rights), is_any || is_cached)
        })
    }

    fn cached_in_page(&self, base: u64, table: Table, limits: u64, regime: Regime) -> (Rights, bool) {
        let (mut granted, mut is_any) = (Rights::default(), false);
        let Some(page) = self.memory.peek(base).and_then(|index| self.memory.pages.get(index)) else {
            return (granted, is_any);
        };
        for at in page.valid.ones() {
            let value = page.value(at);
            let (rights, is_cached) = match table.decode(value) {
                Descriptor::Table(next) => {
                    let limits = limits | value & TABLE_LIMITS;
                    self.cached_below(next, table.below(page.address(at), at), limits, regime)
                }
                Descriptor::Map(_) if is_cached(page, at) => (rights_within(table, value, limits, regime), true),
                _ => continue,
            };
            granted = granted.with(rights);
            is_any |= is_cached;
        }
        (granted, is_any)
    }
}

/// True when TLBs may contain a block or page.
pub(super) fn is_cached(page: &Page, at: usize) -> bool {
    page.value(at) & ACCESS_FLAG != 0 || page.aged.has(at)
}
