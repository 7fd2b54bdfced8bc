//! A connection that sends a stream of packets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use anytrace_core::Error;
use nix::sys::socket::sockopt::{KeepAlive, PeerCredentials};
use nix::sys::socket::{getsockopt, setsockopt};

use crate::feed::{Feed, Got, READ_BYTES};
use crate::listen::Socket;
use crate::places::Address;
use crate::pool::Pool;
use crate::source::Intake;

/// Back-off for a sender over its rate limit, or one that needs memory held by others.
const REST: Duration = Duration::from_millis(10);

/// How long an incomplete packet may hold memory that others wait for.
const PATIENCE_WHEN_SHORT: Duration = Duration::from_secs(5);

/// An accepted connection.
pub(crate) struct Connection {
    stream: Stream,
    pub(crate) address: Address,
    feed: Feed,
    /// Its source, by place.
    pub(crate) slot: usize,
    pub(crate) since: Instant,
    rests_until: Option<Instant>,
    pub(crate) has_ended: bool,
    acked: u64,
    /// Of the last acknowledgement, the bytes that found no room.
    unsent: Vec<u8>,
}

/// The socket of a connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Stream {
    /// Accepts one connection and returns its peer, for people and as an address; `None` where none waits.
    pub(crate) fn accept(socket: &Socket) -> io::Result<Option<(Self, String, Address)>> {
        let accepted = match socket {
            Socket::Tcp(listener) => listener.accept().and_then(|(stream, peer)| {
                stream.set_nonblocking(true)?;
                // So that a peer whose machine is gone does not keep its place for ever.
                let _ = setsockopt(&stream, KeepAlive, &true);
                Ok((Self::Tcp(stream), SocketAddr::to_string(&peer), Address::Net(peer.ip().to_canonical())))
            }),
            Socket::Unix(listener) => listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                let process = getsockopt(&stream, PeerCredentials).map_or(0, |credentials| credentials.pid());
                Ok((Self::Unix(stream), format!("process {process}"), Address::Process(process)))
            }),
            Socket::Datagrams(_) => return Ok(None),
        };
        match accepted {
            Ok(accepted) => Ok(Some(accepted)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Connection {
    pub(crate) fn new(stream: Stream, address: Address, slot: usize, packet_bytes_max: u64, now: Instant) -> Self {
        Self {
            stream,
            address,
            feed: Feed::new(packet_bytes_max),
            slot,
            since: now,
            rests_until: None,
            has_ended: false,
            acked: 0,
            unsent: Vec::new(),
        }
    }

    /// Says how many bytes of it are stored. What finds no room, because the peer does not read, is said later.
    pub(crate) fn acknowledge(&mut self) {
        if self.unsent.is_empty() && self.feed.taken > self.acked {
            self.acked = self.feed.taken;
            self.unsent.extend_from_slice(&self.acked.to_be_bytes());
        }
        if self.unsent.is_empty() {
            return;
        }
        let written = match &mut self.stream {
            Stream::Tcp(stream) => stream.write(&self.unsent),
            Stream::Unix(stream) => stream.write(&self.unsent),
        };
        // A peer that is gone is noticed when it is read from.
        if let Ok(written) = written {
            self.unsent.drain(..written);
        }
    }

    /// The descriptor to wait on; `None` while the connection rests.
    pub(crate) fn wanted(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        if self.rests_until.is_some_and(|until| now < until) {
            return None;
        }
        Some(match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Unix(stream) => stream.as_fd(),
        })
    }

    /// True while it rests, so that the wait for others stays short.
    pub(crate) fn rests(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }

    /// Reads once.
    pub(crate) fn read(
        &mut self,
        scratch: &mut [u8],
        pool: &mut Pool,
        intake: &mut Intake<'_, '_>,
    ) -> Result<Got, Error> {
        let now = intake.shared.now;
        let allowed = usize::try_from(intake.source.limiter.allows(now)).unwrap_or(usize::MAX);
        self.rests_until = None;
        if allowed == 0 {
            self.rests_until = Some(now + REST);
            return Ok(Got::NoRoom);
        }
        let got = self.feed.read(&mut self.stream, scratch, allowed.min(READ_BYTES), pool, intake)?;
        match got {
            Got::Bytes(bytes) => intake.source.limiter.take(bytes as u64),
            Got::NoRoom => self.rests_until = Some(now + REST),
            Got::End => {
                self.has_ended = true;
                self.end(pool, intake)?;
            }
            Got::Nothing => {}
        }
        intake.source.last_seen = now;
        Ok(got)
    }

    /// Ends waits that took too long: half a packet is then damage, and a peer that never sent a packet is
    /// disconnected. `is_short`: others need the memory of half packets.
    pub(crate) fn tick(
        &mut self,
        idle: Duration,
        is_short: bool,
        pool: &mut Pool,
        intake: &mut Intake<'_, '_>,
    ) -> Result<(), Error> {
        let now = intake.shared.now;
        let patience = if is_short && self.feed.holds_room() { idle.min(PATIENCE_WHEN_SHORT) } else { idle };
        let is_stale = self.feed.is_stale(now, patience);
        if is_stale {
            self.feed.end(pool, intake)?;
        }
        if !intake.source.has_spoken() && (is_stale || now.duration_since(self.since) >= idle) {
            self.has_ended = true;
            self.end(pool, intake)?;
        }
        Ok(())
    }

    /// The collection ends, not the stream: half a packet is not damage.
    pub(crate) fn leave(&mut self, pool: &mut Pool, intake: &mut Intake<'_, '_>) {
        intake.source.unfinished_bytes += self.feed.unfinished();
        self.feed.leave(pool);
    }

    /// Treats the waiting bytes as the end of the data.
    pub(crate) fn end(&mut self, pool: &mut Pool, intake: &mut Intake<'_, '_>) -> Result<(), Error> {
        self.feed.end(pool, intake)?;
        self.feed.leave(pool);
        Ok(())
    }
}
