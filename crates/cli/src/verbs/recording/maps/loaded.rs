//! The list of the dynamic linker: which objects a process has, in the order in which they were loaded.
//!
//! Sources: `ld.so(8)` and `<link.h>` of the GNU C library (`struct r_debug`, `struct link_map`), which others follow as
//! debuggers depend on it; System V ABI, "Program Header" and "Dynamic Section"; `getauxval(3)`.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;

/// Entries of the auxiliary vector: address and number of the program headers.
const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;

/// Program headers.
const PT_DYNAMIC: u32 = 2;
const PT_PHDR: u32 = 6;
const HEADER_BYTES: u64 = 56;

/// The dynamic section's entry for debuggers.
const DT_DEBUG: u64 = 21;

/// Most entries of each table: what is read belongs to the process, which may have anything there.
const ENTRIES_MAX: u64 = 4096;

/// Addresses of the dynamic sections of all objects, in order; `None` if there is no list, or it cannot be read: the
/// program is linked statically, of 32 bits, has just begun, or is not ours.
pub(super) fn list(process: u32) -> Option<Vec<u64>> {
    let memory = Memory(File::open(format!("/proc/{process}/mem")).ok()?);
    let mut vector = Vec::new();
    File::open(format!("/proc/{process}/auxv")).ok()?.take(ENTRIES_MAX).read_to_end(&mut vector).ok()?;
    let entries = vector.as_chunks::<16>().0.iter().map(|entry| (word(entry, 0), word(entry, 8)));
    let entries: Vec<(u64, u64)> = entries.collect();
    let entry = |wanted: u64| entries.iter().find(|(kind, _)| *kind == wanted).map(|(_, value)| *value);
    let map = memory.first_map(entry(AT_PHDR)?, entry(AT_PHNUM)?)?;
    let mut found = Vec::new();
    let mut at = map;
    while at != 0 {
        let link: [u8; 32] = memory.read(at)?;
        found.push(word(&link, 16));
        at = word(&link, 24);
        if found.len() as u64 > ENTRIES_MAX {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
}

/// The memory of a process.
struct Memory(File);

impl Memory {
    fn read<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.0.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    /// Address of the list's first entry.
    fn first_map(&self, headers: u64, count: u64) -> Option<u64> {
        let (mut dynamic, mut bias) = (None, 0);
        for at in 0..count.min(ENTRIES_MAX) {
            let header: [u8; 24] = self.read(headers.checked_add(at * HEADER_BYTES)?)?;
            let address = word(&header, 16);
            match header.first_chunk().map(|kind| u32::from_ne_bytes(*kind))? {
                PT_DYNAMIC => dynamic = Some(address),
                PT_PHDR => bias = headers.wrapping_sub(address),
                _ => {}
            }
        }
        let dynamic = dynamic?.wrapping_add(bias);
        for at in 0..ENTRIES_MAX {
            let entry: [u8; 16] = self.read(dynamic.checked_add(at * 16)?)?;
            match (word(&entry, 0), word(&entry, 8)) {
                (0, _) | (DT_DEBUG, 0) => return None,
                // A number of the version, then the list.
                (DT_DEBUG, debug) => return self.read(debug.checked_add(8)?).map(u64::from_ne_bytes),
                _ => {}
            }
        }
        None
    }
}

/// The eight bytes at a place within a record.
fn word(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}
