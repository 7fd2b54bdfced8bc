//! Groups of contiguous entries, from the chapter's section "Contiguous entries": each group is written out as a list of what
//! it maps, and the list is compared with a range.

use super::descriptor::{Descriptor, PAGE, Shape, WORDS, is_valid};
use super::memory::Automaton;
use super::model::{Act, Model};
use super::verdict::{Fault, GROUP, GROUP_KEPT};

const BIT: u64 = 1 << 52;

/// Bits that may differ: ignored ones, software, DBM, AF, writable.
const MAY_DIFFER: [u64; 12] = [63, 62, 61, 60, 59, 58, 57, 56, 55, 51, 10, 7];

/// What a group maps, by one of its entries.
struct GroupRange {
    first: u64,
    attributes: u64,
    is_marked: bool,
}

impl Model {
    /// Bytes of the entries of a group, by rows of the manual's table.
    fn group(place: &Descriptor) -> Option<u64> {
        let rows = [
            (4096, 1, 16),
            (4096, 2, 16),
            (4096, 3, 16),
            (16384, 2, 32),
            (16384, 3, 128),
            (65536, 2, 32),
            (65536, 3, 32),
        ];
        rows.iter().find(|row| (row.0, row.1) == (place.layout.page, place.level)).map(|row| row.2)
    }

    fn value_now(&self, act: Act, address: u64) -> Option<(Descriptor, u64)> {
        let cell = self.memory.pte(address)?;
        let value = act.writing.filter(|(at, _)| *at == address).map_or(cell.value, |(_, value)| value);
        Some((cell.desc?, value)).filter(|_| is_valid(value))
    }

    /// An entry got a valid value.
    pub(crate) fn check_group(&self, act: Act, address: u64) -> Result<(), Fault> {
        if self.options.quirks.contiguous_ignored {
            return Ok(());
        }
        let Some((place, value)) = self.value_now(act, address) else { return Ok(()) };
        let Some(entries) = Self::group(&place) else { return Ok(()) };
        let number = address / 8 % entries;
        let start = address - 8 * number;
        let range = self.range_of(&place, number, value);
        if range.as_ref().is_some_and(|range| range.is_marked && range.first % (entries * place.bytes()) != 0) {
            return Err(Fault::Fire(GROUP));
        }
        let is_wrong = (0..entries).filter(|other| *other != number).any(|other| {
            let Some((_, theirs)) = self.value_now(act, start + 8 * other) else { return false };
            self.disagree(range.as_ref(), self.range_of(&place, other, theirs).as_ref())
        });
        if is_wrong { Err(Fault::Fire(GROUP)) } else { Ok(()) }
    }

    /// A clean entry became valid: what TLBs have of the entries of its group that are not clean must agree with it.
    pub(crate) fn check_broken_group(&self, act: Act, address: u64) -> Result<(), Fault> {
        if self.options.quirks.contiguous_ignored {
            return Ok(());
        }
        let Some((place, value)) = self.value_now(act, address) else { return Ok(()) };
        let Some(entries) = Self::group(&place) else { return Ok(()) };
        let number = address / 8 % entries;
        let range = self.range_of(&place, number, value);
        for other in (0..entries).filter(|other| *other != number) {
            let theirs = address - 8 * number + 8 * other;
            let Some(cell) = self.memory.pte(theirs) else { continue };
            let Some(old) = self.old_values.get(&theirs) else { continue };
            if !matches!(cell.automaton, Automaton::Unclean { .. }) {
                continue;
            }
            let old = self.range_of(&place, other, *old);
            if old.as_ref().is_some_and(|old| old.is_marked) && self.disagree(range.as_ref(), old.as_ref()) {
                return Err(Fault::Fire(GROUP_KEPT));
            }
        }
        Ok(())
    }

    /// The range that the group would map if it were all like this entry; none for a table.
    fn range_of(&self, place: &Descriptor, number: u64, value: u64) -> Option<GroupRange> {
        let shape = place.with(value).map(|desc| desc.shape);
        let plain = value & !place.layout.address_bits() & !BIT;
        (shape == Ok(Shape::Map)).then(|| GroupRange {
            first: place.output(value).wrapping_sub(number.wrapping_mul(place.bytes())),
            attributes: MAY_DIFFER.iter().fold(plain, |value, bit| value & !(1 << bit)),
            is_marked: value & BIT != 0,
        })
    }

    fn disagree(&self, one: Option<&GroupRange>, other: Option<&GroupRange>) -> bool {
        let has_bbm = self.options.bbm > 0 && !self.options.quirks.af_inverted;
        let is_marked = |range: Option<&GroupRange>| range.is_some_and(|range| range.is_marked);
        match (one, other) {
            (Some(one), Some(other)) if one.is_marked || other.is_marked => {
                let is_same = (one.first, one.attributes) == (other.first, other.attributes);
                !is_same || one.is_marked != other.is_marked && !has_bbm
            }
            (one, other) => one.is_none() != other.is_none() && (is_marked(one) || is_marked(other)),
        }
    }

    /// A page became part of a table: the groups with the bit.
    pub(crate) fn check_groups_of_page(&self, act: Act, page: u64) -> Result<(), Fault> {
        debug_assert!(page.is_multiple_of(PAGE));
        let words = (0..WORDS).map(|i| page + 8 * i);
        let mut marked = words.filter(|at| self.value_now(act, *at).is_some_and(|(_, value)| value & BIT != 0));
        marked.try_for_each(|at| self.check_group(act, at))
    }
}
