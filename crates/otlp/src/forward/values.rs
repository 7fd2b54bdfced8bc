//! Attributes of Heph as those of OTLP, and what among them OTLP has fields for.

use anytrace_heph::{Attribute, Attributes, Session, Value};
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::span::{self, Link, SpanKind};
use opentelemetry_proto::tonic::trace::v1::{Status, status};

/// What the attributes of an event say.
#[derive(Debug, Default)]
pub(super) struct Read {
    pub(super) span: u64,
    pub(super) parent: u64,
    pub(super) poll: u64,
    pub(super) trace_id: Vec<u8>,
    pub(super) span_id: Vec<u8>,
    pub(super) parent_id: Vec<u8>,
    pub(super) kind: i32,
    pub(super) status: Option<Status>,
    pub(super) scope: (String, String),
    pub(super) trace_state: String,
    pub(super) flags: u32,
    pub(super) links: Vec<Link>,
    pub(super) start_ns: Option<u64>,
    pub(super) end_ns: Option<u64>,
    pub(super) dropped_attributes: u32,
    pub(super) dropped_events: u32,
    pub(super) dropped_links: u32,
    unsigned: Unsigned,
    /// All others.
    pub(super) attributes: Vec<KeyValue>,
    /// About how long all are.
    pub(super) bytes: usize,
}

/// What unsigned numbers of a recording are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Unsigned {
    #[default]
    Numbers,
    /// In what came by OTLP, which has none: truth values.
    Truths,
}

/// Reads the attributes of an event.
pub(super) fn read(all: Attributes<'_>, unsigned: Unsigned) -> Read {
    let mut made = Read { kind: SpanKind::Internal as i32, unsigned, ..Read::default() };
    for attribute in all {
        made.bytes += attribute.name.len() + bytes_of(attribute.value);
        if !made.field(&attribute) {
            made.attributes.push(pair(&attribute, unsigned));
        }
    }
    made
}

impl Read {
    /// Takes an attribute that OTLP has a field for; false for any other. They are what `collect` makes of OTLP.
    fn field(&mut self, attribute: &Attribute<'_>) -> bool {
        match (attribute.name, attribute.value) {
            ("span.id", Value::Unsigned(number)) if self.span == 0 && self.attributes.is_empty() => self.span = number,
            ("span.parent", Value::Unsigned(number)) if self.parent == 0 && self.attributes.is_empty() => {
                self.parent = number;
            }
            ("span.poll", Value::Unsigned(number)) if self.span != 0 && self.attributes.is_empty() => {
                self.poll = number
            }
            ("trace.id", Value::Text(text)) => return set_id(&mut self.trace_id, text, 16),
            ("otel.span_id", Value::Text(text)) => return set_id(&mut self.span_id, text, 8),
            ("otel.parent_span_id", Value::Text(text)) => return set_id(&mut self.parent_id, text, 8),
            ("span.kind", Value::Text(text)) => {
                let name = format!("SPAN_KIND_{}", text.to_ascii_uppercase());
                let Some(kind) = SpanKind::from_str_name(&name) else { return false };
                self.kind = kind as i32;
            }
            ("otel.status_code", Value::Text("OK")) => self.status().code = status::StatusCode::Ok as i32,
            ("otel.status_code", Value::Text("ERROR")) => self.status().code = status::StatusCode::Error as i32,
            ("otel.status_description", Value::Text(text)) => text.clone_into(&mut self.status().message),
            ("otel.scope.name", Value::Text(text)) => text.clone_into(&mut self.scope.0),
            ("otel.scope.version", Value::Text(text)) => text.clone_into(&mut self.scope.1),
            ("w3c.tracestate", Value::Text(text)) => text.clone_into(&mut self.trace_state),
            ("otlp.flags", Value::Unsigned(number)) => self.flags = number as u32,
            ("otlp.start_time_unix_nano", Value::Unsigned(number)) => self.start_ns = Some(number),
            ("otlp.end_time_unix_nano", Value::Unsigned(number)) => self.end_ns = Some(number),
            ("otel.links", Value::Array(array)) => {
                let links: Option<Vec<Link>> = array.values().map(link).collect();
                let Some(links) = links else { return false };
                self.links = links;
            }
            ("otel.dropped_attributes_count", Value::Unsigned(number)) => self.dropped_attributes = number as u32,
            ("otel.dropped_events_count", Value::Unsigned(number)) => self.dropped_events = number as u32,
            ("otel.dropped_links_count", Value::Unsigned(number)) => self.dropped_links = number as u32,
            (name, _) => return self.field_of_link(name, attribute),
        }
        true
    }

    /// Takes an attribute of a link, `otel.links.NUMBER.NAME`.
    fn field_of_link(&mut self, name: &str, attribute: &Attribute<'_>) -> bool {
        let Some((number, name)) = name.strip_prefix("otel.links.").and_then(|rest| rest.split_once('.')) else {
            return false;
        };
        let Some(link) = number.parse().ok().and_then(|number: usize| self.links.get_mut(number)) else { return false };
        match (name, attribute.value) {
            ("w3c.tracestate", Value::Text(text)) => text.clone_into(&mut link.trace_state),
            ("otel.dropped_attributes_count", Value::Unsigned(count)) => link.dropped_attributes_count = count as u32,
            (name, value) => link.attributes.push(pair(&Attribute { name, value }, self.unsigned)),
        }
        true
    }

    fn status(&mut self) -> &mut Status {
        self.status.get_or_insert_default()
    }
}

fn set_id(id: &mut Vec<u8>, text: &str, bytes: usize) -> bool {
    match from_hex(text).filter(|found| found.len() == bytes) {
        Some(found) => {
            *id = found;
            true
        }
        None => false,
    }
}

/// A link, as W3C's `traceparent`.
fn link(value: Value<'_>) -> Option<Link> {
    let Value::Text(text) = value else { return None };
    let mut parts = text.strip_prefix("00-")?.split('-');
    let (trace_id, span_id) = (from_hex(parts.next()?)?, from_hex(parts.next()?)?);
    let flags = u32::from_str_radix(parts.next()?, 16).ok()?;
    Some(Link { trace_id, span_id, flags, ..Link::default() })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |pair: &[u8; 2]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    rest.is_empty().then(|| pairs.iter().map(byte).collect()).flatten()
}

/// About how long a value is.
fn bytes_of(value: Value<'_>) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Array(array) => array.values().map(bytes_of).sum(),
        _ => 8,
    }
}

/// About how long a point is; the same as when it was read, so that memory is given back as it was taken.
pub(super) fn bytes_of_point(point: &span::Event) -> usize {
    use prost::Message;
    point.encoded_len()
}

/// Attributes of a resource as those of OTLP.
pub(super) fn pairs<'a>(all: impl Iterator<Item = Attribute<'a>>) -> Vec<KeyValue> {
    all.map(|attribute| pair(&attribute, Unsigned::Truths)).collect()
}

fn pair(attribute: &Attribute<'_>, unsigned: Unsigned) -> KeyValue {
    KeyValue { key: attribute.name.to_owned(), value: Some(any(attribute.value, unsigned)), ..KeyValue::default() }
}

/// A value. Unsigned numbers that OTLP's signed ones cannot hold are text.
fn any(value: Value<'_>, unsigned: Unsigned) -> AnyValue {
    let value = match value {
        Value::Unsigned(number @ (0 | 1)) if unsigned == Unsigned::Truths => any_value::Value::BoolValue(number == 1),
        Value::Unsigned(number) => match i64::try_from(number) {
            Ok(number) => any_value::Value::IntValue(number),
            Err(_) => any_value::Value::StringValue(number.to_string()),
        },
        Value::Signed(number) => any_value::Value::IntValue(number),
        Value::Float(number) => any_value::Value::DoubleValue(number),
        Value::Text(text) => any_value::Value::StringValue(text.to_owned()),
        Value::Array(array) => any_value::Value::ArrayValue(ArrayValue {
            values: array.values().map(|value| any(value, unsigned)).collect(),
        }),
    };
    AnyValue { value: Some(value) }
}

fn new_pair(key: &str, value: Value<'_>) -> KeyValue {
    pair(&Attribute { name: key, value }, Unsigned::Numbers)
}

/// What a session says of its program, by the names of OpenTelemetry's conventions.
pub(super) fn resource_of(session: &Session) -> Vec<KeyValue> {
    let id = format!("{:032x}", session.id);
    let mut made = vec![
        new_pair("service.name", Value::Text(&session.program)),
        new_pair("service.instance.id", Value::Text(&id)),
        new_pair("telemetry.sdk.name", Value::Text(session.recorder.split(' ').next().unwrap_or_default())),
        new_pair("telemetry.sdk.version", Value::Text(session.recorder.split(' ').nth(1).unwrap_or_default())),
    ];
    if session.process != 0 {
        made.push(new_pair("process.pid", Value::Unsigned(session.process)));
    }
    made
}

/// Adds the thread of a span, where it does not say that itself.
pub(super) fn push_thread(attributes: &mut Vec<KeyValue>, stream: u32, name: Option<&str>) {
    if stream == 0 && name.is_none() || attributes.iter().any(|pair| pair.key == "thread.id") {
        return;
    }
    attributes.push(new_pair("thread.id", Value::Unsigned(stream.into())));
    if let Some(name) = name {
        attributes.push(new_pair("thread.name", Value::Text(name)));
    }
}

/// Takes an attribute that is text out of others; empty if there is none.
pub(super) fn take_text(attributes: &mut Vec<KeyValue>, key: &str) -> String {
    let Some(at) = attributes.iter().position(|pair| pair.key == key) else { return String::new() };
    match attributes.remove(at).value.and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        _ => String::new(),
    }
}

/// A scope.
pub(super) fn scope(name: String, version: String) -> InstrumentationScope {
    InstrumentationScope { name, version, ..InstrumentationScope::default() }
}
