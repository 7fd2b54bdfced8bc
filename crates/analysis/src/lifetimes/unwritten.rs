//! Reads of bytes that nothing has written: copied, or used.

use anytrace_core::access::{ThreadNumber, TypeNumber};

use super::copies::{Early, Run};
use super::{FINDINGS_MAX, LifetimeWatch, UnwrittenRead};

/// Longest read that may be of a variable: if it goes to no region, it counts as used, not as copied.
const SCALAR_BYTES: u64 = 8;

impl LifetimeWatch<'_> {
    /// Counts the reads of bytes that were not written as copied or as used, now that what followed them is known.
    pub(super) fn end_run(&mut self, run: &Run) {
        let copy = run.copy().filter(|copy| {
            let is_long = copy.from.end - copy.from.start > SCALAR_BYTES;
            is_long || self.regions.find(copy.thread, copy.to).is_some()
        });
        let (listed, more) = run.early();
        for early in listed {
            let end = early.access.address.saturating_add(u64::from(early.access.bytes));
            if copy.as_ref().is_some_and(|copy| end > copy.from.start) {
                self.copied_count += 1;
            } else {
                self.find_unwritten(early);
            }
        }
        for some in more {
            if copy.as_ref().is_some_and(|copy| some.start >= copy.from.start) {
                self.copied_count += some.count;
            } else {
                self.count_unwritten(some.type_number, some.count);
            }
        }
        // Where the target is a guess, marking its bytes as unwritten could invent findings.
        let Some(copy) = copy.filter(|copy| copy.is_certain) else { return };
        for hole in run.holes_in(&copy) {
            if let Some(region) = self.regions.find(copy.thread, hole.start) {
                self.masks.unwrite(
                    region.id,
                    hole.start.wrapping_sub(region.start),
                    hole.end.saturating_sub(hole.start),
                );
            }
        }
    }

    pub(super) fn end_all_runs(&mut self) {
        for run in self.copies.cut_all() {
            self.end_run(&run);
        }
    }

    /// Ends a thread's run when it removes a region: the copy refers to the regions of this moment. (An add may come in
    /// the middle of a copy: the recorder lets it wait for an annotation.)
    pub(super) fn end_thread_run(&mut self, thread: ThreadNumber) {
        if let Some(run) = self.copies.cut(thread) {
            self.end_run(&run);
        }
    }

    fn count_unwritten(&mut self, type_number: TypeNumber, count: u64) {
        self.unwritten_count += count;
        if let Some(one) = self.types.get_mut(type_number as usize) {
            one.unwritten_reads += count;
        }
    }

    /// Lists a read before the first write.
    fn find_unwritten(&mut self, early: &Early) {
        self.count_unwritten(early.type_number, 1);
        let found = UnwrittenRead {
            type_number: early.type_number,
            offset_bytes: early.offset_bytes,
            bytes: early.access.bytes,
            count: 1,
            first: early.access,
            region_start: early.region_start,
            added_at: early.added_at,
        };
        let key = (found.type_number, found.offset_bytes, found.bytes);
        let has_room = self.unwritten.len() < FINDINGS_MAX;
        match self.unwritten.get_mut(&key) {
            Some(known) => {
                let count = known.count + 1;
                // Runs of several threads end in another order than they began in.
                if found.first.seq < known.first.seq {
                    *known = found;
                }
                known.count = count;
            }
            None if has_room => {
                self.unwritten.insert(key, found);
            }
            None => {}
        }
    }
}
