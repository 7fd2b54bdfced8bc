//! Requests on their way to whoever takes them.

use std::time::Duration;

use anytrace_core::Error;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::codec::CompressionEncoding;
use tonic::metadata::{Ascii, MetadataKey, MetadataMap, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request};

use super::spans::Taken;
use crate::voice;

/// Requests at the same time.
const AT_ONCE: usize = 4;

/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(10);

/// Waits before a request is repeated: the first, and the longest.
const RETRY_FIRST: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);

/// How often a request is repeated that may be too long for whoever takes it.
const TRIES_IF_LONG: u32 = 5;

/// Environment variables that OpenTelemetry's exporters know: headers as `NAME=VALUE,…`, and the authority of the
/// receiver's certificate.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const CERTIFICATE: &str = "OTEL_EXPORTER_OTLP_CERTIFICATE";

/// What became of a request, or is becoming of it.
enum News {
    Sent(u64),
    Lost(u64, String),
    /// It will be repeated.
    Fault(String),
}

/// Sends requests, several at a time.
pub(super) struct Sender {
    client: TraceServiceClient<Channel>,
    headers: MetadataMap,
    requests: JoinSet<()>,
    reports: mpsc::UnboundedSender<News>,
    news: mpsc::UnboundedReceiver<News>,
    /// Events that were read.
    pub(super) events: u64,
    sent: u64,
    lost: u64,
    refusal: Option<String>,
    fault: Option<String>,
    /// What was said last.
    said: Option<(u64, u64, u64, Option<String>)>,
}

impl Sender {
    pub(super) fn new(to: &str) -> Result<Self, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::usage(format!("{to}: {error}"));
        let mut endpoint = Endpoint::from_shared(to.to_owned()).map_err(|error| wrong(&error))?;
        endpoint = endpoint
            .connect_timeout(ANSWER)
            .user_agent(concat!("anytrace/", env!("CARGO_PKG_VERSION")))
            .map_err(|error| wrong(&error))?;
        if to.starts_with("https:") {
            let mut tls = ClientTlsConfig::new().with_native_roots();
            if let Some(path) = std::env::var_os(CERTIFICATE) {
                let pem = std::fs::read(&path).map_err(|error| Error::io(path.display(), error))?;
                tls = tls.ca_certificate(Certificate::from_pem(pem));
            }
            endpoint = endpoint.tls_config(tls).map_err(|error| wrong(&error))?;
        }
        let (reports, news) = mpsc::unbounded_channel();
        Ok(Self {
            client: TraceServiceClient::new(endpoint.connect_lazy()).send_compressed(CompressionEncoding::Gzip),
            headers: headers(&std::env::var(HEADERS).unwrap_or_default())?,
            requests: JoinSet::new(),
            reports,
            news,
            events: 0,
            sent: 0,
            lost: 0,
            refusal: None,
            fault: None,
            said: None,
        })
    }

    /// Sends a request when there is room for one more.
    pub(super) async fn send(&mut self, taken: Taken) {
        while self.requests.len() >= AT_ONCE {
            // What is in the way is said while it is there.
            tokio::select! {
                _ = self.requests.join_next() => {}
                Some(news) = self.news.recv() => self.hear(news),
            }
        }
        let (client, headers, reports) = (self.client.clone(), self.headers.clone(), self.reports.clone());
        self.requests.spawn(deliver(client, headers, taken, reports));
    }

    /// Waits until all is sent.
    pub(super) async fn finish(&mut self) {
        while !self.requests.is_empty() {
            tokio::select! {
                _ = self.requests.join_next() => {}
                Some(news) = self.news.recv() => self.hear(news),
            }
        }
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Sent(spans) => {
                self.sent += spans;
                self.fault = None;
            }
            News::Lost(spans, why) => {
                self.lost += spans;
                self.refusal = Some(why);
            }
            News::Fault(fault) => {
                let is_new = self.fault.as_ref() != Some(&fault);
                self.fault = Some(fault);
                if is_new {
                    self.say();
                }
            }
        }
    }

    /// Says what was sent, if that is new.
    pub(super) fn say(&mut self) {
        while let Ok(news) = self.news.try_recv() {
            self.hear(news);
        }
        let now = Some((self.events, self.sent, self.lost, self.fault.clone()));
        if self.said != now {
            voice::forwarded(self.events, self.sent, self.lost, self.refusal.as_deref(), self.fault.as_deref());
            self.said = now;
        }
    }
}

/// Sends a request until it is taken, or refused for good.
async fn deliver(
    mut client: TraceServiceClient<Channel>,
    headers: MetadataMap,
    taken: Taken,
    reports: mpsc::UnboundedSender<News>,
) {
    let (mut retry, mut tries) = (RETRY_FIRST, 0);
    // Nobody listens any more at the very end.
    let report = |news| drop(reports.send(news));
    loop {
        let message = ExportTraceServiceRequest { resource_spans: taken.resources.clone() };
        let request = Request::from_parts(headers.clone(), tonic::Extensions::default(), message);
        let fault = match timeout(ANSWER, client.export(request)).await {
            Ok(Ok(answer)) => {
                let refused = answer.into_inner().partial_success.unwrap_or_default();
                let lost = u64::try_from(refused.rejected_spans).unwrap_or(0).min(taken.spans);
                if lost > 0 {
                    report(News::Lost(lost, refused.error_message));
                }
                return report(News::Sent(taken.spans - lost));
            }
            Ok(Err(status)) if may_be_repeated(status.code(), tries) => describe(&status),
            Ok(Err(status)) => return report(News::Lost(taken.spans, describe(&status))),
            Err(_) => format!("no answer within {} s", ANSWER.as_secs()),
        };
        report(News::Fault(fault));
        sleep(retry).await;
        tries += 1;
        retry = (2 * retry).min(RETRY_MAX);
    }
}

/// What a status says, and what caused it.
fn describe(status: &tonic::Status) -> String {
    let mut text = status.message().to_owned();
    let mut cause = std::error::Error::source(status);
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    if text.is_empty() { format!("{:?}", status.code()) } else { text }
}

/// The codes that OTLP's specification names. Two of them may also say that the request is too long, for good.
fn may_be_repeated(code: Code, tries: u32) -> bool {
    match code {
        Code::Cancelled | Code::DeadlineExceeded | Code::Aborted | Code::Unavailable | Code::DataLoss => true,
        Code::ResourceExhausted | Code::OutOfRange => tries < TRIES_IF_LONG,
        _ => false,
    }
}

fn headers(text: &str) -> Result<MetadataMap, Error> {
    let mut all = MetadataMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let wrong = || Error::usage(format!("{HEADERS}: expected NAME=VALUE, separated by commas"));
        let (name, value) = pair.split_once('=').ok_or_else(wrong)?;
        let name: MetadataKey<Ascii> = name.trim().to_ascii_lowercase().parse().map_err(|_| wrong())?;
        let value: MetadataValue<Ascii> = decoded(value.trim()).parse().map_err(|_| wrong())?;
        all.insert(name, value);
    }
    Ok(all)
}

/// Values are percent-encoded, as in W3C's Baggage.
fn decoded(text: &str) -> String {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|pair| std::str::from_utf8(pair).ok());
        match hex.and_then(|pair| u8::from_str_radix(pair, 16).ok()).filter(|_| first == b'%') {
            Some(byte) => {
                out.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_opentelemetry_writes_them() {
        let all = headers("Authorization=Bearer%20abc, x-tenant = 7").unwrap();
        assert_eq!(all.get("authorization").unwrap(), "Bearer abc");
        assert_eq!(all.get("x-tenant").unwrap(), "7");
        assert!(headers("").unwrap().is_empty());
        assert!(headers("novalue").is_err() && headers("bad name=1").is_err());
    }
}
