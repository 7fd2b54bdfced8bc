//! Buffers events that must be written in order, while for some it is not yet known whether they are kept.

use std::collections::{BTreeMap, VecDeque};

use anytrace_core::Error;

use crate::lanes::flags::CallFlags;
use crate::tools::carry::{Carrier, Piece};
use crate::wire::reader::Totals;
use crate::wire::signatures::Signatures;

/// Most memory for waiting events, and most of them.
const WAITING_BYTES_MAX: usize = 24 << 20;
const WAITING_MAX: usize = 1 << 16;

/// Most calls whose numbers are kept here; the reader forgets as many.
const LATE_MAX: usize = 1 << 18;

/// Whether a call is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Kept,
    Dropped,
    /// Known when the call is left.
    Open,
}

/// What is known about a call that waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Late {
    /// Not decided; its place, counted from the first item ever.
    Open(u64),
    /// Kept, and waits for others.
    Queued,
    /// Written, with this number.
    Written(u64),
}

#[derive(Debug, Clone, Copy)]
enum What {
    Enter {
        call: u64,
        fate: Fate,
        flags: CallFlags,
    },
    /// The number, unless it is known only when the enter is written; where the event's head ends.
    Leave {
        call: u64,
        number: Option<u64>,
        head: usize,
    },
    /// A leave without an enter, and how many calls of the source precede it.
    Stray {
        calls: u64,
    },
}

/// Counts of events that the user should know about.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    pub(crate) leaves_of_lost: u64,
    leaves_without_enter: u64,
    pub(crate) filled_events: u64,
    /// Calls that were open for too long.
    pub(crate) guessed: u64,
}

/// Writes events in order, as soon as it is known whether they are kept.
pub(crate) struct Waiting<'a> {
    carrier: Carrier<'a>,
    queue: VecDeque<(What, Piece)>,
    /// Items that left the queue.
    gone: u64,
    waiting_bytes: usize,
    spare: Vec<Piece>,
    late: BTreeMap<u64, Late>,
    /// Number of the next call written.
    next: u64,
    /// Calls that are kept and have not been left.
    open: u64,
    records: u64,
    pub(crate) tallies: Tallies,
}

impl<'a> Waiting<'a> {
    /// The mark of dropped calls, then that of calls whose fate or number must be looked up. All other marks are the
    /// call's number plus two.
    pub(crate) const DROPPED: u64 = 0;
    pub(crate) const MARK: u64 = 1;

    pub(crate) fn new(carrier: Carrier<'a>) -> Self {
        Self {
            carrier,
            queue: VecDeque::new(),
            gone: 0,
            waiting_bytes: 0,
            spare: Vec::new(),
            late: BTreeMap::new(),
            next: 0,
            open: 0,
            records: 0,
            tallies: Tallies::default(),
        }
    }

    /// Writes bytes as they are: the start of the raw stream, the rest of a long event.
    pub(crate) fn raw(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.carrier.raw(bytes)
    }

    /// Takes a plain event as a piece.
    pub(crate) fn set_plain(&self, piece: &mut Piece, bytes: &[u8], has_thread: bool, signatures: &Signatures) {
        if self.carrier.has_all(signatures) {
            piece.clear();
            piece.bytes.extend_from_slice(bytes);
        } else {
            piece.set_plain(bytes, has_thread, signatures);
        }
    }

    /// True when a call that is kept has not been left.
    pub(crate) fn has_open(&self) -> bool {
        self.open > 0
    }

    fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes an enter. Returns its mark.
    pub(crate) fn begin(
        &mut self,
        (fate, call, flags): (Fate, u64, CallFlags),
        piece: &mut Piece,
        signatures: &Signatures,
    ) -> Result<u64, Error> {
        if fate == Fate::Dropped {
            return Ok(Self::DROPPED);
        }
        // With an empty queue nothing can be overtaken, so the event is written at once.
        if fate == Fate::Kept && self.is_idle() {
            self.open += 1;
            return Ok(self.write_enter(piece, signatures)?.map_or(Self::DROPPED, |number| number + 2));
        }
        self.begin_early((fate, call, flags), piece);
        Ok(Self::MARK)
    }

    /// Takes an enter from before the start of reading. It waits at least until the first event is over.
    pub(crate) fn begin_early(&mut self, (fate, call, flags): (Fate, u64, CallFlags), piece: &mut Piece) {
        if fate == Fate::Dropped {
            return;
        }
        self.open += u64::from(fate == Fate::Kept);
        let state = if fate == Fate::Kept { Late::Queued } else { Late::Open(self.gone + self.queue.len() as u64) };
        self.late.insert(call, state);
        self.push(What::Enter { call, fate, flags }, piece);
    }

    /// Decides whether a call that is being left is kept.
    pub(crate) fn decide(&mut self, call: u64, mark: u64, is_wanted: impl FnOnce(CallFlags) -> bool) -> bool {
        if mark != Self::MARK {
            return mark != Self::DROPPED;
        }
        let Some(&Late::Open(place)) = self.late.get(&call) else { return self.late.contains_key(&call) };
        self.settle(call, place, is_wanted)
    }

    fn settle(&mut self, call: u64, place: u64, is_wanted: impl FnOnce(CallFlags) -> bool) -> bool {
        // Places count from the first item ever, so they stay right while the queue moves.
        let at = usize::try_from(place.wrapping_sub(self.gone)).unwrap_or(usize::MAX);
        let Some((What::Enter { fate, flags, .. }, _)) = self.queue.get_mut(at) else { return false };
        let is_kept = is_wanted(*flags);
        *fate = if is_kept { Fate::Kept } else { Fate::Dropped };
        if is_kept {
            self.open += 1;
            self.late.insert(call, Late::Queued);
        } else {
            self.late.remove(&call);
        }
        is_kept
    }

    /// Takes the leave of a call that is kept.
    pub(crate) fn leave(
        &mut self,
        (call, mark, head): (u64, u64, usize),
        piece: &mut Piece,
        signatures: &Signatures,
    ) -> Result<(), Error> {
        let Some(number) = self.number_to_leave(call, mark) else { return Ok(()) };
        match number {
            Some(number) if self.is_idle() => self.write_leave((call, number, head), piece, signatures),
            _ => {
                self.push(What::Leave { call, number, head }, piece);
                Ok(())
            }
        }
    }

    /// The number of a call that is left, `Some(None)` when it is known only later, `None` for calls not kept.
    fn number_to_leave(&mut self, call: u64, mark: u64) -> Option<Option<u64>> {
        let number = match mark {
            Self::DROPPED => return None,
            Self::MARK => match self.late.get(&call)? {
                Late::Written(number) => Some(*number),
                _ => None,
            },
            _ => Some(mark - 2),
        };
        // A call is left once: nobody asks for its number again.
        if mark == Self::MARK && number.is_some() {
            self.late.remove(&call);
        }
        self.open = self.open.saturating_sub(1);
        Some(number)
    }

    /// Takes a leave without an enter, after this many calls of the source.
    pub(crate) fn stray(&mut self, calls: u64, piece: &mut Piece) {
        self.push(What::Stray { calls }, piece);
    }

    fn push(&mut self, what: What, piece: &mut Piece) {
        let empty = self.spare.pop().unwrap_or_default();
        let piece = std::mem::replace(piece, empty);
        self.waiting_bytes += piece.memory_bytes() + size_of::<(What, Piece)>();
        self.queue.push_back((what, piece));
    }

    /// Writes what is decided. `is_wanted` returns whether a call would be kept if it were left now.
    pub(crate) fn flush(
        &mut self,
        signatures: &Signatures,
        is_wanted: impl FnMut(CallFlags) -> bool,
    ) -> Result<(), Error> {
        if self.is_idle() {
            return Ok(());
        }
        self.write_decided(signatures)?;
        if self.waiting_bytes > WAITING_BYTES_MAX || self.queue.len() > WAITING_MAX {
            let guessed = self.decide_all(is_wanted);
            self.tallies.guessed += guessed;
            self.write_decided(signatures)?;
        }
        // Numbers grow with time, so the first entries are the oldest calls.
        while self.late.len() > LATE_MAX {
            self.late.pop_first();
        }
        Ok(())
    }

    /// Decides all open calls as if they were left now, and writes them.
    pub(crate) fn force(
        &mut self,
        signatures: &Signatures,
        is_wanted: impl FnMut(CallFlags) -> bool,
    ) -> Result<u64, Error> {
        let guessed = self.decide_all(is_wanted);
        self.write_decided(signatures)?;
        Ok(guessed)
    }

    fn decide_all(&mut self, mut is_wanted: impl FnMut(CallFlags) -> bool) -> u64 {
        let open: Vec<(u64, u64)> = (self.gone..)
            .zip(&self.queue)
            .filter_map(|(place, (what, _))| match what {
                What::Enter { call, fate: Fate::Open, .. } => Some((*call, place)),
                _ => None,
            })
            .collect();
        for (call, place) in &open {
            self.settle(*call, *place, &mut is_wanted);
        }
        open.len() as u64
    }

    fn write_decided(&mut self, signatures: &Signatures) -> Result<(), Error> {
        while let Some((what, _)) = self.queue.front() {
            if matches!(what, What::Enter { fate: Fate::Open, .. }) {
                break;
            }
            let Some((what, mut piece)) = self.queue.pop_front() else { break };
            self.gone += 1;
            self.waiting_bytes = self.waiting_bytes.saturating_sub(piece.memory_bytes() + size_of::<(What, Piece)>());
            self.write(what, &piece, signatures)?;
            // Only small buffers are kept: one long event must not make all of them large.
            if self.spare.len() < 64 && piece.bytes.capacity() <= 1 << 14 {
                piece.clear();
                self.spare.push(piece);
            }
        }
        Ok(())
    }

    fn write(&mut self, what: What, piece: &Piece, signatures: &Signatures) -> Result<(), Error> {
        match what {
            What::Enter { fate: Fate::Kept, call, .. } => {
                match self.write_enter(piece, signatures)? {
                    Some(number) => self.late.insert(call, Late::Written(number)),
                    None => self.late.remove(&call),
                };
                Ok(())
            }
            What::Enter { .. } => Ok(()),
            What::Leave { call, number, head } => {
                let late = if number.is_none() { self.late.remove(&call) } else { None };
                let late = late.and_then(|late| if let Late::Written(number) = late { Some(number) } else { None });
                let Some(number) = number.or(late) else { return Ok(()) };
                self.write_leave((call, number, head), piece, signatures)
            }
            // If calls were omitted, a number without an enter might refer to another call in the output.
            What::Stray { calls } if calls == self.next => {
                self.records += u64::from(self.carrier.put(piece, None, signatures)?);
                Ok(())
            }
            What::Stray { .. } => {
                self.tallies.leaves_without_enter += 1;
                Ok(())
            }
        }
    }

    /// Writes an enter and returns the call's number; `None` if a definition is lost.
    fn write_enter(&mut self, piece: &Piece, signatures: &Signatures) -> Result<Option<u64>, Error> {
        if !self.carrier.put(piece, None, signatures)? {
            return Ok(None);
        }
        self.records += 1;
        self.next += 1;
        Ok(Some(self.next - 1))
    }

    fn write_leave(
        &mut self,
        (call, number, head): (u64, u64, usize),
        piece: &Piece,
        signatures: &Signatures,
    ) -> Result<(), Error> {
        // A call that keeps its number keeps its bytes, even if the number was encoded in an unusual way.
        let changed = (call != number).then_some((head, number));
        self.records += u64::from(self.carrier.put(piece, changed, signatures)?);
        Ok(())
    }

    /// Writes the first part of an event too long to be buffered. Nothing else may be waiting. Returns the mark of an
    /// enter.
    pub(crate) fn begin_stream(
        &mut self,
        leave: Option<(u64, u64, usize)>,
        piece: &Piece,
        signatures: &Signatures,
    ) -> Result<u64, Error> {
        let mut changed = None;
        let mut mark = Self::DROPPED;
        if let Some((call, leave_mark, head)) = leave {
            let number = self.number_to_leave(call, leave_mark).flatten();
            changed = number.filter(|number| *number != call).map(|number| (head, number));
        } else {
            self.open += 1;
            self.next += 1;
            // `next` was incremented, so this is the call's number plus two, as all marks are.
            mark = self.next + 1;
        }
        if !self.carrier.put(piece, changed, signatures)? {
            return Err(lost_in_stream());
        }
        self.records += 1;
        Ok(mark)
    }

    /// Writes another part of such an event.
    pub(crate) fn stream(&mut self, piece: &Piece, signatures: &Signatures) -> Result<(), Error> {
        if self.carrier.put(piece, None, signatures)? { Ok(()) } else { Err(lost_in_stream()) }
    }

    /// Ends such an event, if it is damaged, with zeros.
    pub(crate) fn fill_with_zeros(&mut self, mut zeros: u64) -> Result<(), Error> {
        while zeros > 0 {
            let step = zeros.min(1 << 16);
            self.carrier.raw(&vec![0; usize::try_from(step).unwrap_or(0)])?;
            zeros -= step;
        }
        self.tallies.filled_events += 1;
        Ok(())
    }

    /// Ends the container; returns how many events were written and the notes for the user.
    pub(crate) fn close(self, totals: &Totals, is_seekable: bool) -> Result<(u64, Vec<String>), Error> {
        let notes = self.notes(totals);
        self.carrier.finish(is_seekable)?;
        Ok((self.records, notes))
    }

    fn notes(&self, totals: &Totals) -> Vec<String> {
        let mut notes = Vec::new();
        let (tallies, carried) = (&self.tallies, &self.carrier.carried);
        let mut say = |n: u64, one: &str, many: &str| {
            if n > 0 {
                notes.push(format!("{n} {}.", if n == 1 { one } else { many }));
            }
        };
        say(
            totals.lost_bytes,
            "byte of the raw stream could not be read and was left out",
            "bytes of the raw stream could not be read and were left out",
        );
        say(totals.lost_calls, "call entered in a lost part", "calls entered in lost parts");
        say(
            carried.lost_events,
            "event left out because a signature's definition is lost",
            "events left out because a signature's definition is lost",
        );
        say(
            tallies.leaves_of_lost,
            "leave left out because the call's enter is lost",
            "leaves left out because the calls' enters are lost",
        );
        say(tallies.leaves_without_enter, "leave without an enter left out", "leaves without an enter left out");
        say(
            tallies.filled_events,
            "event too large to buffer, truncated and zero-filled",
            "events too large to buffer, truncated and zero-filled",
        );
        say(
            tallies.guessed,
            "call was open for too long: it counts toward the frame in which memory ran short",
            "calls were open for too long: they count toward the frames in which memory ran short",
        );
        notes
    }
}

fn lost_in_stream() -> Error {
    Error::limit("an event too long to buffer needs a lost definition; raise the limit")
}
