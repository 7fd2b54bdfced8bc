//! The order in which the peer lists functions, threads and calls: that of its hash table's buckets.
//!
//! Known from outputs (`corpus/real/*.graph.dot`, `*.flame.txt`): power-of-two buckets, at least 64, triangular probing,
//! doubled when three quarters full, old buckets moved in order. A number hashes to 37 times itself.

/// Buckets of a table that holds anything.
const BUCKETS_MIN: usize = 64;

/// Hash of a function or thread id.
pub(crate) fn id_hash(id: u32) -> u32 {
    id.wrapping_mul(37)
}

/// Hash of a call: both ids' hashes side by side through one round of a multiplicative mixer (llvm-xray 19 and 22;
/// older ones mix otherwise and list calls in another order).
pub(crate) fn call_hash(caller: u32, callee: u32) -> u32 {
    let both = u64::from(id_hash(caller)) << 32 | u64::from(id_hash(callee));
    let mixed = both.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ mixed >> 31) as u32
}

/// Positions of keys in the order of their buckets; `hashes` are in order of insertion, of distinct keys.
pub(crate) fn bucket_order(hashes: &[u32]) -> Vec<usize> {
    let mut buckets: Vec<Option<usize>> = vec![None; BUCKETS_MIN];
    for (n, &hash) in hashes.iter().enumerate() {
        if (n + 1) * 4 >= buckets.len() * 3 {
            let old = std::mem::take(&mut buckets);
            buckets = vec![None; old.len() * 2];
            for key in old.into_iter().flatten() {
                place(&mut buckets, hashes[key], key);
            }
        }
        place(&mut buckets, hash, n);
    }
    buckets.into_iter().flatten().collect()
}

fn place(buckets: &mut [Option<usize>], hash: u32, key: usize) {
    let mask = buckets.len() - 1;
    let mut at = hash as usize & mask;
    let mut step = 1;
    // Triangular steps visit every bucket of a power of two, and a quarter of them is free.
    while buckets[at].is_some() {
        at = (at + step) & mask;
        step += 1;
    }
    buckets[at] = Some(key);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_calls_of_a_real_trace_stand_as_the_peer_lists_them() {
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
    fn every_key_is_listed_once_whatever_collides() {
        for n in [0_usize, 1, 47, 48, 49, 1000] {
            let mut listed = bucket_order(&vec![5; n]);
            listed.sort_unstable();
            assert_eq!(listed, (0..n).collect::<Vec<_>>());
        }
    }
}
