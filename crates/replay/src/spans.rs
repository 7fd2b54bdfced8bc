//! What was measured, as spans: calls inside frames as the processor had them, draws as the device had them.

use std::collections::HashMap;

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NO_CPU, NameId, SpanSource, TimeUnit, Track, Value};
use anytrace_core::{Error, SpanSink};

/// The rows of the timeline.
const TRACKS: [&str; 2] = ["calls", "device"];
const CALLS: u32 = 0;
const DEVICE: u32 = 1;

/// A call with what was measured of it; times in nanoseconds since the replay began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpanOfCall {
    pub(crate) number: u64,
    pub(crate) name: &'static str,
    pub(crate) program: u32,
    /// Start and duration.
    pub(crate) cpu: (u64, u64),
    /// As above; 0 for what the device does not do.
    pub(crate) gpu: (u64, u64),
    /// Samples that passed, bytes of resident memory that came.
    pub(crate) pixels: Option<i64>,
    pub(crate) resident: Option<i64>,
}

/// Hands what is measured to a sink.
pub(crate) struct Spans<'s> {
    sink: &'s mut dyn SpanSink,
    batch: EdgeBatch,
    names: HashMap<&'static str, NameId>,
    /// The last time of each track: times never go back, whatever clocks do.
    last: [u64; TRACKS.len()],
    is_in_frame: bool,
    last_call: u64,
}

impl<'s> Spans<'s> {
    pub(crate) fn begin(sink: &'s mut dyn SpanSink) -> Result<Self, Error> {
        sink.source(&SpanSource {
            format: "apitrace",
            unit: TimeUnit::Nanoseconds,
            origin: 0,
            epoch_ns: None,
            uptime: None,
        })?;
        for (id, name) in (0..).zip(TRACKS) {
            let process = u64::from(std::process::id());
            let (name, process_name) = (Some(name.to_owned()), Some("replay".to_owned()));
            sink.track(
                id,
                &Track { process, thread: process + u64::from(id), name, process_name, lane: 0, is_task: false },
            )?;
        }
        let (batch, names) = (EdgeBatch::default(), HashMap::new());
        Ok(Self { sink, batch, names, last: [0; TRACKS.len()], is_in_frame: false, last_call: 0 })
    }

    fn name(&mut self, name: &'static str) -> Result<NameId, Error> {
        let next = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        match self.names.entry(name) {
            std::collections::hash_map::Entry::Occupied(known) => Ok(*known.get()),
            std::collections::hash_map::Entry::Vacant(new) => {
                self.sink.name(next, name.as_bytes(), None)?;
                Ok(*new.insert(next))
            }
        }
    }

    fn edge(&mut self, seq: u64, time: u64, track: u32, name: NameId, kind: EdgeKind) -> Result<(), Error> {
        self.edge_with(seq, time, track, name, kind, EdgeFlags::NONE)
    }

    fn edge_with(
        &mut self,
        seq: u64,
        time: u64,
        track: u32,
        name: NameId,
        kind: EdgeKind,
        flags: EdgeFlags,
    ) -> Result<(), Error> {
        if self.batch.is_full() {
            self.send()?;
        }
        let mut now = time;
        if let Some(last) = self.last.get_mut(track as usize) {
            now = time.max(*last);
            *last = now;
        }
        self.batch.push(Edge { seq, time: now, track, name, attributes: (0, 0), cpu: NO_CPU, kind, flags });
        Ok(())
    }

    fn attribute(&mut self, key: &'static str, value: Value<'_>) -> Result<(), Error> {
        let key = self.name(key)?;
        self.batch.attribute(key, value);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        self.sink.take_edges(&mut self.batch)
    }

    /// A frame begins, unless it has begun already.
    fn begin_frame(&mut self, seq: u64, frame: u64, start_ns: u64) -> Result<(), Error> {
        if std::mem::replace(&mut self.is_in_frame, true) {
            return Ok(());
        }
        let name = self.name("frame")?;
        self.edge(seq, start_ns, CALLS, name, EdgeKind::Begin)?;
        self.attribute("frame", Value::U64(frame))
    }

    /// A call of the frame with this number, which began then.
    pub(crate) fn call(&mut self, frame: u64, frame_start_ns: u64, call: &SpanOfCall) -> Result<(), Error> {
        self.begin_frame(call.number, frame, frame_start_ns)?;
        self.last_call = call.number;
        let name = self.name(call.name)?;
        for (track, (start, duration)) in [(CALLS, call.cpu), (DEVICE, call.gpu)] {
            if track == DEVICE && duration == 0 {
                continue;
            }
            self.edge(call.number, start, track, name, EdgeKind::Begin)?;
            self.attribute("call", Value::U64(call.number))?;
            if call.program != 0 {
                self.attribute("program", Value::U64(u64::from(call.program)))?;
            }
            if let Some(pixels) = call.pixels.filter(|pixels| *pixels >= 0) {
                self.attribute("samples", Value::I64(pixels))?;
            }
            if let Some(bytes) = call.resident.filter(|bytes| *bytes != 0) {
                self.attribute("resident_bytes", Value::I64(bytes))?;
            }
            self.edge(call.number, start.saturating_add(duration), track, name, EdgeKind::End)?;
        }
        Ok(())
    }

    /// The frame with this number, which began at `start_ns`, ends.
    pub(crate) fn end_frame(&mut self, seq: u64, frame: u64, start_ns: u64, end_ns: u64) -> Result<(), Error> {
        self.begin_frame(seq, frame, start_ns)?;
        let name = self.name("frame")?;
        self.edge(seq, end_ns, CALLS, name, EdgeKind::End)?;
        self.is_in_frame = false;
        Ok(())
    }

    /// What is after the last frame is a frame that does not end.
    pub(crate) fn finish(&mut self, end_ns: u64) -> Result<(), Error> {
        if self.is_in_frame {
            let name = self.name("frame")?;
            self.edge_with(self.last_call, end_ns, CALLS, name, EdgeKind::End, EdgeFlags::UNFINISHED)?;
        }
        self.send()
    }
}
