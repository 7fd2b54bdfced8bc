//! Values of the state: copies of arguments, with their names in the trace.

use std::fmt;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::lanes::dictionary::{Dictionary, number};
use crate::lanes::wire::{Value, Wire};

/// Longer arrays are only counted.
const ITEMS_MAX: u64 = 4096;

/// Longer strings are cut.
const TEXT_BYTES_MAX: usize = 4096;

/// Deepest nesting kept.
const DEPTH_MAX: u32 = 8;

/// A value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Val {
    /// The null pointer.
    Null,
    /// A number.
    Int(i64),
    /// A 32-bit float.
    Float(f32),
    /// A 64-bit float.
    Double(f64),
    /// A name of an enumeration or the names of a bit mask's flags.
    Name(Rc<str>),
    /// A string.
    Text(Rc<str>),
    /// A pointer.
    Pointer(u64),
    /// Bytes; how many.
    Bytes(u64),
    /// Several values.
    List(Vec<Self>),
    /// More values than are kept; how many.
    Many(u64),
}

impl Val {
    /// Copies a value; skips it.
    pub fn read(wire: &mut Wire<'_>, dictionary: &Dictionary) -> Self {
        Self::read_within(wire, dictionary, DEPTH_MAX)
    }

    fn read_within(wire: &mut Wire<'_>, dictionary: &Dictionary, depth: u32) -> Self {
        let start = *wire;
        match wire.value() {
            Value::Null | Value::Unknown => Self::Null,
            Value::Bool(is_true) => Self::name(if is_true { "true" } else { "false" }),
            Value::Negative(magnitude) => Self::Int((magnitude as i64).wrapping_neg()),
            Value::Unsigned(number) => Self::Int(number as i64),
            Value::Float(number) => Self::Float(number),
            Value::Double(number) => Self::Double(number),
            Value::Text(bytes) => {
                Self::Text(String::from_utf8_lossy(bytes.get(..TEXT_BYTES_MAX).unwrap_or(bytes)).into())
            }
            Value::Blob(length, _) => Self::Bytes(length),
            Value::Enum(id, value) => {
                let name = dictionary.enumeration(id).and_then(|names| names.name(value));
                match name {
                    Some(name) => Self::Name(String::from_utf8_lossy(name).into()),
                    None => Self::Int(value.map_or(0, number)),
                }
            }
            Value::Bitmask(id, value) => mask(id, value, dictionary),
            Value::Array(count) if depth == 0 || count > ITEMS_MAX => {
                *wire = start;
                wire.skip_value(&|id| dictionary.members(id));
                Self::Many(count)
            }
            Value::Array(count) => {
                let mut items = Vec::new();
                for _ in 0..count {
                    if wire.rest().is_empty() {
                        break;
                    }
                    items.push(Self::read_within(wire, dictionary, depth - 1));
                }
                Self::List(items)
            }
            Value::Struct(_) | Value::Repr | Value::Wide(_) => {
                *wire = start;
                wire.skip_value(&|id| dictionary.members(id));
                Self::Null
            }
            Value::Pointer(value) => Self::Pointer(value),
        }
    }

    /// A name.
    pub fn name(name: &str) -> Self {
        Self::Name(name.into())
    }

    /// `GL_TRUE` or `GL_FALSE`.
    pub fn truth(is_true: bool) -> Self {
        Self::name(if is_true { "GL_TRUE" } else { "GL_FALSE" })
    }

    /// For keys: the name, or the number.
    pub fn to_key(&self) -> String {
        self.to_string()
    }

    /// Its approximate memory use, in bytes.
    pub fn weight(&self) -> usize {
        match self {
            Self::Name(text) | Self::Text(text) => text.len() + 40,
            Self::List(items) => 32 + items.iter().map(Self::weight).sum::<usize>(),
            _ => 32,
        }
    }

    /// As JSON; bytes as an object with their number.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Null => Json::Null,
            Self::Int(number) => (*number).into(),
            // By way of the shortest text, so that 0.1 stays 0.1.
            Self::Float(number) => number.to_string().parse::<f64>().map_or(Json::Null, float),
            Self::Double(number) => float(*number),
            Self::Name(text) | Self::Text(text) => text.as_ref().into(),
            Self::Pointer(value) => format!("{value:#x}").into(),
            Self::Bytes(count) => serde_json::json!({ "bytes": count }),
            Self::List(items) => items.iter().map(Self::to_json).collect(),
            Self::Many(count) => serde_json::json!({ "values": count }),
        }
    }
}

fn float(number: f64) -> Json {
    // JSON has no infinities.
    if number.is_finite() { number.into() } else { number.to_string().into() }
}

fn mask(id: u64, value: u64, dictionary: &Dictionary) -> Val {
    let mut left = value;
    let mut names: Vec<String> = Vec::new();
    for (name, flag) in dictionary.bitmask(id).into_iter().flat_map(|mask| mask.flags()) {
        if flag != 0 && left & flag == flag {
            left &= !flag;
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    if names.is_empty() {
        return Val::Int(value as i64);
    }
    if left != 0 {
        names.push(format!("{left:#x}"));
    }
    Val::Name(names.join(" | ").into())
}

impl fmt::Display for Val {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
            Self::Double(number) => write!(f, "{number}"),
            Self::Name(name) => f.write_str(name),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Pointer(value) => write!(f, "{value:#x}"),
            Self::Bytes(count) => write!(f, "blob({count})"),
            Self::List(items) => {
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", if at == 0 { "{" } else { ", " })?;
                }
                f.write_str(if items.is_empty() { "{}" } else { "}" })
            }
            Self::Many(count) => write!(f, "{count} values"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::dictionary::Definition;
    use crate::wire::record::Space;

    #[test]
    fn values_keep_their_names_and_numbers_their_shortest_form() {
        let mut dictionary = Dictionary::new(6);
        dictionary.define(&Definition { space: Space::Enum, id: 1, slot: 0, bytes: b"\x01\x04GL_X\x04\x07" });
        dictionary.define(&Definition { space: Space::Bitmask, id: 2, slot: 0, bytes: b"\x02\x01A\x01\x01B\x02" });
        let mut bytes = vec![11, 5, 9, 1, 4, 7, 9, 1, 4, 8, 10, 2, 7, 5];
        bytes.extend(0.1_f32.to_le_bytes());
        bytes.extend([3, 2]);
        let value = Val::read(&mut dictionary.wire(&bytes), &dictionary);
        assert_eq!(value.to_string(), "{GL_X, 8, A | B | 0x4, 0.1, -2}");
        assert_eq!(value.to_json().to_string(), r#"["GL_X",8,"A | B | 0x4",0.1,-2]"#);
        assert_eq!(Val::Double(f64::INFINITY).to_json(), "inf");
    }

    #[test]
    fn long_or_deep_values_are_only_counted() {
        let dictionary = Dictionary::new(6);
        let many = [vec![11, 0x81, 0x20], vec![0; 4097], vec![4, 9]].concat();
        let mut wire = dictionary.wire(&many);
        assert_eq!(Val::read(&mut wire, &dictionary), Val::Many(4097));
        assert_eq!(Val::read(&mut wire, &dictionary), Val::Int(9));
        let deep = [[11, 1].repeat(100), vec![0]].concat();
        let mut wire = dictionary.wire(&deep);
        assert!(Val::read(&mut wire, &dictionary).to_string().ends_with("1 values}}}}}}}}"));
        assert!(wire.rest().is_empty());
    }
}
