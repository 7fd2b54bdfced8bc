//! Byte strings by number, in bounded memory.

use crate::Room;
use crate::hash::Map;

/// What all strings are called for which there was no room.
const OTHER: &[u8] = b"(other)";

/// Names and other byte strings of a trace, numbered from 0 in the order in which they first came. What does not fit into
/// 24 MiB gets no number: a crafted trace may have a new name in every record.
///
/// ```
/// use anytrace_core::Interner;
///
/// let mut names = Interner::default();
/// assert_eq!((names.number(b"draw"), names.number(b"wait"), names.number(b"draw")), (Some(0), Some(1), Some(0)));
/// assert_eq!(names.get(1), Some(&b"wait"[..]));
/// ```
#[derive(Debug, Default)]
pub struct Interner {
    index: Map<Box<[u8]>, u32>,
    all: Vec<Box<[u8]>>,
    room: Room,
}

impl Interner {
    /// The number of a string, known or new; `None` if there is no room for it.
    #[inline]
    pub fn number(&mut self, string: &[u8]) -> Option<u32> {
        match self.index.get(string) {
            Some(&number) => Some(number),
            None => self.add(string),
        }
    }

    /// The number of a string, if it has one.
    #[inline]
    pub fn known(&self, string: &[u8]) -> Option<u32> {
        self.index.get(string).copied()
    }

    #[cold]
    fn add(&mut self, string: &[u8]) -> Option<u32> {
        // Stored twice: as a key, and for output.
        if self.room.takes(string.len().saturating_mul(2)) { self.insert(string) } else { None }
    }

    fn insert(&mut self, string: &[u8]) -> Option<u32> {
        let number = u32::try_from(self.all.len()).ok()?;
        self.all.push(string.into());
        self.index.insert(string.into(), number);
        Some(number)
    }

    /// The number of a string; where there is no room for it, that of `(other)`, for which there always is.
    ///
    /// ```
    /// use anytrace_core::Interner;
    ///
    /// let mut names = Interner::default();
    /// let other = names.number_or_other(&vec![b'x'; 30 << 20]);
    /// assert_eq!((names.get(other), names.refused()), (Some(&b"(other)"[..]), 1));
    /// ```
    #[inline]
    pub fn number_or_other(&mut self, string: &[u8]) -> u32 {
        self.number(string).unwrap_or_else(|| self.other())
    }

    #[cold]
    fn other(&mut self) -> u32 {
        let known = self.index.get(OTHER).copied();
        known.or_else(|| self.insert(OTHER)).unwrap_or_default()
    }

    /// The string of a number.
    pub fn get(&self, number: u32) -> Option<&[u8]> {
        self.all.get(number as usize).map(AsRef::as_ref)
    }

    /// All of them, in the order of their numbers.
    pub fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.all.iter().map(AsRef::as_ref)
    }

    /// How many have a number.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// True if none has a number.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// How often there was no room.
    pub fn refused(&self) -> u64 {
        self.room.refused()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::{ENTRY_BYTES, ROOM_BYTES};

    #[test]
    fn what_does_not_fit_gets_no_number_and_the_rest_keeps_its_own() {
        let mut names = Interner { room: Room::of(2 * (ENTRY_BYTES + 6)), ..Interner::default() };
        assert_eq!((names.number(b"abc"), names.number(b"abd")), (Some(0), Some(1)));
        assert_eq!((names.number(b""), names.number(b"abd"), names.number(b"x")), (None, Some(1), None));
        assert_eq!((names.len(), names.refused(), names.get(2)), (2, 2, None));
        assert_eq!(names.all().collect::<Vec<_>>(), [b"abc", b"abd"]);
        // Even where nothing fits, there is room for the name of the others, once.
        assert_eq!(
            (names.number_or_other(b"abd"), names.number_or_other(b"y"), names.number_or_other(b"z")),
            (1, 2, 2)
        );
        assert_eq!((names.get(2), names.len(), names.refused()), (Some(OTHER), 3, 4));
        let mut names = Interner::default();
        let long = vec![b'x'; ROOM_BYTES];
        assert_eq!((names.number(&long), names.number(b"short")), (None, Some(0)));
    }
}
