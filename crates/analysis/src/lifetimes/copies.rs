//! Copies. Programs may copy bytes that nothing has written (padding, unions, buffers that are not full) as long as
//! nothing uses the copy, so the reads of a copy are not findings; bytes that were not written are not written in the
//! copy either.
//!
//! A copy appears in a trace as reads of one thread, each from where the previous one ended, and then writes of that
//! thread in the same way (the recorder writes all reads of a `memcpy` before its writes, and a copied variable is one
//! of each). Only as many bytes count as were both read and written: the last ones read, the first ones written. gcc
//! records the writes of a struct's copy before its reads: writes, and then reads of exactly as many bytes, are a copy
//! too. There, the bytes of the copy count as written, since the writes may belong to something else.

use std::ops::Range;

use anytrace_core::access::{Access, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;

use super::FINDINGS_MAX;

/// Most reads and gaps between written bytes that are kept of all runs together. Gaps beyond count as written in the
/// copy.
const KEPT_MAX: usize = 1 << 20;

/// Most reads that are counted together where they are not kept one by one.
const COUNTED_MAX: u64 = 256;

/// Most threads whose last reads are remembered.
const THREADS_MAX: usize = 4096;

/// A read of bytes that nothing has written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) access: Access,
    pub(super) type_number: TypeNumber,
    /// From the start of the element.
    pub(super) offset_bytes: u64,
    pub(super) region_start: u64,
    pub(super) added_at: u64,
}

/// Reads of bytes that nothing has written, counted only.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counted {
    pub(super) type_number: TypeNumber,
    pub(super) count: u64,
    /// Address of the first one.
    pub(super) start: u64,
}

/// Shortest copy whose writes may come first: shorter ones are taken for two variables.
const STRUCT_BYTES: u64 = 9;

/// Reads that follow each other in memory, and the writes before and after them that do. Without reads, both ends are
/// the same.
#[derive(Debug, Default)]
pub(super) struct Run {
    thread: ThreadNumber,
    before: Range<u64>,
    read: Range<u64>,
    written: Option<Range<u64>>,
    /// Reads of bytes that were not written.
    early: Vec<Early>,
    /// More of them.
    more: Vec<Counted>,
    /// The bytes read that were not written, ascending.
    holes: Vec<Range<u64>>,
}

/// The copy that a run was.
pub(super) struct Copy {
    pub(super) thread: ThreadNumber,
    /// Where it was copied from.
    pub(super) from: Range<u64>,
    /// Where to.
    pub(super) to: u64,
    /// False where it may have been to another place.
    pub(super) is_certain: bool,
}

impl Run {
    /// True when as much was written as was read.
    fn is_complete(&self) -> bool {
        self.written.as_ref().is_some_and(|written| bytes(written) >= bytes(&self.read))
    }

    /// True when the writes before the reads may be those of a copy.
    fn may_begin_with_writes(&self) -> bool {
        let copied = bytes(&self.read);
        copied >= STRUCT_BYTES && bytes(&self.before) == copied && self.before.start != self.read.start
    }

    /// The bytes that were read and written elsewhere, if any: a change in place is not a copy.
    pub(super) fn copy(&self) -> Option<Copy> {
        let may_begin_with_writes = self.may_begin_with_writes();
        let (to, copied) = match &self.written {
            Some(written) if !may_begin_with_writes => (written.start, bytes(written).min(bytes(&self.read))),
            _ if may_begin_with_writes => (self.before.start, bytes(&self.read)),
            _ => return None,
        };
        let from = self.read.end.wrapping_sub(copied);
        let copy = Copy { thread: self.thread, from: from..self.read.end, to, is_certain: !may_begin_with_writes };
        (from != to).then_some(copy)
    }

    /// Reads of bytes that were not written: those that are listed, and more that are counted only.
    pub(super) fn early(&self) -> (&[Early], &[Counted]) {
        (&self.early, &self.more)
    }

    fn has_early(&self) -> bool {
        !self.early.is_empty() || !self.more.is_empty()
    }

    fn kept(&self) -> usize {
        self.early.len() + self.more.len() + self.holes.len()
    }

    /// Where the bytes that were not written lie in the copy.
    pub(super) fn holes_in(&self, copy: &Copy) -> impl Iterator<Item = Range<u64>> {
        let (from, to) = (copy.from.clone(), copy.to);
        self.holes.iter().filter_map(move |hole| {
            let part = hole.start.max(from.start)..hole.end.min(from.end);
            let moved = |at: u64| to.wrapping_add(at - from.start);
            (part.start < part.end).then(|| moved(part.start)..moved(part.end))
        })
    }
}

/// The last run of each thread.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// That of the thread which was last seen.
    run: Run,
    others: Map<ThreadNumber, Run>,
    /// Reads and gaps in all of them.
    kept: usize,
}

impl Copies {
    /// Takes note of an access of the thread that was turned to; returns the run that it ends, if that read bytes that
    /// were not written.
    #[inline]
    pub(super) fn access(&mut self, access: &Access) -> Option<Run> {
        let run = &mut self.run;
        let range = access.address..access.address.saturating_add(u64::from(access.bytes));
        let has_read = run.read.start != run.read.end;
        match (access.is_write(), &mut run.written) {
            (true, Some(written)) if written.end == range.start => written.end = range.end,
            (true, None) if has_read => run.written = Some(range),
            (true, None) if run.before.end == range.start => run.before.end = range.end,
            (false, None) if has_read && run.read.end == range.start => run.read.end = range.end,
            (false, None) if !has_read => run.read = range,
            (is_write, _) => {
                // The access fits no part of the run, so the run is over and this access begins the next.
                let ended = cut(run, &mut self.kept);
                if is_write {
                    self.run.before = range;
                } else {
                    self.run.read = range;
                }
                return ended;
            }
        }
        None
    }

    /// Adds to the run a read of bytes that were not written: the one that was just noted.
    pub(super) fn read_early(&mut self, early: Early, holes: impl Iterator<Item = Range<u64>>) {
        let (run, type_number) = (&mut self.run, early.type_number);
        let before = run.kept();
        // Beyond the limits reads are still counted, only without their places.
        if run.early.len() < FINDINGS_MAX && self.kept < KEPT_MAX {
            run.early.push(early);
        } else {
            match run.more.last_mut() {
                Some(last) if last.type_number == type_number && last.count < COUNTED_MAX => last.count += 1,
                _ => run.more.push(Counted { type_number, count: 1, start: early.access.address }),
            }
        }
        self.kept += run.kept() - before;
        for hole in holes {
            match run.holes.last_mut() {
                Some(last) if last.end == hole.start => last.end = hole.end,
                _ if self.kept < KEPT_MAX => {
                    run.holes.push(hole);
                    self.kept += 1;
                }
                _ => {}
            }
        }
    }

    /// Ends a thread's run: what it does next is not part of it.
    pub(super) fn cut(&mut self, thread: ThreadNumber) -> Option<Run> {
        let run = if thread == self.run.thread { Some(&mut self.run) } else { self.others.get_mut(&thread) };
        run.and_then(|run| cut(run, &mut self.kept))
    }

    /// Ends all runs, and forgets the threads.
    pub(super) fn cut_all(&mut self) -> Vec<Run> {
        let mut all: Vec<_> = std::mem::take(&mut self.others).into_values().filter(Run::has_early).collect();
        all.extend(cut(&mut self.run, &mut self.kept));
        self.kept = 0;
        // Findings must not depend on the order of the map.
        all.sort_unstable_by_key(|run| run.thread);
        all
    }

    /// True when so much is remembered that all must be forgotten.
    pub(super) fn is_full(&self) -> bool {
        self.others.len() >= THREADS_MAX || self.kept >= KEPT_MAX
    }

    /// Turns to a thread. A copy that is complete ends then and is returned: other threads may use and change it.
    #[inline]
    pub(super) fn turn_to(&mut self, thread: ThreadNumber) -> Option<Run> {
        if self.run.thread == thread { None } else { self.change_to(thread) }
    }

    fn change_to(&mut self, thread: ThreadNumber) -> Option<Run> {
        let next = self.others.remove(&thread).unwrap_or_else(|| Run { thread, ..Run::default() });
        let mut last = std::mem::replace(&mut self.run, next);
        let ended = if last.is_complete() { cut(&mut last, &mut self.kept) } else { None };
        // Invariant: the run of a thread is either `run` or in `others`, never in both.
        self.others.insert(last.thread, last);
        ended
    }
}

/// Starts a new run, after the writes that ended it as far as they belong to no copy: a struct that gcc copies to the
/// address where a `memcpy` ended is one row of writes with it. Returns the old one if it read bytes that were not
/// written.
fn cut(run: &mut Run, kept: &mut usize) -> Option<Run> {
    let copied = if run.may_begin_with_writes() { 0 } else { bytes(&run.read) };
    let written = run.written.take();
    let surplus = written.clone().map(|written| written.start.saturating_add(copied).min(written.end)..written.end);
    let next = Run { thread: run.thread, before: surplus.unwrap_or_default(), ..Run::default() };
    if !run.has_early() {
        (run.before, run.read) = (next.before, next.read);
        return None;
    }
    let mut ended = std::mem::replace(run, next);
    ended.written = written;
    // `kept` counts what all runs hold together; this one leaves.
    *kept -= ended.kept();
    Some(ended)
}

fn bytes(range: &Range<u64>) -> u64 {
    range.end.wrapping_sub(range.start)
}
