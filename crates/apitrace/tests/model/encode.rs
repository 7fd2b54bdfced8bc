//! The bytes of a trace.

use std::collections::BTreeSet;

use super::{Detail, Event, Frame, Trace, Value};
use crate::build::leb;

/// The raw stream.
pub fn encode(trace: &Trace) -> Vec<u8> {
    let mut encoder = Encoder { trace, known: Default::default(), out: vec![] };
    encoder.uint(trace.version);
    if trace.version >= 6 {
        encoder.uint(trace.version);
        for (name, value) in &trace.properties {
            encoder.bytes(name);
            encoder.bytes(value);
        }
        encoder.out.push(0);
    }
    let mut next = 0_u64;
    for event in &trace.events {
        match event {
            Event::Enter(thread, function, details) => {
                encoder.out.push(0);
                if trace.version >= 4 {
                    encoder.uint(*thread);
                }
                if encoder.id(0, *function) {
                    encoder.names(&trace.functions[function]);
                }
                encoder.details(details);
                next += 1;
            }
            Event::Leave(number, details) => {
                encoder.out.push(1);
                encoder.uint(*number);
                encoder.details(details);
            }
        }
    }
    assert!(next > 0 || trace.events.is_empty());
    encoder.out
}

struct Encoder<'a> {
    trace: &'a Trace,
    /// Ids defined so far: functions, structures, enumerations, masks, frames.
    known: [BTreeSet<u64>; 5],
    out: Vec<u8>,
}

impl Encoder<'_> {
    fn uint(&mut self, value: u64) {
        self.out.extend(leb(value));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.uint(bytes.len() as u64);
        self.out.extend(bytes);
    }

    fn sint(&mut self, value: i64) {
        self.out.push(if value < 0 { 3 } else { 4 });
        self.uint(value.unsigned_abs());
    }

    /// Writes an id; true if its definition must follow.
    fn id(&mut self, space: usize, id: u64) -> bool {
        self.uint(id);
        self.known[space].insert(id)
    }

    fn names(&mut self, names: &(Vec<u8>, Vec<Vec<u8>>)) {
        self.bytes(&names.0);
        self.uint(names.1.len() as u64);
        names.1.iter().for_each(|name| self.bytes(name));
    }

    fn details(&mut self, details: &[Detail]) {
        for detail in details {
            match detail {
                Detail::Argument(index, value) => {
                    self.out.push(1);
                    self.uint(*index);
                    self.value(value);
                }
                Detail::Return(value) => {
                    self.out.push(2);
                    self.value(value);
                }
                Detail::Frames(frames) => {
                    self.out.push(4);
                    self.uint(frames.len() as u64);
                    for frame in frames {
                        if self.id(4, *frame) {
                            self.frame(&self.trace.frames[frame]);
                        }
                    }
                }
                Detail::Flags(flags) => {
                    self.out.push(5);
                    self.uint(*flags);
                }
            }
        }
        self.out.push(0);
    }

    fn frame(&mut self, frame: &Frame) {
        for (code, text) in [(1, &frame.module), (2, &frame.function), (3, &frame.file)] {
            if let Some(text) = text {
                self.out.push(code);
                self.bytes(text);
            }
        }
        for (code, number) in [(4, frame.line), (5, frame.offset)] {
            if let Some(number) = number {
                self.out.push(code);
                self.uint(number);
            }
        }
        self.out.push(0);
    }

    fn coded(&mut self, code: u8, number: u64) {
        self.out.push(code);
        self.uint(number);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.out.push(0),
            Value::Bool(value) => self.out.push(1 + u8::from(*value)),
            Value::Minus(magnitude) => self.coded(3, *magnitude),
            Value::Number(value) => self.coded(4, *value),
            Value::Float(bits) => self.out.extend([&[5][..], &bits.to_le_bytes()].concat()),
            Value::Double(bits) => self.out.extend([&[6][..], &bits.to_le_bytes()].concat()),
            Value::Text(text) => {
                self.out.push(7);
                self.bytes(text);
            }
            Value::Blob(blob) => {
                self.out.push(8);
                self.bytes(blob);
            }
            Value::Enum(id, value) => {
                self.out.push(9);
                if self.id(2, *id) {
                    let values = &self.trace.enums[id];
                    if self.trace.version >= 3 {
                        self.uint(values.len() as u64);
                    }
                    for (name, value) in values {
                        self.bytes(name);
                        self.sint(*value);
                    }
                }
                if self.trace.version >= 3 {
                    self.sint(*value);
                }
            }
            Value::Mask(id, value) => {
                self.out.push(10);
                if self.id(3, *id) {
                    let flags = &self.trace.masks[id];
                    self.uint(flags.len() as u64);
                    for (name, value) in flags {
                        self.bytes(name);
                        self.uint(*value);
                    }
                }
                self.uint(*value);
            }
            Value::Array(values) => {
                self.coded(11, values.len() as u64);
                values.iter().for_each(|value| self.value(value));
            }
            Value::Struct(id, values) => {
                self.out.push(12);
                if self.id(1, *id) {
                    self.names(&self.trace.structs[id]);
                }
                values.iter().for_each(|value| self.value(value));
            }
            Value::Pointer(address) => self.coded(13, *address),
            Value::Pair(human, machine) => {
                self.out.push(14);
                self.value(human);
                self.value(machine);
            }
            Value::Wide(characters) => {
                self.coded(15, characters.len() as u64);
                characters.iter().for_each(|character| self.uint(*character));
            }
        }
    }
}
