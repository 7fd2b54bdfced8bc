//! Extracts a part of a trace, in which every kept event is unchanged.
//!
//! Calls are selected as apitrace 11.1 selects them: by number and kind, by the frame in which they are *left*, and by
//! thread. What is selected is written event by event: bytes, order of enters and leaves, backtraces, details and
//! calls that are never left stay as they are. Only calls get new numbers, and definitions move to the first event kept
//! that needs them.
//!
//! Frames are counted as calls that end one are left. So whether a call belongs to a frame is known only when it is
//! left; until then, what follows it is buffered. The buffer is limited to 24 MiB. Beyond that, the oldest calls are
//! assigned to the current frame, and a note gives their number.

use anytrace_core::{Error, Outcome, Sink, Target};

use crate::lanes::flags::{CallFlags, FunctionFlags};
use crate::tools::callset::CallSet;
use crate::tools::carry::Carrier;
use crate::tools::flow::{EventState, Flow, head_length};
use crate::tools::index::Wanted;
use crate::tools::waiting::{Fate, Waiting};
use crate::wire::container::Container;
use crate::wire::container_writer::ContainerWriter;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Event, EventKind, Header, Space, Token, VERSION_THREADS};
use crate::wire::signatures::Signatures;
use crate::wire::visitor::{Before, Context, Visitor};

/// Options of [`trim`]. Without sets and threads all calls are kept.
#[derive(Debug, Clone, Default)]
pub struct TrimOptions {
    /// Calls of this set are kept.
    pub calls: Option<CallSet>,
    /// Calls left in frames of this set are kept too; its kinds choose among them.
    pub frames: Option<CallSet>,
    /// Only calls of these threads are kept; empty: of all.
    pub threads: Vec<u64>,
    /// The container to write; `None`: that of the source.
    pub container: Option<Container>,
    /// Its level of compression; `None`: the container's usual one.
    pub level: Option<i32>,
}

impl TrimOptions {
    /// What must be read of a trace.
    pub fn wanted(&self) -> Wanted {
        let first = |set: &CallSet| set.first().unwrap_or(0);
        let (first_call, first_frame) = (self.calls.as_ref().map(first), self.frames.as_ref().map(first));
        Wanted { first_call, first_frame, blob_bytes_max: None }
    }
}

/// Writes the calls that are selected; stops reading when the last of them has been left. Damage is reported to the
/// sink. The number of records read counts those that were examined.
///
/// ```
/// use anytrace_apitrace::Reader;
/// use anytrace_apitrace::tools::callset::CallSet;
/// use anytrace_apitrace::tools::trim::{TrimOptions, trim};
/// use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};
///
/// // Version 6, no properties, f() and g().
/// let bytes = b"\x06\x06\x00\x00\x00\x00\x01f\x00\x00\x01\x00\x00\x00\x00\x01\x01g\x00\x00\x01\x01\x00".to_vec();
/// let reader = Reader::new(Input::from_bytes("x", bytes), &OpenOptions::default()).unwrap();
/// let calls = CallSet::parse(["1"], &mut |_| unreachable!()).unwrap();
/// let options = TrimOptions { calls: Some(calls), ..TrimOptions::default() };
/// let mut out = MemoryTarget::default();
/// trim(reader, &options, &mut out, &mut Collect::default()).unwrap();
/// assert_eq!(out.0, b"\x06\x06\x00\x00\x00\x01\x01g\x00\x00\x01\x00\x00");
/// ```
///
/// # Errors
/// Options that make no sense, I/O, limits, and what the sink returns.
pub fn trim(
    mut reader: Reader,
    options: &TrimOptions,
    out: &mut dyn Target,
    sink: &mut dyn Sink,
) -> Result<Outcome, Error> {
    let container = options.container.unwrap_or_else(|| reader.container());
    let writer = ContainerWriter::<&mut dyn Target>::new(out, container, options.level)?;
    let event_bytes_max = usize::try_from(reader.limits.record_bytes_max).unwrap_or(usize::MAX);
    let mut trimmer = Trimmer::new(options, Carrier::new(writer), event_bytes_max);
    let totals = reader.read(&mut trimmer, sink)?;
    let is_seekable = match options.container {
        Some(container) => container == Container::ZstdSeekable,
        // If reading ended early, the end of the file was not seen. The format's own writer makes the table.
        None => reader.stream.is_seekable() || container == Container::Zstd && trimmer.is_done(),
    };
    trimmer.finish(&totals, reader.signatures(), is_seekable)
}

struct Trimmer<'a> {
    options: &'a TrimOptions,
    has_threads: bool,
    functions: FunctionFlags,
    /// Calls that end a frame and have been left.
    frame: u64,
    /// The call whose enter comes next is kept.
    is_chosen: bool,
    flow: Flow<'a>,
}

impl<'a> Trimmer<'a> {
    fn new(options: &'a TrimOptions, carrier: Carrier<'a>, event_bytes_max: usize) -> Self {
        Self {
            options,
            has_threads: false,
            functions: FunctionFlags::default(),
            frame: 0,
            is_chosen: false,
            flow: Flow::new(carrier, event_bytes_max),
        }
    }

    /// True for a call that is left in the running frame and kept.
    #[inline]
    fn is_wanted(&self, call: u64, thread: u64, flags: CallFlags) -> bool {
        let options = self.options;
        if !(options.threads.is_empty() || options.threads.contains(&thread)) {
            return false;
        }
        match (&options.calls, &options.frames) {
            (None, None) => true,
            (calls, frames) => {
                calls.as_ref().is_some_and(|calls| calls.has(call, flags))
                    || frames.as_ref().is_some_and(|frames| frames.has(self.frame, flags))
            }
        }
    }

    /// What is known about a call that may be left in a later frame.
    fn fate(&self, call: u64, thread: u64, flags: CallFlags) -> Fate {
        let Some(frames) = &self.options.frames else {
            return if self.is_wanted(call, thread, flags) { Fate::Kept } else { Fate::Dropped };
        };
        let is_of_thread = self.options.threads.is_empty() || self.options.threads.contains(&thread);
        let is_in_calls = self.options.calls.as_ref().is_some_and(|calls| calls.has(call, flags));
        if is_of_thread && (is_in_calls || frames.has_all_from(self.frame, flags)) {
            return Fate::Kept;
        }
        // Frames only grow, so a call that is entered after the last selected frame cannot be left in one.
        if is_of_thread && self.frame <= frames.last() { Fate::Open } else { Fate::Dropped }
    }

    fn enter_state(&self, event: &Event, flags: CallFlags) -> EventState {
        match self.fate(event.call, event.thread, flags) {
            Fate::Dropped => EventState::Dropped,
            fate => EventState::Enter(fate, flags),
        }
    }

    /// Counts the frame that a call ends as it is left.
    #[inline]
    fn count_frame(&mut self, flags: CallFlags) {
        self.frame += u64::from(flags.has(CallFlags::END_FRAME));
    }

    fn finish(mut self, totals: &Totals, signatures: &Signatures, is_seekable: bool) -> Result<Outcome, Error> {
        let (options, mut frame) = (self.options, self.frame);
        // What was never left comes at the end, in the order of the enters.
        self.flow.waiting.force(signatures, |flags| {
            let is_wanted = kept_in(options, frame)(flags);
            frame += u64::from(flags.has(CallFlags::END_FRAME));
            is_wanted
        })?;
        let (records_written, mut notes) = self.flow.waiting.close(totals, is_seekable)?;
        if records_written == 0 && totals.events > 0 {
            notes.push("No calls are selected: the trace written has none.".to_owned());
        }
        Ok(Outcome { records_read: totals.events, records_written, bytes_lost: totals.lost_bytes, notes })
    }
}

/// Says whether a call is kept that is left in this frame; for those that are in no set of calls.
fn kept_in<'f>(options: &'f TrimOptions, frame: u64) -> impl Fn(CallFlags) -> bool + Copy + use<'f> {
    let frames = options.frames.as_ref();
    move |flags| frames.is_some_and(|frames| frames.has(frame, flags))
}

impl Visitor for Trimmer<'_> {
    fn takes_plain(&self) -> bool {
        true
    }

    fn is_done(&self) -> bool {
        let options = self.options;
        let is_all = options.calls.is_none() && options.frames.is_none();
        !is_all
            && options.calls.as_ref().is_none_or(|calls| self.flow.calls > calls.last())
            && options.frames.as_ref().is_none_or(|frames| self.frame > frames.last())
            // A kept call that is still open needs its leave, which may come after the last selected call.
            && !self.flow.waiting.has_open()
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.has_threads = header.version >= VERSION_THREADS;
        self.flow.waiting.raw(&header.raw)
    }

    fn resume(&mut self, before: &Before<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        (self.frame, self.flow.calls) = (before.frames_left, before.calls);
        let functions = before.signatures.table(Space::Function).rows().len();
        (0..u32::try_from(functions).unwrap_or(0)).for_each(|slot| self.functions.learn(slot, before.signatures));
        Ok(())
    }

    fn resume_call(
        &mut self,
        enter: &Event,
        bytes: &[u8],
        signatures: &Signatures,
        _: &mut dyn Sink,
    ) -> Result<u64, Error> {
        let flags = self.functions.of(enter.function);
        let fate = self.fate(enter.call, enter.thread, flags);
        self.flow.begin_early((fate, enter.call, flags), bytes, self.has_threads, signatures);
        Ok(if fate == Fate::Dropped { Waiting::DROPPED } else { Waiting::MARK })
    }

    #[inline]
    fn plain_call(&mut self, enter: &Event, _: [&[u8]; 2], _: &mut dyn Sink) -> Result<bool, Error> {
        let flags = self.functions.of(enter.function);
        self.is_chosen = self.is_wanted(enter.call, enter.thread, flags);
        if !self.is_chosen {
            self.flow.calls = enter.call + 1;
            self.count_frame(flags);
        }
        Ok(!self.is_chosen)
    }

    fn plain_event(
        &mut self,
        event: &Event,
        bytes: &[u8],
        signatures: &Signatures,
        _: &mut dyn Sink,
    ) -> Result<u64, Error> {
        let flags = self.functions.of(event.function);
        let kept = kept_in(self.options, self.frame);
        let is_chosen = std::mem::take(&mut self.is_chosen);
        let state = match event.kind {
            EventKind::Leave => self.flow.leave_state(event, head_length(bytes), kept),
            EventKind::Enter if is_chosen => EventState::Enter(Fate::Kept, flags),
            EventKind::Enter => self.enter_state(event, flags),
        };
        self.flow.begin(event, state);
        if state != EventState::Dropped {
            self.flow.set_plain(bytes, self.has_threads, signatures);
        }
        let mark = self.flow.end(event, signatures, kept)?;
        if event.kind == EventKind::Leave {
            self.count_frame(flags);
        }
        Ok(mark)
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let event = context.event;
        let kept = kept_in(self.options, self.frame);
        match token {
            Token::Enter { .. } => self.flow.begin(event, EventState::Head),
            Token::Leave { .. } => {
                let state = self.flow.leave_state(event, context.bytes.len(), kept);
                self.flow.begin(event, state);
            }
            Token::Function(signature) => {
                self.functions.learn(signature.slot, context.signatures);
                self.flow.state = self.enter_state(event, self.functions.of(event.function));
            }
            _ => {}
        }
        if self.flow.state == EventState::Dropped {
            return Ok(());
        }
        self.flow.push((token, context.bytes), event, context.signatures, kept)
    }

    fn end(&mut self, event: &Event, signatures: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        let mark = self.flow.end(event, signatures, kept_in(self.options, self.frame))?;
        if event.kind == EventKind::Leave {
            self.count_frame(self.functions.of(event.function));
        }
        Ok(mark)
    }

    fn abandon(&mut self, event: Option<&Event>) -> Result<(), Error> {
        let Some(event) = event else { return Ok(()) };
        self.flow.abandon(event, &[])?;
        if event.kind == EventKind::Leave {
            self.count_frame(self.functions.of(event.function));
        }
        Ok(())
    }
}
