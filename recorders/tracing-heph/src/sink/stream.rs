//! TCP and Unix sockets: connected again when the connection breaks.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::window::Window;
use super::{Head, Outbox, Sink};
use crate::stats::Counts;

/// How long a write may wait for a slow reader before the writer looks whether it should end.
const WRITE_WAIT: Duration = Duration::from_millis(50);

/// How long an address may take to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(1);

/// Waits between attempts to connect: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Who is connected to.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    Tcp(String),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Peer {
    /// Both directions of a new connection.
    fn connect(&self) -> io::Result<(Box<dyn Write + Send>, Box<dyn Read + Send>)> {
        match self {
            Self::Tcp(address) => {
                let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            stream.set_write_timeout(Some(WRITE_WAIT))?;
                            let acks = stream.try_clone()?;
                            return Ok((Box::new(stream), Box::new(acks)));
                        }
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
            #[cfg(unix)]
            Self::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_WAIT))?;
                let acks = stream.try_clone()?;
                Ok((Box::new(stream), Box::new(acks)))
            }
        }
    }
}

/// A connection, or the wish for one.
pub(crate) struct Stream {
    peer: Peer,
    connection: Option<Box<dyn Write + Send>>,
    head: Head,
    /// What is first on this connection.
    beginning: Outbox,
    /// What is not acknowledged, where that is asked for.
    window: Option<Window>,
    had_connection: bool,
    retry_at: Instant,
    retry_wait: Duration,
}

impl Stream {
    /// Connects, unless that may happen later.
    pub(crate) fn new(peer: Peer, head: Head, connects_later: bool, window: Option<usize>) -> io::Result<Self> {
        let mut this = Self {
            peer,
            connection: None,
            head: if window.is_some() { head.with_acks() } else { head },
            window: window.map(Window::new),
            beginning: Outbox::default(),
            had_connection: false,
            retry_at: Instant::now(),
            retry_wait: RETRY_FIRST,
        };
        match this.connect(&Counts::default()) {
            Err(error) if !connects_later => Err(error),
            _ => Ok(this),
        }
    }

    fn connect(&mut self, counts: &Counts) -> io::Result<()> {
        match self.peer.connect() {
            Ok((connection, acks)) => {
                self.connection = Some(connection);
                self.beginning = Outbox { bytes: self.head.next(), ..Outbox::default() };
                if let Some(window) = &mut self.window {
                    window.begin(self.beginning.bytes.len(), acks)?;
                }
                self.retry_wait = RETRY_FIRST;
                Counts::add(&counts.renewals, u64::from(self.had_connection));
                self.had_connection = true;
                Ok(())
            }
            Err(error) => {
                self.retry_at = Instant::now() + self.retry_wait;
                self.retry_wait = (self.retry_wait * 2).min(RETRY_MAX);
                Err(error)
            }
        }
    }

    fn write(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool> {
        let Some(connection) = &mut self.connection else { return Ok(false) };
        let (beginning, end) = (self.beginning.bytes.len(), out.bytes.len());
        if let Some(window) = &mut self.window {
            window.settle(counts);
            let is_taken = window.take(out);
            return Ok(self.beginning.write_to(&mut **connection, beginning, counts)?
                && window.send(&mut **connection, counts)?
                && is_taken);
        }
        Ok(self.beginning.write_to(&mut **connection, beginning, counts)?
            && out.write_to(&mut **connection, end, counts)?)
    }
}

impl Sink for Stream {
    fn send(&mut self, out: &mut Outbox, counts: &Counts) -> io::Result<bool> {
        if self.connection.is_none() {
            if Instant::now() < self.retry_at {
                return Ok(false);
            }
            self.connect(counts)?;
        }
        let result = self.write(out, counts);
        if result.is_err() {
            self.connection = None;
            self.retry_at = Instant::now();
            // The interrupted packet is sent again from its start on the next connection.
            out.step_back();
        }
        result
    }

    fn is_settled(&mut self) -> bool {
        self.window.as_ref().is_none_or(Window::is_empty)
    }
}
