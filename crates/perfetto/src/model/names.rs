//! Names of slices and keys of attributes by number, and places in source code.

use anytrace_core::hash::Map;
use anytrace_core::span::Location;

/// The number of a name.
pub(crate) type NameNumber = u32;

/// The key that has an edge's processor, in traces that anytrace wrote.
pub(crate) const CPU: NameNumber = 0;
/// The key that has an edge's flags, in traces that anytrace wrote.
pub(crate) const FLAGS: NameNumber = 1;
/// What a slice without a name is called.
pub(crate) const UNNAMED: NameNumber = 2;
/// What a name is called for which there was no room.
pub(crate) const NO_ROOM: NameNumber = 3;
/// The key of a counter's value.
pub(crate) const VALUE: NameNumber = 4;
/// The key of an arrow's number.
pub(crate) const FLOW: NameNumber = 5;
/// The key of a slice's categories.
pub(crate) const CATEGORY: NameNumber = 6;

const FIRST: [&[u8]; 7] = [b"cpu", b"flags", b"(unnamed)", b"(other)", b"value", b"flow", b"category"];

/// Most bytes of stored names, and the overhead of each.
const ROOM_BYTES: usize = 32 << 20;
const ENTRY_BYTES: usize = 64;

/// Every name of a trace, numbered in order of appearance. The same text at two places in source code is two names.
#[derive(Debug)]
pub(crate) struct Names {
    index: Map<Box<[u8]>, NameNumber>,
    located: Map<(NameNumber, u32), NameNumber>,
    names: Vec<(Box<[u8]>, Option<u32>)>,
    places: Vec<Location>,
    place_index: Map<(String, u32), u32>,
    room_bytes: usize,
    /// True when a name was not stored for lack of room.
    pub(crate) is_full: bool,
}

impl Default for Names {
    fn default() -> Self {
        let mut names = Self {
            index: Map::default(),
            located: Map::default(),
            names: Vec::new(),
            places: Vec::new(),
            place_index: Map::default(),
            room_bytes: ROOM_BYTES,
            is_full: false,
        };
        FIRST.iter().for_each(|name| _ = names.number(name));
        names
    }
}

impl Names {
    /// The number of a name, known or new.
    pub(crate) fn number(&mut self, name: &[u8]) -> NameNumber {
        match self.index.get(name) {
            Some(&number) => number,
            None => self.add(name),
        }
    }

    #[cold]
    fn add(&mut self, name: &[u8]) -> NameNumber {
        // Stored twice: as a key, and for output.
        if !self.takes(2 * name.len() + ENTRY_BYTES) {
            return NO_ROOM;
        }
        let number = self.push(name.into(), None);
        self.index.insert(name.into(), number);
        number
    }

    fn push(&mut self, name: Box<[u8]>, place: Option<u32>) -> NameNumber {
        self.names.push((name, place));
        NameNumber::try_from(self.names.len() - 1).unwrap_or(NO_ROOM)
    }

    fn takes(&mut self, bytes: usize) -> bool {
        match self.room_bytes.checked_sub(bytes) {
            Some(left) => self.room_bytes = left,
            None => self.is_full = true,
        }
        !self.is_full
    }

    /// The number of a place in source code; none for lack of room.
    pub(crate) fn place(&mut self, file: &[u8], line: u64) -> Option<u32> {
        let file = String::from_utf8_lossy(file).into_owned();
        let line = u32::try_from(line).unwrap_or(0);
        if let Some(&place) = self.place_index.get(&(file.clone(), line)) {
            return Some(place);
        }
        if !self.takes(2 * file.len() + ENTRY_BYTES) {
            return None;
        }
        let place = u32::try_from(self.places.len()).ok()?;
        self.places.push(Location { file: file.clone(), line });
        self.place_index.insert((file, line), place);
        Some(place)
    }

    /// The number of a name at a place.
    pub(crate) fn at_place(&mut self, name: NameNumber, place: u32) -> NameNumber {
        if let Some(&number) = self.located.get(&(name, place)) {
            return number;
        }
        let bytes: Box<[u8]> = self.get(name).into();
        if !self.takes(bytes.len() + ENTRY_BYTES) {
            return name;
        }
        let number = self.push(bytes, Some(place));
        self.located.insert((name, place), number);
        number
    }

    /// The name of a number.
    pub(crate) fn get(&self, number: NameNumber) -> &[u8] {
        self.names.get(number as usize).map_or(&[], |(name, _)| name)
    }

    /// A place by its number.
    pub(crate) fn place_of(&self, place: u32) -> Option<&Location> {
        self.places.get(place as usize)
    }

    /// All names with their places, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&[u8], Option<&Location>)> {
        self.names.iter().map(|(name, place)| (&**name, place.and_then(|place| self.place_of(place))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_at_two_places_is_two_names() {
        let mut names = Names::default();
        let run = names.number(b"run");
        let (a, b) = (names.place(b"a.rs", 1).unwrap_or(9), names.place(b"b.rs", 2).unwrap_or(9));
        assert_eq!((a, b, names.place(b"a.rs", 1)), (0, 1, Some(0)));
        let (at_a, at_b) = (names.at_place(run, a), names.at_place(run, b));
        assert!(at_a != at_b && names.at_place(run, a) == at_a && names.get(at_b) == b"run");
        let lines: Vec<_> = names.all().skip(FIRST.len()).map(|(_, place)| place.map(|place| place.line)).collect();
        assert_eq!(lines, [None, Some(1), Some(2)]);
        assert_eq!(names.get(CPU), b"cpu");
        assert_eq!(names.get(CATEGORY), b"category");
    }

    #[test]
    fn names_without_room_are_one() {
        let mut names = Names { room_bytes: 200, ..Names::default() };
        let numbers: Vec<_> = (0..4_u8).map(|n| names.number(&[n; 10])).collect();
        assert!(numbers[0] != NO_ROOM && numbers[3] == NO_ROOM && names.is_full, "{numbers:?}");
    }
}
