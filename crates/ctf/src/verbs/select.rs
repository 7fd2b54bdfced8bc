//! Which records a dump prints and a trim keeps.

use anytrace_core::{Collect, Error, Place, Selection, Sink, TimeBound};

use super::facts::{Facts, name};
use super::walk::{Go, walk};
use crate::options::OPTIONS;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::NAME;

/// A checked selection.
pub(crate) struct Selector<'a> {
    selection: &'a Selection,
    has_event_conditions: bool,
    /// The time from which others count; `None` until the first event of a stream.
    start: Option<u64>,
}

impl<'a> Selector<'a> {
    /// Rejects conditions that this format does not have. Where times count from the start of the trace, the reader
    /// reads all of it and returns to the first record, if it can.
    pub(crate) fn new(selection: &'a Selection, reader: &mut Reader) -> Result<Self, Error> {
        selection.only(NAME, &["records", "thread", "time", "name"], OPTIONS)?;
        let has_event_conditions =
            !selection.threads.is_empty() || selection.time.is_some() || selection.name.is_some();
        let start = match selection.start {
            None if selection.has_relative_time() && reader.can_read_twice()? => {
                let start = first_time(reader)?;
                reader.rewind();
                Some(start.unwrap_or(0))
            }
            None if !selection.has_relative_time() => Some(0),
            start => start,
        };
        Ok(Self { selection, has_event_conditions, start })
    }

    /// Reports that times count from the first event, where they do.
    pub(crate) fn note(&self, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.start.is_some() {
            return Ok(());
        }
        sink.report(rules::STREAM_TIME.at(0).help("a file given by name is read twice"))
    }

    /// True if the record that a reader has meets all conditions. Only events meet those of threads, times and names.
    pub(crate) fn takes(&mut self, place: Place, reader: &mut Reader) -> bool {
        if !self.selection.has_record(place.seq) {
            return false;
        }
        if !self.has_event_conditions {
            return true;
        }
        let Some(facts) = Facts::of(reader) else { return false };
        let has_thread = facts.thread.is_some_and(|thread| self.selection.has_thread(thread));
        let has_name = self.selection.name.as_ref();
        (self.selection.threads.is_empty() || has_thread)
            && has_name.is_none_or(|matches| name(reader).is_some_and(|name| matches(name.as_bytes())))
            && self.has_time(facts.time_ns)
    }

    fn has_time(&mut self, time: Option<u64>) -> bool {
        let Some((from, to)) = self.selection.time else { return true };
        let Some(time) = time else { return false };
        let start = *self.start.get_or_insert(time);
        let (from, to) = (bound(from, start, 0), bound(to, start, u64::MAX));
        time >= from && (time < to || to == u64::MAX)
    }
}

fn bound(bound: TimeBound, start: u64, open: u64) -> u64 {
    match bound {
        TimeBound::Native(ns) => ns,
        TimeBound::Nanoseconds(ns) => start.saturating_add(ns),
        TimeBound::Open => open,
    }
}

/// The earliest time of all events.
fn first_time(reader: &mut Reader) -> Result<Option<u64>, Error> {
    let mut start: Option<u64> = None;
    walk(reader, &mut Collect::default(), |reader, _, _| {
        if let Some(time) = Facts::time(reader).and_then(|facts| facts.time_ns) {
            start = Some(start.map_or(time, |start| start.min(time)));
        }
        Ok(Go::On)
    })?;
    Ok(start)
}
