//! Replaces values in a trace and changes nothing else.
//!
//! It replaces what `apitrace sed` of apitrace 11.1 replaces: entire strings, the names that enumerations show, flags
//! of bit masks, and pointers, in arguments and return values, at any depth; of a value with a human and a machine side
//! only the human one. Definitions are not changed: an enumeration or bit mask gets another of its own values, so names
//! that it does not define cannot be used. Before version 3, where each value of an enumeration has its own definition,
//! it is replaced by a value that was defined before.
//!
//! Events without such a value are copied, and in the others only the bytes of the value differ.

use std::collections::HashMap;

use anytrace_core::{Error, Outcome, Sink, Target, text};

use crate::lanes::flags::FunctionFlags;
use crate::lanes::wire::{Detail, Value, Wire};
use crate::tools::callset::CallSet;
use crate::tools::carry::{Carrier, members};
use crate::tools::flow::{EventState, Flow, head_length};
use crate::tools::levels::Levels;
pub use crate::tools::replace::Replacement;
use crate::tools::replace::Values;
use crate::tools::waiting::Fate;
use crate::wire::container::Container;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::encode::encode_header;
use crate::wire::reader::Reader;
use crate::wire::record::{
    BytesKind, Event, EventKind, Header, Pairing, SignatureRef, Space, Token, VERSION_PROPERTIES, VERSION_THREADS,
};
use crate::wire::scan::{push_signed, push_string, push_uint};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Context, Visitor};

/// Options of [`sed`].
#[derive(Debug, Clone, Default)]
pub struct SedOptions {
    /// What to replace; each applies to the result of those before it.
    pub replacements: Vec<Replacement>,
    /// Properties to set, or to remove.
    pub properties: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Replace in calls of this set only.
    pub calls: CallSet,
    /// The container to write; `None`: that of the source.
    pub container: Option<Container>,
    /// Its level of compression; `None`: the container's usual one.
    pub level: Option<i32>,
}

/// Writes a trace with values replaced. Damage is reported to the sink.
///
/// # Errors
/// Invalid options, properties in a version that cannot have them, I/O, limits, and what the sink returns.
pub fn sed(
    mut reader: Reader,
    options: &SedOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let container = options.container.unwrap_or_else(|| reader.container());
    let writer = ContainerWriter::<&mut dyn Target>::new(out, container, options.level)?;
    let event_bytes_max = usize::try_from(reader.limits.record_bytes_max).unwrap_or(usize::MAX);
    let mut editor = Editor {
        options,
        values: Values::new(&options.replacements),
        has_threads: false,
        functions: FunctionFlags::default(),
        flow: Flow::new(Carrier::new(writer), event_bytes_max),
        is_edited: false,
        levels: Levels::default(),
        text: None,
        names: HashMap::new(),
        scratch: Vec::new(),
    };
    let totals = reader.read(&mut editor, sink)?;
    let is_seekable = match options.container {
        Some(container) => container == Container::ZstdSeekable,
        None => reader.stream.is_seekable(),
    };
    let mut notes = editor.values.notes();
    let (records_written, more) = editor.flow.waiting.close(&totals, is_seekable)?;
    notes.extend(more);
    Ok(Outcome { records_read: totals.events, records_written, bytes_lost: totals.lost_bytes, notes })
}

struct Editor<'a> {
    options: &'a SedOptions,
    values: Values<'a>,
    has_threads: bool,
    functions: FunctionFlags,
    flow: Flow<'a>,
    /// Values of the current event may be replaced.
    is_edited: bool,
    levels: Levels,
    /// The pieces of a long string, its head first, and where that ends.
    text: Option<(Vec<u8>, usize)>,
    /// Before version 3: ids and slots of names that may replace others.
    names: HashMap<Vec<u8>, (u64, u32)>,
    scratch: Vec<u8>,
}

impl Editor<'_> {
    /// True when values of an event may be replaced.
    fn is_selected(&self, event: &Event) -> bool {
        !self.values.is_empty()
            && event.pairing == Pairing::Paired
            && self.options.calls.has(event.call, self.functions.of(event.function))
    }

    fn begin(&mut self, event: &Event, head: usize) {
        let state = match event.kind {
            EventKind::Enter => EventState::Enter(Fate::Kept, self.functions.of(event.function)),
            EventKind::Leave => self.flow.leave_state(event, head, |_| true),
        };
        self.flow.begin(event, state);
        self.text = None;
    }

    /// Replaces values in a plain event, leaving it in the scratch buffer. Returns false if nothing was replaced.
    fn edit_plain(&mut self, bytes: &[u8], signatures: &Signatures) -> bool {
        let mut wire = Wire::new(bytes, true);
        let is_enter = wire.byte() == 0;
        if is_enter && self.has_threads {
            wire.uint();
        }
        wire.uint();
        self.scratch.clear();
        let mut from = 0;
        loop {
            match wire.detail() {
                Detail::End => break,
                Detail::Argument(_) | Detail::Return => self.levels.begin(),
                Detail::Backtrace(_) | Detail::Flags(_) | Detail::Thread(_) => continue,
            }
            loop {
                let start = bytes.len() - wire.rest().len();
                let value = wire.value();
                let end = bytes.len() - wire.rest().len();
                let old = bytes.get(start..end).unwrap_or_default();
                // Of a value with two sides only the human one is replaced, as by apitrace.
                if !self.levels.is_machine()
                    && let Some(new) = self.new_value(value, old, signatures)
                {
                    self.scratch.extend_from_slice(bytes.get(from..start).unwrap_or_default());
                    self.scratch.extend_from_slice(&new);
                    // What lies between two replaced values is copied unchanged with the next piece.
                    from = end;
                }
                let inner = match value {
                    Value::Array(count) => Some(count),
                    Value::Struct(id) => Some(members(signatures, id)),
                    Value::Repr => None,
                    _ => Some(0),
                };
                if self.levels.value(inner) || wire.rest().is_empty() {
                    break;
                }
            }
        }
        if from > 0 {
            self.scratch.extend_from_slice(bytes.get(from..).unwrap_or_default());
        }
        from > 0
    }

    /// The replacement bytes of a complete value, in version 3 or later.
    fn new_value(&mut self, value: Value<'_>, old: &[u8], signatures: &Signatures) -> Option<Vec<u8>> {
        let row = |space, id| {
            let slot = signatures.table(space).slot(id)?;
            signatures.get(space, slot).filter(|row| row.is_at_hand()).map(|row| (slot, row))
        };
        // The type and the id stay as they are.
        let head = || {
            let numbers = old.iter().skip(1).take_while(|byte| **byte >= 0x80).count();
            old.get(..numbers + 2).unwrap_or_default().to_vec()
        };
        match value {
            Value::Text(text) => self.values.text(text).map(text_value),
            Value::Pointer(pointer) => self.values.pointer(pointer).map(pointer_value),
            Value::Enum(id, Some(value)) => {
                let (slot, row) = row(Space::Enum, id)?;
                let new = self.values.enumeration(slot, &row.definition, value)?;
                let mut bytes = head();
                push_signed(&mut bytes, new);
                Some(bytes)
            }
            Value::Bitmask(id, value) => {
                let (slot, row) = row(Space::Bitmask, id)?;
                let new = self.values.bitmask(slot, &row.definition, value)?;
                let mut bytes = head();
                push_uint(&mut bytes, new);
                Some(bytes)
            }
            _ => None,
        }
    }

    /// The replacement bytes of a token, if they change.
    fn new_token(&mut self, token: &Token<'_>, context: &Context<'_>) -> Option<Vec<u8>> {
        let head = |signature: &SignatureRef<'_>| {
            let end = signature.id_end + signature.definition.map_or(0, <[u8]>::len);
            context.bytes.get(..end).unwrap_or_default().to_vec()
        };
        let row = |space, slot| context.signatures.get(space, slot).filter(|row| row.is_at_hand());
        match token {
            Token::Bytes(BytesKind::Text, text) => self.values.text(text).map(text_value),
            Token::Pointer(pointer) => self.values.pointer(*pointer).map(pointer_value),
            Token::Enum(signature, Some(value)) => {
                let row = row(Space::Enum, signature.slot)?;
                let new = self.values.enumeration(signature.slot, &row.definition, *value)?;
                let mut bytes = head(signature);
                push_signed(&mut bytes, new);
                Some(bytes)
            }
            Token::Bitmask(signature, value) => {
                let row = row(Space::Bitmask, signature.slot)?;
                let new = self.values.bitmask(signature.slot, &row.definition, *value)?;
                let mut bytes = head(signature);
                push_uint(&mut bytes, new);
                Some(bytes)
            }
            _ => None,
        }
    }

    /// The replacement of an enumeration, before version 3.
    fn new_enum(&mut self, signature: &SignatureRef<'_>, context: &Context<'_>) -> Option<(u64, u32)> {
        let row = context.signatures.get(Space::Enum, signature.slot).filter(|row| row.is_at_hand())?;
        let names = &self.names;
        let new = self.values.name(row.name(), |name| names.contains_key(name))?;
        self.names.get(new).copied()
    }

    /// Remembers an enumeration before version 3 whose name may replace another.
    fn learn_enum(&mut self, signature: &SignatureRef<'_>, signatures: &Signatures) {
        let Some(row) = signatures.get(Space::Enum, signature.slot).filter(|row| row.is_at_hand()) else { return };
        if self.values.may_become(row.name()) {
            self.names.insert(row.name().to_vec(), (signature.id, signature.slot));
        }
    }

    fn push(&mut self, token: &Token<'_>, bytes: &[u8], context: &Context<'_>) -> Result<(), Error> {
        self.flow.push((token, bytes), context.event, context.signatures, |_| true)
    }

    /// Adds a token of a value, or its replacement.
    fn value(&mut self, token: &Token<'_>, context: &Context<'_>) -> Result<(), Error> {
        let is_free = !self.levels.is_machine();
        if let Token::Enum(signature, None) = token
            && is_free
            && let Some((id, slot)) = self.new_enum(signature, context)
        {
            let mut bytes = vec![9];
            push_uint(&mut bytes, id);
            let other = SignatureRef { id, slot, id_end: bytes.len(), definition: None, origin: signature.origin };
            return self.push(&Token::Enum(other, None), &bytes, context);
        }
        match token {
            // Long strings come in pieces: those that may match are assembled first.
            Token::BytesStart(BytesKind::Text, length) if is_free && self.values.has_text_of(*length) => {
                self.text = Some((context.bytes.to_vec(), context.bytes.len()));
                return Ok(());
            }
            Token::BytesPiece(piece) if self.text.is_some() => {
                if let Some((text, _)) = &mut self.text {
                    text.extend_from_slice(piece);
                }
                return Ok(());
            }
            Token::BytesEnd(_) if self.text.is_some() => {
                let (text, head) = self.text.take().unwrap_or_default();
                let new = self.values.text(text.get(head..).unwrap_or_default()).map(text_value);
                let bytes = new.as_ref().unwrap_or(&text);
                return self.push(token, bytes, context);
            }
            _ => {}
        }
        let new = if is_free { self.new_token(token, context) } else { None };
        match new {
            Some(bytes) => self.push(token, &bytes, context),
            None => self.push(token, context.bytes, context),
        }
    }
}

fn text_value(text: &[u8]) -> Vec<u8> {
    let mut bytes = vec![7];
    push_string(&mut bytes, text);
    bytes
}

fn pointer_value(pointer: u64) -> Vec<u8> {
    let mut bytes = vec![13];
    push_uint(&mut bytes, pointer);
    bytes
}

/// The header with other properties.
fn edit_header(header: &Header, properties: &[(Vec<u8>, Option<Vec<u8>>)]) -> Result<Vec<u8>, Error> {
    let mut new = header.clone();
    for (name, value) in properties {
        // Of equal names the last one applies.
        let last = new.properties.iter().rposition(|(known, _)| known == name);
        match (value, last.and_then(|at| new.properties.get_mut(at))) {
            (Some(value), Some(place)) => place.1.clone_from(value),
            (Some(value), None) => new.properties.push((name.clone(), value.clone())),
            (None, _) => new.properties.retain(|(known, _)| known != name),
        }
    }
    if new.properties == header.properties {
        return Ok(header.raw.clone());
    }
    if header.version < VERSION_THREADS {
        let first = properties.first().map_or_else(String::new, |(name, _)| text::escaped(name));
        return Err(Error::unsupported(format!(
            "version {} has no properties, so {first} cannot be set; convert the trace to version 6 first",
            header.version
        )));
    }
    // From version 4 on, events are encoded as in version 6.
    new.version = new.version.max(VERSION_PROPERTIES);
    Ok(encode_header(&new))
}

impl Visitor for Editor<'_> {
    fn takes_plain(&self) -> bool {
        true
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.has_threads = header.version >= VERSION_THREADS;
        self.flow.waiting.raw(&edit_header(header, &self.options.properties)?)
    }

    fn plain_event(
        &mut self,
        event: &Event,
        bytes: &[u8],
        signatures: &Signatures,
        _: &mut dyn Sink,
    ) -> Result<u64, Error> {
        self.begin(event, head_length(bytes));
        if self.is_selected(event) && self.edit_plain(bytes, signatures) {
            self.flow.set_plain(&self.scratch, self.has_threads, signatures);
        } else {
            self.flow.set_plain(bytes, self.has_threads, signatures);
        }
        self.flow.end(event, signatures, |_| true)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        match token {
            Token::Enter { .. } | Token::Leave { .. } => {
                self.begin(context.event, context.bytes.len());
                self.is_edited = context.event.kind == EventKind::Leave && self.is_selected(context.event);
            }
            Token::Function(signature) => {
                self.functions.learn(signature.slot, context.signatures);
                self.is_edited = self.is_selected(context.event);
            }
            Token::Argument(_) | Token::Return | Token::Backtrace(_) => self.levels.begin(),
            Token::Enum(signature, None) => self.learn_enum(signature, context.signatures),
            _ => {}
        }
        if self.flow.state == EventState::Dropped {
            return Ok(());
        }
        if !self.is_edited {
            return self.push(token, context.bytes, context);
        }
        self.value(token, context)?;
        self.levels.token(token);
        Ok(())
    }

    fn end(&mut self, event: &Event, signatures: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.flow.end(event, signatures, |_| true)
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        let Some(event) = event else { return Ok(()) };
        let text = self.text.take().map(|(text, _)| text);
        self.flow.abandon(event, text.as_deref().unwrap_or_default())
    }
}
