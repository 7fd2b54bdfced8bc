//! Destinations.

mod datagram;
mod file;
mod stream;

use std::io::{self, ErrorKind, Write};

pub(crate) use datagram::{DATAGRAM_BYTES_MAX, Datagrams};
pub(crate) use file::{File, FileOptions};
pub(crate) use stream::{Peer, Stream};

use crate::stats::Counts;

/// Takes packets on.
pub(crate) trait Sink: Send {
    /// Hands all of the outbox to the system; false when it does not take all now. What was taken is noted in
    /// [`Outbox::sent`].
    ///
    /// # Errors
    /// What went wrong; the call is repeated after a while.
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool>;
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

/// The packet that starts each file and each connection.
pub(crate) fn epoch_packet(epoch_ns: u64) -> Vec<u8> {
    let mut packet = Vec::new();
    // A vector is never full.
    let _ = heph_encoder::epoch(&mut packet, epoch_ns);
    packet
}

/// A `Write` of the caller.
pub(crate) struct Writer {
    to: Box<dyn Write + Send>,
    epoch: Outbox,
}

impl Writer {
    pub(crate) fn new(to: Box<dyn Write + Send>, epoch_ns: u64) -> Self {
        Self { to, epoch: Outbox { bytes: epoch_packet(epoch_ns), ..Outbox::default() } }
    }
}

impl Sink for Writer {
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool> {
        if self.epoch.sent == self.epoch.bytes.len() && out.bytes.is_empty() {
            return Ok(true);
        }
        let end = self.epoch.bytes.len();
        if !self.epoch.write_to(&mut *self.to, end, counts)? {
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
