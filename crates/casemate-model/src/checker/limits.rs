//! Tables of stage 1 limit the rights of what is below them: APTable, XNTable (UXNTable) and PXNTable, unless HPD of
//! TCR disables them. A table that changes in place takes rights from every block and page below it, or gives some
//! back.

use super::Checker;
use super::resize::is_cached;
use super::stale::{InPlace, rights_within};
use crate::descriptor::Descriptor;
use crate::memory::{NOWHERE, PAGE_BYTES, Table, position};
use crate::quirk::Quirk;
use crate::rights::{Regime, Rights, TABLE_LIMITS};
use crate::stale::level_bit;
use crate::tree::TreeKind;
use crate::watch::Watch;

/// A table entry whose limits changed.
#[derive(Debug, Clone, Copy)]
struct Limiting {
    thread: u32,
    entry: u64,
    /// That of the entry's tree.
    regime: Regime,
}

impl<W: Watch> Checker<W> {
    /// What a valid block or page permits, with what the tables above it leave of that; nothing for others.
    pub(super) fn rights(&self, table: Table, value: u64, regime: Regime) -> Rights {
        rights_within(table, value, self.limits(table), regime)
    }

    /// The regime of a kind of trees. It looks at every thread: walks take it once.
    pub(super) fn regime(&self, kind: TreeKind) -> Regime {
        Regime::of(&self.threads, kind)
    }

    /// The limits of the tables above the entries of a table, in the bits of [`TABLE_LIMITS`].
    pub(super) fn limits(&self, table: Table) -> u64 {
        let (mut limits, mut parent) = (0, table.parent);
        // Five levels, and no more.
        for _ in 0..5 {
            if parent == NOWHERE || table.stage() != 1 {
                break;
            }
            let (Some(above), Some(value)) = (self.table_of(parent), self.memory.peek_value(parent)) else { break };
            if above.decode(value).is_table() {
                limits |= value & TABLE_LIMITS;
            }
            parent = above.parent;
        }
        limits
    }

    /// A live table was changed in place.
    pub(super) fn changed_limits(&mut self, thread: u32, table: Table, word: u64, (old, new): (u64, u64)) {
        if (old ^ new) & TABLE_LIMITS == 0 || self.has(Quirk::StaleIgnored) {
            return;
        }
        let regime = self.regime(table.kind);
        if let Descriptor::Table(next) = table.decode(new)
            && regime.has_limits()
        {
            let limits = self.limits(table) | old & TABLE_LIMITS;
            self.limit(Limiting { thread, entry: word, regime }, next, table.below(word, position(word)), limits);
        }
    }

    /// `limits`: those of the tables above until this step.
    fn limit(&mut self, limiting: Limiting, base: u64, table: Table, limits: u64) {
        (0..table.pages()).for_each(|number| {
            self.limit_page(limiting, base.wrapping_add(number * PAGE_BYTES), table, limits);
        });
    }

    fn limit_page(&mut self, limiting: Limiting, base: u64, place: Table, limits: u64) {
        let Some(index) = self.memory.find(base) else { return };
        let entries = self.memory.pages.get(index).map(|page| page.valid.and(&page.entry)).unwrap_or_default();
        self.work += u64::from(entries.count());
        for at in entries.ones() {
            let Some(page) = self.memory.pages.get(index) else { return };
            let (cell, table, value) = (page.address(at), page.table_of(at), page.value(at));
            // After a violation, or above entries of threads, it may belong elsewhere.
            if (table.parent, table.level) != (place.parent, place.level) {
                continue;
            }
            match table.decode(value) {
                Descriptor::Table(next) => {
                    self.limit(limiting, next, table.below(cell, at), limits | value & TABLE_LIMITS);
                }
                Descriptor::Map(_) if is_cached(page, at) => {
                    let is_same = table.kind == place.kind;
                    let regime = if is_same { limiting.regime } else { self.regime(table.kind) };
                    let granted = rights_within(table, value, limits, regime);
                    let (levels, above) = (level_bit(table.level), Some(limiting.entry));
                    let (thread, old, new, is_resized) = (limiting.thread, value, value, false);
                    self.changed_in_place(InPlace {
                        thread,
                        cell,
                        table,
                        old,
                        new,
                        granted,
                        regime,
                        is_resized,
                        levels,
                        above,
                    });
                }
                _ => {}
            }
        }
    }
}
