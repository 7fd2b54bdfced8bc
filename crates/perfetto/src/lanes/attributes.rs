//! What an event has beside time, track and name: attributes, arrows, processor and flags, as bytes in the store.

use anytrace_core::span::{EdgeFlags, Items, Value};

use crate::model::event::Event;
use crate::model::names::{CATEGORY, CPU, FLAGS, NO_ROOM, NameNumber};
use crate::model::session::Session;
use crate::wire::proto::{self, Fields, each_fixed64, each_number, push_varint, varint};

const ATTRIBUTE: u8 = 1;
const FLOW: u8 = 2;
const FLOW_END: u8 = 3;
const FLOW_IN: u8 = 4;
const PROCESSOR: u8 = 5;
const WORDS: u8 = 6;

/// Deepest nesting of annotations that is kept; deeper ones are left out.
const DEPTH_MAX: usize = 8;
/// Most attributes of an event.
const ATTRIBUTES_MAX: usize = 1000;

/// One of them, read back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part<'a> {
    Attribute(NameNumber, Value<'a>),
    /// An arrow's number: it begins here, or comes and goes on.
    Flow(u64),
    /// It ends here.
    FlowEnd(u64),
    /// It comes and goes on, wherever else it is.
    FlowIn(u64),
    Processor(u16),
    Flags(EdgeFlags),
}

/// Appends an attribute.
pub(super) fn push(out: &mut Vec<u8>, key: NameNumber, value: Value<'_>) {
    let mut item = Vec::new();
    Items::push(&mut item, value);
    out.push(ATTRIBUTE);
    push_varint(out, key.into(), 0);
    push_varint(out, item.len() as u64, 0);
    out.extend_from_slice(&item);
}

fn push_number(out: &mut Vec<u8>, what: u8, number: u64) {
    out.push(what);
    push_varint(out, number, 0);
}

/// Reads parts back.
pub(super) fn parts(bytes: &[u8]) -> impl Iterator<Item = Part<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let what = *bytes.get(at)?;
        let (number, next) = varint(bytes, at + 1)?;
        at = next;
        Some(match what {
            ATTRIBUTE => {
                let (length, start) = varint(bytes, at)?;
                at = start.checked_add(usize::try_from(length).ok()?)?;
                let value = Items::of(bytes.get(start..at)?).next()?;
                Part::Attribute(NameNumber::try_from(number).ok()?, value)
            }
            FLOW => Part::Flow(number),
            FLOW_END => Part::FlowEnd(number),
            FLOW_IN => Part::FlowIn(number),
            PROCESSOR => Part::Processor(u16::try_from(number).ok()?),
            _ => Part::Flags(EdgeFlags(u8::try_from(number).ok()?)),
        })
    })
}

/// What of an event is wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    pub(super) attributes: bool,
    pub(super) arrows: bool,
    /// Values of counters.
    pub(super) counters: bool,
}

/// Appends the parts of an event; returns false where a field cannot be read.
pub(super) fn append(
    out: &mut Vec<u8>,
    bytes: &[u8],
    event: &Event,
    sequence: usize,
    session: &mut Session,
    wanted: Wanted,
) -> bool {
    if let Some((id, comes, goes)) = event.bound.filter(|_| wanted.arrows) {
        push_number(
            out,
            if comes && goes {
                FLOW_IN
            } else if comes {
                FLOW_END
            } else {
                FLOW
            },
            id,
        );
    }
    // Annotations may have an edge's processor and flags, which are wanted always.
    let has_wanted =
        event.has_annotations || (event.has_attributes && wanted.attributes) || (event.has_flows && wanted.arrows);
    if !has_wanted {
        return true;
    }
    let mut writer = AttributeWriter { out, sequence, session, wanted, left: ATTRIBUTES_MAX, is_complete: true };
    writer.event(bytes);
    writer.is_complete
}

struct AttributeWriter<'a> {
    out: &'a mut Vec<u8>,
    sequence: usize,
    session: &'a mut Session,
    wanted: Wanted,
    left: usize,
    is_complete: bool,
}

impl AttributeWriter<'_> {
    fn event(&mut self, bytes: &[u8]) {
        let mut categories = Vec::new();
        for field in Fields::of(bytes) {
            let value = field.value;
            match field.number {
                4 => self.annotation(&[], value.bytes(), 0),
                36 | 47 if self.wanted.arrows => self.flows(FLOW, value),
                42 | 48 if self.wanted.arrows => self.flows(FLOW_END, value),
                _ if !self.wanted.attributes => {}
                3 => each_number(value, |iid| {
                    let name = self.session.sequences.get(self.sequence).and_then(|state| state.categories.get(iid));
                    push_word(&mut categories, name.map_or(b"?", |name| self.session.names.get(name)));
                }),
                22 => push_word(&mut categories, value.bytes()),
                5 => self.posted_from(value.bytes()),
                21 => self.log_message(value.bytes()),
                52 => self.named(b"correlation id", Value::U64(value.number())),
                53 => self.named(b"correlation id", Value::Text(value.bytes())),
                _ => {}
            }
        }
        if !categories.is_empty() {
            push(self.out, CATEGORY, Value::Text(&categories));
        }
    }

    fn flows(&mut self, what: u8, value: proto::Value<'_>) {
        let out = &mut *self.out;
        // The new fields are fixed64, the old ones varints; both may be packed.
        match value {
            proto::Value::Bytes(bytes) if bytes.len() % 8 == 0 => each_fixed64(value, |id| push_number(out, what, id)),
            _ => each_number(value, |id| push_number(out, what, id)),
        }
    }

    fn named(&mut self, key: &[u8], value: Value<'_>) {
        let key = self.session.names.number(key);
        push(self.out, key, value);
    }

    fn posted_from(&mut self, bytes: &[u8]) {
        let iid = Fields::of(bytes).find(|field| field.number == 1).map_or(0, |field| field.value.number());
        self.place_of(b"posted from", iid);
    }

    fn place_of(&mut self, key: &[u8], iid: u64) {
        let state = self.session.sequences.get(self.sequence);
        let place = state.and_then(|state| state.places.get(iid));
        let Some(place) = place.and_then(|place| self.session.names.place_of(place)) else { return };
        let text = format!("{}:{}", place.file, place.line);
        self.named(key, Value::Text(text.as_bytes()));
    }

    fn log_message(&mut self, bytes: &[u8]) {
        for field in Fields::of(bytes) {
            let number = field.value.number();
            match field.number {
                1 => self.place_of(b"log source", number),
                2 => {
                    let state = self.session.sequences.get(self.sequence);
                    let Some(body) = state.and_then(|state| state.bodies.get(number)) else { continue };
                    let text = self.session.names.get(body).to_vec();
                    self.named(b"log message", Value::Text(&text));
                }
                _ => {}
            }
        }
    }

    /// A `DebugAnnotation` below the key `outer`. Dictionaries become keys with dots, arrays of plain values arrays.
    fn annotation(&mut self, outer: &[u8], bytes: &[u8], depth: usize) {
        let mut name = None;
        let mut fields = Fields::of(bytes);
        for field in fields.by_ref() {
            match field.number {
                1 => {
                    let state = self.session.sequences.get(self.sequence);
                    let number = state.and_then(|state| state.annotation_names.get(field.value.number()));
                    let unknown = || self.session.names.number(b"(unknown)");
                    name = Some(number.unwrap_or_else(unknown));
                }
                10 => name = Some(self.session.names.number(field.value.bytes())),
                _ => {}
            }
        }
        self.is_complete &= fields.fault().is_none();
        let name = name.unwrap_or(NO_ROOM);
        if outer.is_empty() && (name == CPU || name == FLAGS) && self.own(name, bytes) {
            return;
        }
        if !self.wanted.attributes || depth >= DEPTH_MAX || self.left == 0 {
            return;
        }
        self.left -= 1;
        if outer.is_empty() {
            self.value(name, bytes, depth);
        } else {
            let path = [outer, b".", self.session.names.get(name)].concat();
            let key = self.session.names.number(&path);
            self.value(key, bytes, depth);
        }
    }

    /// The processor or the flags of an edge, as anytrace writes them; false if it is something else.
    fn own(&mut self, name: NameNumber, bytes: &[u8]) -> bool {
        for field in Fields::of(bytes) {
            match (name, field.number) {
                (CPU, 4) => {
                    let number = field.value.number();
                    let is_processor = number < u64::from(u16::MAX);
                    if is_processor {
                        push_number(self.out, PROCESSOR, number);
                    }
                    return is_processor;
                }
                (FLAGS, 6) => {
                    let flags = flags(field.value.bytes());
                    if let Some(flags) = flags {
                        push_number(self.out, WORDS, flags.0.into());
                    }
                    return flags.is_some();
                }
                _ => {}
            }
        }
        false
    }

    fn value(&mut self, key: NameNumber, bytes: &[u8], depth: usize) {
        let mut items = Vec::new();
        let (mut has_items, mut dictionary) = (false, 0_usize);
        for field in Fields::of(bytes) {
            match field.number {
                11 => {
                    if let Some(hex) = hex_only(field.value.bytes()).filter(|_| dictionary == 0) {
                        push(self.out, key, Value::Bytes(&hex));
                        continue;
                    }
                    dictionary += 1;
                    let outer = self.session.names.get(key).to_vec();
                    self.annotation(&outer, field.value.bytes(), depth + 1);
                }
                12 => {
                    has_items = true;
                    self.item(&mut items, key, field.value.bytes(), depth + 1);
                }
                8 => self.named_nested(key, field.value.bytes(), depth + 1),
                _ => {
                    let mut scratch = Vec::new();
                    if let Some(value) = scalar(&field, self.sequence, self.session, &mut scratch) {
                        push(self.out, key, value);
                    }
                }
            }
        }
        if has_items {
            push(self.out, key, Value::Array(Items::of(&items)));
        }
    }

    /// A value of an array: plain values and arrays are items of it, dictionaries keys below it.
    fn item(&mut self, items: &mut Vec<u8>, key: NameNumber, bytes: &[u8], depth: usize) {
        if depth >= DEPTH_MAX || self.left == 0 {
            return;
        }
        self.left -= 1;
        let (mut inner, mut is_array) = (Vec::new(), false);
        for field in Fields::of(bytes) {
            match field.number {
                12 => {
                    is_array = true;
                    self.item(&mut inner, key, field.value.bytes(), depth + 1);
                }
                11 => {
                    let outer = self.session.names.get(key).to_vec();
                    self.annotation(&outer, field.value.bytes(), depth + 1);
                }
                _ => {
                    let mut scratch = Vec::new();
                    if let Some(value) = scalar(&field, self.sequence, self.session, &mut scratch) {
                        Items::push(items, value);
                    }
                }
            }
        }
        if is_array {
            Items::push(items, Value::Array(Items::of(&inner)));
        }
    }

    /// A `NestedValue`, which old traces have.
    fn named_nested(&mut self, key: NameNumber, bytes: &[u8], depth: usize) {
        if depth >= DEPTH_MAX || self.left == 0 {
            return;
        }
        self.left -= 1;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for field in Fields::of(bytes) {
            match field.number {
                2 => keys.push(field.value.bytes()),
                3 => values.push(field.value.bytes()),
                4 => self.named_nested(key, field.value.bytes(), depth + 1),
                5 => push(self.out, key, Value::I64(field.value.number().cast_signed())),
                6 => push(self.out, key, Value::F64(field.value.float())),
                7 => push(self.out, key, Value::Bool(field.value.is_true())),
                8 => push(self.out, key, Value::Text(field.value.bytes())),
                _ => {}
            }
        }
        for (name, value) in keys.into_iter().zip(values) {
            let path = [self.session.names.get(key), b".", name].concat();
            let inner = self.session.names.number(&path);
            self.named_nested(inner, value, depth + 1);
        }
    }
}

fn push_word(words: &mut Vec<u8>, word: &[u8]) {
    if !words.is_empty() {
        words.push(b',');
    }
    words.extend_from_slice(word);
}

/// A plain value of a `DebugAnnotation`.
fn scalar<'v>(
    field: &proto::Field<'v>,
    sequence: usize,
    session: &mut Session,
    scratch: &'v mut Vec<u8>,
) -> Option<Value<'v>> {
    Some(match field.number {
        2 => Value::Bool(field.value.is_true()),
        3 => Value::U64(field.value.number()),
        4 => Value::I64(field.value.number().cast_signed()),
        5 => Value::F64(field.value.float()),
        6 | 9 => Value::Text(field.value.bytes()),
        7 => Value::Address(field.value.number()),
        14 => Value::Bytes(field.value.bytes()),
        17 => {
            let text = session.sequences.get(sequence)?.strings.get(field.value.number())?;
            scratch.extend_from_slice(session.names.get(text));
            Value::Text(scratch)
        }
        _ => return None,
    })
}

/// The bytes of a dictionary entry `hex`, in which anytrace writes bytes that are not text.
fn hex_only(entry: &[u8]) -> Option<Vec<u8>> {
    let mut is_hex = false;
    let mut bytes = None;
    for field in Fields::of(entry) {
        match field.number {
            10 => is_hex = field.value.bytes() == b"hex",
            6 => bytes = std::str::from_utf8(field.value.bytes()).ok().and_then(anytrace_core::text::parse_hex_bytes),
            _ => return None,
        }
    }
    bytes.filter(|_| is_hex)
}

/// Flags by their words; `None` if a word is none.
fn flags(text: &[u8]) -> Option<EdgeFlags> {
    let all = [EdgeFlags::TAIL, EdgeFlags::DEDUCED, EdgeFlags::UNFINISHED, EdgeFlags::ORPHAN, EdgeFlags::CHAINED];
    let mut flags = EdgeFlags::NONE;
    for word in text.split(|byte| *byte == b' ') {
        let found = all.iter().find(|flag| flag.words().any(|own| own.as_bytes() == word))?;
        flags = flags.with(*found);
    }
    Some(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_as_they_were_pushed() {
        let mut out = Vec::new();
        push(&mut out, 7, Value::Text(b"seven"));
        push_number(&mut out, FLOW, u64::MAX);
        push_number(&mut out, PROCESSOR, 3);
        push_number(&mut out, WORDS, 12);
        let found: Vec<_> = parts(&out).collect();
        let expected = [
            Part::Attribute(7, Value::Text(b"seven")),
            Part::Flow(u64::MAX),
            Part::Processor(3),
            Part::Flags(EdgeFlags::UNFINISHED.with(EdgeFlags::ORPHAN)),
        ];
        assert_eq!(found, expected);
        assert_eq!(flags(b"unfinished orphan"), Some(EdgeFlags::UNFINISHED.with(EdgeFlags::ORPHAN)));
        assert_eq!(flags(b"unfinished business"), None);
    }

    #[test]
    fn an_entry_hex_is_bytes() {
        assert_eq!(hex_only(b"\x52\x03hex\x32\x0400ff"), Some(vec![0, 255]));
        assert_eq!(hex_only(b"\x52\x03key\x32\x0400ff"), None);
        assert_eq!(hex_only(b"\x52\x03hex\x32\x040xff"), None);
    }
}
