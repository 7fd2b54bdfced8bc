//! A connection that sends a stream of packets.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anytrace_core::Error;
use nix::sys::socket::sockopt::{KeepAlive, PeerCredentials};
use nix::sys::socket::{getsockopt, setsockopt};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::access::{Gate, Greeted, Greeting, TlsStream, has_certificate, tls};
use crate::feed::{Feed, Got};
use crate::listen::Socket;
use crate::peer::Address;
use crate::pool::{Pool, READ_BYTES};
use crate::source::Intake;

/// Back-off for a sender over its rate limit, or one that needs memory held by others.
const REST: Duration = Duration::from_millis(10);

/// How long an incomplete packet may hold memory that others wait for.
const PATIENCE_WHEN_SHORT: Duration = Duration::from_secs(5);

/// How far a connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It has not sent a packet.
    Waits,
    /// It has, since then, and has no place yet; it is not read meanwhile.
    Knocks(Instant),
    /// It has one of the places.
    Placed,
}

fn no_token() -> String {
    "it showed no token".to_owned()
}

/// An accepted connection.
pub(crate) struct Connection {
    stream: Stream,
    pub(crate) address: Address,
    /// By which it came.
    pub(crate) listener: usize,
    /// What it must begin with, until that has come.
    greeting: Option<Greeting>,
    pub(crate) standing: Standing,
    /// True where it must show a token, or has shown none of what it must.
    is_strict: bool,
    /// True when more may wait where the system does not see it.
    may_have_more: bool,
    feed: Feed,
    /// Its source, by place.
    pub(crate) slot: usize,
    pub(crate) since: Instant,
    rests_until: Option<Instant>,
    pub(crate) has_ended: bool,
    pub(crate) is_unauthorized: bool,
    /// There was no place for it.
    pub(crate) is_refused: bool,
    /// Bytes acknowledged; none yet.
    acked: Option<u64>,
    /// Of the last acknowledgement, the bytes that found no room.
    unsent: Vec<u8>,
}

/// The socket of a connection.
pub(crate) enum Stream {
    Tcp(TcpStream),
    Tls(Box<TlsStream>),
    Unix(UnixStream),
}

impl Stream {
    /// Accepts one connection and returns its peer, for people and as an address; `None` where none waits.
    /// With `tls`, it speaks that.
    pub(crate) fn accept(
        socket: &Socket,
        tls: Option<&Arc<ServerConfig>>,
    ) -> io::Result<Option<(Self, String, Address)>> {
        let accepted = match socket {
            Socket::Tcp(listener) => listener.accept().and_then(|(stream, peer)| {
                stream.set_nonblocking(true)?;
                // So that a peer whose machine is gone does not keep its place for ever.
                let _ = setsockopt(&stream, KeepAlive, &true);
                let (name, address) = (SocketAddr::to_string(&peer), Address::Net(peer.ip().to_canonical()));
                let Some(tls) = tls else { return Ok((Self::Tcp(stream), name, address)) };
                let connection = ServerConnection::new(Arc::clone(tls)).map_err(io::Error::other)?;
                Ok((Self::Tls(Box::new(StreamOwned::new(connection, stream))), name, address))
            }),
            Socket::Unix(listener) => listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                let process = getsockopt(&stream, PeerCredentials).map_or(0, |credentials| credentials.pid());
                Ok((Self::Unix(stream), format!("process {process}"), Address::Process(process)))
            }),
            Socket::Front(front) => front.listener.accept().and_then(|(stream, _)| {
                stream.set_nonblocking(true)?;
                let process = getsockopt(&stream, PeerCredentials).map_or(0, |credentials| credentials.pid());
                Ok((Self::Unix(stream), "an OpenTelemetry resource".to_owned(), Address::Process(process)))
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
            Self::Tls(stream) => tls::read(stream, into),
            Self::Unix(stream) => stream.read(into),
        }
    }
}

impl Connection {
    /// `is_strict`: it must show a token first.
    pub(crate) fn new(
        stream: Stream,
        (address, listener): (Address, usize),
        slot: usize,
        is_strict: bool,
        packet_bytes_max: u64,
        now: Instant,
    ) -> Self {
        Self {
            stream,
            address,
            listener,
            greeting: Some(Greeting::new(is_strict)),
            standing: Standing::Waits,
            is_strict,
            may_have_more: false,
            feed: Feed::new(packet_bytes_max),
            slot,
            since: now,
            rests_until: None,
            has_ended: false,
            is_unauthorized: false,
            is_refused: false,
            acked: Some(0),
            unsent: Vec::new(),
        }
    }

    /// Says how many bytes of it are stored. What finds no room, because the peer does not read, is said later.
    pub(crate) fn acknowledge(&mut self) {
        let taken = self.feed.taken;
        if self.unsent.is_empty() && self.acked.is_none_or(|acked| taken > acked) {
            self.acked = Some(taken);
            self.unsent.extend_from_slice(&taken.to_be_bytes());
        }
        if self.unsent.is_empty() {
            return;
        }
        let written = match &mut self.stream {
            Stream::Tcp(stream) => stream.write(&self.unsent),
            Stream::Tls(stream) => tls::write(stream, &self.unsent),
            Stream::Unix(stream) => stream.write(&self.unsent),
        };
        // A peer that is gone is noticed when it is read from.
        if let Ok(written) = written {
            self.unsent.drain(..written);
        }
    }

    /// The descriptor to wait on; `None` while the connection rests.
    pub(crate) fn wanted(&self, now: Instant) -> Option<BorrowedFd<'_>> {
        if self.rests(now) || matches!(self.standing, Standing::Knocks(_)) {
            return None;
        }
        Some(match &self.stream {
            Stream::Tcp(stream) => stream.as_fd(),
            Stream::Tls(stream) => stream.sock.as_fd(),
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
        gate: &mut Gate,
        intake: &mut Intake<'_, '_>,
    ) -> Result<Got, Error> {
        let now = intake.shared.now;
        let allowed = usize::try_from(intake.source.limiter.allows(now)).unwrap_or(usize::MAX);
        self.rests_until = None;
        if allowed == 0 {
            self.rests_until = Some(now + REST);
            return Ok(Got::NoRoom);
        }
        if self.greeting.is_some()
            && let Some(got) = self.greet(gate, intake)?
        {
            return Ok(got);
        }
        if matches!(self.standing, Standing::Knocks(_)) {
            return Ok(Got::Nothing);
        }
        let got = self.feed.read(&mut self.stream, scratch, allowed.min(READ_BYTES), pool, intake)?;
        // Behind something else.
        if self.standing == Standing::Waits && intake.source.has_spoken() && !self.has_ended {
            self.standing = Standing::Knocks(now);
        }
        self.may_have_more = matches!((&self.stream, got), (Stream::Tls(_), Got::Bytes(_)));
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

    /// Reads how it begins; `None` when packets follow.
    fn greet(&mut self, gate: &mut Gate, intake: &mut Intake<'_, '_>) -> Result<Option<Got>, Error> {
        let Some(greeting) = &mut self.greeting else { return Ok(None) };
        let greeted = greeting.read(&mut self.stream);
        let is_known = matches!(&self.stream, Stream::Tls(stream) if has_certificate(stream));
        let must_show = self.is_strict && !is_known;
        let (refused, begin) = match greeted {
            Greeted::NotYet => return Ok(Some(Got::Nothing)),
            Greeted::End(None) => {
                self.has_ended = true;
                return Ok(Some(Got::End));
            }
            Greeted::End(Some(why)) => (Some(why), Vec::new()),
            Greeted::Token(token) => {
                // It waits for an answer.
                self.acked = None;
                self.standing = Standing::Knocks(intake.shared.now);
                (gate.check(&token).err().filter(|_| must_show), Vec::new())
            }
            Greeted::Packet(bytes) => {
                self.standing = Standing::Knocks(intake.shared.now);
                (must_show.then(no_token), bytes)
            }
            Greeted::Other(bytes) => (must_show.then(no_token), bytes),
        };
        if let Some(why) = refused {
            self.has_ended = true;
            self.is_unauthorized = true;
            intake.shared.unauthorized(&intake.source.name.peer, &why)?;
            return Ok(Some(Got::End));
        }
        self.greeting = None;
        self.feed.begin_with(begin, intake.shared.now);
        Ok(None)
    }

    /// It has a place now: its first packet is taken.
    pub(crate) fn place(&mut self, intake: &mut Intake<'_, '_>) -> Result<(), Error> {
        self.standing = Standing::Placed;
        self.may_have_more = matches!(self.stream, Stream::Tls(_));
        // One that showed a token waits for an answer.
        if self.acked.is_none() {
            self.acknowledge();
        }
        self.feed.walk_pending(false, intake)
    }

    /// True when there may be bytes that were read from the socket already.
    pub(crate) fn may_have_more(&self, now: Instant) -> bool {
        self.may_have_more && !self.rests(now) && !matches!(self.standing, Standing::Knocks(_))
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

    /// Returns the memory and the disk that it holds.
    pub(crate) fn release(&mut self, pool: &mut Pool) {
        self.feed.leave(pool);
    }

    /// Treats the waiting bytes as the end of the data.
    pub(crate) fn end(&mut self, pool: &mut Pool, intake: &mut Intake<'_, '_>) -> Result<(), Error> {
        self.feed.end(pool, intake)?;
        self.feed.leave(pool);
        Ok(())
    }
}
