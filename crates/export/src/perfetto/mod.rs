//! Perfetto's own form: TrackEvent packets in protocol buffers.
//!
//! Streams: memory grows with distinct names and tracks only. A thread's first lane is the thread's own track, further
//! lanes are tracks below it. Times are the trace's own nanoseconds (not counted from the origin), so that several traces
//! of one machine can be compared side by side; where the trace contains the real time of its time 0, a clock snapshot
//! contains it too. Field numbers: `perfetto/trace/trace_packet.proto` and the files it names.
//!
//! Each of the first tracks has a sequence of packets of its own, which halves the file: what all its packets have in
//! common is sent once (`TracePacketDefaults`), and so are, as in every sequence, names, attribute keys and source
//! locations, which events refer to by number. Its times are differences to the packet before (a clock that is
//! incremental, "Synchronization of multiple clock domains" in Perfetto's documentation).
//!
//! What the packets of a batch depend on is found as the batch arrives: which names it uses first, and the times before
//! it. With that, batches are encoded on several threads.

mod encode;
mod fields;
mod sequences;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};

use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink};

use crate::formatters::Formatters;
use crate::pen::Pen;
use crate::proto;
use crate::timeline::clock::{Clock, NO_SOURCE};
use crate::timeline::numbers::Numbering;
use crate::timeline::output::Timeline;
use crate::timeline::words::{self, shown};
use encode::{Known, PARTS, Part, Plan, SHARED, arrows_of, sequence_of};
use fields::{PACKET, descriptor, packet};
use sequences::{Names, Sequences};

/// The origin is not shown later than this, so that times after it still fit.
const BASE_MAX: u64 = 1 << 62;

/// A Perfetto trace being written.
pub struct Perfetto<'a> {
    pen: Pen<'a>,
    clock: Clock,
    has_source: bool,
    numbering: Numbering,
    processes: BTreeMap<u64, (u64, u32)>,
    threads: BTreeMap<(u64, u64), u64>,
    last_uuid: u64,
    names: Names,
    sequences: Sequences,
    known: Arc<RwLock<Known>>,
    formatters: Formatters<Plan>,
    plan: Plan,
    /// Packets that go before the next edge.
    packets: Vec<u8>,
}

impl<'a> Perfetto<'a> {
    /// Begins a trace, which up to `threads` threads encode.
    pub fn new(out: &'a mut (dyn Write + Send), threads: usize) -> Self {
        Self {
            pen: Pen::new(out),
            clock: Clock::default(),
            has_source: false,
            numbering: Numbering::default(),
            processes: BTreeMap::new(),
            threads: BTreeMap::new(),
            last_uuid: 0,
            names: Names::default(),
            sequences: Sequences::default(),
            known: Arc::default(),
            formatters: Formatters::new(threads, Plan::encode),
            plan: Plan::default(),
            packets: Vec::new(),
        }
    }

    fn know(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn uuid(&mut self) -> u64 {
        self.last_uuid += 1;
        self.last_uuid
    }

    fn describe(&mut self, append: impl FnOnce(&mut Vec<u8>)) {
        proto::message(&mut self.packets, PACKET, |out| {
            proto::number(out, packet::SEQUENCE_ID, SHARED);
            proto::message(out, packet::TRACK_DESCRIPTOR, append);
        });
    }

    /// Unique number of a thread's track; announces the thread and its process if they are new.
    fn thread(&mut self, track: &Track) -> u64 {
        if let Some(&uuid) = self.threads.get(&(track.process, track.thread)) {
            return uuid;
        }
        let numbers = self.numbering.of(&Track { lane: 0, ..track.clone() });
        self.process(track, numbers.process);
        let uuid = self.uuid();
        let rank = self.threads.len() as u64;
        self.threads.insert((track.process, track.thread), uuid);
        let is_named = track.name.is_some() || numbers.are_changed;
        let name = is_named.then(|| words::label(&Track { lane: 0, ..track.clone() }));
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::message(out, descriptor::THREAD, |out| {
                proto::number(out, 1, u64::from(numbers.process));
                proto::number(out, 2, u64::from(numbers.thread));
                proto::number(out, 3, rank);
                if let Some(name) = name {
                    proto::bytes(out, 5, name.as_bytes());
                }
            });
        });
        uuid
    }

    /// Unique number of a process; announces it if it is new.
    fn process(&mut self, track: &Track, number: u32) -> u64 {
        if let Some(&(uuid, _)) = self.processes.get(&track.process) {
            return uuid;
        }
        let uuid = self.uuid();
        let rank = self.processes.len() as u64;
        self.processes.insert(track.process, (uuid, number));
        let name = match &track.process_name {
            None if u64::from(number) == track.process => None,
            None if track.process == 0 => Some("unknown process".to_owned()),
            None => Some(format!("process {}", track.process)),
            Some(name) => Some(name.clone()),
        };
        let facts: Vec<String> = self.clock.facts().iter().map(|(key, value)| format!("{key}: {value}")).collect();
        let note = self.clock.note();
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::bytes(out, descriptor::DESCRIPTION, facts.join("\n").as_bytes());
            proto::message(out, descriptor::PROCESS, |out| {
                proto::number(out, 1, u64::from(number));
                proto::number(out, 3, rank);
                if let Some(name) = name {
                    proto::bytes(out, 6, name.as_bytes());
                }
                if let Some(note) = note {
                    proto::bytes(out, 8, note.as_bytes());
                }
            });
        });
        uuid
    }

    /// Unique number of a track for tasks, below its process: those of one name are shown as one.
    fn task(&mut self, track: &Track) -> u64 {
        let number = match self.processes.get(&track.process) {
            Some(&(_, number)) => number,
            None => self.numbering.of(&Track { lane: 1, ..track.clone() }).process,
        };
        let process = self.process(track, number);
        let uuid = self.uuid();
        let name = words::label(&Track { lane: 0, ..track.clone() });
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::number(out, descriptor::PARENT, process);
            proto::bytes(out, descriptor::NAME, name.as_bytes());
        });
        uuid
    }

    /// Announces the track of a counter, below the track it counts for, if it is new.
    fn counter(&mut self, edge: &Edge) {
        let key = (edge.track, edge.name);
        if self.know().counters.contains_key(&key) {
            return;
        }
        let uuid = self.uuid();
        let track = {
            let mut known = self.know();
            known.counters.insert(key, uuid);
            known.uuid(edge.track)
        };
        let name = self.names.get(edge.name).to_vec();
        self.describe(|out| {
            proto::number(out, descriptor::UUID, uuid);
            proto::number(out, descriptor::PARENT, track);
            proto::bytes(out, descriptor::NAME, &name);
            proto::bytes(out, descriptor::COUNTER, &[]);
        });
    }

    /// Finds what the packets of a batch depend on.
    fn plan(&mut self, part: &mut Part) {
        let batch = std::mem::take(&mut part.batch);
        let (edges, mut at) = (batch.edges(), 0);
        while let Some(track) = edges.get(at).map(|edge| edge.track) {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            self.sequences.enter(track, &known, &mut part.starts, &mut self.packets);
            drop(known);
            if !self.packets.is_empty() {
                part.add(at, &self.packets, &[]);
                self.packets.clear();
            }
            at = self.plan_track(&batch, at, part);
        }
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        self.sequences.leave(&known, &part.starts);
        drop(known);
        part.batch = batch;
    }

    /// Plans the edges from `at` on that are on the same track; returns where they end.
    fn plan_track(&mut self, batch: &EdgeBatch, mut at: usize, part: &mut Part) -> usize {
        let edges = batch.edges();
        let Some(track) = edges.get(at).map(|edge| edge.track) else { return at };
        let (number, mut latest) = (sequence_of(track), 0);
        while let Some(edge) = edges.get(at).filter(|edge| edge.track == track) {
            latest = latest.max(edge.time);
            if !self.sequences.has(number, edge, &self.names) {
                if edge.kind == EdgeKind::Counter {
                    self.counter(edge);
                }
                let interned = self.sequences.send(number, batch, edge, &self.names);
                if !self.packets.is_empty() || !interned.is_empty() {
                    part.add(at, &self.packets, interned);
                    self.packets.clear();
                }
            }
            at += 1 + arrows_of(edge, edges.get(at + 1..).unwrap_or_default()).len();
        }
        self.sequences.reach(number, latest);
        at
    }

    /// Adds a batch, which `fill` puts in its place.
    fn add(&mut self, fill: impl FnOnce(&mut EdgeBatch)) -> Result<(), Error> {
        if self.plan.parts.len() == self.plan.used {
            self.plan.parts.push(Part::default());
        }
        let Some(mut part) = self.plan.parts.get_mut(self.plan.used).map(std::mem::take) else { return Ok(()) };
        part.clear();
        fill(&mut part.batch);
        self.plan(&mut part);
        if let Some(place) = self.plan.parts.get_mut(self.plan.used) {
            *place = part;
        }
        self.plan.used += 1;
        if self.plan.used < PARTS { Ok(()) } else { self.give() }
    }

    /// Has the batches encoded that were collected.
    fn give(&mut self) -> Result<(), Error> {
        let mut empty = self.formatters.spare().unwrap_or_default();
        empty.used = 0;
        let mut plan = std::mem::replace(&mut self.plan, empty);
        plan.known.get_or_insert_with(|| Arc::clone(&self.known));
        self.formatters.give(plan, &mut self.pen)
    }
}

impl SpanSink for Perfetto<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        self.has_source = true;
        let base = self.clock.length(source.origin).min(BASE_MAX);
        let clock = self.clock;
        let mut known = self.know();
        (known.clock, known.base) = (clock, base.cast_signed());
        drop(known);
        let epoch = self.clock.origin_epoch_ns().and_then(|ns| u64::try_from(ns).ok());
        sequences::first_packet(base, epoch, &mut self.packets);
        Ok(())
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        if track.is_task {
            let uuid = self.task(track);
            self.know().uuids.push(uuid);
            return Ok(());
        }
        let thread = self.thread(track);
        let uuid = if track.lane == 0 { thread } else { self.uuid() };
        if track.lane != 0 {
            self.describe(|out| {
                proto::number(out, descriptor::UUID, uuid);
                proto::number(out, descriptor::PARENT, thread);
                proto::bytes(out, descriptor::NAME, words::label(track).as_bytes());
            });
        }
        self.know().uuids.push(uuid);
        Ok(())
    }

    fn name(&mut self, id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.names.add(shown(name).as_bytes(), location);
        if location.is_some() {
            self.know().add_source(id);
        }
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        self.add(|next| next.copy_from(batch))
    }

    fn take_edges(&mut self, batch: &mut EdgeBatch) -> Result<(), Error> {
        self.add(|next| std::mem::swap(next, batch))
    }
}

impl Timeline for Perfetto<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        if !self.has_source {
            self.source(&NO_SOURCE)?;
        }
        if self.plan.used > 0 {
            self.give()?;
        }
        self.formatters.finish(&mut self.pen)?;
        self.pen.put(&self.packets)?;
        self.pen.finish()
    }
}
