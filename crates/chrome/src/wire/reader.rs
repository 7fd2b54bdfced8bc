//! Drives the parser over an input of any size: events, the JSON around them and what is damaged, in the order of the
//! bytes, with every byte exactly once.

use std::ops::Range;

use anytrace_core::{Cursor, Error, Input, Layer, OpenOptions, Passed, Place, Sink, Step, Steps, Stored};

use super::frame::Fact;
use super::marks::begin;
use super::parse::parse;
use super::record::{Form, Layout, Record};
pub(crate) use super::state::{Piece, Visit};
use super::state::{Scanner, Start};

/// Reads a trace, event by event, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_chrome::Reader;
///
/// let input = Input::open("trace.json".as_ref(), InputOptions::default())?;
/// let mut reader = Reader::new(input, &OpenOptions::default())?;
/// while let Some(step) = reader.next()? {
///     match step {
///         Step::Record(place, record) => println!("{:#x} {}", place.offset, record.kind().name()),
///         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
///     }
/// }
/// # Ok::<(), anytrace_core::Error>(())
/// ```
pub struct Reader {
    cursor: Cursor,
    layout: Layout,
    scanner: Scanner,
    /// Where the part that is read ends; none for the end of the trace.
    until: Option<u64>,
    /// True when no bytes follow the window.
    is_last: bool,
    /// True when everything was read.
    is_ended: bool,
    /// Bytes of the window that were read. The cursor passes them when the next record is wanted, so that this one can
    /// borrow from the window.
    read_bytes: usize,
    /// What was found before the next record.
    steps: Steps,
    found: Option<(Place, Range<usize>)>,
}

impl Reader {
    /// Starts at the first byte, or at that of the part. Of the options, only `part` and `record_bytes_max` of the limits
    /// are used: longer events are damage.
    ///
    /// # Errors
    /// Usage, where reading cannot begin at the part's mark.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let mut cursor = Cursor::new(input);
        let max = usize::try_from(options.limits.record_bytes_max).unwrap_or(usize::MAX);
        let part = options.part.as_ref();
        let until = part.and_then(|part| part.until);
        let start = match part.and_then(|part| part.from.as_ref()) {
            None => Start::File,
            Some(mark) => {
                let form = begin(mark, &mut cursor)?;
                Start::Event(form, Place { offset: mark.offset, seq: mark.seq })
            }
        };
        Ok(Self {
            cursor,
            layout: Layout::default(),
            scanner: Scanner::new(start, max, until.is_some()),
            until,
            is_last: false,
            is_ended: false,
            read_bytes: 0,
            steps: Steps::default(),
            found: None,
        })
    }

    /// The form of the file, known after the first [`Self::next`].
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Compression layers around the trace, outermost first.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// True when the trace can be read twice: by [`Self::rewind`], after any part of it was read.
    pub(crate) fn can_read_twice(&mut self) -> Result<bool, Error> {
        self.cursor.can_read_twice(Cursor::BUFFERED_BYTES_MAX)
    }

    /// Returns to the first byte of a trace that can be read twice.
    pub(crate) fn rewind(&mut self) -> bool {
        let max = self.scanner.record_bytes_max();
        self.scanner = Scanner::new(Start::File, max, false);
        (self.is_last, self.is_ended, self.read_bytes) = (false, false, 0);
        self.cursor.rewind()
    }

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
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
        let event = self.cursor.window().get(range).unwrap_or_default();
        Ok(parse(event, &self.layout).ok().map(|(record, _)| Step::Record(place, record)))
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
        Ok(self.scanner.passed())
    }

    /// Reads up to the end of the next record, or more bytes.
    fn find_next(&mut self, sink: &mut dyn Sink) -> Result<Option<(Place, Range<usize>)>, Error> {
        self.cursor.advance(std::mem::take(&mut self.read_bytes));
        let mut found = FoundRecord(None);
        let (used, left, is_last) = self.scan(&mut found, sink)?;
        self.layout = Layout::new(self.scanner.form());
        self.read_bytes = used;
        if used == 0 {
            self.more(left, is_last, sink)?;
        }
        Ok(found.0.map(|(place, bytes)| (place, used.saturating_sub(bytes)..used)))
    }

    fn scan<V: Visit>(&mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<(usize, usize, bool), Error> {
        let (window, is_part_end) = at_hand(&self.cursor, self.until);
        let is_last = self.is_last || is_part_end;
        let used = self.scanner.window(window, is_last, visit, sink)?;
        Ok((used, window.len() - used, is_last))
    }

    /// Reads more bytes after the `left` in the window. Growth by halves keeps the reading of a long event linear, and
    /// requests little from a slow pipe.
    fn more(&mut self, left: usize, is_last: bool, sink: &mut dyn Sink) -> Result<(), Error> {
        if is_last {
            self.is_ended = true;
            self.scanner.finish(sink)?;
            return self.cursor.report_layers(sink);
        }
        self.is_last = self.cursor.fill(left + left / 2 + 1)? == left;
        Ok(())
    }

    /// Passes every record and piece to a visitor: the loop of this crate's verbs.
    pub(crate) fn walk<V: Visit>(&mut self, visit: &mut V, sink: &mut dyn Sink) -> Result<Passed, Error> {
        while !self.is_ended {
            let (used, left, is_last) = self.scan(visit, sink)?;
            self.cursor.advance(used);
            if visit.is_done() {
                break;
            }
            if used == 0 || left == 0 {
                self.more(left, is_last, sink)?;
            }
        }
        Ok(self.scanner.passed())
    }

    /// The form of the file as far as it is known.
    pub(crate) fn form(&self) -> Form {
        self.scanner.form()
    }

    /// Keys beside the events that were read so far.
    pub(crate) fn facts(&self) -> &[Fact] {
        self.scanner.facts()
    }

    /// True when the end of the array or object was read.
    pub(crate) fn is_closed(&self) -> bool {
        self.scanner.is_closed()
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

/// The visitor of [`Reader::next`]: the place of a record, and its length.
struct FoundRecord(Option<(Place, usize)>);

impl Visit for FoundRecord {
    fn record(&mut self, record: &Record<'_>, at: Place, _sink: &mut dyn Sink) -> Result<(), Error> {
        self.0 = Some((at, record.text.len()));
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.0.is_some()
    }
}

#[cfg(test)]
mod tests;
