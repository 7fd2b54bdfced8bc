//! The frames that calls belong to.

use anytrace_core::{Error, Sink};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::lanes::flags::CallFlags;
use crate::tools::callset::CallSet;
use crate::wire::reader::Reader;
use crate::wire::record::Header;

/// The frames of these calls, counted from 0, in order, and how many frames the trace has.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn frames_of(reader: &mut Reader, calls: &CallSet, sink: &mut dyn Sink) -> Result<(Vec<u64>, u64), Error> {
    let mut finder = Finder { calls, dictionary: Dictionary::default(), frame: 0, found: Vec::new() };
    read_calls(reader, CallOptions::default(), &mut finder, sink)?;
    Ok((finder.found, finder.frame))
}

struct Finder<'a> {
    calls: &'a CallSet,
    dictionary: Dictionary,
    frame: u64,
    found: Vec<u64>,
}

impl CallVisitor for Finder<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let function = self.dictionary.function(call.function);
        let flags = function.map_or(CallFlags::default(), |function| function.flags);
        if self.calls.has(call.number, flags) && self.found.last() != Some(&self.frame) {
            self.found.push(self.frame);
        }
        self.frame += u64::from(flags.has(CallFlags::END_FRAME));
        Ok(())
    }
}
