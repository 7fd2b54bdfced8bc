//! Packets from bytes that arrive in pieces: a socket, a growing file, one datagram.
//!
//! The rules are those of [`Reader`](crate::Reader), with the roles exchanged: the caller owns the bytes and passes
//! them in as they arrive; unused bytes are passed in again, with more after them. No allocation has a size taken from
//! the data. One rule differs: a size above the limit is damage at once and the search starts inside that packet,
//! because a live stream must not wait for 16 MiB to find out that a size was wrong.

use anytrace_core::{Error, Limits, Place};
use memchr::memchr2_iter;

use crate::rules;
use crate::wire::fault::{Damage, Fault, Field, Problem};
use crate::wire::nested;
use crate::wire::parse::{EVENT_MAGIC, METADATA_MAGIC, Need, accepted, parse_within};
use crate::wire::reader::{Visitor, to_usize};

/// Bytes of damaged packets that may be examined, as for the reader: this many for each byte, and a fixed number to
/// start with.
const WORK_FACTOR: u64 = 32;
const WORK_START: u64 = 64 << 20;

/// How far [`Framer::walk`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walked {
    /// Bytes at the front of the window that have been processed.
    pub used: usize,
    /// Bytes that must follow `used` before anything more can be found; 0 at the end of the data.
    pub need: usize,
}

/// Finds packets in a stream that arrives in pieces.
///
/// ```
/// use anytrace_core::{Diagnostic, Error, Limits, Place};
/// use anytrace_heph::{Framer, Header, Record, Visitor, Writer};
///
/// struct Count(u64);
/// impl Visitor for Count {
///     fn packet(&mut self, _: Place, _: &[u8], _: &Record<'_>) -> Result<(), Error> { self.0 += 1; Ok(()) }
///     fn report(&mut self, _: Diagnostic) -> Result<(), Error> { Ok(()) }
/// }
///
/// let mut writer = Writer::new(Vec::new());
/// writer.event(&Header::default(), "poll").finish()?;
/// let bytes = writer.finish()?;
/// let (mut framer, mut count) = (Framer::new(&Limits::default(), true), Count(0));
/// let half = framer.walk(&bytes[..20], false, &mut count)?;
/// assert_eq!((half.used, half.need, count.0), (0, bytes.len(), 0));
/// assert_eq!(framer.walk(&bytes, true, &mut count)?.used, bytes.len());
/// assert_eq!(count.0, 1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug)]
pub struct Framer {
    offset: u64,
    seq: u64,
    packet_bytes_max: u64,
    recovers: bool,
    work: u64,
    nesting: Vec<u8>,
    /// The damage whose end is being searched for.
    searching: Option<Damage>,
}

/// What to do after the front of the window was examined.
enum FrontStep {
    /// Skip these bytes.
    Pass(usize),
    /// This many bytes are needed.
    Wait(usize),
}

impl Framer {
    /// Starts at byte 0 of a stream. `recovers`: arrays of arrays are tried where a packet fails.
    pub fn new(limits: &Limits, recovers: bool) -> Self {
        Self {
            offset: 0,
            seq: 0,
            packet_bytes_max: limits.record_bytes_max,
            recovers,
            work: 0,
            nesting: Vec::new(),
            searching: None,
        }
    }

    /// Bytes of the stream that have been processed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Packets found.
    pub fn packets(&self) -> u64 {
        self.seq
    }

    /// True while the next packet after damage has not been found.
    pub fn is_searching(&self) -> bool {
        self.searching.is_some()
    }

    /// Passes all packets of a window to the visitor. `window` begins after the bytes used before. With `is_end` no
    /// more bytes follow, so an incomplete packet is damage, and the entire window is used.
    ///
    /// # Errors
    /// Whatever the visitor returns.
    pub fn walk<V: Visitor>(&mut self, window: &[u8], is_end: bool, visitor: &mut V) -> Result<Walked, Error> {
        let mut at = 0;
        loop {
            let rest = window.get(at..).unwrap_or_default();
            let step = if self.searching.is_some() {
                self.search(rest, is_end, visitor)?
            } else {
                match parse_within(rest, self.packet_bytes_max) {
                    Ok((packet, size)) => {
                        let place = Place { offset: self.offset, seq: self.seq };
                        visitor.packet(place, rest.get(..size).unwrap_or_default(), &packet)?;
                        self.seq += 1;
                        FrontStep::Pass(size)
                    }
                    Err(need) => self.rare(rest, need, is_end, visitor)?,
                }
            };
            match step {
                FrontStep::Pass(bytes) => {
                    at += bytes;
                    self.offset += bytes as u64;
                }
                FrontStep::Wait(need) => return Ok(Walked { used: at, need }),
            }
        }
    }

    /// Incomplete packets and damage at the front.
    #[cold]
    #[inline(never)]
    fn rare<V: Visitor>(&mut self, rest: &[u8], need: Need, is_end: bool, visitor: &mut V) -> Result<FrontStep, Error> {
        let size = rest.get(4..8).and_then(|size| size.try_into().ok()).map(u32::from_be_bytes);
        let fault = match need {
            Need::More(need) if !is_end => return Ok(FrontStep::Wait(to_usize(need))),
            Need::More(_) if rest.is_empty() => return Ok(FrontStep::Wait(0)),
            Need::More(_) => Fault::new(0, Field::Size, Problem::Truncated { size, left: rest.len() }),
            Need::Bad(fault) => fault,
        };
        if !fault.is_in_body() {
            self.searching = Some(Damage::new(self.offset, self.seq, fault, &[]));
            let by = if matches!(fault.problem, Problem::BadMagic { .. }) { 1 } else { 4 };
            return Ok(FrontStep::Pass(by.min(rest.len())));
        }
        let size = size.unwrap_or(0) as usize;
        let packet = rest.get(..size).unwrap_or(rest);
        // The following bytes show whether the size can be trusted.
        if !is_end && rest.len() < size.saturating_add(4) {
            return Ok(FrontStep::Wait(size.saturating_add(4)));
        }
        self.work += fault.at as u64;
        if self.recovers && !self.is_over_budget() && self.recovered(packet, visitor)? {
            return Ok(FrontStep::Pass(size));
        }
        let mut damage = Damage::new(self.offset, self.seq, fault, packet);
        let after = rest.get(size..).unwrap_or_default();
        if self.is_over_budget() || starts_as_packet(after) {
            damage.skipped = size as u64;
            damage.is_resumed = !after.is_empty();
            visitor.damage(&damage)?;
            return Ok(FrontStep::Pass(size));
        }
        self.searching = Some(damage);
        Ok(FrontStep::Pass(4))
    }

    /// Advances to the next magic whose packet decodes completely.
    #[cold]
    #[inline(never)]
    fn search<V: Visitor>(&mut self, rest: &[u8], is_end: bool, visitor: &mut V) -> Result<FrontStep, Error> {
        let mut at = 0;
        loop {
            let window = rest.get(at..).unwrap_or_default();
            let Some(next) = find_magic(window) else {
                // The last three bytes may begin a magic.
                let keep = if is_end { 0 } else { window.len().min(3) };
                at = rest.len() - keep;
                if is_end {
                    return self.found(at, rest.len() > at, visitor);
                }
                return Ok(if at == 0 { FrontStep::Wait(4) } else { FrontStep::Pass(at) });
            };
            at += next;
            match self.decodes(rest.get(at..).unwrap_or_default()) {
                Decodes::Yes => return self.found(at, true, visitor),
                Decodes::More(_) if !is_end && at > 0 => return Ok(FrontStep::Pass(at)),
                Decodes::More(need) if !is_end => return Ok(FrontStep::Wait(need)),
                Decodes::No | Decodes::More(_) => at += 1,
            }
        }
    }

    /// Reports the damage, whose end is `at` bytes later.
    fn found<V: Visitor>(&mut self, at: usize, is_resumed: bool, visitor: &mut V) -> Result<FrontStep, Error> {
        if let Some(mut damage) = self.searching.take() {
            damage.skipped = self.offset + at as u64 - damage.offset;
            damage.is_resumed = is_resumed;
            visitor.damage(&damage)?;
        }
        Ok(FrontStep::Pass(at))
    }

    fn decodes(&mut self, window: &[u8]) -> Decodes {
        if self.is_over_budget() {
            return Decodes::No;
        }
        match parse_within(window, self.packet_bytes_max) {
            Ok(_) => Decodes::Yes,
            Err(Need::More(need)) => Decodes::More(to_usize(need)),
            Err(Need::Bad(fault)) => {
                self.work += fault.at as u64;
                let size = window.get(4..8).and_then(|size| size.try_into().ok()).map_or(0, u32::from_be_bytes);
                let packet = window.get(..size as usize).unwrap_or_default();
                if !self.recovers || !fault.is_in_body() {
                    return Decodes::No;
                }
                self.work += (packet.len() * nested::WORK_FACTOR) as u64;
                if nested::recover(packet, &mut self.nesting) { Decodes::Yes } else { Decodes::No }
            }
        }
    }

    fn recovered<V: Visitor>(&mut self, packet: &[u8], visitor: &mut V) -> Result<bool, Error> {
        self.work += (packet.len() * nested::WORK_FACTOR) as u64;
        if !nested::recover(packet, &mut self.nesting) {
            return Ok(false);
        }
        let Some(event) = accepted(packet, &self.nesting) else { return Ok(false) };
        let place = Place { offset: self.offset, seq: self.seq };
        visitor.report(rules::NESTED_ARRAY_RECOVERED.at(place.offset).record(place.seq))?;
        visitor.packet(place, packet, &event)?;
        self.seq += 1;
        Ok(true)
    }

    fn is_over_budget(&self) -> bool {
        self.work > WORK_START.saturating_add(self.offset.saturating_mul(WORK_FACTOR))
    }
}

enum Decodes {
    Yes,
    No,
    More(usize),
}

/// True when a packet starts here, or the data end.
fn starts_as_packet(bytes: &[u8]) -> bool {
    let four = bytes.first_chunk::<4>().map_or(bytes, |magic| magic);
    EVENT_MAGIC.to_be_bytes().starts_with(four) || METADATA_MAGIC.to_be_bytes().starts_with(four)
}

/// The first position of either magic number.
fn find_magic(bytes: &[u8]) -> Option<usize> {
    let [event, metadata] = [EVENT_MAGIC, METADATA_MAGIC].map(u32::to_be_bytes);
    memchr2_iter(event[0], metadata[0], bytes).find(|&at| {
        let four = bytes.get(at..at + 4);
        four == Some(&event) || four == Some(&metadata)
    })
}
