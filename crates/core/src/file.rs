//! Regular files: read from the first byte to the last, or mapped for readers that need all bytes at once.
//!
//! A file that is read in order is read into a window, never mapped: changes that another program makes to it during
//! the read can change what is read, and nothing else. A file that becomes shorter than it was when it was opened is an
//! error that gives the first lost byte.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Error, Rule};

pub(crate) static CUT_SHORT: Rule = Rule::error("input/cut-short", "the file was truncated while being read");

/// Bytes that are read by ranges, as an object store serves them. They do not change while they are read.
pub trait RangeRead: fmt::Debug + Send + Sync {
    /// How many there are.
    fn length(&self) -> u64;

    /// Reads the bytes at `offset` into `buffer` and returns how many; 0 only at the end, or for an empty buffer.
    ///
    /// # Errors
    /// When they cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

/// What an [`OpenFile`] reads.
#[derive(Debug)]
enum Bytes {
    File(File),
    Ranges(Arc<dyn RangeRead>),
}

/// A regular file of a known length, or what is read as one.
#[derive(Debug)]
pub(crate) struct OpenFile {
    name: String,
    bytes: Bytes,
    /// Its length when it was opened: bytes appended later are not read.
    length: u64,
    at: u64,
}

impl OpenFile {
    pub(crate) fn new(name: &str, file: File, length: u64) -> Self {
        Self { name: name.to_owned(), bytes: Bytes::File(file), length, at: 0 }
    }

    pub(crate) fn of_ranges(name: &str, ranges: Arc<dyn RangeRead>) -> Self {
        let length = ranges.length();
        Self { name: name.to_owned(), bytes: Bytes::Ranges(ranges), length, at: 0 }
    }

    /// Its present end.
    fn cut(&self) -> Cut {
        Cut { name: self.name.clone(), at: self.at, length: self.length }
    }

    pub(crate) fn length(&self) -> u64 {
        self.length
    }

    /// Reads the next bytes; 0 is the end of the file.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let Some(buffer) = buffer.get_mut(..left.min(buffer.len())).filter(|buffer| !buffer.is_empty()) else {
            return Ok(0);
        };
        loop {
            let read = match &mut self.bytes {
                Bytes::File(file) => file.read(buffer),
                Bytes::Ranges(ranges) => ranges.read_at(self.at, buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(format_args!("cannot read {}", self.name), error)),
                Ok(0) => {
                    return Err(self.cut().error());
                }
                Ok(n) => {
                    self.at += n as u64;
                    return Ok(n);
                }
            }
        }
    }

    /// Moves to an offset; false where the file has no such offset.
    pub(crate) fn seek(&mut self, offset: u64) -> bool {
        let is_there = offset <= self.length
            && match &mut self.bytes {
                Bytes::File(file) => file.seek(SeekFrom::Start(offset)).is_ok(),
                Bytes::Ranges(_) => true,
            };
        if is_there {
            self.at = offset;
        }
        is_there
    }

    /// Maps the file, for a reader that needs random access. The error returns the file.
    pub(crate) fn map(self) -> Result<FileMap, Self> {
        let Ok(length) = usize::try_from(self.length) else { return Err(self) };
        if length == 0 {
            return Err(self);
        }
        let Bytes::File(file) = &self.bytes else { return Err(self) };
        let Ok(map) = map(file, length) else { return Err(self) };
        // Without a guard, truncating the file would end the process.
        let Some(guard) = guard::Guard::new(&map) else { return Err(self) };
        match self.bytes {
            Bytes::File(file) => Ok(FileMap::new(self.name, file, map, guard)),
            Bytes::Ranges(_) => Err(self),
        }
    }
}

/// For readers of `std::io`. The error is also recorded, because a reader in between, such as a decompressor, may turn
/// it into another error.
impl Read for OpenFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Self::read(self, buffer).map_err(|error| match error.io_kind() {
            Some(kind) => io::Error::new(kind, error),
            None => {
                self.cut().remember();
                io::Error::new(io::ErrorKind::UnexpectedEof, error)
            }
        })
    }
}

/// A file that became shorter.
#[derive(Debug, Clone)]
struct Cut {
    name: String,
    at: u64,
    length: u64,
}

/// The first file that became shorter while it was read and whose reader may not have reported so.
static FIRST_CUT: Mutex<Option<Cut>> = Mutex::new(None);

/// Files that are mapped now.
static MAPPED: Mutex<Vec<Arc<Mapped>>> = Mutex::new(Vec::new());

impl Cut {
    #[cold]
    fn remember(&self) {
        FIRST_CUT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| self.clone());
    }

    fn error(&self) -> Error {
        let diagnostic = CUT_SHORT.at(self.at).expected(format!("{} bytes", self.length));
        Error::malformed(diagnostic.found(self.at.to_string()))
    }
}

/// The name and the error of the first input file of this process that became shorter while it was read, if its own
/// reader did not return the error: a mapped file, or one that was decompressed. Output made from its bytes must not be
/// kept.
pub fn cut_short() -> Option<(String, Error)> {
    let mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    mapped.iter().filter_map(|file| file.cut()).for_each(|cut| cut.remember());
    drop(mapped);
    let first = FIRST_CUT.lock().unwrap_or_else(PoisonError::into_inner);
    first.as_ref().map(|cut| (cut.name.clone(), cut.error()))
}

/// A mapped file.
#[derive(Debug)]
pub(crate) struct FileMap {
    map: memmap2::Mmap,
    mapped: Arc<Mapped>,
}

/// What is known of a mapped file beside its bytes.
#[derive(Debug)]
struct Mapped {
    name: String,
    file: File,
    length: u64,
    guard: guard::Guard,
}

impl Mapped {
    /// The guard knows which lost pages were read; the length of the file shows lost bytes in its last page, which read
    /// as zeros.
    fn cut(&self) -> Option<Cut> {
        let length = self.file.metadata().map_or(self.length, |meta| meta.len());
        let at = self.guard.lost_at().unwrap_or(self.length).min(length);
        (at < self.length).then(|| Cut { name: self.name.clone(), at, length: self.length })
    }
}

impl FileMap {
    fn new(name: String, file: File, map: memmap2::Mmap, guard: guard::Guard) -> Self {
        let length = map.len() as u64;
        let mapped = Arc::new(Mapped { name, file, length, guard });
        MAPPED.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&mapped));
        Self { map, mapped }
    }
}

impl Drop for FileMap {
    fn drop(&mut self) {
        if let Some(cut) = self.mapped.cut() {
            cut.remember();
        }
        let mut mapped = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        mapped.retain(|other| !Arc::ptr_eq(other, &self.mapped));
    }
}

impl std::ops::Deref for FileMap {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl AsRef<[u8]> for FileMap {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}

/// Maps the first `length` bytes of a file for reading.
fn map(file: &File, length: usize) -> io::Result<memmap2::Mmap> {
    // SAFETY: a map is a shared slice, and its bytes must not change during its lifetime. This process cannot stop
    // others from writing to the file; that nobody does is the condition for mapping, which the book states, with
    // `--no-mmap` as the way around it. Only readers that need random access map a file. The most common violation is
    // made harmless: where the file is truncated, the guard puts zeros in place of the lost pages, so that reading them
    // is neither a signal nor an access to absent memory, and `cut_short` makes the command fail. Bytes overwritten in
    // place remain possible: no reader trusts a byte that it read before.
    #[expect(unsafe_code, reason = "the one file map of the project, see SAFETY above")]
    let map = unsafe { memmap2::MmapOptions::new().len(length).map(file) }?;
    #[cfg(unix)]
    let _advice_is_optional = map.advise(memmap2::Advice::Sequential);
    Ok(map)
}

#[cfg(not(unix))]
mod guard {
    /// Systems that do not allow a mapped file to be truncated need no guard.
    #[derive(Debug)]
    pub(super) struct Guard;

    impl Guard {
        pub(super) fn new(_map: &[u8]) -> Option<Self> {
            Some(Self)
        }

        pub(super) fn lost_at(&self) -> Option<u64> {
            None
        }
    }
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "part of the file map: what the system does where a mapped file was cut short")]
mod guard {
    //! Puts zeros in place of pages that a mapped file lost, instead of ending the process by SIGBUS.

    use std::ffi::c_int;
    use std::sync::Once;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Most maps guarded at once.
    const SLOTS_MAX: usize = 256;

    /// A guarded map: its first byte, the one past its last page, and the least offset of a page that was lost. `start`
    /// is 0 while the slot is free, 1 while it is being filled.
    struct Slot {
        start: AtomicUsize,
        end: AtomicUsize,
        lost_at: AtomicUsize,
    }

    static SLOTS: [Slot; SLOTS_MAX] = [const {
        Slot { start: AtomicUsize::new(0), end: AtomicUsize::new(0), lost_at: AtomicUsize::new(usize::MAX) }
    }; SLOTS_MAX];

    static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);

    /// The previous action for SIGBUS: the runtime's own handler, or the system's default.
    static PREVIOUS: Previous = Previous(std::cell::UnsafeCell::new(None));

    struct Previous(std::cell::UnsafeCell<Option<libc::sigaction>>);

    // SAFETY: it is written once, by `install` under `Once`, before the handler that reads it is installed.
    unsafe impl Sync for Previous {}

    /// A slot in use.
    #[derive(Debug)]
    pub(super) struct Guard(usize);

    impl Guard {
        /// Guards a map; `None` where there are too many, or where the handler cannot be installed.
        pub(super) fn new(map: &[u8]) -> Option<Self> {
            static INSTALLED: Once = Once::new();
            static IS_ON: AtomicUsize = AtomicUsize::new(0);
            INSTALLED.call_once(|| IS_ON.store(usize::from(install()), Ordering::Release));
            if IS_ON.load(Ordering::Acquire) == 0 {
                return None;
            }
            let (start, page) = (map.as_ptr() as usize, PAGE_BYTES.load(Ordering::Relaxed));
            let free = |slot: &Slot| slot.start.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok();
            let at = SLOTS.iter().position(free)?;
            let slot = SLOTS.get(at)?;
            slot.lost_at.store(usize::MAX, Ordering::Relaxed);
            slot.end.store(start + map.len().next_multiple_of(page), Ordering::Relaxed);
            slot.start.store(start, Ordering::Release);
            Some(Self(at))
        }

        /// Offset of the first lost page that was read.
        pub(super) fn lost_at(&self) -> Option<u64> {
            let lost = SLOTS.get(self.0)?.lost_at.load(Ordering::Acquire);
            (lost != usize::MAX).then_some(lost as u64)
        }
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            if let Some(slot) = SLOTS.get(self.0) {
                slot.end.store(0, Ordering::Release);
                slot.start.store(0, Ordering::Release);
            }
        }
    }

    /// Installs the handler; false where the system refuses.
    fn install() -> bool {
        // SAFETY: plain calls with pointers to values that live through them. `sigaction` is a C struct for which all
        // zeros are a value. `PREVIOUS` is written before the handler is there to read it.
        unsafe {
            let page = libc::sysconf(libc::_SC_PAGESIZE);
            if let Ok(page) = usize::try_from(page)
                && page.is_power_of_two()
            {
                PAGE_BYTES.store(page, Ordering::Relaxed);
            }
            let mut previous: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut previous) != 0 {
                return false;
            }
            *PREVIOUS.0.get() = Some(previous);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_bus_error as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut()) == 0
        }
    }

    /// Puts zeros in place of a guarded map's lost pages; passes any other signal to the previous action.
    ///
    /// Only atomics and system calls: it may run at any point of any thread.
    extern "C" fn on_bus_error(signal: c_int, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
        // SAFETY: the system hands a valid `siginfo_t` to a handler with `SA_SIGINFO`.
        let address = unsafe { (*info).si_addr() } as usize;
        let page_bytes = PAGE_BYTES.load(Ordering::Relaxed);
        for slot in &SLOTS {
            let (start, end) = (slot.start.load(Ordering::Acquire), slot.end.load(Ordering::Acquire));
            if start <= 1 || !(start..end).contains(&address) {
                continue;
            }
            let page = address & !(page_bytes - 1);
            // SAFETY: the range is the rest of a map that exists, since a thread has just read from it. No memory backs
            // its first page nor any page after it, since the file ends before.
            let made = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
                libc::mmap(page as *mut libc::c_void, end - page, libc::PROT_READ, flags, -1, 0)
            };
            if made != libc::MAP_FAILED {
                slot.lost_at.fetch_min(page - start, Ordering::AcqRel);
                return;
            }
        }
        // SAFETY: `PREVIOUS` was written before this handler was installed and is not written again. The instruction
        // runs again after this returns and then gets the previous action.
        unsafe {
            if let Some(previous) = &*PREVIOUS.0.get() {
                libc::sigaction(signal, previous, std::ptr::null_mut());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with this many bytes, under a name used by one test only.
    fn file(name: &str, bytes: usize) -> (std::path::PathBuf, OpenFile) {
        let path = std::env::temp_dir().join(format!("anytrace-{name}-{}", std::process::id()));
        std::fs::write(&path, vec![7; bytes]).unwrap();
        let open = OpenFile::new(name, File::open(&path).unwrap(), bytes as u64);
        (path, open)
    }

    fn cut(path: &std::path::Path, bytes: u64) {
        File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
    }

    #[test]
    fn a_file_that_is_read_ends_where_it_ended_when_it_was_opened() {
        let (path, mut open) = file("grows", 10);
        std::fs::write(&path, vec![7; 20]).unwrap();
        let mut bytes = Vec::new();
        open.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len(), 10);
        assert!(open.seek(4) && !open.seek(11));
        std::fs::remove_file(path).unwrap();
    }

    #[derive(Debug)]
    struct Ranges(Vec<u8>);

    impl RangeRead for Ranges {
        fn length(&self) -> u64 {
            self.0.len() as u64
        }

        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
            let at = usize::try_from(offset).unwrap();
            self.0.get(at..).unwrap_or_default().read(buffer)
        }
    }

    #[test]
    fn ranges_are_read_and_moved_in_as_a_file_is_but_never_mapped() {
        let mut open = OpenFile::of_ranges("ranges", Arc::new(Ranges((0..10).collect())));
        let mut buffer = [0; 4];
        assert_eq!(OpenFile::read(&mut open, &mut buffer).unwrap(), 4);
        assert!(open.seek(8) && !open.seek(11));
        assert_eq!(OpenFile::read(&mut open, &mut buffer).unwrap(), 2);
        assert_eq!(buffer, [8, 9, 2, 3]);
        assert_eq!(OpenFile::read(&mut open, &mut buffer).unwrap(), 0);
        assert!(open.map().is_err());
    }

    #[test]
    fn a_file_cut_while_it_is_read_is_an_error_at_the_lost_byte() {
        let (path, mut open) = file("cut-read", 10_000);
        let mut buffer = [0; 4000];
        assert_eq!(OpenFile::read(&mut open, &mut buffer).unwrap(), 4000);
        cut(&path, 5000);
        assert_eq!(OpenFile::read(&mut open, &mut buffer).unwrap(), 1000);
        assert_eq!(open.read_to_end(&mut Vec::new()).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let error = OpenFile::read(&mut open, &mut buffer).unwrap_err();
        assert_eq!((error.kind(), error.diagnostic().unwrap().offset), (crate::Kind::Malformed, 5000));
        assert!(error.to_string().contains("expected 10000 bytes"), "{error}");
        assert!(cut_short().is_some());
        std::fs::remove_file(path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_mapped_file_that_is_cut_reads_as_zeros_and_is_reported() {
        for (bytes, left) in [(100_000, 50_000), (100_000, 0), (5000, 4999)] {
            let (path, open) = file(&format!("cut-map-{left}"), bytes);
            let map = open.map().unwrap();
            cut(&path, left);
            let sum: u64 = map.iter().map(|byte| u64::from(*byte)).sum();
            assert_eq!(sum, 7 * left);
            let cut = map.mapped.cut().unwrap();
            assert_eq!((cut.at, cut.length), (left, bytes as u64));
            drop(map);
            assert!(cut_short().is_some());
            std::fs::remove_file(path).unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn guards_are_used_again() {
        let (path, open) = file("many", 9000);
        drop(open);
        for _ in 0..8 {
            let open = |_| OpenFile::new("many", File::open(&path).unwrap(), 9000).map().unwrap();
            let maps: Vec<FileMap> = (0..100).map(open).collect();
            assert!(maps.iter().all(|map| map.len() == 9000 && map.mapped.cut().is_none()));
        }
        std::fs::remove_file(path).unwrap();
    }
}
