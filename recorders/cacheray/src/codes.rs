//! Where in the program each access is made: code addresses in a file beside the trace, `TRACE.pc`, as the format has no
//! room for them. The trace stays what it is for every reader.
//!
//! The file (all numbers little-endian): 8 bytes [`MAGIC`], then blocks: a byte for the kind, three zero bytes, u32
//! payload bytes, payload.
//!
//! - `M`, a file that is mapped as code: u64 first address, u64 end, u64 offset of the first address in the file, u8 bytes
//!   of its build id, build id, path.
//! - `A`, accesses: u64 number of the block's first access in the trace, u64 check, u32 accesses, u32 flags
//!   ([`CONTINUES`]), codes.
//!
//! A code is where the call of the hook returns to; 0 where that is unknown. What code follows a code is nearly always
//! what followed it before, so a table of [`SLOTS`] codes predicts: numbers of 7 bits a byte, least significant first.
//! An even number is twice one less than a run of codes that were predicted; 1 is an unknown code, which the table does
//! not see; any other odd number is, halved and less one, the difference to the code before, with its sign in the lowest
//! bit.

use std::ffi::{CStr, c_long};
use std::ptr::null_mut;

use crate::sys;

/// The first bytes of the file.
pub(crate) const MAGIC: &[u8; 8] = b"ATRACEPC";
/// Flag of a block of accesses: predictions go on from the block before. Else the table is empty and the code before 0.
const CONTINUES: u32 = 1;
/// Codes that the table predicts from.
const SLOTS: usize = 1024;
/// Most bytes of a code: the end of a run, and a difference.
const CODE_BYTES_MAX: usize = 20;
/// Accesses after which predictions begin anew, so that a reader can begin there.
const ACCESSES_TO_RESET: u64 = 1 << 20;
/// Bytes of a block's head, and of what precedes the codes.
const HEAD_BYTES: usize = 8;
const ACCESSES_BYTES: usize = 24;
/// Modules that are remembered.
const MODULES_MAX: usize = 1024;
/// Most bytes of a module's block.
const MODULE_BYTES_MAX: usize = 4500;
/// Blocks of accesses between two looks at what is mapped.
const BLOCKS_TO_LOOK: u64 = 32;

/// The codes that are not written yet.
pub(crate) struct Codes {
    head: *mut u8,
    buffer: *mut u8,
    /// The code before.
    previous: u64,
    /// How many codes were predicted since the last that was not.
    run: u64,
    /// Accesses in the buffer, and a sum of their addresses.
    accesses: u64,
    check: u64,
    next: [u64; SLOTS],
    /// Accesses before those in the buffer, and since predictions began.
    before: u64,
    since_reset: u64,
    has_magic: bool,
    blocks: u64,
    modules: [(u64, u64); MODULES_MAX],
    module_count: usize,
}

/// Where the table has what follows a code.
#[inline(always)]
fn slot(code: u64) -> usize {
    (code ^ code >> 10) as usize & (SLOTS - 1)
}

impl Codes {
    /// Room for the codes of as many accesses as a buffer of records has; null where there is no memory.
    pub(crate) fn new(records_bytes: usize) -> *mut Self {
        let room = HEAD_BYTES
            + ACCESSES_BYTES
            + MODULE_BYTES_MAX
            + (records_bytes / crate::record::ACCESS_BYTES + 2) * CODE_BYTES_MAX;
        let (codes, buffer) = (sys::pages(size_of::<Self>()).cast::<Self>(), sys::pages(room));
        if codes.is_null() || buffer.is_null() {
            return null_mut();
        }
        // SAFETY: fresh zeroed pages of the size of the structure, all of whose fields may be zero.
        unsafe {
            (*codes).buffer = buffer;
            (*codes).begin_block();
        }
        codes
    }

    /// Adds an access that is made by the code before this address; 0: unknown.
    #[inline(always)]
    pub(crate) fn put(&mut self, code: usize, address: usize) {
        let code = code as u64;
        self.check = self.check.rotate_left(5) ^ address as u64;
        self.accesses += 1;
        // SAFETY: a slot is less than SLOTS.
        let next = unsafe { self.next.get_unchecked_mut(slot(self.previous)) };
        if *next == code && code != 0 {
            self.run += 1;
            self.previous = code;
        } else {
            self.put_other(code);
        }
    }

    #[inline(never)]
    fn put_other(&mut self, code: u64) {
        let mut head = self.end_run(self.head);
        if code == 0 {
            head = number(head, 1);
        } else {
            let difference = code.wrapping_sub(self.previous) as i64;
            let signed = (difference << 1 ^ difference >> 63) as u64;
            // Addresses have 48 bits, so that nothing is lost here.
            head = number(head, (signed + 1) << 1 | 1);
            if let Some(next) = self.next.get_mut(slot(self.previous)) {
                *next = code;
            }
            self.previous = code;
        }
        self.head = head;
    }

    fn end_run(&mut self, head: *mut u8) -> *mut u8 {
        match std::mem::take(&mut self.run) {
            0 => head,
            run => number(head, (run - 1) << 1),
        }
    }

    /// Where the codes begin; the block's head is put before them when it is written.
    fn begin_block(&mut self) {
        self.head = self.buffer.wrapping_add(MODULE_BYTES_MAX + HEAD_BYTES + ACCESSES_BYTES);
        (self.run, self.accesses, self.check) = (0, 0, 0);
    }

    /// The block in the buffer, which ends here; empty where it has no access.
    pub(crate) fn take(&mut self) -> &[u8] {
        if self.accesses == 0 {
            return &[];
        }
        self.head = self.end_run(self.head);
        let start = self.buffer.wrapping_add(MODULE_BYTES_MAX);
        let length = self.head as usize - start as usize;
        let flags = if self.since_reset > 0 { CONTINUES } else { 0 };
        // SAFETY: the buffer has the bytes up to `head`, all of them written but the first, which are zero or of an earlier
        // block; nobody else has it while the log is held.
        let block = unsafe { std::slice::from_raw_parts_mut(start, length) };
        let parts: [&[u8]; 6] = [
            &[b'A', 0, 0, 0],
            &((length - HEAD_BYTES) as u32).to_le_bytes(),
            &self.before.to_le_bytes(),
            &self.check.to_le_bytes(),
            &(self.accesses as u32).to_le_bytes(),
            &flags.to_le_bytes(),
        ];
        for (to, from) in block.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        self.before += self.accesses;
        self.since_reset += self.accesses;
        self.blocks += 1;
        if self.since_reset >= ACCESSES_TO_RESET {
            (self.since_reset, self.previous) = (0, 0);
            self.next = [0; SLOTS];
        }
        self.begin_block();
        block
    }

    /// The magic bytes, the first time.
    pub(crate) fn take_magic(&mut self) -> &'static [u8] {
        if std::mem::replace(&mut self.has_magic, true) { &[] } else { MAGIC }
    }

    /// The accesses in the buffer are not known any more: the call that added the last one was left.
    pub(crate) fn forget(&mut self, accesses: u64, check: u64) {
        self.begin_block();
        (self.since_reset, self.previous) = (0, 0);
        self.next = [0; SLOTS];
        (self.accesses, self.check) = (accesses, check);
        for _ in 0..accesses {
            self.head = number(self.head, 1);
        }
    }

    /// A forked process has a file of its own.
    pub(crate) fn restart(&mut self) {
        self.forget(0, 0);
        (self.before, self.blocks, self.module_count, self.has_magic) = (0, 0, 0, false);
    }

    /// Hands out a block for each new module, if it is time to look. Allocates nothing: the process may be about to end.
    pub(crate) fn modules(&mut self, is_last: bool, mut write: impl FnMut(&[u8])) {
        if !(is_last || self.blocks.is_multiple_of(BLOCKS_TO_LOOK)) {
            return;
        }
        let Some(mut maps) = Reading::open(c"/proc/self/maps") else { return };
        // SAFETY: the buffer begins with this many bytes for modules; nobody else has it while the log is held.
        let block = unsafe { std::slice::from_raw_parts_mut(self.buffer, MODULE_BYTES_MAX) };
        let mut line = [0_u8; 4400];
        while let Some(text) = maps.line(&mut line) {
            let Some(map) = Mapping::parse(text) else { continue };
            let key = (map.start, map.end ^ sum(map.path));
            let known = self.modules.get(..self.module_count).unwrap_or_default();
            if known.contains(&key) {
                continue;
            }
            let Some(place) = self.modules.get_mut(self.module_count) else { return };
            *place = key;
            self.module_count += 1;
            if let Some(length) = map.encode(block) {
                write(block.get(..length).unwrap_or_default());
            }
        }
    }
}

/// Puts a number of 7 bits a byte; returns where the next goes.
#[inline]
fn number(head: *mut u8, mut value: u64) -> *mut u8 {
    let mut at = head;
    loop {
        let low = value as u8 & 0x7f;
        value >>= 7;
        // SAFETY: the buffer has CODE_BYTES_MAX bytes for each access that the buffer of records has room for, and is
        // written when that one is.
        unsafe { at.write(if value == 0 { low } else { low | 0x80 }) };
        at = at.wrapping_add(1);
        if value == 0 {
            return at;
        }
    }
}

/// A sum that tells paths apart (FNV-1a).
fn sum(path: &[u8]) -> u64 {
    path.iter().fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A file that is read by system calls alone.
struct Reading {
    fd: c_long,
    bytes: [u8; 4096],
    from: usize,
    to: usize,
}

const SYS_READ: c_long = 0;
const SYS_OPEN: c_long = 2;
const SYS_CLOSE: c_long = 3;

impl Reading {
    fn open(path: &CStr) -> Option<Self> {
        // SAFETY: the path ends in a zero byte and lives during the call.
        let fd = unsafe { sys::syscall(SYS_OPEN, path.as_ptr(), sys::O_CLOEXEC as c_long) };
        (fd >= 0).then_some(Self { fd, bytes: [0; 4096], from: 0, to: 0 })
    }

    /// Reads some bytes; false at the end.
    fn fill(&mut self) -> bool {
        // SAFETY: the array has as many bytes as are asked for, and lives during the call.
        let n = unsafe { sys::syscall(SYS_READ, self.fd, self.bytes.as_mut_ptr(), self.bytes.len()) };
        (self.from, self.to) = (0, usize::try_from(n).unwrap_or(0));
        self.to > 0
    }

    /// The next line, up to the room there is.
    fn line<'a>(&mut self, room: &'a mut [u8]) -> Option<&'a [u8]> {
        let mut used = 0;
        loop {
            if self.from == self.to && !self.fill() {
                return if used > 0 { room.get(..used) } else { None };
            }
            let byte = *self.bytes.get(self.from)?;
            self.from += 1;
            if byte == b'\n' {
                return room.get(..used);
            }
            if let Some(place) = room.get_mut(used) {
                *place = byte;
                used += 1;
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        // SAFETY: the descriptor is this one's.
        unsafe { sys::syscall(SYS_CLOSE, self.fd) };
    }
}

/// A line of the list of mappings: a file's code.
#[derive(Debug, PartialEq, Eq)]
struct Mapping<'a> {
    start: u64,
    end: u64,
    offset: u64,
    path: &'a [u8],
}

impl<'a> Mapping<'a> {
    /// `None` for what is no code of a file.
    fn parse(line: &'a [u8]) -> Option<Self> {
        let mut words = line.splitn(6, |byte| *byte == b' ');
        let range = words.next()?;
        let dash = range.iter().position(|byte| *byte == b'-')?;
        let (start, end) = (hexadecimal(range.get(..dash)?)?, hexadecimal(range.get(dash + 1..)?)?);
        let is_code = words.next()?.get(2) == Some(&b'x');
        let offset = hexadecimal(words.next()?)?;
        let (_device, _inode) = (words.next()?, words.next()?);
        let path = words.next()?.trim_ascii_start();
        (is_code && path.first() == Some(&b'/')).then_some(Self { start, end, offset, path })
    }

    /// The block; returns its bytes.
    fn encode(&self, block: &mut [u8]) -> Option<usize> {
        let mut build_id = [0; 64];
        let id_bytes = build_id_of(self.path, &mut build_id).unwrap_or(0);
        let length = 8 * 3 + 1 + id_bytes + self.path.len();
        let parts: [&[u8]; 8] = [
            &[b'M', 0, 0, 0],
            &(length as u32).to_le_bytes(),
            &self.start.to_le_bytes(),
            &self.end.to_le_bytes(),
            &self.offset.to_le_bytes(),
            &[id_bytes as u8],
            build_id.get(..id_bytes)?,
            self.path,
        ];
        let room = block.get_mut(..HEAD_BYTES + length)?;
        for (to, from) in room.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        Some(HEAD_BYTES + length)
    }
}

fn hexadecimal(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |number, digit| Some(number << 4 | u64::from(char::from(*digit).to_digit(16)?)))
}

/// The build id that an ELF file of 64 bits has in its first page, as linkers put it.
fn build_id_of(path: &[u8], to: &mut [u8; 64]) -> Option<usize> {
    let mut name = [0_u8; 4097];
    name.get_mut(..path.len())?.copy_from_slice(path);
    let mut file = Reading::open(CStr::from_bytes_until_nul(&name).ok()?)?;
    if !file.fill() {
        return None;
    }
    let bytes = file.bytes.get(..file.to)?;
    build_id(bytes, to)
}

fn build_id(bytes: &[u8], to: &mut [u8; 64]) -> Option<usize> {
    const PT_NOTE: u64 = 4;
    const NT_GNU_BUILD_ID: u64 = 3;
    let number = |at: usize, length: usize| -> Option<u64> {
        let digits = bytes.get(at..at.checked_add(length)?)?;
        Some(digits.iter().rev().fold(0, |number, digit| number << 8 | u64::from(*digit)))
    };
    if bytes.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let (table, each, count) = (number(32, 8)? as usize, number(54, 2)? as usize, number(56, 2)? as usize);
    for header in (0..count).map(|n| table + n * each) {
        if number(header, 4)? != PT_NOTE {
            continue;
        }
        let (mut at, length) = (number(header + 8, 8)? as usize, number(header + 32, 8)? as usize);
        let end = at.checked_add(length)?;
        while at + 12 <= end {
            let (name, id, kind) = (number(at, 4)? as usize, number(at + 4, 4)? as usize, number(at + 8, 4)?);
            let start = at + 12 + name.next_multiple_of(4);
            if kind == NT_GNU_BUILD_ID && bytes.get(at + 12..at + 16) == Some(b"GNU\0") {
                to.get_mut(..id)?.copy_from_slice(bytes.get(start..start + id)?);
                return Some(id);
            }
            at = start.checked_add(id.next_multiple_of(4))?;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::Random;

    /// Reads a block of accesses as the documentation has it. Gives back the codes.
    fn decode(block: &[u8], next: &mut [u64; SLOTS], previous: &mut u64) -> Vec<u64> {
        let count = u32::from_le_bytes(block[24..28].try_into().unwrap());
        if u32::from_le_bytes(block[28..32].try_into().unwrap()) & CONTINUES == 0 {
            (*next, *previous) = ([0; SLOTS], 0);
        }
        let mut bytes = block[32..].iter();
        let mut codes = Vec::new();
        while codes.len() < count as usize {
            let (mut value, mut shift) = (0_u64, 0);
            for byte in bytes.by_ref() {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            match value {
                1 => codes.push(0),
                _ if value & 1 == 0 => {
                    for _ in 0..=value >> 1 {
                        *previous = next[slot(*previous)];
                        codes.push(*previous);
                    }
                }
                _ => {
                    let signed = (value >> 1) - 1;
                    let difference = (signed >> 1) as i64 ^ -((signed & 1) as i64);
                    let code = previous.wrapping_add(difference as u64);
                    next[slot(*previous)] = code;
                    *previous = code;
                    codes.push(code);
                }
            }
        }
        assert!(bytes.next().is_none());
        codes
    }

    #[test]
    fn codes_come_back_and_loops_take_next_to_no_bytes() {
        let mut random = Random(5);
        // SAFETY: the only reference to what was just made.
        let codes = unsafe { &mut *Codes::new(1 << 20) };
        let (mut next, mut previous, mut before) = ([0; SLOTS], 0, 0);
        let (mut bytes, mut accesses) = (0, 0);
        for _ in 0..40 {
            let mut expected = Vec::new();
            let places: Vec<usize> =
                (0..=random.below(40)).map(|_| 0x5555_0000_0000 + random.below(1 << 22) as usize).collect();
            for _ in 0..random.below(2000) {
                for place in &places {
                    let place = if random.below(500) == 0 { 0 } else { *place };
                    codes.put(place, expected.len());
                    expected.push(place as u64);
                    if expected.len() * 18 >= 1 << 20 {
                        break;
                    }
                }
                if expected.len() * 18 >= 1 << 20 {
                    break;
                }
            }
            let block = codes.take();
            if expected.is_empty() {
                assert!(block.is_empty());
                continue;
            }
            assert_eq!(&block[..4], b"A\0\0\0");
            assert_eq!(u32::from_le_bytes(block[4..8].try_into().unwrap()) as usize, block.len() - 8);
            assert_eq!(u64::from_le_bytes(block[8..16].try_into().unwrap()), before);
            assert_eq!(decode(block, &mut next, &mut previous), expected);
            before += expected.len() as u64;
            (bytes, accesses) = (bytes + block.len(), accesses + expected.len());
        }
        assert!(accesses > 300_000 && bytes * 3 < accesses, "{bytes} bytes of {accesses} codes");
    }

    #[test]
    fn what_is_forgotten_is_unknown() {
        // SAFETY: as above.
        let codes = unsafe { &mut *Codes::new(1 << 16) };
        codes.put(77, 1);
        codes.put(78, 2);
        codes.forget(3, 9);
        let block = codes.take();
        assert_eq!(decode(block, &mut [0; SLOTS], &mut 0), [0, 0, 0]);
        assert!(codes.take().is_empty());
    }

    #[test]
    fn code_of_files_is_a_module() {
        let line = b"55d0-55ff r-xp 00001000 fe:00 1234                       /usr/bin/a b";
        let found = Mapping::parse(line).unwrap();
        assert_eq!(found, Mapping { start: 0x55d0, end: 0x55ff, offset: 0x1000, path: b"/usr/bin/a b" });
        assert_eq!(Mapping::parse(b"55d0-55ff r--p 00001000 fe:00 1234 /usr/bin/a"), None);
        assert_eq!(Mapping::parse(b"55d0-55ff r-xp 00000000 00:00 0                  [vdso]"), None);
        assert_eq!(Mapping::parse(b"7f00-7f10 rwxp 00000000 00:00 0 "), None);
    }

    #[test]
    fn modules_are_handed_out_once() {
        // SAFETY: as above.
        let codes = unsafe { &mut *Codes::new(1 << 16) };
        let mut found = Vec::new();
        codes.modules(true, |block| found.push(block.to_vec()));
        let own = std::env::current_exe().unwrap();
        let of_own = |block: &&Vec<u8>| block.ends_with(own.as_os_str().as_encoded_bytes());
        let block = found.iter().find(of_own).unwrap();
        assert_eq!(block[32], 20, "a build id");
        let here =
            u64::from_le_bytes(block[8..16].try_into().unwrap())..u64::from_le_bytes(block[16..24].try_into().unwrap());
        assert!(here.contains(&(modules_are_handed_out_once as fn() as usize as u64)));
        let before = found.len();
        codes.modules(true, |block| found.push(block.to_vec()));
        assert_eq!(found.len(), before);
    }
}
