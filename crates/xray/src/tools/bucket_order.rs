//! The order in which the peer lists functions, threads and calls: that of its hash table's buckets.
//!
//! Derived from outputs (`corpus/real/*.graph.dot`, `*.flame.txt`): power-of-two buckets, at least 64, triangular
//! probing, doubled when three quarters full, old buckets moved in order. A number hashes to 37 times itself.

/// Buckets of a table that is not empty.
const BUCKETS_MIN: usize = 64;

/// Hash of a function or thread id.
pub(crate) fn id_hash(id: u32) -> u32 {
    id.wrapping_mul(37)
}

/// Hash of a call: both ids' hashes side by side through one round of a multiplicative mixer (llvm-xray 19 and 22;
/// older versions use another mixer and list calls in another order).
pub(crate) fn call_hash(caller: u32, callee: u32) -> u32 {
    let both = u64::from(id_hash(caller)) << 32 | u64::from(id_hash(callee));
    let mixed = both.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 31) as u32
}

/// Positions of keys in the order of their buckets; `hashes` are in order of insertion, of distinct keys.
pub(crate) fn bucket_order(hashes: &[u32]) -> Vec<usize> {
    let mut buckets = Buckets::new(BUCKETS_MIN);
    for (n, &hash) in hashes.iter().enumerate() {
        if (n + 1) * 4 >= buckets.len() * 3 {
            let larger = Buckets::new(buckets.len() * 2);
            for key in std::mem::replace(&mut buckets, larger).in_order() {
                buckets.place(hashes[key] as usize, key);
            }
        }
        buckets.place(hash as usize, n);
    }
    buckets.in_order().collect()
}

/// A power of two of buckets. A key takes the first free one on its probe path: steps of 1, 2, 3 ... from the bucket of
/// its hash, which visit every bucket.
#[derive(Debug)]
pub(crate) struct Buckets<T> {
    /// A key, and how many steps keys that start here have made: those buckets will never be free again. Without that
    /// count, keys chosen to collide (the hashes are the peer's and public) would take quadratic time.
    buckets: Vec<(Option<T>, u32)>,
}

impl<T> Buckets<T> {
    pub(crate) fn new(count: usize) -> Self {
        Self { buckets: (0..count).map(|_| (None, 0)).collect() }
    }

    /// How many buckets, occupied or not.
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }

    /// Stores a key in its bucket. One bucket must be free.
    pub(crate) fn place(&mut self, hash: usize, key: T) {
        let mask = self.buckets.len() - 1;
        let home = hash & mask;
        let mut steps = self.buckets[home].1 as usize;
        // The distance after that many steps: 1 + 2 + 3 ...
        while self.buckets[(home + steps * (steps + 1) / 2) & mask].0.is_some() {
            steps += 1;
        }
        self.buckets[(home + steps * (steps + 1) / 2) & mask].0 = Some(key);
        self.buckets[home].1 = u32::try_from(steps).unwrap_or(u32::MAX);
    }

    /// The keys in the order of their buckets.
    pub(crate) fn in_order(self) -> impl Iterator<Item = T> {
        self.buckets.into_iter().filter_map(|(key, _)| key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_calls_of_a_real_trace_are_in_the_order_of_the_peer() {
        let threads = [28973_u32, 28976, 28977, 28978, 28979];
        let hashes: Vec<u32> = threads.iter().map(|&t| id_hash(t)).collect();
        let listed: Vec<u32> = bucket_order(&hashes).into_iter().map(|n| threads[n]).collect();
        assert_eq!(listed, [28973, 28977, 28979, 28976, 28978]);
        let calls = [(0, 1), (0, 2), (0, 3), (3, 5), (6, 7), (5, 6)];
        let hashes: Vec<u32> = calls.iter().map(|&(a, b)| call_hash(a, b)).collect();
        let listed: Vec<_> = bucket_order(&hashes).into_iter().map(|n| calls[n]).collect();
        assert_eq!(listed, [(5, 6), (6, 7), (3, 5), (0, 3), (0, 2), (0, 1)]);
    }

    #[test]
    fn a_million_keys_that_collide_take_no_longer_than_others() {
        // Ends at once, or in no reasonable time: 5e11 steps.
        assert_eq!(bucket_order(&vec![5; 1 << 20]).len(), 1 << 20);
    }

    #[test]
    fn keys_go_where_a_walk_step_by_step_would_put_them() {
        let mut random = 1_u32;
        let hashes: Vec<u32> = (0..300)
            .map(|_| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                random >> 27
            })
            .collect();
        let (mut quick, mut slow) = (Buckets::new(512), vec![None; 512]);
        for (key, &hash) in hashes.iter().enumerate() {
            quick.place(hash as usize, key);
            let (mut at, mut step) = (hash as usize, 0);
            while slow[at].is_some() {
                step += 1;
                at = (at + step) & 511;
            }
            slow[at] = Some(key);
        }
        assert_eq!(quick.in_order().collect::<Vec<_>>(), slow.into_iter().flatten().collect::<Vec<_>>());
    }

    #[test]
    fn every_key_is_listed_once_whatever_collides() {
        for n in [0_usize, 1, 47, 48, 49, 1000] {
            let mut listed = bucket_order(&vec![5; n]);
            listed.sort_unstable();
            assert_eq!(listed, (0..n).collect::<Vec<_>>());
        }
    }
}
