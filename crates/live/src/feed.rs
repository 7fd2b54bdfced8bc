//! Splits the bytes of a stream into packets: the latest read, and the half packet that waits for its rest.

use std::io::{ErrorKind, Read};
use std::time::{Duration, Instant};

use anytrace_core::{Error, Limits};
use anytrace_heph::{Framer, Layout, parse};

use crate::pool::{Pool, READ_BYTES, Spilled};
use crate::source::Intake;

/// Bytes of half packets that every stream may buffer, whatever others use.
pub(crate) const SMALL_BYTES: usize = 1 << 16;

/// Buffer that all streams read into.
pub(crate) const SCRATCH_BYTES: usize = SMALL_BYTES + READ_BYTES;

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    /// This many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The end of the data.
    End,
    /// There are bytes, but others hold the memory they need, and there is no disk for them: the sender has to wait.
    NoRoom,
}

/// A stream of packets.
#[derive(Debug)]
pub(crate) struct Feed {
    framer: Framer,
    /// The front of a long packet that found no room in memory.
    spilled: Option<Spilled>,
    /// Bytes received and not used yet, after those.
    pending: Vec<u8>,
    /// Bytes that must be there before a look is worth it.
    need: usize,
    /// Since when the packet at the front waits for its rest.
    half_since: Option<Instant>,
    /// Bytes taken of the pool.
    reserved: usize,
    packet_bytes_max: u64,
    /// Bytes whose packets were passed on.
    pub(crate) taken: u64,
}

impl Feed {
    pub(crate) fn new(packet_bytes_max: u64) -> Self {
        let limits = Limits::default().with_record_bytes_max(packet_bytes_max);
        Self {
            framer: Framer::new(&limits, true),
            spilled: None,
            pending: Vec::new(),
            need: 0,
            half_since: None,
            reserved: 0,
            packet_bytes_max,
            taken: 0,
        }
    }

    /// Bytes that were read before it.
    pub(crate) fn begin_with(&mut self, bytes: Vec<u8>, now: Instant) {
        self.half_since = (!bytes.is_empty()).then_some(now);
        self.pending = bytes;
    }

    /// Reads once, at most `most` bytes, and passes on the packets that are now complete.
    pub(crate) fn read(
        &mut self,
        from: &mut impl Read,
        scratch: &mut [u8],
        most: usize,
        pool: &mut Pool,
        intake: &mut Intake<'_, '_>,
    ) -> Result<Got, Error> {
        if self.spilled.is_some() {
            return self.read_spilled(from, scratch, most, pool, intake);
        }
        let waiting = self.pending.len();
        let (front, space) = scratch.split_at_mut(SMALL_BYTES.min(scratch.len()));
        let most = most.min(READ_BYTES).min(space.len());
        if waiting > SMALL_BYTES || waiting + most > SMALL_BYTES && self.need > SMALL_BYTES {
            // All the packet needs or nothing: streams that each have a part would wait for one another.
            let most_needed = self.need.max(waiting) + READ_BYTES;
            if !self.hold(most_needed, pool) {
                self.spilled = pool.spill(most_needed);
                pool.give_back(std::mem::take(&mut self.reserved));
                return match self.spilled {
                    Some(_) => self.read_spilled(from, scratch, most, pool, intake),
                    None => Ok(Got::NoRoom),
                };
            }
            // But memory is taken only for received bytes.
            let soon = (2 * (waiting + most)).min(self.need.max(waiting) + READ_BYTES);
            self.pending.reserve_exact(soon - waiting);
        }
        let got = match read_once(from, space.get_mut(..most).unwrap_or_default()) {
            Got::Bytes(got) => got,
            other => return Ok(other),
        };
        // Too few bytes for a packet, or too many to be put before the new ones: they are gathered in `pending`.
        if waiting + got < self.need || waiting > SMALL_BYTES {
            self.pending.extend_from_slice(space.get(..got).unwrap_or_default());
            if self.pending.len() >= self.need {
                self.walk_pending(false, intake)?;
            }
        } else {
            // The waiting bytes are put before the new ones, so that complete packets are never copied.
            let start = SMALL_BYTES - waiting;
            if let Some(front) = front.get_mut(start..) {
                front.copy_from_slice(&self.pending);
            }
            let window = scratch.get(start..SMALL_BYTES + got).unwrap_or_default();
            let walked = self.framer.walk(window, false, intake)?;
            self.pending.clear();
            self.pending.extend_from_slice(window.get(walked.used..).unwrap_or_default());
            self.settle(walked.used, walked.need, intake.shared.now);
        }
        self.release(pool);
        Ok(Got::Bytes(got))
    }

    /// Reads once into the file of a long packet, and passes it on when it is complete.
    fn read_spilled(
        &mut self,
        from: &mut impl Read,
        scratch: &mut [u8],
        most: usize,
        pool: &mut Pool,
        intake: &mut Intake<'_, '_>,
    ) -> Result<Got, Error> {
        let Some(spilled) = &mut self.spilled else { return Ok(Got::NoRoom) };
        // Bytes that found no room on a full disk wait here, and their sender with them.
        if spilled.append(&mut self.pending).is_err() {
            return Ok(Got::NoRoom);
        }
        // Not more than the packet: it is read into memory when it is complete, but for a moment.
        let missing = self.need.saturating_sub(spilled.bytes).clamp(1, READ_BYTES);
        let space = scratch.get_mut(..missing.min(most)).unwrap_or_default();
        let got = match read_once(from, space) {
            Got::Bytes(got) => got,
            other => return Ok(other),
        };
        self.pending.extend_from_slice(space.get(..got).unwrap_or_default());
        if spilled.bytes + got >= self.need {
            self.walk_pending(false, intake)?;
            self.release(pool);
        }
        Ok(Got::Bytes(got))
    }

    /// Treats the waiting bytes as the end of the data.
    pub(crate) fn end(&mut self, pool: &mut Pool, intake: &mut Intake<'_, '_>) -> Result<(), Error> {
        self.walk_pending(true, intake)?;
        self.release(pool);
        Ok(())
    }

    /// True while it holds memory that others may need.
    pub(crate) fn holds_room(&self) -> bool {
        self.reserved > 0 || self.spilled.is_some()
    }

    /// Bytes of a packet whose rest has not arrived.
    pub(crate) fn unfinished(&self) -> u64 {
        (self.spilled.as_ref().map_or(0, |spilled| spilled.bytes) + self.pending.len()) as u64
    }

    /// True when the packet at the front has waited for its rest longer than that.
    pub(crate) fn is_stale(&self, now: Instant, idle: Duration) -> bool {
        self.half_since.is_some_and(|since| now.duration_since(since) >= idle)
    }

    /// True when a complete packet follows the start of the waiting one: its size is wrong. Otherwise the waiting
    /// starts anew.
    pub(crate) fn holds_a_later_packet(&mut self, now: Instant) -> bool {
        self.half_since = Some(now);
        let spilled = self.spilled.as_ref().map(|spilled| spilled.with(&self.pending).unwrap_or_default());
        let rest = spilled.as_ref().unwrap_or(&self.pending).get(4..).unwrap_or_default();
        let layout = Layout { packet_bytes_max: self.packet_bytes_max };
        (0..rest.len()).any(|at| {
            let rest = rest.get(at..).unwrap_or_default();
            matches!(rest.first(), Some(0xC1 | 0x75)) && parse(rest, &layout).is_ok()
        })
    }

    /// Passes on the packets that are complete.
    pub(crate) fn walk_pending(&mut self, is_end: bool, intake: &mut Intake<'_, '_>) -> Result<(), Error> {
        if let Some(spilled) = &mut self.spilled {
            self.pending = spilled.with(&self.pending)?;
            spilled.bytes = 0;
        }
        let pending = std::mem::take(&mut self.pending);
        let walked = self.framer.walk(&pending, is_end, intake);
        // Restored before the error is looked at, so that no bytes are lost with it.
        self.pending = pending;
        let walked = walked?;
        self.pending.drain(..walked.used);
        self.settle(walked.used, walked.need, intake.shared.now);
        Ok(())
    }

    fn settle(&mut self, used: usize, need: usize, now: Instant) {
        self.need = need;
        self.taken += used as u64;
        if self.pending.is_empty() {
            self.half_since = None;
        // A packet was completed, so another one waits now: its time begins.
        } else if used > 0 || self.half_since.is_none() {
            self.half_since = Some(now);
        }
    }

    /// Reserves room in the pool for this many bytes in total.
    fn hold(&mut self, bytes: usize, pool: &mut Pool) -> bool {
        let more = bytes.saturating_sub(self.reserved);
        let has_room = pool.take(more);
        self.reserved += if has_room { more } else { 0 };
        has_room
    }

    /// Returns the room that a long packet took.
    pub(crate) fn release(&mut self, pool: &mut Pool) {
        // Room is returned only when nothing long is expected either: it might not be had again.
        if self.holds_room() && self.pending.len().max(self.need) <= SMALL_BYTES {
            pool.give_back(std::mem::take(&mut self.reserved));
            pool.drop_spilled(self.spilled.take());
            self.pending.shrink_to(SMALL_BYTES);
        }
    }

    /// Returns all room: the stream has ended.
    pub(crate) fn leave(&mut self, pool: &mut Pool) {
        pool.give_back(std::mem::take(&mut self.reserved));
        pool.drop_spilled(self.spilled.take());
        self.pending = Vec::new();
    }
}

/// Reads once.
fn read_once(from: &mut impl Read, space: &mut [u8]) -> Got {
    match from.read(space) {
        Ok(0) => Got::End,
        Ok(got) => Got::Bytes(got),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Got::Nothing,
        // A connection that breaks off has ended.
        Err(_) => Got::End,
    }
}
