//! Walks a Basic trace. Records have 32 bytes, so a bad one costs only itself.

use anytrace_core::index::Part;
use anytrace_core::{Cursor, Diagnostic, Error, Place};

use crate::rules;
use crate::wire::parse::{BinaryFault, Need, parse_basic};
use crate::wire::record::{BASIC_BYTES, BasicRecord, HEADER_BYTES, Orders};

/// Receives a Basic trace in wire order.
pub(crate) trait BasicVisitor {
    /// One record; `raw` is its 32 bytes.
    ///
    /// # Errors
    /// Any error ends the walk; the same holds for the methods below.
    fn record(&mut self, record: &BasicRecord, raw: &[u8], at: Place) -> Result<(), Error>;
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
pub(crate) fn walk_basic<V: BasicVisitor>(
    cursor: Cursor,
    layout: Orders,
    visitor: &mut V,
) -> Result<(u64, Cursor), Error> {
    let mut walk = BasicWalk::new(cursor, layout);
    while walk.step(usize::MAX, visitor)? {}
    Ok((walk.seq, walk.cursor))
}

/// Walks one Basic trace.
pub(crate) struct BasicWalk {
    pub(crate) cursor: Cursor,
    pub(crate) layout: Orders,
    pub(crate) seq: u64,
    /// What is read of the trace.
    pub(crate) part: Part,
}

impl BasicWalk {
    /// Starts after the header, where the cursor must be.
    pub(crate) fn new(mut cursor: Cursor, layout: Orders) -> Self {
        let header = cursor.window().len().min(HEADER_BYTES);
        cursor.advance(header);
        Self { cursor, layout, seq: 0, part: Part::default() }
    }

    /// Visits the records among the next `reach` bytes, at least 32; false at the end of the data or of the part.
    pub(crate) fn step<V: BasicVisitor>(&mut self, reach: usize, visitor: &mut V) -> Result<bool, Error> {
        let Self { cursor, layout, seq, part } = self;
        let reach = match part.limit(cursor.offset(), reach) {
            0 => return Ok(false),
            reach => reach.max(BASIC_BYTES),
        };
        let length = cursor.fill(BASIC_BYTES)?;
        if length == 0 {
            return Ok(false);
        }
        let offset = cursor.offset();
        let window = cursor.window();
        let mut used = 0;
        for raw in window.get(..reach).unwrap_or(window).chunks_exact(BASIC_BYTES) {
            let at = Place { offset: offset + used as u64, seq: *seq };
            used += BASIC_BYTES;
            match parse_basic(raw, layout.endian) {
                Ok(record) => {
                    visitor.record(&record, raw, at)?;
                    *seq += 1;
                }
                Err(need) => bad(visitor, need, raw, at)?,
            }
        }
        if used == 0 {
            let rest = cursor.window();
            visitor.damage(rest)?;
            let report = rules::TRUNCATED.at(offset).record(*seq).field("record").expected("32 bytes");
            visitor.report(report.found(format!("{length} bytes, then the end of the data")).skipped(length as u64))?;
            used = length;
        }
        cursor.advance(used);
        Ok(true)
    }
}

#[cold]
fn bad<V: BasicVisitor>(visitor: &mut V, need: Need, raw: &[u8], at: Place) -> Result<(), Error> {
    visitor.damage(raw)?;
    let report = match need {
        Need::Bad(BinaryFault::BasicType(number)) => {
            rules::BASIC_TYPE.at(at.offset).field("type").expected("0 or 1").found(number.to_string())
        }
        Need::Bad(BinaryFault::FunctionKind(number)) => {
            rules::UNKNOWN_FUNCTION.at(at.offset).field("kind").expected("0 to 3").found(number.to_string())
        }
        _ => rules::TRUNCATED.at(at.offset),
    };
    visitor.report(report.record(at.seq).skipped(BASIC_BYTES as u64).resumed(at.seq))
}
