//! Traces of OpenGL calls, built by name. Shares no code with the crate.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::HashMap;

use super::build::{Build, blob, leb, uint};

/// An argument.
#[derive(Debug, Clone)]
pub enum V {
    /// A number or an enumeration's.
    N(u64),
    /// A pointer.
    P(u64),
    /// A blob of this many bytes.
    B(usize),
    /// An array of numbers.
    A(Vec<u64>),
}

pub struct Gl {
    pub build: Build,
    functions: HashMap<String, u64>,
    pub next: u64,
    pub thread: u64,
}

impl Default for Gl {
    fn default() -> Self {
        Self { build: Build::version(6), functions: HashMap::new(), next: 0, thread: 0 }
    }
}

impl Gl {
    /// A call that returns nothing; its number.
    pub fn call(&mut self, name: &str, arguments: &[V]) -> u64 {
        self.returning(name, arguments, None)
    }

    /// A call and what it returns.
    pub fn returning(&mut self, name: &str, arguments: &[V], result: Option<V>) -> u64 {
        let known = self.functions.len() as u64;
        match self.functions.get(name) {
            Some(id) => self.build.enter(self.thread, *id),
            None => {
                self.functions.insert(name.to_owned(), known);
                let names = vec!["x"; arguments.len()];
                self.build.enter_new(self.thread, known, name, &names)
            }
        };
        for (index, argument) in arguments.iter().enumerate() {
            self.build.argument(index as u64, &value(argument));
        }
        self.build.end().leave(self.next);
        if let Some(result) = result {
            self.build.add(&[2]).add(&value(&result));
        }
        self.build.end();
        self.next += 1;
        self.next - 1
    }

    /// `name(n, n, …)`.
    pub fn numbers(&mut self, name: &str, arguments: &[u64]) -> u64 {
        let arguments: Vec<V> = arguments.iter().map(|number| V::N(*number)).collect();
        self.call(name, &arguments)
    }

    pub fn generate(&mut self, what: &str, names: &[u64]) -> u64 {
        self.call(&format!("glGen{what}"), &[V::N(names.len() as u64), V::A(names.to_vec())])
    }

    pub fn swap(&mut self) -> u64 {
        self.call("glXSwapBuffers", &[V::P(1), V::N(9)])
    }

    pub fn image(&mut self) -> u64 {
        let [target, format, bytes] = [0xde1, 0x1908, 0x1401];
        let numbers = [target, 0, format, 8, 8, 0, format, bytes].map(V::N);
        self.call("glTexImage2D", &[numbers.as_slice(), &[V::B(256)]].concat())
    }

    pub fn part_of_image(&mut self, x: u64, width: u64) -> u64 {
        let numbers = [0xde1, 0, x, 0, width, 8, 0x1908, 0x1401].map(V::N);
        self.call("glTexSubImage2D", &[numbers.as_slice(), &[V::B(32)]].concat())
    }
}

fn value(value: &V) -> Vec<u8> {
    match value {
        V::N(number) => uint(*number),
        V::P(pointer) => [vec![13], leb(*pointer)].concat(),
        V::B(length) => blob(&vec![7; *length]),
        V::A(numbers) => {
            let mut out = [vec![11], leb(numbers.len() as u64)].concat();
            numbers.iter().for_each(|number| out.extend(uint(*number)));
            out
        }
    }
}
