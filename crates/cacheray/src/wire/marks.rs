//! What a reader must know to begin inside a trace, as bytes.
//!
//! ```text
//! state = empty: nothing
//!       | zeros (offset, number of the record; both u64::MAX where the trace does not end in zeros so far),
//!         number of threads, (thread, times seen)*, pieces*
//! ```
//!
//! All numbers have eight bytes, little-endian.

use anytrace_core::index::Mark;
use anytrace_core::{Cursor, Error, Place};

use crate::wire::likeness::Likeness;

/// The state of a reader at a mark.
#[derive(Debug, Default)]
pub(crate) struct Begin {
    pub(crate) seq: u64,
    pub(crate) likeness: Likeness,
    pub(crate) zeros: Option<Place>,
}

/// The bytes of a state.
pub(crate) fn encode(likeness: &Likeness, zeros: Option<Place>) -> Box<[u8]> {
    let (threads, pieces) = likeness.parts();
    if threads.is_empty() && pieces.is_empty() && zeros.is_none() {
        return Box::default();
    }
    let Place { offset, seq } = zeros.unwrap_or(NO_ZEROS);
    let threads = threads.iter().flat_map(|(thread, times)| [*thread, u64::from(*times)]);
    let head = [offset, seq, threads.clone().count() as u64 / 2];
    head.into_iter().chain(threads).chain(pieces.iter().copied()).flat_map(u64::to_le_bytes).collect()
}

const NO_ZEROS: Place = Place { offset: u64::MAX, seq: u64::MAX };

fn decode(mark: &Mark) -> Option<Begin> {
    // A record has at least a byte.
    if mark.seq > mark.offset {
        return None;
    }
    if mark.state.is_empty() {
        return Some(Begin { seq: mark.seq, ..Begin::default() });
    }
    let (numbers, rest) = mark.state.as_chunks::<8>();
    let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let zeros = Place { offset: numbers.next()?, seq: numbers.next()? };
    let count = usize::try_from(numbers.next()?).ok()?;
    let mut threads = Vec::new();
    for _ in 0..count.min(mark.state.len()) {
        threads.push((numbers.next()?, u32::try_from(numbers.next()?).ok()?));
    }
    let likeness = Likeness::from_parts(threads, numbers.collect())?;
    let zeros = Some(zeros).filter(|zeros| *zeros != NO_ZEROS);
    let is_before = zeros.is_none_or(|zeros| zeros.offset <= mark.offset && zeros.seq <= mark.seq);
    (rest.is_empty() && is_before).then_some(Begin { seq: mark.seq, likeness, zeros })
}

/// Moves to a mark and returns the state there.
///
/// # Errors
/// Usage, where the input cannot be read from the middle or the state is none of this format's.
pub(crate) fn begin(mark: &Mark, cursor: &mut Cursor) -> Result<Begin, Error> {
    let begin = decode(mark).filter(|_| cursor.layers().is_empty() && cursor.seek(mark.offset));
    begin.ok_or_else(|| Error::usage(format!("reading cannot begin at byte {:#x}", mark.offset)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written_and_others_are_refused() {
        let likeness = Likeness::from_parts(vec![(7, 1), (u64::MAX, 9)], vec![3, 4, 5]).unwrap();
        let zeros = Some(Place { offset: 18, seq: 1 });
        for (likeness, zeros) in [(likeness.clone(), zeros), (likeness, None), (Likeness::default(), zeros)] {
            let mark = Mark { offset: 90, seq: 5, state: encode(&likeness, zeros) };
            let found = decode(&mark).unwrap();
            assert_eq!((found.likeness.parts(), found.zeros, found.seq), (likeness.parts(), zeros, 5));
            let cut = Mark { state: mark.state[..mark.state.len() - 3].into(), ..mark };
            assert!(decode(&cut).is_none());
        }
        assert!(encode(&Likeness::default(), None).is_empty());
        let after = Mark { offset: 17, seq: 5, state: encode(&Likeness::default(), zeros) };
        assert!(decode(&after).is_none(), "zeros that begin after the mark");
        let late = Mark { offset: 18, seq: u64::MAX, ..Mark::default() };
        assert!(decode(&late).is_none(), "more records than bytes");
        let many = Likeness::from_parts(vec![(1, 1); 17], Vec::new());
        assert!(many.is_none());
    }
}
