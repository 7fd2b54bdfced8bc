//! What `perf.data` begins with: `struct perf_file_header` of Linux, `tools/perf/util/header.h`, and the descriptions of
//! the events. In a pipe the header is 16 bytes, and everything else is in records.

use anytrace_core::Endian;
use anytrace_core::bytes::array_at;

use super::fault::{Fault, Need};

/// The first bytes, in the byte order of the machine that recorded.
pub(crate) const MAGIC: &[u8; 8] = b"PERFILE2";
/// The same of a machine of the other order.
pub(crate) const MAGIC_SWAPPED: &[u8; 8] = b"2ELIFREP";
/// The first bytes of the version before, of 2009.
pub(crate) const MAGIC_OLD: &[u8; 8] = b"PERFFILE";

/// Length of the header of a stream, and of a file.
pub(crate) const PIPE_BYTES: u64 = 16;
pub(crate) const FILE_BYTES: u64 = 104;

/// Where the length of the records is in the header.
pub(crate) const DATA_SIZE_AT: usize = 48;
/// Where the bits of the features are.
pub(crate) const FEATURES_AT: usize = 72;

/// Most bytes that precede the records.
pub(crate) const PREFIX_BYTES_MAX: u64 = 16 << 20;

/// What precedes the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'a> {
    /// All bytes up to the first record.
    pub bytes: &'a [u8],
    pub(crate) endian: Endian,
}

/// A range of a file, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Section {
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub bytes: u64,
}

impl Section {
    /// Where it ends.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

impl<'a> Header<'a> {
    fn word(&self, at: usize) -> u64 {
        array_at(self.bytes, at).map_or(0, |bytes| self.endian.u64(bytes))
    }

    fn section(&self, at: usize) -> Section {
        Section { offset: self.word(at), bytes: self.word(at + 8) }
    }

    /// True for a stream, which has nothing but records.
    pub fn is_pipe(&self) -> bool {
        self.word(8) == PIPE_BYTES
    }

    /// Where the records are; a length of 0 is that of a recording that was not finished.
    pub fn data(&self) -> Section {
        self.section(40)
    }

    /// The features that the file says it has, by number from 0.
    pub fn features(&self) -> impl Iterator<Item = u32> {
        let words = [0, 1, 2, 3].map(|at| if self.is_pipe() { 0 } else { self.word(FEATURES_AT + at * 8) });
        (0..256).filter(move |bit| words.get(*bit as usize / 64).is_some_and(|word| word >> (bit % 64) & 1 == 1))
    }

    /// The descriptions of the events: for each its bytes, and those of the numbers that its records have.
    pub(crate) fn attrs(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        let (entry, table) = (self.word(16), self.section(24));
        let bytes = if self.is_pipe() { None } else { self.slice(table) };
        let entry = usize::try_from(entry).unwrap_or(0).max(16);
        bytes.unwrap_or_default().chunks_exact(entry).map(move |own| {
            let (attr, ids) = own.split_at(entry - 16);
            let ids = Header { bytes: ids, endian: self.endian }.section(0);
            (attr, self.slice(ids).unwrap_or_default())
        })
    }

    fn slice(&self, section: Section) -> Option<&'a [u8]> {
        let start = usize::try_from(section.offset).ok()?;
        self.bytes.get(start..usize::try_from(section.end()).ok()?)
    }
}

/// The byte order of a recording that begins so; `None` if it is none.
pub(crate) fn endian(window: &[u8]) -> Option<Endian> {
    // The magic number is a number: read as text it is that of a little-endian machine.
    match window.first_chunk::<8>()? {
        MAGIC => Some(Endian::Little),
        MAGIC_SWAPPED => Some(Endian::Big),
        _ => None,
    }
}

/// Reads what a window begins with.
pub(crate) fn read(window: &[u8], endian: Endian) -> Result<(Header<'_>, usize), Need> {
    let bad = |field, expected, at| Err(Need::Bad(Fault { field, expected, at }));
    let Some(bytes) = window.get(..16) else { return Err(Need::More(16)) };
    let head = Header { bytes, endian };
    match head.word(8) {
        PIPE_BYTES => return Ok((head, 16)),
        FILE_BYTES => {}
        _ => return bad("size", "104, or 16 for a stream", 8),
    }
    let Some(bytes) = window.get(..104) else { return Err(Need::More(FILE_BYTES)) };
    let head = Header { bytes, endian };
    let (entry, attrs, data) = (head.word(16), head.section(24), head.data());
    if !(80..=4096).contains(&entry) {
        return bad("attr_size", "from 80 to 4096", 16);
    }
    if data.offset < FILE_BYTES || data.offset > PREFIX_BYTES_MAX {
        return bad("data.offset", "from 104 to 16777216", 40);
    }
    if attrs.offset < FILE_BYTES || attrs.end() > data.offset {
        return bad("attrs", "between the header and the records", 24);
    }
    if !attrs.bytes.is_multiple_of(entry) || attrs.bytes == 0 {
        return bad("attrs.size", "a multiple of attr_size", 32);
    }
    let Some(bytes) = usize::try_from(data.offset).ok().and_then(|end| window.get(..end)) else {
        return Err(Need::More(data.offset));
    };
    let header = Header { bytes, endian };
    // Their numbers must be there, too.
    let entry_bytes = usize::try_from(entry).unwrap_or(80);
    for (at, own) in header.slice(attrs).unwrap_or_default().chunks_exact(entry_bytes).enumerate() {
        let ids = Header { bytes: own, endian }.section(entry_bytes - 16);
        if !ids.bytes.is_multiple_of(8) || header.slice(ids).is_none() {
            let at = usize::try_from(attrs.offset).unwrap_or(0) + (at + 1) * entry_bytes - 16;
            return bad("attr.ids", "between the header and the records", at);
        }
    }
    Ok((header, bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_a_stream_is_short() {
        let stream = [&MAGIC[..], &16_u64.to_le_bytes()].concat();
        let (header, used) = read(&stream, Endian::Little).unwrap();
        assert!(header.is_pipe() && header.attrs().next().is_none() && header.features().next().is_none());
        assert_eq!(used, 16);
        assert_eq!(
            (endian(&stream), endian(MAGIC_SWAPPED), endian(MAGIC_OLD)),
            (Some(Endian::Little), Some(Endian::Big), None)
        );
        assert_eq!(read(&stream[..9], Endian::Little), Err(Need::More(16)));
    }
}
