//! Where groups of slices are stored: in memory up to a limit, then in a temporary file without a name.

use std::fs::File;
use std::io;

/// Bytes of a segment; a group is never longer.
const SEGMENT_BYTES: usize = 1 << 20;

/// Segments that stay in memory.
const MEMORY_SEGMENTS: usize = 32;

/// Where some bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Segment, and offset in it.
    offset: u64,
    bytes: u32,
}

/// A segment.
#[derive(Debug)]
enum Segment {
    Memory(Vec<u8>),
    /// In the file, at the segment's number times its length.
    File,
}

/// Bytes that are appended once and read at any place.
#[derive(Debug)]
pub(crate) struct Blobs {
    segments: Vec<Segment>,
    file: Option<File>,
    memory_segments: usize,
}

impl Default for Blobs {
    fn default() -> Self {
        Self { segments: Vec::new(), file: None, memory_segments: MEMORY_SEGMENTS }
    }
}

impl Blobs {
    /// Blobs of which at most so many segments stay in memory.
    #[cfg(test)]
    pub(crate) fn with_memory_segments(memory_segments: usize) -> Self {
        Self { memory_segments, ..Self::default() }
    }

    /// Stores bytes, at most a segment.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<Place> {
        let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= SEGMENT_BYTES);
        let length = length.ok_or(io::ErrorKind::InvalidInput)?;
        let has_room = match self.segments.last() {
            Some(Segment::Memory(last)) => last.len() + bytes.len() <= SEGMENT_BYTES,
            _ => false,
        };
        if !has_room {
            self.put_away()?;
            self.segments.push(Segment::Memory(Vec::with_capacity(SEGMENT_BYTES)));
        }
        let number = self.segments.len() as u64 - 1;
        let Some(Segment::Memory(last)) = self.segments.last_mut() else { return Err(io::ErrorKind::NotFound.into()) };
        let offset = number * SEGMENT_BYTES as u64 + last.len() as u64;
        last.extend_from_slice(bytes);
        Ok(Place { offset, bytes: length })
    }

    /// Writes the last segment to the file where those in memory are enough.
    fn put_away(&mut self) -> io::Result<()> {
        let count = self.segments.len();
        if count < self.memory_segments.max(1) {
            return Ok(());
        }
        let Some(Segment::Memory(bytes)) = self.segments.last() else { return Ok(()) };
        if self.file.is_none() {
            self.file = Some(tempfile::tempfile()?);
        }
        if let Some(file) = &self.file {
            write_at(file, bytes, (count as u64 - 1) * SEGMENT_BYTES as u64)?;
        }
        if let Some(last) = self.segments.last_mut() {
            *last = Segment::File;
        }
        Ok(())
    }

    /// Reads bytes that were stored, into a vector that is cleared first.
    pub(crate) fn read(&self, place: Place, into: &mut Vec<u8>) -> io::Result<()> {
        let (segment, at) = (place.offset / SEGMENT_BYTES as u64, place.offset % SEGMENT_BYTES as u64);
        let (segment, at) = (to_usize(segment), to_usize(at));
        into.clear();
        match self.segments.get(segment) {
            Some(Segment::Memory(bytes)) => {
                let range = at..at + place.bytes as usize;
                into.extend_from_slice(bytes.get(range).ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
            Some(Segment::File) => {
                into.resize(place.bytes as usize, 0);
                let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
                read_at(file, into, place.offset)
            }
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Bytes of memory, and bytes in the file.
    pub(crate) fn size(&self) -> (usize, usize) {
        let in_memory = self.segments.iter().filter(|segment| matches!(segment, Segment::Memory(_))).count();
        (in_memory * SEGMENT_BYTES, (self.segments.len() - in_memory) * SEGMENT_BYTES)
    }
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset += written as u64;
    }
    Ok(())
}

#[cfg(windows)]
fn read_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let read = std::os::windows::fs::FileExt::seek_read(file, bytes, offset)?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes = bytes.get_mut(read..).unwrap_or_default();
        offset += read as u64;
    }
    Ok(())
}
