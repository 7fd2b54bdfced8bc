//! The trace as tables: events, calls with their arguments, frames, blobs.

mod args;
mod blobs;
mod calls;
mod events;
mod frames;

use anytrace_core::table::{EVENTS, RowSink, Rows, Scan, Table};
use anytrace_core::{Error, Sink, Summary};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::Dictionary;
use crate::lanes::formatter::TEXT_BYTES_MAX;
use crate::lanes::print::Printer;
use crate::lanes::style::Style;
use crate::lanes::text::Escape;
use crate::lanes::wire::Wire;
use crate::wire::reader::Reader;

/// The format's own tables.
pub(crate) static TABLES: [Table; 5] = [EVENTS, calls::CALLS, args::ARGS, frames::FRAMES, blobs::BLOBS];

/// Reads a trace as the rows of a table.
///
/// # Errors
/// I/O, limits, and what the sinks return.
pub(crate) fn read(
    mut reader: Reader,
    table: &str,
    scan: &Scan,
    out: &mut dyn RowSink,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let Some(wanted) = TABLES.iter().find(|one| one.name == table) else {
        return Err(Error::usage(format!("apitrace traces have no table {table}")));
    };
    let rows = Rows::new(wanted, scan, out);
    match wanted.name {
        "events" => events::read(reader, rows, &scan.filter, sink),
        "frames" => frames::read(reader, rows, sink),
        "blobs" => blobs::read(reader, rows, sink),
        "args" => assembled(&mut reader, args::ArgRows::new(rows), args::ArgRows::into_rows, sink),
        _ => assembled(&mut reader, calls::CallRows::new(rows, &scan.filter), calls::CallRows::into_rows, sink),
    }
}

/// Reads a table that is made of assembled calls.
fn assembled<'a, V: CallVisitor>(
    reader: &mut Reader,
    mut visitor: V,
    into_rows: impl FnOnce(V) -> Rows<'a>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let options = CallOptions::default().with_limits(&reader.limits);
    let totals = read_calls(reader, options, &mut visitor, sink)?;
    into_rows(visitor).finish()?;
    Ok(Summary { records: totals.events, bytes: totals.raw_bytes })
}

/// A number as a row has it: beyond 2^31 - 1 it is that.
fn int32(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Makes the texts of values, as `apitrace dump` prints them.
struct ValueText {
    printer: Printer,
    text: Vec<u8>,
}

impl ValueText {
    fn new() -> Self {
        let style = Style {
            has_color: false,
            has_numbers: false,
            has_threads: false,
            has_argument_names: true,
            has_lines: false,
            escape: Escape::C,
        };
        Self { printer: Printer::new(style), text: Vec::new() }
    }

    /// The text of a value. If a compound one is longer than 1 MiB, its text ends there with `…`.
    fn of(&mut self, mut wire: Wire<'_>, call: &Call<'_>, dictionary: &Dictionary) -> Result<&[u8], Error> {
        if self.text.capacity() > 2 * TEXT_BYTES_MAX {
            self.text = Vec::new();
        }
        self.text.clear();
        if self.printer.value(&mut self.text, &mut wire, call, dictionary)? {
            self.text.extend_from_slice("…".as_bytes());
        }
        Ok(&self.text)
    }
}
