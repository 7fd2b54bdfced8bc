//! The five tables of signatures a reader builds up as definitions come by.

use std::collections::HashMap;

use anytrace_core::Error;

use crate::record::{Space, ends_frame};
use crate::scan::Scan;

/// Ids below this are found by index; all real ids are (the highest seen is 2464).
const DENSE_IDS: usize = 4096;

/// Most signatures in one space.
const SIGNATURES_MAX: usize = 1 << 18;

/// Most bytes of definitions kept in all.
const DEFINITION_BYTES_MAX: usize = 24 << 20;

/// One signature.
#[derive(Debug, Clone)]
pub struct Signature {
    /// Its id.
    pub id: u64,
    /// The bytes after the id: names and values as they stand. Empty for lost ones.
    pub definition: Box<[u8]>,
    /// Arguments of a function, members of a structure.
    pub count: u64,
    /// The definition stood in a part of the stream that could not be read.
    pub is_lost: bool,
    /// A call of this function ends a frame.
    pub ends_frame: bool,
    /// Length and first letter of a name of up to five bytes: they look like a detail.
    pub(crate) short_name: Option<[u8; 2]>,
}

impl Signature {
    /// Name of a function, structure or enumeration value of the old form; empty for the others.
    pub fn name(&self) -> &[u8] {
        Scan::new(&self.definition).string().unwrap_or_default()
    }

    /// Names of the arguments or members.
    pub fn names(&self) -> Vec<&[u8]> {
        let mut scan = Scan::new(&self.definition);
        let (Ok(_), Ok(count)) = (scan.string(), scan.uint()) else { return Vec::new() };
        // Each name takes a byte at least, so the definition's own length bounds the loop.
        (0..count).map_while(|_| scan.string().ok()).collect()
    }

    /// Name of one argument or member.
    pub fn argument(&self, index: u64) -> Option<&[u8]> {
        let mut scan = Scan::new(&self.definition);
        scan.string().ok()?;
        let count = scan.uint().ok()?;
        if index >= count {
            return None;
        }
        for _ in 0..index {
            scan.string().ok()?;
        }
        scan.string().ok()
    }
}

/// The signatures of one space.
#[derive(Debug)]
pub struct Table {
    dense: Box<[u32]>,
    sparse: HashMap<u64, u32>,
    rows: Vec<Signature>,
}

/// No slot.
const NONE: u32 = u32::MAX;

impl Table {
    fn new() -> Self {
        Self { dense: vec![NONE; DENSE_IDS].into_boxed_slice(), sparse: HashMap::new(), rows: Vec::new() }
    }

    /// Slot of an id.
    #[inline(always)]
    pub fn slot(&self, id: u64) -> Option<u32> {
        match usize::try_from(id).ok().and_then(|id| self.dense.get(id)) {
            Some(&slot) => (slot != NONE).then_some(slot),
            None => self.sparse_slot(id),
        }
    }

    #[cold]
    fn sparse_slot(&self, id: u64) -> Option<u32> {
        self.sparse.get(&id).copied()
    }

    /// The signature in a slot.
    #[inline]
    pub fn get(&self, slot: u32) -> Option<&Signature> {
        self.rows.get(slot as usize)
    }

    /// All signatures, in the order of their definitions.
    pub fn rows(&self) -> &[Signature] {
        &self.rows
    }

    fn point(&mut self, id: u64, slot: u32) {
        match usize::try_from(id).ok().and_then(|id| self.dense.get_mut(id)) {
            Some(place) => *place = slot,
            None if slot == NONE => {
                self.sparse.remove(&id);
            }
            None => {
                self.sparse.insert(id, slot);
            }
        }
    }
}

/// All signatures known so far.
#[derive(Debug)]
pub struct Signatures {
    tables: [Table; 5],
    bytes: usize,
    journal: Option<Vec<(Space, u64, u32)>>,
    /// Definitions may have stood in a part that could not be read.
    pub(crate) may_be_lost: bool,
    is_full: bool,
}

impl Default for Signatures {
    fn default() -> Self {
        Self {
            tables: std::array::from_fn(|_| Table::new()),
            bytes: 0,
            journal: None,
            may_be_lost: false,
            is_full: false,
        }
    }
}

impl Signatures {
    /// The table of one space.
    #[inline]
    pub fn table(&self, space: Space) -> &Table {
        &self.tables[space as usize]
    }

    /// The signature in a slot of one space.
    #[inline]
    pub fn get(&self, space: Space, slot: u32) -> Option<&Signature> {
        self.table(space).get(slot)
    }

    /// The function in a slot.
    #[inline]
    pub fn function(&self, slot: u32) -> Option<&Signature> {
        self.get(Space::Function, slot)
    }

    /// Adds a signature and returns its slot. A known id gets the new meaning.
    pub(crate) fn define(&mut self, space: Space, id: u64, definition: &[u8], is_lost: bool) -> u32 {
        let (count, ends) = match space {
            Space::Function | Space::Struct => {
                let mut scan = Scan::new(definition);
                let name = scan.string().unwrap_or_default();
                let ends = space == Space::Function && ends_frame(name);
                (scan.uint().unwrap_or(0), ends)
            }
            _ => (0, false),
        };
        let table = &mut self.tables[space as usize];
        self.bytes += definition.len();
        if table.rows.len() >= SIGNATURES_MAX || self.bytes > DEFINITION_BYTES_MAX {
            self.is_full = true;
            return NONE;
        }
        let slot = u32::try_from(table.rows.len()).unwrap_or(NONE);
        let short_name = definition.first_chunk::<2>().copied().filter(|[length, _]| *length <= 5);
        let definition = definition.into();
        table.rows.push(Signature { id, definition, count, is_lost, ends_frame: ends, short_name });
        let before = table.slot(id).unwrap_or(NONE);
        table.point(id, slot);
        if let Some(journal) = &mut self.journal {
            journal.push((space, id, before));
        }
        slot
    }

    /// Fails when a bound was met since the start.
    pub(crate) fn check_bounds(&self) -> Result<(), Error> {
        if self.is_full {
            return Err(Error::limit(format!(
                "the trace defines more than {SIGNATURES_MAX} signatures of a kind or {DEFINITION_BYTES_MAX} bytes of them"
            )));
        }
        Ok(())
    }

    /// Starts noting what is defined, so that it can be taken back.
    pub(crate) fn begin_trial(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// Takes back everything defined since [`Self::begin_trial`].
    pub(crate) fn end_trial(&mut self) {
        for (space, id, before) in self.journal.take().unwrap_or_default().into_iter().rev() {
            let table = &mut self.tables[space as usize];
            if let Some(row) = table.rows.pop() {
                self.bytes -= row.definition.len();
            }
            table.point(id, before);
        }
        self.is_full = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_ids_take_no_more_room_than_small_ones() {
        let mut signatures = Signatures::default();
        for id in [0, 4095, 4096, 1 << 31, u64::MAX] {
            let slot = signatures.define(Space::Function, id, b"\x01f\x01\x01x", false);
            assert_eq!(signatures.table(Space::Function).slot(id), Some(slot));
            let row = signatures.function(slot).unwrap();
            assert_eq!((row.name(), row.argument(0), row.argument(1)), (&b"f"[..], Some(&b"x"[..]), None));
        }
        assert_eq!(signatures.table(Space::Struct).slot(0), None);
    }

    #[test]
    fn a_trial_leaves_no_trace() {
        let mut signatures = Signatures::default();
        signatures.define(Space::Enum, 1, b"\x00", false);
        signatures.begin_trial();
        signatures.define(Space::Enum, 9000, b"\x00", false);
        signatures.end_trial();
        assert_eq!(signatures.table(Space::Enum).slot(9000), None);
        assert!(signatures.table(Space::Enum).slot(1).is_some());
    }
}
