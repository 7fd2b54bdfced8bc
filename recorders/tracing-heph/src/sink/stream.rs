//! TCP and Unix sockets: connected again when the connection breaks.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[cfg(feature = "tls")]
use super::tls::{TlsClient, TlsConnection};
use super::window::Window;
use super::{Head, Outbox, Sink};
use crate::stats::Counts;

/// How long a write may wait for a slow reader before the writer looks whether it should end.
const WRITE_WAIT: Duration = Duration::from_millis(50);

/// How long an address may take to answer.
const CONNECT_WAIT: Duration = Duration::from_secs(1);

/// How long a collector may take to say that it knows a token.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Waits between attempts to connect: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// Who is connected to.
#[derive(Debug, Clone)]
pub(crate) enum Peer {
    Tcp(String),
    #[cfg(feature = "tls")]
    Tls(String, TlsClient),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp://{address}"),
            #[cfg(feature = "tls")]
            Self::Tls(address, _) => write!(f, "tls://{address}"),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Peer {
    fn connect(&self) -> io::Result<Connection> {
        match self {
            Self::Tcp(address) => {
                let stream = connect(address)?;
                stream.set_write_timeout(Some(WRITE_WAIT))?;
                Ok(Connection::Tcp(stream))
            }
            #[cfg(feature = "tls")]
            Self::Tls(address, client) => {
                let stream = connect(address)?;
                stream.set_read_timeout(Some(CONNECT_WAIT))?;
                stream.set_write_timeout(Some(CONNECT_WAIT))?;
                let host = address.rsplit_once(':').map_or(address.as_str(), |(host, _)| host);
                let stream = client.connect(host.trim_start_matches('[').trim_end_matches(']'), stream)?;
                stream.socket.set_read_timeout(None)?;
                stream.socket.set_write_timeout(Some(WRITE_WAIT))?;
                Ok(Connection::Tls(stream))
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

fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// A connection. It ends with this value, also where acknowledgements are waited for.
enum Connection {
    Tcp(TcpStream),
    #[cfg(feature = "tls")]
    Tls(TlsConnection),
    #[cfg(unix)]
    Unix(UnixStream),
}

impl Connection {
    /// Where acknowledgements come from.
    fn acks(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::Tcp(stream) => Box::new(stream.try_clone()?),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => Box::new(stream.answers()?),
            #[cfg(unix)]
            Self::Unix(stream) => Box::new(stream.try_clone()?),
        })
    }

    /// Shows a token and waits for the answer.
    fn greet(&mut self, token: &[u8]) -> io::Result<()> {
        self.set_read_timeout(Some(ANSWER_WAIT))?;
        let mut packet = Vec::new();
        heph_encoder::option(&mut packet, heph_encoder::TOKEN_OPTION, token).map_err(io::Error::other)?;
        self.write_all(&packet)?;
        let mut answer = [0; 8];
        self.acks()?.read_exact(&mut answer).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                io::Error::new(ErrorKind::TimedOut, "the collector does not answer to a token")
            }
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset => {
                io::Error::new(ErrorKind::PermissionDenied, "the collector refused the token or the certificate")
            }
            _ => error,
        })?;
        self.set_read_timeout(None)
    }

    fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_read_timeout(timeout),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.socket.set_read_timeout(timeout),
            #[cfg(unix)]
            Self::Unix(stream) => stream.set_read_timeout(timeout),
        }
    }

    /// True when the system has all that was written.
    fn is_drained(&self) -> bool {
        match self {
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.drain().unwrap_or(true),
            _ => true,
        }
    }
}

impl Write for Connection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream.write(bytes),
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
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                stream.end();
                stream.socket.shutdown(Shutdown::Both)
            }
            #[cfg(unix)]
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// A connection, or the wish for one.
pub(crate) struct Stream {
    peer: Peer,
    /// What shows the other side who this is.
    token: Option<String>,
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
    pub(crate) fn new(
        peer: Peer,
        token: Option<String>,
        head: Head,
        connects_later: bool,
        window: Option<usize>,
    ) -> io::Result<Self> {
        let mut this = Self {
            peer,
            token,
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
        match self.reach() {
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

    /// Connects, and says who this is where that was asked for. Over TLS that also shows whether a certificate was
    /// accepted.
    fn reach(&self) -> io::Result<Connection> {
        let mut connection = self.peer.connect()?;
        match &self.token {
            Some(token) => connection.greet(token.as_bytes())?,
            #[cfg(feature = "tls")]
            None if matches!(connection, Connection::Tls(_)) => connection.greet(&[])?,
            None => {}
        }
        Ok(connection)
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
        let is_drained = self.connection.as_ref().is_none_or(Connection::is_drained);
        is_drained && self.window.as_ref().is_none_or(Window::is_empty)
    }
}
