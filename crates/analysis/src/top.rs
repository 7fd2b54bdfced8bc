//! The greatest few of many, in bounded memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Keeps the `limit` greatest by key; of equal keys the earlier ones.
#[derive(Debug, Clone)]
pub struct Top<T> {
    limit: usize,
    seen: u64,
    heap: BinaryHeap<Reverse<Entry<T>>>,
}

#[derive(Debug, Clone)]
struct Entry<T> {
    key: u64,
    /// Greater for earlier elements.
    turn: Reverse<u64>,
    value: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<T> Eq for Entry<T> {}

impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Entry<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.key, self.turn).cmp(&(other.key, other.turn))
    }
}

impl<T> Top<T> {
    /// Keeps at most this many.
    pub fn new(limit: usize) -> Self {
        Self { limit, seen: 0, heap: BinaryHeap::new() }
    }

    /// Offers one more; `make` is called only if it is kept.
    #[inline]
    pub fn offer(&mut self, key: u64, make: impl FnOnce() -> T) {
        self.seen += 1;
        if self.heap.len() >= self.limit {
            // An equal key came later than the least one kept, and of equal keys the earlier ones stay. `peek` is
            // `None` only for a limit of 0.
            if self.heap.peek().is_none_or(|least| least.0.key >= key) {
                return;
            }
            self.heap.pop();
        }
        // `seen` grows with each offer, so no two entries compare as equal and the order of the result is certain.
        self.heap.push(Reverse(Entry { key, turn: Reverse(self.seen), value: make() }));
    }

    /// How many were offered.
    pub fn seen(&self) -> u64 {
        self.seen
    }

    /// The elements kept, greatest first.
    pub fn into_sorted(self) -> Vec<T> {
        // The heap's order is reversed, so its ascending order is ours from the greatest on.
        self.heap.into_sorted_vec().into_iter().map(|Reverse(entry)| entry.value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::played::Random;

    #[test]
    fn the_elements_kept_are_the_head_of_the_sorted_list() {
        for seed in 1..50 {
            let mut random = Random(seed);
            let keys: Vec<u64> = (0..random.below(60)).map(|_| random.below(20)).collect();
            let limit = random.below(12) as usize;
            let mut top = Top::new(limit);
            keys.iter().enumerate().for_each(|(at, &key)| top.offer(key, || (key, at)));
            let mut sorted: Vec<_> = keys.iter().enumerate().map(|(at, &key)| (key, at)).collect();
            sorted.sort_by_key(|&(key, at)| (Reverse(key), at));
            sorted.truncate(limit);
            assert_eq!(top.seen() as usize, keys.len());
            assert_eq!(top.into_sorted(), sorted);
        }
    }
}
