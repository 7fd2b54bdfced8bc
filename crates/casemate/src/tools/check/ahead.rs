//! Checking on several threads. Most of the time goes into parsing, so that is what is divided: the trace is cut into
//! pieces where a record seems to begin, threads parse them ahead, and this thread takes their steps through one machine
//! in order. Where a piece is anything but records (damage, a claim, output of the reference, a record across a cut), or
//! is not yet parsed, it is walked as without threads. Findings, their order and every count are those of one thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use anytrace_core::{Cursor, Error, Input, OpenOptions, Sink};

use super::{CountingSink, Run};
use crate::model::Checker;
use crate::wire::walk::ahead::{Ahead, Parsed};
use crate::wire::walk::push::Push;

/// Bytes of a piece: short, so that no thread waits long for another.
pub(super) const PIECE_BYTES: usize = 256 << 10;

/// Pieces that are read and not yet checked, for each thread.
const PIECES: usize = 4;

/// So many pieces in a row that are not plain: parsing ahead is wasted on this trace.
const FAILURES_MAX: u32 = 8;

/// A piece of the trace.
struct Piece {
    bytes: Arc<Vec<u8>>,
    offset: u64,
    state: State,
}

enum State {
    /// No thread has it.
    Waiting,
    Busy,
    Done(Parsed),
}

/// What the threads share. The piece at the front is number `first`.
#[derive(Default)]
struct Shared {
    pieces: VecDeque<Piece>,
    first: u64,
    is_over: bool,
    /// Memory to use again.
    spare: Vec<Parsed>,
}

#[derive(Default)]
struct Queue {
    shared: Mutex<Shared>,
    changed: Condvar,
}

/// A piece that a thread has; if the thread dies with it, it counts as not plain.
struct Claim<'a> {
    queue: &'a Queue,
    number: u64,
    bytes: Arc<Vec<u8>>,
    offset: u64,
    parsed: Parsed,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut shared = self.queue.lock();
        let at = self.number.checked_sub(shared.first).and_then(|at| usize::try_from(at).ok());
        if let Some(piece) = at.and_then(|at| shared.pieces.get_mut(at)) {
            piece.state = State::Done(std::mem::take(&mut self.parsed));
        }
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A thread that panicked left its piece as not plain.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the first piece that nobody has.
    fn claim<'a>(&'a self, shared: &mut Shared) -> Option<Claim<'a>> {
        let at = shared.pieces.iter().position(|piece| matches!(piece.state, State::Waiting))?;
        let parsed = shared.spare.pop().unwrap_or_default();
        let number = shared.first + at as u64;
        let piece = shared.pieces.get_mut(at)?;
        piece.state = State::Busy;
        Some(Claim { queue: self, number, bytes: Arc::clone(&piece.bytes), offset: piece.offset, parsed })
    }

    /// What the other threads do.
    fn work(&self, ahead: Ahead) {
        let mut shared = self.lock();
        while !shared.is_over {
            match self.claim(&mut shared) {
                Some(claim) => {
                    drop(shared);
                    parse(ahead, claim);
                    shared = self.lock();
                }
                None => shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// The first piece, with what is in it if it was parsed.
    fn first(&self, ahead: Ahead) -> Option<(Arc<Vec<u8>>, u64, Option<Parsed>)> {
        let mut shared = self.lock();
        loop {
            match shared.pieces.front()?.state {
                State::Waiting | State::Done(_) => break,
                // Another thread has it: meanwhile this one does what that one would do next.
                State::Busy => match self.claim(&mut shared) {
                    Some(claim) => {
                        drop(shared);
                        parse(ahead, claim);
                        shared = self.lock();
                    }
                    None => shared = self.changed.wait(shared).unwrap_or_else(PoisonError::into_inner),
                },
            }
        }
        let piece = shared.pieces.pop_front()?;
        shared.first += 1;
        let parsed = if let State::Done(parsed) = piece.state { Some(parsed) } else { None };
        Some((piece.bytes, piece.offset, parsed))
    }

    fn push(&self, bytes: Vec<u8>, offset: u64) {
        self.lock().pieces.push_back(Piece { bytes: Arc::new(bytes), offset, state: State::Waiting });
        self.changed.notify_one();
    }
}

fn parse(ahead: Ahead, mut claim: Claim<'_>) {
    let (bytes, offset) = (Arc::clone(&claim.bytes), claim.offset);
    ahead.parse(&bytes, offset, &mut claim.parsed);
}

/// Ends the threads, however the check ends.
struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.lock().is_over = true;
        self.0.changed.notify_all();
    }
}

/// As [`super::check()`], on several threads, this one included.
pub(super) fn check(
    input: Input,
    open: &OpenOptions,
    piece_bytes: usize,
    run: &mut Run,
    sink: &mut CountingSink<'_>,
) -> Result<(), Error> {
    let threads = open.threads;
    let mut source = Source { cursor: Cursor::new(input), piece_bytes, is_ended: false };
    let ahead = Ahead::new(open);
    let mut checking =
        Checking { checker: Checker::new(run.options.model), run, push: Push::new(open), ahead, failures: 0 };
    let queue = Queue::default();
    std::thread::scope(|scope| {
        let _end = End(&queue);
        let mut workers = 0;
        loop {
            while queue.lock().pieces.len() < PIECES * threads && checking.failures < FAILURES_MAX {
                let Some((bytes, offset)) = source.piece()? else { break };
                queue.push(bytes, offset);
            }
            // The second piece shows that the trace is long enough for another thread.
            let wanted = threads.min(queue.lock().pieces.len()).saturating_sub(1);
            while workers < wanted {
                workers += 1;
                scope.spawn(|| queue.work(ahead));
            }
            if let Some((bytes, offset, parsed)) = queue.first(ahead) {
                checking.piece(&bytes, offset, parsed.as_ref(), sink)?;
                queue.lock().spare.extend(parsed);
            } else if let Some((bytes, _)) = source.piece()? {
                checking.walk(&bytes, sink)?;
            } else {
                break;
            }
        }
        checking.end(sink)
    })?;
    source.cursor.report_layers(sink)
}

/// The bytes of the trace.
struct Source {
    cursor: Cursor,
    piece_bytes: usize,
    is_ended: bool,
}

impl Source {
    /// The next piece, which ends before what looks like a record, and its offset; none at the end.
    fn piece(&mut self) -> Result<Option<(Vec<u8>, u64)>, Error> {
        let got = if self.is_ended { self.cursor.window().len() } else { self.cursor.fill(self.piece_bytes)? };
        self.is_ended |= got < self.piece_bytes;
        let window = self.cursor.window();
        let all = window.get(..self.piece_bytes).unwrap_or(window);
        if all.is_empty() {
            return Ok(None);
        }
        let begins = |mark: &[u8]| memchr::memmem::rfind(all, mark).map(|at| at + 1).filter(|_| !self.is_ended);
        let length = begins(b"\n(").or_else(|| begins(b")(")).unwrap_or(all.len());
        let piece = (all.get(..length).unwrap_or(all).to_vec(), self.cursor.offset());
        self.cursor.advance(piece.0.len());
        Ok(Some(piece))
    }
}

struct Checking<'a> {
    run: &'a mut Run,
    checker: Checker,
    push: Push,
    ahead: Ahead,
    failures: u32,
}

impl Checking<'_> {
    /// Checks the next piece.
    fn piece(
        &mut self,
        bytes: &[u8],
        offset: u64,
        parsed: Option<&Parsed>,
        sink: &mut CountingSink<'_>,
    ) -> Result<(), Error> {
        match parsed {
            Some(parsed) if parsed.is_plain && self.push.is_at(offset) => {
                self.failures = 0;
                self.steps(bytes, parsed, sink);
                self.push.pass_plain(parsed, bytes);
                Ok(())
            }
            _ => {
                self.failures += u32::from(parsed.is_some());
                self.walk(bytes, sink)
            }
        }
    }

    /// The same without what was parsed ahead.
    fn walk(&mut self, bytes: &[u8], sink: &mut CountingSink<'_>) -> Result<(), Error> {
        let Self { run, checker, push, .. } = self;
        push.push(bytes, sink, &mut |item, place| {
            run.take(checker, &item, place);
            Ok(())
        })
    }

    /// The hot loop: steps of a plain piece.
    fn steps(&mut self, bytes: &[u8], parsed: &Parsed, sink: &mut dyn Sink) {
        let Self { run, checker, push, ahead, .. } = self;
        let before = push.records();
        for (number, step) in (0..).zip(&parsed.steps) {
            if run.is_over {
                break;
            }
            if !checker.step(step.thread, &step.transition).is_empty() {
                let found = checker.found().to_vec();
                if let Some(record) = ahead.record(bytes, step.at) {
                    run.found(checker, &found, &record, &mut push.here(bytes, step.at, number, sink));
                }
            }
            run.report.events = before + number + 1;
        }
    }

    fn end(&mut self, sink: &mut CountingSink<'_>) -> Result<(), Error> {
        let Self { run, checker, push, .. } = self;
        push.end(sink, &mut |item, place| {
            run.take(checker, &item, place);
            Ok(())
        })
    }
}
