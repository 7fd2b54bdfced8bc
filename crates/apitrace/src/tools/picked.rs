//! Writes the calls of a set through a formatter.

use std::io::Write;

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary, Named};
use crate::lanes::flags::CallFlags;
use crate::lanes::formatter::{CallPrinter, Formatter, TEXT_BYTES_MAX};
use crate::rules;
use crate::tools::callset::CallSet;
use crate::tools::index::Wanted;
use crate::tools::workers::WorkerPool;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, Space};
use crate::wire::visitor::RAW;

/// Text is written in pieces of about this size.
const WRITE_BYTES: usize = 1 << 16;

/// Most bytes of one call that are kept, unless the limit of a record is higher: textures of 8192 by 8192 pixels.
pub(crate) const CALL_BYTES_MAX: usize = 1 << 28;

/// Which calls, and how.
pub(crate) struct Order<'a> {
    pub(crate) calls: &'a CallSet,
    /// Stop where the format's tool stops: at the first call with a number above all of the set.
    pub(crate) stops_early: bool,
    /// Keep the contents of blobs.
    pub(crate) keeps_blobs: bool,
    /// Threads besides the one that reads.
    pub(crate) workers: usize,
}

/// What must be read of a trace for the calls of a set.
pub(crate) fn wanted(calls: &CallSet, keeps_blobs: bool) -> Wanted {
    let blob_bytes_max = keeps_blobs.then_some(CALL_BYTES_MAX as u64);
    Wanted { first_call: Some(calls.first().unwrap_or(0)), first_frame: None, blob_bytes_max }
}

/// Writes the calls of a set, in the order they are left. `begin` makes the text before them.
pub(crate) fn write_calls<S: Formatter>(
    reader: &mut Reader,
    order: &Order<'_>,
    formatter: impl Fn() -> S,
    begin: impl Fn(&Header) -> Vec<u8>,
    out: &mut dyn Write,
    sink: &mut dyn Sink,
) -> Result<Totals, Error> {
    let mut options = CallOptions { keeps_blobs: order.keeps_blobs, ..CallOptions::default() };
    options = options.with_limits(&reader.limits);
    if order.keeps_blobs {
        // Pickles and JSON have 32 bits for a length.
        options.call_bytes_max = options.call_bytes_max.clamp(CALL_BYTES_MAX, u32::MAX as usize);
        options.open_bytes_max = options.open_bytes_max.max(options.call_bytes_max);
    }
    if order.workers > 0 {
        return WorkerPool::run(order.workers, formatter, out, |pool| {
            let mut picker = Picker::new(order, begin, pool);
            read_calls(reader, options, &mut picker, sink)
        });
    }
    let text = Vec::with_capacity(WRITE_BYTES * 2);
    let alone = Alone { formatter: formatter(), dictionary: Dictionary::default(), text, out };
    let mut picker = Picker::new(order, begin, alone);
    let totals = read_calls(reader, options, &mut picker, sink)?;
    picker.printer.flush()?;
    Ok(totals)
}

/// Writes in the thread that reads.
struct Alone<'a, S> {
    formatter: S,
    dictionary: Dictionary,
    text: Vec<u8>,
    out: &'a mut dyn Write,
}

impl<S> Alone<'_, S> {
    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.text)?;
        self.text.clear();
        if self.text.capacity() > TEXT_BYTES_MAX * 2 {
            self.text = Vec::with_capacity(WRITE_BYTES * 2);
        }
        Ok(())
    }
}

impl<S: Formatter> CallPrinter for Alone<'_, S> {
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
        let Self { formatter, dictionary, text, out } = self;
        let mut flush = |text: &mut Vec<u8>| {
            out.write_all(text)?;
            text.clear();
            Ok(())
        };
        formatter.call(text, call, dictionary, &mut flush)?;
        if text.len() > WRITE_BYTES { self.flush() } else { Ok(()) }
    }
}

/// Selects the calls of the set.
struct Picker<'a, P, B> {
    order: &'a Order<'a>,
    begin: B,
    printer: P,
    /// Flags of functions by slot.
    flags: Vec<CallFlags>,
    /// The call at which reading began: those before it are not selected.
    first: u64,
    /// Calls that were left and whose number is not above all of the set; those before the first too.
    met: u64,
    is_done: bool,
}

impl<'a, P: CallPrinter, B: Fn(&Header) -> Vec<u8>> Picker<'a, P, B> {
    fn new(order: &'a Order<'a>, begin: B, printer: P) -> Self {
        Self { order, begin, printer, flags: Vec::new(), first: 0, met: 0, is_done: false }
    }

    #[inline]
    fn is_wanted(&self, call: &Call<'_>) -> bool {
        let flags = self.flags.get(call.function as usize).copied().unwrap_or_default();
        self.order.calls.has(call.number, flags)
    }
}

impl<P: CallPrinter, B: Fn(&Header) -> Vec<u8>> CallVisitor for Picker<'_, P, B> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        let text = (self.begin)(header);
        self.printer.begin(header.version, text)
    }

    fn resume(&mut self, first_call: u64, _: u64) {
        (self.first, self.met) = (first_call, first_call);
    }

    fn define(&mut self, definition: &Definition<'_>) {
        if definition.space == Space::Function {
            let at = definition.slot as usize;
            if self.flags.len() <= at {
                self.flags.resize(at + 1, CallFlags::default());
            }
            if let Some(place) = self.flags.get_mut(at) {
                *place = Named::function(definition.bytes).flags;
            }
        }
        self.printer.define(definition);
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if self.is_done || call.number < self.first {
            return Ok(());
        }
        let last = self.order.calls.last();
        if call.number > last {
            self.is_done = self.order.stops_early;
            return Ok(());
        }
        self.met += 1;
        if self.is_wanted(call) {
            self.printer.print(call)?;
        }
        // Calls are numbered as they are entered, so this count shows that all up to the last of the set are left.
        self.is_done = !self.order.stops_early && self.met.checked_sub(1) == Some(last);
        Ok(())
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
