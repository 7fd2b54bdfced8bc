//! Which events a dump prints and a trim keeps.

use std::ops::Range;

use anytrace_core::{Collect, Error, Place, Selection, Sink, TimeBound};

use super::open_spans::{OpenSpans, Role};
use crate::options::OPTIONS;
use crate::wire::event::{Event, Id, name};
use crate::wire::reader::{Reader, Visit};
use crate::wire::record::{Kind, NAME, Record};

/// A checked selection.
pub(crate) struct Filter<'a> {
    selection: &'a Selection,
    /// Nanoseconds.
    time: Option<Range<i64>>,
    /// True where only numbers of records are selected.
    has_only_records: bool,
}

impl<'a> Filter<'a> {
    /// Refuses conditions that the format does not have. Where times count from the earliest, the reader reads all of
    /// the trace and returns to its start.
    pub(crate) fn new(selection: &'a Selection, reader: &mut Reader) -> Result<Self, Error> {
        selection.only(NAME, &["records", "thread", "time", "name"], OPTIONS)?;
        let start = match selection.start {
            Some(start) => start.cast_signed(),
            None if selection.has_relative_time() => earliest(reader)?,
            None => 0,
        };
        let time = selection.time.map(|(from, to)| bound(from, start, i64::MIN)..bound(to, start, i64::MAX));
        let has_only_records = selection.threads.is_empty() && time.is_none() && selection.name.is_none();
        Ok(Self { selection, time, has_only_records })
    }

    /// True when no record from this number on is selected.
    pub(crate) fn ends_before(&self, seq: u64) -> bool {
        self.selection.records.as_ref().is_some_and(|range| range.end <= seq)
    }

    /// True when an event meets all conditions by itself.
    pub(crate) fn wants(&self, record: &Record<'_>, seq: u64) -> bool {
        if !self.selection.has_record(seq) {
            return false;
        }
        if self.has_only_records {
            return true;
        }
        let Ok(event) = Event::of(record) else { return false };
        self.has_thread(&event)
            && self.has_time(event.start.ns, event.end_ns(), event.kind)
            && self.has_name(name(record, &mut Vec::new()))
    }

    fn has_thread(&self, event: &Event<'_>) -> bool {
        match event.thread {
            Id::Number(number) => self.selection.has_thread(number),
            Id::Text(_) => self.selection.threads.is_empty(),
        }
    }

    fn has_time(&self, start_ns: i64, end_ns: i64, kind: Kind) -> bool {
        let Some(range) = &self.time else { return true };
        kind.has_time()
            && (start_ns < range.end || range.end == i64::MAX)
            && (end_ns > range.start || start_ns >= range.start)
    }

    fn has_name(&self, name: &[u8]) -> bool {
        self.selection.name.as_ref().is_none_or(|matches| matches(name))
    }
}

/// In nanoseconds.
fn bound(bound: TimeBound, start_ns: i64, open: i64) -> i64 {
    match bound {
        TimeBound::Native(ns) => i64::try_from(ns).unwrap_or(i64::MAX),
        TimeBound::Nanoseconds(ns) => start_ns.saturating_add_unsigned(ns),
        TimeBound::Open => open,
    }
}

/// Refuses a stream that would have to be read twice and is too long for that.
fn check_twice(reader: &mut Reader) -> Result<(), Error> {
    if reader.can_read_twice()? {
        return Ok(());
    }
    let why = "this selection reads the trace twice: give it as a file, or a stream of at most 64 MiB";
    Err(Error::unsupported(why))
}

/// The earliest time of a trace, in nanoseconds.
fn earliest(reader: &mut Reader) -> Result<i64, Error> {
    check_twice(reader)?;
    let mut found = Earliest(i64::MAX);
    reader.walk(&mut found, &mut Collect::default())?;
    reader.rewind();
    Ok(if found.0 == i64::MAX { 0 } else { found.0 })
}

struct Earliest(i64);

impl Visit for Earliest {
    fn record(&mut self, record: &Record<'_>, _at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        if let Ok(event) = Event::of(record)
            && event.kind.has_time()
        {
            self.0 = self.0.min(event.start.ns);
        }
        Ok(())
    }
}

/// The events that a trim keeps: one bit for each event of the trace.
pub(crate) struct Kept(Vec<u64>);

impl Kept {
    /// Reads a trace, finds what the selection keeps, and returns to the start.
    pub(crate) fn find(selection: &Selection, reader: &mut Reader) -> Result<Self, Error> {
        let filter = Filter::new(selection, reader)?;
        check_twice(reader)?;
        let mut pass = Pass { filter, kept: Self(Vec::new()), open: OpenSpans::default(), name: Vec::new() };
        reader.walk(&mut pass, &mut Collect::default())?;
        for open in pass.open.rest() {
            let is_wanted = pass.filter.selection.records.as_ref().is_none_or(|range| open.seq < range.end)
                && pass.filter.has_time(open.time_ns, i64::MAX, Kind::Begin);
            if is_wanted && open.is_wanted {
                pass.kept.add(open.seq);
            }
        }
        reader.rewind();
        Ok(pass.kept)
    }

    fn add(&mut self, seq: u64) {
        let Ok(word) = usize::try_from(seq / 64) else { return };
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        if let Some(word) = self.0.get_mut(word) {
            *word |= 1 << (seq % 64);
        }
    }

    /// True for an event that is kept.
    pub(crate) fn has(&self, seq: u64) -> bool {
        let word = usize::try_from(seq / 64).ok().and_then(|word| self.0.get(word));
        word.is_some_and(|word| word >> (seq % 64) & 1 == 1)
    }
}

struct Pass<'a> {
    filter: Filter<'a>,
    kept: Kept,
    open: OpenSpans,
    name: Vec<u8>,
}

impl Visit for Pass<'_> {
    fn record(&mut self, record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        let Ok(event) = Event::of(record) else { return Ok(()) };
        let filter = &self.filter;
        if event.kind == Kind::Metadata {
            let is_of_process = name(record, &mut self.name).starts_with(b"process_");
            if is_of_process || filter.has_thread(&event) {
                self.kept.add(at.seq);
            }
            return Ok(());
        }
        match Role::of(record, &event) {
            Role::Begin(key) => {
                let is_wanted = filter.has_thread(&event) && filter.has_name(name(record, &mut self.name));
                self.open.begin(key, record, &event, at, is_wanted);
            }
            Role::End(key) => match self.open.end(key) {
                Some(begin) => {
                    let range = filter.selection.records.as_ref();
                    let is_wanted = begin.is_wanted
                        && range.is_none_or(|range| begin.seq < range.end && at.seq >= range.start)
                        && filter.has_time(begin.time_ns, event.start.ns, Kind::Begin);
                    if is_wanted {
                        self.kept.add(begin.seq);
                        self.kept.add(at.seq);
                    }
                }
                None if filter.wants(record, at.seq) => self.kept.add(at.seq),
                None => {}
            },
            Role::Other if filter.wants(record, at.seq) => self.kept.add(at.seq),
            Role::Other => {}
        }
        Ok(())
    }
}
