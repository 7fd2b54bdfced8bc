//! Where the server listens: a port of the loopback interface, or a Unix socket of the user.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use anytrace_core::Error;

/// What is listened on. The file of a socket is removed in the end.
#[derive(Debug)]
pub(crate) enum Listening {
    /// A port.
    Port(TcpListener, SocketAddr),
    /// A socket.
    #[cfg(unix)]
    Socket(unix::Socket),
}

impl Listening {
    /// Takes a port of the loopback interface; 0 is any that is free.
    pub(crate) fn on_port(port: u16) -> Result<Self, Error> {
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |error| Error::io(format_args!("cannot listen on {wanted}"), error);
        let listener = TcpListener::bind(wanted).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self::Port(listener, address))
    }

    /// Makes a socket that only its user can open. What a server that was killed left behind is replaced.
    pub(crate) fn on_socket(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::io(format_args!("cannot listen on {}", path.display()), error);
        #[cfg(unix)]
        return unix::Socket::bind(path).map(Self::Socket).map_err(failed);
        #[cfg(not(unix))]
        Err(failed(std::io::ErrorKind::Unsupported.into()))
    }

    /// Removes the file of a socket; whoever else has a share of the listener may drop it when they like.
    pub(crate) fn close(&self) {
        match self {
            Self::Port(..) => {}
            #[cfg(unix)]
            Self::Socket(socket) => socket.remove(),
        }
    }

    /// How the page's address names this server.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Port(_, address) => address.to_string(),
            #[cfg(unix)]
            Self::Socket(_) => "localhost".to_owned(),
        }
    }

    /// Whether a header `Host` names this server. The port that leads to a socket is not known, so any is good there:
    /// what counts is that the name is that of this machine, and not one that somebody else gave to its address.
    pub(crate) fn is_named(&self, host: &str) -> bool {
        let is = |name: &str| host.eq_ignore_ascii_case(name);
        match self {
            Self::Port(_, address) => is(&address.to_string()) || is(&format!("localhost:{}", address.port())),
            #[cfg(unix)]
            Self::Socket(_) => {
                let (name, port) = host.split_once(':').unwrap_or((host, "80"));
                matches!(name.to_ascii_lowercase().as_str(), "localhost" | "127.0.0.1") && port.parse::<u16>().is_ok()
            }
        }
    }
}

#[cfg(unix)]
mod unix {
    use std::fs::{self, Permissions};
    use std::io;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::AtomicBool;
    use std::sync::atomic::Ordering::Relaxed;

    /// A socket with a name, which goes with it.
    #[derive(Debug)]
    pub(crate) struct Socket {
        pub(crate) listener: UnixListener,
        path: PathBuf,
        is_gone: AtomicBool,
    }

    impl Socket {
        pub(super) fn bind(path: &Path) -> io::Result<Self> {
            let is_left_behind = fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
                && UnixStream::connect(path).is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            if is_left_behind {
                fs::remove_file(path)?;
            }
            let listener = UnixListener::bind(path)?;
            let socket = Self { listener, path: path.to_owned(), is_gone: AtomicBool::new(false) };
            fs::set_permissions(path, Permissions::from_mode(0o600))?;
            Ok(socket)
        }
    }

    impl Socket {
        /// Removes the name, once: afterwards it may be another server's.
        pub(super) fn remove(&self) {
            if !self.is_gone.swap(true, Relaxed) {
                // Who removed it already did what is to be done.
                drop(fs::remove_file(&self.path));
            }
        }
    }

    impl Drop for Socket {
        fn drop(&mut self) {
            self.remove();
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_socket_is_its_user_s_and_goes_with_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view");
        let socket = Listening::on_socket(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Listening::on_socket(&path).unwrap_err().kind(), anytrace_core::Kind::Io, "another server is there");
        assert!(path.exists());
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_that_was_closed_is_gone_at_once_and_a_later_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view");
        let shared = std::sync::Arc::new(Listening::on_socket(&path).unwrap());
        let of_a_connection = std::sync::Arc::clone(&shared);
        shared.close();
        assert!(!path.exists());
        let later = Listening::on_socket(&path).unwrap();
        drop((shared, of_a_connection));
        assert!(path.exists());
        drop(later);
        assert!(!path.exists());
    }

    #[test]
    fn only_what_a_killed_server_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("view");
        std::fs::write(&path, "mine").unwrap();
        assert!(Listening::on_socket(&path).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
        std::fs::remove_file(&path).unwrap();
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        Listening::on_socket(&path).unwrap();
    }

    #[test]
    fn names_of_this_machine_lead_to_a_socket() {
        let folder = tempfile::tempdir().unwrap();
        let socket = Listening::on_socket(&folder.path().join("view")).unwrap();
        for host in ["localhost", "LOCALHOST:8080", "127.0.0.1:1"] {
            assert!(socket.is_named(host), "{host}");
        }
        for host in ["evil.example", "evil.example:80", "localhost.evil.example", "localhost:x", "localhost:80:80", ""]
        {
            assert!(!socket.is_named(host), "{host}");
        }
    }
}
