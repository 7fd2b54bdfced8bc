//! What a reader must know to begin inside a trace, as bytes: how many bytes of damaged packets were examined before, in
//! eight bytes, little-endian; nothing where there were none. And what all readers of the parts must agree on: `recover`
//! in a byte, and the limit on packets in eight.

use anytrace_core::index::{Mark, Part};
use anytrace_core::{Cursor, Error};

/// More than any trace can have caused, and little enough to count on from it.
const WORK_MAX: u64 = 1 << 62;

/// The state of a reader at a mark.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) seq: u64,
    pub(crate) work: u64,
}

/// The bytes of a state.
#[cfg(feature = "lanes")]
pub(crate) fn encode(work: u64) -> Box<[u8]> {
    if work == 0 { Box::default() } else { work.to_le_bytes().into() }
}

fn decode(mark: &Mark) -> Option<Begin> {
    let work = match mark.state.as_array::<8>() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None if mark.state.is_empty() => 0,
        None => return None,
    };
    (work <= WORK_MAX && mark.seq <= mark.offset).then_some(Begin { seq: mark.seq, work })
}

/// What decides which packets a reader finds.
pub(crate) fn agreement(recovers: bool, packet_bytes_max: u64) -> [u8; 9] {
    let mut bytes = [u8::from(recovers); 9];
    bytes[1..].copy_from_slice(&packet_bytes_max.to_le_bytes());
    bytes
}

/// Moves to the start of a part and returns the state there.
///
/// # Errors
/// Usage, where the input cannot be read from the middle, the state is none of this format's, or the marks are of a
/// reader that finds other packets.
pub(crate) fn begin(part: &Part, agreement: [u8; 9], cursor: &mut Cursor) -> Result<Begin, Error> {
    if part.shared.as_ref().is_some_and(|shared| **shared != agreement) {
        return Err(Error::usage("the index was made with another --recover or another limit on packets"));
    }
    let Some(mark) = &part.from else { return Ok(Begin::default()) };
    let begin = decode(mark).filter(|_| cursor.layers().is_empty() && cursor.seek(mark.offset));
    begin.ok_or_else(|| Error::usage(format!("reading cannot begin at byte {:#x}", mark.offset)))
}

#[cfg(all(test, feature = "lanes"))]
mod tests {
    use super::*;

    fn mark(offset: u64, seq: u64, state: &[u8]) -> Mark {
        Mark { offset, seq, state: state.into() }
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        for work in [0, 1, 7_000_000_000, WORK_MAX] {
            assert_eq!(decode(&mark(90, 5, &encode(work))), Some(Begin { seq: 5, work }));
        }
        assert!(encode(0).is_empty());
    }

    #[test]
    fn states_that_no_reader_can_have_are_refused() {
        assert_eq!(decode(&mark(90, 5, &[0; 7])), None);
        assert_eq!(decode(&mark(90, 5, &[0; 9])), None);
        assert_eq!(decode(&mark(90, 5, &(WORK_MAX + 1).to_le_bytes())), None);
        assert_eq!(decode(&mark(90, 91, &[])), None, "more packets than bytes");
    }
}
