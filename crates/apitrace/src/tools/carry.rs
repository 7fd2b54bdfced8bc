//! Copies events unchanged except for the definitions they need and their new call numbers.

use std::collections::{HashMap, HashSet};

use anytrace_core::{Error, Target};

use crate::lanes::wire::{Detail, Value, Wire};
use crate::wire::container_writer::ContainerWriter;
use crate::wire::record::{SignatureRef, Space, Token};
use crate::wire::scan::push_uint;
use crate::wire::signatures::{Signature, Signatures};

/// A signature that an event names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reference {
    space: Space,
    id: u64,
    slot: u32,
    /// Where in the event's bytes the definition is, or would be.
    at: usize,
    /// Length of that definition; 0 if there is none.
    length: usize,
}

impl Reference {
    /// The reference in a token that is appended to an event of this many bytes.
    pub(crate) fn of(token: &Token<'_>, event_bytes: usize) -> Option<Self> {
        let (space, signature) = token.signature()?;
        let &SignatureRef { id, slot, id_end, definition, .. } = signature;
        Some(Self { space, id, slot, at: event_bytes + id_end, length: definition.map_or(0, <[u8]>::len) })
    }
}

/// The bytes of an event, or of a part of it, and the signatures named there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    pub(crate) references: Vec<Reference>,
}

impl Piece {
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.references.clear();
    }

    /// Adds a token.
    pub(crate) fn push(&mut self, token: &Token<'_>, bytes: &[u8]) {
        self.references.extend(Reference::of(token, self.bytes.len()));
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes a plain event: one whose signatures are all known, without definitions and backtraces.
    pub(crate) fn set_plain(&mut self, bytes: &[u8], has_thread: bool, signatures: &Signatures) {
        self.clear();
        self.bytes.extend_from_slice(bytes);
        find_references(bytes, has_thread, signatures, &mut self.references);
    }

    /// Its memory use.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.references.capacity() * size_of::<Reference>()
    }
}

/// Finds the signatures that a plain event of version 3 or later names.
fn find_references(bytes: &[u8], has_thread: bool, signatures: &Signatures, found: &mut Vec<Reference>) {
    let mut wire = Wire::new(bytes, true);
    let mut add = |space: Space, id: u64, wire: &Wire<'_>| {
        // A slot that does not exist has no row, so `provide` reports the definition as lost.
        let slot = signatures.table(space).slot(id).unwrap_or(u32::MAX);
        found.push(Reference { space, id, slot, at: bytes.len() - wire.rest().len(), length: 0 });
    };
    let is_enter = wire.byte() == 0;
    if is_enter && has_thread {
        wire.uint();
    }
    let id = wire.uint();
    if is_enter {
        add(Space::Function, id, &wire);
    }
    loop {
        // How many values follow: those of a detail and everything nested in them.
        let mut left = match wire.detail() {
            Detail::End => return,
            Detail::Argument(_) | Detail::Return => 1_u64,
            Detail::Backtrace(_) | Detail::Flags(_) | Detail::Thread(_) => 0,
        };
        while left > 0 && !wire.rest().is_empty() {
            left -= 1;
            // The reference needs the position right after the id, so examine the type before skipping the value.
            let mut ahead = wire;
            match ahead.byte() {
                9 => add(Space::Enum, ahead.uint(), &ahead),
                10 => add(Space::Bitmask, ahead.uint(), &ahead),
                12 => add(Space::Struct, ahead.uint(), &ahead),
                _ => {}
            }
            left = left.saturating_add(match wire.value() {
                Value::Array(count) => count,
                Value::Struct(id) => members(signatures, id),
                Value::Repr => 2,
                _ => 0,
            });
        }
    }
}

/// How many members a structure has.
pub(crate) fn members(signatures: &Signatures, id: u64) -> u64 {
    let slot = signatures.table(Space::Struct).slot(id);
    slot.and_then(|slot| signatures.get(Space::Struct, slot)).map_or(0, |row| row.count)
}

/// Counts of what happened to definitions.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Carried {
    /// Definitions written at another event than in the source.
    pub(crate) definitions: u64,
    /// Events omitted because a definition they need is lost.
    pub(crate) lost_events: u64,
}

/// Writes events and ensures that every signature is defined where it is first named.
pub(crate) struct Carrier<'a> {
    writer: ContainerWriter<&'a mut dyn Target>,
    /// Ids that were defined, with the slots of their definitions.
    written: [HashMap<u64, u32>; 5],
    /// The ids that the current piece defined, with their earlier meaning.
    fresh: Vec<(Space, u64, Option<u32>)>,
    /// Those of its references that need a definition.
    missing: HashSet<usize>,
    out: Vec<u8>,
    pub(crate) carried: Carried,
}

impl<'a> Carrier<'a> {
    pub(crate) fn new(writer: ContainerWriter<&'a mut dyn Target>) -> Self {
        Self {
            writer,
            written: Default::default(),
            fresh: Vec::new(),
            missing: HashSet::new(),
            out: Vec::new(),
            carried: Carried::default(),
        }
    }

    /// True when all signatures of the source were written: events can be copied without examining them.
    #[inline]
    pub(crate) fn has_all(&self, signatures: &Signatures) -> bool {
        let spaces = [Space::Function, Space::Struct, Space::Enum, Space::Bitmask, Space::Frame];
        // If an id was defined twice there are more rows than ids.
        spaces.into_iter().zip(&self.written).all(|(space, ids)| signatures.table(space).rows().len() == ids.len())
    }

    /// Writes bytes as they are.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.writer.write(bytes)
    }

    /// Writes a piece of an event. `number` is the call number that a leave gets in place of its own, which ends at the
    /// offset given. Returns false, and writes nothing, if a definition is lost.
    pub(crate) fn put(
        &mut self,
        piece: &Piece,
        number: Option<(usize, u64)>,
        signatures: &Signatures,
    ) -> Result<bool, Error> {
        self.fresh.clear();
        self.missing.clear();
        for (at, reference) in piece.references.iter().enumerate() {
            if !self.provide(at, reference, signatures) {
                self.carried.lost_events += 1;
                self.take_back();
                return Ok(false);
            }
        }
        // The usual case after the first frames: the event goes out as it came in.
        if number.is_none() && self.missing.is_empty() {
            self.writer.write(&piece.bytes)?;
            return Ok(true);
        }
        let mut from = 0;
        self.out.clear();
        if let Some((end, number)) = number {
            self.out.push(1);
            push_uint(&mut self.out, number);
            from = end;
        }
        for (at, reference) in piece.references.iter().enumerate() {
            if self.missing.contains(&at)
                && let Some(row) = signatures.get(reference.space, reference.slot)
            {
                self.out.extend_from_slice(piece.bytes.get(from..reference.at).unwrap_or_default());
                self.out.extend_from_slice(&row.definition);
                from = reference.at;
            }
        }
        self.carried.definitions += self.missing.len() as u64;
        self.out.extend_from_slice(piece.bytes.get(from..).unwrap_or_default());
        self.writer.write(&self.out)?;
        Ok(true)
    }

    /// Provides the definition of one reference. Returns false if it is lost.
    fn provide(&mut self, at: usize, reference: &Reference, signatures: &Signatures) -> bool {
        let &Reference { space, id, slot, length, .. } = reference;
        let Some(written) = self.written.get_mut(space as usize) else { return false };
        let before = written.get(&id).copied();
        if length == 0 && before == Some(slot) {
            return true;
        }
        let row = signatures.get(space, slot);
        if length == 0 {
            // A definition that was repeated word for word is the same one.
            let same = before.and_then(|before| signatures.get(space, before)).zip(row);
            if same.is_some_and(|(a, b)| a.is_at_hand() && b.is_at_hand() && a.definition == b.definition) {
                return true;
            }
            // There was no room for it in the table: the definition written before must suffice.
            if before.is_some() && row.is_none() {
                return true;
            }
            if !row.is_some_and(Signature::is_at_hand) {
                return false;
            }
            self.missing.insert(at);
        }
        // Noted at once, because a later reference of the same event needs the definition no more; `take_back` undoes
        // it.
        written.insert(id, slot);
        self.fresh.push((space, id, before));
        true
    }

    /// Undoes the definitions of the current piece.
    fn take_back(&mut self) {
        // Backward, since an event may define an id twice: the meaning before the first of them must come back.
        for (space, id, before) in self.fresh.drain(..).rev() {
            let Some(written) = self.written.get_mut(space as usize) else { continue };
            match before {
                Some(slot) => written.insert(id, slot),
                None => written.remove(&id),
            };
        }
    }

    /// Ends the container.
    pub(crate) fn finish(self, is_seekable: bool) -> Result<(), Error> {
        self.writer.finish(is_seekable).map(drop)
    }
}
