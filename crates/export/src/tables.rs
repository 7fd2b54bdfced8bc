//! Outputs of tables: their names, and a constructor for each.
//!
//! Each is a [`RowSink`] that writes as rows arrive and ends with [`TableWriter::finish`].

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::table::{RowSink, Table};

use crate::arrow::ArrowWriter;
use crate::parquet::ParquetWriter;

/// Writes the rows of a table.
pub trait TableWriter: RowSink {
    /// Writes what is buffered and how the file ends.
    ///
    /// # Errors
    /// When writing fails.
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

impl<W: Write> TableWriter for ArrowWriter<W> {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        ArrowWriter::finish(*self).map(drop)
    }
}

impl<W: Write> TableWriter for ParquetWriter<W> {
    fn finish(self: Box<Self>) -> Result<(), Error> {
        ParquetWriter::finish(*self).map(drop)
    }
}

/// Begins an output of all columns of a table.
type Open = for<'a> fn(&'a mut dyn Write, &Table) -> Result<Box<dyn TableWriter + 'a>, Error>;

/// A row of the table of outputs.
pub struct TableOutput {
    /// What `convert --to` takes.
    pub name: &'static str,
    /// Extensions its files have, the usual one first.
    pub extensions: &'static [&'static str],
    /// One line of help.
    pub help: &'static str,
    /// Begins an output.
    pub open: Open,
}

/// Every output of tables, by name.
pub static OUTPUTS: [TableOutput; 2] = [
    TableOutput {
        name: "arrow",
        extensions: &["arrow", "feather"],
        help: "Apache Arrow IPC file, Feather version 2: not compressed, for memory mapping",
        open: |out, table| Ok(Box::new(ArrowWriter::new(out, table, None)?)),
    },
    TableOutput {
        name: "parquet",
        extensions: &["parquet"],
        help: "Apache Parquet: compressed, for DuckDB, pandas, Polars, Spark",
        open: |out, table| Ok(Box::new(ParquetWriter::new(out, table, None)?)),
    },
];

/// The output of a name.
pub fn by_name(name: &str) -> Option<&'static TableOutput> {
    OUTPUTS.iter().find(|output| output.name == name)
}

#[cfg(test)]
mod tests {
    use anytrace_core::table::STACKS;

    use super::*;

    #[test]
    fn the_table_is_sorted_and_an_output_of_nothing_is_a_file() {
        assert!(OUTPUTS.is_sorted_by_key(|output| output.name));
        for (output, magic) in OUTPUTS.iter().zip([&b"ARROW1"[..], b"PAR1"]) {
            assert!(std::ptr::eq(by_name(output.name).unwrap(), output));
            let mut out = Vec::new();
            (output.open)(&mut out, &STACKS).unwrap().finish().unwrap();
            assert!(out.starts_with(magic) && out.ends_with(magic));
        }
        assert!(by_name("chrome").is_none());
    }
}
