//! Who may send: machines, certificates, tokens.

mod greeting;
pub(crate) mod tls;
mod tokens;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anytrace_core::Error;
use ipnet::IpNet;
use rustls::ServerConfig;

pub(crate) use greeting::{Greeted, Greeting};
pub(crate) use tls::{TlsStream, has_certificate};
use tokens::Tokens;

/// Who may send.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Certificates, for addresses `tls://`.
    pub tls: Option<Tls>,
    /// A file of tokens, one a line: the token, and where wanted when it expires and whose it is, such as
    /// `4f8a… 2027-01-31T00:00:00Z build machine`. It is read again when it changes. With it, connections over TCP and
    /// TLS must show a token, unless they have shown a certificate.
    pub tokens: Option<PathBuf>,
    /// Networks whose machines may send; without any, all. Processes of this machine may always use its Unix sockets.
    pub allowed: Vec<IpNet>,
}

/// The certificates of a collector, in PEM files.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Its own, with those between it and an authority.
    pub certificate: PathBuf,
    /// The private key.
    pub key: PathBuf,
    /// Authorities of senders: those that show a certificate of theirs are known. Without tokens all must.
    pub client_authorities: Option<PathBuf>,
}

impl Access {
    /// True when senders over TLS are known to be who they say.
    pub(crate) fn knows_senders(&self) -> bool {
        self.tokens.is_some() || self.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some())
    }
}

/// The same, ready to be asked.
pub struct Gate {
    pub(crate) tls: Option<Arc<ServerConfig>>,
    tokens: Option<Tokens>,
    allowed: Vec<IpNet>,
}

impl Gate {
    /// Reads the files.
    ///
    /// # Errors
    /// Usage, I/O: a file that cannot be read, or has no certificate, key or token.
    pub fn new(access: &Access) -> Result<Self, Error> {
        let tls = access.tls.as_ref().map(|tls| tls::server(tls, access.tokens.is_some())).transpose()?;
        let tokens = access.tokens.clone().map(Tokens::open).transpose()?;
        Ok(Self { tls, tokens, allowed: access.allowed.clone() })
    }

    /// True when this machine may send.
    pub fn allows(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allowed.is_empty() || self.allowed.iter().any(|network| network.contains(&address))
    }

    /// The TLS of the collector, for a protocol that is agreed on by one of these names (ALPN).
    pub fn tls_for(&self, protocols: &[&[u8]]) -> Option<Arc<ServerConfig>> {
        let mut config = ServerConfig::clone(self.tls.as_ref()?);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Some(Arc::new(config))
    }

    /// True when a connection over TCP must show a token first.
    pub fn wants_token(&self) -> bool {
        self.tokens.is_some()
    }

    /// Whether a token is good, and why not.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&mut self, token: &[u8]) -> Result<(), String> {
        match &mut self.tokens {
            Some(tokens) => tokens.check(token),
            None => Ok(()),
        }
    }
}
