//! The report of the collection and its losses: for people in the command line's printer, for programs as JSON.

use std::time::Duration;

use anytrace_heph::tools::loss::{SessionLoss, StreamLoss};
use serde_json::{Value, json};

use crate::forward::ForwardReport;
use crate::queue::Dropped;
use crate::tally::{DescriptionRow, Percentiles};

/// Most ranges of lost counters of a stream in JSON.
const RANGES_LISTED: usize = 1000;

/// The identity of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceName {
    /// Number in the names of its files; 0 while it has none.
    pub number: u32,
    /// `udp`, `tcp`, `tls`, `otlp`, `unix`, `unixgram` or `file`.
    pub kind: &'static str,
    /// Address, path or process; a path may hold anything a terminal should not be sent.
    pub peer: String,
}

/// What was dropped on purpose.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Datagrams.
    pub datagrams: u64,
    /// Events in them, by their frames.
    pub events: u64,
    /// Bytes.
    pub bytes: u64,
}

impl From<Dropped> for Drops {
    fn from(dropped: Dropped) -> Self {
        Self { datagrams: dropped.datagrams, events: dropped.events, bytes: dropped.bytes }
    }
}

/// One source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceReport {
    /// Its identity.
    pub name: SourceName,
    /// Events kept.
    pub events: u64,
    /// Metadata packets kept.
    pub metadata: u64,
    /// Bytes kept.
    pub bytes: u64,
    /// Files begun.
    pub files: u32,
    /// Places that are not packets.
    pub damaged_places: u64,
    /// Bytes in them.
    pub skipped_bytes: u64,
    /// Bytes of packets whose rest had not arrived when the collection ended.
    pub unfinished_bytes: u64,
    /// Dropped because the queue was full.
    pub dropped: Drops,
    /// Dropped because the source sent faster than it may.
    pub over_rate: Drops,
    /// Events of streams beyond the limit: kept, but their counters are not followed.
    pub uncounted: u64,
    /// Sums over all streams; without ranges.
    pub totals: StreamLoss,
    /// Streams in all.
    pub stream_count: usize,
    /// Streams with losses, duplicates, disorder, restarts or damage, the first of them.
    pub streams: Vec<StreamLoss>,
    /// The session its events belong to: what is lost of them is known there, as other sources may have the rest.
    pub session: Option<u128>,
}

/// True for a stream in which something is not as it was sent.
pub(crate) fn is_worth_listing(stream: &StreamLoss) -> bool {
    stream.lost + stream.duplicates + stream.out_of_order + stream.restarts + stream.malformed > 0
}

/// One address listened on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenerReport {
    /// The address.
    pub address: String,
    /// Receive buffer granted, in bytes; `None` for connections.
    pub receive_buffer_bytes: Option<u64>,
    /// Datagrams the kernel dropped because that buffer was full.
    pub kernel_dropped: u64,
    /// Datagrams that do not begin with a packet, of senders that sent none before.
    pub rejected: u64,
    /// Datagrams longer than any that may be taken.
    pub cut: u64,
    /// Connections or senders above the limits.
    pub refused: u64,
    /// Connections without a good token or certificate, and what machines sent that may not.
    pub unauthorized: u64,
}

/// Why a collection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    /// It has not.
    Running,
    /// It was requested.
    Request,
    /// Its time was over.
    Duration,
    /// It reached the limit on events.
    Events,
    /// All files were read and there is no listener.
    Files,
}

impl EndedBy {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Request => "request",
            Self::Duration => "duration",
            Self::Events => "events",
            Self::Files => "files",
        }
    }
}

/// All of a collection, at its end or before.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Time since the start.
    pub elapsed: Duration,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Events kept.
    pub events: u64,
    /// Metadata packets kept.
    pub metadata: u64,
    /// Bytes kept.
    pub bytes: u64,
    /// Files begun.
    pub files: u64,
    /// Lengths of events.
    pub lengths: Percentiles,
    /// Descriptions with the most events.
    pub descriptions: Vec<DescriptionRow>,
    /// Events whose description is not counted separately.
    pub other_descriptions: u64,
    /// Sources, those that ended first.
    pub sources: Vec<SourceReport>,
    /// Sources that ended and are only counted.
    pub other_sources: u64,
    /// Sums over all sources without a session, the counted ones too, and over all sessions.
    pub totals: StreamLoss,
    /// Of these, those of sources without a session.
    pub without_session: StreamLoss,
    /// Recorders that say what they recorded, each with all its connections, also of earlier collections in the folder.
    pub sessions: Vec<SessionLoss>,
    /// Closed files that were removed for others, because there were too many, or of old age.
    pub removed_files: u64,
    /// Bytes in them.
    pub removed_bytes: u64,
    /// Events that were received and found no room on the disk before the end.
    pub unwritten_events: u64,
    /// How many collections there were in the folder, this one included.
    pub collections: u64,
    /// Datagrams that the kernel dropped in earlier collections.
    pub earlier_kernel_dropped: u64,
    /// Connections and senders refused in earlier collections.
    pub earlier_refused: u64,
    /// Connections and datagrams of those who may not send, in earlier collections.
    pub earlier_unauthorized: u64,
    /// Dropped because the queue was full, all sources together.
    pub dropped: Drops,
    /// Dropped because a source sent faster than it may.
    pub over_rate: Drops,
    /// Damaged places and bytes in them.
    pub damaged_places: u64,
    /// Bytes that are part of no packet.
    pub skipped_bytes: u64,
    /// Bytes of packets whose rest had not arrived when the collection ended.
    pub unfinished_bytes: u64,
    /// Addresses.
    pub listeners: Vec<ListenerReport>,
    /// What was sent on, where that was wanted.
    pub forwarded: Option<ForwardReport>,
}

/// What happened in an interval, and all until now.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Length of the interval.
    pub interval: Duration,
    /// Events kept in it.
    pub events: u64,
    /// Bytes kept in it.
    pub bytes: u64,
    /// All until now.
    pub total: Report,
}

impl Summary {
    /// Events a second in the interval.
    pub fn events_per_second(&self) -> f64 {
        per_second(self.events, self.interval)
    }

    /// Bytes a second in the interval.
    pub fn bytes_per_second(&self) -> f64 {
        per_second(self.bytes, self.interval)
    }

    /// One object: `type` is `summary`.
    pub fn to_json(&self) -> Value {
        let mut made = self.total.json("summary");
        if let Some(map) = made.as_object_mut() {
            map.insert("interval_s".to_owned(), seconds(self.interval).into());
            map.insert("events_per_s".to_owned(), self.events_per_second().round().into());
            map.insert("bytes_per_s".to_owned(), self.bytes_per_second().round().into());
        }
        made
    }
}

fn per_second(number: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { number as f64 / time.as_secs_f64() }
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e3).round() / 1e3
}

impl Report {
    /// One object: `type` is `report`.
    pub fn to_json(&self) -> Value {
        self.json("report")
    }

    /// Datagrams that the kernel dropped, all addresses together.
    pub fn kernel_dropped(&self) -> u64 {
        self.earlier_kernel_dropped + self.listeners.iter().map(|listener| listener.kernel_dropped).sum::<u64>()
    }

    /// Connections and senders refused, all addresses together.
    pub fn refused(&self) -> u64 {
        self.earlier_refused + self.listeners.iter().map(|listener| listener.refused).sum::<u64>()
    }

    /// Connections and datagrams of those who may not send, all addresses together.
    pub fn unauthorized(&self) -> u64 {
        self.earlier_unauthorized + self.listeners.iter().map(|listener| listener.unauthorized).sum::<u64>()
    }

    /// True when everything belongs to sessions that are over, and their ends have arrived.
    pub fn is_closed(&self) -> bool {
        self.without_session.received == 0
            && !self.sessions.is_empty()
            && self.sessions.iter().all(|session| session.is_closed)
    }

    fn json(&self, kind: &str) -> Value {
        let mut made = json!({
            "version": 1,
            "type": kind,
            "elapsed_s": seconds(self.elapsed),
            "ended_by": self.ended_by.word(),
            "events": self.events,
            "metadata": self.metadata,
            "bytes": self.bytes,
            "files": self.files,
            "still_waited_for": self.totals.open,
            "tail_is_unknown": !self.is_closed(),
            "closed": self.is_closed(),
            "removed_files": self.removed_files,
            "removed_bytes": self.removed_bytes,
            "unwritten_events": self.unwritten_events,
            "collections": self.collections,
            "sessions": self.sessions.iter().map(|session| session.to_json(RANGES_LISTED)).collect::<Vec<_>>(),
            "without_session": with(json!({}), self.without_session.named()),
            "kernel_dropped_datagrams": self.kernel_dropped(),
            "queue_dropped": drops(self.dropped),
            "over_rate_dropped": drops(self.over_rate),
            "damaged_places": self.damaged_places,
            "skipped_bytes": self.skipped_bytes,
            "unfinished_bytes": self.unfinished_bytes,
            "refused": self.refused(),
            "unauthorized": self.unauthorized(),
            "lengths": lengths(&self.lengths),
            "descriptions": self.descriptions.iter().map(description).collect::<Vec<_>>(),
            "events_of_other_descriptions": self.other_descriptions,
            "listeners": self.listeners.iter().map(listener).collect::<Vec<_>>(),
            "sources": self.sources.iter().map(source).collect::<Vec<_>>(),
            "other_sources": self.other_sources,
        });
        if let Some(forwarded) = &self.forwarded {
            made["forwarded"] = forwarded.to_json();
        }
        let named = self.totals.named();
        with(made, named.map(|(name, number)| (if name == "lost" { "detectable_lost" } else { name }, number)))
    }
}

/// An object with more figures.
fn with(mut object: Value, named: impl IntoIterator<Item = (&'static str, u64)>) -> Value {
    for (name, number) in named {
        object[name] = number.into();
    }
    object
}

fn drops(drops: Drops) -> Value {
    json!({ "datagrams": drops.datagrams, "events": drops.events, "bytes": drops.bytes })
}

fn lengths(lengths: &Percentiles) -> Value {
    json!({
        "p50_ns": lengths.p50_ns,
        "p90_ns": lengths.p90_ns,
        "p99_ns": lengths.p99_ns,
        "p999_ns": lengths.p999_ns,
        "max_ns": lengths.max_ns,
    })
}

fn description(row: &DescriptionRow) -> Value {
    json!({
        "description": row.description,
        "count": row.count,
        "total_ns": row.total_ns,
        "lengths": lengths(&row.lengths),
    })
}

fn listener(listener: &ListenerReport) -> Value {
    json!({
        "address": listener.address,
        "receive_buffer_bytes": listener.receive_buffer_bytes,
        "kernel_dropped_datagrams": listener.kernel_dropped,
        "rejected_datagrams": listener.rejected,
        "cut_datagrams": listener.cut,
        "refused": listener.refused,
        "unauthorized": listener.unauthorized,
    })
}

fn source(source: &SourceReport) -> Value {
    let made = json!({
        "source": source.name.number,
        "kind": source.name.kind,
        "peer": source.name.peer,
        "events": source.events,
        "metadata": source.metadata,
        "bytes": source.bytes,
        "files": source.files,
        "damaged_places": source.damaged_places,
        "skipped_bytes": source.skipped_bytes,
        "unfinished_bytes": source.unfinished_bytes,
        "queue_dropped": drops(source.dropped),
        "over_rate_dropped": drops(source.over_rate),
        "events_of_uncounted_streams": source.uncounted,
        "session": source.session.map(|id| format!("{id:032x}")),
        "stream_count": source.stream_count,
        "streams": source.streams.iter().map(|one| one.to_json(RANGES_LISTED)).collect::<Vec<_>>(),
    });
    with(made, source.totals.named())
}
