//! Builds the tree as events arrive, in bounded memory.
//!
//! Events come in order of their ends, so inner ones before outer ones. Each lane buffers its last events; when there
//! are more than the limit, or they are older than the horizon, the oldest trees are emitted by the same rule as in
//! exact mode. A span emitted without a parent may still have had one: it is marked. An event that arrives after its
//! neighbors were emitted is emitted by itself, and counted as late.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Error, Place, Sink};

use super::builder::Builder;
use super::line::About;
use super::printer::Printer;
use super::tree_options::Streaming;
use crate::lanes::Lanes;
use crate::lanes::collect::{Order, Taker};
use crate::lanes::event::StoredEvent;
use crate::lanes::names::NO_ROOM;
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::Record;

/// Most events buffered over all lanes; if there are more, the lanes that have been longest without an event are
/// emitted. With their attributes at most 80 MiB.
const ALL_MAX: usize = 1 << 18;

/// Most lanes stored. A lane that appears again later counts as another.
const LANES_MAX: usize = 1 << 16;

/// Most bytes of attributes buffered over all lanes.
const BYTES_MAX: usize = 32 << 20;

/// Reads a trace and emits its spans.
pub(super) fn emit(
    mut reader: Reader,
    lanes: Lanes,
    streaming: Streaming,
    printer: &mut Printer<'_>,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let mut window = Window {
        taker: Taker::new(Order::Lanes(lanes)),
        lanes: BTreeMap::new(),
        buffered: 0,
        bytes: 0,
        streaming,
        builder: Builder::default(),
        printer,
        sink,
    };
    reader.read(&mut window)?;
    while let Some((key, lane)) = window.lanes.pop_first() {
        window.emit_all(key, lane, false)?;
    }
    window.taker.facts.report(window.sink)
}

/// A buffered event with its bytes: description without a number, attributes, nesting.
struct Waiting {
    event: StoredEvent,
    bytes: Box<[u8]>,
}

#[derive(Default)]
struct Lane {
    waiting: Vec<Waiting>,
    /// The latest end so far.
    latest: u64,
    /// The emitted spans end here at the latest.
    emitted_until: u64,
    has_emitted: bool,
    /// Record of its last event.
    last_seq: u64,
}

struct Window<'p, 'o, 's> {
    taker: Taker,
    lanes: BTreeMap<(u32, u64), Lane>,
    buffered: usize,
    bytes: usize,
    streaming: Streaming,
    builder: Builder,
    printer: &'p mut Printer<'o>,
    sink: &'s mut dyn Sink,
}

impl Window<'_, '_, '_> {
    fn add(&mut self, event: StoredEvent, bytes: Box<[u8]>) -> Result<(), Error> {
        let key = (event.stream, event.lane);
        if !self.lanes.contains_key(&key) {
            self.printer.summary.lanes += 1;
        }
        let lane = self.lanes.entry(key).or_default();
        lane.latest = lane.latest.max(event.end);
        lane.last_seq = event.seq;
        if lane.has_emitted && event.start < lane.emitted_until {
            self.printer.summary.late += 1;
        }
        self.buffered += 1;
        self.bytes += bytes.len();
        lane.waiting.push(Waiting { event, bytes });
        let is_full = lane.waiting.len() >= self.streaming.lane_spans_max.max(2);
        // Examining a lane costs time proportional to its events, so it is done only when their number has at least
        // doubled.
        let is_old = self.streaming.horizon_ns.is_some_and(|horizon| {
            let oldest = lane.waiting.first().map_or(0, |waiting| waiting.event.end);
            lane.waiting.len().is_power_of_two() && lane.latest.saturating_sub(oldest) > horizon
        });
        if is_full || is_old {
            self.emit_oldest(key, is_full)?;
        }
        if self.buffered >= ALL_MAX || self.bytes >= BYTES_MAX || self.lanes.len() > LANES_MAX {
            self.emit_idlest()?;
        }
        Ok(())
    }

    /// Emits the oldest trees of a lane: at least half of its events when it is full.
    fn emit_oldest(&mut self, key: (u32, u64), is_full: bool) -> Result<(), Error> {
        let Some(lane) = self.lanes.get_mut(&key) else { return Ok(()) };
        let mut waiting = std::mem::take(&mut lane.waiting);
        waiting.sort_unstable_by_key(|one| one.event.key());
        let horizon = self.streaming.horizon_ns.map(|horizon| lane.latest.saturating_sub(horizon));
        let mut end = 0;
        let mut cut = 0;
        for (n, one) in waiting.iter().enumerate() {
            let is_between_trees = one.event.start >= end;
            let is_old_enough = horizon.is_some_and(|horizon| end < horizon);
            if is_between_trees && n > 0 && (is_old_enough || is_full && n <= waiting.len() / 2 + 1) {
                cut = n;
            }
            end = end.max(one.event.end);
        }
        if is_full && cut == 0 {
            // One tree or a chain of overlaps covers everything: it must be cut somewhere.
            cut = waiting.len() / 2 + 1;
        }
        lane.waiting = waiting.split_off(cut.min(waiting.len()));
        self.emit(key, &waiting, true)
    }

    /// Emits and drops the lanes that have been longest without an event, until half of the room is free: that many
    /// events must then arrive before this is repeated.
    #[cold]
    fn emit_idlest(&mut self) -> Result<(), Error> {
        let mut idlest: Vec<_> = self.lanes.iter().map(|(&key, lane)| (lane.last_seq, key)).collect();
        idlest.sort_unstable();
        for (_, key) in idlest {
            if self.buffered <= ALL_MAX / 2 && self.bytes <= BYTES_MAX / 2 && self.lanes.len() <= LANES_MAX / 2 {
                break;
            }
            if let Some(lane) = self.lanes.remove(&key) {
                self.emit_all(key, lane, true)?;
            }
        }
        Ok(())
    }

    fn emit_all(&mut self, key: (u32, u64), lane: Lane, is_parent_unknown: bool) -> Result<(), Error> {
        let mut waiting = lane.waiting;
        waiting.sort_unstable_by_key(|one| one.event.key());
        self.emit(key, &waiting, is_parent_unknown)
    }

    fn emit(&mut self, key: (u32, u64), sorted: &[Waiting], is_parent_unknown: bool) -> Result<(), Error> {
        let about = About { names: &self.taker.names, facts: &self.taker.facts };
        for one in sorted {
            self.buffered = self.buffered.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(one.bytes.len());
            self.builder.event(&one.event.with(&one.bytes), is_parent_unknown, about, self.printer)?;
        }
        self.builder.cut();
        if let Some(lane) = self.lanes.get_mut(&key) {
            let latest = sorted.iter().map(|one| one.event.end).max();
            lane.emitted_until = lane.emitted_until.max(latest.unwrap_or(0));
            lane.has_emitted |= !sorted.is_empty();
        }
        Ok(())
    }
}

impl Visitor for Window<'_, '_, '_> {
    fn packet(&mut self, place: Place, _: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        let Record::Event(event) = packet else {
            self.taker.option(place, packet);
            return Ok(());
        };
        let mut kept = self.taker.event(place, event);
        let description: &[u8] = if kept.name == NO_ROOM { event.description } else { &[] };
        let attributes: &[u8] = if self.printer.wants_attributes() { event.attributes } else { &[] };
        let nesting: &[u8] = if self.printer.wants_attributes() { event.nesting } else { &[] };
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap_or(0);
        kept.description_bytes = length(description);
        kept.attribute_bytes = length(attributes);
        kept.nesting_bytes = length(nesting);
        self.add(kept, [description, attributes, nesting].concat().into())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.sink.report(damage.to_diagnostic())
    }
}
