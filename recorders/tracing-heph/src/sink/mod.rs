//! Destinations.

mod datagram;
mod file;
mod stream;
#[cfg(feature = "tls")]
mod tls;
mod window;

use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;

use heph_encoder::EVENT_MAGIC;

pub(crate) use datagram::{DATAGRAM_BYTES_MAX, Datagrams};
pub(crate) use file::{File, FileOptions};
pub(crate) use stream::{Peer, Stream};
#[cfg(feature = "tls")]
pub(crate) use tls::TlsFiles;

use crate::core::Core;
use crate::session::Session;
use crate::stats::Counts;

/// Takes packets on.
pub(crate) trait Sink: Send {
    /// Hands all of the outbox to the system; false when it does not take all now. What was taken is noted in
    /// [`Outbox::sent`].
    ///
    /// # Errors
    /// What went wrong; the call is repeated after a while.
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool>;

    /// True when nothing of what was sent may still come back.
    fn is_settled(&mut self) -> bool {
        true
    }

    /// How accounts are best sent.
    fn account_form(&self) -> AccountForm {
        AccountForm { streams_at_once: STREAMS_AT_ONCE, copies: 1 }
    }
}

/// Streams in a packet of an account, where packets may be long.
const STREAMS_AT_ONCE: usize = 1024;

/// How accounts are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AccountForm {
    /// Streams in a packet.
    pub(crate) streams_at_once: usize,
    /// How often the last one is sent: where packets may get lost, once is not enough.
    pub(crate) copies: usize,
}

/// What begins each file and each connection, so that it can be read alone: the epoch, the session, and what it has counted
/// before.
#[derive(Debug)]
pub(crate) struct Head {
    core: Arc<Core>,
    part: u64,
    wants_acks: bool,
}

impl Head {
    pub(crate) fn new(core: Arc<Core>) -> Self {
        Self { core, part: 0, wants_acks: false }
    }

    /// Asks the receiver to acknowledge what it has stored.
    pub(crate) fn with_acks(self) -> Self {
        Self { wants_acks: true, ..self }
    }

    /// The packets that begin the next connection, with an account of each stream: what was sent before may be lost.
    pub(crate) fn next_connection(&mut self) -> Vec<u8> {
        self.next(|session, packets| session.push_accounts(false, STREAMS_AT_ONCE, packets))
    }

    /// The packets that begin the next file. The earlier ones are there: sums are enough, and a file may be small.
    pub(crate) fn next_file(&mut self) -> Vec<u8> {
        self.next(Session::push_sums)
    }

    fn next(&mut self, account: impl Fn(&Session, &mut Vec<u8>)) -> Vec<u8> {
        let mut packets = self.packets();
        if self.part > 0 {
            self.core.session.push_threads(&mut packets);
            account(&self.core.session, &mut packets);
        }
        self.part += 1;
        packets
    }

    /// The packets without accounts, which do not change.
    pub(crate) fn packets(&self) -> Vec<u8> {
        let mut packets = Vec::new();
        // A vector is never full.
        let _ = heph_encoder::epoch(&mut packets, self.core.epoch_ns);
        self.core.session.push_begin(self.part, self.wants_acks, &mut packets);
        packets
    }

    /// A file was begun.
    pub(crate) fn begun(&self, path: &Path) {
        if let Some(memory) = &self.core.memory {
            memory.set_file(path);
        }
    }

    /// Counts the events among these packets as refused.
    pub(crate) fn lost(&self, packets: &[u8]) -> u64 {
        let mut lost = 0;
        for stream in events(packets) {
            self.core.session.lost(stream, 1);
            lost += 1;
        }
        Counts::add(&self.core.counts.lost, lost);
        lost
    }
}

/// The streams of the events among complete packets.
fn events(mut packets: &[u8]) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        loop {
            let word = |at: usize| packets.get(at..)?.first_chunk().copied().map(u32::from_be_bytes);
            let (magic, size) = (word(0)?, word(4)?);
            let stream = word(8);
            packets = packets.get((size as usize).max(1)..)?;
            if magic == EVENT_MAGIC {
                return stream;
            }
        }
    })
}

/// Complete packets to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) bytes: Vec<u8>,
    /// How many of the bytes were sent.
    pub(crate) sent: usize,
    /// How many events the bytes are.
    pub(crate) events: u64,
}

/// What a slow reader may hold back of one write. Longer buffers, after a long packet, are given up.
const KEPT_BYTES: usize = 256 << 10;

impl Outbox {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_BYTES);
        self.sent = 0;
        self.events = 0;
    }

    /// Where the packet ends that starts at `at`: a packet says its size in its bytes 4 to 7.
    pub(crate) fn packet_end(&self, at: usize) -> Option<usize> {
        let size = self.bytes.get(at..)?.get(4..8)?.first_chunk().copied().map(u32::from_be_bytes)?;
        let end = at.checked_add(size as usize)?;
        // The sizes are our own: none is 0, none goes past the end.
        (end > at && end <= self.bytes.len()).then_some(end)
    }

    /// Events among the packets that were not sent.
    pub(crate) fn events_unsent(&self) -> u64 {
        events(self.bytes.get(self.sent..).unwrap_or_default()).count() as u64
    }

    /// Makes the partly sent packet one that is to be sent again from its start.
    pub(crate) fn step_back(&mut self) {
        let mut at = 0;
        while let Some(end) = self.packet_end(at).filter(|end| *end <= self.sent) {
            at = end;
        }
        self.sent = at;
    }

    /// Writes the unsent bytes before `end`. False when the writer takes no more now.
    pub(crate) fn write_to(&mut self, to: &mut dyn Write, end: usize, counts: &Counts) -> io::Result<bool> {
        while self.sent < end {
            match to.write(self.bytes.get(self.sent..end).unwrap_or_default()) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.sent += sent;
                    Counts::add(&counts.bytes, sent as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// A `Write` of the caller.
pub(crate) struct Writer {
    to: Box<dyn Write + Send>,
    head: Outbox,
}

impl Writer {
    pub(crate) fn new(to: Box<dyn Write + Send>, mut head: Head) -> Self {
        Self { to, head: Outbox { bytes: head.next_file(), ..Outbox::default() } }
    }
}

impl Sink for Writer {
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool> {
        if self.head.sent == self.head.bytes.len() && out.bytes.is_empty() {
            return Ok(true);
        }
        let end = self.head.bytes.len();
        if !self.head.write_to(&mut *self.to, end, counts)? {
            return Ok(false);
        }
        let end = out.bytes.len();
        if !out.write_to(&mut *self.to, end, counts)? {
            return Ok(false);
        }
        match self.to.flush() {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            flushed => flushed.map(|()| true),
        }
    }
}
