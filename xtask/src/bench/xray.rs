//! A large FDR trace of version 5: five threads, 26 functions, nested calls; one buffer a thread, or many.
//!
//! Modeled on the traces of `programs/big.cpp` in the corpus: mostly function records, a processor record now and
//! then, deltas of a few dozen to a few thousand ticks. Shares no code with the reader it measures.

use std::io::{self, Write};

const THREADS: u64 = 5;
const HEADER_BYTES: u64 = 32;
const FREQUENCY: u64 = 2_596_122_000;

/// xorshift64 (Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % below
    }
}

/// Function records of a piece, and its bytes with the processor record in front of them.
const PIECE_RECORDS: u64 = 4096;
const PIECE_BYTES: u64 = 16 + 8 * PIECE_RECORDS;
const PREAMBLE_BYTES: u64 = 64;

/// Writes about `bytes` bytes of trace, one buffer a thread; the same bytes every time. As in the program, the first
/// thread only waits for the others.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let buffer_bytes = (bytes.saturating_sub(HEADER_BYTES) / (THREADS - 1)).max(256);
    write_header(out, buffer_bytes)?;
    let pieces = (buffer_bytes.saturating_sub(PREAMBLE_BYTES) / PIECE_BYTES).max(1);
    for number in 0..THREADS {
        Thread::new(number).buffer(out, if number == 0 { 1 } else { pieces }, true)?;
    }
    Ok(())
}

/// Writes about `bytes` bytes of trace in buffers of 64 KiB, as a long recording leaves them: the threads in turn.
pub(crate) fn generate_blocks(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    blocks(out, bytes, THREADS, None)
}

/// The same of one thread, as most programs have, and of calls that most programs make: each function calls two others,
/// so that there are some ten thousand stacks and not millions.
pub(crate) fn generate_one(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    blocks(out, bytes, 1, Some(2))
}

fn blocks(out: &mut dyn Write, bytes: u64, threads: u64, callees: Option<u64>) -> io::Result<()> {
    const BUFFER_PIECES: u64 = 2;
    let buffer_bytes = PREAMBLE_BYTES + BUFFER_PIECES * PIECE_BYTES;
    write_header(out, buffer_bytes)?;
    let rounds = (bytes.saturating_sub(HEADER_BYTES) / threads / buffer_bytes).max(1);
    let mut threads: Vec<Thread> = (0..threads).map(|number| Thread { callees, ..Thread::new(number) }).collect();
    for round in 1..=rounds {
        for thread in &mut threads {
            thread.buffer(out, BUFFER_PIECES, round == rounds)?;
        }
    }
    Ok(())
}

fn write_header(out: &mut dyn Write, buffer_bytes: u64) -> io::Result<()> {
    let mut header = Vec::with_capacity(32);
    header.extend_from_slice(&5_u16.to_le_bytes());
    header.extend_from_slice(&1_u16.to_le_bytes());
    header.extend_from_slice(&3_u32.to_le_bytes());
    header.extend_from_slice(&FREQUENCY.to_le_bytes());
    header.extend_from_slice(&buffer_bytes.to_le_bytes());
    header.extend_from_slice(&0_u64.to_le_bytes());
    out.write_all(&header)
}

/// One thread of the traced program.
struct Thread {
    number: u64,
    random: Random,
    stack: Vec<u32>,
    tsc: u64,
    /// How many others a function calls; none: any.
    callees: Option<u64>,
}

impl Thread {
    fn new(number: u64) -> Self {
        let tsc = 2_159_317_621_045 + number * 1_000_003;
        Self { number, random: Random(7919 * (number + 1) + 1), stack: Vec::new(), tsc, callees: None }
    }

    /// One buffer. Its length is known before it is written: pieces of fixed length, each a processor record and
    /// function records. All calls are left by the end of the last.
    fn buffer(&mut self, out: &mut dyn Write, pieces: u64, is_last: bool) -> io::Result<()> {
        let extents = 48 + pieces * PIECE_BYTES;
        let process = 4711_i32;
        let number = process + i32::try_from(self.number).unwrap_or(0);
        let mut piece = Vec::with_capacity(40_000);
        metadata(&mut piece, 7, &[&extents.to_le_bytes()]);
        metadata(&mut piece, 0, &[&number.to_le_bytes()]);
        metadata(&mut piece, 4, &[&(1000 + self.number).to_le_bytes(), &123_456_u32.to_le_bytes()]);
        metadata(&mut piece, 9, &[&process.to_le_bytes()]);
        for n in 1..=pieces {
            let cpu = u16::try_from(self.random.below(2)).unwrap_or(0);
            metadata(&mut piece, 2, &[&cpu.to_le_bytes(), &self.tsc.to_le_bytes()]);
            for left in (0..PIECE_RECORDS).rev() {
                self.record(&mut piece, (is_last && n == pieces).then_some(left));
            }
            out.write_all(&piece)?;
            piece.clear();
        }
        Ok(())
    }

    /// One function record; `left` come after it, where that is to be the end.
    fn record(&mut self, piece: &mut Vec<u8>, left: Option<u64>) {
        let must_leave = left.is_some_and(|left| self.stack.len() as u64 > left);
        let may_enter = self.stack.len() < 12 && left.is_none_or(|left| (self.stack.len() as u64) < left);
        let enters = !must_leave && may_enter && (self.stack.is_empty() || self.random.below(2) == 0);
        let (kind, id) = match (enters, self.stack.pop()) {
            (false, Some(top)) => (1, top),
            (_, top) => {
                self.stack.extend(top);
                let next = match (self.callees, top) {
                    (Some(callees), Some(top)) => (u64::from(top) * callees + self.random.below(callees)) % 26,
                    _ => self.random.below(26),
                };
                let id = 1 + u32::try_from(next).unwrap_or(0);
                self.stack.push(id);
                (0, id)
            }
        };
        let spread = if self.random.below(50) == 0 { 20_000 } else { 300 };
        let delta = 20 + self.random.below(spread);
        self.tsc += delta;
        piece.extend_from_slice(&(id << 4 | kind << 1).to_le_bytes());
        piece.extend_from_slice(&u32::try_from(delta).unwrap_or(0).to_le_bytes());
    }
}

/// Sixteen bytes: the kind, the fields, zeros.
fn metadata(out: &mut Vec<u8>, kind: u8, fields: &[&[u8]]) {
    let end = out.len() + 16;
    out.push(kind << 1 | 1);
    for field in fields {
        out.extend_from_slice(field);
    }
    out.resize(end, 0);
}
