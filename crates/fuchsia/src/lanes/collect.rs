//! Reads a trace to its end: events into the sorter, by row.

use anytrace_core::hash::Map;
use anytrace_core::runs::Sorter;
use anytrace_core::span::{Items, Value};
use anytrace_core::{Error, Place, Sink, Summary};

use super::item::{Item, Kind};
use crate::model::names::{CATEGORY, NameNumber, UNNAMED};
use crate::model::session::{Go, Session, Thread, about, unreadable, walk};
use crate::rules;
use crate::wire::arguments::{Arguments, Value as Argument};
use crate::wire::content::{Content, Event};
use crate::wire::reader::Reader;

/// What spans nest in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    Thread(Thread),
    /// An asynchronous operation of a process.
    Async(u64, u64),
    Processor(u64),
}

/// Everything that emitting needs.
pub(super) struct Collected {
    pub(super) session: Session,
    pub(super) sorter: Sorter<Item>,
    /// The rows in the order of their first events, each with the name of that event.
    pub(super) rows: Vec<(Home, NameNumber)>,
    pub(super) start: Option<u64>,
    pub(super) is_full: bool,
    pub(super) summary: Summary,
}

struct Collector {
    sorter: Sorter<Item>,
    index: Map<Home, u32>,
    rows: Vec<(Home, NameNumber)>,
    start: Option<u64>,
    is_full: bool,
    distinct_max: usize,
    wants_attributes: bool,
    wants_arrows: bool,
    bytes: Vec<u8>,
    name: Vec<u8>,
}

/// Reads a trace.
pub(super) fn collect(
    mut reader: Reader,
    distinct_max: usize,
    (wants_attributes, wants_arrows): (bool, bool),
    sink: &mut dyn Sink,
) -> Result<Collected, Error> {
    let mut session = Session::new(distinct_max);
    let mut out = Collector {
        sorter: Sorter::default(),
        index: Map::default(),
        rows: Vec::new(),
        start: None,
        is_full: false,
        distinct_max: distinct_max.max(1),
        wants_attributes,
        wants_arrows,
        bytes: Vec::new(),
        name: Vec::new(),
    };
    let mut has_rate = true;
    let passed = walk(&mut reader, &mut session, sink, |session, place, _, content, sink| {
        match content {
            Err(fault) => sink.report(unreadable(place, &fault))?,
            Ok(Content::ProviderEvent { event: 0, id }) => {
                sink.report(about(&rules::BUFFER_FULL, place, 0).found(format!("provider {id}")))?;
            }
            Ok(content) => out.record(&content, session, place)?,
        }
        if session.missing.rate && std::mem::replace(&mut has_rate, false) {
            sink.report(about(&rules::NO_RATE, place, 0))?;
        }
        Ok(Go::On)
    })?;
    let is_full = out.is_full || session.is_full || session.names.is_full();
    let summary = Summary { records: passed.records, bytes: passed.bytes };
    Ok(Collected { session, sorter: out.sorter, rows: out.rows, start: out.start, is_full, summary })
}

impl Collector {
    /// The row of a home; those beyond the limit share the last one.
    fn row(&mut self, home: Home, name: NameNumber) -> u32 {
        if let Some(known) = self.index.get(&home) {
            return *known;
        }
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if self.rows.len() >= self.distinct_max {
            self.is_full = true;
            return next.saturating_sub(1);
        }
        self.index.insert(home, next);
        self.rows.push((home, name));
        next
    }

    fn push(&mut self, item: Item) -> Result<(), Error> {
        self.start = Some(self.start.map_or(item.time, |start| start.min(item.time)));
        self.sorter.push(item, &self.bytes)
    }

    fn record(&mut self, content: &Content<'_>, session: &mut Session, place: Place) -> Result<(), Error> {
        self.bytes.clear();
        let seq = place.seq;
        match *content {
            Content::Event(event) => self.event(&event, session, seq),
            Content::Switch { ticks, cpu, incoming, .. } => {
                let time = session.time_ns(ticks);
                let (_, thread) = session.switched(incoming);
                let row = self.row(Home::Processor(cpu), UNNAMED);
                // Thread 0 is none: the processor idles.
                let kind = if thread == 0 { Kind::Idle } else { Kind::Switch };
                let name = match session.threads.get(&thread) {
                    Some((name, _)) if *name != UNNAMED => *name,
                    _ => session.names.number(format!("thread {thread}").as_bytes()),
                };
                self.push(Item { row, name, time, end: 0, seq, kind, bytes: 0 })
            }
            Content::Wakeup { ticks, thread, .. } => {
                let time = session.time_ns(ticks);
                let process = session.threads.get(&thread).map_or(0, |(_, process)| *process);
                let name = session.names.number(b"wakeup");
                let row = self.row(Home::Thread((process, thread)), name);
                self.push(Item { row, name, time, end: 0, seq, kind: Kind::Instant, bytes: 0 })
            }
            Content::Log { ticks, thread, message } => {
                let (time, thread) = (session.time_ns(ticks), session.thread(thread));
                let name = session.names.number(b"log");
                if self.wants_attributes {
                    let key = session.names.number(b"message");
                    Items::push(&mut self.bytes, Value::U64(key.into()));
                    Items::push(&mut self.bytes, Value::Text(message));
                }
                let row = self.row(Home::Thread(thread), name);
                self.push(Item { row, name, time, end: 0, seq, kind: Kind::Instant, bytes: 0 })
            }
            Content::LargeBlob { name, at: Some((ticks, thread)), arguments, .. } => {
                let (time, thread) = (session.time_ns(ticks), session.thread(thread));
                let name = session.text(name);
                self.attributes(arguments, session);
                let row = self.row(Home::Thread(thread), name);
                self.push(Item { row, name, time, end: 0, seq, kind: Kind::Instant, bytes: 0 })
            }
            _ => Ok(()),
        }
    }

    fn event(&mut self, event: &Event<'_>, session: &mut Session, seq: u64) -> Result<(), Error> {
        let (time, thread) = (session.time_ns(event.ticks), session.thread(event.thread));
        let name = session.text(event.name);
        let mut end = event.number;
        let (home, kind) = match event.kind {
            0 => (Home::Thread(thread), Kind::Instant),
            1 => return self.counters(event, session, (time, thread, name), seq),
            2 => (Home::Thread(thread), Kind::Begin),
            3 => (Home::Thread(thread), Kind::End),
            4 => {
                end = session.time_ns(event.number).max(time);
                (Home::Thread(thread), Kind::Complete)
            }
            5 => (Home::Async(thread.0, event.number), Kind::Begin),
            6 => (Home::Async(thread.0, event.number), Kind::Instant),
            7 => (Home::Async(thread.0, event.number), Kind::End),
            8..=10 => return self.arrows(event, (time, thread, name), seq),
            _ => return Ok(()),
        };
        if self.wants_attributes {
            let category = session.text(event.category);
            if category != UNNAMED {
                Items::push(&mut self.bytes, Value::U64(CATEGORY.into()));
                Items::push(&mut self.bytes, Value::Text(session.names.get(category)));
            }
        }
        self.attributes(event.arguments, session);
        let row = self.row(home, name);
        self.push(Item { row, name, time, end, seq, kind, bytes: 0 })
    }

    /// Each argument of a counter is one of its numbers.
    fn counters(
        &mut self,
        event: &Event<'_>,
        session: &mut Session,
        (time, thread, name): (u64, Thread, NameNumber),
        seq: u64,
    ) -> Result<(), Error> {
        let row = self.row(Home::Thread(thread), name);
        for argument in event.arguments {
            let value = match argument.value {
                Argument::I64(value) => Value::I64(value),
                Argument::U64(value) | Argument::Koid(value) => Value::U64(value),
                Argument::F64(value) => Value::F64(value),
                _ => continue,
            };
            let key = session.text(argument.name);
            self.name.clear();
            self.name.extend_from_slice(session.names.get(name));
            self.name.push(b':');
            self.name.extend_from_slice(session.names.get(key));
            if event.number != 0 {
                self.name.extend_from_slice(format!(":{}", event.number).as_bytes());
            }
            let name = session.names.number(&self.name);
            self.bytes.clear();
            Items::push(&mut self.bytes, value);
            self.push(Item { row, name, time, end: 0, seq, kind: Kind::Counter, bytes: 0 })?;
        }
        Ok(())
    }

    /// A flow goes out where it begins, comes in where it ends, and does both at each step.
    fn arrows(
        &mut self,
        event: &Event<'_>,
        (time, thread, name): (u64, Thread, NameNumber),
        seq: u64,
    ) -> Result<(), Error> {
        if !self.wants_arrows {
            return Ok(());
        }
        let row = self.row(Home::Thread(thread), name);
        let (comes, goes) = (event.kind != 8, event.kind != 10);
        for (is_wanted, kind) in [(comes, Kind::FlowIn), (goes, Kind::FlowOut)] {
            if is_wanted {
                self.push(Item { row, name, time, end: event.number, seq, kind, bytes: 0 })?;
            }
        }
        Ok(())
    }

    fn attributes(&mut self, arguments: Arguments<'_>, session: &mut Session) {
        if !self.wants_attributes {
            return;
        }
        for argument in arguments {
            let key = session.text(argument.name);
            let value = match argument.value {
                Argument::Null => Value::Text(b"null"),
                Argument::I64(value) => Value::I64(value),
                Argument::U64(value) | Argument::Koid(value) => Value::U64(value),
                Argument::F64(value) => Value::F64(value),
                Argument::Pointer(value) => Value::Address(value),
                Argument::Bool(value) => Value::Bool(value),
                Argument::Text(text) => {
                    let text = session.text(text);
                    Value::Text(session.names.get(text))
                }
                Argument::Unknown(_) => continue,
            };
            Items::push(&mut self.bytes, Value::U64(key.into()));
            Items::push(&mut self.bytes, value);
        }
    }
}
