//! From a trace to rows: edges of spans, or the rows of the table `events` for formats without spans.

use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_core::hash::Map;
use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, TimeUnit, Track, TrackId, Value};
use anytrace_core::table::{Batch, EVENTS, RowSink, Scan, Values};
use anytrace_core::{Error, Format, Input, OpenOptions, Sink, SpanOptions, SpanSink, tables};

use crate::names::Names;
use crate::shelf::Shelf;
use crate::store::{Store, flags};

/// The columns of `events` that make a row, in this order.
const COLUMNS: [&str; 3] = ["seq", "thread", "kind"];

/// Threads that have a track of their own; the rest share the last.
const THREADS_MAX: usize = 65_536;

/// Why reading stops when the server does.
pub(crate) fn stopped() -> Error {
    Error::usage("the server ends")
}

/// Puts a trace on rows.
pub(crate) fn gather(
    format: &'static dyn Format,
    input: Input,
    open: &OpenOptions,
    options: SpanOptions,
    (shelf, names, stop): (&Shelf, &Names, &AtomicBool),
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let trace = format.open(input, open)?;
    if format.has_spans() {
        return trace.spans(&options, &mut Gather::new(shelf, names, stop), sink).map(drop);
    }
    let (mut out, scan) = (GatherEvents::new(format.name(), shelf, names, stop), GatherEvents::scan()?);
    tables::read(format, trace, EVENTS.name, &scan, &options, &mut out, sink).map(drop)
}

/// Puts edges on rows.
pub(crate) struct Gather<'a> {
    /// Where the rows are.
    shelf: &'a Shelf,
    names: &'a Names,
    stop: &'a AtomicBool,
    /// The numbers of this trace's names among all.
    numbers: Vec<u32>,
}

impl<'a> Gather<'a> {
    /// A sink for the edges of one trace.
    pub(crate) fn new(shelf: &'a Shelf, names: &'a Names, stop: &'a AtomicBool) -> Self {
        Self { shelf, names, stop, numbers: Vec::new() }
    }
}

#[inline]
fn edge(store: &mut Store, edge: &Edge, batch: &EdgeBatch, (numbers, names): (&[u32], &Names)) -> Result<(), Error> {
    let name = || numbers.get(edge.name as usize).copied().unwrap_or(0);
    let stored = match edge.kind {
        EdgeKind::Begin => return store.begin(edge.track, edge.time, name()),
        EdgeKind::End => store.end(edge.track, edge.time, flags(edge.flags)),
        EdgeKind::Instant => store.instant(edge.track, edge.time, name()),
        EdgeKind::FlowOut | EdgeKind::FlowIn => {
            if let Some((_, Value::U64(number))) = batch.attributes(edge).next() {
                store.arrow(edge.track, edge.time, number, edge.kind == EdgeKind::FlowOut);
            }
            Ok(())
        }
        EdgeKind::Counter => {
            if let Some(value) = batch.attributes(edge).next().and_then(|(_, value)| number(value)) {
                let (key, text) = ((edge.track, name()), || names.text(name()).to_string());
                store.counters.add(key, text, edge.time, value);
            }
            Ok(())
        }
    };
    stored.map_err(unwritable)
}

/// The value of a counter.
#[expect(clippy::cast_precision_loss, reason = "a value to be drawn")]
fn number(value: Value<'_>) -> Option<f64> {
    match value {
        Value::U64(value) | Value::Address(value) => Some(value as f64),
        Value::I64(value) => Some(value as f64),
        Value::F64(value) => Some(value).filter(|value| value.is_finite()),
        Value::Bool(value) => Some(f64::from(u8::from(value))),
        Value::Text(_) | Value::Bytes(_) | Value::Array(_) => None,
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::io(format_args!("cannot write a temporary file in {}", std::env::temp_dir().display()), error)
}

impl SpanSink for Gather<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.shelf.write(|store| store.source = Some(*source));
        Ok(())
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn wants_arrows(&self) -> bool {
        true
    }

    fn track(&mut self, _: TrackId, track: &Track) -> Result<(), Error> {
        self.shelf.write(|store| store.add_track(track));
        Ok(())
    }

    fn name(&mut self, _: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        self.numbers.push(self.names.number(name, location));
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let known = (&*self.numbers, self.names);
        self.shelf.write(|store| batch.edges().iter().try_for_each(|one| edge(store, one, batch, known)))
    }
}

/// Puts records on rows, an instant each, at the place of their number.
pub(crate) struct GatherEvents<'a> {
    shelf: &'a Shelf,
    names: &'a Names,
    stop: &'a AtomicBool,
    /// The track of each thread.
    tracks: Map<Option<i64>, u32>,
    /// The numbers of this trace's kinds among all names, by their key in the column.
    numbers: Vec<u32>,
}

impl<'a> GatherEvents<'a> {
    /// A sink for the rows of `events`, with the columns of [`Self::scan`].
    pub(crate) fn new(format: &'static str, shelf: &'a Shelf, names: &'a Names, stop: &'a AtomicBool) -> Self {
        let source = SpanSource { format, unit: TimeUnit::Order, origin: 0, epoch_ns: None, uptime: None };
        shelf.write(|store| store.source = Some(source));
        Self { shelf, names, stop, tracks: Map::default(), numbers: Vec::new() }
    }

    /// What is read of the table.
    pub(crate) fn scan() -> Result<Scan, Error> {
        Scan::columns_of(&EVENTS, &COLUMNS)
    }
}

fn track_of(tracks: &mut Map<Option<i64>, u32>, store: &mut Store, thread: Option<i64>) -> u32 {
    let next = u32::try_from(store.tracks.len()).unwrap_or(u32::MAX);
    if let Some(track) = tracks.get(&thread) {
        return *track;
    }
    if tracks.len() >= THREADS_MAX {
        return next.saturating_sub(1);
    }
    let name = if tracks.len() + 1 == THREADS_MAX { Some("other threads".to_owned()) } else { None };
    let name = name.or_else(|| thread.is_none().then(|| "records".to_owned()));
    store.add_track(&Track { thread: thread.unwrap_or(0).cast_unsigned(), name, ..Track::default() });
    tracks.insert(thread, next);
    next
}

impl RowSink for GatherEvents<'_> {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(stopped());
        }
        let [seq, thread, kind] = batch.columns.as_slice() else { return Ok(()) };
        let (Values::Int64(seqs), Values::Int64(threads), Values::Name { keys, names }) =
            (&seq.values, &thread.values, &kind.values)
        else {
            return Ok(());
        };
        while self.numbers.len() < names.len() {
            let key = i32::try_from(self.numbers.len()).unwrap_or(i32::MAX);
            self.numbers.push(self.names.number(names.get(key).as_bytes(), None));
        }
        let (numbers, tracks) = (&self.numbers, &mut self.tracks);
        self.shelf.write(|store| {
            let rows = seqs.iter().zip(threads).zip(keys).enumerate();
            for (row, ((seq, id), key)) in rows {
                let id = thread.is_valid(row).then_some(*id);
                let track = track_of(tracks, store, id);
                let name = usize::try_from(*key).ok().and_then(|key| numbers.get(key)).copied().unwrap_or(0);
                store.instant(track, seq.cast_unsigned(), name).map_err(unwritable)?;
            }
            Ok(())
        })
    }
}
