//! Compact moments that are formatted later, possibly by another thread.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use anytrace_core::span::Symbols;
use anytrace_core::text::push_dec;

/// Entries in a batch: their text takes about half a megabyte.
pub(super) const BATCH_ENTRIES: usize = 4096;

/// A batch is also full when it has this many bytes of payload.
const BATCH_DATA_BYTES: usize = 256 * 1024;

/// Most names, and bytes of them, in the tables; others are carried by their entry.
const NAMES_MAX: usize = 1 << 17;
const NAME_BYTES_MAX: usize = 16 << 20;

/// Most threads in the tables; others are carried by their entry.
const OWNERS_MAX: usize = 1 << 17;

/// Function ids below this are looked up in a plain table.
const DENSE_IDS: u32 = 1 << 16;

/// Not an entry of a table.
pub(super) const NONE: u32 = u32::MAX;

/// A thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) process: u32,
    pub(super) thread: u32,
}

/// A function: its id and its name in the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) function: u32,
    pub(super) text: Box<[u8]>,
}

/// One thing to print. The formatter defines its meaning.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) tsc: u64,
    /// Number of its [`Name`]; [`NONE`] if it is in its extra.
    pub(super) name: u32,
    /// Number of its [`Owner`]; [`NONE`] if it is in its extra.
    pub(super) owner: u32,
    /// Number of its stack frame; [`NONE`] for none.
    pub(super) frame: u32,
    /// Number of its [`Extra`]; [`NONE`] if it has none.
    pub(super) extra: u32,
    pub(super) event_type: u16,
    pub(super) cpu: u16,
    /// Kind, by the formatter's own numbers.
    pub(super) kind: u8,
}

/// Data that few entries have; ranges are of the batch's own storage.
#[derive(Debug, Clone)]
struct Extra {
    arguments: Range<usize>,
    data: Range<usize>,
    name: Option<Name>,
    owner: Option<Owner>,
}

/// Entries, and the data that belong to them.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) entries: Vec<Entry>,
    extras: Vec<Extra>,
    arguments: Vec<u64>,
    data: Vec<u8>,
    /// Sizes of the tables when the batch was closed.
    names: usize,
    owners: usize,
    /// The time of the first entry of the trace.
    pub(super) origin: u64,
    /// Nothing was printed before this batch.
    pub(super) is_first: bool,
}

impl Batch {
    /// The first batch of a trace.
    pub(super) fn first() -> Self {
        Self { is_first: true, ..Self::default() }
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= BATCH_ENTRIES
            || self.data.len() >= BATCH_DATA_BYTES
            || self.arguments.len() * 8 >= BATCH_DATA_BYTES
    }

    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.extras.clear();
        self.arguments.clear();
        self.data.clear();
    }

    /// Arguments and payload of an entry.
    #[inline]
    pub(super) fn payload(&self, entry: &Entry) -> (&[u64], &[u8]) {
        let Some(extra) = self.extra(entry) else { return (&[], &[]) };
        let arguments = self.arguments.get(extra.arguments.clone()).unwrap_or_default();
        (arguments, self.data.get(extra.data.clone()).unwrap_or_default())
    }

    /// The name carried by an entry.
    pub(super) fn name(&self, entry: &Entry) -> Option<&Name> {
        self.extra(entry)?.name.as_ref()
    }

    /// The thread carried by an entry.
    pub(super) fn owner(&self, entry: &Entry) -> Option<Owner> {
        self.extra(entry)?.owner
    }

    fn extra(&self, entry: &Entry) -> Option<&Extra> {
        if entry.extra == NONE { None } else { self.extras.get(entry.extra as usize) }
    }
}

/// A name and a thread: numbers in the tables or, if those are full, the values themselves.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) name: u32,
    pub(super) owner: u32,
    /// Boxed because it is rarely present: as a direct part of this struct it would be copied for each moment.
    carried: Option<Box<Carried>>,
}

/// Values that are not in the tables.
#[derive(Debug, Clone, Default)]
struct Carried {
    name: Option<Name>,
    owner: Option<Owner>,
}

/// The tables that formatters read: entries are added at the end and never change.
#[derive(Debug, Default)]
pub(super) struct Shared {
    names: Mutex<Vec<Name>>,
    owners: Mutex<Vec<Owner>>,
}

impl Shared {
    /// Calls `take` with each name of the batch's tables from number `known` on.
    pub(super) fn names_from(&self, known: usize, batch: &Batch, mut take: impl FnMut(&Name)) {
        if known < batch.names {
            let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
            names.get(known..batch.names).unwrap_or_default().iter().for_each(&mut take);
        }
    }

    /// As [`Self::names_from`], for threads.
    pub(super) fn owners_from(&self, known: usize, batch: &Batch, mut take: impl FnMut(Owner)) {
        if known < batch.owners {
            let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            owners.get(known..batch.owners).unwrap_or_default().iter().for_each(|owner| take(*owner));
        }
    }
}

/// The names of functions in the output.
#[derive(Clone, Copy)]
pub(super) struct Naming<'a> {
    /// Names by id; a function without one is named `#id`. Without symbols the name is the id.
    pub(super) symbols: Option<&'a dyn Symbols>,
    /// Names from the trace itself (YAML) are not used.
    pub(super) ids_only: bool,
}

impl Naming<'_> {
    pub(super) fn name(&self, function: u32, own: &[u8]) -> Name {
        let mut text = Vec::new();
        let symbol = self.symbols.and_then(|symbols| symbols.symbol(u64::from(function)));
        match symbol {
            Some((symbol, _)) => text.extend_from_slice(symbol.as_bytes()),
            None if !own.is_empty() && !self.ids_only => text.extend_from_slice(own),
            None => {
                if self.symbols.is_some() {
                    text.push(b'#');
                }
                push_dec(&mut text, function.cast_signed());
            }
        }
        Name { function, text: text.into() }
    }
}

/// Looks up the numbers of names and threads, and assigns new ones.
pub(super) struct Interner<'a> {
    naming: Naming<'a>,
    shared: &'a Shared,
    /// By id, for small ids without a name in the trace.
    dense: Vec<u32>,
    others: HashMap<Vec<u8>, u32>,
    key: Vec<u8>,
    names: u32,
    name_bytes: usize,
    /// The last owner with each hash.
    recent: Box<[(Owner, u32)]>,
    owners: HashMap<Owner, u32>,
}

/// Threads cached in front of the table.
const RECENT: usize = 256;

impl<'a> Interner<'a> {
    pub(super) fn new(naming: Naming<'a>, shared: &'a Shared) -> Self {
        let nobody = (Owner { process: 0, thread: 0 }, NONE);
        Self {
            naming,
            shared,
            dense: Vec::new(),
            others: HashMap::new(),
            key: Vec::new(),
            names: 0,
            name_bytes: 0,
            recent: vec![nobody; RECENT].into(),
            owners: HashMap::new(),
        }
    }

    /// Name and thread of a moment; `function` and `own` are shown in the output.
    #[inline(always)]
    pub(super) fn know(&mut self, function: u32, own: &[u8], owner: Owner) -> Known {
        let slot = (owner.thread ^ owner.process.rotate_left(4)) as usize % RECENT;
        match (self.dense.get(function as usize), self.recent.get(slot)) {
            (Some(&name), Some(&(known, number)))
                if own.is_empty() && known == owner && name != NONE && number != NONE =>
            {
                Known { name, owner: number, carried: None }
            }
            _ => self.look_up(function, own, owner, slot),
        }
    }

    #[cold]
    fn look_up(&mut self, function: u32, own: &[u8], owner: Owner, slot: usize) -> Known {
        let (name, carried_name) = self.name(function, own);
        let (owner, carried_owner) = self.owner(owner, slot);
        let carried =
            (name == NONE || owner == NONE).then(|| Box::new(Carried { name: carried_name, owner: carried_owner }));
        Known { name, owner, carried }
    }

    #[cold]
    fn name(&mut self, function: u32, own: &[u8]) -> (u32, Option<Name>) {
        let own = if self.naming.ids_only { &[] } else { own };
        self.key.clear();
        self.key.extend_from_slice(&function.to_le_bytes());
        self.key.extend_from_slice(own);
        if let Some(&number) = self.others.get(&self.key) {
            return (number, None);
        }
        let name = self.naming.name(function, own);
        self.name_bytes += name.text.len() + self.key.len();
        if self.others.len() >= NAMES_MAX || self.name_bytes > NAME_BYTES_MAX {
            return (NONE, Some(name));
        }
        let number = self.names;
        self.names += 1;
        self.others.insert(self.key.clone(), number);
        if own.is_empty() && function < DENSE_IDS {
            if self.dense.len() <= function as usize {
                self.dense.resize(function as usize + 1, NONE);
            }
            if let Some(slot) = self.dense.get_mut(function as usize) {
                *slot = number;
            }
        }
        self.shared.names.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        (number, None)
    }

    #[cold]
    fn owner(&mut self, owner: Owner, slot: usize) -> (u32, Option<Owner>) {
        let number = match self.owners.get(&owner) {
            Some(&number) => number,
            None if self.owners.len() >= OWNERS_MAX => return (NONE, Some(owner)),
            None => {
                let number = u32::try_from(self.owners.len()).unwrap_or(NONE);
                self.owners.insert(owner, number);
                self.shared.owners.lock().unwrap_or_else(PoisonError::into_inner).push(owner);
                number
            }
        };
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = (owner, number);
        }
        (number, None)
    }

    /// Another function, whose name may have a known number, in the same thread.
    pub(super) fn of_function(&self, function: u32, name: u32, known: &Known) -> Known {
        let owner = known.carried.as_ref().and_then(|carried| carried.owner);
        let carried_name = (name == NONE).then(|| self.naming.name(function, &[]));
        let carried =
            (carried_name.is_some() || owner.is_some()).then(|| Box::new(Carried { name: carried_name, owner }));
        Known { name, owner: known.owner, carried }
    }

    /// All names that have numbers.
    pub(super) fn all_names(&self) -> Vec<Name> {
        self.shared.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records in a batch the table sizes that it needs.
    pub(super) fn close(&self, batch: &mut Batch) {
        (batch.names, batch.owners) = (self.names as usize, self.owners.len());
    }
}

/// Adds an entry to a batch.
#[inline]
pub(super) fn push(batch: &mut Batch, entry: Entry, known: &Known, arguments: &[u64], data: &[u8]) {
    let mut entry = entry;
    (entry.name, entry.owner, entry.extra) = (known.name, known.owner, NONE);
    let is_plain = known.name != NONE && known.owner != NONE;
    if !is_plain || !arguments.is_empty() || !data.is_empty() {
        entry.extra = extra(batch, known, arguments, data);
    }
    batch.entries.push(entry);
}

#[cold]
fn extra(batch: &mut Batch, known: &Known, arguments: &[u64], data: &[u8]) -> u32 {
    let (arguments_start, data_start) = (batch.arguments.len(), batch.data.len());
    let Carried { name, owner } = known.carried.as_deref().cloned().unwrap_or_default();
    batch.arguments.extend_from_slice(arguments);
    batch.data.extend_from_slice(data);
    batch.extras.push(Extra {
        arguments: arguments_start..batch.arguments.len(),
        data: data_start..batch.data.len(),
        name,
        owner,
    });
    u32::try_from(batch.extras.len() - 1).unwrap_or(NONE)
}
