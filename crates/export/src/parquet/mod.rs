//! Tables as Parquet files: columns with types, compressed, for DuckDB, pandas, Polars, Spark and every other reader.
//!
//! The writer is our own. The crates `parquet` and `arrow` together take 259 processor seconds to build, and what
//! they do beyond this (nested types, other encodings, encryption, reading) no table of ours needs.
//!
//! A file has row groups of at most 131,072 rows, each with its columns one after the other; a column is a sequence of
//! pages (data pages version 1, zstd). Numbers are plain; names refer to a dictionary of the row group, unless there are
//! too many different ones. Each column of a row group has its smallest and largest value. Only a row group is in memory,
//! at most about 64 MiB.
//!
//! ```
//! use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Table, Values};
//! use anytrace_export::parquet::ParquetWriter;
//!
//! static NUMBERS: Table =
//!     Table { name: "numbers", help: "", columns: &[Column::new("n", ColumnType::Int64, "")] };
//!
//! let mut writer = ParquetWriter::new(Vec::new(), &NUMBERS, None)?;
//! let column = BatchColumn { values: Values::Int64(vec![1, 2, 3]), validity: vec![] };
//! writer.write(&Batch { rows: 3, columns: vec![column] })?;
//! let file = writer.finish()?;
//! assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"));
//! # Ok::<(), anytrace_core::Error>(())
//! ```

mod chunk;
mod footer;
mod hybrid;
mod numbers;
mod page;
mod statistics;
mod thrift;

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::table::{Batch, Column, RowSink, Table};

use crate::columns;
use chunk::Chunk;
use footer::{Group, footer};

/// A file begins and ends with it.
const MAGIC: &[u8; 4] = b"PAR1";

/// Of zstd: others use it too, and higher ones take several times as long for a few percent.
const LEVEL: i32 = 1;

/// Where row groups, pages and dictionaries end.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most rows of a row group.
    pub group_rows: usize,
    /// A row group ends when it takes this many bytes of memory.
    pub group_bytes: usize,
    /// Most rows of a page.
    pub page_rows: usize,
    /// A page ends when its values take this many bytes.
    pub page_bytes: usize,
    /// Most bytes of a dictionary whose names hardly repeat.
    pub dictionary_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // About what other writers have: readers work on so many row groups at once as they have threads, and skip
            // those that a condition excludes.
            group_rows: 1 << 17,
            group_bytes: 64 << 20,
            page_rows: 20_000,
            page_bytes: 1 << 20,
            dictionary_bytes: 1 << 20,
        }
    }
}

/// Writes a table as a Parquet file.
pub struct ParquetWriter<W: Write> {
    out: W,
    position: u64,
    limits: Limits,
    columns: Vec<Column>,
    chunks: Vec<Chunk>,
    /// Rows of the row group at hand.
    rows: usize,
    groups: Vec<Group>,
    compressor: Compressor,
}

impl<W: Write> ParquetWriter<W> {
    /// Begins a file with the columns of [`anytrace_core::table::Scan::columns`].
    ///
    /// # Errors
    /// When `out` fails; [`anytrace_core::Kind::Usage`] for a column that the table does not have.
    pub fn new(out: W, table: &Table, columns: Option<&[usize]>) -> Result<Self, Error> {
        Self::with_limits(out, table, columns, Limits::default())
    }

    /// As [`Self::new`], with row groups and pages of other sizes.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_limits(out: W, table: &Table, columns: Option<&[usize]>, limits: Limits) -> Result<Self, Error> {
        let columns = columns::chosen(table, columns)?;
        let chunks = columns.iter().map(|column| Chunk::new(*column)).collect();
        let compressor = Compressor::new()?;
        let mut writer = Self { out, position: 0, limits, columns, chunks, rows: 0, groups: Vec::new(), compressor };
        writer.put(MAGIC)?;
        Ok(writer)
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When `out` fails; [`anytrace_core::Kind::Usage`] for rows of other columns.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        columns::check(batch, &self.columns)?;
        let mut from = 0;
        while from < batch.rows {
            let room = self.limits.group_rows.saturating_sub(self.rows).max(1);
            let mut count = room.min(batch.rows - from);
            for (chunk, values) in self.chunks.iter().zip(&batch.columns) {
                count = chunk.fitting(values, from..from + count, &self.limits);
            }
            for (chunk, values) in self.chunks.iter_mut().zip(&batch.columns) {
                chunk.add(values, from..from + count, &self.limits, &mut self.compressor)?;
            }
            from += count;
            self.rows += count;
            let bytes: usize = self.chunks.iter().map(Chunk::bytes).sum();
            if self.rows >= self.limits.group_rows || bytes >= self.limits.group_bytes {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Writes the rest and the footer, and returns where all was written to.
    ///
    /// # Errors
    /// When `out` fails; [`anytrace_core::Kind::Limit`] for a footer of 4 GiB.
    pub fn finish(mut self) -> Result<W, Error> {
        self.end_group()?;
        let footer = footer(&self.columns, std::mem::take(&mut self.groups));
        let too_large = |_| Error::limit("the footer takes 4 GiB, which Parquet does not have");
        let bytes = u32::try_from(footer.len()).map_err(too_large)?;
        self.put(&footer)?;
        self.put(&bytes.to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush().map_err(failed)?;
        Ok(self.out)
    }

    fn end_group(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        self.chunks.iter_mut().try_for_each(|chunk| chunk.finish(&mut self.compressor))?;
        self.groups.push(Group::new(&self.chunks, rows, self.position));
        for at in 0..self.chunks.len() {
            let chunk = std::mem::replace(&mut self.chunks[at], Chunk::new(self.columns[at]));
            self.put(&chunk.pages.dictionary)?;
            self.put(&chunk.pages.data)?;
        }
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes).map_err(failed)
    }
}

impl<W: Write> RowSink for ParquetWriter<W> {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        self.write(&batch)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("cannot write", error)
}

/// Compresses pages, with memory that is used again.
struct Compressor {
    zstd: zstd::bulk::Compressor<'static>,
    out: Vec<u8>,
}

impl Compressor {
    fn new() -> Result<Self, Error> {
        let zstd = zstd::bulk::Compressor::new(LEVEL).map_err(|error| Error::io("cannot compress", error))?;
        Ok(Self { zstd, out: Vec::new() })
    }

    /// Compresses; [`Self::compressed`] is the result.
    fn compress(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.clear();
        self.out.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        let done = self.zstd.compress_to_buffer(bytes, &mut self.out);
        done.map(drop).map_err(|error| Error::io("cannot compress", error))
    }

    fn compressed(&self) -> &[u8] {
        &self.out
    }
}
