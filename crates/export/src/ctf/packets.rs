//! Packets of events: what a reader of a stream takes in at once.

use std::io::Write;

use anytrace_core::Error;

use crate::pen::Pen;

/// What every packet begins with.
const MAGIC: u32 = 0xC1FC_1FC1;

/// Header and context: magic, stream, the times of the first and last event, the sizes, events discarded.
const HEAD_BYTES: usize = 4 + 4 + 8 + 8 + 8 + 8 + 8;

/// A packet ends with the event that fills it.
const FULL_BYTES: usize = 64 * 1024;

/// Packets being written.
pub(super) struct Packets<'a> {
    pen: Pen<'a>,
    events: Vec<u8>,
    first: u64,
    last: u64,
}

impl<'a> Packets<'a> {
    pub(super) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { pen: Pen::new(out), events: Vec::with_capacity(FULL_BYTES + FULL_BYTES / 4), first: 0, last: 0 }
    }

    /// Adds an event: a time that is never before the last one, and its bytes without it.
    pub(super) fn push(&mut self, time: u64, event: &[u8]) -> Result<(), Error> {
        let Some((id, rest)) = event.split_first() else { return Ok(()) };
        if self.events.is_empty() {
            self.first = time;
        }
        self.last = time;
        self.events.push(*id);
        self.events.extend_from_slice(&time.to_le_bytes());
        self.events.extend_from_slice(rest);
        if self.events.len() >= FULL_BYTES { self.packet() } else { Ok(()) }
    }

    /// Writes the last packet.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        if !self.events.is_empty() {
            self.packet()?;
        }
        self.pen.finish()
    }

    fn packet(&mut self) -> Result<(), Error> {
        let bits = (HEAD_BYTES + self.events.len()) as u64 * 8;
        let out = &mut self.pen.bytes;
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&0_u32.to_le_bytes());
        for number in [self.first, self.last, bits, bits, 0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.events);
        self.events.clear();
        self.pen.rest()
    }
}
