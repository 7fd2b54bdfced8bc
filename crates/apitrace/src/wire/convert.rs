//! Converts between versions of the raw stream.

use std::collections::{HashMap, HashSet};

use anytrace_core::{Error, text};

use crate::wire::encode::encode_header;
use crate::wire::names::EnumNames;
use crate::wire::record::{
    Header, SignatureRef, Signed, Space, Token, VERSION_BACKTRACES, VERSION_ENUM_SETS, VERSION_PROPERTIES,
    VERSION_THREADS,
};
use crate::wire::scan::{Scan, push_signed, push_string, push_uint};
use crate::wire::visitor::Context;

/// Invented ids for enumeration values start here, above all ids of real traces and low enough for readers that keep a
/// table by id.
const MADE_UP_IDS: u64 = 100_000;

/// Most enumeration values that get ids of their own.
const MADE_UP_MAX: usize = 1 << 18;

/// Converts tokens from the source's version to the target's.
pub(crate) struct Converter {
    from: u64,
    to: u64,
    semantic: (u64, u64),
    /// Where in the event's bytes the thread number is, for a detail that specifies it later.
    thread_at: Option<usize>,
    /// For the old form: the id of each value of an enumeration.
    ids: HashMap<(u32, i128), u64>,
    taken: HashSet<u64>,
    next_id: u64,
    moved_threads: u64,
    dropped_names: bool,
    names: EnumNames,
}

impl Converter {
    pub(crate) fn new(header: &Header, to: u64) -> Result<Self, Error> {
        if to < VERSION_PROPERTIES && !header.properties.is_empty() {
            return Err(Error::unsupported(format!(
                "version {to} has no properties, but the trace has {}, the first {}",
                header.properties.len(),
                header.properties.first().map_or_else(String::new, |(name, _)| text::escaped(name)),
            )));
        }
        let semantic = if to >= VERSION_PROPERTIES { header.semantic_version } else { to };
        Ok(Self {
            from: header.version,
            to,
            semantic: (header.semantic_version, semantic),
            thread_at: None,
            ids: HashMap::new(),
            taken: HashSet::new(),
            next_id: MADE_UP_IDS,
            moved_threads: 0,
            dropped_names: false,
            names: EnumNames::default(),
        })
    }

    pub(crate) fn header(&self, source: &Header) -> Header {
        let mut header = Header {
            version: self.to,
            semantic_version: self.semantic.1,
            properties: source.properties.clone(),
            raw: Vec::new(),
        };
        header.raw = encode_header(&header);
        header
    }

    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.semantic.0 != self.semantic.1 {
            let (was, is) = self.semantic;
            notes.push(format!(
                "The semantic version was {was}; version {} has no separate one, so it is now {is}.",
                self.to
            ));
        }
        if self.moved_threads > 0 {
            notes.push(format!("{} thread details became thread numbers.", self.moved_threads));
        }
        if self.dropped_names {
            notes
                .push("Enumerations keep only the names of the values that occur, as in version 2 and earlier.".into());
        }
        notes
    }

    /// Writes a token whose encoding differs between the versions. Returns false if it does not differ.
    pub(crate) fn put(
        &mut self,
        token: &Token<'_>,
        context: &Context<'_>,
        out: &mut Vec<u8>,
        written: &mut [HashSet<u64>; 5],
        fresh: &mut Vec<(Space, u64)>,
    ) -> Result<bool, Error> {
        match token {
            Token::Enter { thread } => return self.enter(*thread, context, out),
            Token::Thread(thread) if self.to >= VERSION_THREADS => {
                // Once the start of an event has been written, the number cannot be changed.
                if let Some(at) = self.thread_at.take().filter(|at| out.get(*at) == Some(&0)) {
                    let mut number = Vec::new();
                    push_uint(&mut number, *thread);
                    out.splice(at..=at, number);
                    self.moved_threads += 1;
                }
                return Ok(true);
            }
            Token::Backtrace(_) => self.refuse(VERSION_BACKTRACES, "a backtrace", context)?,
            Token::Flags(flags) => self.refuse(VERSION_PROPERTIES, &format!("call flags ({flags})"), context)?,
            Token::Wide(..) => self.refuse(VERSION_PROPERTIES, "a wide string", context)?,
            Token::Enum(signature, value) => {
                let is_old = self.from < VERSION_ENUM_SETS;
                if is_old == (self.to < VERSION_ENUM_SETS) {
                    return Ok(false);
                }
                let Some(row) = context.signatures.get(Space::Enum, signature.slot).filter(|row| !row.is_lost) else {
                    return Ok(false);
                };
                if row.is_dropped {
                    return Err(Error::limit(format!(
                        "event {}: there are too many definitions to convert enumeration {}",
                        context.event.seq, signature.id
                    )));
                }
                let mut define = |id: u64| {
                    let is_new = written[Space::Enum as usize].insert(id);
                    if is_new {
                        fresh.push((Space::Enum, id));
                    }
                    is_new
                };
                if is_old {
                    new_form(signature.id, &row.definition, out, &mut define);
                } else {
                    self.old_form(signature, *value, &row.definition, context, out, &mut define)?;
                }
                return Ok(true);
            }
            _ => {}
        }
        Ok(false)
    }

    fn enter(&mut self, thread: Option<u64>, context: &Context<'_>, out: &mut Vec<u8>) -> Result<bool, Error> {
        match (thread, self.to >= VERSION_THREADS) {
            (Some(0), false) => out.push(0),
            (Some(thread), false) => {
                return Err(self.cannot(&format!("thread number {thread}"), context));
            }
            (None, true) => {
                out.push(0);
                self.thread_at = Some(out.len());
                out.push(0);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Refuses what the target's version lacks, unless the source's version lacks it too and contains it nevertheless.
    fn refuse(&self, since: u64, what: &str, context: &Context<'_>) -> Result<(), Error> {
        if self.to < since && self.from >= since { Err(self.cannot(what, context)) } else { Ok(()) }
    }

    fn cannot(&self, what: &str, context: &Context<'_>) -> Error {
        Error::unsupported(format!(
            "event {} (call {}) has {what}, which version {} cannot hold",
            context.event.seq, context.event.call, self.to
        ))
    }

    /// An enumeration before version 3: the id denotes one value.
    fn old_form(
        &mut self,
        signature: &SignatureRef<'_>,
        value: Option<Signed>,
        definition: &[u8],
        context: &Context<'_>,
        out: &mut Vec<u8>,
        define: &mut dyn FnMut(u64) -> bool,
    ) -> Result<(), Error> {
        let number = value.map_or(0, Signed::value);
        let Some(name) = self.names.name(signature.slot, definition, value) else {
            return Err(self.cannot(&format!("the enumeration value {number}, which has no name"), context));
        };
        let count = Scan::new(definition).uint().unwrap_or(0);
        self.dropped_names |= count > 1;
        let id = match self.ids.get(&(signature.slot, number)) {
            Some(id) => *id,
            None => {
                if self.ids.len() >= MADE_UP_MAX {
                    return Err(Error::limit(format!("more than {MADE_UP_MAX} enumeration values")));
                }
                let id = self.free_id(if count == 1 { Some(signature.id) } else { None });
                self.ids.insert((signature.slot, number), id);
                id
            }
        };
        out.push(9);
        push_uint(out, id);
        if define(id) {
            push_string(out, name);
            if let Some(value) = value {
                push_signed(out, value);
            }
        }
        Ok(())
    }

    fn free_id(&mut self, wanted: Option<u64>) -> u64 {
        if let Some(id) = wanted.filter(|id| !self.taken.contains(id)) {
            self.taken.insert(id);
            return id;
        }
        while !self.taken.insert(self.next_id) {
            self.next_id += 1;
        }
        self.next_id
    }
}

/// An enumeration from version 3 on: the signature lists its one value, and the value follows.
fn new_form(id: u64, definition: &[u8], out: &mut Vec<u8>, define: &mut dyn FnMut(u64) -> bool) {
    let mut scan = Scan::new(definition);
    let (Ok(name), Ok(value)) = (scan.string(), scan.signed()) else { return };
    out.push(9);
    push_uint(out, id);
    if define(id) {
        push_uint(out, 1);
        push_string(out, name);
        push_signed(out, value);
    }
    push_signed(out, value);
}
