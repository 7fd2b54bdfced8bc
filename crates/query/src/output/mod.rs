//! Results in the form asked for.

mod aligned;
mod csv;
mod files;
mod objects;

use std::io::{self, Write};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::{DataFusionError, Result};

/// The form of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Aligned columns.
    Table,
    /// Comma-separated values with a header.
    Csv,
    /// One array of objects.
    Json,
    /// One object per line.
    Jsonl,
    /// A Parquet file.
    Parquet,
    /// An Arrow IPC file.
    Arrow,
}

/// Writes the batches of one result.
pub(crate) trait Results {
    /// The next rows.
    fn batch(&mut self, batch: &RecordBatch) -> Result<()>;

    /// After the last.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// How results are written.
#[derive(Debug, Clone, Copy)]
pub struct How {
    /// The form.
    pub form: Form,
    /// Text cells that a spreadsheet would take for formulas stay as they are.
    pub is_raw_csv: bool,
    /// A person reads it: nothing in it may control the terminal.
    pub is_terminal: bool,
}

/// Begins a result.
pub(crate) fn begin<'a>(
    how: How,
    schema: &SchemaRef,
    out: &'a mut (dyn Write + Send),
) -> Result<Box<dyn Results + 'a>> {
    Ok(match how.form {
        Form::Table => Box::new(aligned::Aligned::new(schema, out)),
        Form::Csv => Box::new(csv::Csv::new(schema, how, out)?),
        Form::Json => Box::new(objects::Objects::array(how, out)),
        Form::Jsonl => Box::new(objects::Objects::lines(how, out)),
        Form::Parquet => files::parquet(schema, out)?,
        Form::Arrow => files::arrow(schema, out)?,
    })
}

/// Cells as text; what is absent is empty.
fn options() -> FormatOptions<'static> {
    FormatOptions::new().with_display_error(false).with_null("")
}

/// Of each column, what makes a text of a row.
fn formatters<'a>(
    batch: &'a RecordBatch,
    options: &'a FormatOptions<'_>,
) -> std::result::Result<Vec<ArrayFormatter<'a>>, ArrowError> {
    batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), options)).collect()
}

fn failed(error: io::Error) -> DataFusionError {
    DataFusionError::IoError(error)
}
