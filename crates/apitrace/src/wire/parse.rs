//! Parses one event: bytes to a record, without I/O.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use anytrace_core::{Limits, text};

use crate::wire::layout::{Layout, Need, need};
use crate::wire::record::{Event, EventKind, Pairing, Space, Token};
use crate::wire::scan::Stop;
use crate::wire::signatures::{Signature, Signatures};
use crate::wire::walker::{Definitions, Walker, is_definition};

/// The slot of signatures that only the event itself defines.
const FRESH: u32 = u32::MAX;

/// One event on the wire: a call is entered or left. It borrows the event's bytes and the layout they were read with.
#[derive(Clone)]
pub struct Record<'a> {
    bytes: &'a [u8],
    layout: &'a Layout,
    fresh: Cow<'a, Fresh>,
    kind: EventKind,
    call: Option<u64>,
    thread: Option<u64>,
    frame: Option<u64>,
    pairing: Option<Pairing>,
    /// Id of an enter's function; where only the event itself defines it, the slot is [`FRESH`].
    id: u64,
    slot: Option<u32>,
}

/// The definitions in an event.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fresh {
    /// Which of the event's signature ids are followed by a definition, counted from 0, ascending.
    defining: Vec<u64>,
    /// Signature ids counted.
    references: u64,
    /// The definitions, if the layout lacks them.
    rows: HashMap<(Space, u64), Signature>,
}

impl Fresh {
    pub(crate) fn clear(&mut self) {
        self.defining.clear();
        self.references = 0;
    }

    /// Counts a token's signature id.
    pub(crate) fn follow(&mut self, token: &Token<'_>) {
        if let Some((_, signature)) = token.signature() {
            if signature.definition.is_some() {
                self.defining.push(self.references);
            }
            self.references += 1;
        }
    }
}

/// Parses the event at the start of `bytes`, and returns its length too. Definitions in it take effect only with
/// [`Layout::learn`].
///
/// Pure: the result depends on the arguments alone. The number of an entered call, and the thread and function of a
/// call that is left, depend on earlier events; [`crate::Reader`] knows them.
///
/// ```
/// use anytrace_apitrace::{EventKind, Layout, parse};
///
/// // Version 6, no properties, one call of `f` and its return.
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00";
/// let (mut layout, mut at) = Layout::parse(bytes).unwrap();
/// let mut kinds = Vec::new();
/// while at < bytes.len() {
///     let (record, length) = parse(&bytes[at..], &layout).unwrap();
///     kinds.push(record.kind());
///     layout.learn(&bytes[at..at + length]).unwrap();
///     at += length;
/// }
/// assert_eq!(kinds, [EventKind::Enter, EventKind::Leave]);
/// ```
///
/// # Errors
/// [`Need::More`] if the event does not end in the window; [`Need::Bad`] if it breaks the grammar.
pub fn parse<'a>(bytes: &'a [u8], layout: &'a Layout) -> Result<(Record<'a>, usize), Need> {
    let mut found = Overlay { base: &layout.signatures, fresh: Fresh::default() };
    let mut walker = Walker::new(layout.header.version, &layout.limits);
    let (mut at, mut kind, mut call, mut thread, mut function) = (0, EventKind::Enter, None, None, None);
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let (token, used) = walker.next(rest, &mut found).map_err(|stop| need(stop, at))?;
        at += used;
        found.fresh.follow(&token);
        match token {
            Token::Enter { thread: number } => thread = number,
            Token::Leave { call: number } => (kind, call) = (EventKind::Leave, Some(number)),
            Token::Function(signature) => function = Some((signature.id, signature.slot)),
            Token::Thread(number) if kind == EventKind::Enter => thread = Some(number),
            // At least one byte follows the string.
            Token::BytesStart(_, length) if length >= (rest.len() - used) as u64 => {
                return Err(Need::More((at as u64).saturating_add(length).saturating_add(1)));
            }
            Token::EndEvent => break,
            _ => {}
        }
    }
    let record = Record {
        bytes: bytes.get(..at).unwrap_or_default(),
        layout,
        fresh: Cow::Owned(found.fresh),
        kind,
        call,
        thread,
        frame: None,
        pairing: None,
        id: function.map_or(0, |(id, _)| id),
        slot: function.map(|(_, slot)| slot),
    };
    Ok((record, at))
}

impl<'a> Record<'a> {
    /// What the reader read and resolved.
    pub(crate) fn resolved(bytes: &'a [u8], layout: &'a Layout, fresh: &'a Fresh, event: &Event) -> Self {
        let &Event { kind, call, thread, frame, pairing, function, .. } = event;
        Self {
            bytes,
            layout,
            fresh: Cow::Borrowed(fresh),
            kind,
            call: Some(call),
            thread: Some(thread),
            frame: Some(frame),
            pairing: Some(pairing),
            id: 0,
            slot: function,
        }
    }

    /// The event's bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Enter or leave.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// Number of the call: the count of enters before it. `None` for an enter from [`parse`].
    pub fn call(&self) -> Option<u64> {
        self.call
    }

    /// Number of the call's thread. From [`parse`] only that of enters, from version 4 on. A [`crate::Reader`] gives 0
    /// where the stream does not specify it.
    pub fn thread(&self) -> Option<u64> {
        self.thread
    }

    /// Frame the call belongs to, from 0. `None` from [`parse`].
    pub fn frame(&self) -> Option<u64> {
        self.frame
    }

    /// Whether there is an enter for a leave. `None` from [`parse`].
    pub fn pairing(&self) -> Option<Pairing> {
        self.pairing
    }

    /// The function that is called. `None` if it is not known: for leaves without an enter, for leaves from [`parse`],
    /// and where the definition is lost.
    pub fn function(&self) -> Option<&Signature> {
        let slot = self.slot?;
        let row = match slot {
            FRESH => self.fresh.rows.get(&(Space::Function, self.id)),
            _ => self.layout.signatures.function(slot),
        };
        row.filter(|row| row.is_at_hand())
    }

    /// What an id in the event means.
    pub fn signature(&self, space: Space, id: u64) -> Option<&Signature> {
        let fresh = self.fresh.rows.get(&(space, id));
        fresh.filter(|row| row.is_at_hand()).or_else(|| self.layout.signature(space, id))
    }

    /// What the event was read with.
    pub fn layout(&self) -> &'a Layout {
        self.layout
    }

    /// The event step by step. Strings and blobs come in one piece, however long: there is neither
    /// [`Token::BytesStart`] nor what follows it.
    pub fn tokens(&self) -> Tokens<'_> {
        let limits = Limits::default().with_record_bytes_max(u64::MAX);
        let replay = Replay { base: &self.layout.signatures, fresh: &self.fresh, references: 0, defined: 0 };
        Tokens { walker: Walker::new(self.layout.header.version, &limits), replay, bytes: self.bytes, at: 0 }
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Record");
        out.field("kind", &self.kind).field("call", &self.call).field("thread", &self.thread);
        out.field("function", &self.function().map(|row| text::escaped(row.name())));
        out.field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}

/// The tokens of an event, in wire order.
pub struct Tokens<'a> {
    walker: Walker,
    replay: Replay<'a>,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.next_with_place().map(|(token, _)| token)
    }
}

impl<'a> Tokens<'a> {
    /// The next token and where in the event it is stored.
    pub(crate) fn next_with_place(&mut self) -> Option<(Token<'a>, Range<usize>)> {
        let start = self.at;
        let mut token = self.step()?;
        if let Token::BytesStart(kind, _) = token {
            let Some(Token::BytesPiece(bytes)) = self.step() else { return None };
            self.step()?;
            token = Token::Bytes(kind, bytes);
        }
        Some((token, start..self.at))
    }

    fn step(&mut self) -> Option<Token<'a>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (token, used) = self.walker.next(rest, &mut self.replay).ok()?;
        self.at += used;
        Some(token)
    }
}

/// Definitions of the layout, and above them those of an event.
struct Overlay<'l> {
    base: &'l Signatures,
    fresh: Fresh,
}

impl Definitions for Overlay<'_> {
    fn find(&mut self, space: Space, id: u64, version: u64, rest: &[u8]) -> Result<(Option<u32>, bool), Stop> {
        if !self.fresh.rows.is_empty() && self.fresh.rows.contains_key(&(space, id)) {
            return Ok((Some(FRESH), false));
        }
        let known = self.base.table(space).slot(id);
        Ok((known, is_definition(self.base, known, space, version, rest)?))
    }

    fn define(&mut self, space: Space, id: u64, definition: &[u8], is_lost: bool) -> u32 {
        self.fresh.rows.insert((space, id), Signature::new(space, id, definition, is_lost, false));
        FRESH
    }

    fn members(&self, id: u64, slot: u32) -> Option<u64> {
        members(self.base, &self.fresh, id, slot)
    }
}

/// Walks through an event again: what was a definition is known now.
struct Replay<'r> {
    base: &'r Signatures,
    fresh: &'r Fresh,
    /// Signature ids seen so far, and how many of them were defined.
    references: u64,
    defined: usize,
}

impl Definitions for Replay<'_> {
    fn find(&mut self, space: Space, id: u64, _: u64, _: &[u8]) -> Result<(Option<u32>, bool), Stop> {
        let is_here = self.fresh.defining.get(self.defined) == Some(&self.references);
        self.defined += usize::from(is_here);
        self.references += 1;
        let is_fresh = !self.fresh.rows.is_empty() && self.fresh.rows.contains_key(&(space, id));
        let known = if is_fresh { Some(FRESH) } else { self.base.table(space).slot(id) };
        Ok((known, is_here))
    }

    fn define(&mut self, space: Space, id: u64, _: &[u8], _: bool) -> u32 {
        self.base.table(space).slot(id).filter(|_| self.fresh.rows.is_empty()).unwrap_or(FRESH)
    }

    fn members(&self, id: u64, slot: u32) -> Option<u64> {
        members(self.base, self.fresh, id, slot)
    }
}

fn members(base: &Signatures, fresh: &Fresh, id: u64, slot: u32) -> Option<u64> {
    let row = match slot {
        FRESH => fresh.rows.get(&(Space::Struct, id)),
        _ => base.get(Space::Struct, slot),
    };
    row.filter(|row| !row.is_lost).map(|row| row.count)
}
