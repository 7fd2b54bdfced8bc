//! What a recording thread and the writer share: chunks on their way from one to the other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use heph_encoder::StreamAccount;

use crate::chunk::{Chunk, Pool};

/// The chunks of a thread that are not read to their end.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    /// Oldest first.
    pub(crate) queue: VecDeque<Arc<Chunk>>,
    /// True when the thread is done with all of them; else it appends to the last.
    pub(crate) is_last_full: bool,
}

/// What a recording thread and the writer share.
#[derive(Debug, Default)]
pub(crate) struct Feed {
    pub(crate) stream: u32,
    /// Name of the thread, if it has one.
    pub(crate) name: Option<Box<str>>,
    pub(crate) chunks: Mutex<Chunks>,
    /// Events so far, those dropped included. Only the thread itself sets it.
    pub(crate) recorded: AtomicU64,
    /// True when the thread's own chunk is read to its end, and it may reuse it.
    pub(crate) is_own_free: AtomicBool,
    /// Events for which there was no memory. Only the thread itself adds.
    pub(crate) dropped: AtomicU64,
    /// Events that the destination refused. Only the writer adds.
    pub(crate) lost: AtomicU64,
    /// True when the thread is gone and nothing will follow.
    pub(crate) is_ended: AtomicBool,
}

impl Feed {
    pub(crate) fn new(stream: u32, name: Option<&str>) -> Self {
        Self { stream, name: name.map(Box::from), ..Self::default() }
    }

    /// What the stream has counted so far.
    pub(crate) fn account(&self) -> StreamAccount {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // In this order: an event that is dropped in between is not among those recorded before.
        let (dropped, lost) = (get(&self.dropped), get(&self.lost));
        StreamAccount { stream: self.stream, recorded: get(&self.recorded), dropped, lost }
    }

    /// Takes back a chunk that was read to its end.
    pub(crate) fn give(&self, chunk: Arc<Chunk>, pool: &Pool) {
        if chunk.is_own() {
            chunk.clear();
            self.is_own_free.store(true, Ordering::Release);
        } else {
            pool.give(chunk);
        }
    }
}
