//! A trace as tables: rows of typed columns, for SQL, data frames and files of columns.
//!
//! A format lists its tables by [`crate::Format::tables`] and fills them by [`crate::Trace::table`], in batches of at
//! most [`BATCH_ROWS`] rows. Only columns that are asked for are made. A column is a plain vector, so that it becomes an
//! array of Apache Arrow without a copy.
//!
//! ```
//! use anytrace_core::Error;
//! use anytrace_core::table::{Batch, Column, ColumnType, Rows, Scan, Table, Values};
//!
//! static NUMBERS: Table = Table {
//!     name: "numbers",
//!     help: "numbers and their names",
//!     columns: &[Column::new("number", ColumnType::Int64, ""), Column::new("name", ColumnType::Name, "")],
//! };
//!
//! let mut rows_seen = 0;
//! let mut take = |batch: Batch| -> Result<(), Error> {
//!     rows_seen += batch.rows;
//!     Ok(())
//! };
//! let scan = Scan::columns_of(&NUMBERS, &["name"])?;
//! let mut rows = Rows::new(&NUMBERS, &scan, &mut take);
//! rows.int64(1);
//! rows.name("one");
//! rows.end()?;
//! rows.finish()?;
//! assert_eq!(rows_seen, 1);
//! # Ok::<(), Error>(())
//! ```

mod accesses;
mod batch;
mod nest;
mod rows;
mod spans;
mod stacks;

use std::ops::RangeInclusive;

use crate::Error;
pub use accesses::{ACCESSES, AccessRows, REGIONS, RegionRows, TYPES, TypeRows};
pub use batch::{Batch, BatchColumn, Names, Strings, Values};
pub use rows::Rows;
pub use spans::{MoreColumns, SPANS, SpanRows};
pub use stacks::{STACKS, StackRows};

/// Most rows in one batch.
pub const BATCH_ROWS: usize = 8192;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnType {
    /// True or false.
    Boolean,
    /// 32 bits, signed.
    Int32,
    /// 64 bits, signed: times, durations, counts. Unsigned ones would turn into decimals in SQL.
    Int64,
    /// 32 bits, unsigned.
    UInt32,
    /// 64 bits, unsigned: addresses and ids that need all bits.
    UInt64,
    /// Floating point, 64 bits.
    Float64,
    /// UTF-8.
    Text,
    /// Bytes.
    Bytes,
    /// UTF-8 from few different texts, stored once each: a dictionary.
    Name,
}

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name; ends in the unit where it has one (`time_ns`).
    pub name: &'static str,
    /// Its type.
    pub kind: ColumnType,
    /// Whether a row may have no value here.
    pub is_nullable: bool,
    /// What it means, for `--describe`.
    pub help: &'static str,
}

impl Column {
    /// A column with a value in each row.
    pub const fn new(name: &'static str, kind: ColumnType, help: &'static str) -> Self {
        Self { name, kind, is_nullable: false, help }
    }

    /// A column in which values may be absent.
    pub const fn nullable(name: &'static str, kind: ColumnType, help: &'static str) -> Self {
        Self { name, kind, is_nullable: true, help }
    }
}

/// A table that a trace can be read as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// Its name in SQL.
    pub name: &'static str,
    /// What a row is, for `--tables`.
    pub help: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
}

impl Table {
    /// The number of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }
}

/// Records, in the order of the file. Every format has this table, with these columns.
pub const EVENTS: Table = Table {
    name: "events",
    help: "a record",
    columns: &[
        Column::new("seq", ColumnType::Int64, "number of the record, from 0"),
        Column::new("offset", ColumnType::Int64, "its first byte, in the format's own bytes"),
        Column::nullable("thread", ColumnType::Int64, "thread id, or the number of what the format has instead"),
        Column::nullable("time_ns", ColumnType::Int64, "nanoseconds, as far as the format has a clock of known unit"),
        Column::nullable("duration_ns", ColumnType::Int64, "its own length in nanoseconds"),
        Column::new("kind", ColumnType::Name, "what it is, as `dump --format jsonl` calls it"),
        Column::nullable("name", ColumnType::Name, "function, description, type: what selects by `--name`"),
        Column::nullable("attributes", ColumnType::Text, "its other fields as `dump --format jsonl` has them"),
    ],
};

/// What of a table is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scan {
    /// Numbers of the columns, in the order in which they are handed out; `None` is all.
    pub columns: Option<Vec<usize>>,
    /// Rows that may be left out.
    pub filter: Filter,
}

impl Scan {
    /// A scan of all rows with the columns of these names.
    ///
    /// # Errors
    /// [`crate::Kind::Usage`], naming a column that the table does not have.
    pub fn columns_of(table: &Table, names: &[&str]) -> Result<Self, Error> {
        let number = |name: &&str| {
            let unknown = || Error::usage(format!("table {} has no column {name}", table.name));
            table.column(name).ok_or_else(unknown)
        };
        let columns = names.iter().map(number).collect::<Result<_, _>>()?;
        Ok(Self { columns: Some(columns), filter: Filter::default() })
    }
}

/// Conditions that all wanted rows meet. A format may ignore them: whoever asks checks the rows again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Values of `seq`.
    pub seq: Option<RangeInclusive<i64>>,
    /// Values of `time_ns`, `start` or `start_ns`.
    pub time: Option<RangeInclusive<i64>>,
    /// Values of `thread`.
    pub threads: Option<Vec<i64>>,
    /// Values of `kind`.
    pub kinds: Option<Vec<String>>,
}

impl Filter {
    /// True when a row with this number may be wanted.
    #[inline]
    pub fn has_seq(&self, seq: i64) -> bool {
        self.seq.as_ref().is_none_or(|range| range.contains(&seq))
    }

    /// True when a row with this time may be wanted.
    #[inline]
    pub fn has_time(&self, time: i64) -> bool {
        self.time.as_ref().is_none_or(|range| range.contains(&time))
    }

    /// True when a row of this thread may be wanted.
    #[inline]
    pub fn has_thread(&self, thread: i64) -> bool {
        self.threads.as_ref().is_none_or(|threads| threads.contains(&thread))
    }

    /// True when a row of this kind may be wanted.
    #[inline]
    pub fn has_kind(&self, kind: &str) -> bool {
        self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|wanted| wanted == kind))
    }

    /// True when no row after number `seq` is wanted, so that reading may end early.
    #[inline]
    pub fn ends_before(&self, seq: i64) -> bool {
        self.seq.as_ref().is_some_and(|range| *range.end() < seq)
    }
}

/// Receives the rows of a table.
pub trait RowSink {
    /// The next rows; never none.
    ///
    /// # Errors
    /// Whatever ends the pass.
    fn rows(&mut self, batch: Batch) -> Result<(), Error>;
}

impl<F: FnMut(Batch) -> Result<(), Error>> RowSink for F {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        self(batch)
    }
}
