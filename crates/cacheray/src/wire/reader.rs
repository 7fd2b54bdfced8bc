//! Reads a trace from front to back: runs of accesses at full speed, recovery after damage.

use anytrace_core::index::{Mark, Part};
use anytrace_core::{Cursor, Diagnostic, Error, Input, OpenOptions, Passed, Place, Sink, Step, Steps, Stored};

use crate::options::OPTIONS;
use crate::rules;
use crate::wire::damage_start::{self, Before};
use crate::wire::detect;
use crate::wire::diagnostics::{flags_on_rtta, past_end, zero_tail};
use crate::wire::likeness::Likeness;
use crate::wire::marks::{self, begin};
use crate::wire::parse::{Fault, Need, access_run, parse_record};
use crate::wire::record::{Body, Layout, Record, Tag, Width};
use crate::wire::resync::{self, Trust};

/// Most accesses handed out at once: as many as fit a first-level cache.
const RUN_RECORDS_MAX: usize = 1024;

/// Records are framed this far ahead of the place where they are handed out: damage shows late.
const AHEAD_BYTES: usize = damage_start::BYTES + 64;

/// The place `records` accesses of `stride` bytes further.
pub(crate) fn after(at: Place, records: usize, stride: usize) -> Place {
    Place { seq: at.seq + records as u64, offset: at.offset + (records * stride) as u64 }
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

    /// Takes a place where reading can begin; see [`Reader::mark_every`].
    fn mark(&mut self, _mark: Mark) -> Result<(), Error> {
        Ok(())
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

/// What follows the place where framing ends.
enum Stop {
    /// Records, or the end of the data: framing starts again.
    GoesOn,
    /// Nothing. The zero bytes from `zero_tail` on, if there are any, are a zero tail.
    Ends { zero_tail: Option<Place> },
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

/// Reads a trace, record by record, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_cacheray::Reader;
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
///
/// let input = Input::open("app.trace".as_ref(), InputOptions::default())?;
/// let mut reader = Reader::new(input, &OpenOptions::default())?;
/// while let Some(step) = reader.next()? {
///     match step {
///         Step::Record(place, record) => println!("{:#x} {record:?}", place.offset),
///         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
///     }
/// }
/// # Ok::<(), anytrace_core::Error>(())
/// ```
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
    /// For [`Self::next`]: diagnostics that were not returned yet, all of them about what precedes `found`.
    steps: Steps,
    /// For [`Self::next`]: the record at the cursor, once it was found.
    found: Option<Place>,
    /// For [`Self::next`]: bytes of the record returned last. The cursor passes them when the next one is wanted, so
    /// that the record could borrow from the window.
    returned_bytes: usize,
    /// True when everything was read and reported.
    is_ended: bool,
    /// What is read of the trace.
    part: Part,
    /// Distance of marks, and the offset from which on the next is due.
    marks_every: u64,
    mark_from: u64,
}

impl Reader {
    /// Determines the layout from the first 64 KiB, as far as `endian` and `pointer_width` of the options do not give
    /// it. Of the limits, `record_bytes_max` is used.
    ///
    /// # Errors
    /// Usage, for a pointer width other than 4 and 8.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        options.only(crate::NAME, &["endian"], OPTIONS)?;
        let width = options.own.word("pointer-width").and_then(Width::from_name);
        let is_allowed = |layout: Layout| {
            width.is_none_or(|width| width == layout.width) && options.endian.is_none_or(|e| e == layout.endian)
        };
        let layout = detect::layout(&input.head(), is_allowed);
        let part = options.part.clone().unwrap_or_default();
        let mut cursor = Cursor::new(input);
        let begin = part.from.as_ref().map(|mark| begin(mark, &mut cursor)).transpose()?.unwrap_or_default();
        Ok(Self {
            cursor,
            layout,
            is_layout_given: width.is_some() || options.endian.is_some(),
            // Records without a name always fit.
            record_bytes_max: options.limits.record_bytes_max.max(64),
            seq: begin.seq,
            bytes_lost: 0,
            likeness: begin.likeness,
            ahead: Ahead::default(),
            zeros: begin.zeros,
            steps: Steps::default(),
            found: None,
            returned_bytes: 0,
            is_ended: false,
            part,
            marks_every: 0,
            mark_from: u64::MAX,
        })
    }

    /// Lets [`Self::walk`] hand out marks, one for about so many bytes.
    pub(crate) fn mark_every(&mut self, bytes: u64) {
        self.marks_every = bytes;
        self.mark_from = self.cursor.offset().saturating_add(bytes);
    }

    /// Byte order and pointer width, known from the start.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// True when the part that is read does not begin at the start of the trace.
    pub(crate) fn is_continued(&self) -> bool {
        self.part.from.is_some()
    }

    /// True when the options give byte order or pointer width.
    pub(crate) fn is_layout_given(&self) -> bool {
        self.is_layout_given
    }

    /// Compression layers that were removed, outermost first.
    pub(crate) fn layers(&self) -> &[anytrace_core::Layer] {
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

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
    ///
    /// The diagnostics are those that `info` reports: damage in front of the records that follow it, damage of
    /// compression layers at the end.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let place = loop {
            if let Some(Stored::Damage(diagnostic)) = self.steps.pop() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if let Some(place) = self.found.take() {
                break place;
            }
            if self.is_ended {
                return Ok(None);
            }
            let mut steps = std::mem::take(&mut self.steps);
            let found = self.find_next(&mut steps);
            self.steps = steps;
            self.found = found?;
        };
        let record = parse_record(self.cursor.window(), self.layout).ok();
        Ok(record.map(|(record, used)| {
            self.returned_bytes = used;
            Step::Record(place, record)
        }))
    }

    /// Calls `visit` with every step to the end of the trace: [`Self::next`] in a loop.
    ///
    /// # Errors
    /// I/O, and errors of `visit`, which end the pass.
    pub fn for_each(
        &mut self,
        mut visit: impl FnMut(Step<'_, Record<'_>>) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        while let Some(step) = self.next()? {
            visit(step)?;
        }
        Ok(self.passed())
    }

    /// Moves past the record returned last, to the next record or past the next damage.
    fn find_next(&mut self, sink: &mut dyn Sink) -> Result<Option<Place>, Error> {
        match std::mem::take(&mut self.returned_bytes) {
            0 => {}
            used => self.advance(used, 1),
        }
        if self.is_at_part_end() {
            self.is_ended = true;
            return Ok(None);
        }
        if self.look_ahead()? == 0 {
            match self.pass_stop(sink)? {
                Stop::GoesOn => self.ahead = Ahead::default(),
                Stop::Ends { .. } => {
                    self.finish(false, sink)?;
                    self.is_ended = true;
                }
            }
            return Ok(None);
        }
        let place = Place { seq: self.seq, offset: self.cursor.offset() };
        let window = self.cursor.window();
        let Ok((record, used)) = parse_record(window, self.layout) else {
            // Framed bytes are records; otherwise they are framed again from here, and the damage is reported.
            self.ahead = Ahead::default();
            return Ok(None);
        };
        if let Body::Access { .. } = record.body {
            let bytes = window.get(..used).unwrap_or_default();
            self.zeros = zeros_after(bytes, used, place, self.zeros);
        } else {
            if record.tag.has_flags() {
                sink.report(flags_on_rtta(&record, place))?;
            }
            self.zeros = None;
        }
        Ok(Some(place))
    }

    /// Hands runs of accesses and RTTA records to `visit` until the end of the trace, or of the part.
    pub(crate) fn walk<V: Visit>(mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<Passed, Error> {
        let stride = self.layout.access_bytes();
        let mut is_over = self.part.until.is_some();
        while !visit.is_done() {
            let limit = self.look_ahead()?;
            let limit = self.part.limit(self.cursor.offset(), limit);
            if limit == 0 {
                if self.is_at_part_end() {
                    break;
                }
                match self.pass_stop(sink)? {
                    Stop::GoesOn => self.ahead = Ahead::default(),
                    Stop::Ends { zero_tail } => {
                        if let Some(start) = zero_tail {
                            visit.zero_tail(start);
                        }
                        is_over = false;
                        break;
                    }
                }
                continue;
            }
            if self.cursor.offset() >= self.mark_from && self.ahead.stop.is_none() {
                visit.mark(self.mark())?;
            }
            let window = self.cursor.window();
            let at = Place { seq: self.seq, offset: self.cursor.offset() };
            let near = window.get(..limit.min(RUN_RECORDS_MAX * stride)).unwrap_or(window);
            let used = visit.run(near, at, sink)?;
            if let Some(run) = near.get(..used).filter(|run| !run.is_empty()) {
                self.zeros = zeros_after(run, stride, at, self.zeros);
                self.advance(used, (used / stride) as u64);
            } else if let Ok((record, used)) = parse_record(window, self.layout) {
                if record.tag.has_flags() {
                    sink.report(flags_on_rtta(&record, at))?;
                }
                visit.rtta(&record, window.get(..used).unwrap_or_default(), at, sink)?;
                self.zeros = None;
                self.advance(used, 1);
            }
        }
        self.finish(visit.is_done() || is_over, sink)
    }

    /// The state at the current position. It must not be one where framing stopped: a reader that begins here then
    /// frames the same records, because those that decide where damage begins follow (see [`Self::look_ahead`]).
    fn mark(&mut self) -> Mark {
        self.mark_from = self.cursor.offset().saturating_add(self.marks_every);
        let state = marks::encode(&self.likeness, self.zeros);
        Mark { offset: self.cursor.offset(), seq: self.seq, state }
    }

    fn is_at_part_end(&self) -> bool {
        self.part.until.is_some_and(|until| self.cursor.offset() >= until)
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
            match parse_record(rest, self.layout) {
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

    /// Handles the place where framing ends.
    fn pass_stop(&mut self, sink: &mut dyn Sink) -> Result<Stop, Error> {
        if self.ahead.misread > 0 {
            return self.pass_out_of_step(sink).map(|()| Stop::GoesOn);
        }
        match parse_record(self.cursor.window(), self.layout) {
            Ok((_, used)) => self.pass_long_name(used as u64, sink)?,
            Err(Need::Bad(fault)) => self.pass_bad_tag(fault, sink)?,
            Err(Need::More(need)) if need > self.record_bytes_max => self.pass_long_name(need, sink)?,
            Err(Need::More(need)) => return self.ends_inside(self.cursor.window().len() as u64, need, sink),
        }
        Ok(Stop::GoesOn)
    }

    /// The data end `have` bytes after the current record's start.
    fn ends_inside(&mut self, have: u64, need: u64, sink: &mut dyn Sink) -> Result<Stop, Error> {
        let at = Place { seq: self.seq, offset: self.cursor.offset() };
        let rest = self.cursor.window();
        let tail = self.zeros.filter(|_| rest.iter().all(|&b| b == 0));
        if let Some(start) = tail {
            sink.report(zero_tail(start, at, have))?;
        }
        let Some(&tag) = rest.first() else { return Ok(Stop::Ends { zero_tail: tail }) };
        let header = self.layout.add_bytes() as u64;
        if need > header && have >= header {
            let report = past_end(at, need - header, have - header);
            return self.recover(report, sink).map(|()| Stop::GoesOn);
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
        Ok(Stop::Ends { zero_tail: tail })
    }

    fn pass_bad_tag(&mut self, fault: Fault, sink: &mut dyn Sink) -> Result<(), Error> {
        let report = rules::BAD_TAG
            .at(self.cursor.offset())
            .record(self.seq)
            .field("tag")
            .expected("base tag 0 to 3 under the flags 0x40 and 0x80")
            .found(format!("{:#04x}", fault.tag.0));
        self.recover(report, sink)
    }

    fn pass_out_of_step(&mut self, sink: &mut dyn Sink) -> Result<(), Error> {
        let Ahead { framed, misread, .. } = self.ahead;
        let at = self.cursor.offset();
        let found = match self.cursor.window().get(framed) {
            Some(tag) if Tag(*tag).kind().is_none() => format!("{tag:#04x}"),
            _ => "an incomplete record".to_owned(),
        };
        let report = rules::BAD_TAG
            .at(at)
            .record(self.seq)
            .field("tag")
            .expected("base tag 0 to 3 under the flags 0x40 and 0x80")
            .found(format!("{found} at {:#x}, after {misread} records out of step from here on", at + framed as u64))
            .help("bytes are missing from this record, or it has too many");
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

    fn finish(&mut self, is_stopped: bool, sink: &mut dyn Sink) -> Result<Passed, Error> {
        if !is_stopped {
            // The last refill of a layer that ends with its data is the one that learns how it ended.
            self.cursor.fill(1)?;
            self.cursor.report_layers(sink)?;
        }
        Ok(self.passed())
    }

    fn passed(&self) -> Passed {
        Passed { records: self.seq, bytes: self.cursor.offset(), bytes_lost: self.bytes_lost }
    }
}

/// Where the zero records begin that end a run, if it ends in any.
pub(crate) fn zeros_after(run: &[u8], stride: usize, at: Place, before: Option<Place>) -> Option<Place> {
    let is_zero = |record: &&[u8]| record.iter().all(|&b| b == 0);
    let zeros = run.rchunks_exact(stride).take_while(is_zero).count();
    let records = run.len() / stride;
    match zeros {
        0 => None,
        _ if zeros == records => before.or(Some(at)),
        _ => Some(after(at, records - zeros, stride)),
    }
}
