//! The engine against [`super::slow`], against brute force, and against itself on several threads.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use anytrace_core::access::gather::Candidate;
use anytrace_core::access::{Access, AccessFlags, AccessKind, AccessSink, RegionAdded, RegionRemoved};
use proptest::prelude::*;

use super::config::{Config, Inclusion, Level, Policy, Prefetch};
use super::hierarchy::{Hierarchy, has_stages};
use super::next_use::NextUse;
use super::results::{ConfigResults, Results};
use super::slow::Slow;
use super::{CorePlan, Cores, Options, Simulation};

/// Address, bytes, whether it writes, thread.
type Step = (u64, u16, bool, u32);

fn access(step: Step, seq: u64) -> Access {
    let (address, bytes, is_write, thread) = step;
    let kind = if is_write { AccessKind::Write } else { AccessKind::Read };
    Access { address, seq, thread, bytes, kind, flags: AccessFlags::NONE }
}

fn feed(sink: &mut dyn AccessSink, steps: &[Step]) {
    let all: Vec<_> = steps.iter().zip(0..).map(|(step, seq)| access(*step, seq)).collect();
    let threads = steps.iter().map(|step| step.3).max().map_or(1, |most| most + 1);
    for thread in 0..threads {
        sink.thread(thread, Some(u64::from(thread) + 100)).unwrap();
    }
    sink.type_name(0, Some(b"struct.A")).unwrap();
    for batch in all.chunks(37) {
        // Regions are added and removed, so that types have something to count.
        let seq = batch[0].seq;
        let region =
            RegionAdded { seq, address: 4096 + seq, element_bytes: 24, elements: 8, type_number: 0, thread: 0 };
        sink.region_added(&region).unwrap();
        sink.accesses(batch).unwrap();
        sink.region_removed(&RegionRemoved { seq, address: 4096 + seq / 2, thread: 0 }).unwrap();
    }
}

/// As a format does that gathers what it may, and announces threads when they appear.
fn feed_gathered(sink: &mut dyn AccessSink, steps: &[Step]) {
    let mut known = 0;
    let mut rest = steps;
    while let Some(step) = rest.first() {
        let (thread, seq) = (step.3, (steps.len() - rest.len()) as u64);
        while known <= thread {
            sink.thread(known, Some(u64::from(known) + 100)).unwrap();
            known += 1;
        }
        let candidate =
            |of: &Step| Candidate { address: of.0, bytes: of.1, is_write: of.2, foreign: u64::from(of.3 ^ thread) };
        let taken = sink.gatherer(thread).map_or(0, |gatherer| gatherer.gather(rest, candidate));
        if taken > 0 {
            sink.gathered(thread).unwrap();
        } else {
            sink.accesses(&[access(*step, seq)]).unwrap();
        }
        rest = &rest[taken.max(1)..];
    }
}

fn run(configs: Vec<Config>, options: Options, steps: &[Step]) -> Results {
    let mut simulation = Simulation::new(configs, options).unwrap();
    feed(&mut simulation, steps);
    simulation.finish().unwrap()
}

fn one(config: Config, steps: &[Step]) -> ConfigResults {
    run(vec![config], Options::default(), steps).configs.remove(0)
}

fn steps(most: usize) -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![8 => 1..17_u16, 1 => 0..2_u16, 1 => 100..256_u16];
    let near = (0..6000_u64).prop_map(|at| at + 4000);
    let address = prop_oneof![8 => near, 1 => (0..40_u64).prop_map(|at| u64::MAX - at), 1 => any::<u64>()];
    prop::collection::vec((address, size, any::<bool>(), 0..3_u32), 0..most)
}

fn level(lines: std::ops::Range<u64>, line: u64) -> impl Strategy<Value = Level> {
    let policy = (0..Policy::ALL.len() - 1).prop_map(|at| Policy::ALL[at]);
    (lines, 0..6_u64, policy, any::<bool>(), 0..4_u8).prop_map(move |(lines, ways, policy, is_through, alloc)| {
        let ways = if policy == Policy::TreePlru { 1 << (ways % 4) } else { ways };
        let mut level = Level::new("L", lines.max(8) * line, line, ways);
        if policy == Policy::TreePlru && ways == 1 {
            level.ways = 8;
        }
        level.policy = policy;
        level.is_write_through = is_through && alloc > 1;
        level.allocates_on_write = alloc > 0;
        level
    })
}

fn config() -> impl Strategy<Value = Config> {
    let inclusion = prop_oneof![Just(Inclusion::Nine), Just(Inclusion::Inclusive), Just(Inclusion::Exclusive)];
    let levels = (level(8..20, 32), level(8..48, 32), level(8..90, 64), 1..4_usize);
    (inclusion, levels).prop_map(|(inclusion, (l1, l2, l3, count))| {
        let mut levels: Vec<_> = [l1, l2, l3].into_iter().take(count).collect();
        for (at, level) in levels.iter_mut().enumerate() {
            level.name = format!("L{}", at + 1);
            if inclusion == Inclusion::Exclusive {
                level.size = level.size / level.line * 32;
                level.line = 32;
            }
        }
        let mut config = Config::new("c", levels);
        config.inclusion = inclusion;
        config
    })
}

/// Levels as most processors have them, but small.
fn usual_config() -> impl Strategy<Value = Config> {
    let level = |at: usize| {
        (0..4_u32, 0..5_usize).prop_map(move |(sets, ways)| {
            let ways = [1, 2, 4, 8, 16][ways];
            Level::new(&format!("L{at}"), (1 << sets) * ways * 64, 64, ways)
        })
    };
    let levels = (level(1), level(2), level(3), 1..4_usize);
    levels.prop_map(|(l1, l2, l3, count)| Config::new("c", [l1, l2, l3].into_iter().take(count).collect()))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn every_counter_is_that_of_the_slow_model(config in config(), steps in steps(600)) {
        let mut slow = Slow::new(&config);
        for (address, bytes, is_write, _) in &steps {
            slow.record(*address, u64::from(*bytes), *is_write);
        }
        let fast = one(config, &steps);
        let counts: Vec<_> = fast.levels.iter().map(|level| (level.counts, level.set_misses.clone())).collect();
        prop_assert_eq!(counts, slow.counts());
        prop_assert_eq!(&fast.served_by, &slow.served);
        prop_assert_eq!(
            (fast.memory_reads, fast.memory_writes, fast.line_accesses),
            (slow.memory_reads, slow.memory_writes, slow.line_accesses)
        );
        let empty = steps.iter().filter(|step| step.1 == 0).count() as u64;
        prop_assert_eq!(fast.zero_size_records, empty);
    }

    #[test]
    fn gathered_accesses_count_like_emitted_ones(
        config in prop_oneof![2 => usual_config(), 1 => config()],
        steps in steps(1500),
        several_from in 0..3000_usize,
        threads in 1..4_usize,
    ) {
        let mut steps = steps;
        steps.iter_mut().take(several_from).for_each(|step| step.3 = 0);
        // Threads are numbered as they appear.
        let mut seen: Vec<u32> = Vec::new();
        for step in &mut steps {
            let at = seen.iter().position(|of| *of == step.3).unwrap_or(seen.len());
            if at == seen.len() {
                seen.push(step.3);
            }
            step.3 = at as u32;
        }
        let mut slow = Slow::new(&config);
        for (address, bytes, is_write, _) in &steps {
            slow.record(*address, u64::from(*bytes), *is_write);
        }
        let options = Options { threads, ..Options::default() };
        let mut simulation = Simulation::new(vec![config.clone()], options.clone()).unwrap();
        feed_gathered(&mut simulation, &steps);
        let gathered = simulation.finish().unwrap();
        if !steps.is_empty() {
            prop_assert_eq!(&gathered, &run(vec![config], options, &steps));
        }
        let found = &gathered.configs[0];
        let counts: Vec<_> = found.levels.iter().map(|level| (level.counts, level.set_misses.clone())).collect();
        prop_assert_eq!(counts, slow.counts());
        prop_assert_eq!((found.memory_reads, found.memory_writes), (slow.memory_reads, slow.memory_writes));
        if !steps.is_empty() {
            prop_assert_eq!(&found.served_by, &slow.served);
        }
    }

    #[test]
    fn a_configuration_knows_whether_its_levels_work_by_stages(
        config in config(),
        cores in 1..3_usize,
        is_private in any::<bool>(),
        is_coherent in any::<bool>(),
    ) {
        let mut config = config;
        config.levels[0].is_private = is_private;
        config.is_coherent = is_coherent;
        let mut hierarchy = Hierarchy::new(&config, false);
        hierarchy.fit_cores(cores);
        prop_assert_eq!(has_stages(&config, cores), hierarchy.has_stages());
    }

    #[test]
    fn results_are_the_same_on_any_number_of_threads(
        configs in prop::collection::vec(config(), 1..4),
        steps in steps(400),
        threads in 2..9_usize,
        with_types in any::<bool>(),
        is_one_thread in any::<bool>(),
    ) {
        let (mut configs, mut steps) = (configs, steps);
        if is_one_thread {
            steps.iter_mut().for_each(|step| step.3 = 0);
        }
        for (at, config) in configs.iter_mut().enumerate() {
            config.name = format!("c{at}");
            if at == 0 {
                // Sets that are powers of two, so that something is sharded.
                config.levels = vec![Level::new("L1", 1024, 32, 2), Level::new("L2", 4096, 32, 4)];
                config.tlb = vec![Level::new("T", 4 << 12, 1 << 12, 0)];
            }
        }
        let options = |threads| Options { with_types, threads, ..Options::default() };
        prop_assert_eq!(run(configs.clone(), options(1), &steps), run(configs, options(threads), &steps));
    }

    #[test]
    fn lru_by_list_is_lru_by_order(steps in steps(500), is_fifo in any::<bool>()) {
        let of_ways = |ways| {
            let mut level = Level::new("L1", 32 * 32, 32, ways);
            level.policy = if is_fifo { Policy::Fifo } else { Policy::Lru };
            Config::new("c", vec![level])
        };
        let mut slow = Slow::new(&of_ways(0));
        for step in &steps {
            slow.record(step.0, u64::from(step.1), step.2);
        }
        prop_assert_eq!(one(of_ways(0), &steps).levels[0].counts, slow.counts()[0].0);
    }

    #[test]
    fn classes_add_up_to_the_misses(config in config(), steps in steps(400)) {
        let options = Options { with_classes: true, ..Options::default() };
        let plain = one(config.clone(), &steps);
        let found = run(vec![config], options, &steps).configs.remove(0);
        for (level, plain) in found.levels.iter().zip(&plain.levels) {
            let classes = level.classes.unwrap();
            prop_assert_eq!(classes.compulsory + classes.capacity + classes.conflict, level.counts.misses());
            prop_assert_eq!(level.counts, plain.counts);
        }
    }

    #[test]
    fn every_prefetched_line_is_useful_or_not(config in config(), steps in steps(400), stride in any::<bool>()) {
        let mut config = config;
        for level in &mut config.levels {
            level.prefetch = Prefetch { next_line: !stride, stride };
        }
        for level in one(config, &steps).levels {
            let counts = level.prefetch.unwrap();
            prop_assert_eq!(counts.useful + counts.useless + counts.unused_at_end, counts.issued);
        }
    }

    #[test]
    fn opt_misses_as_seldom_as_any_choice_of_victims(lines in prop::collection::vec(0..6_u64, 0..14)) {
        let mut level = Level::new("L1", 3 * 64, 64, 0);
        level.policy = Policy::Opt;
        let steps: Vec<Step> = lines.iter().map(|line| (line * 64, 8, false, 0)).collect();
        let found = one_foreseen(Config::new("opt", vec![level]), &steps);
        prop_assert_eq!(found.levels[0].counts.misses(), fewest_misses(&lines, &[]));
    }

    #[test]
    fn opt_is_a_bound_for_all_policies(steps in steps(400), at in 0..Policy::ALL.len() - 1) {
        let steps: Vec<Step> = steps.into_iter().map(|(address, bytes, _, thread)| (address, bytes, false, thread)).collect();
        let mut level = Level::new("L1", 1024, 64, 4);
        level.policy = Policy::ALL[at];
        let other = one(Config::new("other", vec![level.clone()]), &steps);
        level.policy = Policy::Opt;
        let opt = one_foreseen(Config::new("opt", vec![level]), &steps);
        prop_assert!(opt.levels[0].counts.misses() <= other.levels[0].counts.misses());
    }
}

fn one_foreseen(config: Config, steps: &[Step]) -> ConfigResults {
    let configs = vec![config];
    let mut next_use = NextUse::new(&configs, Cores::default(), false).unwrap();
    feed(&mut next_use, steps);
    let options = Options { foreseen: next_use.finish(), ..Options::default() };
    run(configs, options, steps).configs.remove(0)
}

/// Tries all victims of a cache of three lines.
fn fewest_misses(lines: &[u64], resident: &[u64]) -> u64 {
    let Some((line, rest)) = lines.split_first() else { return 0 };
    if resident.contains(line) {
        return fewest_misses(rest, resident);
    }
    let with = |resident: Vec<u64>| 1 + fewest_misses(rest, &resident);
    if resident.len() < 3 {
        return with([resident, &[*line]].concat());
    }
    let each = (0..3).map(|victim| {
        let mut resident = resident.to_vec();
        resident[victim] = *line;
        with(resident)
    });
    each.min().unwrap()
}

/// Threads that are announced right before their first access, as in traces.
fn with_new_threads(config: &Config, threads: usize, steps: &[Step]) -> Results {
    let mut simulation = Simulation::new(vec![config.clone()], Options { threads, ..Options::default() }).unwrap();
    let mut announced = 0;
    for (step, seq) in steps.iter().zip(0..) {
        if step.3 >= announced {
            simulation.thread(announced, Some(u64::from(announced))).unwrap();
            announced += 1;
        }
        simulation.accesses(&[access(*step, seq)]).unwrap();
    }
    simulation.finish().unwrap()
}

#[test]
fn tens_of_thousands_of_threads_take_no_more_than_a_moment_and_count_the_same_on_any_number_of_processors() {
    // One thread at first, then a new one with each access: work in progress when the second appears must remain
    // intact.
    let steps: Vec<Step> =
        (0..60_000_u32).map(|n| (u64::from(n % 700) * 40, 8, n % 3 == 0, n.saturating_sub(50))).collect();
    for is_private in [false, true] {
        let mut level = Level::new("L1", 1024, 64, 2);
        level.is_private = is_private;
        let config = Config::new("c", vec![level, Level::new("L2", 8192, 64, 4)]);
        // There are few threads with caches of their own, because the number of cores is limited.
        let steps = steps.get(..if is_private { 300 } else { steps.len() }).unwrap();
        let first = with_new_threads(&config, 1, steps);
        assert_eq!((first.configs[0].threads[0].total.accesses(), first.accesses), (51, steps.len() as u64));
        for threads in [2, 4] {
            assert_eq!(with_new_threads(&config, threads, steps), first, "{threads} {is_private}");
        }
    }
}

#[test]
fn two_threads_that_write_one_line_in_turn_invalidate_each_other() {
    let mut level = Level::new("L1", 4096, 64, 4);
    level.is_private = true;
    let config = Config::new("c", vec![level, Level::new("LLC", 1 << 16, 64, 16)]);
    let steps: Vec<Step> = (0..10).map(|n| (4096 + 8 * (n % 2), 8, true, (n % 2) as u32)).collect();
    let counts = one(config.clone(), &steps).coherence.unwrap();
    assert_eq!((counts.cold_misses, counts.coherence_misses, counts.false_sharing_misses), (2, 8, 8));
    assert_eq!((counts.invalidations, counts.interventions, counts.writebacks), (9, 9, 9));
    let together = Options { cores: CorePlan::Count(1), ..Options::default() };
    let found = run(vec![config], together, &steps).configs.remove(0);
    assert_eq!(found.coherence.unwrap().coherence_misses, 0);
    assert_eq!(found.levels[0].counts.misses(), 1);
}

#[test]
fn threads_that_come_after_all_cores_have_their_caches_are_simulated_as_on_one_thread() {
    let mut level = Level::new("L1", 4096, 64, 4);
    level.is_private = true;
    let config = Config::new("c", vec![level, Level::new("LLC", 1 << 16, 64, 16)]);
    let steps: Vec<Step> = (0..3000).map(|n| (4096 + n * 40 % 9000, 8, n % 3 == 0, (n / 7) as u32)).collect();
    let found = |threads, cores| {
        let options = Options { threads, cores, ..Options::default() };
        let mut simulation = Simulation::new(vec![config.clone()], options).unwrap();
        feed_gathered(&mut simulation, &steps);
        simulation.finish().unwrap()
    };
    for cores in [CorePlan::PerThread, CorePlan::Count(3), CorePlan::Map(vec![(150, 9), (151, 2), (300, 63)])] {
        let one = found(1, cores.clone());
        assert!(one.configs[0].coherence.as_ref().unwrap().coherence_misses > 0);
        assert_eq!(found(4, cores), one);
    }
}

#[test]
fn cores_are_given_in_turn_or_by_id() {
    let given = |plan| {
        let mut cores = Cores::new(plan);
        (0..4).map(|n| cores.thread(n, Some(u64::from(n) * 10))).collect::<Vec<_>>()
    };
    assert_eq!(given(CorePlan::PerThread), [0, 1, 2, 3]);
    assert_eq!(given(CorePlan::Count(2)), [0, 1, 0, 1]);
    assert_eq!(given(CorePlan::Map(vec![(10, 0), (30, 0)])), [1, 0, 2, 0]);
}

#[test]
fn a_walk_over_an_array_is_foreseen() {
    let walk: Vec<Step> = (0..1000).map(|n| (8192 + n * 8, 8, false, 0)).collect();
    let of = |prefetch| {
        let mut level = Level::new("L1", 1024, 64, 4);
        level.prefetch = prefetch;
        one(Config::new("c", vec![level]), &walk).levels.remove(0)
    };
    let none = of(Prefetch::default());
    assert_eq!((none.counts.misses(), none.prefetch), (125, None));
    let next = of(Prefetch { next_line: true, stride: false });
    let counts = next.prefetch.unwrap();
    assert_eq!((next.counts.misses(), counts.issued, counts.useful, counts.unused_at_end), (1, 125, 124, 1));
    let stride = of(Prefetch { next_line: false, stride: true });
    assert!(stride.counts.misses() < 10, "{stride:?}");
}

#[test]
fn a_second_level_fetches_strides_below_a_plain_first() {
    let mut config = Config::new("c", vec![Level::new("L1", 1024, 64, 4), Level::new("L2", 65536, 64, 8)]);
    config.levels[1].prefetch = Prefetch { next_line: false, stride: true };
    let steps: Vec<Step> = (0..100)
        .map(|n| (4096 + n * 8, 8, false, 0))
        .chain((0..60).map(|n| ((1 << 20) + n * 64, 8, false, 0)))
        .collect();
    let counts = one(config, &steps).levels[1].prefetch.unwrap();
    assert!(counts.issued > 40 && counts.useful > 40, "{counts:?}");
}

#[test]
fn pages_are_lines_of_the_tlb() {
    let mut config = Config::new("c", vec![Level::new("L1", 4096, 64, 4)]);
    config.tlb = vec![Level::new("DTLB", 2 << 12, 1 << 12, 0), Level::new("STLB", 4 << 21, 1 << 21, 0)];
    let steps: Vec<Step> = (0..3).flat_map(|_| [(0, 8, true, 0), (4092, 8, false, 0), (9000, 1, false, 0)]).collect();
    let found = one(config, &steps);
    assert_eq!((found.tlb[0].counts.read_hits, found.tlb[0].counts.read_misses), (3, 9));
    assert_eq!((found.tlb[1].counts.read_hits, found.tlb[1].counts.read_misses), (8, 1));
    assert_eq!(found.tlb[0].counts.writebacks_out, 0);
}

#[test]
fn hostile_configurations_are_refused_or_small() {
    let refused = |level: Level| Simulation::new(vec![Config::new("c", vec![level])], Options::default()).is_err();
    assert!(refused(Level::new("L1", u64::MAX, 64, 0)));
    assert!(refused(Level::new("L1", 1 << 50, 1 << 40, 1)));
    assert!(refused(Level::new("L1", 0, 64, 0)));
    assert!(refused(Level::new("L1", 4096, 0, 4)));
    let mut level = Level::new("L1", 64 << 24, 64, 8);
    level.is_private = true;
    let mut simulation = Simulation::new(vec![Config::new("c", vec![level])], Options::default()).unwrap();
    let result: Result<Vec<_>, _> = (0..64).map(|number| simulation.thread(number, Some(1))).collect();
    assert!(result.is_err_and(|error| error.to_string().contains("--cores N")));
}
