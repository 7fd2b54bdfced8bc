//! Stretches of a trace made into text side by side, and written in order.
//!
//! Everybody takes the next window, merges it, and formats it; the one who calls also writes. What must happen in the
//! order of the trace is done in turns.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anytrace_core::Error;

use super::batch::Batch;

/// Windows that may be under way beyond one for each thread.
const AHEAD: usize = 2;

/// Kinds of turns.
const TURNS: usize = 2;

/// One of those who work.
pub(super) trait Worker {
    /// Appends the text of a window, and gives the batches that come behind it and were too many to format at once.
    fn window(&mut self, window: usize, turns: &Turns<'_>, text: &mut Vec<u8>) -> Result<Vec<Batch>, Error>;

    /// Appends the text of a batch that was left over.
    fn rest(&mut self, batch: &Batch, text: &mut Vec<u8>);
}

/// What came of a window.
type Done = Result<(Vec<u8>, Vec<Batch>), Error>;

#[derive(Default)]
struct State {
    /// The next window to be taken.
    next: usize,
    /// The next window to be written.
    written: usize,
    done: BTreeMap<usize, Done>,
    spare: Vec<Vec<u8>>,
    /// The window whose turn is next, of each kind of turn.
    turns: [usize; TURNS],
    /// Nothing more is to be done: writing failed, or somebody panicked.
    is_over: bool,
}

/// What those who work share.
struct Crew {
    state: Mutex<State>,
    changed: Condvar,
    count: usize,
    ahead: usize,
}

/// What is done in the order of windows.
pub(super) struct Turns<'a> {
    crew: &'a Crew,
    window: usize,
}

impl Turns<'_> {
    /// Calls `act` when all windows before have had their turn of this kind.
    pub(super) fn take<M, T>(&self, kind: usize, memory: &Mutex<M>, act: impl FnOnce(&mut M) -> T) -> Result<T, Error> {
        let is_waiting = |state: &mut State| !state.is_over && state.turns.get(kind).is_some_and(|&n| n != self.window);
        let state = self.crew.changed.wait_while(self.crew.lock(), is_waiting).unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Err(lost());
        }
        drop(state);
        let result = act(&mut *memory.lock().map_err(|_| lost())?);
        if let Some(turn) = self.crew.lock().turns.get_mut(kind) {
            *turn += 1;
        }
        self.crew.changed.notify_all();
        Ok(result)
    }
}

/// Ends all when somebody panics.
struct EndsAll<'a>(&'a Crew);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

impl Crew {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Takes a window where one is left and not too far ahead.
    fn claim(&self, state: &mut State) -> Option<(usize, Vec<u8>)> {
        if state.is_over || state.next >= self.count || state.next >= state.written + self.ahead {
            return None;
        }
        state.next += 1;
        Some((state.next - 1, state.spare.pop().unwrap_or_default()))
    }

    fn make(&self, worker: &mut impl Worker, window: usize, mut text: Vec<u8>) -> Done {
        let rest = worker.window(window, &Turns { crew: self, window }, &mut text)?;
        Ok((text, rest))
    }

    fn work(&self, mut worker: impl Worker) {
        let _ends_all = EndsAll(self);
        loop {
            let mut state = self.lock();
            let (window, text) = loop {
                if state.is_over || state.next >= self.count {
                    return;
                }
                match self.claim(&mut state) {
                    Some(claimed) => break claimed,
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            let done = self.make(&mut worker, window, text);
            self.lock().done.insert(window, done);
            self.changed.notify_all();
        }
    }

    /// Writes all windows, and works where the next is not ready.
    fn lead<W: Worker>(&self, worker: &mut W, out: &mut dyn Write) -> Result<(), Error> {
        let _ends_all = EndsAll(self);
        let mut state = self.lock();
        while state.written < self.count {
            let written = state.written;
            if let Some(done) = state.done.remove(&written) {
                drop(state);
                let text = write(worker, done?, out)?;
                state = self.lock();
                state.written += 1;
                state.spare.push(text);
                self.changed.notify_all();
            } else if let Some((window, text)) = self.claim(&mut state) {
                drop(state);
                let done = self.make(worker, window, text);
                state = self.lock();
                state.done.insert(window, done);
            } else if state.is_over {
                return Err(lost());
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }
}

/// Writes a window; gives the empty text back.
fn write(
    worker: &mut impl Worker,
    (mut text, rest): (Vec<u8>, Vec<Batch>),
    out: &mut dyn Write,
) -> Result<Vec<u8>, Error> {
    out.write_all(&text)?;
    text.clear();
    for batch in rest {
        worker.rest(&batch, &mut text);
        out.write_all(&text)?;
        text.clear();
    }
    Ok(text)
}

/// Writes the text of `count` windows, worked on by `threads` threads, each with a worker of its own from `make`.
pub(super) fn run<W: Worker>(
    count: usize,
    threads: usize,
    make: impl Fn() -> W + Sync,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let threads = threads.min(count);
    let crew = Crew { state: Mutex::default(), changed: Condvar::new(), count, ahead: threads + AHEAD };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| crew.work(make()));
        }
        let result = crew.lead(&mut make(), out);
        crew.end();
        result
    })
}

/// A worker ends early only by a panic, which the scope then raises again.
fn lost() -> Error {
    Error::io("cannot format", std::io::Error::other("a worker ended early"))
}
