//! The text of the peer's `--tool=python`.

use std::io::Write;

use anytrace_core::Error;

use crate::tools::diff::engine::Show;
use crate::tools::diff::entry::Entry;
use crate::tools::diff::side::Property;
use crate::tools::diff::value::push_python_string;
use crate::tools::diff::{DiffOptions, DiffTotals};

const RED: &[u8] = b"\x1b[31m";
const GREEN: &[u8] = b"\x1b[32m";
const BOLD: &[u8] = b"\x1b[1m";
const NOT_BOLD: &[u8] = b"\x1b[22m";
const STRIKE: &[u8] = b"\x1b[9m";
const NORMAL: &[u8] = b"\x1b[0m";

/// Writes calls as the peer does.
pub(crate) struct Python<'a> {
    out: &'a mut dyn Write,
    has_color: bool,
    has_numbers: bool,
    hides_common: bool,
    /// Columns of the numbers last shown.
    columns: [usize; 2],
    line: Vec<u8>,
}

impl<'a> Python<'a> {
    pub(crate) fn new(options: &DiffOptions, out: &'a mut dyn Write) -> Self {
        let &DiffOptions { has_color, has_numbers, hides_common, .. } = options;
        Self { out, has_color, has_numbers, hides_common, columns: [0, 0], line: Vec::new() }
    }

    fn paint(&mut self, code: &[u8]) {
        if self.has_color {
            self.line.extend_from_slice(code);
        }
    }

    fn numbers(&mut self, a: Option<u64>, b: Option<u64>) {
        if !self.has_numbers {
            return;
        }
        if let (Some(a), Some(b)) = (a, b)
            && a == b
        {
            let text = a.to_string();
            self.columns = [text.len(); 2];
            self.line.extend_from_slice(text.as_bytes());
            return self.line.push(b' ');
        }
        for (at, number, color) in [(0, a, RED), (1, b, GREEN)] {
            match number {
                None => {
                    let columns = self.columns.get(at).copied().unwrap_or(0);
                    self.line.resize(self.line.len() + columns, b' ');
                }
                Some(number) => {
                    if at == 0 {
                        self.paint(STRIKE);
                    }
                    self.paint(color);
                    let text = number.to_string();
                    self.line.extend_from_slice(text.as_bytes());
                    self.paint(NORMAL);
                    if let Some(columns) = self.columns.get_mut(at) {
                        *columns = text.len();
                    }
                }
            }
            self.line.push(b' ');
        }
    }

    fn call(&mut self, entry: &Entry) -> Result<(), Error> {
        self.paint(BOLD);
        self.line.extend_from_slice(entry.name());
        self.paint(NOT_BOLD);
        self.line.push(b'(');
        for index in 0..entry.parts() {
            let Some((name, value)) = entry.part(index) else { break };
            if index == entry.arguments() {
                self.line.extend_from_slice(b") = ");
            } else {
                self.line.extend_from_slice(if index > 0 { b", " } else { b"" });
                self.line.extend_from_slice(name);
                self.line.extend_from_slice(b" = ");
            }
            self.line.extend_from_slice(value);
        }
        if !entry.has_return {
            self.line.push(b')');
        }
        self.paint(NORMAL);
        self.end()
    }

    fn end(&mut self) -> Result<(), Error> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    fn replaced(&mut self, old: &[u8], new: &[u8], is_same: bool) {
        if is_same {
            return self.line.extend_from_slice(new);
        }
        self.paint(STRIKE);
        self.paint(RED);
        self.line.extend_from_slice(old);
        self.paint(NORMAL);
        self.line.extend_from_slice(b" -> ");
        self.paint(GREEN);
        self.line.extend_from_slice(new);
        self.paint(NORMAL);
    }

    /// Writes the arguments. If a side has fewer, its last one is repeated, as in the peer.
    fn arguments<'e>(&mut self, a: &'e Entry, b: &'e Entry, forced: &[u32]) {
        let last = |entry: &Entry, index: usize| index.min(entry.arguments().saturating_sub(1));
        for index in 0..a.arguments().max(b.arguments()) {
            let (i, j) = (last(a, index), last(b, index));
            let has = |entry: &Entry| entry.arguments() > 0;
            // The peer fails if a side has no arguments at all.
            let old = a.part(i).filter(|_| has(a));
            let new = b.part(j).filter(|_| has(b));
            let none = |other: Option<(&'e [u8], &'e [u8])>| (other.map_or(&b""[..], |(name, _)| name), &b"None"[..]);
            let (old, new) = (old.unwrap_or_else(|| none(new)), new.unwrap_or_else(|| none(old)));
            if index > 0 {
                self.line.extend_from_slice(b", ");
            }
            // Here the peer writes names as it writes strings.
            let quoted = [old.0, new.0].map(|name| {
                let mut text = Vec::new();
                push_python_string(&mut text, name);
                text
            });
            let [old_name, new_name] = &quoted;
            self.replaced(old_name, new_name, old.0 == new.0);
            self.line.extend_from_slice(b" = ");
            let is_forced = forced.iter().any(|part| *part as usize == index);
            self.replaced(old.1, new.1, a.key(i) == b.key(j) && has(a) == has(b) && !is_forced);
        }
    }
}

impl Show for Python<'_> {
    fn properties(&mut self, _: &[Property], _: &[Property]) -> Result<(), Error> {
        Ok(())
    }

    fn frame(&mut self, _: Option<u64>, _: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn same(&mut self, a: Entry, b: Entry) -> Result<(), Error> {
        if self.hides_common {
            return Ok(());
        }
        self.line.extend_from_slice(b"  ");
        self.numbers(Some(a.number), Some(b.number));
        self.call(&b)
    }

    fn changed(&mut self, a: Entry, b: Entry, forced: &[u32]) -> Result<(), Error> {
        self.line.extend_from_slice(b"| ");
        self.numbers(Some(a.number), Some(b.number));
        self.paint(BOLD);
        self.line.extend_from_slice(b.name());
        self.paint(NOT_BOLD);
        self.line.push(b'(');
        self.arguments(&a, &b, forced);
        self.line.push(b')');
        if a.has_return || b.has_return {
            let (i, j) = (a.arguments(), b.arguments());
            let none: &[u8] = b"None";
            let old = a.part(i).map_or(none, |(_, value)| value);
            let new = b.part(j).map_or(none, |(_, value)| value);
            let is_forced = forced.iter().any(|part| *part as usize == i);
            self.line.extend_from_slice(b" = ");
            self.replaced(old, new, a.key(i) == b.key(j) && !is_forced);
        }
        self.end()
    }

    fn removed(&mut self, a: Entry) -> Result<(), Error> {
        self.line.extend_from_slice(b"- ");
        self.numbers(Some(a.number), None);
        self.paint(STRIKE);
        self.paint(RED);
        self.call(&a)
    }

    fn added(&mut self, b: Entry) -> Result<(), Error> {
        self.line.extend_from_slice(b"+ ");
        self.numbers(None, Some(b.number));
        self.paint(GREEN);
        self.call(&b)
    }

    fn finish(&mut self, _: &DiffTotals) -> Result<(), Error> {
        Ok(self.out.flush()?)
    }
}
