//! `casemate collect`: takes the records of all CPUs out of the ring buffers that `casemate_trace.h` writes, in the order
//! in which they were made.
//!
//! The memory belongs to another program, which may write to it at any time, be killed at any time, or be hostile: no
//! number in it is trusted. Losses are comments in the trace, by which a checker knows that its verdict is not `ok`.

mod layout;
mod ring;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use anytrace_core::{Diagnostic, Error, Rule, Sink};

use crate::wire::output::GAP;
use layout::{DATA_BYTES, RINGS_MAX, SESSION_BYTES, Session, session_at};
use ring::{Look, Ring};

/// The header of the rings, or of one ring, contains impossible numbers.
pub static BAD_RING: Rule =
    Rule::error("casemate/bad-ring", "the header of a ring buffer contains numbers that no program writes");
/// Bytes of a ring are not a complete record.
pub static TORN_RECORD: Rule =
    Rule::error("casemate/torn-record", "a record in a ring buffer is incomplete or was overwritten");

/// Bytes after which [`Rings::read`] returns.
const TEXT_BYTES: usize = 1 << 20;

/// Bytes kept of all rings at once; each ring gets its share.
const KEPT_BYTES: usize = 32 << 20;

/// The memory of the program that writes: a shared file, a device, or an image.
pub trait Memory {
    /// Reads exactly so many bytes.
    ///
    /// # Errors
    /// I/O errors; the end of the memory is one.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes all bytes. Images are not written to.
    ///
    /// # Errors
    /// I/O errors.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Its length; none for a device that has none.
    ///
    /// # Errors
    /// I/O errors.
    fn length_bytes(&self) -> io::Result<Option<u64>>;
}

/// Whether more records can come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Some CPU may be at work on a record: those with higher numbers wait for it.
    Open,
    /// No CPU writes any more: what is not complete is lost.
    Final,
}

/// What the program that writes is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It writes, as far as the memory says.
    Writing,
    /// It said that nothing follows.
    Closed,
    /// It prepared the memory again: what was not read is gone.
    Replaced,
}

/// What was read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Records written to the trace.
    pub records: u64,
    /// Records taken out before, by somebody else.
    pub earlier: u64,
    /// Records that found their ring full.
    pub dropped: u64,
    /// Records that a CPU began and did not finish, or that were damaged.
    pub missing: u64,
}

/// The ring buffers of one program.
///
/// State between calls: `next` is the number of the next record to write; `fronts` has the number of each ring's first
/// record that is not written yet, where it is known and complete.
#[derive(Debug)]
pub struct Rings<M> {
    memory: M,
    session: Session,
    rings: Vec<Ring>,
    fronts: BinaryHeap<Reverse<(u64, usize)>>,
    next: u64,
    /// Numbers below were written before the memory was opened.
    first: u64,
    /// A gap below this number is due to damage that was reported.
    damaged_until: u64,
    counts: Counts,
    /// The comment about what was taken out before is due.
    owes_earlier: bool,
    complaint: Option<Diagnostic>,
    is_replaced: bool,
}

impl<M: Memory> Rings<M> {
    /// Opens the memory; none where no program has prepared it (yet).
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Malformed`] for a header with impossible numbers; I/O errors.
    pub fn open(memory: M) -> Result<Option<Self>, Error> {
        let length = memory.length_bytes().map_err(failed)?;
        if length.is_some_and(|length| length < SESSION_BYTES) {
            return Ok(None);
        }
        let Some(session) = read_session(&memory)? else { return Ok(None) };
        let bad = |at, field: &'static str, expected: String, found: u64| {
            let diagnostic = BAD_RING.at(at).field(field).expected(expected).found(found.to_string());
            Err(Error::malformed(diagnostic))
        };
        if session.rings == 0 || session.rings > RINGS_MAX {
            let expected = format!("1 to {RINGS_MAX}");
            return bad(session_at::RINGS, "number of rings", expected, session.rings.into());
        }
        let bytes = session.ring_bytes;
        if !DATA_BYTES.contains(&bytes) || !bytes.is_power_of_two() {
            let expected = format!("a power of two from {} to {}", DATA_BYTES.start(), DATA_BYTES.end());
            return bad(session_at::RING_BYTES, "bytes of a ring", expected, bytes.into());
        }
        let total = session.total_bytes();
        if let Some(length) = length.filter(|length| *length < total) {
            let expected = format!("{total} bytes for {} rings of {bytes} bytes", session.rings);
            return bad(session_at::RINGS, "length of the memory", expected, length);
        }
        let mut complaint = None;
        let mut first = session.drained;
        if first > session.next {
            let expected = format!("at most {}, the number of the next record", session.next);
            let diagnostic = BAD_RING.at(session_at::DRAINED).field("records taken out").expected(expected);
            complaint = Some(diagnostic.found(std::mem::take(&mut first).to_string()));
        }
        let share = (KEPT_BYTES / session.rings as usize).clamp(8 << 10, 1 << 20);
        let base = |number: u32| SESSION_BYTES + u64::from(number) * session.stride();
        Ok(Some(Self {
            memory,
            session,
            rings: (0..session.rings).map(|number| Ring::new(number, base(number), share)).collect(),
            fronts: BinaryHeap::new(),
            next: first,
            first,
            damaged_until: if complaint.is_some() { session.next } else { 0 },
            counts: Counts { earlier: first, ..Counts::default() },
            owes_earlier: first > 0,
            complaint,
            is_replaced: false,
        }))
    }

    /// How many rings there are: one for each CPU.
    pub fn count(&self) -> usize {
        self.rings.len()
    }

    /// What was read so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of the record that a CPU began and did not finish yet, while later ones wait for it.
    pub fn waits_for(&self) -> Option<u64> {
        (!self.fronts.is_empty()).then_some(self.next)
    }

    /// The process that writes, where the program named it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn process(&self) -> Result<Option<u64>, Error> {
        Ok(read_session(&self.memory)?.map(|session| session.process).filter(|process| *process != 0))
    }

    /// What the program is doing. Read what is there after this: then a closed trace is complete.
    ///
    /// # Errors
    /// I/O errors.
    pub fn state(&self) -> Result<State, Error> {
        Ok(match read_session(&self.memory)? {
            Some(now) if now.session == self.session.session && !self.is_replaced => {
                if now.is_closed {
                    State::Closed
                } else {
                    State::Writing
                }
            }
            _ => State::Replaced,
        })
    }

    /// Adds the next records to `text`, in order, about 1 MiB at most. Returns how many there were.
    ///
    /// # Errors
    /// I/O errors, and what the sink returns. Damage is reported to the sink and skipped.
    pub fn read(&mut self, end: End, text: &mut Vec<u8>, sink: &mut dyn Sink) -> Result<u64, Error> {
        let before = self.counts.records;
        self.complaint.take().map_or(Ok(()), |complaint| sink.report(complaint))?;
        if std::mem::take(&mut self.owes_earlier) {
            lose(text, format_args!("{} records were taken out before", self.first));
        }
        while text.len() < TEXT_BYTES && !self.is_replaced {
            let has_more = self.look(end, sink)?;
            // A drop that happened before a record is seen before that record is written.
            self.count_drops(text)?;
            let taken = self.merge(text);
            if taken > 0 || has_more {
                continue;
            }
            if !self.step_over(end, text) {
                break;
            }
        }
        if end == End::Final && self.fronts.is_empty() && text.len() < TEXT_BYTES && !self.is_replaced {
            let made = read_session(&self.memory)?.map_or(self.next, |session| session.next);
            self.miss(made, text);
        }
        Ok(self.counts.records - before)
    }

    /// Gives the room of everything that was read back to the CPUs. Call it when the text is in a safe place.
    ///
    /// # Errors
    /// I/O errors.
    pub fn release(&mut self) -> Result<(), Error> {
        if self.is_replaced {
            return Ok(());
        }
        // The number first: a reader that continues after a crash skips what is below it.
        let order = self.session.order;
        self.memory.write_at(session_at::DRAINED, &order.bytes(self.next)).map_err(unwritable)?;
        self.rings.iter_mut().try_for_each(|ring| ring.release(&self.memory, order)).map_err(unwritable)
    }

    /// Finds the first record of each ring. True where looking again may find more.
    fn look(&mut self, end: End, sink: &mut dyn Sink) -> Result<bool, Error> {
        let mut has_more = false;
        // What is read below was made before: its numbers are smaller.
        for at in 0..self.rings.len() {
            let Some(ring) = self.rings.get_mut(at).filter(|ring| ring.needs_look()) else { continue };
            has_more |= ring.fill(&self.memory, &self.session).map_err(failed)?;
            let Some(session) = read_session(&self.memory)? else {
                self.is_replaced = true;
                return Ok(false);
            };
            // An image may have been copied while it was written to, and its parts at different times.
            let made = if end == End::Final { u64::MAX } else { session.next };
            let look = ring.look(&self.session, self.next..made, self.first);
            match look {
                Look::Nothing => {}
                Look::Again => has_more = true,
                Look::Record(number) => self.fronts.push(Reverse((number, at))),
                Look::Damage(diagnostic, until) => {
                    if session.session != self.session.session {
                        self.is_replaced = true;
                        return Ok(false);
                    }
                    self.damaged_until = self.damaged_until.max(until.unwrap_or(session.next));
                    sink.report(*diagnostic)?;
                    has_more = true;
                }
            }
        }
        Ok(has_more)
    }

    /// Writes the records whose turn it is; returns how many.
    fn merge(&mut self, text: &mut Vec<u8>) -> u64 {
        let before = self.counts.records;
        while let Some(Reverse((number, at))) = self.fronts.peek().copied() {
            if number != self.next || text.len() >= TEXT_BYTES {
                break;
            }
            self.fronts.pop();
            self.next = self.next.saturating_add(1);
            self.counts.records += 1;
            let Some(ring) = self.rings.get_mut(at) else { continue };
            ring.take(text);
            // The next one is often here already.
            if let Some(number) = ring.peek(self.session.order, self.next) {
                self.fronts.push(Reverse((number, at)));
            }
        }
        self.counts.records - before
    }

    /// Nothing has the next number: goes on with a later one where nobody can make it any more.
    fn step_over(&mut self, end: End, text: &mut Vec<u8>) -> bool {
        let Some(Reverse((number, _))) = self.fronts.peek().copied() else { return false };
        if end == End::Open && self.next >= self.damaged_until {
            return false;
        }
        let until = if end == End::Final { number } else { number.min(self.damaged_until) };
        self.miss(until, text);
        true
    }

    /// The records up to a number do not exist.
    fn miss(&mut self, until: u64, text: &mut Vec<u8>) {
        let count = until.saturating_sub(self.next);
        if count > 0 {
            lose(text, format_args!("{count} records were begun and not finished, or damaged"));
            self.counts.missing = self.counts.missing.saturating_add(count);
            self.next = until;
        }
    }

    fn count_drops(&mut self, text: &mut Vec<u8>) -> Result<(), Error> {
        for ring in &mut self.rings {
            let dropped = ring.new_drops(&self.memory, self.session.order).map_err(failed)?;
            if dropped > 0 {
                lose(text, format_args!("a full ring dropped {dropped} records"));
                self.counts.dropped = self.counts.dropped.saturating_add(dropped);
            }
        }
        Ok(())
    }
}

/// A comment about a loss, and the one by which a checker knows of it.
fn lose(text: &mut Vec<u8>, what: std::fmt::Arguments<'_>) {
    text.extend_from_slice(format!("; {what}\n").as_bytes());
    text.extend_from_slice(GAP);
    text.push(b'\n');
}

fn read_session(memory: &impl Memory) -> Result<Option<Session>, Error> {
    let mut bytes = [0; SESSION_BYTES as usize];
    memory.read_at(0, &mut bytes).map_err(failed)?;
    Ok(Session::parse(&bytes))
}

fn failed(error: io::Error) -> Error {
    Error::io("cannot read the ring buffers", error)
}

fn unwritable(error: io::Error) -> Error {
    Error::io("cannot give room in the ring buffers back", error)
}

/// A diagnostic about bytes of a ring.
fn torn(at: u64, ring: u32, bytes: u64) -> Diagnostic {
    TORN_RECORD.at(at).field(format!("ring {ring}")).expected("a complete record").skipped(bytes)
}
