//! Walks over tables: entering a tree, leaving it, freezing, searching for unclean entries.
//!
//! The reference walks all 512 words of each table and reads the walking thread's registers at each step. If a table is
//! complete, entirely entered and owned by no thread, its flags answer for all its words at once and only valid entries
//! are visited; otherwise words are visited one by one, in the reference's order.

use super::handover::Handover;
use super::{Checker, Flow, Stop};
use crate::bits::Bits;
use crate::breach::breach;
use crate::descriptor::{BadGeometry, Control, Descriptor, Granule, Start, UPPER_CONTROL, upper_control};
use crate::memory::{NOWHERE, PAGE_BYTES, Table, WORDS};
use crate::quirk::Quirk;
use crate::roots::Root;
use crate::tree::TreeKind;
use crate::watch::{TableChange, Watch};

/// What a walk does with each entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    /// Makes it part of the tree.
    Mark,
    /// Takes it out of the tree.
    Unmark,
    /// An entry above it is being removed.
    Freeze,
    /// Is it unclean?
    Unclean,
    /// Is it this one?
    Find(u64),
    /// Only the checks that every walk makes.
    Nothing,
}

impl<W: Watch> Checker<W> {
    /// Walks a table and everything below it; true when the searched entry was found.
    pub(crate) fn traverse(&mut self, thread: u32, visit: Visit, address: u64, table: Table) -> Result<bool, Stop> {
        if table.format.granule == Granule::K4 {
            return self.traverse_page(thread, visit, address, table);
        }
        let mut is_met = false;
        for number in 0..table.pages() {
            is_met |=
                self.traverse_page(thread, visit, address.wrapping_add(number * PAGE_BYTES), table.part(number))?;
        }
        Ok(is_met)
    }

    /// The same for the part of a table in a page of 4 KiB.
    fn traverse_page(&mut self, thread: u32, visit: Visit, address: u64, table: Table) -> Result<bool, Stop> {
        if !address.is_multiple_of(PAGE_BYTES) {
            self.fire(&breach::ASSERT_TABLE_ALIGNED, address)?;
            return Ok(false);
        }
        let Some(index) = self.memory.find(address) else {
            self.fire(&breach::WALK_UNINITIALISED, address)?;
            return Ok(false);
        };
        if table.kind.is_el1() {
            match visit {
                Visit::Mark if !self.enter_nested(address, table)? => return Ok(false),
                Visit::Unmark => drop(self.nested.remove(&address)),
                _ => {}
            }
        }
        if !self.stale.is_empty() {
            self.tables_and_stale(thread, visit, index, table)?;
        }
        let is_met = match self.is_plain(visit, index, table) {
            true => self.traverse_by_flags(thread, visit, index, table)?,
            false => self.traverse_words(thread, visit, index, table)?,
        };
        if visit == Visit::Mark {
            self.check_groups(index)?;
        }
        Ok(is_met)
    }

    /// What a table that enters or leaves a tree means for stale entries.
    #[cold]
    fn tables_and_stale(&mut self, thread: u32, visit: Visit, index: usize, table: Table) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let (base, valid) = (page.base, page.valid.and(&page.initialised));
        match visit {
            Visit::Mark => {
                self.hand_over(base, PAGE_BYTES, Handover::Table);
                for at in valid.ones() {
                    let value = self.memory.pages.get(index).map_or(0, |page| page.value(at));
                    self.map(table, value);
                }
                Ok(())
            }
            Visit::Unmark => self.drop_stale_page(thread, base, table),
            _ => Ok(()),
        }
    }

    /// True when flags answer for all words of the table.
    fn is_plain(&self, visit: Visit, index: usize, table: Table) -> bool {
        let Some(page) = self.memory.pages.get(index) else { return false };
        let same_place = || page.mixed.is_empty() && page.table.level == table.level;
        page.initialised.is_all()
            && page.owners.is_empty()
            && !(self.options.no_sysreg && table.stage() == 1)
            && match visit {
                Visit::Mark => page.entry.is_empty(),
                Visit::Unmark => page.entry.is_all() && page.unclean.is_empty() && same_place(),
                Visit::Freeze => page.entry.is_all() && same_place(),
                _ => true,
            }
    }

    fn traverse_by_flags(&mut self, thread: u32, visit: Visit, index: usize, table: Table) -> Result<bool, Stop> {
        self.work += 8;
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(false) };
        let base = page.base;
        let mut is_met = false;
        match visit {
            Visit::Mark => {
                page.mark_all(table);
                page.unclean_below = 0;
            }
            Visit::Unmark => page.entry = Bits::default(),
            Visit::Freeze => page.frozen = Bits::ALL,
            Visit::Unclean => is_met = !page.unclean.is_empty(),
            Visit::Find(cell) => is_met = cell & !(PAGE_BYTES - 1) == base,
            Visit::Nothing => {}
        }
        if W::IS_ON {
            self.report_table(visit, base, None, table);
        }
        if table.level == 3 {
            return self.last_level(visit, index, is_met);
        }
        for at in self.memory.pages.get(index).map(|page| page.valid).unwrap_or_default().ones() {
            let Some(page) = self.memory.pages.get(index) else { continue };
            let (value, word) = (page.value(at), page.address(at));
            match table.decode(value) {
                Descriptor::Table(next) => is_met |= self.traverse(thread, visit, next, table.below(word, at))?,
                Descriptor::Bad => self.fire(&breach::BAD_ENCODING, word)?,
                _ => {}
            }
        }
        Ok(is_met)
    }

    /// Level 3 has one bad encoding; it can only occur where values are new.
    fn last_level(&mut self, visit: Visit, index: usize, is_met: bool) -> Result<bool, Stop> {
        let Some(page) = self.memory.pages.get(index) else { return Ok(is_met) };
        if matches!(visit, Visit::Unmark | Visit::Freeze) || !page.values.iter().any(|value| value & 3 == 1) {
            return Ok(is_met);
        }
        let bad = page.values.iter().position(|value| value & 3 == 1).unwrap_or(0);
        let word = page.address(bad);
        self.fire(&breach::BAD_ENCODING, word)?;
        Ok(is_met)
    }

    #[cold]
    fn report_table(&mut self, visit: Visit, page: u64, entry: Option<usize>, table: Table) {
        let change = match visit {
            Visit::Mark => TableChange::Entered,
            Visit::Unmark => TableChange::Left,
            Visit::Freeze => TableChange::Frozen,
            _ => return,
        };
        if visit == Visit::Unmark && !self.shown.is_empty() {
            self.shown.retain_keys(|word| word & !(PAGE_BYTES - 1) != page);
        }
        self.watch.table(page, entry, &table.into(), change);
    }

    #[cold]
    fn traverse_words(&mut self, thread: u32, visit: Visit, index: usize, table: Table) -> Result<bool, Stop> {
        let mut is_met = false;
        self.work += WORDS as u64;
        for at in 0..WORDS {
            let Some(page) = self.memory.pages.get(index) else { return Ok(is_met) };
            let (word, owner, value) = (page.address(at), page.owner(at), page.value(at));
            if !page.initialised.has(at) {
                self.fire(&breach::WALK_UNINITIALISED, word)?;
                continue;
            }
            if owner >= 0 && owner as u32 != thread {
                if !self.has(Quirk::ThreadOwnedStopsTable) {
                    self.is_irregular |= matches!(visit, Visit::Mark | Visit::Unmark | Visit::Freeze);
                    continue;
                }
                self.is_irregular |= matches!(visit, Visit::Mark | Visit::Unmark | Visit::Freeze);
                return Ok(is_met);
            }
            self.is_irregular |= owner >= 0 && table.level < 3;
            let descriptor = self.decode(thread, table, word, value)?;
            let Some(met) = self.visit_word(visit, index, at, table)? else { continue };
            is_met |= met;
            if let Descriptor::Table(next) = descriptor {
                is_met |= self.traverse(thread, visit, next, table.below(word, at))?;
            }
        }
        Ok(is_met)
    }

    /// `None` if the walk does not continue below the entry.
    fn visit_word(&mut self, visit: Visit, index: usize, at: usize, table: Table) -> Result<Option<bool>, Stop> {
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(None) };
        let word = page.address(at);
        match visit {
            Visit::Mark if page.entry.has(at) => {
                self.fire(&breach::DOUBLE_USE, word)?;
                // Recovery: it stays in its tree.
                return Ok(None);
            }
            Visit::Mark => {
                if page.entry.is_empty() {
                    page.unclean_below = 0;
                }
                page.mark(at, table);
            }
            Visit::Unmark if !page.entry.has(at) => {
                self.fire(&breach::UNMARK_NON_ENTRY, word)?;
                return Ok(None);
            }
            Visit::Unmark => {
                self.forget_unclean(index, at);
                if let Some(page) = self.memory.pages.get_mut(index) {
                    page.entry.put(at, false);
                }
            }
            Visit::Freeze => {
                let owner = page.owner(at);
                page.frozen.put(at, true);
                if owner >= 0 {
                    self.fire(&breach::FREEZE_THREAD_OWNED, word)?;
                }
            }
            Visit::Unclean => return Ok(Some(page.entry.has(at) && page.unclean.has(at))),
            Visit::Find(cell) => return Ok(Some(cell == word)),
            Visit::Nothing => {}
        }
        if W::IS_ON {
            self.report_table(visit, word & !(PAGE_BYTES - 1), Some(at), table);
        }
        Ok(Some(false))
    }

    /// Reads a descriptor as the reference does, including its violations.
    #[inline]
    pub(crate) fn decode(&mut self, thread: u32, table: Table, word: u64, value: u64) -> Result<Descriptor, Stop> {
        let descriptor = table.decode(value);
        match descriptor {
            Descriptor::Bad => self.fire(&breach::BAD_ENCODING, word)?,
            Descriptor::Map(_) if table.stage() == 1 && self.options.no_sysreg => {
                self.register(thread, table.kind.types())?;
            }
            _ => {}
        }
        Ok(descriptor)
    }

    /// Where a walk of a tree starts for a thread.
    pub(crate) fn geometry(&mut self, thread: u32, kind: TreeKind) -> Result<Option<Start>, Stop> {
        let register = kind.control();
        let is_set = self.threads.get(thread).is_some_and(|thread| thread.register(register).is_some());
        let Some(value) = self.register(thread, register)? else { return Ok(None) };
        let value = if kind.is_upper() && !is_set { UPPER_CONTROL } else { value };
        match self.control(thread, kind, value).start() {
            Ok(start) => Ok(Some(start)),
            Err(bad) => {
                let breach = match bad {
                    BadGeometry::AddressSize => &breach::BAD_ADDRESS_SIZE,
                    BadGeometry::Granule => &breach::ASSERT_PAGE_SIZE,
                    BadGeometry::ReservedGranule => &breach::ASSERT_GRANULE,
                    BadGeometry::Concatenated => &breach::ASSERT_CONCATENATED,
                };
                self.fire(breach, NOWHERE)?;
                Ok(None)
            }
        }
    }

    /// A value of the register that gives the shape of a kind of trees, for a thread.
    pub(super) fn control(&self, thread: u32, kind: TreeKind, value: u64) -> Control {
        Control {
            value: if kind.is_upper() { upper_control(value) } else { value },
            stage: kind.stage(),
            is_host: kind.is_el1() || self.has_host_extensions(thread),
            no_concatenated: self.has(Quirk::ConcatenatedUnsupported),
            no_other_granule: self.has(Quirk::GranuleUnsupported),
        }
    }

    /// The shape of the root of an entry.
    fn shape(&mut self, thread: u32, table: Table) -> Result<Option<Start>, Stop> {
        if !self.has(Quirk::ActingGeometry) {
            let is_blind = self.has(Quirk::StageBlindIds);
            if let Some(root) = self.roots.of_base(table.kind, table.root, is_blind) {
                let Root { level, tables, format, pages, .. } = *root;
                return Ok(Some(Start { level, tables, format, pages, bits: 0 }));
            }
        }
        self.geometry(thread, table.kind)
    }

    /// Walks a tree from its root, including all tables of a concatenated start. `pages`: the pages of 4 KiB there.
    pub(crate) fn traverse_root(&mut self, thread: u32, visit: Visit, table: Table, pages: u16) -> Result<bool, Stop> {
        let mut is_met = false;
        for number in 0..u64::from(pages) {
            let address = table.root.wrapping_add(number * PAGE_BYTES);
            is_met |= self.traverse_page(thread, visit, address, table.part(number))?;
        }
        Ok(is_met)
    }

    /// True when no entry below this one is unclean; `next` is the table it pointed at.
    pub(crate) fn is_clean_below(
        &mut self,
        thread: u32,
        index: usize,
        at: usize,
        next: Option<u64>,
    ) -> Result<bool, Stop> {
        let Some(page) = self.memory.pages.get(index) else { return Ok(true) };
        let (table, word, owner, is_frozen) =
            (page.table_of(at), page.address(at), page.owner(at), page.frozen.has(at));
        if owner == -1 && self.has(Quirk::ReachabilityAssert) {
            let is_reached = match self.is_regular(thread, table)? {
                true => !is_frozen,
                false => self.is_found(thread, table, word)?,
            };
            if !is_reached {
                self.fire(&breach::ASSERT_UNREACHABLE, word)?;
            }
        }
        let Some(next) = next else { return Ok(true) };
        if self.is_irregular || self.has_thread_owners || self.options.no_sysreg || self.options.goes_on {
            return Ok(!self.traverse(thread, Visit::Unclean, next, table.below(word, at))?);
        }
        Ok((0..table.pages()).all(|number| {
            let page = self.memory.find(next.wrapping_add(number * PAGE_BYTES));
            page.and_then(|index| self.memory.pages.get(index)).is_none_or(|page| page.unclean_below == 0)
        }))
    }

    /// True when the walk from the root to an entry of the tree can be skipped: every entry that is not frozen is below
    /// live ones.
    fn is_regular(&mut self, thread: u32, table: Table) -> Result<bool, Stop> {
        if self.is_irregular || self.options.no_sysreg || self.options.goes_on {
            return Ok(false);
        }
        let Some(start) = self.shape(thread, table)? else { return Ok(false) };
        let root = self.memory.peek(table.root).and_then(|index| self.memory.pages.get(index));
        Ok(root.is_some_and(|page| {
            let top = page.table;
            page.mixed.is_empty() && top.parent == NOWHERE && top.root == table.root && top.level == start.level
        }))
    }

    #[cold]
    fn is_found(&mut self, thread: u32, table: Table, word: u64) -> Result<bool, Stop> {
        let Some(start) = self.shape(thread, table)? else { return Ok(true) };
        let top = Table { level: start.level, format: start.format, input: 0, parent: NOWHERE, thread, ..table };
        self.traverse_root(thread, Visit::Find(word), top, start.pages)
    }
}
