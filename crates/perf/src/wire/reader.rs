//! Drives the parser over an input of any size: records and damage in the order of the bytes.

use std::collections::VecDeque;

use anytrace_core::{
    Collect, Cursor, Diagnostic, Endian, Error, Input, Layer, OpenOptions, Passed, Place, Rule, Step, text::escaped,
};

use super::event::{self, HEAD_BYTES, frame, kind};
use super::fault::{Fault, Need};
use super::header::{DATA_SIZE_AT, Header, MAGIC, MAGIC_OLD, Section, endian};
use super::packed::{Packed, Pulled};
use super::parse::parse;
use super::record::{Form, Layout, Record};
use super::resync::{Plausible, plausible};
use crate::rules;

/// Most bytes that a diagnostic shows.
const SHOWN_BYTES: usize = 40;

/// Longest line that is read, unless the caller's limit is lower.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// What follows the records is handed out in pieces of this length.
const PIECE_BYTES: usize = 64 << 10;

/// How far is looked for records that follow each other.
const LOOK_BYTES: usize = 4 << 16;

/// Most bytes of a table behind the records that are read before these.
const PEEK_BYTES_MAX: usize = 1 << 20;

/// Reads a recording, record by record, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_perf::Reader;
///
/// let input = Input::open("perf.data".as_ref(), InputOptions::default())?;
/// let mut reader = Reader::new(input, &OpenOptions::default())?;
/// while let Some(step) = reader.next()? {
///     match step {
///         Step::Record(place, record) => println!("{:#x} {}", place.offset, record.kind_name()),
///         Step::Damage(diagnostic) => eprintln!("{diagnostic}"),
///     }
/// }
/// # Ok::<(), anytrace_core::Error>(())
/// ```
pub struct Reader {
    cursor: Cursor,
    layout: Layout,
    record_bytes_max: u64,
    room: Room,
    /// The number of the next record.
    seq: u64,
    /// The next line of text, from 1.
    line: u64,
    bytes_lost: u64,
    /// True when everything was read.
    is_ended: bool,
    /// True after a record that goes beyond the end of the data.
    is_cut: bool,
    /// Bytes of the window that were read. The cursor passes them when the next record is wanted, so that this one can
    /// borrow from the window.
    read_bytes: usize,
    /// The records in compressed ones.
    packed: Packed,
    /// How far apart the places are at which records may begin.
    step_bytes: u64,
    /// Diagnostics that were not returned yet, all of them about what precedes the next record.
    damage: VecDeque<Diagnostic>,
}

/// Where in the input the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    /// In a text.
    Text,
    /// Before the header of `perf.data`.
    Header,
    /// Among records, up to this offset.
    Records(u64),
    /// Behind the records.
    Features,
}

impl Reader {
    /// Starts at the first byte. Of the options, only `record_bytes_max` of the limits is used: longer records are
    /// damage.
    ///
    /// # Errors
    /// I/O.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let mut reader = Self {
            cursor: Cursor::new(input),
            layout: Layout::default(),
            record_bytes_max: options.limits.record_bytes_max.max(64),
            room: Room::Text,
            seq: 0,
            line: 1,
            bytes_lost: 0,
            is_ended: false,
            is_cut: false,
            read_bytes: 0,
            packed: Packed::default(),
            step_bytes: 8,
            damage: VecDeque::new(),
        };
        reader.cursor.fill(16)?;
        reader.start();
        Ok(reader)
    }

    fn start(&mut self) {
        let window = self.cursor.window();
        (self.layout.form, self.room) = match endian(window) {
            Some(endian) => (Form::Data(endian), Room::Header),
            None if window.starts_with(MAGIC_OLD) => (Form::Data(Endian::Little), Room::Header),
            None => (Form::Text, Room::Text),
        };
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Compression layers around the recording, outermost first.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// True if the input can be read twice: a file, or a stream of which the start is short enough to be kept.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn can_read_twice(&mut self) -> Result<bool, Error> {
        self.cursor.can_read_twice(Cursor::BUFFERED_BYTES_MAX)
    }

    /// Returns to the first record; false if the input cannot be read twice.
    pub(crate) fn rewind(&mut self) -> bool {
        if !self.cursor.rewind() {
            return false;
        }
        (self.seq, self.line, self.bytes_lost, self.read_bytes, self.is_ended) = (0, 1, 0, 0, false);
        (self.is_cut, self.packed, self.step_bytes) = (false, Packed::default(), 8);
        self.damage.clear();
        // The window may be empty now: what was found at the start counts.
        self.room = if self.layout.form == Form::Text { Room::Text } else { Room::Header };
        true
    }

    /// Reads a section of a file and returns to where the reader is; `None` for streams.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn peek(&mut self, section: Section) -> Result<Option<Vec<u8>>, Error> {
        let own = self.cursor.offset();
        let bytes = usize::try_from(section.bytes).unwrap_or(usize::MAX).min(PEEK_BYTES_MAX);
        if !self.cursor.can_rewind() || !self.cursor.seek(section.offset) {
            return Ok(None);
        }
        let have = self.cursor.fill(bytes)?.min(bytes);
        let found = self.cursor.window().get(..have).unwrap_or_default().to_vec();
        if !self.cursor.seek(own) {
            return Err(Error::usage("the input changed while it was read"));
        }
        // What was read is in the window again.
        self.cursor.fill(self.read_bytes.max(1))?;
        Ok(Some(found))
    }

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        loop {
            if let Some(diagnostic) = self.damage.pop_front() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if self.is_ended {
                return Ok(None);
            }
            if self.packed.is_open() {
                if let Some(bytes) = self.unpack() {
                    return Ok(self.unpacked(bytes));
                }
                continue;
            }
            self.cursor.advance(std::mem::take(&mut self.read_bytes));
            if self.advance()? {
                break;
            }
        }
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        self.seq += 1;
        // Only this borrow may last longer than the call, so the record is parsed again.
        let window = self.cursor.window();
        let record = match self.room {
            Room::Features => Record::Features(window.get(..self.read_bytes).unwrap_or_default()),
            _ => match parse(window, &self.layout) {
                Ok((record, _)) => record,
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Step::Record(place, record)))
    }

    /// Finds the next record in a compressed one: its length; `None` at damage, which is put aside, or at the end.
    fn unpack(&mut self) -> Option<usize> {
        let Form::Data(endian) = self.layout.form else { return None };
        match self.packed.pull(self.cursor.window(), endian, self.record_bytes_max, self.seq) {
            Pulled::Record(bytes) => return Some(bytes),
            Pulled::Damage(damage) => self.damage.push_back(damage),
            Pulled::End => {}
        }
        None
    }

    /// The record of so many bytes in a compressed one.
    fn unpacked(&mut self, bytes: usize) -> Option<Step<'_, Record<'_>>> {
        let Form::Data(endian) = self.layout.form else { return None };
        let inside = self.packed.inside();
        let place = Place { offset: inside.around, seq: self.seq };
        self.seq += 1;
        let (event, _) = event::read(self.packed.take(bytes), endian).ok()?;
        Some(Step::Record(place, Record::Event(event::Event { inside: Some(inside.at), ..event })))
    }

    /// Calls `visit` with every step to the end of the recording: [`Self::next`] in a loop.
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

    /// The first compressed record of which something could not be read: from there on a copy cannot have them.
    pub(crate) fn packed_damage(&self) -> Option<u64> {
        self.packed.damaged_from()
    }

    /// What was read so far.
    pub(crate) fn passed(&self) -> Passed {
        let bytes = self.cursor.offset() + self.read_bytes as u64;
        Passed { records: self.seq, bytes, bytes_lost: self.bytes_lost + self.packed.bytes_lost }
    }

    /// Finds the next record; true where the window begins with one.
    fn advance(&mut self) -> Result<bool, Error> {
        match self.room {
            Room::Text => self.text(),
            Room::Header => self.header(),
            Room::Records(end) => self.event(end),
            Room::Features => {
                let have = self.cursor.fill(PIECE_BYTES)?.min(PIECE_BYTES);
                self.read_bytes = have;
                if have == 0 {
                    self.end()?;
                }
                Ok(have > 0)
            }
        }
    }

    #[cold]
    fn end(&mut self) -> Result<(), Error> {
        self.damage.extend(self.packed.finish(self.seq));
        let mut layers = Collect::default();
        self.cursor.report_layers(&mut layers)?;
        self.damage.extend(layers.0);
        self.is_ended = true;
        Ok(())
    }

    fn text(&mut self) -> Result<bool, Error> {
        let max = usize::try_from(self.record_bytes_max.min(LINE_BYTES_MAX)).unwrap_or(1 << 20);
        let bytes = loop {
            let window = self.cursor.window();
            let look = window.get(..max).unwrap_or(window);
            if let Some(end) = memchr::memchr(b'\n', look) {
                break end + 1;
            }
            if look.len() == max {
                self.long_line(max)?;
                return Ok(false);
            }
            let have = window.len();
            // Growth by halves keeps the reading of a long line linear, and requests little from a slow pipe.
            if self.cursor.fill(have + have / 2 + 1)? > have {
                continue;
            }
            if have == 0 {
                self.end()?;
            } else {
                let damage = self.diagnostic(&rules::TRUNCATED, have);
                let damage = damage.expected("the rest of the line").found("end of input");
                self.lose(damage, have as u64);
                self.read_bytes = have;
            }
            return Ok(false);
        };
        let window = self.cursor.window();
        let fault = match parse(window, &self.layout) {
            Err(Need::Bad(fault)) => Some(fault),
            _ => None,
        };
        if let Some(fault) = fault {
            let line = window.get(..bytes - 1).unwrap_or_default();
            let shown = format!("\"{}\"", escaped(line.get(..SHOWN_BYTES).unwrap_or(line)));
            let damage = self.diagnostic(&rules::BAD_RECORD, fault.at).field(fault.field);
            self.lose(damage.expected(fault.expected).found(shown), bytes as u64);
        }
        self.line += 1;
        self.read_bytes = bytes;
        Ok(fault.is_none())
    }

    /// Passes a line that is longer than the limit, including its end.
    #[cold]
    fn long_line(&mut self, max: usize) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::RECORD_TOO_LONG, 0).field("line").expected(format!("at most {max} bytes"));
        let mut skipped = 0;
        loop {
            let window = self.cursor.window();
            let end = memchr::memchr(b'\n', window);
            let step = end.map_or(window.len(), |end| end + 1);
            self.cursor.advance(step);
            skipped += step as u64;
            if end.is_some() || self.cursor.fill(1)? == 0 {
                break;
            }
        }
        self.line += 1;
        self.lose(damage, skipped);
        Ok(())
    }

    fn header(&mut self) -> Result<bool, Error> {
        loop {
            let window = self.cursor.window();
            let have = window.len();
            match parse(window, &self.layout) {
                Ok((Record::Header(header), used)) => {
                    let (is_pipe, data) = (header.is_pipe(), header.data());
                    self.read_bytes = used;
                    self.room = Room::Records(if is_pipe || data.bytes == 0 { u64::MAX } else { data.end() });
                    if !is_pipe && data.bytes == 0 {
                        let damage = self.diagnostic(&rules::UNFINISHED, DATA_SIZE_AT).field("data.size");
                        self.damage.push_back(damage.found("0"));
                    }
                    return Ok(true);
                }
                Err(Need::More(need)) => {
                    let need = usize::try_from(need).unwrap_or(usize::MAX);
                    if self.cursor.fill(need)? < need {
                        let damage = self.diagnostic(&rules::TRUNCATED, have).field("header");
                        return self.lose_all(damage.expected(format!("{need} bytes")).found("end of input"));
                    }
                }
                Err(Need::Bad(fault)) if window.starts_with(MAGIC_OLD) => {
                    let damage = self.diagnostic(&rules::VERSION, fault.at).field("magic");
                    return self.lose_all(damage.expected(escaped(MAGIC)).found(escaped(MAGIC_OLD)));
                }
                Err(Need::Bad(fault)) => {
                    let damage = self.diagnostic(&rules::BAD_HEADER, fault.at).field(fault.field);
                    return self.lose_all(damage.expected(fault.expected));
                }
                Ok(_) => return self.lose_all(self.diagnostic(&rules::BAD_HEADER, 0)),
            }
        }
    }

    /// Without the header no record can be read.
    #[cold]
    fn lose_all(&mut self, damage: Diagnostic) -> Result<bool, Error> {
        let skipped = self.cursor.skip(u64::MAX)?;
        self.lose(damage, skipped);
        self.room = Room::Features;
        Ok(false)
    }

    fn event(&mut self, end: u64) -> Result<bool, Error> {
        loop {
            let offset = self.cursor.offset();
            if offset >= end {
                self.damage.extend(self.packed.finish(self.seq));
                self.room = Room::Features;
                return Ok(false);
            }
            if self.cursor.window().is_empty() && self.cursor.fill(HEAD_BYTES)? == 0 {
                self.cut(0, end)?;
                return Ok(false);
            }
            let window = self.cursor.window();
            let left = end - offset;
            let need = match parse(window, &self.layout) {
                Ok((Record::Event(event), used)) if used as u64 <= left.min(self.record_bytes_max) => {
                    let is_compressed = event.is_compressed();
                    if (used as u64) < left && !self.is_followed(used)? && self.is_swollen(used, left)? {
                        self.swollen(used, end)?;
                        return Ok(false);
                    }
                    self.read_bytes = used;
                    if is_compressed {
                        self.enter()?;
                    }
                    if !used.is_multiple_of(8) {
                        self.step_bytes = 1;
                    }
                    return Ok(true);
                }
                Ok((Record::Event(event), _)) => event.bytes.len() as u64,
                Err(Need::More(need)) => need,
                Err(Need::Bad(fault)) => {
                    self.bad(fault, end)?;
                    return Ok(false);
                }
                Ok(_) => {
                    self.bad(Fault { field: "type", expected: "a kind of record from 1 to 127", at: 0 }, end)?;
                    return Ok(false);
                }
            };
            if need > left.min(self.record_bytes_max) {
                self.too_long(need, left, end)?;
                return Ok(false);
            }
            let need = usize::try_from(need).unwrap_or(usize::MAX);
            let have = self.cursor.fill(need)?;
            if have < need {
                self.cut(have, end)?;
                return Ok(false);
            }
        }
    }

    /// Begins to read the records in the compressed one with which the window begins.
    fn enter(&mut self) -> Result<(), Error> {
        if let Ok((Record::Event(event), _)) = parse(self.cursor.window(), &self.layout) {
            self.damage.extend(self.packed.enter(&event, self.cursor.offset(), self.seq)?);
        }
        Ok(())
    }

    /// True where something that may be a record, or nothing, follows that with which the window begins.
    #[inline]
    fn is_followed(&mut self, used: usize) -> Result<bool, Error> {
        let Form::Data(endian) = self.layout.form else { return Ok(true) };
        if self.cursor.window().len() < used + HEAD_BYTES {
            self.cursor.fill(used + HEAD_BYTES)?;
        }
        let next = self.cursor.window().get(used..).unwrap_or_default();
        Ok(!matches!(frame(next, endian), Err(Need::Bad(_))))
    }

    /// True where records seem to begin inside the one with which the window begins: its length is damaged.
    #[cold]
    fn is_swollen(&mut self, used: usize, left: u64) -> Result<bool, Error> {
        let Form::Data(endian) = self.layout.form else { return Ok(false) };
        // Records are looked for in the first 64 KiB, the longest that most kinds may have.
        let step = if self.step_bytes == 8 { 8 } else { 1 };
        for at in (HEAD_BYTES..used.min(1 << 16)).step_by(step) {
            // As much as any window may have, so that its length makes no difference.
            let have = self.cursor.fill(at + LOOK_BYTES)?;
            let rest = self.cursor.window().get(at..have.min(at + LOOK_BYTES)).unwrap_or_default();
            let found = plausible(rest, have < at + LOOK_BYTES, left - at as u64, endian);
            if found == Plausible::Yes {
                return Ok(true);
            }
        }
        Ok(false)
    }

    #[cold]
    fn swollen(&mut self, used: usize, end: u64) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::BAD_RECORD, 6).field("size").expected("another record behind this one");
        self.lose_until_record(damage.found(used.to_string()), end)
    }

    /// The data end inside a record, or before the header says that the records do.
    #[cold]
    fn cut(&mut self, have: usize, end: u64) -> Result<(), Error> {
        if have == 0 && (end == u64::MAX || self.is_cut) {
            return self.end();
        }
        let damage = self.diagnostic(&rules::TRUNCATED, have).field("record");
        let expected = match end {
            u64::MAX => "the rest of the record".to_owned(),
            _ => format!("records up to byte {end:#x}"),
        };
        self.is_cut = true;
        // The length may be what is damaged, so that records follow all the same.
        self.lose_until_record(damage.expected(expected).found("end of input"), end)
    }

    /// A record that is longer than the limit or than the records, or a length that is damaged.
    #[cold]
    fn too_long(&mut self, bytes: u64, left: u64, end: u64) -> Result<(), Error> {
        let damage = if bytes > left {
            let expected = format!("at most {left}: the end of the records");
            self.diagnostic(&rules::BAD_RECORD, 6).field("size").expected(expected)
        } else {
            let expected = format!("at most {} bytes", self.record_bytes_max);
            self.diagnostic(&rules::RECORD_TOO_LONG, 0).field("size").expected(expected)
        };
        self.lose_until_record(damage.found(bytes.to_string()), end)
    }

    #[cold]
    fn bad(&mut self, fault: Fault, end: u64) -> Result<(), Error> {
        let window = self.cursor.window();
        let shown = window.get(..8).unwrap_or(window);
        let found = format!("\"{}\"", escaped(shown));
        let damage = self.diagnostic(&rules::BAD_RECORD, fault.at).field(fault.field);
        self.lose_until_record(damage.expected(fault.expected).found(found), end)
    }

    /// Passes bytes until a record seems to begin, or the records end.
    fn lose_until_record(&mut self, damage: Diagnostic, end: u64) -> Result<(), Error> {
        let Form::Data(endian) = self.layout.form else { return Ok(()) };
        // Records begin at multiples of 8 from the first, unless one has any length: in a stream, or a compressed one.
        self.cursor.fill(HEAD_BYTES)?;
        let own = frame(self.cursor.window(), endian).map_or(0, |found| found.kind);
        let step_bytes = if matches!(own, kind::HEADER_FEATURE | kind::COMPRESSED) { 1 } else { self.step_bytes };
        let mut lost = 0_u64;
        loop {
            let left = end.saturating_sub(self.cursor.offset());
            let step = usize::try_from(left.min(step_bytes)).unwrap_or(8);
            let have = self.cursor.fill(step)?.min(step);
            self.cursor.advance(have);
            lost += have as u64;
            if (have as u64) < step_bytes || self.is_record_here(end, endian)? {
                break;
            }
        }
        self.lose(damage, lost);
        // No compressed record is as short.
        if lost > 8 {
            self.damage.extend(self.packed.gap(self.seq));
        }
        Ok(())
    }

    fn is_record_here(&mut self, end: u64, endian: Endian) -> Result<bool, Error> {
        let left = end.saturating_sub(self.cursor.offset());
        if left == 0 {
            return Ok(true);
        }
        loop {
            let window = self.cursor.window();
            match plausible(window, self.cursor.is_last_window(), left, endian) {
                Plausible::Yes => return Ok(true),
                Plausible::No => return Ok(false),
                Plausible::Unknown(need) if need > self.record_bytes_max => return Ok(false),
                Plausible::Unknown(need) => {
                    let need = usize::try_from(need).unwrap_or(usize::MAX);
                    if self.cursor.fill(need)? < need {
                        // One byte more than there is: from now on the window is known to be the last.
                        let have = self.cursor.window().len();
                        self.cursor.fill(have + 1)?;
                        let (window, left) = (self.cursor.window(), left);
                        return Ok(plausible(window, true, left, endian) == Plausible::Yes);
                    }
                }
            }
        }
    }

    /// A diagnostic about the byte `at` of the window.
    fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        let at = at as u64;
        let diagnostic = rule.at(self.cursor.offset() + at).record(self.seq);
        if self.layout.form == Form::Text { diagnostic.line(self.line, at + 1) } else { diagnostic }
    }

    fn lose(&mut self, damage: Diagnostic, bytes: u64) {
        self.bytes_lost += bytes;
        self.damage.push_back(damage.skipped(bytes));
    }
}

/// The header of a file, as a section to peek at.
pub(crate) fn features_table(header: &Header<'_>) -> Section {
    Section { offset: header.data().end(), bytes: header.features().count() as u64 * 16 }
}
