//! What is collected is sent on as spans.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anytrace_live::{CollectOptions, ForwardOptions};
use common::{Collector, PROGRAM, request, span, text};
use heph_encoder::{Account, Header, Session, StreamAccount, event};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::span::Event;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use tonic::codec::CompressionEncoding;
use tonic::{Code, Status};

/// An OpenTelemetry collector that keeps what it takes.
#[derive(Clone, Default)]
struct Taker {
    taken: Arc<Mutex<Vec<ResourceSpans>>>,
    /// How often it says no first, and how; how many spans it then refuses.
    refuses: Arc<Mutex<Vec<Code>>>,
    partial: i64,
}

#[tonic::async_trait]
impl TraceService for Taker {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, Status> {
        if let Some(code) = self.refuses.lock().unwrap().pop() {
            return Err(Status::new(code, "not now"));
        }
        assert_eq!(
            request.metadata().get("user-agent").map(|agent| agent.to_str().unwrap().starts_with("anytrace/")),
            Some(true)
        );
        self.taken.lock().unwrap().extend(request.into_inner().resource_spans);
        let error_message = "too many".to_owned();
        let partial_success =
            (self.partial > 0).then_some(ExportTracePartialSuccess { rejected_spans: self.partial, error_message });
        Ok(tonic::Response::new(ExportTraceServiceResponse { partial_success }))
    }
}

impl Taker {
    /// Serves at an address of this machine.
    async fn serve(&self, address: &str) -> String {
        let listener = tokio::net::TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let service = TraceServiceServer::new(self.clone()).accept_compressed(CompressionEncoding::Gzip);
        let app = tonic::service::Routes::new(service).into_axum_router();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    }

    /// The spans by name, with the attributes of their resource as text.
    fn spans(&self) -> BTreeMap<String, Span> {
        let taken = self.taken.lock().unwrap();
        let scopes = taken.iter().flat_map(|resource| &resource.scope_spans);
        scopes.flat_map(|scope| &scope.spans).map(|span| (span.name.clone(), span.clone())).collect()
    }
}

fn forwards(to: &str) -> impl FnOnce(&mut CollectOptions) {
    let forward = ForwardOptions { to: format!("http://{to}"), program: PathBuf::from(PROGRAM) };
    move |options| {
        options.forward = Some(forward);
        options.listen.push("tcp://127.0.0.1:0".parse().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_by_otlp_is_sent_on_as_it_came() {
    let taker = Taker::default();
    let collector = Collector::start(forwards(&taker.serve("127.0.0.1:0").await));
    let point = |name: &str, time| Event { time_unix_nano: time, name: name.to_owned(), ..Event::default() };
    let time = span(2, 0, "").start_time_unix_nano;
    let inner = Span { events: vec![point("p", time + 1), point("q", time + 2)], kind: 3, ..span(2, 1, "inner") };
    let root = Span { attributes: vec![text("a", "b")], kind: 2, ..span(1, 0, "root") };
    let sent = request("shop", vec![inner, root]);
    let to = format!("http://{}", collector.address());
    TraceServiceClient::connect(to).await.unwrap().export(sent.clone()).await.unwrap();
    let (report, _folder) = collector.stop();
    let forwarded = report.forwarded.unwrap();
    assert_eq!((forwarded.sent, forwarded.lost, forwarded.is_complete, forwarded.fault), (2, 0, true, None));
    assert_eq!(*taker.taken.lock().unwrap(), sent.resource_spans);
}

/// A recording as `tracing-heph` makes it.
struct Recording {
    bytes: Vec<u8>,
    counter: u32,
}

impl Recording {
    fn new() -> Self {
        let mut bytes = Vec::new();
        heph_encoder::epoch(&mut bytes, 1000).unwrap();
        let session = Session { id: 5, program: "app", process: 9, recorder: "tracing-heph 1", ..Session::default() };
        heph_encoder::session(&mut bytes, &session).unwrap();
        heph_encoder::thread(&mut bytes, 1, "main").unwrap();
        Self { bytes, counter: 0 }
    }

    /// An event with its numbers: span, parent, poll.
    fn event(&mut self, substream: u64, (start_ns, end_ns): (u64, u64), name: &str, numbers: [u64; 3]) {
        let header = Header { stream: 1, counter: self.counter, substream, start_ns, end_ns };
        self.counter += 1;
        let mut made = event(&mut self.bytes, &header, name);
        for (name, number) in ["span.id", "span.parent", "span.poll"].into_iter().zip(numbers) {
            if number != 0 {
                made.u64(name, number);
            }
        }
        made.finish().unwrap();
    }

    fn send(mut self, to: &str) {
        let all = StreamAccount { stream: 1, recorded: self.counter.into(), dropped: 0, lost: 0 };
        let account = Account { id: 5, is_closed: true, streams: &[all], all_streams: 1, all };
        heph_encoder::account(&mut self.bytes, &account).unwrap();
        TcpStream::connect(to).unwrap().write_all(&self.bytes).unwrap();
    }
}

const LIFE: u64 = 1 << 52;

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_spans_that_find_their_parents_and_points_their_spans() {
    let taker = Taker::default();
    let collector = Collector::start(forwards(&taker.serve("127.0.0.1:0").await));
    let mut recording = Recording::new();
    recording.event(7, (5, 5), "point", [0, 2, 0]);
    recording.event(7, (4, 6), "child", [2, 1, 0]);
    recording.event(7, (1, 9), "root", [1, 0, 0]);
    recording.event(7, (12, 14), "root again", [1, 0, 1]);
    recording.event(7, (20, 20), "never", [0, 3, 0]);
    recording.event(0, (30, 30), "alone", [0, 0, 0]);
    recording.send(&collector.addresses[1]);
    let (report, _folder) = collector.stop();
    assert_eq!(report.forwarded.map(|all| (all.sent, all.lost, all.is_complete)), Some((5, 0, true)));
    let spans = taker.spans();
    let [root, child, again, never, alone] = ["root", "child", "root again", "never", "alone"].map(|name| &spans[name]);
    assert_eq!((root.start_time_unix_nano, root.end_time_unix_nano), (1001, 1009));
    assert_eq!((&child.parent_span_id, &again.parent_span_id), (&root.span_id, &root.span_id));
    assert_ne!(again.span_id, root.span_id);
    assert!(root.parent_span_id.is_empty() && root.span_id.len() == 8 && root.trace_id.len() == 16);
    assert!([child, again].iter().all(|span| span.trace_id == root.trace_id));
    assert_eq!(child.events.iter().map(|event| event.name.as_str()).collect::<Vec<_>>(), ["point"]);
    assert_eq!((never.start_time_unix_nano, alone.parent_span_id.len()), (1020, 0));
    let resource = taker.taken.lock().unwrap()[0].resource.clone().unwrap();
    assert!(resource.attributes.contains(&text("service.name", "app")), "{resource:?}");
    assert!(root.attributes.contains(&text("thread.name", "main")));
}

#[tokio::test(flavor = "multi_thread")]
async fn where_lives_are_recorded_they_are_the_spans() {
    let taker = Taker::default();
    let collector = Collector::start(forwards(&taker.serve("127.0.0.1:0").await));
    let mut recording = Recording::new();
    // The first run comes before any life is known.
    recording.event(7, (2, 3), "run 0 of 1", [1, 0, 0]);
    recording.event(7 | LIFE, (1, 4), "life of 1", [1, 0, 0]);
    recording.event(8, (5, 6), "run 0 of 2", [2, 0, 0]);
    recording.event(8, (7, 8), "run 1 of 2", [2, 0, 1]);
    recording.event(8 | LIFE, (6, 7), "life of 3", [3, 2, 0]);
    recording.event(8 | LIFE, (5, 9), "life of 2", [2, 0, 0]);
    recording.send(&collector.addresses[1]);
    let (report, _folder) = collector.stop();
    assert_eq!(report.forwarded.map(|all| (all.sent, all.is_complete)), Some((6, true)));
    let spans = taker.spans();
    let life = &spans["life of 2"];
    for name in ["run 0 of 2", "run 1 of 2", "life of 3"] {
        assert_eq!((&spans[name].parent_span_id, &spans[name].trace_id), (&life.span_id, &life.trace_id), "{name}");
    }
    assert_ne!(spans["life of 1"].span_id, spans["run 0 of 1"].span_id, "ids are unique");
    assert_ne!(spans["life of 1"].trace_id, life.trace_id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_comes_late_or_says_no_gets_everything_once() {
    let taker = Taker::default();
    *taker.refuses.lock().unwrap() = vec![Code::DeadlineExceeded, Code::Unavailable];
    // A port that nobody listens at yet.
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let collector = Collector::start(forwards(&address));
    let to = format!("http://{}", collector.address());
    let mut client = TraceServiceClient::connect(to).await.unwrap();
    for round in 0..20 {
        let spans = (0..100).map(|n| span(1 + round * 100 + n, 0, &format!("span {round} {n}"))).collect();
        client.export(request("a", spans)).await.unwrap();
    }
    assert!(collector.hears("nothing is sent to"));
    taker.serve(&address).await;
    let (report, _folder) = collector.stop();
    assert_eq!(report.forwarded.map(|all| (all.sent, all.lost, all.is_complete)), Some((2000, 0, true)));
    assert_eq!((report.events, taker.spans().len()), (2000, 2000));
    let taken = taker.taken.lock().unwrap();
    let spans: usize = taken.iter().flat_map(|all| &all.scope_spans).map(|scope| scope.spans.len()).sum();
    assert_eq!(spans, 2000, "each once");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_removed_before_it_could_be_sent_is_reported() {
    let taker = Taker::default();
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let collector = Collector::start(|options| {
        forwards(&address)(options);
        options.store.rotate_events = Some(100);
        options.store.keep = Some(1);
    });
    let to = format!("http://{}", collector.address());
    let mut client = TraceServiceClient::connect(to).await.unwrap();
    for round in 0..100 {
        let spans = (0..100).map(|n| span(1 + round * 100 + n, 0, &format!("span {round} {n}"))).collect();
        client.export(request("a", spans)).await.unwrap();
    }
    taker.serve(&address).await;
    let (report, _folder) = collector.stop();
    let (forwarded, spans) = (report.forwarded.unwrap(), taker.spans().len() as u64);
    assert_eq!((report.events, forwarded.sent, forwarded.is_complete), (10_000, spans, false));
    let fault = format!("{} events were in files that were removed before they were sent", 10_000 - spans);
    assert_eq!((forwarded.fault, spans < 10_000 && spans > 0), (Some(fault), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_for_good_is_counted_and_an_absent_receiver_ends_nothing() {
    for (refuses, partial, expected) in [(vec![Code::InvalidArgument], 0, (0, 3)), (Vec::new(), 2, (1, 2))] {
        let taker = Taker { refuses: Arc::new(Mutex::new(refuses)), partial, ..Taker::default() };
        let collector = Collector::start(forwards(&taker.serve("127.0.0.1:0").await));
        let to = format!("http://{}", collector.address());
        let spans = (1..=3).map(|n| span(n, 0, "s")).collect();
        TraceServiceClient::connect(to).await.unwrap().export(request("a", spans)).await.unwrap();
        assert!(collector.hears("has refused"));
        let (report, _folder) = collector.stop();
        assert_eq!(
            report.forwarded.map(|all| (all.sent, all.lost, all.is_complete)),
            Some((expected.0, expected.1, true))
        );
    }
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let collector = Collector::start(forwards(&nobody));
    let to = format!("http://{}", collector.address());
    TraceServiceClient::connect(to).await.unwrap().export(request("a", vec![span(1, 0, "s")])).await.unwrap();
    let (report, _folder) = collector.stop();
    let forwarded = report.forwarded.unwrap();
    assert_eq!((report.events, forwarded.sent, forwarded.is_complete), (1, 0, false));
    assert!(forwarded.fault.is_some());
}
