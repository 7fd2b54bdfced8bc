//! Rebuilds an FDR trace buffer by buffer: repaired, in part, or in another version.
//!
//! Times are converted to absolute times and deltas computed from them, so what is left out never shifts what is kept.

use std::collections::BTreeMap;

use anytrace_core::{Diagnostic, Error, Outcome, Place, Sink};

use crate::verbs::pick::Picker;
use crate::wire::fdr::{BUFFER_SIZE_MAX, BUFFER_SIZE_MIN, GapKind, Run, Visitor};
use crate::wire::moment::Clock;
use crate::wire::put::{Out, put_function, put_metadata};
use crate::wire::record::{
    Body, CustomTime, FUNCTION_BYTES, Function, FunctionKind, HEADER_BYTES, Header, METADATA_BYTES, Metadata, Orders,
};

/// Number of arguments for which a version 1 buffer reserves room after a function record.
const ARGUMENTS_ROOM: u64 = 8;

/// Smallest version 1 buffer with room for a preamble, a function record with arguments, and its end.
const BUFFER_MIN: u64 = 16 * (3 + ARGUMENTS_ROOM) + 8 + 16;

/// Filler that may be written in any case.
const FILLER_FREE: u64 = 1 << 20;

/// Further filler allowed for each byte read.
const FILLER_FACTOR: u64 = 64;

/// The records before the first record of a buffer's body.
#[derive(Debug, Default, Clone)]
struct Preamble {
    extents: Option<Vec<u8>>,
    thread: Option<(i32, Vec<u8>)>,
    wall: Option<(u64, u32, Vec<u8>)>,
    process: Option<(i32, Vec<u8>, Place)>,
    cpu: Option<(u16, u64, Vec<u8>)>,
    /// It must be written even without a body.
    is_wanted: bool,
}

/// Version 1 buffers smaller than this have room for hardly more than their preamble: a damaged header states such a
/// size, and repair then writes its buffers one after another instead.
const REPAIR_SIZE_MIN: u64 = 128;

/// Why the trace is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Convert,
    Repair,
    Trim,
}

/// True when so few bytes are left in a buffer that no end-of-buffer record fits, but not none: they would be read as a
/// record.
fn leaves_a_stub(left: u64) -> bool {
    (1..METADATA_BYTES as u64).contains(&left)
}

/// Writes one FDR trace from another.
pub(crate) struct Structured<'a, 't> {
    out: &'a mut Out<'t>,
    sink: &'a mut dyn Sink,
    pick: Picker<'a>,
    purpose: Purpose,
    from_version: u16,
    version: u16,
    layout: Orders,
    buffer_size: u64,
    clock: Clock,
    preamble: Preamble,
    /// Unused bytes of the end-of-buffer record that was read.
    end_reserved: Vec<u8>,
    is_open: bool,
    /// Output position of this buffer's first byte after the extents.
    start: u64,
    base: u64,
    cpu: u16,
    takes_arguments: bool,
    is_owner_wanted: bool,
    buffers: u64,
    needs_padding: bool,
    padded_bytes: u64,
    input_bytes: u64,
    is_compact: bool,
    outcome: Outcome,
    notes: BTreeMap<&'static str, u64>,
}

impl<'a, 't> Structured<'a, 't> {
    pub(crate) fn new(
        out: &'a mut Out<'t>,
        sink: &'a mut dyn Sink,
        pick: Picker<'a>,
        purpose: Purpose,
        from_version: u16,
        header: &Header,
        layout: Orders,
    ) -> Self {
        Self {
            out,
            sink,
            pick,
            purpose,
            from_version,
            version: header.version,
            layout,
            buffer_size: header.buffer_size,
            clock: Clock::new(from_version),
            preamble: Preamble::default(),
            end_reserved: Vec::new(),
            is_open: false,
            start: 0,
            base: 0,
            cpu: 0,
            takes_arguments: false,
            is_owner_wanted: false,
            buffers: 0,
            needs_padding: false,
            padded_bytes: 0,
            input_bytes: 0,
            is_compact: purpose == Purpose::Repair && header.version == 1 && header.buffer_size < REPAIR_SIZE_MIN,
            outcome: Outcome::default(),
            notes: BTreeMap::new(),
        }
    }

    pub(crate) fn finish(mut self) -> Result<Outcome, Error> {
        self.close()?;
        self.pad()?;
        if self.is_compact {
            self.out.patch(16, &[0; 8])?;
            self.note("header got buffer size 0: buffers follow each other without padding");
        }
        self.out.flush()?;
        self.outcome.notes.extend(self.notes.iter().map(|(what, n)| format!("{n} {what}.")));
        Ok(self.outcome)
    }

    fn note(&mut self, what: &'static str) {
        *self.notes.entry(what).or_default() += 1;
    }

    fn put(&mut self, body: Body<'_>, reserved: &[u8]) -> Result<(), Error> {
        put_metadata(&mut self.out.buffer, &Metadata { body, reserved }, self.layout);
        self.outcome.records_written += 1;
        self.takes_arguments = false;
        Ok(self.out.settle()?)
    }

    /// Version 1 buffers have a fixed size; others have none.
    fn size_max(&self) -> Option<u64> {
        (self.version == 1 && !self.is_compact && (BUFFER_SIZE_MIN..=BUFFER_SIZE_MAX).contains(&self.buffer_size))
            .then_some(self.buffer_size)
    }

    /// Writes the preamble, with substitutes for missing records.
    fn open(&mut self, before: u64) -> Result<(), Error> {
        self.pad()?;
        let preamble = self.preamble.clone();
        if self.version >= 2 {
            if preamble.extents.is_none() && self.from_version >= 2 {
                self.note("buffer extents were added");
            }
            self.put(Body::BufferExtents { bytes: 0 }, &preamble.extents.unwrap_or_default())?;
        }
        self.start = self.out.position();
        let (thread, reserved) = preamble.thread.unwrap_or_else(|| {
            self.note("new-buffer records were added, with thread 0");
            (0, Vec::new())
        });
        self.put(Body::NewBuffer { thread }, &reserved)?;
        let (seconds, micros, reserved) = preamble.wall.unwrap_or_else(|| {
            self.note("wall-time records were added, with time 0");
            (0, 0, Vec::new())
        });
        self.put(Body::WallTime { seconds, micros }, &reserved)?;
        self.open_process(thread, preamble.process)?;
        let (cpu, tsc, reserved) = preamble.cpu.unwrap_or_else(|| {
            self.note("time bases (new-cpu-id) were added, with processor 0");
            (0, before, Vec::new())
        });
        (self.cpu, self.base) = (cpu, tsc);
        self.put(Body::NewCpu { cpu, tsc }, &reserved)?;
        self.is_open = true;
        Ok(())
    }

    fn open_process(&mut self, thread: i32, process: Option<(i32, Vec<u8>, Place)>) -> Result<(), Error> {
        let keeps = self.version >= 3 || self.from_version == self.version;
        match process {
            Some((process, reserved, _)) if keeps => self.put(Body::Pid { process }, &reserved),
            Some((process, _, _)) if self.version == 2 && process == thread => Ok(()),
            Some((process, _, at)) => Err(Error::unsupported(format!(
                "record {} (pid): version {} has no process ids, found {process} (thread {thread})",
                at.seq, self.version
            ))),
            None if self.from_version == 2 && self.version >= 3 => {
                self.note("pid records were written: in version 2 the thread id is used as the process id");
                self.put(Body::Pid { process: thread }, &[])
            }
            None => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), Error> {
        let end_reserved = std::mem::take(&mut self.end_reserved);
        if !self.is_open && self.preamble.is_wanted && self.preamble.thread.is_some() {
            let before = self.clock.tsc;
            self.open(before)?;
        }
        if !self.is_open {
            if self.preamble.is_wanted && self.preamble.extents.is_some() && self.version >= 2 {
                let reserved = self.preamble.extents.take().unwrap_or_default();
                self.put(Body::BufferExtents { bytes: 0 }, &reserved)?;
            }
        } else if self.version == 1 {
            let used = self.out.position() - self.start + METADATA_BYTES as u64;
            if self.size_max().is_none_or(|size| used <= size) {
                self.put(Body::EndOfBuffer, &end_reserved)?;
            }
            self.needs_padding = true;
        } else {
            let written = self.out.position() - self.start;
            self.out.patch(self.start - 15, &self.layout.endian.put_u64(written))?;
        }
        self.is_open = false;
        self.preamble = Preamble::default();
        Ok(())
    }

    /// Pads a version 1 buffer to its size. A small input must not make a huge output: where the filler would be out of
    /// proportion, buffers follow each other without it, and the header says so.
    fn pad(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.needs_padding) {
            return Ok(());
        }
        let Some(size) = self.size_max() else { return Ok(()) };
        let over = (self.out.position() - HEADER_BYTES as u64) % size;
        let mut left = if over == 0 { 0 } else { size - over };
        self.padded_bytes += left;
        if self.padded_bytes > FILLER_FREE + FILLER_FACTOR * self.input_bytes {
            self.is_compact = true;
            return Ok(());
        }
        while left > 0 {
            let step = left.min(4096);
            self.out.put(&[0; 4096][..usize::try_from(step).unwrap_or(4096)])?;
            left -= step;
        }
        Ok(())
    }

    /// Makes room in a version 1 buffer; if there is none, the thread continues in another buffer. Returns false, in a
    /// repair only, if the record fits into no buffer.
    fn room(&mut self, need: u64, before: u64, at: Place) -> Result<bool, Error> {
        let Some(size) = self.size_max() else { return Ok(true) };
        let used = self.out.position() - self.start;
        // A full buffer of the source may lack its last record.
        let end = if self.from_version == 1 && self.purpose != Purpose::Convert { 0 } else { METADATA_BYTES as u64 };
        if used + need + end <= size && !leaves_a_stub(size - used - need) {
            return Ok(true);
        }
        let is_too_small =
            (self.from_version != 1 && size < BUFFER_MIN) || 3 * METADATA_BYTES as u64 + need + end > size;
        if is_too_small && self.purpose == Purpose::Repair {
            self.note("records too large for a version 1 buffer were left out");
            self.outcome.bytes_lost += need;
            return Ok(false);
        }
        if is_too_small {
            return Err(Error::unsupported(format!(
                "record {}: {need} bytes do not fit in a version 1 buffer of {size} bytes (the header's buffer size)",
                at.seq
            )));
        }
        let mut preamble = self.preamble.clone();
        let reserved = preamble.cpu.take().map(|(_, _, reserved)| reserved).unwrap_or_default();
        preamble.cpu = Some((self.clock.cpu, before, reserved));
        self.close()?;
        self.preamble = preamble;
        self.note("buffers were split to fit the buffer size in the header");
        self.open(before)?;
        Ok(true)
    }

    /// Opens the buffer if it is not open, and writes the processor of the next record. Returns false as [`Self::room`]
    /// does.
    fn ready(&mut self, need: u64, before: u64, at: Place) -> Result<bool, Error> {
        if !self.is_open {
            self.open(before)?;
        }
        let cpu_record = if self.cpu == self.clock.cpu { 0 } else { METADATA_BYTES as u64 };
        if !self.room(need + cpu_record, before, at)? {
            return Ok(false);
        }
        if self.cpu != self.clock.cpu {
            let (cpu, tsc) = (self.clock.cpu, before);
            self.put(Body::NewCpu { cpu, tsc }, &[])?;
            (self.cpu, self.base) = (cpu, tsc);
        }
        Ok(true)
    }

    fn function(&mut self, function: &Function, before: u64, tsc: u64, at: Place) -> Result<(), Error> {
        let keeps_room = function.kind == FunctionKind::EnterArgs && self.from_version != 1;
        let arguments = if keeps_room { ARGUMENTS_ROOM * METADATA_BYTES as u64 } else { 0 };
        let wrap = if self.is_far(tsc) { METADATA_BYTES as u64 } else { 0 };
        if !self.ready(FUNCTION_BYTES as u64 + arguments + wrap, before, at)? {
            self.is_owner_wanted = false;
            return Ok(());
        }
        if u32::try_from(tsc.wrapping_sub(self.base)).is_err() {
            self.put(Body::TscWrap { tsc: before }, &[])?;
            self.base = before;
        }
        let delta = u32::try_from(tsc.wrapping_sub(self.base)).unwrap_or(function.delta);
        put_function(&mut self.out.buffer, &Function { delta, ..*function }, self.layout);
        self.out.settle()?;
        self.outcome.records_written += 1;
        self.base = tsc;
        self.takes_arguments = true;
        Ok(())
    }

    /// True when the time cannot be written as a delta.
    fn is_far(&self, tsc: u64) -> bool {
        self.is_open && u32::try_from(tsc.wrapping_sub(self.base)).is_err()
    }

    /// Delta of an event that moves the base.
    fn event_delta(&mut self, tsc: u64) -> Result<i32, Error> {
        if let Ok(delta) = i32::try_from(tsc.wrapping_sub(self.base).cast_signed()) {
            self.base = tsc;
            return Ok(delta);
        }
        self.put(Body::TscWrap { tsc }, &[])?;
        self.base = tsc;
        Ok(0)
    }

    fn event(&mut self, metadata: &Metadata<'_>, before: u64, tsc: u64, at: Place) -> Result<(), Error> {
        let (data, name) = match metadata.body {
            Body::CustomEvent { data, .. } | Body::TypedEvent { data, .. } => (data, metadata.body.name()),
            _ => return Ok(()),
        };
        let form = |version| match version {
            0..=3 => 3,
            other => other,
        };
        let is_typed = matches!(metadata.body, Body::TypedEvent { .. });
        if is_typed && self.version < 3 && self.from_version >= 3 {
            let version = self.version;
            return Err(Error::unsupported(format!(
                "record {} ({name}): version {version} has no typed events",
                at.seq
            )));
        }
        let wrap = if is_typed && self.is_far(tsc) { METADATA_BYTES } else { 0 };
        let running = self.clock.cpu;
        if let Body::CustomEvent { time: CustomTime::OnCpu { cpu, .. }, .. } = metadata.body
            && form(self.version) != 4
        {
            // Only version 4 gives events a processor of their own: a record before the event sets it, and one after it
            // restores it.
            self.clock.cpu = cpu;
        }
        let is_ready = self.ready((METADATA_BYTES + data.len() + wrap) as u64, before, at);
        self.clock.cpu = running;
        if !is_ready? {
            return Ok(());
        }
        let body = match metadata.body {
            Body::TypedEvent { event_type, .. } => Body::TypedEvent { delta: self.event_delta(tsc)?, event_type, data },
            Body::CustomEvent { time, .. } => {
                let cpu = if let CustomTime::OnCpu { cpu, .. } = time { cpu } else { self.clock.cpu };
                let time = match form(self.version) {
                    3 => CustomTime::Absolute { tsc },
                    4 => CustomTime::OnCpu { tsc, cpu },
                    _ => CustomTime::Delta { delta: self.event_delta(tsc)? },
                };
                Body::CustomEvent { time, data }
            }
            other => other,
        };
        let is_same = is_typed || form(self.version) == form(self.from_version);
        self.put(body, if is_same { metadata.reserved } else { &[] })
    }

    fn wants(&mut self, tsc: Option<u64>, seq: u64) -> bool {
        if self.pick.is_all() {
            return true;
        }
        let thread = self.clock.thread.cast_unsigned();
        if self.pick.has_name_condition() || !self.pick.has_place(seq, thread, self.buffers.saturating_sub(1)) {
            return false;
        }
        match tsc {
            Some(tsc) => self.pick.has_time(tsc),
            None => !self.pick.is_by_content(),
        }
    }

    fn argument(&mut self, value: u64, reserved: &[u8], at: Place) -> Result<(), Error> {
        if !self.is_owner_wanted {
            return Ok(());
        }
        if !self.takes_arguments || !self.is_open {
            self.note("arguments without a preceding function record were left out");
            return Ok(());
        }
        let end = if self.from_version == 1 { 0 } else { METADATA_BYTES as u64 };
        let used = self.out.position() - self.start + METADATA_BYTES as u64 + end;
        if self.size_max().is_some_and(|size| used > size) {
            if self.purpose == Purpose::Repair {
                self.note("arguments that do not fit in a version 1 buffer were left out");
                self.outcome.bytes_lost += METADATA_BYTES as u64;
                return Ok(());
            }
            let size = self.buffer_size;
            return Err(Error::unsupported(format!(
                "record {} (call-argument): a version 1 buffer of {size} bytes is full",
                at.seq
            )));
        }
        self.put(Body::CallArgument { value }, reserved)?;
        self.takes_arguments = true;
        Ok(())
    }

    /// Records that belong in a preamble, wherever they were.
    fn preamble(&mut self, metadata: &Metadata<'_>, is_wanted: bool, at: Place) {
        let reserved = metadata.reserved.to_vec();
        let preamble = &mut self.preamble;
        let is_late = self.is_open
            || match metadata.body {
                Body::WallTime { .. } => preamble.wall.is_some(),
                Body::Pid { .. } => preamble.process.is_some(),
                _ => false,
            };
        if is_late {
            if is_wanted {
                self.note("misplaced wall-time and pid records were left out");
            }
            return;
        }
        preamble.is_wanted |= is_wanted;
        match metadata.body {
            Body::NewBuffer { thread } => preamble.thread = Some((thread, reserved)),
            Body::WallTime { seconds, micros } => preamble.wall = Some((seconds, micros, reserved)),
            Body::Pid { process } => preamble.process = Some((process, reserved, at)),
            _ => {}
        }
    }

    fn new_cpu(&mut self, cpu: u16, tsc: u64, reserved: &[u8], is_wanted: bool, at: Place) -> Result<(), Error> {
        if !self.is_open && self.preamble.cpu.is_none() {
            self.preamble.cpu = Some((cpu, tsc, reserved.to_vec()));
            self.preamble.is_wanted |= is_wanted;
            return Ok(());
        }
        if !is_wanted {
            return Ok(());
        }
        if !self.is_open {
            self.open(tsc)?;
        }
        if !self.room(METADATA_BYTES as u64, tsc, at)? {
            return Ok(());
        }
        (self.cpu, self.base) = (cpu, tsc);
        self.put(Body::NewCpu { cpu, tsc }, reserved)
    }

    fn tsc_wrap(&mut self, tsc: u64, reserved: &[u8], before: u64, at: Place) -> Result<(), Error> {
        if !self.ready(METADATA_BYTES as u64, before, at)? {
            return Ok(());
        }
        self.base = tsc;
        self.put(Body::TscWrap { tsc }, reserved)
    }
}

impl Visitor for Structured<'_, '_> {
    fn functions(&mut self, run: Run<'_>) -> Result<(), Error> {
        self.outcome.records_read += run.len();
        let is_all = self.pick.is_all();
        let thread = self.clock.thread.cast_unsigned();
        for (at, function) in run.records() {
            let before = self.clock.tsc;
            let tsc = self.clock.function(&function);
            self.is_owner_wanted = is_all
                || (self.pick.has_time(tsc)
                    && self.pick.has_place(at.seq, thread, self.buffers.saturating_sub(1))
                    && self.pick.has_name(function.id, &[]));
            if self.is_owner_wanted {
                self.function(&function, before, tsc, at)?;
            }
        }
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], at: Place) -> Result<(), Error> {
        self.outcome.records_read += 1;
        self.input_bytes = at.offset;
        let before = self.clock.tsc;
        if matches!(metadata.body, Body::NewBuffer { .. }) {
            if self.is_open || self.preamble.thread.is_some() {
                self.close()?;
            }
            self.buffers += 1;
        }
        let tsc = self.clock.metadata(&metadata.body);
        let is_wanted = self.wants(tsc, at.seq);
        match metadata.body {
            Body::BufferExtents { .. } => {
                self.close()?;
                self.preamble.extents = Some(metadata.reserved.to_vec());
                self.preamble.is_wanted = self.pick.is_all();
                Ok(())
            }
            Body::NewBuffer { .. } | Body::WallTime { .. } | Body::Pid { .. } => {
                self.preamble(metadata, is_wanted, at);
                Ok(())
            }
            Body::NewCpu { cpu, tsc } => self.new_cpu(cpu, tsc, metadata.reserved, is_wanted, at),
            Body::CallArgument { value } => self.argument(value, metadata.reserved, at),
            Body::EndOfBuffer => {
                self.end_reserved = metadata.reserved.to_vec();
                self.close()
            }
            _ if !is_wanted => Ok(()),
            Body::TscWrap { tsc } => self.tsc_wrap(tsc, metadata.reserved, before, at),
            Body::CustomEvent { .. } | Body::TypedEvent { .. } => {
                self.event(metadata, before, tsc.unwrap_or(before), at)
            }
        }
    }

    fn gap(&mut self, kind: GapKind, bytes: &[u8], at: Place) -> Result<(), Error> {
        match kind {
            GapKind::Damage => {
                self.outcome.bytes_lost += bytes.len() as u64;
                // Arguments after it belong to a function that was lost.
                self.takes_arguments = false;
            }
            GapKind::Between => {
                if self.purpose != Purpose::Trim {
                    self.note("runs of bytes between buffers were left out");
                }
            }
            GapKind::Filler => {
                let place = |position: u64| position.wrapping_sub(HEADER_BYTES as u64).checked_rem(self.buffer_size);
                if self.needs_padding && self.size_max().is_some() && place(self.out.position()) == place(at.offset) {
                    self.out.put(bytes)?;
                }
            }
        }
        Ok(())
    }

    fn buffer_end(&mut self, _at: Place) -> Result<(), Error> {
        self.close()?;
        self.clock = Clock::new(self.from_version);
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.sink.report(diagnostic)
    }
}
