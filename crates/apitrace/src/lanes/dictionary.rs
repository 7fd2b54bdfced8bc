//! What ids denote: functions, enumerations, bit masks, structures, stack frames.

use std::collections::HashMap;
use std::sync::Arc;

use anytrace_core::hash::Key;

use crate::lanes::flags::{CallFlags, call_flags};
use crate::lanes::wire::Wire;
use crate::wire::record::{Signed, Space, VERSION_ENUM_SETS};

/// A signature at its first use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Definition<'a> {
    /// Its name space.
    pub space: Space,
    /// Its id on the wire.
    pub id: u64,
    /// Its slot in the signature tables.
    pub slot: u32,
    /// The bytes after the id; empty if they were lost.
    pub bytes: &'a [u8],
}

/// The position of every name whose index is a multiple of this is remembered.
const MARK_EVERY: u64 = 8;

/// A name and a list of names: a function or a structure.
#[derive(Debug, Default)]
pub struct Named {
    bytes: Box<[u8]>,
    count: u64,
    /// Where in the bytes each eighth name of the list begins.
    marks: Box<[u32]>,
    /// Flags of functions; none for structures.
    pub flags: CallFlags,
}

impl Named {
    fn new(bytes: &[u8], is_function: bool) -> Self {
        let mut wire = Wire::new(bytes, true);
        let name = wire.string();
        let flags = if is_function { call_flags(name) } else { CallFlags::default() };
        let count = wire.uint();
        let mut marks = Vec::new();
        for index in 0..count {
            if index % MARK_EVERY == 0 {
                marks.push(u32::try_from(bytes.len() - wire.rest().len()).unwrap_or(u32::MAX));
            }
            wire.string();
        }
        Self { bytes: bytes.into(), count, marks: marks.into(), flags }
    }

    /// A function from its definition.
    pub fn function(definition: &[u8]) -> Self {
        Self::new(definition, true)
    }

    /// The name of the function or structure.
    pub fn name(&self) -> &[u8] {
        Wire::new(&self.bytes, true).string()
    }

    /// How many arguments or members there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The name of an argument or member.
    pub fn get(&self, index: u64) -> Option<&[u8]> {
        if index >= self.count {
            return None;
        }
        let mark = *self.marks.get(usize::try_from(index / MARK_EVERY).ok()?)?;
        let mut wire = Wire::new(self.bytes.get(mark as usize..)?, true);
        for _ in 0..index % MARK_EVERY {
            wire.string();
        }
        Some(wire.string())
    }
}

/// The names of an enumeration's values.
#[derive(Debug, Default)]
pub struct Enumeration {
    bytes: Box<[u8]>,
    /// Open addressing: where in the bytes names begin. 0 marks a free slot, because a count precedes the names.
    table: Box<[u32]>,
    key: Key,
}

impl Enumeration {
    fn new(bytes: &[u8], has_values: bool) -> Self {
        if !has_values {
            return Self { bytes: bytes.into(), table: Box::default(), key: Key::new() };
        }
        let mut wire = Wire::new(bytes, true);
        let count = usize::try_from(wire.uint()).unwrap_or(0).min(bytes.len());
        let table = vec![0; (count + count / 2).next_power_of_two()].into();
        let mut this = Self { bytes: bytes.into(), table, key: Key::new() };
        for _ in 0..count {
            let at = bytes.len() - wire.rest().len();
            wire.string();
            let value = number(wire.signed());
            this.insert(value, u32::try_from(at).unwrap_or(0));
        }
        this
    }

    /// The first name of a value counts.
    fn insert(&mut self, value: i64, at: u32) {
        let mask = self.table.len() - 1;
        let mut place = self.key.hash(value.cast_unsigned()) as usize & mask;
        for _ in 0..self.table.len() {
            match self.table.get(place).copied() {
                Some(0) => {
                    if let Some(free) = self.table.get_mut(place) {
                        *free = at;
                    }
                    return;
                }
                Some(taken) if self.entry(taken).1 == value => return,
                _ => place = (place + 1) & mask,
            }
        }
    }

    #[inline]
    fn entry(&self, at: u32) -> (&[u8], i64) {
        let mut wire = Wire::new(self.bytes.get(at as usize..).unwrap_or_default(), true);
        let name = wire.string();
        (name, number(wire.signed()))
    }

    /// The name of a value; before version 3 the signature's own.
    #[inline]
    pub fn name(&self, value: Option<Signed>) -> Option<&[u8]> {
        let Some(value) = value.map(number) else {
            return (!self.bytes.is_empty()).then(|| self.entry(0).0);
        };
        let mask = self.table.len().wrapping_sub(1);
        let mut place = self.key.hash(value.cast_unsigned()) as usize & mask;
        for _ in 0..self.table.len() {
            match self.table.get(place).copied() {
                None | Some(0) => return None,
                Some(at) => {
                    let (name, known) = self.entry(at);
                    if known == value {
                        return Some(name);
                    }
                }
            }
            place = (place + 1) & mask;
        }
        None
    }

    /// The value of an enumeration's use; before version 3 the signature's own.
    pub fn value(&self, value: Option<Signed>) -> i64 {
        value.map_or_else(|| if self.bytes.is_empty() { 0 } else { self.entry(0).1 }, number)
    }
}

/// A signed number as 64 bits, as programs see it.
#[inline]
pub fn number(value: Signed) -> i64 {
    let magnitude = value.magnitude as i64;
    if value.is_negative { magnitude.wrapping_neg() } else { magnitude }
}

/// Most flags used of a bit mask. Real masks have 64 at most, and each use scans all of them.
const FLAGS_MAX: u64 = 4096;

/// The flags of a bit mask.
#[derive(Debug, Default)]
pub struct Bitmask {
    bytes: Box<[u8]>,
}

impl Bitmask {
    /// Names and values in the order of the signature.
    pub fn flags(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut wire = Wire::new(&self.bytes, true);
        let mut left = wire.uint().min(FLAGS_MAX);
        std::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            if wire.rest().is_empty() { None } else { Some((wire.string(), wire.uint())) }
        })
    }
}

/// A stack frame; unknown parts are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// File of the program or library.
    pub module: Option<&'a [u8]>,
    /// Function.
    pub function: Option<&'a [u8]>,
    /// Source file.
    pub file: Option<&'a [u8]>,
    /// Line in it, from 1.
    pub line: Option<u64>,
    /// Bytes from the start of the function or module.
    pub offset: Option<u64>,
}

/// What an id denotes, parsed once and never changed, so that any number of dictionaries can share it.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    space: Space,
    id: u64,
    slot: u32,
    meaning: Meaning,
}

#[derive(Debug, Clone)]
enum Meaning {
    Named(Arc<Named>),
    Enumeration(Arc<Enumeration>),
    Bitmask(Arc<Bitmask>),
    Frame(Arc<[u8]>),
}

/// Rows by id.
#[derive(Debug)]
struct Rows<T: ?Sized> {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    rows: Vec<Arc<T>>,
}

/// Ids below this are found by index; all real ones are.
const DENSE_IDS: u64 = 4096;

impl<T: ?Sized> Default for Rows<T> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: HashMap::new(), rows: Vec::new() }
    }
}

impl<T: ?Sized> Rows<T> {
    fn set(&mut self, id: u64, row: Arc<T>) {
        let Ok(slot) = u32::try_from(self.rows.len()) else { return };
        self.rows.push(row);
        if id >= DENSE_IDS {
            self.sparse.insert(id, slot);
            return;
        }
        let at = id as usize;
        if self.dense.len() <= at {
            self.dense.resize(at + 1, u32::MAX);
        }
        if let Some(place) = self.dense.get_mut(at) {
            *place = slot;
        }
    }

    #[inline]
    fn get(&self, id: u64) -> Option<&T> {
        let slot = match self.dense.get(usize::try_from(id).unwrap_or(usize::MAX)) {
            Some(slot) => *slot,
            None => *self.sparse.get(&id)?,
        };
        self.rows.get(slot as usize).map(|row| &**row)
    }
}

/// Everything defined so far.
#[derive(Debug, Default)]
pub struct Dictionary {
    has_enum_values: bool,
    functions: Vec<Option<Arc<Named>>>,
    structs: Rows<Named>,
    enums: Rows<Enumeration>,
    bitmasks: Rows<Bitmask>,
    frames: Rows<[u8]>,
}

impl Dictionary {
    /// A dictionary for a trace of this version.
    pub fn new(version: u64) -> Self {
        Self { has_enum_values: version >= VERSION_ENUM_SETS, ..Self::default() }
    }

    /// Adds a definition; lost ones stay unknown.
    pub fn define(&mut self, definition: &Definition<'_>) {
        if let Some(known) = self.parse(definition) {
            self.add(&known);
        }
    }

    /// Parses a definition of this trace; `None` if it was lost.
    pub(crate) fn parse(&self, definition: &Definition<'_>) -> Option<Known> {
        let &Definition { space, id, slot, bytes } = definition;
        if bytes.is_empty() {
            return None;
        }
        let meaning = match space {
            Space::Function | Space::Struct => Meaning::Named(Arc::new(Named::new(bytes, space == Space::Function))),
            Space::Enum => Meaning::Enumeration(Arc::new(Enumeration::new(bytes, self.has_enum_values))),
            Space::Bitmask => Meaning::Bitmask(Arc::new(Bitmask { bytes: bytes.into() })),
            Space::Frame => Meaning::Frame(bytes.into()),
        };
        Some(Known { space, id, slot, meaning })
    }

    /// Adds what a dictionary of the same trace parsed.
    pub(crate) fn add(&mut self, known: &Known) {
        match &known.meaning {
            Meaning::Named(named) if known.space == Space::Struct => self.structs.set(known.id, Arc::clone(named)),
            Meaning::Named(named) => {
                let at = known.slot as usize;
                if self.functions.len() <= at {
                    self.functions.resize_with(at + 1, || None);
                }
                if let Some(place) = self.functions.get_mut(at) {
                    *place = Some(Arc::clone(named));
                }
            }
            Meaning::Enumeration(names) => self.enums.set(known.id, Arc::clone(names)),
            Meaning::Bitmask(flags) => self.bitmasks.set(known.id, Arc::clone(flags)),
            Meaning::Frame(bytes) => self.frames.set(known.id, Arc::clone(bytes)),
        }
    }

    /// True from version 3 on: each use of an enumeration contains its value.
    pub fn has_enum_values(&self) -> bool {
        self.has_enum_values
    }

    /// Reads the details of an event of this trace.
    #[inline]
    pub fn wire<'a>(&self, bytes: &'a [u8]) -> Wire<'a> {
        Wire::new(bytes, self.has_enum_values)
    }

    /// The function in a slot.
    #[inline]
    pub fn function(&self, slot: u32) -> Option<&Named> {
        self.functions.get(slot as usize)?.as_deref()
    }

    /// A structure.
    pub fn structure(&self, id: u64) -> Option<&Named> {
        self.structs.get(id)
    }

    /// Number of members of a structure; 0 if it is unknown.
    pub fn members(&self, id: u64) -> u64 {
        self.structs.get(id).map_or(0, Named::count)
    }

    /// An enumeration.
    #[inline]
    pub fn enumeration(&self, id: u64) -> Option<&Enumeration> {
        self.enums.get(id)
    }

    /// A bit mask.
    pub fn bitmask(&self, id: u64) -> Option<&Bitmask> {
        self.bitmasks.get(id)
    }

    /// A stack frame.
    pub fn frame(&self, id: u64) -> Frame<'_> {
        let mut frame = Frame::default();
        let Some(bytes) = self.frames.get(id) else { return frame };
        let mut wire = Wire::new(bytes, true);
        loop {
            match wire.byte() {
                1 => frame.module = Some(wire.string()),
                2 => frame.function = Some(wire.string()),
                3 => frame.file = Some(wire.string()),
                4 => frame.line = Some(wire.uint()),
                5 => frame.offset = Some(wire.uint()),
                _ => return frame,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed(value: i64) -> Option<Signed> {
        Some(Signed { is_negative: value < 0, magnitude: value.unsigned_abs() })
    }

    #[test]
    fn arguments_are_found_by_index_however_many_there_are() {
        let mut bytes = b"\x01f\x14".to_vec();
        for n in 0..20_u8 {
            bytes.extend([2, b'a', b'a' + n]);
        }
        let named = Named::new(&bytes, true);
        assert_eq!((named.name(), named.count()), (&b"f"[..], 20));
        for n in 0..20_u8 {
            assert_eq!(named.get(u64::from(n)), Some(&[b'a', b'a' + n][..]));
        }
        assert_eq!(named.get(20), None);
    }

    #[test]
    fn values_find_their_first_name() {
        let mut bytes = vec![200, 1];
        for n in 0..200_u64 {
            let name = format!("N{n}");
            bytes.push(name.len() as u8);
            bytes.extend(name.bytes());
            bytes.push(if n % 3 == 0 { 3 } else { 4 });
            crate::wire::scan::push_uint(&mut bytes, n / 2 * 1000);
        }
        let names = Enumeration::new(&bytes, true);
        let value = |n: i64| if n % 3 == 0 { -(n / 2 * 1000) } else { n / 2 * 1000 };
        for n in 0..200 {
            let first = (0..=n).find(|m| value(*m) == value(n)).unwrap();
            assert_eq!(names.name(signed(value(n))), Some(format!("N{first}").as_bytes()), "{n}");
        }
        assert_eq!(names.name(signed(1)), None);
        assert_eq!(Enumeration::default().name(signed(0)), None);
        let old = Enumeration::new(b"\x01Z\x04\x07", false);
        assert_eq!((old.name(None), old.value(None)), (Some(&b"Z"[..]), 7));
    }

    #[test]
    fn values_made_to_collide_are_entered_as_fast_as_others() {
        /// The inverse of the factor of Fibonacci hashing modulo 2^64. Its multiples all hash to one slot.
        const INVERSE: u64 = 0xf1de_83e1_9937_733d;
        assert_eq!(INVERSE.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1);
        let count = 1_u64 << 19;
        let mut bytes = Vec::new();
        crate::wire::scan::push_uint(&mut bytes, count);
        for n in 1..=count {
            bytes.extend([0, 4]);
            crate::wire::scan::push_uint(&mut bytes, INVERSE.wrapping_mul(n));
        }
        // Ends at once, or takes 137 billion steps.
        let names = Enumeration::new(&bytes, true);
        let last = Signed { is_negative: false, magnitude: INVERSE.wrapping_mul(count) };
        assert_eq!(names.name(Some(last)), Some(&b""[..]));
    }

    #[test]
    fn ids_of_any_size_are_found() {
        let mut dictionary = Dictionary::new(6);
        for id in [0, 4095, 4096, u64::MAX] {
            let bytes = b"\x01\x01A\x01";
            dictionary.define(&Definition { space: Space::Bitmask, id, slot: 0, bytes });
            let flags: Vec<_> = dictionary.bitmask(id).unwrap().flags().collect();
            assert_eq!(flags, [(&b"A"[..], 1)]);
        }
        assert!(dictionary.bitmask(7).is_none());
        dictionary.define(&Definition { space: Space::Frame, id: 3, slot: 0, bytes: b"\x02\x01f\x05\x09\x00" });
        assert_eq!(dictionary.frame(3), Frame { function: Some(b"f"), offset: Some(9), ..Frame::default() });
    }
}
