//! Formats one call as text, directly from its bytes.

use anytrace_core::{Error, text};

use crate::tools::calls::Call;
use crate::tools::dictionary::{Dictionary, Frame, Named};
use crate::tools::flags::CallFlags;
use crate::tools::labels::{LabelCache, Labelling};
use crate::tools::print_value::Level;
use crate::tools::text::{Escape, Quoting, push_text};
use crate::tools::wire::{Detail, Wire};
use crate::tools::workers::{Flush, Formatter, TEXT_BYTES_MAX};

/// How calls are printed.
#[derive(Debug, Clone, Copy)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct Style {
    pub(crate) has_colour: bool,
    pub(crate) has_numbers: bool,
    pub(crate) has_threads: bool,
    pub(crate) has_argument_names: bool,
    pub(crate) has_lines: bool,
    pub(crate) escape: Escape,
}

pub(crate) const NORMAL: &[u8] = b"\x1b[0m";
const BOLD: &[u8] = b"\x1b[1m";
const RED: &[u8] = b"\x1b[31m";
pub(crate) const GREEN: &[u8] = b"\x1b[32m";
pub(crate) const BLUE: &[u8] = b"\x1b[34m";

impl Style {
    #[inline]
    pub(crate) fn paint(&self, out: &mut Vec<u8>, colour: &'static [u8]) {
        if self.has_colour {
            out.extend_from_slice(colour);
        }
    }

    pub(crate) fn push_name(&self, out: &mut Vec<u8>, name: &[u8], flags: CallFlags) {
        self.paint(out, if flags.has(CallFlags::NO_SIDE_EFFECTS) { NORMAL } else { BOLD });
        out.extend_from_slice(until_nul(name));
        self.paint(out, NORMAL);
    }

    pub(crate) fn quoting(&self) -> Quoting {
        let line_end: &[u8] = match (self.escape, self.has_lines, self.has_colour) {
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

impl Labelling for Style {
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

/// The part of a name before a NUL: the format's own tool keeps names as C strings.
pub(crate) fn until_nul(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Takes a blob under the name that is printed.
pub type BlobSink<'a> = &'a mut dyn FnMut(&str, &[u8]) -> Result<(), Error>;

/// Destinations for text and blobs.
pub(crate) struct Ways<'a> {
    /// Takes the text made so far and leaves the vector empty.
    pub(crate) flush: Flush<'a>,
    /// Takes blobs, if they are requested.
    pub(crate) blobs: Option<BlobSink<'a>>,
}

/// Prints calls.
pub(crate) struct Printer {
    pub(crate) style: Style,
    labels: LabelCache,
    arguments: Vec<(u64, usize, bool)>,
    pub(crate) levels: Vec<Level>,
    pub(crate) blobs: u64,
    /// Text may be flushed before the call is complete: none of it will be taken back.
    pub(crate) may_flush: bool,
    /// The call's text grew too long to be taken back.
    pub(crate) is_long: bool,
}

impl Printer {
    pub(crate) fn new(style: Style) -> Self {
        let labels = LabelCache::default();
        Self { style, labels, arguments: Vec::new(), levels: Vec::new(), blobs: 0, may_flush: false, is_long: false }
    }

    /// Appends the line or lines of a call.
    pub(crate) fn print(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let style = self.style;
        if style.has_numbers {
            text::push_dec(out, call.number);
            out.push(b' ');
        }
        if style.has_threads {
            out.push(b'@');
            // The peer keeps 32 bits of it.
            push_hex_digits(out, u64::from(call.thread as u32));
            out.push(b' ');
        }
        self.blobs = 0;
        (self.may_flush, self.is_long) = (false, false);
        let Some(function) = dictionary.function(call.function) else {
            return self.nameless(out, call, dictionary, ways);
        };
        let labels = self.labels.get(call.function, function, &style);
        let mut flags = labels.flags;
        out.extend_from_slice(labels.head());
        let start = out.len();
        let (mut expected, mut returned, mut stack) = (0, None, None);
        for details in [call.enter, call.leave] {
            let mut wire = dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) if index == expected => {
                        let labels = self.labels.get(call.function, function, &style);
                        match labels.argument(index) {
                            Some(label) => out.extend_from_slice(label),
                            None => style.push_label(out, index, function),
                        }
                        expected += 1;
                        self.value(out, &mut wire, call, dictionary, ways)?;
                        if self.is_long {
                            return self.anew(out, start, call, function, dictionary, ways);
                        }
                    }
                    // If an argument is missing, late or repeated, all of them must be examined first.
                    Detail::Argument(_) => {
                        return self.anew(out, start, call, function, dictionary, ways);
                    }
                    Detail::Return => {
                        returned = Some(wire);
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Backtrace(count) => {
                        stack = Some((wire, count));
                        skip_frames(&mut wire, count);
                    }
                    Detail::Flags(number) => flags = with_fake(flags, number),
                    Detail::Thread(_) => {}
                }
            }
        }
        for missing in expected..function.count() {
            if out.len() > TEXT_BYTES_MAX {
                return self.anew(out, start, call, function, dictionary, ways);
            }
            style.push_label(out, missing, function);
            out.push(b'?');
        }
        self.tail(out, call, dictionary, (flags, returned, stack), ways)
    }

    /// Discards the arguments' text and prints them all again, in whatever order they are.
    #[cold]
    fn anew(
        &mut self,
        out: &mut Vec<u8>,
        start: usize,
        call: &Call<'_>,
        function: &Named,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        out.truncate(start);
        self.blobs = 0;
        self.disordered(out, call, function, dictionary, ways)
    }

    /// The text after the arguments.
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        (flags, returned, stack): (CallFlags, Option<Wire<'_>>, Option<(Wire<'_>, u64)>),
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let style = self.style;
        self.may_flush = true;
        out.push(b')');
        if let Some(mut wire) = returned {
            out.extend_from_slice(b" = ");
            self.value(out, &mut wire, call, dictionary, ways)?;
        }
        if call.is_incomplete || flags.has(CallFlags::FAKE) {
            out.extend_from_slice(b" //");
            if flags.has(CallFlags::FAKE) {
                out.extend_from_slice(b" fake");
            }
            if call.is_incomplete {
                out.push(b' ');
                style.paint(out, RED);
                out.extend_from_slice(b"incomplete");
                style.paint(out, NORMAL);
            }
        }
        out.push(b'\n');
        if style.has_lines {
            if let Some((mut wire, count)) = stack {
                self.backtrace(out, &mut wire, count, dictionary, ways)?;
            }
            if flags.has(CallFlags::END_FRAME) {
                out.push(b'\n');
            }
        }
        Ok(())
    }

    fn backtrace(
        &self,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        count: u64,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        self.style.paint(out, BOLD);
        self.style.paint(out, RED);
        out.extend_from_slice(b"Backtrace:\n");
        self.style.paint(out, NORMAL);
        for _ in 0..count {
            if wire.rest().is_empty() {
                break;
            }
            if out.len() > TEXT_BYTES_MAX {
                (ways.flush)(out)?;
            }
            push_frame(out, &dictionary.frame(wire.uint()));
            out.push(b'\n');
        }
        Ok(())
    }

    /// Arguments that have no value.
    fn missing(
        &self,
        out: &mut Vec<u8>,
        indexes: std::ops::Range<u64>,
        function: &Named,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        for index in indexes {
            if out.len() > TEXT_BYTES_MAX {
                (ways.flush)(out)?;
            }
            self.style.push_label(out, index, function);
            out.push(b'?');
        }
        Ok(())
    }

    /// A call whose function's definition was lost.
    fn nameless(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        self.style.push_name(out, b"?", CallFlags::default());
        out.push(b'(');
        self.disordered(out, call, &Named::default(), dictionary, ways)
    }

    /// Arguments in any order: the last one of each index counts, and missing ones are shown as such.
    fn disordered(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        function: &Named,
        dictionary: &Dictionary,
        ways: &mut Ways<'_>,
    ) -> Result<(), Error> {
        let (mut flags, mut returned, mut stack) = (function.flags, None, None);
        (self.may_flush, self.is_long) = (true, false);
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        for (details, is_leave) in [(call.enter, false), (call.leave, true)] {
            let mut wire = dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) => {
                        arguments.push((index, details.len() - wire.rest().len(), is_leave));
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Return => {
                        returned = Some(wire);
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Backtrace(count) => {
                        stack = Some((wire, count));
                        skip_frames(&mut wire, count);
                    }
                    Detail::Flags(number) => flags = with_fake(flags, number),
                    Detail::Thread(_) => {}
                }
            }
        }
        // The sort is stable: of equal indexes the last in the call stays last.
        arguments.sort_by_key(|(index, ..)| *index);
        let mut expected = 0;
        for (place, (index, at, is_leave)) in arguments.iter().enumerate() {
            if arguments.get(place + 1).is_some_and(|next| next.0 == *index) {
                continue;
            }
            // Indexes beyond the signature break a rule: nothing is printed for those in between.
            self.missing(out, expected..(*index).min(function.count()), function, ways)?;
            expected = index.saturating_add(1);
            self.style.push_label(out, *index, function);
            let details = if *is_leave { call.leave } else { call.enter };
            let mut wire = dictionary.wire(details.get(*at..).unwrap_or_default());
            self.value(out, &mut wire, call, dictionary, ways)?;
        }
        self.arguments = arguments;
        self.missing(out, expected..function.count(), function, ways)?;
        self.tail(out, call, dictionary, (flags, returned, stack), ways)
    }
}

impl Formatter for Printer {
    fn call(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        flush: Flush<'_>,
    ) -> Result<(), Error> {
        self.print(out, call, dictionary, &mut Ways { flush, blobs: None })
    }
}

fn with_fake(flags: CallFlags, number: u64) -> CallFlags {
    if number & 1 == 1 { flags.with(CallFlags::FAKE) } else { flags }
}

fn skip_frames(wire: &mut Wire<'_>, count: u64) {
    for _ in 0..count {
        if wire.rest().is_empty() {
            break;
        }
        wire.uint();
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

fn push_hex_digits(out: &mut Vec<u8>, value: u64) {
    let at = out.len();
    text::push_hex(out, value);
    out.drain(at..at + 2);
}
