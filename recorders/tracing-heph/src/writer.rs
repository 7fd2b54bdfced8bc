//! The thread that takes packets from the recording threads and passes them to the destination.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::chunk::Chunk;
use crate::clock::Timeline;
use crate::core::Core;
use crate::feed::Feed;
use crate::memory::CHUNK_BYTES;
use crate::sink::{Outbox, Sink};
use crate::stats::Counts;
use crate::unpoisoned;

/// How long the writer waits before it tries again what did not work.
const RETRY: Duration = Duration::from_millis(20);

/// Time between the copies of the last account, for a receiver to take what came before.
const COPY_WAIT: Duration = Duration::from_millis(20);

/// How far a thread's packets are read.
struct Reading {
    feed: Arc<Feed>,
    /// Next word of the oldest chunk.
    at: usize,
}

pub(crate) struct Writer {
    core: Arc<Core>,
    timeline: Timeline,
    sink: Box<dyn Sink>,
    interval: Duration,
    readings: Vec<Reading>,
    /// Chunks that were read to their ends.
    read_chunks: Vec<(Arc<Feed>, Arc<Chunk>)>,
    out: Outbox,
    /// Events so far.
    taken: u64,
    /// True when the packets that close the session are in the outbox.
    is_account_out: bool,
}

impl Writer {
    pub(crate) fn new(core: Arc<Core>, timeline: Timeline, sink: Box<dyn Sink>, interval: Duration) -> Self {
        let (readings, out) = (Vec::new(), Outbox::default());
        let read_chunks = Vec::new();
        Self { core, timeline, sink, interval, readings, read_chunks, out, taken: 0, is_account_out: false }
    }

    /// Writes until the recorder is closed.
    pub(crate) fn run(mut self) {
        // Also reports an end by a panic in a caller's `Write`, so that nobody waits for a flush in vain.
        let _ending = Ending(self.core.clone());
        loop {
            let asked = self.core.flushes_asked();
            let before = self.taken;
            // Looked at first: what is there then is all there will be.
            let is_last = self.core.is_settled();
            let is_done = self.hand_over() && self.account(is_last) && (!is_last || self.sink.is_settled());
            if self.taken == before {
                self.core.pool.trim();
            }
            if is_done {
                self.core.flushed(asked);
            }
            if self.core.is_abandoned() {
                match &self.core.memory {
                    _ if !is_done => self.count_sent(),
                    Some(memory) => memory.remove(),
                    None => {}
                }
                return;
            }
            if is_done {
                thread::park_timeout(self.interval);
            } else {
                // Not parked: threads that lose events try to wake it, which is cheap while it is not parked.
                thread::sleep(RETRY);
            }
        }
    }

    /// Hands over what is ready now; false when the destination does not take it at this time.
    fn hand_over(&mut self) -> bool {
        self.timeline.keep_up();
        self.say_line();
        self.take_feeds();
        let mut is_done = self.send();
        let mut at = 0;
        while let Some(reading) = self.readings.get_mut(at) {
            // Looked at before the packets: what is ready then is all there will be.
            let is_ended = reading.feed.is_ended.load(Ordering::Acquire);
            is_done = is_done && self.read(at);
            if is_done && is_ended {
                let reading = self.readings.swap_remove(at);
                let chunks: Vec<_> = unpoisoned(&reading.feed.chunks).queue.drain(..).collect();
                self.read_chunks.extend(chunks.into_iter().map(|chunk| (reading.feed.clone(), chunk)));
                self.core.session.end(reading.feed.stream);
            } else {
                at += 1;
            }
        }
        is_done && self.send()
    }

    /// Hands over what the streams have counted, at the end and where many threads have ended; false as
    /// [`Self::hand_over`].
    fn account(&mut self, is_last: bool) -> bool {
        let is_end = is_last && !self.is_account_out;
        if !is_end && !self.core.session.is_account_due() {
            return self.send();
        }
        let form = self.sink.account_form();
        for copy in 0..if is_last { form.copies } else { 1 } {
            if copy > 0 {
                thread::sleep(COPY_WAIT);
            }
            self.core.session.push_accounts(is_last, form.streams_at_once, &mut self.out.bytes);
            // Each on its own: what gets lost together is lost once.
            if !self.send() {
                return false;
            }
        }
        self.is_account_out = is_last;
        self.send()
    }

    /// What is read after the program's end needs the line of time.
    fn say_line(&self) {
        if let Some(memory) = &self.core.memory {
            let (count, ns, ns_per_count) = self.timeline.line();
            memory.set_line(count, ns, ns_per_count);
        }
    }

    /// Takes note of the threads that began to record.
    fn take_feeds(&mut self) {
        let feeds = self.core.take_feeds();
        feeds.iter().for_each(|feed| self.core.session.push_thread(feed, &mut self.out.bytes));
        self.readings.extend(feeds.into_iter().map(|feed| Reading { feed, at: 0 }));
    }

    /// Takes the packets of one thread: those of the chunks that are there now, so that a thread that
    /// records without pause does not keep the others waiting.
    fn read(&mut self, index: usize) -> bool {
        let Some(reading) = self.readings.get(index) else { return true };
        let (feed, mut at) = (reading.feed.clone(), reading.at);
        let (chunks, full) = {
            let chunks = unpoisoned(&feed.chunks);
            let queue: Vec<Arc<Chunk>> = chunks.queue.iter().cloned().collect();
            let full = if chunks.is_last_full { queue.len() } else { queue.len().saturating_sub(1) };
            (queue, full)
        };
        let mut is_done = true;
        for (number, chunk) in chunks.into_iter().enumerate() {
            // Looked at after what is full was: nothing is added to those.
            let ready = chunk.ready();
            while at < ready && is_done {
                let start = self.out.bytes.len();
                at = chunk.pop(at, &mut self.out.bytes);
                self.stamp(start);
                self.out.events += 1;
                self.taken += 1;
                is_done = self.out.bytes.len() < CHUNK_BYTES || self.send();
            }
            if !is_done || number >= full {
                break;
            }
            unpoisoned(&feed.chunks).queue.pop_front();
            self.read_chunks.push((feed.clone(), chunk));
            at = 0;
        }
        if let Some(reading) = self.readings.get_mut(index) {
            reading.at = at;
        }
        is_done
    }

    /// Counts as written what was sent of the outbox when the recording ends before the destination took everything;
    /// the rest is lost.
    fn count_sent(&mut self) {
        // A packet that was sent in part only has not arrived.
        self.out.step_back();
        let left = self.out.events_unsent();
        Counts::add(&self.core.counts.written, self.out.events.saturating_sub(left));
    }

    /// Turns the counts of the event that starts at `at` into nanoseconds: start and end are in its bytes 24 to 39.
    fn stamp(&mut self, at: usize) {
        let times = self.out.bytes.get_mut(at + 24..).and_then(|rest| rest.first_chunk_mut::<16>());
        let Some([start, end]) = times.map(|times| times.as_chunks_mut::<8>().0) else { return };
        let start_ns = self.timeline.ns(u64::from_be_bytes(*start));
        // Another processor's counter may be a little behind.
        let end_ns = self.timeline.ns(u64::from_be_bytes(*end)).max(start_ns);
        *start = start_ns.to_be_bytes();
        *end = end_ns.to_be_bytes();
    }

    /// Gives chunks back whose packets the system has. Not before: where they outlive the program, they are all that is
    /// left of these.
    fn give(&mut self) {
        for (feed, chunk) in self.read_chunks.drain(..) {
            feed.give(chunk, &self.core.pool);
        }
    }

    /// Gives the packets taken to the destination; false when some are left.
    fn send(&mut self) -> bool {
        let counts = &self.core.counts;
        match self.sink.send(&mut self.out, counts) {
            Ok(true) => {
                Counts::add(&counts.written, self.out.events);
                self.out.clear();
                self.give();
                true
            }
            Ok(false) => false,
            Err(error) => {
                counts.error(&error);
                false
            }
        }
    }
}

struct Ending(Arc<Core>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended();
    }
}
