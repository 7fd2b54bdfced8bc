//! The hot parts of a trace: accesses by address and time, and by line and offset in it, with the types that lie there.
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

/// Most pairs of a row and a type kept; accesses to more have no type.
const ROW_TYPES_MAX: usize = 1 << 20;

/// Most types kept of a line.
const LINE_TYPES_MAX: usize = 4;

/// Types with the accesses to each, those with most accesses first.
pub type TypesOf = Vec<(TypeNumber, u64)>;

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
    /// Rows with accesses to typed memory, ascending, with the types.
    pub types: Vec<(u64, TypesOf)>,
}

impl ByTime {
    /// The types of a row.
    pub fn types_of(&self, row: u64) -> &[(TypeNumber, u64)] {
        let at = self.types.binary_search_by_key(&row, |(row, _)| *row).ok();
        at.and_then(|at| self.types.get(at)).map_or(&[], |(_, types)| types)
    }
}

/// A cache line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeatLine {
    /// Its number: its first address divided by the bytes of a line.
    pub number: u64,
    /// Accesses that touch it.
    pub accesses: u64,
    /// Of each of its bytes, the accesses that touch it.
    pub bytes: Vec<u64>,
    /// The types that those accesses were to, at most four.
    pub types: TypesOf,
}

/// Counts by line and offset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByLine {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Those with most accesses, by number.
    pub lines: Vec<HeatLine>,
    /// Accesses to lines that are not among them; one to two lines counts twice.
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
    /// Names by number of the type.
    pub names: Vec<String>,
}

/// The engine.
pub struct HeatCounter<'a> {
    /// `None` counts all accesses; otherwise those to regions of types for which it returns true.
    wanted: Option<Wanted<'a>>,
    is_wanted: Vec<bool>,
    names: Vec<String>,
    regions: LiveRegions,
    row_shift: u32,
    column_shift: u32,
    cells: Map<(u64, u64), u64>,
    row_types: Map<(u64, TypeNumber), u64>,
    line_shift: u32,
    lines: Map<u64, HeatLine>,
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
            names: Vec::new(),
            regions: LiveRegions::new(),
            row_shift: 6,
            column_shift: 0,
            cells: Map::default(),
            row_types: Map::default(),
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
        let mut lines: Vec<HeatLine> = self.lines.into_values().collect();
        // By number among equals: the result must not depend on the order of the map.
        lines.sort_unstable_by_key(|line| (std::cmp::Reverse(line.accesses), line.number));
        let cut: u64 = lines.iter().skip(lines_max).map(|line| line.accesses).sum();
        lines.truncate(lines_max);
        // The lines with most accesses were chosen; they are emitted by address.
        lines.sort_unstable_by_key(|line| line.number);
        lines.iter_mut().for_each(|line| sort_types(&mut line.types));
        let by_time = ByTime {
            row_bytes: 1 << self.row_shift,
            column_records: 1 << self.column_shift,
            cells,
            types: by_row(self.row_types),
        };
        Heat {
            by_time,
            by_line: ByLine { line_bytes: 1 << self.line_shift, lines, others: self.others.saturating_add(cut) },
            accesses: self.accesses,
            records: self.records,
            names: self.names,
        }
    }

    /// Makes rows and columns wider by these powers of two.
    fn widen(&mut self, rows: u32, columns: u32) {
        let cells = std::mem::take(&mut self.cells);
        for ((row, column), count) in cells {
            *self.cells.entry((row >> rows, column >> columns)).or_default() += count;
        }
        if rows > 0 {
            for ((row, number), count) in std::mem::take(&mut self.row_types) {
                *self.row_types.entry((row >> rows, number)).or_default() += count;
            }
        }
        self.row_shift += rows;
        self.column_shift += columns;
    }

    fn access(&mut self, access: &Access) {
        if access.bytes == 0 || access.kind == AccessKind::Fetch {
            return;
        }
        // The first byte decides for the entire access, as in the other engines.
        let type_number = self.regions.find(access.thread, access.address).map(|region| region.type_number);
        let is_wanted = |number| self.is_wanted.get(number as usize) == Some(&true);
        if self.wanted.is_some() && !type_number.is_some_and(is_wanted) {
            return;
        }
        self.accesses += 1;
        while access.seq >> self.column_shift >= STEPS_MAX {
            self.widen(0, 1);
        }
        let cell = (access.address >> self.row_shift, access.seq >> self.column_shift);
        *self.cells.entry(cell).or_default() += 1;
        if let Some(number) = type_number {
            self.count_type((cell.0, number));
        }
        // Widening can only merge cells, never split one, so counts stay exact for the wider steps.
        while self.cells.len() > CELLS_MAX && self.row_shift < 63 {
            self.widen(1, 0);
        }
        self.touch_lines(access, type_number);
    }

    fn count_type(&mut self, of_row: (u64, TypeNumber)) {
        let has_room = self.row_types.len() < ROW_TYPES_MAX;
        if let Some(count) = self.row_types.get_mut(&of_row) {
            *count += 1;
        } else if has_room {
            self.row_types.insert(of_row, 1);
        }
    }

    fn touch_lines(&mut self, access: &Access, type_number: Option<TypeNumber>) {
        let line_bytes = 1_u64 << self.line_shift;
        let mut left = u64::from(access.bytes);
        let mut address = access.address;
        while left > 0 {
            let within = address & (line_bytes - 1);
            let bytes = left.min(line_bytes - within);
            let number = address >> self.line_shift;
            if self.lines.len() < LINES_MAX || self.lines.contains_key(&number) {
                let line = self.lines.entry(number).or_insert_with(|| HeatLine {
                    number,
                    bytes: vec![0; usize::try_from(line_bytes).unwrap_or(0)],
                    ..HeatLine::default()
                });
                line.touch((within, bytes), type_number);
            } else {
                self.others += 1;
            }
            left -= bytes;
            address = address.wrapping_add(bytes);
        }
    }
}

impl HeatLine {
    /// Counts an access to these bytes: the offset of the first one, and how many.
    fn touch(&mut self, (from, bytes): (u64, u64), type_number: Option<TypeNumber>) {
        self.accesses += 1;
        count(&mut self.bytes, from, bytes);
        let Some(number) = type_number else { return };
        let has_room = self.types.len() < LINE_TYPES_MAX;
        match self.types.iter_mut().find(|(known, _)| *known == number) {
            Some((_, count)) => *count += 1,
            None if has_room => self.types.push((number, 1)),
            None => {}
        }
    }
}

/// The types of each row.
fn by_row(counts: Map<(u64, TypeNumber), u64>) -> Vec<(u64, TypesOf)> {
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_unstable();
    let rows = counts.chunk_by(|((one, _), _), ((other, _), _)| one == other);
    let row = |all: &[((u64, TypeNumber), u64)]| {
        let mut types = all.iter().map(|((_, number), count)| (*number, *count)).collect();
        sort_types(&mut types);
        (all.first().map_or(0, |((row, _), _)| *row), types)
    };
    rows.map(row).collect()
}

fn sort_types(types: &mut TypesOf) {
    types.sort_unstable_by_key(|(number, count)| (std::cmp::Reverse(*count), *number));
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
        let shown = name.map_or_else(|| "(other types)".into(), String::from_utf8_lossy);
        self.names.push(shown.into_owned());
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.records = self.records.max(region.seq.saturating_add(1));
        self.regions.add(region).map(drop)
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
            let touches = |(address, bytes): &(u64, u16)| {
                (0..u64::from(*bytes)).map(|at| address.wrapping_add(at) / 64).fold((0, None), |(count, before), line| {
                    (count + u64::from(before != Some(line)), Some(line))
                }).0
            };
            let found: u64 = heat.by_line.lines.iter().map(|line| line.accesses).sum::<u64>() + heat.by_line.others;
            prop_assert_eq!(found, all.iter().map(touches).sum::<u64>());
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
        assert_eq!(heat.by_line.lines[1].bytes[..5], [1, 1, 1, 1, 0]);
        assert_eq!((heat.by_line.lines[1].types.as_slice(), heat.names[0].as_str()), (&[(0, 1)][..], "A"));
    }

    #[test]
    fn a_line_with_many_accesses_is_hotter_than_one_with_long_ones() {
        let mut counter = HeatCounter::new(None, 64);
        counter.accesses(&[access(0, 0, 32), access(1, 640, 1), access(2, 641, 1), access(3, 700, 8)]).unwrap();
        let heat = counter.finish(10, 10, 1);
        let accesses: Vec<_> = heat.by_line.lines.iter().map(|line| (line.number, line.accesses)).collect();
        assert_eq!((accesses, heat.by_line.others), (vec![(10, 3)], 2));
    }

    #[test]
    fn rows_have_the_types_that_were_accessed_there_however_wide_they_become() {
        let mut counter = HeatCounter::new(None, 64);
        for (number, address) in [(0, 0), (1, 64), (2, 1 << 20)] {
            counter.type_name(number, Some(b"T")).unwrap();
            let region =
                RegionAdded { seq: 0, address, element_bytes: 64, elements: 1, type_number: number, thread: 0 };
            counter.region_added(&region).unwrap();
        }
        counter.accesses(&[access(1, 0, 8), access(2, 64, 8), access(3, 72, 8), access(4, 1 << 21, 1)]).unwrap();
        let by_time = counter.finish(2, 10, 1).by_time;
        assert_eq!((by_time.types_of(0), by_time.types_of(1)), (&[(1, 2), (0, 1)][..], &[][..]));
    }
}
