//! What functions are called in spans and tables: by the trace (YAML), by a map, or by their number.

use std::borrow::Cow;

use anytrace_core::hash::Map;
use anytrace_core::span::Symbols;
use anytrace_core::table::Rows;

/// Ids below this are their own numbers in a column of names.
const SMALL: u32 = 1 << 15;

/// Most further ids that have a number there: those of libraries, which begin at `1 << 24`.
const LARGE_MAX: usize = 1 << 15;

/// True for a name that only repeats the function's number: the peer writes it where it knows no name.
pub(crate) fn is_number(name: &[u8], function: u32) -> bool {
    name == function.to_string().as_bytes() || name == function.cast_signed().to_string().as_bytes()
}

/// What a function without a name is called. The peer prints ids as signed.
pub(crate) fn number_text(function: u32) -> String {
    format!("#{}", function.cast_signed())
}

/// Names of functions for a column of names; memory does not grow with their number.
pub(crate) struct ColumnNames<'a> {
    symbols: Option<&'a dyn Symbols>,
    large: Map<u32, u32>,
}

impl<'a> ColumnNames<'a> {
    pub(crate) fn new(symbols: Option<&'a dyn Symbols>) -> Self {
        Self { symbols, large: Map::default() }
    }

    /// Makes the next value of a row: the name of a function, which may have one in the trace.
    pub(crate) fn push(&mut self, function: u32, own: &[u8], rows: &mut Rows<'_>) {
        if !own.is_empty() && !is_number(own, function) {
            return rows.raw_name(own);
        }
        let number = self.number(function);
        rows.numbered_name(number, || match self.symbols.and_then(|symbols| symbols.symbol(u64::from(function))) {
            Some((name, _)) => Cow::Borrowed(name),
            None => number_text(function).into(),
        });
    }

    /// A number that always means this function, as far as there are numbers: others look their name up each time.
    fn number(&mut self, function: u32) -> u32 {
        if function < SMALL {
            return function;
        }
        let next = self.large.len();
        if next < LARGE_MAX {
            *self.large.entry(function).or_insert(SMALL + next as u32)
        } else {
            self.large.get(&function).copied().unwrap_or(u32::MAX)
        }
    }
}
