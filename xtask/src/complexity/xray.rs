//! Shapes of XRay's flight data records, version 5.

use super::Row;
use super::jobs::Family::Xray;

pub(super) const SHAPES: &[Row] = &[
    ("xr-deep", Xray, |n| one(&(0..n).flat_map(|i| call(ENTER, 1 + i % 1000)).collect::<Vec<_>>()), 20_000),
    ("xr-recursion", Xray, recursion, 4_000),
    ("xr-deep-functions", Xray, deep_functions, 4_000),
    ("xr-exits-of-nothing", Xray, exits, 20_000),
    (
        "xr-exits-to-the-bottom",
        Xray,
        |n| {
            one(&[call(ENTER, 9).to_vec(), rows(n, |_| [call(ENTER, 1), call(ENTER, 2), call(EXIT, 1)].concat())]
                .concat())
        },
        20_000,
    ),
    ("xr-tails", Xray, |n| one(&rows(n, |i| [call(ENTER, 1 + i), call(TAIL, 1 + i)].concat())), 20_000),
    ("xr-functions", Xray, |n| one(&rows(n, |i| [call(ENTER, 1 + i), call(EXIT, 1 + i)].concat())), 20_000),
    (
        "xr-siblings",
        Xray,
        |n| one(&[call(ENTER, 1).to_vec(), rows(n, |i| [call(ENTER, 2 + i), call(EXIT, 2 + i)].concat())].concat()),
        20_000,
    ),
    ("xr-buffers-back", Xray, |n| file(n, |n, i| (1 + i % 3, pair(1), (n - i) * 100)), 20_000),
    ("xr-threads", Xray, |n| file(n, |_, i| (1 + i, pair(1), i * 100)), 20_000),
    ("xr-threads-colliding", Xray, |n| file(n, |_, i| (i << 14, pair(1), i * 100)), 20_000),
    ("xr-buffers-overlapping", Xray, |n| file(n, |_, i| (1, pair(1_000_000), i)), 20_000),
    (
        "xr-calls-colliding",
        Xray,
        |n| {
            one(&rows(n, |i| {
                [call(ENTER, i << 10), call(ENTER, i << 9 | 1), call(EXIT, i << 9 | 1), call(EXIT, i << 10)].concat()
            }))
        },
        20_000,
    ),
    (
        "xr-arguments",
        Xray,
        |n| one(&[call(ENTER_ARGUMENT, 5).to_vec(), rows(n, |i| meta(6, &i.to_le_bytes()))].concat()),
        20_000,
    ),
    ("xr-events", Xray, |n| one(&rows(n, |_| [meta(5, &[1, 0, 0, 0, 1, 0, 0, 0]), vec![b'a']].concat())), 20_000),
    (
        "xr-processors-back",
        Xray,
        |n| {
            one(&{
                let mut all = Vec::new();
                (0..n).for_each(|i| all.extend(processor(i, n - i)));
                all
            })
        },
        20_000,
    ),
    ("xr-false-buffers", Xray, |n| [head(), meta(7, &(1_u64 << 40).to_le_bytes()).repeat(n as usize)].concat(), 20_000),
    ("xr-noise", Xray, |n| [head(), vec![0x0f; 16 * n as usize]].concat(), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &["xr-noise", "xr-false-buffers"];

const ENTER: u64 = 0;
const EXIT: u64 = 1;
const TAIL: u64 = 2;
const ENTER_ARGUMENT: u64 = 3;

fn head() -> Vec<u8> {
    let mut bytes = vec![5, 0, 1, 0, 3, 0, 0, 0];
    bytes.extend([1_000_000_000, 16_384, 0_u64].map(u64::to_le_bytes).concat());
    bytes
}

fn meta(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind << 1 | 1];
    bytes.extend(body);
    bytes.resize(16, 0);
    bytes
}

fn timed(kind: u64, function: u64, delta: u32) -> [u8; 8] {
    ((function << 4 | kind << 1) & 0xffff_ffff | u64::from(delta) << 32).to_le_bytes()
}

fn call(kind: u64, function: u64) -> [u8; 8] {
    timed(kind, function, 1)
}

/// A call and its return.
fn pair(delta: u32) -> Vec<u8> {
    [timed(ENTER, 5, 5), timed(EXIT, 5, delta)].concat()
}

fn processor(number: u64, time: u64) -> Vec<u8> {
    let mut body = (number as u16).to_le_bytes().to_vec();
    body.extend(time.to_le_bytes());
    meta(2, &body)
}

fn rows(count: u64, row: fn(u64) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(row).collect()
}

fn buffer(thread: u64, records: &[u8], time: u64) -> Vec<u8> {
    let process = meta(9, &1_i32.to_le_bytes());
    let inner = [meta(0, &(thread as u32).to_le_bytes()), meta(4, &[]), process, processor(0, time), records.to_vec()];
    let inner = inner.concat();
    [meta(7, &(inner.len() as u64).to_le_bytes()), inner].concat()
}

fn one(records: &[u8]) -> Vec<u8> {
    [head(), buffer(1, records, 1)].concat()
}

/// This many buffers: thread, records and time of each.
fn file(count: u64, make: fn(u64, u64) -> (u64, Vec<u8>, u64)) -> Vec<u8> {
    let buffers = (0..count).flat_map(|i| {
        let (thread, records, time) = make(count, i);
        buffer(thread, &records, time)
    });
    head().into_iter().chain(buffers).collect()
}

fn recursion(count: u64) -> Vec<u8> {
    let into = (0..count).flat_map(|_| call(ENTER, 1));
    one(&into.chain((0..count).flat_map(|_| call(EXIT, 1))).collect::<Vec<_>>())
}

fn deep_functions(count: u64) -> Vec<u8> {
    let into = (0..count).flat_map(|i| call(ENTER, 1 + i));
    one(&into.chain((0..count).rev().flat_map(|i| call(EXIT, 1 + i))).collect::<Vec<_>>())
}

/// A deep stack, and then exits that match nothing in it.
fn exits(count: u64) -> Vec<u8> {
    let into = (0..count).flat_map(|i| call(ENTER, 1 + i % 5));
    one(&into.chain((0..count).flat_map(|_| call(EXIT, 7777))).collect::<Vec<_>>())
}
