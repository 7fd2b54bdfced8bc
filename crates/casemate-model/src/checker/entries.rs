//! Writes to entries of live tables.

use super::stale::InPlace;
use super::walk::Visit;
use super::{Checker, Flow, Stop, index_address};
use crate::attributes::{self, BbmLevel, LiveChange, NO_CONFLICT, Registers, TYPE};
use crate::breach::breach;
use crate::descriptor::{ACCESS_FLAG, Descriptor, SOFTWARE_BITS};
use crate::locks::Entry;
use crate::memory::{NOWHERE, Table, position};
use crate::quirk::Quirk;
use crate::record::{MemoryOrder, Sysreg};
use crate::rights::Rights;
use crate::stale::level_bit;
use crate::tree::TreeKind;
use crate::watch::{Change, Watch};

/// The state of an entry (section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryState {
    Valid,
    Unclean,
    Clean,
}

impl<W: Watch> Checker<W> {
    /// A write to the entry at a position of a page.
    pub(crate) fn write_entry(&mut self, thread: u32, order: MemoryOrder, index: usize, at: usize, value: u64) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let is_valid = value & 1 != 0;
        let state = match (page.unclean.has(at), page.valid.has(at)) {
            (true, _) => EntryState::Unclean,
            (false, true) => EntryState::Valid,
            (false, false) => EntryState::Clean,
        };
        if !self.options.is_racy {
            let cell = Entry { word: page.address(at), root: page.table_of(at).root, owner: page.owner(at) };
            let is_plain = !order.is_release();
            self.authorise(thread, cell, is_plain, state == EntryState::Valid || is_valid)?;
        }
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        if page.frozen.has(at) {
            let old = page.value(at);
            if old == value || (old | value) & 1 == 0 {
                page.store(at, value);
                return Ok(());
            }
            return self.write_frozen(index, at, value);
        }
        let flow = match (state, is_valid) {
            (EntryState::Valid, true) => self.rewrite(thread, index, at, value),
            (EntryState::Valid, false) => self.invalidate(thread, index, at, value),
            (EntryState::Unclean, true) => {
                let word = page.address(at);
                self.fire(&breach::BBM_UNCLEAN_VALID, word)?;
                // Recovery: as if the entry had become clean before.
                self.clean(thread, index, at)?;
                self.make_valid(thread, index, at, value)
            }
            (EntryState::Clean, true) => self.make_valid(thread, index, at, value),
            (_, false) => {
                page.store(at, value);
                if W::IS_ON {
                    self.watch.change(index_address(&self.memory, index, at), Change::RewrittenInvalid);
                }
                Ok(())
            }
        };
        match (is_valid, state) {
            (false, _) => flow,
            (true, EntryState::Clean) => {
                flow.and_then(|()| self.check_group(index, at)).and_then(|()| self.check_kept(index, at))
            }
            (true, _) => flow.and_then(|()| self.check_group(index, at)),
        }
    }

    #[cold]
    fn write_frozen(&mut self, index: usize, at: usize, value: u64) -> Flow {
        let word = index_address(&self.memory, index, at);
        self.fire(&breach::WRITE_UNCLEAN_PARENT, word)?;
        // Recovery: the value is stored, and an unclean entry that becomes valid counts as clean.
        if value & 1 != 0 {
            self.forget_unclean(index, at);
        }
        self.store(index, at, value);
        if W::IS_ON {
            self.watch.change(word, Change::Forced { is_valid: value & 1 != 0 });
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn store(&mut self, index: usize, at: usize, value: u64) {
        if let Some(page) = self.memory.pages.get_mut(index) {
            page.store(at, value);
        }
    }

    /// Valid to valid.
    fn rewrite(&mut self, thread: u32, index: usize, at: usize, value: u64) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let (old, table, word) = (page.value(at), page.table_of(at), page.address(at));
        let is_cached = old & ACCESS_FLAG != 0 || page.aged.has(at);
        let is_table = |value| table.decode(value).is_table();
        if let Some(change) = self.needs_break(thread, table, word, is_cached, (old, value))? {
            self.fire_change(word, change)?;
            // Recovery: as if the entry had been broken, cleaned and made.
            self.drop_stale(thread, word, table)?;
            if let Descriptor::Table(next) = table.decode(old) {
                self.traverse(thread, Visit::Unmark, next, table.below(word, at))?;
            }
            self.store(index, at, value);
            if let Some(page) = self.memory.pages.get_mut(index) {
                page.aged.put(at, false);
            }
            self.map(table, value);
            return self.mark_below(thread, table, word, at, value);
        }
        if W::IS_ON {
            self.watch.change(word, Change::Rewritten(live_change(table, (old, value), 0, 0)));
        }
        if is_table(old) != is_table(value) {
            return self.resize(thread, index, at, is_cached, value);
        }
        if old == value {
            return Ok(());
        }
        if W::IS_ON {
            self.shown.insert_new(word, old);
        }
        if let Some(page) = self.memory.pages.get_mut(index) {
            page.store(at, value);
            // Clearing the flag drops nothing from TLBs: their entries still need a break.
            page.aged.put(at, is_cached);
        }
        self.changed_live(thread, table, word, is_cached, (old, value));
        Ok(())
    }

    /// What TLBs keep of a live entry that was changed in place.
    fn changed_live(&mut self, thread: u32, table: Table, word: u64, is_cached: bool, (old, new): (u64, u64)) {
        let (Descriptor::Map(before), Descriptor::Map(after)) = (table.decode(old), table.decode(new)) else {
            return self.changed_limits(thread, table, word, (old, new));
        };
        if is_cached {
            let sets_marker = table.level < 3 && !old & new & NO_CONFLICT != 0;
            let is_resized = self.bbm() == BbmLevel::One && sets_marker;
            // Rights depend on registers of all threads: most changes need no look at them.
            if (old ^ new) & Rights::BITS == 0 && !is_resized && self.stale.get(word).is_none() {
                return;
            }
            let regime = self.regime(table.kind);
            let (granted, levels, above) = (self.rights(table, old, regime), level_bit(table.level), None);
            let cell = word;
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
        } else if before != after {
            self.map(table, new);
        }
    }

    /// Whether the change of a live entry needs break-before-make. `is_cached`: TLBs may contain the entry, if it is a
    /// block or page.
    fn needs_break(
        &mut self,
        thread: u32,
        table: Table,
        word: u64,
        is_cached: bool,
        (old, new): (u64, u64),
    ) -> Result<Option<LiveChange>, Stop> {
        let before = self.decode(thread, table, word, old)?;
        let after = self.decode(thread, table, word, new)?;
        if old == new && !self.has(Quirk::IdenticalTableRewrite) {
            return Ok(None);
        }
        let is_reference = self.has(Quirk::AfInverted);
        let (is_exempt, by_strict) = match (before, after) {
            (Descriptor::Map(_), Descriptor::Map(_)) => {
                let is_exempt = if self.has(Quirk::AfInverted) { (old | new) & ACCESS_FLAG != 0 } else { !is_cached };
                (is_exempt, (old ^ new) & !SOFTWARE_BITS)
            }
            (Descriptor::Table(_), _) | (_, Descriptor::Table(_)) => (false, old ^ new),
            _ => return Ok(None),
        };
        if is_exempt {
            return Ok(None);
        }
        let obstacle = match before.is_table() != after.is_table() {
            true => self.obstacle(table, word, is_cached, (old, new)),
            false => None,
        };
        let is_allowed_size = before.is_table() != after.is_table() && obstacle.is_none();
        let is_resized = self.stale.get(word).is_some_and(|stale| stale.is_resized);
        let by_architecture = match is_allowed_size {
            true => 0,
            false => self.by_architecture(table, (old, new), is_resized),
        };
        let is_repeated = old == new && before.is_table();
        let deciding = match (self.has(Quirk::AnyAttribute), is_reference && is_allowed_size) {
            (true, _) => by_strict,
            // The reference knows no FEAT_BBM.
            (false, true) => TYPE,
            (false, false) => by_architecture,
        };
        let needs_break = deciding != 0 || is_repeated;
        let change = LiveChange { obstacle, ..live_change(table, (old, new), deciding, by_architecture) };
        Ok(needs_break.then_some(change))
    }

    /// The changed bits that need a break by the architecture. If threads differ in a register, software is at fault: a
    /// break that one of them needs counts. `table`: the table of the entry, or one like it.
    pub(super) fn by_architecture(&self, table: Table, (old, new): (u64, u64), is_resized: bool) -> u64 {
        let Table { kind, level, format, .. } = table;
        let stage = kind.stage();
        let hardware_bits = if attributes::changes_pbha(old, new) { self.hardware_bits(kind) } else { 0 };
        let is_same_type = stage == 1 && attributes::changes_attr_index(old, new) && {
            let mut mairs = self.threads.all_of(kind.types()).peekable();
            mairs.peek().is_some() && mairs.all(|mair| attributes::is_same_type(mair, old, new))
        };
        let registers = Registers { hardware_bits, is_same_type, bbm: self.bbm(), is_resized, format };
        attributes::deciding(stage, level, old, new, registers)
    }

    /// The bits of PBHA that some thread gave to the hardware: HWUn of VTCR_EL2 and TCR_EL2 are bits 28:25; those of
    /// TCR_EL1, and of TCR_EL2 of a host, are bits 46:43 for the lower half and 50:47 for the upper one.
    fn hardware_bits(&self, kind: TreeKind) -> u64 {
        let is_host = kind == TreeKind::El2 && self.threads.all_of(Sysreg::HcrEl2).any(|hcr| hcr >> 34 & 1 != 0);
        let first = match kind {
            TreeKind::El2 | TreeKind::StageTwo if !is_host => 25,
            TreeKind::El2Upper | TreeKind::El1Upper => 47,
            _ => 43,
        };
        self.threads.all_of(kind.control()).fold(0, |all, control| all | control >> first & 0xf)
    }

    /// Valid to invalid.
    fn invalidate(&mut self, thread: u32, index: usize, at: usize, value: u64) -> Flow {
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        let (old, table, word, owner) = (page.value(at), page.table_of(at), page.address(at), page.owner(at));
        page.store(at, value);
        page.unclean.put(at, true);
        let old = self.oldest_value(word, table, old);
        self.unclean.push(word, thread, old, table.root, owner);
        self.count_unclean(index, at, 1);
        if W::IS_ON {
            self.watch.change(word, Change::Invalidated { old });
        }
        if let Descriptor::Table(next) = table.decode(old) {
            self.traverse(thread, Visit::Freeze, next, table.below(word, at))?;
        }
        self.check_nested(table, at)
    }

    /// Invalid and clean to valid.
    fn make_valid(&mut self, thread: u32, index: usize, at: usize, value: u64) -> Flow {
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        let (table, word, was_table) = (page.table_of(at), page.address(at), page.was_table.has(at));
        page.store(at, value);
        if was_table && !self.is_clean_below(thread, index, at, None)? {
            self.fire(&breach::BBM_UNCLEAN_CHILDREN, word)?;
        }
        self.mark_new(thread, table, word, at, value, was_table)?;
        if let Some(page) = self.memory.pages.get_mut(index) {
            page.was_table.put(at, false);
        }
        self.map(table, value);
        if W::IS_ON {
            self.watch.change(word, Change::MadeValid);
        }
        Ok(())
    }

    /// Marks the entries below a new value. If the entry was a table before, the reference first walks the entire tree
    /// with the new value in place; if both would report a violation, the one from that walk counts.
    fn mark_new(&mut self, thread: u32, table: Table, word: u64, at: usize, value: u64, was_table: bool) -> Flow {
        let marked = self.mark_below(thread, table, word, at, value);
        if marked.is_ok() || !was_table || !self.has(Quirk::ReachabilityAssert) {
            return marked;
        }
        let first = self.unfire();
        self.decode(thread, table, word, value)?;
        if let Descriptor::Table(next) = table.decode(value) {
            self.traverse(thread, Visit::Nothing, next, table.below(word, at))?;
        }
        self.refire(first);
        marked
    }

    pub(super) fn mark_below(&mut self, thread: u32, table: Table, word: u64, at: usize, value: u64) -> Flow {
        match self.decode(thread, table, word, value)? {
            Descriptor::Table(next) => {
                let place = Table { thread, ..table.below(word, at) };
                self.traverse(thread, Visit::Mark, next, place)?;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Unclean to clean: the entries below a removed table leave the tree.
    pub(crate) fn clean(&mut self, thread: u32, index: usize, at: usize) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let (table, word) = (page.table_of(at), page.address(at));
        let old = self.unclean.get(word).map_or(0, |unclean| unclean.old);
        let next = match table.decode(old) {
            Descriptor::Table(next) => Some(next),
            _ => None,
        };
        if let Some(next) = next {
            if !self.is_clean_below(thread, index, at, Some(next))? {
                self.fire(&breach::BBM_UNCLEAN_CHILDREN, word)?;
                // Recovery: unclean entries below count as clean.
            }
            self.traverse(thread, Visit::Unmark, next, table.below(word, at))?;
        }
        self.forget_unclean(index, at);
        if let Some(page) = self.memory.pages.get_mut(index) {
            page.was_table.put(at, next.is_some());
            page.set_cleaner(at, thread);
        }
        if W::IS_ON {
            self.watch.change(word, Change::Cleaned);
        }
        Ok(())
    }

    /// The entry is no longer unclean.
    pub(crate) fn forget_unclean(&mut self, index: usize, at: usize) {
        let Some(page) = self.memory.pages.get_mut(index) else { return };
        if !page.unclean.has(at) {
            return;
        }
        page.unclean.put(at, false);
        page.aged.put(at, false);
        let word = page.address(at);
        self.unclean.remove(word);
        self.shown.remove(&word);
        self.count_unclean(index, at, -1);
    }

    /// Counts an unclean entry in its table and in the tables above it.
    fn count_unclean(&mut self, mut index: usize, mut at: usize, change: i32) {
        // Five levels, and no more, whatever the links are.
        for _ in 0..5 {
            let Some(page) = self.memory.pages.get_mut(index) else { return };
            page.unclean_below = page.unclean_below.saturating_add_signed(change);
            let parent = page.table_of(at).parent;
            if parent == NOWHERE {
                return;
            }
            let Some(above) = self.memory.page_above(index, parent) else { return };
            (index, at) = (above, position(parent));
        }
    }
}

fn live_change(table: Table, (old, new): (u64, u64), deciding: u64, deciding_architecture: u64) -> LiveChange {
    let Table { kind, level, format, .. } = table;
    LiveChange { stage: kind.stage(), level, format, old, new, deciding, deciding_architecture, obstacle: None }
}
