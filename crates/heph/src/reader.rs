//! Packets from an input of any size; damage is located, reported and skipped.

use anytrace_core::{Cursor, Diagnostic, Error, Input, OpenOptions, Summary};

use crate::flaw::{Damage, Field, Flaw, Problem};
use crate::nested;
use crate::parse::{EVENT_MAGIC, METADATA_MAGIC, Need, parse, parse_body};
use crate::record::Packet;
use crate::rules;

/// What a search may request beyond the packet it examines, so that a slow pipe is read in large steps.
const SEARCH_AHEAD_BYTES: usize = 1 << 20;

/// Minimum number of bytes examined of a packet above the limit.
const LOOK_BYTES_MIN: usize = 1 << 20;

/// Bytes of damaged packets that may be examined: this many for each byte of the input, and a fixed number to start
/// with. Beyond that, sizes are trusted and bytes skipped unread, so that no input takes quadratic time.
const WORK_FACTOR: u64 = 32;
const WORK_START: u64 = 64 << 20;

/// Where a packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Byte offset of its magic.
    pub offset: u64,
    /// Number of the record, from 0; damaged packets take none.
    pub seq: u64,
}

/// Receives what a [`Reader`] finds, in wire order.
pub trait Visitor {
    /// Processes a complete packet; `bytes` are all of it.
    ///
    /// # Errors
    /// An error ends the reading.
    fn packet(&mut self, place: Place, bytes: &[u8], packet: &Packet<'_>) -> Result<(), Error>;

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
}

/// Reads all packets of an input.
pub struct Reader {
    cursor: Cursor,
    packet_bytes_max: u64,
    recovers: bool,
    seq: u64,
    work: u64,
    nesting: Vec<u8>,
}

enum Stop {
    More(usize),
    Bad(Flaw),
}

impl Reader {
    /// Starts at the first packet. Of the options, only the limits and `recover` are used.
    pub fn new(input: Input, options: &OpenOptions) -> Self {
        Self {
            cursor: Cursor::new(input),
            packet_bytes_max: options.limits.record_bytes_max,
            recovers: options.recover,
            seq: 0,
            work: 0,
            nesting: Vec::new(),
        }
    }

    /// Compression around the trace, outermost first.
    pub fn layers(&self) -> &[anytrace_core::Layer] {
        self.cursor.layers()
    }

    /// Reads to the end.
    ///
    /// # Errors
    /// I/O errors, and whatever the visitor returns.
    pub fn read<V: Visitor>(&mut self, visitor: &mut V) -> Result<Summary, Error> {
        loop {
            let (used, stop) =
                scan(self.cursor.window(), self.cursor.offset(), &mut self.seq, self.packet_bytes_max, visitor)?;
            self.cursor.advance(used);
            match stop {
                Stop::Bad(flaw) => self.damaged(flaw, visitor)?,
                Stop::More(need) => {
                    let have = self.have(need)?;
                    if have == 0 {
                        break;
                    }
                    if have < need {
                        let size = self.cursor.window().get(4..8).and_then(|size| size.try_into().ok());
                        let problem = Problem::Truncated { size: size.map(u32::from_be_bytes), left: have };
                        self.damaged(Flaw::new(0, Field::Size, problem), visitor)?;
                    }
                }
            }
        }
        for layer in self.cursor.layers() {
            if let Some(diagnostic) = layer.damage() {
                visitor.report(diagnostic)?;
            }
        }
        Ok(Summary { records: self.seq, bytes: self.cursor.offset() })
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

    /// Describes a flaw at the cursor, finds where to continue, and reports it to the visitor.
    #[cold]
    #[inline(never)]
    fn damaged<V: Visitor>(&mut self, mut flaw: Flaw, visitor: &mut V) -> Result<(), Error> {
        let offset = self.cursor.offset();
        self.work += flaw.at as u64;
        if flaw.is_in_body() && self.recovers && !self.is_over_budget() && self.recovered(visitor)? {
            return Ok(());
        }
        let mut size = self.size_at_cursor();
        if let Problem::SizeTooBig { .. } = flaw.problem {
            size = self.plausible_size(&mut flaw)?;
        }
        let packet = if flaw.is_in_body() { size } else { 0 };
        let window = self.cursor.window();
        let mut damage = Damage::new(offset, self.seq, flaw, window.get(..packet).unwrap_or(window));
        match flaw.problem {
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
        visitor.damage(&damage)
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
    fn plausible_size(&mut self, flaw: &mut Flaw) -> Result<usize, Error> {
        let Problem::SizeTooBig { size, limit, .. } = flaw.problem else { return Ok(0) };
        if self.is_over_budget() {
            return Ok(0);
        }
        let bytes = size as usize;
        let look = usize::try_from(limit).unwrap_or(usize::MAX).max(LOOK_BYTES_MIN);
        let have = self.have(look)?;
        if have < look.min(bytes) {
            flaw.problem = Problem::SizeTooBig { size, left: Some(have as u64), limit };
            return Ok(0);
        }
        if bytes <= look {
            return Ok(if self.packet_follows(bytes)? { bytes } else { 0 });
        }
        let head = self.cursor.window().get(..look).unwrap_or_default();
        let magic = head.first_chunk().copied().map_or(0, u32::from_be_bytes);
        let is_sound = match parse_body(magic, head) {
            Ok(_) => true,
            Err(flaw) => {
                self.work += flaw.at as u64;
                match flaw.problem {
                    Problem::BadType { .. } | Problem::BadUtf8 { .. } | Problem::BadOptionSize { .. } => false,
                    Problem::StringOverrun { length, .. } => flaw.at + 2 + length <= bytes,
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
            match parse(self.cursor.window(), self.packet_bytes_max) {
                Ok(_) => return Ok(true),
                Err(Need::Bad(flaw)) => {
                    self.work += flaw.at as u64;
                    let size = self.size_at_cursor();
                    let packet = self.cursor.window().get(..size).unwrap_or_default();
                    if !self.recovers || !flaw.is_in_body() {
                        return Ok(false);
                    }
                    self.work += (size * nested::WORK_FACTOR) as u64;
                    return Ok(nested::recover(packet, &mut self.nesting));
                }
                Err(Need::More(need)) => {
                    if self.have(need.saturating_add(SEARCH_AHEAD_BYTES))? < need {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Tries to read the packet at the cursor with arrays of arrays.
    fn recovered<V: Visitor>(&mut self, visitor: &mut V) -> Result<bool, Error> {
        let size = self.size_at_cursor();
        let Some(packet) = self.cursor.window().get(..size) else { return Ok(false) };
        self.work += (size * nested::WORK_FACTOR) as u64;
        if !nested::recover(packet, &mut self.nesting) {
            return Ok(false);
        }
        let Some(event) = nested::event(packet, &self.nesting) else { return Ok(false) };
        let place = Place { offset: self.cursor.offset(), seq: self.seq };
        let count = self.nesting.iter().filter(|depth| **depth > 0).count();
        let warning = rules::NESTED_ARRAY_RECOVERED
            .at(place.offset)
            .record(place.seq)
            .found(format!("{count} of {} attributes", self.nesting.len()));
        visitor.report(warning.help("the nesting that fills the packet exactly was taken; it is a guess"))?;
        visitor.packet(place, packet, &event)?;
        self.seq += 1;
        self.cursor.advance(size);
        Ok(true)
    }
}

/// Passes all complete packets of a window to the visitor.
fn scan<V: Visitor>(
    window: &[u8],
    base: u64,
    seq: &mut u64,
    packet_bytes_max: u64,
    visitor: &mut V,
) -> Result<(usize, Stop), Error> {
    let mut rest = window;
    loop {
        let used = window.len() - rest.len();
        match parse(rest, packet_bytes_max) {
            Ok((packet, size)) => {
                let (bytes, after) = rest.split_at(size);
                visitor.packet(Place { offset: base + used as u64, seq: *seq }, bytes, &packet)?;
                *seq += 1;
                rest = after;
            }
            Err(Need::More(need)) => return Ok((used, Stop::More(need))),
            Err(Need::Bad(flaw)) => return Ok((used, Stop::Bad(flaw))),
        }
    }
}

/// The first position of either magic number.
fn find_magic(bytes: &[u8]) -> Option<usize> {
    let [event, metadata] = [EVENT_MAGIC, METADATA_MAGIC].map(u32::to_be_bytes);
    bytes.windows(4).position(|four| four == event || four == metadata)
}
