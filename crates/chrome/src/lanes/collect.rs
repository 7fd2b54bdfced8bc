//! Reads a trace and sorts what spans are made of.

use anytrace_core::span::NO_CPU;
use anytrace_core::{Error, Place, Sink, Summary};

use super::homes::Homes;
use super::item::{Class, Item, Order};
use super::keys::Names;
use super::own::{Clock, Extras, name_of, source_of};
use super::pairs;
use super::sorter::Sorter;
use crate::verbs::check::bad_field;
use crate::wire::event::{Event, Id, digest, joint, name, owner};
use crate::wire::frame::Fact;
use crate::wire::json::{inner, unescape};
use crate::wire::number::identifier;
use crate::wire::reader::{Reader, Visit};
use crate::wire::record::{Kind, Record};

/// A trace whose spans are ready to be emitted.
pub(super) struct Collected {
    pub(super) sorter: Sorter,
    pub(super) homes: Homes,
    pub(super) names: Names,
    pub(super) clock: Clock,
    /// The earliest time, in nanoseconds as they are written.
    pub(super) earliest_ns: Option<i64>,
    pub(super) summary: Summary,
}

/// Reads all of a trace. `stored`: the bytes of events are needed, for attributes.
pub(super) fn collect(
    mut reader: Reader,
    distinct_max: usize,
    stored: bool,
    sink: &mut dyn Sink,
) -> Result<Collected, Error> {
    let mut collector = Collector {
        pairs: Sorter::new(Order::Pairs),
        spans: Sorter::new(Order::Nesting),
        homes: Homes::new(distinct_max),
        names: Names::new(distinct_max),
        stored,
        is_own: false,
        earliest_ns: None,
        room: Vec::new(),
        place: Vec::new(),
    };
    let passed = reader.walk(&mut collector, sink)?;
    let clock = Clock::of(reader.facts());
    let Collector { pairs, mut spans, mut homes, names, earliest_ns, .. } = collector;
    pairs::join(pairs, &mut homes, &mut spans, sink)?;
    let summary = Summary { records: passed.records, bytes: passed.bytes };
    Ok(Collected { sorter: spans, homes, names, clock, earliest_ns, summary })
}

struct Collector {
    /// Ends of spans.
    pairs: Sorter,
    /// Spans and points.
    spans: Sorter,
    homes: Homes,
    names: Names,
    stored: bool,
    is_own: bool,
    earliest_ns: Option<i64>,
    room: Vec<u8>,
    place: Vec<u8>,
}

impl Visit for Collector {
    fn head(&mut self, facts: &[Fact]) {
        // What anytrace wrote says so before its first event.
        self.is_own = Clock::of(facts).is_own;
    }

    #[inline]
    fn record(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error> {
        let event = match Event::of(record) {
            Ok(event) => event,
            Err(fault) => return sink.report(bad_field(&fault, at)),
        };
        let class = match event.kind {
            Kind::Begin | Kind::AsyncBegin | Kind::AsyncStart => Class::Begin,
            Kind::End | Kind::AsyncEnd | Kind::AsyncFinish => Class::End,
            Kind::Complete => Class::Span,
            Kind::Counter => Class::Counter,
            Kind::FlowStart => Class::FlowOut,
            Kind::FlowStep | Kind::FlowEnd => Class::FlowIn,
            Kind::Metadata => {
                self.metadata(record, &event);
                return Ok(());
            }
            Kind::Other
            | Kind::ContextEnter
            | Kind::ContextLeave
            | Kind::LinkedId
            | Kind::ObjectCreate
            | Kind::ObjectDestroy => return Ok(()),
            _ => Class::Instant,
        };
        self.item(record, &event, class, at)
    }
}

impl Collector {
    fn item(&mut self, record: &Record<'_>, event: &Event<'_>, class: Class, at: Place) -> Result<(), Error> {
        let (home, owner) = self.home(record, event, class);
        let (start, end) = (event.start.ns, event.end_ns());
        self.earliest_ns = Some(self.earliest_ns.map_or(start, |earliest| earliest.min(start)));
        self.homes.see(home, end);
        let mut item =
            Item { home, owner, start, end, seq: at.seq, end_seq: at.seq, class, cpu: NO_CPU, ..Item::default() };
        let own_name = name(record, &mut self.room);
        if self.is_own {
            let extras = Extras::of(record);
            (item.flags, item.cpu) = (extras.flags.0, extras.cpu);
            item.name = match extras.place {
                Some(place) if class != Class::End => self.names.located(own_name, unescape(place, &mut self.place)),
                _ => self.names.id(own_name),
            };
        } else {
            item.name = self.names.id(own_name);
        }
        let bytes = if self.stored || class == Class::Counter { record.text } else { b"" };
        match class {
            Class::Begin | Class::End => {
                // An end without a name ends the innermost span, whatever its name.
                item.end_seq = u64::from(record.name.is_some());
                self.pairs.push(item, bytes, &[])
            }
            Class::FlowIn if event.kind == Kind::FlowStep => {
                self.spans.push(item, bytes, &[])?;
                self.spans.push(Item { class: Class::FlowOut, ..item }, bytes, &[])
            }
            _ => self.spans.push(item, bytes, &[]),
        }
    }

    /// The home of an event, and what it nests in there.
    #[inline]
    fn home(&mut self, record: &Record<'_>, event: &Event<'_>, class: Class) -> (u32, u64) {
        use Kind::{AsyncBegin, AsyncEnd, AsyncFinish, AsyncInstant, AsyncStart, AsyncStep};
        match event.kind {
            AsyncBegin | AsyncEnd | AsyncInstant | AsyncStart | AsyncStep | AsyncFinish => {
                let is_global = joint(record).is_some_and(|joint| joint.is_global);
                let process = if is_global { Id::Number(0) } else { event.process };
                let category = inner(record.category.unwrap_or_default()).unwrap_or_default();
                let mut room = Vec::new();
                let home = self.homes.group(process, unescape(category, &mut room));
                // Never 0, which is for threads.
                (home, owner(record, event).unwrap_or(1).max(1))
            }
            _ => {
                let home = self.homes.thread(event.process, event.thread);
                let is_flow = matches!(class, Class::FlowOut | Class::FlowIn);
                (home, if is_flow { flow_number(record) } else { 0 })
            }
        }
    }

    fn metadata(&mut self, record: &Record<'_>, event: &Event<'_>) {
        let mut room = Vec::new();
        let what = name(record, &mut self.room);
        match (what, name_of(record, &mut room)) {
            (b"process_name", Some(name)) => self.homes.name_process(event.process, name),
            (b"thread_name", Some(name)) => {
                let home = self.homes.thread(event.process, event.thread);
                let source = if self.is_own { source_of(record) } else { None };
                self.homes.name_thread(home, name, source);
            }
            _ => {}
        }
    }
}

/// The number that the ends of an arrow share. Ids are of category and name; those that anytrace writes are the numbers
/// of the source.
fn flow_number(record: &Record<'_>) -> u64 {
    let id = joint(record).map(|joint| joint.id).unwrap_or_default();
    let [category, name] = [record.category, record.name].map(Option::unwrap_or_default);
    if (category, name) == (b"\"flow\"", b"\"flow\"")
        && let Some(number) = identifier(id)
    {
        return number;
    }
    digest(&[category, name, id])
}
