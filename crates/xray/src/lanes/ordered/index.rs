//! First pass over an FDR trace: which parts of it are intact records, to which thread they belong, and from which time
//! on.

use std::collections::HashMap;

use anytrace_core::span::{TimeUnit, Uptime};
use anytrace_core::{Diagnostic, Error, Place, Sink};

use crate::lanes::state::BufferState;
use crate::rules;
use crate::wire::fdr::{GapKind, Run, Visitor};
use crate::wire::moment::{ARGUMENTS_MAX, Clock};
use crate::wire::record::{Body, Metadata};

/// A piece is closed when it reaches this length; in tests small traces have several.
const PIECE_BYTES: u64 = if cfg!(test) { 256 } else { 8 * 1024 };

/// Consecutive intact records, all of one buffer, and what is known where they begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    /// The first record.
    pub(crate) at: Place,
    pub(crate) bytes: u64,
    /// Time base before the first record.
    pub(crate) tsc: u64,
    pub(crate) cpu: u16,
    /// Times never go backwards in it.
    pub(crate) is_sorted: bool,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// A buffer's pieces.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer {
    pub(crate) owner: u32,
    pub(crate) number: u64,
    first_tsc: u64,
    wall_micros: u64,
    first_piece: usize,
    piece_count: usize,
}

/// One thread of one process.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) process: u32,
    pub(crate) thread: u32,
    pub(crate) bytes: u64,
    first_buffer: usize,
    buffer_count: usize,
}

/// What the first pass found: threads in order of process and thread, each thread's buffers in order of time.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) owners: Vec<Owner>,
    buffers: Vec<Buffer>,
    pieces: Vec<Piece>,
    /// Buffers that began before the previous buffer of their thread.
    pub(crate) reordered: u64,
    /// Of each buffer that says so, its wall time in microseconds and the processor's counter just after.
    wall_times: Vec<(u64, u64)>,
}

impl Index {
    /// The pieces of a thread in order, each with its buffer's number.
    pub(crate) fn pieces(&self, owner: &Owner) -> impl Iterator<Item = (u64, &Piece)> + Clone {
        let buffers = self.buffers.get(owner.first_buffer..owner.first_buffer + owner.buffer_count);
        buffers.unwrap_or_default().iter().flat_map(move |buffer| {
            let own = self.pieces.get(buffer.first_piece..buffer.first_piece + buffer.piece_count);
            own.unwrap_or_default().iter().map(move |piece| (buffer.number, piece))
        })
    }

    /// As [`Self::pieces`], without those that end before a range of time or begin after it. The thread must be in
    /// order.
    pub(crate) fn pieces_between(
        &self,
        owner: &Owner,
        first: u64,
        last: u64,
    ) -> impl Iterator<Item = (u64, &Piece)> + Clone {
        let buffers = self.buffers.get(owner.first_buffer..owner.first_buffer + owner.buffer_count).unwrap_or_default();
        let own = |buffer: &Buffer| {
            let pieces = self.pieces.get(buffer.first_piece..buffer.first_piece + buffer.piece_count);
            pieces.unwrap_or_default()
        };
        // In a thread that is in order the last piece of a buffer has its latest time.
        let is_over = |buffer: &Buffer| own(buffer).last().is_none_or(|piece| piece.max < first);
        let buffers = buffers.get(buffers.partition_point(is_over)..).unwrap_or_default();
        buffers
            .iter()
            .flat_map(move |buffer| {
                let pieces = own(buffer);
                let behind = pieces.partition_point(|piece| piece.max < first);
                pieces.get(behind..).unwrap_or_default().iter().map(move |piece| (buffer.number, piece))
            })
            .take_while(move |(_, piece)| piece.min <= last)
    }

    /// True when the moments of all threads are stored in order of time in the file.
    pub(crate) fn is_sorted_by_time(&self) -> bool {
        let mut last = 0;
        self.pieces.iter().all(|piece| {
            let follows = piece.is_sorted && piece.min >= last;
            last = piece.max;
            follows
        })
    }

    /// Earliest time in the trace.
    pub(crate) fn first_tsc(&self) -> Option<u64> {
        self.pieces.iter().map(|piece| piece.min).min()
    }

    /// Where the counter's 0 is on the clock of wall times: the median of the buffers, and how far they are apart.
    pub(crate) fn uptime(&self, unit: TimeUnit) -> Option<Uptime> {
        let zero = |&(micros, tsc): &(u64, u64)| {
            let counted = unit.sum_to_ns(u128::from(tsc)).and_then(|ns| i128::try_from(ns).ok())?;
            Some(i128::from(micros) * 1000 - counted)
        };
        let mut zeros: Vec<i128> = self.wall_times.iter().filter_map(zero).collect();
        zeros.sort_unstable();
        let (first, last) = (zeros.first()?, zeros.last()?);
        let spread_ns = u64::try_from(last - first).unwrap_or(u64::MAX);
        Some(Uptime { zero_ns: *zeros.get(zeros.len() / 2)?, spread_ns })
    }

    /// How many buffers have moments.
    pub(crate) fn buffer_count(&self) -> usize {
        self.buffers.len()
    }
}

/// The index of a part, before threads and buffers are sorted.
pub(super) struct Unsorted {
    index: Index,
    buffers_begun: u64,
}

/// Makes an [`Index`] from a walk; diagnostics go to a sink.
pub(crate) struct Indexer<'a> {
    sink: &'a mut dyn Sink,
    index: Index,
    owner_numbers: HashMap<(u32, u32), u32>,
    clock: Clock,
    number: u64,
    buffers_begun: u64,
    wall_micros: u64,
    /// This buffer's wall time came, the counter that belongs to it did not.
    has_wall_time: bool,
    /// Arguments that the previous function record may still have; `None` after other records.
    arguments: Option<usize>,
    piece: Option<Piece>,
    /// A piece of this buffer was kept.
    has_buffer: bool,
    /// Time of this buffer's first moment.
    first_tsc: Option<u64>,
}

impl<'a> Indexer<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, version: u16) -> Self {
        Self {
            sink,
            index: Index::default(),
            owner_numbers: HashMap::new(),
            clock: Clock::new(version),
            number: 0,
            buffers_begun: 0,
            wall_micros: 0,
            has_wall_time: false,
            arguments: None,
            piece: None,
            has_buffer: false,
            first_tsc: None,
        }
    }

    /// Continues inside a trace, where it knows this much.
    pub(crate) fn resume(&mut self, clock: Clock, buffer: &BufferState) {
        self.clock = clock;
        (self.clock.cpu, self.clock.process) = (buffer.cpu, buffer.process);
        (self.number, self.buffers_begun) = (buffer.number, buffer.begun);
        (self.wall_micros, self.first_tsc) = (buffer.wall_micros, buffer.first_tsc);
    }

    /// What [`Self::resume`] needs of the place between two records, where a piece ends now.
    pub(crate) fn cut(&mut self) -> BufferState {
        self.close();
        let Clock { cpu, process, .. } = self.clock;
        let (number, begun) = (self.number, self.buffers_begun);
        let (wall_micros, first_tsc) = (self.wall_micros, self.first_tsc);
        BufferState { cpu, process, number, begun, wall_micros, first_tsc }
    }

    /// Thread and time of the next record.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// What was found in a part of a trace that begins and ends between buffers.
    pub(super) fn unsorted(mut self) -> Unsorted {
        self.close_buffer();
        Unsorted { index: self.index, buffers_begun: self.buffers_begun }
    }

    /// Continues with another part, before which there are `records`.
    pub(super) fn append(&mut self, part: Unsorted, records: u64) {
        let Unsorted { index: Index { owners, buffers, pieces, wall_times, .. }, buffers_begun } = part;
        let own = &mut self.index;
        let mut numbers = Vec::with_capacity(owners.len());
        for owner in owners {
            let next = u32::try_from(own.owners.len()).unwrap_or(u32::MAX);
            let number = *self.owner_numbers.entry((owner.process, owner.thread)).or_insert(next);
            match own.owners.get_mut(number as usize) {
                Some(known) => known.bytes += owner.bytes,
                None => own.owners.push(owner),
            }
            numbers.push(number);
        }
        let (first_piece, first_number) = (own.pieces.len(), self.buffers_begun);
        own.buffers.extend(buffers.into_iter().map(|buffer| Buffer {
            owner: numbers.get(buffer.owner as usize).copied().unwrap_or(u32::MAX),
            number: buffer.number + first_number,
            first_piece: buffer.first_piece + first_piece,
            ..buffer
        }));
        own.pieces.extend(pieces.into_iter().map(|piece| {
            let at = Place { seq: piece.at.seq + records, ..piece.at };
            Piece { at, ..piece }
        }));
        own.wall_times.extend(wall_times);
        self.buffers_begun += buffers_begun;
    }

    /// Sorts threads and their buffers.
    pub(crate) fn finish(mut self) -> Index {
        self.close_buffer();
        let Index { mut owners, mut buffers, pieces, wall_times, .. } = self.index;
        let mut order: Vec<usize> = (0..owners.len()).collect();
        order.sort_by_key(|&n| owners.get(n).map(|owner| (owner.process, owner.thread)));
        let mut rank = vec![0; owners.len()];
        for (place, &n) in order.iter().enumerate() {
            if let Some(rank) = rank.get_mut(n) {
                *rank = u32::try_from(place).unwrap_or(u32::MAX);
            }
        }
        for buffer in &mut buffers {
            buffer.owner = rank.get(buffer.owner as usize).copied().unwrap_or(u32::MAX);
        }
        owners.sort_by_key(|owner| (owner.process, owner.thread));
        // The sort is stable: buffers of one thread stay in the order of the file.
        buffers.sort_by_key(|buffer| buffer.owner);
        let is_back = |pair: &&[Buffer]| matches!(pair, [a, b] if a.owner == b.owner && a.place() > b.place());
        let reordered = buffers.windows(2).filter(is_back).count() as u64;
        // Stable again: buffers with the same time stay in the order of the file.
        buffers.sort_by_key(Buffer::place);
        let mut first_buffer = 0;
        for (n, owner) in owners.iter_mut().enumerate() {
            let own = buffers.get(first_buffer..).unwrap_or_default();
            owner.first_buffer = first_buffer;
            owner.buffer_count = own.iter().take_while(|buffer| buffer.owner as usize == n).count();
            first_buffer += owner.buffer_count;
        }
        Index { owners, buffers, pieces, reordered, wall_times }
    }

    /// The open piece, or a new one that begins here.
    fn piece(&mut self, at: Place) -> &mut Piece {
        let is_behind = |piece: &Piece| piece.at.offset + piece.bytes == at.offset && piece.bytes < PIECE_BYTES;
        if self.piece.is_some_and(|piece| !is_behind(&piece)) {
            self.close();
        }
        // A piece stores the state before its first record, so that it can be decoded alone.
        let (tsc, cpu) = (self.clock.tsc, self.clock.cpu);
        self.piece.get_or_insert(Piece { at, bytes: 0, tsc, cpu, is_sorted: true, min: u64::MAX, max: 0 })
    }

    /// Keeps the open piece.
    fn close(&mut self) {
        let Some(piece) = self.piece.take() else { return };
        let key = (self.clock.process.cast_unsigned(), self.clock.thread.cast_unsigned());
        let index = &mut self.index;
        // Buffers without a moment leave no trace in the index.
        if !self.has_buffer {
            let next = u32::try_from(index.owners.len()).unwrap_or(u32::MAX);
            let owner = *self.owner_numbers.entry(key).or_insert(next);
            if owner == next {
                let (process, thread) = key;
                index.owners.push(Owner { process, thread, bytes: 0, first_buffer: 0, buffer_count: 0 });
            }
            index.buffers.push(Buffer {
                owner,
                number: self.number,
                first_tsc: self.first_tsc.unwrap_or(piece.tsc),
                wall_micros: self.wall_micros,
                first_piece: index.pieces.len(),
                piece_count: 0,
            });
            self.has_buffer = true;
        }
        if let Some(buffer) = index.buffers.last_mut() {
            buffer.piece_count += 1;
            if let Some(owner) = index.owners.get_mut(buffer.owner as usize) {
                owner.bytes += piece.bytes;
            }
        }
        index.pieces.push(piece);
    }

    fn close_buffer(&mut self) {
        self.close();
        (self.has_buffer, self.first_tsc, self.arguments) = (false, None, None);
    }

    fn argument(&mut self, at: Place) -> Result<(), Error> {
        match &mut self.arguments {
            None => {
                let report = rules::BASIC_ARGUMENT.at(at.offset).record(at.seq);
                return self.sink.report(report.help("the argument was dropped"));
            }
            Some(0) => {
                let report = rules::ARGUMENTS_TOO_MANY.at(at.offset).record(at.seq);
                self.sink.report(report.expected(format!("at most {ARGUMENTS_MAX}")))?;
            }
            Some(left) => *left -= 1,
        }
        Ok(())
    }
}

impl Buffer {
    fn place(&self) -> (u32, u64, u64) {
        (self.owner, self.first_tsc, self.wall_micros)
    }
}

impl Piece {
    /// Processes a range of times that never go backwards.
    fn times(&mut self, first: u64, last: u64) {
        // `max` is 0 in a new piece, so the first range always fits.
        self.is_sorted &= self.max <= first && first <= last;
        self.min = self.min.min(first).min(last);
        self.max = self.max.max(last).max(first);
    }
}

impl Visitor for Indexer<'_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        let (first, sum) = run.deltas();
        self.first_tsc.get_or_insert(self.clock.tsc.wrapping_add(first));
        let (first, last) = (self.clock.tsc.checked_add(first), self.clock.tsc.checked_add(sum));
        let piece = self.piece(run.at);
        piece.bytes += run.bytes.len() as u64;
        match (first, last) {
            (Some(first), Some(last)) => piece.times(first, last),
            // Time overflows within the run, and may do so again.
            _ => piece.times(u64::MAX, 0),
        }
        self.clock.tsc = self.clock.tsc.wrapping_add(sum);
        self.arguments = Some(ARGUMENTS_MAX);
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], at: Place) -> Result<(), Error> {
        match metadata.body {
            Body::CallArgument { .. } => self.argument(at)?,
            Body::NewBuffer { .. } => {
                self.close_buffer();
                self.number = self.buffers_begun;
                self.buffers_begun += 1;
                (self.wall_micros, self.has_wall_time) = (0, false);
            }
            Body::Pid { .. } => self.close_buffer(),
            Body::WallTime { seconds, micros } => {
                self.wall_micros = seconds.saturating_mul(1_000_000).saturating_add(u64::from(micros));
                // A repaired trace may have times of 0 in place of unknown ones.
                self.has_wall_time = self.wall_micros > 0;
            }
            Body::NewCpu { tsc, .. } if std::mem::take(&mut self.has_wall_time) => {
                self.index.wall_times.push((self.wall_micros, tsc));
            }
            _ => {}
        }
        if !matches!(metadata.body, Body::CallArgument { .. }) {
            self.arguments = None;
        }
        let length = raw.len() as u64;
        if matches!(metadata.body, Body::CustomEvent { .. } | Body::TypedEvent { .. }) {
            // Opened before the clock moves: it must begin with the time base before this record.
            let _opened = self.piece(at);
            let tsc = self.clock.metadata(&metadata.body).unwrap_or(self.clock.tsc);
            self.first_tsc.get_or_insert(tsc);
            if let Some(piece) = &mut self.piece {
                piece.times(tsc, tsc);
                piece.bytes += length;
            }
            return Ok(());
        }
        // Records without a moment belong to a piece only inside it.
        if let Some(piece) = self.piece.as_mut().filter(|piece| piece.at.offset + piece.bytes == at.offset) {
            piece.bytes += length;
        }
        let _time = self.clock.metadata(&metadata.body);
        Ok(())
    }

    fn gap(&mut self, kind: GapKind, _bytes: &[u8], _at: Place) -> Result<(), Error> {
        if kind == GapKind::Damage {
            self.arguments = None;
            self.close();
        }
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        self.close_buffer();
        // Nothing is known across the end of a buffer: each states its own thread and time.
        self.clock = Clock::new(self.clock.version());
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
