//! Byte strings by number, in bounded memory.

use crate::hash::Map;

/// Most bytes of stored strings, and the overhead of each.
const ROOM_BYTES: usize = 24 << 20;
const ENTRY_BYTES: usize = 64;

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
#[derive(Debug)]
pub struct Interner {
    index: Map<Box<[u8]>, u32>,
    all: Vec<Box<[u8]>>,
    room_bytes: usize,
    refused: u64,
}

impl Default for Interner {
    fn default() -> Self {
        Self { index: Map::default(), all: Vec::new(), room_bytes: ROOM_BYTES, refused: 0 }
    }
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

    #[cold]
    fn add(&mut self, string: &[u8]) -> Option<u32> {
        // Stored twice: as a key, and for output.
        let left = string.len().checked_mul(2).and_then(|bytes| self.room_bytes.checked_sub(bytes + ENTRY_BYTES));
        let Some(left) = left else {
            self.refused += 1;
            return None;
        };
        let number = u32::try_from(self.all.len()).ok()?;
        self.room_bytes = left;
        self.all.push(string.into());
        self.index.insert(string.into(), number);
        Some(number)
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
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_gets_no_number_and_the_rest_keeps_its_own() {
        let mut names = Interner { room_bytes: 2 * (ENTRY_BYTES + 6), ..Interner::default() };
        assert_eq!((names.number(b"abc"), names.number(b"abd")), (Some(0), Some(1)));
        assert_eq!((names.number(b""), names.number(b"abd"), names.number(b"x")), (None, Some(1), None));
        assert_eq!((names.len(), names.refused(), names.get(2)), (2, 2, None));
        assert_eq!(names.all().collect::<Vec<_>>(), [b"abc", b"abd"]);
        let mut names = Interner::default();
        let long = vec![b'x'; ROOM_BYTES];
        assert_eq!((names.number(&long), names.number(b"short")), (None, Some(0)));
    }
}
