//! Groups of contiguous entries, from the chapter's section "Contiguous entries": each group is written out as a list of what
//! it maps, and the list is compared with a range.

use super::descriptor::{Descriptor, PAGE, Shape, WORDS, is_valid};
use super::model::{Act, Model};
use super::verdict::{Fault, GROUP};

const BIT: u64 = 1 << 52;

/// Bits that may differ: ignored ones, software, DBM, AF, writable.
const MAY_DIFFER: [u64; 12] = [63, 62, 61, 60, 59, 58, 57, 56, 55, 51, 10, 7];

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
        let kind = |value| place.with(value).map(|desc| desc.shape);
        if kind(value) != Ok(Shape::Map) {
            return Ok(());
        }
        let bytes = place.bytes();
        let number = address / 8 % entries;
        let start = address - 8 * number;
        let first = place.output(value).wrapping_sub(number.wrapping_mul(bytes));
        let is_marked = value & BIT != 0;
        if is_marked && first % (entries * bytes) != 0 {
            return Err(Fault::Fire(GROUP));
        }
        let has_bbm = self.options.bbm > 0 && !self.options.quirks.af_inverted;
        let plain =
            |value: u64| MAY_DIFFER.iter().fold(value & !place.layout.address_bits(), |value, bit| value & !(1 << bit));
        let is_wrong = (0..entries).filter(|other| *other != number).any(|other| {
            let Some((_, theirs)) = self.value_now(act, start + 8 * other) else { return false };
            match (kind(theirs), is_marked, theirs & BIT != 0) {
                (Ok(Shape::Map), false, false) => false,
                (Ok(Shape::Map), true, true) => {
                    plain(theirs) != plain(value) || place.output(theirs) != first.wrapping_add(other * bytes)
                }
                (Ok(Shape::Map), ..) => !has_bbm,
                _ => is_marked,
            }
        });
        if is_wrong { Err(Fault::Fire(GROUP)) } else { Ok(()) }
    }

    /// A page became part of a table: the groups with the bit.
    pub(crate) fn check_groups_of_page(&self, act: Act, page: u64) -> Result<(), Fault> {
        debug_assert!(page.is_multiple_of(PAGE));
        let words = (0..WORDS).map(|i| page + 8 * i);
        let mut marked = words.filter(|at| self.value_now(act, *at).is_some_and(|(_, value)| value & BIT != 0));
        marked.try_for_each(|at| self.check_group(act, at))
    }
}
