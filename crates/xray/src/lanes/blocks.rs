//! Nests the plain records of a thread many at a time.
//!
//! A plain record enters a function whose name is known, without arguments, or leaves the innermost call, which is that
//! of its function. All other records are processed one by one: [`crate::lanes::calls`].
//!
//! Whether a record enters or leaves is as good as random to the processor, so that [`nest`] does the same for both:
//! it writes a slot, and the number of open calls grows or shrinks by a computed one.

use anytrace_core::span::{Edge, EdgeBatch, EdgeFlags, EdgeKind, NameId, TrackId};
use anytrace_core::{Error, Place};

use crate::wire::moment::Moments;
use crate::wire::record::{FUNCTION_BYTES, Orders};

/// Most records of a block.
pub(crate) const BLOCK: usize = 128;

/// A function that has no name yet.
pub(crate) const UNNAMED: NameId = NameId::MAX;

/// Consecutive function records of a thread, none of them with arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    /// At most [`BLOCK`].
    pub(crate) records: &'a [[u8; FUNCTION_BYTES]],
    pub(crate) layout: Orders,
    /// Where the first is.
    pub(crate) at: Place,
    /// Time base before the first.
    pub(crate) tsc: u64,
    pub(crate) cpu: u16,
    pub(crate) thread: u32,
    pub(crate) process: u32,
    /// Number of the buffer.
    pub(crate) buffer: u64,
}

impl Block<'_> {
    /// Where a record of the block is.
    pub(crate) fn place(&self, number: usize) -> Place {
        let Place { offset, seq } = self.at;
        Place { offset: offset + (number * FUNCTION_BYTES) as u64, seq: seq + number as u64 }
    }
}

/// The first records of a block that were processed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) count: usize,
    /// Time base behind them; 0 without any.
    pub(crate) tsc: u64,
}

/// Receives blocks too.
pub(crate) trait Blocks: Moments {
    /// Processes the first records of a block, as far as they are plain. The one behind them comes as a moment.
    ///
    /// # Errors
    /// As [`Moments::moment`].
    fn block(&mut self, block: &Block<'_>) -> Result<Taken, Error>;
}

/// An open call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Slot {
    pub(crate) function: u32,
    /// Time of its entry.
    pub(crate) enter: u64,
}

/// What each plain record of a block gives.
#[derive(Debug, Clone, Copy, Default)]
struct Nested {
    time: u64,
    name: NameId,
    /// 0 for an entry, 1 for an exit, 2 for an exit by a jump.
    kind: u8,
}

/// Room for a block.
#[derive(Debug)]
pub(crate) struct Room {
    /// The innermost open calls that a block can leave, and those it can enter.
    slots: [Slot; 2 * BLOCK],
    nested: [Nested; BLOCK],
}

impl Default for Room {
    fn default() -> Self {
        Self { slots: [Slot::default(); 2 * BLOCK], nested: [Nested::default(); BLOCK] }
    }
}

/// What a block did to the stack of its thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StackChange {
    pub(crate) taken: Taken,
    /// How many of the calls before it stay open.
    pub(crate) kept: usize,
    /// How many of its exits are jumps.
    pub(crate) tails: u64,
    /// Where the calls that it leaves open are.
    entered: (usize, usize),
}

impl Room {
    /// Nests the first records of a block in `depth` open calls, of which `stack` are the innermost first; `names` are
    /// those of functions, by id. Times must not overflow.
    pub(crate) fn nest(
        &mut self,
        block: &Block<'_>,
        depth: usize,
        stack: impl Iterator<Item = Slot>,
        names: &[NameId],
    ) -> StackChange {
        let reached = depth.min(BLOCK);
        for (slot, open) in self.slots.iter_mut().take(reached).rev().zip(stack) {
            *slot = open;
        }
        let mut change = nest(block, names, reached, &mut self.slots, &mut self.nested);
        change.kept += depth - reached;
        change
    }

    /// The calls that a block leaves open, outermost first.
    pub(crate) fn entered(&self, change: &StackChange) -> &[Slot] {
        self.slots.get(change.entered.0..change.entered.1).unwrap_or_default()
    }

    /// The edges of the records `from..until` of a block.
    pub(crate) fn push_edges(
        &self,
        block: &Block<'_>,
        track: TrackId,
        (from, until): (usize, usize),
        batch: &mut EdgeBatch,
    ) {
        let (cpu, attributes) = (block.cpu, (0, 0));
        let nested = self.nested.get(from..until).unwrap_or_default();
        batch.extend((block.place(from).seq..).zip(nested).map(|(seq, &Nested { time, name, kind })| {
            let flags = if kind == 2 { EdgeFlags::TAIL } else { EdgeFlags::NONE };
            let kind = if kind == 0 { EdgeKind::Begin } else { EdgeKind::End };
            Edge { seq, time, track, name, attributes, cpu, kind, flags }
        }));
    }
}

/// Nests records in the first `reached` slots.
#[inline(always)]
fn nest_in(
    layout: Orders,
    block: &Block<'_>,
    names: &[NameId],
    reached: usize,
    slots: &mut [Slot; 2 * BLOCK],
    nested: &mut [Nested; BLOCK],
) -> StackChange {
    let (mut used, mut lowest, mut now, mut count, mut tails) = (reached, reached, block.tsc, 0, 0);
    for (record, nested) in block.records.iter().zip(nested) {
        let [a, b, c, d, e, f, g, h] = *record;
        let (kind, function) = layout.function_word([a, b, c, d]);
        let time = now.wrapping_add(u64::from(layout.endian.u32([e, f, g, h])));
        // Kinds 1 and 2 are exits, 0 is an entry; 3 has arguments.
        let is_exit = kind == 1 || kind == 2;
        let at = used.wrapping_sub(usize::from(is_exit));
        let Some(slot) = slots.get_mut(at) else { break };
        let name = names.get(function as usize).copied().unwrap_or(UNNAMED);
        // No short circuits: they would be jumps.
        if (kind > 2) | (name == UNNAMED) | (is_exit & (slot.function != function)) {
            break;
        }
        *slot = Slot { function, enter: if is_exit { slot.enter } else { time } };
        used = at + usize::from(!is_exit);
        lowest = lowest.min(at);
        *nested = Nested { time, name, kind };
        (now, count, tails) = (time, count + 1, tails + u64::from(kind == 2));
    }
    StackChange { taken: Taken { count, tsc: now }, kept: lowest, tails, entered: (lowest, used) }
}

fn nest(
    block: &Block<'_>,
    names: &[NameId],
    reached: usize,
    slots: &mut [Slot; 2 * BLOCK],
    nested: &mut [Nested; BLOCK],
) -> StackChange {
    // As a constant for the compiler.
    if block.layout == Orders::LITTLE {
        nest_in(Orders::LITTLE, block, names, reached, slots, nested)
    } else {
        nest_in(block.layout, block, names, reached, slots, nested)
    }
}
