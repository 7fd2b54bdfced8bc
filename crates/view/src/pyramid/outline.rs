//! A row without its slices: what an index has of it, and how that is drawn until the trace is read.

use super::{ENTRY_SLICES, Entry, FAN, Item, NO_NAME, Row, Window};

/// Numbers of seven bits a byte, and texts.
#[derive(Debug, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    pub(crate) fn number(&mut self, number: u64) {
        super::codec::push_number(&mut self.0, number);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }
}

/// Reads what [`Bytes`] has; `None` where it ends too early.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline<'a>(pub(crate) &'a [u8]);

impl Outline<'_> {
    pub(crate) fn number(&mut self) -> Option<u64> {
        super::codec::take(&mut self.0)
    }

    /// A number of things each of which takes at least a byte.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        let length = self.count()?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl Row {
    /// The entries of the row: of each the gap before it, its length, the idle time in it, the length of the longest
    /// slice and the number of its name.
    pub(crate) fn outline(&self, out: &mut Bytes) {
        out.number(self.len() as u64);
        let lowest = self.levels.first().map(Vec::as_slice).unwrap_or_default();
        let mut last = 0;
        for entry in lowest.iter().chain(&self.running) {
            out.number(entry.start.wrapping_sub(last));
            out.number(entry.end - entry.start);
            out.number((entry.end - entry.start).saturating_sub(entry.busy));
            out.number(entry.longest);
            out.number(u64::from(entry.longest_name));
            last = entry.end;
        }
    }

    /// A row with the entries of an outline, whose names have these numbers now.
    pub(crate) fn of_outline(from: &mut Outline<'_>, names: &[u32]) -> Option<Self> {
        let slices = usize::try_from(from.number()?).ok()?;
        // An entry takes at least five bytes.
        if slices / ENTRY_SLICES > from.0.len() / 5 {
            return None;
        }
        let mut row = Self { bare: slices, ..Self::default() };
        for at in 0..slices.div_ceil(ENTRY_SLICES) {
            let start = row.last_end.checked_add(from.number()?)?;
            let length = from.number()?;
            let end = start.checked_add(length)?;
            let busy = length.checked_sub(from.number()?)?;
            let longest = from.number()?;
            let longest_name = *names.get(usize::try_from(from.number()?).ok()?)?;
            row.running = Some(Entry { start, end, busy, longest, longest_name });
            row.last_end = end;
            if (at + 1) * ENTRY_SLICES <= slices {
                row.summarize();
            }
        }
        Some(row)
    }

    /// True where only entries are known.
    pub(super) fn is_bare(&self) -> bool {
        self.bare > 0
    }

    /// What is drawn of a row whose slices are not known: entries, however long they are.
    pub(super) fn bare_items(&self, kind: u8, window: Window, pixel: u64, items: &mut Vec<Item>) {
        let lowest = self.levels.first().map(Vec::as_slice).unwrap_or_default();
        let mut at = lowest.partition_point(|entry| entry.end < window.start);
        while let Some(entry) = lowest.get(at).filter(|entry| entry.start <= window.end) {
            let (mut found, mut size) = ((*entry, 1), 1);
            for level in self.levels.iter().skip(1) {
                size *= FAN;
                let Some(entry) =
                    level.get(at / size).filter(|entry| at.is_multiple_of(size) && entry.end - entry.start <= pixel)
                else {
                    break;
                };
                found = (*entry, size);
            }
            items.push(item(&found.0, found.1 * ENTRY_SLICES, kind));
            at += found.1;
        }
        let rest = self.bare % ENTRY_SLICES;
        if at == lowest.len()
            && let Some(entry) = self.running.filter(|entry| rest > 0 && entry.end >= window.start)
            && entry.start <= window.end
        {
            items.push(item(&entry, rest, kind));
        }
    }
}

fn item(entry: &Entry, count: usize, flags: u8) -> Item {
    let Entry { start, end, busy, longest_name, .. } = *entry;
    let name = if count == 1 { longest_name } else { NO_NAME };
    Item { start, end, busy, count: count as u64, name, longest_name, flags }
}
