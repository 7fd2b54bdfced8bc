//! Arguments of calls as attributes of spans: numbers as numbers, the rest as text of bounded length.

use std::collections::HashMap;

use anytrace_core::span::{EdgeBatch, NameId, Value as Attribute};
use anytrace_core::{Error, SpanSink};

use crate::lanes::calls::Call;
use crate::lanes::dictionary::{Dictionary, number};
use crate::lanes::print::Printer;
use crate::lanes::style::Style;
use crate::lanes::text::{Escape, until_nul};
use crate::lanes::wire::{Detail, Value, Wire};

/// Most bytes of a text; longer ones are cut and end in `…`.
pub(super) const TEXT_BYTES_MAX: usize = 256;

/// Longer arrays are only counted.
const ARRAY_MAX: u64 = 64;

/// Most arguments of a call.
const ARGUMENTS_MAX: usize = 64;

/// Numbers of names; each is announced at its first use.
#[derive(Debug, Default)]
pub(super) struct Names {
    numbers: HashMap<Vec<u8>, NameId>,
}

impl Names {
    pub(super) fn get(&mut self, name: &[u8], out: &mut dyn SpanSink) -> Result<NameId, Error> {
        if let Some(&known) = self.numbers.get(name) {
            return Ok(known);
        }
        let next = NameId::try_from(self.numbers.len()).unwrap_or(NameId::MAX);
        out.name(next, name, None)?;
        self.numbers.insert(name.to_vec(), next);
        Ok(next)
    }

    /// A name that was announced already.
    pub(super) fn known(&self, name: &[u8]) -> Option<NameId> {
        self.numbers.get(name).copied()
    }
}

/// Makes attributes.
pub(super) struct Values {
    printer: Printer,
    text: Vec<u8>,
    /// Keys of a function's arguments, by slot.
    keys: Vec<Vec<NameId>>,
}

impl Values {
    pub(super) fn new() -> Self {
        let style = Style {
            has_color: false,
            has_numbers: false,
            has_threads: false,
            has_argument_names: true,
            has_lines: false,
            escape: Escape::C,
        };
        Self { printer: Printer::new(style), text: Vec::new(), keys: Vec::new() }
    }

    /// Adds what is known about a call to the edge that was pushed last.
    pub(super) fn add(
        &mut self,
        call: &Call<'_>,
        dictionary: &Dictionary,
        names: &mut Names,
        batch: &mut EdgeBatch,
        out: &mut dyn SpanSink,
    ) -> Result<(), Error> {
        let key = names.get(b"call", out)?;
        batch.attribute(key, Attribute::U64(call.number));
        let mut left = ARGUMENTS_MAX;
        for details in [call.enter, call.leave] {
            let mut wire = dictionary.wire(details);
            loop {
                let key = match wire.detail() {
                    Detail::End => break,
                    Detail::Argument(index) => self.key(call.function, index, dictionary, names, out)?,
                    Detail::Return => names.get(b"return", out)?,
                    Detail::Backtrace(count) => {
                        for _ in 0..count.min(details.len() as u64) {
                            wire.uint();
                        }
                        continue;
                    }
                    Detail::Flags(flags) => {
                        if flags & 1 == 1 {
                            batch.attribute(names.get(b"fake", out)?, Attribute::Bool(true));
                        }
                        continue;
                    }
                    Detail::Thread(_) => continue,
                };
                if left > 0 {
                    left -= 1;
                    self.value(key, wire, call, dictionary, batch)?;
                }
                wire.skip_value(&|id| dictionary.members(id));
            }
        }
        Ok(())
    }

    fn key(
        &mut self,
        function: u32,
        index: u64,
        dictionary: &Dictionary,
        names: &mut Names,
        out: &mut dyn SpanSink,
    ) -> Result<NameId, Error> {
        let (at, place) = (function as usize, usize::try_from(index).unwrap_or(usize::MAX));
        if let Some(&known) = self.keys.get(at).and_then(|keys| keys.get(place)) {
            return Ok(known);
        }
        let named = dictionary.function(function);
        let count = named.map_or(0, |function| function.count()).min(ARGUMENTS_MAX as u64);
        let name = named.and_then(|function| function.get(index)).map(until_nul).filter(|name| !name.is_empty());
        let Some(name) = name.filter(|_| index < count) else {
            return names.get(format!("#{}", index.min(ARGUMENTS_MAX as u64)).as_bytes(), out);
        };
        let found = names.get(name, out)?;
        if self.keys.len() <= at {
            self.keys.resize_with(at + 1, Vec::new);
        }
        if let Some(keys) = self.keys.get_mut(at)
            && keys.len() == place
        {
            keys.push(found);
        }
        Ok(found)
    }

    /// One value.
    fn value(
        &mut self,
        key: NameId,
        wire: Wire<'_>,
        call: &Call<'_>,
        dictionary: &Dictionary,
        batch: &mut EdgeBatch,
    ) -> Result<(), Error> {
        let mut after = wire;
        let attribute = match after.value() {
            Value::Bool(value) => Attribute::Bool(value),
            Value::Negative(magnitude) => Attribute::I64((magnitude as i64).wrapping_neg()),
            Value::Unsigned(value) => Attribute::U64(value),
            Value::Float(value) => Attribute::F64(shortest(value)),
            Value::Double(value) => Attribute::F64(value),
            Value::Pointer(value) => Attribute::Address(value),
            Value::Text(text) => {
                self.text.clear();
                push_bounded(&mut self.text, text);
                Attribute::Text(&self.text)
            }
            Value::Enum(id, value) => match dictionary.enumeration(id).and_then(|names| names.name(value)) {
                Some(name) => Attribute::Text(until_nul(name)),
                None => Attribute::I64(value.map_or(0, number)),
            },
            Value::Array(count) if count > ARRAY_MAX => {
                self.text = format!("{{{count} values}}").into_bytes();
                Attribute::Text(&self.text)
            }
            _ => {
                self.print(wire, call, dictionary)?;
                Attribute::Text(&self.text)
            }
        };
        batch.attribute(key, attribute);
        Ok(())
    }

    /// A value as `dump` shows it.
    fn print(&mut self, mut wire: Wire<'_>, call: &Call<'_>, dictionary: &Dictionary) -> Result<(), Error> {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        self.printer.value(&mut text, &mut wire, call, dictionary)?;
        if text.len() > TEXT_BYTES_MAX {
            text.truncate(bounded(&text));
            text.extend_from_slice("…".as_bytes());
            text.shrink_to(1 << 16);
        }
        self.text = text;
        Ok(())
    }
}

/// The shortest decimal number that is read as this float, so that 0.1 does not become 0.10000000149.
fn shortest(value: f32) -> f64 {
    if value.is_finite() { value.to_string().parse().unwrap_or(f64::from(value)) } else { f64::from(value) }
}

/// True for bytes inside a character of UTF-8.
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// How much of a text is shown: complete characters, up to the limit.
fn bounded(text: &[u8]) -> usize {
    let mut end = TEXT_BYTES_MAX.min(text.len());
    while end > TEXT_BYTES_MAX - 4 && text.get(end).is_some_and(|byte| is_continuation(*byte)) {
        end -= 1;
    }
    end
}

/// A text up to the limit and its first NUL, cut between characters.
pub(super) fn push_bounded(out: &mut Vec<u8>, text: &[u8]) {
    let text = until_nul(text);
    let end = bounded(text);
    out.extend_from_slice(text.get(..end).unwrap_or_default());
    if end < text.len() {
        out.extend_from_slice("…".as_bytes());
    }
}

/// A wide string as UTF-8, up to the limit and its first NUL.
pub(super) fn push_wide_bounded(out: &mut Vec<u8>, mut chars: Wire<'_>) {
    let mut text = Vec::new();
    while !chars.rest().is_empty() && text.len() <= TEXT_BYTES_MAX {
        match u32::try_from(chars.uint()).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER) {
            '\0' => break,
            char => text.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    push_bounded(out, &text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_between_characters() {
        let mut out = Vec::new();
        push_bounded(&mut out, "é".repeat(200).as_bytes());
        assert_eq!(std::str::from_utf8(&out).unwrap(), format!("{}…", "é".repeat(128)));
        out.clear();
        push_bounded(&mut out, format!("x{}", "é".repeat(200)).as_bytes());
        assert_eq!(std::str::from_utf8(&out).unwrap(), format!("x{}…", "é".repeat(127)));
        out.clear();
        push_bounded(&mut out, b"short\0hidden");
        assert_eq!(out, b"short");
    }

    #[test]
    fn floats_keep_the_digits_they_were_written_with() {
        assert_eq!(shortest(0.1), 0.1);
        assert_eq!(shortest(-1.5e30), -1.5e30);
        assert!(shortest(f32::NAN).is_nan());
    }
}
