//! The first pass: passes every event to the sorter, and collects what must be known about the entire trace before the
//! first span is emitted.

use std::collections::{BTreeMap, BTreeSet};

use anytrace_core::hash::Map;
use anytrace_core::{Diagnostic, Error, Place, Sink, Summary};

use super::actors::{self, Actors};
use super::event::{NOWHERE, StoredEvent, TASKS};
use super::layer::{Ancestors, Ids, Repolled};
use super::names::Names;
use super::sorter::Sorter;
use super::{Lanes, report_oddities};
use crate::lanes::runtime::{self, Kind};
use crate::wire::dialect::{LIFE, Signs};
use crate::wire::fault::Damage;
use crate::wire::reader::{Reader, Visitor};
use crate::wire::record::{Event, Record};
use crate::wire::session::Session;

/// The order in which events are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Lane by lane.
    Lanes(Lanes),
    /// Stream by stream, by start, whatever the substream; lives of spans after all streams. Runs of spans that have
    /// numbers are in substream 0: they nest on their thread.
    Tracks,
    /// As [`Self::Tracks`], and names and parents of spans are wanted.
    Causes,
    /// Task by task: what the tool `tasks` needs.
    #[cfg(feature = "tools")]
    Tasks,
}

/// Most streams whose counters are followed and whose role is stored.
const STREAMS_MAX: usize = 65_536;

/// Most distinct epochs stored.
const EPOCHS_MAX: usize = 16;

/// Counters in 64 bits begin here, so that there is room below for late ones.
const ORDER_BASE: u64 = 1 << 40;

/// Facts about the entire trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) events: u64,
    /// The earliest start and the latest end.
    pub(crate) range: Option<(u64, u64)>,
    /// Distinct epochs in order of arrival, nanoseconds since 1970. A late one applies to the entire trace.
    pub(crate) epochs_ns: Vec<u64>,
    /// Number of events that end before they start, and the first of them.
    pub(crate) backward: u64,
    first_backward: Option<Place>,
    second_epoch: Option<(Place, u64, u64)>,
    /// Streams that do the work of a worker or of the coordinator.
    pub(crate) workers: BTreeSet<u32>,
    /// Names of actors by their ids.
    pub(crate) actors: Actors,
    /// The recording, if it is one only.
    pub(crate) session: Option<Session>,
    has_other_session: bool,
    /// Names of threads by stream.
    pub(crate) threads: BTreeMap<u32, Box<str>>,
    /// Spans that were entered more than once.
    pub(crate) repolled: Repolled,
    /// True if there is a run of a span that has a number.
    pub(crate) has_runs: bool,
    /// Names and parents of spans; only by [`Order::Causes`].
    pub(crate) ancestors: Ancestors,
    /// True if there are lives of spans, or wake-ups of tasks; only by [`Order::Tasks`].
    pub(crate) has_lives: bool,
    pub(crate) has_wakes: bool,
    signs: Signs,
}

impl Facts {
    /// `old` or `new`, if the trace shows it. `overlaps`: events of a lane overlap partly.
    pub(crate) fn dialect(&self, overlaps: bool) -> Option<&'static str> {
        self.signs.dialect(overlaps)
    }

    /// Reports oddities of the entire trace.
    pub(crate) fn report(&self, sink: &mut dyn Sink) -> Result<(), Error> {
        report_oddities(self.second_epoch, self.first_backward.map(|place| (place, self.backward)), sink)
    }
}

/// A trace read to its end.
pub(crate) struct Collected {
    pub(crate) sorter: Sorter,
    pub(crate) names: Names,
    pub(crate) facts: Facts,
    pub(crate) summary: Summary,
}

/// The attributes that are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// None.
    Nothing,
    /// Those of events with the numbers of spans, which arrows are made of.
    Numbered,
    /// All.
    All,
}

/// Reads a trace.
pub(crate) fn collect(
    mut reader: Reader,
    order: Order,
    attributes: Stored,
    sink: &mut dyn Sink,
) -> Result<Collected, Error> {
    let mut collector = Collector { sorter: Sorter::default(), taker: Taker::new(order), attributes, sink };
    let summary = reader.read(&mut collector)?;
    let Collector { sorter, taker, sink, .. } = collector;
    taker.facts.report(sink)?;
    Ok(Collected { sorter, names: taker.names, facts: taker.facts, summary })
}

struct Collector<'s> {
    sorter: Sorter,
    taker: Taker,
    attributes: Stored,
    sink: &'s mut dyn Sink,
}

impl Stored {
    /// All attributes, where they are wanted.
    #[cfg(feature = "tools")]
    pub(crate) fn all_if(is_wanted: bool) -> Self {
        if is_wanted { Self::All } else { Self::Nothing }
    }
}

impl Visitor for Collector<'_> {
    #[inline]
    fn packet(&mut self, place: Place, _: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        let Record::Event(event) = packet else {
            self.taker.option(place, packet);
            return Ok(());
        };
        let kept = self.taker.event(place, event);
        let description = if kept.name == super::names::NO_ROOM { event.description } else { &[] };
        let is_stored = match self.attributes {
            Stored::Nothing => false,
            Stored::Numbered => kept.home != TASKS && Ids::of(event.attributes()).is_some(),
            Stored::All => true,
        };
        let (attributes, nesting) = if is_stored { (event.attributes, event.nesting) } else { (&[][..], &[][..]) };
        if kept.home == NOWHERE {
            return Ok(());
        }
        self.sorter.push(kept, [description, attributes, nesting])
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }

    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.sink.report(damage.to_diagnostic())
    }
}

/// Turns packets into what is stored of them.
pub(crate) struct Taker {
    order: Order,
    pub(crate) names: Names,
    pub(crate) facts: Facts,
    /// The kind of runtime event that each description denotes.
    kinds: Vec<Kind>,
    streams: Map<u32, u64>,
    /// The stream of the last event and its last counter.
    last: (u32, Option<u64>),
    last_worker: Option<u32>,
}

impl Taker {
    pub(crate) fn new(order: Order) -> Self {
        let (names, facts, kinds) = (Names::default(), Facts::default(), Vec::new());
        Self { order, names, facts, kinds, streams: Map::default(), last: (0, None), last_worker: None }
    }

    #[inline]
    pub(crate) fn event(&mut self, place: Place, event: &Event<'_>) -> StoredEvent {
        let header = &event.header;
        let name = self.names.number(event.description).unwrap_or(super::names::NO_ROOM);
        if self.names.len() > self.kinds.len() {
            self.new_name(event);
        }
        let kind = self.kinds.get(name as usize).copied().unwrap_or(Kind::User);
        if kind.is_of_scheduler() {
            self.runtime(kind, event);
        }
        self.facts.events += 1;
        self.facts.signs.event(event);
        let end = header.end_ns.max(header.start_ns);
        let backward = end - header.end_ns;
        if backward > 0 {
            self.facts.backward += 1;
            self.facts.first_backward.get_or_insert(place);
        }
        let (first, last) = self.facts.range.unwrap_or((u64::MAX, 0));
        self.facts.range = Some((first.min(header.start_ns), last.max(end)));
        let (home, lane, substream) = match self.order {
            Order::Lanes(Lanes::Stream) => (header.stream, 0, header.substream),
            Order::Lanes(Lanes::Substream) => (header.stream, header.substream, header.substream),
            Order::Tracks | Order::Causes => self.track(event, name),
            #[cfg(feature = "tools")]
            Order::Tasks => self.task(event, kind == Kind::Run),
        };
        StoredEvent {
            stream: header.stream,
            home,
            lane,
            substream,
            start: header.start_ns,
            end,
            order: self.order(header.stream, header.counter),
            seq: place.seq,
            backward,
            name,
            ..StoredEvent::BEFORE
        }
    }

    /// Home, lane and substream of an event by [`Order::Tracks`].
    #[inline]
    fn track(&mut self, event: &Event<'_>, name: u32) -> (u32, u64, u64) {
        let header = &event.header;
        let ids = Ids::of(event.attributes());
        if self.order == Order::Causes
            && let Some(ids) = ids.filter(|ids| ids.span != 0)
        {
            self.facts.ancestors.add(ids.span, name, ids.parent);
        }
        match ids {
            None => (header.stream, 0, header.substream),
            Some(_) if header.substream & LIFE != 0 => (TASKS, 0, header.substream & !LIFE),
            Some(ids) => {
                self.facts.has_runs |= ids.span != 0;
                if ids.poll > 0 {
                    self.facts.repolled.add(ids.span);
                }
                (header.stream, 0, 0)
            }
        }
    }

    /// The same by [`Order::Tasks`].
    #[cfg(feature = "tools")]
    fn task(&mut self, event: &Event<'_>, is_run: bool) -> (u32, u64, u64) {
        let substream = event.header.substream;
        let Some((home, lane)) = super::tasks::task_of(event, is_run) else { return (NOWHERE, 0, 0) };
        self.facts.has_lives |= substream & LIFE != 0;
        self.facts.has_wakes |= home == super::tasks::SPANS
            && event.header.start_ns == event.header.end_ns
            && Ids::of(event.attributes()).is_none_or(|ids| ids.span == 0);
        (home, lane, substream)
    }

    #[cold]
    fn new_name(&mut self, event: &Event<'_>) {
        self.kinds.push(runtime::kind_of(event.description()));
    }

    /// Derives facts about streams and actors from scheduling and running events.
    #[inline]
    fn runtime(&mut self, kind: Kind, event: &Event<'_>) {
        let stream = event.header.stream;
        if self.last_worker != Some(stream) {
            self.last_worker = Some(stream);
            if self.facts.workers.len() < STREAMS_MAX {
                self.facts.workers.insert(stream);
            }
        }
        if kind == Kind::Run
            && let Some(run) = actors::run_of(event.attributes())
        {
            self.facts.actors.met(run.0, run.1);
        }
    }

    /// The counter in 64 bits, without wrap-around: near the previous one in its stream.
    #[inline]
    fn order(&mut self, stream: u32, counter: u32) -> u64 {
        let before = match self.last {
            (last, before) if last == stream && before.is_some() => before,
            (last, before) => {
                if let Some(before) = before
                    && (self.streams.len() < STREAMS_MAX || self.streams.contains_key(&last))
                {
                    self.streams.insert(last, before);
                }
                self.streams.get(&stream).copied()
            }
        };
        let order = match before {
            None => ORDER_BASE + u64::from(counter),
            Some(before) => before.wrapping_add_signed(i64::from(counter.wrapping_sub(before as u32).cast_signed())),
        };
        self.last = (stream, Some(order));
        order
    }

    #[cold]
    pub(crate) fn option(&mut self, place: Place, packet: &Record<'_>) {
        let Record::Metadata(metadata) = packet else { return };
        if let Some(session) = metadata.session() {
            let is_other = self.facts.session.as_ref().is_some_and(|known| known.id != session.id);
            self.facts.has_other_session |= is_other;
            self.facts.session = Some(session).filter(|_| !self.facts.has_other_session);
        }
        if let Some((stream, name)) = metadata.thread()
            && self.facts.threads.len() < STREAMS_MAX
        {
            self.facts.threads.insert(stream, name.into());
        }
        let Some(now) = metadata.epoch_ns() else { return };
        if self.facts.epochs_ns.contains(&now) {
            return;
        }
        if let Some(&before) = self.facts.epochs_ns.last() {
            self.facts.second_epoch.get_or_insert((place, before, now));
        }
        if self.facts.epochs_ns.len() < EPOCHS_MAX {
            self.facts.epochs_ns.push(now);
        }
    }
}
