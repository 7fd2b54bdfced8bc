//! Traces as plain values: made at random, encoded and decoded after the format's document. Shares no code with the
//! crate.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

mod decode;
mod encode;
pub mod text;

use std::collections::BTreeMap;

#[allow(unused_imports, reason = "each test file uses a part of it")]
pub use decode::decode;
pub use encode::encode;

use crate::random::Random;

/// A value of an argument or result.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    /// A magnitude.
    Minus(u64),
    Number(u64),
    /// Bits.
    Float(u32),
    /// Bits.
    Double(u64),
    Text(Vec<u8>),
    Blob(Vec<u8>),
    Enum(u64, i64),
    Mask(u64, u64),
    Array(Vec<Value>),
    Struct(u64, Vec<Value>),
    Pointer(u64),
    Pair(Box<Value>, Box<Value>),
    Wide(Vec<u64>),
}

/// A part of an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Detail {
    Argument(u64, Value),
    Return(Value),
    Frames(Vec<u64>),
    Flags(u64),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Thread and function.
    Enter(u64, u64, Vec<Detail>),
    Leave(u64, Vec<Detail>),
}

/// A stack frame; each part may be missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    pub module: Option<Vec<u8>>,
    pub function: Option<Vec<u8>>,
    pub file: Option<Vec<u8>>,
    pub line: Option<u64>,
    pub offset: Option<u64>,
}

pub type Names = (Vec<u8>, Vec<Vec<u8>>);

/// A trace with the definitions of its ids.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Trace {
    pub version: u64,
    pub properties: Vec<(Vec<u8>, Vec<u8>)>,
    pub functions: BTreeMap<u64, Names>,
    pub structs: BTreeMap<u64, Names>,
    pub enums: BTreeMap<u64, Vec<(Vec<u8>, i64)>>,
    pub masks: BTreeMap<u64, Vec<(Vec<u8>, u64)>>,
    pub frames: BTreeMap<u64, Frame>,
    pub events: Vec<Event>,
}

/// A call with what its two events say.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub number: u64,
    pub thread: u64,
    pub function: u64,
    pub arguments: BTreeMap<u64, Value>,
    pub result: Option<Value>,
    pub stack: Option<Vec<u64>>,
    pub is_fake: bool,
    pub is_incomplete: bool,
}

impl Call {
    fn add(&mut self, details: &[Detail]) {
        for detail in details {
            match detail {
                Detail::Argument(index, value) => drop(self.arguments.insert(*index, value.clone())),
                Detail::Return(value) => self.result = Some(value.clone()),
                Detail::Frames(frames) => self.stack = Some(frames.clone()),
                Detail::Flags(flags) => self.is_fake |= flags & 1 == 1,
            }
        }
    }
}

impl Trace {
    /// Calls in the order they are left, then those never left in the order of their enters. Leaves without an enter,
    /// and second ones, count for nothing.
    pub fn calls(&self) -> Vec<Call> {
        let (mut open, mut done, mut next): (Vec<Call>, Vec<Call>, u64) = Default::default();
        for event in &self.events {
            match event {
                Event::Enter(thread, function, details) => {
                    let (thread, function) = (*thread, *function);
                    let (arguments, result, stack) = Default::default();
                    let mut call = Call {
                        number: next,
                        thread,
                        function,
                        arguments,
                        result,
                        stack,
                        is_fake: false,
                        is_incomplete: true,
                    };
                    call.add(details);
                    open.push(call);
                    next += 1;
                }
                Event::Leave(number, details) => {
                    if let Some(at) = open.iter().position(|call| call.number == *number) {
                        let mut call = open.remove(at);
                        call.add(details);
                        call.is_incomplete = false;
                        done.push(call);
                    }
                }
            }
        }
        done.extend(open);
        done
    }

    pub fn name(&self, function: u64) -> &[u8] {
        &self.functions[&function].0
    }

    /// The same in an older version, without what that cannot hold. Before version 3 an enumeration is one name and its
    /// value.
    pub fn older(mut self, version: u64) -> Self {
        self.version = version;
        self.properties.clear();
        for event in &mut self.events {
            if let Event::Enter(thread, ..) = event {
                *thread = if version < 4 { 0 } else { *thread };
            }
            let (Event::Enter(_, _, details) | Event::Leave(_, details)) = event;
            details.retain(|detail| match detail {
                Detail::Flags(_) => false,
                Detail::Frames(_) => version >= 5,
                _ => true,
            });
        }
        if version < 3 {
            self.enums.values_mut().for_each(|names| names.truncate(1));
        }
        let enums = self.enums.clone();
        self.change_all(&mut |value| match value {
            Value::Wide(_) => *value = Value::Null,
            Value::Enum(id, value) if version < 3 => *value = enums[id][0].1,
            _ => {}
        });
        self
    }

    /// As [`Self::change`], on both sides of pairs.
    fn change_all(&mut self, change: &mut impl FnMut(&mut Value)) {
        fn walk(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
            change(value);
            match value {
                Value::Array(values) | Value::Struct(_, values) => values.iter_mut().for_each(|one| walk(one, change)),
                Value::Pair(human, machine) => {
                    walk(human, change);
                    walk(machine, change);
                }
                _ => {}
            }
        }
        for event in &mut self.events {
            let (Event::Enter(_, _, details) | Event::Leave(_, details)) = event;
            for detail in details {
                if let Detail::Argument(_, value) | Detail::Return(value) = detail {
                    walk(value, change);
                }
            }
        }
    }

    /// Applies a function to every value of an argument or result, the outer ones first.
    pub fn change(&mut self, mut change: impl FnMut(&mut Value)) {
        for event in &mut self.events {
            let (Event::Enter(_, _, details) | Event::Leave(_, details)) = event;
            for detail in details {
                if let Detail::Argument(_, value) | Detail::Return(value) = detail {
                    walk(value, &mut change);
                }
            }
        }
    }
}

fn walk(value: &mut Value, change: &mut impl FnMut(&mut Value)) {
    change(value);
    match value {
        Value::Array(values) | Value::Struct(_, values) => values.iter_mut().for_each(|value| walk(value, change)),
        // Only the human side is shown, and only what is shown is edited.
        Value::Pair(human, _) => walk(human, change),
        _ => {}
    }
}

/// Names of real functions with every combination of flags that matters, and one of none.
const FUNCTIONS: [&str; 10] = [
    "glXSwapBuffers",
    "glDrawArrays",
    "glGetError",
    "glGetIntegerv",
    "glClear",
    "glBindFramebuffer",
    "glPushDebugGroup",
    "eglSwapBuffers",
    "glVertex2f",
    "nobody_knows",
];

/// A random trace of about this many calls: several threads, late, missing and odd leaves, sparse and repeated
/// arguments, every kind of value.
pub fn random_trace(random: &mut Random, calls: u64) -> Trace {
    let mut made = definitions(random);
    let mut open: Vec<u64> = Vec::new();
    let functions: Vec<u64> = made.functions.keys().copied().collect();
    let threads = 1 + random.below(3);
    for call in 0..calls {
        let function = functions[random.below(functions.len() as u64) as usize];
        let count = made.functions[&function].1.len() as u64;
        let details = details(random, &made, count, true);
        made.events.push(Event::Enter(random.below(threads) * 100, function, details));
        open.push(call);
        while !open.is_empty() && random.below(10) < 8 {
            let late = random.below(4) == 0;
            let at = if late { random.below(open.len() as u64) as usize } else { open.len() - 1 };
            let number = open.remove(at);
            if random.below(50) > 0 {
                let count = match &made.events.iter().filter(|e| matches!(e, Event::Enter(..))).nth(number as usize) {
                    Some(Event::Enter(_, function, _)) => made.functions[function].1.len() as u64,
                    _ => 0,
                };
                let details = self::details(random, &made, count, false);
                made.events.push(Event::Leave(number, details));
            }
        }
    }
    made
}

fn definitions(random: &mut Random) -> Trace {
    let mut made = Trace { version: 6, ..Trace::default() };
    let name = |text: &str| text.as_bytes().to_vec();
    let id = |random: &mut Random, at: usize| at as u64 * 3 + random.below(3) + if at == 4 { 9000 } else { 0 };
    for (at, text) in FUNCTIONS.into_iter().enumerate() {
        let count = if text == "glGetError" { 0 } else { random.below(6) };
        let arguments = (0..count).map(|n| name(["x", "count", "größe", "", "a b", "p"][n as usize])).collect();
        made.functions.insert(id(random, at), (name(text), arguments));
    }
    for (at, members) in [&["x", "y"][..], &["only"], &[], &["", "z"], &["l", "", "r"]].into_iter().enumerate() {
        let members = members.iter().map(|member| name(member)).collect();
        made.structs.insert(id(random, at), (name("Point"), members));
    }
    for at in 0..3 {
        let values = [("GL_ZERO", 0), ("GL_ONE", 1), ("GL_ALSO_ONE", 1), ("GL_MINUS", -5), ("GL_BIG", 1 << 40)];
        let some = values.iter().skip(at).map(|(text, value)| (name(text), *value)).collect();
        made.enums.insert(id(random, at), some);
    }
    let flags = [("NONE", 0), ("A_BIT", 1), ("B_BIT", 2), ("AB_BITS", 3), ("TOP_BIT", 1 << 63)];
    for at in 0..3 {
        let some = flags.iter().skip(at).map(|(text, value)| (name(text), *value)).collect();
        made.masks.insert(id(random, at), some);
    }
    for at in 0..6_u64 {
        let part = |bit: u64, text: &str| (at >> bit & 1 == 1).then(|| name(text));
        let line = (at > 3).then_some(at * 100);
        let offset = (at % 3 == 1).then_some(at << 20);
        let frame = Frame { module: part(0, "lib.so"), function: part(1, "f()"), file: part(2, "a.c"), line, offset };
        made.frames.insert(at * 7, frame);
    }
    for at in 0..random.below(4) {
        made.properties.push((name(["os", "app", "os", "é"][at as usize]), bytes(random)));
    }
    made
}

fn details(random: &mut Random, made: &Trace, count: u64, is_enter: bool) -> Vec<Detail> {
    let mut details = Vec::new();
    if random.below(8) == 0 {
        details.push(Detail::Flags(random.below(4)));
    }
    if is_enter && random.below(8) == 0 {
        details.push(Detail::Frames((0..random.below(4)).map(|_| random.below(6) * 7).collect()));
    }
    for index in 0..count {
        if random.below(5) > u64::from(is_enter) * 2 + 1 || is_enter && random.below(3) > 0 {
            details.push(Detail::Argument(index, value(random, made, 0)));
        }
    }
    // Some come again, or in another order.
    if random.below(6) == 0 {
        details.reverse();
        details.extend(details.iter().find(|detail| matches!(detail, Detail::Argument(..))).cloned());
    }
    if !is_enter && random.below(2) == 0 {
        let at = random.below(details.len() as u64 + 1) as usize;
        details.insert(at, Detail::Return(value(random, made, 0)));
    }
    details
}

/// An id that is defined.
fn any<V>(random: &mut Random, of: &BTreeMap<u64, V>) -> u64 {
    *of.keys().nth(random.below(of.len() as u64) as usize).unwrap()
}

fn bytes(random: &mut Random) -> Vec<u8> {
    let pool = b"ab 0_\"\\\n\r\t\x01\x1f\x7f\x80\xff\xc3\xa9'/";
    (0..random.below(9)).map(|_| pool[random.below(pool.len() as u64) as usize]).collect()
}

const DOUBLES: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -2.5,
    0.1,
    1e7,
    9_999_999.5,
    123_456_789.0,
    1e-5,
    1.234e-310,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MAX,
];

fn double(random: &mut Random) -> f64 {
    match random.below(3) {
        0 => DOUBLES[random.below(14) as usize],
        1 => f64::from_bits(random.next()),
        _ => (random.below(2_000_000) as f64 - 1e6) / [1.0, 8.0, 100.0, 7.0][random.below(4) as usize],
    }
}

fn value(random: &mut Random, made: &Trace, depth: u32) -> Value {
    let some = |random: &mut Random, depth| (0..random.below(4)).map(|_| value(random, made, depth)).collect();
    match random.below(if depth > 2 { 11 } else { 15 }) {
        0 => Value::Null,
        1 => Value::Bool(random.below(2) == 0),
        2 => Value::Minus([0, 1, 7, 1 << 40, 1 << 63][random.below(5) as usize]),
        3 => Value::Number(random.next() >> random.below(64)),
        4 => Value::Float((double(random) as f32).to_bits()),
        5 => Value::Double(double(random).to_bits()),
        6 => Value::Text(bytes(random)),
        7 => Value::Blob(bytes(random)),
        8 => Value::Pointer(random.next() >> random.below(64)),
        9 => Value::Enum(any(random, &made.enums), [0, 1, 2, -5, 1 << 40, i64::MAX][random.below(6) as usize]),
        10 => Value::Mask(any(random, &made.masks), [0, 1, 2, 3, 4, 7, 1 << 63, u64::MAX][random.below(8) as usize]),
        11 => Value::Array(some(random, depth + 1)),
        12 => structure(random, made, depth),
        13 => Value::Pair(Box::new(value(random, made, depth + 1)), Box::new(value(random, made, depth + 1))),
        _ => Value::Wide((0..random.below(4)).map(|_| [97, 34, 10, 233, 0x20ac][random.below(5) as usize]).collect()),
    }
}

/// Members without a name are structures, as in real traces.
fn structure(random: &mut Random, made: &Trace, depth: u32) -> Value {
    let id = any(random, &made.structs);
    let members = made.structs[&id]
        .1
        .iter()
        .map(|name| if name.is_empty() { structure(random, made, depth + 1) } else { value(random, made, depth + 1) });
    Value::Struct(id, members.collect())
}
