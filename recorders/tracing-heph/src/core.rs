//! What all threads of a recorder share: the clock, the memory, the numbers, the way to the writer.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quanta::Clock;

use crate::chunk::Pool;
use crate::feed::Feed;
use crate::fork;
use crate::memory::Memory;
use crate::session::Session;
use crate::shown::Shown;
use crate::spans::{Spans, State};
use crate::stats::{Counts, Stats};
use crate::unpoisoned;

/// How long the end of a recording waits for threads that are in the middle of an event.
const SETTLING: Duration = Duration::from_millis(1);

/// The progress of the writer.
#[derive(Debug, Default)]
struct Progress {
    flushes_asked: u64,
    flushes_done: u64,
    is_ended: bool,
}

/// The middle of a recorder.
pub(crate) struct Core {
    clock: Clock,
    pub(crate) epoch_ns: u64,
    pub(crate) pool: Pool,
    /// The file that outlives the program, where one is wanted.
    pub(crate) memory: Option<Arc<Memory>>,
    pub(crate) shown: Shown,
    /// How long a thread waits when there is no memory.
    pub(crate) wait_when_full: Duration,
    pub(crate) counts: Counts,
    pub(crate) session: Session,
    feeds: Mutex<Vec<Arc<Feed>>>,
    streams: AtomicU32,
    substreams: AtomicU64,
    numbers: AtomicU64,
    /// Where lives are recorded: the spans that are open.
    spans: OnceLock<Arc<Spans>>,
    is_ending: AtomicBool,
    is_closed: AtomicBool,
    /// True when no thread is in the middle of an event any more either.
    is_settled: AtomicBool,
    is_abandoned: AtomicBool,
    /// The process that made it, see [`fork::forks`], and events that a child of it has recorded.
    forks: u32,
    refused: AtomicU64,
    writer: OnceLock<Thread>,
    progress: Mutex<Progress>,
    progressed: Condvar,
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("epoch_ns", &self.epoch_ns).finish_non_exhaustive()
    }
}

impl Core {
    /// The zero of the clock's time is now.
    pub(crate) fn new(
        clock: Clock,
        memory_bytes: usize,
        memory: Option<Arc<Memory>>,
        wait_when_full: Duration,
        shown: Shown,
    ) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let epoch_ns = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        let session = Session::new(epoch_ns, memory_bytes, shown.session);
        if let Some(memory) = &memory {
            memory.describe(session.id(), epoch_ns);
        }
        Self {
            clock,
            epoch_ns,
            session,
            pool: Pool::new(memory_bytes, memory.clone()),
            memory,
            shown,
            wait_when_full,
            counts: Counts::default(),
            feeds: Mutex::default(),
            // Stream 0 is what the Heph runtime shares among threads.
            streams: AtomicU32::new(1),
            // Substream 0 is for events outside of spans.
            substreams: AtomicU64::new(1),
            numbers: AtomicU64::new(1),
            spans: OnceLock::new(),
            is_ending: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
            is_settled: AtomicBool::new(false),
            is_abandoned: AtomicBool::new(false),
            forks: fork::forks(),
            refused: AtomicU64::new(0),
            writer: OnceLock::new(),
            progress: Mutex::default(),
            progressed: Condvar::new(),
        }
    }

    /// The clock's count, see [`crate::clock`].
    #[inline]
    pub(crate) fn now(&self) -> u64 {
        self.clock.raw()
    }

    /// About how long this many counts take.
    pub(crate) fn duration_ns(&self, counts: u64) -> u64 {
        // From 1, as a start of 0 would be taken for none.
        self.clock.delta_as_nanos(1, counts.saturating_add(1))
    }

    /// A place for the events of a thread that begins to record, and its stream.
    pub(crate) fn add_thread(&self, name: Option<&str>) -> (Arc<Feed>, u32) {
        let stream = self.streams.fetch_add(1, Ordering::Relaxed);
        let feed = Arc::new(Feed::new(stream, name));
        self.session.add(&feed);
        unpoisoned(&self.feeds).push(feed.clone());
        (feed, stream)
    }

    /// The places of threads that began since the last call, for the writer.
    pub(crate) fn take_feeds(&self) -> Vec<Arc<Feed>> {
        std::mem::take(&mut unpoisoned(&self.feeds))
    }

    pub(crate) fn take_substreams(&self, count: u64) -> std::ops::Range<u64> {
        let first = self.substreams.fetch_add(count, Ordering::Relaxed);
        first..first.saturating_add(count)
    }

    pub(crate) fn take_numbers(&self, count: u64) -> std::ops::Range<u64> {
        let first = self.numbers.fetch_add(count, Ordering::Relaxed);
        first..first.saturating_add(count)
    }

    /// Has the spans that are open at the end recorded.
    pub(crate) fn set_spans(&self, spans: Arc<Spans>) {
        let _ = self.spans.set(spans);
    }

    /// The spans that are open, for the first who ends the recording.
    pub(crate) fn take_open(&self) -> Vec<State> {
        if self.is_closed() || self.is_writer() || self.is_ending.swap(true, Ordering::Relaxed) {
            return Vec::new();
        }
        self.spans.get().map(|spans| spans.open()).unwrap_or_default()
    }

    /// True when nothing more is recorded: at the end, and in a child of the process.
    #[inline]
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed) || self.is_forked()
    }

    /// True in a child of the process that made the recorder: the thread that writes is not there.
    #[inline]
    pub(crate) fn is_forked(&self) -> bool {
        self.forks != fork::forks()
    }

    /// True in a child of the process, where memory is shared with the parent: nothing there may be written to.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.memory.is_some() && self.is_forked()
    }

    /// Counts an event that is not recorded because it is too late, or in a child.
    #[cold]
    pub(crate) fn refuse(&self) {
        if self.is_forked() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// True when nothing is added any more to what is there.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled.load(Ordering::Relaxed)
    }

    /// True when the writer should end, whatever is left.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Sets the thread that writes. Before that, nothing can be flushed.
    pub(crate) fn set_writer(&self, thread: Thread) {
        let _ = self.writer.set(thread);
    }

    /// True on the writer's own thread.
    pub(crate) fn is_writer(&self) -> bool {
        self.writer.get().is_some_and(|thread| thread.id() == std::thread::current().id())
    }

    /// Makes the writer look for work. Costs a system call only if it sleeps.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.writer.get() {
            thread.unpark();
        }
    }

    /// Has everything recorded so far handed to the system; false when that took too long.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        if self.writer.get().is_none() || self.is_writer() || self.is_forked() {
            return false;
        }
        let mut progress = unpoisoned(&self.progress);
        progress.flushes_asked += 1;
        let wanted = progress.flushes_asked;
        self.wake();
        let waits = |progress: &mut Progress| progress.flushes_done < wanted && !progress.is_ended;
        let waited = self.progressed.wait_timeout_while(progress, timeout, waits);
        let (progress, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        progress.flushes_done >= wanted
    }

    /// Takes no more events, writes what there is and ends the writer; false when that took too long.
    pub(crate) fn close(&self, timeout: Duration) -> bool {
        if self.is_forked() {
            return false;
        }
        self.is_closed.store(true, Ordering::Relaxed);
        // A thread that is just recording an event ends it before the last look.
        std::thread::sleep(SETTLING);
        self.is_settled.store(true, Ordering::Relaxed);
        let is_complete = self.flush(timeout);
        self.is_abandoned.store(true, Ordering::Relaxed);
        self.wake();
        is_complete
    }

    /// Waits until the writer has ended; false when that took too long, and at once on the writer's own thread, which
    /// ends only after this call.
    pub(crate) fn wait_for_end(&self, timeout: Duration) -> bool {
        if self.is_writer() || self.is_forked() {
            return false;
        }
        let progress = unpoisoned(&self.progress);
        let waited = self.progressed.wait_timeout_while(progress, timeout, |progress| !progress.is_ended);
        let (progress, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        progress.is_ended
    }

    /// The number of the newest flush that was asked for; the writer looks before it begins.
    pub(crate) fn flushes_asked(&self) -> u64 {
        unpoisoned(&self.progress).flushes_asked
    }

    /// The writer says that all was handed over that there was before this flush was asked for.
    pub(crate) fn flushed(&self, number: u64) {
        let mut progress = unpoisoned(&self.progress);
        if progress.flushes_done < number {
            progress.flushes_done = number;
            self.progressed.notify_all();
        }
    }

    /// The writer says that it is gone.
    pub(crate) fn ended(&self) {
        unpoisoned(&self.progress).is_ended = true;
        self.progressed.notify_all();
    }

    /// What became of the events so far. Those that wait are none of written, dropped and lost.
    pub(crate) fn stats(&self) -> Stats {
        if self.is_forked() {
            let lost = self.refused.load(Ordering::Relaxed);
            let error = "this is a child of the process that records; it needs a recorder of its own";
            return Stats { recorded: lost, lost, last_error: Some(error.to_owned()), ..Stats::default() };
        }
        let counts = self.counts.stats();
        let all = self.session.counted();
        Stats { recorded: all.recorded, dropped: all.dropped, ..counts }
    }

    /// The same when nothing will be written any more: what was recorded and is neither written nor dropped is lost.
    pub(crate) fn final_stats(&self) -> Stats {
        let stats = self.stats();
        Stats { lost: stats.recorded.saturating_sub(stats.dropped).saturating_sub(stats.written), ..stats }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_writer_does_not_wait_for_its_own_end() {
        let core = Arc::new(Core::new(Clock::new(), 1 << 16, None, Duration::ZERO, Shown::default()));
        let (sender, receiver) = mpsc::channel();
        let of_writer = core.clone();
        // Not joined: where it waits, it does so for an hour.
        std::thread::spawn(move || {
            of_writer.set_writer(std::thread::current());
            let hour = Duration::from_secs(3600);
            sender.send([of_writer.close(hour), of_writer.wait_for_end(hour)]).unwrap();
        });
        assert_eq!(receiver.recv_timeout(Duration::from_secs(30)), Ok([false, false]));
        // Any other thread waits.
        let waiting = core.clone();
        let other = std::thread::spawn(move || waiting.wait_for_end(Duration::from_secs(30)));
        core.ended();
        assert!(other.join().unwrap());
    }
}
