//! Where to listen and where to send: `udp://HOST:PORT`, `tcp://HOST:PORT`, `tls://HOST:PORT`, `otlp://HOST:PORT`,
//! `unix:PATH`, `unixgram:PATH`.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

use anytrace_core::{Error, text};

use crate::datagram::Family;

/// An address as the user writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    /// Datagrams.
    Udp(SocketAddr),
    /// Connections.
    Tcp(SocketAddr),
    /// Connections over TLS.
    Tls(SocketAddr),
    /// OpenTelemetry's protocol, over gRPC and HTTP.
    Otlp(SocketAddr),
    /// Connections on a socket of the file system.
    Unix(PathBuf),
    /// Datagrams on a socket of the file system.
    UnixDatagram(PathBuf),
}

impl Endpoint {
    /// True when only programs of this machine can reach it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Udp(address) | Self::Tcp(address) | Self::Tls(address) | Self::Otlp(address) => match address {
                SocketAddr::V4(v4) => v4.ip().is_loopback(),
                SocketAddr::V6(v6) => {
                    v6.ip().is_loopback() || v6.ip().to_ipv4_mapped().is_some_and(|v4| v4.is_loopback())
                }
            },
            Self::Unix(_) | Self::UnixDatagram(_) => true,
        }
    }

    pub(crate) fn family(&self) -> Family {
        match self {
            Self::Udp(address) | Self::Tcp(address) | Self::Tls(address) | Self::Otlp(address) if address.is_ipv4() => {
                Family::Ip4
            }
            Self::Udp(_) | Self::Tcp(_) | Self::Tls(_) | Self::Otlp(_) => Family::Ip6,
            Self::Unix(_) | Self::UnixDatagram(_) => Family::Unix,
        }
    }

    /// `udp`, `tcp`, `tls`, `otlp`, `unix` or `unixgram`.
    pub fn scheme(&self) -> &'static str {
        match self {
            Self::Udp(_) => "udp",
            Self::Tcp(_) => "tcp",
            Self::Tls(_) => "tls",
            Self::Otlp(_) => "otlp",
            Self::Unix(_) => "unix",
            Self::UnixDatagram(_) => "unixgram",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(address) | Self::Tcp(address) | Self::Tls(address) | Self::Otlp(address) => {
                write!(f, "{}://{address}", self.scheme())
            }
            Self::Unix(path) | Self::UnixDatagram(path) => {
                write!(f, "{}:{}", self.scheme(), text::printable(&path.display().to_string()))
            }
        }
    }
}

impl FromStr for Endpoint {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let path = |path: &str| {
            // Both `unix:/run/x` and `unix:///run/x` are written.
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err(Error::usage(format!("{word}: a path is missing")));
            }
            Ok(PathBuf::from(path))
        };
        match word.split_once(':') {
            Some(("udp", rest)) => Ok(Self::Udp(resolve(word, rest)?)),
            Some(("tcp", rest)) => Ok(Self::Tcp(resolve(word, rest)?)),
            Some(("tls", rest)) => Ok(Self::Tls(resolve(word, rest)?)),
            Some(("otlp", rest)) => Ok(Self::Otlp(resolve(word, rest)?)),
            Some(("unix", rest)) => Ok(Self::Unix(path(rest)?)),
            Some(("unixgram", rest)) => Ok(Self::UnixDatagram(path(rest)?)),
            _ => Err(Error::usage(format!(
                "{word}: expected udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT, otlp://HOST:PORT, unix:PATH or \
                 unixgram:PATH"
            ))),
        }
    }
}

fn resolve(word: &str, rest: &str) -> Result<SocketAddr, Error> {
    let host = rest.strip_prefix("//").ok_or_else(|| Error::usage(format!("{word}: expected // after the colon")))?;
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    let mut found = host.to_socket_addrs().map_err(|error| Error::usage(format!("{word}: {error}")))?;
    found.next().ok_or_else(|| Error::usage(format!("{word}: the host has no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_and_shown_again() {
        for word in [
            "udp://127.0.0.1:9000",
            "tcp://[::1]:0",
            "tls://127.0.0.1:1",
            "otlp://[::1]:4317",
            "unix:/run/x.sock",
            "unixgram:a b",
        ] {
            let endpoint: Endpoint = word.parse().unwrap();
            assert_eq!(endpoint.to_string(), word);
            assert!(endpoint.is_local());
        }
        assert_eq!("unix:///run/x".parse::<Endpoint>().unwrap(), Endpoint::Unix("/run/x".into()));
        assert_eq!("unix:\x1b[2J".parse::<Endpoint>().unwrap().to_string().find('\x1b'), None);
    }

    #[test]
    fn only_loopback_is_local() {
        for word in ["udp://0.0.0.0:1", "tcp://[::]:1", "udp://192.168.1.2:1", "tcp://[::ffff:10.0.0.1]:1"] {
            assert!(!word.parse::<Endpoint>().unwrap().is_local(), "{word}");
        }
        assert!("tcp://127.9.9.9:1".parse::<Endpoint>().unwrap().is_local());
        assert!("tcp://[::ffff:127.0.0.1]:1".parse::<Endpoint>().unwrap().is_local());
    }

    #[test]
    fn text_that_is_not_an_address_is_refused() {
        for word in ["", "udp", "udp:127.0.0.1:1", "tcp://127.0.0.1", "tcp://127.0.0.1:70000", "unix:", "ftp://x:1"] {
            assert!(word.parse::<Endpoint>().is_err(), "{word}");
        }
    }
}
