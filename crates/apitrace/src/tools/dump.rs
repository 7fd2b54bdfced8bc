//! The text of `apitrace dump`, byte for byte, formatted directly from the bytes of the calls.

use std::io::Write;

use anytrace_core::{Error, NameMatch, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary, Named};
use crate::lanes::flags::{CallFlags, call_flags};
use crate::lanes::formatter::CallPrinter;
use crate::lanes::idle::{is_idle, may_be_idle};
use crate::lanes::print::Printer;
use crate::lanes::style::Style;
use crate::rules;
use crate::tools::callset::CallSet;
use crate::tools::index::Wanted;
use crate::tools::workers::WorkerPool;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, Space};
use crate::wire::visitor::RAW;

pub use crate::lanes::print_value::BlobSink;
pub use crate::lanes::text::Escape;

/// Text is written in pieces of about this size.
const WRITE_BYTES: usize = 1 << 16;

/// Options of [`dump`].
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct DumpOptions {
    /// Also show calls that rarely matter, such as `glGetError() = GL_NO_ERROR`.
    pub verbose: bool,
    /// Which calls.
    pub calls: CallSet,
    /// Calls left in these frames, too; its kinds choose among them.
    pub frames: Option<CallSet>,
    /// Only functions whose names match. Properties are not shown then.
    pub grep: Option<NameMatch>,
    /// Colors for terminals.
    pub has_color: bool,
    /// Call numbers.
    pub has_numbers: bool,
    /// Thread numbers.
    pub has_threads: bool,
    /// Names of arguments.
    pub has_argument_names: bool,
    /// Line ends of strings as they are, backtraces, and an empty line after each frame.
    pub has_lines: bool,
    /// How strings are written.
    pub escape: Escape,
    /// Number of threads that format, besides the one that reads; 0: that one formats.
    pub workers: usize,
}

impl Default for DumpOptions {
    fn default() -> Self {
        Self {
            verbose: false,
            calls: CallSet::default(),
            frames: None,
            grep: None,
            has_color: false,
            has_numbers: true,
            has_threads: false,
            has_argument_names: true,
            has_lines: true,
            escape: Escape::Peer,
            workers: 0,
        }
    }
}

impl DumpOptions {
    /// What must be read of a trace.
    pub fn wanted(&self, blob_bytes_max: Option<u64>) -> Wanted {
        let first_frame = self.frames.as_ref().map(|frames| frames.first().unwrap_or(0));
        Wanted { first_call: self.calls.first(), first_frame, blob_bytes_max }
    }

    pub(crate) fn style(&self) -> Style {
        let &Self { has_color, has_numbers, has_threads, has_argument_names, has_lines, escape, .. } = self;
        Style { has_color, has_numbers, has_threads, has_argument_names, has_lines, escape }
    }
}

/// Prints the calls of a trace as apitrace 11.1 does: in the order they are left, those never left at the end.
///
/// Reading stops at the first call with a number above all of the set. A call of the set that is still open then is not
/// printed, as in apitrace, and a note is reported. `blobs` takes the contents of blobs; the text then has their file
/// names.
///
/// # Errors
/// I/O, limits, and what `blobs` or the sink return.
pub fn dump<'a>(
    reader: &mut Reader,
    options: &DumpOptions,
    out: &'a mut dyn Write,
    blobs: Option<BlobSink<'a>>,
    sink: &mut dyn Sink,
) -> Result<Totals, Error> {
    let call_options = CallOptions { keeps_blobs: blobs.is_some(), ..CallOptions::default() };
    let call_options = call_options.with_limits(&reader.limits);
    if options.workers > 0 && blobs.is_none() {
        let style = options.style();
        return WorkerPool::run(
            options.workers,
            || Printer::new(style),
            out,
            |pool| {
                let mut selector = Selector::new(options, pool);
                read_calls(reader, call_options, &mut selector, sink)
            },
        );
    }
    let alone = Alone {
        printer: Printer::new(options.style()),
        dictionary: Dictionary::default(),
        text: Vec::with_capacity(WRITE_BYTES * 2),
        out,
        blobs,
    };
    let mut selector = Selector::new(options, alone);
    let totals = read_calls(reader, call_options, &mut selector, sink)?;
    selector.printer.flush()?;
    Ok(totals)
}

/// Prints in the thread that reads.
struct Alone<'a> {
    printer: Printer,
    dictionary: Dictionary,
    text: Vec<u8>,
    out: &'a mut dyn Write,
    blobs: Option<BlobSink<'a>>,
}

impl Alone<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        Ok(())
    }
}

impl CallPrinter for Alone<'_> {
    fn begin(&mut self, version: u64, text: Vec<u8>) -> Result<(), Error> {
        self.dictionary = Dictionary::new(version);
        self.text.extend_from_slice(&text);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    #[inline]
    fn print(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let Self { printer, dictionary, text, out, blobs } = self;
        let mut flush = |text: &mut Vec<u8>| {
            out.write_all(text)?;
            text.clear();
            Ok(())
        };
        let blobs: Option<BlobSink<'_>> = match blobs {
            Some(blobs) => Some(&mut **blobs),
            None => None,
        };
        printer.print(text, call, dictionary, &mut flush, blobs)?;
        if text.len() > WRITE_BYTES { self.flush() } else { Ok(()) }
    }
}

/// What selection needs to know about a function.
#[derive(Debug, Clone, Copy, Default)]
struct Chosen {
    flags: CallFlags,
    is_match: bool,
    /// `glGetError` without arguments: hidden if it returns nothing but zero.
    may_be_idle: bool,
}

/// Selects the calls to print.
pub(crate) struct Selector<'a, P> {
    options: &'a DumpOptions,
    pub(crate) printer: P,
    functions: Vec<Chosen>,
    has_enum_values: bool,
    /// Values of enumerations of the old form that are zero.
    zeros: Dictionary,
    /// Calls that end a frame and have been left.
    frame: u64,
    is_done: bool,
}

impl<'a, P: CallPrinter> Selector<'a, P> {
    pub(crate) fn new(options: &'a DumpOptions, printer: P) -> Self {
        let zeros = Dictionary::default();
        Self { options, printer, functions: Vec::new(), has_enum_values: true, zeros, frame: 0, is_done: false }
    }

    fn chosen(&self, function: u32) -> Chosen {
        let unknown = Chosen { is_match: self.options.grep.is_none(), ..Chosen::default() };
        self.functions.get(function as usize).copied().unwrap_or(unknown)
    }

    /// True for calls to print.
    #[inline]
    fn is_wanted(&self, call: &Call<'_>) -> bool {
        let chosen = self.chosen(call.function);
        let is_in_frames = || self.options.frames.as_ref().is_some_and(|set| set.has(self.frame, chosen.flags));
        if !chosen.is_match || !(self.options.calls.has(call.number, chosen.flags) || is_in_frames()) {
            return false;
        }
        self.options.verbose
            || !(chosen.flags.has(CallFlags::VERBOSE)
                || chosen.may_be_idle && is_idle(call, self.has_enum_values, &self.zeros))
    }
}

impl<P: CallPrinter> CallVisitor for Selector<'_, P> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        let mut text = Vec::new();
        if self.options.grep.is_none() {
            let mut properties: Vec<_> = header.properties.iter().collect();
            // Of equal names the last one applies.
            properties.sort_by_key(|(name, _)| name);
            for (at, (name, value)) in properties.iter().enumerate() {
                if properties.get(at + 1).is_none_or(|next| next.0 != *name) {
                    self.options.style().push_property(&mut text, name, value);
                }
            }
        }
        self.has_enum_values = header.version >= crate::wire::record::VERSION_ENUM_SETS;
        self.zeros = Dictionary::new(header.version);
        self.printer.begin(header.version, text)
    }

    fn define(&mut self, definition: &Definition<'_>) {
        if definition.space == Space::Function {
            let function = Named::function(definition.bytes);
            let name = function.name();
            let chosen = Chosen {
                flags: call_flags(name),
                is_match: self.options.grep.as_ref().is_none_or(|matches| matches(name)),
                may_be_idle: may_be_idle(&function),
            };
            let at = definition.slot as usize;
            if self.functions.len() <= at {
                self.functions.resize(at + 1, Chosen { is_match: self.options.grep.is_none(), ..Chosen::default() });
            }
            if let Some(place) = self.functions.get_mut(at) {
                *place = chosen;
            }
        }
        if definition.space == Space::Enum && !self.has_enum_values {
            self.zeros.define(definition);
        }
        self.printer.define(definition);
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if self.is_done {
            return Ok(());
        }
        let Some(frames) = &self.options.frames else {
            self.is_done = call.number > self.options.calls.last();
            return if !self.is_done && self.is_wanted(call) { self.printer.print(call) } else { Ok(()) };
        };
        self.is_done = call.number > self.options.calls.last() && self.frame > frames.last();
        if !self.is_done && self.is_wanted(call) {
            self.printer.print(call)?;
        }
        self.frame += u64::from(self.chosen(call.function).flags.has(CallFlags::END_FRAME));
        Ok(())
    }

    fn resume(&mut self, _: u64, frames_left: u64) {
        self.frame = frames_left;
    }

    fn open(&mut self, call: &Call<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        if self.is_wanted(call) {
            let diagnostic = rules::LATE_CALL.at(call.offset).within(RAW).record(call.seq);
            sink.report(diagnostic.found(format!("call {}", call.number)))?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
