//! The values of events that `anytrace convert --to ctf` writes: the book's chapter of that output has their fields.

use anytrace_core::span::{EdgeFlags, Items, Value};

use super::names::{NameNumber, Names};
use crate::wire::decode::{Scalar, Shape, Visitor, label};

/// An event.
#[derive(Debug, Default)]
pub(super) struct OwnEvent {
    pub(super) track: u64,
    pub(super) process: u64,
    pub(super) thread: u64,
    pub(super) processor: i64,
    pub(super) name: Vec<u8>,
    pub(super) place: Vec<u8>,
    pub(super) process_name: Vec<u8>,
    pub(super) lane: u32,
    pub(super) is_task: bool,
    pub(super) arrow: u64,
    pub(super) flags: EdgeFlags,
    /// The value of a counter.
    pub(super) value: Vec<u8>,
    /// Keys and values in turn.
    pub(super) attributes: Vec<u8>,
}

/// Reads one.
pub(super) struct OwnVisitor<'a> {
    pub(super) into: &'a mut OwnEvent,
    names: &'a mut Names,
    depth: u32,
    is_context: bool,
    key: Option<NameNumber>,
    kind: Vec<u8>,
    /// The bytes of a value that is no text, while they are read.
    bytes: Option<Vec<u8>>,
}

impl<'a> OwnVisitor<'a> {
    pub(super) fn new(into: &'a mut OwnEvent, names: &'a mut Names) -> Self {
        *into = OwnEvent { processor: -1, ..OwnEvent::default() };
        Self { into, names, depth: 0, is_context: false, key: None, kind: Vec::new(), bytes: None }
    }

    /// A value of any type, as its kind says.
    fn any(&mut self, value: Scalar<'_>) {
        let value = match (value, self.kind.as_slice()) {
            (Scalar::U64(value, _), b"boolean") => Value::Bool(value != 0),
            (Scalar::U64(value, _), b"address") => Value::Address(value),
            (Scalar::U64(value, _), _) => Value::U64(value),
            (Scalar::I64(value), _) => Value::I64(value),
            (Scalar::F64(value), _) => Value::F64(value),
            (Scalar::F32(value), _) => Value::F64(value.into()),
            (Scalar::Text(text), _) => Value::Text(text),
            (Scalar::Label(..), _) => return,
        };
        put(self.into, self.key.take(), value);
    }
}

fn put(into: &mut OwnEvent, key: Option<NameNumber>, value: Value<'_>) {
    match key {
        Some(key) => {
            Items::push(&mut into.attributes, Value::U64(key.into()));
            Items::push(&mut into.attributes, value);
        }
        None => {
            into.value.clear();
            Items::push(&mut into.value, value);
        }
    }
}

impl Visitor for OwnVisitor<'_> {
    fn value(&mut self, name: &str, value: Scalar<'_>) {
        if let Some(bytes) = &mut self.bytes {
            if let (Scalar::U64(byte, _), "") = (value, name) {
                bytes.push(byte as u8);
            }
            return;
        }
        let into = &mut *self.into;
        match (name, value) {
            ("track", Scalar::U64(track, _)) if self.is_context => into.track = track,
            ("vpid", Scalar::U64(process, _)) if self.is_context => into.process = process,
            ("vtid", Scalar::U64(thread, _)) if self.is_context => into.thread = thread,
            ("cpu", Scalar::I64(cpu)) if self.is_context => into.processor = cpu,
            ("key", Scalar::Text(key)) => self.key = Some(self.names.number(key)),
            ("kind", Scalar::Label(value, labels)) => {
                self.kind.clear();
                self.kind.extend_from_slice(label(value, labels).unwrap_or_default().as_bytes());
            }
            ("value", value) => self.any(value),
            _ if self.is_context || self.depth != 1 => {}
            ("name", Scalar::Text(text)) => into.name.extend_from_slice(text),
            ("src", Scalar::Text(text)) => into.place.extend_from_slice(text),
            ("process_name", Scalar::Text(text)) => into.process_name.extend_from_slice(text),
            ("lane", Scalar::U64(lane, _)) => into.lane = lane as u32,
            ("is_task", Scalar::U64(is, _)) => into.is_task = is != 0,
            ("id", Scalar::U64(arrow, _)) => into.arrow = arrow,
            ("flags", Scalar::Text(words)) => into.flags = flags(words),
            _ => {}
        }
    }

    fn enter(&mut self, name: &str, _: Shape) {
        match self.depth {
            0 => self.is_context = name == "stream.event.context",
            _ if name == "value" => self.bytes = Some(Vec::new()),
            _ => {}
        }
        self.depth += 1;
    }

    fn leave(&mut self, shape: Shape) {
        self.depth = self.depth.saturating_sub(1);
        if shape == Shape::Structure
            && let Some(bytes) = self.bytes.take()
        {
            put(self.into, self.key.take(), Value::Bytes(&bytes));
        }
    }
}

/// Flags by their words.
fn flags(words: &[u8]) -> EdgeFlags {
    let all = [EdgeFlags::TAIL, EdgeFlags::DEDUCED, EdgeFlags::UNFINISHED, EdgeFlags::ORPHAN, EdgeFlags::CHAINED];
    let mut flags = EdgeFlags::NONE;
    for word in words.split(|byte| *byte == b' ') {
        let known = all.into_iter().find(|flag| flag.words().any(|own| own.as_bytes() == word));
        flags = known.map_or(flags, |flag| flags.with(flag));
    }
    flags
}
