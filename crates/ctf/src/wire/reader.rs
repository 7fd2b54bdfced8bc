//! Drives the parser over an input, and finds the next packet after damage.

use std::collections::VecDeque;
use std::sync::Arc;

use anytrace_core::archive::BLOCK_BYTES;
use anytrace_core::{Cursor, Diagnostic, Error, Input, Layer, OpenOptions, Passed, Place, Rule, Sink, Step};

use super::catalog::Catalog;
use super::decode::{Memory, Visitor};
use super::parse::{Fault, MAGIC, Need, event, packet, step};
use super::place::{At, Layout, Packet, Piece, Stream};
use super::record::{Kind, Record};
use crate::model::Trace;
use crate::rules;
use crate::tsdl::text;

/// Collects what is wrong with compression.
struct Queue<'a>(&'a mut VecDeque<Diagnostic>);

impl Sink for Queue<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.push_back(diagnostic);
        Ok(())
    }
}

/// Reads a trace, record by record, in the order of its bytes: file by file, packet by packet.
///
/// The input is an archive, or a folder that is read as one ([`anytrace_core::archive`]). Descriptions are looked for
/// before the first record is read; in a long stream that cannot be read twice they must come before what they
/// describe.
///
/// ```
/// use anytrace_core::{Input, OpenOptions, Step};
/// use anytrace_ctf::Reader;
///
/// let mut reader = Reader::new(Input::from_bytes("trace.tar", vec![0; 1024]), &OpenOptions::default())?;
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
    seq: u64,
    bytes_lost: u64,
    is_ended: bool,
    /// The record that was found, and its length: the cursor and the layout pass it when the next one is wanted.
    found: Option<(Piece, usize)>,
    damage: VecDeque<Diagnostic>,
    /// What is wrong with the descriptions: reported first.
    faults: Vec<Diagnostic>,
    /// For looking at the record that was found.
    scratch: Memory,
}

impl Reader {
    /// Looks for the descriptions and starts at the first byte. Of the options, only `record_bytes_max` of the limits
    /// is
    /// used: longer events are damage.
    ///
    /// # Errors
    /// I/O.
    pub fn new(input: Input, options: &OpenOptions) -> Result<Self, Error> {
        let mut cursor = Cursor::new(input);
        let mut faults = Vec::new();
        cursor.can_read_twice(Cursor::BUFFERED_BYTES_MAX)?;
        cursor.fill(BLOCK_BYTES)?;
        let mut layout = Layout::default();
        if text::is_description(cursor.window()) {
            let mut catalog = Catalog::default();
            let bytes = cursor.fill(super::catalog::DESCRIPTION_BYTES_MAX as usize)?;
            catalog.add("", cursor.window().get(..bytes).unwrap_or_default(), &mut faults);
            layout.catalog = Arc::new(catalog);
            layout.at = At::Bare;
        } else {
            layout.catalog = Catalog::find(&mut cursor, &mut faults)?;
        }
        cursor.fill(1)?;
        if layout.catalog.traces.is_empty() && !cursor.window().is_empty() {
            faults.push(rules::NO_METADATA.at(0));
        }
        Ok(Self {
            cursor,
            layout,
            record_bytes_max: options.limits.record_bytes_max.max(BLOCK_BYTES as u64),
            seq: 0,
            bytes_lost: 0,
            is_ended: false,
            found: None,
            damage: faults.iter().cloned().collect(),
            faults,
            scratch: Memory::default(),
        })
    }

    /// The descriptions, and where in the archive the reader is.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Compression layers around the trace, outermost first.
    pub(crate) fn layers(&self) -> &[Layer] {
        self.cursor.layers()
    }

    /// True if the input can be read twice.
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
        let is_bare = matches!(self.layout.at, At::Bare);
        self.layout = Layout { catalog: Arc::clone(&self.layout.catalog), ..Layout::default() };
        if is_bare {
            self.layout.at = At::Bare;
        }
        (self.seq, self.bytes_lost, self.found, self.is_ended) = (0, 0, None, false);
        self.damage = self.faults.iter().cloned().collect();
        true
    }

    /// Returns the next record or damage; `None` after the last one. A record borrows from the reader's window.
    ///
    /// # Errors
    /// I/O.
    #[allow(clippy::should_implement_trait, reason = "an iterator's items cannot borrow from it")]
    #[inline]
    pub fn next(&mut self) -> Result<Option<Step<'_, Record<'_>>>, Error> {
        let Some(next) = self.advance()? else { return Ok(None) };
        Ok(Some(match next {
            Ok(place) => Step::Record(place, self.record()),
            Err(diagnostic) => Step::Damage(diagnostic),
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

    /// What was read so far.
    pub(crate) fn passed(&self) -> Passed {
        let used = self.found.as_ref().map_or(0, |(_, used)| *used as u64);
        Passed { records: self.seq, bytes: self.cursor.offset() + used, bytes_lost: self.bytes_lost }
    }

    /// Finds the next record, or damage.
    #[inline]
    pub(crate) fn advance(&mut self) -> Result<Option<Result<Place, Diagnostic>>, Error> {
        if let Some((piece, used)) = self.found.take() {
            self.cursor.advance(used);
            self.layout.pass(&piece, used as u64);
        }
        loop {
            if let Some(diagnostic) = self.damage.pop_front() {
                return Ok(Some(Err(diagnostic)));
            }
            if self.is_ended {
                return Ok(None);
            }
            if self.find()? {
                let place = Place { offset: self.cursor.offset(), seq: self.seq };
                self.seq += 1;
                return Ok(Some(Ok(place)));
            }
        }
    }

    /// The record that was found.
    #[inline]
    pub(crate) fn record(&self) -> Record<'_> {
        let (kind, used) = match &self.found {
            Some((piece, used)) => (Kind::of(piece, &self.layout), *used),
            None => (Kind::End, 0),
        };
        Record { kind, bytes: self.cursor.window().get(..used).unwrap_or_default() }
    }

    /// What the record is.
    #[inline]
    pub(crate) fn piece(&self) -> &Piece {
        self.found.as_ref().map_or(&Piece::End, |(piece, _)| piece)
    }

    /// The description of the file that is being read, the file, and the packet that is open.
    #[inline]
    pub(crate) fn stream(&self) -> Option<(&Trace, &Stream)> {
        let (_, stream) = self.layout.stream()?;
        Some((self.layout.catalog.trace(stream.trace)?, stream))
    }

    /// Shows the values of the packet or the event that was found.
    pub(crate) fn visit<V: Visitor>(&mut self, visitor: &mut V) {
        let Some((member, stream)) = self.layout.stream() else { return };
        let Some(trace) = self.layout.catalog.trace(stream.trace) else { return };
        let left = usize::try_from(member.left).unwrap_or(usize::MAX);
        let window = self.cursor.window();
        let window = window.get(..left).unwrap_or(window);
        self.scratch.slots.clone_from(&self.layout.memory.slots);
        let memory = &mut self.scratch;
        match (&self.found, &stream.packet) {
            (Some((Piece::Packet(_), _)), None) => {
                let _ = packet(window, trace, stream, member.left, memory, visitor);
            }
            (Some((Piece::Event(_), _)), Some(open)) => {
                let _ = event(window, trace, open, memory, visitor);
            }
            _ => {}
        }
    }

    /// The clock after the event that was found, and its time, if the clock was elsewhere before it.
    pub(crate) fn event_after(&mut self, ticks: u64) -> Option<(u64, Option<u64>)> {
        let (member, stream) = self.layout.stream()?;
        let trace = self.layout.catalog.trace(stream.trace)?;
        let window = self.cursor.window();
        let window = window.get(..usize::try_from(member.left).unwrap_or(usize::MAX)).unwrap_or(window);
        self.scratch.slots.clone_from(&self.layout.memory.slots);
        let before = Packet { ticks, ..stream.packet? };
        match event(window, trace, &before, &mut self.scratch, &mut super::decode::Blind) {
            Ok((Piece::Event(event), _)) => Some((event.ticks, event.time)),
            _ => None,
        }
    }

    /// Where the values of the packet that was found are, and what they are for.
    pub(crate) fn memory(&self) -> &Memory {
        &self.layout.memory
    }

    /// Where the record is in its file.
    pub(crate) fn in_file(&self) -> Option<(u64, &Arc<str>)> {
        self.layout.in_file()
    }

    /// A diagnostic about the record that was found, or about the byte `at` of the window.
    #[cold]
    pub(crate) fn diagnostic(&self, rule: &'static Rule, at: usize) -> Diagnostic {
        match self.layout.in_file() {
            Some((offset, name)) => rule.at(offset + at as u64).within(format!("file {name}")),
            None => rule.at(self.cursor.offset() + at as u64),
        }
    }

    /// Finds the next record; false where there was damage instead, or the end.
    #[inline]
    fn find(&mut self) -> Result<bool, Error> {
        let mut is_end = false;
        loop {
            let Layout { catalog, at, memory } = &mut self.layout;
            let need = match step(self.cursor.window(), catalog, at, memory, is_end) {
                Ok((Piece::Packet(packet), used)) if packet.is_cut => {
                    self.found = Some((Piece::Packet(self.cut_packet(packet)?), used));
                    return Ok(true);
                }
                Ok((_, used)) if used as u64 > self.record_bytes_max => used as u64,
                Ok(found) => {
                    self.found = Some(found);
                    return Ok(true);
                }
                Err(Need::More(need)) => need,
                Err(Need::Bad(fault)) => {
                    self.bad(&fault)?;
                    return Ok(false);
                }
            };
            if need > self.record_bytes_max {
                self.too_long(need)?;
                return Ok(false);
            }
            let need = usize::try_from(need).unwrap_or(usize::MAX);
            let have = self.cursor.fill(need)?;
            if have < need && is_end {
                self.cut(have)?;
                return Ok(false);
            }
            is_end = have < need;
        }
    }

    /// The input ends where a record should.
    #[cold]
    fn cut(&mut self, have: usize) -> Result<(), Error> {
        self.is_ended = true;
        let is_inside = match &self.layout.at {
            At::File(member) => member.left > 0,
            At::Header => have > 0,
            At::Padding(_) | At::Rest | At::Bare => false,
        };
        if is_inside {
            let damage = self.diagnostic(&rules::TRUNCATED, have).expected("the rest of the file");
            self.damage.push_back(damage.found("the end of the archive").skipped(have as u64));
        }
        self.bytes_lost += have as u64;
        self.cursor.advance(have);
        self.cursor.report_layers(&mut Queue(&mut self.damage))
    }

    /// Bytes that are no record.
    #[cold]
    fn bad(&mut self, fault: &Fault) -> Result<(), Error> {
        let Some((_, stream)) = self.layout.stream() else { return self.lose_blocks() };
        let (number, packet) = (stream.number, stream.packet);
        let rule = if packet.is_some() { &rules::BAD_EVENT } else { &rules::BAD_PACKET };
        let damage =
            self.diagnostic(rule, fault.at).record(self.seq).field(format!("packet {number}: {}", fault.field));
        let damage = damage.expected(fault.expected).found(fault.found.clone());
        if packet.is_some() {
            // Of a packet that the end of the file cuts, the last event is cut, too: that was reported.
            let is_known = packet.is_some_and(|packet| packet.is_cut);
            return self.lose_packet((!is_known).then_some(damage));
        }
        self.lose_until_packet(damage)
    }

    #[cold]
    fn too_long(&mut self, need: u64) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::EVENT_TOO_LONG, 0).record(self.seq);
        let damage = damage.expected(format!("at most {} bytes", self.record_bytes_max)).found(need.to_string());
        match self.layout.stream().map(|(_, stream)| stream.packet.is_some()) {
            Some(true) => self.lose_packet(Some(damage)),
            _ => self.lose_file(damage),
        }
    }

    /// Passes the rest of a packet.
    fn lose_packet(&mut self, damage: Option<Diagnostic>) -> Result<(), Error> {
        let lost = self.layout.lose_packet();
        let passed = self.cursor.skip(lost)?;
        self.bytes_lost += passed;
        self.damage.extend(damage.map(|damage| damage.skipped(passed)));
        Ok(())
    }

    /// Passes the rest of a file.
    fn lose_file(&mut self, damage: Diagnostic) -> Result<(), Error> {
        let left = self.layout.member().map_or(0, |member| member.left);
        self.layout.lose_bytes(left);
        let passed = self.cursor.skip(left)?;
        self.bytes_lost += passed;
        self.damage.push_back(damage.skipped(passed));
        Ok(())
    }

    /// Passes blocks until one is the header of a file: a guess, as a file may contain an archive.
    fn lose_blocks(&mut self) -> Result<(), Error> {
        let damage = self.diagnostic(&rules::BAD_ARCHIVE, 0).record(self.seq).field("header");
        let damage = damage.expected("the header of a file").found("other bytes");
        let mut lost = 0;
        loop {
            let have = self.cursor.fill(BLOCK_BYTES)?.min(BLOCK_BYTES);
            self.cursor.advance(have);
            lost += have as u64;
            self.cursor.fill(BLOCK_BYTES)?;
            let Layout { catalog, at, memory } = &mut self.layout;
            let next = step(self.cursor.window(), catalog, at, memory, false);
            if have < BLOCK_BYTES || matches!(next, Ok((Piece::File(_), _))) {
                break;
            }
        }
        self.bytes_lost += lost;
        self.damage.push_back(damage.skipped(lost));
        Ok(())
    }

    /// Passes bytes of a file until a packet begins.
    fn lose_until_packet(&mut self, damage: Diagnostic) -> Result<(), Error> {
        let mut lost = 0_u64;
        // The byte where a packet should begin is the first that is lost.
        let mut from = 1;
        loop {
            let found = self.packet_after(from)?;
            let (passed, is_found) = match found {
                Search::At(at) => (at as u64, true),
                Search::NotIn(bytes) => (bytes as u64, bytes == 0),
            };
            from = 0;
            self.cursor.advance(passed as usize);
            self.layout.lose_bytes(passed);
            lost += passed;
            if is_found || self.layout.stream().is_none() {
                break;
            }
        }
        self.bytes_lost += lost;
        self.damage.push_back(damage.skipped(lost));
        Ok(())
    }

    /// Looks for the start of a packet in the file that is being read.
    fn packet_after(&mut self, from: usize) -> Result<Search, Error> {
        let Some((member, stream)) = self.layout.stream() else { return Ok(Search::NotIn(0)) };
        let (left, stream) = (member.left, Stream { packet: None, ..*stream });
        let wanted = left.min(SEARCH_BYTES);
        let have = self.cursor.fill(wanted as usize)?.min(wanted as usize);
        let Some(trace) = self.layout.catalog.trace(stream.trace) else { return Ok(Search::NotIn(have)) };
        let window = self.cursor.window();
        let own = window.get(..have).unwrap_or(window);
        if !trace.has_magic {
            return Ok(Search::NotIn(have));
        }
        let magic = trace.order.put_u32(MAGIC);
        let mut memory = Memory::with_slots(trace.slots);
        let starts = own.windows(4).enumerate().skip(from).filter(|(_, four)| **four == magic);
        for (at, _) in starts {
            let rest = window.get(at..left.min(window.len() as u64) as usize).unwrap_or_default();
            let parsed = packet(rest, trace, &stream, left - at as u64, &mut memory, &mut super::decode::Blind);
            if matches!(parsed, Ok(_) | Err(Need::More(_))) {
                return Ok(Search::At(at));
            }
        }
        // A magic number may lie across the end of what was searched.
        Ok(Search::NotIn(if have as u64 == left || have < wanted as usize { have } else { have - 3 }))
    }

    /// A packet that is longer than the rest of its file: the file is cut, or its length is damaged and another packet
    /// follows.
    #[cold]
    fn cut_packet(&mut self, packet: Packet) -> Result<Packet, Error> {
        let number = self.layout.stream().map_or(0, |(_, stream)| stream.number);
        let next = match self.packet_after((packet.at / 8).max(4) as usize)? {
            Search::At(at) => Some(at as u64),
            Search::NotIn(_) => None,
        };
        let field = format!("packet {number}: packet_size");
        let Some(bytes) = next else {
            let damage = self.diagnostic(&rules::TRUNCATED, 0).record(self.seq).field(field);
            let damage = damage.expected("at most the rest of the file").found("more");
            self.damage.push_back(damage.help("the events that are there are read"));
            return Ok(packet);
        };
        let damage = self.diagnostic(&rules::BAD_PACKET, 0).record(self.seq).field(field);
        self.damage.push_back(damage.expected(format!("{} bits, up to the next packet", bytes * 8)).found("more"));
        Ok(Packet { bytes, content_end: packet.content_end.min(bytes * 8), ..packet })
    }
}

/// How far a packet is looked for at once.
const SEARCH_BYTES: u64 = 1 << 20;

/// Where a packet begins.
enum Search {
    At(usize),
    /// Not in so many bytes.
    NotIn(usize),
}
