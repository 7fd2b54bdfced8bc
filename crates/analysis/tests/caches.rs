//! Caches: properties that hold for any trace, and single levels against models of a few lines each.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::BTreeSet;

use anytrace_analysis::cache::config::{Config, Level, Policy};
use anytrace_analysis::cache::next_use::NextUse;
use anytrace_analysis::cache::results::{ConfigResults, Results, Tally};
use anytrace_analysis::cache::{CorePlan, Cores, Options, Simulation};
use anytrace_analysis::reuse::{Parts, Reuse, ReuseOptions};
use anytrace_core::access::{Access, AccessKind, AccessSink};
use common::{Random, Record, access, feed, program};

const TYPES: [&str; 3] = ["struct.A", "struct.B", "struct.C"];

fn accesses(records: &[Record]) -> Vec<Access> {
    let of = |record: &Record| if let Record::Access(access) = record { Some(*access) } else { None };
    records.iter().filter_map(of).collect()
}

fn only(accesses: &[Access]) -> Vec<Record> {
    accesses.iter().map(|access| Record::Access(*access)).collect()
}

fn simulate(configs: Vec<Config>, options: Options, records: &[Record], batch: usize) -> Results {
    let mut simulation = Simulation::new(configs, options).unwrap();
    feed(records, batch, 3, &TYPES, &mut simulation);
    simulation.finish().unwrap()
}

fn one(config: Config, records: &[Record]) -> ConfigResults {
    simulate(vec![config], Options::default(), records, 100).configs.remove(0)
}

fn level(lines: u64, line: u64, ways: u64, policy: Policy) -> Level {
    let mut level = Level::new("L1", lines * line, line, ways);
    level.policy = policy;
    level
}

fn misses(found: &ConfigResults) -> u64 {
    found.levels[0].counts.misses()
}

/// The lines that accesses touch, in order, with whether they are written.
fn lines(accesses: &[Access], line: u64) -> Vec<(u64, bool)> {
    let mut all = Vec::new();
    for access in accesses.iter().filter(|access| access.bytes > 0) {
        let last = access.address + u64::from(access.bytes) - 1;
        all.extend((access.address / line..=last / line).map(|number| (number, access.is_write())));
    }
    all
}

/// Misses, and dirty lines written back: a set is a list of lines, and the victim is at a place in it.
fn listed(touches: &[(u64, bool)], sets: usize, ways: usize, policy: Policy) -> (u64, u64) {
    let mut cache: Vec<Vec<(u64, bool)>> = vec![Vec::new(); sets];
    let (mut misses, mut written) = (0, 0);
    for (now, &(line, is_write)) in touches.iter().enumerate() {
        let set = &mut cache[(line % sets as u64) as usize];
        if let Some(at) = set.iter().position(|(held, _)| *held == line) {
            set[at].1 |= is_write;
            if policy == Policy::Lru {
                let used = set.remove(at);
                set.push(used);
            }
            continue;
        }
        misses += 1;
        if set.len() == ways {
            let next_use = |held: u64| touches[now..].iter().position(|(of, _)| *of == held).unwrap_or(usize::MAX);
            let victim = if policy == Policy::Opt {
                let latest = set.iter().map(|(held, _)| next_use(*held)).max().unwrap();
                set.iter().position(|(held, _)| next_use(*held) == latest).unwrap()
            } else {
                0
            };
            written += u64::from(set.remove(victim).1);
        }
        set.push((line, is_write));
    }
    (misses, written)
}

#[test]
fn lru_and_fifo_are_lists() {
    for (seed, lines_of, ways) in [(1, 8, 1), (2, 16, 4), (3, 24, 3), (4, 16, 0), (5, 40, 20), (6, 64, 16)] {
        let records = only(&accesses(&program(seed, 1500, 3)));
        let touches = lines(&accesses(&records), 32);
        for policy in [Policy::Lru, Policy::Fifo] {
            let level = level(lines_of, 32, ways, policy);
            let geometry = level.geometry();
            let found = one(Config::new("c", vec![level]), &records);
            let (missed, written) = listed(&touches, geometry.sets, geometry.ways, policy);
            let counts = found.levels[0].counts;
            assert_eq!((counts.misses(), counts.writebacks_out), (missed, written), "{lines_of} {ways} {policy:?}");
            assert_eq!((found.memory_reads, found.memory_writes), (missed, written));
            assert_eq!(found.line_accesses as usize, touches.len());
        }
    }
}

#[test]
fn opt_misses_as_often_as_a_search_of_the_future_finds_and_nothing_misses_less() {
    for seed in 10..14 {
        let records = only(&accesses(&program(seed, 700, 1)));
        let touches = lines(&accesses(&records), 64);
        for ways in [2, 4, 8] {
            let config = Config::new("opt", vec![level(8, 64, ways, Policy::Opt)]);
            let mut ahead =
                NextUse::new(std::slice::from_ref(&config), Cores::new(CorePlan::PerThread), false).unwrap();
            feed(&records, 90, 3, &TYPES, &mut ahead);
            let options = Options { foreseen: ahead.finish(), ..Options::default() };
            let best = misses(&simulate(vec![config], options, &records, 33).configs[0]);
            assert_eq!(best, listed(&touches, 8 / ways as usize, ways as usize, Policy::Opt).0);
            for policy in Policy::ALL.into_iter().filter(|policy| *policy != Policy::Opt) {
                let real = misses(&one(Config::new("c", vec![level(8, 64, ways, policy)]), &records));
                assert!(real >= best, "{policy:?} misses {real} times, opt {best}");
            }
        }
    }
}

#[test]
fn a_fully_associative_lru_cache_misses_as_the_curve_says() {
    let records = only(&accesses(&program(20, 2500, 3)));
    let mut reuse = Reuse::new(ReuseOptions { line_bytes: 64, parts: Parts::None, ..ReuseOptions::default() });
    feed(&records, 128, 3, &TYPES, &mut reuse);
    let curve = reuse.finish(2500).curve;
    let mut before = u64::MAX;
    for size in [8, 9, 13, 16, 31, 64, 100] {
        let found = misses(&one(Config::new("c", vec![level(size, 64, 0, Policy::Lru)]), &records));
        assert_eq!(found, curve.misses(size), "{size} lines");
        assert!(found <= before, "more lines never miss more");
        before = found;
    }
}

#[test]
fn a_cache_of_several_sets_is_as_many_small_caches() {
    let all = accesses(&program(21, 2000, 1));
    let touches: Vec<Access> =
        (0..).zip(lines(&all, 64)).map(|(seq, (line, is_write))| access(seq, 0, line * 64, 1, is_write)).collect();
    let policies =
        Policy::ALL.into_iter().filter(|policy| !matches!(policy, Policy::Opt | Policy::Random | Policy::Brrip));
    for policy in policies {
        let entire = one(Config::new("c", vec![level(32, 64, 8, policy)]), &only(&touches));
        for set in 0..4 {
            let own: Vec<Access> = touches.iter().filter(|access| access.address / 64 % 4 == set).copied().collect();
            let alone = one(Config::new("c", vec![level(8, 64, 8, policy)]), &only(&own));
            assert_eq!(entire.levels[0].set_misses[set as usize], misses(&alone), "{policy:?}, set {set}");
        }
        assert_eq!(entire.levels[0].set_misses.iter().sum::<u64>(), misses(&entire));
    }
}

#[test]
fn places_of_memory_do_not_matter_as_long_as_sets_stay() {
    let all = accesses(&program(22, 1500, 3));
    let moved: Vec<Access> =
        all.iter().map(|access| Access { address: access.address + (1 << 40) + 7 * 4096, ..*access }).collect();
    for policy in Policy::ALL.into_iter().filter(|policy| *policy != Policy::Opt) {
        let config = || {
            let second = Level { name: "L2".to_owned(), ..level(64, 64, 4, policy) };
            Config::new("c", vec![level(16, 64, 4, policy), second])
        };
        assert_eq!(one(config(), &only(&all)), one(config(), &only(&moved)), "{policy:?}");
    }
}

#[test]
fn batches_and_threads_of_ours_change_nothing() {
    let records = program(23, 2500, 3);
    let configs = || {
        let second = Level { name: "L2".to_owned(), ..level(64, 64, 8, Policy::Srrip) };
        let mut private = level(16, 64, 4, Policy::Lru);
        private.is_private = true;
        vec![
            Config::new("a", vec![level(16, 64, 4, Policy::Lru), second.clone()]),
            Config::new("b", vec![private, second]),
            Config::new("c", vec![level(32, 32, 0, Policy::Fifo)]),
        ]
    };
    let options = |threads| Options { threads, with_types: true, with_classes: true, ..Options::default() };
    let expected = simulate(configs(), options(1), &records, 1);
    for (threads, batch) in [(1, 1024), (2, 3), (3, 100), (5, 1024)] {
        assert_eq!(simulate(configs(), options(threads), &records, batch), expected, "{threads} threads, {batch}");
    }
}

#[test]
fn configurations_in_one_pass_do_not_see_each_other() {
    let records = program(24, 1500, 3);
    let configs: Vec<Config> = [Policy::Lru, Policy::BitPlru, Policy::TreePlru, Policy::Random]
        .into_iter()
        .map(|policy| Config::new(policy.word(), vec![level(32, 64, 4, policy)]))
        .collect();
    let together = simulate(configs.clone(), Options::default(), &records, 64);
    for (config, found) in configs.into_iter().zip(together.configs) {
        assert_eq!(one(config, &records), found);
    }
}

#[test]
fn what_leaves_a_level_arrives_at_the_next() {
    for seed in 30..36 {
        let records = program(seed, 2000, 3);
        let second = Level { name: "L2".to_owned(), ..level(48, 64, 4, Policy::Lru) };
        let found = one(Config::new("c", vec![level(16, 32, 2, Policy::Lru), second]), &records);
        let [first, second] = found.levels.as_slice() else { panic!("two levels") };
        assert_eq!(first.counts.hits() + first.counts.misses(), found.line_accesses);
        assert_eq!(second.counts.read_hits + second.counts.read_misses, first.counts.fills);
        assert_eq!(second.counts.writebacks_in, first.counts.writebacks_out);
        assert_eq!(found.memory_reads, second.counts.read_misses);
        assert_eq!(found.memory_writes, second.counts.writebacks_out);
        for level in &found.levels {
            // What was filled and did not leave is still there, and fits.
            assert!(level.counts.fills - level.counts.evictions <= (level.sets * level.ways) as u64);
            assert_eq!(level.set_misses.iter().sum::<u64>(), level.counts.misses());
        }
        let all = accesses(&records);
        let served: u64 = found.served_by.iter().sum();
        assert_eq!(served + found.zero_size_records, all.len() as u64);
        assert_eq!(found.zero_size_records, all.iter().filter(|access| access.bytes == 0).count() as u64);
    }
}

#[test]
fn stores_that_pass_through_reach_memory_one_by_one() {
    let all = accesses(&program(40, 1200, 2));
    let mut through = level(16, 64, 4, Policy::Lru);
    through.is_write_through = true;
    for allocates in [false, true] {
        through.allocates_on_write = allocates;
        let found = one(Config::new("c", vec![through.clone()]), &only(&all));
        let stores = lines(&all, 64).iter().filter(|(_, is_write)| *is_write).count() as u64;
        assert_eq!((found.memory_writes, found.levels[0].counts.write_throughs_out), (stores, stores));
        assert_eq!(found.levels[0].counts.writebacks_out, 0, "nothing is ever dirty");
    }
}

#[test]
fn tallies_of_threads_and_types_add_up() {
    let records = program(41, 3000, 3);
    let options = Options { with_types: true, ..Options::default() };
    let found = simulate(vec![Config::new("c", vec![level(16, 64, 4, Policy::Lru)])], options, &records, 77);
    let config = &found.configs[0];
    let total = |tallies: Vec<&Tally>| -> (u64, u64, u64) {
        let sum = |of: fn(&Tally) -> u64| tallies.iter().map(|tally| of(tally)).sum();
        (sum(|tally| tally.reads), sum(|tally| tally.writes), sum(Tally::memory))
    };
    let of_threads = total(config.threads.iter().map(|thread| &thread.total).collect());
    let types = config.types.as_ref().unwrap();
    let of_types = total(types.types.iter().map(|of| &of.total).chain([&types.untyped]).collect());
    assert_eq!(of_threads, of_types);
    assert_eq!(of_threads.2, config.served_by[1]);
    for of in &types.types {
        assert_eq!(total(of.fields.values().collect()), total(vec![&of.total]), "{:?}", of.name);
    }
    for (thread, number) in config.threads.iter().zip(0..) {
        let own = accesses(&records).iter().filter(|access| access.thread == number && access.bytes > 0).count();
        assert_eq!((thread.id, thread.total.accesses() as usize), (Some(u64::from(number) + 100), own));
    }
}

#[test]
fn misses_of_each_class_are_those_of_hill() {
    let all = accesses(&program(42, 1500, 1));
    let distinct = lines(&all, 64).iter().map(|(line, _)| *line).collect::<BTreeSet<_>>().len() as u64;
    let classes = |ways| {
        let options = Options { with_classes: true, ..Options::default() };
        let config = Config::new("c", vec![level(16, 64, ways, Policy::Lru)]);
        let found = simulate(vec![config], options, &only(&all), 50).configs.remove(0);
        (found.levels[0].classes.unwrap(), misses(&found))
    };
    let (full, missed) = classes(0);
    assert_eq!((full.compulsory, full.conflict, full.compulsory + full.capacity), (distinct, 0, missed));
    let (direct, missed) = classes(1);
    assert_eq!((direct.compulsory, direct.compulsory + direct.capacity + direct.conflict), (distinct, missed));
}

#[test]
fn private_caches_without_coherence_are_caches_of_their_threads() {
    let all = accesses(&program(43, 1800, 3));
    let mut private = level(16, 64, 4, Policy::Lru);
    private.is_private = true;
    let mut config = Config::new("c", vec![private]);
    config.is_coherent = false;
    let together = one(config, &only(&all));
    let alone = (0..3).map(|thread| {
        let own: Vec<Access> = all.iter().filter(|access| access.thread == thread).copied().collect();
        misses(&one(Config::new("c", vec![level(16, 64, 4, Policy::Lru)]), &only(&own)))
    });
    assert_eq!(misses(&together), alone.sum::<u64>());
    assert_eq!(together.threads.iter().map(|thread| thread.core).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn coherence_needs_sharers_and_writes() {
    let mut private = level(64, 64, 4, Policy::Lru);
    private.is_private = true;
    let config = || Config::new("c", vec![private.clone()]);
    let mut random = Random(44);
    let apart: Vec<Access> = (0..900)
        .map(|seq| access(seq, (seq % 3) as u32, (seq % 3) << 20 | random.below(3000), 8, random.once_in(2)))
        .collect();
    let reads: Vec<Access> = (0..900).map(|seq| access(seq, (seq % 3) as u32, random.below(3000), 8, false)).collect();
    for quiet in [apart, reads] {
        let counts = one(config(), &only(&quiet)).coherence.unwrap();
        assert_eq!((counts.coherence_misses, counts.invalidations, counts.upgrades), (0, 0, 0));
    }
    let shared: Vec<Access> =
        (0..900).map(|seq| access(seq, (seq % 3) as u32, random.below(500), 8, random.once_in(2))).collect();
    let counts = one(config(), &only(&shared)).coherence.unwrap();
    assert!(counts.coherence_misses > 0 && counts.invalidations > 0);
    assert_eq!(counts.coherence_misses, counts.false_sharing_misses + counts.true_sharing_misses);
}

#[test]
fn fetches_are_left_out_and_counted_unless_they_are_wanted() {
    let mut all = accesses(&program(45, 600, 1));
    let data = only(&all);
    let fetch = |access: &Access| Access { kind: AccessKind::Fetch, bytes: 4, ..*access };
    let fetches: Vec<Access> = all.iter().step_by(3).map(fetch).collect();
    all.extend(&fetches);
    let config = || vec![Config::new("c", vec![level(16, 64, 4, Policy::Lru)])];
    let without = simulate(config(), Options::default(), &only(&all), 40);
    let base = simulate(config(), Options::default(), &data, 40);
    assert_eq!(without.fetches_left_out as usize, fetches.len());
    assert_eq!(without.configs, base.configs);
    let with = simulate(config(), Options { with_fetches: true, ..Options::default() }, &only(&all), 40);
    assert_eq!((with.fetches_left_out, with.accesses as usize), (0, all.len()));
    assert_eq!(with.reads + with.writes + with.configs[0].zero_size_records, with.accesses);
}

#[test]
fn wrong_configurations_are_refused_with_their_key() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::new("c", vec![level(16, 64, 4, Policy::Lru)]);
        change(&mut config);
        let error = Simulation::new(vec![config], Options::default()).err().map(|error| error.to_string());
        error.unwrap_or_default()
    };
    assert!(refused(|config| config.levels.clear()).contains("levels"));
    assert!(refused(|config| config.levels[0].line = 48).contains("levels[0].line"));
    assert!(refused(|config| config.levels[0].size = 0).contains("levels[0]"));
    assert!(
        refused(|config| config.levels.push(Level { name: "L2".to_owned(), ..level(16, 64, 4, Policy::Opt) }))
            .contains("levels[1].policy")
    );
    let mut simulation = Simulation::new(Vec::new(), Options::default()).unwrap();
    simulation.accesses(&[access(0, 0, 0, 8, false)]).unwrap();
    assert!(simulation.finish().unwrap().configs.is_empty());
}
