//! A call prepared for comparison: its text, the positions of its arguments, and hashes.

use std::hash::{DefaultHasher, Hasher};

use anytrace_analysis::diff::Record;
use anytrace_core::Error;

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::lanes::formatter::Formatter;
use crate::lanes::print::Printer;
use crate::lanes::style::Style;
use crate::lanes::text::until_nul;
use crate::lanes::wire::{Detail, Wire};
use crate::tools::diff::number::Digits;
use crate::tools::diff::value::{Values, push_name};

/// Most arguments compared; real functions have a few dozen at most.
const ARGUMENTS_MAX: usize = 1 << 16;

/// Longest text kept of a call printed as `apitrace dump` prints it.
const CALL_TEXT_MAX: usize = 1 << 20;

/// An argument, or what the call returned: the name and then the value in the call's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    name_end: u32,
    value_end: u32,
    key: u64,
}

/// A call.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its number.
    pub number: u64,
    /// Its frame, from 0: how many calls that end a frame were left before it.
    pub frame: u64,
    /// Its thread.
    pub thread: u64,
    /// Equal calls have equal hashes.
    pub hash: u64,
    /// Hash of the function's name.
    pub name_hash: u64,
    /// It has a return value: the last of its parts.
    pub has_return: bool,
    text: Box<[u8]>,
    name_end: u32,
    parts: Box<[Part]>,
    /// Pointers that are ignored, each with its part.
    pub(crate) pointers: Box<[(u32, u64)]>,
}

impl Record for Entry {
    fn hash(&self) -> u64 {
        self.hash
    }

    fn buffered_bytes(&self) -> usize {
        self.text.len() + size_of_val::<[Part]>(&self.parts) + size_of::<Self>()
    }
}

impl Entry {
    /// Name of the function.
    pub fn name(&self) -> &[u8] {
        self.text.get(..self.name_end as usize).unwrap_or_default()
    }

    /// The number of arguments.
    pub fn arguments(&self) -> usize {
        self.parts.len() - usize::from(self.has_return && !self.parts.is_empty())
    }

    /// The number of arguments and return values.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Name and value of an argument. The return value follows the last argument, without a name.
    pub fn part(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let part = self.parts.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.parts.get(before)?.value_end,
            None => self.name_end,
        };
        let name = self.text.get(start as usize..part.name_end as usize)?;
        Some((name, self.text.get(part.name_end as usize..part.value_end as usize)?))
    }

    /// Equal values have equal keys.
    pub fn key(&self, index: usize) -> Option<u64> {
        self.parts.get(index).map(|part| part.key)
    }

    /// The text after the call: ` // fake`, ` // incomplete`. For calls printed as by `apitrace dump`, their entire
    /// text.
    pub fn tail(&self) -> &[u8] {
        let start = self.parts.last().map_or(self.name_end, |part| part.value_end);
        self.text.get(start as usize..).unwrap_or_default()
    }
}

/// How calls are formatted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Values as in `apitrace dump`, but with all digits and characters.
    Plain,
    /// Values as in the peer's Python.
    Python,
    /// Complete lines as printed by `apitrace dump`.
    Dump,
}

/// How entries are made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MakeOptions {
    pub(crate) form: Form,
    pub(crate) ignores_pointers: bool,
    pub(crate) has_threads: bool,
    /// For [`Form::Dump`].
    pub(crate) style: Style,
    /// Differs between the sides, so that values equal to nothing, such as NaN, never compare equal.
    pub(crate) side: u64,
}

/// Makes entries. It keeps one at a time, so that hashing alone does not allocate.
pub(crate) struct Maker {
    options: MakeOptions,
    pub(crate) dictionary: Dictionary,
    values: Values,
    printer: Printer,
    /// Index of an argument, its position, and whether that is in the leave event.
    found: Vec<(u64, usize, bool)>,
    text: Vec<u8>,
    name_end: usize,
    parts: Vec<Part>,
    pointers: Vec<(u32, u64)>,
    has_return: bool,
    number: u64,
    thread: u64,
    pub(crate) frame: u64,
    pub(crate) hash: u64,
    pub(crate) name_hash: u64,
}

fn hash_of(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn end(text: &[u8]) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}

impl Maker {
    pub(crate) fn new(options: MakeOptions) -> Self {
        let digits = if options.form == Form::Python { Digits::Python } else { Digits::Plain };
        Self {
            options,
            dictionary: Dictionary::default(),
            values: Values::new(digits, options.ignores_pointers, options.side),
            printer: Printer::new(options.style),
            found: Vec::new(),
            text: Vec::new(),
            name_end: 0,
            parts: Vec::new(),
            pointers: Vec::new(),
            has_return: false,
            number: 0,
            thread: 0,
            frame: 0,
            hash: 0,
            name_hash: 0,
        }
    }

    pub(crate) fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
    }

    /// Makes the text and hashes of a call.
    pub(crate) fn make(&mut self, call: &Call<'_>) -> Result<(), Error> {
        (self.number, self.thread, self.has_return) = (call.number, call.thread, false);
        self.text.clear();
        self.parts.clear();
        self.pointers.clear();
        if self.options.form == Form::Dump {
            return self.dumped(call);
        }
        let function = self.dictionary.function(call.function);
        push_name(&mut self.text, function.map_or(b"?", |function| function.name()), self.values.digits);
        self.name_end = self.text.len();
        self.name_hash = hash_of(&self.text);
        let (returned, is_fake) = self.find(call);
        self.arguments(call);
        if let Some(mut wire) = returned {
            let name_end = end(&self.text);
            let key = self.values.push(&mut self.text, &mut wire, &self.dictionary);
            self.part(name_end, key);
            self.has_return = true;
        }
        let tail = self.text.len();
        if self.options.form == Form::Plain {
            if is_fake {
                self.text.extend_from_slice(b" // fake");
            }
            if call.is_incomplete {
                self.text.extend_from_slice(if is_fake { b" incomplete" } else { b" // incomplete" });
            }
        }
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.name_hash);
        for (index, part) in self.parts.iter().enumerate() {
            let start = match index.checked_sub(1).and_then(|before| self.parts.get(before)) {
                Some(before) => before.value_end as usize,
                None => self.name_end,
            };
            hasher.write(self.text.get(start..part.name_end as usize).unwrap_or_default());
            hasher.write_u64(part.key);
        }
        hasher.write_u8(u8::from(self.has_return));
        hasher.write(self.text.get(tail..).unwrap_or_default());
        if self.options.has_threads {
            hasher.write_u64(call.thread);
        }
        self.hash = hasher.finish();
        Ok(())
    }

    /// The entry that was made.
    pub(crate) fn entry(&self) -> Entry {
        Entry {
            number: self.number,
            frame: self.frame,
            thread: self.thread,
            hash: self.hash,
            name_hash: self.name_hash,
            has_return: self.has_return,
            text: self.text.as_slice().into(),
            name_end: u32::try_from(self.name_end).unwrap_or(u32::MAX),
            parts: self.parts.as_slice().into(),
            pointers: self.pointers.as_slice().into(),
        }
    }

    /// Prints the call as `apitrace dump` does.
    fn dumped(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let (mut kept, mut hasher) = (Vec::new(), DefaultHasher::new());
        let mut flush = |text: &mut Vec<u8>| {
            hasher.write(text);
            if kept.len() < CALL_TEXT_MAX {
                kept.extend_from_slice(text);
            }
            text.clear();
            Ok(())
        };
        self.printer.call(&mut self.text, call, &self.dictionary, &mut flush)?;
        flush(&mut self.text)?;
        self.text = kept;
        self.name_end = 0;
        self.hash = hasher.finish();
        let function = self.dictionary.function(call.function);
        self.name_hash = hash_of(function.map_or(b"?", |function| until_nul(function.name())));
        Ok(())
    }

    /// Finds the arguments, the return value, and whether the tracer inserted the call.
    fn find<'c>(&mut self, call: &Call<'c>) -> (Option<Wire<'c>>, bool) {
        let (mut returned, mut is_fake) = (None, false);
        let dictionary = &self.dictionary;
        self.found.clear();
        for (details, is_leave) in [(call.enter, false), (call.leave, true)] {
            let mut wire = dictionary.wire(details);
            loop {
                match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) => {
                        self.found.push((index, details.len() - wire.rest().len(), is_leave));
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Return => {
                        returned = Some(wire);
                        wire.skip_value(&|id| dictionary.members(id));
                    }
                    Detail::Backtrace(count) => {
                        for _ in 0..count.min(details.len() as u64) {
                            wire.uint();
                        }
                    }
                    Detail::Flags(number) => is_fake = number & 1 == 1,
                    Detail::Thread(_) => {}
                }
            }
        }
        // The sort is stable: of equal indexes the last in the call stays last, and counts.
        if !self.found.is_sorted_by_key(|(index, ..)| *index) {
            self.found.sort_by_key(|(index, ..)| *index);
        }
        (returned, is_fake)
    }

    fn part(&mut self, name_end: u32, key: u64) {
        let index = u32::try_from(self.parts.len()).unwrap_or(u32::MAX);
        self.pointers.extend(self.values.pointers.iter().map(|pointer| (index, *pointer)));
        self.parts.push(Part { name_end, value_end: end(&self.text), key });
    }

    fn arguments(&mut self, call: &Call<'_>) {
        let found = std::mem::take(&mut self.found);
        let mut expected = 0;
        for (place, (index, at, is_leave)) in found.iter().enumerate().take(ARGUMENTS_MAX) {
            if found.get(place + 1).is_some_and(|next| next.0 == *index) {
                continue;
            }
            self.missing(expected..*index, call.function);
            expected = index.saturating_add(1);
            self.label(*index, call.function);
            let name_end = end(&self.text);
            let details = if *is_leave { call.leave } else { call.enter };
            let mut wire = self.dictionary.wire(details.get(*at..).unwrap_or_default());
            let key = self.values.push(&mut self.text, &mut wire, &self.dictionary);
            self.part(name_end, key);
        }
        self.found = found;
        self.missing(expected..u64::MAX, call.function);
    }

    fn label(&mut self, index: u64, function: u32) {
        match self.dictionary.function(function).and_then(|function| function.get(index)) {
            Some(name) => push_name(&mut self.text, name, self.values.digits),
            None => {
                self.text.push(b'#');
                anytrace_core::text::push_dec(&mut self.text, index);
            }
        }
    }

    /// Arguments of the signature that have no value.
    fn missing(&mut self, indexes: std::ops::Range<u64>, function: u32) {
        let count = self.dictionary.function(function).map_or(0, crate::lanes::dictionary::Named::count);
        for index in indexes.start..indexes.end.min(count) {
            if self.parts.len() >= ARGUMENTS_MAX {
                return;
            }
            self.label(index, function);
            let name_end = end(&self.text);
            let value: &[u8] = if self.options.form == Form::Python { b"None" } else { b"?" };
            self.text.extend_from_slice(value);
            self.values.pointers.clear();
            self.part(name_end, hash_of(b"missing"));
        }
    }
}
