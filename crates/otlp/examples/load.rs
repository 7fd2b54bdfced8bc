//! Sends spans by gRPC on several connections and says how many a second were stored.
//!
//! `anytrace heph collect --listen otlp://127.0.0.1:4317 -o traces`, and beside it
//! `cargo run --release -p anytrace-otlp --example load -- 127.0.0.1:4317 4 200`: four connections with 200 requests of
//! 512 spans each. Each connection is a service of its own.

#![allow(clippy::print_stdout, reason = "it prints what it measured")]

use std::error::Error;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};
use tokio::task::JoinSet;

/// Spans of a request, as many as exporters send by default.
const SPANS: u64 = 512;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |name: &str| arguments.next().ok_or(format!("no {name}"));
    let (address, connections, requests) =
        (next("address")?, next("connections")?.parse()?, next("requests")?.parse()?);
    let begun = Instant::now();
    let mut senders = JoinSet::new();
    for sender in 0..connections {
        senders.spawn(send(format!("http://{address}"), sender, requests));
    }
    for sent in senders.join_all().await {
        sent?;
    }
    let (spans, seconds) = (connections * requests * SPANS, begun.elapsed().as_secs_f64());
    println!("{spans} spans in {seconds:.2} s: {:.0} a second", spans as f64 / seconds);
    Ok(())
}

async fn send(to: String, sender: u64, requests: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut client = TraceServiceClient::connect(to).await?;
    for request in 0..requests {
        client.export(spans(sender, request)).await?;
    }
    Ok(())
}

/// A request, with attributes such as those of a web server.
fn spans(sender: u64, request: u64) -> ExportTraceServiceRequest {
    let pair = |key: &str, value: Value| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let span = |number: u64| {
        let id = sender << 48 | request << 16 | (number + 1);
        // Eight spans are a trace.
        let (trace, parent) = (u128::from(id - number % 8), if number.is_multiple_of(8) { 0 } else { id - 1 });
        Span {
            trace_id: (trace << 64 | trace).to_be_bytes().to_vec(),
            span_id: id.to_be_bytes().to_vec(),
            parent_span_id: if parent == 0 { Vec::new() } else { parent.to_be_bytes().to_vec() },
            name: "GET /orders/{id}".to_owned(),
            kind: 2,
            start_time_unix_nano: now + number,
            end_time_unix_nano: now + number + 1000,
            attributes: vec![
                pair("http.request.method", Value::StringValue("GET".to_owned())),
                pair("http.response.status_code", Value::IntValue(200)),
                pair("url.path", Value::StringValue(format!("/orders/{id}"))),
                pair("server.address", Value::StringValue("shop.internal".to_owned())),
            ],
            ..Span::default()
        }
    };
    let name = pair("service.name", Value::StringValue(format!("shop-{sender}")));
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource { attributes: vec![name], ..Resource::default() }),
            scope_spans: vec![ScopeSpans { spans: (0..SPANS).map(span).collect(), ..ScopeSpans::default() }],
            ..ResourceSpans::default()
        }],
    }
}
