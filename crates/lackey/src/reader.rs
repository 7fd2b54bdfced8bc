//! Drives the parser over an input of any size: records, Valgrind's messages, other text and what is damaged, in the
//! order of the bytes, every byte exactly once.

use std::borrow::Cow;

use anytrace_core::{Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Rule, Sink, text};

use crate::message::message;
use crate::parse::{Fault, Fields, Need, canonical, is_cut, read_line, record_behind_text};
use crate::record::Record;
use crate::rules;

/// Longest line held at once, where the caller's limit is not lower. Valgrind's records have at most 26 bytes.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// A line that is no record, or a part of one. Records and pieces together are all bytes of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// One of Valgrind's messages.
    Message(&'a [u8]),
    /// Other text: what the traced program wrote, most of the time.
    Text(&'a [u8]),
    /// An empty line.
    Space(&'a [u8]),
    /// Bytes that are none of these; why was reported.
    Lost(&'a [u8]),
}

/// A part of a trace, line ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record.
    Record(Record<'a>),
    /// Anything else.
    Piece(Piece<'a>),
}

/// Where a record or piece stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Offset of its first byte.
    pub offset: u64,
    /// Number of the record, from 0; of other pieces, the number of the next record.
    pub seq: u64,
    /// Its line, from 1.
    pub line: u64,
    /// Its first column, from 1.
    pub column: u64,
}

impl Place {
    /// A complaint about the byte `at` of the record or piece.
    #[cold]
    pub(crate) fn complaint(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        let at = at as u64;
        rule.at(self.offset + at).line(self.line, self.column + at).record(self.seq)
    }
}

/// What a pass does with what it meets.
pub(crate) trait Visit {
    /// Takes a record.
    fn record(&mut self, record: &Record<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error>;

    /// Takes anything else.
    fn piece(&mut self, piece: Piece<'_>, at: Place, sink: &mut dyn Sink) -> Result<(), Error>;

    /// True when nothing further is wanted.
    fn is_done(&self) -> bool {
        false
    }
}

/// What a pass came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Passed {
    /// Records read.
    pub records: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Bytes that were no part of any line a trace has.
    pub bytes_lost: u64,
}

/// Reads a trace from an [`Input`].
///
/// ```
/// use anytrace_core::{Collect, Input, OpenOptions};
/// use anytrace_lackey::{Item, Reader};
///
/// let log = b"==7== Lackey, an example Valgrind tool\nI  0401ab70,3\n S 1fff000698,8\n";
/// let mut written = 0;
/// let reader = Reader::new(Input::from_bytes("x.lackey", log.to_vec()), &OpenOptions::default());
/// let passed = reader.for_each(&mut Collect::default(), |item, _place| {
///     if let Item::Record(record) = item {
///         written += u64::from(record.size);
///     }
///     Ok(())
/// })?;
/// assert_eq!((passed.records, written), (2, 11));
/// # Ok::<(), anytrace_core::Error>(())
/// ```
pub struct Reader {
    cursor: Cursor,
    state: State,
}

/// What is carried from window to window.
struct State {
    line_bytes_max: usize,
    offset: u64,
    seq: u64,
    line: u64,
    column: u64,
    bytes_lost: u64,
    /// What the line is whose beginning was told already.
    long: Option<Long>,
    /// The record before which text was complained about last: text right behind text is one complaint.
    complained_at: Option<u64>,
}

/// A line told in pieces.
struct Long {
    class: Class,
    /// A complaint that waits for the end of what it is about.
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
    /// Starts at the first byte. Of the options, the limits count.
    pub fn new(input: Input, options: &OpenOptions) -> Self {
        let max = options.limits.record_bytes_max.clamp(64, LINE_BYTES_MAX);
        let state = State {
            line_bytes_max: usize::try_from(max).unwrap_or(1 << 20),
            offset: 0,
            seq: 0,
            line: 1,
            column: 1,
            bytes_lost: 0,
            long: None,
            complained_at: None,
        };
        Self { cursor: Cursor::new(input), state }
    }

    /// Compression layers around the trace, outermost first.
    pub fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// Visits every record and piece to the end of the input. Damage is reported to the sink and read past.
    ///
    /// # Errors
    /// I/O, and what the visitor or the sink returns.
    pub fn for_each(
        self,
        sink: &mut dyn Sink,
        visit: impl FnMut(Item<'_>, Place) -> Result<(), Error>,
    ) -> Result<Passed, Error> {
        struct Each<F>(F);
        impl<F: FnMut(Item<'_>, Place) -> Result<(), Error>> Visit for Each<F> {
            fn record(&mut self, record: &Record<'_>, at: Place, _: &mut dyn Sink) -> Result<(), Error> {
                self.0(Item::Record(*record), at)
            }

            fn piece(&mut self, piece: Piece<'_>, at: Place, _: &mut dyn Sink) -> Result<(), Error> {
                self.0(Item::Piece(piece), at)
            }
        }
        self.walk(&mut Each(visit), sink)
    }

    /// [`Self::for_each`] for passes of this crate.
    pub(crate) fn walk<V: Visit>(mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<Passed, Error> {
        let mut is_last = false;
        loop {
            let window = self.cursor.window();
            let used = self.state.window(window, is_last, visit, sink)?;
            let left = window.len() - used;
            self.cursor.advance(used);
            if visit.is_done() || is_last && left == 0 {
                break;
            }
            // Growing by halves keeps the reading of a long line linear, and asks a slow pipe for little.
            is_last = self.cursor.fill(left + left / 2 + 1)? == left;
        }
        if let Some(diagnostic) = self.state.long.and_then(|long| long.pending) {
            sink.report(diagnostic)?;
        }
        if !visit.is_done() {
            self.cursor.report_layers(sink)?;
        }
        Ok(Passed { records: self.state.seq, bytes: self.state.offset, bytes_lost: self.state.bytes_lost })
    }
}

impl State {
    /// Visits what is whole in the window; returns how many bytes that is.
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

    #[inline(always)]
    fn place(&self) -> Place {
        Place { offset: self.offset, seq: self.seq, line: self.line, column: self.column }
    }

    /// Goes past a record and its line end.
    #[inline(always)]
    fn pass_record(&mut self, bytes: usize) {
        self.seq += 1;
        self.line += 1;
        self.column = 1;
        self.offset += bytes as u64;
    }

    /// Goes past a piece, which may have no line end.
    fn pass(&mut self, piece: &[u8]) {
        self.offset += piece.len() as u64;
        if piece.last() == Some(&b'\n') {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += piece.len() as u64;
        }
    }

    /// Takes the next line, or a piece of a long one; returns its bytes, 0 where more are needed.
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
            self.whole(line, end.is_some(), visit, sink)?;
        }
        Ok(line.len())
    }

    /// A line that is all at hand.
    fn whole<V: Visit>(&mut self, line: &[u8], has_end: bool, visit: &mut V, sink: &mut dyn Sink) -> Result<(), Error> {
        let bare = line.strip_suffix(b"\n").unwrap_or(line);
        match read_line(bare) {
            Ok(fields) => return self.record(fields, line, has_end, visit, sink),
            Err(_) if !has_end && is_cut(bare) => {
                let report = self.place().complaint(&rules::TRUNCATED, bare.len());
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
        let (class, complaint) = self.judge(bare);
        if let Some(complaint) = complaint {
            sink.report(complaint.skipped(line.len() as u64))?;
        }
        if class == Class::Message && !has_end {
            let report = self.place().complaint(&rules::TRUNCATED, bare.len());
            sink.report(report.expected("the rest of Valgrind's line").found("end of input"))?;
        }
        if class == Class::Text {
            self.complain_of_text(bare, sink)?;
        }
        self.piece(class, line, visit, sink)
    }

    /// What stands on a line before a record: what a program wrote without a line end; or, where two processes write into
    /// one log, the beginning of another record.
    fn before_record<V: Visit>(
        &mut self,
        before: &[u8],
        bare: &[u8],
        visit: &mut V,
        sink: &mut dyn Sink,
    ) -> Result<(), Error> {
        let (mut class, mut complaint) = self.judge(before);
        if is_cut(before) || read_line(before).is_ok() {
            class = Class::Lost;
            let fault = match read_line(bare) {
                Err(Need::Bad(fault)) => fault,
                _ => Fault { field: "line end", expected: "the end of the line", at: before.len() },
            };
            complaint = Some(self.bad(&fault, bare));
        }
        let complaint = match complaint {
            Some(complaint) => complaint.skipped(before.len() as u64),
            None => self.place().complaint(&rules::TEXT_BEFORE_RECORD, 0).found(shown(before)),
        };
        sink.report(complaint)?;
        self.piece(class, before, visit, sink)
    }

    /// What a line is that is no record, and what is to be said where it is damaged.
    fn judge(&self, bare: &[u8]) -> (Class, Option<Diagnostic>) {
        if let Err(Need::Bad(fault)) = read_line(bare) {
            (Class::Lost, Some(self.bad(&fault, bare)))
        } else if let Some(at) = control(bare) {
            let complaint = self.place().complaint(&rules::NOT_TEXT, at).found(shown_byte(bare, at));
            (Class::Lost, Some(complaint))
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
            let report = self.place().complaint(&rules::NO_LINE_END, line.len());
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
        let (class, complaint) = self.judge(piece);
        let pending = complaint.map(|complaint| complaint.skipped(piece.len() as u64));
        if class != Class::Lost {
            let report = self.place().complaint(&rules::LINE_TOO_LONG, self.line_bytes_max);
            sink.report(report.expected(format!("at most {} bytes", self.line_bytes_max)))?;
        }
        if class == Class::Text {
            self.complain_of_text(piece, sink)?;
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
            long.pending = Some(self.place().complaint(&rules::NOT_TEXT, at).found(shown_byte(piece, at)));
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

    fn bad(&self, fault: &Fault, line: &[u8]) -> Diagnostic {
        let found = line.get(fault.at..).map_or(&[][..], |rest| &rest[..rest.len().min(SHOWN_BYTES)]);
        let found = if found.is_empty() { Cow::Borrowed("end of line") } else { shown(found).into() };
        let report = self.place().complaint(&rules::BAD_LINE, fault.at);
        report.field(fault.field).expected(fault.expected).found(found)
    }

    /// Complains of text, once where several lines of it stand together.
    fn complain_of_text(&mut self, line: &[u8], sink: &mut dyn Sink) -> Result<(), Error> {
        if self.complained_at.replace(self.seq) == Some(self.seq) {
            return Ok(());
        }
        sink.report(self.place().complaint(&rules::TEXT, 0).found(shown(line)))
    }
}

/// The record behind something else on a line without its end, and where it begins.
fn record_behind(bare: &[u8]) -> Option<(usize, Fields)> {
    let at = record_behind_text(bare)?;
    read_line(bare.get(at..)?).ok().map(|fields| (at, fields))
}

/// Most bytes of a line that a complaint shows.
const SHOWN_BYTES: usize = 40;

/// The beginning of some bytes, quoted and escaped.
fn shown(bytes: &[u8]) -> String {
    let cut = bytes.get(..SHOWN_BYTES);
    let mut out = Vec::new();
    text::push_quoted(&mut out, cut.unwrap_or(bytes));
    if cut.is_some_and(|cut| cut.len() < bytes.len()) {
        out.extend_from_slice("…".as_bytes());
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Where a control character stands that no text has.
fn control(line: &[u8]) -> Option<usize> {
    let is_control =
        |byte: &u8| *byte < 0x20 && !matches!(byte, b'\t' | b'\r' | 0x07 | 0x08 | 0x0c | 0x1b) || *byte == 0x7f;
    line.iter().position(is_control)
}

fn shown_byte(line: &[u8], at: usize) -> String {
    format!("a byte of {:#04x}", line.get(at).copied().unwrap_or(0))
}
