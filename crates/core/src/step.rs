//! What every reader hands out and every parser returns: the same few types in all format crates.
//!
//! A format crate has a pure `parse(window, &Layout)`, which returns a record and its length or a [`Need`]; a `Reader`
//! whose `next` returns a [`Step`]: a record with its [`Place`], or damage as a value; and a `Writer`.

use std::collections::VecDeque;
use std::ops::Range;

use crate::{Diagnostic, Error, Sink};

/// Where a record is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Place {
    /// Byte offset of its first byte, in the format's own bytes: compression around the trace is removed.
    pub offset: u64,
    /// Record number, from 0. Of anything else, the number of the next record.
    pub seq: u64,
}

/// Why a parser returned no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need<B> {
    /// The record extends beyond the window: at least this many bytes are needed, counted from its first byte.
    More(u64),
    /// The bytes are not a record; the reason is a type of the format.
    Bad(B),
}

/// What a reader found next. A record may borrow from the reader (`'r`).
#[derive(Debug)]
pub enum Step<'r, R> {
    /// A record (of type `R`), and where it is stored.
    Record(Place, <R as borrowed::Borrowed<'r>>::Record),
    /// Damage, or a violation of the grammar that the reader notices. Reading continues with the next step.
    Damage(Diagnostic),
}

/// Lets [`Step`] use its lifetime in a field that is `R` itself, so that it has no variant beside its two.
mod borrowed {
    /// Implemented for all types; `Record` is the type itself.
    pub trait Borrowed<'r> {
        /// The type itself.
        type Record;
    }

    impl<R> Borrowed<'_> for R {
        type Record = R;
    }
}

/// The result of reading to the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Complete records.
    pub records: u64,
    /// Bytes of the trace, without compression around it.
    pub bytes: u64,
    /// Bytes that belong to no complete record and that the format does not allow between records.
    pub bytes_lost: u64,
}

/// Steps that a reader found in one go and has not handed out yet: the copied bytes of each record, and diagnostics.
///
/// A reader that works in larger pieces (a run of records, a search after damage) fills it as its own visitor, then
/// parses one record for each call of its `next`. Borrowing from here instead of from the window is what lets `next`
/// refill the window and return a borrowed record.
#[derive(Debug, Default)]
pub struct Steps {
    bytes: Vec<u8>,
    queue: VecDeque<Queued>,
}

#[derive(Debug)]
enum Queued {
    Record(Place, Range<usize>),
    Damage(Diagnostic),
}

/// A step taken from [`Steps`].
#[derive(Debug)]
pub enum Stored<'s> {
    /// All bytes of a record.
    Record(Place, &'s [u8]),
    /// As [`Step::Damage`].
    Damage(Diagnostic),
}

impl Steps {
    /// Appends a record by its bytes.
    pub fn push(&mut self, place: Place, record: &[u8]) {
        self.forget_handed_out();
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.queue.push_back(Queued::Record(place, start..self.bytes.len()));
    }

    fn forget_handed_out(&mut self) {
        if self.queue.is_empty() {
            self.bytes.clear();
        }
    }

    /// True when everything was handed out.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes the first step.
    pub fn pop(&mut self) -> Option<Stored<'_>> {
        Some(match self.queue.pop_front()? {
            Queued::Record(place, range) => Stored::Record(place, self.bytes.get(range).unwrap_or_default()),
            Queued::Damage(diagnostic) => Stored::Damage(diagnostic),
        })
    }
}

/// Diagnostics take their place among the records.
impl Sink for Steps {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.forget_handed_out();
        self.queue.push_back(Queued::Damage(diagnostic));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    const RULE: Rule = Rule::error("core/test", "a test");

    #[test]
    fn a_step_is_matched_by_two_arms() {
        use Step::{Damage, Record};
        let taken = |step: Step<'_, u8>| match step {
            Record(place, record) => place.seq + u64::from(record),
            Damage(diagnostic) => diagnostic.offset,
        };
        let seen = |step: &Step<'_, u8>| match &step {
            Step::Record(place, record) => place.seq + u64::from(*record),
            Step::Damage(diagnostic) => diagnostic.offset,
        };
        let record = Record(Place { offset: 9, seq: 2 }, 3);
        assert_eq!((seen(&record), format!("{record:?}")), (5, "Record(Place { offset: 9, seq: 2 }, 3)".to_owned()));
        assert_eq!(taken(record), 5);
        assert_eq!((seen(&Damage(RULE.at(7))), taken(Damage(RULE.at(7)))), (7, 7));
    }

    #[test]
    fn a_step_of_any_record_can_be_matched_and_made_again() {
        #[allow(clippy::needless_match, reason = "that a step is made again is what is tested")]
        fn again<'r, R: std::fmt::Debug>(step: Step<'r, R>, shown: &mut Vec<String>) -> Step<'r, R> {
            match &step {
                Step::Record(_, record) => shown.push(format!("{record:?}")),
                Step::Damage(diagnostic) => shown.push(diagnostic.code().to_owned()),
            }
            match step {
                Step::Record(place, record) => Step::Record(place, record),
                Step::Damage(diagnostic) => Step::Damage(diagnostic),
            }
        }
        let (text, mut shown) = (String::from("text"), Vec::new());
        let steps: Vec<Step<'_, &str>> = vec![Step::Record(Place::default(), text.as_str()), Step::Damage(RULE.at(0))];
        let same: Vec<_> = steps.into_iter().map(|step| again(step, &mut shown)).collect();
        assert!(matches!(same[..], [Step::Record(_, "text"), Step::Damage(_)]));
        assert_eq!(shown, ["\"text\"", "core/test"]);
    }

    #[test]
    fn steps_come_back_in_order_with_their_bytes() {
        let mut steps = Steps::default();
        for round in 0..2_u64 {
            steps.report(RULE.at(2)).unwrap();
            steps.push(Place { offset: round, seq: 0 }, b"ab");
            steps.push(Place { offset: 3, seq: 1 }, b"c");
            assert!(matches!(steps.pop(), Some(Stored::Damage(diagnostic)) if diagnostic.offset == 2));
            assert!(matches!(steps.pop(), Some(Stored::Record(place, b"ab")) if place.offset == round));
            assert!(matches!(steps.pop(), Some(Stored::Record(Place { seq: 1, .. }, b"c"))));
            assert!(steps.is_empty() && steps.pop().is_none());
        }
        assert!(steps.bytes.len() <= 3, "handed out bytes are not kept");
    }
}
