//! Where reading can begin inside a trace: at the first byte of a record's line. The state is the number of that line, in
//! eight bytes, little-endian.

use anytrace_core::index::Mark;
use anytrace_core::{Cursor, Error, Place};

/// The mark before a record.
pub(crate) fn mark(at: Place, line: u64) -> Mark {
    Mark { offset: at.offset, seq: at.seq, state: line.to_le_bytes().into() }
}

/// Moves to a mark and returns its line.
///
/// # Errors
/// Usage, where the input cannot be read from the middle or no trace has such a mark: an index may be made by anyone.
pub(crate) fn begin(mark: &Mark, cursor: &mut Cursor) -> Result<u64, Error> {
    let line = line(mark).filter(|_| cursor.layers().is_empty() && cursor.seek(mark.offset));
    line.ok_or_else(|| Error::usage(format!("reading cannot begin at byte {:#x}", mark.offset)))
}

fn line(mark: &Mark) -> Option<u64> {
    let line = u64::from_le_bytes(<[u8; 8]>::try_from(&*mark.state).ok()?);
    // Each line before it has at least one byte, and at most one record.
    (mark.seq < line && line - 1 <= mark.offset).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_was_written_and_others_are_refused() {
        let at = Place { offset: 40, seq: 4 };
        assert_eq!(line(&mark(at, 6)), Some(6));
        assert_eq!(line(&Mark { state: [6, 0].into(), ..mark(at, 6) }), None);
        assert_eq!(line(&mark(at, 4)), None, "four records in three lines");
        assert_eq!(line(&mark(at, 42)), None, "41 lines in 40 bytes");
    }
}
