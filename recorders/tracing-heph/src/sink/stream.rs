//! TCP and Unix sockets: connected again when the connection breaks.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
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
    fn connect(&self) -> io::Result<Connection> {
        match self {
            Self::Tcp(address) => {
                let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in address.to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            stream.set_write_timeout(Some(WRITE_WAIT))?;
                            return Ok(Connection::Tcp(stream));
                        }
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
            #[cfg(unix)]
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_WAIT))?;
                Ok(Connection::Unix(stream))
            }
        }
    }
}

/// A connection. It ends with this value, also where acknowledgements are waited for.
enum Connection {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Connection {
    /// Where acknowledgements come from.
    fn acks(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Tcp(stream) => Box::new(stream.try_clone()?),
            #[cfg(unix)]
            Self::Unix(stream) => Box::new(stream.try_clone()?),
        })
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // One that is broken already has nothing to shut down.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
            #[cfg(unix)]
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// A connection, or the wish for one.
pub(crate) struct Stream {
    peer: Peer,
    connection: Option<Connection>,
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
            Ok(connection) => {
                self.beginning = Outbox { bytes: self.head.next_connection(), ..Outbox::default() };
                if let Some(window) = &mut self.window {
                    window.begin(self.beginning.bytes.len(), connection.acks()?)?;
                }
                self.connection = Some(connection);
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
            return Ok(self.beginning.write_to(connection, beginning, counts)?
                && window.send(connection, counts)?
                && is_taken);
        }
        Ok(self.beginning.write_to(connection, beginning, counts)? && out.write_to(connection, end, counts)?)
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
