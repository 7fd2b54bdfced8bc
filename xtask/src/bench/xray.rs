//! A large FDR trace of version 5: five threads, 26 functions, one buffer a thread, nested calls.
//!
//! Modelled on the traces of `programs/big.cpp` in the corpus: mostly function records, a processor record now and
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

/// Writes about `bytes` bytes of trace; the same bytes every time.
pub(crate) fn generate(out: &mut dyn Write, bytes: u64) -> io::Result<()> {
    let buffer_bytes = (bytes.saturating_sub(HEADER_BYTES) / THREADS).max(256);
    let mut header = Vec::with_capacity(32);
    header.extend_from_slice(&5_u16.to_le_bytes());
    header.extend_from_slice(&1_u16.to_le_bytes());
    header.extend_from_slice(&3_u32.to_le_bytes());
    header.extend_from_slice(&FREQUENCY.to_le_bytes());
    header.extend_from_slice(&buffer_bytes.to_le_bytes());
    header.extend_from_slice(&0_u64.to_le_bytes());
    out.write_all(&header)?;
    for thread in 0..THREADS {
        buffer(out, thread, buffer_bytes)?;
    }
    Ok(())
}

/// One thread's buffer. Its length is known before it is written: pieces of fixed length, each a processor record and
/// function records.
fn buffer(out: &mut dyn Write, thread: u64, bytes: u64) -> io::Result<()> {
    const PIECE_RECORDS: u64 = 4096;
    const PIECE_BYTES: u64 = 16 + 8 * PIECE_RECORDS;
    let pieces = (bytes.saturating_sub(64) / PIECE_BYTES).max(1);
    let extents = 48 + pieces * PIECE_BYTES;
    let process = 4711_i32;
    let number = process + i32::try_from(thread).unwrap_or(0);
    let mut piece = Vec::with_capacity(40_000);
    metadata(&mut piece, 7, &[&extents.to_le_bytes()]);
    metadata(&mut piece, 0, &[&number.to_le_bytes()]);
    metadata(&mut piece, 4, &[&(1000 + thread).to_le_bytes(), &123_456_u32.to_le_bytes()]);
    metadata(&mut piece, 9, &[&process.to_le_bytes()]);
    let mut random = Random(7919 * (thread + 1) + 1);
    let mut stack: Vec<u32> = Vec::new();
    let mut tsc = 2_159_317_621_045 + thread * 1_000_003;
    for n in 0..pieces {
        let cpu = u16::try_from(random.below(2)).unwrap_or(0);
        metadata(&mut piece, 2, &[&cpu.to_le_bytes(), &tsc.to_le_bytes()]);
        for left in (0..PIECE_RECORDS).rev() {
            let is_last_piece = n + 1 == pieces;
            let must_leave = is_last_piece && stack.len() as u64 > left;
            let may_enter = stack.len() < 12 && !(is_last_piece && stack.len() as u64 + 1 > left);
            let enters = !must_leave && may_enter && (stack.is_empty() || random.below(2) == 0);
            let (kind, id) = match (enters, stack.pop()) {
                (false, Some(top)) => (1, top),
                (_, top) => {
                    stack.extend(top);
                    let id = 1 + u32::try_from(random.below(26)).unwrap_or(0);
                    stack.push(id);
                    (0, id)
                }
            };
            let spread = if random.below(50) == 0 { 20_000 } else { 300 };
            let delta = 20 + random.below(spread);
            tsc += delta;
            piece.extend_from_slice(&(id << 4 | kind << 1).to_le_bytes());
            piece.extend_from_slice(&u32::try_from(delta).unwrap_or(0).to_le_bytes());
        }
        out.write_all(&piece)?;
        piece.clear();
    }
    Ok(())
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
