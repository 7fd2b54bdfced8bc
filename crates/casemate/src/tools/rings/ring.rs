//! One ring: its bytes as far as they are read, and its first record.

use std::io;
use std::ops::Range;

use anytrace_core::Diagnostic;

use super::layout::{FRAME_BYTES, Front, Order, RECORD_BYTES_MAX, RING_BYTES, Session, padded, ring_at};
use super::{BAD_RING, Memory, torn};

/// How often bytes are read again before they count as damaged: a processor may make them visible late.
const TRIES: u8 = 3;

/// How often a header is read to see the same twice.
const HEADER_TRIES: u8 = 100;

/// A ring. `bytes[start..]` are those from position `tail` on; `front` is the first record there, if it is known.
#[derive(Debug)]
pub(super) struct Ring {
    number: u32,
    /// Offset of its header.
    base: u64,
    share: usize,
    is_known: bool,
    tail: u64,
    released: u64,
    head: u64,
    bytes: Vec<u8>,
    start: usize,
    front: Option<usize>,
    /// Drops that were reported, and whether that is to be stored.
    reported: u64,
    is_reported: bool,
    tries: u8,
    /// The first record is to be read again.
    is_stale: bool,
    /// Where damage began that did not end yet.
    damaged_from: Option<u64>,
    /// Its header is damaged: nothing more is read of it.
    is_dead: bool,
    complaint: Option<Diagnostic>,
}

/// What is at the front of a ring.
pub(super) enum Look {
    Nothing,
    /// The same bytes are to be read again.
    Again,
    /// A record with this number.
    Record(u64),
    /// Damage was passed; the numbers that may be missing because of it end here, where that is known.
    Damage(Box<Diagnostic>, Option<u64>),
}

impl Ring {
    pub(super) fn new(number: u32, base: u64, share: usize) -> Self {
        Self {
            number,
            base,
            share,
            is_known: false,
            tail: 0,
            released: 0,
            head: 0,
            bytes: Vec::new(),
            start: 0,
            front: None,
            reported: 0,
            is_reported: true,
            tries: 0,
            is_stale: false,
            damaged_from: None,
            is_dead: false,
            complaint: None,
        }
    }

    /// True where no record is at the front and one may come.
    pub(super) fn needs_look(&self) -> bool {
        self.front.is_none() && !self.is_dead
    }

    /// Reads what the CPU wrote meanwhile. True where there was something.
    pub(super) fn fill(&mut self, memory: &impl Memory, session: &Session) -> io::Result<bool> {
        if std::mem::take(&mut self.is_stale) {
            // No more than one record: a hostile ring could have every second one read again.
            let length = (self.bytes.len() - self.start).min(FRAME_BYTES + RECORD_BYTES_MAX);
            let ring_bytes = u64::from(session.ring_bytes);
            let (base, tail) = (self.base, self.tail);
            let front = self.bytes.get_mut(self.start..self.start + length).unwrap_or_default();
            read_around(memory, base, ring_bytes, tail, front)?;
        }
        let header = self.header(memory)?;
        let (order, ring_bytes) = (session.order, u64::from(session.ring_bytes));
        let head = order.u64(&header, 0);
        if !self.is_known {
            self.is_known = true;
            self.tail = order.u64(&header, 64);
            self.released = self.tail;
            self.reported = order.u64(&header, 80);
        }
        let kept = (self.bytes.len() - self.start) as u64;
        let distance = head.wrapping_sub(self.tail);
        if !head.is_multiple_of(16) || !self.tail.is_multiple_of(16) || distance > ring_bytes || distance < kept {
            self.is_dead = true;
            (self.bytes, self.start) = (Vec::new(), 0);
            let expected = format!("a multiple of 16, at most {ring_bytes} after the tail, {:#x}", self.tail);
            let field = format!("head of ring {}", self.number);
            self.complaint = Some(BAD_RING.at(self.base).field(field).expected(expected).found(format!("{head:#x}")));
            return Ok(false);
        }
        self.head = head;
        let wanted = (distance - kept).min(self.share.saturating_sub(self.bytes.len() - self.start) as u64);
        if wanted == 0 {
            return Ok(false);
        }
        self.bytes.drain(..std::mem::take(&mut self.start));
        let from = self.bytes.len();
        // At most the share of a ring.
        self.bytes.resize(from + usize::try_from(wanted).unwrap_or(0), 0);
        let position = self.tail.wrapping_add(from as u64);
        read_around(memory, self.base, ring_bytes, position, self.bytes.get_mut(from..).unwrap_or_default())?;
        Ok(true)
    }

    /// Its header, as it was at one time as far as the head is concerned: what another process writes need not be read
    /// at once.
    fn header(&self, memory: &impl Memory) -> io::Result<[u8; RING_BYTES as usize]> {
        let mut before = [0; RING_BYTES as usize];
        memory.read_at(self.base, &mut before)?;
        for _ in 0..HEADER_TRIES {
            let mut now = [0; RING_BYTES as usize];
            memory.read_at(self.base, &mut now)?;
            if now.first_chunk::<8>() == before.first_chunk::<8>() {
                return Ok(now);
            }
            before = now;
        }
        Ok(before)
    }

    /// Looks at the first record. Its number must be among `numbers`; those below `first` were written by an earlier
    /// reader.
    pub(super) fn look(&mut self, session: &Session, numbers: Range<u64>, first: u64) -> Look {
        if let Some(complaint) = self.complaint.take() {
            return Look::Damage(Box::new(complaint), None);
        }
        loop {
            let bytes = self.bytes.get(self.start..).unwrap_or_default();
            let has_all = self.head.wrapping_sub(self.tail) == bytes.len() as u64;
            match Front::parse(session.order, self.tail, bytes) {
                Front::Record { number, length } if number < first && self.damaged_from.is_none() => {
                    self.skip(FRAME_BYTES + padded(length));
                }
                Front::Record { number, length } if numbers.contains(&number) => {
                    self.tries = 0;
                    if let Some(diagnostic) = self.damage_ends() {
                        return Look::Damage(Box::new(diagnostic), Some(number));
                    }
                    self.front = Some(length);
                    return Look::Record(number);
                }
                Front::More if bytes.is_empty() || !has_all => {
                    return match self.damage_ends_with_the_ring(has_all) {
                        Some(diagnostic) => Look::Damage(Box::new(diagnostic), None),
                        None => Look::Nothing,
                    };
                }
                Front::Record { .. } | Front::More | Front::Torn => {
                    if self.damaged_from.is_none() && self.tries < TRIES {
                        self.tries += 1;
                        self.is_stale = true;
                        return Look::Again;
                    }
                    self.damaged_from.get_or_insert(self.tail);
                    self.skip(FRAME_BYTES);
                }
            }
        }
    }

    /// The number of the record that follows the one just taken, where it is here and cannot be wrong.
    pub(super) fn peek(&mut self, order: Order, at_least: u64) -> Option<u64> {
        match Front::parse(order, self.tail, self.bytes.get(self.start..)?) {
            // Where it is far ahead, the slower way compares it with what was made.
            Front::Record { number, length } if number >= at_least && number - at_least < 1 << 20 => {
                self.front = Some(length);
                Some(number)
            }
            _ => None,
        }
    }

    /// Writes the first record.
    pub(super) fn take(&mut self, text: &mut Vec<u8>) {
        let Some(length) = self.front.take() else { return };
        let from = self.start + FRAME_BYTES;
        let record = self.bytes.get(from..from + length).unwrap_or_default();
        text.extend_from_slice(record);
        // The next record begins a line, whatever this one is.
        if record.last() != Some(&b'\n') {
            text.push(b'\n');
        }
        self.skip(FRAME_BYTES + padded(length));
    }

    fn skip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes.len() - self.start);
        self.start += bytes;
        self.tail = self.tail.wrapping_add(bytes as u64);
    }

    fn damage_ends(&mut self) -> Option<Diagnostic> {
        let from = self.damaged_from.take()?;
        Some(torn(self.base, self.number, self.tail.wrapping_sub(from)))
    }

    /// The same where no complete record follows.
    fn damage_ends_with_the_ring(&mut self, has_all: bool) -> Option<Diagnostic> {
        if has_all { self.damage_ends() } else { None }
    }

    /// Records dropped since the last call.
    pub(super) fn new_drops(&mut self, memory: &impl Memory, order: Order) -> io::Result<u64> {
        if self.is_dead || !self.is_known {
            return Ok(0);
        }
        let dropped = order.u64(&self.header(memory)?, 8);
        let new = dropped.wrapping_sub(self.reported);
        // A count that goes back is damage, but of nothing that matters.
        if new == 0 || new > u64::MAX / 2 {
            return Ok(0);
        }
        (self.reported, self.is_reported) = (dropped, false);
        Ok(new)
    }

    /// Stores how far it was read.
    pub(super) fn release(&mut self, memory: &impl Memory, order: Order) -> io::Result<()> {
        if self.released != self.tail && !self.is_dead {
            let tail = order.bytes(self.tail);
            // Both at once: the CPU believes them when they are the same.
            let mut both = [0; 16];
            both.iter_mut().zip(tail.iter().chain(&tail)).for_each(|(to, from)| *to = *from);
            memory.write_at(self.base + ring_at::TAIL, &both)?;
            self.released = self.tail;
        }
        if !self.is_reported {
            memory.write_at(self.base + ring_at::REPORTED, &order.bytes(self.reported))?;
            self.is_reported = true;
        }
        Ok(())
    }
}

/// Reads the bytes of a ring from a position on, around its end.
fn read_around(memory: &impl Memory, base: u64, ring_bytes: u64, position: u64, bytes: &mut [u8]) -> io::Result<()> {
    let (mut position, mut rest) = (position, bytes);
    while !rest.is_empty() {
        let at = position & (ring_bytes - 1);
        let piece = usize::try_from(ring_bytes - at).unwrap_or(usize::MAX).min(rest.len());
        let (now, later) = rest.split_at_mut(piece);
        memory.read_at(base + RING_BYTES + at, now)?;
        position = position.wrapping_add(piece as u64);
        rest = later;
    }
    Ok(())
}

const _: () = assert!(8 << 10 > FRAME_BYTES + RECORD_BYTES_MAX, "the smallest share has the longest record");
