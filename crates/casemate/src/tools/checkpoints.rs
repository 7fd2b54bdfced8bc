//! The state at any record, from checkpoints made in one pass.

use anytrace_core::{Collect, Error, Input, OpenOptions, Sink};

use super::history::Where;
use crate::model::{Checker, Options};
use crate::wire::walk::{Item, Walk};

/// Records between checkpoints at first; doubled when there are too many.
const SPACING: u64 = 4096;

/// Most checkpoints.
const COUNT_MAX: usize = 32;

/// Approximate memory of all checkpoints together.
const BYTES_MAX: u64 = 256 << 20;

/// Approximate memory of a page.
const PAGE_COST: u64 = 6 << 10;

/// Selects a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// By number in the trace, from 0.
    Index(u64),
    /// By its own number; the first one with it.
    Id(u64),
    /// The last record.
    End,
}

struct Checkpoint {
    /// Records processed.
    index: u64,
    /// Where the next record is.
    offset: usize,
    checker: Checker,
}

/// A trace in memory with checkpoints. Memory: the trace, and at most 256 MiB of checkpoints in addition to two of
/// them.
pub struct Checkpoints<'a> {
    bytes: &'a [u8],
    open: &'a OpenOptions,
    saved: Vec<Checkpoint>,
    /// Records in the trace.
    records: u64,
}

/// The state after a record.
pub struct StateAt {
    /// The machine.
    pub checker: Checker,
    /// The record; `None` for an empty trace.
    pub at: Option<Where>,
}

impl<'a> Checkpoints<'a> {
    /// Reads the trace once; the checker continues after violations.
    ///
    /// # Errors
    /// Whatever the sink returns.
    pub fn new(bytes: &'a [u8], open: &'a OpenOptions, options: Options, sink: &mut dyn Sink) -> Result<Self, Error> {
        let mut checker = Checker::new(Options { goes_on: true, ..options });
        let mut saved = vec![Checkpoint { index: 0, offset: 0, checker: checker.clone() }];
        let (mut spacing, mut records) = (SPACING, 0);
        Walk::new(Input::from_bytes("trace", bytes.to_vec()), open)?.for_each(sink, |item, place| {
            let Item::Record(record) = item else { return Ok(()) };
            if place.seq > 0 && place.seq.is_multiple_of(spacing) {
                let offset = usize::try_from(place.offset).unwrap_or(usize::MAX);
                saved.push(Checkpoint { index: place.seq, offset, checker: checker.clone() });
                let cost = checker.initialised_pages().0.saturating_mul(PAGE_COST).max(1);
                let most = usize::try_from(BYTES_MAX / cost).unwrap_or(COUNT_MAX).clamp(3, COUNT_MAX);
                if saved.len() > most {
                    spacing *= 2;
                    saved.retain(|checkpoint| checkpoint.index.is_multiple_of(spacing));
                }
            }
            checker.step(record.thread, &record.transition);
            records = place.seq + 1;
            Ok(())
        })?;
        Ok(Self { bytes, open, saved, records })
    }

    /// Records in the trace.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// The state after a record.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Usage`] when there is no such record.
    pub fn state(&self, at: At) -> Result<StateAt, Error> {
        let index = match at {
            At::Index(index) => index,
            At::End => self.records.saturating_sub(1),
            At::Id(id) => self.index_of(id)?,
        };
        if index >= self.records && self.records > 0 {
            return Err(Error::usage(format!("no record {index}: the trace has {} records", self.records)));
        }
        let from = self.saved.partition_point(|checkpoint| checkpoint.index <= index).saturating_sub(1);
        let Some(checkpoint) = self.saved.get(from) else {
            return Err(Error::usage("the trace has no records"));
        };
        let end = self.saved.get(from + 1).map_or(self.bytes.len(), |next| next.offset);
        let piece = self.bytes.get(checkpoint.offset..end).unwrap_or_default();
        let mut state = StateAt { checker: checkpoint.checker.clone(), at: None };
        let mut is_there = false;
        let input = Input::from_bytes("trace", piece.to_vec());
        let replayed = Walk::new(input, self.open)?.for_each(&mut Collect::default(), |item, place| {
            let Item::Record(record) = item else { return Ok(()) };
            state.checker.step(record.thread, &record.transition);
            if checkpoint.index + place.seq < index {
                return Ok(());
            }
            state.at = Some(Where::of(record, index));
            is_there = true;
            Err(Error::usage("the record is reached"))
        });
        match replayed {
            Err(error) if !is_there => Err(error),
            _ => Ok(state),
        }
    }

    fn index_of(&self, id: u64) -> Result<u64, Error> {
        let mut found = None;
        let input = Input::from_bytes("trace", self.bytes.to_vec());
        let ended = Walk::new(input, self.open)?.for_each(&mut Collect::default(), |item, place| {
            if let Item::Record(record) = item
                && record.id == id
            {
                found = Some(place.seq);
                return Err(Error::usage("the record is reached"));
            }
            Ok(())
        });
        match found {
            Some(index) => Ok(index),
            None => {
                ended?;
                Err(Error::usage(format!("no record has the id {id}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_at_a_record_is_that_of_a_run_that_ends_there() {
        let mut log = String::from("(mem-init 0 0 1000 4000)");
        for n in 1..20_000_u64 {
            log.push_str(&format!("(mem-write {n} {} plain {:x} {:x})\n", n % 3, 0x1000 + 8 * (n % 2048), n));
        }
        let open = OpenOptions::default();
        let points = Checkpoints::new(log.as_bytes(), &open, Options::ARCHITECTURE, &mut Collect::default()).unwrap();
        assert_eq!(points.records(), 20_000);
        for index in [0, 1, 4095, 4096, 4097, 12_345, 19_999] {
            let state = points.state(At::Index(index)).unwrap();
            assert_eq!(state.at.as_ref().map(|at| at.id), Some(index));
            let expected = if index == 0 { 0 } else { index };
            assert_eq!(state.checker.value(0x1000 + 8 * (index % 2048)), Some(expected));
            let next = index + 1;
            let before = next.saturating_sub(2048);
            assert_eq!(state.checker.value(0x1000 + 8 * (next % 2048)), Some(before));
        }
        assert_eq!(points.state(At::Id(77)).unwrap().at.map(|at| at.index), Some(77));
        assert_eq!(points.state(At::End).unwrap().at.map(|at| at.index), Some(19_999));
        assert!(points.state(At::Index(20_000)).is_err() && points.state(At::Id(99_999)).is_err());
    }
}
