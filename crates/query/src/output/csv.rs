//! Comma-separated values.

use std::io::Write;

use anytrace_core::text::printable;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;

use super::{How, Results, failed, formatters, options};

pub(super) struct Csv<'a> {
    out: &'a mut (dyn Write + Send),
    how: How,
    is_text: Vec<bool>,
    line: String,
}

impl<'a> Csv<'a> {
    pub(super) fn new(schema: &SchemaRef, how: How, out: &'a mut (dyn Write + Send)) -> Result<Self> {
        let is_text = schema.fields().iter().map(|field| is_text(field.data_type())).collect();
        let mut made = Self { out, how, is_text, line: String::new() };
        for (column, field) in schema.fields().iter().enumerate() {
            made.push(column, field.name(), true);
        }
        made.end()?;
        Ok(made)
    }

    fn push(&mut self, column: usize, cell: &str, is_text: bool) {
        if column > 0 {
            self.line.push(',');
        }
        let escaped = if self.how.is_terminal { printable(cell) } else { cell.to_owned() };
        // A spreadsheet takes a text that begins so for a formula.
        let is_formula = is_text && !self.how.is_raw_csv && escaped.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let cell = if is_formula { format!("'{escaped}") } else { escaped };
        if cell.contains([',', '"', '\n', '\r']) {
            self.line.push('"');
            self.line.push_str(&cell.replace('"', "\"\""));
            self.line.push('"');
        } else {
            self.line.push_str(&cell);
        }
    }

    fn end(&mut self) -> Result<()> {
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes()).map_err(failed)?;
        self.line.clear();
        Ok(())
    }
}

fn is_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, value) => is_text(value),
        _ => false,
    }
}

impl Results for Csv<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = options();
        let cells = formatters(batch, &options)?;
        for row in 0..batch.num_rows() {
            for (column, cell) in cells.iter().enumerate() {
                let text = cell.value(row).try_to_string()?;
                self.push(column, &text, self.is_text.get(column).copied().unwrap_or(true));
            }
            self.end()?;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        Ok(())
    }
}
