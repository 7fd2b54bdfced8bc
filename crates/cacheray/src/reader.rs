//! Reads a trace from front to back: runs of accesses at full speed, recovery after damage.

use anytrace_core::{Cursor, Diagnostic, Error, Input, OpenOptions, Sink};

use crate::damage_start::{self, Before};
use crate::detect;
use crate::likeness::Likeness;
use crate::parse::{Need, access_run, parse};
use crate::record::{Layout, Record, Tag, Width};
use crate::resync::{self, Trust};
use crate::rules;

/// Most accesses handed out at once: as many as fit a first-level cache.
const RUN_RECORDS_MAX: usize = 1024;

/// Records are framed this far ahead of the place where they are handed out: damage shows late.
const AHEAD_BYTES: usize = damage_start::BYTES + 64;

/// The place of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Place {
    /// Record number, from 0.
    pub seq: u64,
    /// Byte offset in the (decompressed) trace.
    pub offset: u64,
}

impl Place {
    /// The place `records` accesses of `stride` bytes further.
    pub(crate) fn after(self, records: usize, stride: usize) -> Self {
        Self { seq: self.seq + records as u64, offset: self.offset + (records * stride) as u64 }
    }
}

/// The work of a verb on the records that the reader finds. Static dispatch: nothing virtual happens per record.
pub(crate) trait Visit {
    /// Takes accesses from the start of a window, as many as follow each other, and returns their length in bytes. A
    /// window that starts with another record, or a part of one, yields 0.
    fn run(&mut self, window: &[u8], at: Place, sink: &mut dyn Sink) -> Result<usize, Error>;

    /// Takes an RTTA record and its bytes.
    fn rtta(&mut self, record: &Record<'_>, raw: &[u8], at: Place, sink: &mut dyn Sink) -> Result<(), Error>;

    /// Learns that zero bytes from here to the end of the trace are a zero tail.
    fn zero_tail(&mut self, _at: Place) {}

    /// True when the rest of the trace does not matter any more.
    fn is_done(&self) -> bool {
        false
    }
}

/// The accesses a window starts with.
pub(crate) fn run_of(window: &[u8], layout: Layout) -> &[u8] {
    let bytes = match layout.width {
        Width::Eight => access_run::<18>(window),
        Width::Four => access_run::<14>(window),
    };
    window.get(..bytes).unwrap_or_default()
}

/// The result of a pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Complete records read.
    pub records: u64,
    /// Bytes of the (decompressed) trace.
    pub bytes: u64,
    /// Bytes that belong to no complete record.
    pub bytes_lost: u64,
}

/// What is known about the bytes after the current position.
#[derive(Debug, Clone, Copy, Default)]
struct Ahead {
    /// This many bytes are complete records.
    framed: usize,
    /// After this many bytes records cannot be handed out as framed.
    stop: Option<usize>,
    /// From there this many records were misread.
    misread: usize,
}

/// An opened trace that knows its layout.
pub struct Reader {
    cursor: Cursor,
    layout: Layout,
    is_layout_given: bool,
    record_bytes_max: u64,
    seq: u64,
    bytes_lost: u64,
    /// The appearance of records before the latest damage.
    likeness: Likeness,
    ahead: Ahead,
    /// Where the zero records that the trace ended in so far begin.
    zeros: Option<Place>,
}

impl Reader {
    /// Determines the layout from the head, as far as the options do not give it.
    ///
    /// # Errors
    /// Usage, for a pointer width other than 4 and 8.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let width = match options.pointer_width {
            None => None,
            Some(bytes) => Some(Width::from_bytes(bytes).ok_or_else(|| wrong_width(bytes))?),
        };
        let is_allowed = |layout: Layout| {
            width.is_none_or(|width| width == layout.width) && options.endian.is_none_or(|e| e == layout.endian)
        };
        let layout = detect::layout(&input.head(), is_allowed);
        Ok(Self {
            cursor: Cursor::new(input),
            layout,
            is_layout_given: width.is_some() || options.endian.is_some(),
            // Records without a name always fit.
            record_bytes_max: options.limits.record_bytes_max.max(64),
            seq: 0,
            bytes_lost: 0,
            likeness: Likeness::default(),
            ahead: Ahead::default(),
            zeros: None,
        })
    }

    /// Byte order and pointer width.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// True when the options give byte order or pointer width.
    pub(crate) fn is_layout_given(&self) -> bool {
        self.is_layout_given
    }

    /// Compression layers that were removed, outermost first.
    pub fn layers(&self) -> &[anytrace_core::Layer] {
        self.cursor.layers()
    }

    /// What plausible records are measured by.
    pub(crate) fn trust(&self) -> Trust {
        Trust { layout: self.layout, likeness: self.likeness.clone() }
    }

    /// Maps the trace where it is a file.
    pub(crate) fn bring_at_hand(&mut self) {
        self.cursor.bring_at_hand();
    }

    /// All bytes from here on, where they are in memory or mapped.
    pub(crate) fn rest_in_memory(&self) -> Option<&[u8]> {
        self.cursor.as_slice()?.get(usize::try_from(self.cursor.offset()).ok()?..)
    }

    /// Skips complete records that were read in [`Self::rest_in_memory`]; the last one is not zero.
    pub(crate) fn pass(&mut self, passed: Passed) -> Result<(), Error> {
        self.seq += passed.records;
        self.zeros = None;
        self.cursor.skip(passed.bytes).map(|_| ())
    }

    /// Reads every record; damage goes to the sink and the records after it are read.
    ///
    /// # Errors
    /// I/O, errors of the sink, and errors of `visit`.
    pub fn read(
        self,
        sink: &mut dyn Sink,
        visit: impl FnMut(&Record<'_>, Place) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        let layout = self.layout;
        self.walk(&mut EachRecord { layout, visit }, sink)
    }

    /// Hands runs of accesses and RTTA records to `visit` until the end of the trace.
    pub(crate) fn walk<V: Visit>(mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<Passed, Error> {
        let stride = self.layout.access_bytes();
        while !visit.is_done() {
            let limit = self.look_ahead()?;
            if limit == 0 {
                if self.pass_stop(visit, sink)? {
                    break;
                }
                self.ahead = Ahead::default();
                continue;
            }
            let window = self.cursor.window();
            let at = Place { seq: self.seq, offset: self.cursor.offset() };
            let near = window.get(..limit.min(RUN_RECORDS_MAX * stride)).unwrap_or(window);
            let used = visit.run(near, at, sink)?;
            if let Some(run) = near.get(..used).filter(|run| !run.is_empty()) {
                self.zeros = zeros_after(run, stride, at, self.zeros);
                self.advance(used, (used / stride) as u64);
            } else if let Ok((record, used)) = parse(window, self.layout) {
                if record.tag.has_flags() {
                    sink.report(flags_on_rtta(&record, at))?;
                }
                visit.rtta(&record, window.get(..used).unwrap_or_default(), at, sink)?;
                self.zeros = None;
                self.advance(used, 1);
            }
        }
        self.finish(visit.is_done(), sink)
    }

    fn advance(&mut self, used: usize, records: u64) {
        self.cursor.advance(used);
        self.seq += records;
        self.ahead.framed -= used;
        self.ahead.stop = self.ahead.stop.map(|stop| stop - used);
    }

    /// Frames the following bytes. Records that start before the returned distance can be handed out; 0 is damage right
    /// here, or the end.
    fn look_ahead(&mut self) -> Result<usize, Error> {
        let chunk = RUN_RECORDS_MAX * self.layout.access_bytes();
        loop {
            if let Some(stop) = self.ahead.stop {
                return Ok(stop);
            }
            if self.ahead.framed >= AHEAD_BYTES {
                return Ok(self.ahead.framed - damage_start::BYTES);
            }
            let rest = self.cursor.window().get(self.ahead.framed..).unwrap_or_default();
            let run = run_of(rest.get(..chunk).unwrap_or(rest), self.layout).len();
            if run > 0 {
                self.ahead.framed += run;
                continue;
            }
            match parse(rest, self.layout) {
                // Also where the window happens to contain all of it: results must not depend on the window's size.
                Ok((_, used)) if used as u64 <= self.record_bytes_max => self.ahead.framed += used,
                Err(Need::More(need)) if need <= self.record_bytes_max => {
                    // Bounded by the limit on records just above.
                    let all = self.ahead.framed + usize::try_from(need).unwrap_or(usize::MAX);
                    let have = self.fill(all)?;
                    if have < all {
                        self.stop_ahead(have > self.ahead.framed)?;
                    }
                }
                _ => self.stop_ahead(true)?,
            }
        }
    }

    /// Framing ends after the framed bytes: at damage, whose start may be before it, or at the end of the data.
    fn stop_ahead(&mut self, is_damage: bool) -> Result<(), Error> {
        let end = self.ahead.framed;
        self.ahead.stop = Some(end);
        if !is_damage {
            return Ok(());
        }
        let wanted = end + resync::WINDOW_BYTES;
        let is_end = self.fill(wanted)? < wanted;
        // The same bytes decide, whatever else the window contains.
        let window = self.cursor.window();
        let window = window.get(..wanted).unwrap_or(window);
        let before = Before::of(window, end, self.layout);
        let found = before.out_of_step(window, end, is_end, self.layout, &self.likeness);
        let stop = found.map_or(end, |(at, _)| at);
        before.teach(&mut self.likeness, window, stop, self.layout);
        self.ahead.stop = Some(stop);
        self.ahead.misread = found.map_or(0, |(_, misread)| misread);
        Ok(())
    }

    /// Handles the place where framing ends. True when nothing can follow.
    fn pass_stop<V: Visit>(&mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<bool, Error> {
        if self.ahead.misread > 0 {
            return self.pass_out_of_step(sink).map(|()| false);
        }
        match parse(self.cursor.window(), self.layout) {
            Ok((_, used)) => self.pass_long_name(used as u64, sink)?,
            Err(Need::Bad(tag)) => self.pass_bad_tag(tag, sink)?,
            Err(Need::More(need)) if need > self.record_bytes_max => self.pass_long_name(need, sink)?,
            Err(Need::More(need)) => {
                let have = self.cursor.window().len() as u64;
                return self.ends_inside(have, need, visit, sink);
            }
        }
        Ok(false)
    }

    /// The data end `have` bytes after the current record's start. True when nothing can follow.
    fn ends_inside<V: Visit>(
        &mut self,
        have: u64,
        need: u64,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<bool, Error> {
        let at = Place { seq: self.seq, offset: self.cursor.offset() };
        let rest = self.cursor.window();
        if let Some(start) = self.zeros.filter(|_| rest.iter().all(|&b| b == 0)) {
            sink.report(zero_tail(start, at, have))?;
            visit.zero_tail(start);
        }
        let Some(&tag) = rest.first() else { return Ok(true) };
        let header = self.layout.add_bytes() as u64;
        if need > header && have >= header {
            let report = past_end(at, need - header, have - header);
            return self.recover(report, sink).map(|()| false);
        }
        let kind = Tag(tag).kind().map_or("record", crate::Kind::name);
        sink.report(
            rules::TRUNCATED
                .at(at.offset)
                .record(at.seq)
                .field(kind)
                .expected(format!("{need} bytes"))
                .found(format!("{have} bytes left"))
                .skipped(have),
        )?;
        self.bytes_lost += self.cursor.skip(have)?;
        Ok(true)
    }

    fn pass_bad_tag(&mut self, tag: u8, sink: &mut dyn Sink) -> Result<(), Error> {
        let report = rules::BAD_TAG
            .at(self.cursor.offset())
            .record(self.seq)
            .field("tag")
            .expected("base tag 0 to 3 under the flags 0x40 and 0x80")
            .found(format!("{tag:#04x}"));
        self.recover(report, sink)
    }

    fn pass_out_of_step(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        let Ahead { framed, misread, .. } = self.ahead;
        let at = self.cursor.offset();
        let found = match self.cursor.window().get(framed) {
            Some(tag) if Tag(*tag).kind().is_none() => format!("{tag:#04x}"),
            _ => "a record that cannot be whole".to_owned(),
        };
        let report = rules::BAD_TAG
            .at(at)
            .record(self.seq)
            .field("tag")
            .expected("base tag 0 to 3 under the flags 0x40 and 0x80")
            .found(format!("{found} at {:#x}, after {misread} records out of step from here on", at + framed as u64))
            .help("bytes are missing or too many inside this record");
        self.recover(report, sink)
    }

    /// A name longer than the limit is damage until shown otherwise: records may follow at once.
    fn pass_long_name(&mut self, need: u64, sink: &mut dyn Sink) -> Result<(), Error> {
        let at = Place { seq: self.seq, offset: self.cursor.offset() };
        let skipped = self.find_resumption()?;
        let header = self.layout.add_bytes() as u64;
        let has_resumed = !self.cursor.window().is_empty();
        let report = if !has_resumed && skipped < need {
            past_end(at, need - header, skipped.saturating_sub(header))
        } else {
            let limit = self.record_bytes_max;
            rules::NAME_TOO_LONG
                .at(at.offset)
                .record(at.seq)
                .field("type name")
                .expected(format!("a record of at most {limit} bytes"))
                .found(format!("{} bytes of name", need - header))
        };
        self.report_gap(report, skipped, has_resumed, sink)
    }

    /// Skips damage at the current position and reports it.
    fn recover(&mut self, report: Diagnostic, sink: &mut dyn Sink) -> Result<(), Error> {
        let skipped = self.find_resumption()?;
        let has_resumed = !self.cursor.window().is_empty();
        self.report_gap(report, skipped, has_resumed, sink)
    }

    fn report_gap(
        &mut self,
        report: Diagnostic,
        skipped: u64,
        has_resumed: bool,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        self.zeros = None;
        self.bytes_lost += skipped;
        let report = report.skipped(skipped);
        sink.report(if has_resumed { report.resumed(self.seq) } else { report })
    }

    /// As [`Cursor::fill`], but moves nothing once all of the data are at hand.
    fn fill(&mut self, need: usize) -> Result<usize, Error> {
        if self.cursor.is_last_window() { Ok(self.cursor.window().len()) } else { self.cursor.fill(need) }
    }

    /// Moves to the next place where records resume, or to the end; returns the distance.
    fn find_resumption(&mut self) -> Result<u64, Error> {
        let trust = self.trust();
        let start = self.cursor.offset();
        let mut from = 1;
        loop {
            let have = self.fill(resync::WINDOW_BYTES)?;
            let is_end = have < resync::WINDOW_BYTES;
            match resync::find(self.cursor.window(), from, is_end, &trust) {
                resync::Resume::At(at) => {
                    self.cursor.advance(at);
                    break;
                }
                resync::Resume::NotBefore(next) => self.cursor.advance(next.min(have)),
            }
            if is_end {
                break;
            }
            from = 0;
        }
        Ok(self.cursor.offset() - start)
    }

    fn finish(mut self, is_stopped: bool, sink: &mut dyn Sink) -> Result<Passed, Error> {
        if !is_stopped {
            // The last refill of a layer that ends with its data is the one that learns how it ended.
            self.cursor.fill(1)?;
            self.cursor.report_layers(sink)?;
        }
        Ok(Passed { records: self.seq, bytes: self.cursor.offset(), bytes_lost: self.bytes_lost })
    }
}

#[cold]
fn wrong_width(bytes: u8) -> Error {
    Error::usage(format!("--pointer-width {bytes}: a cacheray trace has pointers of 4 or 8 bytes"))
}

#[cold]
fn flags_on_rtta(record: &Record<'_>, at: Place) -> Diagnostic {
    rules::FLAGS_ON_RTTA
        .at(at.offset)
        .record(at.seq)
        .field("tag")
        .expected(format!("{:#04x} ({})", record.kind().base(), record.kind().name()))
        .found(format!("{:#04x}", record.tag.0))
}

#[cold]
fn zero_tail(start: Place, end: Place, rest: u64) -> Diagnostic {
    rules::ZERO_TAIL
        .at(start.offset)
        .record(start.seq)
        .found(format!(
            "{} bytes of zeros, which read as {} accesses of 0 bytes",
            end.offset - start.offset + rest,
            end.seq - start.seq
        ))
        .help("the file was preallocated, or its end was never written; `repair` cuts it")
}

#[cold]
fn past_end(at: Place, name_bytes: u64, left: u64) -> Diagnostic {
    rules::TRUNCATED_STRING
        .at(at.offset)
        .record(at.seq)
        .field("type name")
        .expected(format!("{name_bytes} bytes"))
        .found(format!("{left} bytes left"))
}

/// Where the zero records begin that end a run, if it ends in any.
pub(crate) fn zeros_after(run: &[u8], stride: usize, at: Place, before: Option<Place>) -> Option<Place> {
    let is_zero = |record: &&[u8]| record.iter().all(|&b| b == 0);
    let zeros = run.rchunks_exact(stride).take_while(is_zero).count();
    let records = run.len() / stride;
    match zeros {
        0 => None,
        _ if zeros == records => before.or(Some(at)),
        _ => Some(at.after(records - zeros, stride)),
    }
}

/// The plain visitor behind [`Reader::read`].
struct EachRecord<F> {
    layout: Layout,
    visit: F,
}

impl<F: FnMut(&Record<'_>, Place) -> Result<(), Error>> Visit for EachRecord<F> {
    fn run(&mut self, window: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<usize, Error> {
        let stride = self.layout.access_bytes();
        let run = run_of(window, self.layout);
        for (n, bytes) in run.chunks_exact(stride).enumerate() {
            if let Ok((record, _)) = parse(bytes, self.layout) {
                (self.visit)(&record, at.after(n, stride))?;
            }
        }
        Ok(run.len())
    }

    fn rtta(&mut self, record: &Record<'_>, _raw: &[u8], at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        (self.visit)(record, at)
    }
}
