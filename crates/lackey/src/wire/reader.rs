//! Drives the parser over an input of any size: records, Valgrind's messages, other text and what is damaged, in the
//! order of the bytes, with every byte exactly once.

use std::borrow::Cow;
use std::ops::Range;

use anytrace_core::{
    Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Passed, Place, Rule, Sink, Step, Steps, Stored,
};

use crate::rules;
use crate::wire::excerpt::{SHOWN_BYTES, control, shown, shown_byte};
use crate::wire::marks::begin;
use crate::wire::message::message;
use crate::wire::parse::{Fault, FieldFault, Fields, canonical, is_cut, read_line, record_behind_text, record_of};
use crate::wire::record::{Layout, Record};

/// Longest line buffered, unless the caller's limit is lower. Valgrind's records have at most 26 bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A line that is not a record, or a part of one. Records and pieces together are all bytes of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    /// One of Valgrind's messages.
    Message(&'a [u8]),
    /// Other text: usually output of the traced program.
    Text(&'a [u8]),
    /// An empty line.
    Space(&'a [u8]),
    /// Bytes that are none of these; the reason was reported.
    Lost(&'a [u8]),
}

/// Where a record or piece is, with its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinePlace {
    /// Offset of its first byte.
    pub(crate) offset: u64,
    /// Number of the record, from 0; of other pieces, the number of the next record.
    pub(crate) seq: u64,
    /// Its line, from 1.
    pub(crate) line: u64,
    /// Its first column, from 1.
    pub(crate) column: u64,
}

impl LinePlace {
    pub(crate) fn place(self) -> Place {
        Place { offset: self.offset, seq: self.seq }
    }

    /// A diagnostic about the byte `at` of the record or piece.
    #[cold]
    pub(crate) fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        let at = at as u64;
        rule.at(self.offset + at).line(self.line, self.column + at).record(self.seq)
    }
}

/// The visitor of a pass.
pub(crate) trait Visit {
    /// Processes a record.
    fn record(&mut self, record: &Record<'_>, at: LinePlace, sink: &mut dyn Sink) -> Result<(), Error>;

    /// Processes anything else.
    fn piece(&mut self, piece: Piece<'_>, at: LinePlace, sink: &mut dyn Sink) -> Result<(), Error>;

    /// True when nothing more is needed.
    fn is_done(&self) -> bool {
        false
    }
}

/// Reads a trace, record by record, past everything else, in one pass and bounded memory.
///
/// Messages of Valgrind and empty lines between the records are skipped. Other text is reported, because it is not
/// known whose it is.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_lackey::Reader;
///
/// let input = Input::open("app.lackey".as_ref(), InputOptions::default())?;
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
    state: ReaderState,
    layout: Layout,
    /// For [`Self::next`]: true when no bytes follow the window.
    is_last: bool,
    /// For [`Self::next`]: diagnostics that were not returned yet, all of them about what precedes `found`.
    steps: Steps,
    /// For [`Self::next`]: the record that was found, and its bytes in the window.
    found: Option<(Place, Range<usize>)>,
    /// For [`Self::next`]: bytes of the window that were read. The cursor passes them when the next record is wanted,
    /// so that this one can borrow from the window.
    read_bytes: usize,
    /// True when everything was read and reported.
    is_ended: bool,
    /// Where the part that is read ends; none for the end of the trace.
    until: Option<u64>,
    is_continued: bool,
}

/// State that is kept from window to window.
struct ReaderState {
    line_bytes_max: usize,
    offset: u64,
    seq: u64,
    line: u64,
    column: u64,
    bytes_lost: u64,
    /// The kind of the line whose beginning has already been passed to the visitor.
    long: Option<Long>,
    /// The record before which text was reported last: text right after text is reported once.
    text_reported_at: Option<u64>,
}

/// A line that is passed to the visitor in pieces.
struct Long {
    class: Class,
    /// A diagnostic that waits for the end of what it concerns.
    pending: Option<Diagnostic>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Message,
    Text,
    Lost,
}

impl Class {
    fn piece(self, bytes: &[u8]) -> Piece<'_> {
        match self {
            Self::Message => Piece::Message(bytes),
            Self::Text => Piece::Text(bytes),
            Self::Lost => Piece::Lost(bytes),
        }
    }
}

impl Reader {
    /// Starts at the first byte, or at that of the part. Of the options, only `part` and `record_bytes_max` of the
    /// limits are used: longer lines, at most of 1 MiB, are read in pieces.
    ///
    /// # Errors
    /// Usage, where reading cannot begin at the part's mark.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let max = options.limits.record_bytes_max.clamp(64, LINE_BYTES_MAX);
        let mut cursor = Cursor::new(input);
        let from = options.part.as_ref().and_then(|part| part.from.as_ref());
        let (offset, seq) = from.map_or((0, 0), |mark| (mark.offset, mark.seq));
        let line = from.map_or(Ok(1), |mark| begin(mark, &mut cursor))?;
        let state = ReaderState {
            line_bytes_max: usize::try_from(max).unwrap_or(1 << 20),
            offset,
            seq,
            line,
            column: 1,
            bytes_lost: 0,
            long: None,
            text_reported_at: None,
        };
        Ok(Self {
            cursor,
            state,
            layout: Layout::default(),
            is_last: false,
            steps: Steps::default(),
            found: None,
            read_bytes: 0,
            is_ended: false,
            until: options.part.as_ref().and_then(|part| part.until),
            is_continued: from.is_some(),
        })
    }

    /// The layout, which is always the same.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// True when the part that is read does not begin at the start of the log.
    pub(crate) fn is_continued(&self) -> bool {
        self.is_continued
    }

    /// Compression layers around the trace, outermost first.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
    ///
    /// The diagnostics are those that `info` reports: about a line before its record, about compression layers at the
    /// end.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let (place, range) = loop {
            if let Some(Stored::Damage(diagnostic)) = self.steps.pop() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if let Some(found) = self.found.take() {
                break found;
            }
            if self.is_ended {
                return Ok(None);
            }
            let mut steps = std::mem::take(&mut self.steps);
            let found = self.find_next(&mut steps);
            self.steps = steps;
            self.found = found?;
        };
        let record = self.cursor.window().get(range).and_then(record_of);
        Ok(record.map(|record| Step::Record(place, record)))
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
        Ok(self.state.passed())
    }

    /// Reads the next line, or more bytes; returns its record.
    fn find_next(&mut self, sink: &mut dyn Sink) -> Result<Option<(Place, Range<usize>)>, Error> {
        self.cursor.advance(std::mem::take(&mut self.read_bytes));
        let (window, is_part_end) = at_hand(&self.cursor, self.until);
        let is_last = self.is_last || is_part_end;
        let mut record = FoundRecord(None);
        self.read_bytes = match canonical(window).filter(|_| self.state.column == 1) {
            Some((_, used)) => {
                record.0 = Some((self.state.place().place(), used));
                self.state.pass_record(used);
                used
            }
            None if window.is_empty() => 0,
            None => self.state.line(window, is_last, &mut record, sink)?,
        };
        if self.read_bytes == 0 {
            let left = window.len();
            if is_last && left == 0 {
                self.is_ended = true;
                self.finish(sink)?;
            } else {
                self.is_last = self.fill(left)?;
            }
        }
        // A record ends with its line.
        Ok(record.0.map(|(place, bytes)| (place, self.read_bytes.saturating_sub(bytes)..self.read_bytes)))
    }

    /// Passes every record and piece to a visitor: the loop of this crate's verbs.
    pub(crate) fn walk<V: Visit>(mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<Passed, Error> {
        let mut is_last = false;
        loop {
            let (window, is_part_end) = at_hand(&self.cursor, self.until);
            is_last |= is_part_end;
            let used = self.state.window(window, is_last, visit, sink)?;
            let left = window.len() - used;
            self.cursor.advance(used);
            if visit.is_done() || is_last && left == 0 {
                break;
            }
            is_last = self.fill(left)?;
        }
        if visit.is_done() { Ok(self.state.passed()) } else { self.finish(sink) }
    }

    /// Reads more bytes after the `left` in the window; true when none follow. Growth by halves keeps the reading of a
    /// long line linear, and requests little from a slow pipe.
    fn fill(&mut self, left: usize) -> Result<bool, Error> {
        Ok(self.cursor.fill(left + left / 2 + 1)? == left)
    }

    /// Reports what only the end shows.
    fn finish(&mut self, sink: &mut dyn Sink) -> Result<Passed, Error> {
        if let Some(diagnostic) = self.state.long.take().and_then(|long| long.pending) {
            sink.report(diagnostic)?;
        }
        self.cursor.report_layers(sink)?;
        Ok(self.state.passed())
    }
}

/// The window as far as it belongs to the part, and whether the part ends with it.
fn at_hand(cursor: &Cursor, until: Option<u64>) -> (&[u8], bool) {
    let window = cursor.window();
    let left = until.map(|until| until.saturating_sub(cursor.offset()));
    match left.and_then(|left| window.get(..usize::try_from(left).ok()?)) {
        Some(window) => (window, true),
        None => (window, false),
    }
}

/// The visitor of [`Reader::next`]: the place of a line's record, and how many bytes at the end of the line are its.
struct FoundRecord(Option<(Place, usize)>);

impl Visit for FoundRecord {
    fn record(&mut self, record: &Record<'_>, at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.0 = Some((at.place(), record.text.len()));
        Ok(())
    }

    fn piece(&mut self, _piece: Piece<'_>, _at: LinePlace, _sink: &mut dyn Sink) -> Result<(), Error> {
        Ok(())
    }
}

impl ReaderState {
    /// Visits the complete lines in the window; returns their length in bytes.
    fn window<V: Visit>(
        &mut self,
        window: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<usize, Error> {
        let mut at = 0;
        while let Some(rest) = window.get(at..).filter(|rest| !rest.is_empty()) {
            if self.column == 1
                && let Some((record, used)) = canonical(rest)
            {
                visit.record(&record, self.place(), sink)?;
                self.pass_record(used);
                at += used;
            } else {
                match self.line(rest, is_last, visit, sink)? {
                    0 => break,
                    used => at += used,
                }
            }
            if visit.is_done() {
                break;
            }
        }
        Ok(at)
    }

    fn passed(&self) -> Passed {
        Passed { records: self.seq, bytes: self.offset, bytes_lost: self.bytes_lost }
    }

    #[inline(always)]
    fn place(&self) -> LinePlace {
        LinePlace { offset: self.offset, seq: self.seq, line: self.line, column: self.column }
    }

    /// Advances past a record and its line end.
    #[inline(always)]
    fn pass_record(&mut self, bytes: usize) {
        self.seq += 1;
        self.line += 1;
        self.column = 1;
        self.offset += bytes as u64;
    }

    /// Advances past a piece, which may have no line end.
    fn pass(&mut self, piece: &[u8]) {
        self.offset += piece.len() as u64;
        if piece.last() == Some(&b'\n') {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += piece.len() as u64;
        }
    }

    /// Processes the next line, or a piece of a long one; returns its length in bytes, or 0 if more bytes are needed.
    #[cold]
    #[inline(never)]
    fn line<V: Visit>(
        &mut self,
        rest: &[u8],
        is_last: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<usize, Error> {
        let look = rest.get(..self.line_bytes_max).unwrap_or(rest);
        let end = memchr::memchr(b'\n', look);
        let is_long = end.is_none() && look.len() == self.line_bytes_max;
        if end.is_none() && !is_long && !is_last {
            return Ok(0);
        }
        let line = look.get(..end.map_or(look.len(), |end| end + 1)).unwrap_or(look);
        if let Some(long) = self.long.take() {
            self.go_on(long, line, end.is_some(), visit, sink)?;
        } else if is_long {
            self.begin_long(line, visit, sink)?;
        } else {
            self.complete_line(line, end.is_some(), visit, sink)?;
        }
        Ok(line.len())
    }

    /// A line that is completely in the window.
    fn complete_line<V: Visit>(
        &mut self,
        line: &[u8],
        has_end: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        match read_line(bare) {
            Ok(fields) => return self.record(fields, line, has_end, visit, sink),
            Err(_) if !has_end && is_cut(bare) => {
                let report = self.place().diagnostic(&rules::TRUNCATED, bare.len());
                sink.report(
                    report.expected("the rest of the record").found("end of input").skipped(line.len() as u64),
                )?;
                return self.piece(Class::Lost, line, visit, sink);
            }
            Err(_) => {}
        }
        if let Some((at, fields)) = record_behind(bare) {
            let (before, rest) = line.split_at(at);
            self.before_record(before, bare, visit, sink)?;
            return self.record(fields, rest, has_end, visit, sink);
        }
        if bare.trim_ascii().is_empty() {
            visit.piece(Piece::Space(line), self.place(), sink)?;
            self.pass(line);
            return Ok(());
        }
        let (class, diagnostic) = self.judge(bare);
        if let Some(diagnostic) = diagnostic {
            sink.report(diagnostic.skipped(line.len() as u64))?;
        }
        if class == Class::Message && !has_end {
            let report = self.place().diagnostic(&rules::TRUNCATED, bare.len());
            sink.report(report.expected("the rest of Valgrind's line").found("end of input"))?;
        }
        if class == Class::Text {
            self.report_text(bare, sink)?;
        }
        self.piece(class, line, visit, sink)
    }

    /// The text on a line before a record: output that a program wrote without a line end; or, if two processes write
    /// into one log, the beginning of another record.
    fn before_record<V: Visit>(
        &mut self,
        before: &[u8],
        bare: &[u8],
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (mut class, mut diagnostic) = self.judge(before);
        if is_cut(before) || read_line(before).is_ok() {
            class = Class::Lost;
            let fault = match read_line(bare) {
                Err(Fault::Damaged(fault)) => fault,
                _ => FieldFault { field: "line end", expected: "the end of the line", at: before.len() },
            };
            diagnostic = Some(self.bad(&fault, bare));
        }
        let diagnostic = match diagnostic {
            Some(diagnostic) => diagnostic.skipped(before.len() as u64),
            None => self.place().diagnostic(&rules::TEXT_BEFORE_RECORD, 0).found(shown(before)),
        };
        sink.report(diagnostic)?;
        self.piece(class, before, visit, sink)
    }

    /// What a line is that is not a record, and the diagnostic if it is damaged.
    fn judge(&self, bare: &[u8]) -> (Class, Option<Diagnostic>) {
        if let Err(Fault::Damaged(fault)) = read_line(bare) {
            (Class::Lost, Some(self.bad(&fault, bare)))
        } else if let Some(at) = control(bare) {
            let diagnostic = self.place().diagnostic(&rules::NOT_TEXT, at).found(shown_byte(bare, at));
            (Class::Lost, Some(diagnostic))
        } else if message(bare).is_some() {
            (Class::Message, None)
        } else {
            (Class::Text, None)
        }
    }

    fn record<V: Visit>(
        &mut self,
        fields: Fields,
        line: &[u8],
        has_end: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if !has_end {
            let report = self.place().diagnostic(&rules::NO_LINE_END, line.len());
            sink.report(report.expected("a line end").found("end of input"))?;
        }
        visit.record(&fields.record(line), self.place(), sink)?;
        self.pass_record(line.len());
        Ok(())
    }

    fn piece<V: Visit>(&mut self, class: Class, bytes: &[u8], visit: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        if class == Class::Lost {
            self.bytes_lost += bytes.len() as u64;
        }
        visit.piece(class.piece(bytes), self.place(), sink)?;
        self.pass(bytes);
        Ok(())
    }

    /// The first piece of a line longer than the limit.
    fn begin_long<V: Visit>(&mut self, piece: &[u8], visit: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        let (class, diagnostic) = self.judge(piece);
        let pending = diagnostic.map(|diagnostic| diagnostic.skipped(piece.len() as u64));
        if class != Class::Lost {
            let report = self.place().diagnostic(&rules::LINE_TOO_LONG, self.line_bytes_max);
            sink.report(report.expected(format!("at most {} bytes", self.line_bytes_max)))?;
        }
        if class == Class::Text {
            self.report_text(piece, sink)?;
        }
        self.piece(class, piece, visit, sink)?;
        self.long = Some(Long { class, pending });
        Ok(())
    }

    /// A further piece of a long line, the last one where it has the line end.
    fn go_on<V: Visit>(
        &mut self,
        mut long: Long,
        piece: &[u8],
        has_end: bool,
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        if long.class != Class::Lost
            && let Some(at) = control(piece.strip_suffix(b"\n").unwrap_or(piece))
        {
            // The rest of the line is lost with it.
            long.class = Class::Lost;
            long.pending = Some(self.place().diagnostic(&rules::NOT_TEXT, at).found(shown_byte(piece, at)));
        }
        if long.class == Class::Lost
            && let Some(pending) = &mut long.pending
        {
            pending.skipped_bytes += piece.len() as u64;
        }
        self.piece(long.class, piece, visit, sink)?;
        if !has_end {
            self.long = Some(long);
        } else if let Some(pending) = long.pending {
            sink.report(pending)?;
        }
        Ok(())
    }

    fn bad(&self, fault: &FieldFault, line: &[u8]) -> Diagnostic {
        let found = line.get(fault.at..).map_or(&[][..], |rest| &rest[..rest.len().min(SHOWN_BYTES)]);
        let found = if found.is_empty() { Cow::Borrowed("end of line") } else { shown(found).into() };
        let report = self.place().diagnostic(&rules::BAD_LINE, fault.at);
        report.field(fault.field).expected(fault.expected).found(found)
    }

    /// Reports text, once for consecutive lines of it.
    fn report_text(&mut self, line: &[u8], sink: &mut dyn Sink) -> Result<(), Error> {
        if self.text_reported_at.replace(self.seq) == Some(self.seq) {
            return Ok(());
        }
        sink.report(self.place().diagnostic(&rules::TEXT, 0).found(shown(line)))
    }
}

/// The record after other text on a line without its line end, and where it begins.
fn record_behind(bare: &[u8]) -> Option<(usize, Fields)> {
    let at = record_behind_text(bare)?;
    read_line(bare.get(at..)?).ok().map(|fields| (at, fields))
}

#[cfg(test)]
mod tests;
