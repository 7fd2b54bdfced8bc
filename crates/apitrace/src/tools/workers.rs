//! Formats text in this thread or in others and writes it in order.
//!
//! The reading thread gathers calls in batches and hands them to workers that have room. If none has room, it formats
//! the batch itself, so that no thread waits for another. Texts are written in the order of the batches, whichever
//! thread made them.
//!
//! # Why this ends
//!
//! There is no lock: threads share only definitions, which are parsed once, never changed, and sent with the first
//! batch that needs them. The only waits are on channels:
//!
//! - The reader never waits to hand a batch out: a worker never has more batches than its channel has room for.
//! - A worker waits for a batch, which ends when the reader is gone, or to hand a text back, which ends when the reader
//!   takes it or is gone. It processes its batches in order, so its oldest text comes first.
//! - The reader waits for the oldest text only, and takes all of it whatever its size. The worker that makes this text
//!   waits for no other thread. A worker that panicked closes its channel, which ends the wait.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread;

use anytrace_core::Error;

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Definition, Dictionary, Known};
use crate::lanes::formatter::{CallPrinter, Flush, Formatter};

/// How much may be in flight at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// Bytes of calls that make a batch full.
    batch_bytes: usize,
    /// Calls that make a batch full.
    batch_calls: usize,
    /// Batches a worker may have, including the one in work.
    batches_each: usize,
    /// Batches per thread that may be formatted and not yet written.
    queue_each: usize,
    /// A batch of more bytes than this is processed alone, so that no two such batches are in memory.
    large_bytes: usize,
    /// A text of more bytes than this is passed on before the batch is complete.
    text_bytes: usize,
}

const SIZES: Sizes = Sizes {
    batch_bytes: 1 << 18,
    batch_calls: 1 << 13,
    batches_each: 2,
    queue_each: 4,
    large_bytes: 1 << 22,
    text_bytes: 1 << 21,
};

/// A call in a batch; its bytes follow those of the call before.
struct Row {
    number: u64,
    thread: u64,
    function: u32,
    is_incomplete: bool,
    enter_bytes: usize,
    leave_bytes: usize,
}

/// Definitions that came together.
type News = Arc<[Known]>;

/// A batch sent to a worker.
struct Job {
    batch: Batch,
    version: u64,
    /// Definitions since the worker's last job.
    news: Vec<News>,
}

#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    bytes: Vec<u8>,
    text: Vec<u8>,
}

/// The result of a worker.
enum Made {
    /// Text of a batch that is not complete.
    Part(Vec<u8>),
    /// The batch with the rest of its text.
    Done(Result<Batch, Error>),
}

struct Worker {
    jobs: SyncSender<Job>,
    made: Receiver<Made>,
    /// Batches it was given and has not returned.
    has: usize,
    /// Definitions it was not given yet.
    unseen: Vec<News>,
}

/// Where the text of a batch comes from.
enum Slot {
    /// From the worker of that number.
    Away(usize),
    /// It was formatted by the reading thread.
    Ready(Batch),
}

/// The workers and the batch that is being filled. Between calls, `queue` contains the batches not written yet, oldest
/// first, and each worker's `unseen` the definitions it needs before its next batch.
pub(crate) struct WorkerPool<'a, S> {
    workers: Vec<Worker>,
    /// For batches that the reading thread formats itself, when all workers are busy.
    formatter: S,
    version: u64,
    dictionary: Dictionary,
    /// Definitions that came since the last batch was handed out.
    news: Vec<Known>,
    sizes: Sizes,
    out: &'a mut dyn Write,
    batch: Batch,
    spare: Vec<Batch>,
    /// Batches not written yet, in order.
    queue: VecDeque<Slot>,
}

fn gone<T>(_: T) -> Error {
    Error::io("a thread ended early", std::io::Error::from(std::io::ErrorKind::BrokenPipe))
}

impl<S: Formatter> WorkerPool<'_, S> {
    /// Runs `read` with this many workers and waits until all text is written.
    pub(crate) fn run<T>(
        count: usize,
        formatter: impl Fn() -> S,
        out: &mut dyn Write,
        read: impl FnOnce(&mut WorkerPool<'_, S>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        Self::run_with(SIZES, count, formatter, out, read)
    }

    fn run_with<T>(
        sizes: Sizes,
        count: usize,
        formatter: impl Fn() -> S,
        out: &mut dyn Write,
        read: impl FnOnce(&mut WorkerPool<'_, S>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for _ in 0..count {
                let (jobs, to_do) = sync_channel(sizes.batches_each);
                let (done, made) = sync_channel(sizes.batches_each);
                let formatter = formatter();
                thread::Builder::new()
                    .name("text".to_owned())
                    .spawn_scoped(scope, move || work(formatter, sizes, &to_do, &done))
                    .map_err(|error| Error::io("cannot start a thread", error))?;
                workers.push(Worker { jobs, made, has: 0, unseen: Vec::new() });
            }
            let (formatter, dictionary, batch) = (formatter(), Dictionary::default(), Batch::default());
            let (version, news, spare, queue) = (0, Vec::new(), Vec::new(), VecDeque::new());
            let mut pool =
                WorkerPool { workers, formatter, version, dictionary, news, sizes, out, batch, spare, queue };
            let result = read(&mut pool)?;
            pool.hand_out()?;
            pool.write_queue()?;
            Ok(result)
            // Dropping the channels ends the workers.
        })
    }

    /// Sends the batch to a worker that has room, or formats it in this thread.
    fn hand_out(&mut self) -> Result<(), Error> {
        // Definitions first: the batch may use any that came before its last call.
        self.spread_news();
        while self.take_back(self.queue.len() >= self.sizes.queue_each * (self.workers.len() + 1))? {}
        let batch = std::mem::replace(&mut self.batch, self.spare.pop().unwrap_or_default());
        let room = self.sizes.batches_each;
        let idle = self.workers.iter_mut().enumerate().filter(|(_, worker)| worker.has < room);
        // The worker with the fewest batches is probably done first.
        match idle.min_by_key(|(_, worker)| worker.has) {
            Some((number, worker)) => {
                let job = Job { batch, version: self.version, news: std::mem::take(&mut worker.unseen) };
                worker.jobs.send(job).map_err(gone)?;
                worker.has += 1;
                self.queue.push_back(Slot::Away(number));
            }
            None => {
                // A worker's channel has room for all batches it may have, so sending never waits; where none has room,
                // formatting here is faster than waiting.
                let batch = self.print_here(batch)?;
                self.queue.push_back(Slot::Ready(batch));
            }
        }
        Ok(())
    }

    /// Formats a batch in this thread. If its text grows too long to be kept, all batches before it are written, then
    /// the text so far.
    fn print_here(&mut self, mut batch: Batch) -> Result<Batch, Error> {
        let Self { workers, formatter, dictionary, sizes, out, spare, queue, .. } = self;
        let mut rest = |text: &mut Vec<u8>| {
            // Text may be written only after that of all batches before it.
            while let Some(slot) = queue.pop_front() {
                write(slot, workers, *out, (spare, *sizes))?;
            }
            out.write_all(text)?;
            text.clear();
            Ok(())
        };
        print(formatter, &mut batch, dictionary, sizes.text_bytes, &mut rest)?;
        Ok(batch)
    }

    /// Writes the text of the oldest batch if it is complete; if `waits`, waits for it. Returns false if nothing was
    /// written.
    fn take_back(&mut self, waits: bool) -> Result<bool, Error> {
        let Self { workers, sizes, out, spare, queue, .. } = self;
        let Some(slot) = queue.pop_front() else { return Ok(false) };
        if let Slot::Away(number) = slot
            && !waits
        {
            let worker = workers.get_mut(number).ok_or_else(|| gone(()))?;
            loop {
                match worker.made.try_recv() {
                    Ok(Made::Part(text)) => out.write_all(&text)?,
                    Ok(Made::Done(batch)) => {
                        worker.has -= 1;
                        keep(batch?, *out, (spare, *sizes))?;
                        return Ok(true);
                    }
                    Err(TryRecvError::Empty) => {
                        // The oldest batch is not ready: it keeps its place.
                        queue.push_front(slot);
                        return Ok(false);
                    }
                    Err(TryRecvError::Disconnected) => return Err(gone(())),
                }
            }
        }
        write(slot, workers, *out, (spare, *sizes))?;
        Ok(true)
    }

    /// Waits for all text and writes it.
    fn write_queue(&mut self) -> Result<(), Error> {
        while self.take_back(true)? {}
        Ok(())
    }

    /// Notes for each worker the definitions that its next batch may need.
    fn spread_news(&mut self) {
        if self.news.is_empty() {
            return;
        }
        let news: News = std::mem::take(&mut self.news).into();
        for worker in &mut self.workers {
            worker.unseen.push(Arc::clone(&news));
        }
    }
}

/// Memory for other batches, and how much of it is kept.
type Spare<'a> = (&'a mut Vec<Batch>, Sizes);

/// Waits for the text of a batch and writes it.
fn write(slot: Slot, workers: &mut [Worker], out: &mut dyn Write, spare: Spare<'_>) -> Result<(), Error> {
    let number = match slot {
        Slot::Ready(batch) => return keep(batch, out, spare),
        Slot::Away(number) => number,
    };
    let worker = workers.get_mut(number).ok_or_else(|| gone(()))?;
    loop {
        match worker.made.recv().map_err(gone)? {
            Made::Part(text) => out.write_all(&text)?,
            Made::Done(batch) => {
                worker.has -= 1;
                return keep(batch?, out, spare);
            }
        }
    }
}

/// Writes the text of a batch and keeps its memory for another.
fn keep(mut batch: Batch, out: &mut dyn Write, (spare, sizes): Spare<'_>) -> Result<(), Error> {
    out.write_all(&batch.text)?;
    batch.rows.clear();
    batch.bytes.clear();
    batch.text.clear();
    // A batch with a huge call must not keep its memory.
    if batch.bytes.capacity() + batch.text.capacity() < sizes.batch_bytes * 16 {
        spare.push(batch);
    }
    Ok(())
}

/// Formats batches until there are no more.
fn work<S: Formatter>(mut formatter: S, sizes: Sizes, jobs: &Receiver<Job>, made: &SyncSender<Made>) {
    let mut dictionary = None;
    while let Ok(Job { mut batch, version, news }) = jobs.recv() {
        let dictionary = dictionary.get_or_insert_with(|| Dictionary::new(version));
        news.iter().flat_map(|news| news.iter()).for_each(|known| dictionary.add(known));
        // Frees shared definitions before the batch is formatted, which may take long.
        drop(news);
        let mut send = |text: &mut Vec<u8>| made.send(Made::Part(std::mem::take(text))).map_err(|_| gone(()));
        let result = print(&mut formatter, &mut batch, dictionary, sizes.text_bytes, &mut send);
        if made.send(Made::Done(result.map(|()| batch))).is_err() {
            return;
        }
    }
}

fn print<S: Formatter>(
    formatter: &mut S,
    batch: &mut Batch,
    dictionary: &Dictionary,
    text_bytes: usize,
    flush: Flush<'_>,
) -> Result<(), Error> {
    let mut rest = batch.bytes.as_slice();
    for row in &batch.rows {
        let (enter, after) = rest.split_at(row.enter_bytes.min(rest.len()));
        let (leave, after) = after.split_at(row.leave_bytes.min(after.len()));
        rest = after;
        let &Row { number, thread, function, is_incomplete, .. } = row;
        let call = Call { number, thread, function, is_incomplete, enter, leave, ..Call::NONE };
        formatter.call(&mut batch.text, &call, dictionary, flush)?;
        if batch.text.len() > text_bytes {
            flush(&mut batch.text)?;
        }
    }
    Ok(())
}

impl<S: Formatter> CallPrinter for &mut WorkerPool<'_, S> {
    fn begin(&mut self, version: u64, text: Vec<u8>) -> Result<(), Error> {
        (self.version, self.dictionary) = (version, Dictionary::new(version));
        self.out.write_all(&text)?;
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        if let Some(known) = self.dictionary.parse(definition) {
            self.dictionary.add(&known);
            self.news.push(known);
        }
    }

    #[inline]
    fn print(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let &Call { number, thread, function, is_incomplete, enter, leave, .. } = call;
        self.batch.bytes.extend_from_slice(enter);
        self.batch.bytes.extend_from_slice(leave);
        let (enter_bytes, leave_bytes) = (enter.len(), leave.len());
        self.batch.rows.push(Row { number, thread, function, is_incomplete, enter_bytes, leave_bytes });
        if self.batch.bytes.len() >= self.sizes.batch_bytes || self.batch.rows.len() >= self.sizes.batch_calls {
            let is_large = self.batch.bytes.len() > self.sizes.large_bytes;
            self.hand_out()?;
            if is_large {
                self.write_queue()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
