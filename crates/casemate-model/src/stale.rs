//! Live entries whose TLB maintenance is not complete: they were changed in place, and TLBs may contain an old value.
//!
//! A change in place needs no break, but what it takes away is gone only after a DSB, a TLBI and a DSB (Arm ARM D8.17,
//! rule RGPPYH, by way of a transcription of the manual). Until then the entry has *stale permissions*. The same record
//! serves entries whose size was changed in place with FEAT_BBM.

use alloc::vec::Vec;

use super::rights::Rights;
use super::room;
use super::sorted::Sorted;
use super::table::Map;
use super::unclean::Progress;

/// A TLBI that a thread sent and has not waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) thread: u32,
    /// True if nothing is left in any TLB once it is complete; otherwise it drops stage 2 alone.
    pub(super) is_full: bool,
    /// No DSB with nXS completes it.
    pub(super) is_plain: bool,
}

/// What TLBs may contain for a live entry besides its value.
#[derive(Debug, Clone)]
pub(crate) struct Stale {
    pub(super) number: u64,
    /// The thread that changed the entry last.
    pub(crate) thread: u32,
    /// The first value that TLBs may contain.
    pub(crate) old: u64,
    /// Every right that some TLB may still grant.
    pub(super) granted: Rights,
    /// Those that the entry no longer has.
    pub(crate) lost: Rights,
    /// TLBs may contain the entry in another size.
    pub(super) is_resized: bool,
    /// The levels at which TLBs may contain it, as bits.
    pub(super) levels: u8,
    /// The table entry above it whose limits changed last: TLBs may contain that one too.
    pub(super) above: Option<u64>,
    /// A DSB waited for the write.
    pub(super) is_written: bool,
    /// A TLBI dropped what stage 2 alone has, and a DSB waited for it.
    pub(super) is_stage_two_done: bool,
    pub(super) requests: Vec<Request>,
}

impl Stale {
    /// How far the maintenance has come.
    pub(crate) fn progress(&self) -> Progress {
        let has = |is_full| self.requests.iter().any(|request| request.is_full == is_full);
        match (self.is_written, self.is_stage_two_done) {
            (false, _) => Progress::Unguarded,
            _ if has(true) => Progress::Tlbied,
            (_, true) => Progress::TlbiIpaDsbed,
            _ if has(false) => Progress::TlbiIpa,
            _ => Progress::Dsbed,
        }
    }
}

/// A level as a bit.
pub(super) fn level_bit(level: i8) -> u8 {
    1 << ((level + 1) & 7)
}

/// The sizes of blocks and pages of all granules, largest first.
const SHIFTS: [u8; 10] = [42, 39, 36, 30, 29, 25, 21, 16, 14, 12];

/// The stale entries, by address, and the memory to which they map.
#[derive(Debug, Clone, Default)]
pub(crate) struct StaleEntries {
    pub(super) cells: Sorted<u64, Stale>,
    /// Size (as bits of an address), output address and cell of blocks and pages that lost rights.
    pub(super) outputs: Sorted<(u8, u64, u64), ()>,
    /// The output under which a cell is listed.
    pub(super) listed: Map<u64, (u8, u64)>,
    /// Cells for which a DSB may do something.
    pub(super) waiting: Sorted<u64, ()>,
    /// The number of the next record.
    pub(super) next: u64,
}

impl StaleEntries {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    pub(crate) fn get(&self, cell: u64) -> Option<&Stale> {
        self.cells.get(&cell)
    }

    /// Adds or replaces what is known of a cell. `output`: size (as bits of an address) and output address of a block
    /// or page.
    pub(super) fn put(&mut self, cell: u64, mut stale: Stale, output: Option<(u8, u64)>) {
        self.remove(cell);
        stale.number = self.next;
        self.next += 1;
        if let Some((shift, first)) = output.filter(|_| !stale.lost.is_empty()) {
            self.outputs.insert((shift, first, cell), ());
            self.listed.insert(cell, (shift, first));
        }
        self.waiting.insert(cell, ());
        self.cells.insert(cell, stale);
    }

    /// The stale cells, by address.
    pub(super) fn cells(&self) -> impl Iterator<Item = u64> {
        self.cells.keys()
    }

    pub(super) fn remove(&mut self, cell: u64) -> Option<Stale> {
        if let Some((shift, first)) = self.listed.remove(&cell) {
            self.outputs.remove(&(shift, first, cell));
        }
        self.waiting.remove(&cell);
        self.cells.remove(&cell)
    }

    /// The cells that map memory between two addresses, the second excluded, and lost rights.
    pub(super) fn mapping(&self, first: u64, end: u64) -> Vec<u64> {
        let mut cells = Vec::new();
        for shift in SHIFTS {
            let from = first & (u64::MAX << shift);
            if from < end {
                let outputs = self.outputs.from(&(shift, from, 0)).map(|(output, ())| output);
                for (.., cell) in outputs.take_while(|output| *output < (shift, end, 0)) {
                    room::push(&mut cells, cell);
                }
            }
        }
        cells
    }

    /// The stale cells of a page.
    pub(super) fn of_page(&self, base: u64) -> Vec<u64> {
        room::collected(self.cells.from(&base).map(|(cell, _)| cell).take_while(|cell| *cell <= base | 0xfff))
    }

    /// Every stale cell, newest first.
    pub(crate) fn all(&self) -> Vec<(u64, &Stale)> {
        let mut all: Vec<_> = self.cells.iter().collect();
        all.sort_unstable_by_key(|(_, stale)| core::cmp::Reverse(stale.number));
        all
    }
}
