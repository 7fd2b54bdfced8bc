//! Sends packets: a stream, or datagrams of complete packets.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anytrace_core::Error;

use super::{DATAGRAM_BYTES_MAX, Destination};
use crate::address::Endpoint;

/// Bytes gathered for a stream before they are written.
const GATHERED_BYTES: usize = 1 << 16;

/// How long a write waits for its receiver before it looks whether it should stop.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long to wait for a receiver to end a connection that was sent to its end.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long to wait for a system without buffers, and how often.
const BREATH: Duration = Duration::from_millis(1);
const BREATHS_MAX: u32 = 1000;

/// Gathers packets and sends them.
pub(super) struct Outlet<'w> {
    way: Way<'w>,
    name: String,
    is_socket: bool,
    gathered: Vec<u8>,
    most: usize,
    datagrams: u64,
    refused: u64,
}

enum Way<'w> {
    Stream(Box<dyn Write + 'w>),
    Tcp(TcpStream),
    Unix(UnixStream),
    Udp(UdpSocket),
    UnixDatagram(UnixDatagram),
}

impl<'w> Outlet<'w> {
    /// Connects. `datagram_bytes`: most bytes of a datagram of several packets.
    pub(super) fn open(to: Destination<'w>, datagram_bytes: usize) -> Result<Self, Error> {
        let (way, name, is_socket) = match to {
            Destination::Writer(writer) => (Way::Stream(Box::new(writer)), "output".to_owned(), false),
            Destination::Address(endpoint) => {
                let way = connect(&endpoint).map_err(|error| Error::io(format!("cannot send to {endpoint}"), error))?;
                (way, endpoint.to_string(), true)
            }
        };
        let most = match way {
            Way::Stream(_) | Way::Tcp(_) | Way::Unix(_) => GATHERED_BYTES,
            Way::Udp(_) => datagram_bytes.min(DATAGRAM_BYTES_MAX),
            Way::UnixDatagram(_) => datagram_bytes,
        };
        Ok(Self { way, name, is_socket, gathered: Vec::new(), most, datagrams: 0, refused: 0 })
    }

    /// Takes a packet.
    pub(super) fn push(&mut self, packet: &[u8], stop: &AtomicBool) -> Result<(), Error> {
        if !self.gathered.is_empty() && self.gathered.len() + packet.len() > self.most {
            self.flush(stop)?;
        }
        self.gathered.extend_from_slice(packet);
        Ok(())
    }

    /// Sends the buffered packets.
    pub(super) fn flush(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.gathered);
        let sent = match &mut self.way {
            Way::Stream(stream) => write_all(stream.as_mut(), &bytes, stop),
            Way::Tcp(stream) => write_all(stream, &bytes, stop),
            Way::Unix(stream) => write_all(stream, &bytes, stop),
            Way::Udp(socket) => {
                self.datagrams += 1;
                send_one(&mut self.refused, stop, || socket.send(&bytes))
            }
            Way::UnixDatagram(socket) => {
                self.datagrams += 1;
                send_one(&mut self.refused, stop, || socket.send(&bytes))
            }
        };
        self.gathered = bytes;
        self.gathered.clear();
        sent.map_err(|error| self.failed(error))
    }

    /// Ends a connection, and asks whether the receiver took all of it: one that refuses connections, or that dies, has
    /// let go of it before. Whether a receiver that keeps the connection took everything is not known.
    pub(super) fn end(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        self.flush(stop)?;
        let ended = match &self.way {
            Way::Tcp(stream) => {
                stream.set_read_timeout(Some(FAREWELL)).and_then(|()| stream.shutdown(Shutdown::Write)).and_then(|()| {
                    wait_for_end(stream)?;
                    stream.take_error()
                })
            }
            Way::Unix(stream) => {
                stream.set_read_timeout(Some(FAREWELL)).and_then(|()| stream.shutdown(Shutdown::Write)).and_then(|()| {
                    wait_for_end(stream)?;
                    stream.take_error()
                })
            }
            Way::Stream(_) | Way::Udp(_) | Way::UnixDatagram(_) => Ok(None),
        };
        let ended = ended.and_then(|error| error.map_or(Ok(()), Err));
        ended.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> Error {
        // A pipe whose reader is gone is how pipes end; a receiver that is gone is a failure.
        let is_gone = self.is_socket && matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::NotConnected);
        let error = if is_gone { io::Error::new(ErrorKind::ConnectionReset, "the receiver is gone") } else { error };
        Error::io(format!("cannot send to {}", self.name), error)
    }

    /// Datagrams sent, and those of them that were refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.datagrams, self.refused)
    }
}

fn connect<'w>(endpoint: &Endpoint) -> io::Result<Way<'w>> {
    Ok(match endpoint {
        Endpoint::Tcp(address) => {
            let stream = TcpStream::connect(address)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Way::Tcp(stream)
        }
        Endpoint::Tls(_) | Endpoint::Otlp(_) => {
            let why = format!("a replay is not sent to {}://; use tcp://, udp:// or unix:", endpoint.scheme());
            return Err(io::Error::new(ErrorKind::Unsupported, why));
        }
        Endpoint::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_write_timeout(Some(PATIENCE))?;
            Way::Unix(stream)
        }
        Endpoint::Udp(address) => {
            let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Way::Udp(socket)
        }
        Endpoint::UnixDatagram(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path)?;
            socket.set_write_timeout(Some(PATIENCE))?;
            Way::UnixDatagram(socket)
        }
    })
}

/// Writes all of it, however slow the receiver is, unless it is stopped.
fn write_all(stream: &mut dyn Write, mut bytes: &[u8], stop: &AtomicBool) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(error) if is_slow(&error) => stopped(stop)?,
            Err(error) => return Err(error),
        }
    }
    stream.flush()
}

/// Reads until the receiver ends the connection too, or nothing comes for a while.
fn wait_for_end(mut stream: impl Read) -> io::Result<()> {
    let mut answer = [0; 512];
    loop {
        match stream.read(&mut answer) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if is_slow(&error) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

fn is_slow(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn stopped(stop: &AtomicBool) -> io::Result<()> {
    if stop.load(Ordering::Relaxed) { Err(ErrorKind::Interrupted.into()) } else { Ok(()) }
}

/// Sends one datagram. A refusal is about one sent before; this one is tried again.
fn send_one(refused: &mut u64, stop: &AtomicBool, mut send: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    let mut breaths = 0;
    loop {
        match send() {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && breaths < BREATHS_MAX => {
                *refused += 1;
                breaths += 1;
            }
            Err(error) if is_slow(&error) => stopped(stop)?,
            // The system has no buffers for now.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENOBUFS) && breaths < BREATHS_MAX => {
                breaths += 1;
                std::thread::sleep(BREATH);
            }
            Err(error) => return Err(error),
        }
    }
}
