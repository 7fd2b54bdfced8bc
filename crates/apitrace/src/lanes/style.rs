//! Colors, names and strings of the text of `apitrace dump`.

use anytrace_core::text;

use crate::lanes::dictionary::{Frame, Named};
use crate::lanes::flags::CallFlags;
use crate::lanes::labels::Labeling;
use crate::lanes::text::{Escape, Quoting, push_text, until_nul};

/// How calls are printed.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Style {
    pub(crate) has_color: bool,
    pub(crate) has_numbers: bool,
    pub(crate) has_threads: bool,
    pub(crate) has_argument_names: bool,
    pub(crate) has_lines: bool,
    pub(crate) escape: Escape,
}

pub(crate) const NORMAL: &[u8] = b"\x1b[0m";
pub(crate) const BOLD: &[u8] = b"\x1b[1m";
pub(crate) const RED: &[u8] = b"\x1b[31m";
pub(crate) const GREEN: &[u8] = b"\x1b[32m";
pub(crate) const BLUE: &[u8] = b"\x1b[34m";

impl Style {
    #[inline]
    pub(crate) fn paint(&self, out: &mut Vec<u8>, color: &'static [u8]) {
        if self.has_color {
            out.extend_from_slice(color);
        }
    }

    pub(crate) fn push_name(&self, out: &mut Vec<u8>, name: &[u8], flags: CallFlags) {
        self.paint(out, if flags.has(CallFlags::NO_SIDE_EFFECTS) { NORMAL } else { BOLD });
        out.extend_from_slice(until_nul(name));
        self.paint(out, NORMAL);
    }

    pub(crate) fn quoting(&self) -> Quoting {
        let line_end: &[u8] = match (self.escape, self.has_lines, self.has_color) {
            (Escape::C, ..) | (_, false, _) => b"\\n",
            (_, _, false) => b"\n",
            // Colors end with the line, because pagers need it.
            (..) => b"\x1b[0m\n\x1b[34m",
        };
        Quoting { escape: self.escape, line_end }
    }

    /// A property of the trace.
    pub(crate) fn push_property(&self, out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
        out.extend_from_slice(b"// ");
        out.extend_from_slice(until_nul(name));
        out.extend_from_slice(b" = ");
        self.push_string(out, value);
        out.push(b'\n');
    }

    pub(crate) fn push_string(&self, out: &mut Vec<u8>, value: &[u8]) {
        self.paint(out, BLUE);
        out.push(b'"');
        push_text(out, value, self.quoting());
        out.push(b'"');
        self.paint(out, NORMAL);
    }
}

impl Labeling for Style {
    fn push_head(&self, out: &mut Vec<u8>, function: &Named) {
        self.push_name(out, function.name(), function.flags);
        out.push(b'(');
    }

    fn push_label(&self, out: &mut Vec<u8>, index: u64, function: &Named) {
        if index > 0 {
            out.extend_from_slice(b", ");
        }
        if self.has_argument_names {
            match function.get(index) {
                Some(name) => out.extend_from_slice(until_nul(name)),
                None => {
                    out.push(b'#');
                    text::push_dec(out, index);
                }
            }
            self.paint(out, NORMAL);
            out.extend_from_slice(b" = ");
        }
    }
}

/// Writes a stack frame as apitrace does.
pub(crate) fn push_frame(out: &mut Vec<u8>, frame: &Frame<'_>) {
    out.extend_from_slice(frame.module.map_or(b"?", until_nul));
    if let Some(function) = frame.function {
        out.extend_from_slice(b": ");
        out.extend_from_slice(until_nul(function));
    }
    if let Some(offset) = frame.offset {
        out.push(b'+');
        text::push_hex(out, offset);
    }
    if let Some(file) = frame.file {
        out.extend_from_slice(b": ");
        out.extend_from_slice(until_nul(file));
        if let Some(line) = frame.line {
            out.push(b':');
            text::push_dec(out, line);
        }
    }
}
