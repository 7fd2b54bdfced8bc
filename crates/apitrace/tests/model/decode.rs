//! A trace from its bytes. Any byte that does not fit the document fails the test.

use super::{Detail, Event, Frame, Names, Trace, Value};

/// Reads a raw stream of version 6.
pub fn decode(bytes: &[u8]) -> Trace {
    let mut decoder = Decoder { rest: bytes, trace: Trace { version: 6, ..Trace::default() } };
    assert_eq!((decoder.uint(), decoder.uint()), (6, 6), "the versions");
    loop {
        let name = decoder.bytes();
        if name.is_empty() {
            break;
        }
        let value = decoder.bytes();
        decoder.trace.properties.push((name, value));
    }
    while !decoder.rest.is_empty() {
        let event = match decoder.byte() {
            0 => {
                let (thread, function) = (decoder.uint(), decoder.uint());
                if !decoder.trace.functions.contains_key(&function) {
                    let names = decoder.names();
                    decoder.trace.functions.insert(function, names);
                }
                Event::Enter(thread, function, decoder.details())
            }
            1 => Event::Leave(decoder.uint(), decoder.details()),
            other => panic!("event {other}"),
        };
        decoder.trace.events.push(event);
    }
    decoder.trace
}

struct Decoder<'a> {
    rest: &'a [u8],
    trace: Trace,
}

impl Decoder<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (now, later) = self.rest.split_at(count);
        self.rest = later;
        now.to_vec()
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn uint(&mut self) -> u64 {
        let mut value = 0_u64;
        for shift in (0..).step_by(7) {
            let byte = self.byte();
            // A number may be longer than 64 bits; the rest counts for nothing.
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                break;
            }
        }
        value
    }

    fn sint(&mut self) -> i64 {
        match self.byte() {
            3 => (self.uint() as i64).wrapping_neg(),
            4 => self.uint() as i64,
            other => panic!("a signed number of type {other}"),
        }
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = self.uint() as usize;
        self.take(count)
    }

    fn list<V>(&mut self, mut one: impl FnMut(&mut Self) -> V) -> Vec<V> {
        (0..self.uint()).map(|_| one(self)).collect()
    }

    fn names(&mut self) -> Names {
        (self.bytes(), self.list(Self::bytes))
    }

    fn details(&mut self) -> Vec<Detail> {
        let mut details = Vec::new();
        loop {
            details.push(match self.byte() {
                0 => return details,
                1 => Detail::Argument(self.uint(), self.value()),
                2 => Detail::Return(self.value()),
                4 => Detail::Frames(self.list(Self::frame)),
                5 => Detail::Flags(self.uint()),
                other => panic!("detail {other}"),
            });
        }
    }

    fn frame(&mut self) -> u64 {
        let id = self.uint();
        if self.trace.frames.contains_key(&id) {
            return id;
        }
        let mut frame = Frame::default();
        loop {
            match self.byte() {
                0 => break,
                1 => frame.module = Some(self.bytes()),
                2 => frame.function = Some(self.bytes()),
                3 => frame.file = Some(self.bytes()),
                4 => frame.line = Some(self.uint()),
                5 => frame.offset = Some(self.uint()),
                other => panic!("frame detail {other}"),
            }
        }
        self.trace.frames.insert(id, frame);
        id
    }

    fn value(&mut self) -> Value {
        match self.byte() {
            0 => Value::Null,
            1 => Value::Bool(false),
            2 => Value::Bool(true),
            3 => Value::Minus(self.uint()),
            4 => Value::Number(self.uint()),
            5 => Value::Float(u32::from_le_bytes(self.take(4).try_into().unwrap())),
            6 => Value::Double(u64::from_le_bytes(self.take(8).try_into().unwrap())),
            7 => Value::Text(self.bytes()),
            8 => Value::Blob(self.bytes()),
            9 => {
                let id = self.uint();
                if !self.trace.enums.contains_key(&id) {
                    let values = self.list(|d| (d.bytes(), d.sint()));
                    self.trace.enums.insert(id, values);
                }
                Value::Enum(id, self.sint())
            }
            10 => {
                let id = self.uint();
                if !self.trace.masks.contains_key(&id) {
                    let flags = self.list(|d| (d.bytes(), d.uint()));
                    self.trace.masks.insert(id, flags);
                }
                Value::Mask(id, self.uint())
            }
            11 => Value::Array(self.list(Self::value)),
            12 => {
                let id = self.uint();
                if !self.trace.structs.contains_key(&id) {
                    let names = self.names();
                    self.trace.structs.insert(id, names);
                }
                let count = self.trace.structs[&id].1.len();
                Value::Struct(id, (0..count).map(|_| self.value()).collect())
            }
            13 => Value::Pointer(self.uint()),
            14 => Value::Pair(Box::new(self.value()), Box::new(self.value())),
            15 => Value::Wide(self.list(Self::uint)),
            other => panic!("value {other}"),
        }
    }
}
