//! What was sent and is not acknowledged: it is sent again on the next connection.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Outbox, events};
use crate::stats::Counts;

/// How long the first acknowledgement may take. Who does not send any by then never will.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// Bytes written at once.
const WRITE_BYTES: usize = 64 << 10;

/// Packets that were handed to the connection or are about to be, oldest first.
#[derive(Debug)]
pub(crate) struct Window {
    bytes: VecDeque<u8>,
    bytes_max: usize,
    /// How many of them were sent on this connection.
    sent: usize,
    /// Acknowledged bytes of this connection that are no longer here, its beginning included.
    gone: u64,
    /// What the other side says of this connection.
    answers: Arc<Answers>,
    /// When something was first sent on it.
    since: Option<Instant>,
    /// True when the other side does not acknowledge: then what is sent is all that can be done.
    is_ignored: bool,
}

/// What the other side of a connection says.
#[derive(Debug, Default)]
struct Answers {
    /// Bytes acknowledged so far.
    acked: AtomicU64,
    /// True when it says no more. A connection to which nothing can be sent, as the window is full, shows its end so.
    has_ended: AtomicBool,
}

impl Window {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            bytes_max,
            sent: 0,
            gone: 0,
            answers: Arc::default(),
            since: None,
            is_ignored: false,
        }
    }

    /// A new connection, which begins with this many bytes of its own: everything here is sent again.
    pub(crate) fn begin(&mut self, beginning: usize, acks: Box<dyn Read + Send>) -> io::Result<()> {
        self.sent = 0;
        self.gone = beginning as u64;
        self.since = None;
        self.is_ignored = false;
        self.answers = Arc::default();
        let answers = self.answers.clone();
        let thread = thread::Builder::new().name("heph-acks".to_owned());
        thread.spawn(move || listen(acks, &answers)).map(drop)
    }

    /// Takes what is in the outbox if there is room for it; its events count as written when they are acknowledged.
    pub(crate) fn take(&mut self, out: &mut Outbox) -> bool {
        let more = out.bytes.get(out.sent..).unwrap_or_default();
        // A packet longer than the window goes alone.
        if !self.bytes.is_empty() && self.bytes.len() + more.len() > self.bytes_max {
            return more.is_empty();
        }
        self.bytes.extend(more);
        out.sent = out.bytes.len();
        out.events = 0;
        true
    }

    /// Sends what was not sent yet; false when the connection takes no more now.
    pub(crate) fn send(&mut self, to: &mut dyn Write, counts: &Counts) -> io::Result<bool> {
        if self.answers.has_ended.load(Ordering::Acquire) && !self.is_ignored {
            return Err(ErrorKind::ConnectionReset.into());
        }
        while self.sent < self.bytes.len() {
            let (front, back) = self.bytes.as_slices();
            let rest = front.get(self.sent..).filter(|rest| !rest.is_empty());
            let rest = rest.or_else(|| back.get(self.sent - front.len()..)).unwrap_or_default();
            match to.write(rest.get(..WRITE_BYTES).unwrap_or(rest)) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => {
                    self.sent += sent;
                    self.since.get_or_insert_with(Instant::now);
                    Counts::add(&counts.bytes, sent as u64);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Forgets what is acknowledged.
    pub(crate) fn settle(&mut self, counts: &Counts) {
        let acked = self.answers.acked.load(Ordering::Acquire);
        if acked == 0 && self.since.is_some_and(|since| since.elapsed() > FIRST_WAIT) && !self.is_ignored {
            self.is_ignored = true;
            counts.error(&io::Error::new(ErrorKind::Unsupported, "the receiver does not acknowledge"));
        }
        let stored =
            if self.is_ignored { self.sent } else { usize::try_from(acked.saturating_sub(self.gone)).unwrap_or(0) };
        // Only complete packets are acknowledged, and no more than was sent.
        let end = self.packets_within(stored.min(self.sent));
        if end == 0 {
            return;
        }
        let packets: Vec<u8> = self.bytes.drain(..end).collect();
        self.sent -= end;
        self.gone += end as u64;
        Counts::add(&counts.written, events(&packets).count() as u64);
    }

    /// True when nothing waits for an acknowledgement.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Where the last packet ends that lies within this many bytes.
    fn packets_within(&self, bytes: usize) -> usize {
        let mut at = 0;
        loop {
            let mut size = [0; 4];
            for (n, byte) in size.iter_mut().enumerate() {
                let Some(from) = self.bytes.get(at + 4 + n) else { return at };
                *byte = *from;
            }
            let end = at + (u32::from_be_bytes(size) as usize).max(8);
            if end > bytes {
                return at;
            }
            at = end;
        }
    }
}

/// Takes note of what is acknowledged, until the connection ends.
fn listen(mut acks: Box<dyn Read + Send>, answers: &Answers) {
    let mut number = [0; 8];
    while acks.read_exact(&mut number).is_ok() {
        answers.acked.fetch_max(u64::from_be_bytes(number), Ordering::AcqRel);
    }
    answers.has_ended.store(true, Ordering::Release);
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use std::os::unix::net::UnixStream;

    use heph_encoder::{Header, event};

    use super::*;

    fn outbox(counters: std::ops::Range<u32>) -> Outbox {
        let mut out = Outbox::default();
        for counter in counters {
            event(&mut out.bytes, &Header { counter, ..Header::default() }, "x").finish().unwrap();
            out.events += 1;
        }
        out
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_from_a_packet_on() {
        let counts = Counts::default();
        let mut window = Window::new(500);
        let mut out = outbox(0..10);
        let one = out.bytes.len() / 10;
        for (acked, left) in [(4, 6), (0, 6), (3, 3)] {
            let (near, mut far) = UnixStream::pair().unwrap();
            window.begin(7, Box::new(near)).unwrap();
            assert!(window.take(&mut out));
            let mut sent = Vec::new();
            assert!(window.send(&mut sent, &counts).unwrap(), "the other side is there");
            assert_eq!(sent, window.bytes.iter().copied().collect::<Vec<_>>());
            // In the middle of a packet: it is not complete there.
            far.write_all(&((7 + acked * one + 5) as u64).to_be_bytes()).unwrap();
            drop(far);
            while !window.answers.has_ended.load(Ordering::Acquire) {
                thread::yield_now();
            }
            assert!(window.send(&mut sent, &counts).is_err(), "it is gone");
            window.settle(&counts);
            assert_eq!(window.bytes.len(), left * one);
        }
        assert_eq!(counts.written.load(Ordering::Relaxed), 7);
        assert!(!window.take(&mut outbox(0..9)), "there is no room");
        assert!(!window.is_empty());
    }
}
