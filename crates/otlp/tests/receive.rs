//! Spans over gRPC and HTTP become events.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use common::{Collector, NOON, packets, pair, request, span, text};
use flate2::Compression;
use flate2::write::GzEncoder;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValueList};
use opentelemetry_proto::tonic::trace::v1::span::{Event, Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, Status};
use prost::Message;
use tonic::codec::CompressionEncoding;

async fn client(address: &str) -> TraceServiceClient<tonic::transport::Channel> {
    TraceServiceClient::connect(format!("http://{address}")).await.unwrap()
}

/// Everything a span can have.
fn full() -> Span {
    let array = |values: Vec<Value>| {
        let values = values.into_iter().map(|value| AnyValue { value: Some(value) }).collect();
        Value::ArrayValue(ArrayValue { values })
    };
    let pairs = KeyValueList { values: vec![pair("inner", Value::IntValue(4)), text("other", "x")] };
    Span {
        trace_state: "vendor=1".to_owned(),
        flags: 0x101,
        kind: SpanKind::Server as i32,
        attributes: vec![
            text("text", "näher"),
            pair("truth", Value::BoolValue(true)),
            pair("number", Value::IntValue(-3)),
            pair("float", Value::DoubleValue(0.5)),
            pair("bytes", Value::BytesValue(vec![0, 255])),
            pair("pairs", Value::KvlistValue(pairs)),
            pair("numbers", array(vec![Value::IntValue(1), Value::IntValue(2)])),
            pair("mixed", array(vec![Value::IntValue(1), Value::StringValue("b".to_owned())])),
            pair("thread.id", Value::IntValue(77)),
            text("thread.name", "worker"),
        ],
        dropped_attributes_count: 1,
        events: vec![Event {
            time_unix_nano: NOON + 205,
            name: "point".to_owned(),
            attributes: vec![text("why", "test")],
            dropped_attributes_count: 0,
        }],
        dropped_events_count: 2,
        links: vec![Link {
            trace_id: 9_u128.to_be_bytes().to_vec(),
            span_id: 3_u64.to_be_bytes().to_vec(),
            attributes: vec![text("of", "link")],
            ..Link::default()
        }],
        status: Some(Status { message: "no rows".to_owned(), code: StatusCode::Error as i32 }),
        ..span(2, 1, "query")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_a_span_says_is_in_its_event() {
    let collector = Collector::start(|_| {});
    let mut client = client(collector.address()).await;
    let answer = client.export(request("shop", vec![full(), span(1, 0, "root")])).await.unwrap();
    assert_eq!(answer.into_inner().partial_success, None);
    let (report, folder) = collector.stop();
    assert_eq!((report.events, report.totals.lost, report.is_closed()), (3, 0, true));
    let all = packets(&folder.path().join("traces"));
    let hour = 3600 * 1_000_000_000_u64;
    let events: Vec<&str> = all.iter().map(String::as_str).filter(|one| one.starts_with(['0', '1'])).collect();
    assert_eq!(
        events,
        [
            &*format!(
                "1 0 0x1 {}+0 point span.parent=Unsigned(2) why=Text(\"test\") \
                 trace.id=Text(\"00000000000000000000000000000007\")",
                hour + 105
            ),
            &*format!(
                "1 1 0x10000000000001 {}+50 query span.id=Unsigned(2) span.parent=Unsigned(1) text=Text(\"näher\") \
                 truth=Unsigned(1) number=Signed(-3) float=Float(0.5) bytes=Text(\"AP8=\") pairs.inner=Signed(4) \
                 pairs.other=Text(\"x\") numbers=Array([Signed(1), Signed(2)]) \
                 mixed=Array([Text(\"1\"), Text(\"b\")]) thread.id=Signed(77) thread.name=Text(\"worker\") \
                 trace.id=Text(\"00000000000000000000000000000007\") otel.span_id=Text(\"0000000000000002\") \
                 otel.parent_span_id=Text(\"0000000000000001\") span.kind=Text(\"server\") \
                 otel.status_code=Text(\"ERROR\") otel.status_description=Text(\"no rows\") \
                 otel.scope.name=Text(\"tests\") w3c.tracestate=Text(\"vendor=1\") otlp.flags=Unsigned(257) \
                 otel.links=Array([Text(\"00-00000000000000000000000000000009-0000000000000003-00\")]) \
                 otel.links.0.of=Text(\"link\") otel.dropped_attributes_count=Unsigned(1) \
                 otel.dropped_events_count=Unsigned(2)",
                hour + 100
            ),
            &*format!(
                "0 0 0x10000000000001 {}+50 root span.id=Unsigned(1) \
                 trace.id=Text(\"00000000000000000000000000000007\") otel.span_id=Text(\"0000000000000001\") \
                 otel.scope.name=Text(\"tests\")",
                hour
            ),
        ]
    );
    assert!(all.iter().any(|one| one.starts_with("anytrace.thread stream=Unsigned(1) name=Text(\"worker\")")));
    assert!(
        all.iter().any(|one| one.starts_with("anytrace.resource id=") && one.contains("service.name=Text(\"shop\")"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn many_senders_at_once_lose_nothing() {
    let collector = Collector::start(|options| options.store.rotate_events = Some(1000));
    let mut tasks = tokio::task::JoinSet::new();
    for sender in 0..16_u64 {
        let mut client = client(collector.address()).await;
        if sender % 2 == 0 {
            client = client.send_compressed(CompressionEncoding::Gzip);
        }
        tasks.spawn(async move {
            for round in 0..20 {
                // Four services, each with four senders.
                let spans = (1..=100).map(|n| span(sender << 32 | round << 16 | n, 0, "work")).collect();
                client.export(request(&format!("service-{}", sender % 4), spans)).await.unwrap();
            }
        });
    }
    tasks.join_all().await;
    let (report, _folder) = collector.stop();
    assert_eq!((report.events, report.totals.lost, report.totals.duplicates), (32_000, 0, 0));
    assert_eq!((report.sessions.len(), report.is_closed()), (4, true));
    assert!(report.sessions.iter().all(|session| session.all.received == 8000));
}

#[tokio::test(flavor = "multi_thread")]
async fn times_that_are_none_are_kept_and_do_no_harm() {
    let collector = Collector::start(|_| {});
    let mut client = client(collector.address()).await;
    let backward = Span { end_time_unix_nano: NOON - 5, ..span(1, 0, "backward") };
    let unknown = Span { start_time_unix_nano: 0, end_time_unix_nano: 0, ..span(2, 0, "unknown") };
    let unnamed = Span { span_id: vec![1, 2], trace_id: Vec::new(), ..span(3, 0, "unnamed") };
    client.export(request("a", vec![backward, unknown, unnamed])).await.unwrap();
    // Two hours before the first: another recording begins, with an earlier epoch.
    let early = Span { start_time_unix_nano: NOON - 7200 * 1_000_000_000, ..span(4, 0, "early") };
    client.export(request("a", vec![early])).await.unwrap();
    let (report, folder) = collector.stop();
    assert_eq!((report.events, report.sessions.len(), report.is_closed()), (4, 2, true));
    let all = packets(&folder.path().join("traces")).join("\n");
    let backward = format!("otlp.start_time_unix_nano=Unsigned({})", NOON + 100);
    assert!(all.contains(&backward) && all.contains(&format!("otlp.end_time_unix_nano=Unsigned({})", NOON - 5)));
    assert!(all.contains("unknown span.id=Unsigned(2)") && all.contains("otlp.start_time_unix_nano=Unsigned(0)"));
    assert!(all.contains("unnamed otel.span_id=Text(\"0102\")"), "{all}");
    assert!(all.contains(&format!("+{} early", 7200 * 1_000_000_000_u64 + 450)), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_span_longer_than_the_collector_takes_is_refused_alone() {
    let collector = Collector::start(|options| options.caps.packet_bytes = 4096);
    let mut client = client(collector.address()).await;
    let long = Span { attributes: vec![text("long", &"x".repeat(5000))], ..span(1, 0, "long") };
    let answer = client.export(request("a", vec![long, span(2, 0, "short")])).await.unwrap().into_inner();
    let refused = answer.partial_success.unwrap();
    assert_eq!(refused.rejected_spans, 1);
    assert!(refused.error_message.contains("longer than the collector takes"), "{}", refused.error_message);
    let (report, _folder) = collector.stop();
    assert_eq!((report.events, report.totals.lost, report.damaged_places), (1, 0, 0));
}

/// Sends a request over HTTP; returns the status and the rest of the answer.
fn post(address: &str, path: &str, headers: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let length = body.len();
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // A sender of too much gets its answer before it has sent all.
    let _ = stream.write_all(body);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    (answer.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0), answer)
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut to = GzEncoder::new(Vec::new(), Compression::fast());
    to.write_all(bytes).unwrap();
    to.finish().unwrap()
}

#[test]
fn http_takes_protobuf_and_json_with_and_without_gzip() {
    let collector = Collector::start(|_| {});
    let address = collector.address();
    let message = request("web", vec![span(1, 0, "a")]);
    let (protobuf, json) = (message.encode_to_vec(), serde_json::to_vec(&message).unwrap());
    let (is_protobuf, is_json) =
        ("Content-Type: application/x-protobuf\r\n", "Content-Type: application/json; charset=utf-8\r\n");
    let gzip = "Content-Encoding: gzip\r\n";
    for (headers, body) in [
        (is_protobuf.to_owned(), protobuf.clone()),
        (is_json.to_owned(), json.clone()),
        (format!("{is_protobuf}{gzip}"), zipped(&protobuf)),
        (format!("{is_json}{gzip}"), zipped(&json)),
    ] {
        let (status, answer) = post(address, "/v1/traces", &headers, &body);
        assert_eq!(status, 200, "{answer}");
    }
    // The empty answer of protobuf has no bytes; that of JSON is an object.
    assert!(ExportTraceServiceResponse::decode(&b""[..]).unwrap().partial_success.is_none());
    assert!(post(address, "/v1/traces", is_json, &json).1.contains("{"));
    let (report, _folder) = collector.stop();
    assert_eq!((report.events, report.totals.lost), (5, 0));
}

#[test]
fn what_is_no_request_is_refused_and_does_no_harm() {
    let collector = Collector::start(|_| {});
    let address = collector.address().to_owned();
    let message = request("web", vec![span(1, 0, "a")]).encode_to_vec();
    let is_protobuf = "Content-Type: application/x-protobuf\r\n";
    let gzip = format!("{is_protobuf}Content-Encoding: gzip\r\n");
    let bomb = zipped(&vec![0; 17 << 20]);
    assert!(bomb.len() < 1 << 20);
    let is_json = "Content-Type: application/json\r\n";
    let deep = format!("{}{}", "{\"resourceSpans\":".repeat(5000), "[".repeat(5000));
    for (path, headers, body, expected) in [
        ("/v1/traces", "Content-Type: text/plain\r\n", &message[..], 415),
        ("/v1/traces", "", &message[..], 415),
        ("/v1/logs", is_protobuf, &message[..], 404),
        ("/v1/traces", is_protobuf, b"no protobuf", 400),
        ("/v1/traces", is_protobuf, &message[..message.len() - 3], 400),
        ("/v1/traces", is_json, b"{", 400),
        ("/v1/traces", is_json, deep.as_bytes(), 400),
        ("/v1/traces", &gzip, &message[..], 400),
        ("/v1/traces", &gzip, &zipped(&message)[..20], 400),
        ("/v1/traces", &gzip, &bomb[..], 413),
        ("/v1/traces", "Content-Type: application/x-protobuf\r\nContent-Encoding: br\r\n", &message[..], 400),
        ("/v1/traces", is_protobuf, &vec![0; 17 << 20], 413),
    ] {
        let (status, answer) = post(&address, path, headers, body);
        assert_eq!(status, expected, "{path} {headers} {answer}");
    }
    // Bytes that are no HTTP, and connections that say nothing.
    let _mute: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(&address).unwrap()).collect();
    for garbage in [
        &b"\0\0\0\0garbage\r\n\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n",
    ] {
        TcpStream::connect(&address).unwrap().write_all(garbage).unwrap();
    }
    assert_eq!(post(&address, "/v1/traces", is_protobuf, &message).0, 200);
    assert_eq!(post(&address, "/v1/traces", is_protobuf, &ExportTraceServiceRequest::default().encode_to_vec()).0, 200);
    let (report, _folder) = collector.stop();
    assert_eq!((report.events, report.damaged_places), (1, 0));
}
