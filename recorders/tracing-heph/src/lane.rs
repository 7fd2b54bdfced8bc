//! The state of a recording thread: its stream, its counter, its chunk, its open spans.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use heph_encoder::{Event, Header, head};

use crate::chunk::Chunk;
use crate::core::Core;
use crate::feed::Feed;
use crate::memory::OWN_BYTES;
use crate::spans::Known;
use crate::unpoisoned;

/// Substreams that a thread takes at a time, so that threads do not wait for each other's numbers.
const SUBSTREAMS_AT_ONCE: u64 = 64;

/// The same for numbers of spans.
const NUMBERS_AT_ONCE: u64 = 256;

/// A span that the thread is in.
#[derive(Debug, Clone, Copy)]
struct Open {
    id: u64,
    start: u64,
    /// What identifies it, if that is known.
    known: Option<Known>,
    /// True when the thread was in the span before it entered it once more.
    is_again: bool,
}

/// A thread's side of one recorder.
#[derive(Debug)]
pub(crate) struct Lane {
    core: Arc<Core>,
    /// None before the first event.
    feed: Option<Arc<Feed>>,
    chunk: Option<Arc<Chunk>>,
    own: Arc<Chunk>,
    /// The word of the chunk where the next packet goes.
    at: usize,
    stream: u32,
    /// Events so far; modulo 2^32 the counter of the next.
    recorded: u64,
    substreams: std::ops::Range<u64>,
    numbers: std::ops::Range<u64>,
    open: Vec<Open>,
    /// True when the thread waited for memory in vain, and there was none since.
    gave_up: bool,
    /// The last span that was made here, mostly entered next.
    newest: (u64, Known),
    thread: Option<u64>,
    /// The thread's name as an attribute, where that is asked for.
    tail: Vec<u8>,
}

thread_local! {
    /// One for each recorder that the thread wrote to: nearly always one.
    static LANES: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
}

impl Lane {
    /// Calls `f` with the thread's lane. A thread whose own storage is gone already, because it is ending, gets a new
    /// one for the occasion, with a stream of its own.
    ///
    /// `f` must not run code of the program (a `Debug` of a field, say), which might record something itself.
    #[inline]
    pub(crate) fn with<R>(core: &Arc<Core>, f: impl FnOnce(&mut Self) -> R) -> R {
        let mut f = Some(f);
        let done = LANES.try_with(|lanes| {
            let mut lanes = lanes.try_borrow_mut().ok()?;
            let at = match lanes.iter().position(|lane| Arc::ptr_eq(&lane.core, core)) {
                Some(at) => at,
                None => Self::add(&mut lanes, core),
            };
            let lane = lanes.get_mut(at)?;
            f.take().map(|f| f(lane))
        });
        if let Ok(Some(result)) = done {
            return result;
        }
        let f = f.expect("a closure that was called gave a result");
        f(&mut Self::new(core))
    }

    #[cold]
    fn add(lanes: &mut Vec<Self>, core: &Arc<Core>) -> usize {
        lanes.retain(|lane| !lane.core.is_closed());
        lanes.push(Self::new(core));
        lanes.len() - 1
    }

    #[cold]
    fn new(core: &Arc<Core>) -> Self {
        Self {
            core: core.clone(),
            feed: None,
            chunk: None,
            own: core.pool.own(),
            at: 0,
            stream: 0,
            recorded: 0,
            substreams: 0..0,
            numbers: 0..0,
            open: Vec::new(),
            gave_up: false,
            newest: (0, Known::default()),
            thread: None,
            tail: Vec::new(),
        }
    }

    /// The thread's first event: threads that only make spans for others need neither a stream nor memory.
    #[cold]
    fn begin(&mut self) {
        let thread = std::thread::current();
        let (feed, stream) = self.core.add_thread(thread.name());
        self.stream = stream;
        unpoisoned(&feed.chunks).queue.push_back(self.own.clone());
        self.chunk = Some(self.own.clone());
        self.feed = Some(feed);
        if self.core.shown.thread_name {
            // An event into a `Vec` fails above 4 GiB only.
            let _ = Event::append(&mut self.tail).str("thread", thread.name().unwrap_or("unnamed")).finish();
        }
    }

    /// Records an event between two counts, which the writer turns into nanoseconds. One that has no room is dropped and
    /// takes its counter all the same.
    #[inline]
    pub(crate) fn push(&mut self, substream: u64, start: u64, end: u64, body: &[u8]) {
        if self.core.is_closed() {
            return self.core.refuse();
        }
        if self.feed.is_none() {
            // What the destination itself records would be written by it, and so on without end.
            if self.core.is_writer() {
                return;
            }
            self.begin();
        }
        let counter = self.recorded as u32;
        let header = Header { stream: self.stream, counter, substream, start_ns: start, end_ns: end };
        self.recorded += 1;
        let Ok(head) = head(&header, body.len() + self.tail.len()) else {
            self.dropped();
            return self.count();
        };
        if let Some(chunk) = &self.chunk
            && let Some(at) = chunk.push(self.at, &head, body, &self.tail)
        {
            self.at = at;
        } else {
            self.push_to_next(&head, body);
        }
        self.count();
    }

    /// Says how many events there are now, after the event itself: the writer never counts one that it cannot see yet.
    #[inline]
    fn count(&self) {
        if let Some(feed) = &self.feed {
            feed.recorded.store(self.recorded, Ordering::Relaxed);
        }
    }

    /// Hands the chunk over and continues in another. Without another the thread has none, so that the one handed over
    /// can be used again, by this thread or by others.
    #[cold]
    fn push_to_next(&mut self, head: &[u8; 40], body: &[u8]) {
        let Some(feed) = &self.feed else { return };
        if self.chunk.take().is_some() {
            unpoisoned(&feed.chunks).is_last_full = true;
        }
        self.core.wake();
        if self.core.pool.is_crowded() && !self.gave_up {
            // Where all processors are busy, the writer comes too short: here its turn is due before events get lost.
            std::thread::yield_now();
        }
        let wait = if self.gave_up { Duration::ZERO } else { self.core.wait_when_full };
        let next = self.next_chunk(feed, head.len() + body.len() + self.tail.len(), wait);
        // Who waited in vain does not wait again for each event that follows.
        self.gave_up = next.is_none();
        let Some(next) = next else { return self.dropped() };
        let at = next.push(0, head, body, &self.tail);
        let mut chunks = unpoisoned(&feed.chunks);
        chunks.queue.push_back(next.clone());
        chunks.is_last_full = false;
        drop(chunks);
        self.chunk = Some(next);
        self.at = at.unwrap_or(0);
    }

    /// A chunk with room for this many bytes, if there is one within the time.
    fn next_chunk(&self, feed: &Feed, bytes: usize, wait: Duration) -> Option<Arc<Chunk>> {
        let mut until = None;
        loop {
            if let Some(chunk) = self.core.pool.take(bytes) {
                return Some(chunk);
            }
            if bytes < OWN_BYTES && feed.is_own_free.swap(false, Ordering::Acquire) {
                return Some(self.own.clone());
            }
            if wait.is_zero()
                || self.core.is_closed()
                || *until.get_or_insert_with(|| Instant::now() + wait) <= Instant::now()
            {
                return None;
            }
            self.core.pool.wait();
        }
    }

    #[cold]
    fn dropped(&self) {
        if let Some(feed) = &self.feed {
            feed.dropped.store(feed.dropped.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// A substream that no other root span has.
    pub(crate) fn new_substream(&mut self) -> u64 {
        if self.substreams.is_empty() {
            self.substreams = self.core.take_substreams(SUBSTREAMS_AT_ONCE);
        }
        self.substreams.next().unwrap_or(0)
    }

    /// Numbers a span that was just made, gives it the substream of its parent or a new one, and remembers it.
    #[inline]
    pub(crate) fn made(&mut self, id: u64, substream: Option<u64>) -> Known {
        let substream = substream.unwrap_or_else(|| self.new_substream());
        if self.numbers.is_empty() {
            self.numbers = self.core.take_numbers(NUMBERS_AT_ONCE);
        }
        let known = Known { substream, number: self.numbers.next().unwrap_or(0) };
        self.newest = (id, known);
        known
    }

    /// The span that a new one or an event belongs to, the innermost but for spans entered again, and what identifies
    /// it if that is known here.
    #[inline]
    pub(crate) fn current(&self) -> Option<(u64, Option<Known>)> {
        let open = self.open.iter().rev().find(|open| !open.is_again)?;
        Some((open.id, open.known))
    }

    pub(crate) fn set_current(&mut self, known: Known) {
        if let Some(open) = self.open.iter_mut().rev().find(|open| !open.is_again) {
            open.known = Some(known);
        }
    }

    /// True when the thread is in this span.
    pub(crate) fn is_in(&self, id: u64) -> bool {
        self.open.iter().any(|open| open.id == id)
    }

    #[inline]
    pub(crate) fn enter(&mut self, id: u64) -> u64 {
        let is_again = self.is_in(id);
        let known = (self.newest.0 == id).then_some(self.newest.1);
        // The clock is read last, so that the span's time is the program's and not ours.
        let start = self.core.now();
        self.open.push(Open { id, start, known, is_again });
        start
    }

    /// The system's number of the thread, where it has one.
    pub(crate) fn thread(&mut self) -> u64 {
        *self.thread.get_or_insert_with(thread_id)
    }

    /// Takes the innermost entry of the span out and gives its time. Spans may be left in another order than entered.
    #[inline]
    pub(crate) fn exit(&mut self, id: u64) -> Option<u64> {
        let open = match self.open.last() {
            Some(open) if open.id == id => self.open.pop(),
            _ => self.open.iter().rposition(|open| open.id == id).map(|at| self.open.remove(at)),
        };
        open.map(|open| open.start)
    }
}

#[cfg(target_os = "linux")]
fn thread_id() -> u64 {
    // SAFETY: asks for a number, and cannot fail.
    #[allow(unsafe_code)]
    let thread = unsafe { libc::gettid() };
    u64::from(thread.unsigned_abs())
}

#[cfg(not(target_os = "linux"))]
fn thread_id() -> u64 {
    0
}

impl Drop for Lane {
    fn drop(&mut self) {
        if let Some(feed) = &self.feed {
            feed.is_ended.store(true, Ordering::Release);
        }
    }
}
