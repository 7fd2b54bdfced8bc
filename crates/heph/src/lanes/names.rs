//! Descriptions by number.

use anytrace_core::hash::Map;

/// The number of a description for which there was no room.
pub(crate) const NO_ROOM: u32 = u32::MAX;

/// Most bytes of stored descriptions, and the overhead of each.
const ROOM_BYTES: usize = 24 << 20;
const ENTRY_BYTES: usize = 64;

/// Every description of the trace, numbered in order of appearance.
#[derive(Debug)]
pub(crate) struct Names {
    index: Map<Box<[u8]>, u32>,
    names: Vec<Box<[u8]>>,
    room_bytes: usize,
    /// Events whose description was not stored for lack of room.
    pub(crate) without_room: u64,
}

impl Default for Names {
    fn default() -> Self {
        Self { index: Map::default(), names: Vec::new(), room_bytes: ROOM_BYTES, without_room: 0 }
    }
}

impl Names {
    /// The number of a description, known or new; [`NO_ROOM`] if there is no room.
    #[inline]
    pub(crate) fn number(&mut self, description: &[u8]) -> u32 {
        match self.index.get(description) {
            Some(&number) => number,
            None => self.add(description),
        }
    }

    #[cold]
    fn add(&mut self, description: &[u8]) -> u32 {
        // Stored twice: as a key, and for output.
        let needed = 2 * description.len() + ENTRY_BYTES;
        let Some(left) = self.room_bytes.checked_sub(needed) else {
            self.without_room += 1;
            return NO_ROOM;
        };
        self.room_bytes = left;
        let number = u32::try_from(self.names.len()).unwrap_or(NO_ROOM);
        self.names.push(description.into());
        self.index.insert(description.into(), number);
        number
    }

    /// The description of a number.
    pub(crate) fn get(&self, number: u32) -> Option<&[u8]> {
        self.names.get(number as usize).map(|name| &**name)
    }

    /// All of them, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|name| &**name)
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
