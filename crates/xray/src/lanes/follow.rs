//! Follows the calls of a trace for its index: which are open where a chunk begins, and when those that end in it began.
//!
//! Buffers are not in order of time in the file, so a chunk may have several *runs* of a thread: records that follow one
//! another in the thread. Each run of a chunk has the state before its first record.

use std::collections::HashMap;
use std::sync::Arc;

use anytrace_core::index::ChunkSpans;
use anytrace_core::{Diagnostic, Error, Place};

use crate::lanes::calls::{CallOptions, CallVisitor, Calls, End, Frame, SEARCH_BUDGET};
use crate::lanes::state::{BufferState, OpenCall, Shared, ThreadState, push};
use crate::wire::moment::{Moment, MomentKind, Moments};

/// Most open calls of all threads: beyond, tables end with an error, which has to come wherever a part begins.
const OPEN_MAX: usize = 1 << 20;

/// The states are at most one of so many bytes of the trace, or this many bytes.
const SHARE: u64 = 128;
const STATES_MIN: u64 = 64 * 1024;

/// Follows all threads, or some of them. Each thread's moments come in their order.
pub(crate) struct Follower {
    calls: Calls,
    output: Output,
    /// Where chunks begin, but the first.
    marks: Vec<u64>,
    /// Offsets of the chunk that the last moment is in.
    range: (u64, u64),
    /// There are more threads than are followed.
    is_beyond: bool,
    /// Diagnostics so far.
    reports: u64,
}

#[derive(Default)]
struct Output {
    tracks: Vec<Track>,
    runs: Vec<FoundRun>,
    /// Number of the chunk that the last moment is in.
    chunk: usize,
}

/// One thread.
struct Track {
    key: (u32, u32),
    emitted: u64,
    open: Vec<OpenCall>,
    open_max: usize,
    moved: Moved,
    /// Of the ends of calls that are open at the end of the trace, which come after all threads.
    moved_last: Moved,
    /// A run is in a chunk before that of the run before it.
    is_back: bool,
    run: Option<CurrentRun>,
}

/// Times that are not emitted as they are.
#[derive(Debug, Clone, Copy, Default)]
struct Moved {
    times: u64,
    first: Option<Place>,
}

/// The run that a thread is in.
struct CurrentRun {
    chunk: usize,
    before: Option<usize>,
    state: Box<[u8]>,
    /// Begin and record of the calls that were open where it began.
    carried: Vec<(u64, u64)>,
    /// How many of them are open still.
    left: usize,
    /// Latest time before it, and its own first and last.
    idle_from: u64,
    first: Option<u64>,
}

/// A run that has ended.
struct FoundRun {
    chunk: usize,
    before: Option<usize>,
    key: (u32, u32),
    /// As in the index, without the number of the thread. Empty where nothing is known before it.
    state: Box<[u8]>,
    spans: ChunkSpans,
}

impl Follower {
    /// Starts; `marks` are the offsets of those that are known.
    pub(crate) fn new(marks: &[u64]) -> Self {
        let range = (0, marks.first().copied().unwrap_or(u64::MAX));
        let calls = Calls::new(CallOptions::default());
        Self { calls, output: Output::default(), marks: marks.to_vec(), range, is_beyond: false, reports: 0 }
    }

    /// Another mark, after all moments so far.
    pub(crate) fn mark(&mut self, offset: u64) {
        if self.output.chunk == self.marks.len() {
            self.range.1 = offset;
        }
        self.marks.push(offset);
    }

    /// How much was wrong with its moments.
    pub(crate) fn reports(&self) -> u64 {
        self.reports
    }

    /// True when time never goes backwards in a thread.
    pub(crate) fn is_in_order(&self) -> bool {
        self.calls.counts().backward == 0
    }

    #[cold]
    fn change_chunk(&mut self, offset: u64) {
        let chunk = self.marks.partition_point(|mark| *mark <= offset);
        let begin = chunk.checked_sub(1).and_then(|before| self.marks.get(before));
        let end = self.marks.get(chunk);
        self.range = (begin.copied().unwrap_or(0), end.copied().unwrap_or(u64::MAX));
        self.output.chunk = chunk;
    }

    /// Ends the runs; `None` where parts would differ from the trace.
    fn finish(mut self) -> Option<(Vec<Track>, Vec<FoundRun>, usize)> {
        if self.is_beyond || self.calls.counts().too_deep > 0 {
            return None;
        }
        let last = self.marks.len();
        for number in 0..self.output.tracks.len() {
            let at_end = self.calls.last_of(number);
            let Some(track) = self.output.tracks.get_mut(number) else { continue };
            let Some(mut run) = track.run.take() else { continue };
            let chunk = run.chunk;
            if chunk == last {
                // What never ends, ends here.
                run.left = 0;
            }
            self.output.runs.push(track.found(run));
            if chunk != last && (track.is_back || !track.open.is_empty()) {
                let state = track.state(at_end, None);
                let run = CurrentRun { left: 0, ..track.begin_run(last, Some(chunk), state) };
                self.output.runs.push(track.found(run));
            }
        }
        for track in &mut self.output.tracks {
            (track.moved_last, track.moved) = (track.moved, Moved::default());
        }
        self.calls.finish(&mut self.output).ok()?;
        for track in &mut self.output.tracks {
            std::mem::swap(&mut track.moved, &mut track.moved_last);
        }
        Some((self.output.tracks, self.output.runs, self.calls.spent_budget()))
    }
}

impl Moments for Follower {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        let offset = moment.at.offset;
        if offset < self.range.0 || offset >= self.range.1 {
            self.change_chunk(offset);
        }
        let Some(number) = self.calls.thread_number(moment) else {
            self.is_beyond = true;
            return Ok(());
        };
        let run = self.output.tracks.get(number).and_then(|track| track.run.as_ref());
        if run.is_none_or(|run| run.chunk != self.output.chunk) {
            self.output.change_run(number, self.calls.last_of(number), moment);
        }
        self.calls.moment(moment, &mut self.output)?;
        if !matches!(moment.kind, MomentKind::Function(_)) {
            self.output.emit(number, moment.tsc, moment.at);
        }
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        self.reports += 1;
        Ok(())
    }
}

impl Output {
    /// A thread has its next moment in another chunk.
    #[cold]
    fn change_run(&mut self, number: usize, before: Option<ThreadState>, moment: &Moment<'_>) {
        while self.tracks.len() <= number {
            // Threads get their numbers one after the other: this happens once.
            let (key, open) = ((moment.process, moment.thread), Vec::new());
            let (moved, moved_last, is_back, run) = (Moved::default(), Moved::default(), false, None);
            self.tracks.push(Track { key, emitted: 0, open, open_max: 0, moved, moved_last, is_back, run });
        }
        let Some(track) = self.tracks.get_mut(number) else { return };
        let state = track.state(before, Some(moment.at.seq));
        let ended = track.run.take();
        let from = ended.as_ref().map(|run| run.chunk);
        if let Some(run) = ended {
            track.is_back |= run.chunk > self.chunk;
            self.runs.push(track.found(run));
        }
        track.run = Some(track.begin_run(self.chunk, from, state));
    }

    /// The time of an edge: none before that of another.
    #[inline]
    fn emit(&mut self, number: usize, tsc: u64, at: Place) -> u64 {
        let Some(track) = self.tracks.get_mut(number) else { return tsc };
        let time = tsc.max(track.emitted);
        if time != tsc {
            track.moved.times += 1;
            track.moved.first.get_or_insert(at);
        }
        track.emitted = time;
        if let Some(run) = &mut track.run {
            run.first.get_or_insert(time);
        }
        time
    }
}

impl Track {
    /// The bytes of the state before the record `next`.
    fn state(&self, before: Option<ThreadState>, next: Option<u64>) -> Box<[u8]> {
        let mut state = Vec::new();
        if let Some(before) = before {
            let known = ThreadState { emitted: self.emitted, open: self.open.clone(), ..before };
            known.encode_run(next, &mut state);
        }
        state.into()
    }

    fn begin_run(&self, chunk: usize, before: Option<usize>, state: Box<[u8]>) -> CurrentRun {
        let carried = self.open.iter().map(|call| (call.start, call.seq)).collect();
        CurrentRun { chunk, before, state, carried, left: self.open.len(), idle_from: self.emitted, first: None }
    }

    /// A run that has ended.
    fn found(&self, run: CurrentRun) -> FoundRun {
        let mut spans = ChunkSpans::default();
        for &(start, seq) in run.carried.get(run.left..).unwrap_or_default() {
            spans.add_starts(start..=start);
            spans.add_carried(&(seq..=seq));
        }
        if let Some(first) = run.first {
            spans.add_starts(first..=self.emitted);
        }
        let from = if run.carried.is_empty() { run.first.unwrap_or(self.emitted) } else { run.idle_from };
        spans.add_reach(&(from..=self.emitted));
        FoundRun { chunk: run.chunk, before: run.before, key: self.key, state: run.state, spans }
    }
}

impl CallVisitor for Output {
    #[inline]
    fn begin(&mut self, thread: usize, frame: &Frame, _depth: usize, moment: &Moment<'_>) -> Result<(), Error> {
        let start = self.emit(thread, moment.tsc, moment.at);
        if let Some(track) = self.tracks.get_mut(thread) {
            let (function, seq, cpu) = (frame.function, moment.at.seq, moment.cpu);
            let arguments = if moment.arguments.is_empty() { Box::default() } else { moment.arguments.into() };
            track.open.push(OpenCall { function, seq, start, inside: 0, cpu, arguments });
            track.open_max = track.open_max.max(track.open.len());
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, thread: usize, _frame: &Frame, _depth: usize, end: &End) -> Result<(), Error> {
        let time = self.emit(thread, end.tsc, end.at);
        let Some(track) = self.tracks.get_mut(thread) else { return Ok(()) };
        let Some(call) = track.open.pop() else { return Ok(()) };
        if let Some(around) = track.open.last_mut() {
            around.inside = around.inside.saturating_add(time.saturating_sub(call.start));
        }
        if let Some(run) = &mut track.run {
            run.left = run.left.min(track.open.len());
        }
        Ok(())
    }

    fn orphan(&mut self, thread: usize, moment: &Moment<'_>) -> Result<(), Error> {
        self.emit(thread, moment.tsc, moment.at);
        Ok(())
    }
}

/// What is known of a chunk besides its spans.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChunkFacts {
    /// What its first record knows of its buffer.
    pub(crate) buffer: BufferState,
    /// A part of the trace may not begin with it.
    pub(crate) is_bound: bool,
    /// It has records of a buffer without a known thread.
    pub(crate) has_more_threads: bool,
    /// More is wrong than the walk reported.
    pub(crate) is_damaged: bool,
}

impl ChunkFacts {
    fn spans(&self) -> ChunkSpans {
        let (has_more_threads, is_damaged) = (self.has_more_threads, self.is_damaged);
        ChunkSpans { has_more_threads, is_damaged, ..ChunkSpans::default() }
    }
}

/// The spans of each chunk, and what all parts share, from followers that have followed all threads; `tracks` are those
/// threads in the order of their tracks. `None` where parts would differ from the trace.
pub(crate) fn chunks(
    followers: Vec<Follower>,
    tracks: Option<Vec<(u32, u32)>>,
    first_tsc: Option<u64>,
    facts: &[ChunkFacts],
    bytes: u64,
) -> Option<(Vec<ChunkSpans>, Shared)> {
    let (mut found, mut runs, mut spent, mut open) = (Vec::new(), Vec::new(), 0_usize, 0_usize);
    for follower in followers {
        let (own, own_runs, own_spent) = follower.finish()?;
        spent = spent.saturating_add(own_spent);
        open = own.iter().map(|track| track.open_max).fold(open, usize::saturating_add);
        found.extend(own);
        runs.extend(own_runs);
    }
    if spent >= SEARCH_BUDGET || open > OPEN_MAX {
        return None;
    }
    let mut shared = Shared { first_tsc, ..Shared::default() };
    shared.tracks = tracks.unwrap_or_else(|| found.iter().map(|track| track.key).collect());
    let numbers: HashMap<_, _> = shared.tracks.iter().copied().zip(0_usize..).collect();
    found.sort_by_key(|track| numbers.get(&track.key));
    for moved in found.iter().map(|track| track.moved).chain(found.iter().map(|track| track.moved_last)) {
        shared.moved += moved.times;
        shared.first_moved = shared.first_moved.or(moved.first);
    }
    let heads = heads(&runs, facts, (bytes / SHARE).max(STATES_MIN));
    let mut made: Vec<ChunkSpans> = facts.iter().map(ChunkFacts::spans).collect();
    let mut states: Vec<Vec<u8>> = vec![Vec::new(); facts.len()];
    for ((at, head), facts) in heads.iter().enumerate().zip(facts) {
        if at == *head
            && let (Some(spans), Some(state)) = (made.get_mut(at), states.get_mut(at))
        {
            (spans.begins, *state) = (true, facts.buffer.encode());
        } else if let Some(spans) = made.get_mut(*head) {
            spans.has_more_threads |= facts.has_more_threads;
        }
    }
    runs.sort_by_key(|run| (run.chunk, numbers.get(&run.key)));
    for run in runs {
        let head = heads.get(run.chunk).copied().unwrap_or(0);
        let before = run.before.and_then(|before| heads.get(before));
        let (Some(spans), Some(state)) = (made.get_mut(head), states.get_mut(head)) else { continue };
        add(spans, &run.spans);
        if !run.state.is_empty() && before != Some(&head) {
            push(state, numbers.get(&run.key).copied().unwrap_or(0) as u64);
            state.extend_from_slice(&run.state);
        }
    }
    for (spans, state) in made.iter_mut().zip(states) {
        spans.state = Arc::from(state);
    }
    Some((made, shared))
}

/// For each chunk the one with which it is read: with as many as their states fit.
fn heads(runs: &[FoundRun], facts: &[ChunkFacts], states_max: u64) -> Vec<usize> {
    let mut may_begin: Vec<usize> = (0..facts.len()).filter(|at| facts.get(*at).is_some_and(|f| !f.is_bound)).collect();
    loop {
        let mut next = may_begin.iter().copied().peekable();
        let mut head = 0;
        let heads: Vec<usize> = (0..facts.len())
            .map(|at| {
                head = next.next_if_eq(&at).unwrap_or(head);
                head
            })
            .collect();
        let of = |chunk: usize| heads.get(chunk).copied();
        let is_kept = |run: &&FoundRun| run.before.is_none_or(|before| of(before) != of(run.chunk));
        let size: u64 = runs.iter().filter(is_kept).map(|run| run.state.len() as u64).sum();
        if size <= states_max || may_begin.len() < 2 {
            return heads;
        }
        may_begin = may_begin.into_iter().step_by(2).collect();
    }
}

/// Adds what is known of a run.
fn add(spans: &mut ChunkSpans, run: &ChunkSpans) {
    run.starts.iter().for_each(|range| spans.add_starts(range.clone()));
    run.reach.iter().for_each(|reach| spans.add_reach(reach));
    run.carried.iter().for_each(|seqs| spans.add_carried(seqs));
}
