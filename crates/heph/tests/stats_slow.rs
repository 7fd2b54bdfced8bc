//! Statistics of made-up workers against sums and sorted lists that are taken while the trace is made.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::{Collect, Input, OpenOptions};
use anytrace_heph::tools::stats::{
    HephStats, Lengths, QUEUE_STEPS, StatsOptions, compare, statistics, stats, threshold,
};
use common::Bytes;

/// A generator of numbers (SplitMix64: Steele, Lea & Flood 2014): the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

const LOCAL: &str = "Running thread-local process";
const SAFE: &str = "Running thread-safe process";
const NAMES: [&str; 8] = [
    LOCAL,
    SAFE,
    "Scheduling processes",
    "Polling for OS events",
    "Relaying process signals",
    "handle \"request\"",
    "",
    "compute\n",
];

/// An event as it was made.
#[derive(Debug, Clone)]
struct Made {
    stream: u32,
    substream: u64,
    start: u64,
    end: u64,
    name: usize,
    /// Time in it and in none of those inside it.
    own: u64,
    /// Time in it and in none of those inside it that divide a worker's time.
    own_part: u64,
    actor: (u64, String),
    amount: u64,
}

impl Made {
    fn length(&self) -> u64 {
        self.end - self.start
    }

    fn is_run(&self) -> bool {
        self.name < 2
    }

    /// Runs, scheduling, polling.
    fn is_part(&self) -> bool {
        self.name < 4
    }
}

/// Events that nest without ties, in the order of their ends within each lane.
fn lane(random: &mut Random, stream: u32, substream: u64, made: &mut Vec<Made>) {
    let mut now = 1000 + random.below(500);
    for _ in 0..1 + random.below(8) {
        tree(random, (stream, substream), &mut now, 0, made);
        now += 1 + random.below(50);
    }
}

/// Returns the time that parts of a worker's time take in it.
fn tree(random: &mut Random, lane: (u32, u64), now: &mut u64, depth: u32, made: &mut Vec<Made>) -> u64 {
    let (start, name) = (*now, random.below(NAMES.len() as u64) as usize);
    let (mut inner, mut parts) = (0, 0);
    *now += 1 + random.below(40);
    while depth < 4 && random.below(5) < 2 {
        let from = *now;
        parts += tree(random, lane, now, depth + 1, made);
        inner += *now - from;
        *now += 1 + random.below(40);
    }
    let length = *now - start;
    let number = random.below(4);
    let event = Made {
        stream: lane.0,
        substream: lane.1,
        start,
        end: *now,
        name,
        own: length - inner,
        own_part: length - parts,
        actor: (number, format!("actor {}", number % 3)),
        amount: random.below(100),
    };
    let is_part = event.is_part();
    made.push(event);
    if is_part { length } else { parts }
}

fn made(seed: u64) -> Vec<Made> {
    let (mut random, mut all) = (Random(seed), Vec::new());
    for stream in 0..1 + random.below(3) as u32 {
        for substream in 0..1 + random.below(2) {
            lane(&mut random, stream, substream * 77, &mut all);
        }
    }
    // The order of the file is that of the ends.
    all.sort_by_key(|event| (event.end, event.stream, event.substream));
    all
}

fn bytes(events: &[Made]) -> Vec<u8> {
    let (mut bytes, mut counters) = (Bytes::new().epoch(), BTreeMap::new());
    for event in events {
        let counter = counters.entry(event.stream).or_insert(0_u32);
        bytes = bytes.event(event.stream, *counter, event.substream, event.start, event.end, NAMES[event.name]);
        if event.is_run() {
            bytes = bytes.attribute("id", 1).u64(event.actor.0).attribute("name", 4).text(&event.actor.1);
        }
        if event.name == 2 {
            bytes = bytes.attribute("total amount", 1).u64(event.amount).attribute("amounts", 1).u64(9);
        }
        bytes = bytes.end();
        *counter += 1;
    }
    bytes.bytes
}

fn of(bytes: &[u8], longest: usize) -> HephStats {
    let options = StatsOptions { longest, ..StatsOptions::default() };
    let mut sink = Collect::default();
    let found = stats(Input::from_bytes("trace", bytes.to_vec()), &OpenOptions::default(), &options, &mut sink);
    assert!(sink.0.is_empty(), "{:?}", sink.0);
    found.unwrap()
}

fn lengths(mut all: Vec<u64>) -> Lengths {
    all.sort_unstable();
    let n = all.len();
    let at = |numerator: usize, denominator: usize| all.get(n * numerator / denominator).copied().unwrap_or_default();
    Lengths {
        count: n as u64,
        total_ns: all.iter().map(|length| u128::from(*length)).sum(),
        min_ns: at(0, 1),
        p50_ns: at(1, 2),
        p90_ns: at(9, 10),
        p99_ns: at(99, 100),
        p999_ns: at(999, 1000),
        max_ns: all.last().copied().unwrap_or_default(),
    }
}

/// Lengths of those events that a question is about.
fn of_those(events: &[Made], is_wanted: impl Fn(&Made) -> bool) -> Lengths {
    lengths(events.iter().filter(|event| is_wanted(event)).map(Made::length).collect())
}

#[test]
fn descriptions_have_the_lengths_and_self_times_they_were_made_with() {
    for seed in 0..120 {
        let events = made(seed);
        let found = of(&bytes(&events), 10);
        let ends = (events.iter().map(|e| e.start).min(), events.iter().map(|e| e.end).max());
        assert_eq!((found.events, found.range), (events.len() as u64, ends.0.zip(ends.1)));
        assert_eq!((found.partial_overlaps, found.epoch_ns), (0, Some(1_610_113_734_118_010_000)));
        let names: BTreeSet<usize> = events.iter().map(|event| event.name).collect();
        assert_eq!(found.descriptions.len(), names.len());
        assert!(found.descriptions.is_sorted_by_key(|row| std::cmp::Reverse(row.lengths.total_ns)));
        for name in names {
            let row = found.descriptions.iter().find(|row| row.description == NAMES[name].as_bytes()).unwrap();
            let own: u64 = events.iter().filter(|event| event.name == name).map(|event| event.own).sum();
            let expected = (of_those(&events, |event| event.name == name), u128::from(own));
            assert_eq!((row.lengths, row.self_ns), expected, "seed {seed}: {:?}", NAMES[name]);
        }
        let all: u128 = found.descriptions.iter().map(|row| row.self_ns).sum();
        assert_eq!(all, events.iter().map(|event| u128::from(event.own)).sum::<u128>(), "seed {seed}");
    }
}

#[test]
fn actors_are_busy_in_their_runs_and_idle_between_them() {
    for seed in 200..320 {
        let events = made(seed);
        let found = of(&bytes(&events), 10);
        let key = |event: &Made| ((event.name == 0).then_some(event.stream), event.actor.0, event.actor.1.clone());
        let keys: BTreeSet<_> = events.iter().filter(|event| event.is_run()).map(key).collect();
        let shown: BTreeSet<_> =
            found.actors.iter().map(|actor| (actor.stream, actor.id, actor.name.clone())).collect();
        assert_eq!((&shown, found.actors.len()), (&keys, keys.len()), "seed {seed}");
        for actor in &found.actors {
            let is_its_own =
                |event: &&Made| event.is_run() && key(event) == (actor.stream, actor.id, actor.name.clone());
            let runs: Vec<&Made> = events.iter().filter(is_its_own).collect();
            assert_eq!(actor.runs, lengths(runs.iter().map(|run| run.length()).collect()));
            let range = (runs.iter().map(|run| run.start).min(), runs.iter().map(|run| run.end).max());
            assert_eq!((Some(actor.range.0), Some(actor.range.1)), range);
            let idle = u128::from(actor.range.1 - actor.range.0).saturating_sub(actor.runs.total_ns);
            assert_eq!(actor.idle_ns(), idle);
        }
        assert_eq!((found.runs, found.other_runs), (of_those(&events, Made::is_run), 0));
        let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
        for run in events.iter().filter(|event| event.is_run()) {
            let from = (0..64).map(|n| 1_u64 << n).rfind(|from| *from <= run.length()).unwrap();
            *histogram.entry(from).or_default() += 1;
        }
        assert_eq!(found.run_histogram, histogram.into_iter().collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn the_longest_runs_are_the_head_of_the_sorted_list() {
    for seed in 400..480 {
        let events = made(seed);
        let mut sorted: Vec<u64> = events.iter().filter(|event| event.is_run()).map(Made::length).collect();
        sorted.sort_unstable_by_key(|length| std::cmp::Reverse(*length));
        for longest in [0, 1, 3, 1000] {
            let found = of(&bytes(&events), longest).longest;
            let lengths: Vec<u64> = found.iter().map(|run| run.duration_ns).collect();
            assert_eq!(lengths, sorted[..longest.min(sorted.len())], "seed {seed}");
            for run in found {
                // The epoch is record 0.
                let event = &events[run.seq as usize - 1];
                assert_eq!((run.start_ns, run.duration_ns, run.stream), (event.start, event.length(), event.stream));
                assert_eq!(run.actor, event.actor);
                let Some((what, length)) = run.inside else { continue };
                let is_inside = |other: &&Made| {
                    let is_in_lane = (other.stream, other.substream) == (event.stream, event.substream);
                    is_in_lane && event.start <= other.start && other.end <= event.end && other.name > 4
                };
                let inside = events.iter().filter(is_inside);
                assert!(
                    inside.clone().any(|other| (NAMES[other.name].as_bytes(), other.length()) == (&*what, length)),
                    "seed {seed}"
                );
            }
        }
    }
}

#[test]
fn workers_time_is_divided_among_what_they_do() {
    for seed in 600..720 {
        let events = made(seed);
        let found = of(&bytes(&events), 10);
        let streams: BTreeSet<u32> = events.iter().filter(|event| event.is_part()).map(|event| event.stream).collect();
        assert_eq!(found.workers.iter().map(|worker| worker.stream).collect::<BTreeSet<_>>(), streams, "seed {seed}");
        for worker in &found.workers {
            let own = |is_wanted: fn(&Made) -> bool| -> u64 {
                let of_stream = events.iter().filter(|event| event.stream == worker.stream && is_wanted(event));
                of_stream.map(|event| event.own_part).sum()
            };
            let expected = [own(Made::is_run), own(|event| event.name == 2), own(|event| event.name == 3)];
            assert_eq!([worker.running_ns, worker.scheduling_ns, worker.polling_ns], expected, "seed {seed}");
            let of_runtime = events.iter().filter(|event| event.stream == worker.stream && event.name <= 4);
            let start = of_runtime.clone().map(|event| event.start).min().unwrap();
            let end = of_runtime.clone().map(|event| event.end).max().unwrap();
            assert_eq!(worker.lifetime_ns, end - start, "seed {seed}");
            assert_eq!(worker.runs as usize, of_runtime.filter(|event| event.is_run()).count());
            assert_eq!(worker.rest_ns(), worker.lifetime_ns.saturating_sub(expected.iter().sum()));
        }
    }
}

#[test]
fn queues_have_their_lengths_where_they_began() {
    for seed in 800..900 {
        let events = made(seed);
        let found = of(&bytes(&events), 10);
        let (first, last) = found.range.unwrap();
        let streams: Vec<u32> =
            events.iter().filter(|e| e.name == 2).map(|e| e.stream).collect::<BTreeSet<_>>().into_iter().collect();
        assert_eq!(found.queues.iter().map(|queue| queue.stream).collect::<Vec<_>>(), streams, "seed {seed}");
        for queue in &found.queues {
            assert_eq!((&*queue.description, queue.attribute.as_str()), (NAMES[2].as_bytes(), "total amount"));
            let own: Vec<&Made> = events.iter().filter(|e| e.name == 2 && e.stream == queue.stream).collect();
            let (sum, max) = (own.iter().map(|e| u128::from(e.amount)).sum(), own.iter().map(|e| e.amount).max());
            assert_eq!((queue.all.count, queue.all.sum, Some(queue.all.max)), (own.len() as u64, sum, max));
            assert_eq!(queue.steps.len(), QUEUE_STEPS);
            for (n, step) in queue.steps.iter().enumerate() {
                // Part n begins at n sixtieths of the time, of which the last nanosecond is a part.
                let all = u128::from(last - first) + 1;
                let is_here = |e: &&&Made| u128::from(e.start - first) * QUEUE_STEPS as u128 / all == n as u128;
                let here: Vec<_> = own.iter().filter(is_here).collect();
                let sum = here.iter().map(|e| u128::from(e.amount)).sum();
                assert_eq!((step.count, step.sum), (here.len() as u64, sum), "seed {seed}, part {n}");
            }
        }
    }
}

#[test]
fn comparisons_have_every_row_of_both_sides_and_the_figures_of_each() {
    for seed in 1000..1060 {
        let sides = [made(seed), made(seed + 500)];
        let found = [0, 1].map(|n| of(&bytes(&sides[n]), 3));
        let limit = threshold("max=25%").unwrap();
        let changes = compare(&found[0], &found[1], &[limit]);
        let names = |n: usize| -> BTreeSet<(bool, Vec<u8>)> {
            let descriptions = sides[n].iter().map(|event| (false, NAMES[event.name].as_bytes().to_vec()));
            let runs = sides[n].iter().filter(|event| event.is_run());
            descriptions.chain(runs.map(|event| (true, event.actor.1.clone().into_bytes()))).collect()
        };
        let shown: BTreeSet<_> = changes.iter().map(|change| (change.is_actor, change.name.clone())).collect();
        assert_eq!((shown.len(), &shown), (changes.len(), &names(0).union(&names(1)).cloned().collect()));
        let max = statistics().iter().position(|word| *word == "max").unwrap();
        for change in &changes {
            let figures = [(&change.base, 0), (&change.shown, 1)].map(|(figures, n)| {
                let is_own = |event: &Made| match change.is_actor {
                    true => event.is_run() && event.actor.1.as_bytes() == change.name,
                    false => NAMES[event.name].as_bytes() == change.name,
                };
                let all = of_those(&sides[n], is_own);
                let expected = (all.count > 0).then_some([all.count.into(), all.total_ns, all.max_ns.into()]);
                assert_eq!(figures.map(|figures| [figures[0], figures[1], figures[max]]), expected, "seed {seed}");
                (all.count > 0).then_some(all.max_ns)
            });
            let [Some(before), Some(after)] = figures else {
                assert!(change.exceeded.is_empty() && change.growth_percent(max).is_none());
                continue;
            };
            // More than 25 percent, without division.
            assert_eq!(!change.exceeded.is_empty(), after * 100 > before * 125, "seed {seed}");
        }
        assert!(changes.is_sorted_by_key(|change| {
            let [before, after] = [change.base, change.shown].map(|figures| figures.map_or(0, |figures| figures[1]));
            std::cmp::Reverse(before.abs_diff(after))
        }));
    }
}
