//! Memory between the threads that record and the one that writes.
//!
//! A recording thread fills a chunk word by word and then publishes how far it got; the writer reads up to there at any
//! time, so that the events of a thread that went to sleep also reach the file. Words are atomics, stored and loaded
//! without order between them: on every usual processor that is a plain move. The one ordered store, of the number of
//! words that are ready, makes all before it visible. So nothing is locked. Chunks may be in a file that outlives the
//! program ([`crate::memory`]).

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::memory::{CHUNK_BYTES, Kind, Memory, OWN_BYTES, Shared};
use crate::unpoisoned;
use crate::words::{WORD, store};

/// How long a thread that waits for memory sleeps at a time.
const WAIT_MAX: Duration = Duration::from_millis(2);

/// Free chunks that are kept when a burst is over.
const FREE_MAX: usize = 32;

/// A block of memory that one thread appends packets to and another reads them from.
#[derive(Debug)]
pub(crate) struct Chunk {
    /// The first is how many of those after it are ready to be read.
    words: Shared<AtomicU64>,
}

impl Chunk {
    /// On the heap, with this many bytes in all.
    fn new(bytes: usize) -> Self {
        let words = (0..bytes.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect();
        Self { words: Shared::on_heap(words) }
    }

    pub(crate) fn is_own(&self) -> bool {
        self.bytes() == OWN_BYTES
    }

    /// Makes it empty. Only when nobody writes to it or reads from it.
    pub(crate) fn clear(&self) {
        self.set_ready(0, Ordering::Relaxed);
    }

    /// Bytes in all.
    fn bytes(&self) -> usize {
        self.words.len() * WORD
    }

    fn packets(&self) -> &[AtomicU64] {
        self.words.get(1..).unwrap_or_default()
    }

    #[inline]
    fn set_ready(&self, ready: usize, order: Ordering) {
        if let Some(word) = self.words.first() {
            word.store(ready as u64, order);
        }
    }

    /// Stores a packet, given as its head and two parts of its body, from word `at` on and publishes it; returns the
    /// word after it, or `None` when there is no room. Only the thread that owns the chunk may call it.
    #[inline]
    pub(crate) fn push(&self, at: usize, head: &[u8; 40], body: &[u8], tail: &[u8]) -> Option<usize> {
        let end = at + words_of(head.len() + body.len() + tail.len());
        let (head_words, words) = self.packets().get(at..end)?.split_at(head.len() / WORD);
        for (word, bytes) in head_words.iter().zip(head.as_chunks::<WORD>().0) {
            word.store(u64::from_ne_bytes(*bytes), Ordering::Relaxed);
        }
        if tail.is_empty() {
            store(words, body);
        } else {
            store(words, &[body, tail].concat());
        }
        self.set_ready(end, Ordering::Release);
        Some(end)
    }

    /// How many words may be read.
    pub(crate) fn ready(&self) -> usize {
        self.words.first().map_or(0, |ready| ready.load(Ordering::Acquire) as usize)
    }

    /// Appends the packet at word `at` to `out`; gives the word after it. A packet says its size in its bytes 4 to 7
    /// and takes complete words here.
    pub(crate) fn pop(&self, at: usize, out: &mut Vec<u8>) -> usize {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed).to_ne_bytes();
        let [_, _, _, _, size @ ..] = self.packets().get(at).map_or([0; WORD], load);
        let size = u32::from_be_bytes(size) as usize;
        // The sizes are our own; a wrong one must not keep the writer at one place for ever.
        let end = at + words_of(size).max(1);
        let start = out.len();
        let words = self.packets().get(at..end).unwrap_or_default();
        out.resize(start + words.len() * WORD, 0);
        let to = out.get_mut(start..).unwrap_or_default();
        for (to, word) in to.as_chunks_mut::<WORD>().0.iter_mut().zip(words) {
            *to = load(word);
        }
        out.truncate(start + size);
        end
    }
}

/// Words that a packet takes.
#[inline]
fn words_of(bytes: usize) -> usize {
    bytes.div_ceil(WORD)
}

/// All chunks of a recorder; bounds their memory.
#[derive(Debug)]
pub(crate) struct Pool {
    free: Mutex<Vec<Arc<Chunk>>>,
    free_count: AtomicUsize,
    used_bytes: AtomicUsize,
    bytes_max: usize,
    /// Memory came back.
    given: Condvar,
    /// Where chunks are that outlive the program.
    memory: Option<Arc<Memory>>,
}

impl Pool {
    pub(crate) fn new(bytes_max: usize, memory: Option<Arc<Memory>>) -> Self {
        Self {
            free: Mutex::new(Vec::new()),
            free_count: AtomicUsize::new(0),
            used_bytes: AtomicUsize::new(0),
            bytes_max,
            given: Condvar::new(),
            memory,
        }
    }

    /// The chunk that a thread starts with and comes back to when there is no other: many threads record little, and
    /// none should have to do without memory because others hold it.
    pub(crate) fn own(&self) -> Arc<Chunk> {
        let words = self.memory.as_ref().and_then(|memory| memory.take(Kind::Own));
        Arc::new(words.map_or_else(|| Chunk::new(OWN_BYTES), |words| Chunk { words }))
    }

    /// A chunk with room for a packet of this many bytes, if the bound on memory allows.
    pub(crate) fn take(&self, packet_bytes: usize) -> Option<Arc<Chunk>> {
        // Beside the packet there is the word that says how much is ready.
        if packet_bytes > CHUNK_BYTES - WORD {
            return self.allocate(packet_bytes + WORD);
        }
        // Looked at before the lock, so that losing events is cheap.
        if self.free_count.load(Ordering::Relaxed) > 0
            && let Some(chunk) = self.take_free()
        {
            return Some(chunk);
        }
        self.allocate(CHUNK_BYTES)
    }

    /// True when more than half of the memory waits to be read.
    pub(crate) fn is_crowded(&self) -> bool {
        let free_bytes = self.free_count.load(Ordering::Relaxed) * CHUNK_BYTES;
        self.used_bytes.load(Ordering::Relaxed).saturating_sub(free_bytes) > self.bytes_max / 2
    }

    /// Takes back a chunk that was read to its end.
    pub(crate) fn give(&self, chunk: Arc<Chunk>) {
        if chunk.bytes() == CHUNK_BYTES {
            chunk.clear();
            let mut free = unpoisoned(&self.free);
            free.push(chunk);
            self.free_count.store(free.len(), Ordering::Relaxed);
        } else {
            self.used_bytes.fetch_sub(chunk.bytes(), Ordering::Relaxed);
        }
        self.given.notify_all();
    }

    /// Gives memory back to the allocator. Not while there is much to do: then it would only be asked for again.
    pub(crate) fn trim(&self) {
        if self.free_count.load(Ordering::Relaxed) > FREE_MAX {
            let mut free = unpoisoned(&self.free);
            let more = free.len().saturating_sub(FREE_MAX);
            free.truncate(FREE_MAX);
            self.free_count.store(free.len(), Ordering::Relaxed);
            self.used_bytes.fetch_sub(more * CHUNK_BYTES, Ordering::Relaxed);
        }
    }

    /// Waits until memory may have come back, not for long.
    pub(crate) fn wait(&self) {
        let free = unpoisoned(&self.free);
        drop(self.given.wait_timeout(free, WAIT_MAX));
    }

    fn take_free(&self) -> Option<Arc<Chunk>> {
        let mut free = unpoisoned(&self.free);
        let chunk = free.pop();
        self.free_count.store(free.len(), Ordering::Relaxed);
        chunk
    }

    fn allocate(&self, bytes: usize) -> Option<Arc<Chunk>> {
        if self.used_bytes.load(Ordering::Relaxed).saturating_add(bytes) > self.bytes_max {
            return None;
        }
        let mapped = match &self.memory {
            Some(memory) if bytes == CHUNK_BYTES => memory.take(Kind::Full),
            _ => None,
        };
        let chunk = mapped.map_or_else(|| Chunk::new(bytes), |words| Chunk { words });
        let bytes = chunk.bytes();
        if self.used_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes) > self.bytes_max {
            self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        Some(Arc::new(chunk))
    }
}

#[cfg(test)]
mod tests {
    use heph_encoder::{Header, event, head};

    use super::*;

    #[test]
    fn a_packet_of_any_length_comes_out_as_it_went_in() {
        let chunk = Chunk::new(CHUNK_BYTES);
        let (mut at, mut wanted, mut out) = (0, Vec::new(), Vec::new());
        for length in 0..200 {
            let text = "x".repeat(length);
            let header = Header { counter: length as u32, start_ns: u64::MAX, ..Header::default() };
            let mut packet = Vec::new();
            event(&mut packet, &header, &text).finish().unwrap();
            let (first, body) = packet.split_first_chunk::<40>().unwrap();
            let (body, tail) = body.split_at(body.len() / 3 * (length % 2) + body.len() * (1 - length % 2));
            assert_eq!(*first, head(&header, body.len() + tail.len()).unwrap());
            at = chunk.push(at, first, body, tail).unwrap();
            wanted.extend_from_slice(&packet);
        }
        let mut read = 0;
        while read < chunk.ready() {
            read = chunk.pop(read, &mut out);
        }
        assert_eq!((read, out), (at, wanted));
    }

    #[test]
    fn a_full_chunk_takes_nothing() {
        let chunk = Chunk::new(56);
        let head = head(&Header::default(), 9).unwrap();
        assert_eq!(chunk.push(0, &head, &[0; 9], &[]), None);
        assert_eq!(chunk.ready(), 0);
        assert_eq!(chunk.push(0, &head, &[0; 8], &[]), Some(6));
    }

    #[test]
    fn memory_is_bounded_and_comes_back() {
        let pool = Pool::new(3 * CHUNK_BYTES + 100, None);
        let taken: Vec<_> = std::iter::from_fn(|| pool.take(100)).collect();
        assert_eq!(taken.len(), 3);
        assert!(pool.take(CHUNK_BYTES + 1).is_none());
        taken.into_iter().for_each(|chunk| pool.give(chunk));
        assert!(pool.take(CHUNK_BYTES + 1).is_none(), "free chunks still count");
        assert!(pool.take(CHUNK_BYTES - WORD).is_some());
    }

    #[test]
    fn after_a_burst_memory_is_given_back() {
        let pool = Pool::new(100 * CHUNK_BYTES, None);
        let taken: Vec<_> = std::iter::from_fn(|| pool.take(100)).collect();
        taken.into_iter().for_each(|chunk| pool.give(chunk));
        pool.trim();
        assert_eq!(pool.used_bytes.load(Ordering::Relaxed), FREE_MAX * CHUNK_BYTES);
        assert_eq!(pool.free.lock().unwrap().len(), FREE_MAX);
    }
}
