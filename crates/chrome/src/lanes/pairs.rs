//! Joins beginnings and ends to spans, one thread or id after the other, in order of time.

use anytrace_core::span::EdgeFlags;
use anytrace_core::{Error, Sink};

use super::homes::Homes;
use super::item::{Class, Item};
use super::sorter::Sorter;
use crate::rules;

/// Most spans that are open at once.
const OPEN_MAX: usize = 65_536;

/// Most bytes of open spans' events that are kept.
const BYTES_MAX: usize = 16 << 20;

/// How many open spans are searched for that of an end.
const SEARCHED_MAX: usize = 64;

/// Adds the spans and the ends without a beginning to `spans`.
pub(super) fn join(pairs: Sorter, homes: &mut Homes, spans: &mut Sorter, sink: &mut dyn Sink) -> Result<(), Error> {
    let mut joiner =
        Joiner { homes, spans, key: None, open: Vec::new(), arena: Vec::new(), too_deep: 0, first_deep: 0 };
    let mut visit = |item: &Item, bytes: &[u8]| joiner.item(item, bytes);
    pairs.each(&mut visit)?;
    joiner.end_all()?;
    if joiner.first_deep > 0 {
        let report = rules::TOO_DEEP.at(0).expected(format!("at most {OPEN_MAX} open spans of a thread or id"));
        sink.report(report.found(format!("{} more", joiner.first_deep)))?;
    }
    Ok(())
}

struct Joiner<'a> {
    homes: &'a mut Homes,
    spans: &'a mut Sorter,
    key: Option<(u32, u64)>,
    /// Open spans, each with where its bytes begin.
    open: Vec<(Item, usize)>,
    arena: Vec<u8>,
    /// Spans that begin above the limit and have not ended yet.
    too_deep: u64,
    /// All spans that began above the limit.
    first_deep: u64,
}

impl Joiner<'_> {
    fn item(&mut self, item: &Item, bytes: &[u8]) -> Result<(), Error> {
        if self.key.replace((item.home, item.owner)) != Some((item.home, item.owner)) {
            self.end_all()?;
        }
        if item.class == Class::Begin {
            if self.open.len() >= OPEN_MAX {
                self.too_deep += 1;
                self.first_deep += 1;
                return Ok(());
            }
            let at = self.arena.len();
            let mut item = *item;
            if at + bytes.len() <= BYTES_MAX {
                self.arena.extend_from_slice(bytes);
            } else {
                item.bytes = 0;
            }
            self.open.push((item, at));
            return Ok(());
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
            return Ok(());
        }
        self.end(item, bytes)
    }

    fn end(&mut self, end: &Item, bytes: &[u8]) -> Result<(), Error> {
        if self.open.is_empty() {
            let flags = end.flags | EdgeFlags::ORPHAN.0;
            return self.spans.push(Item { class: Class::Instant, flags, end_seq: end.seq, ..*end }, bytes, &[]);
        }
        let has_name = end.end_seq != 0;
        let is_named = |(open, _): &(Item, usize)| open.name == end.name;
        let inner = match self.open.iter().rev().take(SEARCHED_MAX).position(is_named) {
            Some(inner) if has_name => inner,
            _ => 0,
        };
        for _ in 0..inner {
            self.pop(end, &[], EdgeFlags::DEDUCED)?;
        }
        self.pop(end, bytes, EdgeFlags::NONE)
    }

    /// Ends the innermost span.
    fn pop(&mut self, end: &Item, bytes: &[u8], flags: EdgeFlags) -> Result<(), Error> {
        let Some((begin, at)) = self.open.pop() else { return Ok(()) };
        let own = self.arena.get(at..at + begin.bytes as usize).unwrap_or_default();
        let of_end = if flags.has(EdgeFlags::DEDUCED) { 0 } else { end.flags };
        let flags = begin.flags | of_end | flags.0;
        let name = if begin.end_seq == 0 { end.name } else { begin.name };
        let span = Item { class: Class::Span, end: end.start.max(begin.start), end_seq: end.seq, flags, name, ..begin };
        self.spans.push(span, own, bytes)?;
        self.arena.truncate(at);
        Ok(())
    }

    /// Ends what is open at the end of the trace.
    fn end_all(&mut self) -> Result<(), Error> {
        self.too_deep = 0;
        while let Some((innermost, _)) = self.open.last() {
            let last = self.homes.last_ns(innermost.home).max(innermost.start);
            let end = Item { start: last, flags: 0, seq: innermost.seq, ..*innermost };
            self.pop(&end, &[], EdgeFlags::UNFINISHED)?;
        }
        Ok(())
    }
}
