//! What of a row is drawn in a window: slices that are wide enough, and runs of those that are not.

use std::io;

use super::{Blobs, ENTRY_SLICES, Entry, FAN, GROUP_SLICES, NO_NAME, Reader, Row, Slice, Window};

/// A slice, or a run of consecutive slices of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Item {
    /// Begin of the first.
    pub(crate) start: u64,
    /// End of the last.
    pub(crate) end: u64,
    /// Sum of the lengths.
    pub(crate) busy: u64,
    /// How many: of the row, exactly those in `start..=end`.
    pub(crate) count: u64,
    /// The name of a single slice, or [`NO_NAME`].
    pub(crate) name: u32,
    /// The name of the longest.
    pub(crate) longest_name: u32,
    /// Flags of a single slice; of several, [`super::INSTANT`] where they are instants.
    pub(crate) flags: u8,
}

/// The run that is being made.
struct Run {
    entry: Entry,
    count: u64,
    flags: u8,
}

struct Walk<'a> {
    reader: Reader<'a>,
    /// Length of a run, at most.
    pixel: u64,
    run: Option<Run>,
    items: &'a mut Vec<Item>,
}

/// Appends what is drawn of a row in a window where a pixel is so long. The row comes with the flag that all of its slices
/// have: [`super::INSTANT`], or none. Two consecutive items are together longer than a
/// pixel; a run is never longer than one.
///
/// # Errors
/// When the temporary file cannot be read.
pub(crate) fn items(
    (row, kind): (&Row, u8),
    blobs: &Blobs,
    window: Window,
    pixel: u64,
    items: &mut Vec<Item>,
) -> io::Result<()> {
    if row.is_bare() {
        row.bare_items(kind, window, pixel, items);
        return Ok(());
    }
    let mut walk = Walk { reader: Reader::new(row, blobs), pixel, run: None, items };
    let mut at = walk.reader.first_ending(window.start)?;
    while at < row.len() {
        let next = match walk.entry(at) {
            Some((entry, _)) if entry.start > window.end => break,
            Some((entry, slices)) => {
                walk.add(entry, slices as u64, kind);
                at + slices
            }
            None => walk.slices(at, window.end)?,
        };
        if next == at {
            break;
        }
        at = next;
    }
    walk.end_run();
    Ok(())
}

impl Walk<'_> {
    /// The highest entry that begins with slice `at` and is no longer than a pixel, and how many slices it has.
    fn entry(&self, at: usize) -> Option<(Entry, usize)> {
        let (mut slices, mut found) = (ENTRY_SLICES, None);
        for level in &self.reader.row.levels {
            if !at.is_multiple_of(slices) {
                break;
            }
            let Some(entry) = level.get(at / slices).filter(|entry| entry.end - entry.start <= self.pixel) else {
                break;
            };
            found = Some((*entry, slices));
            slices *= FAN;
        }
        found
    }

    /// Adds slices up to where an entry may begin; returns the number of the next.
    fn slices(&mut self, at: usize, last: u64) -> io::Result<usize> {
        let slices = self.reader.from(at)?;
        // Where the entries of a group are all too long, its slices are taken in one go.
        let until = (at / ENTRY_SLICES + 1) * ENTRY_SLICES;
        let end = until.min((at / GROUP_SLICES + 1) * GROUP_SLICES);
        let slices: &[Slice] = slices.get(..end - at).unwrap_or(slices);
        let wanted = slices.partition_point(|slice| slice.start <= last);
        // Moved out for a moment, because runs are made while the reader's slices are read.
        let mut run = self.run.take();
        for slice in slices.get(..wanted).unwrap_or_default() {
            let (entry, flags) = (Entry::of(slice), slice.flags);
            run = Some(joined(run, entry, (1, flags), self.pixel, self.items));
        }
        self.run = run;
        Ok(at + wanted)
    }

    fn add(&mut self, entry: Entry, count: u64, flags: u8) {
        self.run = Some(joined(self.run.take(), entry, (count, flags), self.pixel, self.items));
    }

    fn end_run(&mut self) {
        if let Some(run) = self.run.take() {
            self.items.push(run.item());
        }
    }
}

/// The run with what follows; where it would be longer than a pixel, it is done and another begins.
fn joined(run: Option<Run>, next: Entry, (count, flags): (u64, u8), pixel: u64, items: &mut Vec<Item>) -> Run {
    match run {
        Some(mut run) if next.end - run.entry.start <= pixel => {
            run.entry.append(&next);
            run.count += count;
            run.flags &= super::INSTANT;
            run
        }
        Some(run) => {
            items.push(run.item());
            Run { entry: next, count, flags }
        }
        None => Run { entry: next, count, flags },
    }
}

impl Run {
    fn item(&self) -> Item {
        let Entry { start, end, busy, longest_name, .. } = self.entry;
        let name = if self.count == 1 { longest_name } else { NO_NAME };
        Item { start, end, busy, count: self.count, name, longest_name, flags: self.flags }
    }
}
