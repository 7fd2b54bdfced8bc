//! The difference of two dumps of the state of GL (`glretrace -D CALL`): JSON against JSON.
//!
//! Both are kept in memory, taking about four times their size without images.

mod tree;
mod words;

use std::io::Write;

use anytrace_core::Error;
use serde_json::{Value, json};

use crate::tools::diff::push_python_f64;

pub use tree::{Node, parse};

use tree::names;
use words::{Tag, compare, lines};

/// Options of [`diff_state`].
#[derive(Debug, Clone, Copy, Default)]
pub struct StateOptions {
    /// Ignore what only the second has.
    pub ignores_added: bool,
}

/// Two values that differ.
#[derive(Debug, Clone, PartialEq)]
pub struct StateChange<'a> {
    /// Where they are: a JSON pointer (RFC 6901).
    pub path: String,
    /// The first's value; `None` if it has none.
    pub old: Option<&'a Node>,
    /// The second's value.
    pub new: Option<&'a Node>,
}

/// All values that differ, in the order of their names.
pub fn diff_state<'a>(a: &'a Node, b: &'a Node, options: StateOptions) -> Vec<StateChange<'a>> {
    let mut changes = Vec::new();
    collect(Some(a), Some(b), options, &mut String::new(), &mut changes);
    changes
}

fn collect<'a>(
    a: Option<&'a Node>,
    b: Option<&'a Node>,
    options: StateOptions,
    path: &mut String,
    changes: &mut Vec<StateChange<'a>>,
) {
    // A value that is null is not the same as none.
    if let (Some(a), Some(b)) = (a, b)
        && are_equal(a, b, options)
    {
        return;
    }
    let length = path.len();
    match (a, b) {
        (Some(Node::Map(x)), Some(Node::Map(y))) => {
            let of = |node: Option<&'a Node>, name: &str| node.and_then(|node| node.get(name));
            for name in names(x, if options.ignores_added { &[] } else { y }) {
                path.push('/');
                path.push_str(&name.replace('~', "~0").replace('/', "~1"));
                collect(of(a, name), of(b, name), options, path, changes);
                path.truncate(length);
            }
        }
        (Some(Node::List(x)), Some(Node::List(y))) => {
            for at in 0..x.len().max(y.len()) {
                path.push_str(&format!("/{at}"));
                collect(x.get(at), y.get(at), options, path, changes);
                path.truncate(length);
            }
        }
        (old, new) => changes.push(StateChange { path: path.clone(), old, new }),
    }
}

/// True when two values are the same. Numbers may differ in the last bit of a 32-bit float.
fn are_equal(a: &Node, b: &Node, options: StateOptions) -> bool {
    match (a, b) {
        (Node::Map(x), Node::Map(y)) => {
            if x.len() != y.len() && !options.ignores_added {
                return false;
            }
            x.iter().all(|(name, old)| b.get(name).is_some_and(|new| are_equal(old, new, options)))
        }
        (Node::List(x), Node::List(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(old, new)| are_equal(old, new, options))
        }
        _ => a.is_close(b),
    }
}

/// Prints what differs as `apitrace diff-state` does.
///
/// # Errors
/// [`anytrace_core::Kind::Io`].
pub fn write_text(a: &Node, b: &Node, options: StateOptions, out: &mut dyn Write) -> Result<(), Error> {
    let mut text = Text { out: Vec::new(), level: 0, options };
    text.differ(a, b);
    out.write_all(&text.out)?;
    Ok(())
}

/// Prints what differs as JSON with a version field.
///
/// # Errors
/// [`anytrace_core::Kind::Io`].
pub fn write_json(changes: &[StateChange<'_>], names: [&str; 2], out: &mut dyn Write) -> Result<(), Error> {
    let rows: Vec<Value> = changes
        .iter()
        .map(|change| {
            let mut row = json!({"path": change.path});
            if let Some(object) = row.as_object_mut() {
                let sides = [("old", change.old), ("new", change.new)];
                for (side, node) in sides.into_iter().filter_map(|(side, node)| Some((side, node?))) {
                    object.insert(side.to_owned(), as_json(node));
                }
            }
            row
        })
        .collect();
    let [a, b] = names;
    let value = json!({"version": 1, "a": a, "b": b, "equal": changes.is_empty(), "differences": rows});
    writeln!(out, "{value:#}")?;
    Ok(())
}

fn as_json(node: &Node) -> Value {
    match node {
        Node::Null => Value::Null,
        Node::Bool(value) => json!(value),
        Node::Integer(digits) => match (digits.parse::<i64>(), digits.parse::<u64>()) {
            (Ok(value), _) => json!(value),
            (_, Ok(value)) => json!(value),
            _ => json!(digits),
        },
        // JSON cannot represent infinite numbers.
        Node::Real(value) if value.is_finite() => json!(value),
        Node::Real(value) => json!(value.to_string()),
        Node::Text(text) => json!(text),
        Node::List(list) => list.iter().map(as_json).collect(),
        Node::Map(members) => Value::Object(members.iter().map(|(name, node)| (name.clone(), as_json(node))).collect()),
    }
}

/// The peer's text.
struct Text {
    out: Vec<u8>,
    level: usize,
    options: StateOptions,
}

impl Text {
    fn put(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    fn indent(&mut self) {
        self.out.resize(self.out.len() + self.level * 2, b' ');
    }

    fn open(&mut self, text: &str) {
        self.put(text);
        self.level += 1;
    }

    fn close(&mut self, text: &str) {
        self.level = self.level.saturating_sub(1);
        self.indent();
        self.put(text);
    }

    fn differ(&mut self, a: &Node, b: &Node) {
        if are_equal(a, b, self.options) {
            return;
        }
        match (a, b) {
            (Node::Map(x), Node::Map(y)) => {
                self.open("{\n");
                let names = names(x, if self.options.ignores_added { &[] } else { y });
                for (at, name) in names.iter().enumerate() {
                    let (old, new) = (a.get(name).unwrap_or(&Node::Null), b.get(name).unwrap_or(&Node::Null));
                    if are_equal(old, new, self.options) {
                        continue;
                    }
                    self.indent();
                    self.put(name);
                    self.put(": ");
                    self.differ(old, new);
                    self.put(if at + 1 < names.len() { ",\n" } else { "\n" });
                }
                self.end_object();
            }
            (Node::List(x), Node::List(y)) => {
                self.open("[\n");
                let count = x.len().max(y.len());
                for at in 0..count {
                    let (old, new) = (x.get(at).unwrap_or(&Node::Null), y.get(at).unwrap_or(&Node::Null));
                    self.indent();
                    if are_equal(old, new, self.options) {
                        self.dump(old)
                    } else {
                        self.differ(old, new)
                    }
                    self.put(if at + 1 < count { ",\n" } else { "\n" });
                }
                self.close("]");
            }
            _ => self.replaced(a, b),
        }
    }

    fn end_object(&mut self) {
        self.close("}");
        if self.level == 0 {
            self.put("\n");
        }
    }

    fn replaced(&mut self, a: &Node, b: &Node) {
        let has_lines = |node: &Node| matches!(node, Node::Text(text) if text.contains('\n'));
        if !has_lines(a) && !has_lines(b) {
            self.dump(a);
            self.put(" -> ");
            return self.dump(b);
        }
        self.level += 1;
        for (tag, line) in compare(&lines(&as_python(a)), &lines(&as_python(b))) {
            self.put("\n");
            self.indent();
            match tag {
                Tag::Guide => {
                    self.put("   ");
                    self.put(&line);
                    continue;
                }
                Tag::Same => self.put("  \""),
                Tag::Removed => self.put("- \""),
                Tag::Added => self.put("+ \""),
            }
            self.put(&line);
            self.put("\\n\"");
        }
        self.level -= 1;
    }

    fn dump(&mut self, node: &Node) {
        match node {
            Node::Map(members) => {
                self.open("{\n");
                for (at, (name, value)) in members.iter().enumerate() {
                    self.indent();
                    self.put(name);
                    self.put(": ");
                    self.dump(value);
                    self.put(if at + 1 < members.len() { ",\n" } else { "\n" });
                }
                self.end_object();
            }
            Node::List(list) => {
                self.open("[\n");
                for (at, value) in list.iter().enumerate() {
                    self.indent();
                    self.dump(value);
                    self.put(if at + 1 < list.len() { ",\n" } else { "\n" });
                }
                self.close("]");
            }
            Node::Null => self.put("null"),
            Node::Bool(value) => self.put(if *value { "true" } else { "false" }),
            Node::Integer(digits) => self.put(digits),
            Node::Real(value) => self.put(&real(*value)),
            Node::Text(text) => self.put(&quoted(text)),
        }
    }
}

fn real(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned();
    }
    let mut out = Vec::new();
    push_python_f64(&mut out, value);
    String::from_utf8_lossy(&out).into_owned()
}

/// A JSON string in pure ASCII.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='\u{7f}' => out.push(char),
            char => char.encode_utf16(&mut [0; 2]).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}"))),
        }
    }
    out.push('"');
    out
}

/// A value as formatted by Python's `str`, for comparison with a text of several lines.
fn as_python(node: &Node) -> String {
    match node {
        Node::Text(text) => text.clone(),
        Node::Null => "None".to_owned(),
        Node::Bool(value) => if *value { "True" } else { "False" }.to_owned(),
        Node::Real(value) if value.is_finite() => real(*value),
        Node::Real(value) => if value.is_nan() {
            "nan"
        } else if *value > 0.0 {
            "inf"
        } else {
            "-inf"
        }
        .to_owned(),
        Node::Integer(digits) => digits.clone(),
        Node::List(_) | Node::Map(_) => {
            let mut out = String::new();
            push_repr(&mut out, node);
            out
        }
    }
}

/// Appends a value as formatted by Python's `repr`, except that members are sorted by name.
fn push_repr(out: &mut String, node: &Node) {
    match node {
        Node::Text(text) => push_repr_text(out, text),
        Node::List(list) => {
            out.push('[');
            for (at, value) in list.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                push_repr(out, value);
            }
            out.push(']');
        }
        Node::Map(members) => {
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                push_repr_text(out, name);
                out.push_str(": ");
                push_repr(out, value);
            }
            out.push('}');
        }
        _ => out.push_str(&as_python(node)),
    }
}

fn push_repr_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if char == quote || char == '\\' => out.extend(['\\', char]),
            char if char.is_control() => out.push_str(&format!("\\x{:02x}", u32::from(char))),
            char => out.push(char),
        }
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(a: &str, b: &str, ignores_added: bool) -> String {
        let mut out = Vec::new();
        write_text(&parse(a, false).unwrap(), &parse(b, false).unwrap(), StateOptions { ignores_added }, &mut out)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn differences_are_those_of_the_format_s_own_tool() {
        let a = "{\"a\": 1, \"b\": [1, 2, {\"x\": 1}], \"c\": \"x\", \"z\": null}";
        let b = "{\"a\": 1.0, \"b\": [1, 3, {\"x\": 1}, 4], \"c\": \"\\u00e9\", \"n\": {\"q\": 1}}";
        let expected = "{\n  b: [\n    1,\n    2 -> 3,\n    {\n      x: 1\n    },\n    null -> 4\n  ],\n  c: \"x\" -> \"\\u00e9\",\n  \
                        n: null -> {\n    q: 1\n  },\n}\n";
        assert_eq!(text(a, b, false), expected);
        assert_eq!(text("{\"a\": 1}", "{\"a\": 1, \"b\": 2}", true), "");
        assert_eq!(text("[1]", "[2]", false), "[\n  1 -> 2\n]");
    }

    #[test]
    fn changes_have_a_place_and_say_what_is_missing() {
        let (a, b) = (parse("{\"a/b\": [1, 2]}", false).unwrap(), parse("{\"a/b\": [1], \"n\": 1}", false).unwrap());
        let changes = diff_state(&a, &b, StateOptions::default());
        let shown: Vec<_> =
            changes.iter().map(|one| (one.path.as_str(), one.old.is_some(), one.new.is_some())).collect();
        assert_eq!(shown, [("/a~1b/1", true, false), ("/n", false, true)]);
    }
}
