//! Names, by number.

use anytrace_core::hash::Map;

/// The number of a name.
pub(crate) type NameNumber = u32;

/// What has no name.
pub(crate) const UNNAMED: NameNumber = 0;
/// The keys of the number of an arrow and of the value of a counter.
pub(crate) const FLOW: NameNumber = 1;
pub(crate) const VALUE: NameNumber = 2;

/// Most names.
const NAMES_MAX: usize = 1 << 20;

/// All names of a trace.
#[derive(Debug)]
pub(crate) struct Names {
    known: Map<Box<[u8]>, NameNumber>,
    all: Vec<Box<[u8]>>,
    /// True when a name did not get a number.
    pub(crate) is_full: bool,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { known: Map::default(), all: Vec::new(), is_full: false };
        for name in [&b"(unnamed)"[..], b"flow", b"value"] {
            names.number(name);
        }
        names
    }
}

impl Names {
    /// The number of a name; beyond the limit that of what has none.
    pub(crate) fn number(&mut self, name: &[u8]) -> NameNumber {
        if name.is_empty() {
            return UNNAMED;
        }
        if let Some(known) = self.known.get(name) {
            return *known;
        }
        if self.all.len() >= NAMES_MAX {
            self.is_full = true;
            return UNNAMED;
        }
        let next = NameNumber::try_from(self.all.len()).unwrap_or(UNNAMED);
        self.known.insert(name.into(), next);
        self.all.push(name.into());
        next
    }

    /// A name; of the number of what has none the empty one.
    pub(crate) fn get(&self, number: NameNumber) -> &[u8] {
        if number == UNNAMED { b"" } else { self.all.get(number as usize).map_or(b"", |name| name) }
    }

    /// The number of a name at a place in source code: another one than that of the name elsewhere.
    pub(crate) fn number_at(&mut self, name: &[u8], place: &[u8]) -> NameNumber {
        if place.is_empty() {
            return self.number(name);
        }
        let both = [name, b"\0", place].concat();
        self.number(&both)
    }

    /// All names, in the order of their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.all.iter().map(AsRef::as_ref)
    }
}
