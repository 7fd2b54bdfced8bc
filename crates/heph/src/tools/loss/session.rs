//! Sessions: recordings that say themselves what they recorded. All parts of one, from any number of files, connections
//! and collectors, are one account.
//!
//! A session's counters never restart. So each stream is the set of the counters that arrived, and what is missing below
//! the number that the recorder says ([`crate::Account`]) is lost: where it was dropped or refused by the recorder
//! itself, that is said apart.

use std::collections::BTreeSet;

use anytrace_core::hash::Map;

use super::LossOptions;
use super::fate::Fate;
use super::joined::{Joined, Offer, Part};
use crate::wire::parse::EVENT_BYTES_MIN;
use crate::wire::record::Header;
use crate::wire::session::{Account, Counted, Session};

/// Most sessions that are followed, and most parts of all of them that are distinguished.
const SESSIONS_MAX: usize = 4096;
const PARTS_MAX: usize = 1 << 18;

/// Bytes of the names of a program and of a recorder that are kept.
const NAME_BYTES: usize = 256;

/// Memory that a recording thread has beside the recorder's own (`tracing-heph`, "memory_bytes").
const THREAD_BYTES: u64 = 4096;

/// A stream of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionStream {
    /// Its number.
    pub stream: u32,
    /// Its events.
    pub fate: Fate,
    /// Ranges of counters that did not arrive, those before the first part included: the first counter and how many.
    pub missing: Vec<(u64, u64)>,
}

/// A session: the parts of it that were given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionLoss {
    /// Its identity, of the first part.
    pub session: Session,
    /// How many parts were given, and the number of the first.
    pub parts: u64,
    /// The lowest number of a part.
    pub first_part: u64,
    /// The highest number of a part. Parts in between may be in files that were not given, or may never have arrived.
    pub last_part: u64,
    /// True when the recorder's last account arrived: nothing is unknown.
    pub is_closed: bool,
    /// All streams together.
    pub all: Fate,
    /// How many streams are known.
    pub stream_count: u64,
    /// Streams, by number; none where only sums were asked for.
    pub streams: Vec<SessionStream>,
    /// Events of streams beyond the limit: counted, but not followed.
    pub uncounted: u64,
}

impl SessionLoss {
    /// The session's number as text: 32 hexadecimal digits.
    pub fn id(&self) -> String {
        format!("{:032x}", self.session.id)
    }

    /// The most events that can be missing after the last ones that arrived: as many as fit into the recorder's memory, 0
    /// for a closed session. `None` where that memory was full before, so that any number may have been dropped since.
    pub fn tail_at_most(&self) -> Option<u64> {
        if self.is_closed {
            return Some(0);
        }
        if self.all.dropped > 0 || self.session.memory_bytes == 0 {
            return None;
        }
        let threads = self.session.memory_bytes.saturating_add(self.stream_count.saturating_mul(THREAD_BYTES));
        // Packets take full words of 8 bytes there.
        Some(threads / u64::from(EVENT_BYTES_MIN.next_multiple_of(8)))
    }
}

/// The accounts of all sessions. Memory is bounded by the options.
#[derive(Debug, Clone)]
pub struct Sessions {
    options: LossOptions,
    index: Map<u128, usize>,
    all: Vec<One>,
    ranges: usize,
    streams: usize,
    parts: usize,
}

/// A session that has begun, in its [`Sessions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionKey(usize);

/// One session.
#[derive(Debug, Clone)]
struct One {
    session: Session,
    parts: BTreeSet<u64>,
    is_closed: bool,
    counted: Counted,
    index: Map<u32, usize>,
    streams: Vec<Joined>,
    uncounted: u64,
}

impl Sessions {
    /// No session yet.
    pub fn new(options: LossOptions) -> Self {
        let (index, ranges) = (Map::default(), options.ranges_max);
        Self { options, index, all: Vec::new(), ranges, streams: 0, parts: 0 }
    }

    /// How counters are interpreted.
    pub fn options(&self) -> &LossOptions {
        &self.options
    }

    /// A part of a session begins, or says so once more. `None` beyond the limit of sessions.
    pub fn begin(&mut self, session: &Session) -> Option<SessionKey> {
        let at = self.at(session.id)?;
        let one = self.all.get_mut(at)?;
        if one.parts.is_empty() {
            let short = |name: &str| name.get(..name.floor_char_boundary(NAME_BYTES)).unwrap_or_default().to_owned();
            let (program, recorder) = (short(&session.program), short(&session.recorder));
            one.session = Session { program, recorder, ..*session };
        }
        if self.parts < PARTS_MAX && one.parts.insert(session.part) {
            self.parts += 1;
        }
        Some(SessionKey(at))
    }

    /// The recorder's own numbers.
    pub fn account(&mut self, account: &Account) {
        let Some(at) = self.at(account.id) else { return };
        for (stream, counted) in &account.streams {
            if let Some((stream, ranges)) = self.stream(at, *stream) {
                stream.account(*counted, ranges);
            }
        }
        let Some(one) = self.all.get_mut(at) else { return };
        one.is_closed |= account.is_closed;
        one.counted = one.counted.at_least(account.all);
    }

    /// Takes an event of a session; [`Offer::Duplicate`] when it arrived before, in whatever part.
    #[inline]
    pub fn event(&mut self, SessionKey(at): SessionKey, header: &Header, is_damaged: bool) -> Offer {
        if let Some((stream, ranges)) = self.stream(at, header.stream) {
            return stream.event(header, is_damaged, ranges);
        }
        if let Some(one) = self.all.get_mut(at) {
            one.uncounted += 1;
        }
        Offer::New(header.counter.into())
    }

    /// Takes counters that arrived before it was known which session they belong to, or in an earlier run.
    pub fn adopt(&mut self, SessionKey(at): SessionKey, stream: u32, part: &Part) {
        if let Some((stream, ranges)) = self.stream(at, stream) {
            stream.adopt(part, ranges);
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All sessions, in the order of their beginning.
    pub fn report(&self) -> Vec<SessionLoss> {
        self.all.iter().map(|one| one.report(true)).collect()
    }

    /// All sessions without their streams; cheap enough to be called once a second.
    pub fn totals(&self) -> Vec<SessionLoss> {
        self.all.iter().map(|one| one.report(false)).collect()
    }

    fn at(&mut self, id: u128) -> Option<usize> {
        if let Some(&at) = self.index.get(&id) {
            return Some(at);
        }
        if self.all.len() >= SESSIONS_MAX {
            return None;
        }
        self.all.push(One {
            session: Session { id, ..Session::default() },
            parts: BTreeSet::new(),
            is_closed: false,
            counted: Counted::default(),
            index: Map::default(),
            streams: Vec::new(),
            uncounted: 0,
        });
        self.index.insert(id, self.all.len() - 1);
        Some(self.all.len() - 1)
    }

    fn stream(&mut self, at: usize, stream: u32) -> Option<(&mut Joined, &mut usize)> {
        let one = self.all.get_mut(at)?;
        let at = match one.index.get(&stream) {
            Some(&at) => at,
            None if self.streams >= self.options.streams_max => return None,
            None => {
                self.streams += 1;
                one.streams.push(Joined::new(stream));
                one.index.insert(stream, one.streams.len() - 1);
                one.streams.len() - 1
            }
        };
        Some((one.streams.get_mut(at)?, &mut self.ranges))
    }
}

impl One {
    fn report(&self, has_streams: bool) -> SessionLoss {
        let first_part = self.parts.first().copied().unwrap_or(0);
        let mut all = Fate::default();
        let mut streams = Vec::new();
        for stream in &self.streams {
            let stream = stream.settled(self.is_closed);
            let fate = stream.fate(self.is_closed, first_part > 0);
            all.add(&fate);
            if has_streams {
                streams.push(SessionStream { stream: stream.id, fate, missing: stream.missing() });
            }
        }
        all.received += self.uncounted;
        streams.sort_by_key(|stream| stream.stream);
        // Streams of which nothing arrived, neither an event nor an account, are in the sums of the last account.
        let unknown = self.counted.recorded.saturating_sub(all.recorded.saturating_add(self.uncounted));
        all.recorded = all.recorded.saturating_add(unknown).saturating_add(self.uncounted);
        all.dropped = all.dropped.max(self.counted.dropped);
        all.refused = all.refused.max(self.counted.lost);
        if first_part > 0 {
            all.before += unknown
        } else {
            all.lost += unknown
        }
        SessionLoss {
            session: self.session.clone(),
            parts: self.parts.len() as u64,
            first_part,
            last_part: self.parts.last().copied().unwrap_or(0),
            is_closed: self.is_closed,
            all,
            stream_count: self.streams.len() as u64,
            streams,
            uncounted: self.uncounted,
        }
    }
}
