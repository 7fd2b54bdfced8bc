//! Drives the parser over an input of any size: packets and damage in the order of the bytes.

use std::collections::VecDeque;

use anytrace_core::{
    Collect, Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Passed, Place, Rule, Step, text::escaped,
};

use super::parse::{Fault, Need, parse};
use super::record::{Layout, Record};
use super::resync::{Plausible, next_tag, plausible};
use crate::rules;

/// Most bytes that a diagnostic shows.
const SHOWN_BYTES: usize = 16;

/// Reads a trace, packet by packet, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_perfetto::Reader;
///
/// let input = Input::open("app.pftrace".as_ref(), InputOptions::default())?;
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
    packet_bytes_max: u64,
    /// The number of the next packet.
    seq: u64,
    bytes_lost: u64,
    /// True when everything was read.
    is_ended: bool,
    /// Bytes of the window that were read. The cursor passes them when the next packet is wanted, so that this one can
    /// borrow from the window.
    read_bytes: usize,
    /// Diagnostics that were not returned yet, all of them about what precedes the next packet.
    damage: VecDeque<Diagnostic>,
}

impl Reader {
    /// Starts at the first byte. Of the options, only `record_bytes_max` of the limits is used: longer packets are
    /// damage.
    ///
    /// # Errors
    /// None so far.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        Ok(Self {
            cursor: Cursor::new(input),
            layout: Layout::default(),
            packet_bytes_max: options.limits.record_bytes_max.max(64),
            seq: 0,
            bytes_lost: 0,
            is_ended: false,
            read_bytes: 0,
            damage: VecDeque::new(),
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

    /// The most bytes that a packet may have.
    pub(crate) fn packet_bytes_max(&self) -> u64 {
        self.packet_bytes_max
    }

    /// True if the input can be read twice: a file, or a stream of which the start is short enough to be kept.
    ///
    /// # Errors
    /// I/O.
    pub(crate) fn can_read_twice(&mut self) -> Result<bool, Error> {
        self.cursor.can_read_twice(Cursor::BUFFERED_BYTES_MAX)
    }

    /// Returns to the first packet; false if the input cannot be read twice.
    pub(crate) fn rewind(&mut self) -> bool {
        if !self.cursor.rewind() {
            return false;
        }
        (self.seq, self.bytes_lost, self.read_bytes, self.is_ended) = (0, 0, 0, false);
        self.damage.clear();
        true
    }

    /// Returns the next packet or damage; `None` after the last one. A packet borrows from the reader's window.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    #[inline(always)]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let (place, head, start, end, length_bytes) = loop {
            if let Some(diagnostic) = self.damage.pop_front() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if self.is_ended {
                return Ok(None);
            }
            self.cursor.advance(std::mem::take(&mut self.read_bytes));
            let window = self.cursor.window();
            match parse(window, &self.layout) {
                Ok((record, used)) if used as u64 <= self.packet_bytes_max => {
                    let place = Place { offset: self.cursor.offset(), seq: self.seq };
                    self.seq += 1;
                    self.read_bytes = used;
                    break (place, record.head, used - record.body.len(), used, record.length_bytes);
                }
                Ok((_, used)) => self.too_long(used as u64)?,
                Err(Need::More(need)) => self.need(need)?,
                Err(Need::Bad(fault)) => self.bad(fault)?,
            }
        };
        // Only this borrow may last longer than the call.
        let body = self.cursor.window().get(start..end).unwrap_or_default();
        Ok(Some(Step::Record(place, Record { body, length_bytes, head })))
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

    /// Reads on until the window has as many bytes as a packet needs, or reports that there are none.
    #[cold]
    fn need(&mut self, need: u64) -> Result<(), Error> {
        if need > self.packet_bytes_max {
            return self.too_long(need);
        }
        let need = usize::try_from(need).unwrap_or(usize::MAX);
        let have = self.cursor.fill(need)?;
        if have >= need {
            return Ok(());
        }
        if have == 0 {
            let mut layers = Collect::default();
            self.cursor.report_layers(&mut layers)?;
            self.damage.extend(layers.0);
            self.is_ended = true;
            return Ok(());
        }
        let damage = self.diagnostic(&rules::TRUNCATED, have).field("packet");
        let found = if have == 1 { "1".to_owned() } else { format!("{have}, then the end of the input") };
        self.lose_until_packet(damage.expected(format!("{need} bytes")).found(found))
    }

    /// A packet that is longer than the limit, or a length that is damaged.
    #[cold]
    fn too_long(&mut self, bytes: u64) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::PACKET_TOO_LONG, 0).field("length");
        let damage = damage.expected(format!("at most {} bytes", self.packet_bytes_max)).found(bytes.to_string());
        self.lose_until_packet(damage)
    }

    #[cold]
    fn bad(&mut self, fault: Fault) -> Result<(), Error> {
        self.reach(fault.at, SHOWN_BYTES as u64)?;
        let window = self.cursor.window();
        let shown = window.get(fault.at..).unwrap_or_default();
        let shown = shown.get(..SHOWN_BYTES).unwrap_or(shown);
        let found = format!("\"{}\"", escaped(shown));
        let damage = self.diagnostic(&rules::BAD_PACKET, fault.at);
        let field = match (fault.number, fault.field) {
            (0, field) => field.to_owned(),
            (number, "unknown field") => format!("field {number}"),
            (number, "data") => format!("data ({})", crate::wire::schema::packet_field_name(number)),
            (_, field) => field.to_owned(),
        };
        let damage = damage.field(field).expected(fault.expected).found(found);
        // Where the packet's length fits what follows, only its contents are damaged.
        if let Some(bytes) = fault.packet_bytes
            && bytes <= self.packet_bytes_max
            && let Ok(bytes) = usize::try_from(bytes)
            && self.is_packet_at(bytes)?
        {
            self.lose(damage, bytes as u64);
            self.read_bytes = bytes;
            return Ok(());
        }
        self.lose_until_packet(damage)
    }

    /// True where a packet begins in the window, or the data end.
    fn is_packet_at(&mut self, at: usize) -> Result<bool, Error> {
        loop {
            let have = self.cursor.fill(at + 1)?;
            if have <= at {
                return Ok(have == at);
            }
            let is_last = self.cursor.is_last_window();
            let window = self.cursor.window();
            match plausible(window.get(at..).unwrap_or_default(), is_last, self.packet_bytes_max) {
                Plausible::Yes => return Ok(true),
                Plausible::No => return Ok(false),
                Plausible::Unknown(need) => self.reach(at, need)?,
            }
        }
    }

    /// Fills the window up to `need` bytes from a place in it, or to the end of the data.
    fn reach(&mut self, at: usize, need: u64) -> Result<(), Error> {
        let need = usize::try_from(need).unwrap_or(usize::MAX).saturating_add(at);
        if self.cursor.fill(need)? < need {
            // One byte more than there is: from now on the window is known to be the last.
            let have = self.cursor.window().len();
            self.cursor.fill(have + 1)?;
        }
        Ok(())
    }

    /// Passes bytes until a packet seems to begin.
    fn lose_until_packet(&mut self, damage: Diagnostic) -> Result<(), Error> {
        let mut lost = 0;
        let mut at = 1;
        loop {
            if self.cursor.window().len() <= at && self.cursor.fill(at + 1)? <= at {
                break;
            }
            match next_tag(self.cursor.window(), at) {
                None => at = self.cursor.window().len(),
                Some(tag) => {
                    at = tag;
                    // What was passed is not needed any more: memory stays bounded.
                    self.cursor.advance(at);
                    lost += at as u64;
                    at = 0;
                    if self.is_packet_at(0)? {
                        break;
                    }
                    at += 1;
                }
            }
            if at > 1 << 16 {
                self.cursor.advance(at);
                lost += at as u64;
                at = 0;
            }
        }
        self.cursor.advance(at);
        let lost = lost + at as u64;
        self.lose(damage, lost);
        Ok(())
    }

    /// A diagnostic about the byte `at` of the window.
    fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        rule.at(self.cursor.offset() + at as u64).record(self.seq)
    }

    fn lose(&mut self, damage: Diagnostic, bytes: u64) {
        self.bytes_lost += bytes;
        self.damage.push_back(damage.skipped(bytes));
    }
}
