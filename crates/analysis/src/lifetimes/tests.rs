use anytrace_core::access::AccessFlags;
use anytrace_core::layout::NoLayouts;

use super::*;

struct Play<'a> {
    watch: LifetimeWatch<'a>,
    seq: u64,
}

impl Play<'_> {
    fn add(&mut self, address: u64, element_bytes: u64, elements: u64) {
        let region = RegionAdded { seq: self.seq, address, element_bytes, elements, type_number: 0, thread: 0 };
        self.watch.region_added(&region).unwrap();
        self.seq += 1;
    }

    fn add_of(&mut self, type_number: u32, address: u64) {
        let region = RegionAdded { seq: self.seq, address, element_bytes: 16, elements: 1, type_number, thread: 0 };
        self.watch.region_added(&region).unwrap();
        self.seq += 1;
    }

    fn remove(&mut self, address: u64) {
        self.watch.region_removed(&RegionRemoved { seq: self.seq, address, thread: 0 }).unwrap();
        self.seq += 1;
    }

    fn touch(&mut self, kind: AccessKind, address: u64, bytes: u16) {
        let access = Access { address, seq: self.seq, thread: 0, bytes, kind, flags: AccessFlags::NONE };
        self.watch.accesses(&[access]).unwrap();
        self.seq += 1;
    }
}

fn play(scene: impl FnOnce(&mut Play<'_>)) -> Lifetimes {
    let mut none = NoLayouts;
    let mut watch = LifetimeWatch::new(&mut none);
    watch.type_name(0, Some(b"struct.T")).unwrap();
    let mut play = Play { watch, seq: 0 };
    scene(&mut play);
    play.watch.finish()
}

use AccessKind::{Read, Write};

#[test]
fn lifetimes_count_records_from_add_to_remove() {
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.touch(Write, 1000, 8);
        p.touch(Write, 1008, 8);
        p.remove(1000);
        p.add(1000, 16, 1);
    });
    let one = &found.types[0];
    assert_eq!((one.regions, one.lifetimes.counts()), (2, &[(3, 1)][..]));
    assert_eq!((one.leaked, one.leaked_bytes, one.untouched, one.live_bytes_peak), (1, 16, 1, 16));
    assert_eq!((found.leaked[0].added_at, found.untouched[0].added_at, found.records), (4, 4, 5));
}

#[test]
fn accesses_after_the_remove_have_their_place_until_the_memory_is_used_again() {
    let found = play(|p| {
        p.add(1000, 16, 4);
        p.touch(Write, 1000, 8);
        p.remove(1000);
        p.touch(Read, 1020, 4);
        p.touch(Read, 2000, 4);
        p.add(1040, 8, 1);
        p.touch(Read, 1020, 4);
    });
    assert_eq!(found.after_remove_count, 1);
    let late = &found.after_remove[0];
    assert_eq!((late.access.seq, late.region_start, late.removed_at, late.offset_in_element), (3, 1000, 2, 4));
}

#[test]
fn reads_before_writes_are_found_in_memory_from_malloc_only() {
    let found = play(|p| {
        p.add(1000, 32, 1);
        p.add(2000, 8, 4);
        p.touch(Write, 1000, 8);
        p.touch(Read, 1000, 8);
        p.touch(Read, 1004, 8);
        p.touch(Read, 1016, 4);
        p.touch(Read, 1016, 4);
        p.touch(Read, 2000, 8);
    });
    assert_eq!((found.unwritten_count, found.unwatched), (3, 1));
    let places: Vec<_> = found.unwritten.iter().map(|one| (one.offset_bytes, one.count, one.first.seq)).collect();
    assert_eq!(places, [(4, 1, 4), (16, 2, 5)]);
}

#[test]
fn kinds_of_stray_removes_are_distinguished() {
    let found = play(|p| {
        p.remove(0);
        p.remove(5);
        p.add(1000, 16, 1);
        p.remove(1004);
        p.remove(1000);
        p.remove(1000);
    });
    let kinds: Vec<_> = found.stray.iter().map(|one| one.kind.word()).collect();
    assert_eq!(kinds, ["null", "unknown", "inside", "again"]);
    assert_eq!(found.stray_counts.len(), 4);
}

#[test]
fn a_region_added_over_another_is_counted() {
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.add(1000, 16, 1);
        p.remove(1000);
        p.touch(Write, 1000, 1);
    });
    assert_eq!((found.added_again, found.types[0].leaked, found.types[0].untouched), (1, 1, 1));
}

#[test]
fn bytes_that_realloc_keeps_stay_written() {
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.touch(Write, 1000, 8);
        p.remove(1000);
        p.add(2000, 32, 1);
        p.touch(Read, 2000, 8);
        p.touch(Read, 2008, 8);
        p.remove(2000);
        p.touch(Write, 9, 1);
        p.add(2000, 32, 1);
        p.touch(Read, 2000, 8);
    });
    let places: Vec<_> = found.unwritten.iter().map(|one| (one.offset_bytes, one.first.seq)).collect();
    assert_eq!(places, [(8, 5), (0, 9)]);
}

#[test]
fn realloc_of_memory_from_calloc_stays_written() {
    let found = play(|p| {
        p.add(1000, 24, 3);
        p.remove(1000);
        p.add(2000, 100, 1);
        p.touch(Read, 2000, 8);
        p.touch(Read, 2064, 8);
        p.touch(Read, 2068, 8);
        p.touch(Read, 2072, 8);
        p.remove(2000);
        p.add(3000, 100, 1);
        p.touch(Read, 3064, 8);
    });
    let places: Vec<_> = found.unwritten.iter().map(|one| (one.offset_bytes, one.first.seq)).collect();
    assert_eq!(places, [(68, 5), (72, 6)]);
}

#[test]
fn the_recorders_remark_on_a_place_decides_the_initial_contents_of_its_memory() {
    let found = play(|p| {
        for (n, name) in ["f+0x1 (calloc)", "f+0x2", "f+0x3 (realloc)", "f+0x4 (in libz.so.1)"].into_iter().enumerate()
        {
            p.watch.type_name(n as u32 + 1, Some(name.as_bytes())).unwrap();
        }
        p.add_of(1, 1000);
        p.touch(Read, 1000, 8);
        p.add_of(2, 2000);
        p.touch(Write, 2000, 8);
        p.remove(2000);
        // The add of a `realloc` may be delayed while its thread continues elsewhere.
        p.touch(Write, 1000, 1);
        p.add_of(3, 3000);
        p.touch(Read, 3000, 8);
        p.touch(Read, 3008, 8);
        p.add_of(4, 4000);
        p.touch(Read, 4000, 8);
        // Nothing was removed before: the block is older than the trace.
        p.add_of(3, 5000);
        p.touch(Read, 5000, 8);
    });
    let places: Vec<_> = found.unwritten.iter().map(|one| (one.type_number, one.offset_bytes)).collect();
    assert_eq!((places, found.unwritten_count, found.unknown_count), (vec![(3, 8)], 1, 1));
}
