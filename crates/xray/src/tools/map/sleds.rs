//! The section `xray_instr_map`: the places at which a program can be patched.

use anytrace_core::Error;
use anytrace_symbols::ObjectFile;

/// Name of the section; on Mach-O it is in the segment `__DATA`.
const SECTION: &str = "xray_instr_map";

/// The purpose of a sled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SledKind(pub u8);

/// Words for kinds, by their numbers (page, section 1.7).
const KINDS: [&str; 6] =
    ["function-enter", "function-exit", "tail-exit", "log-args-enter", "custom-event", "typed-event"];

impl SledKind {
    /// The word in YAML maps; `None` for a kind that is not known.
    pub fn name(self) -> Option<&'static str> {
        KINDS.get(usize::from(self.0)).copied()
    }

    /// The kind with a name, or, of an unknown kind, a number.
    pub fn from_name(name: &str) -> Option<Self> {
        let known = KINDS.iter().position(|known| *known == name).and_then(|n| u8::try_from(n).ok());
        known.or_else(|| name.parse().ok()).map(Self)
    }
}

/// One entry of a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sled {
    /// Number of its function, from 1: it increases by one, in the order of the map, whenever the function changes.
    pub id: u32,
    /// Address that is patched.
    pub address: u64,
    /// Address of the function it is in.
    pub function: u64,
    /// Its purpose.
    pub kind: SledKind,
    /// True when the function is to be traced however short it is.
    pub always: bool,
    /// How addresses are stored: absolute below 2, relative to the entry from 2 on. Here they are always absolute.
    pub version: u8,
}

/// The map of an object file.
///
/// # Errors
/// [`anytrace_core::Kind::Unsupported`] when there is no map, or its length is not a multiple of the entry size.
pub fn sleds(object: &ObjectFile<'_>) -> Result<Vec<Sled>, Error> {
    let name = object.name();
    let sections = object.sections(SECTION)?;
    if sections.is_empty() {
        let why = "it was not compiled with -fxray-instrument, or the linker dropped it";
        return Err(Error::unsupported(format!("{name}: no section {SECTION}: {why}")));
    }
    let (entry_bytes, read) = if object.is_64() { (32, read_64 as Read) } else { (16, read_32 as Read) };
    let mut sleds: Vec<Sled> = Vec::new();
    for section in sections {
        let length = section.data.len();
        if length % entry_bytes != 0 {
            let expected = format!("expected a multiple of {entry_bytes} bytes, found {length}");
            return Err(Error::unsupported(format!("{name}: {SECTION}: {expected}")));
        }
        let mut place = section.address;
        for entry in section.data.chunks_exact(entry_bytes) {
            let Some(mut sled) = read(entry, place, object.is_little_endian()) else { break };
            sled.id = match sleds.last() {
                None => 1,
                Some(last) => last.id.saturating_add(u32::from(last.function != sled.function)),
            };
            sleds.push(sled);
            place = place.wrapping_add(entry_bytes as u64);
        }
    }
    Ok(sleds)
}

/// Reads an entry at an address; the flag means little-endian.
type Read = fn(&[u8], u64, bool) -> Option<Sled>;

/// Two addresses of eight bytes, kind, always, version, 13 bytes that are unused.
fn read_64(entry: &[u8], place: u64, is_little: bool) -> Option<Sled> {
    let word = |at: usize| -> Option<u64> {
        let bytes = *entry.get(at..)?.first_chunk()?;
        Some(if is_little { u64::from_le_bytes(bytes) } else { u64::from_be_bytes(bytes) })
    };
    let mut sled = tail(entry.get(16..)?, word(0)?, word(8)?)?;
    if sled.version >= 2 {
        sled.address = sled.address.wrapping_add(place);
        sled.function = sled.function.wrapping_add(place).wrapping_add(8);
    }
    Some(sled)
}

/// Two addresses of four bytes, kind, always, version, 5 bytes that are unused.
fn read_32(entry: &[u8], place: u64, is_little: bool) -> Option<Sled> {
    let word = |at: usize| -> Option<u32> {
        let bytes = *entry.get(at..)?.first_chunk()?;
        Some(if is_little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let (address, function) = (word(0)?, word(4)?);
    let mut sled = tail(entry.get(8..)?, u64::from(address), u64::from(function))?;
    if sled.version >= 2 {
        let place = u32::try_from(place).unwrap_or(0);
        sled.address = u64::from(address.wrapping_add(place));
        sled.function = u64::from(function.wrapping_add(place).wrapping_add(4));
    }
    Some(sled)
}

fn tail(bytes: &[u8], address: u64, function: u64) -> Option<Sled> {
    let &[kind, always, version, ..] = bytes else { return None };
    Some(Sled { id: 0, address, function, kind: SledKind(kind), always: always != 0, version })
}
