//! Events of Heph as spans of OTLP.
//!
//! An event that has a length is a span; a point is an event of the span around it (`span.parent`), and where it has none
//! a span without length. What came by OTLP becomes what it was. Of `tracing-heph`'s recordings:
//!
//! - a trace is what is below a root span, or a task: what has one substream;
//! - where lives are recorded, they are the spans, and each run of a span is a child of it; otherwise the first run is
//!   the span, to which parents and further runs refer.

use std::collections::BTreeMap;

use anytrace_core::hash::{Map, Set};
use anytrace_heph::{Event, Metadata};
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, span};

use super::ids;
use super::values::{self, Read, Unsigned};

/// Set in the substreams of lives, as in `tracing-heph`.
const LIFE: u64 = 1 << 52;

/// A request is sent when it has that many spans, or bytes of their events.
const SPANS_ENOUGH: u64 = 512;
const BYTES_ENOUGH: usize = 512 << 10;

/// Most bytes of points that wait for their spans.
const POINT_BYTES_MAX: usize = 16 << 20;

/// Spans of a session without a life after which none is expected.
const FIRSTS_MAX: usize = 1 << 16;

/// What a file says of its events.
#[derive(Debug, Default)]
pub(super) struct Source {
    session: u128,
    epoch_ns: u64,
}

/// Spans for a request.
pub(super) struct Taken {
    pub(super) resources: Vec<ResourceSpans>,
    pub(super) spans: u64,
}

/// Collects spans.
#[derive(Default)]
pub(super) struct Converter {
    sessions: Map<u128, Session>,
    /// Spans by session, resource and scope.
    ready: BTreeMap<u128, BTreeMap<(String, String), Vec<Span>>>,
    /// Events that were taken so far.
    pub(super) events: u64,
    spans: u64,
    bytes: usize,
    point_bytes: usize,
}

/// A recording.
#[derive(Default)]
struct Session {
    resource: Resource,
    schema_url: String,
    unsigned: Unsigned,
    threads: Map<u32, String>,
    /// Points that wait for the event of their span.
    points: Map<u64, Vec<span::Event>>,
    has_lives: bool,
    is_closed: bool,
    /// Spans whose first run was sent as the span, because no life was seen until then.
    firsts: Set<u64>,
}

impl Converter {
    pub(super) fn is_empty(&self) -> bool {
        self.spans == 0
    }

    /// True when a request is worth it.
    pub(super) fn has_enough(&self) -> bool {
        self.spans >= SPANS_ENOUGH || self.bytes >= BYTES_ENOUGH
    }

    /// The spans for a request.
    pub(super) fn take(&mut self) -> Taken {
        let resource_spans = |(session, scopes): (u128, BTreeMap<(String, String), Vec<Span>>)| {
            let known = self.sessions.get(&session);
            let scope_spans = scopes.into_iter().map(|((name, version), spans)| ScopeSpans {
                scope: Some(values::scope(name, version)),
                spans,
                schema_url: String::new(),
            });
            ResourceSpans {
                resource: known.map(|session| session.resource.clone()),
                scope_spans: scope_spans.collect(),
                schema_url: known.map(|session| session.schema_url.clone()).unwrap_or_default(),
            }
        };
        let resources = std::mem::take(&mut self.ready).into_iter().map(resource_spans).collect();
        self.bytes = 0;
        // Nothing of theirs follows.
        self.sessions.retain(|_, session| !session.is_closed);
        Taken { resources, spans: std::mem::take(&mut self.spans) }
    }

    pub(super) fn metadata(&mut self, source: &mut Source, metadata: &Metadata<'_>) {
        source.epoch_ns = metadata.epoch_ns().unwrap_or(source.epoch_ns);
        if let Some(session) = metadata.session() {
            source.session = session.id;
            let known = self.sessions.entry(session.id).or_default();
            if known.resource.attributes.is_empty() {
                known.resource.attributes = values::resource_of(&session);
            }
        } else if let Some(id) = metadata.resource() {
            let known = self.sessions.entry(id).or_default();
            let mut attributes: Vec<KeyValue> = values::pairs(metadata.attributes().skip(1));
            known.schema_url = values::take_text(&mut attributes, "schema_url");
            known.resource.attributes = attributes;
            known.unsigned = Unsigned::Truths;
        } else if let Some((stream, name)) = metadata.thread() {
            let known = self.sessions.entry(source.session).or_default();
            known.threads.insert(stream, name.to_owned());
        } else if let Some(account) = metadata.account().filter(|account| account.is_closed) {
            self.end_session(account.id);
            self.sessions.entry(account.id).or_default().is_closed = true;
        }
    }

    pub(super) fn event(&mut self, source: &Source, event: &Event<'_>) {
        self.events += 1;
        let session = self.sessions.entry(source.session).or_default();
        let read = values::read(event.attributes(), session.unsigned);
        let header = event.header;
        let times = (source.epoch_ns.saturating_add(header.start_ns), source.epoch_ns.saturating_add(header.end_ns));
        let bytes = event.description().len() + read.bytes;
        if read.span == 0 && read.span_id.is_empty() && header.start_ns == header.end_ns && read.parent != 0 {
            let point = span::Event {
                time_unix_nano: times.0,
                name: event.description().to_owned(),
                attributes: read.attributes,
                dropped_attributes_count: read.dropped_attributes,
            };
            if self.point_bytes < POINT_BYTES_MAX {
                self.point_bytes += values::bytes_of_point(&point);
                session.points.entry(read.parent).or_default().push(point);
                return;
            }
            let trace = trace_id(source.session, header.substream, read.trace_id);
            let parent = ids::span(source.session, read.parent, 0).to_vec();
            let id = ids::span(source.session, u64::from(header.stream) << 32 | u64::from(header.counter), 4);
            return self.push(source.session, lone(point, trace, id, parent), (String::new(), String::new()), bytes);
        }
        let (id, parent) = session.ids(source.session, header.substream & LIFE != 0, header, &read);
        let mut points =
            if read.span == 0 { Vec::new() } else { session.points.remove(&read.span).unwrap_or_default() };
        points.sort_by_key(|point| point.time_unix_nano);
        let name = session.threads.get(&header.stream).map(String::as_str);
        let mut attributes = read.attributes;
        values::push_thread(&mut attributes, header.stream, name);
        let span = Span {
            trace_id: trace_id(source.session, header.substream, read.trace_id),
            span_id: id,
            parent_span_id: parent,
            trace_state: read.trace_state,
            flags: read.flags,
            name: event.description().to_owned(),
            kind: read.kind,
            start_time_unix_nano: read.start_ns.unwrap_or(times.0),
            end_time_unix_nano: read.end_ns.unwrap_or(times.1),
            attributes,
            dropped_attributes_count: read.dropped_attributes,
            events: points,
            dropped_events_count: read.dropped_events,
            links: read.links,
            dropped_links_count: read.dropped_links,
            status: read.status,
        };
        let of_points: usize = span.events.iter().map(values::bytes_of_point).sum();
        self.point_bytes = self.point_bytes.saturating_sub(of_points);
        self.push(source.session, span, read.scope, bytes + of_points);
    }

    fn push(&mut self, session: u128, span: Span, scope: (String, String), bytes: usize) {
        self.ready.entry(session).or_default().entry(scope).or_default().push(span);
        self.spans += 1;
        self.bytes += bytes;
    }

    /// A file is read to its end. Without a session nothing else belongs to what is in it.
    pub(super) fn end(&mut self, source: &Source) {
        if source.session == 0 {
            self.end_session(0);
        }
    }

    /// Nothing more comes: points whose spans never ended are sent alone.
    pub(super) fn end_all(&mut self) {
        let all: Vec<u128> = self.sessions.keys().copied().collect();
        all.into_iter().for_each(|session| self.end_session(session));
    }

    fn end_session(&mut self, id: u128) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let waiting = std::mem::take(&mut session.points);
        for (parent, points) in waiting {
            for (number, point) in (0..).zip(points) {
                let bytes = values::bytes_of_point(&point);
                self.point_bytes = self.point_bytes.saturating_sub(bytes);
                // Which trace its span would have been in is not known.
                let own = ids::span(id, parent, 5 + number);
                let span = lone(point, ids::trace(id, 0).to_vec(), own, ids::span(id, parent, 0).to_vec());
                self.push(id, span, (String::new(), String::new()), bytes);
            }
        }
    }
}

impl Session {
    /// The ids of the span that an event is, and of its parent.
    fn ids(&mut self, session: u128, is_life: bool, header: anytrace_heph::Header, read: &Read) -> (Vec<u8>, Vec<u8>) {
        let of = |span: u64, view: u64| if span == 0 { Vec::new() } else { ids::span(session, span, view).to_vec() };
        let parent = || if read.parent_id.is_empty() { of(read.parent, 0) } else { read.parent_id.clone() };
        if !read.span_id.is_empty() {
            return (read.span_id.clone(), parent());
        }
        if read.span == 0 {
            let number = u64::from(header.stream) << 32 | u64::from(header.counter);
            return (ids::span(session, number, 4).to_vec(), parent());
        }
        if is_life {
            self.has_lives = true;
            let view = if self.firsts.remove(&read.span) { u64::MAX } else { 0 };
            return (of(read.span, view), parent());
        }
        if self.has_lives || read.poll > 0 {
            return (of(read.span, read.poll + 1), of(read.span, 0));
        }
        if self.firsts.len() < FIRSTS_MAX {
            self.firsts.insert(read.span);
        }
        (of(read.span, 0), parent())
    }
}

/// The trace that an event belongs to.
fn trace_id(session: u128, substream: u64, known: Vec<u8>) -> Vec<u8> {
    if known.is_empty() { ids::trace(session, substream & !LIFE).to_vec() } else { known }
}

/// A span without length, for a point that is in none.
fn lone(point: span::Event, trace: Vec<u8>, id: [u8; 8], parent: Vec<u8>) -> Span {
    Span {
        trace_id: trace,
        span_id: id.to_vec(),
        parent_span_id: parent,
        name: point.name,
        kind: span::SpanKind::Internal as i32,
        start_time_unix_nano: point.time_unix_nano,
        end_time_unix_nano: point.time_unix_nano,
        attributes: point.attributes,
        dropped_attributes_count: point.dropped_attributes_count,
        ..Span::default()
    }
}
