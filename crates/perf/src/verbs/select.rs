//! Which records a dump prints and a trim keeps.

use anytrace_core::{Collect, Error, Place, Selection, Sink, TimeBound};

use crate::model::session::{Entered, Go, Session, walk};
use crate::options::OPTIONS;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::{NAME, Record};
use crate::wire::text::Content;

/// A checked selection.
pub(crate) struct Selector<'a> {
    selection: &'a Selection,
    has_event_conditions: bool,
    /// The time from which others count; `None` until the first record of a stream that has one.
    start: Option<u64>,
    /// Whether the last first line of a sample was taken, with what belongs to it.
    is_taken: bool,
}

impl<'a> Selector<'a> {
    /// Rejects conditions that this format does not have. Where times count from the start of the recording, the reader
    /// reads all of it and returns to the first record, if it can.
    pub(crate) fn new(selection: &'a Selection, reader: &mut Reader, distinct_max: usize) -> Result<Self, Error> {
        selection.only(NAME, &["records", "thread", "time", "name"], OPTIONS)?;
        let has_event_conditions =
            !selection.threads.is_empty() || selection.time.is_some() || selection.name.is_some();
        let start = match selection.start {
            None if selection.has_relative_time() && reader.can_read_twice()? => {
                let start = first_time(reader, distinct_max)?;
                reader.rewind();
                Some(start.unwrap_or(0))
            }
            None if !selection.has_relative_time() => Some(0),
            start => start,
        };
        Ok(Self { selection, has_event_conditions, start, is_taken: false })
    }

    /// Reports that times count from the first record, where they do.
    pub(crate) fn note(&self, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.start.is_some() {
            return Ok(());
        }
        sink.report(rules::STREAM_TIME.at(0).help("a file given by name is read twice"))
    }

    /// True if a trim keeps a record: samples that meet all conditions, with all their lines, and what is needed to read
    /// them.
    pub(crate) fn keeps(&mut self, place: Place, record: &Record<'_>, entered: &Entered<'_>, of: &Session) -> bool {
        match record {
            Record::Header(_) | Record::Features(_) => true,
            Record::Event(event) => {
                !event.is_sample() || (self.meets(entered, of) && self.selection.has_record(place.seq))
            }
            Record::Line(line) => match line.content {
                Content::Comment => true,
                Content::Head(_) => {
                    self.is_taken = self.meets(entered, of) && self.selection.has_record(place.seq);
                    self.is_taken
                }
                Content::Blank => std::mem::take(&mut self.is_taken),
                Content::Frame(_) | Content::Detail => self.is_taken,
            },
        }
    }

    /// True if a record meets all conditions. What belongs to a line of a sample goes with it.
    pub(crate) fn takes(&mut self, place: Place, record: &Record<'_>, entered: &Entered<'_>, of: &Session) -> bool {
        if !self.has_event_conditions {
            return self.selection.has_record(place.seq);
        }
        match record {
            Record::Line(line) if !matches!(line.content, Content::Head(_)) => {
                let is_taken = self.is_taken && line.content != Content::Comment;
                // A line with the first frame may be followed by a line of another sample without an empty one.
                self.is_taken &= line.content != Content::Blank;
                is_taken && self.selection.has_record(place.seq)
            }
            _ => {
                self.is_taken = self.meets(entered, of);
                self.is_taken && self.selection.has_record(place.seq)
            }
        }
    }

    fn meets(&mut self, entered: &Entered<'_>, of: &Session) -> bool {
        let has_thread = entered.thread.is_some_and(|thread| self.selection.has_thread(thread));
        let has_name =
            |matches: &dyn Fn(&[u8]) -> bool| entered.is_sample() && matches(of.event_name(entered.event).as_bytes());
        (self.selection.threads.is_empty() || has_thread)
            && self.selection.name.as_ref().is_none_or(|matches| has_name(matches))
            && self.has_time(entered.time_ns)
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

/// The earliest time of all samples.
fn first_time(reader: &mut Reader, distinct_max: usize) -> Result<Option<u64>, Error> {
    let mut start: Option<u64> = None;
    walk(reader, &mut Session::new(distinct_max), &mut Collect::default(), |_, _, _, entered, _| {
        if let Some(time) = entered.time_ns.filter(|_| entered.is_sample()) {
            start = Some(start.map_or(time, |start| start.min(time)));
        }
        Ok(Go::On)
    })?;
    Ok(start)
}
