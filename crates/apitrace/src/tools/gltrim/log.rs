//! Records what each call does to the nodes, in the order of the calls, to be read backwards.
//!
//! A record takes about ten bytes. Beyond 16 MiB they are written to a temporary file in compressed blocks.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom, Write};

use anytrace_core::Error;
use tempfile::SpooledTempFile;

use crate::lanes::wire::Wire;
use crate::tools::gltrim::nodes::Node;
use crate::wire::scan::push_uint;

/// A block ends after this many bytes.
const BLOCK_BYTES: usize = 1 << 18;

/// This many bytes stay in memory.
const MEMORY_BYTES: usize = 16 << 20;

/// What a call does to a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Effect {
    /// Its outcome depends on the node.
    Read(Node),
    /// It changes the node, or a part of it.
    Write(Node),
    /// It overwrites the entire node.
    Kill(Node),
    /// It sets a range of a buffer's content: first byte and length.
    Range(Node, u64, u64),
    /// It changes some of these bytes.
    Touch(Node, u64, u64),
    /// It is between `glBegin` and `glEnd`.
    Inner,
    /// It ends what the call with this number began: each is meaningless without the other.
    Close(u64),
    /// It begins what another ends.
    Open,
    /// It stays, whatever it does.
    Always,
    /// It ends a primitive: the calls before it stay if it does.
    EndPrimitive,
    /// Separates effects in time: those of a display list's next command follow.
    Then,
    /// It shows a window: the node for having been shown, the colors shown, and whether it is the first time.
    Show(Node, Node, bool),
}

/// A call's effects.
#[derive(Debug, Default, Clone)]
pub(super) struct Record {
    pub(super) call: u64,
    pub(super) thread: u64,
    /// Slot of its function.
    pub(super) function: u32,
    pub(super) effects: Vec<Effect>,
    /// Number of the set of its block.
    pub(super) set: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    offset: u64,
    packed: usize,
    records: usize,
    sets: usize,
}

/// The written records.
pub(super) struct Log {
    file: SpooledTempFile,
    places: Vec<Place>,
    records: Vec<u8>,
    last: (u64, u64),
    sets: Vec<u8>,
    known: HashMap<Box<[Effect]>, u32>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self {
            file: SpooledTempFile::new(MEMORY_BYTES),
            places: Vec::new(),
            records: Vec::new(),
            last: (0, 0),
            sets: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Number of the block that is being written. Sets are known in their block only.
    #[inline]
    pub(super) fn block(&self) -> usize {
        self.places.len()
    }

    /// The number of a set of effects that many calls have in common.
    pub(super) fn set(&mut self, effects: &[Effect]) -> u32 {
        if let Some(known) = self.known.get(effects) {
            return *known;
        }
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        put_effects(&mut self.sets, effects, 0);
        self.known.insert(effects.into(), number);
        number
    }

    /// Writes a record.
    pub(super) fn add(&mut self, record: &Record) -> Result<(), Error> {
        let (call, thread) = self.last;
        let step = record.call.wrapping_sub(call) as i64;
        let step = (step.wrapping_shl(1) ^ (step >> 63)) as u64;
        let marks = u64::from(record.thread != thread) | u64::from(record.set.is_some()) << 1;
        push_uint(&mut self.records, step.wrapping_shl(2) | marks);
        if record.thread != thread {
            push_uint(&mut self.records, record.thread);
        }
        push_uint(&mut self.records, u64::from(record.function));
        if let Some(set) = record.set {
            push_uint(&mut self.records, u64::from(set));
        }
        put_effects(&mut self.records, &record.effects, record.call);
        self.last = (record.call, record.thread);
        if self.records.len() >= BLOCK_BYTES || self.sets.len() >= 2 * BLOCK_BYTES {
            self.finish()?;
        }
        Ok(())
    }

    /// Ends the block.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        let (records, sets) = (self.records.len(), self.sets.len());
        self.sets.append(&mut self.records);
        let packed = snap::raw::Encoder::new().compress_vec(&self.sets).map_err(|error| failed(error.into()))?;
        let offset = self.file.seek(SeekFrom::End(0)).map_err(failed)?;
        self.file.write_all(&packed).map_err(failed)?;
        self.places.push(Place { offset, packed: packed.len(), records, sets });
        self.sets.clear();
        self.known.clear();
        self.last = (0, 0);
        Ok(())
    }

    /// Reads a block into `to`.
    pub(super) fn read(&mut self, block: usize, to: &mut Block) -> Result<(), Error> {
        let Some(place) = self.places.get(block).copied() else { return Ok(()) };
        self.file.seek(SeekFrom::Start(place.offset)).map_err(failed)?;
        let mut packed = vec![0; place.packed];
        self.file.read_exact(&mut packed).map_err(failed)?;
        to.bytes = snap::raw::Decoder::new().decompress_vec(&packed).map_err(|error| failed(error.into()))?;
        to.index(place);
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("cannot store notes in a temporary file", error)
}

fn put_effects(out: &mut Vec<u8>, effects: &[Effect], call: u64) {
    push_uint(out, effects.len() as u64);
    for effect in effects {
        let (code, number, range) = match *effect {
            Effect::Read(node) => (0, u64::from(node), None),
            Effect::Write(node) => (1, u64::from(node), None),
            Effect::Kill(node) => (2, u64::from(node), None),
            Effect::Range(node, start, length) => (3, u64::from(node), Some((start, length))),
            Effect::Touch(node, start, length) => (4, u64::from(node), Some((start, length))),
            Effect::Close(open) => (5, call.saturating_sub(open), None),
            Effect::Inner => (6, 0, None),
            Effect::Open => (6, 1, None),
            Effect::Always => (6, 2, None),
            Effect::EndPrimitive => (6, 3, None),
            Effect::Then => (6, 4, None),
            Effect::Show(shown, colors, is_first) => {
                (7, u64::from(shown), Some((u64::from(colors), u64::from(is_first))))
            }
        };
        push_uint(out, number << 3 | code);
        if let Some((start, length)) = range {
            push_uint(out, start);
            push_uint(out, length);
        }
    }
}

fn take_effects(wire: &mut Wire<'_>, call: u64, effects: &mut Vec<Effect>) {
    effects.clear();
    for _ in 0..wire.uint() {
        let code = wire.uint();
        let number = code >> 3;
        let node = number as Node;
        effects.push(match code & 7 {
            0 => Effect::Read(node),
            1 => Effect::Write(node),
            2 => Effect::Kill(node),
            3 => Effect::Range(node, wire.uint(), wire.uint()),
            4 => Effect::Touch(node, wire.uint(), wire.uint()),
            5 => Effect::Close(call.saturating_sub(number)),
            7 => Effect::Show(node, wire.uint() as Node, wire.uint() != 0),
            _ => match number {
                0 => Effect::Inner,
                1 => Effect::Open,
                2 => Effect::Always,
                3 => Effect::EndPrimitive,
                _ => Effect::Then,
            },
        });
    }
}

/// Where a record's effects begin, and the fields before them.
#[derive(Debug, Clone, Copy)]
struct Head {
    offset: u32,
    call: u64,
    thread: u64,
    function: u32,
    set: Option<u32>,
}

/// A block that is read again.
#[derive(Debug, Default)]
pub(super) struct Block {
    bytes: Vec<u8>,
    heads: Vec<Head>,
    sets: Vec<u32>,
    scratch: Vec<Effect>,
}

impl Block {
    fn index(&mut self, place: Place) {
        self.heads.clear();
        self.sets.clear();
        let mut effects = std::mem::take(&mut self.scratch);
        let at = |wire: &Wire<'_>| (self.bytes.len() - wire.rest().len()) as u32;
        let mut wire = Wire::new(&self.bytes, true);
        while (at(&wire) as usize) < place.sets {
            self.sets.push(at(&wire));
            take_effects(&mut wire, 0, &mut effects);
        }
        debug_assert_eq!(wire.rest().len(), place.records);
        let (mut call, mut thread) = (0_u64, 0);
        while !wire.rest().is_empty() {
            let head = wire.uint();
            let step = head >> 2;
            call = call.wrapping_add((step >> 1) ^ (step & 1).wrapping_neg());
            if head & 1 != 0 {
                thread = wire.uint();
            }
            let function = wire.uint() as u32;
            let set = (head & 2 != 0).then(|| wire.uint() as u32);
            self.heads.push(Head { offset: at(&wire), call, thread, function, set });
            take_effects(&mut wire, call, &mut effects);
        }
        self.scratch = effects;
    }

    /// The number of records.
    pub(super) fn len(&self) -> usize {
        self.heads.len()
    }

    /// Reads a record.
    pub(super) fn record(&self, at: usize, to: &mut Record) {
        let Some(&Head { offset, call, thread, function, set }) = self.heads.get(at) else { return };
        (to.call, to.thread, to.function, to.set) = (call, thread, function, set);
        let mut wire = Wire::new(self.bytes.get(offset as usize..).unwrap_or_default(), true);
        take_effects(&mut wire, call, &mut to.effects);
    }

    /// Reads a set.
    pub(super) fn set(&self, set: u32, to: &mut Vec<Effect>) {
        let Some(offset) = self.sets.get(set as usize) else { return to.clear() };
        take_effects(&mut Wire::new(self.bytes.get(*offset as usize..).unwrap_or_default(), true), 0, to);
    }
}

impl Log {
    /// The number of blocks.
    pub(super) fn blocks(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_whatever_their_order() {
        let mut log = Log::new();
        let mut written = Vec::new();
        for n in 0..60_000_u64 {
            let set = (n % 3 == 0).then(|| log.set(&[Effect::Read((n % 7) as Node), Effect::Write(9)]));
            let effects = match n % 4 {
                0 => vec![Effect::Kill(n as Node), Effect::Range(3, n, 1 << 40), Effect::Always],
                1 => vec![Effect::Close(n / 2), Effect::Inner, Effect::Show(4, 5, n % 8 == 1), Effect::Open],
                2 => vec![Effect::Touch(1, 0, u64::MAX >> 1), Effect::EndPrimitive, Effect::Then],
                _ => vec![],
            };
            let record =
                Record { call: if n % 5 == 0 { n + 9 } else { n }, thread: n / 1000 % 3, function: 7, effects, set };
            log.add(&record).unwrap();
            written.push((record.call, record.thread, record.effects, record.set.map(|_| n % 7)));
        }
        log.finish().unwrap();
        assert!(log.blocks() > 1);
        let (mut block, mut record, mut set) = (Block::default(), Record::default(), Vec::new());
        for at in (0..log.blocks()).rev() {
            log.read(at, &mut block).unwrap();
            for n in (0..block.len()).rev() {
                block.record(n, &mut record);
                let (call, thread, effects, member) = written.pop().unwrap();
                assert_eq!((record.call, record.thread, &record.effects), (call, thread, &effects));
                assert_eq!(record.set.is_some(), member.is_some());
                if let (Some(number), Some(member)) = (record.set, member) {
                    block.set(number, &mut set);
                    assert_eq!(set, [Effect::Read(member as Node), Effect::Write(9)]);
                }
            }
        }
        assert!(written.is_empty());
    }
}
