//! Groups of entries with the contiguous bit: TLBs may hold them as one (Arm ARM D8.7, contiguous bit, by way of Linux'
//! arch/arm64/mm/contpte.c and its comments: secondary).

use super::{Checker, Flow};
use crate::attributes::{BbmLevel, CONTIGUOUS};
use crate::breach::breach;
use crate::descriptor::{ACCESS_FLAG, Descriptor, Granule, SOFTWARE_BITS};
use crate::memory::{Page, Table, WORDS};
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
        let entries = group_entries(table);
        if entries == 1 || table.decode(page.value(at)).is_table() {
            return Ok(());
        }
        self.work += entries as u64;
        let first = at & !(entries - 1);
        let mut others =
            (first..(first + entries).min(WORDS)).filter(|other| page.entry.has(*other) && page.valid.has(*other));
        let lacks = self.bbm() != BbmLevel::Zero;
        let is_misplaced = page.value(at) & CONTIGUOUS != 0 && is_misplaced(page, at, (first, entries));
        if !is_misplaced && others.all(|other| is_consistent(page, (at, other), lacks)) {
            return Ok(());
        }
        let word = page.address(at);
        // Recovery: the entries stay as they are.
        self.fire(&breach::CONTIGUOUS_DIFFERS, word)
    }
}

/// True when the first address of a group is not aligned to what the group maps.
fn is_misplaced(page: &Page, at: usize, (first, entries): (usize, usize)) -> bool {
    let table = page.table_of(at);
    let Descriptor::Map(output) = table.decode(page.value(at)) else { return false };
    let bytes = table.entry_bytes();
    output.wrapping_sub(bytes.wrapping_mul((at - first) as u64)) & (bytes.wrapping_mul(entries as u64) - 1) != 0
}

/// True when two valid entries of a group may be in one TLB entry, or need not be. `may_differ`: in the bit itself,
/// which FEAT_BBM permits.
fn is_consistent(page: &Page, (one, other): (usize, usize), may_differ: bool) -> bool {
    let table = page.table_of(one);
    let (first, second) = (page.value(one), page.value(other));
    if (first | second) & CONTIGUOUS == 0 || one == other {
        return true;
    }
    match (table.decode(first), table.decode(second)) {
        (Descriptor::Map(from), Descriptor::Map(to)) => {
            if (first ^ second) & CONTIGUOUS != 0 {
                return may_differ;
            }
            let distance = table.entry_bytes().wrapping_mul((other as u64).wrapping_sub(one as u64));
            let attributes = !(FREE | table.format.address_bits());
            (first ^ second) & attributes == 0 && to.wrapping_sub(from) == distance
        }
        // In place of a table the bit means nothing.
        (Descriptor::Map(_), _) => first & CONTIGUOUS == 0,
        _ => true,
    }
}
