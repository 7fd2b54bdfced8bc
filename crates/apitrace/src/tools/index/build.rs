//! Reads a trace once and records where reading can begin.

use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anytrace_core::index::{Digest, Digester, Pieces};
use anytrace_core::{Compression, Diagnostic, Error, Input, OpenOptions, Severity, Sink};

use crate::lanes::flags::{CallFlags, call_flags};
use crate::rules;
use crate::tools::index::{FrameStart, Index, IndexTotals, Obstacle, zstd_frames};
use crate::wire::container::Container;
use crate::wire::point::{OpenEnter, Rows, SPACES, SeekPoint};
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{BytesKind, Event, EventKind, Header, Pairing, SignatureRef, Token, VERSION_ENUM_SETS};
use crate::wire::signatures::Signatures;
use crate::wire::stream::DecodeStart;
use crate::wire::visitor::{Context, Visitor};

/// Most points, open calls at all of them, and frames. If there are more, every second one is kept.
pub(super) const POINTS_MAX: usize = 1 << 16;
pub(super) const WAITING_MAX: usize = 1 << 18;
pub(super) const FRAMES_MAX: usize = 1 << 20;

/// Below this distance, events are read token by token.
const WHOLE_FROM_BYTES: u64 = 1 << 16;

/// Most memory for open calls in a reader that assembles calls; see
/// [`crate::lanes::calls::CallOptions::open_bytes_max`]. An open call takes at most twice its bytes plus one slot.
pub(super) const OPEN_BYTES_MAX: u64 = 24 << 20;
const OPEN_CALL_BYTES: u64 = 4608;

/// Longest enter event kept of an open call, and most bytes of all of them. If one is not kept, reading begins before
/// the call.
const ENTER_BYTES_MAX: usize = 4096;
pub(super) const ENTERS_BYTES_MAX: usize = 8 << 20;

/// Options of [`build`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct IndexOptions {
    /// Distance between points, in bytes of the raw stream. Default 1 MiB: the size of a chunk in Snappy.
    pub every_bytes: u64,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { every_bytes: 1 << 20 }
    }
}

impl IndexOptions {
    /// Sets [`Self::every_bytes`]; at least 1.
    #[must_use]
    pub fn every_bytes(mut self, bytes: u64) -> Self {
        self.every_bytes = bytes.max(1);
        self
    }
}

/// Makes the index of a file. `None` if it contains no trace, not even a header.
///
/// The file is read, not mapped; `watch` sees the input first, for a progress bar. Damage is reported to the sink; the
/// index covers the part before it.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn build_file(
    path: &Path,
    options: &OpenOptions,
    how: IndexOptions,
    watch: &mut dyn FnMut(&Input),
    sink: &mut dyn Sink,
) -> Result<Option<Index>, Error> {
    let name = path.display().to_string();
    let failed = |error| Error::io(format_args!("cannot read {name}"), error);
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() {
        return Err(Error::usage(format!("{name}: only files can be indexed")));
    }
    let mut places = Vec::new();
    if meta.len() > 0 {
        let as_is = Input::open_as_is(path)?;
        let bytes = as_is.as_slice().unwrap_or_default();
        if Compression::detect(bytes) == Some(Compression::Zstd) {
            places = zstd_frames::places(bytes);
        }
    }
    let (input, digest) = open(&name, Box::new(file), meta.len())?;
    watch(&input);
    read(input, &digest, places, options, how, sink)
}

/// Makes the index of a trace in memory; otherwise as [`build_file`].
///
/// # Errors
/// As [`build_file`].
pub fn build(
    name: &str,
    bytes: Vec<u8>,
    options: &OpenOptions,
    how: IndexOptions,
    sink: &mut dyn Sink,
) -> Result<Option<Index>, Error> {
    let is_zstd = Compression::detect(&bytes) == Some(Compression::Zstd);
    let places = if is_zstd { zstd_frames::places(&bytes) } else { Vec::new() };
    let length = bytes.len() as u64;
    let (input, digest) = open(name, Box::new(std::io::Cursor::new(bytes)), length)?;
    read(input, &digest, places, options, how, sink)
}

fn open(name: &str, file: Box<dyn Read + Send>, file_bytes: u64) -> Result<(Input, Digest), Error> {
    let (digester, digest) = Digester::new(file, file_bytes);
    Ok((Input::from_read(name, Box::new(digester), Some(file_bytes))?, digest))
}

fn read(
    input: Input,
    digest: &Digest,
    zstd_places: Vec<DecodeStart>,
    options: &OpenOptions,
    how: IndexOptions,
    sink: &mut dyn Sink,
) -> Result<Option<Index>, Error> {
    let (name, file_bytes) = (input.name().to_owned(), input.file_bytes());
    let layers: Vec<Compression> = input.layers().iter().map(|layer| layer.compression).collect();
    let mut reader = Reader::new(input, options)?;
    let own = reader.stream.container_inside();
    let is_zstd = own == Container::Raw && layers == [Compression::Zstd] && zstd_places.len() > 1;
    let can_seek = is_zstd || layers.is_empty() && matches!(own, Container::Raw | Container::Snappy);
    reader.track_places();
    let status = Status::default();
    let mut builder = Builder::new(&status, how.every_bytes.max(1), options.limits.record_bytes_max);
    builder.zstd_places = zstd_places;
    if !can_seek {
        builder.close(0, Obstacle::Container);
    }
    let mut tee = Tee { sink, status: &status };
    let totals = reader.read(&mut builder, &mut tee)?;
    if reader.header().raw.is_empty() || totals.events == 0 && status.errors.get() > 0 {
        return Ok(None);
    }
    let pieces = digest.pieces();
    if Some(pieces.file_bytes) != file_bytes {
        return Err(Error::usage(format!("{name} changed while it was read")));
    }
    Ok(Some(builder.finish(&reader, &totals, pieces, is_zstd)))
}

/// What the sink received, for the visitor.
#[derive(Default)]
struct Status {
    errors: Cell<u64>,
    warnings: Cell<u64>,
    /// A diagnostic after which a reader continues in a different state, or which may hide something.
    disturbing: Cell<bool>,
    first_error: Cell<Option<(u64, bool)>>,
}

/// Inspects diagnostics and passes them on.
struct Tee<'a> {
    sink: &'a mut dyn Sink,
    status: &'a Status,
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

struct Builder<'a> {
    status: &'a Status,
    every: u64,
    record_bytes_max: u64,
    zstd_places: Vec<DecodeStart>,
    next: u64,
    points: Vec<SeekPoint>,
    waiting: usize,
    obstacle: Option<(u64, Obstacle)>,
    longest_event: u64,
    most_open: u64,
    frames: Vec<FrameStart>,
    frame_step: u64,
    frames_begun: u64,
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
    enters: Vec<OpenEnter>,
    enter_bytes: usize,
    /// The reader and the verbs agree on which calls end a frame.
    has_plain_frames: bool,
}

impl<'a> Builder<'a> {
    fn new(status: &'a Status, every: u64, record_bytes_max: u64) -> Self {
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
            has_plain_frames: true,
        }
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
        let bytes = bytes.filter(|bytes| bytes.len() <= ENTER_BYTES_MAX && self.next < u64::MAX);
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

    fn finish(mut self, reader: &Reader, totals: &Totals, pieces: Pieces, is_zstd: bool) -> Index {
        let known = self.points.last().map_or([0; 5], |point| point.rows);
        let mut definitions: [Rows; 5] = Default::default();
        for ((space, rows), count) in SPACES.into_iter().zip(&mut definitions).zip(known) {
            for row in reader.signatures().table(space).rows().iter().take(count as usize) {
                rows.push(row.id, &row.definition);
            }
        }
        self.enters.sort_unstable_by_key(|enter| enter.call);
        let is_damaged = self.status.disturbing.get();
        if is_damaged && self.obstacle.is_none() {
            let at = self.status.first_error.get().filter(|(_, is_raw)| *is_raw);
            self.obstacle = Some((at.map_or(totals.raw_bytes, |(offset, _)| offset), Obstacle::Damage));
        }
        Index {
            totals: IndexTotals {
                file_bytes: pieces.file_bytes,
                raw_bytes: totals.raw_bytes,
                events: totals.events,
                calls: totals.calls,
                frames: self.frames_begun,
                incomplete: totals.incomplete,
                errors: self.status.errors.get(),
                warnings: self.status.warnings.get(),
            },
            pieces,
            own: reader.stream.container_inside(),
            is_zstd,
            is_seekable: reader.stream.is_seekable(),
            record_bytes_max: self.record_bytes_max,
            longest_event: self.longest_event,
            most_open: self.most_open,
            first_error: self.status.first_error.get(),
            obstacle: self.obstacle,
            header: reader.header().clone(),
            definitions,
            frame_step: self.frame_step,
            frames: self.frames,
            has_plain_frames: self.has_plain_frames,
            points: self.points,
            enters: self.enters,
        }
    }
}

fn keep_every_second<T>(rows: &mut Vec<T>) {
    let mut is_kept = false;
    rows.retain(|_| {
        is_kept = !is_kept;
        is_kept
    });
}

impl Visitor for Builder<'_> {
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
            Token::Backtrace(_) => self.has_bytes = false,
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
            self.has_bytes = self.bytes.len() <= ENTER_BYTES_MAX;
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
