//! The dictionary of a column of names, over many batches.

use std::sync::Arc;

use anytrace_core::hash::Map;
use anytrace_core::table::{Names, Strings};

/// No key yet.
const NONE: u32 = u32::MAX;

/// Different names, in the order in which they first occur.
///
/// Each batch has a dictionary of its own, which often is the last one with a few more names. `keys` remembers for the
/// current one what its numbers are here, so that a name is looked up once in each, not once a row.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    index: Map<Box<str>, u32>,
    bytes: Vec<u8>,
    /// Where each name ends in `bytes`.
    ends: Vec<usize>,
    /// The batch's dictionary that `keys` is of.
    source: Option<Arc<Names>>,
    keys: Vec<u32>,
}

impl Dictionary {
    /// How many names there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all names.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each name ends in [`Self::bytes`].
    pub(crate) fn ends(&self) -> &[usize] {
        &self.ends
    }

    /// The names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.get(start..*end).unwrap_or_default())
    }

    /// Begins the keys of a batch, which mean what they do in `names`.
    pub(crate) fn follow(&mut self, names: &Arc<Names>) {
        if self.source.as_ref().is_some_and(|source| Arc::ptr_eq(source, names)) {
            return;
        }
        if !self.source.as_ref().is_some_and(|source| continues(&source.0, &names.0)) {
            self.keys.clear();
        }
        self.keys.resize(names.len(), NONE);
        self.source = Some(Arc::clone(names));
    }

    /// The number here of a key of the batch that is followed.
    #[inline]
    pub(crate) fn number(&mut self, key: i32) -> u32 {
        let known = usize::try_from(key).ok().and_then(|at| self.keys.get(at).copied());
        match known {
            Some(number) if number != NONE => number,
            _ => self.look_up(key),
        }
    }

    #[cold]
    fn look_up(&mut self, key: i32) -> u32 {
        let Some(source) = self.source.clone() else { return 0 };
        let number = self.insert(source.get(key));
        if let Some(slot) = usize::try_from(key).ok().and_then(|at| self.keys.get_mut(at)) {
            *slot = number;
        }
        number
    }

    fn insert(&mut self, name: &str) -> u32 {
        if let Some(number) = self.index.get(name) {
            return *number;
        }
        // The writers end a dictionary long before it has that many names.
        let number = u32::try_from(self.len()).unwrap_or(NONE - 1);
        self.bytes.extend_from_slice(name.as_bytes());
        self.ends.push(self.bytes.len());
        self.index.insert(name.into(), number);
        number
    }
}

/// True when the strings of `old` are the first of `new`.
fn continues(old: &Strings, new: &Strings) -> bool {
    new.offsets.starts_with(&old.offsets) && new.bytes.starts_with(&old.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> Arc<Names> {
        let mut strings = Strings::default();
        for text in texts {
            strings.bytes.extend_from_slice(text.as_bytes());
            strings.offsets.push(i32::try_from(strings.bytes.len()).unwrap());
        }
        Arc::new(Names(strings))
    }

    #[test]
    fn a_name_has_one_number_whatever_its_key_in_a_batch() {
        let mut all = Dictionary::default();
        let mut numbers = |names: &Arc<Names>, keys: &[i32]| -> Vec<u32> {
            all.follow(names);
            keys.iter().map(|key| all.number(*key)).collect()
        };
        let first = names(&["a", "never used", "b"]);
        assert_eq!(numbers(&first, &[2, 0, 2]), [0, 1, 0]);
        assert_eq!(numbers(&first, &[0]), [1]);
        let grown = names(&["a", "never used", "b", "c"]);
        assert_eq!(numbers(&grown, &[3, 2]), [2, 0]);
        let restarted = names(&["c", "a"]);
        assert_eq!(numbers(&restarted, &[0, 1]), [2, 1]);
        // Keys without a name are the empty one.
        assert_eq!(numbers(&restarted, &[7, -1]), [3, 3]);
        assert_eq!(all.names().collect::<Vec<_>>(), [&b"b"[..], b"a", b"c", b""]);
        assert_eq!((all.len(), all.bytes(), all.ends()), (4, &b"bac"[..], &[1, 2, 3, 3][..]));
    }
}
