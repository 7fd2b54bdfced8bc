//! Counts by hand, and against a model that looks each access up anew.

use std::collections::BTreeMap;

use anytrace_core::access::{Access, AccessFlags, AccessKind, AccessSink, RegionAdded, RegionRemoved};

use super::*;

fn access(seq: u64, thread: u32, address: u64) -> Access {
    Access { address, seq, thread, bytes: 8, kind: AccessKind::Read, flags: AccessFlags::NONE }
}

fn numa(options: NumaOptions, threads: u32) -> Numa {
    let mut numa = Numa::new(options);
    (0..threads).for_each(|number| numa.thread(number, Some(u64::from(number) + 10)).unwrap());
    numa.type_name(0, Some(b"struct.Order")).unwrap();
    numa
}

fn add(numa: &mut Numa, seq: u64, address: u64, bytes: u64) {
    let region = RegionAdded { seq, address, element_bytes: bytes, elements: 1, type_number: 0, thread: 0 };
    numa.region_added(&region).unwrap();
}

#[test]
fn what_one_thread_touches_first_and_another_uses_is_remote() {
    let mut numa = numa(NumaOptions::default(), 2);
    add(&mut numa, 0, 0x10000, 8192);
    // The first thread clears it by lines, the other reads it twice: from its cache the second time.
    let clear = (0..128).map(|n| access(1 + n, 0, 0x10000 + n * 64));
    let reads = (0..256).map(|n| access(200 + n, 1, 0x10000 + n % 128 * 64));
    numa.accesses(&clear.chain(reads).collect::<Vec<_>>()).unwrap();
    let found = numa.finish();
    let expected = NumaTouches { accesses: 384, remote_accesses: 256, misses: 256, remote_misses: 128 };
    assert_eq!(found.total, expected);
    assert_eq!((&found.types[0].touches, found.types[0].name.as_deref()), (&expected, Some("struct.Order")));
    assert_eq!((&found.types[0].by_node, &found.types[0].by_home), (&vec![128, 128], &vec![256, 0]));
    assert_eq!(found.matrix, [128, 0, 128, 0]);
    assert_eq!((found.threads[0].first_pages, found.threads[1].first_pages), (2, 0));
    assert_eq!((found.regions.len(), found.regions[0].remote_misses, found.regions[0].bytes), (1, 128, 8192));
    assert_eq!((found.best_remote_misses, found.interleaved_remote_misses()), (128, 128));
    assert_eq!(found.pages_by_node, [2, 0]);
}

#[test]
fn large_blocks_are_placed_anew_once_they_were_removed_and_small_ones_stay() {
    for (bytes, remote) in [(GIVEN_BACK_BYTES, 0), (GIVEN_BACK_BYTES - 4096, 1)] {
        let mut numa = numa(NumaOptions::default(), 2);
        add(&mut numa, 0, 0x10_0000, bytes);
        numa.accesses(&[access(1, 0, 0x10_0000)]).unwrap();
        numa.region_removed(&RegionRemoved { seq: 2, address: 0x10_0000, thread: 0 }).unwrap();
        add(&mut numa, 3, 0x10_0000, bytes);
        numa.accesses(&[access(4, 1, 0x10_0000)]).unwrap();
        assert_eq!(numa.finish().total.remote_misses, remote, "{bytes}");
    }
}

#[test]
fn threads_run_where_the_map_says() {
    let nodes = Nodes::Map(vec![(10..=10, 3), (11..=12, 1)]);
    assert_eq!(nodes.count(), 4);
    let of: Vec<u32> = (0..5).map(|n| nodes.of(n, Some(u64::from(n) + 10))).collect();
    assert_eq!(of, [3, 1, 1, 0, 0]);
    assert_eq!(nodes.of(7, None), 0);
    let turns: Vec<u32> = (0..5).map(|n| Nodes::Count(3).of(n, None)).collect();
    assert_eq!(turns, [0, 1, 2, 0, 1]);
}

/// Random accesses of four threads, regions that come and go: counts equal those of maps that are searched each time.
#[test]
fn counts_are_those_of_a_model() {
    let mut state = 9_u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let options = NumaOptions { nodes: Nodes::Count(3), page_bytes: 4096, cache_bytes: 4096, ways: 64 };
    let mut numa = numa(options, 4);
    let (mut homes, mut caches) = (BTreeMap::new(), vec![Vec::new(); 4]);
    let mut expected = NumaTouches::default();
    let mut page_misses: BTreeMap<(u64, u64), [u64; 3]> = BTreeMap::new();
    let mut lives: BTreeMap<u64, u64> = BTreeMap::new();
    for seq in 0..60_000 {
        let block = below(6) << 20;
        if below(400) == 0 {
            if lives.remove(&block).is_some() {
                numa.region_removed(&RegionRemoved { seq, address: block, thread: 0 }).unwrap();
                homes.retain(|page: &u64, _| !(block >> 12..(block + GIVEN_BACK_BYTES) >> 12).contains(page));
            } else {
                add(&mut numa, seq, block, GIVEN_BACK_BYTES);
                lives.insert(block, seq);
            }
            continue;
        }
        let (thread, address) = (below(4), block + below(GIVEN_BACK_BYTES / 8) * 8);
        numa.accesses(&[access(seq, thread as u32, address)]).unwrap();
        let node = thread % 3;
        // A page that is placed anew is another page.
        let (home, placed) = *homes.entry(address >> 12).or_insert((node, seq));
        let cache: &mut Vec<u64> = &mut caches[thread as usize];
        let hit = cache.iter().position(|line| *line == address / 64);
        hit.map(|at| cache.remove(at));
        cache.push(address / 64);
        if cache.len() > 64 {
            cache.remove(0);
        }
        expected.add(&NumaTouches::of(home != node, hit.is_none()));
        if hit.is_none() {
            page_misses.entry((address >> 12, placed)).or_default()[node as usize] += 1;
        }
    }
    let found = numa.finish();
    assert_eq!(found.total, expected);
    let best: u64 = page_misses.values().map(|page| page.iter().sum::<u64>() - page.iter().max().unwrap()).sum();
    assert_eq!(found.best_remote_misses, best);
    assert_eq!(found.matrix.iter().sum::<u64>(), expected.misses);
    let of_types = found.types.iter().fold(NumaTouches::default(), |mut sum, one| {
        sum.add(&one.touches);
        sum
    });
    assert_eq!(of_types, expected);
}
