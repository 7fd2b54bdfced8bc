//! Lengths of calls by function, as they end.

use std::collections::{BTreeMap, HashMap};

use anytrace_analysis::quantiles::Quantiles;
use anytrace_core::span::EdgeFlags;
use anytrace_core::{Diagnostic, Error};

use crate::lanes::calls::{CallCounts, CallOptions, CallVisitor, Calls, End, Frame, Mismatch};
use crate::lanes::ordered::{Between, Sectioned};
use crate::wire::moment::{Moment, Moments};

/// Function ids below this are looked up in a table.
const TABLE_MAX: usize = 1 << 16;

/// Follows the calls of its threads and records how long they take.
pub(super) struct Accountant {
    calls: Calls,
    tally: Tally,
}

/// One function.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    pub(super) all: Quantiles,
    /// First record that ended a call.
    pub(super) first_seq: Option<u64>,
}

/// Lengths, and the data that decide whether they count.
struct Tally {
    table: Vec<Lengths>,
    rest: HashMap<u32, Lengths>,
    names: BTreeMap<u32, Vec<u8>>,
    /// By thread, then by function: open calls, and whether two or more were open at once since there was last none.
    recursion: Option<Vec<HashMap<u32, (u64, bool)>>>,
}

impl Accountant {
    pub(super) fn new(options: CallOptions, recursive_only: bool) -> Self {
        let (table, rest, names) = (Vec::new(), HashMap::new(), BTreeMap::new());
        let tally = Tally { table, rest, names, recursion: recursive_only.then(Vec::new) };
        Self { calls: Calls::new(options), tally }
    }

    /// Ends the open calls, which count only as unfinished.
    pub(super) fn finish(&mut self) -> Result<(), Error> {
        self.calls.finish(&mut self.tally)
    }

    pub(super) fn counts(&self) -> &CallCounts {
        self.calls.counts()
    }

    /// Lengths in order of ids, and the names the trace has.
    pub(super) fn into_parts(self) -> (BTreeMap<u32, Lengths>, BTreeMap<u32, Vec<u8>>) {
        let Tally { table, rest, names, .. } = self.tally;
        let table = table.into_iter().zip(0..).filter(|(lengths, _)| lengths.first_seq.is_some());
        let mut all: BTreeMap<u32, Lengths> = table.map(|(lengths, id)| (id, lengths)).collect();
        all.extend(rest);
        (all, names)
    }
}

impl Moments for Accountant {
    #[inline]
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.calls.moment(moment, &mut self.tally)
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

impl Sectioned for Accountant {
    const NEEDS_ORDER: bool = false;

    fn can_resume(&self) -> bool {
        // Whether a call is recursive depends on calls that have ended.
        self.calls.options().mismatch == Mismatch::Deduce && self.tally.recursion.is_none()
    }

    fn resume(&mut self, key: (u32, u32), between: &Between) {
        // Without a number the thread is beyond the limit, and so are its moments.
        let _number = self.calls.resume(key, &between.thread);
    }

    fn pause(&mut self) {
        self.calls.pause();
    }
}

impl Tally {
    #[inline]
    fn of(&mut self, id: u32) -> &mut Lengths {
        let place = id as usize;
        if place >= self.table.len() {
            if place >= TABLE_MAX {
                return self.rest.entry(id).or_default();
            }
            self.table.resize_with(place + 1, Lengths::default);
        }
        &mut self.table[place]
    }

    #[cold]
    fn enter(&mut self, thread: usize, frame: &Frame, moment: &Moment<'_>) {
        if !moment.name.is_empty() {
            self.names.entry(frame.function).or_insert_with(|| moment.name.to_vec());
        }
        let Some(threads) = &mut self.recursion else { return };
        if threads.len() <= thread {
            threads.resize_with(thread + 1, HashMap::new);
        }
        if let Some(functions) = threads.get_mut(thread) {
            let (open, is_recursive) = functions.entry(frame.function).or_default();
            *open += 1;
            *is_recursive |= *open > 1;
        }
    }

    /// Processes an end; false if the call was not recursive.
    #[cold]
    fn is_recursive(&mut self, thread: usize, function: u32) -> bool {
        let functions = self.recursion.as_mut().and_then(|threads| threads.get_mut(thread));
        let Some((open, is_recursive)) = functions.and_then(|functions| functions.get_mut(&function)) else {
            return false;
        };
        let was = *is_recursive;
        *open = open.saturating_sub(1);
        *is_recursive &= *open > 0;
        was
    }
}

impl CallVisitor for Tally {
    #[inline]
    fn begin(&mut self, thread: usize, frame: &Frame, _depth: usize, moment: &Moment<'_>) -> Result<(), Error> {
        if self.recursion.is_some() || !moment.name.is_empty() {
            self.enter(thread, frame, moment);
        }
        Ok(())
    }

    #[inline]
    fn end(&mut self, thread: usize, frame: &Frame, _depth: usize, end: &End) -> Result<(), Error> {
        let counts = self.recursion.is_none() || self.is_recursive(thread, frame.function);
        if counts && !end.flags.has(EdgeFlags::UNFINISHED) {
            let lengths = self.of(frame.function);
            // A thread's buffers need not be in the order of the file.
            if lengths.first_seq.is_none_or(|first| first > end.at.seq) {
                lengths.first_seq = Some(end.at.seq);
            }
            lengths.all.push(end.tsc.abs_diff(frame.enter));
        }
        Ok(())
    }
}
