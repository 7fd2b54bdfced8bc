//! The functions of an ELF file, to name the places that allocate. `dladdr` does not know those of executables.

use std::ffi::{CStr, c_int, c_long};

use crate::sys;

/// A file's functions, by address, over the mapped file.
pub(crate) struct Symbols {
    file: &'static [u8],
    /// Start, length, place of the name; sorted.
    functions: Vec<(u64, u64, usize)>,
    /// Where the headers of its tables of symbols are, and the names of each.
    tables: Vec<(usize, usize)>,
    /// True when the addresses are those in memory.
    is_fixed: bool,
    /// True when the file's code calls the hooks.
    is_instrumented: bool,
}

/// Most functions kept of one file.
const FUNCTIONS_MAX: usize = 4 << 20;

impl Symbols {
    /// Reads a file's symbol table; the dynamic one where there is no other.
    pub(crate) fn read(path: &CStr) -> Option<Self> {
        Self::parse(map(path)?)
    }

    fn parse(file: &'static [u8]) -> Option<Self> {
        // Sixty-four bit, little-endian.
        if file.get(..6)? != b"\x7fELF\x02\x01" {
            return None;
        }
        let is_fixed = half(file, 16)? == 2;
        let sections = usize::try_from(word(file, 40)?).ok()?;
        let (each, count) = (usize::from(half(file, 58)?), usize::from(half(file, 60)?));
        let place = |n: usize| sections.checked_add(n.checked_mul(each)?);
        let header = |n: usize| file.get(place(n)?..);
        let (mut functions, mut tables) = (Vec::new(), Vec::new());
        let mut is_instrumented = false;
        for wanted in [SYMTAB, DYNSYM] {
            for n in 0..count {
                let Some(section) = header(n).filter(|section| int(section, 4) == Some(wanted)) else { continue };
                let names = header(usize::try_from(int(section, 40)?).ok()?)?;
                let names = usize::try_from(word(names, 24)?).ok()?;
                collect(file, section, names, &mut functions);
                is_instrumented |= asks_for_hooks(file, section, names);
                tables.extend(place(n).map(|section| (section, names)));
            }
            if !functions.is_empty() {
                break;
            }
        }
        functions.sort_unstable();
        Some(Self { file, functions, tables, is_fixed, is_instrumented })
    }

    /// True when the file's code calls the hooks.
    pub(crate) fn is_instrumented(&self) -> bool {
        self.is_instrumented
    }

    /// The variables that have a size: start in the file's own addresses, bytes, name.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (u64, u64, &'static [u8])> {
        let file = self.file;
        self.tables.iter().flat_map(move |(section, names)| {
            entries(file, file.get(*section..).unwrap_or(&[])).filter_map(move |symbol| {
                let is_variable = symbol.get(4).is_some_and(|info| info & 15 == 1);
                let is_here = half(symbol, 6).is_some_and(|section| section != 0);
                let name = file.get(names.saturating_add(int(symbol, 0)? as usize)..)?;
                let name = name.get(..name.iter().position(|byte| *byte == 0)?)?;
                let (start, bytes) = (word(symbol, 8)?, word(symbol, 16)?);
                (is_variable && is_here && bytes > 0).then_some((start, bytes, name))
            })
        })
    }

    /// The function that contains an address in memory, and the offset from its start.
    pub(crate) fn find(&self, address: usize, base: usize) -> Option<(&'static [u8], u64)> {
        let at = address as u64 - if self.is_fixed { 0 } else { base as u64 };
        let next = self.functions.partition_point(|(start, ..)| *start <= at);
        let (start, length, name) = *self.functions.get(next.checked_sub(1)?)?;
        // Functions written in assembler often have no length.
        if length != 0 && at - start >= length {
            return None;
        }
        Some((self.name(name)?, at - start))
    }

    /// True where the file has a function whose name passes the test.
    pub(crate) fn has_function(&self, mut test: impl FnMut(&[u8]) -> bool) -> bool {
        self.functions.iter().any(|(.., name)| self.name(*name).is_some_and(&mut test))
    }

    fn name(&self, at: usize) -> Option<&'static [u8]> {
        let name = self.file.get(at..)?;
        name.get(..name.iter().position(|byte| *byte == 0)?)
    }
}

const SYMTAB: u32 = 2;
const DYNSYM: u32 = 11;

/// The entries of one table of symbols.
fn entries<'a>(file: &'a [u8], section: &[u8]) -> std::slice::ChunksExact<'a, u8> {
    let range = || Some((usize::try_from(word(section, 24)?).ok()?, usize::try_from(word(section, 32)?).ok()?));
    let (at, bytes) = range().unwrap_or((0, 0));
    file.get(at..).map_or(&[][..], |rest| rest.get(..bytes).unwrap_or(rest)).chunks_exact(24)
}

/// True when a symbol that the table asks other files for, or has, is what each instrumented file calls first.
fn asks_for_hooks(file: &[u8], section: &[u8], names: usize) -> bool {
    entries(file, section)
        .filter_map(|symbol| file.get(names.saturating_add(int(symbol, 0)? as usize)..))
        .any(|name| name.starts_with(b"__tsan_init\0"))
}

/// Takes the functions out of one table of symbols.
fn collect(file: &[u8], section: &[u8], names: usize, to: &mut Vec<(u64, u64, usize)>) {
    for symbol in entries(file, section) {
        let is_function = symbol.get(4).is_some_and(|info| info & 15 == 2 || info & 15 == 10);
        let is_here = half(symbol, 6).is_some_and(|section| section != 0);
        if let (true, true, Some(name), Some(start), Some(length)) =
            (is_function, is_here, int(symbol, 0), word(symbol, 8), word(symbol, 16))
            && to.len() < FUNCTIONS_MAX
        {
            to.push((start, length, names.saturating_add(name as usize)));
        }
    }
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn int(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Maps a file for good.
fn map(path: &CStr) -> Option<&'static [u8]> {
    const MAP_PRIVATE: c_int = 2;
    const PROT_READ: c_int = 1;
    const SEEK_END: c_long = 2;
    // SAFETY: the path ends in a zero byte and lives during the call.
    let fd = unsafe { sys::open(path.as_ptr(), sys::O_CLOEXEC) };
    if fd < 0 {
        return None;
    }
    // SAFETY: works on numbers only.
    let len = unsafe { sys::syscall(8, fd as c_long, 0_usize, SEEK_END) };
    let len = usize::try_from(len).unwrap_or(0);
    // SAFETY: asks for a new private mapping anywhere; touches no existing memory.
    let at = unsafe { sys::mmap(std::ptr::null_mut(), len, PROT_READ, MAP_PRIVATE, fd, 0) };
    // SAFETY: the descriptor was opened above and nobody else knows it; the mapping outlives it.
    unsafe { sys::close(fd) };
    if len == 0 || at as usize == usize::MAX {
        return None;
    }
    // SAFETY: `len` bytes are mapped at `at`, readable, never unmapped. That programs and libraries are not cut
    // short while they run is as certain for us as it is for the loader, which maps them too.
    Some(unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_finds_its_own_functions_in_its_file() {
        let symbols = Symbols::read(c"/proc/self/exe").unwrap();
        let here = a_program_finds_its_own_functions_in_its_file as fn() as usize;
        let mut info = sys::Dl_info {
            fname: std::ptr::null(),
            fbase: std::ptr::null_mut(),
            sname: std::ptr::null(),
            saddr: std::ptr::null_mut(),
        };
        // SAFETY: any address may be asked for; `info` is valid for writing.
        assert_ne!(unsafe { sys::dladdr(here as *const _, &mut info) }, 0);
        let (name, offset) = symbols.find(here + 3, info.fbase as usize).unwrap();
        assert!(String::from_utf8_lossy(name).contains("finds_its_own_functions"), "{name:?}");
        assert_eq!(offset, 3);
    }

    #[test]
    fn damaged_files_give_no_symbols_and_no_panic() {
        let file = map(c"/proc/self/exe").unwrap();
        assert!(Symbols::parse(&[]).is_none());
        for cut in [5, 6, 40, 63, 64, 1000] {
            let _ = Symbols::parse(&file[..cut]).map(|symbols| symbols.find(0x1000, 0));
        }
        let mut head = file[..4096].to_vec();
        for at in 16..64 {
            head[at] ^= 0xff;
            let _ = Symbols::parse(head.clone().leak());
            head[at] ^= 0xff;
        }
    }
}
