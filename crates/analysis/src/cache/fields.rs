//! Numbers for the fields of types: what an access is to, as one small number for all configurations.

use anytrace_core::access::TypeNumber;

/// Number of accesses to no region.
pub(super) const UNTYPED: u32 = 0;

/// An entry of the table without a field.
const NONE: u32 = u32::MAX;

/// A field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) offset: u64,
    pub(super) type_number: TypeNumber,
    pub(super) bytes: u16,
}

/// The fields met, with their reads and writes.
#[derive(Debug)]
pub(super) struct Fields {
    /// Open addressing, a power of two of entries, at most a quarter of them in use: the first one looked at is nearly
    /// always right.
    table: Vec<u32>,
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
        // Number 0 is that of accesses to no region; no key is ever compared with it.
        let untyped = Key { offset: 0, type_number: TypeNumber::MAX, bytes: 0 };
        Self { table: vec![NONE; 64], rows: vec![Row { key: untyped, counts: [0; 2] }] }
    }
}

impl Fields {
    /// Counts an access to a field; gives the field's number.
    #[inline]
    pub(super) fn counted(&mut self, key: Key, is_write: bool) -> u32 {
        let mask = self.table.len() - 1;
        let mut at = place(key) & mask;
        loop {
            let number = self.table.get(at).copied().unwrap_or(NONE);
            if number == NONE {
                return self.add(key, is_write);
            }
            if let Some(row) = self.rows.get_mut(number as usize).filter(|row| row.key == key) {
                row.counts[usize::from(is_write)] += 1;
                return number;
            }
            at = (at + 1) & mask;
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

    #[cold]
    #[inline(never)]
    fn add(&mut self, key: Key, is_write: bool) -> u32 {
        let number = u32::try_from(self.rows.len()).unwrap_or(NONE - 1).min(NONE - 1);
        self.rows.push(Row { key, counts: [u64::from(!is_write), u64::from(is_write)] });
        if self.rows.len() * 4 > self.table.len() {
            self.table = vec![NONE; self.table.len() * 4];
            let all: Vec<_> = self.iter().map(|(number, key, _)| (number, key)).collect();
            all.into_iter().for_each(|(number, key)| self.enter(number, key));
        } else {
            self.enter(number, key);
        }
        number
    }

    fn enter(&mut self, number: u32, key: Key) {
        let mask = self.table.len() - 1;
        let mut at = place(key) & mask;
        while let Some(entry) = self.table.get_mut(at) {
            if *entry == NONE {
                *entry = number;
                return;
            }
            at = (at + 1) & mask;
        }
    }
}

#[inline]
fn place(key: Key) -> usize {
    // Two odd constants (of the golden ratio and of pi); the high bits of products are their good ones.
    let small = u64::from(key.type_number) << 16 | u64::from(key.bytes);
    let product = key.offset.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ small.wrapping_mul(0x243f_6a88_85a3_08d3);
    (product ^ product >> 32) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_one_number() {
        let mut fields = Fields::default();
        let key = |n: u64| Key { offset: n / 3, type_number: (n % 3) as u32, bytes: (n % 5) as u16 };
        let numbers: Vec<_> = (0..1000).map(|n| fields.counted(key(n), n == 6)).collect();
        assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
        assert!((0..1000).all(|n| fields.counted(key(n), true) == n as u32 + 1));
        assert_eq!(fields.iter().nth(6), Some((7, key(6), [0, 2])));
        assert_eq!(fields.iter().nth(7), Some((8, key(7), [1, 1])));
    }
}
