//! The spans of one resource, that is of one process, as a recording: a session with streams, counters and numbers.

use std::hash::{BuildHasher, RandomState};

use anytrace_core::hash::Map;
use heph_encoder::{Account, RESOURCE_OPTION, Session, StreamAccount};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span};

use super::events::{self, Place};
use super::numbers::Numbers;
use super::values::push_all;

/// Most threads that are distinguished; spans of further ones are in stream 0, as those without a thread.
const THREADS_MAX: usize = 4096;

/// How long before the first span of a recording others may have begun.
const MARGIN_NS: u64 = 3600 * 1_000_000_000;

/// Streams in a packet of an account.
const STREAMS_AT_ONCE: usize = 1024;

/// The state of a recording.
#[derive(Debug)]
pub(crate) struct Recording {
    id: u128,
    program: String,
    process: u32,
    recorder: String,
    start_ns: u64,
    epoch_ns: u64,
    resource: Vec<KeyValue>,
    schema: String,
    /// Streams of threads.
    streams: Map<i64, u32>,
    /// Names of threads, by stream.
    names: Vec<Option<String>>,
    /// Events of each stream.
    counted: Vec<u64>,
    spans: Numbers,
    traces: Numbers,
    packet_bytes: u64,
}

/// What became of some spans.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Encoded {
    /// Their packets.
    pub(crate) packets: Vec<u8>,
    /// Spans that cannot be kept, and why the last of them.
    pub(crate) refused: i64,
    pub(crate) why: String,
}

impl Recording {
    /// A new one. `now_ns`: since 1970; `earliest_ns`: when its first span began; `times_before`: how often its beginning
    /// was found too late.
    pub(crate) fn new(
        all: &ResourceSpans,
        now_ns: u64,
        earliest_ns: u64,
        times_before: u32,
        packet_bytes: u64,
    ) -> Self {
        let resource = all.resource.clone().unwrap_or_default();
        let word = |key: &str| match value(&resource, key) {
            Some(any_value::Value::StringValue(text)) => Some(text.as_str()),
            _ => None,
        };
        let process = match value(&resource, "process.pid") {
            Some(any_value::Value::IntValue(number)) => u32::try_from(*number).unwrap_or(0),
            _ => 0,
        };
        let of_recorder = ["telemetry.sdk.name", "telemetry.sdk.language", "telemetry.sdk.version"];
        let recorder: Vec<&str> = of_recorder.into_iter().filter_map(word).collect();
        let random = |n: u8| u128::from(RandomState::new().hash_one((n, now_ns, std::process::id())));
        Self {
            id: random(0) << 64 | random(1),
            program: word("service.name").or_else(|| word("process.executable.name")).unwrap_or("otlp").to_owned(),
            process,
            recorder: if recorder.is_empty() { "otlp".to_owned() } else { recorder.join(" ") },
            start_ns: now_ns,
            epoch_ns: earliest_ns
                .saturating_sub(MARGIN_NS.saturating_mul(1_u64.checked_shl(times_before).unwrap_or(u64::MAX))),
            resource: resource.attributes,
            schema: all.schema_url.clone(),
            streams: Map::default(),
            names: vec![None],
            counted: vec![0],
            spans: Numbers::default(),
            traces: Numbers::default(),
            packet_bytes,
        }
    }

    /// True when a time is one of this recording.
    pub(crate) fn covers(&self, earliest_ns: u64) -> bool {
        earliest_ns >= self.epoch_ns
    }

    /// The packets that begin a connection, or go on with the next one.
    pub(crate) fn begin(&self, part: u64) -> Vec<u8> {
        let mut packets = Vec::new();
        let session = Session {
            id: self.id,
            program: &self.program,
            process: self.process,
            start_ns: self.start_ns,
            recorder: &self.recorder,
            part,
            memory_bytes: 0,
            wants_acks: true,
        };
        // A vector is never full, and none of the packets is long.
        let _ = heph_encoder::epoch(&mut packets, self.epoch_ns);
        let _ = heph_encoder::session(&mut packets, &session);
        let _ = heph_encoder::option_of(&mut packets, RESOURCE_OPTION, |event| {
            event.display("id", format_args!("{:032x}", self.id));
            if !self.schema.is_empty() {
                event.str("schema_url", &self.schema);
            }
            push_all(event, "", &self.resource);
        });
        for (stream, name) in (0..).zip(&self.names) {
            if let Some(name) = name {
                let _ = heph_encoder::thread(&mut packets, stream, name);
            }
        }
        if part > 0 {
            self.push_account(false, &mut packets);
        }
        packets
    }

    /// The packets that end the recording.
    pub(crate) fn end(&self) -> Vec<u8> {
        let mut packets = Vec::new();
        self.push_account(true, &mut packets);
        packets
    }

    fn push_account(&self, is_closed: bool, out: &mut Vec<u8>) {
        let streams: Vec<StreamAccount> = (0..)
            .zip(&self.counted)
            .filter(|(_, counted)| **counted > 0)
            .map(|(stream, &recorded)| StreamAccount { stream, recorded, ..StreamAccount::default() })
            .collect();
        let all = StreamAccount { recorded: self.counted.iter().sum(), ..StreamAccount::default() };
        let all_streams = streams.len() as u64;
        let mut push = |is_closed, streams: &[StreamAccount]| {
            // As above.
            let _ = heph_encoder::account(out, &Account { id: self.id, is_closed, streams, all_streams, all });
        };
        let mut chunks = streams.chunks(STREAMS_AT_ONCE).peekable();
        if chunks.peek().is_none() && is_closed {
            push(true, &[]);
        }
        while let Some(streams) = chunks.next() {
            push(is_closed && chunks.peek().is_none(), streams);
        }
    }

    /// The packets of spans.
    pub(crate) fn encode(&mut self, all: &[ScopeSpans]) -> Encoded {
        let mut made = Encoded::default();
        for scope in all {
            for span in &scope.spans {
                let place = self.place(span, &mut made.packets);
                for point in &span.events {
                    self.push(place.stream, &mut made, |out, counter, epoch_ns| {
                        events::push_point(out, span, point, place, counter, epoch_ns)
                    });
                }
                let is_kept = self.push(place.stream, &mut made, |out, counter, epoch_ns| {
                    events::push_span(out, span, scope.scope.as_ref(), place, counter, epoch_ns)
                });
                made.refused += i64::from(!is_kept);
            }
        }
        made
    }

    /// Appends a packet and counts it; false if it is too long.
    fn push(
        &mut self,
        stream: u32,
        made: &mut Encoded,
        push: impl FnOnce(&mut Vec<u8>, u32, u64) -> Result<(), heph_encoder::Error>,
    ) -> bool {
        let Some(counted) = self.counted.get_mut(stream as usize) else { return false };
        let before = made.packets.len();
        // Modulo 2^32, as the format has it.
        let pushed = push(&mut made.packets, *counted as u32, self.epoch_ns);
        let bytes = (made.packets.len() - before) as u64;
        if pushed.is_err() || bytes > self.packet_bytes {
            made.packets.truncate(before);
            made.why = format!("a span or event of {bytes} bytes is longer than the collector takes");
            return false;
        }
        *counted += 1;
        true
    }

    /// The numbers of a span; names its thread where that is new.
    fn place(&mut self, span: &Span, out: &mut Vec<u8>) -> Place {
        let (thread, name) = events::thread(&span.attributes);
        let stream = thread.map_or(0, |thread| self.stream(thread));
        if let (Some(name), Some(known)) = (name, self.names.get_mut(stream as usize))
            && stream != 0
            && known.as_deref() != Some(name)
        {
            // As above.
            let _ = heph_encoder::thread(out, stream, name);
            *known = Some(name.to_owned());
        }
        let trace = events::trace_id(&span.trace_id);
        // The parent first: it began first.
        let parent = events::span_id(trace, &span.parent_span_id).map_or(0, |id| self.spans.of(id));
        let own = events::span_id(trace, &span.span_id).map_or(0, |id| self.spans.of(id));
        Place { stream, trace: trace.map_or(0, |id| self.traces.of(id)), span: own, parent }
    }

    fn stream(&mut self, thread: i64) -> u32 {
        if let Some(&stream) = self.streams.get(&thread) {
            return stream;
        }
        if self.streams.len() >= THREADS_MAX {
            return 0;
        }
        let stream = u32::try_from(self.counted.len()).unwrap_or(0);
        self.counted.push(0);
        self.names.push(None);
        self.streams.insert(thread, stream);
        stream
    }
}

/// When the first of some spans, or of their events, was; `None` if none says that.
pub(crate) fn earliest(all: &ResourceSpans) -> Option<u64> {
    let spans = all.scope_spans.iter().flat_map(|scope| &scope.spans);
    let times = spans.flat_map(|span| {
        let of_events = span.events.iter().map(move |event| events::time(span, event));
        of_events.chain([events::times(span).0])
    });
    times.filter(|time| *time != 0).min()
}

fn value<'a>(resource: &'a Resource, key: &str) -> Option<&'a any_value::Value> {
    let pair = resource.attributes.iter().find(|pair| pair.key == key)?;
    pair.value.as_ref()?.value.as_ref()
}
