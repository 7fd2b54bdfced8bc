//! The spans of a part of a trace: from the calls that are open where it begins to those that are open where it ends.

use std::cell::RefCell;

use anytrace_core::hash::Map;
use anytrace_core::index::Part;
use anytrace_core::{Diagnostic, Error, Sink, SpanOptions, SpanSink, Summary};

use crate::lanes::blocks::{Block, Blocks, Taken};
use crate::lanes::ordered::{Facts, FdrPart, Ordered, PieceMoments, SourceForm};
use crate::lanes::spans::{self, SpanEmitter, report_moved};
use crate::lanes::state::{Run, Shared, decode_chunks};
use crate::wire::basic::BasicWalk;
use crate::wire::fdr::FdrWalk;
use crate::wire::marks::refused;
use crate::wire::moment::{BasicMoments, Moment, Moments};
use crate::wire::open::{Form, Opened, XrayTrace, end};
use crate::wire::record::TYPE_FDR;

/// Bytes of a Basic trace that are read in one step.
const REACH_BYTES: usize = 64 * 1024;

/// Emits a trace, or the part that is wanted, as spans; otherwise as [`spans::emit_with_ids`].
pub(crate) fn emit(
    trace: XrayTrace,
    options: &SpanOptions,
    ids: &RefCell<Vec<u32>>,
    out: &mut dyn SpanSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    if trace.part.from.is_none() && trace.part.until.is_none() {
        return spans::emit_with_ids(Ordered::of(trace, sink)?, options, ids, out, sink);
    }
    if options.tail_chains {
        return Err(Error::usage("chains of tail calls can only be followed from the start of a trace"));
    }
    let part = trace.part.clone();
    let begin = part.from.as_ref().map_or(0, |mark| mark.offset);
    let shared = part.shared.as_ref().filter(|_| !part.spans.is_empty()).and_then(|bytes| Shared::decode(bytes));
    let (Some(shared), Some((buffer, runs))) = (shared, decode_chunks(&part.spans)) else {
        return Err(Error::usage(format!(
            "spans cannot be read from byte {begin:#x} on: the index does not have them"
        )));
    };
    let Opened { mut cursor, form, limits } = trace.start(sink)?;
    let Form::Binary(header, layout) = form else { return Err(refused(begin)) };
    let is_fdr = header.type_code == TYPE_FDR;
    let form = if is_fdr { SourceForm::Fdr } else { SourceForm::Basic };
    let facts = Facts::of_header(form, &header, layout);
    let mut emitter = SpanEmitter::new(facts, shared.first_tsc, options, ids, out);
    emitter.announce(&shared.tracks)?;
    let (records, cursor, emitter, ends) = if is_fdr {
        if cursor.as_slice().is_none() && !cursor.bring_at_hand() {
            return Err(refused(begin));
        }
        let mut walk = FdrWalk::new(cursor, header, layout, &limits);
        let known = walk.read_part(&part)?;
        let pieces = FdrPart::new(walk, &known, &buffer, sink)?;
        let mut reading = Reading::new(emitter, &shared, runs, sink);
        let (records, cursor) = pieces.emit(&mut reading)?;
        (records, cursor, reading.emitter, reading.ends)
    } else {
        let mut walk = BasicWalk::new(cursor, layout);
        walk.read_part(&part)?;
        let mut reading = Reading::new(emitter, &shared, runs, sink);
        let mut moments = BasicMoments::new(&mut reading, header.version);
        while walk.step(REACH_BYTES, &mut moments)? {}
        moments.finish()?;
        (walk.seq, walk.cursor, reading.emitter, reading.ends)
    };
    let bytes = end(&cursor, sink)?;
    finish(emitter, &part, &shared, &ends, sink)?;
    Ok(Summary { records, bytes })
}

/// Ends what is open: at the end of the trace, or because another part continues it.
fn finish(
    mut emitter: SpanEmitter<'_>,
    part: &Part,
    shared: &Shared,
    ends: &[Run],
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    if part.until.is_some() {
        return emitter.suspend();
    }
    for run in ends {
        resume(&mut emitter, shared, run)?;
    }
    emitter.finish()?;
    shared.first_moved.map_or(Ok(()), |at| report_moved(at, shared.moved, sink))
}

/// Continues a thread from a state, unless that is the state which it is in.
fn resume(emitter: &mut SpanEmitter<'_>, shared: &Shared, run: &Run) -> Result<(), Error> {
    let Some(&key) = shared.tracks.get(run.track) else { return Ok(()) };
    let number = emitter.calls.number_of(key);
    let known = number.and_then(|number| emitter.calls.last_of(number));
    if known.is_some_and(|known| known.last.seq == run.state.last.seq) {
        return Ok(());
    }
    emitter.resume(key, &run.state)
}

/// Receives the moments of a part.
struct Reading<'a, 's> {
    emitter: SpanEmitter<'a>,
    shared: &'s Shared,
    /// States of the threads, by the record that follows.
    runs: Map<u64, Run>,
    /// States at the end of the trace.
    ends: Vec<Run>,
    /// Threads that had a moment.
    seen: Vec<bool>,
    is_piece: bool,
    sink: &'s mut dyn Sink,
}

impl<'a, 's> Reading<'a, 's> {
    fn new(emitter: SpanEmitter<'a>, shared: &'s Shared, all: Vec<Run>, sink: &'s mut dyn Sink) -> Self {
        let (mut runs, mut ends) = (Map::default(), Vec::new());
        for run in all {
            match run.first_seq {
                Some(seq) => drop(runs.insert(seq, run)),
                None => ends.push(run),
            }
        }
        Self { emitter, shared, runs, ends, seen: Vec::new(), is_piece: false, sink }
    }

    /// Finds the state before a moment of a thread.
    #[cold]
    fn look_up(&mut self, number: usize, moment: &Moment<'_>) -> Result<(), Error> {
        self.is_piece = false;
        if self.seen.len() <= number {
            self.seen.resize(number + 1, false);
        }
        if let Some(seen) = self.seen.get_mut(number) {
            *seen = true;
        }
        match self.runs.get(&moment.at.seq) {
            Some(run) => resume(&mut self.emitter, self.shared, run),
            None => Ok(()),
        }
    }
}

impl Moments for Reading<'_, '_> {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        if let Some(number) = self.emitter.calls.thread_number(moment)
            && (self.is_piece || self.seen.get(number) != Some(&true))
        {
            self.look_up(number, moment)?;
        }
        self.emitter.moment(moment)
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}

impl Blocks for Reading<'_, '_> {
    fn block(&mut self, block: &Block<'_>) -> Result<Taken, Error> {
        let number = self.emitter.calls.number_of((block.process, block.thread));
        // The state before a piece may have to be found, which the first moment does.
        let is_known = number.is_some_and(|number| !self.is_piece && self.seen.get(number) == Some(&true));
        if is_known { self.emitter.block(block) } else { Ok(Taken::default()) }
    }
}

impl PieceMoments for Reading<'_, '_> {
    fn piece(&mut self) {
        self.is_piece = true;
    }
}
