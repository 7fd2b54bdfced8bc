//! Text made in this thread or in others, in order.
//!
//! The reading thread gathers calls in batches and hands them to workers that have room; where none has, it makes the
//! text itself, so that no thread waits for another. Texts are written in the order of the batches, whoever made them.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{PoisonError, RwLock};
use std::thread;

use anytrace_core::Error;

use crate::record::Space;
use crate::tools::calls::Call;
use crate::tools::dictionary::{Definition, Dictionary};
use crate::tools::dump::Press;

/// Text of one call may grow to this size before it is drained.
pub(crate) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Takes the text made so far and leaves the vector empty.
pub(crate) type Drain<'a> = &'a mut dyn FnMut(&mut Vec<u8>) -> Result<(), Error>;

/// Makes the text of calls, one after another.
pub(crate) trait Scribe: Send {
    /// Appends the text of a call. Where it grows beyond [`TEXT_BYTES_MAX`] it is drained.
    fn call(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        drain: Drain<'_>,
    ) -> Result<(), Error>;
}

/// A batch has about so many bytes of calls, and at most so many calls.
const BATCH_BYTES: usize = 1 << 18;
const BATCH_CALLS: usize = 1 << 13;

/// Batches a worker may have, one in work and one waiting: so handing out never waits.
const BATCHES_EACH: usize = 2;

/// Batches for each thread that may be made and not written.
const QUEUE_EACH: usize = 4;

/// A batch of more bytes than this goes alone, so that not several of its kind are in memory.
const LARGE_BYTES: usize = 1 << 22;

/// A call in a batch; its bytes stand behind those of the one before.
struct Row {
    number: u64,
    thread: u64,
    function: u32,
    is_incomplete: bool,
    enter_bytes: usize,
    leave_bytes: usize,
}

/// A definition that comes before a batch.
struct Owned {
    space: Space,
    id: u64,
    slot: u32,
    bytes: Box<[u8]>,
}

#[derive(Default)]
struct Batch {
    rows: Vec<Row>,
    bytes: Vec<u8>,
    text: Vec<u8>,
}

/// What a worker sends back.
enum Made {
    /// Text of a batch that is not over.
    Part(Vec<u8>),
    /// The batch with the rest of its text.
    Done(Result<Batch, Error>),
}

struct Worker {
    batches: SyncSender<Batch>,
    made: Receiver<Made>,
    /// Batches it has.
    has: usize,
}

/// Where the text of a batch comes from.
enum Slot {
    /// From the worker of that number.
    Away(usize),
    /// It was made by the thread that reads.
    Ready(Batch),
}

/// The workers and the batch that is being gathered.
pub(crate) struct Crew<'a, S> {
    workers: Vec<Worker>,
    /// For batches that the thread that reads prints itself, where all workers are busy.
    scribe: S,
    dictionary: &'a RwLock<Dictionary>,
    out: &'a mut dyn Write,
    batch: Batch,
    definitions: Vec<Owned>,
    definition_bytes: usize,
    spare: Vec<Batch>,
    /// Batches not written yet, in order.
    queue: VecDeque<Slot>,
}

fn gone<T>(_: T) -> Error {
    Error::io("a thread ended early", std::io::Error::from(std::io::ErrorKind::BrokenPipe))
}

impl<S: Scribe> Crew<'_, S> {
    /// Runs `read` with so many workers and waits until all text is written.
    pub(crate) fn run<T>(
        count: usize,
        scribe: impl Fn() -> S,
        out: &mut dyn Write,
        read: impl FnOnce(&mut Crew<'_, S>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let dictionary = RwLock::new(Dictionary::default());
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for _ in 0..count {
                let (batches, to_do) = sync_channel(BATCHES_EACH);
                let (done, made) = sync_channel(BATCHES_EACH);
                let (dictionary, scribe) = (&dictionary, scribe());
                thread::Builder::new()
                    .name("text".to_owned())
                    .spawn_scoped(scope, move || work(scribe, dictionary, &to_do, &done))
                    .map_err(|error| Error::io("cannot start a thread", error))?;
                workers.push(Worker { batches, made, has: 0 });
            }
            let (batch, definitions, spare, queue) = (Batch::default(), Vec::new(), Vec::new(), VecDeque::new());
            let (definition_bytes, dictionary, scribe) = (0, &dictionary, scribe());
            let mut crew =
                Crew { workers, scribe, dictionary, out, batch, definitions, definition_bytes, spare, queue };
            let result = read(&mut crew)?;
            crew.hand_out()?;
            crew.drain_queue()?;
            Ok(result)
            // Dropped, the channels end the workers.
        })
    }

    /// Gives the batch to a worker that has room, or prints it here.
    fn hand_out(&mut self) -> Result<(), Error> {
        self.settle_definitions();
        while self.take_back(self.queue.len() >= QUEUE_EACH * (self.workers.len() + 1))? {}
        let batch = std::mem::replace(&mut self.batch, self.spare.pop().unwrap_or_default());
        let idle = self.workers.iter_mut().enumerate().filter(|(_, worker)| worker.has < BATCHES_EACH);
        match idle.min_by_key(|(_, worker)| worker.has) {
            Some((number, worker)) => {
                worker.batches.send(batch).map_err(gone)?;
                worker.has += 1;
                self.queue.push_back(Slot::Away(number));
            }
            None => {
                let batch = self.print_here(batch)?;
                self.queue.push_back(Slot::Ready(batch));
            }
        }
        Ok(())
    }

    /// Makes the text of a batch in this thread. Of a text too long to be kept the beginning is written, when all in
    /// front of it is.
    fn print_here(&mut self, mut batch: Batch) -> Result<Batch, Error> {
        let Self { workers, scribe, dictionary, out, spare, queue, .. } = self;
        let mut rest = |text: &mut Vec<u8>| {
            while let Some(slot) = queue.pop_front() {
                write(slot, workers, *out, spare)?;
            }
            out.write_all(text)?;
            text.clear();
            Ok(())
        };
        let known = dictionary.read().unwrap_or_else(PoisonError::into_inner);
        print(scribe, &mut batch, &known, &mut rest)?;
        Ok(batch)
    }

    /// Writes the text of the oldest batch if it is there, or when it is there; false where nothing was written.
    fn take_back(&mut self, waits: bool) -> Result<bool, Error> {
        let Self { workers, out, spare, queue, .. } = self;
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
                        keep(batch?, *out, spare)?;
                        return Ok(true);
                    }
                    Err(TryRecvError::Empty) => {
                        queue.push_front(slot);
                        return Ok(false);
                    }
                    Err(TryRecvError::Disconnected) => return Err(gone(())),
                }
            }
        }
        write(slot, workers, *out, spare)?;
        Ok(true)
    }

    /// Waits for all text and writes it.
    fn drain_queue(&mut self) -> Result<(), Error> {
        while self.take_back(true)? {}
        Ok(())
    }

    /// Makes the definitions gathered known to the workers.
    fn settle_definitions(&mut self) {
        if self.definitions.is_empty() {
            return;
        }
        let mut dictionary = self.dictionary.write().unwrap_or_else(PoisonError::into_inner);
        for Owned { space, id, slot, bytes } in self.definitions.drain(..) {
            dictionary.define(&Definition { space, id, slot, bytes: &bytes });
        }
        self.definition_bytes = 0;
    }
}

/// Waits for the text of a batch and writes it.
fn write(slot: Slot, workers: &mut [Worker], out: &mut dyn Write, spare: &mut Vec<Batch>) -> Result<(), Error> {
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
fn keep(mut batch: Batch, out: &mut dyn Write, spare: &mut Vec<Batch>) -> Result<(), Error> {
    out.write_all(&batch.text)?;
    batch.rows.clear();
    batch.bytes.clear();
    batch.text.clear();
    // A batch with a huge call must not keep its memory.
    if batch.bytes.capacity() + batch.text.capacity() < BATCH_BYTES * 16 {
        spare.push(batch);
    }
    Ok(())
}

/// Makes the text of batches until there are no more.
fn work<S: Scribe>(mut scribe: S, dictionary: &RwLock<Dictionary>, batches: &Receiver<Batch>, made: &SyncSender<Made>) {
    while let Ok(mut batch) = batches.recv() {
        let known = dictionary.read().unwrap_or_else(PoisonError::into_inner);
        let mut send = |text: &mut Vec<u8>| made.send(Made::Part(std::mem::take(text))).map_err(|_| gone(()));
        let result = print(&mut scribe, &mut batch, &known, &mut send);
        drop(known);
        if made.send(Made::Done(result.map(|()| batch))).is_err() {
            return;
        }
    }
}

fn print<S: Scribe>(scribe: &mut S, batch: &mut Batch, dictionary: &Dictionary, drain: Drain<'_>) -> Result<(), Error> {
    let mut rest = batch.bytes.as_slice();
    for row in &batch.rows {
        let (enter, after) = rest.split_at(row.enter_bytes.min(rest.len()));
        let (leave, after) = after.split_at(row.leave_bytes.min(after.len()));
        rest = after;
        let &Row { number, thread, function, is_incomplete, .. } = row;
        let call = Call { number, thread, function, is_incomplete, enter, leave, ..Call::NONE };
        scribe.call(&mut batch.text, &call, dictionary, drain)?;
        if batch.text.len() > BATCH_BYTES * 8 {
            drain(&mut batch.text)?;
        }
    }
    Ok(())
}

impl<S: Scribe> Press for &mut Crew<'_, S> {
    fn begin(&mut self, version: u64, text: Vec<u8>) -> Result<(), Error> {
        *self.dictionary.write().unwrap_or_else(PoisonError::into_inner) = Dictionary::new(version);
        self.out.write_all(&text)?;
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        let &Definition { space, id, slot, bytes } = definition;
        self.definitions.push(Owned { space, id, slot, bytes: bytes.into() });
        self.definition_bytes += bytes.len() + size_of::<Owned>();
        if self.definition_bytes > BATCH_BYTES * 4 {
            self.settle_definitions();
        }
    }

    #[inline]
    fn print(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let &Call { number, thread, function, is_incomplete, enter, leave, .. } = call;
        self.batch.bytes.extend_from_slice(enter);
        self.batch.bytes.extend_from_slice(leave);
        let (enter_bytes, leave_bytes) = (enter.len(), leave.len());
        self.batch.rows.push(Row { number, thread, function, is_incomplete, enter_bytes, leave_bytes });
        if self.batch.bytes.len() >= BATCH_BYTES || self.batch.rows.len() >= BATCH_CALLS {
            let is_large = self.batch.bytes.len() > LARGE_BYTES;
            self.hand_out()?;
            if is_large {
                self.drain_queue()?;
            }
        }
        Ok(())
    }
}
