//! Writes the events of a trace again, each with the definitions it needs.

use std::collections::{HashMap, HashSet};

use anytrace_core::{Error, Outcome, Selection, Sink, Target};

use crate::verbs::events::is_selected;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::convert::Converter;
use crate::wire::encode::encode_header;
use crate::wire::reader::Totals;
use crate::wire::record::{Event, EventKind, Header, Origin, Pairing, SignatureRef, Space, Token};
use crate::wire::scan::push_uint;
use crate::wire::signatures::{Signature, Signatures};
use crate::wire::unfinished::Unfinished;
use crate::wire::visitor::{Context, Visitor};

/// Ids for functions that were defined under the id of another function. They are above all ids of real traces.
const RENAMED_IDS: u64 = 50_000;

/// The purpose of the rewrite.
pub(crate) enum Purpose<'a> {
    Convert,
    Repair,
    Trim(&'a Selection),
}

/// Counts of events that the user should know about.
#[derive(Debug, Default)]
struct Tallies {
    lost_signature: u64,
    leaves_without_enter: u64,
    leaves_of_lost: u64,
    bad_arguments: u64,
    redefinitions: u64,
    renamed: u64,
    carried: u64,
    filled_events: u64,
}

/// Writes events.
pub(crate) struct Rewriter<'a> {
    purpose: Purpose<'a>,
    writer: ContainerWriter<&'a mut dyn Target>,
    target_version: Option<u64>,
    version: u64,
    converter: Option<Converter>,
    /// Ids whose definition was written, by space.
    written: [HashSet<u64>; 5],
    /// Functions that were defined again under a known id, by slot, with their new ids.
    renamed: HashMap<u32, u64>,
    /// Those that the current event wrote.
    fresh: Vec<(Space, u64)>,
    event: Vec<u8>,
    event_bytes_max: usize,
    /// A part of the current event was written already.
    is_streaming: bool,
    /// Enters were omitted or lost, so calls are numbered differently than in the source.
    is_shifted: bool,
    is_dropped: bool,
    /// Inside an argument that is omitted.
    is_skipping: bool,
    unfinished: Unfinished,
    next_call: u64,
    records_written: u64,
    tallies: Tallies,
    notes: Vec<String>,
}

impl<'a> Rewriter<'a> {
    pub(crate) fn new(
        purpose: Purpose<'a>,
        writer: ContainerWriter<&'a mut dyn Target>,
        target_version: Option<u64>,
        event_bytes_max: usize,
    ) -> Self {
        Self {
            purpose,
            writer,
            target_version,
            version: 0,
            converter: None,
            written: Default::default(),
            renamed: HashMap::new(),
            fresh: Vec::new(),
            event: Vec::new(),
            event_bytes_max,
            is_streaming: false,
            is_shifted: false,
            is_dropped: false,
            is_skipping: false,
            unfinished: Unfinished::default(),
            next_call: 0,
            records_written: 0,
            tallies: Tallies::default(),
            notes: Vec::new(),
        }
    }

    pub(crate) fn finish(mut self, totals: Totals, is_seekable: bool) -> Result<Outcome, Error> {
        self.note_all(&totals);
        self.writer.finish(is_seekable)?;
        Ok(Outcome {
            records_read: totals.events,
            records_written: self.records_written,
            bytes_lost: totals.lost_bytes,
            notes: self.notes,
        })
    }

    fn note_all(&mut self, totals: &Totals) {
        let t = &self.tallies;
        let plural = |n: u64| if n == 1 { "" } else { "s" };
        let mut say = |n: u64, text: String| {
            if n > 0 {
                self.notes.push(text);
            }
        };
        say(
            totals.lost_bytes,
            format!("{} bytes of the raw stream could not be read and were left out.", totals.lost_bytes),
        );
        say(
            totals.lost_calls,
            format!("{} call{} entered in lost parts.", totals.lost_calls, plural(totals.lost_calls)),
        );
        let n = t.lost_signature;
        say(n, format!("{n} event{} left out because a signature's definition is lost.", plural(n)));
        let n = t.leaves_of_lost;
        say(n, format!("{n} leave{} left out because the enter is lost.", plural(n)));
        let n = t.leaves_without_enter;
        say(n, format!("{n} leave{} without an enter left out.", plural(n)));
        let n = t.bad_arguments;
        say(n, format!("{n} argument{} past the end of the function's signature left out.", plural(n)));
        let n = t.redefinitions;
        say(n, format!("{n} repeated definition{} of functions left out.", plural(n)));
        let n = t.renamed;
        say(n, format!("{n} function{} with a duplicate id renumbered.", plural(n)));
        let n = t.filled_events;
        say(n, format!("{n} event{} too large to buffer, truncated and zero-filled.", plural(n)));
        let n = t.carried;
        say(n, format!("{n} definition{} moved to the first event that needs it.", plural(n)));
        if let Some(converter) = &self.converter {
            self.notes.extend(converter.notes());
        }
    }

    fn is_written(&self, space: Space, id: u64) -> bool {
        self.written[space as usize].contains(&id)
    }

    fn mark_written(&mut self, space: Space, id: u64) {
        if self.written[space as usize].insert(id) {
            self.fresh.push((space, id));
        }
    }

    fn begin(&mut self) {
        self.event.clear();
        self.fresh.clear();
        self.unfinished.begin();
        (self.is_streaming, self.is_dropped, self.is_skipping) = (false, false, false);
    }

    fn drop_event(&mut self) {
        self.is_dropped = true;
        for (space, id) in self.fresh.drain(..) {
            self.written[space as usize].remove(&id);
        }
    }

    /// Decides what happens to a leave and writes its head.
    fn leave(&mut self, context: &Context<'_>) {
        let event = context.event;
        // If enters are omitted, a number without an enter might refer to another call in the output.
        let is_shifted = self.is_shifted || matches!(self.purpose, Purpose::Trim(_));
        let number = match event.pairing {
            Pairing::Paired if event.mark > 0 => Some(event.mark - 1),
            Pairing::Paired => None,
            Pairing::Lost => {
                self.tallies.leaves_of_lost += 1;
                None
            }
            Pairing::Repeated | Pairing::Unknown if is_shifted => {
                self.tallies.leaves_without_enter += 1;
                None
            }
            Pairing::Repeated | Pairing::Unknown => Some(event.call),
        };
        match number {
            Some(number) if number == event.call => self.event.extend_from_slice(context.bytes),
            Some(number) => {
                self.event.push(1);
                push_uint(&mut self.event, number);
            }
            None => self.drop_event(),
        }
    }

    /// Writes a token that names a signature. Adds the definition if it was not written yet.
    fn signature(&mut self, signature: &SignatureRef<'_>, space: Space, context: &Context<'_>) {
        let row = context.signatures.get(space, signature.slot);
        // There was no room for it in the table. The definition here, or the one written before, serves as well.
        let is_repair = matches!(self.purpose, Purpose::Repair);
        if row.is_none() && !is_repair && (signature.definition.is_some() || self.is_written(space, signature.id)) {
            self.event.extend_from_slice(context.bytes);
            return self.mark_written(space, signature.id);
        }
        // A definition that was written before, or that is here, is not needed from the table.
        let is_renamed = is_repair && signature.origin == Origin::Redefined;
        let is_spare = !is_renamed && (signature.definition.is_some() || self.is_written(space, signature.id));
        let is_usable = |row: &&Signature| !row.is_lost && (!row.is_dropped || is_spare);
        let Some(row) = row.filter(is_usable) else {
            self.tallies.lost_signature += 1;
            return self.drop_event();
        };
        if is_repair && space == Space::Function && signature.origin == Origin::Redefined {
            self.tallies.redefinitions += 1;
            self.rename(signature, &row.definition, context.signatures);
        }
        if let Some(id) = self.renamed.get(&signature.slot).copied().filter(|_| space == Space::Function) {
            push_uint(&mut self.event, id);
            if !self.is_written(space, id) {
                self.event.extend_from_slice(&row.definition);
                self.mark_written(space, id);
            }
            return;
        }
        let split = signature.id_end.min(context.bytes.len());
        // For all but functions and frames a type byte precedes the id.
        let (head, rest) = context.bytes.split_at(split);
        self.event.extend_from_slice(head);
        match signature.definition {
            None if !self.is_written(space, signature.id) => {
                self.event.extend_from_slice(&row.definition);
                self.event.extend_from_slice(rest);
                self.tallies.carried += 1;
            }
            _ => self.event.extend_from_slice(rest),
        }
        self.mark_written(space, signature.id);
    }

    /// Assigns an id to a function defined under a known id: the same id if the definition is the same, a new one
    /// otherwise.
    fn rename(&mut self, signature: &SignatureRef<'_>, definition: &[u8], signatures: &Signatures) {
        let functions = signatures.table(Space::Function);
        let same = functions.rows().iter().enumerate().find(|(slot, row)| {
            row.id == signature.id && *row.definition == *definition && *slot != signature.slot as usize
        });
        let known = same.map(|(slot, row)| {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            self.renamed.get(&slot).copied().unwrap_or(row.id)
        });
        let id = known.unwrap_or_else(|| {
            self.tallies.renamed += 1;
            let is_free = |id: &u64| functions.slot(*id).is_none() && !self.written[0].contains(id);
            (RENAMED_IDS..).find(is_free).unwrap_or(u64::MAX)
        });
        self.renamed.insert(signature.slot, id);
    }

    fn put(&mut self, token: &Token<'_>, context: &Context<'_>) -> Result<(), Error> {
        if let Some(converter) = &mut self.converter
            && converter.put(token, context, &mut self.event, &mut self.written, &mut self.fresh)?
        {
            return Ok(());
        }
        match token {
            Token::Function(signature) => self.signature(signature, Space::Function, context),
            Token::Frame(signature) => self.signature(signature, Space::Frame, context),
            Token::Struct(signature, _) => self.signature(signature, Space::Struct, context),
            Token::Enum(signature, _) => self.signature(signature, Space::Enum, context),
            Token::Bitmask(signature, _) => self.signature(signature, Space::Bitmask, context),
            Token::Leave { .. } => self.leave(context),
            _ => self.event.extend_from_slice(context.bytes),
        }
        Ok(())
    }

    /// For repair: true for arguments that the function does not have.
    fn is_bad_argument(&self, token: &Token<'_>, context: &Context<'_>) -> bool {
        let Token::Argument(index) = token else { return false };
        let row = context.event.function.and_then(|slot| context.signatures.function(slot));
        row.is_some_and(|row| !row.is_lost && *index >= row.count)
    }
}

impl Visitor for Rewriter<'_> {
    fn takes_plain(&self) -> bool {
        matches!(self.purpose, Purpose::Convert) && self.converter.is_none()
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.version = header.version;
        let target = self.target_version.unwrap_or(header.version);
        let mut written = header.clone();
        if target != header.version {
            let converter = Converter::new(header, target)?;
            written = converter.header(header);
            self.converter = Some(converter);
        } else if matches!(self.purpose, Purpose::Repair) && header.semantic_version > header.version {
            written.semantic_version = header.version;
            written.raw = encode_header(&written);
            let was = header.semantic_version;
            self.notes.push(format!("The semantic version {was} is lowered to the version, {}.", header.version));
        }
        self.writer.write(&written.raw)
    }

    fn plain_event(&mut self, event: &Event, bytes: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        // Events that arrive here keep every byte.
        self.writer.write(bytes)?;
        self.records_written += 1;
        if event.kind == EventKind::Enter {
            self.next_call += 1;
        }
        Ok(self.next_call)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if matches!(token, Token::Enter { .. } | Token::Leave { .. }) {
            self.begin();
        }
        if let (Token::Function(_), Purpose::Trim(selection)) = (token, &self.purpose)
            && !is_selected(selection, context.event, context.signatures)
        {
            self.drop_event();
        }
        if self.is_skipping {
            self.is_skipping = !matches!(
                token,
                Token::Argument(_)
                    | Token::Return
                    | Token::Thread(_)
                    | Token::Backtrace(_)
                    | Token::Flags(_)
                    | Token::EndEvent
            );
        }
        if matches!(self.purpose, Purpose::Repair) && self.is_bad_argument(token, context) {
            self.tallies.bad_arguments += 1;
            self.is_skipping = true;
        }
        if let Token::Enter { .. } = token {
            self.is_shifted |= context.event.call != self.next_call;
        }
        if self.is_dropped || self.is_skipping {
            return Ok(());
        }
        self.unfinished.follow(token);
        self.put(token, context)?;
        if self.is_dropped && self.is_streaming {
            let seq = context.event.seq;
            return Err(Error::limit(format!(
                "event {seq} cannot be written, which was found after writing more than {} of its bytes; raise the \
                 limit",
                self.event_bytes_max
            )));
        }
        if self.event.len() > self.event_bytes_max {
            self.is_streaming = true;
            self.writer.write(&self.event)?;
            self.event.clear();
        }
        Ok(())
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        if self.is_dropped {
            return Ok(0);
        }
        self.writer.write(&self.event)?;
        self.records_written += 1;
        if event.kind == EventKind::Leave {
            return Ok(0);
        }
        self.next_call += 1;
        Ok(self.next_call)
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        let Some(event) = event.filter(|_| !self.is_dropped) else { return Ok(()) };
        if !self.is_streaming {
            self.drop_event();
            return Ok(());
        }
        let Some(mut left) = self.unfinished.zeros() else {
            return Err(Error::limit(format!(
                "event {} is damaged after more than {} of its bytes were written; raise the limit",
                event.seq, self.event_bytes_max
            )));
        };
        self.writer.write(&self.event)?;
        while left > 0 {
            let step = left.min(1 << 16);
            self.writer.write(&vec![0; usize::try_from(step).unwrap_or(0)])?;
            left -= step;
        }
        self.tallies.filled_events += 1;
        self.records_written += 1;
        if event.kind == EventKind::Enter {
            self.next_call += 1;
        }
        self.is_dropped = true;
        Ok(())
    }
}
