//! Where reading can begin inside a log: what a reader must know there, as bytes.
//!
//! ```text
//! state = 1 if the reference's output was reported, else 0; line ends so far; offset of the line
//! ```
//!
//! All numbers have eight bytes, little-endian.

use anytrace_core::Error;
use anytrace_core::index::Mark;

/// What a walk knows at a mark, apart from offset and number of the next record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) has_output: bool,
    pub(crate) line_ends: u64,
    pub(crate) line_start: u64,
}

impl Begin {
    /// The bytes of a state.
    pub(crate) fn encode(&self) -> Box<[u8]> {
        let numbers = [u64::from(self.has_output), self.line_ends, self.line_start];
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// The state at a mark.
    ///
    /// # Errors
    /// Usage, where no walk can be in it.
    pub(crate) fn decode(mark: &Mark) -> Result<Self, Error> {
        let (numbers, rest) = mark.state.as_chunks::<8>();
        let found = match (numbers, rest) {
            ([output, line_ends, line_start], []) => {
                let [line_ends, line_start] = [line_ends, line_start].map(|bytes| u64::from_le_bytes(*bytes));
                let has_output = u64::from_le_bytes(*output);
                // Each line and each record has at least one byte.
                let is_possible = has_output < 2 && mark.seq.max(line_ends).max(line_start) <= mark.offset;
                is_possible.then_some(Self { has_output: has_output == 1, line_ends, line_start })
            }
            _ => None,
        };
        found.ok_or_else(|| refused(mark))
    }
}

/// The error for a mark that is none of the trace.
#[cold]
pub(crate) fn refused(mark: &Mark) -> Error {
    Error::usage(format!("reading cannot begin at byte {:#x}", mark.offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_others_are_refused() {
        for has_output in [false, true] {
            let begin = Begin { has_output, line_ends: 3, line_start: 90 };
            let mark = Mark { offset: 90, seq: 4, state: begin.encode() };
            assert_eq!(Begin::decode(&mark).ok(), Some(begin));
            for bytes in [0, 8, 23] {
                assert!(Begin::decode(&Mark { state: mark.state[..bytes].into(), ..mark.clone() }).is_err());
            }
            assert!(Begin::decode(&Mark { offset: 89, ..mark.clone() }).is_err(), "a line that begins later");
            assert!(Begin::decode(&Mark { seq: 91, ..mark.clone() }).is_err(), "91 records in 90 bytes");
        }
        let lines = Begin { line_ends: 91, ..Begin::default() };
        assert!(Begin::decode(&Mark { offset: 90, seq: 4, state: lines.encode() }).is_err());
        let flags = [2_u64, 0, 0].into_iter().flat_map(u64::to_le_bytes).collect();
        assert!(Begin::decode(&Mark { offset: 90, seq: 4, state: flags }).is_err());
    }
}
