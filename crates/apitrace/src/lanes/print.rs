//! Formats one call as text, directly from its bytes.

use anytrace_core::{Error, text};

use crate::lanes::calls::Call;
use crate::lanes::dictionary::Dictionary;
use crate::lanes::flags::CallFlags;
use crate::lanes::formatter::{Flush, Formatter};
use crate::lanes::print_value::{BlobSink, CallText, Level};
use crate::lanes::style::{BOLD, NORMAL, RED, Style, push_frame};
use crate::lanes::walk::{CallWriter, Flow, Levels, Pair, Rest, Walk};
use crate::lanes::wire::Wire;

/// Prints calls.
pub(crate) struct Printer {
    style: Style,
    walk: Walk<Level>,
}

impl Printer {
    pub(crate) fn new(style: Style) -> Self {
        Self { style, walk: Walk::default() }
    }

    /// Appends the line or lines of a call. Blobs go to `blobs`, if they are requested.
    #[inline]
    pub(crate) fn print(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        flush: Flush<'_>,
        blobs: Option<BlobSink<'_>>,
    ) -> Result<(), Error> {
        self.walk.call(&mut CallText::new(self.style, call.number, blobs), out, call, dictionary, flush)
    }

    /// Appends a value. A text that grows too long is cut; then it returns true.
    pub(crate) fn value(
        &mut self,
        out: &mut Vec<u8>,
        wire: &mut Wire<'_>,
        call: &Call<'_>,
        dictionary: &Dictionary,
    ) -> Result<bool, Error> {
        self.walk.value(&mut CallText::new(self.style, call.number, None), out, wire, dictionary)
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
        self.print(out, call, dictionary, flush, None)
    }
}

impl CallWriter for CallText<'_> {
    type Names = Style;

    fn pair(&self) -> Pair {
        Pair::Human
    }

    fn labeling(&self) -> &Style {
        &self.style
    }

    #[inline]
    fn head(&mut self, out: &mut Vec<u8>, call: &Call<'_>) {
        if self.style.has_numbers {
            text::push_dec(out, call.number);
            out.push(b' ');
        }
        if self.style.has_threads {
            out.push(b'@');
            // The peer keeps 32 bits of it.
            push_hex_digits(out, u64::from(call.thread as u32));
            out.push(b' ');
        }
    }

    fn nameless(&self, out: &mut Vec<u8>) {
        self.style.push_name(out, b"?", CallFlags::default());
        out.push(b'(');
    }

    fn restart(&mut self) {
        self.blobs_named = 0;
    }

    fn missing(&self, out: &mut Vec<u8>) {
        out.push(b'?');
    }

    #[inline]
    fn after_argument(&self, _: &mut Vec<u8>) {}

    fn omits(&self, level: &Level, next: &Wire<'_>) -> bool {
        level.omits(next)
    }

    fn compact(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        outer: Option<&Level>,
        members: &mut Wire<'_>,
        dictionary: &Dictionary,
    ) -> bool {
        !outer.is_some_and(Level::is_next_nameless) && self.guid(out, id, members, dictionary)
    }

    #[inline]
    fn tail(
        &mut self,
        out: &mut Vec<u8>,
        call: &Call<'_>,
        rest: Rest<'_>,
        levels: &mut Levels<Level>,
        dictionary: &Dictionary,
        flow: &mut Flow<'_>,
    ) -> Result<(), Error> {
        let (style, flags) = (self.style, rest.flags());
        out.push(b')');
        if let Some(mut wire) = rest.returned {
            out.extend_from_slice(b" = ");
            levels.value(self, out, &mut wire, dictionary, flow)?;
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
            if let Some((wire, count)) = rest.stack {
                backtrace(style, out, wire, count, dictionary, flow)?;
            }
            if flags.has(CallFlags::END_FRAME) {
                out.push(b'\n');
            }
        }
        Ok(())
    }
}

fn backtrace(
    style: Style,
    out: &mut Vec<u8>,
    mut wire: Wire<'_>,
    count: u64,
    dictionary: &Dictionary,
    flow: &mut Flow<'_>,
) -> Result<(), Error> {
    style.paint(out, BOLD);
    style.paint(out, RED);
    out.extend_from_slice(b"Backtrace:\n");
    style.paint(out, NORMAL);
    for _ in 0..count {
        if wire.rest().is_empty() {
            break;
        }
        flow.make_room(out)?;
        push_frame(out, &dictionary.frame(wire.uint()));
        out.push(b'\n');
    }
    Ok(())
}

fn push_hex_digits(out: &mut Vec<u8>, value: u64) {
    let at = out.len();
    text::push_hex(out, value);
    out.drain(at..at + 2);
}
