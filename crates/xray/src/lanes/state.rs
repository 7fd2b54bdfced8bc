//! What is open where a chunk of an index begins, as bytes: the state of the spans of an index.
//!
//! ```text
//! chunk   = buffer, run*
//! buffer  = 0 | 1, processor, process, number, buffers begun, wall time, 0 | 1 and its first time
//! run     = thread, first record + 1 (0: the end of the trace), last time, last record, last processor, latest time,
//!           buffer, first time of the buffer, number of calls, call*
//! call    = function, record, begin, time of the calls inside it, 1: another processor, 2: has arguments; that
//!           processor, number of arguments, argument*
//! shared  = 1, number of threads, (process, thread)*, times moved, offset and record of the first, 0 | 1 and first time
//! ```
//!
//! All numbers are LEB128; times are differences from a time before them, as far as there is one.

use std::sync::Arc;

use anytrace_core::Place;

use crate::wire::moment::ARGUMENTS_MAX;

/// A version of these bytes that no other has.
const VERSION: u64 = 1;

/// A call that has not ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OpenCall {
    pub(crate) function: u32,
    /// Record of its entry.
    pub(crate) seq: u64,
    /// Time of its begin, as it is emitted.
    pub(crate) start: u64,
    /// Time of the calls inside it that have ended.
    pub(crate) inside: u64,
    pub(crate) cpu: u16,
    pub(crate) arguments: Box<[u64]>,
}

/// The last record of a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastRecord {
    pub(crate) tsc: u64,
    pub(crate) seq: u64,
    pub(crate) cpu: u16,
}

/// What is known of a thread between two of its records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ThreadState {
    pub(crate) last: LastRecord,
    /// Latest time that was emitted.
    pub(crate) emitted: u64,
    /// Number of its buffer, and time of the first record there.
    pub(crate) buffer: u64,
    pub(crate) buffer_first: u64,
    /// Outermost first.
    pub(crate) open: Vec<OpenCall>,
}

/// A thread where a run of its records begins in a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    /// Number of the thread.
    pub(crate) track: usize,
    /// First record of the run; none for a thread without records behind.
    pub(crate) first_seq: Option<u64>,
    pub(crate) state: ThreadState,
}

/// What the first record of a chunk knows of the buffer that it is in, besides thread and time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BufferState {
    pub(crate) cpu: u16,
    pub(crate) process: i32,
    /// Number of the buffer, and how many began.
    pub(crate) number: u64,
    pub(crate) begun: u64,
    pub(crate) wall_micros: u64,
    /// Time of the buffer's first moment.
    pub(crate) first_tsc: Option<u64>,
}

impl BufferState {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if *self == Self::default() {
            push(&mut out, 0);
            return out;
        }
        let process = u64::from(self.process.cast_unsigned());
        for number in [1, u64::from(self.cpu), process, self.number, self.begun, self.wall_micros] {
            push(&mut out, number);
        }
        push_option(&mut out, self.first_tsc);
        out
    }

    fn decode(take: &mut Take<'_>) -> Option<Self> {
        match take.number()? {
            0 => Some(Self::default()),
            1 => Some(Self {
                cpu: u16::try_from(take.number()?).ok()?,
                process: u32::try_from(take.number()?).ok()?.cast_signed(),
                number: take.number()?,
                begun: take.number()?,
                wall_micros: take.number()?,
                first_tsc: take.option()?,
            }),
            _ => None,
        }
    }
}

impl ThreadState {
    /// Appends the bytes of a run but its thread, which comes first: [`push`].
    pub(crate) fn encode_run(&self, first_seq: Option<u64>, out: &mut Vec<u8>) {
        let Self { last, emitted, buffer, buffer_first, open } = self;
        push(out, first_seq.map_or(0, |seq| seq.saturating_add(1)));
        push(out, last.tsc);
        push(out, last.seq);
        push(out, u64::from(last.cpu));
        push(out, signed(emitted.wrapping_sub(last.tsc)));
        // No buffer has the largest number.
        push(out, buffer.wrapping_add(1));
        push(out, signed(last.tsc.wrapping_sub(*buffer_first)));
        push(out, open.len() as u64);
        let mut around = OpenCall::default();
        for call in open {
            push(out, u64::from(call.function));
            push(out, call.seq.wrapping_sub(around.seq));
            push(out, call.start.wrapping_sub(around.start));
            push(out, call.inside);
            let has_cpu = call.cpu != around.cpu;
            push(out, u64::from(has_cpu) | u64::from(!call.arguments.is_empty()) << 1);
            if has_cpu {
                push(out, u64::from(call.cpu));
            }
            if !call.arguments.is_empty() {
                push(out, call.arguments.len() as u64);
                call.arguments.iter().for_each(|value| push(out, *value));
            }
            around = OpenCall { seq: call.seq, start: call.start, cpu: call.cpu, ..OpenCall::default() };
        }
    }
}

impl Run {
    fn decode(take: &mut Take<'_>) -> Option<Self> {
        let track = usize::try_from(take.number()?).ok()?;
        let first_seq = take.number()?.checked_sub(1);
        let (tsc, seq, cpu) = (take.number()?, take.number()?, u16::try_from(take.number()?).ok()?);
        let emitted = tsc.wrapping_add(unsigned(take.number()?));
        let buffer = take.number()?.wrapping_sub(1);
        let buffer_first = tsc.wrapping_sub(unsigned(take.number()?));
        let count = take.number()?;
        let mut open: Vec<OpenCall> = Vec::new();
        for _ in 0..count {
            let around = open.last();
            let (around_seq, around_start, around_cpu) =
                around.map_or((0, 0, 0), |around| (around.seq, around.start, around.cpu));
            let function = u32::try_from(take.number()?).ok()?;
            let (seq, start) = (around_seq.wrapping_add(take.number()?), around_start.wrapping_add(take.number()?));
            let (inside, bits) = (take.number()?, take.number()?);
            let cpu = if bits & 1 == 0 { around_cpu } else { u16::try_from(take.number()?).ok()? };
            let count = if bits & 2 == 0 { 0 } else { take.number()? };
            if bits > 3 || count > ARGUMENTS_MAX as u64 {
                return None;
            }
            let arguments = (0..count).map(|_| take.number()).collect::<Option<_>>()?;
            open.push(OpenCall { function, seq, start, inside, cpu, arguments });
        }
        let last = LastRecord { tsc, seq, cpu };
        Some(Self { track, first_seq, state: ThreadState { last, emitted, buffer, buffer_first, open } })
    }
}

/// The state of the chunks of a part: that of the buffer where it begins, and all runs. `None` for bytes that are none.
pub(crate) fn decode_chunks(chunks: &[Arc<[u8]>]) -> Option<(BufferState, Vec<Run>)> {
    let (mut buffer, mut runs) = (None, Vec::new());
    for chunk in chunks {
        if chunk.is_empty() {
            // It is read with the one before.
            continue;
        }
        let mut take = Take(chunk);
        let own = BufferState::decode(&mut take)?;
        buffer.get_or_insert(own);
        while !take.0.is_empty() {
            runs.push(Run::decode(&mut take)?);
        }
    }
    Some((buffer.unwrap_or_default(), runs))
}

/// What all parts of a trace know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Shared {
    /// Process and thread of each track.
    pub(crate) tracks: Vec<(u32, u32)>,
    /// How many times are moved because a later one came before, and where the first is.
    pub(crate) moved: u64,
    pub(crate) first_moved: Option<Place>,
    /// Earliest time.
    pub(crate) first_tsc: Option<u64>,
}

impl Shared {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push(&mut out, VERSION);
        push(&mut out, self.tracks.len() as u64);
        for (process, thread) in &self.tracks {
            push(&mut out, u64::from(*process));
            push(&mut out, u64::from(*thread));
        }
        push(&mut out, self.moved);
        let first = self.first_moved.unwrap_or(Place { offset: 0, seq: 0 });
        push(&mut out, first.offset);
        push(&mut out, first.seq);
        push_option(&mut out, self.first_tsc);
        out
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut take = Take(bytes);
        if take.number()? != VERSION {
            return None;
        }
        let count = take.number()?;
        let mut tracks = Vec::new();
        for _ in 0..count {
            tracks.push((u32::try_from(take.number()?).ok()?, u32::try_from(take.number()?).ok()?));
        }
        let (moved, offset, seq) = (take.number()?, take.number()?, take.number()?);
        let first_tsc = take.option()?;
        let first_moved = (moved > 0).then_some(Place { offset, seq });
        take.0.is_empty().then_some(Self { tracks, moved, first_moved, first_tsc })
    }
}

/// Small for small differences of either sign.
fn signed(difference: u64) -> u64 {
    difference << 1 ^ if difference >> 63 == 1 { u64::MAX } else { 0 }
}

fn unsigned(number: u64) -> u64 {
    number >> 1 ^ if number & 1 == 1 { u64::MAX } else { 0 }
}

/// Appends a number.
pub(crate) fn push(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn push_option(out: &mut Vec<u8>, number: Option<u64>) {
    push(out, u64::from(number.is_some()));
    if let Some(number) = number {
        push(out, number);
    }
}

/// Reads numbers from the front.
struct Take<'a>(&'a [u8]);

impl Take<'_> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn option(&mut self) -> Option<Option<u64>> {
        match self.number()? {
            0 => Some(None),
            1 => self.number().map(Some),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let call = |function, seq, start, arguments: &[u64]| OpenCall {
            function,
            seq,
            start,
            inside: 70,
            cpu: 1,
            arguments: arguments.into(),
        };
        let open = vec![call(u32::MAX, 3, 900, &[]), call(5, 9, 901, &[0, u64::MAX]), call(6, 20, 901, &[])];
        let last = LastRecord { tsc: 1000, seq: 30, cpu: 2 };
        let state = ThreadState { last, emitted: 990, buffer: u64::MAX, buffer_first: 1 << 60, open };
        Run { track: 4, first_seq: Some(31), state }
    }

    fn encode(run: &Run, out: &mut Vec<u8>) {
        push(out, run.track as u64);
        run.state.encode_run(run.first_seq, out);
    }

    #[test]
    fn states_are_read_as_they_were_written() {
        let buffer =
            BufferState { cpu: 9, process: -1, number: 3, begun: 4, wall_micros: u64::MAX, first_tsc: Some(0) };
        let end = Run { first_seq: None, state: ThreadState { emitted: u64::MAX, ..ThreadState::default() }, ..run() };
        let mut one = buffer.encode();
        encode(&run(), &mut one);
        let mut two = BufferState::default().encode();
        encode(&end, &mut two);
        let chunks = [Arc::from(one.as_slice()), Arc::from(&[][..]), Arc::from(two)];
        assert_eq!(decode_chunks(&chunks), Some((buffer, vec![run(), end])));
        for cut in 1..one.len() {
            let cut: Arc<[u8]> = Arc::from(&one[..cut]);
            assert!(decode_chunks(&[cut]).is_none_or(|(_, runs)| runs.is_empty()));
        }
        let shared =
            Shared { tracks: vec![(0, 1), (u32::MAX, 2)], moved: 3, first_moved: None, first_tsc: Some(u64::MAX) };
        let shared = Shared { first_moved: Some(Place { offset: 77, seq: 5 }), ..shared };
        for shared in [shared, Shared::default()] {
            assert_eq!(Shared::decode(&shared.encode()), Some(shared));
        }
    }

    #[test]
    fn bytes_that_are_no_state_are_refused() {
        let mut bytes = BufferState::default().encode();
        encode(&run(), &mut bytes);
        for at in 0..bytes.len() {
            for value in [0x7f, 0xff] {
                let mut bytes = bytes.clone();
                bytes[at] = value;
                // Whatever is decoded, no more memory is used than the bytes take.
                let runs = decode_chunks(&[Arc::from(bytes)]).map(|(_, runs)| runs).unwrap_or_default();
                assert!(runs.iter().map(|run| run.state.open.len()).sum::<usize>() < 60);
            }
        }
        assert_eq!(Shared::decode(&[]), None);
        assert_eq!(Shared::decode(&[2, 0, 0, 0, 0, 0]), None);
        assert_eq!(Take(&[0x80; 11]).number(), None);
    }
}
