//! A Heph trace for the benchmark: 8 streams of 200 substreams each, in the old dialect.
//!
//! Each stream runs a scheduler: it polls, schedules, runs actors. What an actor does is in its own
//! substream, nested, children first, as the runtime writes it; names, attributes and sizes follow the
//! real traces of the corpus. Counters have no gap and the epoch comes first. Shares no code with the
//! crate that reads it.

use std::io::{self, Write};

const STREAMS: usize = 8;
const SUBSTREAMS: u64 = 200;
const FLUSH_BYTES: usize = 1 << 18;

/// Writes about `bytes` bytes; the same bytes every time.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let mut made = Maker { buffer: Vec::with_capacity(FLUSH_BYTES * 2), random: 0x9e37_79b9_7f4a_7c15 };
    made.epoch(1_610_113_734_118_010_000);
    let mut streams = [Stream::default(); STREAMS];
    for (id, stream) in (0..).zip(&mut streams) {
        *stream = Stream { id, counter: 0, now: 40_000 + u64::from(id) * 1_000 };
        made.event(stream, 0, 20_000, "Initialising the worker thread").end();
    }
    let mut written = 0;
    while written + (made.buffer.len() as u64) < bytes {
        let which = made.below(STREAMS as u64) as usize;
        made.iteration(&mut streams[which]);
        if made.buffer.len() >= FLUSH_BYTES {
            out.write_all(&made.buffer)?;
            written += made.buffer.len() as u64;
            made.buffer.clear();
        }
    }
    out.write_all(&made.buffer)
}

/// A worker thread: its number, its next counter, its clock.
#[derive(Clone, Copy, Default)]
struct Stream {
    id: u32,
    counter: u32,
    now: u64,
}

struct Maker {
    buffer: Vec<u8>,
    random: u64,
}

/// A packet whose size is filled in at its end.
struct Packet<'m> {
    buffer: &'m mut Vec<u8>,
    start: usize,
}

impl Maker {
    /// xorshift64 (Marsaglia 2003).
    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 20) % limit
    }

    fn epoch(&mut self, ns: u64) {
        let packet = Packet::start(&mut self.buffer, 0x75D1_1D4D);
        packet.buffer.extend_from_slice(b"\0\x05epoch");
        packet.buffer.extend_from_slice(&ns.to_be_bytes());
        packet.end();
    }

    /// One turn of a scheduler: about six scheduler events and a few runs of actors.
    fn iteration(&mut self, stream: &mut Stream) {
        let began = stream.now;
        let wait = 500 + self.below(40_000);
        stream.now += wait;
        self.event(stream, 0, wait, "Polling for OS events").end();
        stream.now += 700 + self.below(400);
        let ready = 1 + self.below(6);
        self.event(stream, 0, 100, "Scheduling thread-local processes based on timers").unsigned("amount", 0).end();
        stream.now += 600;
        self.event(stream, 0, 150, "Scheduling thread-local processes").unsigned("amount", ready).end();
        stream.now += 600;
        let scheduling = stream.now - began;
        let packet = self.event(stream, 0, scheduling, "Scheduling processes").unsigned("local amount", ready);
        packet.unsigned("shared amount", 0).unsigned("total amount", ready).end();
        for _ in 0..ready {
            self.run_actor(stream);
        }
    }

    /// Two or three events of an actor, the outer one last, and the run around them.
    fn run_actor(&mut self, stream: &mut Stream) {
        let actor = self.below(SUBSTREAMS);
        let pid = 140_463_617_000_000 + u64::from(stream.id) * 1_000_000 + actor * 528;
        let began = stream.now;
        stream.now += 300 + self.below(900);
        let body = stream.now;
        stream.now += 50 + self.below(2_000);
        let (message, taken) = (self.below(100_000), stream.now - body);
        self.event(stream, pid, taken, "receive").unsigned("message", message).end();
        stream.now += 400 + self.below(3_000);
        let computed = 300 + self.below(100);
        let (n, result, kind) = (self.below(40), self.below(1 << 40), self.below(16));
        let packet = self.event(stream, pid, computed, "compute").unsigned("n", n).unsigned("result", result);
        match kind {
            0 => packet.floats("samples", &[0.5, 123.456, 789.0]).end(),
            1 => packet.texts("path", &["index", "static", "style.css"]).end(),
            2 => packet.text("peer", "127.0.0.1:43210").end(),
            3 => packet.signed("drift", -17).end(),
            _ => packet.end(),
        }
        stream.now += 200 + self.below(800);
        let handled = stream.now - body;
        if self.below(2) == 0 {
            self.event(stream, pid, handled, "handling request").unsigned("id", message).end();
        }
        stream.now += 300;
        let ran = stream.now - began;
        let packet = self.event(stream, 0, ran, "Running thread-local process").unsigned("id", actor);
        packet.text("name", "local_worker").end();
        stream.now += 500 + self.below(500);
    }

    /// Begins an event that ends now.
    fn event(&mut self, stream: &mut Stream, substream: u64, duration: u64, description: &str) -> Packet<'_> {
        let packet = Packet::start(&mut self.buffer, 0xC1FC_1FB7);
        packet.buffer.extend_from_slice(&stream.id.to_be_bytes());
        packet.buffer.extend_from_slice(&stream.counter.to_be_bytes());
        for word in [substream, stream.now - duration, stream.now] {
            packet.buffer.extend_from_slice(&word.to_be_bytes());
        }
        stream.counter = stream.counter.wrapping_add(1);
        packet.string(description)
    }
}

impl<'m> Packet<'m> {
    fn start(buffer: &'m mut Vec<u8>, magic: u32) -> Self {
        let start = buffer.len();
        buffer.extend_from_slice(&magic.to_be_bytes());
        buffer.extend_from_slice(&[0; 4]);
        Self { buffer, start }
    }

    fn string(self, text: &str) -> Self {
        let length = text.len() as u16;
        self.buffer.extend_from_slice(&length.to_be_bytes());
        self.buffer.extend_from_slice(text.as_bytes());
        self
    }

    fn attribute(self, name: &str, kind: u8) -> Self {
        let packet = self.string(name);
        packet.buffer.push(kind);
        packet
    }

    fn unsigned(self, name: &str, value: u64) -> Self {
        let packet = self.attribute(name, 1);
        packet.buffer.extend_from_slice(&value.to_be_bytes());
        packet
    }

    fn signed(self, name: &str, value: i64) -> Self {
        let packet = self.attribute(name, 2);
        packet.buffer.extend_from_slice(&value.to_be_bytes());
        packet
    }

    fn text(self, name: &str, value: &str) -> Self {
        self.attribute(name, 4).string(value)
    }

    fn floats(self, name: &str, values: &[f64]) -> Self {
        let packet = self.attribute(name, 0x83);
        packet.buffer.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            packet.buffer.extend_from_slice(&value.to_be_bytes());
        }
        packet
    }

    fn texts(self, name: &str, values: &[&str]) -> Self {
        let mut packet = self.attribute(name, 0x84);
        packet.buffer.extend_from_slice(&(values.len() as u16).to_be_bytes());
        for value in values {
            packet = packet.string(value);
        }
        packet
    }

    fn end(self) {
        let size = (self.buffer.len() - self.start) as u32;
        self.buffer[self.start + 4..self.start + 8].copy_from_slice(&size.to_be_bytes());
    }
}
