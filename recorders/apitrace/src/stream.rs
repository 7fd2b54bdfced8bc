//! The trace: version 6 of the format, in chunks of Snappy. (The format document, sections *container* and *stream*.)

use std::fs::File;
use std::io::Write;
use std::time::Instant;

use snap::raw::{Encoder, max_compress_len};

use crate::backtraces::Places;
use crate::table::{FUNCTIONS, GROUPS};

/// Bytes of the stream in a chunk; readers have no room for more.
const CHUNK_BYTES: usize = 1 << 20;

/// Functions of no interface, which represent what the program did to memory.
pub(crate) const MEMCPY: Signature = Signature { id: 0, name: "memcpy", arguments: &["dest", "src", "n"] };

/// Numbers of functions begin here.
const FIRST_ID: u64 = 4;

/// A function that is in no registry.
#[derive(Debug)]
pub(crate) struct Signature {
    id: u64,
    name: &'static str,
    arguments: &'static [&'static str],
}

/// What the writer knows.
#[derive(Debug)]
pub(crate) struct Stream {
    file: File,
    raw: Vec<u8>,
    packed: Vec<u8>,
    encoder: Encoder,
    flushed: Instant,
    functions: Vec<bool>,
    enums: Vec<bool>,
    masks: Vec<bool>,
    has_memcpy: bool,
    places: Places,
    /// Where the argument that is being written begins.
    argument: Option<usize>,
    /// The number of the next call.
    pub(crate) calls: u64,
    pub(crate) frames: u64,
    pub(crate) threads: u32,
    /// Why nothing more is written.
    pub(crate) failure: Option<std::io::Error>,
}

impl Stream {
    /// Begins a trace; `properties`: names and values.
    pub(crate) fn new(mut file: File, properties: &[(&str, &[u8])]) -> Self {
        let failure = without_signals(|| file.write_all(b"at")).err();
        let mut stream = Self {
            file,
            raw: Vec::with_capacity(CHUNK_BYTES + (1 << 16)),
            packed: vec![0; 4 + max_compress_len(CHUNK_BYTES)],
            encoder: Encoder::new(),
            flushed: Instant::now(),
            functions: vec![false; FUNCTIONS.len()],
            enums: vec![false; GROUPS.len()],
            masks: vec![false; GROUPS.len()],
            has_memcpy: false,
            places: Places::default(),
            argument: None,
            calls: 0,
            frames: 0,
            threads: 0,
            failure,
        };
        // The encoder gets its memory now, not when the process is about to end.
        let _ = stream.encoder.compress(&[0; CHUNK_BYTES / 8], &mut stream.packed);
        // The container's version, and that of what calls mean.
        stream.uint(6);
        stream.uint(6);
        for (name, value) in properties {
            stream.string(name.as_bytes());
            stream.string(value);
        }
        stream.string(b"");
        stream
    }

    /// Begins a call and returns its number. Its arguments follow, then `end`.
    pub(crate) fn enter(&mut self, function: usize, thread: u32, is_fake: bool) -> u64 {
        self.raw.push(0);
        self.uint(thread.into());
        self.uint(FIRST_ID + function as u64);
        if let Some(known) = self.functions.get_mut(function)
            && !std::mem::replace(known, true)
        {
            let function = &FUNCTIONS[function];
            self.string(function.name.as_bytes());
            self.uint(function.parameters.len() as u64);
            for parameter in function.parameters {
                self.string(parameter.name.as_bytes());
            }
        }
        self.flag(is_fake);
        self.calls += 1;
        self.calls - 1
    }

    /// Writes the stack of the call that was begun, if there is one.
    pub(crate) fn backtrace(&mut self, addresses: &[usize]) {
        if addresses.is_empty() {
            return;
        }
        let frames = self.places.frames(addresses);
        self.raw.push(4);
        self.uint(frames.len() as u64);
        for frame in frames {
            self.uint(frame.id);
            let Some(about) = frame.about else { continue };
            self.raw.push(1);
            self.string(&about.module);
            if let Some(function) = about.function {
                self.raw.push(2);
                self.string(&function);
            }
            self.raw.push(5);
            self.uint(about.offset);
            self.raw.push(0);
        }
    }

    fn flag(&mut self, is_fake: bool) {
        if is_fake {
            self.raw.extend_from_slice(&[5, 1]);
        }
    }

    /// Writes what the program wrote into memory that the driver gave it.
    pub(crate) fn memcpy(&mut self, thread: u32, address: u64, bytes: &[u8]) {
        self.raw.push(0);
        self.uint(thread.into());
        self.uint(MEMCPY.id);
        if !std::mem::replace(&mut self.has_memcpy, true) {
            self.string(MEMCPY.name.as_bytes());
            self.uint(MEMCPY.arguments.len() as u64);
            for name in MEMCPY.arguments {
                self.string(name.as_bytes());
            }
        }
        self.flag(true);
        self.argument(0);
        self.pointer(address);
        self.argument(1);
        self.blob(bytes);
        self.argument(2);
        self.unsigned(bytes.len() as u64);
        self.end();
        self.calls += 1;
        self.leave(self.calls - 1);
        self.end();
    }

    /// Begins the second event of a call.
    pub(crate) fn leave(&mut self, call: u64) {
        self.raw.push(1);
        self.uint(call);
    }

    pub(crate) fn argument(&mut self, at: usize) {
        self.argument = Some(self.raw.len());
        self.raw.push(1);
        self.uint(at as u64);
    }

    pub(crate) fn result(&mut self) {
        self.raw.push(2);
    }

    /// Ends an event.
    pub(crate) fn end(&mut self) {
        self.raw.push(0);
        self.argument = None;
        if self.raw.len() >= CHUNK_BYTES {
            self.write_chunks(false);
        }
    }

    /// Ends an event without the argument that could not be read.
    pub(crate) fn close_event(&mut self) {
        if let Some(at) = self.argument.take() {
            self.raw.truncate(at);
            self.raw.push(0);
        }
    }

    pub(crate) fn null(&mut self) {
        self.raw.push(0);
    }

    pub(crate) fn unsigned(&mut self, value: u64) {
        self.raw.push(4);
        self.uint(value);
    }

    pub(crate) fn signed(&mut self, value: i64) {
        self.raw.push(if value < 0 { 3 } else { 4 });
        self.uint(value.unsigned_abs());
    }

    pub(crate) fn float(&mut self, bits: u32) {
        self.raw.push(5);
        self.raw.extend_from_slice(&bits.to_le_bytes());
    }

    pub(crate) fn double(&mut self, bits: u64) {
        self.raw.push(6);
        self.raw.extend_from_slice(&bits.to_le_bytes());
    }

    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.raw.push(7);
        self.string(bytes);
    }

    pub(crate) fn blob(&mut self, bytes: &[u8]) {
        self.raw.push(8);
        self.uint(bytes.len() as u64);
        // A blob may be as large as the card's memory: no copy of it is kept whole.
        for piece in bytes.chunks(CHUNK_BYTES) {
            self.raw.extend_from_slice(piece);
            if self.raw.len() >= CHUNK_BYTES {
                self.write_chunks(false);
            }
        }
    }

    pub(crate) fn array(&mut self, count: usize) {
        self.raw.push(0x0b);
        self.uint(count as u64);
    }

    pub(crate) fn pointer(&mut self, address: u64) {
        if address == 0 {
            return self.null();
        }
        self.raw.push(0x0d);
        self.uint(address);
    }

    pub(crate) fn enumerant(&mut self, group: usize, value: i64) {
        self.raw.push(9);
        self.uint(group as u64);
        if let Some(known) = self.enums.get_mut(group)
            && !std::mem::replace(known, true)
        {
            let members = GROUPS[group].members;
            self.uint(members.len() as u64);
            for (name, value) in members {
                self.string(name.as_bytes());
                self.signed(*value);
            }
        }
        self.signed(value);
    }

    pub(crate) fn mask(&mut self, group: usize, value: u64) {
        self.raw.push(0x0a);
        self.uint(group as u64);
        if let Some(known) = self.masks.get_mut(group)
            && !std::mem::replace(known, true)
        {
            // Masks of several bits, as `GL_ALL_ATTRIB_BITS`, come last: readers take the first that fits.
            let members = GROUPS[group].members;
            let bits = |value: &i64| (*value as u64).count_ones();
            let mut sorted: Vec<&(&str, i64)> = members.iter().filter(|(_, value)| *value > 0).collect();
            sorted.sort_by_key(|(_, value)| (bits(value) > 1, *value));
            self.uint(sorted.len() as u64);
            for (name, value) in sorted {
                self.string(name.as_bytes());
                self.uint(*value as u64);
            }
        }
        self.uint(value);
    }

    fn string(&mut self, bytes: &[u8]) {
        self.uint(bytes.len() as u64);
        self.raw.extend_from_slice(bytes);
    }

    /// LEB128.
    fn uint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.raw.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.raw.push(value as u8);
    }

    /// Whether nothing was written for so long.
    pub(crate) fn is_due(&self, after: std::time::Duration) -> bool {
        !self.raw.is_empty() && self.flushed.elapsed() >= after
    }

    /// Writes all there is.
    pub(crate) fn flush(&mut self) {
        self.write_chunks(true);
        self.flushed = Instant::now();
    }

    fn write_chunks(&mut self, is_all: bool) {
        // What is written cannot be taken back.
        self.argument = None;
        let raw = std::mem::take(&mut self.raw);
        let mut rest = raw.as_slice();
        while rest.len() >= CHUNK_BYTES || (is_all && !rest.is_empty()) {
            let (chunk, after) = rest.split_at(rest.len().min(CHUNK_BYTES));
            self.write(chunk);
            rest = after;
        }
        let done = raw.len() - rest.len();
        self.raw = raw;
        self.raw.drain(..done);
    }

    fn write(&mut self, chunk: &[u8]) {
        if self.failure.is_some() {
            return;
        }
        let Some(room) = self.packed.get_mut(4..) else { return };
        // There is room for the worst case.
        let Ok(bytes) = self.encoder.compress(chunk, room) else { return };
        let Some(packed) = self.packed.get_mut(..4 + bytes) else { return };
        packed[..4].copy_from_slice(&(bytes as u32).to_le_bytes());
        self.failure = without_signals(|| self.file.write_all(packed)).err();
    }
}

/// Writes without the signals of a pipe that nobody reads and of a file that is too large: they would end the program,
/// which did not write.
fn without_signals<T>(write: impl FnOnce() -> T) -> T {
    // SAFETY: the sets are initialised before they are used, and live during the calls.
    unsafe {
        let mut ours: libc::sigset_t = std::mem::zeroed();
        let (mut before, mut pending) = (ours, ours);
        libc::sigemptyset(&mut ours);
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            libc::sigaddset(&mut ours, signal);
        }
        // One that is pending already is the program's.
        libc::sigpending(&mut pending);
        libc::pthread_sigmask(libc::SIG_BLOCK, &ours, &mut before);
        let written = write();
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            if libc::sigismember(&pending, signal) == 1 {
                libc::sigdelset(&mut ours, signal);
            }
        }
        let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        while libc::sigtimedwait(&ours, std::ptr::null_mut(), &at_once) > 0 {}
        libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
        written
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    /// The stream of a trace, unpacked.
    fn unpacked(mut file: File) -> Vec<u8> {
        use std::io::Seek;
        let mut bytes = Vec::new();
        file.rewind().expect("a file");
        file.read_to_end(&mut bytes).expect("a file");
        let mut rest = bytes.strip_prefix(b"at").expect("a magic number");
        let mut raw = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let (chunk, after) = after.split_at(u32::from_le_bytes(*length) as usize);
            let unpacked = snap::raw::Decoder::new().decompress_vec(chunk).expect("a block of Snappy");
            assert!(unpacked.len() <= CHUNK_BYTES);
            raw.extend(unpacked);
            rest = after;
        }
        assert!(rest.is_empty());
        raw
    }

    #[test]
    fn a_pipe_that_nobody_reads_is_an_error_and_no_signal() {
        let mut ends = [0; 2];
        // SAFETY: there is room for both; each is closed once.
        let writer = unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            libc::close(ends[0]);
            // The runtime of tests ignores the signal; programs do not.
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
            <File as std::os::fd::FromRawFd>::from_raw_fd(ends[1])
        };
        let stream = Stream::new(writer, &[]);
        assert!(stream.failure.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe));
    }

    #[test]
    fn large_blobs_are_cut_into_chunks_that_readers_have_room_for() {
        let file = tempfile::tempfile().expect("a temporary file");
        let mut stream = Stream::new(file.try_clone().expect("a file"), &[("a", b"b")]);
        let blob: Vec<u8> =
            (0..3_500_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        stream.memcpy(0, 0x1000, &blob);
        assert!(stream.raw.len() < CHUNK_BYTES);
        stream.flush();
        let raw = unpacked(file);
        let at = raw.windows(8).position(|window| window == &blob[..8]).expect("the blob");
        assert_eq!(&raw[at..at + blob.len()], &blob[..]);
        assert_eq!(&raw[..7], &[6, 6, 1, b'a', 1, b'b', 0]);
        assert_eq!(stream.calls, 1);
    }
}
