//! TLS: who is connected to is known, and who connects may show a certificate.

use std::fmt;
use std::io::{self, Cursor, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// How much is read at once.
const READ_BYTES: usize = 16 << 10;

/// The certificates of a recorder, in PEM files.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsFiles {
    pub(crate) authorities: PathBuf,
    /// Its own certificate and key.
    pub(crate) own: Option<(PathBuf, PathBuf)>,
}

impl TlsFiles {
    /// Reads the files.
    pub(crate) fn load(&self) -> io::Result<TlsClient> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(&self.authorities)? {
            roots.add(certificate).map_err(|error| of(&self.authorities, &error))?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(io::Error::other)?
            .with_root_certificates(roots);
        let config = match &self.own {
            None => builder.with_no_client_auth(),
            Some((chain, key_file)) => {
                let key = PrivateKeyDer::from_pem_file(key_file).map_err(|error| of(key_file, &error))?;
                builder.with_client_auth_cert(certificates(chain)?, key).map_err(|error| of(chain, &error))?
            }
        };
        Ok(TlsClient(Arc::new(config)))
    }
}

fn of(path: &Path, error: &dyn fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, format!("{}: {error}", path.display()))
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| of(path, &error))?;
    if found.is_empty() { Err(of(path, &"no certificate is in it")) } else { Ok(found) }
}

/// What connections over TLS have in common.
#[derive(Debug, Clone)]
pub(crate) struct TlsClient(Arc<ClientConfig>);

impl TlsClient {
    /// Makes sure of who is at the other end of a connection, which has timeouts. `host` is the name it must have.
    pub(crate) fn connect(&self, host: &str, mut socket: TcpStream) -> io::Result<TlsConnection> {
        let name =
            ServerName::try_from(host.to_owned()).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))?;
        let mut tls = ClientConnection::new(Arc::clone(&self.0), name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        Ok(TlsConnection { tls: Arc::new(Mutex::new(tls)), socket })
    }
}

/// A connection over TLS.
pub(crate) struct TlsConnection {
    tls: Arc<Mutex<ClientConnection>>,
    pub(crate) socket: TcpStream,
}

impl TlsConnection {
    fn lock(&self) -> MutexGuard<'_, ClientConnection> {
        // Whatever is in it then, the other side notices.
        self.tls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands to the system what is encrypted and was not taken before; false when it takes no more now.
    pub(crate) fn drain(&self) -> io::Result<bool> {
        let mut tls = self.lock();
        while tls.wants_write() {
            match tls.write_tls(&mut &self.socket) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Where its answers come from.
    pub(crate) fn answers(&self) -> io::Result<TlsAnswers> {
        Ok(TlsAnswers { tls: Arc::clone(&self.tls), socket: self.socket.try_clone()? })
    }

    /// Says that nothing more comes.
    pub(crate) fn end(&self) {
        self.lock().send_close_notify();
        let _ = self.drain();
    }
}

impl Write for TlsConnection {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Otherwise bytes would count as sent that only wait here.
        if !self.drain()? {
            return Err(ErrorKind::WouldBlock.into());
        }
        let written = self.lock().writer().write(bytes)?;
        self.drain()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What comes from the other side. It waits for the socket without the lock, so that writing goes on.
pub(crate) struct TlsAnswers {
    tls: Arc<Mutex<ClientConnection>>,
    socket: TcpStream,
}

impl Read for TlsAnswers {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut received = [0; READ_BYTES];
        loop {
            let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
            match tls.reader().read(into) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            drop(tls);
            let read = self.socket.read(&mut received)?;
            let mut tls = self.tls.lock().unwrap_or_else(PoisonError::into_inner);
            let mut rest = Cursor::new(received.get(..read).unwrap_or_default());
            loop {
                tls.read_tls(&mut rest)?;
                tls.process_new_packets().map_err(|error| io::Error::new(ErrorKind::InvalidData, error))?;
                if rest.position() == read as u64 {
                    break;
                }
            }
        }
    }
}
