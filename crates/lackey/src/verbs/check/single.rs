//! Rules for single records: size, end of memory and spelling.

use anytrace_core::text::escaped;
use anytrace_core::{Error, Sink};

use crate::rules;
use crate::wire::reader::LinePlace;
use crate::wire::record::{Kind, Record};
use crate::wire::writer::push_record;

/// Largest data access Valgrind traces.
const DATA_BYTES_MAX: u16 = 512;

/// No instruction of a machine that Valgrind supports is longer; its own requests are "instructions" of up to 20 bytes.
const FETCH_BYTES_MAX: u16 = 32;

/// Most bytes of a line that a diagnostic shows.
const SHOWN_BYTES: usize = 40;

/// True for records that cannot break a rule: most of them.
#[inline(always)]
pub(super) fn is_ordinary(record: &Record<'_>) -> bool {
    let size_max = if record.kind as u8 == Kind::Fetch as u8 { FETCH_BYTES_MAX } else { DATA_BYTES_MAX };
    record.is_usual && record.size.wrapping_sub(1) < size_max && !record.wraps()
}

/// Judges a record that is not ordinary.
#[cold]
pub(super) fn odd(
    record: &Record<'_>,
    at: LinePlace,
    has_odd_spelling: &mut bool,
    sink: &mut dyn Sink,
) -> Result<(), Error> {
    let size_max = if record.kind == Kind::Fetch { FETCH_BYTES_MAX } else { DATA_BYTES_MAX };
    if record.kind != Kind::Block && !(1..=size_max).contains(&record.size) {
        let report = at.diagnostic(&rules::ODD_SIZE, size_column(record));
        let report = report.field("size").expected(format!("1 to {size_max}"));
        sink.report(report.found(record.size.to_string()))?;
    }
    if record.wraps() {
        let report = at.diagnostic(&rules::ACCESS_WRAPS, 0).field("address");
        sink.report(report.found(format!("{} bytes at {:#x}", record.size, record.address)))?;
    }
    spelling(record, at, has_odd_spelling, sink)
}

/// Reports once that the spelling differs from Valgrind's.
#[cold]
fn spelling(record: &Record<'_>, at: LinePlace, has_odd_spelling: &mut bool, sink: &mut dyn Sink) -> Result<(), Error> {
    if record.is_usual || std::mem::replace(has_odd_spelling, true) {
        return Ok(());
    }
    let shown = record.text.strip_suffix(b"\n").unwrap_or(record.text);
    let found = escaped(&shown[..shown.len().min(SHOWN_BYTES)]);
    let mut usual = Vec::new();
    push_record(&mut usual, record.kind, record.address, record.size);
    let expected = escaped(usual.trim_ascii_end());
    let help = "`anytrace convert --style canonical` writes all records as Valgrind does";
    let report = at.diagnostic(&rules::SPELLING, 0).field("record").expected(format!("\"{expected}\""));
    sink.report(report.found(format!("\"{found}\"")).help(help))
}

/// The column of the size.
fn size_column(record: &Record<'_>) -> usize {
    record.text.iter().position(|byte| *byte == b',').map_or(0, |comma| comma + 1)
}
