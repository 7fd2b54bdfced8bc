//! Shapes of Perfetto's packets.

use super::Row;
use super::jobs::Family::Perfetto;

pub(super) const SHAPES: &[Row] = &[
    ("pf-deep", Perfetto, |n| each(n, |n, i| event(i, 1 + u64::from(i >= n / 2), 7)), 20_000),
    ("pf-begins", Perfetto, |n| each(n, |_, i| event(i, 1, 7)), 20_000),
    ("pf-ends", Perfetto, |n| each(n, |_, i| event(i, 2, 7)), 20_000),
    ("pf-back", Perfetto, |n| each(n, |n, i| event(n - i, 1 + i % 2, 7)), 20_000),
    ("pf-tracks", Perfetto, |n| each(n, |_, i| event(i, 3, i)), 20_000),
    ("pf-complete", Perfetto, |n| each(n, |n, i| complete(i, n - i)), 20_000),
    ("pf-names", Perfetto, |n| each(n, |_, i| named(i)), 20_000),
    ("pf-iids", Perfetto, |n| each(n, |_, i| interned(i << (i % 40))), 20_000),
    ("pf-clocks", Perfetto, |n| each(n, |n, i| snapshot(n - i)), 5_000),
    ("pf-parents", Perfetto, |n| each(n, |_, i| [descriptor(i + 1, i), event(i, 3, i + 1)].concat()), 10_000),
    ("pf-annotations", Perfetto, annotations, 2_000),
    ("pf-tags", Perfetto, |n| [event(1, 3, 7), vec![0x0a; n as usize], event(2, 3, 7)].concat(), 100_000),
    ("pf-lengths", Perfetto, |n| [event(1, 3, 7), b"\x0a\xff\xff\x3f\x40\x05".repeat(n as usize)].concat(), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["pf-tags", "pf-lengths"];

fn each(n: u64, make: impl Fn(u64, u64) -> Vec<u8>) -> Vec<u8> {
    (0..n).flat_map(|i| make(n, i)).collect()
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, field << 3);
    varint(&mut out, value);
    out
}

fn message(field: u64, inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    varint(&mut out, field << 3 | 2);
    varint(&mut out, inner.len() as u64);
    out.extend_from_slice(inner);
    out
}

fn packet(parts: &[Vec<u8>]) -> Vec<u8> {
    message(1, &[number(10, 1), parts.concat()].concat())
}

fn event(time: u64, kind: u64, track: u64) -> Vec<u8> {
    packet(&[number(8, 1000 + time), message(11, &[number(9, kind), number(11, track)].concat())])
}

fn complete(time: u64, length: u64) -> Vec<u8> {
    let legacy = [number(2, b'X'.into()), number(3, length)].concat();
    packet(&[number(8, 1000 + time), message(11, &[message(6, &legacy), number(11, 7)].concat())])
}

fn named(at: u64) -> Vec<u8> {
    let name = message(23, format!("name {at}").as_bytes());
    packet(&[number(8, 1000 + at), message(11, &[number(9, 3), number(11, 7), name].concat())])
}

fn interned(iid: u64) -> Vec<u8> {
    packet(&[message(12, &message(2, &[number(1, iid), message(2, b"name")].concat()))])
}

fn snapshot(time: u64) -> Vec<u8> {
    let clock = |id, time| message(1, &[number(1, id), number(2, time)].concat());
    packet(&[message(6, &[clock(6, 1000 + time), clock(3, time)].concat())])
}

fn descriptor(uuid: u64, parent: u64) -> Vec<u8> {
    packet(&[message(60, &[number(1, uuid), number(5, parent)].concat())])
}

/// One event with annotations in annotations, and many beside them.
fn annotations(n: u64) -> Vec<u8> {
    let mut deep = Vec::new();
    for _ in 0..n.min(5000) {
        deep = message(11, &deep);
    }
    let many: Vec<u8> =
        (0..n).flat_map(|i| message(4, &[message(10, format!("k{i}").as_bytes()), number(3, i)].concat())).collect();
    let parts = [number(9, 3), number(11, 7), message(4, &deep), many].concat();
    packet(&[number(8, 1000), message(11, &parts)])
}
