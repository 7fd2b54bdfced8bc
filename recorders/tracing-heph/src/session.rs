//! The identity of a recording, and what its streams have counted: all of it is in the trace, so that whoever reads the
//! trace can say what is missing.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use heph_encoder::{Account, StreamAccount};

use crate::feed::Feed;
use crate::unpoisoned;

/// Streams of ended threads that are remembered until an account has them.
const ENDED_MAX: usize = 4096;

/// The identity of a recording.
#[derive(Debug)]
pub(crate) struct Session {
    id: u128,
    program: String,
    start_ns: u64,
    memory_bytes: usize,
    /// False: the trace has neither sessions nor accounts.
    is_shown: bool,
    ledger: Mutex<Ledger>,
}

/// All streams.
#[derive(Debug, Default)]
struct Ledger {
    live: HashMap<u32, Arc<Feed>>,
    /// Streams of threads that are gone.
    ended: Vec<StreamAccount>,
    /// The sums of all that are gone, also of those that are no longer in the list.
    past: StreamAccount,
    streams: u64,
}

impl Ledger {
    fn all(&self) -> StreamAccount {
        self.live.values().fold(self.past, |sum, feed| add(sum, feed.account()))
    }
}

fn add(sum: StreamAccount, one: StreamAccount) -> StreamAccount {
    StreamAccount {
        stream: 0,
        recorded: sum.recorded + one.recorded,
        dropped: sum.dropped + one.dropped,
        lost: sum.lost + one.lost,
    }
}

impl Session {
    pub(crate) fn new(start_ns: u64, memory_bytes: usize, is_shown: bool) -> Self {
        // The keys of the standard library's hashers come from the system's random numbers.
        let random = |n: u8| u128::from(RandomState::new().hash_one((n, start_ns, std::process::id())));
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(|path| path.file_name()).unwrap_or_default();
        Self {
            id: random(0) << 64 | random(1),
            program: program.to_string_lossy().into_owned(),
            start_ns,
            memory_bytes,
            is_shown,
            ledger: Mutex::default(),
        }
    }

    pub(crate) fn id(&self) -> u128 {
        self.id
    }

    pub(crate) fn add(&self, feed: &Arc<Feed>) {
        let mut ledger = unpoisoned(&self.ledger);
        ledger.live.insert(feed.stream, feed.clone());
        ledger.streams += 1;
    }

    /// A stream whose thread is gone and whose events are all taken.
    pub(crate) fn end(&self, stream: u32) {
        let mut ledger = unpoisoned(&self.ledger);
        let Some(feed) = ledger.live.remove(&stream) else { return };
        let account = feed.account();
        ledger.past = add(ledger.past, account);
        ledger.ended.push(account);
    }

    /// Counts events of a stream that the destination refused.
    pub(crate) fn lost(&self, stream: u32, events: u64) {
        let mut ledger = unpoisoned(&self.ledger);
        if let Some(feed) = ledger.live.get(&stream) {
            feed.lost.fetch_add(events, Ordering::Relaxed);
            return;
        }
        ledger.past.lost += events;
        if let Some(ended) = ledger.ended.iter_mut().find(|ended| ended.stream == stream) {
            ended.lost += events;
        }
    }

    /// Events recorded so far, and those dropped of them.
    pub(crate) fn counted(&self) -> StreamAccount {
        unpoisoned(&self.ledger).all()
    }

    /// True when so many threads have ended that an account is due.
    pub(crate) fn is_account_due(&self) -> bool {
        unpoisoned(&self.ledger).ended.len() >= ENDED_MAX
    }

    /// Appends the packet that names a thread, if it has a name.
    pub(crate) fn push_thread(&self, feed: &Feed, out: &mut Vec<u8>) {
        if let Some(name) = feed.name.as_deref().filter(|_| self.is_shown) {
            // As below.
            let _ = heph_encoder::thread(out, feed.stream, name);
        }
    }

    /// Appends the names of all threads that are there, for a part that begins.
    pub(crate) fn push_threads(&self, out: &mut Vec<u8>) {
        let ledger = unpoisoned(&self.ledger);
        let mut live: Vec<_> = ledger.live.values().collect();
        live.sort_by_key(|feed| feed.stream);
        live.into_iter().for_each(|feed| self.push_thread(feed, out));
    }

    /// Appends the packet that begins a part.
    pub(crate) fn push_begin(&self, part: u64, wants_acks: bool, out: &mut Vec<u8>) {
        if !self.is_shown {
            return;
        }
        let session = heph_encoder::Session {
            id: self.id,
            program: &self.program,
            process: std::process::id(),
            start_ns: self.start_ns,
            recorder: concat!("tracing-heph ", env!("CARGO_PKG_VERSION")),
            part,
            memory_bytes: self.memory_bytes as u64,
            wants_acks,
        };
        // A vector is never full, and the packet is short.
        let _ = heph_encoder::session(out, &session);
    }

    /// Appends a packet with what the session has counted so far, without its streams.
    pub(crate) fn push_sums(&self, out: &mut Vec<u8>) {
        if !self.is_shown {
            return;
        }
        let ledger = unpoisoned(&self.ledger);
        let (all, all_streams) = (ledger.all(), ledger.streams);
        let account = Account { id: self.id, is_closed: false, streams: &[], all_streams, all };
        // As above.
        let _ = heph_encoder::account(out, &account);
    }

    /// Appends packets with what all streams have counted so far, with this many streams each.
    pub(crate) fn push_accounts(&self, is_closed: bool, at_once: usize, out: &mut Vec<u8>) {
        if !self.is_shown {
            return;
        }
        let mut ledger = unpoisoned(&self.ledger);
        let (all, all_streams) = (ledger.all(), ledger.streams);
        let mut streams: Vec<StreamAccount> = ledger.ended.clone();
        streams.extend(ledger.live.values().map(|feed| feed.account()));
        streams.sort_by_key(|account| account.stream);
        if ledger.ended.len() >= ENDED_MAX {
            ledger.ended.clear();
        }
        drop(ledger);
        let mut push = |is_closed, streams: &[StreamAccount]| {
            // As above: at most 1,024 streams.
            let _ = heph_encoder::account(out, &Account { id: self.id, is_closed, streams, all_streams, all });
        };
        let mut chunks = streams.chunks(at_once).peekable();
        if chunks.peek().is_none() && is_closed {
            push(true, &[]);
        }
        while let Some(streams) = chunks.next() {
            // The last packet closes the session.
            push(is_closed && chunks.peek().is_none(), streams);
        }
    }
}
