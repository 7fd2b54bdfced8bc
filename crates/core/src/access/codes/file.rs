//! The file beside a trace that says where in the program each access is made: `TRACE.pc`, as the recorder writes it.
//!
//! Its format is this project's own, since the trace's has no room for code addresses: 8 bytes `ATRACEPC`, then blocks.
//! All numbers are little-endian. A block is a byte for its kind, three zero bytes, a u32 with the bytes of its payload,
//! and that.
//!
//! | kind | payload |
//! |---|---|
//! | `M` | a file mapped as code: u64 first address, u64 end, u64 offset in the file, u8 bytes of the build id, build id, path |
//! | `A` | accesses: u64 number of the first one, u64 check, u32 accesses, u32 flags, codes |
//!
//! The check is made of the addresses that are accessed: it is rotated left by 5 bits, and then changed (exclusive or) by
//! the next one. Codes are numbers of 7 bits a byte, the least significant first. A table of 1,024 codes has what followed
//! a code before; its index is `(code ^ code >> 10) & 1023`. An even number is a run of predicted codes: twice one less
//! than their number. 1 is an unknown code, which neither the table nor the next difference sees. Of another odd number,
//! the upper bits less one are the difference to the code before, its sign in the lowest bit. The first flag says that
//! table and code go on from the block before; else both are 0.
//!
//! A code is where the recorder's hook returns to, hence just behind the instruction that called it.

use std::fs::File;
use std::io::{BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::{CodeSource, Module};
use crate::Error;
use crate::access::{Access, AccessKind};

const MAGIC: &[u8; 8] = b"ATRACEPC";
const CONTINUES: u32 = 1;
const SLOTS: usize = 1024;
const HEAD_BYTES: u64 = 8;
const ACCESSES_BYTES: usize = 24;
/// Most bytes of a block: the recorder's buffer has at most 1 GiB, and its codes take less than that.
const BLOCK_BYTES_MAX: u32 = 1 << 30;
/// Most modules that are kept.
const MODULES_MAX: usize = 1 << 16;
/// Accesses in a block that is written here.
const BLOCK_ACCESSES: u32 = 1 << 16;

/// What follows what.
#[derive(Debug, Clone)]
struct Prediction {
    next: Vec<u64>,
    previous: u64,
}

impl Default for Prediction {
    fn default() -> Self {
        Self { next: vec![0; SLOTS], previous: 0 }
    }
}

impl Prediction {
    fn slot(&mut self) -> &mut u64 {
        let at = (self.previous ^ self.previous >> 10) as usize & (SLOTS - 1);
        match self.next.get_mut(at) {
            Some(slot) => slot,
            None => unreachable!("the index has as many bits as the table"),
        }
    }
}

/// What became of the codes of a trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodesRead {
    /// Accesses with a code.
    pub known: u64,
    /// Accesses without one.
    pub unknown: u64,
    /// What is wrong with the file, or with the two together: sentences.
    pub faults: Vec<String>,
    /// How many accesses the file is of, where the trace has more: a program was killed, or the disk was full.
    pub ends_after: Option<u64>,
}

/// Reads the codes of a trace, in order.
#[derive(Debug)]
pub struct CodeReader {
    name: String,
    file: BufReader<File>,
    modules: Vec<Module>,
    prediction: Prediction,
    /// The codes of the block, and where the next one is.
    codes: Vec<u8>,
    at: usize,
    /// Predicted codes that follow.
    run: u64,
    /// The block's accesses that were not asked for.
    left: u32,
    wanted_check: u64,
    check: u64,
    /// Accesses that were asked for.
    accesses: u64,
    /// The first access of the block to come, which is read already.
    first: u64,
    is_over: bool,
    read: CodesRead,
}

impl CodeReader {
    /// Opens the file. Modules are read at once.
    ///
    /// # Errors
    /// I/O; [`crate::Kind::Unsupported`] for another file.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let name = path.display().to_string();
        let failed = |error| Error::io(&name, error);
        let mut file = BufReader::new(File::open(path).map_err(failed)?);
        let mut magic = [0; 8];
        match file.read_exact(&mut magic) {
            Ok(()) if &magic == MAGIC => {}
            Ok(()) => return Err(Error::unsupported(format!("{name}: not a file of code addresses"))),
            // The program recorded nothing.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(failed(error)),
        }
        let mut reader = Self {
            name,
            file,
            modules: Vec::new(),
            prediction: Prediction::default(),
            codes: Vec::new(),
            at: 0,
            run: 0,
            left: 0,
            wanted_check: 0,
            check: 0,
            accesses: 0,
            first: 0,
            is_over: false,
            read: CodesRead::default(),
        };
        reader.read_modules()?;
        Ok(reader)
    }

    /// The files that were mapped as code, in the order in which they were noticed.
    pub fn modules(&self) -> &[Module] {
        &self.modules
    }

    /// What was read. Call it after the last access.
    pub fn finish(mut self) -> CodesRead {
        self.end_block();
        if self.left > 0 || !self.is_over && self.next_block() {
            self.fault("has code addresses of accesses that are not in the trace".to_owned());
        }
        self.read
    }

    fn fault(&mut self, what: String) {
        if self.read.faults.len() < 8 {
            self.read.faults.push(format!("{} {what}", self.name));
        }
    }

    /// Passes over all blocks to find the modules, and goes back.
    fn read_modules(&mut self) -> Result<(), Error> {
        let failed = |name: &str, error| Error::io(name, error);
        while let Some((kind, bytes)) = self.head() {
            if kind == b'M' && self.modules.len() < MODULES_MAX {
                let Some(payload) = self.payload(bytes) else { break };
                self.modules.extend(module(&payload));
            } else if let Err(error) = self.file.seek_relative(i64::from(bytes)) {
                return Err(failed(&self.name, error));
            }
        }
        self.file.seek(SeekFrom::Start(HEAD_BYTES)).map_err(|error| failed(&self.name, error))?;
        self.read.faults.clear();
        Ok(())
    }

    /// Kind and bytes of the next block; `None` at the end.
    fn head(&mut self) -> Option<(u8, u32)> {
        let mut head = [0; HEAD_BYTES as usize];
        self.file.read_exact(&mut head).ok()?;
        let [kind, _, _, _, a, b, c, d] = head;
        let bytes = u32::from_le_bytes([a, b, c, d]);
        if bytes > BLOCK_BYTES_MAX {
            self.fault("has a block that no recorder writes".to_owned());
            return None;
        }
        Some((kind, bytes))
    }

    fn payload(&mut self, bytes: u32) -> Option<Vec<u8>> {
        // What a block claims to have is only believed as far as it is there.
        let mut payload = Vec::new();
        (&mut self.file).take(u64::from(bytes)).read_to_end(&mut payload).ok()?;
        if payload.len() < bytes as usize {
            self.fault("ends in the middle of a block".to_owned());
            return None;
        }
        Some(payload)
    }

    /// Reads the next block of accesses; false where there is none.
    fn next_block(&mut self) -> bool {
        loop {
            let Some((kind, bytes)) = self.head() else { return false };
            let Some(payload) = self.payload(bytes) else { return false };
            if kind != b'A' {
                continue;
            }
            let long = |at: usize| payload.get(at..).and_then(<[u8]>::first_chunk).map(|b| u64::from_le_bytes(*b));
            let word = |at: usize| payload.get(at..).and_then(<[u8]>::first_chunk).map(|b| u32::from_le_bytes(*b));
            let (Some(first), Some(check), Some(left), Some(flags)) = (long(0), long(8), word(16), word(20)) else {
                self.fault("has a block that is too short".to_owned());
                return false;
            };
            (self.first, self.wanted_check, self.left) = (first, check, left);
            (self.codes, self.at, self.run, self.check) = (payload, ACCESSES_BYTES, 0, 0);
            if flags & CONTINUES == 0 {
                self.prediction = Prediction::default();
            }
            if self.left > 0 {
                return true;
            }
        }
    }

    fn number(&mut self) -> Option<u64> {
        let (mut value, mut shift) = (0_u64, 0_u32);
        loop {
            let byte = *self.codes.get(self.at)?;
            self.at += 1;
            value |= u64::from(byte & 0x7f).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
    }

    /// The next code of the block, as it was recorded.
    fn next_code(&mut self) -> u64 {
        if self.run == 0 {
            match self.number() {
                None | Some(1) => return 0,
                Some(number) if number & 1 == 0 => self.run = (number >> 1) + 1,
                Some(number) => {
                    let signed = (number >> 1) - 1;
                    let difference = (signed >> 1) ^ (signed & 1).wrapping_neg();
                    let code = self.prediction.previous.wrapping_add(difference);
                    *self.prediction.slot() = code;
                    self.prediction.previous = code;
                    return code;
                }
            }
        }
        self.run -= 1;
        self.prediction.previous = *self.prediction.slot();
        self.prediction.previous
    }

    /// Compares what was accessed with what the block is of.
    fn end_block(&mut self) {
        if self.left == 0 && self.check != self.wanted_check && !self.is_over {
            self.fault(format!(
                "does not belong to the accesses of this trace, from number {} on at the latest: \
                 what follows has no code addresses",
                self.first
            ));
            self.is_over = true;
        }
    }
}

impl CodeSource for CodeReader {
    fn code(&mut self, access: &Access) -> u64 {
        if access.kind == AccessKind::Fetch {
            return 0;
        }
        if self.left == 0 && !self.is_over {
            self.end_block();
            (self.check, self.wanted_check) = (0, 0);
            if !self.is_over && !self.next_block() {
                self.is_over = true;
                self.read.ends_after = Some(self.accesses);
            }
        }
        let number = self.accesses;
        self.accesses += 1;
        if self.is_over || number < self.first {
            self.read.unknown += 1;
            return 0;
        }
        self.left -= 1;
        self.check = self.check.rotate_left(5) ^ access.address;
        let code = self.next_code();
        if code == 0 {
            self.read.unknown += 1;
            return 0;
        }
        self.read.known += 1;
        // Inside the call of the hook.
        code - 1
    }
}

fn module(payload: &[u8]) -> Option<Module> {
    let number = |at: usize| payload.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u64::from_le_bytes(*bytes));
    let id_bytes = usize::from(*payload.get(24)?);
    let rest = payload.get(25..)?;
    let (build_id, path) = rest.split_at_checked(id_bytes)?;
    let (build_id, path) = (build_id.to_vec(), path.to_vec());
    Some(Module { start: number(0)?, end: number(8)?, offset: number(16)?, build_id, path })
}

/// Writes such a file.
#[derive(Debug)]
pub struct CodeWriter<W: Write> {
    out: BufWriter<W>,
    prediction: Prediction,
    codes: Vec<u8>,
    run: u64,
    accesses: u32,
    before: u64,
    check: u64,
}

impl<W: Write> CodeWriter<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// I/O, as below.
    pub fn new(out: W) -> std::io::Result<Self> {
        let mut out = BufWriter::new(out);
        out.write_all(MAGIC)?;
        let (prediction, codes) = (Prediction::default(), Vec::new());
        Ok(Self { out, prediction, codes, run: 0, accesses: 0, before: 0, check: 0 })
    }

    /// Adds a module.
    ///
    /// # Errors
    /// I/O.
    pub fn module(&mut self, module: &Module) -> std::io::Result<()> {
        let Module { start, end, offset, build_id, path } = module;
        let build_id = build_id.get(..build_id.len().min(255)).unwrap_or_default();
        let mut payload = [start.to_le_bytes(), end.to_le_bytes(), offset.to_le_bytes()].concat();
        payload.push(build_id.len() as u8);
        payload.extend(build_id);
        payload.extend(path);
        self.block(b'M', &payload)
    }

    fn block(&mut self, kind: u8, payload: &[u8]) -> std::io::Result<()> {
        self.out.write_all(&[kind, 0, 0, 0])?;
        self.out.write_all(&(payload.len() as u32).to_le_bytes())?;
        self.out.write_all(payload)
    }

    /// Adds the code of the next access, an address inside its instruction; 0: unknown.
    ///
    /// # Errors
    /// I/O.
    pub fn code(&mut self, code: u64, address: u64) -> std::io::Result<()> {
        self.check = self.check.rotate_left(5) ^ address;
        self.accesses += 1;
        // As if a call were there.
        let code = if code == 0 { 0 } else { code.wrapping_add(1) };
        if code != 0 && *self.prediction.slot() == code {
            self.run += 1;
            self.prediction.previous = code;
        } else {
            self.end_run();
            if code == 0 {
                push_number(&mut self.codes, 1);
            } else {
                let difference = code.wrapping_sub(self.prediction.previous) as i64;
                let signed = (difference << 1 ^ difference >> 63) as u64;
                push_number(&mut self.codes, signed.wrapping_add(1) << 1 | 1);
                *self.prediction.slot() = code;
                self.prediction.previous = code;
            }
        }
        if self.accesses >= BLOCK_ACCESSES { self.end_block() } else { Ok(()) }
    }

    fn end_run(&mut self) {
        if self.run > 0 {
            push_number(&mut self.codes, (self.run - 1) << 1);
            self.run = 0;
        }
    }

    fn end_block(&mut self) -> std::io::Result<()> {
        self.end_run();
        if self.accesses == 0 {
            return Ok(());
        }
        let mut payload = [self.before.to_le_bytes(), self.check.to_le_bytes()].concat();
        payload.extend(self.accesses.to_le_bytes());
        payload.extend(0_u32.to_le_bytes());
        payload.append(&mut self.codes);
        self.before += u64::from(self.accesses);
        (self.accesses, self.check, self.prediction) = (0, 0, Prediction::default());
        self.block(b'A', &payload)
    }

    /// Ends the file, and returns the destination.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(mut self) -> std::io::Result<W> {
        self.end_block()?;
        self.out.into_inner().map_err(std::io::IntoInnerError::into_error)
    }
}

fn push_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;
    use crate::access::AccessFlags;

    fn access(address: u64) -> Access {
        Access { address, seq: 0, thread: 0, bytes: 8, kind: AccessKind::Read, flags: AccessFlags::NONE }
    }

    /// Codes and addresses of 150,000 accesses, as a loop has them.
    fn accesses() -> impl Iterator<Item = (u64, u64)> {
        (0..150_000_u64).map(|n| (if n % 1001 == 0 { 0 } else { 0x40_0000 + n % 37 * 5 + n / 50_000 }, n * 8))
    }

    fn written() -> (tempfile::NamedTempFile, Module) {
        let module =
            Module { start: 0x40_0000, end: 0x50_0000, offset: 0x1000, build_id: vec![7; 20], path: b"/a".to_vec() };
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = CodeWriter::new(file.reopen().unwrap()).unwrap();
        writer.module(&module).unwrap();
        accesses().for_each(|(code, address)| writer.code(code, address).unwrap());
        writer.finish().unwrap();
        (file, module)
    }

    #[test]
    fn codes_come_back() {
        let (file, module) = written();
        assert!(file.as_file().metadata().unwrap().len() < 5_000, "{:?}", file.as_file().metadata().unwrap().len());
        let mut reader = CodeReader::open(file.path()).unwrap();
        assert_eq!(reader.modules(), [module]);
        for (code, address) in accesses() {
            assert_eq!(reader.code(&access(address)), code);
        }
        let read = reader.finish();
        assert_eq!((read.known, read.unknown, read.faults), (149_850, 150, Vec::new()));
    }

    #[test]
    fn another_trace_is_noticed_and_gets_no_codes() {
        let (file, _) = written();
        let mut reader = CodeReader::open(file.path()).unwrap();
        let known = accesses().filter(|(_, address)| reader.code(&access(address + 8)) != 0).count();
        assert!(known < 66_000, "one block");
        let read = reader.finish();
        assert!(read.faults[0].contains("does not belong to the accesses of this trace"), "{:?}", read.faults);
        // One that ends early has codes to spare.
        let mut reader = CodeReader::open(file.path()).unwrap();
        accesses().take(1000).for_each(|(code, address)| assert_eq!(reader.code(&access(address)), code));
        assert!(reader.finish().faults[0].contains("not in the trace"));
    }

    #[test]
    fn wherever_it_ends_the_blocks_before_are_right() {
        let (file, _) = written();
        let bytes = std::fs::read(file.path()).unwrap();
        let cut = tempfile::NamedTempFile::new().unwrap();
        for length in (0..bytes.len()).step_by(61) {
            std::fs::write(cut.path(), &bytes[..length]).unwrap();
            let Ok(mut reader) = CodeReader::open(cut.path()) else { panic!("{length}") };
            let mut known = 0;
            for (code, address) in accesses().step_by(1) {
                let found = reader.code(&access(address));
                assert!(found == code || found == 0, "{length}");
                if found != code {
                    break;
                }
                known += 1;
            }
            // What is missing is reported, in whole blocks or in the middle of one.
            let read = reader.finish();
            assert!(read.ends_after.is_some_and(|ends| ends <= known) || !read.faults.is_empty(), "{length}: {read:?}");
        }
    }

    #[test]
    fn no_bytes_make_it_fail() {
        let (file, _) = written();
        let bytes = std::fs::read(file.path()).unwrap();
        let changed = tempfile::NamedTempFile::new().unwrap();
        for at in (8..bytes.len()).step_by(3) {
            let mut other = bytes.clone();
            other[at] ^= 0x55;
            std::fs::write(changed.path(), &other).unwrap();
            let mut reader = CodeReader::open(changed.path()).unwrap();
            accesses().take(70_000).for_each(|(_, address)| {
                reader.code(&access(address));
            });
            reader.finish();
        }
        std::fs::write(changed.path(), b"a text file").unwrap();
        assert_eq!(CodeReader::open(changed.path()).unwrap_err().kind(), crate::Kind::Unsupported);
    }
}
