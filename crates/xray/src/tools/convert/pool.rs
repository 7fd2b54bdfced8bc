//! Formats windows of a trace in parallel and writes them in order.
//!
//! Each worker takes the next window, merges it, and formats it; the calling thread also writes. Steps that must happen
//! in the order of the trace are done in turns.
//!
//! # Why this terminates
//!
//! No thread waits with the lock taken, except on the condition variable, for one of two events. A thread that waits
//! for a turn waits for windows before its own, which were taken before it: the first of them that is not done waits
//! for nothing. A thread that waits for a window to be written waits for the calling thread, which is writing or
//! working. A window that fails never takes its turn: the windows after it give up, those before it are finished and
//! written, so the outcome does not depend on the number of threads. A thread that panics ends all work.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use anytrace_core::Error;

use super::batch::Batch;

/// Windows that may be in progress beyond one per thread.
const AHEAD: usize = 2;

/// Kinds of turns.
const TURNS: usize = 2;

/// A worker of the pool.
pub(super) trait Worker {
    /// Appends the text of a window, and returns the batches that follow it and were too many to format at once.
    fn window(&mut self, window: usize, turns: &Turns<'_>, text: &mut Vec<u8>) -> Result<Vec<Batch>, Error>;

    /// Appends the text of one of the returned batches.
    fn rest(&mut self, batch: &Batch, text: &mut Vec<u8>);
}

/// The result of a window.
type WindowText = (Vec<u8>, Vec<Batch>);

#[derive(Default)]
struct PoolState {
    /// The next window to be taken.
    next: usize,
    /// The next window to be written.
    written: usize,
    done: BTreeMap<usize, WindowText>,
    spare: Vec<Vec<u8>>,
    /// The window whose turn is next, for each kind of turn.
    turns: [usize; TURNS],
    /// No more work is to be done: writing failed, or a thread panicked.
    is_over: bool,
    /// The first window that failed, and its error.
    failure: Option<(usize, Error)>,
}

impl PoolState {
    /// True when no window is left to begin.
    fn is_idle(&self, count: usize) -> bool {
        self.is_over || self.failure.is_some() || self.next >= count
    }

    /// True if a window's turn never comes.
    fn is_lost(&self, window: usize) -> bool {
        self.is_over || self.failure.as_ref().is_some_and(|failure| failure.0 < window)
    }
}

/// State shared by the workers.
struct Pool {
    state: Mutex<PoolState>,
    changed: Condvar,
    count: usize,
    ahead: usize,
}

/// Access to the steps that are done in the order of windows.
pub(super) struct Turns<'a> {
    pool: &'a Pool,
    window: usize,
}

impl Turns<'_> {
    /// Calls `act` when all earlier windows have had their turn of this kind.
    pub(super) fn take<M, T>(&self, kind: usize, memory: &Mutex<M>, act: impl FnOnce(&mut M) -> T) -> Result<T, Error> {
        let window = self.window;
        let is_waiting = |state: &mut PoolState| !state.is_lost(window) && state.turns.get(kind) != Some(&window);
        let state = self.pool.changed.wait_while(self.pool.lock(), is_waiting).unwrap_or_else(PoisonError::into_inner);
        if state.is_lost(window) {
            return Err(lost());
        }
        drop(state);
        let result = act(&mut *memory.lock().map_err(|_| lost())?);
        if let Some(turn) = self.pool.lock().turns.get_mut(kind) {
            *turn += 1;
        }
        self.pool.changed.notify_all();
        Ok(result)
    }
}

/// Ends all work when a thread panics.
struct EndsAll<'a>(&'a Pool);

impl Drop for EndsAll<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end();
        }
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().is_over = true;
        self.changed.notify_all();
    }

    /// Takes a window if one is left and it is not too far ahead.
    fn claim(&self, state: &mut PoolState) -> Option<(usize, Vec<u8>)> {
        if state.is_idle(self.count) || state.next >= state.written + self.ahead {
            return None;
        }
        state.next += 1;
        Some((state.next - 1, state.spare.pop().unwrap_or_default()))
    }

    fn make(&self, worker: &mut impl Worker, window: usize, mut text: Vec<u8>) {
        let made = worker.window(window, &Turns { pool: self, window }, &mut text);
        let mut state = self.lock();
        match made {
            Ok(rest) => {
                state.done.insert(window, (text, rest));
            }
            // A window that gave up comes after the one that failed.
            Err(error) if state.failure.as_ref().is_none_or(|known| window < known.0) => {
                state.failure = Some((window, error));
            }
            Err(_) => {}
        }
        drop(state);
        self.changed.notify_all();
    }

    fn work(&self, mut worker: impl Worker) {
        let _ends_all = EndsAll(self);
        loop {
            let mut state = self.lock();
            let (window, text) = loop {
                if state.is_idle(self.count) {
                    return;
                }
                match self.claim(&mut state) {
                    Some(claimed) => break claimed,
                    None => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(state);
            self.make(&mut worker, window, text);
        }
    }

    /// Writes all windows, and works when the next one is not ready.
    fn lead<W: Worker>(&self, worker: &mut W, out: &mut dyn Write) -> Result<(), Error> {
        let _ends_all = EndsAll(self);
        let mut state = self.lock();
        while state.written < self.count {
            let written = state.written;
            if let Some(done) = state.done.remove(&written) {
                drop(state);
                let text = write(worker, done, out)?;
                state = self.lock();
                state.written += 1;
                state.spare.push(text);
                self.changed.notify_all();
            } else if let Some((window, text)) = self.claim(&mut state) {
                drop(state);
                self.make(worker, window, text);
                state = self.lock();
            } else if let Some((_, error)) = state.failure.take_if(|failure| failure.0 == written) {
                state.is_over = true;
                return Err(error);
            } else if state.is_over {
                return Err(lost());
            } else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
        Ok(())
    }
}

/// Writes a window; returns the emptied text buffer.
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

/// Writes the text of `count` windows, formatted by `threads` threads, each with its own worker from `make`.
pub(super) fn run<W: Worker>(
    count: usize,
    threads: usize,
    make: impl Fn() -> W + Sync,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let threads = threads.min(count);
    let pool = Pool { state: Mutex::default(), changed: Condvar::new(), count, ahead: threads + AHEAD };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| pool.work(make()));
        }
        // Also covers a panic while a worker is made.
        let _ends_all = EndsAll(&pool);
        let result = pool.lead(&mut make(), out);
        pool.end();
        result
    })
}

/// A worker ends early only by a panic, which the scope then raises again.
fn lost() -> Error {
    Error::io("cannot format", std::io::Error::other("a worker ended early"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Longer than any run takes on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(120);

    const COUNT: usize = 60;

    #[derive(Clone, Copy, PartialEq)]
    enum Ending {
        Fine,
        Fails,
        Panics,
    }

    /// Takes a turn of each kind; one window fails before its turn number `turns`.
    struct Toy<'a> {
        bad: usize,
        turns: usize,
        ending: Ending,
        sums: &'a [Mutex<usize>; TURNS],
    }

    impl Worker for Toy<'_> {
        fn window(&mut self, window: usize, turns: &Turns<'_>, text: &mut Vec<u8>) -> Result<Vec<Batch>, Error> {
            (0..window % 7).for_each(|_| std::thread::yield_now());
            for (kind, sum) in self.sums.iter().enumerate() {
                if window == self.bad && kind == self.turns {
                    match self.ending {
                        Ending::Fine => {}
                        Ending::Fails => return Err(Error::limit(format!("window {window}"))),
                        Ending::Panics => panic!("as asked for"),
                    }
                }
                turns.take(kind, sum, |sum| {
                    assert_eq!(*sum, window);
                    *sum += 1;
                })?;
            }
            if window == self.bad && self.turns >= TURNS && self.ending == Ending::Fails {
                return Err(Error::limit(format!("window {window}")));
            }
            writeln!(text, "{window}")?;
            Ok(Vec::new())
        }

        fn rest(&mut self, _: &Batch, _: &mut Vec<u8>) {}
    }

    /// Fails if the run does not terminate.
    fn watched(threads: usize, bad: usize, turns: usize, ending: Ending) -> (Option<Result<(), String>>, String) {
        let (done, ended) = channel();
        let run = move || {
            let sums = [Mutex::new(0), Mutex::new(0)];
            let mut out = Vec::new();
            let make = || Toy { bad, turns, ending, sums: &sums };
            let result = catch_unwind(AssertUnwindSafe(|| run(COUNT, threads, make, &mut out)));
            let result = result.ok().map(|result| result.map_err(|error| error.to_string()));
            let _ = done.send((result, String::from_utf8_lossy(&out).into_owned()));
        };
        std::thread::spawn(run);
        let what = || format!("{threads} threads, window {bad}, turn {turns}: still not over");
        ended.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("{}", what()))
    }

    fn numbers(to: usize) -> String {
        (0..to).map(|n| format!("{n}\n")).collect()
    }

    #[test]
    fn a_window_that_fails_ends_the_run_and_those_before_it_are_written() {
        for threads in [1, 2, 3, 8] {
            assert_eq!(watched(threads, COUNT, 0, Ending::Fine), (Some(Ok(())), numbers(COUNT)));
            for bad in [0, 1, 2, 17, COUNT - 1] {
                for turns in 0..=TURNS {
                    for _ in 0..5 {
                        let (result, text) = watched(threads, bad, turns, Ending::Fails);
                        assert!(result.unwrap().unwrap_err().contains(&format!("window {bad}")));
                        assert_eq!(text, numbers(bad), "{threads} threads, window {bad}, turn {turns}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_panic_ends_the_run() {
        for threads in [1, 2, 8] {
            for bad in [0, 1, 17, COUNT - 1] {
                for turns in 0..TURNS {
                    assert!(watched(threads, bad, turns, Ending::Panics).0.is_none_or(|result| result.is_err()));
                }
            }
        }
    }
}
