//! Traces of OpenGL programs, written call by call. Shares no code with the crate.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::HashMap;

use crate::build::{Build, enum_known, enum_new, leb, string, text, uint};

/// A value of an argument.
#[derive(Clone, Debug)]
pub enum V {
    U(u64),
    I(i64),
    F(f32),
    /// A pointer or handle.
    P(u64),
    Null,
    S(String),
    /// An enumeration without a name.
    E(u64),
    /// An enumeration with a name.
    N(&'static str, u64),
    /// A mask of bits.
    M(u64),
    A(Vec<V>),
    Blob(usize),
    /// Of the leave event.
    Out(Box<V>),
}

pub fn names(names: &[u64]) -> V {
    V::A(names.iter().map(|name| V::U(*name)).collect())
}

pub fn out(value: V) -> V {
    V::Out(Box::new(value))
}

/// A program's calls.
pub struct Script {
    build: Build,
    functions: HashMap<String, u64>,
    has_enum: bool,
    has_mask: bool,
    enums: Vec<(&'static str, u64)>,
    frames: Vec<u64>,
    stack: Vec<u64>,
    next: u64,
}

impl Script {
    pub fn new() -> Self {
        let build = Build::version(6);
        let (functions, frames, stack) = (HashMap::new(), Vec::new(), Vec::new());
        Self { build, functions, has_enum: false, has_mask: false, enums: Vec::new(), frames, stack, next: 0 }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.build.snappy(60_000)
    }

    /// Sets the stack of the following calls; frame N is called `fnN`.
    pub fn from(&mut self, stack: &[u64]) -> &mut Self {
        self.stack = stack.to_vec();
        self
    }

    fn value(&mut self, value: &V) -> Vec<u8> {
        match value {
            V::U(value) => uint(*value),
            V::I(value) if *value < 0 => [vec![3], leb(value.unsigned_abs())].concat(),
            V::I(value) => uint(value.unsigned_abs()),
            V::F(value) => [vec![5], value.to_le_bytes().to_vec()].concat(),
            V::P(value) => [vec![13], leb(*value)].concat(),
            V::Null => vec![0],
            V::S(value) => string(value),
            V::E(value) => {
                let definition =
                    if std::mem::replace(&mut self.has_enum, true) { vec![] } else { vec![1, 1, b'Z', 4, 0] };
                [vec![9, 7], definition, uint(*value)].concat()
            }
            V::N(name, value) => {
                let known = self.enums.iter().position(|known| known == &(*name, *value));
                let id = known.unwrap_or(self.enums.len()) as u64 + 100;
                if known.is_some() {
                    enum_known(id, *value)
                } else {
                    self.enums.push((name, *value));
                    enum_new(id, &[(name, *value)], *value)
                }
            }
            V::M(value) => {
                let definition = if std::mem::replace(&mut self.has_mask, true) { vec![] } else { vec![1, 1, b'Z', 0] };
                [vec![10, 7], definition, leb(*value)].concat()
            }
            V::A(values) => {
                let parts: Vec<Vec<u8>> = values.iter().map(|value| self.value(value)).collect();
                [vec![11], leb(values.len() as u64), parts.concat()].concat()
            }
            V::Blob(length) => [vec![8], leb(*length as u64), vec![b'#'; *length]].concat(),
            V::Out(value) => self.value(value),
        }
    }

    /// Adds a call and returns its number.
    pub fn call(&mut self, thread: u64, name: &str, arguments: &[(&str, V)], returned: Option<V>) -> u64 {
        let known = self.functions.len() as u64;
        let id = *self.functions.entry(name.to_owned()).or_insert(known);
        if id == known {
            let labels: Vec<&str> = arguments.iter().map(|(label, _)| *label).collect();
            self.build.enter_new(thread, id, name, &labels);
        } else {
            self.build.enter(thread, id);
        }
        if !self.stack.is_empty() {
            let stack = self.stack.clone();
            self.build.add(&[4]).add(&leb(stack.len() as u64));
            for frame in stack {
                self.build.add(&leb(frame));
                if !self.frames.contains(&frame) {
                    self.frames.push(frame);
                    self.build.add(&[1]).add(&text("prog")).add(&[2]).add(&text(&format!("fn{frame}"))).end();
                }
            }
        }
        for is_out in [false, true] {
            if is_out {
                self.build.end();
                self.build.leave(self.next);
            }
            for (index, (_, value)) in arguments.iter().enumerate() {
                if matches!(value, V::Out(_)) == is_out {
                    let value = self.value(value);
                    self.build.argument(index as u64, &value);
                }
            }
        }
        if let Some(returned) = returned {
            let value = self.value(&returned);
            self.build.add(&[2]).add(&value);
        }
        self.build.end();
        self.next += 1;
        self.next - 1
    }

    /// glXCreateContext.
    pub fn create(&mut self, thread: u64, handle: u64, share: u64) -> u64 {
        let share = if share == 0 { V::Null } else { V::P(share) };
        let arguments = [("dpy", V::P(1)), ("vis", V::P(2)), ("shareList", share), ("direct", V::E(1))];
        self.call(thread, "glXCreateContext", &arguments, Some(V::P(handle)))
    }

    /// glXMakeCurrent; 0 for none.
    pub fn current(&mut self, thread: u64, handle: u64) -> u64 {
        let ctx = if handle == 0 { V::Null } else { V::P(handle) };
        let arguments = [("dpy", V::P(1)), ("drawable", V::U(2)), ("ctx", ctx)];
        self.call(thread, "glXMakeCurrent", &arguments, Some(V::E(1)))
    }

    pub fn destroy(&mut self, thread: u64, handle: u64) -> u64 {
        self.call(thread, "glXDestroyContext", &[("dpy", V::P(1)), ("ctx", V::P(handle))], None)
    }

    /// A function like glGenTextures.
    pub fn make(&mut self, thread: u64, name: &str, made: &[u64]) -> u64 {
        let arguments = [("n", V::U(made.len() as u64)), ("names", out(names(made)))];
        self.call(thread, name, &arguments, None)
    }

    /// A function like glDeleteTextures.
    pub fn delete(&mut self, thread: u64, name: &str, deleted: &[u64]) -> u64 {
        let arguments = [("n", V::U(deleted.len() as u64)), ("names", names(deleted))];
        self.call(thread, name, &arguments, None)
    }

    /// A function with numbers only.
    pub fn plain(&mut self, thread: u64, name: &str, numbers: &[u64], returned: Option<u64>) -> u64 {
        let labels = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let arguments: Vec<_> = labels.iter().copied().zip(numbers.iter().map(|number| V::U(*number))).collect();
        self.call(thread, name, &arguments, returned.map(V::U))
    }
}
