//! The known state, by context, with stamps of its validity.

use std::hash::{Hash, Hasher};

use anytrace_core::hash::Map;

use crate::tools::gl::commands::effects::{FAMILIES, Family, ObjectKind};

/// Most bytes for the known state; beyond this, everything is forgotten.
pub(super) const BYTES_MAX: usize = 8 << 20;

/// Memory of a known state besides a long value.
pub(super) const ENTRY_BYTES: usize = 2 * size_of::<(Key, Entry)>();

/// Values of up to this many words are stored in the table itself.
const SHORT: usize = 4;

/// Which state: its family, and up to three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    place: u64,
    parts: [u64; 3],
}

impl Key {
    #[inline]
    pub(super) fn new(family: Family, slot: u8) -> Self {
        Self { place: u64::from(family as u8) << 16 | u64::from(slot) << 8, parts: [0; 3] }
    }

    /// The key with one more number.
    #[inline]
    #[must_use]
    pub(super) fn with(mut self, number: u64) -> Self {
        if let Some(part) = self.parts.get_mut((self.place & 0xff) as usize) {
            *part = number;
        }
        self.place += 1;
        self
    }
}

impl Hash for Key {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let [a, b, c] = self.parts;
        state.write_u64(self.place);
        state.write_u64(a);
        state.write_u64(b);
        // Few keys have three numbers.
        if self.place & 0xff > 2 {
            state.write_u64(c);
        }
    }
}

/// A state as it was set last.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) stamp: u64,
    length: usize,
    short: [u64; SHORT],
    long: Vec<u64>,
}

impl Entry {
    pub(super) fn new(stamp: u64, value: &[u64]) -> Self {
        let mut this = Self { stamp, length: 0, short: [0; SHORT], long: Vec::new() };
        this.set(value);
        this
    }

    #[inline]
    pub(super) fn value(&self) -> &[u64] {
        self.short.get(..self.length).unwrap_or(&self.long)
    }

    #[inline]
    pub(super) fn set(&mut self, value: &[u64]) {
        self.length = value.len();
        match self.short.get_mut(..value.len()) {
            Some(short) => short.copy_from_slice(value),
            None => {
                self.long.clear();
                self.long.extend_from_slice(value);
            }
        }
    }

    /// Bytes outside of the table.
    pub(super) fn bytes(&self) -> usize {
        self.long.capacity() * 8
    }
}

/// Lists in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    None,
    /// Calls are only recorded.
    Compiled,
    /// Calls are executed as well.
    CarriedOut,
}

/// The known state of a context.
#[derive(Debug)]
pub(super) struct Context {
    pub(super) entries: Map<Key, Entry>,
    /// Values stamped before this are unknown: by family, and for all.
    pub(super) families: [u64; FAMILIES],
    pub(super) all: u64,
    /// The active texture unit; an invented number if it is not known.
    pub(super) unit: u64,
    pub(super) vertex_array: u64,
    pub(super) program: Option<u64>,
    pub(super) list: List,
    /// Threads it is current on, and whether there is a handle for it.
    pub(super) users: usize,
    pub(super) has_handle: bool,
}

/// Invented numbers for unknown values begin here: no program uses such names.
pub(super) const OWN: u64 = 1 << 63;

impl Context {
    pub(super) fn new(now: u64) -> Self {
        Self {
            entries: Map::default(),
            families: [0; FAMILIES],
            all: now,
            unit: OWN | now,
            vertex_array: OWN | now,
            program: None,
            list: List::None,
            users: 0,
            has_handle: false,
        }
    }

    /// Makes everything unknown.
    pub(super) fn unsettle(&mut self, now: u64) {
        (self.all, self.unit, self.vertex_array, self.program) = (now, OWN | now, OWN | now, None);
    }
}

/// An object that several contexts may share.
#[derive(Debug, Clone, Copy)]
struct Object {
    /// The context that last set state of it.
    writer: usize,
    /// Values stamped before this are unknown.
    stamp: u64,
}

/// Most objects tracked.
const OBJECTS_MAX: usize = 1 << 16;

/// Which context last set state of which object, and which names were reused.
#[derive(Debug, Default)]
pub(super) struct Objects(Map<(ObjectKind, u64), Object>);

impl Objects {
    /// The stamp from which on values of an object are valid.
    #[inline]
    pub(super) fn since(&self, object: Option<(ObjectKind, u64)>) -> u64 {
        match object {
            Some(object) if !self.0.is_empty() => self.0.get(&object).map_or(0, |object| object.stamp),
            _ => 0,
        }
    }

    /// Makes room. Returns true if everything was forgotten for it.
    pub(super) fn make_room(&mut self) -> bool {
        let is_full = self.0.len() >= OBJECTS_MAX;
        if is_full {
            self.0.clear();
        }
        is_full
    }

    /// Records which context sets state of an object. Returns the stamp from which on its values are valid.
    #[inline]
    pub(super) fn write(&mut self, object: (ObjectKind, u64), writer: usize, now: u64) -> u64 {
        let known = self.0.entry(object).or_insert(Object { writer, stamp: 0 });
        if known.writer != writer {
            *known = Object { writer, stamp: now };
        }
        known.stamp
    }

    /// The name denotes a different object from now on.
    pub(super) fn renew(&mut self, object: (ObjectKind, u64), now: u64) {
        self.0.entry(object).or_insert(Object { writer: usize::MAX, stamp: now }).stamp = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_other_numbers_are_others() {
        let key = Key::new(Family::Uniform, 0);
        assert_ne!(key.with(0), key);
        assert_ne!(key.with(0), key.with(0).with(0));
        assert_ne!(key.with(1).with(2), key.with(2).with(1));
        assert_ne!(key.with(1), Key::new(Family::Uniform, 1).with(1));
    }

    #[test]
    fn values_are_kept_whatever_their_length() {
        let mut entry = Entry::new(1, &[1, 2]);
        for value in [&[][..], &[7; 4], &[8; 5], &[9; 100], &[1]] {
            entry.set(value);
            assert_eq!(entry.value(), value);
        }
    }
}
