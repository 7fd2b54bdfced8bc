//! The engine for FDR traces in wire order: framing, state, recovery. The visitor decides what to do with each record.

use std::borrow::Cow;

use anytrace_core::index::Part;
use anytrace_core::{Cursor, Diagnostic, Endian, Error, Limits, Place, Rule};

use crate::rules;
use crate::wire::parse::{BinaryFault, Need, function_run, parse_function, parse_record};
use crate::wire::record::{
    BitOrder, Body, FUNCTION_BYTES, FdrRecord, Function, HEADER_BYTES, Header, METADATA_BYTES, Metadata, Orders,
};
use crate::wire::recover::{
    INTRODUCER_LOOK, PREAMBLE_LOOK, is_behind_damaged_extents, is_best_introducer, is_headless_preamble, is_introducer,
    is_likely_preamble, is_preamble,
};

/// Most bytes of function records passed to the visitor at once: they fit into the L1 cache.
pub(crate) const RUN_BYTES: usize = 16 * 1024;

/// Bytes between buffers are passed on in pieces of this size, whatever the window.
pub(crate) const GAP_BYTES: usize = 4096;

/// Version 1 filler up to this size is examined before it is skipped.
const FILLER_LOOK_BYTES: u64 = 1 << 20;

/// A buffer size above this is garbage (`synth/llvmw-v1` has text there).
pub(crate) const BUFFER_SIZE_MAX: u64 = 1 << 32;

/// No buffer fits into a buffer size below this.
pub(crate) const BUFFER_SIZE_MIN: u64 = 64;

/// Consecutive function records, all valid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    /// Eight bytes per record.
    pub(crate) bytes: &'a [u8],
    /// Where the first one is stored.
    pub(crate) at: Place,
    /// The layout for reading them.
    pub(crate) layout: Orders,
}

impl<'a> Run<'a> {
    /// How many records.
    pub(crate) fn len(&self) -> u64 {
        (self.bytes.len() / FUNCTION_BYTES) as u64
    }

    /// First delta, and the sum of all deltas.
    pub(crate) fn deltas(&self) -> (u64, u64) {
        let records = self.bytes.as_chunks::<FUNCTION_BYTES>().0;
        let little = |[_, _, _, _, a, b, c, d]: &[u8; FUNCTION_BYTES]| u64::from(u32::from_le_bytes([*a, *b, *c, *d]));
        let big = |[_, _, _, _, a, b, c, d]: &[u8; FUNCTION_BYTES]| u64::from(u32::from_be_bytes([*a, *b, *c, *d]));
        match self.layout.endian {
            Endian::Little => (records.first().map_or(0, little), records.iter().map(little).sum()),
            Endian::Big => (records.first().map_or(0, big), records.iter().map(big).sum()),
        }
    }

    /// The kinds of its records: a bit for each [`FunctionKind`].
    pub(crate) fn kinds(&self) -> u16 {
        let (records, layout) = (self.bytes.as_chunks::<FUNCTION_BYTES>().0, self.layout);
        let of =
            |all: u16, [a, b, c, d, ..]: &[u8; FUNCTION_BYTES]| all | 1 << layout.function_word([*a, *b, *c, *d]).0;
        match (layout.endian, layout.bits) {
            // The usual layout: a loop without branches.
            (Endian::Little, BitOrder::Low) => {
                records.iter().fold(0, |all, [first, ..]| all | 1_u16 << (first >> 1 & 7))
            }
            _ => records.iter().fold(0, of),
        }
    }

    /// The records, each with its place.
    #[inline]
    pub(crate) fn records(self) -> impl Iterator<Item = (Place, Function)> + 'a {
        let Run { bytes, at, layout } = self;
        bytes.as_chunks::<FUNCTION_BYTES>().0.iter().zip(0_u64..).filter_map(move |(record, n)| {
            let at = Place { offset: at.offset + n * FUNCTION_BYTES as u64, seq: at.seq + n };
            parse_function(record, layout).ok().map(|function| (at, function))
        })
    }
}

/// What bytes that are not records are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GapKind {
    /// Version 1: from the end-of-buffer record to the end of the buffer.
    Filler,
    /// Between or after buffers.
    Between,
    /// Damaged: part of a buffer, but not of a complete record.
    Damage,
}

/// Receives a trace in wire order.
pub(crate) trait Visitor {
    /// Consecutive function records. A run may be passed on in several pieces.
    ///
    /// # Errors
    /// Any error ends the walk; the same holds for the methods below.
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error>;
    /// One metadata record; `raw` is all of it.
    ///
    /// # Errors
    /// As [`Self::functions`].
    fn metadata(&mut self, metadata: &Metadata<'_>, raw: &[u8], at: Place) -> Result<(), Error>;
    /// A piece of bytes that are not records.
    ///
    /// # Errors
    /// As [`Self::functions`].
    fn gap(&mut self, _kind: GapKind, _bytes: &[u8], _at: Place) -> Result<(), Error> {
        Ok(())
    }
    /// The buffer has no more records.
    ///
    /// # Errors
    /// As [`Self::functions`].
    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        Ok(())
    }
    /// Damage: a violation of the grammar.
    ///
    /// # Errors
    /// As [`Self::functions`].
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error>;
}

/// Walks one FDR trace.
pub(crate) struct FdrWalk {
    pub(crate) cursor: Cursor,
    pub(crate) header: Header,
    pub(crate) layout: Orders,
    pub(crate) payload_max: u64,
    pub(crate) seq: u64,
    /// Where the buffer's bytes end; `None` if nothing states it.
    pub(crate) end: Option<u64>,
    pub(crate) typed_events: u64,
    /// Where the records of this buffer begin.
    pub(crate) first: u64,
    /// Whether records after this buffer's extents have been reported.
    pub(crate) is_past_extents: bool,
    /// Where this buffer began (version 1).
    pub(crate) start: u64,
    /// An end-of-buffer record was found.
    pub(crate) is_ended: bool,
    /// [`Self::step`] is inside a buffer.
    pub(crate) is_inside: bool,
    /// What [`Self::step`] reads; [`Self::walk`] reads everything.
    pub(crate) part: Part,
    /// Most bytes of a run.
    pub(crate) run_bytes: usize,
}

impl FdrWalk {
    /// Starts after the header, where the cursor must be.
    pub(crate) fn new(mut cursor: Cursor, header: Header, layout: Orders, limits: &Limits) -> Self {
        let at_hand = cursor.window().len().min(HEADER_BYTES);
        cursor.advance(at_hand);
        let payload_max = limits.record_bytes_max;
        Self {
            cursor,
            header,
            layout,
            payload_max,
            seq: 0,
            end: None,
            typed_events: 0,
            first: HEADER_BYTES as u64,
            is_past_extents: false,
            start: HEADER_BYTES as u64,
            is_ended: false,
            is_inside: false,
            part: Part::default(),
            run_bytes: RUN_BYTES,
        }
    }

    /// Walks to the end of the data; returns the number of records and the cursor.
    ///
    /// # Errors
    /// I/O errors, and whatever the visitor returns.
    pub(crate) fn walk<V: Visitor>(mut self, visitor: &mut V) -> Result<(u64, Cursor), Error> {
        while self.begin(visitor)? {
            self.enter(visitor)?;
            while self.body(visitor)? {}
            visitor.buffer_end(self.at())?;
        }
        Ok((self.seq, self.cursor))
    }

    /// One step of [`Self::walk`]: a run of at most 16 KiB, one other record, or damage; false at the end of the data or
    /// of the part.
    pub(crate) fn step<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        if self.part.until.is_some_and(|until| self.cursor.offset() >= until) {
            return Ok(false);
        }
        if !self.is_inside {
            self.is_inside = self.begin(visitor)?;
            if self.is_inside {
                self.enter(visitor)?;
            }
            return Ok(self.is_inside);
        }
        if !self.body(visitor)? {
            visitor.buffer_end(self.at())?;
            self.is_inside = false;
        }
        Ok(true)
    }

    pub(crate) fn at(&self) -> Place {
        Place { offset: self.cursor.offset(), seq: self.seq }
    }

    /// Up to `need` bytes, and whether the data end with them; the result does not depend on the window.
    pub(crate) fn look(&mut self, need: usize) -> Result<(&[u8], bool), Error> {
        let length = self.cursor.fill(need + 1)?;
        let window = self.cursor.window();
        Ok((window.get(..need).unwrap_or(window), length <= need))
    }

    /// Finds the next buffer; false at the end of the data.
    fn begin<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        if self.header.version == 1 { self.open_version_1(visitor) } else { self.open_extents(visitor) }
    }

    fn open_extents<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        loop {
            let (layout, at) = (self.layout, self.at());
            let (bytes, eof) = self.look(INTRODUCER_LOOK)?;
            if bytes.is_empty() {
                return Ok(false);
            }
            if is_best_introducer(bytes, eof, layout) {
                return self.extents(visitor);
            }
            let is_damaged = is_behind_damaged_extents(bytes, layout);
            if is_damaged || is_preamble(bytes, layout) {
                let first = layout.metadata_byte(crate::wire::record::kind::BUFFER_EXTENTS);
                let report = rules::EXTENTS_MISSING.at(at.offset).record(at.seq);
                let report = report.expected(format!("{first:#04x} (buffer extents)"));
                let byte = bytes.first().copied().unwrap_or_default();
                let report = if is_damaged {
                    let damaged = bytes.get(..METADATA_BYTES).unwrap_or_default();
                    visitor.gap(GapKind::Damage, damaged, at)?;
                    self.cursor.advance(METADATA_BYTES);
                    report.found(format!("{byte:#04x}")).skipped(METADATA_BYTES as u64).resumed(at.seq)
                } else {
                    report.found("a new buffer")
                };
                visitor.report(report)?;
                self.end = None;
                return Ok(true);
            }
            self.gap(visitor, |bytes, eof| {
                is_best_introducer(bytes, eof, layout)
                    || is_preamble(bytes, layout)
                    || is_behind_damaged_extents(bytes, layout)
            })?;
        }
    }

    fn extents<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        let (at, layout, version, payload_max) = (self.at(), self.layout, self.header.version, self.payload_max);
        let (bytes, _) = self.look(METADATA_BYTES)?;
        let parsed = parse_record(bytes, layout, version, payload_max);
        let Ok((FdrRecord::Metadata(metadata @ Metadata { body: Body::BufferExtents { bytes: size }, .. }), used)) =
            parsed
        else {
            self.truncated(visitor, "buffer extents", METADATA_BYTES as u64)?;
            return Ok(false);
        };
        if size == 0 {
            visitor.report(rules::EMPTY_BUFFER.at(at.offset).record(at.seq))?;
        }
        visitor.metadata(&metadata, bytes.get(..used).unwrap_or_default(), at)?;
        self.cursor.advance(used);
        self.seq += 1;
        self.end = Some(self.cursor.offset().saturating_add(size));
        Ok(true)
    }

    /// Where the last version 1 buffer that began ends, by the header's buffer size.
    fn boundary(&self) -> Option<u64> {
        let size = self.header.buffer_size;
        (BUFFER_SIZE_MIN..=BUFFER_SIZE_MAX).contains(&size).then(|| self.start + size)
    }

    /// A version 1 buffer must begin at each multiple of the buffer size after the header (page, section 1.3).
    fn is_at_boundary(&self) -> bool {
        let size = self.header.buffer_size;
        (BUFFER_SIZE_MIN..=BUFFER_SIZE_MAX).contains(&size)
            && self.cursor.offset().checked_sub(self.start).is_some_and(|length| length % size == 0)
    }

    /// True when the next preamble is inside what should be one buffer: something was inserted before it.
    fn begins_late(&mut self) -> Result<bool, Error> {
        let (layout, size) = (self.layout, self.header.buffer_size.min(FILLER_LOOK_BYTES));
        let size = usize::try_from(size).unwrap_or(0);
        let (bytes, _) = self.look(size + PREAMBLE_LOOK)?;
        let is_late = |at: usize| bytes.get(at..).is_some_and(|rest| is_preamble(rest, layout));
        Ok((1..size).any(is_late))
    }

    fn open_version_1<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        let layout = self.layout;
        if self.is_ended {
            self.filler(visitor)?;
        }
        let is_at_boundary = self.is_at_boundary();
        let (bytes, _) = self.look(PREAMBLE_LOOK)?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let new_buffer = layout.metadata_byte(crate::wire::record::kind::NEW_BUFFER);
        let is_likely = is_likely_preamble(bytes, layout) || is_headless_preamble(bytes, layout);
        let may_begin = !is_zero(bytes) && (is_at_boundary || bytes.first() == Some(&new_buffer));
        if !is_likely && (!may_begin || self.begins_late()?) {
            self.gap(visitor, |bytes, _| is_preamble(bytes, layout))?;
            if self.look(1)?.0.is_empty() {
                return Ok(false);
            }
        }
        self.start = self.cursor.offset();
        self.end = self.boundary();
        Ok(true)
    }

    /// Skips the bytes between an end-of-buffer record and the end of the buffer's size.
    fn filler<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), Error> {
        let (offset, layout) = (self.cursor.offset(), self.layout);
        let Some(mut boundary) = self.boundary().filter(|&boundary| boundary > offset) else { return Ok(()) };
        let length = boundary - offset;
        let need = usize::try_from(length.min(FILLER_LOOK_BYTES)).unwrap_or(0);
        let (bytes, eof) = self.look(need + PREAMBLE_LOOK)?;
        let is_seen = need as u64 == length;
        let is_regular =
            is_seen && bytes.get(need..).is_some_and(|behind| behind.is_empty() || is_likely_preamble(behind, layout));
        if !is_regular && (is_seen || eof) {
            // Written without filler, or bytes are missing: the next buffer begins before this one should end.
            let early = (0..need.min(bytes.len())).find(|&n| is_preamble(bytes.get(n..).unwrap_or_default(), layout));
            if let Some(n) = early {
                boundary = offset + n as u64;
                if n > 0 {
                    let report =
                        rules::GAP.at(offset).field("filler").expected(format!("{length} bytes (buffer size)"));
                    visitor.report(report.found(format!("{n} bytes, then the next buffer")).resumed(self.seq))?;
                }
            }
        }
        while self.cursor.offset() < boundary {
            let left = usize::try_from(boundary - self.cursor.offset()).unwrap_or(usize::MAX).min(GAP_BYTES);
            let at = self.at();
            let (bytes, _) = self.look(left)?;
            if bytes.is_empty() {
                break;
            }
            visitor.gap(GapKind::Filler, bytes, at)?;
            let used = bytes.len();
            self.cursor.advance(used);
        }
        Ok(())
    }

    /// Skips bytes between buffers up to a place that `is_start` accepts, and reports what they were.
    fn gap<V: Visitor>(&mut self, visitor: &mut V, is_start: impl Fn(&[u8], bool) -> bool) -> Result<(), Error> {
        let start = self.at();
        let introducer = self.layout.metadata_byte(crate::wire::record::kind::BUFFER_EXTENTS);
        let (mut is_zero, mut false_introducer) = (true, None);
        loop {
            let at = self.at();
            let (bytes, eof) = self.look(GAP_BYTES + INTRODUCER_LOOK)?;
            let here = bytes.len().min(GAP_BYTES);
            let skip = usize::from(at.offset == start.offset);
            let found = (skip..here).find(|&n| {
                let rest = bytes.get(n..).unwrap_or_default();
                // After bytes other than zeros, the last few are not a cut introducer.
                let is_clean = || is_zero && bytes.iter().take(n).all(|&b| b == 0);
                rest.first().is_some_and(|&b| b != 0) && is_start(rest, eof && is_clean())
            });
            let used = found.unwrap_or(here);
            let piece = bytes.get(..used).unwrap_or_default();
            is_zero &= piece.iter().all(|&b| b == 0);
            if let (None, Some(n)) = (false_introducer, piece.iter().position(|&b| b == introducer)) {
                false_introducer = Some(at.offset + n as u64);
            }
            visitor.gap(GapKind::Between, piece, at)?;
            self.cursor.advance(used);
            if found.is_some() || used < GAP_BYTES {
                break;
            }
        }
        let length = self.cursor.offset() - start.offset;
        let rule = if is_zero { &rules::PADDING } else { &rules::GAP };
        visitor.report(rule.at(start.offset).found(format!("{length} bytes")).skipped(length).resumed(self.seq))?;
        match false_introducer {
            Some(offset) if self.header.version > 1 => {
                visitor.report(rules::FALSE_INTRODUCER.at(offset).expected("a new buffer 16 bytes on"))
            }
            _ => Ok(()),
        }
    }

    /// At the first record of a buffer.
    fn enter<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), Error> {
        (self.typed_events, self.is_ended, self.is_past_extents) = (0, false, false);
        self.first = self.cursor.offset();
        self.without_new_buffer(visitor)
    }

    /// Reads a run of function records or one other record; false when the buffer ends.
    #[inline]
    fn body<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        let offset = self.cursor.offset();
        let left = self.end.map_or(u64::MAX, |end| end.saturating_sub(offset));
        if left == 0 {
            if self.header.version == 1 || !self.goes_on_behind_extents(visitor)? {
                self.end_without_record(visitor)?;
                return Ok(false);
            }
            return Ok(true);
        }
        let reach = usize::try_from(left).unwrap_or(usize::MAX).min(self.run_bytes);
        let reach = self.part.limit(offset, reach);
        if self.end.is_some() {
            let window = self.cursor.window();
            let window = window.get(..reach).unwrap_or(window);
            let mut used = function_run(window, self.layout);
            if self.header.version == 1 {
                used = up_to_zeros(window, used);
            }
            if used > 0 {
                let run = Run { bytes: window.get(..used).unwrap_or_default(), at: self.at(), layout: self.layout };
                self.seq += run.len();
                visitor.functions(run)?;
                self.cursor.advance(used);
                return Ok(true);
            }
        }
        if offset != self.first && self.is_at_zero_filler(left)? {
            self.is_ended = true;
            self.end_without_record(visitor)?;
            return Ok(false);
        }
        self.record(visitor, left, offset == self.first)
    }

    /// Zeros in a version 1 buffer of known size count as filler: its end-of-buffer record is damaged or missing.
    fn is_at_zero_filler(&mut self, left: u64) -> Result<bool, Error> {
        if self.header.version != 1 || self.end.is_none() {
            return Ok(false);
        }
        let (bytes, _) = self.look(usize::try_from(left).unwrap_or(METADATA_BYTES).min(METADATA_BYTES))?;
        Ok(bytes.len() >= FUNCTION_BYTES && is_zero(bytes))
    }

    /// A version 1 buffer that reached its boundary without no end-of-buffer record.
    fn end_without_record<V: Visitor>(&mut self, visitor: &mut V) -> Result<(), Error> {
        if self.header.version == 1 {
            let at = self.at();
            visitor.report(rules::END_MISSING.at(at.offset).record(at.seq))?;
        }
        Ok(())
    }

    /// Reads one record on the slow path; false when the buffer ends.
    fn record<V: Visitor>(&mut self, visitor: &mut V, left: u64, is_first: bool) -> Result<bool, Error> {
        let (at, layout, version, payload_max) = (self.at(), self.layout, self.header.version, self.payload_max);
        let reach = usize::try_from(left).unwrap_or(usize::MAX);
        let (mut need, is_open_ended) = (PREAMBLE_LOOK, self.end.is_none());
        loop {
            let (bytes, eof) = self.look(need)?;
            if bytes.is_empty() {
                return self.end_of_data(visitor, left);
            }
            if !is_first && version != 1 && is_introducer(bytes, eof && bytes.len() <= reach, layout) {
                return self.next_begins(visitor, left);
            }
            if is_open_ended && !is_first && (is_zero(bytes) || is_preamble(bytes, layout)) {
                return Ok(false);
            }
            let (bytes, eof) = self.look(need)?;
            match parse_record(bytes.get(..reach).unwrap_or(bytes), layout, version, payload_max) {
                Ok((FdrRecord::Function(_), used)) => {
                    let run = Run { bytes: bytes.get(..used).unwrap_or_default(), at, layout };
                    visitor.functions(run)?;
                    self.cursor.advance(used);
                    self.seq += 1;
                    return Ok(true);
                }
                Ok((FdrRecord::Metadata(metadata), used)) => {
                    let is_end = matches!(metadata.body, Body::EndOfBuffer);
                    if !is_first && matches!(metadata.body, Body::BufferExtents { .. }) && version > 1 {
                        return self.bad(
                            visitor,
                            left,
                            &rules::EXTENTS_INSIDE,
                            "buffer extents inside a buffer".into(),
                        );
                    }
                    if is_end && version > 1 {
                        return self.bad(visitor, left, &rules::END_NOT_IN_VERSION, "end-of-buffer".into());
                    }
                    let is_typed = matches!(metadata.body, Body::TypedEvent { .. });
                    visitor.metadata(&metadata, bytes.get(..used).unwrap_or_default(), at)?;
                    self.typed_events += u64::from(is_typed);
                    self.cursor.advance(used);
                    self.seq += 1;
                    self.is_ended = is_end;
                    return Ok(!is_end);
                }
                Err(Need::More(more)) => {
                    let more = usize::try_from(more).unwrap_or(usize::MAX);
                    if more > reach {
                        return self.crosses(visitor, left, more);
                    }
                    if eof {
                        return self.cut_by_end_of_data(visitor, more);
                    }
                    need = more.max(need + 1);
                }
                Err(Need::Bad(BinaryFault::EventTooLong(size)))
                    if u64::from(size.unsigned_abs()) < left.saturating_sub(16) =>
                {
                    return self.pass_long_event(visitor, size);
                }
                Err(Need::Bad(BinaryFault::EventTooLong(size))) => {
                    return self.bad(visitor, left, &rules::EVENT_SIZE, format!("a payload of {size} bytes").into());
                }
                Err(Need::Bad(bad)) => {
                    let (rule, found) = bad_rule(bad);
                    return self.bad(visitor, left, rule, found);
                }
            }
        }
    }
}

/// How many bytes of the function records at the start of `window` come before one that is all zeros.
fn up_to_zeros(window: &[u8], used: usize) -> usize {
    let records = window.get(..used).unwrap_or(window).as_chunks::<FUNCTION_BYTES>().0;
    records.iter().position(|record| *record == [0; FUNCTION_BYTES]).map_or(used, |n| n * FUNCTION_BYTES)
}

/// True for sixteen zero bytes, or for fewer at the end of the data.
pub(crate) fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().take(METADATA_BYTES).all(|&b| b == 0)
}

pub(crate) fn bad_rule(bad: BinaryFault) -> (&'static Rule, Cow<'static, str>) {
    match bad {
        BinaryFault::FunctionKind(number) => (&rules::UNKNOWN_FUNCTION, format!("kind {number}").into()),
        BinaryFault::MetadataKind(number) => (&rules::UNKNOWN_METADATA, format!("kind {number}").into()),
        BinaryFault::EventSize(size) => (&rules::EVENT_SIZE, format!("a payload of {size} bytes").into()),
        BinaryFault::EventTooLong(size) => (&rules::EVENT_TOO_LONG, format!("a payload of {size} bytes").into()),
        BinaryFault::BasicType(number) => (&rules::BASIC_TYPE, format!("type {number}").into()),
    }
}
