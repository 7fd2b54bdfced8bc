//! TLS between all processes: with right certificates everything works, with wrong ones or none nothing does.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

mod common;

use std::path::{Path, PathBuf};

use common::{Cluster, Traces, client, local, text};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

/// Certificates in files.
struct Authority {
    folder: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut own = CertificateParams::new(Vec::new()).unwrap();
        own.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        std::fs::write(folder.path().join("ca.pem"), own.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(own, key), folder }
    }

    /// A certificate for a name; the files of it and of its key.
    fn sign(&self, file: &str, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let (cert_file, key_file) = (self.path(&format!("{file}.pem")), self.path(&format!("{file}.key")));
        std::fs::write(&cert_file, params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        (cert_file, key_file)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn only_certificates_of_the_authority_are_accepted() {
    let traces = Traces::new();
    let file = traces.example("threads4.xray", Some(512));
    let (ours, others) = (Authority::new(), Authority::new());
    let (cert, key) = ours.sign("node", "127.0.0.1");
    let ca = ours.path("ca.pem");
    let options = ["--tls-cert", &shown(&cert), "--tls-key", &shown(&key), "--tls-ca", &shown(&ca)].map(str::to_owned);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let cluster = Cluster::start(2, traces.folder.path(), &options);
    let sql = "SELECT kind, count(*) FROM events GROUP BY kind ORDER BY 1";
    let (expected, _) = local(sql, std::slice::from_ref(&file), 1);
    let ask = |cert: Option<&Path>, key: &Path, ca: &Path| {
        let mut command = client(&cluster.address(), sql, std::slice::from_ref(&file), 4);
        if let Some(cert) = cert {
            command.env("ANYTRACE_CLUSTER_CERT", cert).env("ANYTRACE_CLUSTER_KEY", key).env("ANYTRACE_CLUSTER_CA", ca);
        }
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, rows, said) = ask(Some(&cert), &key, &ca);
    assert_eq!((code, rows), (Some(0), expected), "{said}");
    let (code, rows, said) = ask(None, &key, &ca);
    assert_eq!((code, rows.as_str()), (Some(2), ""), "{said}");
    let (wrong, wrong_key) = others.sign("wrong", "127.0.0.1");
    let (code, rows, said) = ask(Some(&wrong), &wrong_key, &ca);
    assert_eq!((code, rows.as_str()), (Some(2), ""), "{said}");
    // The client trusts another authority than the one that signed the scheduler's certificate.
    let (code, _, said) = ask(Some(&cert), &key, &others.path("ca.pem"));
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("cannot reach the scheduler"), "{said}");
}
