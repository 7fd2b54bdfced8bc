//! Numbers for the fields of types: what an access is to, as one small number for all configurations.

use std::hash::{BuildHasher, BuildHasherDefault};

use anytrace_core::access::TypeNumber;
use rustc_hash::FxHasher;

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
    /// Open addressing, a power of two of entries, at most half of them in use.
    table: Vec<u32>,
    keys: Vec<Key>,
    /// Reads and writes of each.
    counts: Vec<[u64; 2]>,
}

impl Default for Fields {
    fn default() -> Self {
        // Number 0 is that of accesses to no region; no key is ever compared with it.
        let untyped = Key { offset: 0, type_number: TypeNumber::MAX, bytes: 0 };
        Self { table: vec![NONE; 64], keys: vec![untyped], counts: vec![[0; 2]] }
    }
}

impl Fields {
    /// The number of a field.
    #[inline]
    pub(super) fn number(&mut self, key: Key) -> u32 {
        let mask = self.table.len() - 1;
        let mut at = place(key) & mask;
        loop {
            let number = self.table.get(at).copied().unwrap_or(NONE);
            if number == NONE {
                return self.add(key);
            }
            if self.keys.get(number as usize) == Some(&key) {
                return number;
            }
            at = (at + 1) & mask;
        }
    }

    /// Counts an access.
    #[inline]
    pub(super) fn count(&mut self, number: u32, is_write: bool) {
        if let Some(counts) = self.counts.get_mut(number as usize) {
            counts[usize::from(is_write)] += 1;
        }
    }

    /// The fields from number 1 on, with reads and writes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, Key, [u64; 2])> {
        let rows = (0..).zip(self.keys.iter().zip(&self.counts));
        rows.skip(1).map(|(number, (key, counts))| (number, *key, *counts))
    }

    /// Reads and writes of accesses to no region.
    pub(super) fn untyped(&self) -> [u64; 2] {
        self.counts.first().copied().unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, key: Key) -> u32 {
        let number = u32::try_from(self.keys.len()).unwrap_or(NONE - 1).min(NONE - 1);
        self.keys.push(key);
        self.counts.push([0; 2]);
        if self.keys.len() * 2 > self.table.len() {
            self.table = vec![NONE; self.table.len() * 2];
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
    // The low bits of this hasher are its good ones.
    BuildHasherDefault::<FxHasher>::default().hash_one(key) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_one_number() {
        let mut fields = Fields::default();
        let key = |n: u64| Key { offset: n / 3, type_number: (n % 3) as u32, bytes: (n % 5) as u16 };
        let numbers: Vec<_> = (0..1000).map(|n| fields.number(key(n))).collect();
        assert_eq!(numbers, (1..=1000).collect::<Vec<_>>());
        assert!((0..1000).all(|n| fields.number(key(n)) == n as u32 + 1));
        fields.count(7, true);
        assert_eq!(fields.iter().nth(6), Some((7, key(6), [0, 1])));
    }
}
