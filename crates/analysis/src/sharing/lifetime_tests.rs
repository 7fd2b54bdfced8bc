//! True and false sharing against a slow simulator written from the definition: it notes every event of a trace first,
//! and classifies each miss by looking over all of them.

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::access::{AccessFlags, AccessKind};
use proptest::prelude::*;

use super::*;

/// Events of a core's copy of a line, with their times.
#[derive(Debug)]
enum Event {
    Touch { bytes: BTreeSet<u64>, is_miss: bool },
    Invalidated,
    Evicted,
}

/// All that happened.
#[derive(Default)]
struct History {
    /// By core and line.
    events: BTreeMap<(u32, u64), Vec<(usize, Event)>>,
    /// Time, core and byte of every write.
    writes: Vec<(usize, u32, u64)>,
    /// Lines of each core's cache by set, least recently used first.
    cached: BTreeMap<(u32, u64), Vec<u64>>,
}

impl History {
    fn note(&mut self, core: u32, line: u64, now: usize, event: Event) {
        self.events.entry((core, line)).or_default().push((now, event));
    }

    #[expect(clippy::too_many_arguments, reason = "a model that has everything at hand")]
    fn touch(
        &mut self,
        now: usize,
        core: u32,
        line: u64,
        bytes: &BTreeSet<u64>,
        is_write: bool,
        sets: u64,
        ways: usize,
    ) {
        if is_write {
            let others: Vec<u32> = self.cached.keys().map(|(other, _)| *other).filter(|other| *other != core).collect();
            for other in others {
                let set = self.cached.get_mut(&(other, line % sets));
                if let Some(at) = set.and_then(|set| set.iter().position(|one| *one == line).map(|at| set.remove(at))) {
                    self.note(other, at, now, Event::Invalidated);
                }
            }
            self.writes.extend(bytes.iter().map(|byte| (now, core, *byte)));
        }
        let set = self.cached.entry((core, line % sets)).or_default();
        let is_miss = !set.contains(&line);
        set.retain(|one| *one != line);
        let gone = if set.len() == ways { Some(set.remove(0)) } else { None };
        set.push(line);
        if let Some(gone) = gone {
            self.note(core, gone, now, Event::Evicted);
        }
        self.note(core, line, now, Event::Touch { bytes: bytes.clone(), is_miss });
    }

    /// False and true misses of each line.
    fn classified(&self) -> BTreeMap<u64, (u64, u64)> {
        let mut all: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for ((core, line), events) in &self.events {
            for (at, (miss, event)) in events.iter().enumerate() {
                let Event::Touch { is_miss: true, .. } = event else { continue };
                let Some((lost, Event::Invalidated)) = at.checked_sub(1).and_then(|before| events.get(before)) else {
                    continue;
                };
                let is_foreign = |time: usize, by: u32| (*lost..*miss).contains(&time) && by != *core;
                let foreign: BTreeSet<u64> =
                    self.writes.iter().filter(|(time, by, _)| is_foreign(*time, *by)).map(|(.., byte)| *byte).collect();
                let lifetime = events.iter().skip(at).map_while(|(_, event)| match event {
                    Event::Touch { bytes, .. } => Some(bytes),
                    Event::Invalidated | Event::Evicted => None,
                });
                let is_true = lifetime.into_iter().any(|bytes| bytes.intersection(&foreign).next().is_some());
                let counts = all.entry(*line).or_default();
                if is_true { counts.1 += 1 } else { counts.0 += 1 }
            }
        }
        all
    }
}

/// Records the history of a complete trace; each line of an access is a moment of its own.
fn history(all: &[Access], options: &SharingOptions) -> History {
    let (mut history, mut now) = (History::default(), 0);
    let ways = usize::try_from(options.ways).unwrap();
    for access in all {
        let mut lines: Vec<(u64, BTreeSet<u64>)> = Vec::new();
        for byte in (0..u64::from(access.bytes)).map(|at| access.address.wrapping_add(at)) {
            match lines.last_mut() {
                Some((line, bytes)) if *line == byte / options.line_bytes => drop(bytes.insert(byte)),
                _ => lines.push((byte / options.line_bytes, BTreeSet::from([byte]))),
            }
        }
        for (line, bytes) in lines {
            history.touch(now, access.thread, line, &bytes, access.is_write(), options.sets(), ways);
            now += 1;
        }
    }
    history
}

fn access(seq: u64, thread: u32, address: u64, bytes: u16, is_write: bool) -> Access {
    let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
    Access { address, seq, thread, bytes, kind, flags: AccessFlags::NONE }
}

fn run(all: &[Access], options: &SharingOptions) -> SharingResults {
    let mut sharing = Sharing::new(options.clone(), None);
    (0..5).for_each(|thread| sharing.thread(thread, Some(u64::from(thread))).unwrap());
    sharing.accesses(all).unwrap();
    sharing.finish()
}

/// Threads in short runs, on few lines and fields, as in critical sections.
fn accesses() -> impl Strategy<Value = Vec<Access>> {
    let address = prop_oneof![8 => (0_u64..24).prop_map(|n| n * 4), 1 => 0_u64..600];
    let touch = (address, prop_oneof![6 => Just(4_u16), 2 => Just(8), 1 => 0_u16..90], any::<bool>());
    let run = (0_u32..5, prop::collection::vec(touch, 1..6));
    prop::collection::vec(run, 0..120).prop_map(|runs| {
        let touches = runs.into_iter().flat_map(|(thread, run)| run.into_iter().map(move |touch| (thread, touch)));
        let make = |((thread, (address, bytes, is_write)), seq)| access(seq, thread, address, bytes, is_write);
        touches.zip(0..).map(make).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn misses_are_classified_by_the_lifetime_of_the_copy(
        all in accesses(), shift in 4_u32..8, sets in 0_u32..3, ways in 1_u64..4
    ) {
        let line_bytes = 1 << shift;
        let options =
            SharingOptions { line_bytes, cache_bytes: (line_bytes * ways) << sets, ways, cores: Cores::PerThread };
        let expected = history(&all, &options).classified();
        let found = run(&all, &options);
        let lines: BTreeMap<_, _> = found
            .contended
            .iter()
            .map(|line| (line.line / line_bytes, (line.false_misses, line.true_misses)))
            .filter(|(_, counts)| *counts != (0, 0))
            .collect();
        prop_assert_eq!(lines, expected.clone());
        let sums = expected.values().fold((0, 0), |sums, one| (sums.0 + one.0, sums.1 + one.1));
        prop_assert_eq!((found.false_misses(), found.true_misses), sums);
        let of_pairs = |count: fn(&Pair) -> u64| found.pairs.iter().map(count).sum::<u64>();
        prop_assert_eq!((of_pairs(|pair| pair.false_misses), of_pairs(|pair| pair.true_misses)), sums);
        let at_once = found.contended.iter().map(|line| line.true_at_once).sum::<u64>();
        prop_assert_eq!(at_once, found.stats.coherence.true_sharing_misses);
        // Without names the counts do not change.
        let mut plain = Sharing::counting(options);
        (0..5).for_each(|thread| plain.thread(thread, None).unwrap());
        plain.accesses(&all).unwrap();
        prop_assert_eq!(plain.misses(), found.stats.read_misses + found.stats.write_misses);
    }
}

/// Two threads in turn: each reads a key that nobody writes, then adds to a value.
#[test]
fn both_fields_used_under_a_lock_are_true_sharing_whichever_comes_first() {
    let turn = |thread, seq| {
        [
            access(seq, thread, 0x1000, 4, false),
            access(seq, thread, 0x1004, 4, false),
            access(seq, thread, 0x1004, 4, true),
        ]
    };
    let all: Vec<_> = (0..100).flat_map(|seq| turn(u32::from(seq % 2 == 1), seq)).collect();
    let found = run(&all, &SharingOptions::default());
    assert_eq!((found.false_misses(), found.true_misses), (0, 98));
    assert_eq!(found.stats.coherence.false_sharing_misses, 98);
    // The pair is the shared field and its writer; nothing is proposed.
    let dearest = &found.pairs[0];
    assert_eq!(dearest.sides.clone().map(|side| side.field.offset), [0x1004, 0x1004]);
    assert!(dearest.true_misses == 98 && found.proposals.is_empty(), "{found:?}");
}

#[test]
fn a_copy_that_goes_for_want_of_room_ends_the_lifetime() {
    let options = SharingOptions { cache_bytes: 64, ways: 1, ..SharingOptions::default() };
    let all = [
        access(0, 0, 0, 4, false),
        access(1, 1, 4, 4, true),
        // Lost, back for a byte that was not written, gone for another line, back for the written byte.
        access(2, 0, 0, 4, false),
        access(3, 0, 64, 4, false),
        access(4, 0, 4, 4, false),
    ];
    let found = run(&all, &options);
    assert_eq!((found.false_misses(), found.true_misses, found.stats.coherence.replacement_misses), (1, 0, 1));
}

#[test]
fn pairs_beyond_the_limit_are_counted_by_their_fields() {
    let mut sharing = Sharing::new(SharingOptions::default(), None);
    let threads = 700_u64;
    (0..700_u32).for_each(|thread| sharing.thread(thread, Some(u64::from(thread))).unwrap());
    let mut random = crate::played::Random(7);
    let all: Vec<_> = (0..200_000)
        .map(|seq| access(seq, u32::try_from(random.below(threads)).unwrap(), random.below(8) * 8, 8, true))
        .collect();
    sharing.accesses(&all).unwrap();
    let found = sharing.finish();
    assert!(found.pairs.iter().any(|pair| pair.sides[0].core == ALL_CORES && pair.sides[1].core == ALL_CORES));
    assert!(found.pairs.len() <= (1 << 17) && found.other_pairs == 0);
    let misses = |count: fn(&Pair) -> u64| found.pairs.iter().map(count).sum::<u64>();
    assert_eq!(misses(|pair| pair.false_misses + pair.true_misses), found.stats.coherence.coherence_misses);
    assert_eq!(misses(|pair| pair.invalidations), found.stats.coherence.invalidations);
}
