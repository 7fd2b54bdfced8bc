//! Computes statistics from events in order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use anytrace_analysis::quantiles::Quantiles;
use anytrace_core::hash::Map;

use super::lengths::Lengths;
use super::queues::Queues;
use super::{ActorStats, Described, HephStats, LongRun, StatsOptions, Worker};
use crate::lanes::actors::run_of;
use crate::lanes::collect::Facts;
use crate::lanes::event::Sorted;
use crate::lanes::names::{NO_ROOM, Names};
use crate::lanes::rule::{OpenSpan, Sweep};
use crate::lanes::runtime::{self, Kind};
use crate::wire::dialect::LIFE;

/// Most actors distinguished.
const ACTORS_MAX: usize = 65_536;

/// Most streams whose time is divided.
const WORKERS_MAX: usize = 65_536;

/// Statistics of a description.
#[derive(Default)]
struct DescriptionStats {
    lengths: Quantiles,
    self_ns: u128,
}

struct Actor {
    runs: Quantiles,
    range: (u64, u64),
}

pub(super) struct Gather<'a> {
    names: &'a Names,
    facts: &'a Facts,
    longest_max: usize,
    kinds: Vec<Kind>,
    /// Runs on any worker's stream, by the description's number.
    is_thread_safe: Vec<bool>,
    by_name: Vec<DescriptionStats>,
    other: DescriptionStats,
    /// Lives of spans, which are no time of their own.
    lives: Vec<Quantiles>,
    other_lives: Quantiles,
    sweep: Sweep<u32>,
    /// The events that divide a worker's time.
    parts: Sweep<Kind>,
    lane: Option<(u32, u64)>,
    actors: Map<(Option<u32>, u64, Box<str>), Actor>,
    other_runs: u64,
    runs: Quantiles,
    longest: BTreeSet<(Reverse<u64>, u64)>,
    long: BTreeMap<u64, LongRun>,
    /// The record and end of the current run, if it is among the longest.
    current: Option<(u64, u64)>,
    workers: BTreeMap<u32, Worker>,
    /// First start and last end of each worker's own events.
    lifetimes: BTreeMap<u32, (u64, u64)>,
    queues: Queues,
    overlaps: u64,
}

impl<'a> Gather<'a> {
    pub(super) fn new(names: &'a Names, facts: &'a Facts, options: &StatsOptions) -> Self {
        let texts: Vec<&str> = names.all().map(|name| std::str::from_utf8(name).unwrap_or_default()).collect();
        Self {
            names,
            facts,
            longest_max: options.longest,
            kinds: texts.iter().map(|name| runtime::kind_of(name)).collect(),
            is_thread_safe: texts.iter().map(|name| *name == runtime::THREAD_SAFE_RUN).collect(),
            by_name: texts.iter().map(|_| DescriptionStats::default()).collect(),
            other: DescriptionStats::default(),
            lives: texts.iter().map(|_| Quantiles::default()).collect(),
            other_lives: Quantiles::default(),
            sweep: Sweep::new(),
            parts: Sweep::new(),
            lane: None,
            actors: Map::default(),
            other_runs: 0,
            runs: Quantiles::default(),
            longest: BTreeSet::new(),
            long: BTreeMap::new(),
            current: None,
            workers: BTreeMap::new(),
            lifetimes: BTreeMap::new(),
            queues: Queues::default(),
            overlaps: 0,
        }
    }

    #[inline]
    pub(super) fn event(&mut self, event: &Sorted<'_>) {
        let lane = (event.stream, event.lane);
        if self.lane != Some(lane) {
            self.end_lane();
            self.lane = Some(lane);
        }
        let length = event.end - event.start;
        if event.substream & LIFE != 0 {
            return self.lives.get_mut(event.name as usize).unwrap_or(&mut self.other_lives).push(length);
        }
        let (by_name, other) = (&mut self.by_name, &mut self.other);
        let mut closed = |done: OpenSpan<u32>| {
            let of = by_name.get_mut(done.what as usize).unwrap_or(&mut *other);
            of.self_ns += u128::from(done.self_time());
        };
        let placed = self.sweep.place(event.start, event.end, event.name, &mut closed);
        self.overlaps += u64::from(placed.overlaps.is_some());
        self.by_name.get_mut(event.name as usize).unwrap_or(&mut self.other).lengths.push(length);
        match self.kinds.get(event.name as usize).copied().unwrap_or(Kind::User) {
            Kind::User => self.inside(event),
            kind => self.of_runtime(kind, event),
        }
    }

    fn of_runtime(&mut self, kind: Kind, event: &Sorted<'_>) {
        if self.lifetimes.len() < WORKERS_MAX || self.lifetimes.contains_key(&event.stream) {
            let times = self.lifetimes.entry(event.stream).or_insert((event.start, event.end));
            *times = (times.0.min(event.start), times.1.max(event.end));
        }
        if kind == Kind::Runtime {
            return;
        }
        if let Some(worker) = worker(&mut self.workers, event.stream) {
            worker.runs += u64::from(kind == Kind::Run);
            let mut closed = |done: OpenSpan<Kind>| add_time(worker, &done);
            self.parts.place(event.start, event.end, kind, &mut closed);
        }
        match kind {
            Kind::Run => self.run(event),
            Kind::Scheduling => self.queues.event(event, self.facts.range.unwrap_or_default()),
            Kind::Polling | Kind::Runtime | Kind::User => {}
        }
    }

    fn run(&mut self, event: &Sorted<'_>) {
        let length = event.end - event.start;
        self.runs.push(length);
        let (id, name) = run_of(event.attributes()).unwrap_or((0, "(unnamed)"));
        let is_thread_safe = self.is_thread_safe.get(event.name as usize).copied().unwrap_or(false);
        let key = ((!is_thread_safe).then_some(event.stream), id, name.into());
        if self.actors.len() < ACTORS_MAX || self.actors.contains_key(&key) {
            let range = (event.start, event.end);
            let actor = self.actors.entry(key).or_insert_with(|| Actor { runs: Quantiles::default(), range });
            actor.runs.push(length);
            actor.range = (actor.range.0.min(event.start), actor.range.1.max(event.end));
        } else {
            self.other_runs += 1;
        }
        self.current = None;
        let is_long = self.longest.len() < self.longest_max
            || self.longest.last().is_some_and(|(Reverse(shortest), _)| length > *shortest);
        if is_long && self.longest_max > 0 {
            self.longest.insert((Reverse(length), event.seq));
            let (start_ns, stream, seq) = (event.start, event.stream, event.seq);
            let actor = (id, name.to_owned());
            let run = LongRun { duration_ns: length, start_ns, stream, seq, actor, inside: None };
            self.long.insert(event.seq, run);
            self.current = Some((event.seq, event.end));
            if self.longest.len() > self.longest_max
                && let Some((_, seq)) = self.longest.pop_last()
            {
                self.long.remove(&seq);
            }
        }
    }

    /// A program's event: it may explain a long run.
    #[inline]
    fn inside(&mut self, event: &Sorted<'_>) {
        let Some((seq, end)) = self.current else { return };
        let length = event.end - event.start;
        if event.end > end {
            return;
        }
        let Some(run) = self.long.get_mut(&seq) else { return };
        if run.inside.as_ref().is_none_or(|(_, longest)| length > *longest) {
            let name = self.names.get(event.name).unwrap_or(event.description);
            run.inside = Some((name.to_vec(), length));
        }
    }

    fn end_lane(&mut self) {
        let (by_name, other) = (&mut self.by_name, &mut self.other);
        self.sweep.finish(&mut |done| {
            let of = by_name.get_mut(done.what as usize).unwrap_or(&mut *other);
            of.self_ns += u128::from(done.self_time());
        });
        if let Some((stream, _)) = self.lane
            && let Some(worker) = self.workers.get_mut(&stream)
        {
            self.parts.finish(&mut |done| add_time(worker, &done));
        }
        self.current = None;
    }

    pub(super) fn finish(mut self) -> HephStats {
        self.end_lane();
        let describe = |number: u32| self.names.get(number).map_or_else(|| b"(other)".to_vec(), <[u8]>::to_vec);
        let mut descriptions: Vec<Described> = (0..)
            .zip(self.by_name)
            .chain([(NO_ROOM, self.other)])
            .map(|(number, of)| Described {
                description: describe(number),
                lengths: Lengths::of(of.lengths).0,
                self_ns: of.self_ns,
            })
            .filter(|row| row.lengths.count > 0)
            .collect();
        descriptions
            .sort_by(|a, b| b.lengths.total_ns.cmp(&a.lengths.total_ns).then(a.description.cmp(&b.description)));
        let mut lives: Vec<(Vec<u8>, Lengths)> = (0..)
            .zip(self.lives)
            .chain([(NO_ROOM, self.other_lives)])
            .filter(|(_, lengths)| lengths.count() > 0)
            .map(|(number, lengths)| (describe(number), Lengths::of(lengths).0))
            .collect();
        lives.sort_by(|a, b| b.1.total_ns.cmp(&a.1.total_ns).then(a.0.cmp(&b.0)));
        let mut actors: Vec<ActorStats> = self
            .actors
            .into_iter()
            .map(|((stream, id, name), actor)| ActorStats {
                id,
                name: name.into(),
                stream,
                runs: Lengths::of(actor.runs).0,
                range: actor.range,
            })
            .collect();
        let key = |actor: &ActorStats| (actor.stream, actor.id);
        actors
            .sort_by(|a, b| b.runs.total_ns.cmp(&a.runs.total_ns).then(key(a).cmp(&key(b))).then(a.name.cmp(&b.name)));
        let (runs, run_histogram) = Lengths::of(self.runs);
        let long = &mut self.long;
        let longest = self.longest.iter().filter_map(|(_, seq)| long.remove(seq)).collect();
        for (stream, worker) in &mut self.workers {
            let times = self.lifetimes.get(stream).copied().unwrap_or_default();
            worker.lifetime_ns = times.1 - times.0;
        }
        HephStats {
            events: self.facts.events,
            range: self.facts.range,
            epoch_ns: self.facts.epochs_ns.first().copied(),
            dialect: self.facts.dialect(self.overlaps > 0),
            partial_overlaps: self.overlaps,
            descriptions,
            lives,
            actors,
            other_runs: self.other_runs,
            runs,
            run_histogram,
            longest,
            workers: self.workers.into_values().collect(),
            queues: self.queues.finish(describe),
        }
    }
}

fn worker(workers: &mut BTreeMap<u32, Worker>, stream: u32) -> Option<&mut Worker> {
    if workers.len() >= WORKERS_MAX && !workers.contains_key(&stream) {
        return None;
    }
    Some(workers.entry(stream).or_insert_with(|| Worker { stream, ..Worker::default() }))
}

/// Adds the time spent in an event that divides a worker's time, and in none of those inside it.
fn add_time(worker: &mut Worker, done: &OpenSpan<Kind>) {
    let part = match done.what {
        Kind::Run => &mut worker.running_ns,
        Kind::Scheduling => &mut worker.scheduling_ns,
        Kind::Polling => &mut worker.polling_ns,
        Kind::Runtime | Kind::User => return,
    };
    *part = part.saturating_add(done.self_time());
}
