//! Names, by number.

use anytrace_core::Interner;

/// The number of a name.
pub(crate) type NameNumber = u32;

/// What has no name.
pub(crate) const UNNAMED: NameNumber = 0;
/// The keys of the number of an arrow, of the value of a counter and of a category.
pub(crate) const FLOW: NameNumber = 1;
pub(crate) const VALUE: NameNumber = 2;
pub(crate) const CATEGORY: NameNumber = 3;

const FIRST: [&[u8]; 4] = [b"(unnamed)", b"flow", b"value", b"category"];

/// All names of a trace.
#[derive(Debug)]
pub(crate) struct Names(Interner);

impl Default for Names {
    fn default() -> Self {
        let mut names = Self(Interner::default());
        FIRST.iter().for_each(|name| _ = names.number(name));
        names
    }
}

impl Names {
    /// The number of a name; where there is no room for it that of what has none.
    pub(crate) fn number(&mut self, name: &[u8]) -> NameNumber {
        if name.is_empty() { UNNAMED } else { self.0.number(name).unwrap_or(UNNAMED) }
    }

    /// A name; of the number of what has none the empty one.
    pub(crate) fn get(&self, number: NameNumber) -> &[u8] {
        if number == UNNAMED { b"" } else { self.0.get(number).unwrap_or_default() }
    }

    /// All names, in the order of their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.0.all()
    }

    /// True when a name did not get a number.
    pub(crate) fn is_full(&self) -> bool {
        self.0.refused() > 0
    }
}
