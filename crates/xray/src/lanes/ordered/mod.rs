//! Any XRay trace in order of time: each thread's moments by themselves, or all threads' together.
//!
//! On the wire the threads of a Basic trace are mixed, and an FDR trace has each thread in buffers, in the order in
//! which they were written out, which need not be the order of time (page, sections 1.3 and 2). Where all bytes are
//! available a first pass finds the parts of an FDR trace that are intact records, reports damage, and puts buffers in
//! order; a second turns those parts into moments, thread by thread, on as many processors as there are. Long streams
//! are processed as they arrive.

mod decode;
mod index;
mod merge;
mod parallel;
mod part;
mod plain;
#[cfg(feature = "tools")]
mod sections;
#[cfg(feature = "tools")]
mod skim;
mod store;
#[cfg(test)]
mod tests;
mod windows;
mod wire;

use anytrace_core::span::{TimeUnit, Uptime};
use anytrace_core::{Cursor, Error, Input, Limits, OpenOptions, Sink, Summary};

use crate::lanes::blocks::Blocks;
use crate::options::OPTIONS;
use crate::rules;
use crate::wire::fdr::FdrWalk;
use crate::wire::moment::Moments;
use crate::wire::moments::{WireForm, walk};
use crate::wire::open::{Form, Opened, XrayTrace, end, read_to_end};
use crate::wire::record::{Header, Orders, TYPE_FDR};
use crate::wire::yaml::yaml_header;
use decode::Decoder;
use index::Index;
pub(crate) use index::Indexer;
pub(crate) use parallel::emit as emit_parallel;
pub(crate) use part::{FdrPart, PieceMoments};
#[cfg(feature = "tools")]
pub(crate) use sections::Sectioned;
#[cfg(feature = "tools")]
pub(crate) use skim::Between;
use store::Store;
pub(crate) use windows::Windows;
use wire::{AsTheyCome, Quiet, Scout, ScoutReport, WhileInOrder};

/// First bytes of a longer stream that are examined for their order: they are copied for this.
const LOOKED_AT_BYTES: usize = 32 << 20;

/// Forms of trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// No bytes, or a header that names no known version or type: there are no moments.
    Nothing,
    /// Flight data recorder.
    Fdr,
    /// Basic, also called naive.
    Basic,
    /// Text.
    Yaml,
}

/// What the header states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Form of the file.
    pub form: SourceForm,
    /// The version; for YAML, that of the trace it was made from.
    pub version: u32,
    /// 0 Basic, 1 FDR; for YAML, that of the trace it was made from.
    pub type_code: u32,
    /// Whether the counter runs at a constant rate.
    pub constant_tsc: bool,
    /// Whether the counter runs on while a processor sleeps.
    pub nonstop_tsc: bool,
    /// Ticks a second; 0 where unknown.
    pub cycle_frequency: u64,
}

impl Facts {
    const NOTHING: Self = Self {
        form: SourceForm::Nothing,
        version: 0,
        type_code: 0,
        constant_tsc: false,
        nonstop_tsc: false,
        cycle_frequency: 0,
    };
}

/// An opened trace that will be read in order of time.
///
/// ```
/// use anytrace_core::{Collect, Diagnostic, Error, Input, OpenOptions};
/// use anytrace_xray::{Moment, Moments, Ordered};
///
/// #[derive(Default)]
/// struct Times(Vec<u64>);
///
/// impl Moments for Times {
///     fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
///         self.0.push(moment.tsc);
///         Ok(())
///     }
///     fn report(&mut self, problem: Diagnostic) -> Result<(), Error> {
///         Err(Error::malformed(problem))
///     }
/// }
///
/// let text = "---
/// header:
///   version: 3
///   type: 0
///   constant-tsc: true
///   nonstop-tsc: true
///   cycle-frequency: 5
/// records:
///   - { type: 0, func-id: 1, function: f, cpu: 0, thread: 7, kind: function-enter, tsc: 9, data: '' }
///   - { type: 0, func-id: 1, function: f, cpu: 0, thread: 8, kind: function-enter, tsc: 4, data: '' }
/// ...
/// ";
/// let (mut times, mut sink) = (Times::default(), Collect::default());
/// let trace = Ordered::open(Input::from_bytes("x.yaml", text.into()), &OpenOptions::default(), &mut sink)?;
/// assert_eq!(trace.header().cycle_frequency, 5);
/// trace.by_time(&mut times, &mut sink)?;
/// assert_eq!(times.0, [4, 9]);
/// # Ok::<(), Error>(())
/// ```
pub struct Ordered {
    facts: Facts,
    body: Body,
    limits: Limits,
    /// A stream longer than this is long.
    buffered_bytes_max: usize,
    summary: Summary,
    /// How many threads may be used.
    threads: usize,
}

/// What remains to be done.
enum Body {
    Nothing,
    /// An FDR trace whose bytes are available, after the first pass.
    Indexed {
        cursor: Cursor,
        index: Index,
        layout: Orders,
    },
    /// A Basic or YAML trace whose bytes are available, after the first pass.
    Scouted {
        cursor: Cursor,
        form: WireForm,
        seen: ScoutReport,
    },
    /// A long stream, not read yet.
    Long {
        cursor: Cursor,
        form: WireForm,
    },
}

impl Ordered {
    /// Opens a trace of any form and reads its header. Where all bytes are available (a file given by name, memory, a
    /// stream of up to 64 MiB) it reads all of them once. Damage is reported to the sink, here or while moments are
    /// emitted.
    ///
    /// # Errors
    /// I/O errors, options that the format does not have, and whatever the sink returns.
    pub fn open(input: Input, options: &OpenOptions, sink: &mut dyn Sink) -> Result<Self, Error> {
        options.only("xray", &["endian"], OPTIONS)?;
        Self::of(XrayTrace::new(input, options), sink)
    }

    pub(crate) fn of(trace: XrayTrace, sink: &mut dyn Sink) -> Result<Self, Error> {
        Self::open_buffering(trace, sink, Cursor::BUFFERED_BYTES_MAX)
    }

    fn open_buffering(trace: XrayTrace, sink: &mut dyn Sink, buffered_bytes_max: usize) -> Result<Self, Error> {
        let threads = trace.threads;
        let Opened { mut cursor, form, limits } = trace.start(sink)?;
        let (form, facts) = match form {
            Form::Empty | Form::Unreadable(_) => {
                let bytes = end(&read_to_end(cursor)?, sink)?;
                let summary = Summary { records: 0, bytes };
                return Ok(Self {
                    facts: Facts::NOTHING,
                    body: Body::Nothing,
                    limits,
                    buffered_bytes_max,
                    summary,
                    threads,
                });
            }
            Form::Yaml => (WireForm::Yaml, Facts::of_yaml(&mut cursor, &limits)?),
            Form::Binary(header, layout) if header.type_code == TYPE_FDR => {
                (WireForm::Fdr(header, layout), Facts::of_header(SourceForm::Fdr, &header, layout))
            }
            Form::Binary(header, layout) => {
                (WireForm::Basic(header, layout), Facts::of_header(SourceForm::Basic, &header, layout))
            }
        };
        let body = Body::Long { cursor, form };
        let mut ordered = Self { facts, body, limits, buffered_bytes_max, summary: Summary::default(), threads };
        ordered.first_pass(buffered_bytes_max, sink)?;
        Ok(ordered)
    }

    /// Reads all bytes once, if they are no more than `buffered_bytes_max` or available anyway.
    fn first_pass(&mut self, buffered_bytes_max: usize, sink: &mut dyn Sink) -> Result<(), Error> {
        let Body::Long { mut cursor, form } = std::mem::replace(&mut self.body, Body::Nothing) else { return Ok(()) };
        // Buffers are read at their offsets; the other forms are read again from the first byte.
        let is_kept = match form {
            WireForm::Fdr(..) => cursor.as_slice().is_some() || cursor.bring_at_hand(),
            _ => cursor.can_rewind(),
        };
        if !is_kept && cursor.fill(buffered_bytes_max.saturating_add(1))? > buffered_bytes_max {
            self.body = Body::Long { cursor, form };
            return Ok(());
        }
        let cursor = if let WireForm::Fdr(header, layout) = form {
            let (index, records, cursor) = self.index(cursor, header, layout, sink)?;
            self.summary.records = records;
            self.body = Body::Indexed { cursor, index, layout };
            &self.body
        } else {
            let mut scout = Scout::new(Some(sink));
            let (records, cursor) = walk(cursor, form, &self.limits, &mut scout)?;
            self.summary.records = records;
            self.body = Body::Scouted { cursor, form, seen: scout.seen };
            &self.body
        };
        if let Body::Indexed { cursor, .. } | Body::Scouted { cursor, .. } = cursor {
            self.summary.bytes = end(cursor, sink)?;
        }
        Ok(())
    }

    /// The index of an FDR trace, how many records it has, and the cursor behind them.
    fn index(
        &self,
        mut cursor: Cursor,
        header: Header,
        layout: Orders,
        sink: &mut dyn Sink,
    ) -> Result<(Index, u64, Cursor), Error> {
        let payload_max = self.limits.record_bytes_max;
        let plain = |all| plain::index(all, layout, header.version, payload_max, self.threads);
        if let Some((index, records)) = cursor.as_slice().and_then(plain) {
            cursor.skip(u64::MAX)?;
            return Ok((index, records, cursor));
        }
        let mut indexer = Indexer::new(sink, header.version);
        let (records, cursor) = FdrWalk::new(cursor, header, layout, &self.limits).walk(&mut indexer)?;
        Ok((indexer.finish(), records, cursor))
    }

    /// What the header states.
    pub fn header(&self) -> &Facts {
        &self.facts
    }

    /// How many buffers began before the previous buffer of their thread, and were put in order. 0 for forms other than
    /// FDR, and for long streams.
    pub fn reordered_buffers(&self) -> u64 {
        if let Body::Indexed { index, .. } = &self.body { index.reordered } else { 0 }
    }

    /// Earliest time of all moments; `None` without moments, and for long streams.
    pub fn first_tsc(&self) -> Option<u64> {
        match &self.body {
            Body::Indexed { index, .. } => index.first_tsc(),
            Body::Scouted { seen, .. } => seen.first_tsc,
            Body::Nothing | Body::Long { .. } => None,
        }
    }

    /// The counter on the clock of the machine's uptime, which the wall times of FDR buffers are of; `None` where the
    /// bytes are not available or have none.
    pub(crate) fn uptime(&self) -> Option<Uptime> {
        let hz = self.facts.cycle_frequency;
        let unit = TimeUnit::Ticks { per_second: (hz > 0).then_some(hz) };
        if let Body::Indexed { index, .. } = &self.body { index.uptime(unit) } else { None }
    }

    /// The parts of an FDR trace whose bytes are available, to be read any number of times.
    #[cfg(feature = "tools")]
    pub(crate) fn pieces(&self) -> Option<Pieces<'_>> {
        let Body::Indexed { cursor, index, layout } = &self.body else { return None };
        let all = cursor.as_slice().unwrap_or_default();
        Some(Pieces { all, index, layout: *layout, version: self.facts.fdr_version() })
    }

    /// Emits every moment, those of each thread (of each process) in order of time. Threads may be mixed.
    ///
    /// A thread's buffers are put in order; where time goes backwards within one, the order is left as it is. Buffers
    /// of a stream of more than 64 MiB are emitted as they arrive, in constant memory, and a diagnostic counts those
    /// that come late. Damage is reported to the sink; [`Moments::report`] and [`Moments::lost`] are not called.
    ///
    /// # Errors
    /// I/O errors, and whatever the receiver and the sink return.
    pub fn by_thread<M: Moments>(self, moments: &mut M, sink: &mut dyn Sink) -> Result<Summary, Error> {
        match self.body {
            Body::Nothing => {}
            Body::Indexed { cursor, index, layout } => {
                let all = cursor.as_slice().unwrap_or_default();
                for owner in &index.owners {
                    let mut decoder = Decoder::new(layout, self.facts.fdr_version(), owner);
                    for (buffer, piece) in index.pieces(owner) {
                        decoder.start(all, buffer, piece);
                        decoder.emit(moments)?;
                    }
                }
            }
            Body::Scouted { cursor, form, seen } => {
                again(cursor, form, &self.limits, !seen.has_threads_in_order, moments)?;
            }
            Body::Long { cursor, form } => {
                let is_fdr = matches!(form, WireForm::Fdr(..));
                let mut coming = AsTheyCome::new(moments, sink, is_fdr, &self.limits);
                let (records, cursor) = walk(cursor, form, &self.limits, &mut coming)?;
                coming.finish()?;
                return Ok(Summary { records, bytes: end(&cursor, sink)? });
            }
        }
        Ok(self.summary)
    }

    /// As [`Self::by_thread`], with blocks of records where the receiver takes them.
    ///
    /// # Errors
    /// As [`Self::by_thread`].
    pub(crate) fn by_thread_in_blocks<M: Blocks>(self, moments: &mut M, sink: &mut dyn Sink) -> Result<Summary, Error> {
        let Body::Indexed { cursor, index, layout } = &self.body else { return self.by_thread(moments, sink) };
        let all = cursor.as_slice().unwrap_or_default();
        for owner in &index.owners {
            let mut decoder = Decoder::new(*layout, self.facts.fdr_version(), owner);
            for (buffer, piece) in index.pieces(owner) {
                decoder.start(all, buffer, piece);
                decoder.emit_blocks(moments)?;
            }
        }
        Ok(self.summary)
    }

    /// As [`Self::by_thread`], with the threads of an FDR trace distributed over `threads` workers: each worker has its
    /// own receiver from `make`, which gets all moments of the threads assigned to it. The assignment may differ from
    /// run to run. A thread that is longer than a worker's share is cut into sections, if receivers can begin inside a
    /// thread. Other forms and long streams have one receiver.
    ///
    /// # Errors
    /// As [`Self::by_thread`].
    #[cfg(feature = "tools")]
    pub(crate) fn by_thread_parallel<M: Sectioned + Send>(
        self,
        threads: usize,
        make: impl Fn() -> M + Sync,
        sink: &mut dyn Sink,
    ) -> Result<(Vec<M>, Summary), Error> {
        if let Some(pieces) = self.pieces()
            && threads > 1
        {
            return Ok((pieces.parallel(threads, make)?, self.summary));
        }
        let mut moments = make();
        let summary = self.by_thread(&mut moments, sink)?;
        Ok((vec![moments], summary))
    }

    /// Emits every moment in order of time; those of one time in the order of their processes, threads and records
    /// (FDR), or of the file (Basic, YAML).
    ///
    /// Memory does not grow with the trace, except by what must be sorted: the moments of FDR buffers of one thread
    /// that overlap; all of a Basic or YAML trace that is out of order; and all of a stream of more than 64 MiB, unless
    /// its first 32 MiB are in order of time. Damage is reported to the sink; [`Moments::report`] and [`Moments::lost`]
    /// are not called.
    ///
    /// # Errors
    /// As [`Self::by_thread`].
    pub fn by_time<M: Moments>(mut self, moments: &mut M, sink: &mut dyn Sink) -> Result<Summary, Error> {
        if let Body::Long { cursor, form } = &self.body
            && !self.begins_in_order(cursor.window(), *form)
        {
            self.first_pass(usize::MAX - 1, sink)?;
            sink.report(rules::STREAM_HELD.at(0).found(format!("{} bytes", self.summary.bytes)))?;
        }
        match self.body {
            Body::Nothing => {}
            Body::Indexed { cursor, index, layout } => {
                let all = cursor.as_slice().unwrap_or_default();
                merge::merge(all, &index, layout, self.facts.fdr_version(), moments)?;
            }
            Body::Scouted { cursor, form, seen } => {
                again(cursor, form, &self.limits, !seen.is_in_order, moments)?;
            }
            Body::Long { cursor, form } => {
                let mut ordering = WhileInOrder::new(moments, sink);
                let (records, cursor) = walk(cursor, form, &self.limits, &mut ordering)?;
                ordering.finish()?;
                return Ok(Summary { records, bytes: end(&cursor, sink)? });
            }
        }
        Ok(self.summary)
    }

    /// The trace cut into ranges of time that can be read in parallel; `None` if it cannot be cut.
    pub(crate) fn windows(&self) -> Option<Windows<'_>> {
        let Body::Indexed { cursor, index, layout } = &self.body else { return None };
        Windows::of(cursor.as_slice()?, index, *layout, self.facts.fdr_version())
    }

    /// Records and bytes of the first pass.
    pub(crate) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Whether the first bytes of a stream are in order of time as they arrive. A single FDR buffer does not show it.
    fn begins_in_order(&self, window: &[u8], form: WireForm) -> bool {
        let head = window.get(..self.buffered_bytes_max.min(LOOKED_AT_BYTES)).unwrap_or(window).to_vec();
        let cursor = Cursor::new(Input::from_bytes("head", head));
        if let WireForm::Fdr(header, layout) = form {
            let mut silent = Silent;
            let mut indexer = Indexer::new(&mut silent, header.version);
            let walked = FdrWalk::new(cursor, header, layout, &self.limits).walk(&mut indexer);
            let index = indexer.finish();
            return walked.is_ok() && index.buffer_count() > 1 && index.is_sorted_by_time();
        }
        let mut scout = Scout::new(None);
        walk(cursor, form, &self.limits, &mut scout).is_ok() && scout.seen.is_in_order
    }
}

/// The parts of an FDR trace, by thread and in order.
#[cfg(feature = "tools")]
#[derive(Clone, Copy)]
pub(crate) struct Pieces<'a> {
    all: &'a [u8],
    index: &'a Index,
    layout: Orders,
    version: u16,
}

#[cfg(feature = "tools")]
impl Pieces<'_> {
    /// As [`Ordered::by_thread_parallel`].
    pub(crate) fn parallel<M: Sectioned + Send>(
        &self,
        threads: usize,
        make: impl Fn() -> M + Sync,
    ) -> Result<Vec<M>, Error> {
        let cut = sections::longest(self.index, threads).filter(|_| make().can_resume());
        let mut given = cut.map_or(Ok(Vec::new()), |owner| sections::emit(*self, owner, threads, &make))?;
        let rest: Vec<_> =
            self.index.owners.iter().filter(|owner| cut.is_none_or(|cut| !std::ptr::eq(cut, *owner))).collect();
        if !rest.is_empty() || given.is_empty() {
            given.extend(parallel::emit(self.all, self.index, rest, self.layout, self.version, threads, make)?);
        }
        Ok(given)
    }

    /// Process and thread of every thread.
    pub(crate) fn threads(&self) -> Vec<(u32, u32)> {
        self.index.owners.iter().map(|owner| (owner.process, owner.thread)).collect()
    }

    /// Emits the moments of a thread from the record `seq` on.
    pub(crate) fn emit_from<M: Moments>(&self, thread: (u32, u32), seq: u64, moments: &mut M) -> Result<(), Error> {
        let Some(owner) = self.index.owners.iter().find(|owner| (owner.process, owner.thread) == thread) else {
            return Ok(());
        };
        let pieces: Vec<_> = self.index.pieces(owner).collect();
        // The piece with the record is the last one that does not begin after it.
        let before = pieces.iter().enumerate().filter(|(_, (_, piece))| piece.at.seq <= seq);
        let Some((at, _)) = before.max_by_key(|(_, (_, piece))| piece.at.seq) else { return Ok(()) };
        let mut decoder = Decoder::new(self.layout, self.version, owner);
        for (n, &(buffer, piece)) in pieces.iter().enumerate().skip(at) {
            decoder.start(self.all, buffer, piece);
            while let Some(found) = decoder.next() {
                let moment = decoder.complete(&found);
                if n > at || moment.at.seq >= seq {
                    moments.moment(&moment)?;
                }
            }
        }
        Ok(())
    }
}

impl Facts {
    pub(crate) fn of_header(form: SourceForm, header: &Header, layout: Orders) -> Self {
        Self {
            form,
            version: u32::from(header.version),
            type_code: u32::from(header.type_code),
            constant_tsc: header.constant_tsc(layout),
            nonstop_tsc: header.nonstop_tsc(layout),
            cycle_frequency: header.cycle_frequency,
        }
    }

    fn of_yaml(cursor: &mut Cursor, limits: &Limits) -> Result<Self, Error> {
        let header = yaml_header(cursor, limits)?;
        Ok(Self {
            form: SourceForm::Yaml,
            version: header.version,
            type_code: header.type_code,
            constant_tsc: header.constant_tsc,
            nonstop_tsc: header.nonstop_tsc,
            cycle_frequency: header.cycle_frequency,
        })
    }

    fn fdr_version(&self) -> u16 {
        u16::try_from(self.version).unwrap_or_default()
    }
}

/// Discards every diagnostic.
struct Silent;

impl Sink for Silent {
    fn report(&mut self, _diagnostic: anytrace_core::Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// The second pass over a Basic or YAML trace.
fn again<M: Moments>(
    mut cursor: Cursor,
    form: WireForm,
    limits: &Limits,
    must_sort: bool,
    moments: &mut M,
) -> Result<(), Error> {
    // The first pass buffered all bytes; otherwise this point is not reached.
    cursor.rewind();
    cursor.fill(1)?;
    if !must_sort {
        walk(cursor, form, limits, &mut Quiet(moments))?;
        return Ok(());
    }
    let mut store = Store::default();
    walk(cursor, form, limits, &mut store)?;
    store.entries.sort_by_key(|entry| entry.tsc);
    store.emit(moments)
}
