//! Writes events to a trace of any version and container.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::mem;

use anytrace_core::{Error, Limits};

use crate::wire::calls::{Call, Calls};
use crate::wire::container::{Container, parse_header};
use crate::wire::container_writer::ContainerWriter;
use crate::wire::convert::Converter;
use crate::wire::encode::encode_header;
use crate::wire::layout::Layout;
use crate::wire::parse::Record;
use crate::wire::record::{
    Event, EventKind, Header, Pairing, SignatureRef, Space, Token, VERSION_MAX, VERSION_PROPERTIES,
};
use crate::wire::scan::push_uint;
use crate::wire::signatures::Identity;
use crate::wire::visitor::Context;

/// No slot.
const NONE: u32 = u32::MAX;

/// Writes a trace.
///
/// An event keeps its bytes, except that
/// - the definition of a signature is added where the output lacks it, and omitted where the output has it already;
/// - calls are numbered in the order of their enters: if events are left out, leaves get the numbers of their enters;
/// - an event of another version is converted.
///
/// ```
/// use anytrace_apitrace::{Reader, Writer};
/// use anytrace_core::{Input, OpenOptions, Step};
///
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00".to_vec();
/// let mut reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default())?;
/// let mut writer = Writer::new(Vec::new());
/// while let Some(step) = reader.next()? {
///     if let Step::Record(_, event) = step {
///         writer.write(&event)?;
///     }
/// }
/// let snappy = writer.finish()?;
/// assert!(snappy.starts_with(b"at"));
/// # Ok::<(), anytrace_core::Error>(())
/// ```
pub struct Writer<W: Write> {
    state: State<W>,
    /// The output's. Its signatures are those that the output defines, with definitions as in the sources.
    layout: Layout,
    /// The tables that the slots in `verified` refer to.
    source: Identity,
    /// By space and id: slots of the source whose definition equals the one written, and the slot here.
    verified: [HashMap<u64, (u32, u32)>; 5],
    /// By version of the source.
    converters: HashMap<u64, Converter>,
    /// Ids whose definition a converter wrote, and those of the current event.
    converted: [HashSet<u64>; 5],
    fresh: Vec<(Space, u64)>,
    /// Calls by their numbers in the source. Their marks are the numbers in the output.
    calls: Calls,
    next_call: u64,
    /// Some call has another number than in the source.
    is_shifted: bool,
    records: u64,
    event: Vec<u8>,
}

enum State<W: Write> {
    /// Nothing was written yet.
    Pending(W),
    Open(ContainerWriter<W>),
    /// The output could not be begun.
    Failed,
}

/// What happens to the definition at a signature id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carry {
    AsIs,
    Insert,
    Omit,
}

impl<W: Write> Writer<W> {
    /// Writes version 6 in a Snappy container, as the format's own tracer does.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// Writes the version, properties and container of a layout. Its signatures are not written: each is defined by the
    /// first event that names it.
    pub fn with_layout(out: W, layout: &Layout) -> Self {
        Self {
            state: State::Pending(out),
            layout: Layout::new(layout.header.clone(), layout.container, layout.limits),
            source: Identity::default(),
            verified: Default::default(),
            converters: HashMap::new(),
            converted: Default::default(),
            fresh: Vec::new(),
            calls: Calls::default(),
            next_call: 0,
            is_shifted: false,
            records: 0,
            event: Vec::new(),
        }
    }

    /// Writes an event.
    ///
    /// A leave whose enter was lost in the source keeps its number as long as no call has another number than in the
    /// source. After that it gets the highest number there is, which no call has.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`] for what the version cannot represent, for a signature whose definition is
    /// lost or differs from the one written under the same id, and for a leave whose enter exists but was not written.
    /// Nothing of the event is written then. I/O, and the limits of the layout.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.open()?;
        let identity = &record.layout().signatures.identity;
        if !self.source.is(identity) {
            self.source = identity.share();
            self.verified.iter_mut().for_each(HashMap::clear);
        }
        self.event.clear();
        self.fresh.clear();
        self.layout.signatures.begin_trial();
        if let Err(error) = self.encode(record) {
            self.layout.signatures.end_trial();
            self.verified.iter_mut().for_each(HashMap::clear);
            for (space, id) in self.fresh.drain(..) {
                self.converted[space as usize].remove(&id);
            }
            return Err(error);
        }
        self.layout.signatures.keep_trial();
        if let State::Open(out) = &mut self.state {
            out.write(&self.event)?;
        }
        self.count(record);
        Ok(())
    }

    /// Ends the container, flushes, and returns what was written to.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn finish(mut self) -> Result<W, Error> {
        self.open()?;
        match self.state {
            State::Open(out) => out.finish(self.layout.container == Container::ZstdSeekable),
            _ => Err(failed()),
        }
    }

    /// Writes the header before anything else.
    fn open(&mut self) -> Result<(), Error> {
        match &self.state {
            State::Open(_) => return Ok(()),
            State::Pending(_) => check_header(&self.layout.header)?,
            State::Failed => return Err(failed()),
        }
        let State::Pending(out) = mem::replace(&mut self.state, State::Failed) else { return Err(failed()) };
        let header = &mut self.layout.header;
        // The bytes as read may have longer numbers than needed. They are stale if a field was changed.
        let limits = Limits::default().with_record_bytes_max(u64::MAX);
        if !parse_header(&header.raw, &limits).is_ok_and(|parsed| parsed == *header) {
            header.raw = encode_header(header);
        }
        let mut writer = ContainerWriter::new(out, self.layout.container, None)?;
        writer.write(&header.raw)?;
        self.state = State::Open(writer);
        Ok(())
    }

    /// Puts the event's bytes into `event`.
    fn encode(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let (from, to) = (record.layout().header.version, self.layout.header.version);
        if from == to {
            return self.encode_with(record, None);
        }
        let mut converter = match self.converters.remove(&from) {
            Some(converter) => converter,
            None => {
                // Properties are those of the output, so a source's do not matter.
                let semantic_version = self.layout.header.semantic_version;
                Converter::new(&Header { version: from, semantic_version, ..Header::default() }, to)?
            }
        };
        let done = self.encode_with(record, Some(&mut converter));
        self.converters.insert(from, converter);
        done
    }

    fn encode_with(&mut self, record: &Record<'_>, mut converter: Option<&mut Converter>) -> Result<(), Error> {
        let event = self.event_of(record);
        let mut tokens = record.tokens();
        while let Some((mut token, place)) = tokens.next_with_place() {
            let bytes = record.bytes().get(place).unwrap_or_default();
            let mut carry = Carry::AsIs;
            if let Some((space, signature)) = token.signature() {
                let (slot, decided) = self.resolve(space, signature, record)?;
                carry = decided;
                if let Token::Enum(signature, _) = &mut token {
                    signature.slot = slot;
                }
            }
            if let Some(converter) = &mut converter {
                let signatures = &self.layout.signatures;
                let context = Context { event: &event, offset: 0, bytes, signatures, depth: 0, has_long_number: false };
                if converter.put(&token, &context, &mut self.event, &mut self.converted, &mut self.fresh)? {
                    continue;
                }
            }
            match token {
                Token::Leave { call } => self.push_leave(call, bytes, record)?,
                Token::EndEvent => {
                    self.event.extend_from_slice(bytes);
                    return Ok(());
                }
                _ => self.push(&token, bytes, carry, record),
            }
        }
        Err(Error::unsupported(format!("event {}: no end", self.records)))
    }

    /// The event as the converter's messages name it.
    fn event_of(&self, record: &Record<'_>) -> Event {
        Event {
            seq: self.records,
            offset: 0,
            kind: record.kind(),
            call: record.call().unwrap_or(self.next_call),
            thread: record.thread().unwrap_or(0),
            function: None,
            frame: 0,
            pairing: Pairing::Paired,
            mark: 0,
        }
    }

    /// The slot here of a signature, and what happens to its definition.
    fn resolve(
        &mut self,
        space: Space,
        signature: &SignatureRef<'_>,
        record: &Record<'_>,
    ) -> Result<(u32, Carry), Error> {
        let &SignatureRef { id, slot, definition: here, .. } = signature;
        let verified = self.verified[space as usize].get(&id).copied();
        if let Some((_, own)) = verified.filter(|(source, _)| *source == slot && here.is_none()) {
            return Ok((own, Carry::AsIs));
        }
        let own = self.layout.signatures.table(space).slot(id);
        let Some(definition) = here.or_else(|| record.signature(space, id).map(|row| &*row.definition)) else {
            // The definition that was written under this id must suffice.
            return own.map(|own| (own, Carry::AsIs)).ok_or_else(|| self.cannot(space, id, "its definition is lost"));
        };
        let row = own.and_then(|own| self.layout.signatures.get(space, own));
        let is_same = row.is_some_and(|row| row.is_dropped || *row.definition == *definition);
        let (own, carry) = match own.filter(|_| is_same) {
            // Only a function may be defined again.
            Some(own) if here.is_none() || space == Space::Function && verified.is_some() => (own, Carry::AsIs),
            Some(own) => (own, Carry::Omit),
            None if row.is_some() && space != Space::Function => {
                return Err(self.cannot(space, id, "its definition differs from the one written before"));
            }
            None => {
                let own = self.layout.signatures.define(space, id, definition, false);
                if own == NONE {
                    return Err(Error::limit(format!("event {}: there are too many signatures", self.records)));
                }
                (own, if here.is_some() { Carry::AsIs } else { Carry::Insert })
            }
        };
        if slot != NONE {
            self.verified[space as usize].insert(id, (slot, own));
        }
        Ok((own, carry))
    }

    #[cold]
    fn cannot(&self, space: Space, id: u64, why: &str) -> Error {
        Error::unsupported(format!("event {}: {} id {id}: {why}", self.records, space.name()))
    }

    fn push(&mut self, token: &Token<'_>, bytes: &[u8], carry: Carry, record: &Record<'_>) {
        let Some((space, signature)) = token.signature().filter(|_| carry != Carry::AsIs) else {
            return self.event.extend_from_slice(bytes);
        };
        let (head, rest) = bytes.split_at(signature.id_end.min(bytes.len()));
        self.event.extend_from_slice(head);
        match signature.definition {
            None => {
                let row = record.signature(space, signature.id);
                self.event.extend_from_slice(row.map_or(&[], |row| &row.definition));
                self.event.extend_from_slice(rest);
            }
            Some(definition) => self.event.extend_from_slice(rest.get(definition.len()..).unwrap_or_default()),
        }
    }

    fn push_leave(&mut self, call: u64, bytes: &[u8], record: &Record<'_>) -> Result<(), Error> {
        let number = match (self.calls.waiting_mut(call), record.pairing()) {
            (Some(entered), _) => entered.mark,
            (None, Some(Pairing::Lost | Pairing::Repeated | Pairing::Unknown)) if self.is_shifted => u64::MAX,
            (None, Some(Pairing::Lost | Pairing::Repeated | Pairing::Unknown)) => call,
            (None, None) if !self.is_shifted => call,
            (None, _) => {
                let seq = self.records;
                return Err(Error::unsupported(format!("event {seq}: call number {call}: its enter was not written")));
            }
        };
        if number == call {
            self.event.extend_from_slice(bytes);
        } else {
            self.event.push(1);
            push_uint(&mut self.event, number);
        }
        Ok(())
    }

    /// Counts an event that was written.
    fn count(&mut self, record: &Record<'_>) {
        self.records += 1;
        match (record.kind(), record.call()) {
            (EventKind::Enter, number) => {
                let number = number.unwrap_or(self.next_call);
                if number < self.calls.next() {
                    // Another source: its leaves are not those of the calls before.
                    self.calls = Calls::restore(number, std::iter::empty(), 0);
                }
                self.calls.resume(number);
                self.calls.enter(Call { mark: self.next_call, ..Call::default() });
                self.is_shifted |= number != self.next_call;
                self.next_call += 1;
            }
            (EventKind::Leave, Some(number)) => {
                self.calls.leave(number);
            }
            (EventKind::Leave, None) => {}
        }
    }
}

fn check_header(header: &Header) -> Result<(), Error> {
    let Header { version, properties, .. } = header;
    if *version > VERSION_MAX {
        return Err(Error::unsupported(format!("version {version}: the highest is {VERSION_MAX}")));
    }
    if *version < VERSION_PROPERTIES && !properties.is_empty() {
        return Err(Error::unsupported(format!("properties: version {version} has none")));
    }
    if properties.iter().any(|(name, _)| name.is_empty()) {
        return Err(Error::unsupported("properties: a name is empty"));
    }
    Ok(())
}

#[cold]
fn failed() -> Error {
    Error::usage("the writer failed before")
}
