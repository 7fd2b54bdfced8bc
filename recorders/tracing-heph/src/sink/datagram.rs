//! UDP: complete packets, several per datagram.

use std::io::{self, ErrorKind};
use std::net::{ToSocketAddrs, UdpSocket};
use std::time::{Duration, Instant};

use super::{AccountForm, Head, Outbox, Sink};
use crate::stats::Counts;

/// The most a UDP datagram over IPv4 holds: 65,535 less the headers of IP and UDP.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 65_507;

/// How often epoch and session are repeated: who starts to listen late learns them, and a lost one does no harm.
const HEAD_EVERY: Duration = Duration::from_secs(1);

/// Streams of an account, which then fits into a usual datagram, and how often the last account is sent.
const ACCOUNT_STREAMS: usize = 32;
const ACCOUNT_COPIES: usize = 5;

/// How long a full socket may hold the writer up.
const WRITE_WAIT: Duration = Duration::from_millis(50);

/// A socket with one receiver.
pub(crate) struct Datagrams {
    socket: UdpSocket,
    /// Several packets go together up to that size; a longer one goes alone.
    bytes_max: usize,
    head: Head,
    /// Its packets.
    beginning: Vec<u8>,
    begun_at: Option<Instant>,
    datagram: Vec<u8>,
}

impl Datagrams {
    pub(crate) fn connect(address: &str, bytes_max: usize, head: Head) -> io::Result<Self> {
        let mut failure = io::Error::new(ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            match UdpSocket::bind(any).and_then(|socket| socket.connect(address).map(|()| socket)) {
                Ok(socket) => {
                    socket.set_write_timeout(Some(WRITE_WAIT))?;
                    let beginning = head.packets();
                    return Ok(Self { socket, bytes_max, head, beginning, begun_at: None, datagram: Vec::new() });
                }
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    /// Puts the next complete packets into the datagram; returns where they end.
    fn pack(&mut self, out: &Outbox) -> usize {
        self.datagram.clear();
        let is_due = self.begun_at.is_none_or(|at| at.elapsed() >= HEAD_EVERY);
        if is_due {
            self.datagram.extend_from_slice(&self.beginning);
        }
        let mut at = out.sent;
        while let Some(end) = out.packet_end(at) {
            let packet = out.bytes.get(at..end).unwrap_or_default();
            if !self.datagram.is_empty() && self.datagram.len() + packet.len() > self.bytes_max {
                break;
            }
            self.datagram.extend_from_slice(packet);
            at = end;
        }
        at
    }

    /// Sends the datagram. An answer that the one before was refused is reported by the next call, which then has sent
    /// nothing: so once more.
    fn send_datagram(&self) -> io::Result<usize> {
        match self.socket.send(&self.datagram) {
            Err(error) if matches!(error.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => {
                self.socket.send(&self.datagram)
            }
            result => result,
        }
    }
}

impl Sink for Datagrams {
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool> {
        while out.sent < out.bytes.len() || self.begun_at.is_none() {
            let end = self.pack(out);
            let sent = if self.datagram.len() > DATAGRAM_BYTES_MAX {
                Err(io::Error::new(ErrorKind::InvalidInput, "an event is too long for a datagram"))
            } else {
                self.send_datagram()
            };
            if sent.as_ref().is_err_and(|error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)) {
                return Ok(false);
            }
            if self.datagram.starts_with(&self.beginning) {
                // A refused one is repeated when it is due again.
                self.begun_at = Some(Instant::now());
            }
            match sent {
                Ok(sent) => Counts::add(&counts.bytes, sent as u64),
                // Lost, as others on the way: the counters show it.
                Err(error) => {
                    counts.error(&error);
                    let lost = self.head.lost(out.bytes.get(out.sent..end).unwrap_or_default());
                    out.events = out.events.saturating_sub(lost);
                }
            }
            out.sent = end;
        }
        Ok(true)
    }

    fn account_form(&self) -> AccountForm {
        AccountForm { streams_at_once: ACCOUNT_STREAMS, copies: ACCOUNT_COPIES }
    }
}
