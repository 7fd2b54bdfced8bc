//! Accesses as cacheray's records: binary, little-endian, pointers of 8 bytes.
//!
//! A record is a tag (0 read, 1 write), the address (u64), the bytes (u8) and the thread (u64). It has no room for
//! more than 255 bytes, so a larger access becomes several records ([`records`]), nor for what fetches an instruction:
//! that is what the file of code addresses is for.

use anytrace_core::access::{Access, AccessKind, ThreadNumber};

use crate::access_text::AccessLines;

/// The largest record of an access that needs several: a power of two, so that none crosses a line that the access does
/// not cross there.
const PIECE_BYTES: u16 = 128;
/// The largest access that one record has room for.
const RECORD_BYTES_MAX: u16 = 255;

/// The records that an access is written as: their addresses and bytes. None for a fetch.
pub fn records(access: &Access) -> impl Iterator<Item = (u64, u8)> {
    let (address, bytes) = (access.address, access.bytes);
    let piece = if bytes > RECORD_BYTES_MAX { PIECE_BYTES } else { RECORD_BYTES_MAX };
    let count = match access.kind {
        AccessKind::Fetch => 0,
        AccessKind::Read | AccessKind::Write => bytes.div_ceil(piece).max(1),
    };
    (0..count).map(move |number| {
        let done = number * piece;
        // At most `RECORD_BYTES_MAX`.
        (address.wrapping_add(u64::from(done)), (bytes - done).min(piece) as u8)
    })
}

/// Cacheray's records as the lines of a form.
#[derive(Debug, Default)]
pub(crate) struct CacherayRecords {
    threads: Vec<u64>,
    fetches: u64,
    divided: u64,
}

impl AccessLines for CacherayRecords {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> bool {
        let at = number as usize;
        self.threads.resize(self.threads.len().max(at + 1), 0);
        if let Some(slot) = self.threads.get_mut(at) {
            *slot = id.unwrap_or(u64::from(number));
        }
        true
    }

    fn push(&mut self, out: &mut Vec<u8>, access: &Access) {
        self.fetches += u64::from(access.kind == AccessKind::Fetch);
        self.divided += u64::from(access.kind != AccessKind::Fetch && access.bytes > RECORD_BYTES_MAX);
        let thread = self.threads.get(access.thread as usize).copied().unwrap_or_default();
        for (address, bytes) in records(access) {
            out.push(u8::from(access.kind == AccessKind::Write));
            out.extend(address.to_le_bytes());
            out.push(bytes);
            out.extend(thread.to_le_bytes());
        }
    }

    fn notes(&self) -> Vec<String> {
        let Self { fetches, divided, .. } = *self;
        let mut notes = Vec::new();
        if fetches > 0 {
            notes.push(format!("left out: {fetches} fetches of instructions: this form has only reads and writes"));
        }
        if divided > 0 {
            notes.push(format!("{divided} accesses of more than {RECORD_BYTES_MAX} bytes are several records each"));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::AccessSink;
    use anytrace_core::access::AccessFlags;

    use super::*;
    use crate::access_text::{AccessText, AccessWriter};

    fn access(kind: AccessKind, bytes: u16) -> Access {
        Access { address: 0x1000, seq: 0, thread: 0, bytes, kind, flags: AccessFlags::NONE }
    }

    #[test]
    fn large_accesses_become_several_records_and_fetches_none() {
        let of = |kind, bytes| records(&access(kind, bytes)).collect::<Vec<_>>();
        assert_eq!(of(AccessKind::Fetch, 4), []);
        assert_eq!(of(AccessKind::Read, 0), [(0x1000, 0)]);
        assert_eq!(of(AccessKind::Read, 255), [(0x1000, 255)]);
        assert_eq!(of(AccessKind::Write, 300), [(0x1000, 128), (0x1080, 128), (0x1100, 44)]);
        assert_eq!(of(AccessKind::Write, 512).len(), 4);
    }

    #[test]
    fn records_are_18_bytes() {
        let mut out = Vec::new();
        let mut writer = AccessText::new(&mut out, CacherayRecords::default());
        writer.thread(0, Some(7)).unwrap();
        let batch = [access(AccessKind::Fetch, 3), access(AccessKind::Write, 8), access(AccessKind::Read, 300)];
        writer.accesses(&batch).unwrap();
        let notes = writer.finish().unwrap();
        assert_eq!(notes.len(), 2, "{notes:?}");
        drop(writer);
        assert_eq!(out.len(), 4 * 18);
        assert_eq!(&out[..18], [1, 0, 0x10, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0]);
    }
}
