//! Emits a trace as spans: calls on the tracks of their threads, events as instants, arguments as attributes.

use std::cell::RefCell;
use std::collections::HashMap;

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, NameId, SpanSource, Symbols, TimeUnit, Track, TrackId, Uptime, Value,
};
use anytrace_core::{Diagnostic, Error, Place, Sink, SpanOptions, SpanSink, Summary};

use crate::lanes::blocks::{Block, Blocks, Room, Taken, UNNAMED};
use crate::lanes::calls::{CallOptions, CallVisitor, Calls, End, Frame, Mismatch};
use crate::lanes::names::{is_number, number_text};
use crate::lanes::ordered::{Facts, Ordered};
use crate::lanes::state::{LastRecord, OpenCall, ThreadState};
use crate::rules;
use crate::wire::moment::{Moment, MomentKind, Moments};

/// A counter of one tick per nanosecond with a value above this counts nanoseconds since 1970: the emulated clock
/// (page, section 1.1). No machine has been up for thirty years.
const EMULATED_MIN: u64 = 1_000_000_000_000_000_000;

/// Wall times are of the machine's uptime (page, section 1.2), but above this one can only be a date.
const DATES_MIN_NS: i128 = 1_000_000_000_000_000_000;

/// Function ids below this are looked up in a table.
const TABLE_MAX: usize = 1 << 16;

/// Emits an ordered trace as spans; the function id of each name is in `ids`, by the name's number, before the name is announced. Names
/// that are not those of functions have 0.
pub(crate) fn emit_with_ids(
    ordered: Ordered,
    options: &SpanOptions,
    ids: &RefCell<Vec<u32>>,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let mut emitter = SpanEmitter::new(*ordered.header(), ordered.first_tsc(), options, ids, out);
    emitter.wall = ordered.uptime();
    let summary = ordered.by_thread_in_blocks(&mut emitter, sink)?;
    if let Some((at, moved)) = emitter.finish()? {
        report_moved(at, moved, sink)?;
    }
    Ok(summary)
}

/// Reports that times were moved.
pub(crate) fn report_moved(at: Place, moved: u64, sink: &mut dyn Sink) -> Result<(), Error> {
    let report = rules::TSC_BACKWARDS.at(at.offset).record(at.seq).expected("increasing times on each thread");
    let help = "spans that would end before a preceding event were extended to it";
    sink.report(report.found(format!("{moved} times before earlier ones; this is the first")).help(help))
}

/// Receives moments and emits edges.
pub(crate) struct SpanEmitter<'a> {
    pub(crate) calls: Calls,
    output: SpanOutput<'a>,
    facts: Facts,
    origin: Option<u64>,
    /// The trace's wall times: of the machine's uptime, or dates.
    wall: Option<Uptime>,
    is_begun: bool,
    room: Box<Room>,
}

/// What was emitted for a thread.
struct Thread {
    last: u64,
    /// Names of open calls, outermost first.
    open: Vec<NameId>,
}

/// The emitting part, which receives calls.
struct SpanOutput<'a> {
    out: &'a mut dyn SpanSink,
    names: Names<'a>,
    batch: EdgeBatch,
    tracks: Vec<Thread>,
    argument_keys: Vec<NameId>,
    /// Times that had to be moved so that time never goes backwards.
    moved: u64,
    first_moved: Option<Place>,
}

impl<'a> SpanEmitter<'a> {
    /// Starts; `origin` is the earliest time, where it is known.
    pub(crate) fn new(
        facts: Facts,
        origin: Option<u64>,
        options: &'a SpanOptions,
        ids: &'a RefCell<Vec<u32>>,
        out: &'a mut dyn SpanSink,
    ) -> Self {
        let calls = CallOptions { mismatch: Mismatch::Deduce, tail_chains: options.tail_chains };
        let output = SpanOutput {
            out,
            names: Names::new(options.symbols.as_deref(), ids),
            batch: EdgeBatch::default(),
            tracks: Vec::new(),
            argument_keys: Vec::new(),
            moved: 0,
            first_moved: None,
        };
        Self { calls: Calls::new(calls), output, facts, origin, wall: None, is_begun: false, room: Box::default() }
    }

    /// Announces the threads of a trace of which a part is read. Before the first moment.
    pub(crate) fn announce(&mut self, tracks: &[(u32, u32)]) -> Result<(), Error> {
        self.begin(0)?;
        for &(process, thread) in tracks {
            if self.calls.number_of((process, thread)).is_some_and(|number| number >= self.output.tracks.len()) {
                self.output.track((process, thread))?;
            }
        }
        Ok(())
    }

    /// Continues a thread from a state, in place of what is known of it.
    pub(crate) fn resume(&mut self, key: (u32, u32), state: &ThreadState) -> Result<(), Error> {
        let before = self.calls.number_of(key).and_then(|number| self.calls.last_of(number));
        let Some(number) = self.calls.resume(key, state) else { return Ok(()) };
        if let Some(before) = before {
            self.output.suspend(number, &before.last)?;
        }
        for call in &state.open {
            self.output.resume(number, call, state.emitted)?;
        }
        if let Some(track) = self.output.tracks.get_mut(number) {
            track.last = state.emitted;
        }
        Ok(())
    }

    /// Ends the part: all open calls continue after it.
    pub(crate) fn suspend(mut self) -> Result<(), Error> {
        for number in 0..self.output.tracks.len() {
            if let Some(state) = self.calls.last_of(number) {
                self.output.suspend(number, &state.last)?;
            }
        }
        self.output.flush()
    }

    #[cold]
    fn begin(&mut self, first: u64) -> Result<(), Error> {
        self.is_begun = true;
        let frequency = self.facts.cycle_frequency;
        let origin = self.origin.unwrap_or(first);
        let is_emulated = frequency == 1_000_000_000 && origin > EMULATED_MIN;
        let unit = TimeUnit::Ticks { per_second: (frequency > 0).then_some(frequency) };
        let first_ns = unit.to_ns(origin).map_or(0, i128::from);
        let is_date = self.wall.is_some_and(|wall| wall.zero_ns + first_ns > DATES_MIN_NS);
        let dated = self.wall.filter(|_| is_date).map(|wall| wall.zero_ns);
        let epoch_ns = if is_emulated { Some(0) } else { dated };
        let uptime = self.wall.filter(|_| !is_date);
        self.output.out.source(&SpanSource { format: "xray", unit, origin, epoch_ns, uptime })
    }

    /// Ends all open calls; returns how many times were moved, and where the first was.
    pub(crate) fn finish(mut self) -> Result<Option<(Place, u64)>, Error> {
        if !self.is_begun {
            self.begin(0)?;
        }
        self.calls.finish(&mut self.output)?;
        self.output.flush()?;
        Ok(self.output.first_moved.map(|at| (at, self.output.moved)))
    }
}

impl Moments for SpanEmitter<'_> {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if !self.is_begun {
            self.begin(moment.tsc)?;
        }
        // Nothing is emitted beyond the limit on threads: the calls count these moments.
        if let Some(number) = self.calls.thread_number(moment)
            && number >= self.output.tracks.len()
        {
            self.output.track((moment.process, moment.thread))?;
        }
        self.calls.moment(moment, &mut self.output)?;
        if !matches!(moment.kind, MomentKind::Function(_))
            && let Some(number) = self.calls.thread_number(moment)
        {
            self.output.event(number, moment)?;
        }
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

impl Blocks for SpanEmitter<'_> {
    fn block(&mut self, block: &Block<'_>) -> Result<Taken, Error> {
        let Self { calls, output, room, .. } = self;
        let Some(number) = calls.number_of((block.process, block.thread)) else { return Ok(Taken::default()) };
        // A thread without a track is announced with its first moment; times before the last one are moved.
        let Some(track) = output.tracks.get_mut(number).filter(|track| track.last <= block.tsc) else {
            return Ok(Taken::default());
        };
        let Some(change) = calls.block(block, &output.names.small, room) else { return Ok(Taken::default()) };
        track.open.truncate(change.kept);
        let name = |function: u32| output.names.small.get(function as usize).copied().unwrap_or(UNNAMED);
        track.open.extend(room.entered(&change).iter().map(|slot| name(slot.function)));
        track.last = change.taken.tsc;
        let (id, mut at) = (TrackId::try_from(number).unwrap_or(TrackId::MAX), 0);
        while at < change.taken.count {
            if output.batch.is_full() {
                output.flush()?;
            }
            let until = change.taken.count.min(at + output.batch.edges_left());
            room.push_edges(block, id, (at, until), &mut output.batch);
            at = until;
        }
        Ok(change.taken)
    }
}

impl SpanOutput<'_> {
    #[cold]
    fn track(&mut self, (process, thread): (u32, u32)) -> Result<(), Error> {
        let id = TrackId::try_from(self.tracks.len()).unwrap_or(TrackId::MAX);
        let (process, thread) = (u64::from(process), u64::from(thread));
        self.out.track(id, &Track { process, thread, ..Track::default() })?;
        self.tracks.push(Thread { last: 0, open: Vec::new() });
        Ok(())
    }

    #[inline]
    fn push(&mut self, track: usize, edge: Edge, at: Place) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        let Some(thread) = self.tracks.get_mut(track) else { return Ok(()) };
        let time = edge.time.max(thread.last);
        if time != edge.time {
            self.moved += 1;
            self.first_moved.get_or_insert(at);
        }
        thread.last = time;
        self.batch.push(Edge { time, ..edge });
        Ok(())
    }

    /// Begins a call that began before the part.
    fn resume(&mut self, number: usize, call: &OpenCall, last: u64) -> Result<(), Error> {
        let name = self.names.by_number(call.function, self.out)?;
        let (inside, since) = (self.names.text("inside", self.out)?, self.names.text("since", self.out)?);
        if self.batch.is_full() {
            self.flush()?;
        }
        let track = TrackId::try_from(number).unwrap_or(TrackId::MAX);
        let (seq, time, cpu, flags) = (call.seq, call.start, call.cpu, EdgeFlags::RESUMED);
        self.batch.push(Edge { seq, time, track, name, attributes: (0, 0), cpu, kind: EdgeKind::Begin, flags });
        self.batch.attribute(inside, Value::U64(call.inside));
        self.batch.attribute(since, Value::U64(last));
        if let Some(track) = self.tracks.get_mut(number) {
            track.open.push(name);
        }
        self.arguments(&call.arguments)
    }

    /// Ends the open calls of a thread, which continue in another part.
    fn suspend(&mut self, number: usize, last: &LastRecord) -> Result<(), Error> {
        while let Some((time, name)) = self.tracks.get_mut(number).and_then(|t| Some((t.last, t.open.pop()?))) {
            if self.batch.is_full() {
                self.flush()?;
            }
            let track = TrackId::try_from(number).unwrap_or(TrackId::MAX);
            let (kind, flags) = (EdgeKind::End, EdgeFlags::CONTINUES);
            self.batch.push(Edge { seq: last.seq, time, track, name, attributes: (0, 0), cpu: last.cpu, kind, flags });
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }

    #[cold]
    fn arguments(&mut self, values: &[u64]) -> Result<(), Error> {
        for (n, &value) in values.iter().enumerate() {
            let key = match self.argument_keys.get(n) {
                Some(&key) => key,
                None => {
                    let key = self.names.text(&format!("arg{n}"), self.out)?;
                    self.argument_keys.push(key);
                    key
                }
            };
            self.batch.attribute(key, Value::U64(value));
        }
        Ok(())
    }

    #[cold]
    fn event(&mut self, track: usize, moment: &Moment<'_>) -> Result<(), Error> {
        let name = match moment.kind {
            MomentKind::Typed(number) => self.names.text(&format!("typed event {number}"), self.out)?,
            _ => self.names.text("custom event", self.out)?,
        };
        let key = self.names.text("data", self.out)?;
        self.push(track, edge(EdgeKind::Instant, track, name, moment), moment.at)?;
        let data = moment.data;
        let value = if is_text(data) { Value::Text(data) } else { Value::Bytes(data) };
        self.batch.attribute(key, value);
        Ok(())
    }
}

fn edge(kind: EdgeKind, track: usize, name: NameId, moment: &Moment<'_>) -> Edge {
    let track = TrackId::try_from(track).unwrap_or(TrackId::MAX);
    let (seq, time, cpu) = (moment.at.seq, moment.tsc, moment.cpu);
    Edge { seq, time, track, name, attributes: (0, 0), cpu, kind, flags: EdgeFlags::NONE }
}

/// True for UTF-8 without control characters other than tabs and line ends.
fn is_text(data: &[u8]) -> bool {
    std::str::from_utf8(data).is_ok_and(|text| !text.chars().any(|c| c.is_control() && !"\t\r\n".contains(c)))
}

impl CallVisitor for SpanOutput<'_> {
    #[inline]
    fn begin(&mut self, thread: usize, frame: &Frame, _depth: usize, moment: &Moment<'_>) -> Result<(), Error> {
        let name = self.names.function(moment, self.out)?;
        let begin = edge(EdgeKind::Begin, thread, name, moment);
        self.push(thread, Edge { flags: frame.flags, ..begin }, moment.at)?;
        if let Some(track) = self.tracks.get_mut(thread) {
            track.open.push(name);
        }
        if !moment.arguments.is_empty() {
            self.arguments(moment.arguments)?;
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, thread: usize, _frame: &Frame, _depth: usize, end: &End) -> Result<(), Error> {
        let Some(name) = self.tracks.get_mut(thread).and_then(|track| track.open.pop()) else { return Ok(()) };
        let track = TrackId::try_from(thread).unwrap_or(TrackId::MAX);
        let (kind, attributes) = (EdgeKind::End, (0, 0));
        let edge =
            Edge { seq: end.at.seq, time: end.tsc, track, name, attributes, cpu: end.cpu, kind, flags: end.flags };
        self.push(thread, edge, end.at)
    }

    fn orphan(&mut self, thread: usize, moment: &Moment<'_>) -> Result<(), Error> {
        let name = self.names.function(moment, self.out)?;
        let orphan = edge(EdgeKind::Instant, thread, name, moment);
        self.push(thread, Edge { flags: EdgeFlags::ORPHAN, ..orphan }, moment.at)
    }
}

/// Numbers of names.
struct Names<'a> {
    symbols: Option<&'a dyn Symbols>,
    /// The function id of each name so far.
    ids: &'a RefCell<Vec<u32>>,
    /// Names of functions without a name of their own, by id: small ids, and the rest.
    small: Vec<NameId>,
    large: HashMap<u32, NameId>,
    /// Names of functions with a name (YAML): the key is the name, a zero byte, and the id. Other texts have no id.
    texts: HashMap<Vec<u8>, NameId>,
    scratch: Vec<u8>,
}

impl<'a> Names<'a> {
    fn new(symbols: Option<&'a dyn Symbols>, ids: &'a RefCell<Vec<u32>>) -> Self {
        let (small, large, texts, scratch) = (Vec::new(), HashMap::new(), HashMap::new(), Vec::new());
        Self { symbols, ids, small, large, texts, scratch }
    }

    /// The next number, for a name of this function.
    fn next(&self, function: u32) -> NameId {
        let mut ids = self.ids.borrow_mut();
        ids.push(function);
        NameId::try_from(ids.len() - 1).unwrap_or(NameId::MAX)
    }

    /// The name of a moment's function.
    #[inline]
    fn function(&mut self, moment: &Moment<'_>, out: &mut dyn SpanSink) -> Result<NameId, Error> {
        if !moment.name.is_empty() {
            return self.named(moment, out);
        }
        self.by_number(moment.function, out)
    }

    /// The name of a function that has none in the trace.
    #[inline]
    fn by_number(&mut self, function: u32, out: &mut dyn SpanSink) -> Result<NameId, Error> {
        match self.small.get(function as usize) {
            Some(&name) if name != UNNAMED => Ok(name),
            _ => self.numbered(function, out),
        }
    }

    #[cold]
    fn numbered(&mut self, id: u32, out: &mut dyn SpanSink) -> Result<NameId, Error> {
        if let Some(&name) = self.large.get(&id) {
            return Ok(name);
        }
        let symbol = self.symbols.and_then(|symbols| symbols.symbol(u64::from(id)));
        let name = self.next(id);
        match symbol {
            Some((symbol, location)) => out.name(name, symbol.as_bytes(), location)?,
            None => out.name(name, number_text(id).as_bytes(), None)?,
        }
        let place = id as usize;
        if place < TABLE_MAX {
            if self.small.len() <= place {
                self.small.resize(place + 1, UNNAMED);
            }
            if let Some(slot) = self.small.get_mut(place) {
                *slot = name;
            }
        } else {
            self.large.insert(id, name);
        }
        Ok(name)
    }

    /// A name from the trace. The peer writes the id where it knows no name.
    fn named(&mut self, moment: &Moment<'_>, out: &mut dyn SpanSink) -> Result<NameId, Error> {
        self.scratch.clear();
        self.scratch.extend_from_slice(moment.name);
        self.scratch.push(0);
        self.scratch.extend_from_slice(&moment.function.to_le_bytes());
        if let Some(&name) = self.texts.get(&self.scratch) {
            return Ok(name);
        }
        let name = if is_number(moment.name, moment.function) {
            match self.small.get(moment.function as usize) {
                Some(&name) if name != UNNAMED => name,
                _ => self.numbered(moment.function, out)?,
            }
        } else {
            let name = self.next(moment.function);
            out.name(name, moment.name, None)?;
            name
        };
        self.texts.insert(self.scratch.clone(), name);
        Ok(name)
    }

    /// A fixed text of this program.
    fn text(&mut self, text: &str, out: &mut dyn SpanSink) -> Result<NameId, Error> {
        if let Some(&name) = self.texts.get(text.as_bytes()) {
            return Ok(name);
        }
        let name = self.next(0);
        out.name(name, text.as_bytes(), None)?;
        self.texts.insert(text.as_bytes().to_vec(), name);
        Ok(name)
    }
}
