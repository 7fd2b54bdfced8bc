//! Figures of one pass against folds over the entire list: events and their attributes, working sets, curves of types.

#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod common;

use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::events::Events;
use anytrace_analysis::filter::SpanFilter;
use anytrace_analysis::pass::Pass;
use anytrace_analysis::reuse::{Parts, Reuse, ReuseOptions};
use anytrace_core::SpanSink;
use anytrace_core::access::{Access, RegionAdded};
use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Value};
use common::{Random, Record, edge, feed, program};

/// A value that owns its text.
#[derive(Debug, Clone, PartialEq)]
enum Owned {
    U(u64),
    I(i64),
    F(f64),
    B(bool),
    A(u64),
    T(Vec<u8>),
    Y(Vec<u8>),
}

impl Owned {
    fn random(random: &mut Random) -> Self {
        let text =
            |random: &mut Random| [&b""[..], b"a", b"b", b"12345678", b"\xff\xfe"][random.below(5) as usize].to_vec();
        match random.below(8) {
            0 => Self::U([0, 1, 7, u64::MAX][random.below(4) as usize]),
            1 => Self::I([0, 1, -1, i64::MIN, i64::MAX][random.below(5) as usize]),
            2 => Self::F([0.5, -2.25, f64::NAN, f64::INFINITY, 1e300][random.below(5) as usize]),
            3 => Self::B(random.once_in(2)),
            4 => Self::A(0x1000 + random.below(3)),
            5 => Self::T(text(random)),
            6 => Self::Y(text(random)),
            _ => Self::U(random.below(40)),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Self::U(value) => Value::U64(*value),
            Self::I(value) => Value::I64(*value),
            Self::F(value) => Value::F64(*value),
            Self::B(value) => Value::Bool(*value),
            Self::A(value) => Value::Address(*value),
            Self::T(value) => Value::Text(value),
            Self::Y(value) => Value::Bytes(value),
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Self::U(value) | Self::A(value) => Some(i128::from(*value)),
            Self::I(value) => Some(i128::from(*value)),
            Self::B(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    fn number(&self) -> Option<f64> {
        if let Self::F(value) = self { (!value.is_nan()).then_some(*value) } else { self.integer().map(|n| n as f64) }
    }

    fn bytes(&self) -> Option<u64> {
        if let Self::T(text) | Self::Y(text) = self { Some(text.len() as u64) } else { None }
    }

    /// Equal values have equal texts: integers by their number whatever their width, others by what they are.
    fn identity(&self) -> String {
        match self {
            Self::F(value) => format!("float {:x}", value.to_bits()),
            Self::T(text) | Self::Y(text) => format!("text {text:?}"),
            _ => format!("integer {}", self.integer().unwrap()),
        }
    }
}

type Made = (Edge, Vec<(u32, Owned)>);

fn made(seed: u64, count: u64) -> Vec<Made> {
    let mut random = Random(seed);
    let kinds =
        [EdgeKind::Begin, EdgeKind::End, EdgeKind::Instant, EdgeKind::Counter, EdgeKind::FlowOut, EdgeKind::FlowIn];
    let mut all = Vec::new();
    for seq in 0..count {
        let kind = kinds[random.below(6) as usize];
        let one = Edge { seq, ..edge(kind, random.below(5000), random.below(3) as u32, random.below(5) as u32) };
        let attributes =
            (0..random.below(4)).map(|_| (10 + random.below(3) as u32, Owned::random(&mut random))).collect();
        all.push((one, attributes));
    }
    all
}

fn counted(all: &[Made], batch: usize) -> Events {
    let mut events = Events::default();
    let mut pass = Pass::new(SpanFilter::default(), false, vec![&mut events]);
    for some in all.chunks(batch) {
        let mut batch = EdgeBatch::default();
        for (edge, attributes) in some {
            batch.push(*edge);
            attributes.iter().for_each(|(key, value)| batch.attribute(*key, value.value()));
        }
        pass.edges(&batch).unwrap();
    }
    pass.finish();
    events
}

#[test]
fn events_are_counted_as_a_fold_over_the_list_counts_them() {
    for seed in 0..30 {
        let all = made(seed, 600);
        let events = counted(&all, 1 + seed as usize * 7);
        let mut keys: Vec<(u32, EdgeKind)> = Vec::new();
        let is_event = |edge: &Edge| !matches!(edge.kind, EdgeKind::Begin | EdgeKind::End);
        for (edge, _) in all.iter().filter(|(edge, _)| is_event(edge)) {
            if !keys.contains(&(edge.name, edge.kind)) {
                keys.push((edge.name, edge.kind));
            }
        }
        assert!(
            events.events().iter().map(|row| (row.name, row.kind)).eq(keys.iter().copied()),
            "in order of appearance"
        );
        for row in events.events() {
            let own: Vec<&Made> =
                all.iter().filter(|(edge, _)| (edge.name, edge.kind) == (row.name, row.kind)).collect();
            let times = own.iter().map(|(edge, _)| edge.time);
            let payload = |(_, attributes): &&Made| {
                let bytes: Vec<u64> = attributes.iter().filter_map(|(_, value)| value.bytes()).collect();
                (!bytes.is_empty()).then(|| bytes.iter().sum::<u64>())
            };
            let payloads: Vec<u64> = own.iter().filter_map(payload).collect();
            assert_eq!(row.count, own.len() as u64);
            assert_eq!(row.times, (times.clone().min().unwrap(), times.max().unwrap()));
            assert_eq!((row.payloads, row.payload_bytes), (payloads.len() as u64, payloads.iter().sum()));
            if let (Some(least), Some(most)) = (payloads.iter().min(), payloads.iter().max()) {
                assert_eq!(row.payload_range, (*least, *most));
            }
        }
    }
}

#[test]
fn attributes_are_those_of_the_list_of_their_values() {
    for seed in 100..130 {
        let all = made(seed, 500);
        let events = counted(&all, 64);
        let mut lists: BTreeMap<(u32, u32), Vec<&Owned>> = BTreeMap::new();
        for (edge, attributes) in &all {
            attributes.iter().for_each(|(key, value)| lists.entry((edge.name, *key)).or_default().push(value));
        }
        assert_eq!(events.attributes().len(), lists.len());
        for row in events.attributes() {
            let list = &lists[&(row.name, row.key)];
            let numbers: Vec<f64> = list.iter().filter_map(|value| value.number()).collect();
            let integers: Vec<i128> = list.iter().filter_map(|value| value.integer()).collect();
            assert_eq!((row.count, row.numbers), (list.len() as u64, numbers.len() as u64));
            assert_eq!(row.text_bytes, list.iter().filter_map(|value| value.bytes()).sum::<u64>());
            let distinct: BTreeSet<String> = list.iter().map(|value| value.identity()).collect();
            assert_eq!(row.distinct(), distinct.len(), "{list:?}");
            if !numbers.is_empty() {
                let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
                let most = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(row.range, (least, most));
            }
            let all_integers = integers.len() == numbers.len() && !integers.is_empty();
            let range = all_integers.then(|| (*integers.iter().min().unwrap(), *integers.iter().max().unwrap()));
            assert_eq!(row.integer_range, range);
            if all_integers {
                assert_eq!(row.mean(), Some(integers.iter().sum::<i128>() as f64 / integers.len() as f64));
            }
            assert_eq!(row.mean().is_some(), !numbers.is_empty());
        }
    }
}

/// The lines of an access, in order.
fn lines(access: &Access, line: u64) -> Vec<u64> {
    let bytes = access.address..access.address + u64::from(access.bytes);
    let mut lines: Vec<u64> = bytes.map(|byte| byte / line).collect();
    lines.dedup();
    lines
}

fn accesses(records: &[Record]) -> Vec<Access> {
    let of = |record: &Record| if let Record::Access(access) = record { Some(*access) } else { None };
    records.iter().filter_map(of).collect()
}

#[test]
fn working_sets_are_the_distinct_lines_of_each_window() {
    for (seed, line, window, batch) in [(1, 64, 100, 1), (2, 16, 33, 500), (3, 256, 1000, 64), (4, 64, 5000, 10)] {
        let records = program(seed, 3000, 2);
        let options = ReuseOptions {
            line_bytes: line,
            has_windows: true,
            window_records: Some(window),
            ..ReuseOptions::default()
        };
        let mut reuse = Reuse::new(options);
        feed(&records, batch, 2, &["A", "B", "C"], &mut reuse);
        let found = reuse.finish(3000).working_set.unwrap();
        assert_eq!(found.window_records, window);
        assert_eq!(found.windows.len() as u64, 3000_u64.div_ceil(window));
        let all = accesses(&records);
        let distinct = |from: u64, to: u64| -> BTreeSet<u64> {
            all.iter().filter(|one| (from..to).contains(&one.seq)).flat_map(|one| lines(one, line)).collect()
        };
        for one in &found.windows {
            let own = distinct(one.from, one.from + window);
            let before = distinct(0, one.from);
            assert_eq!(
                (one.lines, one.new_lines),
                (own.len() as u64, own.difference(&before).count() as u64),
                "{one:?}"
            );
        }
        for (length, mean) in &found.by_length {
            let starts: Vec<u64> = (0..3000).step_by(*length as usize).collect();
            let sum: usize = starts.iter().map(|from| distinct(*from, from + length).len()).sum();
            assert!((mean - sum as f64 / starts.len() as f64).abs() < 1e-9, "windows of {length}");
        }
    }
}

#[test]
fn curves_of_types_are_those_of_a_list_with_the_type_of_each_access() {
    let names = ["A", "B", "C"];
    for seed in 10..16 {
        let records = program(seed, 1500, 2);
        let mut reuse = Reuse::new(ReuseOptions { parts: Parts::Type, ..ReuseOptions::default() });
        feed(&records, 40, 2, &names, &mut reuse);
        let found = reuse.finish(1500);
        let (mut live, mut stack): (Vec<RegionAdded>, Vec<u64>) = Default::default();
        // Of each part: touches, first touches, and distances.
        let mut parts: BTreeMap<&str, (u64, u64, Vec<usize>)> = BTreeMap::new();
        for record in &records {
            let one = match record {
                Record::Access(one) => one,
                Record::Add(region) => {
                    live.push(*region);
                    continue;
                }
                Record::Remove(removed) => {
                    if let Some(at) = live.iter().rposition(|region| region.address == removed.address) {
                        live.remove(at);
                    }
                    continue;
                }
            };
            let end = |region: &RegionAdded| region.address + region.element_bytes * region.elements;
            let own = live.iter().rev().find(|region| (region.address..end(region)).contains(&one.address));
            let name = own.map_or("(untyped)", |region| names[region.type_number as usize]);
            for line in lines(one, 64) {
                let part = parts.entry(name).or_default();
                part.0 += 1;
                match stack.iter().rev().position(|other| *other == line) {
                    Some(distance) => part.2.push(distance),
                    None => part.1 += 1,
                }
                stack.retain(|other| *other != line);
                stack.push(line);
            }
        }
        assert_eq!(found.parts.len(), parts.len());
        for part in &found.parts {
            let (touches, cold, distances) = &parts[part.name.as_str()];
            assert_eq!((part.curve.line_accesses, part.curve.cold), (*touches, *cold), "{}", part.name);
            for size in part.curve.sizes() {
                let misses = *cold + distances.iter().filter(|distance| **distance as u64 >= size).count() as u64;
                assert_eq!(part.curve.misses(size), misses, "{} in {size} lines", part.name);
            }
        }
    }
}
