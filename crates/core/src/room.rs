//! Memory for names that come from input, in bytes.

use crate::span::Track;

/// Most bytes of names, and the overhead of each.
pub(crate) const ROOM_BYTES: usize = 24 << 20;
pub(crate) const ENTRY_BYTES: usize = 64;

/// What is left of 24 MiB for names of threads, files and the like. A limit on their number is not enough: a crafted trace
/// may have names as long as its records.
///
/// ```
/// use anytrace_core::Room;
///
/// let mut room = Room::default();
/// assert!(room.takes(1000) && !room.takes(25 << 20) && room.takes(1000));
/// assert_eq!(room.refused(), 1);
/// ```
#[derive(Debug)]
pub struct Room {
    left_bytes: usize,
    refused: u64,
}

impl Default for Room {
    fn default() -> Self {
        Self::of(ROOM_BYTES)
    }
}

impl Room {
    pub(crate) fn of(left_bytes: usize) -> Self {
        Self { left_bytes, refused: 0 }
    }

    /// Takes room for a string of so many bytes; false if there is none.
    pub fn takes(&mut self, bytes: usize) -> bool {
        match bytes.checked_add(ENTRY_BYTES).and_then(|bytes| self.left_bytes.checked_sub(bytes)) {
            Some(left) => self.left_bytes = left,
            None => {
                self.refused += 1;
                return false;
            }
        }
        true
    }

    /// Gives back what a string took.
    pub fn returns(&mut self, bytes: usize) {
        self.left_bytes = self.left_bytes.saturating_add(bytes).saturating_add(ENTRY_BYTES).min(ROOM_BYTES);
    }

    /// A track with its names, as far as there is room for them: without any it still has its numbers. Many threads of
    /// one process have its name, so that the tracks take more than the names.
    pub fn track(&mut self, track: Track) -> Track {
        let mut keep = |name: Option<String>| name.filter(|name| self.takes(name.len()));
        Track { name: keep(track.name), process_name: keep(track.process_name), ..track }
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
    fn what_is_given_back_is_there_again() {
        let mut room = Room::default();
        for _ in 0..100 {
            assert!(room.takes(20 << 20) && !room.takes(5 << 20) && room.takes(1 << 20));
            room.returns(20 << 20);
            room.returns(1 << 20);
        }
        assert!(!room.takes(ROOM_BYTES) && !room.takes(usize::MAX) && room.takes(ROOM_BYTES - ENTRY_BYTES));
        assert!(!room.takes(0));
        assert_eq!(room.refused(), 103);
    }

    #[test]
    fn a_track_without_room_has_its_numbers() {
        let mut room = Room::default();
        let name = |megabytes: usize| Some("x".repeat(megabytes << 20));
        let track = Track { process: 3, thread: 4, name: name(15), process_name: name(10), ..Track::default() };
        let found = room.track(track.clone());
        assert_eq!((found.process, found.thread, found.name.is_some(), found.process_name), (3, 4, true, None));
        assert_eq!(room.track(Track { name: name(8), process_name: None, ..track }).name, name(8));
    }
}
