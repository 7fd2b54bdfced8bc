//! Differences as text: by frame, with some calls around them.

use std::collections::VecDeque;
use std::io::Write;

use anytrace_core::{Error, text};

use crate::lanes::text::{Escape, Quoting, push_text};
use crate::tools::diff::engine::{Show, differing};
use crate::tools::diff::entry::Entry;
use crate::tools::diff::side::Property;
use crate::tools::diff::{DiffOptions, DiffTotals};

const RED: &[u8] = b"\x1b[31m";
const GREEN: &[u8] = b"\x1b[32m";
const CYAN: &[u8] = b"\x1b[36m";
const BOLD: &[u8] = b"\x1b[1m";
const NORMAL: &[u8] = b"\x1b[0m";

/// Minimum width of the columns for numbers.
const NUMBER_COLUMNS: usize = 6;

/// Writes differences.
pub(crate) struct Text<'a> {
    out: &'a mut dyn Write,
    options: &'a DiffOptions,
    line: Vec<u8>,
    frames: (Option<u64>, Option<u64>),
    /// The frame's head was written already.
    has_head: bool,
    /// Equal calls that may be shown before the next difference.
    before: VecDeque<(Entry, Entry)>,
    /// How many more calls are shown after the last difference.
    after: usize,
    /// Calls were skipped since the last one shown.
    has_gap: bool,
}

impl<'a> Text<'a> {
    pub(crate) fn new(options: &'a DiffOptions, out: &'a mut dyn Write) -> Self {
        let (line, before) = (Vec::new(), VecDeque::new());
        Self { out, options, line, frames: (None, None), has_head: true, before, after: 0, has_gap: false }
    }

    fn paint(&mut self, code: &[u8]) {
        if self.options.has_color {
            self.line.extend_from_slice(code);
        }
    }

    fn end(&mut self) -> Result<(), Error> {
        self.line.push(b'\n');
        self.out.write_all(&self.line)?;
        self.line.clear();
        Ok(())
    }

    /// Writes what precedes a difference.
    fn lead(&mut self) -> Result<(), Error> {
        if !std::mem::replace(&mut self.has_head, true) {
            self.paint(CYAN);
            let head = match self.frames {
                (Some(a), Some(b)) if a == b => format!("@@ frame {a} @@"),
                (Some(a), Some(b)) => format!("@@ frame {a} -> {b} @@"),
                (Some(a), None) => format!("@@ frame {a} -> none @@"),
                (None, b) => format!("@@ frame none -> {} @@", b.unwrap_or(0)),
            };
            self.line.extend_from_slice(head.as_bytes());
            self.paint(NORMAL);
            self.end()?;
        } else if self.has_gap {
            self.paint(CYAN);
            self.line.extend_from_slice(b"...");
            self.paint(NORMAL);
            self.end()?;
        }
        self.has_gap = false;
        self.after = if self.options.hides_common { 0 } else { self.options.context_calls };
        while let Some((a, b)) = self.before.pop_front() {
            self.common(&a, &b)?;
        }
        Ok(())
    }

    fn numbers(&mut self, a: Option<u64>, b: Option<u64>) {
        if !self.options.has_numbers {
            return;
        }
        let start = self.line.len();
        match (a, b) {
            (Some(a), Some(b)) if a != b => {
                text::push_dec(&mut self.line, a);
                self.line.push(b'/');
                text::push_dec(&mut self.line, b);
            }
            (a, b) => text::push_dec(&mut self.line, a.or(b).unwrap_or(0)),
        }
        while self.line.len() - start < NUMBER_COLUMNS {
            self.line.insert(start, b' ');
        }
        self.line.push(b' ');
    }

    fn thread(&mut self, a: &Entry, b: &Entry) {
        if self.options.has_threads {
            let text = if a.thread == b.thread {
                format!("@{:x} ", a.thread)
            } else {
                format!("@{:x} -> @{:x} ", a.thread, b.thread)
            };
            self.line.extend_from_slice(text.as_bytes());
        }
    }

    fn common(&mut self, a: &Entry, b: &Entry) -> Result<(), Error> {
        self.line.extend_from_slice(b"  ");
        self.numbers(Some(a.number), Some(b.number));
        self.thread(a, b);
        push_call(&mut self.line, b);
        self.end()
    }

    fn alone(&mut self, entry: &Entry, sign: &[u8], color: &[u8]) -> Result<(), Error> {
        self.lead()?;
        self.paint(color);
        self.line.extend_from_slice(sign);
        self.numbers(Some(entry.number), None);
        self.thread(entry, entry);
        push_call(&mut self.line, entry);
        self.paint(NORMAL);
        self.end()
    }

    fn arrow(&mut self, old: &[u8], new: &[u8]) {
        self.paint(RED);
        self.line.extend_from_slice(old);
        self.paint(NORMAL);
        self.line.extend_from_slice(b" -> ");
        self.paint(GREEN);
        self.line.extend_from_slice(new);
        // A blob's text is its length, a long value's its beginning.
        if old == new {
            self.line.extend_from_slice(b" (other content)");
        }
        self.paint(NORMAL);
    }

    fn property(&mut self, sign: &[u8], color: &[u8], name: &[u8], value: &[u8]) -> Result<(), Error> {
        self.paint(color);
        self.line.extend_from_slice(sign);
        self.line.extend_from_slice(b"// ");
        push_quoted(&mut self.line, name);
        self.line.extend_from_slice(b" = \"");
        push_quoted(&mut self.line, value);
        self.line.push(b'"');
        self.paint(NORMAL);
        self.end()
    }
}

fn push_quoted(out: &mut Vec<u8>, text: &[u8]) {
    push_text(out, text, Quoting { escape: Escape::C, line_end: b"\\n" });
}

/// Appends a call of one trace.
pub(crate) fn push_call(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(entry.name());
    out.push(b'(');
    for index in 0..entry.parts() {
        let Some((name, value)) = entry.part(index) else { break };
        if index == entry.arguments() {
            out.extend_from_slice(b") = ");
        } else {
            out.extend_from_slice(if index > 0 { b", " } else { b"" });
            out.extend_from_slice(name);
            out.extend_from_slice(b" = ");
        }
        out.extend_from_slice(value);
    }
    if !entry.has_return {
        out.push(b')');
    }
    out.extend_from_slice(entry.tail());
}

/// Old and new of a part: name of the argument, value; `None` if a side lacks it.
pub(crate) type PartPair<'e> = (Option<(&'e [u8], &'e [u8])>, Option<(&'e [u8], &'e [u8])>);

/// The arguments of two calls, index by index, and their return values, with whether they are equal.
pub(crate) fn pairs<'e>(a: &'e Entry, b: &'e Entry, forced: &[u32]) -> Vec<(PartPair<'e>, bool)> {
    let arguments = a.arguments().max(b.arguments());
    // The position of a part in a call, if it has that part.
    let place = |entry: &Entry, index: usize| {
        let is_return = index == arguments;
        let exists = if is_return { entry.has_return } else { index < entry.arguments() };
        exists.then_some(if is_return { entry.arguments() } else { index })
    };
    let pair = |index: usize| {
        let (i, j) = (place(a, index), place(b, index));
        let is_forced = i.is_some_and(|at| forced.iter().any(|part| *part as usize == at));
        let (old, new) = (i.and_then(|at| a.part(at)), j.and_then(|at| b.part(at)));
        let keys = (i.map(|at| a.key(at)), j.map(|at| b.key(at)));
        let is_same = old.map(|(name, _)| name) == new.map(|(name, _)| name) && keys.0 == keys.1 && !is_forced;
        ((old, new), is_same)
    };
    let has_return = a.has_return || b.has_return;
    (0..arguments + usize::from(has_return)).map(pair).collect()
}

impl Show for Text<'_> {
    fn properties(&mut self, a: &[Property], b: &[Property]) -> Result<(), Error> {
        for (sign, at) in [("---", 0), ("+++", 1)] {
            let name = self.options.names.get(at).cloned().unwrap_or_default();
            self.paint(BOLD);
            self.line.extend_from_slice(format!("{sign} {}", text::printable(&name)).as_bytes());
            self.paint(NORMAL);
            self.end()?;
        }
        for (name, old, new) in differing(a, b) {
            if let Some(old) = old {
                self.property(b"- ", RED, &name, &old)?;
            }
            if let Some(new) = new {
                self.property(b"+ ", GREEN, &name, &new)?;
            }
        }
        Ok(())
    }

    fn frame(&mut self, a: Option<u64>, b: Option<u64>) -> Result<(), Error> {
        self.frames = (a, b);
        (self.has_head, self.after, self.has_gap) = (false, 0, false);
        self.before.clear();
        Ok(())
    }

    fn same(&mut self, a: Entry, b: Entry) -> Result<(), Error> {
        if self.after > 0 {
            self.after -= 1;
            return self.common(&a, &b);
        }
        let most = if self.options.hides_common { 0 } else { self.options.context_calls };
        if most == 0 {
            self.has_gap = true;
            return Ok(());
        }
        if self.before.len() == most {
            self.before.pop_front();
            self.has_gap = true;
        }
        self.before.push_back((a, b));
        Ok(())
    }

    fn changed(&mut self, a: Entry, b: Entry, forced: &[u32]) -> Result<(), Error> {
        self.lead()?;
        self.line.extend_from_slice(b"| ");
        self.numbers(Some(a.number), Some(b.number));
        self.thread(&a, &b);
        self.line.extend_from_slice(b.name());
        self.line.push(b'(');
        let arguments = a.arguments().max(b.arguments());
        let pairs = pairs(&a, &b, forced);
        for (index, ((old, new), is_same)) in pairs.iter().enumerate() {
            let none: (&[u8], &[u8]) = (b"", b"none");
            let (old, new) = (
                old.unwrap_or((new.map_or(b"", |new| new.0), none.1)),
                new.unwrap_or((old.map_or(b"", |old| old.0), none.1)),
            );
            if index == arguments {
                self.line.extend_from_slice(b") = ");
            } else {
                self.line.extend_from_slice(if index > 0 { b", " } else { b"" });
                if old.0 == new.0 {
                    self.line.extend_from_slice(new.0)
                } else {
                    self.arrow(old.0, new.0)
                }
                self.line.extend_from_slice(b" = ");
            }
            if *is_same || (old.1 == new.1 && old.0 != new.0) {
                self.line.extend_from_slice(new.1);
            } else {
                self.arrow(old.1, new.1);
            }
        }
        if pairs.len() == arguments {
            self.line.push(b')');
        }
        if a.tail() == b.tail() {
            self.line.extend_from_slice(b.tail());
        } else {
            let state = |entry: &Entry| match entry.tail() {
                b"" => b" complete".to_vec(),
                tail => tail.get(3..).unwrap_or_default().to_vec(),
            };
            self.line.extend_from_slice(b" //");
            let (old, new) = (state(&a), state(&b));
            self.line.push(b' ');
            self.arrow(old.trim_ascii(), new.trim_ascii());
        }
        self.end()
    }

    fn removed(&mut self, a: Entry) -> Result<(), Error> {
        self.alone(&a, b"- ", RED)
    }

    fn added(&mut self, b: Entry) -> Result<(), Error> {
        self.alone(&b, b"+ ", GREEN)
    }

    fn finish(&mut self, totals: &DiffTotals) -> Result<(), Error> {
        let &DiffTotals { same, removed, added, changed, properties, frames } = totals;
        self.paint(BOLD);
        self.line.extend_from_slice(if totals.is_equal() { b"equal" } else { b"different" });
        self.paint(NORMAL);
        let [same_frames, removed_frames, added_frames, changed_frames] = frames;
        let text = format!(
            ": {same} calls same, {removed} removed, {added} added, {changed} changed; \
             {same_frames} frames same, {removed_frames} removed, {added_frames} added, {changed_frames} changed; \
             {properties} properties differ"
        );
        self.line.extend_from_slice(text.as_bytes());
        self.end()?;
        Ok(self.out.flush()?)
    }
}
