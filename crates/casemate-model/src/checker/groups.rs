//! Groups of entries with the contiguous bit: TLBs may hold them as one, or as several (Arm ARM D8.7.1, contiguous bit,
//! rule RQTRPM: a group of which some entry lacks the bit is misprogrammed; and the statement beside it that TLB
//! maintenance of the entire region is required). By way of a public transcription of the manual, and of
//! `contpte_convert` of Linux' arch/arm64/mm/contpte.c with its comments, which makes all entries of a group invalid,
//! flushes the entire range, and writes all of them then: secondary sources.

use core::ops::Range;

use super::{Checker, Flow};
use crate::attributes::{BbmLevel, CONTIGUOUS};
use crate::breach::breach;
use crate::descriptor::{ACCESS_FLAG, Descriptor, Granule, SOFTWARE_BITS};
use crate::memory::{Table, WORDS};
use crate::quirk::Quirk;
use crate::watch::Watch;

/// What may differ within a group: the access flag, the dirty state (AP[2] or S2AP[1], DBM), and what hardware ignores.
const FREE: u64 = ACCESS_FLAG | 1 << 7 | 1 << 51 | SOFTWARE_BITS | 0x1f << 59;

/// The number of entries of a group.
fn group_entries(table: Table) -> usize {
    match (table.format.granule, table.level) {
        (Granule::K4, 1..=3) => 16,
        (Granule::K16, 3) => 128,
        (Granule::K16, 2) | (Granule::K64, 2 | 3) => 32,
        _ => 1,
    }
}

impl<W: Watch> Checker<W> {
    /// An entry of a tree got a valid value.
    #[inline]
    pub(super) fn check_group(&mut self, index: usize, at: usize) -> Flow {
        if self.has(Quirk::ContiguousIgnored) {
            return Ok(());
        }
        let Some(page) = self.memory.pages.get_mut(index) else { return Ok(()) };
        page.has_contiguous |= page.value(at) & CONTIGUOUS != 0;
        if page.has_contiguous { self.compare_group(index, at) } else { Ok(()) }
    }

    /// A page became part of a table.
    pub(super) fn check_groups(&mut self, index: usize) -> Flow {
        let Some(page) =
            self.memory.pages.get_mut(index).filter(|_| !self.options.quirks.has(Quirk::ContiguousIgnored))
        else {
            return Ok(());
        };
        page.has_contiguous = page.values.iter().any(|value| value & (CONTIGUOUS | 1) == CONTIGUOUS | 1);
        if !page.has_contiguous {
            return Ok(());
        }
        for at in page.valid.and(&page.entry).ones() {
            if self.memory.pages.get(index).is_some_and(|page| page.value(at) & CONTIGUOUS != 0) {
                self.compare_group(index, at)?;
            }
        }
        Ok(())
    }

    fn compare_group(&mut self, index: usize, at: usize) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let table = page.table_of(at);
        let Some(group) = group(table, at) else { return Ok(()) };
        self.work += group.len() as u64;
        let value = page.value(at);
        let may_differ = self.bbm() != BbmLevel::Zero;
        let mut others = group.clone().filter(|other| page.entry.has(*other) && page.valid.has(*other));
        let is_misplaced = is_marked(table, value) && is_misplaced(table, value, at, &group);
        if !is_misplaced
            && others.all(|other| is_consistent(table, (at, value), (other, page.value(other)), may_differ))
        {
            return Ok(());
        }
        let word = page.address(at);
        // Recovery: the entries stay as they are.
        self.fire(&breach::CONTIGUOUS_DIFFERS, word)
    }

    /// A clean entry became valid: TLBs may contain its group as one entry as long as another entry of it, which had
    /// the bit, is not clean.
    #[inline]
    pub(super) fn check_kept(&mut self, index: usize, at: usize) -> Flow {
        match self.memory.pages.get(index) {
            Some(page) if page.has_contiguous && !page.unclean.is_empty() => self.compare_kept(index, at),
            _ => Ok(()),
        }
    }

    #[cold]
    fn compare_kept(&mut self, index: usize, at: usize) -> Flow {
        let Some(page) = self.memory.pages.get(index) else { return Ok(()) };
        let (table, value) = (page.table_of(at), page.value(at));
        let Some(mut group) = group(table, at).filter(|_| !self.has(Quirk::ContiguousIgnored)) else { return Ok(()) };
        self.work += group.len() as u64;
        let may_differ = self.bbm() != BbmLevel::Zero;
        let conflict = group.find_map(|other| {
            let cell = page.address(other);
            let old = self.unclean.get(cell).filter(|_| page.unclean.has(other))?.old;
            let is_conflict = is_marked(table, old) && !is_consistent(table, (at, value), (other, old), may_differ);
            is_conflict.then_some(cell)
        });
        // The entry that is not clean is the one to look at. Recovery: as if it were clean.
        conflict.map_or(Ok(()), |cell| self.fire(&breach::CONTIGUOUS_KEPT, cell))
    }
}

/// The positions of the group of an entry of a table; nothing where there are none.
fn group(table: Table, at: usize) -> Option<Range<usize>> {
    let entries = group_entries(table);
    let first = at & !(entries - 1);
    (entries > 1).then(|| first..(first + entries).min(WORDS))
}

/// True for a block or page with the bit. In a table it means nothing.
fn is_marked(table: Table, value: u64) -> bool {
    value & CONTIGUOUS != 0 && matches!(table.decode(value), Descriptor::Map(_))
}

/// True when the first address of a group is not aligned to what the group maps.
fn is_misplaced(table: Table, value: u64, at: usize, group: &Range<usize>) -> bool {
    let Descriptor::Map(output) = table.decode(value) else { return false };
    let bytes = table.entry_bytes();
    let before = bytes.wrapping_mul((at - group.start) as u64);
    output.wrapping_sub(before) & (bytes.wrapping_mul(group.len() as u64) - 1) != 0
}

/// True when two valid entries of a group may be in one TLB entry, or need not be. `may_differ`: in the bit itself,
/// which FEAT_BBM permits.
fn is_consistent(table: Table, one: (usize, u64), other: (usize, u64), may_differ: bool) -> bool {
    let (first, second) = (one.1, other.1);
    if one.0 == other.0 || !is_marked(table, first) && !is_marked(table, second) {
        return true;
    }
    match (table.decode(first), table.decode(second)) {
        (Descriptor::Map(from), Descriptor::Map(to)) => {
            if (first ^ second) & CONTIGUOUS != 0 && !may_differ {
                return false;
            }
            let distance = table.entry_bytes().wrapping_mul((other.0 as u64).wrapping_sub(one.0 as u64));
            let attributes = !(FREE | CONTIGUOUS | table.format.address_bits());
            (first ^ second) & attributes == 0 && to.wrapping_sub(from) == distance
        }
        // The bit is one of a block or page, and the other is none.
        _ => false,
    }
}
