//! Formats batches on several threads, as text or packets; it comes out in the order in which the batches were given.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use anytrace_core::Error;

use crate::pen::Pen;

/// Most threads: more only take memory, as reading the trace takes longer.
const THREADS_MAX: usize = 8;

/// Batches that may wait for each thread: more only takes memory.
const WAITING: usize = 2;

/// A batch and its text.
type Formatted<B> = (B, Vec<u8>);

/// Appends the text of a batch.
type Format<B> = fn(&B, &mut Vec<u8>);

struct Task<B> {
    batch: B,
    text: Vec<u8>,
    done: SyncSender<Formatted<B>>,
}

impl<B> Task<B> {
    fn run(self, format: Format<B>) {
        let Self { batch, mut text, done } = self;
        format(&batch, &mut text);
        // Nobody waits for it where the output ended early.
        let _ = done.send((batch, text));
    }
}

/// The batches that no thread has begun yet.
struct Queue<B> {
    state: Mutex<State<B>>,
    changed: Condvar,
}

struct State<B> {
    tasks: VecDeque<Task<B>>,
    is_closed: bool,
}

impl<B> Queue<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, task: Task<B>) {
        self.lock().tasks.push_back(task);
        self.changed.notify_one();
    }

    /// Ends the threads that wait.
    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.tasks.clear();
        self.changed.notify_all();
    }

    /// The next batch; waits for it. `None` at the end.
    fn next(&self) -> Option<Task<B>> {
        let waits = |state: &mut State<B>| state.tasks.is_empty() && !state.is_closed;
        let mut state = self.changed.wait_while(self.lock(), waits).unwrap_or_else(PoisonError::into_inner);
        state.tasks.pop_front()
    }
}

/// Formats batches on the caller's thread and others.
pub(crate) struct Formatters<B> {
    format: Format<B>,
    queue: Arc<Queue<B>>,
    threads: Vec<JoinHandle<()>>,
    count: usize,
    waiting: VecDeque<Receiver<Formatted<B>>>,
    spare_texts: Vec<Vec<u8>>,
    spare_batches: Vec<B>,
}

impl<B: Send + 'static> Formatters<B> {
    /// Up to `threads` threads, with the caller's.
    pub(crate) fn new(threads: usize, format: Format<B>) -> Self {
        let state = Mutex::new(State { tasks: VecDeque::new(), is_closed: false });
        Self {
            format,
            queue: Arc::new(Queue { state, changed: Condvar::new() }),
            threads: Vec::new(),
            count: threads.min(THREADS_MAX),
            waiting: VecDeque::new(),
            spare_texts: Vec::new(),
            spare_batches: Vec::new(),
        }
    }

    /// A batch that is not needed any more, to be filled again.
    pub(crate) fn spare(&mut self) -> Option<B> {
        self.spare_batches.pop()
    }

    /// Formats a batch: its text goes to `pen` now, or with that of a later call.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn give(&mut self, batch: B, pen: &mut Pen<'_>) -> Result<(), Error> {
        if self.count < 2 {
            (self.format)(&batch, &mut pen.bytes);
            self.spare_batches.push(batch);
            return pen.rest();
        }
        if self.threads.is_empty() {
            self.start();
        }
        if self.waiting.len() >= WAITING * self.count {
            self.take_one(pen)?;
        }
        let text = self.spare_texts.pop().unwrap_or_default();
        let (done, result) = sync_channel(1);
        self.queue.push(Task { batch, text, done });
        self.waiting.push_back(result);
        Ok(())
    }

    /// Formats a batch on this thread; all that were given have been written.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn here(&self, batch: &B, pen: &mut Pen<'_>) -> Result<(), Error> {
        (self.format)(batch, &mut pen.bytes);
        pen.rest()
    }

    /// Writes the text of all batches that were given; nothing of them is kept.
    ///
    /// # Errors
    /// When the output cannot be written.
    pub(crate) fn finish(&mut self, pen: &mut Pen<'_>) -> Result<(), Error> {
        while !self.waiting.is_empty() {
            self.take_one(pen)?;
        }
        self.spare_batches.clear();
        Ok(())
    }

    /// Writes the oldest text. While it is not done, this thread formats too: one that waits is woken late.
    fn take_one(&mut self, pen: &mut Pen<'_>) -> Result<(), Error> {
        let Some(result) = self.waiting.pop_front() else { return Ok(()) };
        let (batch, mut text) = loop {
            match result.try_recv() {
                Ok(formatted) => break formatted,
                Err(TryRecvError::Disconnected) => return Err(ended()),
                Err(TryRecvError::Empty) => {}
            }
            let next = self.queue.lock().tasks.pop_front();
            match next {
                Some(task) => task.run(self.format),
                None => break result.recv().map_err(|_| ended())?,
            }
        };
        pen.put(&text)?;
        text.clear();
        self.spare_texts.push(text);
        self.spare_batches.push(batch);
        Ok(())
    }

    /// Without a thread, or with fewer, this one has more to do.
    #[cold]
    fn start(&mut self) {
        for _ in 1..self.count {
            let (queue, format) = (Arc::clone(&self.queue), self.format);
            let work = move || {
                while let Some(task) = queue.next() {
                    task.run(format);
                }
            };
            let Ok(thread) = std::thread::Builder::new().name("format".to_owned()).spawn(work) else { break };
            self.threads.push(thread);
        }
    }
}

impl<B> Drop for Formatters<B> {
    fn drop(&mut self) {
        self.queue.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// A thread ends before its time only when it panics.
fn ended() -> Error {
    Error::io("formatting", std::io::Error::other("a thread ended"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_out_in_order_on_any_number_of_threads() {
        let wanted: String = (0..500_u32).map(|n| format!("{n},").repeat(n as usize % 7 * 40)).collect();
        for threads in [0, 1, 2, 5] {
            let mut out = Vec::new();
            let mut pen = Pen::new(&mut out);
            let mut formatters: Formatters<u32> = Formatters::new(threads, |n, text| {
                text.extend_from_slice(format!("{n},").repeat(*n as usize % 7 * 40).as_bytes());
            });
            for n in 0..500 {
                formatters.give(n, &mut pen).unwrap();
                if n % 170 == 3 {
                    formatters.finish(&mut pen).unwrap();
                    assert!(formatters.waiting.is_empty());
                }
                assert!(formatters.waiting.len() <= WAITING * threads);
            }
            formatters.finish(&mut pen).unwrap();
            pen.finish().unwrap();
            assert!(String::from_utf8(out).unwrap() == wanted, "{threads}");
        }
    }

    #[test]
    fn an_output_that_cannot_be_written_is_an_error() {
        struct Full;
        impl std::io::Write for Full {
            fn write(&mut self, _bytes: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut out = Full;
        let mut pen = Pen::new(&mut out);
        let mut formatters: Formatters<u32> = Formatters::new(2, |_, text| text.resize(100_000, b'x'));
        let given = (0..100).try_for_each(|n| formatters.give(n, &mut pen));
        assert!(given.is_err());
    }
}
