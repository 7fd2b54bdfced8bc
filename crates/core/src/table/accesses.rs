//! The tables `accesses`, `regions` and `types`, made of the lane of accesses.

use super::{Column, ColumnType, Filter, RowSink, Rows, Scan, Table, Values};
use crate::Error;
use crate::access::{Access, AccessFlags, AccessSink, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use crate::hash::Map;
use crate::text::shown;

/// Memory accesses, in the order of records.
pub const ACCESSES: Table = Table {
    name: "accesses",
    help: "a memory access",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record"),
        Column::nullable("thread", ColumnType::Int64, "thread id; none beyond the limit on threads"),
        Column::new("kind", ColumnType::Name, "read, write or fetch"),
        Column::new("address", ColumnType::UInt64, "first address"),
        Column::new("size", ColumnType::Int32, "bytes"),
        Column::new("atomic", ColumnType::Boolean, "whether it is atomic"),
    ],
};

/// Typed memory from its allocation to its end.
pub const REGIONS: Table = Table {
    name: "regions",
    help: "a region of typed memory, from its beginning to its end",
    columns: &[
        Column::new("added_seq", ColumnType::Int64, "number of the record that begins it"),
        Column::nullable("removed_seq", ColumnType::Int64, "number of the record that ends it"),
        Column::nullable("thread", ColumnType::Int64, "thread that adds it"),
        Column::new("address", ColumnType::UInt64, "first address"),
        Column::new("element_bytes", ColumnType::UInt64, "bytes of an element, as recorded"),
        Column::new("elements", ColumnType::UInt64, "elements"),
        Column::new("type", ColumnType::Name, "type of an element"),
    ],
};

/// The types that a trace names.
pub const TYPES: Table = Table {
    name: "types",
    help: "a type of data",
    columns: &[
        Column::new("type", ColumnType::Name, "its name"),
        Column::new("regions", ColumnType::Int64, "regions of it"),
        Column::new("bytes", ColumnType::Int64, "bytes of its regions, all together"),
    ],
};

/// Most regions that live at once: each takes some hundred bytes of memory until it is removed.
const LIVE_MAX: usize = 1 << 22;

/// Threads and types by number.
#[derive(Default)]
struct Announced {
    threads: Vec<Option<u64>>,
    /// True once a thread stands for all threads beyond the limit.
    has_others: bool,
    types: Vec<Box<str>>,
}

impl Announced {
    fn add_thread(&mut self, id: Option<u64>) {
        self.has_others |= id.is_none();
        self.threads.push(id);
    }

    fn thread(&self, number: ThreadNumber) -> Option<i64> {
        self.threads.get(number as usize).copied().flatten().map(u64::cast_signed)
    }

    fn add_type(&mut self, name: Option<&[u8]>) {
        self.types.push(name.map_or_else(|| "(other types)".into(), |name| shown(name).into()));
    }

    fn type_name(&self, number: TypeNumber) -> &str {
        self.types.get(number as usize).map_or("", |name| name)
    }
}

/// Makes the rows of [`ACCESSES`] of the lane of accesses.
pub struct AccessRows<'a> {
    rows: Rows<'a>,
    announced: Announced,
    filter: &'a Filter,
    keys: [i32; 3],
}

impl<'a> AccessRows<'a> {
    /// Rows for a sink.
    pub fn new(scan: &'a Scan, out: &'a mut dyn RowSink) -> Self {
        let rows = Rows::new(&ACCESSES, scan, out);
        Self { rows, announced: Announced::default(), filter: &scan.filter, keys: [-1; 3] }
    }

    /// Hands out the last rows. Call it once, after all accesses.
    ///
    /// # Errors
    /// What the sink of rows returns.
    pub fn finish(self) -> Result<(), Error> {
        self.rows.finish()
    }
}

impl AccessRows<'_> {
    /// Row by row: where some rows are left out, or a thread has no id.
    fn one(&mut self, access: &Access) -> Result<(), Error> {
        let (seq, thread) = (i64::try_from(access.seq).unwrap_or(i64::MAX), self.announced.thread(access.thread));
        let kind = access.kind.name();
        if !self.filter.has_seq(seq)
            || !self.filter.has_kind(kind)
            || thread.is_some_and(|id| !self.filter.has_thread(id))
        {
            return Ok(());
        }
        self.rows.int64(seq);
        self.rows.int64(thread);
        self.rows.name(kind);
        self.rows.uint64(access.address);
        self.rows.int32(i32::from(access.bytes));
        self.rows.boolean(access.flags.has(AccessFlags::ATOMIC));
        self.rows.end()
    }

    /// Column by column: several times faster.
    fn many(&mut self, batch: &[Access]) -> Result<(), Error> {
        if let Some(Values::Int64(values)) = self.rows.values(0) {
            values.extend(batch.iter().map(|access| access.seq.cast_signed()));
        }
        if let Some(Values::Int64(values)) = self.rows.values(1) {
            let threads = &self.announced.threads;
            let id =
                |access: &Access| threads.get(access.thread as usize).copied().flatten().unwrap_or(0).cast_signed();
            values.extend(batch.iter().map(id));
        }
        if self.rows.wants(2) {
            self.keys = ["read", "write", "fetch"].map(|kind| self.rows.key(2, kind));
        }
        if let Some(Values::Name { keys, .. }) = self.rows.values(2) {
            let known = self.keys;
            keys.extend(batch.iter().map(|access| known[access.kind as usize]));
        }
        if let Some(Values::UInt64(values)) = self.rows.values(3) {
            values.extend(batch.iter().map(|access| access.address));
        }
        if let Some(Values::Int32(values)) = self.rows.values(4) {
            values.extend(batch.iter().map(|access| i32::from(access.bytes)));
        }
        if let Some(Values::Boolean(values)) = self.rows.values(5) {
            values.extend(batch.iter().map(|access| access.flags.has(AccessFlags::ATOMIC)));
        }
        self.rows.advance(batch.len())
    }
}

impl AccessSink for AccessRows<'_> {
    fn thread(&mut self, _: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.announced.add_thread(id);
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, _: Option<&[u8]>) -> Result<(), Error> {
        Ok(())
    }

    fn region_added(&mut self, _: &RegionAdded) -> Result<(), Error> {
        Ok(())
    }

    fn region_removed(&mut self, _: &RegionRemoved) -> Result<(), Error> {
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        let is_plain = *self.filter == Filter::default() && !self.announced.has_others;
        if !is_plain {
            return batch.iter().try_for_each(|access| self.one(access));
        }
        let mut rest = batch;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.rows.room()));
            self.many(now)?;
            rest = later;
        }
        Ok(())
    }
}

/// Makes the rows of [`REGIONS`] of the lane of accesses.
pub struct RegionRows<'a> {
    rows: Rows<'a>,
    announced: Announced,
    /// Live regions by first address, the latest last.
    live: Map<u64, Vec<RegionAdded>>,
    /// How many there are.
    lives: usize,
}

impl<'a> RegionRows<'a> {
    /// Rows for a sink.
    pub fn new(scan: &Scan, out: &'a mut dyn RowSink) -> Self {
        Self { rows: Rows::new(&REGIONS, scan, out), announced: Announced::default(), live: Map::default(), lives: 0 }
    }
}

impl RegionRows<'_> {
    fn push(&mut self, region: &RegionAdded, removed: Option<u64>) -> Result<(), Error> {
        self.rows.count(region.seq);
        self.rows.count(removed);
        self.rows.int64(self.announced.thread(region.thread));
        self.rows.uint64(region.address);
        self.rows.uint64(region.element_bytes);
        self.rows.uint64(region.elements);
        self.rows.numbered_name(region.type_number, || self.announced.type_name(region.type_number).into());
        self.rows.end()
    }

    /// Hands out what was never removed, in the order of its records. Call it once, after all accesses.
    ///
    /// # Errors
    /// What the sink of rows returns.
    pub fn finish(mut self) -> Result<(), Error> {
        let mut rest: Vec<_> = std::mem::take(&mut self.live).into_values().flatten().collect();
        rest.sort_unstable_by_key(|region| region.seq);
        rest.iter().try_for_each(|region| self.push(region, None))?;
        self.rows.finish()
    }
}

impl AccessSink for RegionRows<'_> {
    fn thread(&mut self, _: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.announced.add_thread(id);
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.announced.add_type(name);
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        if self.lives >= LIVE_MAX {
            return Err(Error::limit(format!("more than {LIVE_MAX} regions live at once")));
        }
        self.lives += 1;
        self.live.entry(region.address).or_default().push(*region);
        Ok(())
    }

    fn region_removed(&mut self, removed: &RegionRemoved) -> Result<(), Error> {
        let Some(live) = self.live.get_mut(&removed.address) else { return Ok(()) };
        let Some(region) = live.pop() else { return Ok(()) };
        self.lives -= 1;
        if live.is_empty() {
            self.live.remove(&removed.address);
        }
        self.push(&region, Some(removed.seq))
    }

    fn accesses(&mut self, _: &[Access]) -> Result<(), Error> {
        Ok(())
    }
}

/// Makes the rows of [`TYPES`] of the lane of accesses.
pub struct TypeRows<'a> {
    rows: Rows<'a>,
    announced: Announced,
    /// Regions and bytes of each type.
    sums: Vec<(u64, u64)>,
}

impl<'a> TypeRows<'a> {
    /// Rows for a sink.
    pub fn new(scan: &Scan, out: &'a mut dyn RowSink) -> Self {
        Self { rows: Rows::new(&TYPES, scan, out), announced: Announced::default(), sums: Vec::new() }
    }
}

impl TypeRows<'_> {
    /// Hands out the rows. Call it once, after all accesses.
    ///
    /// # Errors
    /// What the sink of rows returns.
    pub fn finish(mut self) -> Result<(), Error> {
        self.sums.resize(self.announced.types.len(), (0, 0));
        for (name, (regions, bytes)) in self.announced.types.iter().zip(&self.sums) {
            self.rows.name(&**name);
            self.rows.count(*regions);
            self.rows.count(*bytes);
            self.rows.end()?;
        }
        self.rows.finish()
    }
}

impl AccessSink for TypeRows<'_> {
    fn thread(&mut self, _: ThreadNumber, _: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.announced.add_type(name);
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        let at = region.type_number as usize;
        if at >= self.sums.len() {
            self.sums.resize(at + 1, (0, 0));
        }
        let (regions, bytes) = &mut self.sums[at];
        *regions += 1;
        *bytes = bytes.saturating_add(region.element_bytes.saturating_mul(region.elements));
        Ok(())
    }

    fn region_removed(&mut self, _: &RegionRemoved) -> Result<(), Error> {
        Ok(())
    }

    fn accesses(&mut self, _: &[Access]) -> Result<(), Error> {
        Ok(())
    }
}
