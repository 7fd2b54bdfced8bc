//! Formats batches, some of them in other threads, and writes their text in order.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Scope;

use anytrace_core::Error;

use super::batch::{Batch, Shared};

/// Turns batches into text.
pub(super) trait Formatter: Clone + Send {
    /// Appends the text of a batch. Batches come in order, but not every one comes to every clone.
    fn format(&mut self, batch: &Batch, shared: &Shared, out: &mut Vec<u8>);
}

/// A batch to format, and where it goes back to.
struct Job {
    batch: Batch,
    text: Vec<u8>,
    back: SyncSender<(Batch, Vec<u8>)>,
}

/// The text of a batch, or where it will come from.
enum Slot {
    Ready(Batch, Vec<u8>),
    Away(Receiver<(Batch, Vec<u8>)>),
}

/// Jobs that wait for workers; further batches are formatted by the thread that makes them.
const JOBS_A_WORKER: usize = 2;

/// Formats and writes.
pub(super) struct Stage<'a, F> {
    formatter: F,
    shared: &'a Shared,
    out: &'a mut dyn Write,
    jobs: Option<SyncSender<Job>>,
    queue: VecDeque<Slot>,
    queue_max: usize,
    spare: Vec<(Batch, Vec<u8>)>,
}

/// The place where workers take jobs from.
pub(super) struct Bench {
    sender: Option<SyncSender<Job>>,
    receiver: Mutex<Receiver<Job>>,
    workers: usize,
}

impl Bench {
    /// For `threads` threads in all, the one that calls included.
    pub(super) fn new(threads: usize) -> Self {
        let workers = threads.saturating_sub(1);
        let (sender, receiver) = sync_channel(JOBS_A_WORKER * workers.max(1));
        Self { sender: (workers > 0).then_some(sender), receiver: Mutex::new(receiver), workers }
    }

    /// Starts the workers, and gives the stage that feeds them. They end when the stage is gone.
    pub(super) fn stage<'scope, 'env, F: Formatter + 'scope>(
        &'env mut self,
        scope: &'scope Scope<'scope, 'env>,
        formatter: F,
        shared: &'env Shared,
        out: &'env mut dyn Write,
    ) -> Stage<'env, F> {
        let jobs = self.sender.take();
        let receiver = &self.receiver;
        for _ in 0..self.workers {
            let mut formatter = formatter.clone();
            scope.spawn(move || work(receiver, &mut formatter, shared));
        }
        let (queue, spare) = (VecDeque::new(), Vec::new());
        Stage { formatter, shared, out, jobs, queue, queue_max: 4 * self.workers + 4, spare }
    }
}

fn work<F: Formatter>(jobs: &Mutex<Receiver<Job>>, formatter: &mut F, shared: &Shared) {
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { batch, mut text, back }) = job else { return };
        formatter.format(&batch, shared, &mut text);
        // Nobody waits for it where writing failed meanwhile.
        let _ = back.send((batch, text));
    }
}

impl<F: Formatter> Stage<'_, F> {
    /// Takes a full batch and gives an empty one for it.
    pub(super) fn pass(&mut self, batch: Batch) -> Result<Batch, Error> {
        let (empty, text) = self.spare.pop().unwrap_or_default();
        let slot = self.begin(batch, text);
        self.queue.push_back(slot);
        self.settle()?;
        Ok(empty)
    }

    /// Writes text that stands between batches.
    pub(super) fn put(&mut self, text: &[u8]) -> Result<(), Error> {
        self.drain()?;
        Ok(self.out.write_all(text)?)
    }

    /// Waits for all batches and writes them.
    pub(super) fn drain(&mut self) -> Result<(), Error> {
        while let Some(slot) = self.queue.pop_front() {
            let done = match slot {
                Slot::Ready(batch, text) => (batch, text),
                Slot::Away(back) => back.recv().map_err(|_| lost())?,
            };
            self.write(done)?;
        }
        Ok(())
    }

    fn begin(&mut self, batch: Batch, text: Vec<u8>) -> Slot {
        let (mut batch, mut text) = (batch, text);
        if let Some(jobs) = &self.jobs {
            let (back, receiver) = sync_channel(1);
            match jobs.try_send(Job { batch, text, back }) {
                Ok(()) => return Slot::Away(receiver),
                Err(error) => {
                    let (std::sync::mpsc::TrySendError::Full(job) | std::sync::mpsc::TrySendError::Disconnected(job)) =
                        error;
                    (batch, text) = (job.batch, job.text);
                }
            }
        }
        self.formatter.format(&batch, self.shared, &mut text);
        Slot::Ready(batch, text)
    }

    /// Writes what is ready, and waits where too much is under way.
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

/// A worker ends early only by a panic, which the scope then raises again.
fn lost() -> Error {
    Error::io("cannot format", std::io::Error::other("a worker ended early"))
}
