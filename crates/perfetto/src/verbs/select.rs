//! Which packets a dump prints, a trim keeps and a table has.

use anytrace_core::{Collect, Error, Place, Selection, Sink, TimeBound};

use crate::model::event::{self, TrackKey};
use crate::model::kernel;
use crate::model::names::NameNumber;
use crate::model::session::{Entered, Go, Packet, Reports, Session, walk};
use crate::model::tracks::Owner;
use crate::options::OPTIONS;
use crate::rules;
use crate::wire::reader::Reader;
use crate::wire::record::{NAME, Record, data};

/// What is known of a packet's events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    /// Earliest and latest time, in nanoseconds.
    pub(crate) times: Option<(u64, u64)>,
    /// The thread of a track event.
    pub(crate) thread: Option<u64>,
    /// The threads of a bundle of the kernel's events.
    bundled: Vec<u64>,
    /// The name of a track event.
    pub(crate) name: Option<NameNumber>,
}

impl Facts {
    fn threads(&self) -> impl Iterator<Item = u64> {
        self.thread.into_iter().chain(self.bundled.iter().copied())
    }
}

/// Most threads of a bundle that are stored.
const THREADS_MAX: usize = 4096;

/// Finds out about the packets of a trace, one after the other.
pub(crate) struct Examiner {
    pub(crate) session: Session,
    lost: Collect,
}

impl Examiner {
    pub(crate) fn new(distinct_max: usize) -> Self {
        Self { session: Session::new(distinct_max, Reports::Losses), lost: Collect::default() }
    }

    /// The facts of the next packet; `None` if it cannot be understood.
    pub(crate) fn facts(&mut self, place: Place, record: &Record<'_>) -> Result<Option<Facts>, Error> {
        let packet = Packet { record: *record, place, is_inside: false };
        let entered = self.session.enter(&packet, &mut self.lost)?;
        self.lost.0.clear();
        Ok(entered.map(|entered| self.of(record, entered)))
    }

    fn of(&mut self, record: &Record<'_>, entered: Entered) -> Facts {
        let mut facts = Facts { times: entered.time.map(|time| (time, time)), ..Facts::default() };
        match record.kind() {
            data::TRACK_EVENT => {
                if let Some(event) = event::read(record.data(), entered.sequence, &mut self.session) {
                    facts.thread = self.thread(event.track);
                    facts.name = Some(event.name);
                }
            }
            data::FTRACE_EVENTS => {
                facts.times = None;
                kernel::each(record.data(), |event| {
                    let (start, end) = facts.times.unwrap_or((event.time, event.time));
                    facts.times = Some((start.min(event.time), end.max(event.time)));
                    if facts.bundled.len() < THREADS_MAX && !facts.bundled.contains(&event.thread) {
                        facts.bundled.push(event.thread);
                    }
                });
            }
            _ => {}
        }
        facts
    }

    fn thread(&self, track: TrackKey) -> Option<u64> {
        match track {
            TrackKey::Thread(_, thread) => Some(thread),
            TrackKey::Uuid(uuid) => match self.session.tracks.owner(uuid) {
                Owner::Thread(_, thread) => Some(thread),
                _ => None,
            },
            _ => None,
        }
    }
}

/// True for packets whose data are events.
pub(crate) fn has_events(record: &Record<'_>) -> bool {
    matches!(record.kind(), data::TRACK_EVENT | data::FTRACE_EVENTS)
}

/// A checked selection.
pub(crate) struct Selector<'a> {
    selection: &'a Selection,
    has_event_conditions: bool,
    /// The time from which others count; `None` until the first event of a stream.
    start: Option<u64>,
    examiner: Examiner,
}

impl<'a> Selector<'a> {
    /// Rejects conditions that this format does not have. Where times count from the start of the trace, the reader
    /// reads all of it and returns to the first packet, if it can.
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
        Ok(Self { selection, has_event_conditions, start, examiner: Examiner::new(distinct_max) })
    }

    /// Reports that times count from the first event, where they do.
    pub(crate) fn note(&self, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.start.is_some() {
            return Ok(());
        }
        sink.report(rules::STREAM_TIME.at(0).help("a file given by name is read twice"))
    }

    /// True if a packet meets all conditions. Packets without events have no thread, time and name.
    pub(crate) fn takes(&mut self, place: Place, record: &Record<'_>) -> Result<bool, Error> {
        if !self.has_event_conditions {
            return Ok(self.selection.has_record(place.seq));
        }
        let Some(facts) = self.examiner.facts(place, record)? else { return Ok(false) };
        if !has_events(record) || !self.selection.has_record(place.seq) {
            return Ok(false);
        }
        let has_thread =
            self.selection.threads.is_empty() || facts.threads().any(|thread| self.selection.has_thread(thread));
        let name = facts.name.map(|name| self.examiner.session.names.get(name));
        let has_name = self.selection.name.as_ref().is_none_or(|matches| name.is_some_and(matches));
        Ok(has_thread && has_name && self.has_time(facts.times))
    }

    fn has_time(&mut self, times: Option<(u64, u64)>) -> bool {
        let Some((from, to)) = self.selection.time else { return true };
        let Some((first, last)) = times else { return false };
        let start = *self.start.get_or_insert(first);
        let range = bound(from, start, 0)..bound(to, start, u64::MAX);
        last >= range.start && (first < range.end || range.end == u64::MAX)
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
fn first_time(reader: &mut Reader, distinct_max: usize) -> Result<Option<u64>, Error> {
    let mut examiner = Examiner::new(distinct_max);
    let mut start: Option<u64> = None;
    walk(reader, &mut Collect::default(), |packet, _| {
        let facts = examiner.facts(packet.place, &packet.record)?;
        if let Some((first, _)) = facts.and_then(|facts| facts.times).filter(|_| has_events(&packet.record)) {
            start = Some(start.map_or(first, |start| start.min(first)));
        }
        Ok(Go::On)
    })?;
    Ok(start)
}
