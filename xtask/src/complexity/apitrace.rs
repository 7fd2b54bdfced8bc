//! Shapes of apitrace traces, version 6, without a container.

use super::jobs::Family::Apitrace;
use super::{GOLDEN, Row, inverse};

pub(super) const SHAPES: &[Row] = &[
    ("at-threads", Apitrace, |n| calls(n, |trace, i| trace.call(i, 0, &[])), 20_000),
    ("at-open", Apitrace, open, 20_000),
    ("at-functions", Apitrace, |n| calls(n, |trace, i| trace.call(0, i, &[])), 5_000),
    ("at-functions-sparse", Apitrace, |n| calls(n, |trace, i| trace.call(0, i << 20, &[])), 5_000),
    ("at-textures", Apitrace, |n| calls(n, |trace, i| trace.call(0, 1, &[0xde1, i + 1])), 20_000),
    ("at-frames", Apitrace, |n| calls(n, |trace, _| trace.call(0, 2, &[1, 2])), 20_000),
    ("at-pushes", Apitrace, |n| calls(n, |trace, _| trace.call(0, 3, &[0xf_ffff])), 20_000),
    ("at-enumeration-flood", Apitrace, enumeration, 20_000),
    ("at-arrays-nested", Apitrace, nested, 2_000),
    ("at-array-long", Apitrace, |n| one(&[&[1, 0, 11][..], &uint(n), &[4, 1].repeat(n as usize)].concat()), 50_000),
    ("at-blob", Apitrace, |n| one(&[&[1, 0, 8][..], &uint(n), &vec![b'"'; n as usize]].concat()), 500_000),
    ("at-arguments", Apitrace, arguments, 20_000),
    ("at-backtraces", Apitrace, |n| calls(n, |trace, i| trace.call(0, 4, &[i])), 20_000),
];

/// Shapes that are hardly a trace, or none: verbs may refuse them.
pub(super) const BROKEN: &[&str] = &[];

fn uint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn string(text: &str) -> Vec<u8> {
    [uint(text.len() as u64), text.as_bytes().to_vec()].concat()
}

struct Trace {
    bytes: Vec<u8>,
    defined: std::collections::BTreeSet<u64>,
    number: u64,
}

impl Trace {
    fn new() -> Self {
        let bytes = [vec![6, 6], string("process.name"), string("shape"), vec![0]].concat();
        Self { bytes, defined: std::collections::BTreeSet::new(), number: 0 }
    }

    /// Enters a call of a function; its arguments are numbers.
    fn enter(&mut self, thread: u64, function: u64, arguments: &[u64]) {
        self.bytes.push(0);
        self.bytes.extend([uint(thread), uint(function)].concat());
        if self.defined.insert(function) {
            let name = match function {
                1 => "glBindTexture".to_owned(),
                2 => "glXSwapBuffers".to_owned(),
                3 => "glPushAttrib".to_owned(),
                4 => "glEnable".to_owned(),
                other => format!("glFunction{other}"),
            };
            self.bytes.extend([string(&name), uint(arguments.len() as u64)].concat());
            (0..arguments.len()).for_each(|n| self.bytes.extend(string(&format!("a{n}"))));
        }
        for (n, value) in (0_u64..).zip(arguments) {
            self.bytes.push(1);
            self.bytes.extend(uint(n));
            self.bytes.push(4);
            self.bytes.extend(uint(*value));
        }
        self.bytes.push(0);
    }

    fn leave(&mut self, number: u64) {
        self.bytes.push(1);
        self.bytes.extend(uint(number));
        self.bytes.push(0);
    }

    fn call(&mut self, thread: u64, function: u64, arguments: &[u64]) {
        self.enter(thread, function, arguments);
        self.leave(self.number);
        self.number += 1;
    }
}

fn calls(count: u64, call: fn(&mut Trace, u64)) -> Vec<u8> {
    let mut trace = Trace::new();
    (0..count).for_each(|i| call(&mut trace, i));
    trace.bytes
}

/// All calls are entered before the first is left.
fn open(count: u64) -> Vec<u8> {
    let mut trace = Trace::new();
    (0..count).for_each(|i| trace.enter(i % 7, 4, &[i]));
    (0..count).rev().for_each(|i| trace.leave(i));
    trace.bytes
}

/// One call with these details.
fn one(details: &[u8]) -> Vec<u8> {
    let mut trace = Trace::new();
    trace.bytes.extend([vec![0, 0, 9], string("glFunction"), uint(1), string("a0")].concat());
    trace.bytes.extend([details, &[0]].concat());
    trace.leave(0);
    trace.bytes
}

fn nested(count: u64) -> Vec<u8> {
    one(&[&[1, 0][..], &[11, 1].repeat(count as usize), &[4, 1]].concat())
}

/// An enumeration whose values collide in a table addressed by products.
fn enumeration(count: u64) -> Vec<u8> {
    let mut details = [vec![1, 0, 9, 3], uint(count)].concat();
    for n in 1..=count {
        details.extend([vec![0, 4], uint(inverse(GOLDEN).wrapping_mul(n))].concat());
    }
    details.extend([4, 1]);
    one(&details)
}

/// A call with very many arguments.
fn arguments(count: u64) -> Vec<u8> {
    calls_of(&(0..count).collect::<Vec<_>>())
}

fn calls_of(arguments: &[u64]) -> Vec<u8> {
    let mut trace = Trace::new();
    (0..10).for_each(|_| trace.call(0, 9, arguments));
    trace.bytes
}
