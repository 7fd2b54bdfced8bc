//! Emits a trace as spans: calls on the tracks of their threads, in the order of the stream.
//!
//! The format has no clock. A call begins at the number of its enter event and ends at that of its leave, so that a
//! length counts the events in between: 1 for a call with nothing inside it and no concurrent thread.
//!
//! Groups of `glPushDebugGroup` and similar functions are spans around the calls between push and pop; the end of a
//! frame is an instant. Calls are emitted in the order of their enters, with what is known when they are left. A call
//! around more than [`WAITING_CALLS_MAX`] others is emitted with only what its enter event contains.

mod lanes;
mod values;

use std::collections::{HashMap, VecDeque};

use anytrace_core::span::{
    Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSource, TimeUnit, Track, TrackId, Value as Attribute,
};
use anytrace_core::{Error, Sink, SpanSink, Summary};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::lanes::flags::CallFlags;
use crate::lanes::text::until_nul;
use crate::lanes::wire::{Detail, Value};
use crate::wire::reader::Reader;
use crate::wire::record::{Header, Space};
use lanes::{Lanes, Out, Placed, Then};
use values::{Names, Values};

/// Most calls kept while one that began before them is open, and most bytes of their values.
pub const WAITING_CALLS_MAX: usize = 4096;
const WAITING_BYTES_MAX: usize = 4 << 20;

/// Most different names of groups; further groups have the name of the function that began them.
const GROUP_NAMES_MAX: usize = 1 << 14;

/// Emits a trace as spans. The unit is [`TimeUnit::Order`]: numbers of events.
///
/// # Errors
/// I/O, limits, and what the sinks return.
pub fn spans(mut reader: Reader, out: &mut dyn SpanSink, sink: &mut dyn Sink) -> Result<Summary, Error> {
    let source = SpanSource { format: "apitrace", unit: TimeUnit::Order, origin: 0, epoch_ns: None, uptime: None };
    out.source(&source)?;
    let options = CallOptions::default().with_limits(&reader.limits);
    let threads_max = reader.limits.distinct_max;
    let mut visitor = SpanVisitor {
        waiting: VecDeque::new(),
        waiting_bytes: 0,
        newest: 0,
        threads: Threads { numbers: HashMap::new(), last: None, lanes: Vec::new(), max: threads_max },
        writer: SpanWriter {
            has_attributes: out.wants_attributes(),
            out,
            dictionary: Dictionary::default(),
            functions: Vec::new(),
            names: Names::default(),
            group_names: 0,
            values: Values::new(),
            batch: EdgeBatch::default(),
            threads: Vec::new(),
            tracks: 0,
            frame_names: None,
            process_name: None,
        },
    };
    let totals = read_calls(&mut reader, options, &mut visitor, sink)?;
    visitor.finish()?;
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

/// A call that waits until all calls entered before it are over.
#[derive(Debug)]
struct WaitingCall {
    call: Call<'static>,
    enter: Vec<u8>,
    leave: Vec<u8>,
    /// It was left, or will never be.
    is_over: bool,
}

impl WaitingCall {
    fn new(call: &Call<'_>, is_over: bool) -> Self {
        let (enter, leave) = (call.enter.to_vec(), call.leave.to_vec());
        Self { call: Call { enter: &[], leave: &[], ..*call }, enter, leave, is_over }
    }

    fn bytes(&self) -> usize {
        self.enter.len() + self.leave.len()
    }
}

/// Turns calls into edges. Between calls, `waiting` starts with an open call, or is empty.
struct SpanVisitor<'a> {
    /// The oldest open call and all calls entered after it, by number.
    waiting: VecDeque<WaitingCall>,
    waiting_bytes: usize,
    /// The number after the highest seen.
    newest: u64,
    threads: Threads,
    writer: SpanWriter<'a>,
}

/// The lanes of each thread.
struct Threads {
    numbers: HashMap<u64, usize>,
    last: Option<(u64, usize)>,
    lanes: Vec<Lanes>,
    max: usize,
}

/// Names, tracks and edges on their way to the sink.
struct SpanWriter<'a> {
    out: &'a mut dyn SpanSink,
    has_attributes: bool,
    dictionary: Dictionary,
    /// Names of functions by slot.
    functions: Vec<Option<NameId>>,
    names: Names,
    group_names: usize,
    values: Values,
    batch: EdgeBatch,
    /// Numbers of threads. If there are too many, the last one represents all others.
    threads: Vec<Option<u64>>,
    tracks: TrackId,
    frame_names: Option<(NameId, NameId)>,
    process_name: Option<String>,
}

impl Threads {
    /// The index of a thread.
    #[inline]
    fn place(&mut self, thread: u64, writer: &mut SpanWriter<'_>) -> usize {
        if let Some((last, at)) = self.last
            && last == thread
        {
            return at;
        }
        let is_full = self.numbers.len() >= self.max;
        let next = self.lanes.len();
        let at = match self.numbers.get(&thread) {
            Some(&at) => at,
            // One index for all threads beyond the limit.
            None if is_full && next > self.numbers.len() => next - 1,
            None => {
                self.lanes.push(Lanes::default());
                writer.threads.push((!is_full).then_some(thread));
                if !is_full {
                    self.numbers.insert(thread, next);
                }
                next
            }
        };
        self.last = Some((thread, at));
        at
    }
}

impl SpanVisitor<'_> {
    /// Emits a call; without an end if it is incomplete or still open.
    fn emit(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let thread = self.threads.place(call.thread, &mut self.writer);
        let name = self.writer.function(call.function)?;
        let flags = self.writer.dictionary.function(call.function).map_or(CallFlags::default(), |row| row.flags);
        let end = (!call.is_incomplete).then_some(call.end_seq);
        let then = if flags.has(CallFlags::END_FRAME) {
            Then::Frame(call.frame)
        } else if flags.has(CallFlags::MARKER_PUSH) {
            Then::Group(self.writer.group(call, name)?)
        } else {
            Then::Nothing
        };
        let ends_group = flags.has(CallFlags::MARKER_POP);
        let placed = Placed { number: call.number, name, start: call.seq, end, then, ends_group };
        let Some(lanes) = self.threads.lanes.get_mut(thread) else { return Ok(()) };
        lanes.place(&placed, thread, &mut CallEdges { writer: &mut self.writer, call })
    }

    /// Emits the calls that wait for no other. `force`: all of them.
    fn emit_ready(&mut self, force: bool) -> Result<(), Error> {
        while let Some(waiting) = self.waiting.pop_front_if(|waiting| waiting.is_over || force) {
            self.waiting_bytes -= waiting.bytes();
            let is_incomplete = waiting.call.is_incomplete || !waiting.is_over;
            let call = Call { enter: &waiting.enter, leave: &waiting.leave, is_incomplete, ..waiting.call };
            self.emit(&call)?;
        }
        Ok(())
    }

    fn enqueue(&mut self, call: &Call<'_>, is_over: bool) -> Result<(), Error> {
        let waiting = WaitingCall::new(call, is_over);
        self.waiting_bytes += waiting.bytes();
        self.waiting.push_back(waiting);
        if self.waiting.len() > WAITING_CALLS_MAX || self.waiting_bytes > WAITING_BYTES_MAX {
            self.emit_ready(true)?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), Error> {
        self.emit_ready(true)?;
        for lanes in &mut self.threads.lanes {
            // No more calls follow.
            let call = Call::NONE;
            lanes.finish(&mut CallEdges { writer: &mut self.writer, call: &call })?;
        }
        self.writer.flush()
    }
}

impl CallVisitor for SpanVisitor<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.writer.dictionary = Dictionary::new(header.version);
        let process = header.properties.iter().rev().find(|(name, _)| name == b"process.name");
        self.writer.process_name = process.map(|(_, value)| {
            let mut name = Vec::new();
            values::push_bounded(&mut name, value);
            String::from_utf8_lossy(&name).into_owned()
        });
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        // Stack frames are not shown.
        if definition.space != Space::Frame {
            self.writer.dictionary.define(definition);
        }
    }

    fn entered(&mut self, call: &Call<'_>) -> Result<(), Error> {
        self.newest = call.number + 1;
        self.enqueue(call, false)
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if call.number >= self.newest {
            self.newest = call.number + 1;
            return if self.waiting.is_empty() { self.emit(call) } else { self.enqueue(call, true) };
        }
        let at = self.waiting.partition_point(|waiting| waiting.call.number < call.number);
        match self.waiting.get_mut(at).filter(|waiting| waiting.call.number == call.number) {
            Some(waiting) => {
                self.waiting_bytes += call.leave.len();
                waiting.leave = call.leave.to_vec();
                waiting.call = Call { enter: &[], leave: &[], ..*call };
                waiting.is_over = true;
                self.emit_ready(false)
            }
            // It was emitted while it was open.
            None if !call.is_incomplete => {
                let thread = self.threads.place(call.thread, &mut self.writer);
                if let Some(lanes) = self.threads.lanes.get_mut(thread) {
                    lanes.left(call.number, call.end_seq);
                }
                Ok(())
            }
            None => Ok(()),
        }
    }
}

impl SpanWriter<'_> {
    /// The name of a function.
    #[inline]
    fn function(&mut self, slot: u32) -> Result<NameId, Error> {
        let at = slot as usize;
        if let Some(&Some(known)) = self.functions.get(at) {
            return Ok(known);
        }
        let Some(function) = self.dictionary.function(slot) else { return self.names.get(b"?", self.out) };
        let name = self.names.get(until_nul(function.name()), self.out)?;
        if self.functions.len() <= at {
            self.functions.resize(at + 1, None);
        }
        if let Some(place) = self.functions.get_mut(at) {
            *place = Some(name);
        }
        Ok(name)
    }

    /// The name of a group: the last string among the arguments of the call that begins it.
    fn group(&mut self, call: &Call<'_>, function: NameId) -> Result<NameId, Error> {
        let mut name = Vec::new();
        let mut wire = self.dictionary.wire(call.enter);
        loop {
            match wire.detail() {
                Detail::End => break,
                Detail::Argument(_) => {
                    let mut after = wire;
                    match after.value() {
                        Value::Text(text) => {
                            name.clear();
                            values::push_bounded(&mut name, text);
                        }
                        Value::Wide(chars) => {
                            name.clear();
                            values::push_wide_bounded(&mut name, chars);
                        }
                        _ => {}
                    }
                    wire.skip_value(&|id| self.dictionary.members(id));
                }
                Detail::Return => wire.skip_value(&|id| self.dictionary.members(id)),
                Detail::Backtrace(count) => {
                    for _ in 0..count.min(call.enter.len() as u64) {
                        wire.uint();
                    }
                }
                Detail::Flags(_) | Detail::Thread(_) => {}
            }
        }
        if name.is_empty() {
            return Ok(function);
        }
        if let Some(known) = self.names.known(&name) {
            return Ok(known);
        }
        if self.group_names >= GROUP_NAMES_MAX {
            return Ok(function);
        }
        self.group_names += 1;
        self.names.get(&name, self.out)
    }

    fn push(&mut self, edge: Edge) -> Result<(), Error> {
        if self.batch.is_full() {
            self.flush()?;
        }
        self.batch.push(edge);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() { Ok(()) } else { self.out.take_edges(&mut self.batch) }
    }
}

/// Emits the edges of one call.
struct CallEdges<'t, 'a, 'c> {
    writer: &'t mut SpanWriter<'a>,
    call: &'t Call<'c>,
}

fn edge(track: TrackId, kind: EdgeKind, name: NameId, time: u64, flags: EdgeFlags) -> Edge {
    // Times are numbers of events, and events are the records.
    Edge { seq: time, time, track, name, attributes: (0, 0), cpu: NO_CPU, kind, flags }
}

impl Out for CallEdges<'_, '_, '_> {
    fn lane(&mut self, thread: usize, lane: usize) -> Result<TrackId, Error> {
        let id = self.writer.tracks;
        self.writer.tracks += 1;
        let number = self.writer.threads.get(thread).copied().flatten();
        let name = number.is_none().then(|| "other threads".to_owned());
        let lane = u32::try_from(lane).unwrap_or(u32::MAX);
        let (thread, process_name) = (number.unwrap_or(u64::MAX), self.writer.process_name.clone());
        self.writer.out.track(id, &Track { process: 0, thread, lane, name, process_name, is_task: false })?;
        Ok(id)
    }

    #[inline]
    fn edge(&mut self, track: TrackId, kind: EdgeKind, name: NameId, time: u64, flags: EdgeFlags) -> Result<(), Error> {
        self.writer.push(edge(track, kind, name, time, flags))
    }

    fn attributes(&mut self) -> Result<(), Error> {
        let SpanWriter { has_attributes, values, dictionary, names, batch, out, .. } = &mut *self.writer;
        if *has_attributes { values.add(self.call, dictionary, names, batch, *out) } else { Ok(()) }
    }

    fn frame(&mut self, track: TrackId, number: u64, time: u64) -> Result<(), Error> {
        let (name, key) = match self.writer.frame_names {
            Some(names) => names,
            None => {
                let SpanWriter { names, out, .. } = &mut *self.writer;
                let found = (names.get(b"end of frame", *out)?, names.get(b"frame", *out)?);
                *self.writer.frame_names.insert(found)
            }
        };
        self.writer.push(edge(track, EdgeKind::Instant, name, time, EdgeFlags::NONE))?;
        self.writer.batch.attribute(key, Attribute::U64(number));
        Ok(())
    }
}
