//! Text made in this thread or in others, in order.
//!
//! The reading thread gathers calls in batches and hands them out in turn; the texts come back in the same turn, so
//! that nothing depends on which thread is fast.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
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
}

/// The workers and the batch that is being gathered.
pub(crate) struct Crew<'a> {
    workers: Vec<Worker>,
    dictionary: &'a RwLock<Dictionary>,
    out: &'a mut dyn Write,
    batch: Batch,
    definitions: Vec<Owned>,
    definition_bytes: usize,
    spare: Vec<Batch>,
    handed_out: u64,
    taken_back: u64,
}

fn gone<T>(_: T) -> Error {
    Error::io("a thread ended early", std::io::Error::from(std::io::ErrorKind::BrokenPipe))
}

impl Crew<'_> {
    /// Runs `read` with so many workers and waits until all text is written.
    pub(crate) fn run<T, S: Scribe>(
        count: usize,
        scribe: impl Fn() -> S,
        out: &mut dyn Write,
        read: impl FnOnce(&mut Crew<'_>) -> Result<T, Error>,
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
                workers.push(Worker { batches, made });
            }
            let (batch, definitions, spare) = (Batch::default(), Vec::new(), Vec::new());
            let (definition_bytes, handed_out, taken_back) = (0, 0, 0);
            let dictionary = &dictionary;
            let mut crew =
                Crew { workers, dictionary, out, batch, definitions, definition_bytes, spare, handed_out, taken_back };
            let result = read(&mut crew)?;
            crew.hand_out()?;
            while crew.taken_back < crew.handed_out {
                crew.take_back()?;
            }
            Ok(result)
            // Dropped, the channels end the workers.
        })
    }

    fn turn(&self, number: u64) -> Option<&Worker> {
        self.workers.get((number % self.workers.len() as u64) as usize)
    }

    /// Gives the batch to the worker whose turn it is.
    fn hand_out(&mut self) -> Result<(), Error> {
        if self.handed_out - self.taken_back >= (self.workers.len() * BATCHES_EACH) as u64 {
            self.take_back()?;
        }
        self.settle_definitions();
        let batch = std::mem::replace(&mut self.batch, self.spare.pop().unwrap_or_default());
        let worker = self.turn(self.handed_out).ok_or_else(|| gone(()))?;
        worker.batches.send(batch).map_err(gone)?;
        self.handed_out += 1;
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

    /// Writes the text of the oldest batch.
    fn take_back(&mut self) -> Result<(), Error> {
        loop {
            let worker = self.turn(self.taken_back).ok_or_else(|| gone(()))?;
            match worker.made.recv().map_err(gone)? {
                Made::Part(text) => self.out.write_all(&text)?,
                Made::Done(batch) => {
                    let mut batch = batch?;
                    self.out.write_all(&batch.text)?;
                    self.taken_back += 1;
                    batch.rows.clear();
                    batch.bytes.clear();
                    batch.text.clear();
                    // A batch with a huge call must not keep its memory.
                    if batch.bytes.capacity() + batch.text.capacity() < BATCH_BYTES * 16 {
                        self.spare.push(batch);
                    }
                    return Ok(());
                }
            }
        }
    }
}

/// Makes the text of batches until there are no more.
fn work<S: Scribe>(mut scribe: S, dictionary: &RwLock<Dictionary>, batches: &Receiver<Batch>, made: &SyncSender<Made>) {
    while let Ok(mut batch) = batches.recv() {
        let known = dictionary.read().unwrap_or_else(PoisonError::into_inner);
        let result = print(&mut scribe, &mut batch, &known, made);
        drop(known);
        if made.send(Made::Done(result.map(|()| batch))).is_err() {
            return;
        }
    }
}

fn print<S: Scribe>(
    scribe: &mut S,
    batch: &mut Batch,
    dictionary: &Dictionary,
    made: &SyncSender<Made>,
) -> Result<(), Error> {
    let mut drain = |text: &mut Vec<u8>| made.send(Made::Part(std::mem::take(text))).map_err(|_| gone(()));
    let mut rest = batch.bytes.as_slice();
    for row in &batch.rows {
        let (enter, after) = rest.split_at(row.enter_bytes.min(rest.len()));
        let (leave, after) = after.split_at(row.leave_bytes.min(after.len()));
        rest = after;
        let &Row { number, thread, function, is_incomplete, .. } = row;
        let call = Call { number, thread, function, is_incomplete, enter, leave, ..Call::NONE };
        scribe.call(&mut batch.text, &call, dictionary, &mut drain)?;
        if batch.text.len() > BATCH_BYTES * 8 {
            drain(&mut batch.text)?;
        }
    }
    Ok(())
}

impl Press for &mut Crew<'_> {
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
            while is_large && self.taken_back < self.handed_out {
                self.take_back()?;
            }
        }
        Ok(())
    }
}
