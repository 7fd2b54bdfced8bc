//! The figures of all sources, and their JSON.

use serde_json::{Map, Value, json};

use super::{Accounts, Fate, SessionLoss, StreamLoss};

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
    /// The sessions that its events belong to. What they lost is known there: other sources may have the rest.
    pub sessions: Vec<u128>,
}

/// Most epochs stored for a source.
const EPOCHS_MAX: usize = 16;

impl SourceLoss {
    pub(super) fn epoch(&mut self, epoch_ns: u64) {
        if !self.epochs_ns.contains(&epoch_ns) && self.epochs_ns.len() < EPOCHS_MAX {
            self.epochs_ns.push(epoch_ns);
        }
    }

    pub(super) fn session(&mut self, id: u128) {
        if !self.sessions.contains(&id) && self.sessions.len() < EPOCHS_MAX {
            self.sessions.push(id);
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
    /// Sessions of recorders that say what they recorded, each from all sources that have a part of it.
    pub sessions: Vec<SessionLoss>,
}

impl LossReport {
    /// A figure of everything: of the streams of sources without a session, and of all sessions.
    pub fn sum(&self, of: impl Fn(&StreamLoss) -> u64, of_session: impl Fn(&Fate) -> u64) -> u64 {
        let sources = self.without_session().map(|source| source.sum(&of));
        // What a forged account says may be any number.
        sources.chain(self.sessions.iter().map(|session| of_session(&session.all))).fold(0, u64::saturating_add)
    }

    /// Sources whose counters are all that is known.
    pub fn without_session(&self) -> impl Iterator<Item = &SourceLoss> {
        self.sources.iter().filter(|source| source.sessions.is_empty())
    }

    /// Events that arrived.
    pub fn received(&self) -> u64 {
        let uncounted: u64 = self.without_session().map(|source| source.uncounted).sum();
        self.sum(|stream| stream.received, |session| session.received) + uncounted
    }

    /// Events that are missing, as far as is known.
    pub fn lost(&self) -> u64 {
        self.sum(|stream| stream.lost, |session| session.lost)
    }

    /// Events that were sent, as far as is known.
    pub fn sent_at_least(&self) -> u64 {
        self.sum(StreamLoss::sent_at_least, |session| session.recorded - session.before)
    }

    /// Events whose loss is not certain: a counter claims it that can hardly be right.
    pub fn doubtful(&self) -> u64 {
        self.sum(|stream| stream.doubtful, |session| session.doubtful)
    }

    /// True where everything belongs to sessions whose ends have arrived: then nothing is unknown.
    pub fn is_closed(&self) -> bool {
        let mut sources = self.without_session();
        !self.sessions.is_empty() && sources.next().is_none() && self.sessions.iter().all(|session| session.is_closed)
    }

    /// Share of the events that were sent, as far as is known, but did not arrive, from 0 to 1.
    pub fn lost_share(&self) -> f64 {
        let (lost, sent) = (self.lost(), self.sent_at_least());
        if sent == 0 { 0.0 } else { lost as f64 / sent as f64 }
    }

    /// The report for programs.
    pub fn to_json(&self) -> Value {
        let total = self.lost();
        let (lost, listed) = self.lost_counters();
        let senders: Vec<Value> =
            self.sources.iter().map(|s| s.port.map_or_else(|| Value::from(s.name.clone()), Value::from)).collect();
        let mut made = json!({
            "version": 1,
            "senders": senders,
            "received": self.received(),
            "duplicates": self.sum(|stream| stream.duplicates, |session| session.duplicates),
            "out_of_order": self.sum(|stream| stream.out_of_order, |session| session.out_of_order),
            "lost": lost,
            "detectable_lost": total,
            "sent_at_least": self.sent_at_least(),
            "unique": self.sum(StreamLoss::unique, |session| session.arrived().saturating_sub(session.malformed)),
            "malformed": self.sum(|stream| stream.malformed, |session| session.malformed),
            "lost_at_head": self.sum(|stream| stream.lost_at_head, |_| 0),
            "restarts": self.sum(|stream| stream.restarts, |_| 0),
            "doubtful": self.doubtful(),
            "doubtful_events": self.sum(|stream| stream.doubtful_events, |session| session.doubtful_events),
            "closed": self.is_closed(),
            "tail_is_unknown": !self.is_closed(),
            "sessions": self.sessions.iter().map(|session| session.to_json(usize::MAX)).collect::<Vec<_>>(),
            "sources": self.sources.iter().map(source_json).collect::<Vec<_>>(),
        });
        if total > listed
            && let Some(map) = made.as_object_mut()
        {
            map.insert("lost_not_listed".to_owned(), (total - listed).into());
        }
        made
    }

    /// Lost counters by source or session and stream, and how many are listed.
    fn lost_counters(&self) -> (Map<String, Value>, u64) {
        let mut lost = Map::new();
        let mut left = LISTED_MAX;
        let mut list = |name: String, ranges: &mut dyn Iterator<Item = (u64, u64)>| {
            // In sessions counters are in 64 bits; the packets have the lower half.
            let counters = ranges.flat_map(|(first, count)| (0..count).map(move |n| (first + n) as u32));
            let listed: Vec<u32> = counters.take(usize::try_from(left).unwrap_or(usize::MAX)).collect();
            left -= listed.len() as u64;
            lost.insert(name, listed.into());
        };
        for source in self.without_session() {
            for stream in source.streams.iter().filter(|stream| !stream.lost_ranges.is_empty()) {
                let mut ranges = stream.lost_ranges.iter().map(|&(first, count)| (u64::from(first), count));
                list(format!("{}/{}", source.name, stream.stream), &mut ranges);
            }
        }
        for session in &self.sessions {
            for stream in session.streams.iter().filter(|stream| stream.fate.lost > 0) {
                let lowest = if session.first_part > 0 { stream.fate.before } else { 0 };
                let mut ranges = stream.missing.iter().copied().filter(|range| range.0 >= lowest);
                list(format!("{}/{}", session.id(), stream.stream), &mut ranges);
            }
        }
        (lost, LISTED_MAX - left)
    }
}

impl SessionLoss {
    /// The session for programs, with at most that many ranges of missing counters of a stream.
    pub fn to_json(&self, ranges_max: usize) -> Value {
        let session = &self.session;
        let mut made = json!({
            "session": self.id(),
            "program": session.program,
            "process": session.process,
            "recorder": session.recorder,
            "start_ns": session.start_ns,
            "parts": self.parts,
            "first_part": self.first_part,
            "last_part": self.last_part,
            "closed": self.is_closed,
            "tail_at_most": self.tail_at_most(),
            "stream_count": self.stream_count,
        });
        for (name, number) in self.all.named() {
            made[name] = number.into();
        }
        if self.uncounted > 0 {
            made["events_of_uncounted_streams"] = self.uncounted.into();
        }
        let streams = self.streams.iter().map(|stream| {
            let mut row = Map::from_iter([("stream".to_owned(), Value::from(stream.stream))]);
            row.extend(stream.fate.named().map(|(name, number)| (name.to_owned(), number.into())));
            let ranges = stream.missing.iter().take(ranges_max).map(|(first, count)| json!([first, count]));
            row.insert("missing_ranges".to_owned(), ranges.collect());
            Value::from(row)
        });
        made["streams"] = streams.collect();
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
        "sessions": source.sessions.iter().map(|id| format!("{id:032x}")).collect::<Vec<_>>(),
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
    pub fn named(&self) -> [(&'static str, u64); 11] {
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
            ("doubtful", self.doubtful),
            ("doubtful_events", self.doubtful_events),
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
