//! The same engine, fed by its caller: a program that waits on a socket decides itself when to read.

use anytrace_core::{Error, OpenOptions, Sink};

use super::{Here, Item, LineCounter, Mode, Pass, ReaderState, Skip, Walk};
use crate::wire::style::Radix;

/// An incomplete piece up to this long is examined again at each arrival, so that it is complete with its last byte. A
/// longer one is examined again when it has grown by half: the work stays linear however few bytes arrive at once.
const EAGER_BYTES: usize = 4096;

/// Walks a trace that arrives in pieces. Between calls, `buffer` has the bytes from `offset` on that are not visited
/// yet: at most the longest record.
pub(crate) struct Push {
    pub(super) buffer: Vec<u8>,
    pub(super) offset: u64,
    /// The length of `buffer` from which on looking at it again makes sense.
    enough: usize,
    radix: Radix,
    record_bytes_max: usize,
    pub(super) state: ReaderState,
    pub(super) lines: LineCounter,
}

/// The position of a [`Push`] between two records, to continue there.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Standing {
    pub(crate) offset: u64,
    pub(crate) seq: u64,
    pub(crate) has_output: bool,
    pub(crate) line_ends: u64,
    pub(crate) line_start: u64,
    /// 0 between records, 1 in a comment, 2 in a line of the reference's output.
    pub(crate) mode: u8,
    /// Bytes that arrived and are not visited yet.
    pub(crate) pending: Vec<u8>,
}

impl Push {
    /// Starts at the first byte. Of the options, only `radix` and `limits` are used.
    pub(crate) fn new(options: &OpenOptions) -> Self {
        let (radix, record_bytes_max) = Walk::limits_of(options);
        Self {
            buffer: Vec::new(),
            offset: 0,
            enough: 1,
            radix,
            record_bytes_max,
            state: ReaderState::default(),
            lines: LineCounter::default(),
        }
    }

    /// Continues at a place; none where no walk can be there.
    pub(crate) fn resume(options: &OpenOptions, at: Standing) -> Option<Self> {
        let mut push = Self::new(options);
        let is_possible = at.seq.max(at.line_ends).max(at.line_start) <= at.offset;
        push.state.mode = match at.mode {
            0 => Mode::Records,
            1 => Mode::Comment,
            2 => Mode::Output,
            _ => return None,
        };
        (push.state.seq, push.state.has_output) = (at.seq, at.has_output);
        push.lines = LineCounter { line_ends: at.line_ends, line_start: at.line_start, counted_to: at.offset };
        (push.offset, push.enough, push.buffer) = (at.offset, at.pending.len() + 1, at.pending);
        is_possible.then_some(push)
    }

    /// Its position; none inside damage.
    pub(crate) fn standing(&self) -> Option<Standing> {
        let ReaderState { mode, seq, owed, pending, has_output } = &self.state;
        let mode = match mode {
            Mode::Records => 0,
            Mode::Comment => 1,
            Mode::Output => 2,
            Mode::Skip(Skip { .. }) => return None,
        };
        let LineCounter { line_ends, line_start, .. } = self.lines;
        (*owed == 0 && pending.is_none()).then(|| Standing {
            offset: self.offset,
            seq: *seq,
            has_output: *has_output,
            line_ends,
            line_start,
            mode,
            pending: self.buffer.clone(),
        })
    }

    /// Drops the bytes that are not visited yet: their source has them still.
    pub(crate) fn forget_pending(&mut self) {
        self.buffer.clear();
        self.enough = 1;
    }

    /// Offset of the first byte that is not visited yet.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Bytes that wait for the rest of their record.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Records visited so far.
    pub(crate) fn records(&self) -> u64 {
        self.state.seq
    }

    /// Takes the next bytes and visits what is complete.
    ///
    /// # Errors
    /// Whatever the visitor or the sink returns.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        sink: &mut dyn Sink,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.buffer.is_empty() && bytes.len() >= EAGER_BYTES {
            // Without a copy of what is complete.
            let used = self.pass_over(bytes, false, sink, visit)?;
            self.buffer.extend_from_slice(bytes.get(used..).unwrap_or_default());
            self.enough = self.buffer.len() + 1;
            return Ok(());
        }
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() >= self.enough {
            self.pass(false, sink, visit)?;
            let left = self.buffer.len();
            self.enough = if left < EAGER_BYTES { left + 1 } else { left + left / 2 };
        }
        Ok(())
    }

    /// Nothing follows: visits the rest.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub(crate) fn end(
        &mut self,
        sink: &mut dyn Sink,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        while !self.buffer.is_empty() && self.pass(true, sink, visit)? > 0 {}
        if let Some((diagnostic, from)) = self.state.pending.take() {
            let goes_on = matches!(self.state.mode, Mode::Skip(_));
            let skipped = if goes_on { self.offset - from } else { diagnostic.skipped_bytes };
            sink.report(diagnostic.skipped(skipped))?;
        }
        Ok(())
    }

    /// Visits the complete pieces; returns their bytes.
    fn pass(
        &mut self,
        is_last: bool,
        sink: &mut dyn Sink,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let buffer = std::mem::take(&mut self.buffer);
        let used = self.pass_over(&buffer, is_last, sink, visit);
        self.buffer = buffer;
        let used = used?;
        self.buffer.drain(..used);
        Ok(used)
    }

    /// Visits the complete pieces among the next bytes; returns their length.
    fn pass_over(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        sink: &mut dyn Sink,
        visit: &mut impl FnMut(Item<'_>, &mut Here<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let mut pass = Pass {
            window: bytes,
            until: usize::MAX,
            window_offset: self.offset,
            is_last,
            radix: self.radix,
            record_bytes_max: self.record_bytes_max,
            lines: &mut self.lines,
            sink,
        };
        let used = pass.run(&mut self.state, visit)?;
        self.lines.count_to(bytes, self.offset, self.offset + used as u64);
        self.offset += used as u64;
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::{Collect, Input};

    use super::*;

    /// Damage of several kinds, comments, output of the reference and a record that ends with the data.
    const LOG: &[u8] = b"; begins\n(lock 1 0 10)\n(mem-write 2 0\n plain 1000 0)(unlock 3 0 10) stray\n(mem-frob 4 0)\n\
        state:\n)(lock (id 5) (tid 1) (address 0x20) (src \"a.c:7\"))\n! Tried\n; records were left out here by repair\n(lock 6";

    type Seen = Vec<(String, u64, u64)>;

    fn note(seen: &mut Seen, item: &Item<'_>, here: &Here<'_>) {
        // How long white space, comments and skipped bytes are depends on the pieces.
        if let Item::Record(_) | Item::Claim(_) = item {
            seen.push((format!("{item:?}"), here.offset, here.seq));
        }
    }

    fn walked(bytes: &[u8]) -> (Seen, String) {
        let (mut seen, mut sink) = (Seen::new(), Collect::default());
        let input = Input::from_bytes("t", bytes.to_vec());
        Walk::new(input, &OpenOptions::default())
            .unwrap()
            .for_each(&mut sink, |item, here| {
                note(&mut seen, &item, here);
                Ok(())
            })
            .unwrap();
        (seen, format!("{sink:?}"))
    }

    #[test]
    fn pieces_of_any_length_give_what_one_window_gives() {
        let expected = walked(LOG);
        assert!(expected.0.len() >= 4 && expected.1.contains("stray"), "{expected:?}");
        for length in 1..LOG.len() {
            let (mut seen, mut sink) = (Seen::new(), Collect::default());
            let mut push = Push::new(&OpenOptions::default());
            let mut visit = |item: Item<'_>, here: &mut Here<'_>| {
                note(&mut seen, &item, here);
                Ok(())
            };
            for piece in LOG.chunks(length) {
                push.push(piece, &mut sink, &mut visit).unwrap();
            }
            push.end(&mut sink, &mut visit).unwrap();
            assert_eq!((seen, format!("{sink:?}")), expected, "{length}");
        }
    }

    #[test]
    fn it_continues_where_it_stood() {
        let expected = walked(LOG);
        let mut stood = 0;
        for cut in 0..=LOG.len() {
            let (mut seen, mut sink) = (Seen::new(), Collect::default());
            let mut visit = |item: Item<'_>, here: &mut Here<'_>| {
                note(&mut seen, &item, here);
                Ok(())
            };
            let options = OpenOptions::default();
            let mut push = Push::new(&options);
            push.push(&LOG[..cut], &mut sink, &mut visit).unwrap();
            let Some(standing) = push.standing() else { continue };
            stood += 1;
            let mut push = Push::resume(&options, standing).unwrap();
            push.push(&LOG[cut..], &mut sink, &mut visit).unwrap();
            push.end(&mut sink, &mut visit).unwrap();
            assert_eq!((seen, format!("{sink:?}")), expected, "{cut}");
        }
        assert!(stood > LOG.len() / 2);
    }

    #[test]
    fn a_long_record_that_arrives_byte_by_byte_is_not_examined_each_time() {
        let mut push = Push::new(&OpenOptions::default());
        let mut sink = Collect::default();
        push.push(b"(lock 1 0 10 \"", &mut sink, &mut |_, _| Ok(())).unwrap();
        for _ in 0..40_000 {
            push.push(b"x", &mut sink, &mut |_, _| Ok(())).unwrap();
        }
        assert!(push.enough > push.buffer.len() + 1);
        let mut records = 0;
        push.end(&mut sink, &mut |item, _| {
            records += u64::from(matches!(item, Item::Record(_)));
            Ok(())
        })
        .unwrap();
        assert_eq!(records, 0);
        assert!(Push::resume(&OpenOptions::default(), Standing { seq: 9, ..Standing::default() }).is_none());
        assert!(Push::resume(&OpenOptions::default(), Standing { mode: 3, ..Standing::default() }).is_none());
    }
}
