//! One line for each event: for people and as JSON; as JSON, also the bytes between the events.

use anytrace_core::Place;
use anytrace_core::jsonl::push_header_start;
use anytrace_core::text::{push_dec, push_escaped, push_json_bytes, push_quoted};

use crate::wire::json::{inner, unescape};
use crate::wire::reader::Piece;
use crate::wire::record::{NAME, Raw, Record};

/// Longer events are not parsed for the field `event`.
const EVENT_BYTES_MAX: usize = 64 << 10;

/// The kind of what is between two events.
const BETWEEN: &str = "separator";

/// Longest piece of what precedes or follows the events on one line.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// What is between two events unless a line says otherwise.
pub(crate) const USUAL_SEPARATOR: &[u8] = b",\n";

/// Appends the header line of JSON lines.
pub(crate) fn push_header(out: &mut Vec<u8>) {
    push_header_start(out, NAME);
    out.extend_from_slice(b",\"format_version\":null}\n");
}

/// Appends an event for people: its fields as they are written.
pub(crate) fn push_text(out: &mut Vec<u8>, record: &Record<'_>) {
    out.extend_from_slice(record.kind().name().as_bytes());
    let mut put = |label: &str, raw: Raw<'_>| {
        if let Some(raw) = raw {
            out.push(b' ');
            out.extend_from_slice(label.as_bytes());
            match inner(raw) {
                Some(inner) => push_quoted(out, unescape(inner, &mut Vec::new())),
                None => push_escaped(out, raw),
            }
        }
    };
    let unknown = record.phase.filter(|_| record.kind() == crate::Kind::Other);
    put("ph ", unknown);
    put("", record.name);
    put("ts ", record.time);
    put("dur ", record.duration);
    put("pid ", record.process);
    put("tid ", record.thread);
    put("cat ", record.category);
    put("scope ", record.scope);
    put("id ", record.id);
    put("id2 ", record.id2);
    put("args ", record.arguments);
    out.push(b'\n');
}

/// Appends an event as JSON. `text` has its bytes where they are not those of `event` without blanks and with its keys
/// in order; `before` has what is between it and the last event.
pub(crate) fn push_event(out: &mut Vec<u8>, record: &Record<'_>, before: Option<&[u8]>, offset: Option<u64>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(record.kind().name().as_bytes());
    out.push(b'"');
    let event = plain(record.text);
    if let Some(event) = &event {
        out.extend_from_slice(b",\"event\":");
        out.extend_from_slice(event);
    }
    if event.as_deref() != Some(record.text) {
        out.extend_from_slice(b",\"text\":");
        push_json_bytes(out, record.text);
    }
    if let Some(before) = before {
        out.extend_from_slice(b",\"before\":");
        push_json_bytes(out, before);
    }
    push_end(out, offset);
}

/// An event without blanks and with its keys in order; `None` where it is too long or not strict JSON.
pub(crate) fn plain(text: &[u8]) -> Option<Vec<u8>> {
    let value: serde_json::Value =
        if text.len() <= EVENT_BYTES_MAX { serde_json::from_slice(text).ok()? } else { return None };
    serde_json::to_vec(&value).ok()
}

/// Appends bytes between the events as JSON.
pub(crate) fn push_piece(out: &mut Vec<u8>, kind: &str, bytes: &[u8], offset: Option<u64>) {
    out.extend_from_slice(b"{\"kind\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"text\":");
    push_json_bytes(out, bytes);
    push_end(out, offset);
}

fn push_end(out: &mut Vec<u8>, offset: Option<u64>) {
    if let Some(offset) = offset {
        out.extend_from_slice(b",\"offset\":");
        push_dec(out, offset);
    }
    out.extend_from_slice(b"}\n");
}

/// Writes a trace as JSON lines: what is between two events is part of the second one's line, where it is not the same
/// as before.
#[derive(Debug)]
pub(crate) struct JsonLines {
    /// False where only events are wanted.
    pub(crate) has_pieces: bool,
    /// False where lines have no byte offsets.
    pub(crate) has_offsets: bool,
    pending: Vec<u8>,
    pending_at: u64,
    pending_kind: &'static str,
    usual: Vec<u8>,
    records: u64,
}

impl JsonLines {
    pub(crate) fn new(has_pieces: bool, has_offsets: bool) -> Self {
        let (pending, usual) = (Vec::new(), USUAL_SEPARATOR.to_vec());
        Self { has_pieces, has_offsets, pending, pending_at: 0, pending_kind: BETWEEN, usual, records: 0 }
    }

    pub(crate) fn event(&mut self, out: &mut Vec<u8>, record: &Record<'_>, at: Place) {
        if self.pending_kind != BETWEEN {
            self.flush(out);
        }
        let usual = if self.records == 0 { &b""[..] } else { &self.usual };
        let before = (self.has_pieces && self.pending != usual).then_some(self.pending.as_slice());
        push_event(out, record, before, self.has_offsets.then_some(at.offset));
        if self.records > 0 && before.is_some() {
            std::mem::swap(&mut self.usual, &mut self.pending);
        }
        self.pending.clear();
        self.records += 1;
    }

    pub(crate) fn piece(&mut self, out: &mut Vec<u8>, piece: Piece<'_>, at: Place) {
        if !self.has_pieces {
            return;
        }
        let (kind, mut bytes) = match piece {
            Piece::Head([]) => {
                return push_piece(out, "head", b"", self.has_offsets.then_some(at.offset));
            }
            Piece::Head(bytes) => ("head", bytes),
            Piece::Tail(bytes) => ("tail", bytes),
            Piece::Separator(bytes) => (BETWEEN, bytes),
            Piece::Lost(_) if self.pending_kind == BETWEEN => {
                self.pending.clear();
                return;
            }
            Piece::Lost(_) => return self.flush(out),
        };
        if kind != self.pending_kind || kind == BETWEEN {
            self.flush(out);
        }
        self.pending_kind = kind;
        // Lines do not depend on how the bytes arrive.
        while !bytes.is_empty() {
            if self.pending.is_empty() {
                self.pending_at = at.offset;
            }
            let room = PIECE_BYTES_MAX.saturating_sub(self.pending.len());
            let (now, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
            self.pending.extend_from_slice(now);
            bytes = rest;
            if self.pending.len() >= PIECE_BYTES_MAX && kind != BETWEEN {
                self.flush(out);
                self.pending_kind = kind;
            }
        }
    }

    /// Writes what no event followed.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            push_piece(out, self.pending_kind, &self.pending, self.has_offsets.then_some(self.pending_at));
            self.pending.clear();
        }
        self.pending_kind = BETWEEN;
    }
}
