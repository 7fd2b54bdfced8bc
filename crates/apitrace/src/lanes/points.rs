//! Finds the boundaries between events where reading can begin, for indexes and marks.

use std::cell::Cell;

use anytrace_core::{Diagnostic, Error, Severity, Sink};

use crate::lanes::flags::{CallFlags, call_flags};
use crate::rules;
use crate::wire::point::{OpenEnter, Rows, SPACES, SeekPoint};
use crate::wire::point_bytes::ENTERS_BYTES_MAX;
use crate::wire::record::{BytesKind, Event, EventKind, Header, Pairing, SignatureRef, Token, VERSION_ENUM_SETS};
use crate::wire::signatures::Signatures;
use crate::wire::stream::DecodeStart;
use crate::wire::visitor::{Context, Visitor};

/// Most points, open calls at all of them, and frames. If there are more, every second one is kept.
pub(crate) const POINTS_MAX: usize = 1 << 16;
pub(crate) const WAITING_MAX: usize = 1 << 18;
pub(crate) const FRAMES_MAX: usize = 1 << 20;

/// Below this distance, events are read token by token.
const WHOLE_FROM_BYTES: u64 = 1 << 16;

/// Most memory for open calls in a reader that assembles calls; see
/// [`crate::lanes::calls::CallOptions::open_bytes_max`]. An open call takes at most twice its bytes plus one slot.
pub(crate) const OPEN_BYTES_MAX: u64 = 24 << 20;
const OPEN_CALL_BYTES: u64 = 4608;

/// Longest enter event kept of an open call. If one is not kept, reading begins before the call.
const ENTER_BYTES_MAX: usize = 4096;

/// The same for parts, which need every enter. Shorter than the blobs that readers of calls omit.
const PART_ENTER_BYTES_MAX: usize = 60 << 10;

/// Where a frame begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameStart {
    /// Number of its first call.
    pub call: u64,
    /// Offset of that call's enter event in the raw stream.
    pub raw_offset: u64,
}

/// Why there are no seek points from some offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The container can only be decoded from its start.
    Container,
    /// The trace is damaged.
    Damage,
    /// Too many or too large calls are open, so readers give up some of them.
    OpenCalls,
    /// A call is left that was not entered, or left twice.
    Leave,
    /// A value is so long that readers omit it.
    LongValue,
}

impl Obstacle {
    /// A one-line description.
    pub fn text(self) -> &'static str {
        match self {
            Self::Container => "this container can only be read from the start; snappy, zstd and raw support seeking",
            Self::Damage => "the trace is damaged",
            Self::OpenCalls => "open calls need more memory than the limit",
            Self::Leave => "a call returns that is not open",
            Self::LongValue => "a value is nearly as long as the record limit, or longer",
        }
    }
}

/// What the sink received, for the visitor.
#[derive(Default)]
pub(crate) struct Status {
    pub(crate) errors: Cell<u64>,
    pub(crate) warnings: Cell<u64>,
    /// A diagnostic after which a reader continues in a different state, or which may hide something.
    pub(crate) disturbing: Cell<bool>,
    pub(crate) first_error: Cell<Option<(u64, bool)>>,
}

/// Inspects diagnostics and passes them on.
pub(crate) struct Tee<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) status: &'a Status,
}

impl Sink for Tee<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        let status = self.status;
        match diagnostic.severity {
            Severity::Error => {
                if status.errors.replace(status.errors.get() + 1) == 0 {
                    status.first_error.set(Some((diagnostic.offset, diagnostic.within.is_some())));
                }
            }
            Severity::Warning => status.warnings.set(status.warnings.get() + 1),
            Severity::Note => {}
        }
        // The header is read again wherever reading begins, and its problems are reported again.
        if diagnostic.rule != &rules::SEMANTIC_VERSION {
            status.disturbing.set(true);
        }
        self.sink.report(diagnostic)
    }
}

/// Bytes of an event: all of them, and without the content of long blobs.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    all: u64,
    plain: u64,
}

impl Weight {
    /// The memory that such a call may take while it is open.
    fn open(self) -> Self {
        Self { all: self.all * 2 + OPEN_CALL_BYTES, plain: self.plain * 2 + OPEN_CALL_BYTES }
    }
}

/// An open call, while the index is built.
#[derive(Default)]
struct Open {
    /// The call's number plus one; 0: the slot is free.
    call: u64,
    offset: u64,
    weight: Weight,
    /// Whether its enter event without definitions is available; whether the index has it already.
    has_bytes: bool,
    is_kept: bool,
    bytes: Vec<u8>,
}

/// Finds points.
pub(crate) struct Finder<'a> {
    pub(crate) status: &'a Status,
    every: u64,
    pub(crate) record_bytes_max: u64,
    pub(crate) zstd_places: Vec<DecodeStart>,
    next: u64,
    pub(crate) points: Vec<SeekPoint>,
    waiting: usize,
    pub(crate) obstacle: Option<(u64, Obstacle)>,
    pub(crate) longest_event: u64,
    pub(crate) most_open: u64,
    pub(crate) frames: Vec<FrameStart>,
    pub(crate) frame_step: u64,
    pub(crate) frames_begun: u64,
    event: Weight,
    is_in_blob: bool,
    /// The event being read token by token, without definitions, and whether it is kept.
    bytes: Vec<u8>,
    has_bytes: bool,
    has_enum_sets: bool,
    /// Open calls, their free slots, and their weight.
    calls: Vec<Open>,
    free: Vec<u32>,
    open: Weight,
    pub(crate) enters: Vec<OpenEnter>,
    enter_bytes: usize,
    enter_bytes_max: usize,
    /// Number and first call of the frame of the last call.
    last_frame: Option<(u64, u64)>,
    is_for_parts: bool,
    /// The reader and the verbs agree on which calls end a frame.
    pub(crate) has_plain_frames: bool,
}

impl<'a> Finder<'a> {
    pub(crate) fn new(status: &'a Status, every: u64, record_bytes_max: u64) -> Self {
        Self {
            status,
            every,
            record_bytes_max,
            zstd_places: Vec::new(),
            next: 0,
            points: Vec::new(),
            waiting: 0,
            obstacle: None,
            longest_event: 0,
            most_open: 0,
            frames: Vec::new(),
            frame_step: 1,
            frames_begun: 0,
            event: Weight::default(),
            is_in_blob: false,
            bytes: Vec::new(),
            has_bytes: false,
            has_enum_sets: true,
            calls: Vec::new(),
            free: Vec::new(),
            open: Weight::default(),
            enters: Vec::new(),
            enter_bytes: 0,
            enter_bytes_max: ENTER_BYTES_MAX,
            last_frame: None,
            is_for_parts: false,
            has_plain_frames: true,
        }
    }

    /// Finds only points where the enters of all open calls are known.
    pub(crate) fn for_parts(mut self) -> Self {
        (self.is_for_parts, self.enter_bytes_max) = (true, PART_ENTER_BYTES_MAX);
        self
    }

    /// Records that the container can only be decoded from its start.
    pub(crate) fn close_container(&mut self) {
        self.close(0, Obstacle::Container);
    }

    /// Records that there are no points from here on.
    #[cold]
    fn close(&mut self, offset: u64, obstacle: Obstacle) {
        if self.obstacle.is_none() {
            self.obstacle = Some((offset, obstacle));
            self.next = u64::MAX;
        }
        // A reader that gives up calls may give up calls that were open long before, so no point is reliable.
        if obstacle == Obstacle::OpenCalls {
            self.obstacle = Some((0, obstacle));
            self.points.clear();
            self.enters.clear();
        }
    }

    #[inline]
    fn enter(&mut self, event: &Event) {
        if event.frame >= self.frames_begun {
            self.begin_frame(event);
        }
    }

    #[cold]
    fn begin_frame(&mut self, event: &Event) {
        if event.frame.is_multiple_of(self.frame_step) {
            self.frames.push(FrameStart { call: event.call, raw_offset: event.offset });
        }
        self.frames_begun = event.frame + 1;
        self.last_frame = Some((event.frame, event.call));
        if self.frames.len() > FRAMES_MAX {
            self.frame_step *= 2;
            keep_every_second(&mut self.frames);
        }
    }

    /// Records a call that stays open. Returns its mark.
    fn open(&mut self, event: &Event, weight: Weight, bytes: Option<&[u8]>) -> u64 {
        if matches!(self.obstacle, Some((_, Obstacle::Container | Obstacle::OpenCalls))) {
            return 0;
        }
        let weight = weight.open();
        self.open = Weight { all: self.open.all + weight.all, plain: self.open.plain + weight.plain };
        if self.open.plain > OPEN_BYTES_MAX {
            self.close(event.offset, Obstacle::OpenCalls);
        }
        self.most_open = self.most_open.max(self.open.all);
        let at = self.free.pop().unwrap_or_else(|| {
            self.calls.push(Open::default());
            u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
        });
        let Some(open) = self.calls.get_mut(at as usize) else { return 0 };
        (open.call, open.offset, open.weight) = (event.call + 1, event.offset, weight);
        let bytes = bytes.filter(|bytes| bytes.len() <= self.enter_bytes_max && self.next < u64::MAX);
        (open.has_bytes, open.is_kept) = (bytes.is_some(), false);
        open.bytes.clear();
        open.bytes.extend_from_slice(bytes.unwrap_or_default());
        u64::from(at) + 1
    }

    fn leave(&mut self, event: &Event) {
        if event.pairing != Pairing::Paired {
            return self.close(event.offset, Obstacle::Leave);
        }
        let Some(at) = event.mark.checked_sub(1).and_then(|at| u32::try_from(at).ok()) else { return };
        let Some(open) = self.calls.get_mut(at as usize).filter(|open| open.call == event.call + 1) else { return };
        open.call = 0;
        if open.bytes.capacity() > ENTER_BYTES_MAX {
            open.bytes = Vec::new();
        }
        let Weight { all, plain } = self.open;
        self.open = Weight { all: all - open.weight.all, plain: plain - open.weight.plain };
        self.free.push(at);
    }

    /// Keeps the enters of the calls that are open at a point.
    fn keep_enters(&mut self) {
        for open in self.calls.iter_mut().filter(|open| open.call > 0 && open.has_bytes && !open.is_kept) {
            if self.enter_bytes < ENTERS_BYTES_MAX {
                let bytes: Box<[u8]> = open.bytes.as_slice().into();
                self.enter_bytes += bytes.len() + size_of::<OpenEnter>();
                self.enters.push(OpenEnter { call: open.call - 1, offset: open.offset, bytes });
                open.is_kept = true;
            }
        }
    }

    /// True when the enters of all open calls are kept.
    fn knows_open_calls(&mut self) -> bool {
        if self.calls.iter().any(|open| open.call > 0 && !open.has_bytes) {
            return false;
        }
        self.keep_enters();
        self.calls.iter().all(|open| open.call == 0 || open.is_kept)
    }

    /// The reader and the verbs count the same frames as long as both agree on what ends one.
    fn look_at_name(&mut self, function: &SignatureRef<'_>, signatures: &Signatures) {
        if function.definition.is_some()
            && let Some(row) = signatures.function(function.slot)
        {
            self.has_plain_frames &= row.ends_frame == call_flags(row.name()).has(CallFlags::END_FRAME);
        }
    }

    /// The place of the zstd frame that contains an offset.
    fn zstd_place(&self, raw: u64) -> Option<DecodeStart> {
        let after = self.zstd_places.partition_point(|place| place.raw <= raw);
        self.zstd_places.get(after.checked_sub(1)?).copied()
    }

    /// The definitions that are known at the points, in the order in which readers meet them, and the enters of calls
    /// that are open there, in the order of calls.
    pub(crate) fn take_known(&mut self, signatures: &Signatures) -> ([Rows; 5], Vec<OpenEnter>) {
        let known = self.points.last().map_or([0; 5], |point| point.rows);
        let mut definitions: [Rows; 5] = Default::default();
        for ((space, rows), count) in SPACES.into_iter().zip(&mut definitions).zip(known) {
            for row in signatures.table(space).rows().iter().take(count as usize) {
                rows.push(row.id, &row.definition);
            }
        }
        self.enters.sort_unstable_by_key(|enter| enter.call);
        (definitions, std::mem::take(&mut self.enters))
    }
}

fn keep_every_second<T>(rows: &mut Vec<T>) {
    let mut is_kept = false;
    rows.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
}

impl Visitor for Finder<'_> {
    fn takes_plain(&self) -> bool {
        self.every >= WHOLE_FROM_BYTES
    }

    fn next_point(&self) -> u64 {
        self.next
    }

    fn point(&mut self, point: Option<SeekPoint>) {
        let Some(mut point) = point.filter(|_| !self.status.disturbing.get()) else {
            return self.close(self.next, Obstacle::Damage);
        };
        if self.is_for_parts && (point.seq == 0 || !self.knows_open_calls()) {
            // A later boundary may do.
            self.next = point.raw.saturating_add((self.every / 16).max(1));
            return;
        }
        if !self.zstd_places.is_empty() {
            point.place = self.zstd_place(point.raw).unwrap_or_default();
        }
        // Points lie just after the starts of chunks, because decoding begins there.
        let ahead = (point.raw - point.place.raw) / self.every + 1;
        self.next = point.place.raw.saturating_add(ahead.saturating_mul(self.every));
        self.waiting += point.waiting.len();
        if !point.waiting.is_empty() {
            self.keep_enters();
        }
        point.last_frame = self.last_frame.filter(|_| self.is_for_parts);
        self.points.push(point);
        while self.points.len() > POINTS_MAX || self.waiting > WAITING_MAX && self.points.len() > 1 {
            self.every = self.every.saturating_mul(2);
            keep_every_second(&mut self.points);
            self.waiting = self.points.iter().map(|point| point.waiting.len()).sum();
        }
    }

    #[inline]
    fn plain_event(&mut self, event: &Event, bytes: &[u8], _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        if event.kind == EventKind::Leave {
            self.leave(event);
            return Ok(0);
        }
        self.enter(event);
        let weight = Weight { all: bytes.len() as u64, plain: bytes.len() as u64 };
        // Events with enumerations of the old form do not arrive here.
        Ok(self.open(event, weight, Some(bytes)))
    }

    #[inline]
    fn plain_call(&mut self, enter: &Event, _: [&[u8]; 2], _: &mut dyn Sink) -> Result<bool, Error> {
        self.enter(enter);
        Ok(true)
    }

    fn header(&mut self, header: &Header, _: &mut dyn Sink) -> Result<(), Error> {
        self.has_enum_sets = header.version >= VERSION_ENUM_SETS;
        Ok(())
    }

    fn token(&mut self, token: &Token<'_>, context: &Context<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        let mut definition = None;
        match token {
            Token::Enter { .. } | Token::Leave { .. } => {
                self.event = Weight::default();
                self.is_in_blob = false;
                self.bytes.clear();
                self.has_bytes = self.has_enum_sets;
            }
            Token::Function(signature) => {
                self.look_at_name(signature, context.signatures);
                definition = Some(signature);
            }
            Token::Struct(signature, _) | Token::Enum(signature, _) | Token::Bitmask(signature, _) => {
                definition = Some(signature);
            }
            Token::Frame(signature) if self.is_for_parts => definition = Some(signature),
            Token::Backtrace(_) => self.has_bytes &= self.is_for_parts,
            Token::BytesStart(BytesKind::Blob, _) => self.is_in_blob = true,
            Token::BytesEnd(_) => self.is_in_blob = false,
            _ => {}
        }
        let bytes = context.bytes.len() as u64;
        self.event.all += bytes;
        if !(self.is_in_blob && matches!(token, Token::BytesPiece(_))) {
            self.event.plain += bytes;
        }
        if self.has_bytes {
            let length = definition.and_then(|signature| signature.definition).map_or(0, <[u8]>::len);
            let (head, tail) = context.bytes.split_at(definition.map_or(0, |signature| signature.id_end));
            self.bytes.extend_from_slice(head);
            self.bytes.extend_from_slice(tail.get(length..).unwrap_or_default());
            self.has_bytes = self.bytes.len() <= self.enter_bytes_max;
        }
        Ok(())
    }

    fn end(&mut self, event: &Event, _: &Signatures, _: &mut dyn Sink) -> Result<u64, Error> {
        // Use half of the limit, because readers differ in what counts as the value's length.
        if self.event.plain > self.record_bytes_max / 2 {
            self.close(event.offset, Obstacle::LongValue);
        }
        self.longest_event = self.longest_event.max(self.event.all);
        if event.kind == EventKind::Leave {
            self.leave(event);
            return Ok(0);
        }
        self.enter(event);
        let bytes = std::mem::take(&mut self.bytes);
        let mark = self.open(event, self.event, self.has_bytes.then_some(&bytes));
        self.bytes = bytes;
        Ok(mark)
    }
}
