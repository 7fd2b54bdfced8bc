//! Numbers of names: of spans first, then of attributes.

use anytrace_core::Interner;
use anytrace_core::hash::Map;
use anytrace_core::span::{Location, NameId};
use anytrace_core::{Error, SpanSink};

/// Most bytes of all names that are kept.
const BYTES_MAX: usize = 32 << 20;

/// The name of what has a name that is not kept.
const OTHERS: &[u8] = b"(other)";

/// Names of spans.
#[derive(Debug, Default)]
pub(super) struct Names {
    known: Map<Box<[u8]>, NameId>,
    /// In order; where a name has a place in a source, that is part of its key.
    names: Vec<(Box<[u8]>, Option<Location>)>,
    bytes: usize,
    distinct_max: usize,
    is_full: bool,
    key: Vec<u8>,
}

impl Names {
    pub(super) fn new(distinct_max: usize) -> Self {
        Self { distinct_max, ..Self::default() }
    }

    /// The number of a name.
    #[inline]
    pub(super) fn id(&mut self, name: &[u8]) -> NameId {
        match self.known.get(name) {
            Some(&id) => id,
            None => self.add(name, name, None),
        }
    }

    /// The number of a name with a place.
    pub(super) fn located(&mut self, name: &[u8], place: &[u8]) -> NameId {
        let mut key = std::mem::take(&mut self.key);
        key.clear();
        key.extend_from_slice(name);
        key.extend_from_slice(b"\0at ");
        key.extend_from_slice(place);
        let id = match self.known.get(key.as_slice()) {
            Some(&id) => id,
            None => self.add(&key, name, Some(location(place))),
        };
        self.key = key;
        id
    }

    #[cold]
    fn add(&mut self, key: &[u8], name: &[u8], location: Option<Location>) -> NameId {
        let is_full = self.names.len() >= self.distinct_max || self.bytes + key.len() > BYTES_MAX;
        self.is_full |= is_full;
        let (key, name, location) = if is_full { (OTHERS, OTHERS, None) } else { (key, name, location) };
        if let Some(&id) = self.known.get(key) {
            return id;
        }
        let id = NameId::try_from(self.names.len()).unwrap_or(NameId::MAX);
        self.bytes += key.len() + name.len();
        self.known.insert(key.into(), id);
        self.names.push((name.into(), location));
        id
    }
}

/// `FILE:LINE`, or a file alone.
fn location(place: &[u8]) -> Location {
    let text = String::from_utf8_lossy(place);
    match text.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => Location { file: file.to_owned(), line },
        None => Location { file: text.into_owned(), line: 0 },
    }
}

/// Names of attributes and counters, announced when they are first used; after the names of spans.
pub(super) struct Keys {
    known: Interner,
    /// The number of the first.
    first: NameId,
    distinct_max: usize,
    is_full: bool,
}

impl Keys {
    /// Announces the names of spans.
    pub(super) fn announce(names: Names, out: &mut dyn SpanSink) -> Result<Self, Error> {
        let mut first = 0;
        for (name, location) in &names.names {
            out.name(first, name, location.as_ref())?;
            first += 1;
        }
        Ok(Self { known: Interner::default(), first, distinct_max: names.distinct_max, is_full: names.is_full })
    }

    #[inline]
    pub(super) fn id(&mut self, key: &[u8], out: &mut dyn SpanSink) -> Result<NameId, Error> {
        let before = self.known.len();
        // Those beyond the limit have one name together, as those for which there is no room do.
        let number = if before < self.distinct_max {
            self.known.number_or_other(key)
        } else {
            let known = self.known.known(key);
            self.is_full |= known.is_none();
            known.unwrap_or_else(|| self.known.number_or_other(OTHERS))
        };
        let id = self.first.saturating_add(number);
        if self.known.len() > before {
            out.name(id, self.known.get(number).unwrap_or_default(), None)?;
        }
        Ok(id)
    }

    /// True when a name did not get a number of its own.
    pub(super) fn is_full(&self) -> bool {
        self.is_full || self.known.refused() > 0
    }
}
