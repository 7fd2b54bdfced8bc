//! A moving window over any input; the only place that refills.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::file::{FileMap, OpenFile};
use crate::input::{Body, Input};
use crate::{Error, Layer, Sink};

/// How far a window over memory reaches at once: small enough for progress reports and caches, large enough that
/// refilling costs nothing.
const STEP_BYTES: usize = 1 << 20;

/// How much is read from a stream at once.
const CHUNK_BYTES: usize = 256 * 1024;

/// Supplies more bytes to a [`Cursor`]: a reader, or a decompressor that writes in place.
pub trait Refill: Send {
    /// Puts more bytes into `buffer[at..]`, growing the vector where it must, and returns how many;
    /// 0 is the end of the data.
    fn refill(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<usize, Error>;
}

/// A window of bytes that moves forward over an input of any size.
///
/// Parsers are pure functions over [`Cursor::window`]; when one needs more bytes its caller asks
/// [`Cursor::fill`]. A window over memory costs nothing; over a file or a stream it is one buffer.
pub struct Cursor {
    body: Source,
    start: usize,
    end: usize,
    base: u64,
    is_ended: bool,
    layers: Vec<Layer>,
    progress: Option<Arc<AtomicU64>>,
}

enum Source {
    Map(FileMap),
    Bytes(Vec<u8>),
    File { buffer: Vec<u8>, file: OpenFile },
    Stream { buffer: Vec<u8>, refill: Box<dyn Refill> },
}

impl Cursor {
    /// Streams up to this length are buffered in memory by readers that need all bytes, and read as files are.
    pub const BUFFERED_BYTES_MAX: usize = 64 << 20;

    /// Starts at the first byte of the (decompressed) input.
    pub fn new(input: Input) -> Self {
        let layers = input.layers().to_vec();
        let progress = layers.is_empty().then(|| input.progress());
        let mut end = 0;
        let (body, progress) = match input.body {
            Body::Map(map) => (Source::Map(map), progress),
            Body::Bytes(bytes) => (Source::Bytes(bytes), progress),
            Body::File { head, file } => {
                end = head.len();
                (Source::File { buffer: head, file }, progress)
            }
            // The stream under it is metered already.
            Body::Stream { head, rest, .. } => match input.drip_bytes {
                Some(at_once) => {
                    let rest = Box::new(io::Cursor::new(head).chain(rest));
                    (Source::Stream { buffer: Vec::new(), refill: Box::new(ReadRefill { rest, at_once }) }, None)
                }
                None => {
                    end = head.len();
                    let refill = Box::new(ReadRefill { rest, at_once: CHUNK_BYTES });
                    (Source::Stream { buffer: head, refill }, None)
                }
            },
        };
        let mut cursor = Self { body, start: 0, end, base: 0, is_ended: false, layers, progress };
        cursor.extend_in_memory(STEP_BYTES);
        cursor
    }

    /// Starts over a source supplied by the caller, such as a container's decoder.
    pub fn from_refill(refill: Box<dyn Refill>) -> Self {
        Self {
            body: Source::Stream { buffer: Vec::new(), refill },
            start: 0,
            end: 0,
            base: 0,
            is_ended: false,
            layers: Vec::new(),
            progress: None,
        }
    }

    /// The bytes of the window, from the current position on. May be empty before the first [`Self::fill`].
    #[inline]
    pub fn window(&self) -> &[u8] {
        &self.all()[self.start..self.end]
    }

    /// Position in the (decompressed) input.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.base + self.start as u64
    }

    /// Moves forward. At most the window's length.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "a cursor cannot pass its window");
        self.start += bytes;
    }

    /// Makes the window at least `need` bytes long and returns its length, which is less than `need`
    /// only when the data end there. Callers bound `need` by their limits first.
    ///
    /// # Errors
    /// [`crate::Kind::Io`] when the source cannot be read.
    pub fn fill(&mut self, need: usize) -> Result<usize, Error> {
        if let Some(progress) = &self.progress {
            progress.store(self.base + self.start as u64, Ordering::Relaxed);
        }
        self.extend_in_memory(need.max(STEP_BYTES));
        if let Source::Stream { buffer, .. } | Source::File { buffer, .. } = &mut self.body {
            // At the end of the data nothing more can follow, so nothing is moved: a reader that asks again and again
            // there must not cost a copy each time.
            if self.end - self.start < need && self.start > 0 && !self.is_ended {
                buffer.copy_within(self.start..self.end, 0);
                self.base += self.start as u64;
                self.end -= self.start;
                self.start = 0;
            }
        }
        while self.end - self.start < need && !self.is_ended {
            let got = match &mut self.body {
                Source::Stream { buffer, refill } => refill.refill(buffer, self.end)?,
                Source::File { buffer, file } => {
                    // What is asked for is often a length from the file: no more memory than for twice what is there.
                    let have = self.end - self.start;
                    let to = self.end + CHUNK_BYTES.max(have.min(need - have));
                    if buffer.len() < to {
                        buffer.resize(to, 0);
                    }
                    file.read(buffer.get_mut(self.end..).unwrap_or_default())?
                }
                Source::Map(_) | Source::Bytes(_) => break,
            };
            self.is_ended = got == 0;
            self.end += got;
        }
        Ok(self.end - self.start)
    }

    /// Moves forward by any distance, refilling on the way; returns the distance moved, less at the end.
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub fn skip(&mut self, bytes: u64) -> Result<u64, Error> {
        let mut left = bytes;
        while left > 0 {
            if self.fill(1)? == 0 {
                break;
            }
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(self.end - self.start);
            self.advance(step);
            left -= step as u64;
        }
        Ok(bytes - left)
    }

    /// True when nothing follows the window.
    pub fn is_last_window(&self) -> bool {
        match &self.body {
            Source::Map(map) => self.end == map.len(),
            Source::Bytes(bytes) => self.end == bytes.len(),
            Source::File { .. } | Source::Stream { .. } => self.is_ended,
        }
    }

    /// Reports compression layers that did not end cleanly. Call it after everything was read.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn report_layers(&self, sink: &mut dyn Sink) -> Result<(), Error> {
        for damage in self.layers.iter().filter_map(Layer::damage) {
            sink.report(damage)?;
        }
        Ok(())
    }

    /// Compression layers of the input, outermost first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Maps the input where it is a file that can be mapped; the position stays. True when [`Self::as_slice`] now has
    /// all bytes. See [`Input::at_hand`] for the consequences.
    pub fn bring_at_hand(&mut self) -> bool {
        if let Source::File { .. } = self.body {
            let offset = self.offset();
            let Source::File { buffer, file } = std::mem::replace(&mut self.body, Source::Bytes(Vec::new())) else {
                return false;
            };
            match file.map() {
                Err(file) => self.body = Source::File { buffer, file },
                Ok(map) => {
                    let start = usize::try_from(offset).unwrap_or(map.len()).min(map.len());
                    (self.base, self.start, self.end) = (0, start, start);
                    self.body = Source::Map(map);
                    self.extend_in_memory(STEP_BYTES);
                }
            }
        }
        self.as_slice().is_some()
    }

    /// All bytes of the input, whatever the position, if they are in memory: of an input in memory, a mapped file, or a
    /// file or stream that was read to its end without discarding its first bytes.
    pub fn as_slice(&self) -> Option<&[u8]> {
        match &self.body {
            Source::Map(map) => Some(map),
            Source::Bytes(bytes) => Some(bytes),
            Source::File { buffer, .. } | Source::Stream { buffer, .. } => {
                buffer.get(..self.end).filter(|_| self.is_ended && self.base == 0)
            }
        }
    }

    /// Returns to the first byte; false where that was discarded, and then nothing changes.
    pub fn rewind(&mut self) -> bool {
        if self.base == 0 {
            self.start = 0;
            return true;
        }
        self.seek(0)
    }

    /// True when [`Self::rewind`] will succeed, however far was read.
    pub fn can_rewind(&self) -> bool {
        !matches!(self.body, Source::Stream { .. })
    }

    /// True when the input can be read twice: it is a file or in memory, or a stream of at most `buffered_bytes_max`
    /// bytes, all of which are then in the window. The cursor must be at the first byte.
    ///
    /// # Errors
    /// As [`Self::fill`].
    pub fn can_read_twice(&mut self, buffered_bytes_max: usize) -> Result<bool, Error> {
        Ok(self.can_rewind() || self.fill(buffered_bytes_max.saturating_add(1))? <= buffered_bytes_max)
    }

    /// Moves to any offset of a file or of an input in memory; false, and nothing changes, for streams and past the
    /// end.
    pub fn seek(&mut self, offset: u64) -> bool {
        if let Source::File { file, .. } = &mut self.body {
            if !file.seek(offset) {
                return false;
            }
            (self.base, self.start, self.end, self.is_ended) = (offset, 0, 0, false);
            return true;
        }
        let length = match &self.body {
            Source::Map(map) => map.len(),
            Source::Bytes(bytes) => bytes.len(),
            Source::File { .. } | Source::Stream { .. } => return false,
        };
        let Some(start) = usize::try_from(offset).ok().filter(|start| *start <= length) else { return false };
        (self.start, self.end) = (start, start);
        self.extend_in_memory(STEP_BYTES);
        true
    }

    fn all(&self) -> &[u8] {
        match &self.body {
            Source::Map(map) => map,
            Source::Bytes(bytes) => bytes,
            Source::File { buffer, .. } | Source::Stream { buffer, .. } => buffer,
        }
    }

    /// For inputs in memory: extends the window by `bytes`, or by as many as there are.
    fn extend_in_memory(&mut self, bytes: usize) {
        let length = match &self.body {
            Source::Map(map) => map.len(),
            Source::Bytes(bytes) => bytes.len(),
            Source::File { .. } | Source::Stream { .. } => return,
        };
        self.end = self.end.max(self.start.saturating_add(bytes).min(length));
    }
}

/// Refills from a plain reader.
struct ReadRefill {
    rest: Box<dyn Read + Send>,
    at_once: usize,
}

impl Refill for ReadRefill {
    fn refill(&mut self, buffer: &mut Vec<u8>, at: usize) -> Result<usize, Error> {
        let to = at + self.at_once;
        if buffer.len() < to {
            buffer.resize(to, 0);
        }
        loop {
            match self.rest.read(&mut buffer[at..to]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("cannot read the input", error)),
                Ok(n) => return Ok(n),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time, as the worst pipe would.
    struct Drip(Vec<u8>);

    impl Read for Drip {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() || buffer.is_empty() {
                return Ok(0);
            }
            buffer[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn a_window_grows_to_what_is_needed_and_ends_with_the_data() {
        let input = Input::from_read("x", Box::new(Drip((0..10).collect())), None).unwrap();
        let mut cursor = Cursor::new(input);
        assert_eq!(cursor.fill(3).unwrap(), 10);
        cursor.advance(8);
        assert_eq!((cursor.offset(), cursor.fill(5).unwrap()), (8, 2));
        assert_eq!(cursor.window(), [8, 9]);
        assert!(cursor.is_last_window());
    }

    #[test]
    fn what_is_asked_for_and_not_there_takes_no_memory() {
        let path = std::env::temp_dir().join(format!("anytrace-cursor-short-{}", std::process::id()));
        std::fs::write(&path, [7; 1000]).unwrap();
        let mut cursor = Cursor::new(Input::open(&path, crate::InputOptions::default()).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(cursor.fill(1 << 30).unwrap(), 1000);
        match &cursor.body {
            Source::File { buffer, .. } => assert!(buffer.capacity() < 4 * CHUNK_BYTES, "{}", buffer.capacity()),
            _ => panic!("a file was opened"),
        }
    }

    #[test]
    fn memory_and_stream_give_the_same_bytes_at_the_same_offsets() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let memory = Input::from_bytes("x", bytes.clone());
        let stream = Input::from_read("x", Box::new(io::Cursor::new(bytes.clone())), None).unwrap();
        for input in [memory, stream] {
            let mut cursor = Cursor::new(input);
            let mut seen = Vec::new();
            while cursor.fill(7).unwrap() > 0 {
                assert_eq!(cursor.offset(), seen.len() as u64);
                let step = cursor.window().len().min(4099);
                seen.extend_from_slice(&cursor.window()[..step]);
                cursor.advance(step);
            }
            assert_eq!(seen, bytes);
        }
    }

    #[test]
    fn a_stream_buffered_to_its_end_is_a_slice_and_can_be_read_again() {
        let bytes: Vec<u8> = (0..200_000_u32).map(|n| (n % 251) as u8).collect();
        let mut cursor = Cursor::new(Input::from_read("x", Box::new(io::Cursor::new(bytes.clone())), None).unwrap());
        assert!(cursor.as_slice().is_none());
        assert_eq!(cursor.fill(1_000_000).unwrap(), bytes.len());
        cursor.advance(150_000);
        assert_eq!(cursor.as_slice(), Some(bytes.as_slice()));
        assert!(cursor.rewind());
        assert_eq!((cursor.offset(), cursor.window()), (0, bytes.as_slice()));
        let mut long = Cursor::new(Input::from_read("x", Box::new(io::Cursor::new(bytes)), None).unwrap());
        while long.fill(70_000).unwrap() > 0 {
            let step = long.window().len().min(65_000);
            long.advance(step);
        }
        assert!(long.as_slice().is_none() && !long.rewind());
        assert_eq!(long.offset(), 200_000);
    }

    #[test]
    fn memory_is_sought_and_streams_are_not() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let mut memory = Cursor::new(Input::from_bytes("x", bytes.clone()));
        assert!(memory.seek(2_500_000) && !memory.seek(3_000_001));
        assert_eq!((memory.offset(), memory.window()), (2_500_000, &bytes[2_500_000..]));
        assert!(memory.seek(5) && memory.window().starts_with(&bytes[5..1000]));
        assert!(memory.seek(3_000_000) && memory.window().is_empty() && memory.is_last_window());
        let mut stream = Cursor::new(Input::from_read("x", Box::new(io::Cursor::new(bytes)), None).unwrap());
        assert!(!stream.seek(5));
        assert_eq!(stream.offset(), 0);
    }

    #[test]
    fn a_file_is_read_sought_and_brought_at_hand_with_the_same_bytes() {
        let path = std::env::temp_dir().join(format!("anytrace-cursor-{}", std::process::id()));
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let open = || Cursor::new(Input::open(&path, crate::InputOptions::default()).unwrap());
        let mut cursor = open();
        let mut seen = Vec::new();
        while cursor.fill(70_000).unwrap() > 0 {
            assert_eq!(cursor.offset(), seen.len() as u64);
            let step = cursor.window().len().min(65_003);
            seen.extend_from_slice(&cursor.window()[..step]);
            cursor.advance(step);
        }
        assert!(seen == bytes && cursor.is_last_window() && cursor.as_slice().is_none());
        assert!(cursor.rewind() && cursor.fill(7).unwrap() >= 7 && cursor.window().starts_with(&bytes[..7]));
        assert!(cursor.seek(2_500_000) && !cursor.seek(3_000_001) && cursor.offset() == 2_500_000);
        cursor.fill(1).unwrap();
        assert!(cursor.window().starts_with(&bytes[2_500_000..2_500_100]));
        cursor.advance(100);
        assert!(cursor.bring_at_hand());
        assert_eq!((cursor.offset(), cursor.as_slice()), (2_500_100, Some(bytes.as_slice())));
        assert!(cursor.window().starts_with(&bytes[2_500_100..2_600_000]));
        let mut cursor = open();
        assert_eq!(cursor.skip(2_999_999).unwrap(), 2_999_999);
        assert_eq!((cursor.fill(10).unwrap(), cursor.window()), (1, &bytes[2_999_999..]));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn skip_reports_how_far_it_came() {
        let mut cursor = Cursor::new(Input::from_bytes("x", vec![0; 2_000_000]));
        assert_eq!(cursor.skip(1_500_000).unwrap(), 1_500_000);
        assert_eq!(cursor.skip(1_500_000).unwrap(), 500_000);
        assert_eq!(cursor.offset(), 2_000_000);
    }
}
