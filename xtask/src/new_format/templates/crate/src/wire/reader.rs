//! Drives the parser over an input of any size: records and damage in the order of the bytes.

use std::collections::VecDeque;

use anytrace_core::{
    Collect, Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Passed, Place, Rule, Step, text::escaped,
};

use crate::rules;
use crate::wire::marks::begin;
use crate::wire::parse::{Fault, Need, parse};
use crate::wire::probe::unknown_version;
use crate::wire::record::{HEADER, Layout, Record};

/// Longest line that is read, unless the caller's limit is lower.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Most bytes of a line that a diagnostic shows.
const SHOWN_BYTES: usize = 40;

/// Reads a trace, record by record, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_newformat::Reader;
///
/// let input = Input::open("app.newformat".as_ref(), InputOptions::default())?;
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
    line_bytes_max: usize,
    /// The next line, from 1.
    line: u64,
    /// The number of the next record.
    seq: u64,
    bytes_lost: u64,
    /// True when no bytes follow the window.
    is_last: bool,
    /// True when everything was read.
    is_ended: bool,
    /// Where the part that is read ends; none for the end of the trace.
    until: Option<u64>,
    /// Bytes of the window that were read. The cursor passes them when the next record is wanted, so that this one can
    /// borrow from the window.
    read_bytes: usize,
    /// Diagnostics that were not returned yet, all of them about what precedes `found`.
    damage: VecDeque<Diagnostic>,
    /// The record with which the window begins, until it is returned.
    found: Option<Place>,
}

/// What the window begins with; lengths are in bytes.
enum Line {
    /// A line with its end.
    Complete(usize),
    /// The end of the input inside a line.
    Cut(usize),
    /// A part of a line that is longer than the limit.
    Part(usize),
}

impl Reader {
    /// Starts at the first byte, or at that of the part. Of the options, only `part` and `record_bytes_max` of the limits
    /// are used: longer lines are damage.
    ///
    /// # Errors
    /// Usage, where reading cannot begin at the part's mark.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let max = options.limits.record_bytes_max.clamp(64, LINE_BYTES_MAX);
        let mut cursor = Cursor::new(input);
        let from = options.part.as_ref().and_then(|part| part.from.as_ref());
        let line = from.map_or(Ok(1), |mark| begin(mark, &mut cursor))?;
        Ok(Self {
            cursor,
            layout: Layout::default(),
            line_bytes_max: usize::try_from(max).unwrap_or(1 << 20),
            line,
            seq: from.map_or(0, |mark| mark.seq),
            bytes_lost: 0,
            is_last: false,
            is_ended: false,
            until: options.part.as_ref().and_then(|part| part.until),
            read_bytes: 0,
            damage: VecDeque::new(),
            found: None,
        })
    }

    /// The layout, which is always the same.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Compression layers around the trace, outermost first.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let place = loop {
            if let Some(diagnostic) = self.damage.pop_front() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if let Some(place) = self.found.take() {
                break place;
            }
            if self.is_ended {
                return Ok(None);
            }
            self.cursor.advance(std::mem::take(&mut self.read_bytes));
            self.found = self.read_line()?;
        };
        self.seq += 1;
        // Only this borrow may last longer than the call, so the line is parsed again.
        let record = parse(self.cursor.window(), &self.layout).ok();
        Ok(record.map(|(record, _)| Step::Record(place, record)))
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

    /// What was read so far.
    pub(crate) fn passed(&self) -> Passed {
        let bytes = self.cursor.offset() + self.read_bytes as u64;
        Passed { records: self.seq, bytes, bytes_lost: self.bytes_lost }
    }

    /// The line of the record that was returned last.
    pub(crate) fn record_line(&self) -> u64 {
        self.line.saturating_sub(1)
    }

    /// Reads the next line; returns the place of its record.
    fn read_line(&mut self) -> Result<Option<Place>, Error> {
        let Some(line) = self.find_line()? else {
            let mut layers = Collect::default();
            self.cursor.report_layers(&mut layers)?;
            self.damage.extend(layers.0);
            self.is_ended = true;
            return Ok(None);
        };
        match line {
            Line::Complete(bytes) => self.complete_line(bytes),
            Line::Cut(bytes) => {
                let damage = self.diagnostic(&rules::TRUNCATED, bytes);
                let damage = damage.expected("the rest of the line").found("end of input");
                self.lose(damage, bytes as u64);
                self.read_bytes = bytes;
                Ok(None)
            }
            Line::Part(_) => {
                let expected = format!("at most {} bytes", self.line_bytes_max);
                let damage = self.diagnostic(&rules::LINE_TOO_LONG, 0).expected(expected);
                let bytes = self.skip_line()?;
                self.lose(damage, bytes);
                self.line += 1;
                Ok(None)
            }
        }
    }

    fn complete_line(&mut self, bytes: usize) -> Result<Option<Place>, Error> {
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        let is_first = place.offset == 0;
        let window = self.cursor.window();
        let line = window.get(..bytes.saturating_sub(1)).unwrap_or_default();
        let shown = format!("\"{}\"", escaped(line.get(..SHOWN_BYTES).unwrap_or(line)));
        if is_first && let Some(version) = unknown_version(line) {
            let damage = self.diagnostic(&rules::VERSION, HEADER.len() - 1).expected("1").found(version.to_owned());
            let skipped = self.cursor.skip(u64::MAX)?;
            self.lose(damage, skipped);
            return Ok(None);
        }
        let is_header = is_first && line == HEADER;
        let parsed = parse(window, &self.layout).map(|_| ());
        if is_first && !is_header {
            let expected = format!("\"{}\"", escaped(HEADER));
            let damage = self.diagnostic(&rules::BAD_HEADER, 0).expected(expected).found(shown);
            self.lose(damage, if parsed.is_ok() { 0 } else { bytes as u64 });
        } else if let (false, Err(Need::Bad(Fault { field, expected, at }))) = (is_header, parsed) {
            let damage = self.diagnostic(&rules::BAD_RECORD, at).field(field).expected(expected).found(shown);
            self.lose(damage, bytes as u64);
        }
        self.line += 1;
        self.read_bytes = bytes;
        Ok(parsed.is_ok().then_some(place))
    }

    /// Finds the end of the line with which the window begins; `None` at the end of the input or of the part, which lies
    /// between two lines.
    fn find_line(&mut self) -> Result<Option<Line>, Error> {
        if self.until.is_some_and(|until| self.cursor.offset() >= until) {
            return Ok(None);
        }
        loop {
            let window = self.cursor.window();
            let look = window.get(..self.line_bytes_max).unwrap_or(window);
            if let Some(end) = memchr::memchr(b'\n', look) {
                return Ok(Some(Line::Complete(end + 1)));
            }
            if look.len() == self.line_bytes_max {
                return Ok(Some(Line::Part(look.len())));
            }
            let have = window.len();
            if self.is_last {
                return Ok((have > 0).then_some(Line::Cut(have)));
            }
            // Growth by halves keeps the reading of a long line linear, and requests little from a slow pipe.
            self.is_last = self.cursor.fill(have + have / 2 + 1)? == have;
        }
    }

    /// Passes a line that is longer than the limit, including its end; returns its length in bytes.
    fn skip_line(&mut self) -> Result<u64, Error> {
        let mut skipped = 0;
        while let Some(line) = self.find_line()? {
            let (bytes, is_end) = match line {
                Line::Complete(bytes) | Line::Cut(bytes) => (bytes, true),
                Line::Part(bytes) => (bytes, false),
            };
            self.cursor.advance(bytes);
            skipped += bytes as u64;
            if is_end {
                break;
            }
        }
        Ok(skipped)
    }

    /// A diagnostic about the byte `at` of the next line.
    fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        let at = at as u64;
        rule.at(self.cursor.offset() + at).line(self.line, at + 1).record(self.seq)
    }

    fn lose(&mut self, damage: Diagnostic, bytes: u64) {
        self.bytes_lost += bytes;
        self.damage.push_back(damage.skipped(bytes));
    }
}
