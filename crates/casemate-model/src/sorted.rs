//! A map in the order of its keys whose growth may fail and whose lookups cannot panic.
//!
//! Sorted lists of at most 64 entries, in a list of their own: a search halves both. Adding an entry moves at most 64
//! others, and once in 32 times the list of lists.

use alloc::vec::Vec;

use crate::room;

/// Entries of a list.
const ENTRIES_MAX: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Sorted<K, V> {
    /// None of them is empty, except for the only one: maps that are often empty keep its memory.
    lists: Vec<Vec<(K, V)>>,
    length: usize,
}

impl<K, V> Default for Sorted<K, V> {
    fn default() -> Self {
        Self { lists: Vec::new(), length: 0 }
    }
}

impl<K: Copy + Ord, V> Sorted<K, V> {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The list where a key is or belongs, and the place of the first key there that is not smaller.
    fn place(&self, key: &K) -> (usize, usize) {
        let after = self.lists.partition_point(|list| list.first().is_some_and(|(first, _)| first <= key));
        let list = after.saturating_sub(1);
        (list, self.lists.get(list).map_or(0, |list| list.partition_point(|(known, _)| known < key)))
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let (list, at) = self.place(key);
        self.lists.get(list)?.get(at).filter(|(known, _)| known == key).map(|(_, value)| value)
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (list, at) = self.place(key);
        self.lists.get_mut(list)?.get_mut(at).filter(|(known, _)| known == key).map(|(_, value)| value)
    }

    /// Adds or replaces an entry; nothing happens if there is no memory for it.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.lists.is_empty() {
            let list = room::with_capacity(ENTRIES_MAX);
            room::push(&mut self.lists, list);
        }
        let (mut number, mut at) = self.place(&key);
        let Some(list) = self.lists.get_mut(number) else { return };
        if let Some(place) = list.get_mut(at).filter(|(known, _)| *known == key) {
            place.1 = value;
            return;
        }
        if list.len() >= ENTRIES_MAX {
            if !self.split(number) {
                return;
            }
            (number, at) = self.place(&key);
        }
        if let Some(list) = self.lists.get_mut(number) {
            self.length += usize::from(room::insert(list, at, (key, value)));
        }
    }

    /// Moves the upper half of a list into one of its own.
    #[cold]
    fn split(&mut self, number: usize) -> bool {
        let mut upper = room::with_capacity(ENTRIES_MAX);
        // The place of the new list comes first: without it nothing must move.
        if upper.capacity() < ENTRIES_MAX || !room::insert(&mut self.lists, number + 1, Vec::new()) {
            return false;
        }
        if let Some(list) = self.lists.get_mut(number) {
            while list.len() > ENTRIES_MAX / 2 {
                let Some(entry) = list.pop() else { break };
                room::push(&mut upper, entry);
            }
        }
        upper.reverse();
        if let Some(place) = self.lists.get_mut(number + 1) {
            *place = upper;
        }
        true
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let (number, at) = self.place(key);
        let list = self.lists.get_mut(number)?;
        list.get(at).filter(|(known, _)| known == key)?;
        let (_, value) = room::remove(list, at)?;
        self.length -= 1;
        if list.is_empty() && self.length > 0 {
            room::remove(&mut self.lists, number);
        }
        Some(value)
    }

    /// The entry with the largest key up to and including one.
    pub(crate) fn floor(&self, key: &K) -> Option<(K, &V)> {
        let (list, at) = self.place(key);
        let list = self.lists.get(list)?;
        let at = match list.get(at) {
            Some((known, _)) if known == key => at,
            _ => at.checked_sub(1)?,
        };
        list.get(at).map(|(key, value)| (*key, value))
    }

    /// The entries from a key on, in order.
    pub(crate) fn from(&self, key: &K) -> impl Iterator<Item = (K, &V)> + use<'_, K, V> {
        let (list, at) = self.place(key);
        let first = self.lists.get(list).and_then(|list| list.get(at..)).unwrap_or_default();
        let rest = self.lists.get(list.saturating_add(1)..).unwrap_or_default();
        first.iter().chain(rest.iter().flatten()).map(|(key, value)| (*key, value))
    }

    /// The entries in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (K, &V)> + use<'_, K, V> {
        self.lists.iter().flatten().map(|(key, value)| (*key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = K> {
        self.iter().map(|(key, _)| key)
    }

    /// Removes the smallest key.
    pub(crate) fn pop_first(&mut self) -> Option<K> {
        let first = self.keys().next()?;
        self.remove(&first);
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn it_agrees_with_a_tree() {
        let (mut sorted, mut tree) = (Sorted::default(), BTreeMap::new());
        let mut state = 7_u64;
        for step in 0..30_000_u64 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            // It grows to thousands of entries, then shrinks to few.
            let (key, is_added) = ((state >> 33) % 4_000, (state >> 20) % 10 < if step < 15_000 { 8 } else { 2 });
            if is_added {
                sorted.insert(key, step);
                tree.insert(key, step);
            } else {
                assert_eq!(sorted.remove(&key), tree.remove(&key));
            }
            assert_eq!((sorted.len(), sorted.is_empty()), (tree.len(), tree.is_empty()));
            assert_eq!(sorted.get(&key), tree.get(&key));
            let probe = (state >> 13) % 4_000;
            assert_eq!(sorted.get_mut(&probe).copied(), tree.get(&probe).copied());
            assert_eq!(sorted.floor(&probe), tree.range(..=probe).next_back().map(|(key, value)| (*key, value)));
            assert!(sorted.from(&probe).take(100).eq(tree.range(probe..).take(100).map(|(k, v)| (*k, v))));
        }
        assert!(sorted.iter().eq(tree.iter().map(|(key, value)| (*key, value))));
        let smallest = tree.keys().next().copied();
        assert_eq!(sorted.pop_first(), smallest);
        assert!(sorted.keys().eq(tree.into_keys().skip(1)));
    }
}
