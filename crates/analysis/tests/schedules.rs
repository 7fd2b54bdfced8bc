//! Adapters that reorder or measure a trace: schedules against a queue of queues, runs against counting.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::VecDeque;

use anytrace_analysis::interleave::{Interleaved, Interleaver, Schedule};
use anytrace_analysis::runs::{LONG_RUN, RunLengths, Runs};
use anytrace_core::access::{Access, AccessFlags, AccessSink};
use common::{Noted, Random, Record, access, feed, program};

fn with_atomics(seed: u64, records: usize) -> Vec<Record> {
    let mut random = Random(seed);
    let atomic = |record: Record, is_atomic: bool| match record {
        Record::Access(access) if is_atomic => Record::Access(Access { flags: AccessFlags::ATOMIC, ..access }),
        other => other,
    };
    program(seed, records, 4).into_iter().map(|record| atomic(record, random.once_in(15))).collect()
}

fn scheduled(records: &[Record], schedules: &[Schedule], window: usize, batch: usize) -> (Vec<Noted>, Interleaved) {
    let mut noted = vec![Noted::default(); schedules.len()];
    let ways = schedules.iter().zip(&mut noted).map(|(schedule, noted)| (*schedule, noted as &mut dyn AccessSink));
    let mut interleaver = Interleaver::with_window(ways, window);
    feed(records, batch, 4, &["A", "B", "C"], &mut interleaver);
    let done = interleaver.finish().unwrap();
    (noted, done)
}

fn is_point(record: &Record) -> bool {
    !matches!(record, Record::Access(access) if !access.flags.has(AccessFlags::ATOMIC))
}

/// Turns of so many accesses, from the definition: between two points a queue for each thread, in order of first
/// access.
fn in_turns(records: &[Record], turn: usize) -> Vec<Record> {
    let mut all = Vec::new();
    let mut queues: VecDeque<(u32, VecDeque<Record>)> = VecDeque::new();
    let drain = |queues: &mut VecDeque<(u32, VecDeque<Record>)>, all: &mut Vec<Record>| {
        while let Some((thread, mut own)) = queues.pop_front() {
            all.extend(own.drain(..turn.min(own.len())));
            if !own.is_empty() {
                queues.push_back((thread, own));
            }
        }
    };
    for record in records {
        if is_point(record) {
            drain(&mut queues, &mut all);
            all.push(*record);
        } else if let Record::Access(access) = record {
            match queues.iter_mut().find(|(thread, _)| *thread == access.thread) {
                Some((_, own)) => own.push_back(*record),
                None => queues.push_back((access.thread, VecDeque::from([*record]))),
            }
        }
    }
    drain(&mut queues, &mut all);
    all
}

#[test]
fn turns_are_those_of_a_queue_of_queues() {
    for seed in 1..6 {
        let records = with_atomics(seed, 800);
        for turn in [1, 2, 7, 1000] {
            let (noted, done) = scheduled(&records, &[Schedule::Turns(turn)], 1 << 20, 13);
            assert_eq!(noted[0].records, in_turns(&records, turn as usize), "seed {seed}, turns of {turn}");
            assert_eq!(done.points as usize, records.iter().filter(|record| is_point(record)).count());
            assert_eq!(done.exceeded, 0);
        }
    }
}

#[test]
fn the_recorded_schedule_is_the_trace() {
    let records = with_atomics(10, 900);
    for (window, batch) in [(1, 1), (5, 64), (1 << 20, 7)] {
        let (noted, _) = scheduled(&records, &[Schedule::Recorded], window, batch);
        assert_eq!(noted[0].records, records);
        assert_eq!(noted[0].threads.len(), 4);
        assert_eq!(noted[0].types.len(), 3);
    }
}

#[test]
fn every_schedule_keeps_threads_in_order_and_passes_no_point() {
    let records = with_atomics(11, 1500);
    let schedules = Schedule::auto();
    let (noted, _) = scheduled(&records, &schedules, 1 << 20, 100);
    for (schedule, noted) in schedules.iter().zip(&noted) {
        for thread in 0..4 {
            let of = |record: &&Record| matches!(record, Record::Access(access) if access.thread == thread);
            let (before, after): (Vec<_>, Vec<_>) =
                (records.iter().filter(of).collect(), noted.records.iter().filter(of).collect());
            assert_eq!(before, after, "{schedule}: thread {thread}");
        }
        // Between two points the same accesses, in any order.
        let key = |record: &Record| if let Record::Access(access) = record { access.seq } else { u64::MAX };
        let between = |records: &[Record]| -> Vec<Vec<u64>> {
            let parts = records.split(is_point);
            parts
                .map(|part| {
                    let mut numbers: Vec<u64> = part.iter().map(key).collect();
                    numbers.sort_unstable();
                    numbers
                })
                .collect()
        };
        assert_eq!(between(&records), between(&noted.records), "{schedule}");
    }
    assert_ne!(noted[0], noted[1], "threads do take turns");
}

#[test]
fn schedules_do_not_depend_on_batches_or_on_each_other() {
    let records = with_atomics(12, 700);
    let schedules = Schedule::auto();
    let (expected, _) = scheduled(&records, &schedules, 1 << 20, 1);
    assert_eq!(scheduled(&records, &schedules, 1 << 20, 1000).0, expected);
    for (schedule, expected) in schedules.iter().zip(&expected) {
        assert_eq!(scheduled(&records, &[*schedule], 1 << 20, 10).0[0], *expected, "{schedule}");
    }
}

#[test]
fn a_full_window_ends_as_if_a_point_were_there() {
    let records: Vec<Record> =
        (0..600).map(|seq| Record::Access(access(seq, (seq / 3 % 4) as u32, seq * 8, 8, false))).collect();
    for window in [1, 10, 100] {
        let (noted, done) = scheduled(&records, &[Schedule::Turns(1)], window, 50);
        let expected: Vec<Record> = records.chunks(window).flat_map(|part| in_turns(part, 1)).collect();
        assert_eq!(noted[0].records, expected, "{window}");
        assert_eq!((done.points, done.exceeded), (0, 600_u64.div_ceil(window as u64) - 1));
    }
}

#[test]
fn one_thread_has_one_order() {
    let alone = |record: Record| match record {
        Record::Access(access) => Record::Access(Access { thread: 2, ..access }),
        other => other,
    };
    let records: Vec<Record> = with_atomics(13, 400).into_iter().map(alone).collect();
    for noted in scheduled(&records, &Schedule::auto(), 64, 9).0 {
        assert_eq!(noted.records, records);
    }
}

fn measured(records: &[Record], batch: usize) -> (Runs, Noted) {
    let mut noted = Noted::default();
    let mut lengths = RunLengths::new(&mut noted);
    feed(records, batch, 4, &["A", "B", "C"], &mut lengths);
    (lengths.finish(), noted)
}

/// The lengths of runs, with their threads.
fn counted(records: &[Record]) -> Vec<(u32, u64)> {
    let mut runs: Vec<(u32, u64)> = Vec::new();
    for record in records {
        let Record::Access(access) = record else { continue };
        match runs.last_mut().filter(|(thread, _)| *thread == access.thread) {
            Some((_, length)) => *length += 1,
            None => runs.push((access.thread, 1)),
        }
    }
    runs
}

#[test]
fn runs_are_counted_and_everything_is_passed_on() {
    for seed in 20..26 {
        let mut random = Random(seed);
        let mut records = Vec::new();
        while records.len() < 8000 {
            let thread = random.below(4) as u32;
            let length = if random.once_in(4) { 900 + random.below(400) } else { random.below(40) };
            for _ in 0..length {
                let seq = records.len() as u64;
                records.push(Record::Access(access(seq, thread, seq % 512, 4, false)));
            }
        }
        let (runs, noted) = measured(&records, 1 + random.below(1000) as usize);
        assert_eq!(noted.records, records);
        let expected = counted(&records);
        assert_eq!((runs.accesses as usize, runs.runs as usize), (records.len(), expected.len()));
        assert_eq!(runs.longest, expected.iter().map(|(_, length)| *length).max().unwrap());
        assert!((runs.mean() - records.len() as f64 / expected.len() as f64).abs() < 1e-9);
        let of_length = |from: u64| expected.iter().filter(|(_, length)| *length >= from).map(|(_, n)| n).sum::<u64>();
        assert!(of_length(runs.half_in_runs_of) * 2 >= runs.accesses);
        assert!(of_length(runs.half_in_runs_of * 2) * 2 < runs.accesses, "the next power of two is too long");
        let in_long_runs = (0..4).filter(|thread| {
            let own = |least: u64| -> u64 {
                expected.iter().filter(|(of, length)| of == thread && *length >= least).map(|(_, n)| n).sum()
            };
            own(LONG_RUN) * 2 > own(1)
        });
        assert_eq!(runs.threads_in_long_runs, in_long_runs.count());
    }
}

#[test]
fn regions_do_not_end_a_run() {
    let (runs, noted) = measured(&program(30, 500, 1), 20);
    assert_eq!((runs.runs, runs.longest, runs.threads), (1, runs.accesses, 1));
    assert!(!runs.is_apart() && noted.records.len() == 500);
}

#[test]
fn nothing_has_no_runs() {
    assert_eq!(measured(&[], 1).0, Runs::default());
}
