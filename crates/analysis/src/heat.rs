//! The hot parts of a trace: accesses by address and time, and by line and offset in it.
//!
//! Memory is bounded: when there are too many cells, addresses or times are counted in wider steps.

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessKind, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;

use crate::live_regions::LiveRegions;

/// Most cells kept.
const CELLS_MAX: usize = 1 << 19;

/// Most steps of time kept.
const STEPS_MAX: u64 = 1024;

/// Most lines kept; accesses to more are counted together.
const LINES_MAX: usize = 1 << 18;

/// Which accesses are counted.
pub type Wanted<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Counts by address and time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByTime {
    /// Bytes of a row.
    pub row_bytes: u64,
    /// Records of a column.
    pub column_records: u64,
    /// Row, column and accesses, ascending; the first address of a row is its number times its bytes.
    pub cells: Vec<(u64, u64, u64)>,
}

/// Counts by line and offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByLine {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Lines by number with the accesses to each of their bytes, ascending.
    pub lines: Vec<(u64, Vec<u64>)>,
    /// Accesses to lines that are not among them.
    pub others: u64,
}

/// Result of a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heat {
    /// By address and time.
    pub by_time: ByTime,
    /// By line and offset.
    pub by_line: ByLine,
    /// Accesses counted.
    pub accesses: u64,
    /// Records of the trace.
    pub records: u64,
}

/// The engine.
pub struct HeatCounter<'a> {
    /// `None` counts all accesses; otherwise those to regions of types for which it returns true.
    wanted: Option<Wanted<'a>>,
    is_wanted: Vec<bool>,
    regions: LiveRegions,
    row_shift: u32,
    column_shift: u32,
    cells: Map<(u64, u64), u64>,
    line_shift: u32,
    lines: Map<u64, Vec<u64>>,
    others: u64,
    accesses: u64,
    records: u64,
}

impl<'a> HeatCounter<'a> {
    /// Begins; `line_bytes` is rounded up to a power of two up to 4,096.
    pub fn new(wanted: Option<Wanted<'a>>, line_bytes: u64) -> Self {
        Self {
            wanted,
            is_wanted: Vec::new(),
            regions: LiveRegions::new(),
            row_shift: 6,
            column_shift: 0,
            cells: Map::default(),
            line_shift: line_bytes.clamp(8, 4096).next_power_of_two().trailing_zeros(),
            lines: Map::default(),
            others: 0,
            accesses: 0,
            records: 0,
        }
    }

    /// The result, with at most this many rows and columns by time, and the lines with most accesses.
    pub fn finish(mut self, rows_max: usize, columns_max: u64, lines_max: usize) -> Heat {
        while self.records.saturating_sub(1) >> self.column_shift >= columns_max.max(1) {
            self.widen(0, 1);
        }
        loop {
            let mut rows: Vec<u64> = self.cells.keys().map(|(row, _)| *row).collect();
            rows.sort_unstable();
            rows.dedup();
            if rows.len() <= rows_max.max(1) || self.row_shift >= 63 {
                break;
            }
            self.widen(1, 0);
        }
        let mut cells: Vec<_> = self.cells.into_iter().map(|((row, column), count)| (row, column, count)).collect();
        cells.sort_unstable();
        let mut lines: Vec<(u64, Vec<u64>)> = self.lines.into_iter().collect();
        let total = |counts: &[u64]| counts.iter().sum::<u64>();
        // By number among equals: the result must not depend on the order of the map.
        lines.sort_unstable_by_key(|(line, counts)| (std::cmp::Reverse(total(counts)), *line));
        let cut: u64 = lines.iter().skip(lines_max).map(|(_, counts)| total(counts)).sum();
        lines.truncate(lines_max);
        // The lines with most accesses were chosen; they are emitted by address.
        lines.sort_unstable();
        Heat {
            by_time: ByTime { row_bytes: 1 << self.row_shift, column_records: 1 << self.column_shift, cells },
            by_line: ByLine { line_bytes: 1 << self.line_shift, lines, others: self.others.saturating_add(cut) },
            accesses: self.accesses,
            records: self.records,
        }
    }

    /// Makes rows and columns wider by these powers of two.
    fn widen(&mut self, rows: u32, columns: u32) {
        let cells = std::mem::take(&mut self.cells);
        for ((row, column), count) in cells {
            *self.cells.entry((row >> rows, column >> columns)).or_default() += count;
        }
        self.row_shift += rows;
        self.column_shift += columns;
    }

    fn access(&mut self, access: &Access) {
        if access.bytes == 0 || access.kind == AccessKind::Fetch {
            return;
        }
        if self.wanted.is_some() {
            let region = self.regions.find(access.thread, access.address);
            // The first byte decides for the entire access, as in the other engines.
            let type_number = region.map(|region| region.type_number as usize);
            if type_number.is_none_or(|number| self.is_wanted.get(number) != Some(&true)) {
                return;
            }
        }
        self.accesses += 1;
        while access.seq >> self.column_shift >= STEPS_MAX {
            self.widen(0, 1);
        }
        let cell = (access.address >> self.row_shift, access.seq >> self.column_shift);
        *self.cells.entry(cell).or_default() += 1;
        // Widening can only merge cells, never split one, so counts stay exact for the wider steps.
        while self.cells.len() > CELLS_MAX && self.row_shift < 63 {
            self.widen(1, 0);
        }
        self.touch_lines(access);
    }

    fn touch_lines(&mut self, access: &Access) {
        let line_bytes = 1_u64 << self.line_shift;
        let mut left = u64::from(access.bytes);
        let mut address = access.address;
        while left > 0 {
            let within = address & (line_bytes - 1);
            let bytes = left.min(line_bytes - within);
            let line = address >> self.line_shift;
            let has_room = self.lines.len() < LINES_MAX;
            match self.lines.get_mut(&line) {
                Some(counts) => count(counts, within, bytes),
                None if has_room => {
                    let mut counts = vec![0; usize::try_from(line_bytes).unwrap_or(0)];
                    count(&mut counts, within, bytes);
                    self.lines.insert(line, counts);
                }
                None => self.others += bytes,
            }
            left -= bytes;
            address = address.wrapping_add(bytes);
        }
    }
}

fn count(counts: &mut [u64], from: u64, bytes: u64) {
    let from = usize::try_from(from).unwrap_or(usize::MAX);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    counts.iter_mut().skip(from).take(bytes).for_each(|count| *count += 1);
}

impl AccessSink for HeatCounter<'_> {
    fn thread(&mut self, _number: ThreadNumber, _id: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        let is_wanted = self.wanted.is_none_or(|wanted| name.is_some_and(wanted));
        self.is_wanted.push(is_wanted);
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.records = self.records.max(region.seq.saturating_add(1));
        if self.wanted.is_some() { self.regions.add(region).map(drop) } else { Ok(()) }
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.records = self.records.max(region.seq.saturating_add(1));
        self.regions.remove(region);
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        if let Some(last) = batch.last() {
            self.records = self.records.max(last.seq.saturating_add(1));
        }
        batch.iter().for_each(|access| self.access(access));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::access::AccessFlags;
    use proptest::prelude::*;

    use super::*;

    fn access(seq: u64, address: u64, bytes: u16) -> Access {
        Access { address, seq, thread: 0, bytes, kind: AccessKind::Read, flags: AccessFlags::NONE }
    }

    proptest! {
        #[test]
        fn no_access_is_lost_however_far_apart_they_are(
            all in proptest::collection::vec((any::<u64>(), 1_u16..40), 1..200), rows in 1_usize..20, columns in 1_u64..20,
        ) {
            let mut counter = HeatCounter::new(None, 64);
            for (seq, (address, bytes)) in all.iter().enumerate() {
                counter.accesses(&[access(seq as u64 * 1000, *address, *bytes)]).unwrap();
            }
            let heat = counter.finish(rows, columns, 50);
            let sum: u64 = heat.by_time.cells.iter().map(|cell| cell.2).sum();
            prop_assert_eq!(sum, all.len() as u64);
            prop_assert!(heat.by_time.cells.iter().all(|cell| cell.1 < columns));
            let bytes: u64 = heat.by_line.lines.iter().flat_map(|(_, counts)| counts).sum::<u64>() + heat.by_line.others;
            prop_assert_eq!(bytes, all.iter().map(|(_, bytes)| u64::from(*bytes)).sum::<u64>());
        }
    }

    #[test]
    fn only_wanted_types_are_counted() {
        let wanted: Wanted<'_> = &|name| name == b"A";
        let mut counter = HeatCounter::new(Some(wanted), 64);
        for (number, name) in [(0, b"A"), (1, b"B")] {
            counter.type_name(number, Some(name)).unwrap();
            let region = RegionAdded {
                seq: 0,
                address: u64::from(number) * 4096,
                element_bytes: 64,
                elements: 1,
                type_number: number,
                thread: 0,
            };
            counter.region_added(&region).unwrap();
        }
        counter.accesses(&[access(1, 60, 8), access(2, 4096, 8), access(3, 9000, 8)]).unwrap();
        let heat = counter.finish(10, 10, 10);
        assert_eq!((heat.accesses, heat.records, heat.by_line.lines.len()), (1, 4, 2));
        assert_eq!(heat.by_line.lines[1].1[..5], [1, 1, 1, 1, 0]);
    }
}
