//! Memory of the traced program: what it mapped, and what the tracer saw it allocate.
#![allow(unsafe_code, reason = "mapped memory is the driver's")]

/// Most bytes of one allocation.
const ALLOCATION_MAX: u64 = 1 << 30;

#[derive(Debug)]
enum Room {
    /// Mapped by the driver, of a buffer as it is called here.
    Mapped {
        real: usize,
        buffer: u32,
    },
    Own(Box<[u8]>),
}

#[derive(Debug)]
struct Region {
    traced: u64,
    length: u64,
    room: Room,
}

/// Memory by its addresses in the trace.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    fn find(&self, traced: u64) -> Option<usize> {
        let has = |region: &Region| traced >= region.traced && traced - region.traced < region.length;
        self.regions.iter().rposition(has)
    }

    fn add(&mut self, traced: u64, length: u64, room: Room) {
        let end = traced.saturating_add(length);
        self.regions.retain(|region| traced >= region.traced.saturating_add(region.length) || region.traced >= end);
        self.regions.push(Region { traced, length, room });
    }

    /// The address here of known memory, and how many bytes are there.
    pub(crate) fn address(&self, traced: u64) -> Option<(u64, u64)> {
        let region = self.find(traced).and_then(|at| self.regions.get(at))?;
        let offset = traced - region.traced;
        let start = match &region.room {
            Room::Mapped { real, .. } => *real as u64,
            Room::Own(bytes) => bytes.as_ptr() as u64,
        };
        Some((start + offset, region.length - offset))
    }

    /// The driver mapped so many bytes of a buffer.
    pub(crate) fn mapped(&mut self, traced: u64, real: u64, length: u64, buffer: u32) {
        if traced != 0 && real != 0 && length > 0 {
            self.add(traced, length, Room::Mapped { real: real as usize, buffer });
        }
    }

    /// The buffer is no longer mapped.
    pub(crate) fn unmapped(&mut self, of: u32) {
        self.regions.retain(|region| !matches!(region.room, Room::Mapped { buffer, .. } if buffer == of));
    }

    /// True when something is mapped.
    pub(crate) fn has_mapped(&self) -> bool {
        self.regions.iter().any(|region| matches!(region.room, Room::Mapped { .. }))
    }

    pub(crate) fn allocated(&mut self, traced: u64, length: u64) {
        if traced != 0 && (1..=ALLOCATION_MAX).contains(&length) {
            self.add(traced, length, Room::Own(vec![0; length as usize].into()));
        }
    }

    pub(crate) fn released(&mut self, traced: u64) {
        self.regions.retain(|region| region.traced != traced || matches!(region.room, Room::Mapped { .. }));
    }

    /// An allocation is elsewhere and has another length; what it held is kept.
    pub(crate) fn moved(&mut self, from: u64, to: u64, length: u64) {
        let at = self.regions.iter().position(|region| region.traced == from && matches!(region.room, Room::Own(_)));
        let held = at.map(|at| self.regions.swap_remove(at).room);
        self.allocated(to, length);
        if let (Some(Room::Own(held)), Some(Region { room: Room::Own(room), .. })) = (held, self.regions.last_mut()) {
            let count = held.len().min(room.len());
            if let (Some(to), Some(from)) = (room.get_mut(..count), held.get(..count)) {
                to.copy_from_slice(from);
            }
        }
    }

    /// Bytes are written, as far as there is memory for them. False if there is none.
    pub(crate) fn copied(&mut self, traced: u64, bytes: &[u8]) -> bool {
        let Some(region) = self.find(traced).and_then(|at| self.regions.get_mut(at)) else { return false };
        let offset = traced - region.traced;
        let count = bytes.len().min(usize::try_from(region.length - offset).unwrap_or(usize::MAX));
        let bytes = bytes.get(..count).unwrap_or_default();
        match &mut region.room {
            Room::Own(room) => {
                let at = offset as usize;
                if let Some(to) = room.get_mut(at..at + count) {
                    to.copy_from_slice(bytes);
                }
            }
            Room::Mapped { real, .. } => {
                let to = (*real as u64 + offset) as *mut u8;
                // SAFETY: the driver mapped `length` bytes there, and the region is dropped when it unmaps them; `count`
                // ends inside. Nothing else writes there: the machine is the only one that calls the driver.
                unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, count) };
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn mapped_memory_is_written_inside_its_bounds() {
        let mut memory = Memory::default();
        let mut room = [0_u8; 8];
        memory.mapped(0x7f00_0000_1000, room.as_mut_ptr() as u64, 6, 3);
        assert!(memory.has_mapped());
        assert_eq!(memory.address(0x7f00_0000_1002), Some((room.as_ptr() as u64 + 2, 4)));
        assert!(memory.copied(0x7f00_0000_1004, b"abcdef"));
        assert!(!memory.copied(0x7f00_0000_1006, b"x"));
        assert_eq!(&room, b"\0\0\0\0ab\0\0");
        memory.unmapped(3);
        assert!(!memory.copied(0x7f00_0000_1004, b"abcdef") && !memory.has_mapped());
    }

    #[test]
    fn allocations_keep_what_they_hold_when_they_move() {
        let mut memory = Memory::default();
        memory.allocated(0x7f00_0000_2000, 4);
        assert!(memory.copied(0x7f00_0000_2000, b"wxyz"));
        memory.moved(0x7f00_0000_2000, 0x7f00_0000_3000, 8);
        assert!(!memory.copied(0x7f00_0000_2000, b"w"));
        assert!(memory.copied(0x7f00_0000_3004, b"!"));
        let Room::Own(bytes) = &memory.regions.last().unwrap().room else { panic!() };
        assert_eq!(bytes.as_ref(), b"wxyz!\0\0\0");
        memory.released(0x7f00_0000_3000);
        assert!(memory.regions.is_empty());
        assert_eq!((memory.address(64), memory.address(0x7f00_0000_3000)), (None, None));
    }
}
