//! TLS in both directions: every process shows a certificate that the cluster's authority signed, and accepts no other.
//!
//! Ballista's servers know no TLS. They listen on a loopback address of their own, and this module listens where others
//! connect: it accepts TLS, checks the certificate, and passes bytes on. Connections to other processes are made by
//! Ballista with an endpoint that [`Tls::endpoints`] changes to TLS.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ballista_core::extension::EndpointOverrideFn;
use log::{debug, warn};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig, crypto};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

use crate::options::CommonOptions;

/// How long a handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// Where Ballista's servers of an executor listen when TLS is in front of them: nobody else uses this address, so the
/// ports can be the same.
pub(crate) const BEHIND: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 77, 0, 1));

/// What a process needs to accept and to make connections.
#[derive(Clone)]
pub(crate) struct Tls {
    acceptor: TlsAcceptor,
    client: ClientTlsConfig,
}

impl Tls {
    /// TLS as options say. Without it only loopback may be listened on.
    pub(crate) fn of(options: &CommonOptions, host: &str) -> Result<Option<Self>, String> {
        if let (Some(cert), Some(key), Some(ca)) = (&options.tls_cert, &options.tls_key, &options.tls_ca) {
            return Self::read(cert, key, ca).map(Some);
        }
        let is_loopback = crate::options::address(host, 0)?.ip().is_loopback();
        if !is_loopback && !options.insecure {
            return Err(format!(
                "--bind-host {host} is not loopback, and whoever reaches it could read the traces; give --tls-cert, \
                 --tls-key and --tls-ca, or --insecure if the network is trusted"
            ));
        }
        Ok(None)
    }

    /// TLS with these files.
    pub(crate) fn read(cert: &Path, key: &Path, ca: &Path) -> Result<Self, String> {
        let text =
            |path: &Path| std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()));
        let (cert_pem, key_pem, ca_pem) = (text(cert)?, text(key)?, text(ca)?);
        let failed = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&cert_pem)
            .collect::<Result<_, _>>()
            .map_err(|error| failed(cert, &error))?;
        let own_key = PrivateKeyDer::from_pem_slice(&key_pem).map_err(|error| failed(key, &error))?;
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_slice_iter(&ca_pem) {
            roots.add(root.map_err(|error| failed(ca, &error))?).map_err(|error| failed(ca, &error))?;
        }
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
            .build()
            .map_err(|error| failed(ca, &error))?;
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, own_key)
            .map_err(|error| failed(cert, &error))?;
        server.alpn_protocols = vec![b"h2".to_vec()];
        let client = ClientTlsConfig::new()
            .ca_certificate(Certificate::from_pem(&ca_pem))
            .identity(Identity::from_pem(&cert_pem, &key_pem));
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(server)), client })
    }

    /// Changes an endpoint of Ballista's, which is always one without TLS.
    pub(crate) fn endpoints(&self) -> EndpointOverrideFn {
        let client = self.client.clone();
        Arc::new(move |endpoint: Endpoint| {
            let uri = endpoint.uri().to_string();
            let address = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://")).unwrap_or(&uri);
            let endpoint = Endpoint::from_shared(format!("https://{address}"))?
                .connect_timeout(Duration::from_secs(20))
                .tcp_nodelay(true)
                .tcp_keepalive(Some(Duration::from_secs(60)));
            Ok(endpoint.tls_config(client.clone())?)
        })
    }
}

/// What Ballista listens with, where others connect to `listener`: the same without TLS.
pub(crate) async fn front(tls: Option<&Tls>, listener: TcpListener) -> Result<TcpListener, String> {
    let Some(tls) = tls else { return Ok(listener) };
    let failed = |error: io::Error| format!("cannot listen behind TLS: {error}");
    let behind = TcpListener::bind((BEHIND, 0)).await.map_err(failed)?;
    pass(tls.clone(), listener, behind.local_addr().map_err(failed)?);
    Ok(behind)
}

/// Accepts TLS at a port and passes on what comes to the same port of [`BEHIND`].
pub(crate) async fn cover(tls: &Tls, address: SocketAddr) -> Result<(), String> {
    let listener = TcpListener::bind(address).await.map_err(|error| format!("cannot listen on {address}: {error}"))?;
    pass(tls.clone(), listener, SocketAddr::new(BEHIND, address.port()));
    Ok(())
}

fn pass(tls: Tls, listener: TcpListener, to: SocketAddr) {
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => {
                    let acceptor = tls.acceptor.clone();
                    tokio::spawn(async move {
                        if let Err(error) = carry(&acceptor, stream, to).await {
                            warn!("a connection from {from} was refused or broke off: {error}");
                        }
                    });
                }
                Err(error) => {
                    warn!("a connection failed: {error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    });
}

async fn carry(acceptor: &TlsAcceptor, stream: TcpStream, to: SocketAddr) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut outside = tokio::time::timeout(HANDSHAKE_TIME, acceptor.accept(stream)).await??;
    let mut inside = TcpStream::connect(to).await?;
    inside.set_nodelay(true)?;
    if let Err(error) = tokio::io::copy_bidirectional(&mut outside, &mut inside).await {
        // How either side ends a connection that it no longer needs.
        debug!("a connection ended: {error}");
    }
    Ok(())
}
