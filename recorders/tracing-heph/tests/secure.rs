//! Recorders and a collector that must know each other: certificates and tokens, right ones and wrong ones.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anytrace_core::{Diagnostic, Error};
use anytrace_live::{Access, CollectOptions, ListenerReport, Observer, Report, SourceName, Summary, Tls, collect};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tracing_heph::{Builder, Recorder};

const TOKEN: &str = "0123456789abcdef";

/// An authority, with what it has certified, in files.
struct Authority<'f> {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: &'f Path,
    name: &'static str,
}

impl<'f> Authority<'f> {
    fn new(folder: &'f Path, name: &'static str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(folder.join(format!("{name}.pem")), issuer.pem()).unwrap();
        Self { issuer, folder, name }
    }

    fn file(&self) -> PathBuf {
        self.folder.join(format!("{}.pem", self.name))
    }

    /// A certificate for a name, and its key.
    fn certify(&self, name: &str) -> (PathBuf, PathBuf) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let at = |end: &str| self.folder.join(format!("{}-{name}{end}", self.name));
        fs::write(at(".crt"), certificate.pem()).unwrap();
        fs::write(at(".key"), key.serialize_pem()).unwrap();
        (at(".crt"), at(".key"))
    }
}

struct Watcher {
    addresses: mpsc::Sender<String>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Observer for Watcher {
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error> {
        self.addresses.send(listeners[0].address.clone()).unwrap();
        Ok(())
    }

    fn summary(&mut self, _: &Summary) -> Result<(), Error> {
        Ok(())
    }

    fn unauthorized(&mut self, _: &str, why: &str) -> Result<(), Error> {
        self.refused.lock().unwrap().push(why.to_owned());
        Ok(())
    }

    fn storage(&mut self, _: bool) -> Result<(), Error> {
        Ok(())
    }

    fn damage(&mut self, _: &SourceName, diagnostic: Diagnostic) -> Result<(), Error> {
        panic!("{diagnostic}")
    }
}

struct Collector {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Report, Error>>,
    address: String,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Collector {
    fn start(folder: &Path, listen: &str, access: Access) -> Self {
        let mut options = CollectOptions::new(folder.join("out"));
        options.listen = vec![listen.parse().unwrap()];
        options.access = access;
        options.acknowledges = true;
        options.duration = Some(Duration::from_secs(120));
        let (stop, refused) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (addresses, address) = mpsc::channel();
        let (of_thread, its_refused) = (Arc::clone(&stop), Arc::clone(&refused));
        let thread =
            std::thread::spawn(move || collect(&options, &of_thread, &mut Watcher { addresses, refused: its_refused }));
        let address = address.recv().unwrap();
        let port = address.rsplit_once(':').unwrap().1;
        Self { stop, thread, address: format!("localhost:{port}"), refused }
    }

    fn end(self) -> Report {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().unwrap().unwrap()
    }
}

/// Records so many events; returns how many the recorder says were written.
fn record(builder: Builder, events: u64) -> Result<u64, String> {
    let (recorder, guard) =
        builder.close_timeout(Duration::from_secs(30)).build_recorder().map_err(|error| error.to_string())?;
    for n in 0..events {
        recorder.point("secure").u64("n", n);
    }
    let stats = guard.close();
    assert_eq!((stats.recorded, stats.lost + stats.dropped), (events, 0), "{stats:?}");
    Ok(stats.written)
}

fn all_bytes(folder: &Path) -> Vec<u8> {
    let files = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.is_file()).flat_map(|path| fs::read(path).unwrap()).collect()
}

#[test]
fn a_token_over_tls_lets_in_and_is_kept_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "theirs"));
    let (certificate, key) = ours.certify("localhost");
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, format!("{TOKEN}\nabcdefghijklmnop 2020-01-01T00:00:00Z\n")).unwrap();
    let tls = Tls { certificate, key, client_authorities: None };
    let access = Access { tls: Some(tls), tokens: Some(tokens), ..Access::default() };
    let collector = Collector::start(folder.path(), "tls://127.0.0.1:0", access);
    let to = |authority: &Authority<'_>| Recorder::builder().tls(&collector.address, authority.file());
    assert_eq!(record(to(&ours).token(TOKEN), 20_000), Ok(20_000));
    assert_eq!(record(to(&ours).token(TOKEN).acknowledged(1 << 20), 20_000), Ok(20_000));
    // Who the collector is, is asked first.
    let error = record(to(&theirs).token(TOKEN), 1).unwrap_err();
    assert!(error.contains("certificate") && error.contains("tls://localhost"), "{error}");
    let refusal = "the collector refused the token or the certificate";
    for builder in [to(&ours), to(&ours).token("0123456789abcdeF"), to(&ours).token("abcdefghijklmnop")] {
        let error = record(builder, 1).unwrap_err();
        assert!(error.contains(refusal), "{error}");
    }
    // Without TLS nothing is understood.
    let error = record(Recorder::builder().tcp(&collector.address).token(TOKEN), 1).unwrap_err();
    assert!(!error.is_empty());
    let refused = collector.refused.lock().unwrap().clone();
    let report = collector.end();
    assert_eq!((report.events, report.totals.lost, report.sessions.len()), (40_000, 0, 2));
    assert_eq!(report.unauthorized(), 5, "{refused:?}");
    assert_eq!(refused[1..4], ["it showed no token", "its token is not known", "its token has expired"]);
    let bytes = all_bytes(folder.path());
    for token in [TOKEN, "0123456789abcdeF"] {
        assert!(!bytes.windows(token.len()).any(|part| part == token.as_bytes()));
    }
}

#[test]
fn a_certificate_lets_in_and_another_or_none_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new(folder.path(), "ours"), Authority::new(folder.path(), "theirs"));
    let (certificate, key) = ours.certify("localhost");
    let tls = Tls { certificate, key, client_authorities: Some(ours.file()) };
    let collector =
        Collector::start(folder.path(), "tls://127.0.0.1:0", Access { tls: Some(tls.clone()), ..Access::default() });
    let to = || Recorder::builder().tls(&collector.address, ours.file());
    let (known, unknown) = (ours.certify("client"), theirs.certify("client"));
    assert_eq!(record(to().certificate(known.0.clone(), known.1.clone()), 5000), Ok(5000));
    assert!(record(to().certificate(unknown.0.clone(), unknown.1.clone()), 1).is_err());
    assert!(record(to(), 1).is_err());
    // Another name than that of the certificate.
    let port = collector.address.rsplit_once(':').unwrap().1;
    let error = record(Recorder::builder().tls(format!("127.0.0.1:{port}"), ours.file()).token(TOKEN), 1).unwrap_err();
    assert!(error.contains("certificate"), "{error}");
    let report = collector.end();
    assert_eq!((report.events, report.unauthorized()), (5000, 3));

    // With tokens as well, one of both is enough.
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, TOKEN).unwrap();
    let access = Access { tls: Some(tls), tokens: Some(tokens), ..Access::default() };
    let collector = Collector::start(folder.path(), "tls://127.0.0.1:0", access);
    let to = || Recorder::builder().tls(&collector.address, ours.file());
    assert_eq!(record(to().certificate(known.0, known.1), 100), Ok(100));
    assert_eq!(record(to().token(TOKEN), 100), Ok(100));
    assert!(record(to(), 1).is_err());
    assert!(record(to().certificate(unknown.0, unknown.1), 1).is_err());
    assert_eq!(collector.end().events, 200);
}

#[test]
fn a_recorder_that_is_let_in_later_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    fs::write(&tokens, "another-token-that-is-known").unwrap();
    let access = Access { tokens: Some(tokens.clone()), ..Access::default() };
    let collector = Collector::start(folder.path(), "tcp://127.0.0.1:0", access);
    let builder = Recorder::builder().tcp(&collector.address).token(TOKEN).connect_later(true);
    let (recorder, guard) = builder.close_timeout(Duration::from_secs(30)).build_recorder().unwrap();
    drop(recorder.point("early"));
    let began = Instant::now();
    while !guard.stats().last_error.is_some_and(|error| error.contains("refused the token")) {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(collector.refused.lock().unwrap()[0], "its token is not known");
    fs::write(&tokens, TOKEN).unwrap();
    drop(recorder.point("late"));
    assert_eq!(guard.close().written, 2);
    assert_eq!(collector.end().events, 2);
}

#[test]
fn a_token_is_not_kept_by_a_collector_that_asks_for_none() {
    let folder = tempfile::tempdir().unwrap();
    let collector = Collector::start(folder.path(), "tcp://127.0.0.1:0", Access::default());
    assert_eq!(record(Recorder::builder().tcp(&collector.address).token(TOKEN), 10), Ok(10));
    assert_eq!(record(Recorder::builder().tcp(&collector.address), 10), Ok(10));
    assert_eq!(collector.end().events, 20);
    assert!(!all_bytes(folder.path()).windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()));
}
