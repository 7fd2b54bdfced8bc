//! Opening the addresses to listen on.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use anytrace_core::Error;
use nix::sys::stat::{Mode, umask};

use crate::address::Endpoint;
use crate::front::Front;
use crate::options::{CollectOptions, Reach};

/// A bound address.
pub(crate) struct Bound {
    /// With the port the system chose, where 0 was asked for.
    pub(crate) endpoint: Endpoint,
    pub(crate) socket: Socket,
    /// The socket's name in the file system, removed with this value.
    pub(crate) _name: Option<SocketName>,
}

/// A bound socket.
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
    /// Where the program for OTLP comes to.
    Front(Box<Front>),
    /// Handed on to the thread that receives.
    Datagrams(Option<OwnedFd>),
}

impl Socket {
    /// What to wait on for connections.
    pub(crate) fn listener(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(listener) => Some(listener.as_fd()),
            Self::Unix(listener) => Some(listener.as_fd()),
            Self::Front(front) => Some(front.listener.as_fd()),
            Self::Datagrams(_) => None,
        }
    }
}

/// Binds an address; one that other machines can reach only where that is allowed, or they must say who they are.
pub(crate) fn bind(endpoint: &Endpoint, options: &CollectOptions) -> Result<Bound, Error> {
    let access = &options.access;
    let is_private =
        matches!(endpoint, Endpoint::Tls(_)) || matches!(endpoint, Endpoint::Otlp(_)) && access.tls.is_some();
    if !endpoint.is_local() && options.reach == Reach::Known && !(is_private && access.knows_senders()) {
        return Err(Error::usage(format!("{endpoint} can be reached by other machines, and does not know who sends")));
    }
    if matches!(endpoint, Endpoint::Tls(_)) && access.tls.is_none() {
        return Err(Error::usage(format!("{endpoint} needs a certificate and its key")));
    }
    let failed = |error: io::Error| Error::io(format!("cannot listen on {endpoint}"), error);
    match endpoint {
        Endpoint::Tcp(address) | Endpoint::Tls(address) => {
            let listener = TcpListener::bind(address).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            let address = listener.local_addr().map_err(failed)?;
            let is_tls = matches!(endpoint, Endpoint::Tls(_));
            let endpoint = if is_tls { Endpoint::Tls(address) } else { Endpoint::Tcp(address) };
            Ok(Bound { endpoint, socket: Socket::Tcp(listener), _name: None })
        }
        Endpoint::Otlp(address) => {
            let program =
                options.otlp.as_deref().ok_or_else(|| Error::usage(format!("{endpoint} needs its program")))?;
            let (front, address) = Front::start(program, &address.to_string(), access, &options.caps)?;
            let endpoint = Endpoint::Otlp(address.parse().map_err(|_| Error::usage(format!("{endpoint}: {address}")))?);
            Ok(Bound { endpoint, socket: Socket::Front(Box::new(front)), _name: None })
        }
        Endpoint::Udp(address) => {
            let socket = UdpSocket::bind(address).map_err(failed)?;
            let address = socket.local_addr().map_err(failed)?;
            Ok(Bound { endpoint: Endpoint::Udp(address), socket: Socket::Datagrams(Some(socket.into())), _name: None })
        }
        Endpoint::Unix(path) => {
            let listener = named(path, || UnixListener::bind(path)).map_err(failed)?;
            let name = SocketName::new(path.clone()).map_err(failed)?;
            listener.set_nonblocking(true).map_err(failed)?;
            Ok(Bound { endpoint: endpoint.clone(), socket: Socket::Unix(listener), _name: Some(name) })
        }
        Endpoint::UnixDatagram(path) => {
            let socket = named(path, || UnixDatagram::bind(path)).map_err(failed)?;
            let name = SocketName::new(path.clone()).map_err(failed)?;
            let socket = Socket::Datagrams(Some(socket.into()));
            Ok(Bound { endpoint: endpoint.clone(), socket, _name: Some(name) })
        }
    }
}

/// Makes a socket with a name that only its owner may write to, in place of one that nobody answers on.
fn named<T>(path: &Path, bind: impl Fn() -> io::Result<T>) -> io::Result<T> {
    // The name must not be open to others even for a moment. The mask is that of the entire process: listeners are
    // opened before any thread is started.
    let old = umask(Mode::from_bits_truncate(0o177));
    let mut made = bind();
    if let Err(error) = &made
        && error.kind() == ErrorKind::AddrInUse
        && is_stale(path)
    {
        made = fs::remove_file(path).and_then(|()| bind());
    }
    umask(old);
    let made = made?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(made)
}

/// True for a socket that an ended program left behind.
fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let refuses = |result: io::Result<()>| result.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    // A socket of the other kind returns another error; a program may then be listening.
    let stream = UnixStream::connect(path).map(drop);
    let datagram = UnixDatagram::unbound().and_then(|socket| socket.connect(path));
    is_socket && refuses(stream) && refuses(datagram)
}

/// A name in the file system that is removed with this value.
pub(crate) struct SocketName {
    path: PathBuf,
    inode: (u64, u64),
}

impl SocketName {
    fn new(path: PathBuf) -> io::Result<Self> {
        let meta = fs::symlink_metadata(&path)?;
        Ok(Self { path, inode: (meta.dev(), meta.ino()) })
    }
}

impl Drop for SocketName {
    fn drop(&mut self) {
        // Somebody else's socket may have taken the name by now.
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| (meta.dev(), meta.ino()) == self.inode) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(endpoint: &Endpoint) -> Result<Bound, Error> {
        bind(endpoint, &CollectOptions::new(PathBuf::new()))
    }

    #[test]
    fn a_socket_file_is_private_replaced_when_stale_and_removed_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        for endpoint in [Endpoint::Unix(path.clone()), Endpoint::UnixDatagram(path.clone())] {
            // Left behind by a program that was killed.
            drop(UnixListener::bind(&path).unwrap());
            let open = bound(&endpoint).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            assert!(bound(&Endpoint::Unix(path.clone())).is_err(), "taken");
            assert!(bound(&Endpoint::UnixDatagram(path.clone())).is_err(), "taken");
            drop(open);
            assert!(!path.exists());
        }
        fs::write(&path, b"a file").unwrap();
        assert!(bound(&Endpoint::Unix(path.clone())).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"a file");
    }

    #[test]
    fn addresses_of_the_network_need_leave() {
        let any: Endpoint = "udp://0.0.0.0:0".parse().unwrap();
        assert!(bound(&any).is_err());
        assert!(bind(&any, &CollectOptions { reach: Reach::Anyone, ..CollectOptions::new(PathBuf::new()) }).is_ok());
        let bound = bound(&"tcp://127.0.0.1:0".parse().unwrap()).unwrap();
        assert!(!bound.endpoint.to_string().ends_with(":0"));
    }
}
