//! Buffers that the program has mapped: what it writes there is recorded as `memcpy`, before the driver may read it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::arguments::Arguments;
use crate::ask::{self, Driver};
use crate::stream::Stream;

const READ_BIT: u32 = 1;
const WRITE_BIT: u32 = 2;
const FLUSH_EXPLICIT_BIT: u32 = 0x10;
const PERSISTENT_BIT: u32 = 0x40;

/// What is compared at a time.
const PAGE_BYTES: usize = 4096;

/// Mappings that stay while the driver reads; most programs have none.
static PERSISTENT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: the types are those of the registry.
static BUFFER_POINTER: Driver<unsafe extern "C" fn(u32, u32, *mut u64)> = unsafe { Driver::new("glGetBufferPointerv") };
// SAFETY: as above.
static BUFFER_POINTER_OES: Driver<unsafe extern "C" fn(u32, u32, *mut u64)> =
    unsafe { Driver::new("glGetBufferPointervOES") };
// SAFETY: as above.
static NAMED_POINTER: Driver<unsafe extern "C" fn(u32, u32, *mut u64)> =
    unsafe { Driver::new("glGetNamedBufferPointerv") };
// SAFETY: as above.
static NAMED_PARAMETER: Driver<unsafe extern "C" fn(u32, u32, *mut i32)> =
    unsafe { Driver::new("glGetNamedBufferParameteriv") };

/// All mappings by address.
#[derive(Debug)]
pub(crate) struct Mappings(BTreeMap<u64, Mapping>);

#[derive(Debug)]
struct Mapping {
    buffer: u32,
    bytes: usize,
    access: u32,
    /// What was recorded last, of mappings that stay.
    shadow: Option<Vec<u8>>,
}

/// Whether a buffer is named by where it is bound, or by its number.
fn is_named(arguments: &Arguments) -> bool {
    arguments.function.name.contains("Named")
}

/// Where the buffer that a function names is mapped; 0: nowhere.
pub(crate) fn address(arguments: &Arguments) -> u64 {
    const GL_BUFFER_MAP_POINTER: u32 = 0x88bd;
    let driver =
        if is_named(arguments) { NAMED_POINTER.get() } else { BUFFER_POINTER.get().or(BUFFER_POINTER_OES.get()) };
    let mut found = 0;
    if let Some(ask) = driver {
        // SAFETY: the driver writes one pointer, or, if the program named no buffer, notes the error that the program's
        // own call is about to make.
        unsafe { ask(arguments.uint(0), GL_BUFFER_MAP_POINTER, &mut found) };
    }
    found
}

/// Bytes of the buffer.
fn buffer_bytes(arguments: &Arguments) -> usize {
    const GL_BUFFER_SIZE: u32 = 0x8764;
    let driver = if is_named(arguments) { NAMED_PARAMETER.get() } else { ask::GET_BUFFER_PARAMETER.get() };
    let mut found = [0; 4];
    if let Some(ask) = driver {
        // SAFETY: the driver writes one number.
        unsafe { ask(arguments.uint(0), GL_BUFFER_SIZE, found.as_mut_ptr()) };
    }
    usize::try_from(found[0]).unwrap_or(0)
}

/// What a call has mapped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mapped {
    /// The buffer's name.
    buffer: u32,
    bytes: usize,
    /// As `glMapBufferRange` has it.
    access: u32,
}

/// What a call has mapped.
pub(crate) fn mapped(arguments: &Arguments) -> Mapped {
    let buffer = if is_named(arguments) { arguments.uint(0) } else { bound(arguments.uint(0)) };
    if let (Some(length), Some(access)) = (arguments.named(&["length"]), arguments.named(&["access"])) {
        return Mapped { buffer, bytes: usize::try_from(length).unwrap_or(0), access: access as u32 };
    }
    let access = match arguments.named(&["access"]) {
        Some(0x88b8) => READ_BIT,
        Some(0x88b9) => WRITE_BIT,
        _ => READ_BIT | WRITE_BIT,
    };
    Mapped { buffer, bytes: buffer_bytes(arguments), access }
}

/// The buffer that is bound to a target; 0: it is not known.
fn bound(target: u32) -> u32 {
    // Targets, and the names of what is bound to them.
    const BINDINGS: [(u32, u32); 15] = [
        (0x8892, 0x8894),
        (0x8893, 0x8895),
        (0x88eb, 0x88ed),
        (0x88ec, 0x88ef),
        (0x8a11, 0x8a28),
        (0x8c2a, 0x8c2a),
        (0x8c8e, 0x8c8f),
        (0x8f36, 0x8f36),
        (0x8f37, 0x8f37),
        (0x8f3f, 0x8f43),
        (0x90d2, 0x90d3),
        (0x90ee, 0x90ef),
        (0x9192, 0x9193),
        (0x92c0, 0x92c1),
        (0x80ee, 0x80ef),
    ];
    // The call has succeeded, so that the driver has the target.
    BINDINGS.iter().find(|(known, _)| *known == target).map_or(0, |(_, name)| ask::integer(*name) as u32)
}

/// Whether there are mappings that stay while the driver reads.
pub(crate) fn has_persistent() -> bool {
    PERSISTENT.load(Relaxed) > 0
}

impl Mappings {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// The driver has mapped so many bytes here.
    pub(crate) fn insert(&mut self, address: u64, Mapped { buffer, bytes, access }: Mapped) {
        self.remove(address);
        let stays = access & (PERSISTENT_BIT | WRITE_BIT | FLUSH_EXPLICIT_BIT) == PERSISTENT_BIT | WRITE_BIT;
        let shadow = stays.then(|| {
            PERSISTENT.fetch_add(1, Relaxed);
            let mut shadow = vec![0; bytes];
            // A mapping that cannot be read is found out when it is compared.
            read(address, &mut shadow);
            shadow
        });
        self.0.insert(address, Mapping { buffer, bytes, access, shadow });
    }

    fn remove(&mut self, address: u64) -> Option<Mapping> {
        let mapping = self.0.remove(&address)?;
        if mapping.shadow.is_some() {
            PERSISTENT.fetch_sub(1, Relaxed);
        }
        Some(mapping)
    }

    /// Records what the program has written to a mapping that ends; `false`: the mapping is not known.
    pub(crate) fn end(&mut self, address: u64, stream: &mut Stream, thread: u32) -> bool {
        let Some(mut mapping) = self.remove(address) else { return false };
        if mapping.shadow.is_some() {
            mapping.compare(address, stream, thread);
        } else if mapping.access & (WRITE_BIT | FLUSH_EXPLICIT_BIT) == WRITE_BIT {
            // SAFETY: it is still mapped.
            stream.memcpy(thread, address, unsafe { std::slice::from_raw_parts(address as *const u8, mapping.bytes) });
        }
        true
    }

    /// Forgets a mapping whose buffer is gone or has other memory.
    pub(crate) fn forget(&mut self, address: u64) {
        self.remove(address);
    }

    /// Forgets the mappings of buffers that are deleted.
    pub(crate) fn delete(&mut self, buffers: &[u32]) {
        let gone: Vec<u64> = self
            .0
            .iter()
            .filter(|(_, mapping)| mapping.buffer != 0 && buffers.contains(&mapping.buffer))
            .map(|(address, _)| *address)
            .collect();
        for address in gone {
            self.remove(address);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records a part of a mapping that the program says it has written; `false`: the mapping is not known.
    pub(crate) fn flush(&self, address: u64, range: Range<usize>, stream: &mut Stream, thread: u32) -> bool {
        let Some(mapping) = self.0.get(&address) else { return false };
        if range.start < range.end && range.end <= mapping.bytes {
            let start = address + range.start as u64;
            // SAFETY: the range is in what is mapped.
            stream.memcpy(thread, start, unsafe { std::slice::from_raw_parts(start as *const u8, range.len()) });
        }
        true
    }

    /// Records what has changed in mappings that stay.
    pub(crate) fn compare(&mut self, stream: &mut Stream, thread: u32) {
        let mut gone = Vec::new();
        for (address, mapping) in &mut self.0 {
            if mapping.shadow.is_some() && !mapping.compare(*address, stream, thread) {
                gone.push(*address);
            }
        }
        for address in gone {
            self.remove(address);
        }
    }
}

impl Mapping {
    /// Records the pages that differ from what was recorded last; `false`: the memory is gone.
    fn compare(&mut self, address: u64, stream: &mut Stream, thread: u32) -> bool {
        let Some(shadow) = &mut self.shadow else { return true };
        let mut now = vec![0; shadow.len()];
        if !read(address, &mut now) {
            return false;
        }
        for range in changes(shadow, &now) {
            stream.memcpy(thread, address + range.start as u64, &now[range]);
        }
        *shadow = now;
        true
    }
}

/// Ranges of whole pages in which two pieces of memory differ.
fn changes(before: &[u8], now: &[u8]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, (before, now)) in before.chunks(PAGE_BYTES).zip(now.chunks(PAGE_BYTES)).enumerate() {
        if before == now {
            continue;
        }
        let page = at * PAGE_BYTES..at * PAGE_BYTES + now.len();
        match found.last_mut().filter(|last| last.end == page.start) {
            Some(last) => last.end = page.end,
            None => found.push(page),
        }
    }
    found
}

/// Copies memory of this process that may be gone: a buffer can end in ways that nobody sees. `false`: it is gone.
fn read(address: u64, to: &mut [u8]) -> bool {
    let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: to.len() };
    // SAFETY: the kernel checks the address, and writes as much as there is room for.
    let copied = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    if usize::try_from(copied) == Ok(to.len()) {
        return true;
    }
    let error = std::io::Error::last_os_error().raw_os_error();
    if copied >= 0 || error == Some(libc::EFAULT) {
        return false;
    }
    // Where this is forbidden, the mapping is trusted.
    // SAFETY: the driver has mapped it, and nothing was seen that ended it.
    to.copy_from_slice(unsafe { std::slice::from_raw_parts(address as *const u8, to.len()) });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_changed_are_found_and_joined() {
        let before = vec![0; 5 * PAGE_BYTES + 10];
        let mut now = before.clone();
        now[PAGE_BYTES] = 1;
        now[3 * PAGE_BYTES - 1] = 1;
        now[5 * PAGE_BYTES + 9] = 1;
        let found = changes(&before, &now);
        assert_eq!(found, [PAGE_BYTES..3 * PAGE_BYTES, 5 * PAGE_BYTES..5 * PAGE_BYTES + 10]);
        assert!(changes(&now, &now).is_empty());
    }

    #[test]
    fn memory_that_is_gone_is_no_crash() {
        let source = vec![7_u8; 100];
        let mut found = vec![0; 100];
        assert!(read(source.as_ptr() as u64, &mut found));
        assert_eq!(found, source);
        assert!(!read(8, &mut found));
    }
}
