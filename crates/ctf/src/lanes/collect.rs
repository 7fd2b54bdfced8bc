//! Reads a trace to its end: events into the sorter, by row.

use anytrace_core::hash::Map;
use anytrace_core::runs::Sorter;
use anytrace_core::span::{EdgeFlags, NO_CPU};
use anytrace_core::{Error, Sink, Summary};

use super::gather::{Gather, Gathered};
use super::item::{Item, Kind};
use super::meaning::{Meaning, Own, meaning};
use super::names::{NameNumber, Names, UNNAMED};
use super::own::{OwnEvent, OwnVisitor};
use crate::rules;
use crate::verbs::facts::{Facts, name};
use crate::verbs::walk::{Go, walk};
use crate::wire::place::Piece;
use crate::wire::reader::Reader;

/// What spans nest in. Each trace of a folder has its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    /// A process and a thread, by the kernel's numbers.
    Thread(u64, u64),
    Processor(u64),
    /// Of a trace that this program wrote: a track's number.
    Track(usize, u64),
    /// Events of neither: a class of streams.
    Stream(usize, usize),
}

/// What is known of a row.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) name: NameNumber,
    pub(super) process_name: NameNumber,
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) lane: u32,
    pub(super) is_task: bool,
}

/// Everything that emitting needs.
pub(super) struct Collected {
    pub(super) names: Names,
    pub(super) sorter: Sorter<Item>,
    /// The rows in the order of their first events.
    pub(super) rows: Vec<Row>,
    pub(super) start: Option<u64>,
    /// Where the clock's zero is, in nanoseconds since the epoch, and whether it is that of the machine's uptime.
    pub(super) zero: Option<(u64, bool)>,
    pub(super) is_full: bool,
    pub(super) summary: Summary,
}

struct Collector {
    names: Names,
    sorter: Sorter<Item>,
    index: Map<Home, u32>,
    rows: Vec<Row>,
    start: Option<u64>,
    is_full: bool,
    distinct_max: usize,
    wants_attributes: bool,
    wants_arrows: bool,
    /// By trace, stream and class.
    meanings: Map<(usize, usize, usize), Meaning>,
    gathered: Gathered,
    own: OwnEvent,
    /// The thread that runs on the processor of the file that is read, where the trace says so.
    running: Option<(usize, u64, u64)>,
}

/// Reads a trace.
pub(super) fn collect(
    mut reader: Reader,
    distinct_max: usize,
    (wants_attributes, wants_arrows): (bool, bool),
    sink: &mut dyn Sink,
) -> Result<Collected, Error> {
    let mut out = Collector {
        names: Names::default(),
        sorter: Sorter::default(),
        index: Map::default(),
        rows: Vec::new(),
        start: None,
        is_full: false,
        distinct_max: distinct_max.max(1),
        wants_attributes,
        wants_arrows,
        meanings: Map::default(),
        gathered: Gathered::default(),
        own: OwnEvent::default(),
        running: None,
    };
    let mut has_clock = true;
    let passed = walk(&mut reader, sink, |reader, place, sink| {
        let Some(facts) = Facts::time(reader) else { return Ok(Go::On) };
        if facts.time_ns.is_none() && std::mem::replace(&mut has_clock, false) {
            sink.report(reader.diagnostic(&rules::NO_CLOCK, 0).record(place.seq))?;
        }
        out.event(reader, facts, place.seq)?;
        Ok(Go::On)
    })?;
    let clock = reader.layout().catalog.traces.iter().find_map(|(_, trace)| trace.clocks.first());
    let zero = clock.map(|clock| (clock.zero_ns(), clock.name == "monotonic"));
    let is_full = out.is_full || out.names.is_full();
    let summary = Summary { records: passed.records, bytes: passed.bytes };
    Ok(Collected { names: out.names, sorter: out.sorter, rows: out.rows, start: out.start, zero, is_full, summary })
}

impl Collector {
    /// The row of a home; those beyond the limit share the last one.
    fn row(&mut self, home: Home, make: impl FnOnce(&mut Names) -> Row) -> u32 {
        if let Some(known) = self.index.get(&home) {
            return *known;
        }
        let next = u32::try_from(self.rows.len()).unwrap_or(u32::MAX);
        if self.rows.len() >= self.distinct_max {
            self.is_full = true;
            return next.saturating_sub(1);
        }
        self.index.insert(home, next);
        self.rows.push(make(&mut self.names));
        next
    }

    fn push(&mut self, item: Item, bytes: &[u8]) -> Result<(), Error> {
        self.start = Some(self.start.map_or(item.time, |start| start.min(item.time)));
        self.sorter.push(item, bytes)
    }

    /// The meaning of the event that a reader has, and its class.
    fn meaning(&mut self, reader: &Reader) -> Option<(Meaning, (usize, usize))> {
        let Piece::Event(event) = reader.piece() else { return None };
        let (trace, stream) = reader.stream()?;
        let class = (stream.trace, stream.packet.as_ref()?.stream, event.class);
        if let Some(known) = self.meanings.get(&class) {
            return Some((*known, (class.0, class.1)));
        }
        let is_own = trace.fact("tracer_name") == Some("anytrace");
        let found = meaning(name(reader)?, is_own, &mut self.names);
        self.meanings.insert(class, found);
        Some((found, (class.0, class.1)))
    }

    fn event(&mut self, reader: &mut Reader, facts: Facts, seq: u64) -> Result<(), Error> {
        let Some((meaning, class)) = self.meaning(reader) else { return Ok(()) };
        let time = facts.time_ns.unwrap_or(0);
        if let Meaning::Own(own) = meaning {
            return self.own(reader, own, class.0, Item { time, seq, ..Item::NONE });
        }
        let wants = self.wants_attributes;
        let mut gathered = std::mem::take(&mut self.gathered);
        reader.visit(&mut Gather::new(&mut gathered, &mut self.names, wants));
        let processor = facts.processor.or(gathered.facts.processor);
        let cpu = processor.and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(NO_CPU);
        let item = Item { time, seq, cpu, ..Item::NONE };
        let pushed = match meaning {
            Meaning::Switch => self.switch(&gathered, processor.unwrap_or(0), class.0, item),
            meaning => {
                let row = self.home(&gathered, processor, class);
                let (name, kind) = self.act(meaning, &gathered);
                self.push(Item { row, name, kind, ..item }, &gathered.attributes)
            }
        };
        self.gathered = gathered;
        pushed
    }

    /// What an event does on its row.
    fn act(&mut self, meaning: Meaning, gathered: &Gathered) -> (NameNumber, Kind) {
        let mut function = || {
            let address = gathered.address.unwrap_or(0);
            self.names.number(format!("{address:#x}").as_bytes())
        };
        match meaning {
            Meaning::Begin(name) => (name, Kind::Begin),
            Meaning::End(UNNAMED) => (UNNAMED, Kind::Pop),
            Meaning::End(name) => (name, Kind::End),
            Meaning::Enter => (function(), Kind::Begin),
            Meaning::Leave => (function(), Kind::End),
            Meaning::Instant(name) => (name, Kind::Instant),
            Meaning::Switch | Meaning::Own(_) => (UNNAMED, Kind::Instant),
        }
    }

    /// The row of an event: its thread, as its context says or as it follows from the last switch of its processor.
    fn home(&mut self, gathered: &Gathered, processor: Option<u64>, class: (usize, usize)) -> u32 {
        let runs = self.running.filter(|(trace, on, _)| (*trace, Some(*on)) == (class.0, processor));
        let facts = gathered.facts;
        if let Some(thread) = facts.thread.or(runs.map(|(.., thread)| thread)) {
            let process = facts.process.unwrap_or(0);
            let row = self.row(Home::Thread(process, thread), |_| Row { process, thread, ..Row::default() });
            if !gathered.thread_name.is_empty() {
                self.call(row, &gathered.thread_name);
            }
            return row;
        }
        match processor {
            Some(processor) => self.processor(processor),
            None => self.row(Home::Stream(class.0, class.1), |names| Row {
                name: names.number(format!("stream {}", class.1).as_bytes()),
                thread: class.1 as u64,
                is_task: true,
                ..Row::default()
            }),
        }
    }

    fn processor(&mut self, processor: u64) -> u32 {
        self.row(Home::Processor(processor), |names| Row {
            name: names.number(format!("processor {processor}").as_bytes()),
            process_name: names.number(b"processors"),
            thread: processor,
            is_task: true,
            ..Row::default()
        })
    }

    /// Names the thread of a row: the first name counts.
    fn call(&mut self, row: u32, name: &[u8]) {
        if let Some(row) = self.rows.get_mut(row as usize).filter(|row| row.name == UNNAMED) {
            row.name = self.names.number(name);
        }
    }

    /// Another thread runs on a processor; thread 0 is none.
    fn switch(&mut self, gathered: &Gathered, processor: u64, trace: usize, item: Item) -> Result<(), Error> {
        let row = self.processor(processor);
        let Some(thread) = gathered.next_thread else { return Ok(()) };
        self.running = Some((trace, processor, thread));
        let kind = if thread == 0 { Kind::Idle } else { Kind::Switch };
        let name = match gathered.next_name.as_slice() {
            b"" => self.names.number(format!("thread {thread}").as_bytes()),
            name => self.names.number(name),
        };
        self.push(Item { row, name, kind, ..item }, &gathered.attributes)
    }

    /// An event that this program wrote.
    fn own(&mut self, reader: &mut Reader, kind: Own, trace: usize, item: Item) -> Result<(), Error> {
        let mut event = std::mem::take(&mut self.own);
        reader.visit(&mut OwnVisitor::new(&mut event, &mut self.names));
        let (process, thread) = (event.process, event.thread);
        let row = self.row(Home::Track(trace, event.track), |_| Row { process, thread, ..Row::default() });
        let pushed = if kind == Own::Track { self.track(row, &event) } else { self.edge(row, kind, &event, item) };
        self.own = event;
        pushed
    }

    fn track(&mut self, row: u32, event: &OwnEvent) -> Result<(), Error> {
        let (name, process_name) = (self.names.number(&event.name), self.names.number(&event.process_name));
        if let Some(row) = self.rows.get_mut(row as usize) {
            *row = Row { name, process_name, lane: event.lane, is_task: event.is_task, ..row.clone() };
        }
        Ok(())
    }

    fn edge(&mut self, row: u32, kind: Own, event: &OwnEvent, item: Item) -> Result<(), Error> {
        let name = self.names.number_at(&event.name, &event.place);
        let cpu = u16::try_from(event.processor).unwrap_or(NO_CPU);
        let item = Item { row, name, cpu, flags: event.flags, ..item };
        let attributes: &[u8] = if self.wants_attributes { &event.attributes } else { &[] };
        match kind {
            Own::Track => Ok(()),
            Own::Begin => self.push(Item { kind: Kind::Begin, ..item }, attributes),
            Own::End => self.push(Item { kind: Kind::Pop, ..item }, attributes),
            Own::Instant => self.push(Item { kind: Kind::Instant, ..item }, attributes),
            Own::Counter => self.push(Item { kind: Kind::Counter, flags: EdgeFlags::NONE, ..item }, &event.value),
            Own::FlowOut | Own::FlowIn if !self.wants_arrows => Ok(()),
            Own::FlowOut => self.push(Item { kind: Kind::FlowOut, arrow: event.arrow, ..item }, &[]),
            Own::FlowIn => self.push(Item { kind: Kind::FlowIn, arrow: event.arrow, ..item }, &[]),
        }
    }
}
