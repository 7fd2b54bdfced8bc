//! Shapes of Fuchsia's records.

use super::Row;
use super::jobs::Family::Fuchsia;

pub(super) const SHAPES: &[Row] = &[
    ("fx-deep", Fuchsia, |n| each(n, |n, i| event(if i < n / 2 { 2 } else { 3 }, i, 1, &[])), 20_000),
    ("fx-begins", Fuchsia, |n| each(n, |_, i| event(2, i, 1, &[])), 20_000),
    ("fx-ends", Fuchsia, |n| each(n, |_, i| event(3, i, 1, &[])), 20_000),
    ("fx-back", Fuchsia, |n| each(n, |n, i| event(4, n - i, 1, &[n - i + 1])), 20_000),
    ("fx-nested", Fuchsia, |n| each(n, |n, i| event(4, n - i, 1, &[n + i])), 20_000),
    ("fx-threads", Fuchsia, |n| each(n, |_, i| event(0, i, i, &[])), 20_000),
    (
        "fx-async",
        Fuchsia,
        |n| each(n, |n, i| event(if i < n / 2 { 5 } else { 7 }, i, 1, &[i % (n / 2).max(1)])),
        10_000,
    ),
    ("fx-flows", Fuchsia, |n| each(n, |_, i| event(8 + i % 3, i, 1, &[i])), 10_000),
    ("fx-strings", Fuchsia, |n| each(n, |_, i| record(2, 1 << 16 | 8 << 32, &[i + 1])), 20_000),
    ("fx-objects", Fuchsia, |n| each(n, |_, i| record(7, 2 << 16, &[i])), 20_000),
    ("fx-providers", Fuchsia, |n| each(n, |_, i| [section(i), record(1, 0, &[1000 + i])].concat()), 10_000),
    ("fx-switches", Fuchsia, |n| each(n, |_, i| record(8, 1 << 60 | (i % 8) << 20, &[i, i, i + 1])), 20_000),
    ("fx-unknown", Fuchsia, |n| each(n, |_, i| record(10 + i % 5, 0, &[i])), 20_000),
    ("fx-zeros", Fuchsia, |n| each(n, |_, _| vec![0; 8]), 20_000),
    ("fx-lengths", Fuchsia, |n| each(n, |_, _| 0xfff4_u64.to_le_bytes().to_vec()), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["fx-zeros", "fx-lengths"];

fn each(n: u64, make: impl Fn(u64, u64) -> Vec<u8>) -> Vec<u8> {
    let start = [0x0016_5478_4604_0010_u64.to_le_bytes().to_vec(), record(1, 0, &[1_000_000_000])].concat();
    start.into_iter().chain((0..n).flat_map(|i| make(n, i))).collect()
}

fn record(kind: u64, fields: u64, body: &[u64]) -> Vec<u8> {
    let head = kind | (body.len() as u64 + 1) << 4 | fields;
    std::iter::once(head).chain(body.iter().copied()).flat_map(u64::to_le_bytes).collect()
}

fn section(provider: u64) -> Vec<u8> {
    record(0, 2 << 16 | provider << 20, &[])
}

/// An event of a thread, with the inline name "f".
fn event(kind: u64, time: u64, thread: u64, more: &[u64]) -> Vec<u8> {
    let body = [&[1000 + time, 1, thread, u64::from(b'f')], more].concat();
    let more = if kind == 4 { vec![1000 + more.first().copied().unwrap_or(0)] } else { more.to_vec() };
    let body = [&body[..4], &more].concat();
    record(4, kind << 16 | 0x8001 << 48, &body)
}
