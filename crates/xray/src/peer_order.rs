//! The order in which `llvm-xray` (22) prints threads where its output groups them.
//!
//! The peer stores threads in a hash table and prints them in the order of its slots. That order is not documented and
//! has changed between versions, but it is fixed within a version, so identical output needs the same order.

use std::collections::BTreeSet;

use crate::tools::bucket_order::Buckets;

/// Process and thread, as the peer widens them.
pub(crate) type Owner = (u64, i32);

/// Slots of the table when the first entry is added.
const SLOTS_MIN: usize = 64;

/// Puts owners, given in order of first appearance, into the peer's order. Duplicates are dropped.
pub(crate) fn in_peer_order(owners: impl Iterator<Item = Owner>) -> Vec<Owner> {
    let mut known = BTreeSet::new();
    let mut slots = Buckets::new(SLOTS_MIN);
    for owner in owners {
        if !known.insert(owner) {
            continue;
        }
        // The table doubles when it would become three quarters full.
        if known.len() * 4 >= slots.len() * 3 {
            let larger = Buckets::new(slots.len() * 2);
            let old = std::mem::replace(&mut slots, larger);
            old.in_order().for_each(|owner: Owner| slots.place(hash(owner) as usize, owner));
        }
        slots.place(hash(owner) as usize, owner);
    }
    slots.in_order().collect()
}

fn hash((process, thread): Owner) -> u64 {
    let thread = thread.cast_unsigned().wrapping_mul(37);
    mix((mix(process) & 0xffff_ffff) << 32 | u64::from(thread)) & 0xffff_ffff
}

fn mix(value: u64) -> u64 {
    let value = value.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value ^ value >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_threads_are_in_the_order_of_the_corpus() {
        // synth/v5.verify.txt, synth/v1.verify.txt, synth/v5-threads-later-first.verify.txt.
        assert_eq!(in_peer_order([(900, 11), (900, 12), (900, 11)].into_iter()), [(900, 12), (900, 11)]);
        assert_eq!(in_peer_order([(0, 11), (0, 12)].into_iter()), [(0, 12), (0, 11)]);
        assert_eq!(in_peer_order([(900, 71), (900, 72)].into_iter()), [(900, 72), (900, 71)]);
    }

    #[test]
    fn every_owner_is_there_once_however_many() {
        let owners: Vec<Owner> = (0..10_000).map(|n| (n % 7, i32::try_from(n).unwrap_or(0) - 50)).collect();
        let mut ordered = in_peer_order(owners.iter().chain(&owners).copied());
        ordered.sort_unstable();
        let mut expected = owners;
        expected.sort_unstable();
        assert_eq!(ordered, expected);
    }
}
