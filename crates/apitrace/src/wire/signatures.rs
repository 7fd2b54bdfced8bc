//! The five signature tables that a reader builds from the definitions it reads.

use std::collections::HashMap;
use std::sync::Arc;

use anytrace_core::Limits;

use crate::wire::record::{Signed, Space, ends_frame};
use crate::wire::scan::Scan;

/// Ids below this are found by index; all real ids are (the highest seen is 2464).
const DENSE_IDS: usize = 4096;

/// Below this, and as long as at least one in this many is used, ids are found by index.
const DENSE_SHARE: usize = 4;
const DENSE_IDS_MAX: usize = 1 << 22;

/// Most signatures in all, for each key that the limits allow: 786,432 by default.
const SIGNATURES_PER_KEY: usize = 12;

/// Most memory for all signatures together, and the share of it up to which definitions are kept.
const TABLE_BYTES_MAX: usize = 42 << 20;
const DEFINITIONS_BYTES_MAX: usize = 24 << 20;

/// What the heap adds to a definition, and what an id that is not found by index takes.
const HEAP_BYTES: usize = 24;
const SPARSE_BYTES: usize = 36;

/// Names of arguments from one of which to the next the place in the definition is kept.
const NAMES_APART: usize = 64;

/// Where in a definition every [`NAMES_APART`]th name begins, the first of all left out.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Places(Vec<u32>);

impl Places {
    /// Those of a function or structure; `None` for the few names that nearly all have.
    fn of(definition: &[u8], count: u64) -> Option<Box<Self>> {
        if count <= NAMES_APART as u64 {
            return None;
        }
        let mut scan = Scan::new(definition);
        scan.string().ok()?;
        scan.uint().ok()?;
        let mut places = Vec::new();
        for index in 1..count {
            if scan.string().is_err() {
                break;
            }
            if index % NAMES_APART as u64 == 0 {
                places.push(u32::try_from(scan.at).ok()?);
            }
        }
        Some(Box::new(Self(places)))
    }
}

/// One signature.
#[derive(Debug, Clone)]
pub struct Signature {
    /// Its id.
    pub id: u64,
    /// The bytes after the id: names and values as stored. Empty if lost or not kept.
    pub definition: Box<[u8]>,
    /// Arguments of a function, members of a structure.
    pub count: u64,
    /// The definition was in a part of the stream that could not be read.
    pub is_lost: bool,
    /// The definition is not kept, because there are too many or none is needed. Names are not known.
    pub is_dropped: bool,
    /// A call of this function ends a frame.
    pub ends_frame: bool,
    /// Length and first letter of a name of up to five bytes, which look like a detail.
    pub(crate) short_name: Option<[u8; 2]>,
    /// For functions of very many arguments: each would be looked for from the first on.
    places: Option<Box<Places>>,
}

impl Signature {
    pub(crate) fn new(space: Space, id: u64, definition: &[u8], is_lost: bool, is_dropped: bool) -> Self {
        let (count, ends_frame) = match space {
            Space::Function | Space::Struct => {
                let mut scan = Scan::new(definition);
                let name = scan.string().unwrap_or_default();
                let ends = space == Space::Function && ends_frame(name);
                (scan.uint().unwrap_or(0), ends)
            }
            _ => (0, false),
        };
        let short_name = definition.first_chunk::<2>().copied().filter(|[length, _]| *length <= 5);
        let definition: Box<[u8]> = if is_dropped { Box::default() } else { definition.into() };
        let places = Places::of(&definition, count);
        Self { id, definition, count, is_lost, is_dropped, ends_frame, short_name, places }
    }

    /// Neither lost nor dropped.
    pub fn is_at_hand(&self) -> bool {
        !self.is_lost && !self.is_dropped
    }

    fn bytes(&self) -> usize {
        let definition = if self.definition.is_empty() { 0 } else { self.definition.len() + HEAP_BYTES };
        let places = self.places.as_ref().map_or(0, |places| places.0.len() * size_of::<u32>() + HEAP_BYTES);
        size_of::<Self>() + definition + places
    }

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

    /// Names and values of an enumeration, from version 3 on, in the order of the definition.
    pub fn values(&self) -> impl Iterator<Item = (&[u8], Signed)> {
        let mut scan = Scan::new(&self.definition);
        let count = scan.uint().unwrap_or(0);
        (0..count).map_while(move |_| Some((scan.string().ok()?, scan.signed().ok()?)))
    }

    /// Names and bits of a bit mask, in the order of the definition.
    pub fn flags(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let mut scan = Scan::new(&self.definition);
        let count = scan.uint().unwrap_or(0);
        (0..count).map_while(move |_| Some((scan.string().ok()?, scan.uint().ok()?)))
    }

    /// Name of one argument or member.
    pub fn argument(&self, index: u64) -> Option<&[u8]> {
        let mut scan = Scan::new(&self.definition);
        scan.string().ok()?;
        let count = scan.uint().ok()?;
        if index >= count {
            return None;
        }
        let (mut left, kept) = (index, index / NAMES_APART as u64);
        let place = self.places.as_ref().and_then(|places| places.0.get(usize::try_from(kept).ok()?.checked_sub(1)?));
        if let Some(place) = place {
            scan = Scan::new(self.definition.get(*place as usize..)?);
            left -= kept * NAMES_APART as u64;
        }
        for _ in 0..left {
            scan.string().ok()?;
        }
        scan.string().ok()
    }
}

/// The signatures of one space.
#[derive(Debug, Clone)]
pub(crate) struct Table {
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
    pub(crate) fn slot(&self, id: u64) -> Option<u32> {
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
    pub(crate) fn get(&self, slot: u32) -> Option<&Signature> {
        self.rows.get(slot as usize)
    }

    /// All signatures, in the order of their definitions.
    pub(crate) fn rows(&self) -> &[Signature] {
        &self.rows
    }

    /// Memory of the index.
    fn index_bytes(&self) -> usize {
        self.dense.len() * size_of::<u32>() + self.sparse.len() * SPARSE_BYTES
    }

    /// Extends the index to an id, if enough of the ids below it are used.
    fn widen(&mut self, id: u64) {
        let Ok(id) = usize::try_from(id) else { return };
        let wanted = (self.rows.len() * DENSE_SHARE).min(DENSE_IDS_MAX);
        if id < self.dense.len() || id >= wanted {
            return;
        }
        let mut dense = std::mem::take(&mut self.dense).into_vec();
        dense.resize((id + 1).next_power_of_two(), NONE);
        self.sparse.retain(|id, slot| {
            let place = usize::try_from(*id).ok().and_then(|id| dense.get_mut(id));
            let is_sparse = place.is_none();
            if let Some(place) = place {
                *place = *slot;
            }
            is_sparse
        });
        self.dense = dense.into_boxed_slice();
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

/// Distinguishes one table from another, copies included: slots mean something only together with it.
#[derive(Debug, Default)]
pub(crate) struct Identity(Arc<()>);

impl Identity {
    /// Another name for the same identity. As long as it exists, no other table gets this identity.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A copy is another table.
impl Clone for Identity {
    fn clone(&self) -> Self {
        Self::default()
    }
}

/// All signatures known so far.
#[derive(Debug, Clone)]
pub(crate) struct Signatures {
    pub(crate) identity: Identity,
    tables: [Table; 5],
    bytes: usize,
    signatures_max: usize,
    journal: Option<Vec<(Space, u64, u32)>>,
    /// Definitions may have been in a part that could not be read.
    pub(crate) may_be_lost: bool,
    /// Only functions keep their definitions.
    pub(crate) drops_definitions: bool,
    shortage: Shortage,
}

/// What there was no room for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Shortage {
    /// A signature.
    pub(crate) of_signatures: bool,
    /// Its definition only.
    pub(crate) of_definitions: bool,
}

impl Default for Signatures {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

impl Signatures {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            identity: Identity::default(),
            tables: std::array::from_fn(|_| Table::new()),
            bytes: 0,
            signatures_max: limits.distinct_max.saturating_mul(SIGNATURES_PER_KEY),
            journal: None,
            may_be_lost: false,
            drops_definitions: false,
            shortage: Shortage::default(),
        }
    }

    /// The table of one space.
    #[inline]
    pub(crate) fn table(&self, space: Space) -> &Table {
        &self.tables[space as usize]
    }

    /// The signature in a slot of one space.
    #[inline]
    pub(crate) fn get(&self, space: Space, slot: u32) -> Option<&Signature> {
        self.table(space).get(slot)
    }

    /// The function in a slot.
    #[inline]
    pub(crate) fn function(&self, slot: u32) -> Option<&Signature> {
        self.get(Space::Function, slot)
    }

    /// Adds a signature and returns its slot. A known id takes the new meaning.
    pub(crate) fn define(&mut self, space: Space, id: u64, definition: &[u8], is_lost: bool) -> u32 {
        let bytes = self.bytes + self.tables.iter().map(Table::index_bytes).sum::<usize>();
        let rows: usize = self.tables.iter().map(|table| table.rows.len()).sum();
        if rows >= self.signatures_max || bytes > TABLE_BYTES_MAX {
            self.shortage.of_signatures = true;
            return NONE;
        }
        let is_unwanted = self.drops_definitions && space != Space::Function;
        let is_short = !is_unwanted && bytes + definition.len() > DEFINITIONS_BYTES_MAX;
        self.shortage.of_definitions |= is_short;
        let is_dropped = !is_lost && (is_unwanted || is_short);
        let table = &mut self.tables[space as usize];
        let slot = u32::try_from(table.rows.len()).unwrap_or(NONE);
        let row = Signature::new(space, id, definition, is_lost, is_dropped);
        self.bytes += row.bytes();
        table.rows.push(row);
        table.widen(id);
        let before = table.slot(id).unwrap_or(NONE);
        table.point(id, slot);
        if let Some(journal) = &mut self.journal {
            journal.push((space, id, before));
        }
        slot
    }

    /// What there was no room for since the last call.
    pub(crate) fn take_shortage(&mut self) -> Shortage {
        std::mem::take(&mut self.shortage)
    }

    /// Keeps only the definitions of functions, also of signatures that are known already.
    pub(crate) fn drop_definitions(&mut self) {
        self.drops_definitions = true;
        for space in [Space::Struct, Space::Enum, Space::Bitmask, Space::Frame] {
            for row in &mut self.tables[space as usize].rows {
                self.bytes -= row.bytes();
                row.is_dropped = !row.is_lost;
                row.definition = Box::default();
                row.places = None;
                self.bytes += row.bytes();
            }
        }
    }

    /// Starts recording definitions, so that they can be undone.
    pub(crate) fn begin_trial(&mut self) {
        self.journal = Some(Vec::new());
    }

    /// Keeps all definitions since [`Self::begin_trial`].
    pub(crate) fn keep_trial(&mut self) {
        self.journal = None;
    }

    /// Undoes all definitions since [`Self::begin_trial`].
    pub(crate) fn end_trial(&mut self) {
        for (space, id, before) in self.journal.take().unwrap_or_default().into_iter().rev() {
            let table = &mut self.tables[space as usize];
            if let Some(row) = table.rows.pop() {
                self.bytes -= row.bytes();
            }
            table.point(id, before);
        }
        self.shortage = Shortage::default();
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
    fn each_of_many_names_is_found_near_a_place_that_is_kept() {
        for count in [1, 63, 64, 65, 128, 1000_u64] {
            let mut definition = vec![1, b'f', (count & 0x7f) as u8 | 0x80, (count >> 7) as u8];
            (0..count).for_each(|n| definition.extend([vec![(n % 9) as u8], vec![b'x'; (n % 9) as usize]].concat()));
            let mut signatures = Signatures::default();
            let slot = signatures.define(Space::Struct, 7, &definition, false);
            let row = signatures.get(Space::Struct, slot).unwrap();
            let found: Vec<_> = (0..count).map(|index| row.argument(index).unwrap()).collect();
            assert_eq!((row.count, found), (count, row.names()));
            assert_eq!(row.argument(count), None);
            let kept = row.places.as_ref().map_or(0, |places| places.0.len() as u64);
            assert_eq!(kept, (count - 1) / NAMES_APART as u64);
            // A definition that is cut short has the names before the cut.
            let short = signatures.define(Space::Struct, 8, &definition[..definition.len() / 2], false);
            assert_eq!(signatures.get(Space::Struct, short).unwrap().argument(count), None);
        }
    }

    #[test]
    fn ids_that_follow_one_another_are_found_by_index_and_others_all_the_same() {
        let mut signatures = Signatures::default();
        let ids: Vec<u64> = (0..3).map(|n| 9000 + n).chain((0..20_000).rev()).chain((1..9).map(|n| n << 40)).collect();
        for id in &ids {
            signatures.define(Space::Frame, *id, b"\x00", false);
        }
        let table = signatures.table(Space::Frame);
        assert!(table.sparse.len() < 4000, "{}", table.sparse.len());
        for (slot, id) in (0..).zip(&ids).filter(|(slot, _)| *slot > 2) {
            assert_eq!(table.slot(*id), Some(slot));
        }
    }

    #[test]
    fn definitions_are_dropped_before_signatures_are() {
        let mut signatures = Signatures::default();
        let definition = [b"\xf0\x07".as_slice(), &[b'x'; 1008]].concat();
        for id in 0..30_000 {
            signatures.define(Space::Function, id, &definition, false);
        }
        assert_eq!(signatures.take_shortage(), Shortage { of_signatures: false, of_definitions: true });
        let rows = signatures.table(Space::Function).rows();
        assert!(rows[20_000].is_at_hand() && !rows[29_999].is_at_hand() && !rows[29_999].is_lost);
        for id in 0..2_000_000 {
            signatures.define(Space::Frame, id, b"\x00", false);
        }
        assert!(signatures.take_shortage().of_signatures);
        assert!(signatures.table(Space::Frame).slot(200_000).is_some());
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
