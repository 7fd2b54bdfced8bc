//! A span of OTLP as events of Heph: one for the span, as long as it, and a point for each of its events.
//!
//! The span's event has the substream of a span's life: spans overlap on their threads as they like. Substream and numbers
//! are those that `tracing-heph` writes, so all tools join spans, events and traces as they do there. What OTLP says
//! beyond that has the names of OpenTelemetry's specification for formats other than its own (`otel.status_code`, …).

use heph_encoder::{Error, Event, Header, event};
use opentelemetry_proto::tonic::common::v1::{InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, span};

use super::values::push_all;

/// Set in the substreams of events that are as long as a span, as `tracing-heph` does.
const LIFE: u64 = 1 << 52;

/// Bytes of the ids of a trace and of a span.
const TRACE_ID_BYTES: usize = 16;
const SPAN_ID_BYTES: usize = 8;

/// The numbers of a span in its recording; 0: it has none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Place {
    pub(crate) stream: u32,
    /// Of its trace.
    pub(crate) trace: u64,
    pub(crate) span: u64,
    pub(crate) parent: u64,
}

/// The id of a trace, if it is one.
pub(crate) fn trace_id(bytes: &[u8]) -> Option<u128> {
    let bytes: [u8; TRACE_ID_BYTES] = bytes.try_into().ok()?;
    Some(u128::from_be_bytes(bytes)).filter(|id| *id != 0)
}

/// The id of a span, if it is one, as no span of another trace has it.
pub(crate) fn span_id(trace: Option<u128>, bytes: &[u8]) -> Option<u128> {
    let bytes: [u8; SPAN_ID_BYTES] = bytes.try_into().ok()?;
    let id = Some(u64::from_be_bytes(bytes)).filter(|id| *id != 0)?;
    Some(trace.unwrap_or(0) ^ u128::from(id) << 64)
}

/// The thread that a span says it ran on: its number and name.
pub(crate) fn thread(attributes: &[KeyValue]) -> (Option<i64>, Option<&str>) {
    let (mut id, mut name) = (None, None);
    for pair in attributes {
        match (pair.key.as_str(), pair.value.as_ref().and_then(|value| value.value.as_ref())) {
            ("thread.id", Some(any_value::Value::IntValue(number))) => id = Some(*number),
            ("thread.name", Some(any_value::Value::StringValue(text))) => name = Some(text.as_str()),
            _ => {}
        }
    }
    (id, name)
}

/// When a span began and ended, as far as that can be: one that says only one of both is a point.
pub(crate) fn times(span: &Span) -> (u64, u64) {
    match (span.start_time_unix_nano, span.end_time_unix_nano) {
        (0, end) => (end, end),
        (start, end) => (start, end.max(start)),
    }
}

/// When an event of a span was, or when the span began if it does not say.
pub(crate) fn time(span: &Span, event: &span::Event) -> u64 {
    if event.time_unix_nano == 0 { times(span).0 } else { event.time_unix_nano }
}

/// Appends a span's own event.
pub(crate) fn push_span(
    out: &mut Vec<u8>,
    span: &Span,
    scope: Option<&InstrumentationScope>,
    place: Place,
    counter: u32,
    epoch_ns: u64,
) -> Result<(), Error> {
    let (start, end) = times(span);
    let header = Header {
        stream: place.stream,
        counter,
        substream: place.trace | LIFE,
        start_ns: start.saturating_sub(epoch_ns),
        end_ns: end.saturating_sub(epoch_ns),
    };
    let mut made = event(out, &header, &span.name);
    numbers(&mut made, place.span, place.parent);
    push_all(&mut made, "", &span.attributes);
    id(&mut made, "trace.id", &span.trace_id);
    id(&mut made, "otel.span_id", &span.span_id);
    id(&mut made, "otel.parent_span_id", &span.parent_span_id);
    if let Ok(kind) = SpanKind::try_from(span.kind)
        && kind != SpanKind::Unspecified
    {
        let word = kind.as_str_name().trim_start_matches("SPAN_KIND_").to_ascii_lowercase();
        made.str("span.kind", &word);
    }
    if let Some(status) = &span.status {
        match StatusCode::try_from(status.code) {
            Ok(StatusCode::Ok) => made.str("otel.status_code", "OK"),
            Ok(StatusCode::Error) => made.str("otel.status_code", "ERROR"),
            _ => &mut made,
        };
        text(&mut made, "otel.status_description", &status.message);
    }
    if (start, end) != (span.start_time_unix_nano, span.end_time_unix_nano) || start == 0 {
        // What it said, where that can be no time of an event.
        made.u64("otlp.start_time_unix_nano", span.start_time_unix_nano);
        made.u64("otlp.end_time_unix_nano", span.end_time_unix_nano);
    }
    if let Some(scope) = scope {
        text(&mut made, "otel.scope.name", &scope.name);
        text(&mut made, "otel.scope.version", &scope.version);
        push_all(&mut made, "otel.scope.", &scope.attributes);
    }
    text(&mut made, "w3c.tracestate", &span.trace_state);
    count(&mut made, "otlp.flags", span.flags);
    links(&mut made, &span.links);
    count(&mut made, "otel.dropped_attributes_count", span.dropped_attributes_count);
    count(&mut made, "otel.dropped_events_count", span.dropped_events_count);
    count(&mut made, "otel.dropped_links_count", span.dropped_links_count);
    made.finish()
}

/// Appends the point that an event of a span is.
pub(crate) fn push_point(
    out: &mut Vec<u8>,
    of: &Span,
    point: &span::Event,
    place: Place,
    counter: u32,
    epoch_ns: u64,
) -> Result<(), Error> {
    let at = time(of, point).saturating_sub(epoch_ns);
    let header = Header { stream: place.stream, counter, substream: place.trace, start_ns: at, end_ns: at };
    let mut made = event(out, &header, &point.name);
    numbers(&mut made, 0, place.span);
    push_all(&mut made, "", &point.attributes);
    id(&mut made, "trace.id", &of.trace_id);
    count(&mut made, "otel.dropped_attributes_count", point.dropped_attributes_count);
    made.finish()
}

/// The attributes that come first.
fn numbers(made: &mut Event<'_, Vec<u8>>, span: u64, parent: u64) {
    for (name, number) in [("span.id", span), ("span.parent", parent)] {
        if number != 0 {
            made.u64(name, number);
        }
    }
}

fn id(made: &mut Event<'_, Vec<u8>>, name: &str, bytes: &[u8]) {
    if bytes.iter().any(|byte| *byte != 0) {
        made.str(name, &hex(bytes));
    }
}

/// Links, each as W3C's `traceparent`, and their attributes with the number of the link.
fn links(made: &mut Event<'_, Vec<u8>>, links: &[Link]) {
    if links.is_empty() {
        return;
    }
    let parent = |link: &Link| format!("00-{}-{}-{:02x}", hex(&link.trace_id), hex(&link.span_id), link.flags & 0xff);
    made.strs("otel.links", &links.iter().map(parent).collect::<Vec<_>>());
    for (number, link) in links.iter().enumerate() {
        push_all(made, &format!("otel.links.{number}."), &link.attributes);
        text(made, &format!("otel.links.{number}.w3c.tracestate"), &link.trace_state);
        count(made, &format!("otel.links.{number}.otel.dropped_attributes_count"), link.dropped_attributes_count);
    }
}

fn text(made: &mut Event<'_, Vec<u8>>, name: &str, text: &str) {
    if !text.is_empty() {
        made.str(name, text);
    }
}

fn count(made: &mut Event<'_, Vec<u8>>, name: &str, count: u32) {
    if count != 0 {
        made.u64(name, count.into());
    }
}

fn hex(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(2 * bytes.len());
    anytrace_core::text::push_hex_bytes(&mut out, bytes);
    String::from_utf8(out).unwrap_or_default()
}
