//! Assembles calls from their events. Each call is emitted once, when it is left, as by the format's tools.
//!
//! A call's values keep their wire bytes; only definitions are removed. The bytes can be read by [`super::wire::Wire`]
//! at any time with a [`super::dictionary::Dictionary`]. Calls never left come at the end, in the order of their
//! enters, marked incomplete. A reader that begins inside a trace (`tools::index`) first passes the definitions known
//! there, then emits the calls left from there on; of those entered before, only the ones stored in the index.
//!
//! Memory is bounded: open calls take at most [`CallOptions::open_bytes_max`] (beyond it the oldest are emitted
//! unfinished, which is an error), and one call takes at most [`CallOptions::call_bytes_max`]. Blobs of more than 64
//! KiB are omitted unless requested.

use std::hash::{DefaultHasher, Hasher};

use anytrace_core::{Error, Limits, Sink};

use crate::lanes::dictionary::Definition;
use crate::lanes::wire::{LEFT_OUT, LEFT_OUT_HASHED, Wire};
use crate::rules;
use crate::wire::point::SPACES;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{BytesKind, Event, EventKind, Header, Pairing, SignatureRef, Space, Token, VERSION_THREADS};
use crate::wire::scan::push_uint;
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Before, Context, Visitor};

/// Most calls open at a time.
const OPEN_MAX: usize = 1 << 18;

/// Memory of an open call besides its bytes.
const OPEN_BYTES: usize = size_of::<Open>() + 16;

/// Options of [`read_calls`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CallOptions {
    /// Keep the content of blobs of more than 64 KiB. Default: no.
    pub keeps_blobs: bool,
    /// Keep a hash of the content of blobs that are not kept. Default: no.
    pub hashes_blobs: bool,
    /// Most bytes kept of one event of a call; values beyond it are omitted. Default 16 MiB.
    pub call_bytes_max: usize,
    /// Most bytes kept for all calls that are open. Default 24 MiB.
    pub open_bytes_max: usize,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self { keeps_blobs: false, hashes_blobs: false, call_bytes_max: 16 << 20, open_bytes_max: 24 << 20 }
    }
}

impl CallOptions {
    /// Allows one call as many bytes as the limits allow a record.
    #[must_use]
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        self.call_bytes_max = usize::try_from(limits.record_bytes_max).unwrap_or(usize::MAX);
        self.open_bytes_max = self.open_bytes_max.max(self.call_bytes_max.saturating_add(8 << 20));
        self
    }
}

/// A call.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Its number.
    pub number: u64,
    /// Its thread.
    pub thread: u64,
    /// Slot of its function; `u32::MAX` if there was no room for it.
    pub function: u32,
    /// Frame it belongs to, from 0.
    pub frame: u64,
    /// Number of its enter event.
    pub seq: u64,
    /// Offset of its enter event in the raw stream.
    pub offset: u64,
    /// Number of its leave event; meaningless for calls that were never left.
    pub end_seq: u64,
    /// Bytes of its events in the raw stream, definitions included.
    pub raw_bytes: u64,
    /// It was never left.
    pub is_incomplete: bool,
    /// Details of its enter event, without definitions.
    pub enter: &'a [u8],
    /// Details of its leave event, without definitions.
    pub leave: &'a [u8],
}

impl Call<'_> {
    /// A placeholder.
    pub(crate) const NONE: Call<'static> = Call {
        number: 0,
        thread: 0,
        function: u32::MAX,
        frame: 0,
        seq: 0,
        offset: 0,
        end_seq: 0,
        raw_bytes: 0,
        is_incomplete: true,
        enter: &[],
        leave: &[],
    };
}

/// Receives calls.
pub trait CallVisitor {
    /// Takes the header, which comes first if it can be read.
    ///
    /// # Errors
    /// Any error ends the reading and is returned to the caller, here and below.
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        let _ = header;
        Ok(())
    }

    /// Reading begins inside the trace, at this call, after so many calls that end a frame have been left. Earlier calls
    /// that are open there may still be emitted.
    fn resume(&mut self, first_call: u64, frames_left: u64) {
        let _ = (first_call, frames_left);
    }

    /// Takes a definition, before the first call that uses it.
    fn define(&mut self, definition: &Definition<'_>);

    /// A call was entered and not left at once; [`CallVisitor::call`] receives it later.
    ///
    /// # Errors
    /// As [`CallVisitor::header`].
    fn entered(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let _ = call;
        Ok(())
    }

    /// Takes a call.
    ///
    /// # Errors
    /// As [`CallVisitor::header`].
    fn call(&mut self, call: &Call<'_>, sink: &mut dyn Sink) -> Result<(), Error>;

    /// Takes a call that is still open where reading ended because no more calls were needed.
    ///
    /// # Errors
    /// As [`CallVisitor::header`].
    fn open(&mut self, call: &Call<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let _ = (call, sink);
        Ok(())
    }

    /// True when no more calls are needed. Reading ends soon after; calls received until then must be ignored.
    fn is_done(&self) -> bool {
        false
    }
}

/// Reads all calls of a trace. Damage is reported to the sink.
///
/// ```
/// use anytrace_apitrace::Reader;
/// use anytrace_apitrace::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
/// use anytrace_apitrace::lanes::dictionary::{Definition, Dictionary};
/// use anytrace_core::{Collect, Error, Input, OpenOptions, Sink};
///
/// #[derive(Default)]
/// struct Names(Dictionary, Vec<String>);
///
/// impl CallVisitor for Names {
///     fn define(&mut self, definition: &Definition<'_>) {
///         self.0.define(definition);
///     }
///
///     fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
///         let name = self.0.function(call.function).map_or(&b"?"[..], |function| function.name());
///         self.1.push(format!("{} {}", call.number, String::from_utf8_lossy(name)));
///         Ok(())
///     }
/// }
///
/// // Version 6, no properties; call 0 of `f` is left after call 1.
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x00\x00\x00\x00\x01\x01\x00\x01\x00\x00".to_vec();
/// let mut reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
/// let mut names = Names::default();
/// read_calls(&mut reader, CallOptions::default(), &mut names, &mut Collect::default()).unwrap();
/// assert_eq!(names.1, ["1 f", "0 f"]);
/// ```
///
/// # Errors
/// I/O, limits, and what the visitor or the sink return.
pub fn read_calls<V: CallVisitor>(
    reader: &mut Reader,
    options: CallOptions,
    visitor: &mut V,
    sink: &mut dyn Sink,
) -> Result<Totals, Error> {
    let mut assembler = Assembler {
        visitor,
        options,
        has_threads: false,
        open: Vec::new(),
        free: Vec::new(),
        open_bytes: 0,
        event: Vec::new(),
        event_bytes: 0,
        detail_at: 0,
        left_out: LeftOut::Nothing,
        hasher: DefaultHasher::new(),
        has_evicted: false,
    };
    let totals = reader.read(&mut assembler, sink)?;
    assembler.finish(totals.ends_early, sink)?;
    Ok(totals)
}

/// A call entered and not left.
#[derive(Debug, Default)]
struct Open {
    number: u64,
    thread: u64,
    frame: u64,
    seq: u64,
    offset: u64,
    raw_bytes: u64,
    function: u32,
    is_used: bool,
    enter: Vec<u8>,
}

/// What is known about a call where it ends.
#[derive(Debug, Clone, Copy)]
struct End<'a> {
    seq: u64,
    raw_bytes: u64,
    leave: &'a [u8],
    is_incomplete: bool,
}

impl End<'static> {
    /// The call was never left.
    const NONE: Self = Self { seq: 0, raw_bytes: 0, leave: &[], is_incomplete: true };
}

impl Open {
    fn call<'a>(&'a self, end: End<'a>) -> Call<'a> {
        let &Self { number, thread, function, frame, seq, offset, .. } = self;
        let End { seq: end_seq, leave, is_incomplete, .. } = end;
        let raw_bytes = self.raw_bytes.saturating_add(end.raw_bytes);
        let enter = &self.enter;
        Call { number, thread, function, frame, seq, offset, end_seq, raw_bytes, is_incomplete, enter, leave }
    }
}

/// What part of the current event is skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeftOut {
    Nothing,
    /// The pieces of a blob.
    Pieces,
    /// The rest of a detail that is too long.
    Detail,
}

struct Assembler<'v, V> {
    visitor: &'v mut V,
    options: CallOptions,
    has_threads: bool,
    open: Vec<Open>,
    free: Vec<u32>,
    open_bytes: usize,
    /// Details of the event that is read token by token.
    event: Vec<u8>,
    /// Bytes it has in the raw stream.
    event_bytes: u64,
    /// Where in it the current detail begins.
    detail_at: usize,
    left_out: LeftOut,
    /// Hashes the blob that is omitted.
    hasher: DefaultHasher,
    has_evicted: bool,
}

/// Skips the numbers at the start of an event: the type, then thread and function, or call.
#[inline]
fn details_of(bytes: &[u8], numbers: usize) -> &[u8] {
    let mut wire = Wire::new(bytes.get(1..).unwrap_or_default(), true);
    for _ in 0..numbers {
        wire.uint();
    }
    wire.rest()
}

impl<V: CallVisitor> Assembler<'_, V> {
    fn enter(&mut self, event: &Event, raw_bytes: u64, details: &[u8]) -> Result<u64, Error> {
        let at = match self.free.pop() {
            Some(at) => at as usize,
            None => {
                self.open.push(Open::default());
                self.open.len() - 1
            }
        };
        let Some(open) = self.open.get_mut(at) else { return Ok(0) };
        let &Event { seq, offset, call: number, thread, frame, .. } = event;
        let function = event.function.unwrap_or(u32::MAX);
        let mut enter = std::mem::take(&mut open.enter);
        enter.clear();
        enter.extend_from_slice(details);
        self.open_bytes += enter.capacity() + OPEN_BYTES;
        *open = Open { number, thread, frame, seq, offset, raw_bytes, function, is_used: true, enter };
        self.visitor.entered(&open.call(End::NONE))?;
        Ok(at as u64 + 1)
    }

    /// The index of the call that an event leaves.
    fn find(&self, event: &Event) -> Option<usize> {
        let at = usize::try_from(event.mark.checked_sub(1)?).ok()?;
        let open = self.open.get(at)?;
        (open.is_used && open.number == event.call && event.pairing == Pairing::Paired).then_some(at)
    }

    fn leave(&mut self, event: &Event, raw_bytes: u64, leave: &[u8], sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(at) = self.find(event) else { return Ok(()) };
        self.give(at, End { seq: event.seq, raw_bytes, leave, is_incomplete: false }, sink)
    }

    /// Passes a call to the visitor and frees its slot.
    fn give(&mut self, at: usize, end: End<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let Some(open) = self.open.get_mut(at) else { return Ok(()) };
        self.visitor.call(&open.call(end), sink)?;
        open.is_used = false;
        self.open_bytes = self.open_bytes.saturating_sub(open.enter.capacity() + OPEN_BYTES);
        if open.enter.capacity() > 1 << 12 {
            open.enter = Vec::new();
        }
        self.free.push(u32::try_from(at).unwrap_or(0));
        Ok(())
    }

    /// Emits the older half of the open calls when they take too much memory.
    #[cold]
    fn evict(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        let mut places: Vec<usize> = (0..self.open.len()).filter(|at| self.is_used(*at)).collect();
        places.sort_unstable_by_key(|at| self.open.get(*at).map(|open| open.number));
        let half = places.len().div_ceil(2);
        for at in places.into_iter().take(half) {
            if let Some(open) = self.open.get(at)
                && !std::mem::replace(&mut self.has_evicted, true)
            {
                let expected = format!("at most {} bytes of calls that are open", self.options.open_bytes_max);
                let diagnostic = rules::OPEN_LIMIT.at(open.offset).within(crate::wire::visitor::RAW).record(open.seq);
                sink.report(diagnostic.expected(expected))?;
            }
            self.give(at, End::NONE, sink)?;
        }
        Ok(())
    }

    fn is_used(&self, at: usize) -> bool {
        self.open.get(at).is_some_and(|open| open.is_used)
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.open_bytes > self.options.open_bytes_max || self.open.len() - self.free.len() > OPEN_MAX
    }

    /// Emits the calls that were never left.
    fn finish(&mut self, ends_early: bool, sink: &mut dyn Sink) -> Result<(), Error> {
        let is_done = ends_early || self.visitor.is_done();
        let mut places: Vec<usize> = (0..self.open.len()).filter(|at| self.is_used(*at)).collect();
        places.sort_unstable_by_key(|at| self.open.get(*at).map(|open| open.number));
        for at in places {
            match self.open.get(at).filter(|_| is_done) {
                Some(open) => self.visitor.open(&open.call(End::NONE), sink)?,
                None => self.give(at, End::NONE, sink)?,
            }
        }
        Ok(())
    }

    /// Passes a definition to the visitor and adds the token without it.
    fn add_signed(&mut self, space: Space, signature: &SignatureRef<'_>, context: &Context<'_>) {
        let definition = signature.definition.unwrap_or_default();
        let is_kept = context.signatures.get(space, signature.slot).is_some_and(|row| row.is_at_hand());
        if signature.definition.is_some() && is_kept {
            let (id, slot) = (signature.id, signature.slot);
            self.visitor.define(&Definition { space, id, slot, bytes: definition });
        }
        if space != Space::Function {
            let (head, tail) = context.bytes.split_at(signature.id_end.min(context.bytes.len()));
            self.add(head);
            self.add(tail.get(definition.len()..).unwrap_or_default());
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.left_out == LeftOut::Nothing {
            self.event.extend_from_slice(bytes);
        }
    }

    /// Adds a value's token. If it grows too long, the entire detail is omitted.
    fn add_value(&mut self, token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        match token {
            Token::Struct(signature, _) => self.add_signed(Space::Struct, signature, context),
            Token::Enum(signature, _) => self.add_signed(Space::Enum, signature, context),
            Token::Bitmask(signature, _) => self.add_signed(Space::Bitmask, signature, context),
            Token::Frame(signature) => self.add_signed(Space::Frame, signature, context),
            Token::BytesStart(BytesKind::Blob, length) if !self.options.keeps_blobs => {
                if self.left_out == LeftOut::Nothing {
                    self.event.push(if self.options.hashes_blobs { LEFT_OUT_HASHED } else { LEFT_OUT });
                    push_uint(&mut self.event, *length);
                    self.hasher = DefaultHasher::new();
                    self.left_out = LeftOut::Pieces;
                }
            }
            Token::BytesPiece(piece) if self.left_out == LeftOut::Pieces && self.options.hashes_blobs => {
                self.hasher.write(piece);
            }
            Token::BytesEnd(_) if self.left_out == LeftOut::Pieces => {
                self.left_out = LeftOut::Nothing;
                if self.options.hashes_blobs {
                    self.event.extend_from_slice(&self.hasher.finish().to_le_bytes());
                }
            }
            _ => self.add(context.bytes),
        }
        if self.event.len() > self.options.call_bytes_max {
            self.event.truncate(self.detail_at);
            self.left_out = LeftOut::Detail;
            let diagnostic = rules::VALUE_LIMIT.at(context.offset).within(crate::wire::visitor::RAW);
            let expected = format!("at most {} bytes", self.options.call_bytes_max);
            sink.report(diagnostic.record(context.event.seq).expected(expected))?;
        }
        Ok(())
    }
}

impl<V: CallVisitor> Visitor for Assembler<'_, V> {
    fn takes_plain(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        self.visitor.is_done()
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.has_threads = header.version >= VERSION_THREADS;
        self.visitor.header(header)
    }

    fn resume(&mut self, before: &Before<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        self.visitor.resume(before.calls, before.frames_left);
        for space in SPACES {
            for (slot, row) in (0..).zip(before.signatures.table(space).rows()).filter(|(_, row)| row.is_at_hand()) {
                self.visitor.define(&Definition { space, id: row.id, slot, bytes: &row.definition });
            }
        }
        Ok(())
    }

    fn resume_call(&mut self, enter: &Event, bytes: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        self.enter(enter, bytes.len() as u64, details_of(bytes, 1 + usize::from(self.has_threads)))
    }

    fn plain_event(&mut self, event: &Event, bytes: &[u8], _: &Signatures, sink: &mut dyn Sink) -> Result<u64, Error> {
        if event.kind == EventKind::Leave {
            self.leave(event, bytes.len() as u64, details_of(bytes, 1), sink)?;
            return Ok(0);
        }
        if self.is_full() {
            self.evict(sink)?;
        }
        self.enter(event, bytes.len() as u64, details_of(bytes, 1 + usize::from(self.has_threads)))
    }

    #[inline]
    fn plain_call(&mut self, enter: &Event, bytes: [&[u8]; 2], sink: &mut dyn Sink) -> Result<bool, Error> {
        let &Event { seq, offset, call: number, thread, frame, .. } = enter;
        let function = enter.function.unwrap_or(u32::MAX);
        let [enter, leave] = bytes;
        let (end_seq, raw_bytes) = (seq + 1, (enter.len() + leave.len()) as u64);
        let (enter, leave) = (details_of(enter, 1 + usize::from(self.has_threads)), details_of(leave, 1));
        let is_incomplete = false;
        let call =
            Call { number, thread, function, frame, seq, offset, end_seq, raw_bytes, is_incomplete, enter, leave };
        self.visitor.call(&call, sink)?;
        Ok(true)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        match token {
            Token::Enter { .. } | Token::Leave { .. } => {
                self.event.clear();
                self.event_bytes = 0;
                self.left_out = LeftOut::Nothing;
            }
            Token::Function(signature) => self.add_signed(Space::Function, signature, context),
            Token::Argument(_)
            | Token::Return
            | Token::Thread(_)
            | Token::Backtrace(_)
            | Token::Flags(_)
            | Token::EndEvent => {
                self.left_out = LeftOut::Nothing;
                self.detail_at = self.event.len();
                self.add(context.bytes);
            }
            _ => self.add_value(token, context, sink)?,
        }
        self.event_bytes += context.bytes.len() as u64;
        Ok(())
    }

    fn end(&mut self, event: &Event, _: &Signatures, sink: &mut dyn Sink) -> Result<u64, Error> {
        let details = std::mem::take(&mut self.event);
        let mut mark = 0;
        if event.kind == EventKind::Leave {
            self.leave(event, self.event_bytes, &details, sink)?;
        } else {
            if self.is_full() {
                self.evict(sink)?;
            }
            mark = self.enter(event, self.event_bytes, &details)?;
        }
        self.event = details;
        // A long event must not keep its memory.
        if self.event.capacity() > 1 << 20 {
            self.event = Vec::new();
        }
        Ok(mark)
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::{Collect, Input, OpenOptions};

    use super::*;

    #[derive(Default)]
    struct Seen(Vec<(u64, bool, Vec<u8>, Vec<u8>)>);

    impl CallVisitor for Seen {
        fn define(&mut self, _: &Definition<'_>) {}

        fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
            self.0.push((call.number, call.is_incomplete, call.enter.to_vec(), call.leave.to_vec()));
            Ok(())
        }
    }

    fn read(bytes: &[u8], options: CallOptions) -> (Seen, Collect) {
        let (mut seen, mut damage) = (Seen::default(), Collect::default());
        let mut reader = Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
        read_calls(&mut reader, options, &mut seen, &mut damage).unwrap();
        (seen, damage)
    }

    #[test]
    fn definitions_are_taken_out_and_values_stay_as_they_are() {
        // f(x = A | ..) with a bit mask defined in it, a number of two bytes where one would do, and a return value.
        let bytes =
            b"\x06\x06\x00\x00\x00\x00\x01f\x01\x01x\x01\x00\x0a\x05\x01\x01A\x01\x81\x00\x00\x01\x00\x02\x04\x07\x00";
        let (seen, damage) = read(bytes, CallOptions::default());
        assert!(damage.0.is_empty());
        let (enter, leave) = (b"\x01\x00\x0a\x05\x81\x00\x00".to_vec(), b"\x02\x04\x07\x00".to_vec());
        assert_eq!(seen.0, [(0, false, enter, leave)]);
    }

    #[test]
    fn open_calls_are_bounded_and_the_oldest_given_out_first() {
        let mut bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00".to_vec();
        bytes.extend([0, 0, 0, 0].repeat(999));
        // The last is left in time, the first too late.
        bytes.extend([1, 0xe7, 7, 0, 1, 0, 0]);
        let (seen, damage) = read(&bytes, CallOptions { open_bytes_max: 10_000, ..CallOptions::default() });
        assert_eq!(damage.0.iter().map(|one| one.code()).collect::<Vec<_>>(), ["apitrace/open-limit"]);
        let mut numbers: Vec<u64> = seen.0.iter().map(|call| call.0).collect();
        assert_eq!((seen.0[0].0, seen.0.iter().filter(|call| !call.1).count()), (0, 1));
        numbers.sort_unstable();
        assert!(numbers.iter().copied().eq(0..1000));
    }

    #[test]
    fn leaves_of_unknown_and_of_left_calls_are_dropped() {
        let bytes =
            b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00\x01\x00\x02\x04\x01\x00\x01\x09\x00\x00\x00\x00\x00";
        let (seen, _) = read(bytes, CallOptions::default());
        assert_eq!(seen.0.iter().map(|call| (call.0, call.1)).collect::<Vec<_>>(), [(0, false), (1, true)]);
    }
}
