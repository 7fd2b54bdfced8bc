//! The values of an event: what says where it belongs, and the rest as attributes.

use anytrace_core::span::{Items, Value};

use super::names::{NameNumber, Names};
use crate::verbs::facts::{Facts, is_context, unsigned};
use crate::wire::decode::{Scalar, Shape, Visitor, label};

/// Deepest structures that are distinguished in the keys of attributes.
const DEPTH_MAX: usize = 16;

/// What an event has.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) facts: Facts,
    /// Keys and values in turn.
    pub(super) attributes: Vec<u8>,
    /// The name of the thread, or of the one that runs from now on.
    pub(super) thread_name: Vec<u8>,
    pub(super) next_name: Vec<u8>,
    pub(super) next_thread: Option<u64>,
    pub(super) address: Option<u64>,
}

impl Gathered {
    pub(super) fn clear(&mut self) {
        let mut attributes = std::mem::take(&mut self.attributes);
        attributes.clear();
        let (mut thread_name, mut next_name) =
            (std::mem::take(&mut self.thread_name), std::mem::take(&mut self.next_name));
        thread_name.clear();
        next_name.clear();
        *self = Self { attributes, thread_name, next_name, ..Self::default() };
    }
}

/// Gathers what an event has.
pub(super) struct Gather<'a> {
    pub(super) into: &'a mut Gathered,
    pub(super) names: &'a mut Names,
    pub(super) wants_attributes: bool,
    depth: u32,
    scope: Scope,
    /// The names of the structures around, with dots.
    prefix: Vec<u8>,
    prefixes: Vec<usize>,
    /// The key of the array that is open, its elements, and how many arrays are open.
    array: (NameNumber, Vec<u8>, u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    Header,
    Context,
    Fields,
}

impl<'a> Gather<'a> {
    pub(super) fn new(into: &'a mut Gathered, names: &'a mut Names, wants_attributes: bool) -> Self {
        into.clear();
        let array = (0, Vec::new(), 0);
        let (prefix, prefixes) = (Vec::new(), Vec::new());
        Self { into, names, wants_attributes, depth: 0, scope: Scope::Header, prefix, prefixes, array }
    }

    fn key(&mut self, name: &str) -> NameNumber {
        if self.prefix.is_empty() {
            return self.names.number(name.as_bytes());
        }
        let length = self.prefix.len();
        self.prefix.extend_from_slice(name.as_bytes());
        let number = self.names.number(&self.prefix);
        self.prefix.truncate(length);
        number
    }

    fn special(&mut self, name: &str, value: Scalar<'_>) -> bool {
        match (self.scope, name, value) {
            (Scope::Context, "procname", Scalar::Text(text)) => {
                self.into.thread_name.extend_from_slice(text);
                true
            }
            (Scope::Context, "vtid" | "tid" | "vpid" | "pid" | "cpu_id", _) => {
                self.into.facts.take(name, value);
                true
            }
            (Scope::Fields, "next_comm", Scalar::Text(text)) => {
                self.into.next_name.extend_from_slice(text);
                false
            }
            (Scope::Fields, "next_tid" | "next_pid", _) => {
                self.into.next_thread = self.into.next_thread.or(unsigned(value));
                false
            }
            (Scope::Fields, "addr", Scalar::U64(address, _)) => {
                self.into.address = Some(address);
                false
            }
            _ => false,
        }
    }
}

impl Visitor for Gather<'_> {
    fn value(&mut self, name: &str, value: Scalar<'_>) {
        if self.scope == Scope::Header || (self.depth == 1 && self.special(name, value)) || !self.wants_attributes {
            return;
        }
        let text;
        let value = match value {
            Scalar::U64(value, 16) => Value::Address(value),
            Scalar::U64(value, _) => Value::U64(value),
            Scalar::I64(value) => Value::I64(value),
            Scalar::F32(value) => Value::F64(value.into()),
            Scalar::F64(value) => Value::F64(value),
            Scalar::Text(text) => Value::Text(text),
            Scalar::Label(value, labels) => {
                text = label(value, labels).map_or_else(|| value.to_string(), str::to_owned);
                Value::Text(text.as_bytes())
            }
        };
        if self.array.2 > 0 {
            Items::push(&mut self.array.1, value);
            return;
        }
        let key = self.key(name);
        Items::push(&mut self.into.attributes, Value::U64(key.into()));
        Items::push(&mut self.into.attributes, value);
    }

    fn enter(&mut self, name: &str, shape: Shape) {
        if self.depth == 0 {
            self.scope = match name {
                "event.header" => Scope::Header,
                name if is_context(name) => Scope::Context,
                _ => Scope::Fields,
            };
        } else if shape == Shape::Array {
            if self.array.2 == 0 && self.wants_attributes {
                self.array.0 = self.key(name);
                self.array.1.clear();
            }
            self.array.2 += 1;
        } else if self.array.2 == 0 && self.prefixes.len() < DEPTH_MAX {
            self.prefixes.push(self.prefix.len());
            self.prefix.extend_from_slice(name.as_bytes());
            self.prefix.push(b'.');
        }
        self.depth += 1;
    }

    fn leave(&mut self, shape: Shape) {
        self.depth = self.depth.saturating_sub(1);
        if self.depth == 0 {
            return;
        }
        if shape == Shape::Array {
            self.array.2 = self.array.2.saturating_sub(1);
            if self.array.2 == 0 && self.wants_attributes && self.scope != Scope::Header {
                Items::push(&mut self.into.attributes, Value::U64(self.array.0.into()));
                Items::push(&mut self.into.attributes, Value::Array(Items::of(&self.array.1)));
            }
        } else if self.array.2 == 0
            && let Some(length) = self.prefixes.pop()
        {
            self.prefix.truncate(length);
        }
    }
}
