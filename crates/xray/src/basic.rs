//! Walks a Basic trace. Records have 32 bytes, so a bad one costs only itself.

use anytrace_core::{Cursor, Diagnostic, Error};

use crate::parse::{Bad, Need, parse_basic};
use crate::reader::At;
use crate::record::{BASIC_BYTES, BasicRecord, HEADER_BYTES, Layout};
use crate::rules;

/// Receives a Basic trace in wire order.
pub trait BasicVisitor {
    /// One record; `raw` is its 32 bytes.
    ///
    /// # Errors
    /// Any error ends the walk; the same holds for the methods below.
    fn record(&mut self, record: &BasicRecord, raw: &[u8], at: At) -> Result<(), Error>;
    /// Bytes that are not a complete record.
    ///
    /// # Errors
    /// As [`Self::record`].
    fn damage(&mut self, _bytes: &[u8]) -> Result<(), Error> {
        Ok(())
    }
    /// Damage of the grammar.
    ///
    /// # Errors
    /// As [`Self::record`].
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error>;
}

/// Walks from the header, where the cursor must be, to the end of the data; returns the number of records and the
/// cursor.
///
/// # Errors
/// I/O errors, and whatever the visitor returns.
pub fn walk_basic<V: BasicVisitor>(
    mut cursor: Cursor,
    layout: Layout,
    visitor: &mut V,
) -> Result<(u64, Cursor), Error> {
    let header = cursor.window().len().min(HEADER_BYTES);
    cursor.advance(header);
    let mut seq = 0;
    loop {
        let length = cursor.fill(BASIC_BYTES)?;
        if length == 0 {
            return Ok((seq, cursor));
        }
        let offset = cursor.offset();
        let mut used = 0;
        for raw in cursor.window().chunks_exact(BASIC_BYTES) {
            let at = At { offset: offset + used as u64, seq };
            used += BASIC_BYTES;
            match parse_basic(raw, layout.endian) {
                Ok(record) => {
                    visitor.record(&record, raw, at)?;
                    seq += 1;
                }
                Err(need) => bad(visitor, need, raw, at)?,
            }
        }
        if used == 0 {
            let rest = cursor.window();
            visitor.damage(rest)?;
            let report = rules::TRUNCATED.at(offset).record(seq).field("record").expected("32 bytes");
            visitor.report(report.found(format!("{length} bytes, then end of data")).skipped(length as u64))?;
            used = length;
        }
        cursor.advance(used);
    }
}

#[cold]
fn bad<V: BasicVisitor>(visitor: &mut V, need: Need, raw: &[u8], at: At) -> Result<(), Error> {
    visitor.damage(raw)?;
    let report = match need {
        Need::Bad(Bad::BasicType(number)) => {
            rules::BASIC_TYPE.at(at.offset).field("type").expected("0 or 1").found(number.to_string())
        }
        Need::Bad(Bad::FunctionKind(number)) => {
            rules::UNKNOWN_FUNCTION.at(at.offset).field("kind").expected("0 to 3").found(number.to_string())
        }
        _ => rules::TRUNCATED.at(at.offset),
    };
    visitor.report(report.record(at.seq).skipped(BASIC_BYTES as u64).resumed(at.seq))
}
