//! Connections over TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use anytrace_core::Error;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use super::Tls;

/// A connection over TLS.
pub(crate) type TlsStream = StreamOwned<ServerConnection, TcpStream>;

/// What a collector shows and asks for. `has_tokens`: a certificate of the sender is not the only way.
pub(super) fn server(tls: &Tls, has_tokens: bool) -> Result<Arc<ServerConfig>, Error> {
    let failed = |path: &Path, error: &dyn std::fmt::Display| Error::usage(format!("{}: {error}", path.display()));
    let chain = certificates(&tls.certificate)?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(|error| failed(&tls.key, &error))?;
    let provider = Arc::new(default_provider());
    let builder =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(&[&rustls::version::TLS13]);
    let builder = builder.map_err(|error| Error::usage(error.to_string()))?;
    let builder = match &tls.client_authorities {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate).map_err(|error| failed(path, &error))?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = if has_tokens { verifier.allow_unauthenticated() } else { verifier };
            builder.with_client_cert_verifier(verifier.build().map_err(|error| failed(path, &error))?)
        }
    };
    let config = builder.with_single_cert(chain, key).map_err(|error| failed(&tls.certificate, &error))?;
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let failed = |error: &dyn std::fmt::Display| Error::usage(format!("{}: {error}", path.display()));
    let found: Vec<_> = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<_, _>>)
        .map_err(|error| failed(&error))?;
    if found.is_empty() { Err(failed(&"no certificate is in it")) } else { Ok(found) }
}

/// True when the other side has shown a certificate of a known authority.
pub(crate) fn has_certificate(stream: &TlsStream) -> bool {
    stream.conn.peer_certificates().is_some()
}

/// Reads as much as there is: a record has at most 16 KiB.
pub(crate) fn read(stream: &mut TlsStream, into: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match stream.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            // Reported by the next read.
            Err(_) if filled > 0 => break,
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Writes, as far as the connection takes it.
pub(crate) fn write(stream: &mut TlsStream, bytes: &[u8]) -> io::Result<usize> {
    let written = stream.write(bytes)?;
    match stream.flush() {
        Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
        _ => Ok(written),
    }
}
