//! Shapes of memory traces: accesses of 18 bytes, regions added and removed, as Cacheray writes them (little endian).

use super::jobs::Family::{Cacheray, Lackey};
use super::{Random, Row, colliding};

pub(super) const SHAPES: &[Row] = &[
    ("cr-flood", Cacheray, |n| accesses(colliding(58).take(n as usize)), 20_000),
    ("cr-random", Cacheray, random, 20_000),
    ("cr-nested", Cacheray, |n| overlapping(n, |n, i| 2 * (n - i) + 8, |n, i| n - 1 - i), 20_000),
    ("cr-nested-fifo", Cacheray, |n| overlapping(n, |_, _| 1 << 20, |_, i| i), 20_000),
    ("cr-same-start", Cacheray, same_start, 20_000),
    ("cr-shredded", Cacheray, shredded, 20_000),
    ("cr-live", Cacheray, live, 20_000),
    ("cr-threads", Cacheray, threads, 20_000),
    ("cr-threads-one-line", Cacheray, |n| crowd(n, 300, 1), 40_000),
    ("cr-threads-64-lines", Cacheray, |n| crowd(n, 1_000, 64), 100_000),
    ("cr-types", Cacheray, types, 20_000),
    ("cr-bytes", Cacheray, |n| (0..n * 16).map(|i| (i % 251) as u8).collect(), 20_000),
    ("lk-flood", Lackey, |n| lines(colliding(58).take(n as usize)), 20_000),
    ("lk-random", Lackey, |n| lines(addresses(n)), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["cr-bytes"];

fn access(bytes: &mut Vec<u8>, writes: bool, address: u64, thread: u64) {
    bytes.push(u8::from(writes));
    bytes.extend(address.to_le_bytes());
    bytes.push(8);
    bytes.extend(thread.to_le_bytes());
}

fn add(bytes: &mut Vec<u8>, address: u64, size: u32, name: &str) {
    bytes.push(2);
    bytes.extend([address, 1].map(u64::to_le_bytes).concat());
    bytes.extend([size, 1, name.len() as u32].map(u32::to_le_bytes).concat());
    bytes.extend(name.bytes());
}

fn remove(bytes: &mut Vec<u8>, address: u64) {
    bytes.push(3);
    bytes.extend([address, 1].map(u64::to_le_bytes).concat());
}

fn accesses(lines: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    lines.for_each(|line| access(&mut bytes, line & 1 == 1, line << 6, 1));
    bytes
}

fn addresses(count: u64) -> impl Iterator<Item = u64> {
    let mut random = Random(5);
    (0..count).map(move |_| random.next() >> 6)
}

fn random(count: u64) -> Vec<u8> {
    accesses(addresses(count))
}

fn lines(lines: impl Iterator<Item = u64>) -> Vec<u8> {
    lines.flat_map(|line| format!(" L {:x},8\n", line << 6).into_bytes()).collect()
}

/// Regions that begin one byte after another, then accesses inside of all, then the removes.
fn overlapping(count: u64, size: fn(u64, u64) -> u64, removed: fn(u64, u64) -> u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|i| add(&mut bytes, 0x10000 + i, size(count, i) as u32, "ab"));
    (0..count).for_each(|i| access(&mut bytes, false, 0x10000 + count + i % 7, 1));
    (0..count).for_each(|i| remove(&mut bytes, 0x10000 + removed(count, i)));
    bytes
}

fn same_start(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|i| add(&mut bytes, 0x10000, 64 + (i % 5) as u32 * 64, "ab"));
    (0..count).for_each(|i| access(&mut bytes, false, 0x10000 + i % 60, 1));
    (0..count).for_each(|_| remove(&mut bytes, 0x10000));
    bytes
}

/// One region over many small ones comes and goes.
fn shredded(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|i| add(&mut bytes, 0x10000 + 64 * i, 32, "ab"));
    for _ in 0..count {
        add(&mut bytes, 0x10000, 64 * count as u32, "cd");
        remove(&mut bytes, 0x10000);
    }
    bytes
}

/// Many regions live at once, touched in no order.
fn live(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut random = Random(7);
    (0..count).for_each(|i| add(&mut bytes, 0x10000 + 4096 * i, 64, "node"));
    (0..4 * count).for_each(|i| access(&mut bytes, i & 1 == 1, 0x10000 + 4096 * (random.next() % count) + 8, 1));
    bytes
}

fn threads(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    (0..count).for_each(|i| access(&mut bytes, true, 0x10000 + i % 8 * 8, i));
    bytes
}

/// Many threads on few lines: one writes what all others read.
fn crowd(count: u64, threads: u64, lines: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..count {
        let thread = i % threads;
        access(&mut bytes, thread == 0 || i % 31 == 0, 0x10000 + i / threads % lines * 64 + thread % 8 * 8, thread);
    }
    bytes
}

fn types(count: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for i in 0..count {
        add(&mut bytes, 0x10000 + 64 * i, 32, &format!("struct.t{i}"));
        access(&mut bytes, false, 0x10000 + 64 * i, 1);
    }
    bytes
}
