//! Formats batches, in other threads if there are any, and writes their text in order.
//!
//! # Why this terminates
//!
//! Jobs are taken in order, so the oldest one that is not done waits for no turn but its own; returning its text never
//! blocks, because each job has a channel with capacity for it. The calling thread waits for a worker to take a job, or
//! for the oldest text. A worker that panics drops its job, which ends the second wait, and the workers own the
//! receiver of jobs: when the last worker ends, that ends the first wait. Only workers without a job ever wait for the
//! lock on the receiver.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;

use anytrace_core::Error;

use super::batch::{Batch, Shared};

/// Turns batches into text.
pub(super) trait Formatter: Clone + Send {
    /// State that [`Self::complete`] keeps from batch to batch.
    type Memory: Send;

    /// Completes a batch with the state of earlier batches: called once for each batch, in order.
    fn complete(memory: &mut Self::Memory, batch: &mut Batch);

    /// Appends the text of a batch. Batches come in order, but not every clone gets every batch.
    fn format(&mut self, batch: &Batch, shared: &Shared, out: &mut Vec<u8>);
}

/// A batch to format, and where to return it.
struct Job {
    number: u64,
    batch: Batch,
    text: Vec<u8>,
    back: SyncSender<(Batch, Vec<u8>)>,
}

/// The text of a batch, or where it will come from.
enum Slot {
    Ready(Batch, Vec<u8>),
    Away(Receiver<(Batch, Vec<u8>)>),
}

/// Jobs queued for each worker.
const JOBS_A_WORKER: usize = 2;

/// State that is accessed in order, by whichever thread has the next batch.
struct Turn<M> {
    /// The number of the next batch.
    state: Mutex<(u64, M)>,
    passed: Condvar,
}

/// Wakes the threads that wait for a turn, also when it ends in a panic.
struct Pass<'a>(&'a Condvar);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.notify_all();
    }
}

impl<M> Turn<M> {
    /// Calls `act` when it is the batch's turn; `None` if an earlier turn never ended.
    fn take<T>(&self, number: u64, act: impl FnOnce(&mut M) -> T) -> Option<T> {
        let _pass = Pass(&self.passed);
        let mut state = self.passed.wait_while(self.state.lock().ok()?, |state| state.0 != number).ok()?;
        let result = act(&mut state.1);
        state.0 += 1;
        Some(result)
    }
}

/// Formats and writes.
pub(super) struct Stage<'a, F: Formatter> {
    formatter: F,
    shared: &'a Shared,
    turn: &'a Turn<F::Memory>,
    out: &'a mut dyn Write,
    jobs: Option<SyncSender<Job>>,
    batches: u64,
    queue: VecDeque<Slot>,
    queue_max: usize,
    spare: Vec<(Batch, Vec<u8>)>,
    threads: usize,
}

/// The queue from which workers take jobs.
pub(super) struct Bench<F: Formatter> {
    turn: Turn<F::Memory>,
    sender: Option<SyncSender<Job>>,
    /// Owned only by the workers once they are started.
    receiver: Option<Receiver<Job>>,
    workers: usize,
}

impl<F: Formatter> Bench<F> {
    /// For `threads` threads in all, including the calling one.
    pub(super) fn new(threads: usize, memory: F::Memory) -> Self {
        let workers = threads.saturating_sub(1);
        let (sender, receiver) = sync_channel(JOBS_A_WORKER * workers.max(1));
        let turn = Turn { state: Mutex::new((0, memory)), passed: Condvar::new() };
        Self { turn, sender: (workers > 0).then_some(sender), receiver: Some(receiver), workers }
    }

    /// Starts the workers, and returns the stage that feeds them. They end when the stage is dropped.
    pub(super) fn stage<'scope, 'env>(
        &'env mut self,
        scope: &'scope Scope<'scope, 'env>,
        formatter: F,
        shared: &'env Shared,
        out: &'env mut dyn Write,
    ) -> Stage<'env, F>
    where
        F: 'scope,
        'env: 'scope,
    {
        let jobs = self.sender.take();
        let receiver = self.receiver.take().map(|receiver| Arc::new(Mutex::new(receiver)));
        let turn = &self.turn;
        for receiver in std::iter::repeat_n(receiver, self.workers).flatten() {
            let mut formatter = formatter.clone();
            scope.spawn(move || work(&receiver, turn, &mut formatter, shared));
        }
        let (queue, spare, threads) = (VecDeque::new(), Vec::new(), self.workers + 1);
        Stage { formatter, shared, turn, out, jobs, batches: 0, queue, queue_max: 4 * threads, spare, threads }
    }
}

fn work<F: Formatter>(jobs: &Mutex<Receiver<Job>>, turn: &Turn<F::Memory>, formatter: &mut F, shared: &Shared) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { number, mut batch, mut text, back }) = job else { return };
        let Some(()) = turn.take(number, |memory| F::complete(memory, &mut batch)) else { return };
        formatter.format(&batch, shared, &mut text);
        // There is no receiver if writing failed in the meantime.
        let _ = back.send((batch, text));
    }
}

impl<'a, F: Formatter> Stage<'a, F> {
    /// Takes a full batch and returns an empty one in exchange.
    pub(super) fn pass(&mut self, batch: Batch) -> Result<Batch, Error> {
        let (empty, text) = self.spare.pop().unwrap_or_default();
        let slot = self.begin(batch, text)?;
        self.queue.push_back(slot);
        self.settle()?;
        Ok(empty)
    }

    /// Writes text that belongs between batches.
    pub(super) fn put(&mut self, text: &[u8]) -> Result<(), Error> {
        self.flush()?;
        Ok(self.out.write_all(text)?)
    }

    /// The state after all batches, when they are done.
    pub(super) fn memory(&mut self) -> Result<MutexGuard<'a, (u64, F::Memory)>, Error> {
        self.flush()?;
        self.turn.state.lock().map_err(|_| lost())
    }

    /// Where to write text that belongs between batches, once they are written, and the number of threads.
    pub(super) fn out(&mut self) -> (&mut dyn Write, usize) {
        (self.out, self.threads)
    }

    /// Waits for all batches and writes them.
    fn flush(&mut self) -> Result<(), Error> {
        while let Some(slot) = self.queue.pop_front() {
            let done = match slot {
                Slot::Ready(batch, text) => (batch, text),
                Slot::Away(back) => back.recv().map_err(|_| lost())?,
            };
            self.write(done)?;
        }
        Ok(())
    }

    fn begin(&mut self, mut batch: Batch, mut text: Vec<u8>) -> Result<Slot, Error> {
        let number = self.batches;
        self.batches += 1;
        if let Some(jobs) = &self.jobs {
            let (back, receiver) = sync_channel(1);
            jobs.send(Job { number, batch, text, back }).map_err(|_| lost())?;
            return Ok(Slot::Away(receiver));
        }
        self.turn.take(number, |memory| F::complete(memory, &mut batch)).ok_or_else(lost)?;
        self.formatter.format(&batch, self.shared, &mut text);
        Ok(Slot::Ready(batch, text))
    }

    /// Writes the text that is ready, and waits if too much is in progress.
    fn settle(&mut self) -> Result<(), Error> {
        while let Some(slot) = self.queue.pop_front() {
            let done = match slot {
                Slot::Ready(batch, text) => (batch, text),
                Slot::Away(back) if self.queue.len() >= self.queue_max => back.recv().map_err(|_| lost())?,
                Slot::Away(back) => match back.try_recv() {
                    Ok(done) => done,
                    Err(TryRecvError::Empty) => {
                        self.queue.push_front(Slot::Away(back));
                        return Ok(());
                    }
                    Err(TryRecvError::Disconnected) => return Err(lost()),
                },
            };
            self.write(done)?;
        }
        Ok(())
    }

    fn write(&mut self, (mut batch, mut text): (Batch, Vec<u8>)) -> Result<(), Error> {
        self.out.write_all(&text)?;
        batch.clear();
        text.clear();
        self.spare.push((batch, text));
        Ok(())
    }
}

/// Writes the text of `count` items, each appended by `put`, which any of `threads` threads may call.
pub(super) fn put_all(
    threads: usize,
    count: usize,
    put: impl Fn(usize, &mut Vec<u8>) + Sync,
    out: &mut dyn Write,
) -> Result<(), Error> {
    const PIECE: usize = 1 << 14;
    let mut texts: Vec<Vec<u8>> = Vec::new();
    texts.resize_with(threads, Vec::new);
    for start in (0..count).step_by(PIECE * threads.max(1)) {
        let piece = |n: usize, text: &mut Vec<u8>| {
            let from = start + n * PIECE;
            // On the thread's own stack: the neighbors in `texts` are written by other threads.
            let mut own = std::mem::take(text);
            own.clear();
            (from..count.min(from + PIECE)).for_each(|thing| put(thing, &mut own));
            *text = own;
        };
        std::thread::scope(|scope| {
            let mut texts = texts.iter_mut().enumerate();
            let own = texts.next();
            for (n, text) in texts {
                scope.spawn(move || piece(n, text));
            }
            if let Some((n, text)) = own {
                piece(n, text);
            }
        });
        texts.iter().try_for_each(|text| out.write_all(text))?;
    }
    Ok(())
}

/// A worker ends early only by a panic, which the scope then raises again.
fn lost() -> Error {
    Error::io("cannot format", std::io::Error::other("a worker ended early"))
}
