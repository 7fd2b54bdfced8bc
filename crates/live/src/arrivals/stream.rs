//! Standard input, a pipe, or the one connection to a socket.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anytrace_core::Error;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::Arrival;
use crate::address::Endpoint;
use crate::listen::{Bound, Socket, bind};
use crate::options::CollectOptions;

/// Bytes in order, until their writer is gone.
pub(super) struct Stream {
    name: String,
    state: State,
}

enum State {
    Listens(Bound),
    Open(File),
    Ended,
}

impl Stream {
    pub(super) fn standard_input() -> Result<Self, Error> {
        let input = io::stdin().as_fd().try_clone_to_owned();
        let input = input.map_err(|error| Error::io("cannot read standard input", error))?;
        Ok(Self { name: "standard input".to_owned(), state: State::Open(File::from(input)) })
    }

    /// A pipe with a name; its writer may come later.
    pub(super) fn pipe(path: &Path) -> Result<Self, Error> {
        let mut options = File::options();
        // Opening must not wait for the writer.
        let file = options.read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(path);
        let name = path.display().to_string();
        let file = file.map_err(|error| Error::io(format_args!("cannot open {name}"), error))?;
        Ok(Self { name, state: State::Open(file) })
    }

    /// Listens for one connection, which only programs of this machine can make.
    pub(super) fn listen(endpoint: &Endpoint) -> Result<Self, Error> {
        if !matches!(endpoint, Endpoint::Tcp(_) | Endpoint::Unix(_)) || !endpoint.is_local() {
            let expected = "expected unix:PATH, or tcp://HOST:PORT with an address of this machine such as 127.0.0.1";
            return Err(Error::usage(format!("{endpoint}: {expected}")));
        }
        let bound = bind(endpoint, &CollectOptions::new(PathBuf::new()))?;
        Ok(Self { name: endpoint.to_string(), state: State::Listens(bound) })
    }

    pub(super) fn address(&self) -> Option<String> {
        match &self.state {
            State::Listens(bound) => Some(bound.endpoint.to_string()),
            State::Open(_) | State::Ended => None,
        }
    }

    pub(super) fn read(&mut self, buffer: &mut [u8], wait: Duration) -> Result<Arrival, Error> {
        let failed = |error| Error::io(format_args!("cannot read {}", self.name), error);
        match &mut self.state {
            State::Ended => Ok(Arrival::End),
            State::Listens(bound) => {
                let Some((file, peer)) = accept(bound, wait).map_err(failed)? else { return Ok(Arrival::Nothing) };
                self.state = State::Open(file);
                Ok(Arrival::Connected(peer))
            }
            State::Open(file) => match read(file, buffer, wait) {
                Ok(Some(0)) => {
                    self.state = State::Ended;
                    Ok(Arrival::End)
                }
                // The writer was killed: what it sent before is here.
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    self.state = State::Ended;
                    Ok(Arrival::End)
                }
                Ok(Some(bytes)) => Ok(Arrival::Bytes(bytes)),
                Ok(None) => Ok(Arrival::Nothing),
                Err(error) => Err(failed(error)),
            },
        }
    }
}

/// Waits until something can be read; false where the time is over.
fn is_ready(fd: &impl AsFd, wait: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    let wait = PollTimeout::try_from(wait).unwrap_or(PollTimeout::MAX);
    match poll(&mut fds, wait) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Reads what there is: `None` where there is nothing yet, 0 at the end.
fn read(file: &mut File, buffer: &mut [u8], wait: Duration) -> io::Result<Option<usize>> {
    if !is_ready(file, wait)? {
        return Ok(None);
    }
    match file.read(buffer) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes the first connection.
fn accept(bound: &Bound, wait: Duration) -> io::Result<Option<(File, String)>> {
    let Some(listener) = bound.socket.listener() else { return Err(ErrorKind::Unsupported.into()) };
    if !is_ready(&listener, wait)? {
        return Ok(None);
    }
    let accepted = match &bound.socket {
        Socket::Tcp(listener) => {
            listener.accept().and_then(|(stream, peer)| tcp(stream).map(|fd| (fd, peer.to_string())))
        }
        Socket::Unix(listener) => listener.accept().and_then(|(stream, _)| unix(stream).map(|fd| (fd, String::new()))),
        _ => Err(ErrorKind::Unsupported.into()),
    };
    match accepted {
        Ok((fd, peer)) => Ok(Some((File::from(fd), peer))),
        // It was given up before it was taken.
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionAborted) => Ok(None),
        Err(error) => Err(error),
    }
}

fn tcp(stream: TcpStream) -> io::Result<OwnedFd> {
    stream.set_nonblocking(true).map(|()| stream.into())
}

fn unix(stream: UnixStream) -> io::Result<OwnedFd> {
    stream.set_nonblocking(true).map(|()| stream.into())
}
