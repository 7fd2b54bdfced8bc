//! A hash table whose growth may fail and whose lookups cannot panic.
//!
//! Open addressing with steps of one, at most three quarters full; removal moves later entries back, so that a table
//! costs what it contains, not what it once contained. Keys are those of the checked program: their places depend on a
//! secret of the process, or in a program without an operating system on the number that its caller gives
//! ([`set_seed`]).

use alloc::vec::Vec;

use crate::room;

#[cfg(feature = "hosted")]
use anytrace_core::hash::Key as Secret;
#[cfg(not(feature = "hosted"))]
use secret::Secret;

#[cfg(feature = "hosted")]
mod secret {
    /// Does nothing: the places of keys follow from a secret that the process draws.
    pub fn set_seed(_seed: u64) {}
}

#[cfg(not(feature = "hosted"))]
mod secret {
    use core::sync::atomic::{AtomicU64, Ordering};

    static SEED: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);

    /// A number that decides which places keys belong to, for tables that are made later. Whoever knows it can choose
    /// addresses that make steps slow.
    pub fn set_seed(seed: u64) {
        SEED.store(seed, Ordering::Relaxed);
    }

    /// Mixes numbers by a multiplication to 128 bits whose halves are folded.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Secret {
        seed: u64,
        multiplier: u64,
    }

    impl Default for Secret {
        fn default() -> Self {
            let seed = SEED.load(Ordering::Relaxed);
            // Any odd number with its highest bit set keeps all bits of a number.
            let multiplier = seed.wrapping_mul(0xd6e8_feb8_6659_fd93).rotate_left(29) | 1 << 63 | 1;
            Self { seed, multiplier }
        }
    }

    impl Secret {
        #[inline(always)]
        pub(super) const fn hash(self, number: u64) -> u64 {
            let product = ((number ^ self.seed) as u128) * (self.multiplier as u128);
            (product >> 64) as u64 ^ product as u64
        }

        #[inline(always)]
        pub(super) const fn hash_pair(self, first: u64, second: u64) -> u64 {
            self.hash(first.rotate_left(32) ^ second.wrapping_mul(self.multiplier))
        }
    }
}

pub use secret::set_seed;

/// What a table can have as its key.
pub(crate) trait MapKey: Copy + Eq {
    fn hash(self, secret: Secret) -> u64;
}

impl MapKey for u64 {
    #[inline(always)]
    fn hash(self, secret: Secret) -> u64 {
        secret.hash(self)
    }
}

impl MapKey for u32 {
    #[inline(always)]
    fn hash(self, secret: Secret) -> u64 {
        secret.hash(u64::from(self))
    }
}

impl MapKey for (u64, u8) {
    #[inline(always)]
    fn hash(self, secret: Secret) -> u64 {
        secret.hash_pair(self.0, u64::from(self.1))
    }
}

/// The places of the smallest table.
const SLOTS_MIN: usize = 16;

/// A hash table.
#[derive(Debug, Clone)]
pub(crate) struct Map<K, V> {
    /// None, or a power of two.
    slots: Vec<Option<(K, V)>>,
    length: usize,
    secret: Secret,
}

impl<K, V> Default for Map<K, V> {
    fn default() -> Self {
        Self { slots: Vec::new(), length: 0, secret: Secret::default() }
    }
}

impl<K: MapKey, V> Map<K, V> {
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length == 0
    }

    #[inline]
    fn mask(&self) -> usize {
        self.slots.len().wrapping_sub(1)
    }

    #[inline]
    fn home(&self, key: K) -> usize {
        key.hash(self.secret) as usize & self.mask()
    }

    /// The place of a key, or else the empty place where it belongs.
    #[inline]
    fn find(&self, key: &K) -> Result<usize, usize> {
        let mut at = self.home(*key);
        // A table is never full: there is an empty place.
        for _ in 0..self.slots.len() {
            match self.slots.get(at) {
                Some(Some((known, _))) if known == key => return Ok(at),
                Some(Some(_)) => at = (at + 1) & self.mask(),
                _ => return Err(at),
            }
        }
        Err(usize::MAX)
    }

    #[inline]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        match self.find(key) {
            Ok(at) => self.slots.get(at)?.as_ref().map(|(_, value)| value),
            Err(_) => None,
        }
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        match self.find(key) {
            Ok(at) => self.slots.get_mut(at)?.as_mut().map(|(_, value)| value),
            Err(_) => None,
        }
    }

    #[inline]
    pub(crate) fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Adds or replaces an entry; false if there is no memory for it.
    #[inline]
    pub(crate) fn insert(&mut self, key: K, value: V) -> bool {
        if (self.length + 1) * 4 > self.slots.len() * 3 && !self.grow() {
            return false;
        }
        let (Ok(at) | Err(at)) = self.find(&key);
        let Some(slot) = self.slots.get_mut(at) else { return false };
        self.length += usize::from(slot.is_none());
        *slot = Some((key, value));
        true
    }

    /// Adds an entry unless there is one.
    pub(crate) fn insert_new(&mut self, key: K, value: V) {
        if !self.contains_key(&key) {
            self.insert(key, value);
        }
    }

    #[cold]
    fn grow(&mut self) -> bool {
        let wanted = (2 * self.slots.len()).max(SLOTS_MIN);
        let mut larger: Vec<Option<(K, V)>> = room::with_capacity(wanted);
        if larger.capacity() < wanted {
            return false;
        }
        for _ in 0..wanted {
            room::push(&mut larger, None);
        }
        let smaller = core::mem::replace(&mut self.slots, larger);
        for (key, value) in smaller.into_iter().flatten() {
            let (Ok(at) | Err(at)) = self.find(&key);
            if let Some(slot) = self.slots.get_mut(at) {
                *slot = Some((key, value));
            }
        }
        true
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        let Ok(mut hole) = self.find(key) else { return None };
        let removed = self.slots.get_mut(hole)?.take();
        self.length -= 1;
        let mask = self.mask();
        let mut at = hole;
        for _ in 0..self.slots.len() {
            at = (at + 1) & mask;
            let Some(Some((later, _))) = self.slots.get(at) else { break };
            // It may move into the hole unless that is before its home.
            let home = self.home(*later);
            if at.wrapping_sub(home) & mask >= at.wrapping_sub(hole) & mask {
                let moved = self.slots.get_mut(at).and_then(Option::take);
                if let Some(slot) = self.slots.get_mut(hole) {
                    *slot = moved;
                }
                hole = at;
            }
        }
        removed.map(|(_, value)| value)
    }

    /// The entries, in no useful order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.slots.iter().flatten().map(|(key, value)| (key, value))
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Removes the entries whose keys do not fit.
    pub(crate) fn retain_keys(&mut self, is_kept: impl Fn(&K) -> bool) {
        let removed = room::collected(self.keys().filter(|key| !is_kept(key)).copied());
        for key in removed {
            self.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn a_table_agrees_with_an_ordered_one() {
        let (mut table, mut ordered) = (Map::default(), BTreeMap::new());
        let mut state = 1_u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let (key, value) = ((state >> 33) % 300 * 4096, state >> 50);
            match state >> 30 & 7 {
                0..=3 => {
                    assert!(table.insert(key, value));
                    ordered.insert(key, value);
                }
                4 => {
                    table.insert_new(key, value);
                    ordered.entry(key).or_insert(value);
                }
                _ => assert_eq!(table.remove(&key), ordered.remove(&key)),
            }
            assert_eq!(table.len(), ordered.len());
            assert_eq!(table.get(&key), ordered.get(&key));
            assert_eq!(table.get_mut(&value).is_some(), ordered.contains_key(&value));
        }
        let mut entries: Vec<_> = table.iter().map(|(key, value)| (*key, *value)).collect();
        entries.sort_unstable();
        assert_eq!(entries, ordered.into_iter().collect::<Vec<_>>());
        table.retain_keys(|key| key % 8192 == 0);
        assert!(table.keys().all(|key| key % 8192 == 0));
        assert!(!table.is_empty());
    }

    #[test]
    fn an_empty_table_has_no_places() {
        let mut table: Map<(u64, u8), u64> = Map::default();
        assert_eq!((table.remove(&(1, 2)), table.slots.len()), (None, 0));
        assert!(table.get(&(1, 2)).is_none());
        assert!(table.insert((1, 2), 3));
        assert!(table.contains_key(&(1, 2)) && !table.contains_key(&(2, 1)));
    }
}
