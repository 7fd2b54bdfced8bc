//! Parsing a piece of a trace before the pieces in front of it are known: another thread can do that, and what it finds
//! is what a walk finds, provided that the walk comes to the piece between two records.

use anytrace_casemate_model::Transition;
use anytrace_core::{Diagnostic, Error, OpenOptions, Sink};

use super::push::Push;
use super::{Here, Item, LineCounter, Mode, Pass, ReaderState, Walk};
use crate::wire::parse::parse_watched;
use crate::wire::record::Record;
use crate::wire::style::Radix;

/// A record, as far as a checker needs it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Step {
    pub(crate) thread: u32,
    /// Where it begins in its piece.
    pub(crate) at: u32,
    pub(crate) transition: Transition,
}

/// What is in a piece.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) steps: Vec<Step>,
    /// It consists of complete records, white space and comments. Otherwise the rest is not known.
    pub(crate) is_plain: bool,
    lines: u64,
    /// Where its last line begins, if that is in it.
    line_start: Option<usize>,
}

/// How pieces are parsed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ahead {
    radix: Radix,
    record_bytes_max: usize,
}

/// Damage ends the attempt.
struct Refuses;

impl Sink for Refuses {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        Err(Error::malformed(diagnostic))
    }
}

impl Ahead {
    pub(crate) fn new(options: &OpenOptions) -> Self {
        let (radix, record_bytes_max) = Walk::limits_of(options);
        Self { radix, record_bytes_max }
    }

    /// Parses a piece that begins at an offset of the trace, into `parsed`, whose memory is used again.
    pub(crate) fn parse(self, bytes: &[u8], offset: u64, parsed: &mut Parsed) {
        parsed.steps.clear();
        let (mut state, mut lines) = (ReaderState::default(), LineCounter::default());
        let mut is_other = false;
        let mut pass = Pass {
            window: bytes,
            until: usize::MAX,
            window_offset: offset,
            is_last: false,
            radix: self.radix,
            record_bytes_max: self.record_bytes_max,
            lines: &mut lines,
            sink: &mut Refuses,
        };
        let used = pass.run(&mut state, &mut |item, here| {
            match item {
                Item::Record(record) => parsed.steps.push(Step {
                    thread: record.thread,
                    // Pieces are much shorter than 4 GiB.
                    at: u32::try_from(here.offset - offset).unwrap_or(u32::MAX),
                    transition: record.transition,
                }),
                Item::Space(_) => {}
                Item::Claim(_) | Item::Output(_) | Item::Lost(_) => is_other = true,
            }
            Ok(())
        });
        parsed.is_plain = used.is_ok_and(|used| used == bytes.len()) && !is_other && state.is_between_records();
        parsed.lines = memchr::memchr_iter(b'\n', bytes).count() as u64;
        parsed.line_start = memchr::memrchr(b'\n', bytes).map(|last| last + 1);
    }

    /// The record at a place of a plain piece.
    pub(crate) fn record(self, bytes: &[u8], at: u32) -> Option<Record<'_>> {
        parse_watched(bytes.get(at as usize..)?, self.radix, &mut ()).ok().map(|(record, _)| record)
    }
}

impl ReaderState {
    /// True where nothing of what was before matters for what follows.
    fn is_between_records(&self) -> bool {
        matches!(self.mode, Mode::Records) && self.owed == 0 && self.pending.is_none()
    }
}

impl Push {
    /// True where a piece that begins at the offset is what it was parsed as.
    pub(crate) fn is_at(&self, offset: u64) -> bool {
        self.buffer.is_empty() && self.offset == offset && self.state.is_between_records()
    }

    /// The place of a record of the plain piece that begins here: its offset there, and its number.
    pub(crate) fn here<'a>(&'a mut self, bytes: &'a [u8], at: u32, number: u64, sink: &'a mut dyn Sink) -> Here<'a> {
        Here {
            offset: self.offset + u64::from(at),
            seq: self.state.seq + number,
            window: bytes,
            window_offset: self.offset,
            lines: &mut self.lines,
            sink,
        }
    }

    /// Passes a plain piece, whose steps were taken.
    pub(crate) fn pass_plain(&mut self, parsed: &Parsed, bytes: &[u8]) {
        // A diagnostic may have counted some of the lines already.
        if self.lines.counted_to == self.offset {
            self.lines.line_ends += parsed.lines;
            if let Some(start) = parsed.line_start {
                self.lines.line_start = self.offset + start as u64;
            }
            self.lines.counted_to = self.offset + bytes.len() as u64;
        } else {
            self.lines.count_to(bytes, self.offset, self.offset + bytes.len() as u64);
        }
        self.state.seq += parsed.steps.len() as u64;
        self.offset += bytes.len() as u64;
    }
}
