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

/// One thread's copy as the recorder writes it: all reads, then all writes.
fn copy(p: &mut Play<'_>, from: u64, to: u64, bytes: u64) {
    for at in (0..bytes).step_by(8) {
        p.touch(Read, from + at, 8);
    }
    for at in (0..bytes).step_by(8) {
        p.touch(Write, to + at, 8);
    }
}

#[test]
fn a_copy_of_what_nothing_wrote_is_no_finding_until_the_copy_is_used() {
    let found = play(|p| {
        p.add(1000, 24, 1);
        p.add(2000, 24, 1);
        p.touch(Write, 1000, 8);
        p.touch(Write, 1008, 1);
        p.touch(Write, 1016, 8);
        copy(p, 1000, 2000, 24);
        p.touch(Read, 2000, 8);
        p.touch(Read, 2008, 1);
        p.touch(Read, 2016, 8);
        // Onto the stack.
        copy(p, 1000, 90_000, 24);
        // The padding, where it is used.
        p.touch(Read, 2009, 1);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 2));
    assert_eq!((found.unwritten[0].first.address, found.unwritten[0].region_start), (2009, 2000));
}

#[test]
fn only_what_was_read_and_written_is_a_copy() {
    let found = play(|p| {
        p.add(1000, 64, 1);
        p.add(2000, 64, 1);
        // A sum of eight words into one: seven are used.
        copy(p, 1000, 2000, 8);
        for at in 0..8 {
            p.touch(Read, 1000 + at * 8, 8);
        }
        p.touch(Write, 2000, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (7, 2));
    // A copy and a zero byte after it.
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.add(2000, 64, 1);
        p.touch(Write, 1000, 8);
        copy(p, 1000, 2000, 16);
        p.touch(Write, 2016, 1);
        p.touch(Read, 2016, 1);
        p.touch(Read, 2000, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (0, 1));
}

#[test]
fn a_long_row_of_uses_is_no_copy_because_its_last_one_is_written_elsewhere() {
    let found = play(|p| {
        p.add(1_000_000, 160_000, 1);
        p.add(2000, 64, 1);
        for at in 0..20_000 {
            p.touch(Read, 1_000_000 + at * 8, 8);
        }
        p.touch(Write, 2000, 8);
    });
    assert_eq!(found.unwritten_count + found.copied_count, 20_000);
    assert!(found.copied_count < 300, "{}", found.copied_count);
    let found = play(|p| {
        p.add(1_000_000, 160_000, 1);
        p.add(2_000_000, 160_000, 1);
        copy(p, 1_000_000, 2_000_000, 160_000);
        p.touch(Read, 2_159_992, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 20_000));
}

#[test]
fn a_change_in_place_and_a_variable_that_leaves_the_heap_are_uses() {
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.touch(Read, 1000, 4);
        p.touch(Write, 1000, 4);
        p.touch(Read, 1008, 8);
        p.touch(Write, 90_000, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (2, 0));
}

#[test]
fn copies_of_several_threads_do_not_mix() {
    let found = play(|p| {
        p.add(1000, 32, 1);
        p.add(2000, 32, 1);
        let mut touch = |thread, kind, address| {
            let access = Access { address, seq: p.seq, thread, bytes: 8, kind, flags: AccessFlags::NONE };
            p.watch.accesses(&[access]).unwrap();
            p.seq += 1;
        };
        for at in [0, 8] {
            touch(1, Read, 1000 + at);
            touch(2, Read, 1016 + at);
        }
        for at in [0, 8] {
            touch(2, Write, 2016 + at);
            touch(1, Write, 2000 + at);
        }
        // Thread 3 uses what it reads, and writes what thread 1 reads afterwards.
        touch(3, Read, 2000);
        touch(3, Write, 90_000);
        touch(3, Write, 2008);
        touch(1, Read, 2008);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 4));
    assert_eq!(found.unwritten[0].first.thread, 3);
}

#[test]
fn memory_moved_onto_itself_keeps_its_gaps_where_they_went() {
    let found = play(|p| {
        p.add(1000, 40, 1);
        p.touch(Write, 1000, 8);
        p.touch(Write, 1016, 8);
        // 1000..1024 with a gap at 1008 moves up by 8.
        copy(p, 1000, 1008, 24);
        p.touch(Read, 1008, 8);
        p.touch(Read, 1024, 8);
        p.touch(Read, 1016, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 1));
    assert_eq!(found.unwritten[0].first.address, 1016);
}

#[test]
fn memory_of_code_that_is_not_recorded_is_not_called_untouched() {
    let found = play(|p| {
        p.watch.type_name(1, Some(b"fopen+0x9 (in libc.so.6)")).unwrap();
        p.watch.type_name(2, Some(b"main+0x9")).unwrap();
        p.add_of(1, 1000);
        p.add_of(2, 2000);
    });
    assert_eq!((found.untouched.len(), found.untouched[0].start), (1, 2000));
    assert_eq!((found.types[1].untouched, found.types[2].untouched), (0, 1));
}

#[test]
fn a_copy_may_begin_with_its_writes_and_have_an_add_in_the_middle() {
    let found = play(|p| {
        p.add(1000, 24, 1);
        p.add(2000, 24, 1);
        p.touch(Write, 1000, 8);
        // gcc's order.
        for at in [2000, 2008, 2016] {
            p.touch(Write, at, 8);
        }
        for at in [1000, 1008, 1016] {
            p.touch(Read, at, 8);
        }
        p.touch(Read, 2000, 8);
        p.touch(Read, 2008, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (0, 2));
    // One copy behind the other: the first one's writes are not those of the second.
    let found = play(|p| {
        for at in [1000, 2000, 3000, 4000] {
            p.add(at, 24, 1);
        }
        copy(p, 1000, 2000, 24);
        copy(p, 3000, 4000, 24);
        p.touch(Read, 4000, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 6));
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.touch(Read, 1000, 8);
        p.add(2000, 16, 1);
        p.touch(Read, 1008, 8);
        p.touch(Write, 2000, 8);
        p.touch(Write, 2008, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (0, 2));
    // A struct that gcc copies to where a copy of the library's ended: one row of writes, of which the second half
    // belongs to the reads that follow.
    let found = play(|p| {
        p.add(1000, 24, 1);
        p.add(2000, 48, 1);
        p.touch(Write, 1000, 8);
        copy(p, 1000, 2000, 24);
        for at in [2024, 2032, 2040] {
            p.touch(Write, at, 8);
        }
        for at in [1000, 1008, 1016] {
            p.touch(Read, at, 8);
        }
        p.touch(Read, 2000, 8);
        // The first copy has the gaps of what it was made of.
        p.touch(Read, 2008, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 4));
    assert_eq!(found.unwritten[0].first.address, 2008);
    // Writes behind a copy that are fewer or more than what is read next are none.
    for words in [1, 3] {
        let found = play(|p| {
            p.add(1000, 24, 1);
            p.add(2000, 80, 1);
            copy(p, 1000, 2000, 24);
            for at in 0..words {
                p.touch(Write, 2024 + at * 8, 8);
            }
            p.touch(Read, 1000, 8);
            p.touch(Read, 1008, 8);
            p.touch(Write, 90_000, 1);
        });
        assert_eq!((found.unwritten_count, found.copied_count), (2, 3), "{words}");
    }
    // Two variables of a word each are none.
    let found = play(|p| {
        p.add(1000, 16, 1);
        p.touch(Write, 2000, 8);
        p.touch(Read, 1000, 8);
        p.touch(Read, 5000, 8);
    });
    assert_eq!((found.unwritten_count, found.copied_count), (1, 0));
}

#[test]
fn variables_and_stacks_are_neither_leaked_nor_read_unwritten_nor_freed_twice() {
    let found = play(|p| {
        p.watch.type_name(1, Some(b"table (global in libx.so)")).unwrap();
        p.watch.type_name(2, Some(b"threads (stack)")).unwrap();
        p.add_of(1, 1000);
        p.add_of(2, 2000);
        p.touch(Read, 1000, 8);
        p.touch(Read, 2000, 8);
        p.remove(2000);
        // The memory of a stack that ended is used again.
        p.add(2000, 16, 1);
        p.touch(Write, 2000, 8);
        p.remove(2000);
    });
    assert_eq!((found.unwritten_count, found.after_remove_count, found.stray.len()), (0, 0, 0));
    assert!(found.leaked.is_empty() && found.untouched.is_empty());
    assert_eq!((found.types[0].regions, found.types[1].regions, found.live_bytes_peak), (1, 0, 16));
}

/// Two stacks with callers and a type, with all of what is counted worked out by hand.
#[test]
fn stacks_have_what_they_leak_what_they_had_at_the_peak_and_what_nobody_used() {
    let found = play(|p| {
        for (number, name) in [(1, "make+0x1<main+0x9"), (2, "make+0x1<main+0x9 (calloc)"), (3, "tmp+0x2<main+0x20")] {
            p.watch.type_name(number, Some(name.as_bytes())).unwrap();
        }
        p.add_of(1, 1000); // live: 16
        p.touch(Write, 1000, 8);
        p.add_of(3, 2000); // live: 32
        p.touch(Read, 2000, 8);
        p.remove(2000); // short-lived; live: 16
        p.add_of(2, 3000); // live: 32, no new maximum
        p.add_of(0, 4000); // live: 48, the peak
        p.remove(3000); // not short-lived: another one was added
        p.add_of(3, 5000); // live: 48, as much as at the peak, but later
        p.touch(Write, 5000, 8);
        p.touch(Read, 5000, 8);
    });
    let amount = |regions| Amount { regions, bytes: regions * 16 };
    assert_eq!((found.live_bytes_peak, found.peak_at), (48, 6));
    let stacks = by_stack(&found);
    let names: Vec<_> = stacks.iter().map(|one| one.name.as_str()).collect();
    // All three leak 16 bytes; the temporary one has nothing at the peak.
    assert_eq!(names, ["make+0x1<main+0x9", "struct.T", "tmp+0x2<main+0x20"]);
    let make = &stacks[0];
    assert_eq!(found.table.name(make.type_number), "make+0x1<main+0x9");
    assert_eq!((make.all, make.leaked, make.bytes_at_peak), (amount(2), amount(1), 32));
    assert_eq!((make.unread, make.unwritten, make.short_lived), (amount(2), amount(0), amount(0)));
    assert_eq!((stacks[1].unread, stacks[1].unwritten, stacks[1].bytes_at_peak), (amount(1), amount(1), 16));
    let tmp = &stacks[2];
    assert_eq!((tmp.all, tmp.short_lived, tmp.leaked, tmp.bytes_at_peak), (amount(2), amount(1), amount(1), 0));
    assert_eq!((tmp.unread, tmp.unwritten), (amount(0), amount(1)));
}
