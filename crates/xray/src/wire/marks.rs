//! Where reading can begin inside a binary trace: what a reader must know there, as bytes.
//!
//! ```text
//! state = empty: between two buffers, or at a record of a Basic trace
//!       | flags, offset of the buffer's first record, offset of the buffer, its end, typed events, tick, thread
//! ```
//!
//! All numbers have eight bytes, little-endian.

use anytrace_core::index::{Mark, Part};
use anytrace_core::{Cursor, Error};

use crate::wire::basic::BasicWalk;
use crate::wire::fdr::FdrWalk;
use crate::wire::moment::Clock;
use crate::wire::parse::parse_basic;
use crate::wire::record::{
    BASIC_BYTES, BasicBody, BasicRecord, Body, CustomTime, FUNCTION_BYTES, HEADER_BYTES, METADATA_BYTES, kind,
};

/// What the records of a buffer know from those before them: thread and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) clock: Clock,
    /// Thread of the buffer; none before the record that names it.
    pub(crate) thread: Option<u32>,
    /// The buffer's time is known: some record of it has an absolute one.
    pub(crate) has_base: bool,
}

impl Known {
    /// Between buffers.
    pub(crate) fn new(version: u16) -> Self {
        Self { clock: Clock::new(version), thread: None, has_base: false }
    }

    /// Processes a metadata record; returns its time if it is known.
    pub(crate) fn metadata(&mut self, body: &Body<'_>) -> Option<u64> {
        let tsc = self.clock.metadata(body);
        match body {
            Body::NewBuffer { thread } => (self.thread, self.has_base) = (Some(thread.cast_unsigned()), false),
            Body::NewCpu { .. } | Body::TscWrap { .. } => self.has_base = true,
            _ => {}
        }
        let is_absolute = |time: &CustomTime| !matches!(time, CustomTime::Delta { .. });
        let is_known = self.has_base || matches!(body, Body::CustomEvent { time, .. } if is_absolute(time));
        tsc.filter(|_| is_known)
    }

    /// The buffer has no more records. One that lost its first record belongs to no known thread.
    pub(crate) fn buffer_end(&mut self) {
        *self = Self::new(self.clock.version());
    }
}

/// What an [`FdrWalk`] knows at a place between two of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FdrState {
    is_inside: bool,
    is_ended: bool,
    is_past_extents: bool,
    first: u64,
    start: u64,
    end: Option<u64>,
    typed_events: u64,
}

const IS_INSIDE: u64 = 1;
const IS_ENDED: u64 = 2;
const IS_PAST_EXTENTS: u64 = 4;
const HAS_END: u64 = 8;
const HAS_THREAD: u64 = 16;
const HAS_BASE: u64 = 32;
/// All of them.
const FLAGS: u64 = 63;

/// Numbers of a state.
const NUMBERS: usize = 7;

/// The bytes of a state.
fn encode(state: &FdrState, known: &Known, version: u16) -> Box<[u8]> {
    if version > 1 && !state.is_inside {
        return Box::default();
    }
    let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
    let flags = flag(state.is_inside, IS_INSIDE)
        | flag(state.is_ended, IS_ENDED)
        | flag(state.is_past_extents, IS_PAST_EXTENTS)
        | flag(state.end.is_some(), HAS_END)
        | flag(known.thread.is_some(), HAS_THREAD)
        | flag(known.has_base, HAS_BASE);
    let (end, thread) = (state.end.unwrap_or(0), known.thread.unwrap_or(0));
    let numbers: [u64; NUMBERS] =
        [flags, state.first, state.start, end, state.typed_events, known.clock.tsc, u64::from(thread)];
    numbers.into_iter().flat_map(u64::to_le_bytes).collect()
}

/// The state at a mark; none if it is none that a walk can be in.
fn decode(mark: &Mark, version: u16) -> Option<(FdrState, Known)> {
    let mut known = Known::new(version);
    if !is_place(mark, FUNCTION_BYTES) {
        return None;
    }
    if mark.state.is_empty() {
        let state = FdrState {
            is_inside: false,
            is_ended: false,
            is_past_extents: false,
            first: mark.offset,
            start: mark.offset,
            end: None,
            typed_events: 0,
        };
        return (version > 1).then_some((state, known));
    }
    let (numbers, rest) = mark.state.as_chunks::<8>();
    let numbers: Vec<u64> = numbers.iter().take(NUMBERS + 1).map(|bytes| u64::from_le_bytes(*bytes)).collect();
    let &[flags, first, start, end, typed_events, tsc, thread] = numbers.as_slice() else { return None };
    let has = |flag: u64| flags & flag != 0;
    let thread = u32::try_from(thread).ok()?;
    known.thread = has(HAS_THREAD).then_some(thread);
    known.has_base = has(HAS_BASE);
    known.clock.thread = thread.cast_signed();
    known.clock.tsc = tsc;
    let state = FdrState {
        is_inside: has(IS_INSIDE),
        is_ended: has(IS_ENDED),
        is_past_extents: has(IS_PAST_EXTENTS),
        first,
        start,
        end: has(HAS_END).then_some(end),
        typed_events,
    };
    let events_max = mark.offset.checked_sub(first)? / METADATA_BYTES as u64;
    let is_possible = start <= mark.offset && typed_events <= events_max;
    (rest.is_empty() && flags & !FLAGS == 0 && is_possible).then_some((state, known))
}

/// True when the records before a mark, of at least so many bytes each, fit there.
fn is_place(mark: &Mark, record_bytes: usize) -> bool {
    let bytes = mark.offset.checked_sub(HEADER_BYTES as u64);
    bytes.is_some_and(|bytes| mark.seq <= bytes / record_bytes as u64)
}

/// The error for a mark that is none of the trace.
#[cold]
pub(crate) fn refused(offset: u64) -> Error {
    Error::usage(format!("reading cannot begin at byte {offset:#x}"))
}

/// Moves to a mark; false where the input cannot be read from the middle.
fn seek(cursor: &mut Cursor, mark: &Mark) -> bool {
    cursor.layers().is_empty() && cursor.seek(mark.offset)
}

impl FdrWalk {
    /// Lets [`Self::step`] read a part of the trace; returns what its first record knows. Before the first step.
    ///
    /// # Errors
    /// Usage, where the input cannot be read from the middle or the state is none of this form's.
    pub(crate) fn read_part(&mut self, part: &Part) -> Result<Known, Error> {
        self.part.until = part.until;
        let version = self.header.version;
        let Some(mark) = &part.from else { return Ok(Known::new(version)) };
        let decoded = decode(mark, version).filter(|_| seek(&mut self.cursor, mark));
        let (state, known) = decoded.ok_or_else(|| refused(mark.offset))?;
        self.seq = mark.seq;
        self.set_state(state);
        Ok(known)
    }

    /// True when the next record is an argument of the function record before it.
    pub(crate) fn is_at_argument(&mut self) -> Result<bool, Error> {
        let byte = self.layout.metadata_byte(kind::CALL_ARGUMENT);
        Ok(self.is_inside && self.look(1)?.0.first() == Some(&byte))
    }

    /// The place where the next step begins.
    pub(crate) fn mark(&self, known: &Known) -> Mark {
        let at = self.at();
        Mark { offset: at.offset, seq: at.seq, state: encode(&self.state(), known, self.header.version) }
    }

    fn state(&self) -> FdrState {
        let Self { is_inside, is_ended, is_past_extents, first, start, end, typed_events, .. } = *self;
        FdrState { is_inside, is_ended, is_past_extents, first, start, end, typed_events }
    }

    fn set_state(&mut self, state: FdrState) {
        let FdrState { is_inside, is_ended, is_past_extents, first, start, end, typed_events } = state;
        (self.is_inside, self.is_ended, self.is_past_extents) = (is_inside, is_ended, is_past_extents);
        (self.first, self.start, self.end, self.typed_events) = (first, start, end, typed_events);
    }
}

impl BasicWalk {
    /// Lets [`Self::step`] read a part of the trace; before the first step.
    ///
    /// # Errors
    /// Usage, where the input cannot be read from the middle or the mark is none of this form's.
    pub(crate) fn read_part(&mut self, part: &Part) -> Result<(), Error> {
        self.part.until = part.until;
        let Some(mark) = &part.from else { return Ok(()) };
        if !mark.state.is_empty() || !is_place(mark, BASIC_BYTES) || !seek(&mut self.cursor, mark) {
            return Err(refused(mark.offset));
        }
        self.seq = mark.seq;
        Ok(())
    }

    /// True when the next record is an argument of the function record before it.
    pub(crate) fn is_at_argument(&mut self) -> Result<bool, Error> {
        self.cursor.fill(BASIC_BYTES)?;
        let next = parse_basic(self.cursor.window(), self.layout.endian);
        Ok(matches!(next, Ok(BasicRecord { body: BasicBody::Argument { .. }, .. })))
    }

    /// The place where the next step begins.
    pub(crate) fn mark(&self) -> Mark {
        Mark { offset: self.cursor.offset(), seq: self.seq, state: Box::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside() -> (FdrState, Known) {
        let state = FdrState {
            is_inside: true,
            is_ended: false,
            is_past_extents: true,
            first: 64,
            start: 32,
            end: Some(u64::MAX),
            typed_events: 2,
        };
        let mut clock = Clock::new(5);
        (clock.tsc, clock.thread) = (u64::MAX - 1, -1);
        (state, Known { clock, thread: Some(u32::MAX), has_base: true })
    }

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let (state, known) = inside();
        let bare = FdrState { is_past_extents: false, end: None, ..state };
        for (state, known) in [(state, known), (bare, Known::new(5)), (bare, Known { has_base: false, ..known })] {
            let mark = Mark { offset: 96, seq: 5, state: encode(&state, &known, 5) };
            assert_eq!(decode(&mark, 5), Some((state, known)));
        }
        let outside = FdrState { is_inside: false, ..bare };
        assert!(encode(&outside, &Known::new(5), 5).is_empty(), "nothing is known between buffers");
        let ended = FdrState { is_inside: false, is_ended: true, ..bare };
        let mark = Mark { offset: 96, seq: 5, state: encode(&ended, &Known::new(1), 1) };
        assert_eq!(decode(&mark, 1), Some((ended, Known::new(1))), "a buffer's filler");
    }

    #[test]
    fn states_that_no_walk_can_be_in_are_refused() {
        let (state, known) = inside();
        let good = Mark { offset: 96, seq: 5, state: encode(&state, &known, 5) };
        for bytes in [1, 7, 8, 55] {
            assert!(decode(&Mark { state: good.state[..bytes].into(), ..good.clone() }, 5).is_none(), "{bytes}");
        }
        let longer = Mark { state: [&good.state[..], &[0; 8]].concat().into(), ..good.clone() };
        assert!(decode(&longer, 5).is_none());
        // Flags that do not exist; a buffer after the mark; more events than fit; a thread of more than 32 bits.
        for (at, value) in [(0, 64), (8, 97), (16, 97), (32, 3), (48, u64::MAX)] {
            let mut state = good.state.clone();
            state[at..at + 8].copy_from_slice(&u64::to_le_bytes(value));
            assert!(decode(&Mark { state, ..good.clone() }, 5).is_none(), "{at}");
        }
        assert!(decode(&Mark { seq: 9, ..good.clone() }, 5).is_none(), "nine records in 64 bytes");
        assert!(decode(&Mark { offset: 31, seq: 0, state: Box::default() }, 5).is_none(), "inside the header");
        assert!(decode(&Mark { offset: 96, seq: 0, state: Box::default() }, 1).is_none(), "no start of the buffer");
    }
}
