//! The memory of the model: pages of 512 words with a few flags per word, and long ranges that have not been examined
//! yet.
//!
//! A page costs 4.5 KiB, and 2 to 4 KiB more when entries of it were cleaned or assigned to threads. A long range of
//! fresh memory costs nothing until words of it are used.

mod pages;

use alloc::vec::Vec;

use super::bits::Bits;
use super::descriptor::{Descriptor, Format};
use super::room;
use super::sorted::Sorted;
use super::table::Map;
use super::tree::TreeKind;
pub(crate) use pages::Pages;

pub(crate) const PAGE_BYTES: u64 = 4096;
pub(crate) const WORDS: usize = 512;

/// No cell.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// The properties of a page that is a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Table {
    /// Base of the root to which it belongs.
    pub(crate) root: u64,
    /// Input address of its first entry.
    pub(crate) input: u64,
    /// The entry that points at it; [`NOWHERE`] for a root.
    pub(crate) parent: u64,
    /// The thread that put it into its tree.
    pub(crate) thread: u32,
    pub(crate) level: i8,
    pub(crate) kind: TreeKind,
    pub(crate) format: Format,
}

impl Table {
    /// 1 or 2.
    #[inline]
    pub(crate) fn stage(self) -> u8 {
        self.kind.stage()
    }

    /// Reads the value of one of its entries.
    #[inline]
    pub(crate) fn decode(self, value: u64) -> Descriptor {
        Descriptor::decode(self.format, self.level, value)
    }

    /// Bytes of input addresses that an entry covers.
    #[inline]
    pub(crate) fn entry_bytes(self) -> u64 {
        self.format.entry_bytes(self.level)
    }

    /// Its part in a page of 4 KiB: larger tables have several.
    #[inline]
    pub(crate) fn part(self, number: u64) -> Self {
        let bytes = self.entry_bytes().wrapping_mul(WORDS as u64 * number);
        Self { input: self.input.wrapping_add(bytes), ..self }
    }

    /// Pages of 4 KiB in a whole table of the format.
    #[inline]
    pub(crate) fn pages(self) -> u64 {
        1 << (self.format.page_bits() - 12)
    }

    /// The place of the table at which the entry `word`, number `at` of this table, points.
    #[inline]
    pub(crate) fn below(self, word: u64, at: usize) -> Self {
        let input = self.input.wrapping_add(self.entry_bytes().wrapping_mul(at as u64));
        Self { input, parent: word, level: self.level + 1, ..self }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Page {
    /// Address of the first word.
    pub(crate) base: u64,
    /// [`WORDS`] values, like the lists below unless they are empty.
    pub(crate) values: Vec<u64>,
    pub(crate) initialised: Bits,
    /// Bit 0 of each value.
    pub(crate) valid: Bits,
    /// Which words are entries of tables.
    pub(crate) entry: Bits,
    /// Entries that are invalid and not yet clean.
    pub(crate) unclean: Bits,
    /// Entries below one that is being removed.
    pub(crate) frozen: Bits,
    /// Clean entries whose last valid value was a table.
    pub(crate) was_table: Bits,
    /// Live entries whose access flag was cleared in place: TLBs may hold the value with the flag set.
    pub(crate) aged: Bits,
    /// Where the entries belong, if they all belong in one place.
    pub(crate) table: Table,
    /// Where each entry belongs, if they differ; empty if not.
    pub(crate) mixed: Vec<Table>,
    /// The thread that owns each word; negative for none. Empty if no word has an owner.
    pub(crate) owners: Vec<i32>,
    /// The thread that made each entry clean, plus one; 0 for the thread that put the table into its tree.
    pub(crate) cleaners: Vec<u32>,
    /// Some entry may have the contiguous bit.
    pub(crate) has_contiguous: bool,
    /// Unclean entries in this table and below it.
    pub(crate) unclean_below: u32,
    /// The number of the page that contained the entry above, when it was looked for last ([`Memory::page_above`]).
    above: u32,
}

/// The address of pages to which none leads.
const RELEASED: u64 = u64::MAX;

impl Page {
    pub(super) fn new(base: u64, value: u64) -> Self {
        Self {
            base,
            values: room::filled(WORDS, value),
            initialised: Bits::default(),
            valid: Bits::default(),
            entry: Bits::default(),
            unclean: Bits::default(),
            frozen: Bits::default(),
            was_table: Bits::default(),
            aged: Bits::default(),
            table: Table::default(),
            mixed: Vec::new(),
            owners: Vec::new(),
            cleaners: Vec::new(),
            has_contiguous: false,
            unclean_below: 0,
            above: 0,
        }
    }

    fn filled(base: u64, value: u64) -> Self {
        let mut page = Self::new(base, value);
        page.initialised = Bits::ALL;
        page.valid = if value & 1 == 0 { Bits::default() } else { Bits::ALL };
        page
    }

    #[inline]
    pub(crate) fn store(&mut self, at: usize, value: u64) {
        if let Some(place) = self.values.get_mut(at & (WORDS - 1)) {
            *place = value;
        }
        self.valid.put(at, value & 1 != 0);
    }

    #[inline]
    pub(crate) fn value(&self, at: usize) -> u64 {
        self.values.get(at & (WORDS - 1)).copied().unwrap_or(0)
    }

    #[inline]
    pub(crate) fn address(&self, at: usize) -> u64 {
        self.base + 8 * at as u64
    }

    #[inline]
    pub(crate) fn table_of(&self, at: usize) -> Table {
        self.mixed.get(at & (WORDS - 1)).copied().unwrap_or(self.table)
    }

    #[inline]
    pub(crate) fn owner(&self, at: usize) -> i32 {
        self.owners.get(at & (WORDS - 1)).copied().unwrap_or(-1)
    }

    pub(crate) fn set_owner(&mut self, at: usize, owner: i32) {
        if self.owners.is_empty() {
            self.owners = room::filled(WORDS, -1);
        }
        if let Some(place) = self.owners.get_mut(at & (WORDS - 1)) {
            *place = owner;
        }
    }

    /// Makes one word an entry of a table.
    pub(crate) fn mark(&mut self, at: usize, table: Table) {
        if self.mixed.is_empty() && self.table != table {
            if self.entry.is_empty() {
                self.table = table;
            } else {
                self.mixed = room::filled(WORDS, self.table);
            }
        }
        if let Some(place) = self.mixed.get_mut(at & (WORDS - 1)) {
            *place = table;
        }
        self.entry.put(at, true);
        self.unclean.put(at, false);
        self.frozen.put(at, false);
        self.was_table.put(at, false);
        self.aged.put(at, false);
        if let Some(cleaner) = self.cleaners.get_mut(at & (WORDS - 1)) {
            *cleaner = 0;
        }
    }

    /// Makes every word an entry of a table.
    pub(crate) fn mark_all(&mut self, table: Table) {
        self.table = table;
        self.mixed = Vec::new();
        self.cleaners = Vec::new();
        self.entry = Bits::ALL;
        self.unclean = Bits::default();
        self.frozen = Bits::default();
        self.was_table = Bits::default();
        self.aged = Bits::default();
    }

    pub(crate) fn set_cleaner(&mut self, at: usize, thread: u32) {
        if self.cleaners.is_empty() {
            self.cleaners = room::filled(WORDS, 0);
        }
        if let Some(cleaner) = self.cleaners.get_mut(at & (WORDS - 1)) {
            *cleaner = thread.wrapping_add(1);
        }
    }

    /// The thread that made a clean entry clean.
    pub(crate) fn cleaner(&self, at: usize) -> u32 {
        match self.cleaners.get(at & (WORDS - 1)).copied().unwrap_or(0) {
            0 => self.table_of(at).thread,
            thread => thread - 1,
        }
    }

    /// True when nothing is known of any word.
    pub(crate) fn is_unused(&self) -> bool {
        let is_empty = [&self.initialised, &self.entry, &self.unclean].into_iter().all(Bits::is_empty);
        is_empty && self.unclean_below == 0
    }

    /// Initializes words with value 0.
    pub(crate) fn initialise(&mut self, words: Bits) {
        self.initialised = self.initialised.or(&words);
        self.valid = self.valid.without(&words);
        if words.is_all() {
            self.values.fill(0);
            self.owners.fill(-1);
            return;
        }
        for at in words.ones() {
            if let Some(value) = self.values.get_mut(at) {
                *value = 0;
            }
            if let Some(owner) = self.owners.get_mut(at) {
                *owner = -1;
            }
        }
    }
}

/// Entire pages of one value that no record has examined.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// The page after the last one.
    end: u64,
    value: u64,
}

/// A part of a range of words, in order of addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Piece {
    /// Words of a page.
    Page { page: usize, from: usize, to: usize },
    /// Entire pages of one value.
    Filled { first: u64, end: u64, value: u64 },
    /// Pages of which nothing is known: the first and last words, by number.
    Unknown { first_word: u64, end_word: u64 },
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    index: Map<u64, u32>,
    pub(crate) pages: Pages,
    /// Pages without initialized words, to be used again: no address leads to them.
    free: Vec<u32>,
    spans: Sorted<u64, Span>,
    span_pages: u64,
    /// The last page found, and its number plus one.
    last: (u64, u32),
}

/// The words of `size` bytes from `address` on, as word numbers; the model drops the low bits of addresses.
pub(crate) fn word_range(address: u64, size: u64) -> (u64, u64) {
    if address.checked_add(size).is_none() {
        return (0, 0);
    }
    let first = address / 8;
    (first, first + size.div_ceil(8))
}

/// Position in its page.
#[inline]
pub(crate) fn position(address: u64) -> usize {
    (address >> 3) as usize & (WORDS - 1)
}

impl Memory {
    /// The page of an address, if anything is known of it.
    #[inline]
    pub(crate) fn find(&mut self, address: u64) -> Option<usize> {
        let number = address / PAGE_BYTES;
        if self.last.0 == number + 1 {
            return Some(self.last.1 as usize);
        }
        let page = match self.index.get(&number) {
            Some(page) => *page,
            None if self.spans.is_empty() => return None,
            None => self.take_from_span(number)?,
        };
        self.last = (number + 1, page);
        Some(page as usize)
    }

    /// Like [`Self::find`], but changes nothing; pages inside long ranges are not found.
    pub(crate) fn peek(&self, address: u64) -> Option<usize> {
        self.index.get(&(address / PAGE_BYTES)).map(|page| *page as usize)
    }

    /// The page of the entry above an entry of a page; none at a root. It is looked for once: what is remembered of it
    /// counts as long as the page is still the one of the address.
    #[inline]
    pub(crate) fn page_above(&mut self, page: usize, parent: u64) -> Option<usize> {
        let base = parent & !(PAGE_BYTES - 1);
        let known = self.pages.get(page)?.above as usize;
        if self.pages.get(known).is_some_and(|page| page.base == base) {
            return Some(known);
        }
        let found = self.peek(parent)?;
        self.pages.get_mut(page)?.above = found as u32;
        Some(found)
    }

    /// The value of an initialized word.
    pub(crate) fn peek_value(&self, address: u64) -> Option<u64> {
        if let Some(page) = self.peek(address).and_then(|page| self.pages.get(page)) {
            let at = position(address);
            return page.initialised.has(at).then(|| page.value(at));
        }
        let number = address / PAGE_BYTES;
        let (_, span) = self.spans.floor(&number)?;
        (number < span.end).then_some(span.value)
    }

    /// Entire pages that are stored as ranges: first page, page after the last, value.
    pub(crate) fn spans(&self) -> impl Iterator<Item = (u64, u64, u64)> {
        self.spans.iter().map(|(first, span)| (first, span.end, span.value))
    }

    /// The page of an address, created if necessary; none if there is no memory for it.
    pub(crate) fn make(&mut self, address: u64) -> Option<usize> {
        match self.find(address) {
            Some(page) => Some(page),
            None => self.add(Page::new(address & !(PAGE_BYTES - 1), 0)).map(|page| page as usize),
        }
    }

    pub(super) fn add(&mut self, page: Page) -> Option<u32> {
        let number = page.base / PAGE_BYTES;
        let at = match self.free.pop() {
            Some(at) => {
                *self.pages.get_mut(at as usize)? = page;
                at
            }
            None => {
                let at = self.pages.len() as u32;
                if !self.pages.push(page) {
                    return None;
                }
                at
            }
        };
        self.index.insert(number, at).then_some(at)
    }

    /// Forgets a page that has no initialized words; its number stays valid until the next page is added.
    pub(crate) fn release(&mut self, page: usize) {
        let Some(unused) = self.pages.get_mut(page) else { return };
        debug_assert!(unused.is_unused(), "a page in use");
        if self.index.remove(&(unused.base / PAGE_BYTES)).is_some() {
            *unused = Page::new(RELEASED, 0);
            room::push(&mut self.free, page as u32);
            self.last = (0, 0);
        }
    }

    /// The pages to which an address leads.
    #[cfg(feature = "hosted")]
    pub(super) fn used(&self) -> Vec<&Page> {
        let is_used = |at: usize, page: &Page| self.index.get(&(page.base / PAGE_BYTES)) == Some(&(at as u32));
        self.pages.iter().enumerate().filter(|(at, page)| is_used(*at, page)).map(|(_, page)| page).collect()
    }

    #[cold]
    fn take_from_span(&mut self, number: u64) -> Option<u32> {
        let (_, span) = self.spans.floor(&number)?;
        if number >= span.end {
            return None;
        }
        let value = span.value;
        self.remove_span(number, number + 1);
        self.add(Page::filled(number * PAGE_BYTES, value))
    }

    fn remove_span(&mut self, first: u64, end: u64) {
        let Some(last) = end.checked_sub(1) else { return };
        while let Some((from, span)) = self.spans.floor(&last).map(|(from, span)| (from, *span)) {
            if span.end <= first {
                break;
            }
            self.spans.remove(&from);
            self.span_pages -= span.end.min(end) - from.max(first);
            if from < first {
                self.spans.insert(from, Span { end: first, ..span });
            }
            if span.end > end {
                self.spans.insert(end, span);
            }
            if from <= first {
                break;
            }
        }
    }

    /// Adds a range that overlaps no other; neighbors of the same value are merged.
    pub(super) fn insert_span(&mut self, mut first: u64, mut end: u64, value: u64) {
        self.span_pages += end - first;
        let before = first.checked_sub(1).and_then(|last| self.spans.floor(&last));
        if let Some((start, before)) = before
            && before.end == first
            && before.value == value
        {
            first = start;
        }
        if let Some(after) = self.spans.get(&end).copied()
            && after.value == value
        {
            self.spans.remove(&end);
            end = after.end;
        }
        self.spans.insert(first, Span { end, value });
    }

    /// Divides words into pieces, in order of addresses. The number of pieces depends on what is known of the range,
    /// not on its size.
    pub(crate) fn pieces(&mut self, (first_word, end_word): (u64, u64)) -> Vec<Piece> {
        let mut pieces = Vec::new();
        if first_word >= end_word {
            return pieces;
        }
        let words = WORDS as u64;
        let (first_page, last_page) = (first_word / words, (end_word - 1) / words);
        if first_page == last_page && end_word - first_word == words && self.index.get(&first_page).is_none() {
            self.gaps(first_word, end_word, &mut pieces);
            return pieces;
        }
        // Pages that are only partly covered are separate pieces.
        if first_word % words != 0 {
            self.find(first_page * PAGE_BYTES);
        }
        if end_word % words != 0 {
            self.find(last_page * PAGE_BYTES);
        }
        let mut at = first_word;
        for (number, page) in self.known(first_page, last_page) {
            let start = (number * words).max(first_word);
            self.gaps(at, start, &mut pieces);
            at = ((number + 1) * words).min(end_word);
            let from = (start % words) as usize;
            room::push(&mut pieces, Piece::Page { page, from, to: from + (at - start) as usize });
        }
        self.gaps(at, end_word, &mut pieces);
        pieces
    }

    /// The part of a page that words are, if they are in one page of its own.
    #[inline]
    pub(crate) fn part_of_page(&mut self, (first_word, end_word): (u64, u64)) -> Option<(usize, usize, usize)> {
        let words = WORDS as u64;
        let (number, from) = (first_word / words, first_word % words);
        let length = end_word.checked_sub(first_word).filter(|length| (1..=words - from).contains(length))?;
        // A whole page may stay part of a range.
        let page = match length == words && self.last.0 != number + 1 {
            true => *self.index.get(&number)? as usize,
            false => self.find(number * PAGE_BYTES)?,
        };
        Some((page, from as usize, (from + length) as usize))
    }

    fn known(&self, first: u64, last: u64) -> Vec<(u64, usize)> {
        if last - first < 2 * self.pages.len() as u64 {
            let find = |number| Some((number, *self.index.get(&number)? as usize));
            return room::collected((first..=last).filter_map(find));
        }
        let all = self.pages.iter().enumerate().map(|(at, page)| (page.base / PAGE_BYTES, at));
        let is_in_use = |number, at| self.index.get(&number) == Some(&(at as u32));
        let is_part = |number, at| (first..=last).contains(&number) && is_in_use(number, at);
        let mut found = room::collected(all.filter(|(number, at)| is_part(*number, *at)));
        room::sort_by_key(&mut found, |(number, _)| *number);
        found
    }

    /// The pieces between known pages.
    fn gaps(&self, first_word: u64, end_word: u64, pieces: &mut Vec<Piece>) {
        let words = WORDS as u64;
        let mut at = first_word;
        if at >= end_word {
            return;
        }
        let (first, end) = (at / words, end_word.div_ceil(words));
        let from = self.spans.floor(&first).filter(|(_, span)| span.end > first).map_or(first, |(start, _)| start);
        for (start, span) in self.spans.from(&from).take_while(|(start, _)| *start < end) {
            let (start, stop) = (start.max(first), span.end.min(end));
            if at < start * words {
                room::push(pieces, Piece::Unknown { first_word: at, end_word: start * words });
            }
            room::push(pieces, Piece::Filled { first: start, end: stop, value: span.value });
            at = stop * words;
        }
        if at < end_word {
            room::push(pieces, Piece::Unknown { first_word: at, end_word });
        }
    }

    /// Initializes words of which nothing is known.
    pub(crate) fn initialise_unknown(&mut self, first_word: u64, end_word: u64) {
        let words = WORDS as u64;
        let (first, end) = (first_word.div_ceil(words), end_word / words);
        if end > first {
            self.initialise_pages(first_word, first * words);
            self.insert_span(first, end, 0);
            self.initialise_pages(end * words, end_word);
        } else {
            self.initialise_pages(first_word, end_word);
        }
    }

    fn initialise_pages(&mut self, first_word: u64, end_word: u64) {
        let words = WORDS as u64;
        let mut at = first_word;
        while at < end_word {
            let stop = ((at / words + 1) * words).min(end_word);
            if let Some(page) = self.make(at * 8)
                && let Some(page) = self.pages.get_mut(page)
            {
                let from = (at % words) as usize;
                page.initialise(Bits::range(from, from + (stop - at) as usize));
            }
            at = stop;
        }
    }

    /// Sets entire pages of a range to another value.
    pub(crate) fn fill(&mut self, first: u64, end: u64, value: u64) {
        self.remove_span(first, end);
        self.insert_span(first, end, value);
    }

    /// Forgets entire pages of a range.
    pub(crate) fn forget(&mut self, first: u64, end: u64) {
        self.remove_span(first, end);
    }

    /// How many pages are in use, including those in ranges.
    pub(crate) fn page_count(&self) -> u64 {
        (self.pages.len() - self.free.len()) as u64 + self.span_pages
    }
}

#[cfg(test)]
mod tests;
