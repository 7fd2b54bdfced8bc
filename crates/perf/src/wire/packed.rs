//! The records in compressed ones: `PERF_RECORD_COMPRESSED` of `perf record -z`, and `PERF_RECORD_COMPRESSED2` of Linux
//! 6.16, which says how long its data are and is padded to 8 bytes (`perf.data-file-format.txt` of Linux).
//!
//! All compressed records of a file are one zstd stream, so what is behind damage in it cannot be read: later data
//! repeat earlier ones. A record may begin in one compressed record and end in the next, because the kernel's buffer is
//! a ring.

use std::collections::VecDeque;
use std::ops::Range;

use anytrace_core::text::escaped;
use anytrace_core::{Diagnostic, Endian, Error, Rule, ZstdStream};

use super::event::{self, Event, HEAD_BYTES, kind};
use super::fault::Need;
use super::resync::{Plausible, plausible};
use crate::rules;

/// How much is decompressed at a time.
const PIECE_BYTES: usize = 256 << 10;

/// A stream may be this many times as long as its compressed bytes, and [`FREE_BYTES`] more. Of a recording of stacks of
/// 64 KiB, 92 were measured.
const RATIO_MAX: u64 = 1000;
const FREE_BYTES: u64 = 64 << 20;

/// What [`Packed::pull`] found.
pub(super) enum Pulled {
    /// The next record: [`Packed::window`] begins with it, and it is this long.
    Record(usize),
    Damage(Diagnostic),
    /// The compressed record has no other record that ends in it.
    End,
}

/// Where a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Inside {
    /// The offset of the compressed record in which it begins.
    pub(super) around: u64,
    /// Where it begins in what that one contains.
    pub(super) at: u64,
}

impl Inside {
    /// A diagnostic about the byte `at` of the record.
    pub(super) fn diagnostic(self, rule: &'static Rule, at: usize) -> Diagnostic {
        within(rule.at(self.at.saturating_add(at as u64)), self.around)
    }
}

/// Sets the compressed record in which the offset counts.
pub(crate) fn within(diagnostic: Diagnostic, around: u64) -> Diagnostic {
    diagnostic.within(format!("compressed record at byte {around:#x}"))
}

/// How far the stream was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    /// No compressed record yet.
    #[default]
    Fresh,
    Running,
    /// Damaged: why it cannot be continued.
    Broken(&'static str),
}

/// Reads the records in compressed ones.
#[derive(Debug, Default)]
pub(super) struct Packed {
    stream: Option<ZstdStream>,
    state: State,
    /// Decompressed bytes; those that were not read yet are at this range.
    buffer: Vec<u8>,
    range: Range<usize>,
    /// The place of the first of them in all decompressed bytes.
    position: u64,
    /// The compressed records in which they are: the offset of each, and the position of its first byte.
    origins: VecDeque<(u64, u64)>,
    /// The compressed record that is being read: its offset and number, and its data in the reader's window.
    current: Option<(u64, u64)>,
    data: Range<usize>,
    /// True while the decoder may have more without other data.
    may_have_more: bool,
    fault: Option<String>,
    compressed_bytes: u64,
    /// What is decompressed, from the stream's start.
    bytes: u64,
    /// Compressed records that continue a damaged stream: offset and number of the first, their number and bytes.
    unread: Option<(u64, u64, u64, u64)>,
    /// The first of the last compressed records that records go across, each from one to the next.
    chain_from: u64,
    /// The first compressed record that a copy cannot have because of damage.
    damaged_from: Option<u64>,
    /// All bytes that were lost.
    pub(super) bytes_lost: u64,
}

impl Packed {
    /// Enters a compressed record at an offset of the input. Returns damage that makes it unreadable.
    pub(super) fn enter(&mut self, event: &Event<'_>, offset: u64, seq: u64) -> Result<Option<Diagnostic>, Error> {
        let (data, fault) = match data(event) {
            Ok(data) => (data, None),
            Err(expected) => (HEAD_BYTES..HEAD_BYTES, Some(expected)),
        };
        let bytes = event.bytes.get(data.clone()).unwrap_or_default();
        let is_start = ZstdStream::begins(bytes);
        let mut damage = None;
        if is_start {
            // The streams of another recording, or another thread of perf.
            damage = self.finish(seq);
            if self.state != State::Fresh {
                // perf reads one stream in a file.
                self.damage_from(offset);
            }
            self.stream = Some(ZstdStream::new()?);
            (self.state, self.compressed_bytes, self.bytes) = (State::Running, 0, 0);
        } else if let State::Broken(_) = self.state {
            let (_, _, records, lost) = self.unread.get_or_insert((offset, seq, 0, 0));
            (*records, *lost) = (*records + 1, *lost + event.bytes.len() as u64);
            return Ok(None);
        }
        if fault.is_none() && self.state == State::Fresh {
            self.break_off("whose start is missing", offset);
            self.bytes_lost += bytes.len() as u64;
            let diagnostic = rules::BAD_COMPRESSION.at(offset + data.start as u64).record(seq).field("data");
            let shown = escaped(bytes.get(..8).unwrap_or(bytes));
            let diagnostic = diagnostic.expected("the start of a zstd stream").found(format!("\"{shown}\""));
            let help = "of the files of perf record --switch-output, only the first has the start of the stream";
            return Ok(Some(diagnostic.skipped(bytes.len() as u64).help(help)));
        }
        if let Some((expected, found)) = fault {
            self.break_off("that is damaged", if self.range.is_empty() { offset } else { self.chain_from });
            self.bytes_lost += event.bytes.len() as u64;
            let diagnostic = rules::BAD_COMPRESSION.at(offset + HEAD_BYTES as u64).record(seq).field("data_size");
            return Ok(Some(diagnostic.expected(expected).found(found).skipped(event.bytes.len() as u64)));
        }
        if self.range.is_empty() {
            self.chain_from = offset;
        }
        let end = self.position + self.range.len() as u64;
        self.origins.retain(|(_, start)| *start < end);
        self.origins.push_back((offset, end));
        (self.current, self.may_have_more) = (Some((offset, seq)), false);
        self.compressed_bytes += bytes.len() as u64;
        self.data = data;
        Ok(damage)
    }

    /// True while a compressed record is being read.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.current.is_some()
    }

    /// The decompressed bytes that were not read yet.
    #[inline]
    pub(super) fn window(&self) -> &[u8] {
        self.buffer.get(self.range.clone()).unwrap_or_default()
    }

    /// Where the first of them is.
    #[inline]
    pub(super) fn inside(&self) -> Inside {
        let own = self.origins.iter().rev().find(|(_, start)| *start <= self.position);
        own.map_or(Inside::default(), |(around, start)| Inside { around: *around, at: self.position - start })
    }

    /// The first compressed record of which something could not be read.
    pub(super) fn damaged_from(&self) -> Option<u64> {
        self.damaged_from
    }

    /// Passes bytes of the window, and returns them.
    #[inline]
    pub(super) fn take(&mut self, bytes: usize) -> &[u8] {
        let start = self.range.start;
        self.advance(bytes);
        self.buffer.get(start..self.range.start).unwrap_or_default()
    }

    /// Passes bytes of the window.
    #[inline]
    fn advance(&mut self, bytes: usize) {
        let bytes = bytes.min(self.range.len());
        self.range.start += bytes;
        self.position += bytes as u64;
        while self.origins.get(1).is_some_and(|(_, start)| *start <= self.position) {
            self.origins.pop_front();
        }
    }

    /// Finds the next record; `input` is the reader's window, which begins with the compressed record.
    #[inline]
    pub(super) fn pull(&mut self, input: &[u8], endian: Endian, bytes_max: u64, seq: u64) -> Pulled {
        loop {
            match event::read(self.window(), endian) {
                Ok((_, used)) => return Pulled::Record(used),
                Err(Need::More(need)) if need <= bytes_max => {
                    let need = usize::try_from(need).unwrap_or(usize::MAX);
                    if !self.fill(need, input) {
                        return self.leave();
                    }
                }
                Err(Need::More(need)) => return self.too_long(need, input, endian, bytes_max, seq),
                Err(Need::Bad(fault)) => {
                    let window = self.window();
                    let found = format!("\"{}\"", escaped(window.get(..8).unwrap_or(window)));
                    let diagnostic = self.inside().diagnostic(&rules::BAD_RECORD, fault.at).record(seq);
                    let diagnostic = diagnostic.field(fault.field).expected(fault.expected).found(found);
                    return self.lose_until_record(diagnostic, input, endian, bytes_max);
                }
            }
        }
    }

    /// Reports what the end of a stream leaves open. `seq` is the number of the next record.
    #[cold]
    pub(super) fn finish(&mut self, seq: u64) -> Option<Diagnostic> {
        if let Some((offset, number, records, bytes)) = self.unread.take() {
            self.bytes_lost += bytes;
            let State::Broken(why) = self.state else { return None };
            let report = rules::BAD_COMPRESSION.at(offset).record(number).field("compressed");
            return Some(report.found(format!("{records} that continue a stream {why}")).skipped(bytes));
        }
        if self.range.is_empty() {
            return None;
        }
        let (inside, left) = (self.inside(), self.range.len());
        let damage = inside.diagnostic(&rules::TRUNCATED, left).record(seq).field("record");
        let damage = damage.expected("the rest of the record").found("the end of the compressed records");
        self.break_off("that is damaged", self.chain_from);
        Some(damage.skipped(left as u64))
    }

    /// Bytes of the input were lost, compressed records perhaps: what follows them cannot be read.
    #[cold]
    pub(super) fn gap(&mut self, seq: u64) -> Option<Diagnostic> {
        if self.state != State::Running {
            return None;
        }
        let damage = self.finish(seq);
        let last = self.origins.back().map_or(0, |(around, _)| *around);
        self.break_off("of which a part is missing", last + 1);
        damage
    }

    /// Decompresses more, for a window of `need` bytes; false if the compressed record has nothing more.
    fn fill(&mut self, need: usize, input: &[u8]) -> bool {
        if self.data.is_empty() && !self.may_have_more || self.fault.is_some() {
            return false;
        }
        let Some(stream) = &mut self.stream else { return false };
        let left = self.range.len();
        self.buffer.copy_within(self.range.clone(), 0);
        self.range = 0..left;
        let room = need.max(PIECE_BYTES);
        if self.buffer.len() < room {
            self.buffer.resize(room, 0);
        }
        let (input, output) = (input.get(self.data.clone()).unwrap_or_default(), &mut self.buffer[left..]);
        let room = output.len();
        let done = stream.decompress(input, output);
        self.data.start += done.used;
        self.may_have_more = done.written == room;
        self.range.end += done.written;
        self.bytes += done.written as u64;
        self.fault = done.fault;
        let most = self.compressed_bytes.saturating_mul(RATIO_MAX).saturating_add(FREE_BYTES);
        if self.fault.is_none() && self.bytes > most {
            self.fault = Some(format!("more than {most} bytes from {} bytes", self.compressed_bytes));
        }
        done.written > 0
    }

    /// Leaves a compressed record: without a fault, what is left continues in the next one.
    fn leave(&mut self) -> Pulled {
        let Some((offset, seq)) = self.current.take() else { return Pulled::End };
        let Some(fault) = self.fault.take() else { return Pulled::End };
        let lost = self.data.len() as u64;
        self.bytes_lost += lost;
        let at = offset + self.data.start as u64;
        self.break_off("that is damaged", self.chain_from);
        let diagnostic = rules::BAD_COMPRESSION.at(at).record(seq).field("data").expected("a zstd stream").found(fault);
        Pulled::Damage(diagnostic.skipped(lost))
    }

    /// The stream cannot be continued; a record that has not ended is lost. A copy has the compressed records before
    /// `from`.
    fn break_off(&mut self, why: &'static str, from: u64) {
        self.bytes_lost += self.range.len() as u64;
        self.position += self.range.len() as u64;
        (self.stream, self.state, self.current) = (None, State::Broken(why), None);
        (self.buffer, self.range) = (Vec::new(), 0..0);
        self.damage_from(from);
    }

    fn damage_from(&mut self, offset: u64) {
        self.damaged_from = Some(self.damaged_from.map_or(offset, |from| from.min(offset)));
    }

    #[cold]
    fn too_long(&mut self, need: u64, input: &[u8], endian: Endian, bytes_max: u64, seq: u64) -> Pulled {
        let diagnostic = self.inside().diagnostic(&rules::RECORD_TOO_LONG, 0).record(seq).field("size");
        let diagnostic = diagnostic.expected(format!("at most {bytes_max} bytes")).found(need.to_string());
        self.lose_until_record(diagnostic, input, endian, bytes_max)
    }

    /// Passes bytes until a record seems to begin, or the compressed record ends.
    #[cold]
    fn lose_until_record(&mut self, damage: Diagnostic, input: &[u8], endian: Endian, bytes_max: u64) -> Pulled {
        self.damage_from(self.chain_from);
        let mut lost = 0;
        loop {
            // The kernel's records begin at multiples of 8.
            if self.range.len() < 8 {
                self.fill(8, input);
            }
            let step = self.range.len().min(8);
            self.advance(step);
            lost += step as u64;
            if step < 8 || self.is_record_here(input, endian, bytes_max) {
                break;
            }
        }
        self.bytes_lost += lost;
        Pulled::Damage(damage.skipped(lost))
    }

    fn is_record_here(&mut self, input: &[u8], endian: Endian, bytes_max: u64) -> bool {
        loop {
            match plausible(self.window(), false, u64::MAX, endian) {
                Plausible::Yes => return true,
                Plausible::No => return false,
                Plausible::Unknown(need) => {
                    let need = usize::try_from(need.min(bytes_max)).unwrap_or(usize::MAX);
                    if need <= self.range.len() || !self.fill(need, input) {
                        // The rest is in the next compressed record.
                        return !self.range.is_empty()
                            && plausible(self.window(), true, u64::MAX, endian) == Plausible::Yes;
                    }
                }
            }
        }
    }
}

/// Where the compressed data of a record are; or what was expected of their length, and what it is.
fn data(event: &Event<'_>) -> Result<Range<usize>, (String, String)> {
    if event.kind == kind::COMPRESSED {
        return Ok(HEAD_BYTES..event.own_bytes);
    }
    let start = HEAD_BYTES + 8;
    let room = event.own_bytes.saturating_sub(start);
    let bytes = event.body().u64().unwrap_or(u64::MAX);
    match usize::try_from(bytes) {
        Ok(bytes) if bytes <= room => Ok(start..start + bytes),
        _ => Err((format!("at most {room}"), bytes.to_string())),
    }
}
