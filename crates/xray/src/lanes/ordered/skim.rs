//! Which calls of a thread are open at a place in it: what a receiver that begins there must know.
//!
//! Only entries and exits matter for that, so that it takes a fraction of the time of counting them. The rules are
//! those of every receiver in [`super::sections`]: an exit ends the innermost open call of its function and all calls
//! inside it; an exit without one is skipped.

use crate::lanes::state::{LastRecord, OpenCall, ThreadState};
use crate::wire::moment::Clock;
use crate::wire::parse::{parse_function, parse_record};
use crate::wire::record::{Body, CustomTime, FUNCTION_BYTES, FdrRecord, Function, Orders};

use super::index::Piece;

/// Deepest stack that is followed: below it no receiver reaches a limit of its own.
const DEPTH_MAX: usize = 1 << 14;

/// Records followed at once: their depth is checked before them, and their exits after them.
const BLOCK: usize = 128;

/// Frames that exits were compared with in vain; a trace of many more costs less in one section.
const COMPARED_MAX: usize = 1 << 22;

/// A call that is open, or was.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    function: u32,
    entered: u64,
    /// Ticks of the calls inside it that were left.
    inner: u64,
}

/// No function: ids have 28 bits.
const BOTTOM: Slot = Slot { function: u32::MAX, entered: 0, inner: 0 };

/// Follows one thread.
#[derive(Debug)]
pub(crate) struct Skim {
    clock: Clock,
    layout: Orders,
    /// Two slots that are no calls, the open calls, and room.
    slots: Vec<Slot>,
    /// Number of slots up to and with the innermost call.
    used: usize,
    compared: usize,
    last: LastRecord,
    /// Time of the last function record.
    last_call: u64,
    has_left: bool,
    buffer: u64,
    buffer_first: u64,
    spare: Vec<Slot>,
}

/// What is known of a thread between two sections of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Between {
    /// The open calls, without arguments; and the last record.
    pub(crate) thread: ThreadState,
    /// Time of the last function record.
    pub(crate) last_call: u64,
    /// Whether a call was left since the last one was entered.
    pub(crate) has_left: bool,
}

/// Why a thread is not followed any further: its stack is too deep, or its exits match nothing.
#[derive(Debug)]
pub(crate) struct GivenUp;

impl Skim {
    /// Starts before the first record of a thread.
    pub(crate) fn new(layout: Orders, version: u16) -> Self {
        let slots = vec![BOTTOM; 2 + DEPTH_MAX + BLOCK];
        Self {
            clock: Clock::new(version),
            layout,
            slots,
            used: 2,
            compared: 0,
            last: LastRecord::default(),
            last_call: 0,
            has_left: false,
            // No buffer has this number.
            buffer: u64::MAX,
            buffer_first: 0,
            spare: Vec::new(),
        }
    }

    /// The state here.
    pub(crate) fn between(&self) -> Between {
        let open = self.slots.get(2..self.used).unwrap_or_default();
        let call = |slot: &Slot| OpenCall {
            function: slot.function,
            start: slot.entered,
            inside: slot.inner,
            ..OpenCall::default()
        };
        let open = open.iter().map(call).collect();
        let (buffer, buffer_first) = (self.buffer, self.buffer_first);
        let thread = ThreadState { last: self.last, buffer, buffer_first, open, ..ThreadState::default() };
        Between { thread, last_call: self.last_call, has_left: self.has_left }
    }

    /// Follows a piece of the trace whose bytes are `all`.
    pub(crate) fn piece(&mut self, all: &[u8], buffer: u64, piece: &Piece) -> Result<(), GivenUp> {
        if self.layout == Orders::LITTLE {
            self.piece_in(Orders::LITTLE, all, buffer, piece)
        } else {
            self.piece_in(self.layout, all, buffer, piece)
        }
    }

    #[inline(always)]
    fn piece_in(&mut self, layout: Orders, all: &[u8], buffer: u64, piece: &Piece) -> Result<(), GivenUp> {
        let range = usize::try_from(piece.at.offset).ok().zip(usize::try_from(piece.at.offset + piece.bytes).ok());
        let mut rest = range.and_then(|(start, end)| all.get(start..end)).unwrap_or_default();
        (self.clock.tsc, self.clock.cpu) = (piece.tsc, piece.cpu);
        let mut seq = piece.at.seq;
        while let Some(&first) = rest.first() {
            if layout.metadata_kind(first).is_some() {
                let used = self.metadata(rest, seq, buffer)?;
                rest = rest.get(used..).unwrap_or_default();
                seq += 1;
                continue;
            }
            let (records, _) = rest.as_chunks::<FUNCTION_BYTES>();
            let is_function = |record: &&[u8; FUNCTION_BYTES]| layout.metadata_kind(record[0]).is_none();
            let count = records.iter().take(BLOCK).take_while(is_function).count();
            let block = records.get(..count).filter(|block| !block.is_empty()).ok_or(GivenUp)?;
            if self.buffer != buffer {
                let delta = block.first().and_then(|record| parse_function(record, layout).ok()).ok_or(GivenUp)?.delta;
                self.begin(buffer, self.clock.tsc.wrapping_add(u64::from(delta)))?;
            }
            self.block(block, layout)?;
            seq += count as u64;
            self.last = LastRecord { tsc: self.clock.tsc, seq: seq - 1, cpu: self.clock.cpu };
            self.last_call = self.clock.tsc;
            rest = rest.get(count * FUNCTION_BYTES..).unwrap_or_default();
        }
        Ok(())
    }

    /// The first moment of a buffer. The index has them in order of time.
    fn begin(&mut self, buffer: u64, tsc: u64) -> Result<(), GivenUp> {
        if tsc < self.buffer_first {
            return Err(GivenUp);
        }
        (self.buffer, self.buffer_first) = (buffer, tsc);
        Ok(())
    }

    /// A metadata record; returns its length.
    #[cold]
    fn metadata(&mut self, rest: &[u8], seq: u64, buffer: u64) -> Result<usize, GivenUp> {
        let version = self.clock.version();
        // The first pass found the piece intact.
        let Ok((FdrRecord::Metadata(metadata), used)) = parse_record(rest, self.layout, version, u64::MAX) else {
            return Err(GivenUp);
        };
        let tsc = self.clock.metadata(&metadata.body).unwrap_or(self.clock.tsc);
        let cpu = match metadata.body {
            Body::CustomEvent { time: CustomTime::OnCpu { cpu, .. }, .. } => cpu,
            Body::CustomEvent { .. } | Body::TypedEvent { .. } => self.clock.cpu,
            _ => return Ok(used),
        };
        if self.buffer != buffer {
            self.begin(buffer, tsc)?;
        }
        self.last = LastRecord { tsc, seq, cpu };
        Ok(used)
    }

    /// Follows up to [`BLOCK`] function records.
    ///
    /// Whether a record is an entry or an exit is as good as random to the processor, so that the loop does the same
    /// for both: it writes a slot and adds to the one below. Exits that match are the rule; where one does not, the
    /// block is followed again, from what its slots were.
    #[inline(always)]
    fn block(&mut self, block: &[[u8; FUNCTION_BYTES]], layout: Orders) -> Result<(), GivenUp> {
        if self.used > DEPTH_MAX {
            return Err(GivenUp);
        }
        let (mut now, mut used) = (self.clock.tsc, self.used);
        // Slots that exits of this block can reach, and the one below that they add to.
        let kept = used.saturating_sub(block.len() + 1);
        self.spare.clear();
        self.spare.extend_from_slice(self.slots.get(kept..used).unwrap_or_default());
        let (mut is_odd, mut is_exit) = (false, self.has_left);
        for record in block {
            let (kind, function) = layout.function_word([record[0], record[1], record[2], record[3]]);
            now = now.wrapping_add(u64::from(layout.endian.u32([record[4], record[5], record[6], record[7]])));
            // Kinds 1 and 2 are exits, 0 and 3 are entries.
            is_exit = (kind ^ (kind >> 1)) & 1 == 1;
            let at = used - usize::from(is_exit);
            if at < 2 {
                is_odd = true;
                break;
            }
            let Some([below, slot]) = self.slots.get_mut(at - 1..=at) else { return Err(GivenUp) };
            // No short circuits: they would be jumps.
            is_odd |= (kind > 3) | (is_exit & (slot.function != function));
            let ticks = now.abs_diff(slot.entered);
            below.inner = below.inner.saturating_add(if is_exit { ticks } else { 0 });
            slot.function = function;
            slot.entered = if is_exit { slot.entered } else { now };
            slot.inner = if is_exit { slot.inner } else { 0 };
            used = at + usize::from(!is_exit);
        }
        if is_odd {
            if let Some(slots) = self.slots.get_mut(kept..self.used) {
                slots.copy_from_slice(&self.spare);
            }
            return self.oddly(block);
        }
        (self.clock.tsc, self.used, self.has_left) = (now, used, is_exit);
        Ok(())
    }

    /// As [`Self::block`], record by record, with exits that do not match the innermost call.
    #[cold]
    fn oddly(&mut self, block: &[[u8; FUNCTION_BYTES]]) -> Result<(), GivenUp> {
        for record in block {
            let Function { kind, id, .. } =
                parse_function(record, self.layout).map_err(|_| GivenUp).inspect(|function| {
                    self.clock.function(function);
                })?;
            let now = self.clock.tsc;
            if kind.is_entry() {
                *self.slots.get_mut(self.used).ok_or(GivenUp)? = Slot { function: id, entered: now, inner: 0 };
                (self.used, self.has_left) = (self.used + 1, false);
                continue;
            }
            let open = self.slots.get(2..self.used).unwrap_or_default();
            let Some(depth) = open.iter().rposition(|slot| slot.function == id) else {
                self.compared += open.len();
                if self.compared > COMPARED_MAX {
                    return Err(GivenUp);
                }
                continue;
            };
            while self.used > 2 + depth {
                self.used -= 1;
                let Some([below, slot]) = self.slots.get_mut(self.used - 1..=self.used) else { return Err(GivenUp) };
                below.inner = below.inner.saturating_add(now.abs_diff(slot.entered));
            }
            self.has_left = true;
        }
        Ok(())
    }
}
