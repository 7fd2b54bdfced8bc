//! Tables as Arrow files (IPC files, which are Feather version 2): the memory of data frames, as it is.
//!
//! The writer is our own, for the reason that [`crate::parquet`] gives; the metadata are FlatBuffers by hand. Nothing is
//! compressed and all buffers begin at multiples of 64 bytes, so that readers can map the file.
//!
//! A column of names has one dictionary for the whole file. It is written after the rows, when it is complete; the footer
//! lists dictionaries and rows apart, and readers take the dictionaries first. (Dictionaries that are replaced on the way
//! are not allowed in files, and not every reader knows those that grow.) Therefore all names are in memory, at most
//! 64 MiB of them.
//!
//! ```
//! use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Table, Values};
//! use anytrace_export::arrow::ArrowWriter;
//!
//! static NUMBERS: Table =
//!     Table { name: "numbers", help: "", columns: &[Column::new("n", ColumnType::Int64, "")] };
//!
//! let mut writer = ArrowWriter::new(Vec::new(), &NUMBERS, None)?;
//! let column = BatchColumn { values: Values::Int64(vec![1, 2, 3]), validity: vec![] };
//! writer.write(&Batch { rows: 3, columns: vec![column] })?;
//! let file = writer.finish()?;
//! assert!(file.starts_with(b"ARROW1") && file.ends_with(b"ARROW1"));
//! # Ok::<(), anytrace_core::Error>(())
//! ```

mod array;
mod flat;
mod format;

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::table::{Batch, Column, ColumnType, RowSink, Table};

use crate::columns::{self, push_numbers};
use crate::dictionary::Dictionary;
use array::Array;
use format::{Block, Layout, dictionary_batch, footer, record_batch, schema_message};

const MAGIC: &[u8] = b"ARROW1";

/// Begins a message; the length of its metadata follows.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Buffers and messages begin at multiples of this.
const ALIGNMENT: usize = 64;

/// Where batches and dictionaries end.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Rows of a batch, unless those handed over are more.
    pub batch_rows: usize,
    /// A batch ends when its values take this many bytes.
    pub batch_bytes: usize,
    /// Most bytes of the different names of a file.
    pub dictionary_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { batch_rows: 1 << 16, batch_bytes: 16 << 20, dictionary_bytes: 64 << 20 }
    }
}

/// Writes a table as an Arrow file.
pub struct ArrowWriter<W: Write> {
    out: W,
    position: u64,
    limits: Limits,
    columns: Vec<Column>,
    arrays: Vec<Array>,
    /// Rows of the batch at hand.
    rows: usize,
    batches: Vec<Block>,
}

impl<W: Write> ArrowWriter<W> {
    /// Begins a file with the columns of [`anytrace_core::table::Scan::columns`].
    ///
    /// # Errors
    /// When `out` fails; [`anytrace_core::Kind::Usage`] for a column that the table does not have.
    pub fn new(out: W, table: &Table, columns: Option<&[usize]>) -> Result<Self, Error> {
        Self::with_limits(out, table, columns, Limits::default())
    }

    /// As [`Self::new`], with batches of another size.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_limits(out: W, table: &Table, columns: Option<&[usize]>, limits: Limits) -> Result<Self, Error> {
        let columns = columns::chosen(table, columns)?;
        let arrays = columns.iter().map(|column| Array::new(*column)).collect();
        let mut writer = Self { out, position: 0, limits, columns, arrays, rows: 0, batches: Vec::new() };
        writer.put(MAGIC)?;
        writer.pad()?;
        writer.message(&schema_message(&writer.columns), &[])?;
        Ok(writer)
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When `out` fails; [`anytrace_core::Kind::Usage`] for rows of other columns; [`anytrace_core::Kind::Limit`] for
    /// more different names than fit memory.
    pub fn write(&mut self, batch: &Batch) -> Result<(), Error> {
        columns::check(batch, &self.columns)?;
        self.arrays.iter_mut().zip(&batch.columns).try_for_each(|(array, column)| array.add(column))?;
        self.rows += batch.rows;
        self.check_dictionaries()?;
        let bytes: usize = self.arrays.iter().map(Array::bytes).sum();
        if self.rows >= self.limits.batch_rows || bytes >= self.limits.batch_bytes {
            self.end_batch()?;
        }
        Ok(())
    }

    /// Writes the rest and the footer, and returns where all was written to.
    ///
    /// # Errors
    /// When `out` fails; [`anytrace_core::Kind::Limit`] for a footer of 2 GiB.
    pub fn finish(mut self) -> Result<W, Error> {
        self.end_batch()?;
        let arrays = std::mem::take(&mut self.arrays);
        let mut dictionaries = Vec::new();
        for (number, array) in arrays.iter().enumerate().filter(|(_, array)| array.column.kind == ColumnType::Name) {
            dictionaries.push(self.dictionary(number, &array.dictionary)?);
        }
        // The end of the messages.
        self.put(&CONTINUATION)?;
        self.put(&[0; 4])?;
        let footer = footer(&self.columns, &dictionaries, &self.batches);
        let too_large = |_| Error::limit("the footer takes 2 GiB, which Arrow files do not have");
        let bytes = i32::try_from(footer.len()).map_err(too_large)?;
        self.put(&footer)?;
        self.put(&bytes.to_le_bytes())?;
        self.put(MAGIC)?;
        self.out.flush().map_err(failed)?;
        Ok(self.out)
    }

    fn check_dictionaries(&self) -> Result<(), Error> {
        let bytes: usize = self.arrays.iter().map(|array| array.dictionary.bytes().len()).sum();
        if bytes <= self.limits.dictionary_bytes {
            return Ok(());
        }
        let largest = self.arrays.iter().max_by_key(|array| array.dictionary.bytes().len());
        let name = largest.map_or("", |array| array.column.name);
        let max = self.limits.dictionary_bytes;
        Err(Error::limit(format!(
            "the different names of this table, most of them in column {name}, take more than the {max} bytes that an \
             Arrow file may keep in memory; Parquet (--to parquet) has no such limit"
        )))
    }

    fn end_batch(&mut self) -> Result<(), Error> {
        let rows = std::mem::take(&mut self.rows);
        if rows == 0 {
            return Ok(());
        }
        let mut arrays = std::mem::take(&mut self.arrays);
        let (mut layout, mut parts) = (Layout::new(rows), Vec::new());
        arrays.iter().for_each(|array| array.lay_out(&mut layout, &mut parts));
        let block = self.message(&record_batch(&layout), &parts)?;
        self.batches.push(block);
        arrays.iter_mut().for_each(Array::clear);
        self.arrays = arrays;
        Ok(())
    }

    fn dictionary(&mut self, id: usize, names: &Dictionary) -> Result<Block, Error> {
        let mut offsets = vec![0; 4];
        // The limit on dictionaries keeps them below 2 GiB.
        push_numbers(&mut offsets, names.ends(), |end| i32::try_from(end).unwrap_or(i32::MAX).to_le_bytes());
        let mut layout = Layout::new(names.len());
        layout.array(0);
        let parts = [&[][..], &offsets, names.bytes()];
        parts.iter().for_each(|part| layout.buffer(part.len()));
        self.message(&dictionary_batch(id, &layout), &parts)
    }

    /// Writes a message at a multiple of [`ALIGNMENT`], its body too.
    fn message(&mut self, metadata: &[u8], parts: &[&[u8]]) -> Result<Block, Error> {
        let offset = self.position;
        let bytes = metadata.len() + padding(8 + metadata.len() as u64);
        // A few dozen bytes a column.
        let length = i32::try_from(bytes).map_err(|_| Error::limit("a batch has too many columns"))?;
        self.put(&CONTINUATION)?;
        self.put(&length.to_le_bytes())?;
        self.put(metadata)?;
        self.pad()?;
        let start = self.position;
        for part in parts {
            self.put(part)?;
            self.pad()?;
        }
        Ok(Block { offset, metadata_bytes: 8 + bytes, body_bytes: self.position - start })
    }

    fn pad(&mut self) -> Result<(), Error> {
        self.put(&[0; ALIGNMENT][..padding(self.position)])
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.position += bytes.len() as u64;
        self.out.write_all(bytes).map_err(failed)
    }
}

impl<W: Write> RowSink for ArrowWriter<W> {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        self.write(&batch)
    }
}

/// Bytes until the next multiple of [`ALIGNMENT`].
fn padding(position: u64) -> usize {
    let beyond = (position % ALIGNMENT as u64) as usize;
    (ALIGNMENT - beyond) % ALIGNMENT
}

fn failed(error: std::io::Error) -> Error {
    Error::io("cannot write", error)
}
