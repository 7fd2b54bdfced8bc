//! Packets from an input of any size; damage is located, reported and skipped.

use anytrace_core::{Cursor, Diagnostic, Error, Input, OpenOptions, Passed, Place, Sink, Step, Steps, Stored, Summary};

use crate::rules;
use crate::wire::fault::{Damage, Fault, Field, Problem};
use crate::wire::marks::{Begin, agreement, begin};
use crate::wire::nested;
use crate::wire::parse::{EVENT_MAGIC, METADATA_MAGIC, Need, accepted, parse_body, parse_within};
use crate::wire::record::{Layout, Record};

/// What a search may request beyond the packet it examines, so that a slow pipe is read in large steps.
const SEARCH_AHEAD_BYTES: usize = 1 << 20;

/// Minimum number of bytes examined of a packet above the limit.
const LOOK_BYTES_MIN: usize = 1 << 20;

/// Bytes of damaged packets that may be examined: this many for each byte of the input, and a fixed number to start
/// with. Beyond that, sizes are trusted and bytes skipped unread, so that no input takes quadratic time.
const WORK_FACTOR: u64 = 32;
const WORK_START: u64 = 64 << 20;

/// Receives what a [`Reader`] or a [`Framer`](crate::Framer) finds, in wire order.
pub trait Visitor {
    /// Processes a complete packet; `bytes` are all of it.
    ///
    /// # Errors
    /// An error ends the reading.
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Record<'_>) -> Result<(), Error>;

    /// Processes a diagnostic of the reader.
    ///
    /// # Errors
    /// An error ends the reading: strict callers return the diagnostic as an error.
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error>;

    /// Processes a damaged place. By default it is reported.
    ///
    /// # Errors
    /// As [`Self::report`].
    fn damage(&mut self, damage: &Damage) -> Result<(), Error> {
        self.report(damage.to_diagnostic())
    }

    /// True when no further packet is wanted: a [`Reader`] then ends before the end of the trace.
    fn is_done(&self) -> bool {
        false
    }
}

/// Reads a trace, packet by packet, past damage, in one pass and bounded memory.
///
/// ```no_run
/// use anytrace_core::{Input, InputOptions, OpenOptions, Step};
/// use anytrace_heph::Reader;
///
/// let input = Input::open("app.heph".as_ref(), InputOptions::default())?;
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
    recovers: bool,
    seq: u64,
    bytes_lost: u64,
    work: u64,
    /// How deep the arrays of the packet recovered last are nested, one depth per attribute.
    nesting: Vec<u8>,
    /// For [`Self::next`]: diagnostics that were not returned yet, all of them about what precedes `found`.
    steps: Steps,
    /// For [`Self::next`]: the packet at the cursor, once it was found.
    found: Option<Found>,
    /// For [`Self::next`]: bytes of the packet returned last. The cursor passes them when the next one is wanted, so
    /// that the packet could borrow from the window.
    returned_bytes: usize,
    /// True when everything was read and reported.
    is_ended: bool,
    /// Packets that begin here or later are not read: they are of another part.
    until: u64,
}

/// A packet that was parsed, so that it needs no further checks.
struct Found {
    place: Place,
    bytes: usize,
    /// True when [`Reader::nesting`] is about it.
    is_nested: bool,
}

/// What is at a place where [`scan`] stops.
enum AtStop {
    /// The end of the data.
    End,
    /// Damage, which was reported and passed, or more bytes of a packet.
    Passed,
    /// A packet of this size with arrays of arrays; the cursor is at its start.
    Nested(usize),
}

enum Stop {
    More(usize),
    Bad(Fault),
    /// The packets before the limit were passed on.
    Limit,
    /// The visitor wants no more.
    Done,
}

impl Reader {
    /// Starts at the first packet, or at that of the part. Of the options, `recover`, `part` and, of the limits,
    /// `record_bytes_max` are used.
    ///
    /// # Errors
    /// Usage, where the part is not one of this input, or was found with other options.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let mut cursor = Cursor::new(input);
        let (packet_bytes_max, recovers) = (options.limits.record_bytes_max, options.own.flag("recover"));
        let part = options.part.as_ref();
        let begin = part.map(|part| begin(part, agreement(recovers, packet_bytes_max), &mut cursor)).transpose()?;
        let Begin { seq, work } = begin.unwrap_or_default();
        Ok(Self {
            cursor,
            layout: Layout { packet_bytes_max },
            recovers,
            seq,
            bytes_lost: 0,
            work,
            nesting: Vec::new(),
            steps: Steps::default(),
            found: None,
            returned_bytes: 0,
            is_ended: false,
            until: part.and_then(|part| part.until).unwrap_or(u64::MAX),
        })
    }

    /// The limit on packets, known from the start.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Compression around the trace, outermost first.
    pub(crate) fn layers(&self) -> &[anytrace_core::Layer] {
        self.cursor.layers()
    }

    /// Returns the next packet or damage; `None` after the last one. A packet borrows from the reader's window.
    ///
    /// The diagnostics are those that `info` reports: damage in front of the packets that follow it, a note in front of
    /// each packet whose arrays of arrays were recovered, damage of compression layers at the end.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let Found { place, bytes, is_nested } = loop {
            if let Some(Stored::Damage(diagnostic)) = self.steps.pop() {
                return Ok(Some(Step::Damage(diagnostic)));
            }
            if let Some(found) = self.found.take() {
                break found;
            }
            if self.is_ended {
                return Ok(None);
            }
            let mut reports = Reports(std::mem::take(&mut self.steps));
            let found = self.find_next(&mut reports);
            self.steps = reports.0;
            self.found = found?;
        };
        self.returned_bytes = bytes;
        let packet = self.cursor.window().get(..bytes).unwrap_or_default();
        let nesting = if is_nested { self.nesting.as_slice() } else { &[] };
        Ok(accepted(packet, nesting).map(|record| Step::Record(place, record)))
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
        Ok(Passed { records: self.seq, bytes: self.cursor.offset(), bytes_lost: self.bytes_lost })
    }

    /// Moves past the packet returned last, to the next packet or past the next damage.
    fn find_next(&mut self, reports: &mut Reports) -> Result<Option<Found>, Error> {
        if self.returned_bytes > 0 {
            self.cursor.advance(std::mem::take(&mut self.returned_bytes));
            self.seq += 1;
        }
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        if place.offset >= self.until {
            self.is_ended = true;
            return Ok(None);
        }
        let stop = match parse_within(self.cursor.window(), self.layout.packet_bytes_max) {
            Ok((_, bytes)) => return Ok(Some(Found { place, bytes, is_nested: false })),
            Err(Need::More(need)) => Stop::More(to_usize(need)),
            Err(Need::Bad(fault)) => Stop::Bad(fault),
        };
        match self.pass_stop(stop, reports)? {
            AtStop::Passed => Ok(None),
            AtStop::Nested(bytes) => Ok(Some(Found { place, bytes, is_nested: true })),
            AtStop::End => {
                self.is_ended = true;
                self.report_layers(reports)?;
                Ok(None)
            }
        }
    }

    /// Passes everything to a visitor, to the end of the trace: [`Self::for_each`] for callers that want the bytes of
    /// packets, or [`Damage`] instead of its diagnostic.
    ///
    /// # Errors
    /// I/O errors, and whatever the visitor returns.
    pub fn read<V: Visitor>(&mut self, visitor: &mut V) -> Result<Summary, Error> {
        if self.read_before(self.until, visitor)? {
            self.report_layers(visitor)?;
        }
        Ok(Summary { records: self.seq, bytes: self.cursor.offset() })
    }

    /// Passes everything that begins before an offset to a visitor. True when nothing follows: at the end of the data,
    /// or because the visitor is done.
    pub(crate) fn read_before<V: Visitor>(&mut self, until: u64, visitor: &mut V) -> Result<bool, Error> {
        while self.cursor.offset() < until {
            let base = self.cursor.offset();
            let limit = to_usize(until - base);
            let max = self.layout.packet_bytes_max;
            let (used, stop) = scan(self.cursor.window(), limit, base, &mut self.seq, max, visitor)?;
            self.cursor.advance(used);
            match self.pass_stop(stop, visitor)? {
                AtStop::Passed => {}
                AtStop::Nested(size) => self.visit_nested(size, visitor)?,
                AtStop::End => return Ok(true),
            }
        }
        Ok(false)
    }

    /// Reads all packets and returns to the first one: the earliest start of all events, and whether it is that of the
    /// complete trace. Of a stream of more than `buffered_bytes_max` bytes only the packets before the first damage in
    /// this many bytes are read. Damage is not reported: the next pass does that.
    pub(crate) fn first_start_ns(&mut self, buffered_bytes_max: usize) -> Result<(Option<u64>, bool), Error> {
        let mut earliest = Earliest::default();
        let can_read_twice = self.cursor.can_read_twice(buffered_bytes_max)?;
        if can_read_twice {
            self.read(&mut earliest)?;
            self.cursor.rewind();
            (self.seq, self.bytes_lost, self.work) = (0, 0, 0);
        } else {
            scan(self.cursor.window(), usize::MAX, 0, &mut 0, self.layout.packet_bytes_max, &mut earliest)?;
        }
        Ok((earliest.start_ns, can_read_twice))
    }

    /// Handles the place where no packet could be parsed.
    fn pass_stop<V: Visitor>(&mut self, stop: Stop, visitor: &mut V) -> Result<AtStop, Error> {
        match stop {
            Stop::Done => Ok(AtStop::End),
            Stop::Limit => Ok(AtStop::Passed),
            Stop::Bad(fault) => self.damaged(fault, visitor),
            Stop::More(need) => {
                let have = self.have(need)?;
                if have == 0 {
                    return Ok(AtStop::End);
                }
                if have >= need {
                    return Ok(AtStop::Passed);
                }
                let size = self.cursor.window().get(4..8).and_then(|size| size.try_into().ok());
                let problem = Problem::Truncated { size: size.map(u32::from_be_bytes), left: have };
                self.damaged(Fault::new(0, Field::Size, problem), visitor)
            }
        }
    }

    pub(crate) fn report_layers<V: Visitor>(&self, visitor: &mut V) -> Result<(), Error> {
        self.cursor
            .layers()
            .iter()
            .filter_map(anytrace_core::Layer::damage)
            .try_for_each(|damage| visitor.report(damage))
    }

    /// How many bytes are in the window, at least `need` if there are that many.
    ///
    /// Each refill moves the rest of the window to its front, so there is no refill at the end of the data, and a long
    /// window is refilled by a good part of its length: otherwise many false sizes would cost quadratic time.
    fn have(&mut self, need: usize) -> Result<usize, Error> {
        let have = self.cursor.window().len();
        if have >= need || have > 0 && self.cursor.is_last_window() {
            return Ok(have);
        }
        let ahead = if need > SEARCH_AHEAD_BYTES { need / 16 } else { 0 };
        self.cursor.fill(need.saturating_add(ahead))
    }

    /// Describes a fault at the cursor, finds where to continue, and reports it to the visitor; or recovers the packet.
    #[cold]
    #[inline(never)]
    fn damaged<V: Visitor>(&mut self, mut fault: Fault, visitor: &mut V) -> Result<AtStop, Error> {
        let offset = self.cursor.offset();
        self.work += fault.at as u64;
        if fault.is_in_body()
            && self.recovers
            && !self.is_over_budget()
            && let Some(size) = self.recovered()
        {
            let attributes = self.nesting.len();
            let count = self.nesting.iter().filter(|depth| **depth > 0).count();
            let warning = rules::NESTED_ARRAY_RECOVERED.at(offset).record(self.seq);
            let warning = warning.found(format!("{count} of {attributes} attributes"));
            visitor.report(warning.help("assumed the nesting that fills the packet exactly"))?;
            return Ok(AtStop::Nested(size));
        }
        let mut size = self.size_at_cursor();
        if let Problem::SizeTooBig { .. } = fault.problem {
            size = self.plausible_size(&mut fault)?;
        }
        let packet = if fault.is_in_body() { size } else { 0 };
        let window = self.cursor.window();
        let mut damage = Damage::new(offset, self.seq, fault, window.get(..packet).unwrap_or(window));
        match fault.problem {
            Problem::BadMagic { .. } => self.search_from(1)?,
            Problem::SizeTooSmall { .. } | Problem::Truncated { .. } => self.search_from(4)?,
            Problem::SizeTooBig { .. } if size > 0 => {
                self.cursor.skip(size as u64)?;
            }
            Problem::SizeTooBig { .. } => self.search_from(4)?,
            _ if self.is_over_budget() || self.packet_follows(size)? => self.cursor.advance(size),
            _ => self.search_from(4)?,
        }
        damage.skipped = self.cursor.offset() - offset;
        damage.is_resumed = self.have(1)? > 0;
        self.bytes_lost += damage.skipped;
        visitor.damage(&damage)?;
        Ok(AtStop::Passed)
    }

    /// The size on the wire.
    fn size_at_cursor(&self) -> usize {
        let size = self.cursor.window().get(4..8).and_then(|size| size.try_into().ok());
        size.map_or(0, |size| u32::from_be_bytes(size) as usize)
    }

    /// For a packet above the limit: its size if it is a packet and the size is not damaged, else 0.
    ///
    /// The bytes after it decide if they can be examined; of a longer packet, the part that may be buffered in memory
    /// must decode.
    fn plausible_size(&mut self, fault: &mut Fault) -> Result<usize, Error> {
        let Problem::SizeTooBig { size, limit, .. } = fault.problem else { return Ok(0) };
        if self.is_over_budget() {
            return Ok(0);
        }
        let bytes = size as usize;
        let look = usize::try_from(limit).unwrap_or(usize::MAX).max(LOOK_BYTES_MIN);
        let have = self.have(look)?;
        if have < look.min(bytes) {
            fault.problem = Problem::SizeTooBig { size, left: Some(have as u64), limit };
            return Ok(0);
        }
        if bytes <= look {
            return Ok(if self.packet_follows(bytes)? { bytes } else { 0 });
        }
        let head = self.cursor.window().get(..look).unwrap_or_default();
        let magic = head.first_chunk().copied().map_or(0, u32::from_be_bytes);
        let is_sound = match parse_body(magic, head) {
            Ok(_) => true,
            Err(fault) => {
                self.work += fault.at as u64;
                match fault.problem {
                    Problem::BadType { .. } | Problem::BadUtf8 { .. } | Problem::BadOptionSize { .. } => false,
                    Problem::StringOverrun { length, .. } => fault.at + 2 + length <= bytes,
                    _ => true,
                }
            }
        };
        Ok(if is_sound { bytes } else { 0 })
    }

    /// True when the data end after `size` bytes or a packet starts there.
    fn packet_follows(&mut self, size: usize) -> Result<bool, Error> {
        self.have(size.saturating_add(4))?;
        let next = self.cursor.window().get(size..).unwrap_or_default();
        let next = next.first_chunk::<4>().map_or(next, |magic| magic);
        Ok(EVENT_MAGIC.to_be_bytes().starts_with(next) || METADATA_MAGIC.to_be_bytes().starts_with(next))
    }

    /// For [`anytrace_core::index::MarkSink::share`].
    #[cfg(feature = "lanes")]
    pub(crate) fn agreement(&self) -> [u8; 9] {
        agreement(self.recovers, self.layout.packet_bytes_max)
    }

    /// The place of the next packet, and bytes of damaged packets that were examined before it; `None` at the end of
    /// the data.
    #[cfg(feature = "lanes")]
    pub(crate) fn next_place(&mut self) -> Result<Option<(Place, u64)>, Error> {
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        Ok((self.have(1)? > 0).then_some((place, self.work)))
    }

    fn is_over_budget(&self) -> bool {
        self.work > WORK_START.saturating_add(self.cursor.offset().saturating_mul(WORK_FACTOR))
    }

    /// Moves on by `bytes`, then to the next magic whose packet decodes completely, or to the end.
    fn search_from(&mut self, bytes: usize) -> Result<(), Error> {
        self.cursor.advance(bytes.min(self.cursor.window().len()));
        loop {
            match find_magic(self.cursor.window()) {
                Some(at) => {
                    self.cursor.advance(at);
                    if self.decodes()? {
                        return Ok(());
                    }
                    self.cursor.advance(1);
                }
                None => {
                    // The last three bytes may begin a magic.
                    self.cursor.advance(self.cursor.window().len().saturating_sub(3));
                    let have = self.cursor.fill(4)?;
                    if have < 4 {
                        self.cursor.advance(have);
                        return Ok(());
                    }
                }
            }
        }
    }

    /// True when a complete packet is at the cursor.
    fn decodes(&mut self) -> Result<bool, Error> {
        if self.is_over_budget() {
            return Ok(false);
        }
        loop {
            match parse_within(self.cursor.window(), self.layout.packet_bytes_max) {
                Ok(_) => return Ok(true),
                Err(Need::Bad(fault)) => {
                    self.work += fault.at as u64;
                    let size = self.size_at_cursor();
                    let packet = self.cursor.window().get(..size).unwrap_or_default();
                    if !self.recovers || !fault.is_in_body() {
                        return Ok(false);
                    }
                    self.work += (size * nested::WORK_FACTOR) as u64;
                    return Ok(nested::recover(packet, &mut self.nesting));
                }
                Err(Need::More(need)) => {
                    let need = to_usize(need);
                    if self.have(need.saturating_add(SEARCH_AHEAD_BYTES))? < need {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Tries to read the packet at the cursor with arrays of arrays; returns its size, and leaves how its arrays are
    /// nested in [`Self::nesting`].
    fn recovered(&mut self) -> Option<usize> {
        let size = self.size_at_cursor();
        let packet = self.cursor.window().get(..size)?;
        self.work += (size * nested::WORK_FACTOR) as u64;
        nested::recover(packet, &mut self.nesting).then_some(size)
    }

    /// Passes the packet that was recovered to the visitor.
    #[cold]
    #[inline(never)]
    fn visit_nested<V: Visitor>(&mut self, size: usize, visitor: &mut V) -> Result<(), Error> {
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        let packet = self.cursor.window().get(..size).unwrap_or_default();
        if let Some(event) = accepted(packet, &self.nesting) {
            visitor.packet(place, packet, &event)?;
        }
        self.seq += 1;
        self.cursor.advance(size);
        Ok(())
    }
}

/// The visitor of [`Reader::next`], which looks at packets itself.
struct Reports(Steps);

impl Visitor for Reports {
    fn packet(&mut self, _: Place, _: &[u8], _: &Record<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.report(diagnostic)
    }
}

/// Finds the earliest start.
#[derive(Default)]
struct Earliest {
    start_ns: Option<u64>,
}

impl Visitor for Earliest {
    #[inline]
    fn packet(&mut self, _: Place, _: &[u8], packet: &Record<'_>) -> Result<(), Error> {
        if let Record::Event(event) = packet {
            let start_ns = event.header.start_ns;
            self.start_ns = Some(self.start_ns.map_or(start_ns, |earliest| earliest.min(start_ns)));
        }
        Ok(())
    }

    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }

    fn damage(&mut self, _: &Damage) -> Result<(), Error> {
        Ok(())
    }
}

/// A length as far as memory goes.
pub(crate) fn to_usize(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Passes the complete packets of a window that begin before a limit to the visitor.
fn scan<V: Visitor>(
    window: &[u8],
    limit: usize,
    base: u64,
    seq: &mut u64,
    packet_bytes_max: u64,
    visitor: &mut V,
) -> Result<(usize, Stop), Error> {
    let mut rest = window;
    loop {
        let used = window.len() - rest.len();
        if used >= limit {
            return Ok((used, Stop::Limit));
        }
        match parse_within(rest, packet_bytes_max) {
            Ok((packet, size)) => {
                let (bytes, after) = rest.split_at(size);
                visitor.packet(Place { offset: base + used as u64, seq: *seq }, bytes, &packet)?;
                *seq += 1;
                rest = after;
                if visitor.is_done() {
                    return Ok((window.len() - rest.len(), Stop::Done));
                }
            }
            Err(Need::More(need)) => return Ok((used, Stop::More(to_usize(need)))),
            Err(Need::Bad(fault)) => return Ok((used, Stop::Bad(fault))),
        }
    }
}

/// The first position of either magic number.
fn find_magic(bytes: &[u8]) -> Option<usize> {
    let [event, metadata] = [EVENT_MAGIC, METADATA_MAGIC].map(u32::to_be_bytes);
    bytes.windows(4).position(|four| four == event || four == metadata)
}
