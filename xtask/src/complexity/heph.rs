//! Shapes of Heph's events: big endian, a packet an event.

use super::jobs::Family::Heph;
use super::{FX, GOLDEN, Random, Row, inverse};

pub(super) const SHAPES: &[Row] = &[
    (
        "heph-flood",
        Heph,
        |n| all(n, |i| Event { substream: inverse(FX).wrapping_mul(i + 1).wrapping_sub(FX), ..Event::at(i) }),
        20_000,
    ),
    (
        "heph-flood-golden",
        Heph,
        |n| all(n, |i| Event { substream: inverse(GOLDEN).wrapping_mul(i + 1) ^ 1 << 40, ..Event::at(i) }),
        20_000,
    ),
    ("heph-random", Heph, random, 20_000),
    ("heph-streams", Heph, |n| all(n, |i| Event { stream: i as u32, counter: 0, ..Event::at(i) }), 20_000),
    ("heph-deep", Heph, |n| each(n, |n, i| Event { start: n - i, end: n + i, ..Event::at(i) }), 20_000),
    ("heph-deep-outermost-first", Heph, |n| each(n, |n, i| Event { start: i, end: 2 * n - i, ..Event::at(i) }), 20_000),
    ("heph-overlapping", Heph, |n| each(n, |n, i| Event { start: i, end: i + n, ..Event::at(i) }), 20_000),
    (
        "heph-overlapping-back",
        Heph,
        |n| each(n, |n, i| Event { start: n - i, end: 2 * n - i, counter: (n - i) as u32, ..Event::at(i) }),
        20_000,
    ),
    ("heph-names", Heph, |n| all(n, |i| Event { name: format!("name{i}"), ..Event::at(i) }), 20_000),
    ("heph-gaps", Heph, |n| all(n, |i| Event { counter: 2 * i as u32, ..Event::at(i) }), 20_000),
    ("heph-counters-back", Heph, |n| each(n, |n, i| Event { counter: 2 * (n - i) as u32, ..Event::at(i) }), 20_000),
    ("heph-epochs", Heph, |n| (0..n).flat_map(epoch).collect(), 20_000),
    ("heph-attributes", Heph, attributes, 20_000),
    ("heph-giant-attribute", Heph, giant, 200_000),
    (
        "heph-attribute-names",
        Heph,
        |n| all(n, |i| Event { attributes: number(&format!("at{i}"), i), ..Event::at(i) }),
        20_000,
    ),
    (
        "heph-values",
        Heph,
        |n| all(n, |i| Event { attributes: number("v", inverse(FX).wrapping_mul(i)), ..Event::at(i) }),
        20_000,
    ),
    ("heph-actors", Heph, |n| all(n, actor), 20_000),
    ("heph-no-magic", Heph, |n| 0xc1fc_1fb7_u32.to_be_bytes().repeat(n as usize), 20_000),
    ("heph-lengths-to-the-end", Heph, lengths, 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["heph-no-magic", "heph-lengths-to-the-end"];

struct Event {
    stream: u32,
    counter: u32,
    substream: u64,
    start: u64,
    end: u64,
    name: String,
    attributes: Vec<u8>,
}

impl Event {
    /// The event of that number, after the one before it.
    fn at(i: u64) -> Self {
        let (start, end) = (10 * i, 10 * i + 5);
        Self { stream: 1, counter: i as u32, substream: 0, start, end, name: "x".to_owned(), attributes: Vec::new() }
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        let length = 8 + 4 + 4 + 3 * 8 + 2 + self.name.len() + self.attributes.len();
        bytes.extend([0xc1fc_1fb7, length as u32, self.stream, self.counter].map(u32::to_be_bytes).concat());
        bytes.extend([self.substream, self.start, self.end].map(u64::to_be_bytes).concat());
        bytes.extend((self.name.len() as u16).to_be_bytes());
        bytes.extend(self.name.bytes());
        bytes.extend(&self.attributes);
    }
}

fn epoch(time: u64) -> Vec<u8> {
    let mut bytes = [0x75d1_1d4d_u32, 23].map(u32::to_be_bytes).concat();
    bytes.extend([0, 5]);
    bytes.extend(b"epoch");
    bytes.extend(time.to_be_bytes());
    bytes
}

fn each(count: u64, event: fn(u64, u64) -> Event) -> Vec<u8> {
    let mut bytes = epoch(1_610_113_734_118_010_000);
    (0..count).for_each(|i| event(count, i).write(&mut bytes));
    bytes
}

fn all(count: u64, event: fn(u64) -> Event) -> Vec<u8> {
    let mut bytes = epoch(1_610_113_734_118_010_000);
    (0..count).for_each(|i| event(i).write(&mut bytes));
    bytes
}

fn random(count: u64) -> Vec<u8> {
    let mut bytes = epoch(1_610_113_734_118_010_000);
    let mut random = Random(9);
    (0..count).for_each(|i| Event { substream: random.next(), ..Event::at(i) }.write(&mut bytes));
    bytes
}

fn key(name: &str, kind: u8) -> Vec<u8> {
    let mut bytes = (name.len() as u16).to_be_bytes().to_vec();
    bytes.extend(name.bytes());
    bytes.push(kind);
    bytes
}

fn number(name: &str, value: u64) -> Vec<u8> {
    let mut bytes = key(name, 1);
    bytes.extend(value.to_be_bytes());
    bytes
}

fn text(name: &str, value: &[u8]) -> Vec<u8> {
    let mut bytes = key(name, 4);
    bytes.extend((value.len() as u16).to_be_bytes());
    bytes.extend(value);
    bytes
}

/// One event with very many attributes.
fn attributes(count: u64) -> Vec<u8> {
    let attributes = (0..count).flat_map(|i| number(&format!("a{:02}", i % 100), i)).collect();
    all_of(Event { attributes, ..Event::at(1) })
}

/// Attributes as long as the format allows, of this many bytes in total.
fn giant(bytes: u64) -> Vec<u8> {
    let long = text("long", &vec![b'\\'; 60_000]);
    all_of(Event { attributes: long.repeat((bytes / 60_000).max(1) as usize), ..Event::at(1) })
}

fn all_of(event: Event) -> Vec<u8> {
    let mut bytes = epoch(1_610_113_734_118_010_000);
    event.write(&mut bytes);
    bytes
}

fn actor(i: u64) -> Event {
    let attributes = [number("id", inverse(FX).wrapping_mul(i + 1)), text("name", b"n")].concat();
    Event { name: "Running thread-local process".to_owned(), attributes, ..Event::at(i) }
}

/// Each packet claims to extend to the end of the file.
fn lengths(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..count {
        bytes.extend(
            [0xc1fc_1fb7, if i == 0 { 44 } else { 44 + (count - i) as u32 * 44 }].map(u32::to_be_bytes).concat(),
        );
        bytes.extend([0; 8 + 3 * 8]);
        bytes.extend([0, 1, 0xff, 0xff]);
    }
    bytes
}
