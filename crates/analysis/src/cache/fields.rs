//! Numbers for the fields of types: the target of an access as one small number for all configurations.
//!
//! Most accesses are of 1, 2, 4, 8 or 16 bytes, at an offset that is a multiple of their size: each type has a short
//! list of numbers for each of these sizes, indexed by offset. All other fields are in a map.

use anytrace_core::access::TypeNumber;
use anytrace_core::hash::Map;

/// Number of accesses to no region.
pub(super) const UNTYPED: u32 = 0;

/// A cell without a field.
const NONE: u32 = u32::MAX;

/// Most bytes of an access that has a list.
const LISTED_MAX: u64 = 16;

/// Most bytes of a type that are covered by lists; fields beyond are in the map.
const TYPE_BYTES_MAX: u64 = 1 << 20;

/// Most cells of all lists.
const CELLS_MAX: usize = 1 << 23;

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) offset: u64,
    pub(super) type_number: TypeNumber,
    pub(super) bytes: u16,
}

impl Key {
    /// log2 of the bytes, if there is a list for them.
    #[inline(always)]
    fn class(self) -> Option<u32> {
        let bytes = u64::from(self.bytes);
        let is_listed = bytes.is_power_of_two() && bytes <= LISTED_MAX && self.offset & (bytes - 1) == 0;
        is_listed.then(|| bytes.trailing_zeros())
    }
}

/// The lists of a type: the first has a cell for each offset below `bytes`, the next for every second, and so on.
#[derive(Debug, Clone, Copy, Default)]
struct Lists {
    first: usize,
    /// A multiple of [`LISTED_MAX`].
    bytes: u64,
}

impl Lists {
    /// The cell of an offset that is a multiple of 2 to the power of `class`, and smaller than `bytes`.
    #[inline(always)]
    fn cell(self, offset: u64, class: u32) -> usize {
        let twice = self.bytes * 2;
        self.first + (twice - (twice >> class) + (offset >> class)) as usize
    }
}

/// The fields found, with their reads and writes.
#[derive(Debug)]
pub(super) struct Fields {
    lists: Vec<Lists>,
    cells: Vec<u32>,
    /// Fields that are in no list.
    others: Map<Key, u32>,
    rows: Vec<Row>,
}

/// A field with its reads and writes.
#[derive(Debug, Clone, Copy)]
struct Row {
    key: Key,
    counts: [u64; 2],
}

impl Default for Fields {
    fn default() -> Self {
        let untyped = Key { offset: 0, type_number: TypeNumber::MAX, bytes: 0 };
        let rows = vec![Row { key: untyped, counts: [0; 2] }];
        Self { lists: Vec::new(), cells: Vec::new(), others: Map::default(), rows }
    }
}

impl Fields {
    /// Counts an access to a field; returns the field's number.
    #[inline]
    pub(super) fn counted(&mut self, key: Key, is_write: bool) -> u32 {
        let cell = self.cell_of(key).and_then(|cell| self.cells.get(cell));
        let number = cell.copied().unwrap_or(NONE);
        match self.rows.get_mut(number as usize) {
            Some(row) => {
                row.counts[usize::from(is_write)] += 1;
                number
            }
            None => self.other(key, is_write),
        }
    }

    /// Counts an access to no region.
    #[inline]
    pub(super) fn count_untyped(&mut self, is_write: bool) {
        if let Some(row) = self.rows.first_mut() {
            row.counts[usize::from(is_write)] += 1;
        }
    }

    /// The fields from number 1 on, with reads and writes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Key, [u64; 2])> {
        (0..).zip(&self.rows).skip(1).map(|(number, row)| (number, row.key, row.counts))
    }

    /// Reads and writes of accesses to no region.
    pub(super) fn untyped(&self) -> [u64; 2] {
        self.rows.first().map_or([0; 2], |row| row.counts)
    }

    #[inline(always)]
    fn cell_of(&self, key: Key) -> Option<usize> {
        let class = key.class()?;
        let lists = self.lists.get(key.type_number as usize)?;
        (key.offset < lists.bytes).then(|| lists.cell(key.offset, class))
    }

    /// As [`Self::counted`], for a field that is in no list, or not yet.
    #[cold]
    #[inline(never)]
    fn other(&mut self, key: Key, is_write: bool) -> u32 {
        let number = self.others.get(&key).copied().unwrap_or_else(|| self.add(key));
        if let Some(row) = self.rows.get_mut(number as usize) {
            row.counts[usize::from(is_write)] += 1;
        }
        number
    }

    fn add(&mut self, key: Key) -> u32 {
        let number = u32::try_from(self.rows.len()).unwrap_or(NONE - 1).min(NONE - 1);
        self.rows.push(Row { key, counts: [0; 2] });
        if key.class().is_some() && self.cell_of(key).is_none() {
            self.make_room(key);
        }
        match self.cell_of(key).and_then(|cell| self.cells.get_mut(cell)) {
            Some(cell) => *cell = number,
            None => {
                self.others.insert(key, number);
            }
        }
        number
    }

    /// Makes a type's lists long enough for an offset, unless that would be too much.
    fn make_room(&mut self, key: Key) {
        let at = key.type_number as usize;
        if at >= self.lists.len() {
            self.lists.resize(at + 1, Lists::default());
        }
        if key.offset >= TYPE_BYTES_MAX {
            return;
        }
        let bytes = (key.offset + 1).max(LISTED_MAX).next_power_of_two();
        // All lists of a type have less than twice as many cells as it has bytes.
        let cells = self.cells.len() + bytes as usize * 2;
        if cells > CELLS_MAX {
            return;
        }
        let new = Lists { first: self.cells.len(), bytes };
        self.cells.resize(cells, NONE);
        let Some(lists) = self.lists.get_mut(at) else { return };
        let old = std::mem::replace(lists, new);
        for class in 0..=LISTED_MAX.trailing_zeros() {
            let from = old.cell(0, class);
            self.cells.copy_within(from..from + (old.bytes >> class) as usize, new.cell(0, class));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_one_number() {
        let mut fields = Fields::default();
        let key = |n: u64| Key { offset: n / 3 * 7, type_number: (n % 3) as u32, bytes: (n % 20) as u16 };
        let numbers: Vec<_> = (0..1000).map(|n| fields.counted(key(n), n == 6)).collect();
        assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
        assert!((0..1000).all(|n| fields.counted(key(n), true) == n as u32 + 1));
        assert_eq!(fields.iter().nth(6), Some((7, key(6), [0, 2])));
        assert_eq!(fields.iter().nth(7), Some((8, key(7), [1, 1])));
    }

    #[test]
    fn far_and_odd_fields_are_counted_as_near_ones() {
        let mut fields = Fields::default();
        let offsets = [0, 8, 16, 4096, 24, TYPE_BYTES_MAX - 8, TYPE_BYTES_MAX, u64::MAX - 7, u64::MAX];
        for round in 0..3 {
            for (number, offset) in (1..).zip(offsets) {
                for (more, bytes) in [8, 1, 3, 16, 255, 2].into_iter().enumerate() {
                    let key = Key { offset, type_number: 70_000, bytes };
                    assert_eq!(fields.counted(key, round == 1), (number - 1) * 6 + more as u32 + 1);
                }
            }
        }
        assert!(fields.iter().all(|(.., counts)| counts == [2, 1]));
    }

    #[test]
    fn lists_do_not_grow_without_bound() {
        let mut fields = Fields::default();
        for type_number in 0..64 {
            fields.counted(Key { offset: TYPE_BYTES_MAX - 16, type_number, bytes: 16 }, false);
        }
        assert!(fields.cells.len() <= CELLS_MAX);
        assert_eq!(fields.iter().count(), 64);
        assert_eq!(fields.counted(Key { offset: TYPE_BYTES_MAX - 16, type_number: 63, bytes: 16 }, true), 64);
    }
}
