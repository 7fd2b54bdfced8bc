//! Senders must show what they do to the collector itself: a token, a certificate, an address that is allowed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use anytrace_live::{Access, CollectOptions, Tls};
use common::{Collector, request, span};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Status};

const TOKEN: &str = "0123456789abcdef";

/// An authority, with what it has certified, in files.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// A certificate and its key.
    fn certify(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn stored(folder: &Path, name: &str, text: &str) -> PathBuf {
    fs::write(folder.join(name), text).unwrap();
    folder.join(name)
}

/// Sends a span over TLS; with a token and a certificate, where they are given.
async fn send(address: &str, tls: ClientTlsConfig, token: Option<&str>) -> Result<(), Status> {
    let port = address.rsplit_once(':').unwrap().1;
    let endpoint = Endpoint::from_shared(format!("https://localhost:{port}")).unwrap().tls_config(tls).unwrap();
    let channel = endpoint.connect().await.map_err(|error| Status::unknown(format!("{error:?}")))?;
    let mut message = tonic::Request::new(request("a", vec![span(1, 0, "s")]));
    if let Some(token) = token {
        message.metadata_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    TraceServiceClient::new(channel).export(message).await.map(drop)
}

fn code(result: Result<(), Status>) -> Option<Code> {
    result.err().map(|status| status.code())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_or_a_certificate_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let (own, other) = (Authority::new(), Authority::new());
    let (certificate, key) = own.certify("localhost");
    let old = "fedcba9876543210 2020-01-01T00:00:00Z";
    let access = Access {
        tls: Some(Tls {
            certificate: stored(folder.path(), "crt", &certificate),
            key: stored(folder.path(), "key", &key),
            client_authorities: Some(stored(folder.path(), "ca", &own.0.pem())),
        }),
        tokens: Some(stored(folder.path(), "tokens", &format!("{TOKEN}\n{old}\n"))),
        allowed: Vec::new(),
    };
    let collector = Collector::start(|options: &mut CollectOptions| options.access = access);
    let address = collector.address();
    let knows = |authority: &Authority| ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority.0.pem()));
    assert_eq!(code(send(address, knows(&own), Some(TOKEN)).await), None);
    assert_eq!(code(send(address, knows(&own), None).await), Some(Code::Unauthenticated));
    assert_eq!(code(send(address, knows(&own), Some("0123456789abcdeF")).await), Some(Code::Unauthenticated));
    assert_eq!(code(send(address, knows(&own), Some("fedcba9876543210")).await), Some(Code::Unauthenticated));
    let with = |of: &Authority| {
        let (certificate, key) = of.certify("sender");
        knows(&own).identity(Identity::from_pem(certificate, key))
    };
    assert_eq!(code(send(address, with(&own), None).await), None);
    assert!(send(address, with(&other), None).await.is_err(), "a certificate of another authority");
    assert!(send(address, knows(&other), Some(TOKEN)).await.is_err(), "the sender does not know the collector");
    assert!(
        TraceServiceClient::connect(format!("http://{address}")).await.is_err() || {
            let mut plain = TraceServiceClient::connect(format!("http://{address}")).await.unwrap();
            plain.export(request("a", vec![span(9, 0, "s")])).await.is_err()
        }
    );
    for why in ["it showed no token", "its token is not known", "its token has expired", "TLS"] {
        assert!(collector.hears(why), "{why}");
    }
    let (report, _folder) = collector.stop();
    assert_eq!(report.events, 2);
    assert!(report.unauthorized() >= 4, "{}", report.unauthorized());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_allowed_machines_may_send() {
    let collector = Collector::start(|options| options.access.allowed = vec!["10.0.0.0/8".parse().unwrap()]);
    let mut sent = Err(Status::unknown("not connected"));
    if let Ok(mut client) = TraceServiceClient::connect(format!("http://{}", collector.address())).await {
        sent = client.export(request("a", vec![span(1, 0, "s")])).await.map(drop);
    }
    assert!(sent.is_err());
    assert!(collector.hears("its machine is not allowed"));
    let (report, _folder) = collector.stop();
    assert_eq!(report.events, 0);
    assert!(report.unauthorized() >= 1);
}
