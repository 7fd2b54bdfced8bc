//! The figures of all sources, and their JSON.

use serde_json::{Map, Value, json};

use super::{Accounts, StreamLoss};

/// Most lost counters listed one by one in JSON; ranges and sums are complete.
const LISTED_MAX: u64 = 1 << 20;

/// What one source sent, as far as it arrived.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceLoss {
    /// What distinguishes it from others: a sender's port, a file's name.
    pub name: String,
    /// The sender's port, if it sent datagrams.
    pub port: Option<u16>,
    /// Datagrams that arrived; 0 where there are none.
    pub datagrams: u64,
    /// Datagrams with bytes that are not a packet.
    pub bad_datagrams: u64,
    /// Damaged places.
    pub damaged_places: u64,
    /// Bytes that do not belong to a packet.
    pub skipped_bytes: u64,
    /// Metadata packets; they have no counters.
    pub metadata: u64,
    /// The first distinct epochs, in nanoseconds since 1970.
    pub epochs_ns: Vec<u64>,
    /// Events of streams beyond the limit.
    pub uncounted: u64,
    /// Streams, by number.
    pub streams: Vec<StreamLoss>,
}

/// Most epochs stored for a source.
const EPOCHS_MAX: usize = 16;

impl SourceLoss {
    pub(super) fn epoch(&mut self, epoch_ns: u64) {
        if !self.epochs_ns.contains(&epoch_ns) && self.epochs_ns.len() < EPOCHS_MAX {
            self.epochs_ns.push(epoch_ns);
        }
    }

    pub(super) fn close(&mut self, accounts: &Accounts) {
        self.uncounted = accounts.uncounted();
        self.streams = accounts.streams();
    }

    fn sum(&self, of: impl Fn(&StreamLoss) -> u64) -> u64 {
        self.streams.iter().map(of).sum()
    }
}

/// What all sources sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LossReport {
    /// Sources: senders by port, files by the names given.
    pub sources: Vec<SourceLoss>,
}

impl LossReport {
    /// The sum of a figure over all streams.
    pub fn sum(&self, of: impl Fn(&StreamLoss) -> u64) -> u64 {
        self.sources.iter().map(|source| source.sum(&of)).sum()
    }

    /// Events that arrived.
    pub fn received(&self) -> u64 {
        self.sum(|stream| stream.received) + self.sources.iter().map(|source| source.uncounted).sum::<u64>()
    }

    /// Share of the events that were sent, according to the counters, but did not arrive, from 0 to 1.
    pub fn lost_share(&self) -> f64 {
        let (lost, sent) = (self.sum(|s| s.lost), self.sum(StreamLoss::sent_at_least));
        if sent == 0 { 0.0 } else { lost as f64 / sent as f64 }
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let mut lost = Map::new();
        let mut left = LISTED_MAX;
        for source in &self.sources {
            for stream in source.streams.iter().filter(|stream| !stream.lost_ranges.is_empty()) {
                let counters = stream
                    .lost_ranges
                    .iter()
                    .flat_map(|&(first, count)| (0..count).map(move |n| first.wrapping_add(n as u32)));
                let listed: Vec<u32> = counters.take(usize::try_from(left).unwrap_or(usize::MAX)).collect();
                left -= listed.len() as u64;
                lost.insert(format!("{}/{}", source.name, stream.stream), listed.into());
            }
        }
        let total = self.sum(|stream| stream.lost);
        let senders: Vec<Value> =
            self.sources.iter().map(|s| s.port.map_or_else(|| Value::from(s.name.clone()), Value::from)).collect();
        let mut made = json!({
            "version": 1,
            "senders": senders,
            "received": self.received(),
            "duplicates": self.sum(|stream| stream.duplicates),
            "out_of_order": self.sum(|stream| stream.out_of_order),
            "lost": lost,
            "detectable_lost": total,
            "sent_at_least": self.sum(StreamLoss::sent_at_least),
            "unique": self.sum(StreamLoss::unique),
            "malformed": self.sum(|stream| stream.malformed),
            "lost_at_head": self.sum(|stream| stream.lost_at_head),
            "restarts": self.sum(|stream| stream.restarts),
            "tail_is_unknown": true,
            "sources": self.sources.iter().map(source_json).collect::<Vec<_>>(),
        });
        if total > LISTED_MAX - left
            && let Some(map) = made.as_object_mut()
        {
            map.insert("lost_not_listed".to_owned(), (total - (LISTED_MAX - left)).into());
        }
        made
    }
}

fn source_json(source: &SourceLoss) -> Value {
    let mut made = json!({
        "source": source.name,
        "metadata": source.metadata,
        "epochs_ns": source.epochs_ns,
        "damaged_places": source.damaged_places,
        "skipped_bytes": source.skipped_bytes,
        "streams": source.streams.iter().map(stream_json).collect::<Vec<_>>(),
    });
    if let Some(map) = made.as_object_mut() {
        if source.port.is_some() {
            map.insert("datagrams".to_owned(), source.datagrams.into());
            map.insert("bad_datagrams".to_owned(), source.bad_datagrams.into());
        }
        if source.uncounted > 0 {
            map.insert("events_of_uncounted_streams".to_owned(), source.uncounted.into());
        }
    }
    made
}

fn stream_json(stream: &StreamLoss) -> Value {
    let mut made = stream.to_json(usize::MAX);
    made.insert("first_counter".to_owned(), stream.first_counter.into());
    made.insert("last_counter".to_owned(), stream.last_counter.into());
    made.into()
}

impl StreamLoss {
    /// The figures by their names in JSON.
    pub fn named(&self) -> [(&'static str, u64); 9] {
        [
            ("sent_at_least", self.sent_at_least()),
            ("received", self.received),
            ("unique", self.unique()),
            ("duplicates", self.duplicates),
            ("malformed", self.malformed),
            ("out_of_order", self.out_of_order),
            ("lost", self.lost),
            ("lost_at_head", self.lost_at_head),
            ("restarts", self.restarts),
        ]
    }

    /// The stream for programs, with at most that many ranges of lost counters.
    pub fn to_json(&self, ranges_max: usize) -> Map<String, Value> {
        let mut made: Map<_, _> =
            self.named().map(|(name, number)| (name.to_owned(), number.into())).into_iter().collect();
        let ranges = self.lost_ranges.iter().take(ranges_max).map(|(first, count)| json!([first, count]));
        made.insert("stream".to_owned(), self.stream.into());
        made.insert("lost_ranges".to_owned(), ranges.collect());
        made
    }
}
