//! One side of a comparison: its calls, formatted one by one in a separate thread.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Named};
use crate::lanes::flags::CallFlags;
use crate::lanes::formatter::CallPrinter;
use crate::tools::callset::CallSet;
use crate::tools::diff::entry::{Entry, Form, MakeOptions, Maker};
use crate::tools::dump::{DumpOptions, Selector};
use crate::wire::reader::Reader;
use crate::wire::record::{Header, Space};

/// Calls passed on at once, and bytes of their text.
const BATCH_CALLS: usize = 256;
const BATCH_BYTES: usize = 256 << 10;

/// Batches in flight.
const BATCHES: usize = 4;

/// Functions that the peer's Python skips: they only query, and differ from run to run.
const UNASKED: [&[u8]; 8] = [
    b"glGetString",
    b"glXGetClientString",
    b"glXGetCurrentContext",
    b"glXGetCurrentDisplay",
    b"glXGetFBConfigAttrib",
    b"glXGetProcAddress",
    b"glXGetProcAddressARB",
    b"wglGetProcAddress",
];

/// Opens a trace from its start.
pub type Open<'a> = dyn Fn() -> Result<Reader, Error> + Sync + 'a;

/// A trace to compare. It is opened again for each pass.
pub struct Source<'a> {
    /// Opens it from its start.
    pub open: &'a Open<'a>,
    /// Which of its calls.
    pub calls: CallSet,
    /// Receives its diagnostics, once.
    pub sink: &'a mut (dyn Sink + Send),
}

/// Name and value.
pub(crate) type Property = (Vec<u8>, Vec<u8>);

/// Takes the calls of a side.
pub(crate) trait Consumer {
    /// Takes the properties, sorted by name.
    fn properties(&mut self, properties: Vec<Property>) -> Result<(), Error> {
        let _ = properties;
        Ok(())
    }

    /// True when the calls of a frame must be formatted; otherwise only their number matters.
    fn wants(&mut self, frame: u64) -> bool {
        let _ = frame;
        true
    }

    /// Takes the formatted call. Returns false when no more are needed.
    fn call(&mut self, maker: &Maker) -> Result<bool, Error>;
}

/// What selection needs to know about a function.
#[derive(Debug, Clone, Copy, Default)]
struct Chosen {
    flags: CallFlags,
    is_unasked: bool,
}

struct Walk<'a, C> {
    calls: &'a CallSet,
    skips_unasked: bool,
    functions: Vec<Chosen>,
    maker: Maker,
    consumer: &'a mut C,
    /// How many calls numbered up to the last of the set were passed on.
    up_to_last: u64,
    is_done: bool,
}

impl<C: Consumer> CallVisitor for Walk<'_, C> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.maker.dictionary = crate::lanes::dictionary::Dictionary::new(header.version);
        self.consumer.properties(sorted(header))
    }

    fn define(&mut self, definition: &Definition<'_>) {
        if definition.space == Space::Function {
            let function = Named::function(definition.bytes);
            let at = definition.slot as usize;
            if self.functions.len() <= at {
                self.functions.resize(at + 1, Chosen::default());
            }
            if let Some(place) = self.functions.get_mut(at) {
                *place = Chosen { flags: function.flags, is_unasked: UNASKED.contains(&function.name()) };
            }
        }
        self.maker.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if self.is_done {
            return Ok(());
        }
        let chosen = self.functions.get(call.function as usize).copied().unwrap_or_default();
        let is_wanted = self.calls.has(call.number, chosen.flags) && !(self.skips_unasked && chosen.is_unasked);
        if is_wanted && self.consumer.wants(self.maker.frame) {
            self.maker.make(call)?;
            self.is_done = !self.consumer.call(&self.maker)?;
        }
        self.maker.frame += u64::from(chosen.flags.has(CallFlags::END_FRAME));
        // Numbers have no gaps, so the count shows when all up to the last of the set were left, in whatever order.
        self.up_to_last += u64::from(call.number <= self.calls.last());
        self.is_done |= self.up_to_last > self.calls.last();
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Of equal names the last one applies.
fn sorted(header: &Header) -> Vec<Property> {
    let mut properties: Vec<_> = header.properties.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    properties.sort_by(|a, b| a.0.cmp(&b.0));
    properties.reverse();
    properties.dedup_by(|a, b| a.0 == b.0);
    properties.reverse();
    properties.into_iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect()
}

/// Calls as selected and printed by `apitrace dump`.
struct Dumped<'a, C> {
    options: &'a DumpOptions,
    maker: Maker,
    consumer: &'a mut C,
    is_done: bool,
}

impl<C: Consumer> CallPrinter for Dumped<'_, C> {
    fn begin(&mut self, version: u64, text: Vec<u8>) -> Result<(), Error> {
        self.maker.dictionary = crate::lanes::dictionary::Dictionary::new(version);
        // The text is that of the properties already formatted as lines, so there are no names.
        self.consumer.properties(vec![(text, Vec::new())])
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.maker.define(definition);
    }

    fn print(&mut self, call: &Call<'_>) -> Result<(), Error> {
        if !self.is_done && self.consumer.wants(self.maker.frame) {
            self.maker.make(call)?;
            self.is_done = !self.consumer.call(&self.maker)?;
        }
        let flags = self.maker.dictionary.function(call.function).map_or(CallFlags::default(), |named| named.flags);
        self.maker.frame += u64::from(flags.has(CallFlags::END_FRAME));
        if self.is_done { Err(Error::usage(ENOUGH)) } else { Ok(()) }
    }
}

/// Not a user's error: it ends the reading of a dump early.
const ENOUGH: &str = "no more calls are needed";

/// Reads all calls of a side.
pub(crate) fn read<C: Consumer>(
    open: &Open<'_>,
    calls: &CallSet,
    options: MakeOptions,
    consumer: &mut C,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let mut reader = open()?;
    let mut call_options = CallOptions::default().with_limits(&reader.limits);
    call_options.hashes_blobs = options.form != Form::Dump;
    let maker = Maker::new(options);
    if options.form == Form::Dump {
        let style = options.style;
        let dump = DumpOptions {
            calls: calls.clone(),
            has_numbers: style.has_numbers,
            has_argument_names: style.has_argument_names,
            ..DumpOptions::default()
        };
        let dumped = Dumped { options: &dump, maker, consumer, is_done: false };
        let mut selector = Selector::new(dumped.options, dumped);
        return match read_calls(&mut reader, call_options, &mut selector, sink) {
            Err(_) if selector.printer.is_done => Ok(()),
            result => result.map(drop),
        };
    }
    let skips_unasked = options.form == Form::Python;
    let mut walk = Walk { calls, skips_unasked, functions: Vec::new(), maker, consumer, up_to_last: 0, is_done: false };
    read_calls(&mut reader, call_options, &mut walk, sink).map(drop)
}

/// Sends calls to another thread.
pub(crate) struct Sender<'a> {
    wanted: &'a (dyn Fn(u64) -> bool + Sync),
    channel: SyncSender<Vec<Entry>>,
    batch: Vec<Entry>,
    bytes: usize,
}

impl<'a> Sender<'a> {
    /// Returns both ends. `wanted` selects the frames whose calls are sent.
    pub(crate) fn new(wanted: &'a (dyn Fn(u64) -> bool + Sync)) -> (Self, Calls) {
        let (channel, receiver) = sync_channel(BATCHES);
        let sender = Self { wanted, channel, batch: Vec::new(), bytes: 0 };
        (sender, Calls { receiver, batch: Vec::new().into_iter() })
    }

    /// Sends what is buffered. Returns false if the receiver is gone.
    pub(crate) fn flush(&mut self) -> bool {
        self.bytes = 0;
        self.batch.is_empty() || self.channel.send(std::mem::take(&mut self.batch)).is_ok()
    }
}

impl Consumer for Sender<'_> {
    fn wants(&mut self, frame: u64) -> bool {
        (self.wanted)(frame)
    }

    fn call(&mut self, maker: &Maker) -> Result<bool, Error> {
        let entry = maker.entry();
        self.bytes += anytrace_analysis::diff::Record::buffered_bytes(&entry);
        self.batch.push(entry);
        Ok(self.batch.len() < BATCH_CALLS && self.bytes < BATCH_BYTES || self.flush())
    }
}

/// Calls received from another thread.
pub(crate) struct Calls {
    receiver: Receiver<Vec<Entry>>,
    batch: std::vec::IntoIter<Entry>,
}

impl Calls {
    fn peek(&mut self) -> Option<&Entry> {
        while self.batch.as_slice().is_empty() {
            self.batch = self.receiver.recv().ok()?.into_iter();
        }
        self.batch.as_slice().first()
    }

    /// The calls of the frames up to this one.
    pub(crate) fn up_to(&mut self, frame: u64) -> UpTo<'_> {
        UpTo { calls: self, frame }
    }
}

/// The calls of some frames.
pub(crate) struct UpTo<'a> {
    calls: &'a mut Calls,
    frame: u64,
}

impl Iterator for UpTo<'_> {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.calls.peek()?.frame > self.frame {
            return None;
        }
        self.calls.batch.next()
    }
}
