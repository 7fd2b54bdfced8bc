//! Compact storage of moments in memory, for sources that must be sorted in full.

use std::collections::HashMap;

use anytrace_core::{Error, Place};

use crate::wire::moment::{Moment, MomentKind, Moments};

/// An entry has nothing in [`Store::more`].
const NOTHING: u32 = u32::MAX;

/// One moment without its parts of variable length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) tsc: u64,
    pub(crate) at: Place,
    pub(crate) buffer: u64,
    pub(crate) function: u32,
    pub(crate) thread: u32,
    pub(crate) process: u32,
    more: u32,
    name: u32,
    cpu: u16,
    kind: MomentKind,
}

/// Where an entry's arguments and payload are.
#[derive(Debug, Clone, Copy)]
struct More {
    words: usize,
    word_count: usize,
    bytes: usize,
    byte_count: usize,
}

/// Moments in the order in which they were added. Memory: 64 bytes for each, plus their arguments and payloads.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) entries: Vec<Entry>,
    more: Vec<More>,
    words: Vec<u64>,
    bytes: Vec<u8>,
    names: Vec<Vec<u8>>,
    name_numbers: HashMap<Vec<u8>, u32>,
}

impl Store {
    /// Adds a moment.
    pub(crate) fn push(&mut self, moment: &Moment<'_>) {
        // Most moments have neither: their entry alone suffices.
        let more = if moment.arguments.is_empty() && moment.data.is_empty() {
            NOTHING
        } else {
            let number = u32::try_from(self.more.len()).unwrap_or(NOTHING);
            self.more.push(More {
                words: self.words.len(),
                word_count: moment.arguments.len(),
                bytes: self.bytes.len(),
                byte_count: moment.data.len(),
            });
            self.words.extend_from_slice(moment.arguments);
            self.bytes.extend_from_slice(moment.data);
            number
        };
        let name = self.name_number(moment.name);
        self.entries.push(Entry {
            tsc: moment.tsc,
            at: moment.at,
            buffer: moment.buffer,
            function: moment.function,
            thread: moment.thread,
            process: moment.process,
            more,
            name,
            cpu: moment.cpu,
            kind: moment.kind,
        });
    }

    fn name_number(&mut self, name: &[u8]) -> u32 {
        if name.is_empty() {
            return NOTHING;
        }
        if let Some(&number) = self.name_numbers.get(name) {
            return number;
        }
        let number = u32::try_from(self.names.len()).unwrap_or(NOTHING);
        self.names.push(name.to_vec());
        self.name_numbers.insert(name.to_vec(), number);
        number
    }

    /// An entry as it was added.
    pub(crate) fn moment(&self, entry: &Entry) -> Moment<'_> {
        let more = self.more.get(entry.more as usize);
        let arguments = more.and_then(|more| self.words.get(more.words..more.words + more.word_count));
        let data = more.and_then(|more| self.bytes.get(more.bytes..more.bytes + more.byte_count));
        Moment {
            kind: entry.kind,
            function: entry.function,
            name: self.names.get(entry.name as usize).map_or(&[], Vec::as_slice),
            arguments: arguments.unwrap_or_default(),
            cpu: entry.cpu,
            thread: entry.thread,
            process: entry.process,
            tsc: entry.tsc,
            data: data.unwrap_or_default(),
            at: entry.at,
            buffer: entry.buffer,
        }
    }

    /// Removes all moments; keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.more.clear();
        self.words.clear();
        // Names stay: the next moments probably have the same ones.
        self.bytes.clear();
    }

    /// Emits all entries in their present order.
    pub(crate) fn emit<M: Moments>(&self, moments: &mut M) -> Result<(), Error> {
        self.entries.iter().try_for_each(|entry| moments.moment(&self.moment(entry)))
    }
}
