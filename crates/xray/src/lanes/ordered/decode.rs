//! Second pass over an FDR trace: pieces that the first pass found intact become moments, without any recovery.

use anytrace_core::{Error, Place};

use crate::lanes::blocks::{BLOCK, Block, Blocks};
use crate::wire::moment::{ARGUMENTS_MAX, Clock, Moment, MomentKind, Moments};
use crate::wire::parse::{function_run, parse_function, parse_record};
use crate::wire::record::{Body, CustomTime, FUNCTION_BYTES, FdrRecord, METADATA_BYTES, Orders, kind};

use super::index::{Owner, Piece};

/// After a block of which fewer records are plain, as many are processed one by one: where those are the rule, looking
/// for blocks would take longer than it saves.
const PLAIN_MIN: usize = 32;

/// Walks one piece at a time; returns its moments one by one.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    at: Place,
    clock: Clock,
    process: u32,
    thread: u32,
    buffer: u64,
    layout: Orders,
    arguments: Vec<u64>,
}

impl<'a> Decoder<'a> {
    pub(crate) fn new(layout: Orders, version: u16, owner: &Owner) -> Self {
        Self {
            rest: &[],
            at: Place { offset: 0, seq: 0 },
            clock: Clock::new(version),
            process: owner.process,
            thread: owner.thread,
            buffer: 0,
            layout,
            arguments: Vec::new(),
        }
    }

    /// Starts on a piece of the trace whose bytes are `all`.
    pub(crate) fn start(&mut self, all: &'a [u8], buffer: u64, piece: &Piece) {
        let range = usize::try_from(piece.at.offset).ok().zip(usize::try_from(piece.at.offset + piece.bytes).ok());
        self.rest = range.and_then(|(start, end)| all.get(start..end)).unwrap_or_default();
        (self.at, self.buffer) = (piece.at, buffer);
        (self.clock.tsc, self.clock.cpu) = (piece.tsc, piece.cpu);
    }

    /// The next moment of the piece; `None` at its end.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<BareMoment<'a>> {
        self.next_in(self.layout)
    }

    /// The complete moment; valid until the next one is requested.
    #[inline]
    pub(crate) fn complete(&self, bare: &BareMoment<'a>) -> Moment<'_> {
        Moment { arguments: if bare.has_arguments { &self.arguments } else { &[] }, ..bare.moment }
    }

    /// Emits the rest of the piece.
    pub(crate) fn emit<M: Moments>(&mut self, moments: &mut M) -> Result<(), Error> {
        if self.layout == Orders::LITTLE {
            self.give_in(Orders::LITTLE, moments)
        } else {
            self.give_in(self.layout, moments)
        }
    }

    /// Emits the rest of the piece, as many records at once as the receiver takes.
    pub(crate) fn emit_blocks<M: Blocks>(&mut self, moments: &mut M) -> Result<(), Error> {
        loop {
            let taken = self.block(moments)?;
            let singly = if taken < PLAIN_MIN { PLAIN_MIN } else { 1 };
            for _ in 0..singly {
                let Some(bare) = self.next() else { return Ok(()) };
                moments.moment(&self.complete(&bare))?;
            }
        }
    }

    /// Emits blocks as long as all of their records are taken; returns the number taken of the last one.
    fn block<M: Blocks>(&mut self, moments: &mut M) -> Result<usize, Error> {
        let layout = self.layout;
        loop {
            let window = self.rest.get(..BLOCK * FUNCTION_BYTES).unwrap_or(self.rest);
            let run = function_run(window, layout);
            // Arguments belong to the record before them.
            let has_arguments = self.rest.get(run) == Some(&layout.metadata_byte(kind::CALL_ARGUMENT));
            let run = if has_arguments { run.saturating_sub(FUNCTION_BYTES) } else { run };
            let (records, _) = window.get(..run).unwrap_or_default().as_chunks::<FUNCTION_BYTES>();
            if records.is_empty() {
                return Ok(0);
            }
            let (at, tsc, cpu, buffer) = (self.at, self.clock.tsc, self.clock.cpu, self.buffer);
            let (thread, process) = (self.thread, self.process);
            let taken = moments.block(&Block { records, layout, at, tsc, cpu, thread, process, buffer })?;
            if taken.count > 0 {
                self.clock.tsc = taken.tsc;
                self.rest = self.rest.get(taken.count * FUNCTION_BYTES..).unwrap_or_default();
                self.at.offset += (taken.count * FUNCTION_BYTES) as u64;
                self.at.seq += taken.count as u64;
            }
            if taken.count < BLOCK {
                return Ok(taken.count);
            }
        }
    }

    #[inline(always)]
    fn give_in<M: Moments>(&mut self, layout: Orders, moments: &mut M) -> Result<(), Error> {
        while let Some(bare) = self.next_in(layout) {
            moments.moment(&self.complete(&bare))?;
        }
        Ok(())
    }

    #[inline(always)]
    fn next_in(&mut self, layout: Orders) -> Option<BareMoment<'a>> {
        loop {
            let (record, behind) = self.rest.split_first_chunk::<FUNCTION_BYTES>()?;
            if layout.metadata_kind(record[0]).is_some() {
                match self.other(layout) {
                    MetadataStep::Event(bare) => return Some(bare),
                    MetadataStep::Passed => continue,
                    MetadataStep::Over => return None,
                }
            }
            let function = parse_function(record, layout).ok()?;
            let tsc = self.clock.function(&function);
            let at = self.at;
            self.rest = behind;
            self.at.offset += FUNCTION_BYTES as u64;
            self.at.seq += 1;
            let has_arguments = behind.first() == Some(&layout.metadata_byte(kind::CALL_ARGUMENT));
            if has_arguments {
                self.take_arguments(layout);
            }
            let moment = self.empty(MomentKind::Function(function.kind), tsc, at);
            return Some(BareMoment { moment: Moment { function: function.id, ..moment }, has_arguments });
        }
    }

    #[inline]
    fn empty(&self, kind: MomentKind, tsc: u64, at: Place) -> Moment<'a> {
        let (thread, process, cpu, buffer) = (self.thread, self.process, self.clock.cpu, self.buffer);
        Moment { kind, function: 0, name: &[], arguments: &[], cpu, thread, process, tsc, data: &[], at, buffer }
    }

    #[cold]
    fn take_arguments(&mut self, layout: Orders) {
        self.arguments.clear();
        let first = layout.metadata_byte(kind::CALL_ARGUMENT);
        while let Some(record) = self.rest.first_chunk::<METADATA_BYTES>().filter(|record| record[0] == first) {
            if self.arguments.len() < ARGUMENTS_MAX {
                let value = anytrace_core::bytes::array_at(record, 1).unwrap_or_default();
                self.arguments.push(layout.endian.u64(value));
            }
            self.advance(METADATA_BYTES);
        }
    }

    /// A metadata record.
    #[cold]
    fn other(&mut self, layout: Orders) -> MetadataStep<'a> {
        // The first pass rejected payloads beyond the limit.
        let Ok((FdrRecord::Metadata(metadata), used)) = parse_record(self.rest, layout, self.clock.version(), u64::MAX)
        else {
            return MetadataStep::Over;
        };
        let at = self.at;
        self.advance(used);
        let tsc = match metadata.body {
            Body::NewCpu { .. } | Body::TscWrap { .. } | Body::CustomEvent { .. } | Body::TypedEvent { .. } => {
                self.clock.metadata(&metadata.body).unwrap_or(self.clock.tsc)
            }
            _ => return MetadataStep::Passed,
        };
        let moment = match metadata.body {
            Body::CustomEvent { time: CustomTime::OnCpu { cpu, .. }, data } => {
                Moment { cpu, data, ..self.empty(MomentKind::Custom, tsc, at) }
            }
            Body::CustomEvent { data, .. } => Moment { data, ..self.empty(MomentKind::Custom, tsc, at) },
            Body::TypedEvent { event_type, data, .. } => {
                Moment { data, ..self.empty(MomentKind::Typed(event_type), tsc, at) }
            }
            _ => return MetadataStep::Passed,
        };
        MetadataStep::Event(BareMoment { moment, has_arguments: false })
    }

    fn advance(&mut self, bytes: usize) {
        self.rest = self.rest.get(bytes..).unwrap_or_default();
        self.at.offset += bytes as u64;
        self.at.seq += 1;
    }
}

/// A moment without its arguments, which the decoder stores.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BareMoment<'a> {
    pub(crate) moment: Moment<'a>,
    has_arguments: bool,
}

/// The result of a metadata record.
enum MetadataStep<'a> {
    Event(BareMoment<'a>),
    Passed,
    Over,
}
