//! Aligned columns, for people.

use std::io::Write;

use anytrace_core::text::printable;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::error::Result;

use super::{Results, failed, formatters, options};

/// The widths of columns are those of so many first rows.
const MEASURED_ROWS: usize = 1000;

/// A cell is cut where it is longer.
const CELL_MAX: usize = 120;

pub(super) struct Aligned<'a> {
    out: &'a mut (dyn Write + Send),
    /// The header, then the first rows, until the widths are known.
    waiting: Vec<Vec<String>>,
    widths: Vec<usize>,
    is_number: Vec<bool>,
    rows: u64,
}

impl<'a> Aligned<'a> {
    pub(super) fn new(schema: &SchemaRef, out: &'a mut (dyn Write + Send)) -> Self {
        let header = schema.fields().iter().map(|field| printable(field.name())).collect();
        let is_number = |kind: &DataType| kind.is_numeric();
        Self {
            out,
            waiting: vec![header],
            widths: Vec::new(),
            is_number: schema.fields().iter().map(|field| is_number(field.data_type())).collect(),
            rows: 0,
        }
    }

    fn flush(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.waiting);
        if self.widths.is_empty() {
            let width = |column: usize| rows.iter().filter_map(|row| Some(width_of(row.get(column)?))).max();
            self.widths = (0..self.is_number.len()).map(|column| width(column).unwrap_or(0)).collect();
        }
        rows.iter().try_for_each(|row| self.line(row))
    }

    fn line(&mut self, row: &[String]) -> Result<()> {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            if column > 0 {
                line.push_str("  ");
            }
            let width = self.widths.get(column).copied().unwrap_or(0);
            let space = " ".repeat(width.saturating_sub(width_of(cell)));
            match self.is_number.get(column) {
                Some(true) => {
                    line.push_str(&space);
                    line.push_str(cell);
                }
                _ => {
                    line.push_str(cell);
                    line.push_str(&space);
                }
            }
        }
        writeln!(self.out, "{}", line.trim_end()).map_err(failed)
    }
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

impl Results for Aligned<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let options = options();
        let cells = formatters(batch, &options)?;
        for row in 0..batch.num_rows() {
            let cell = |text: String| {
                let text = printable(&text);
                if width_of(&text) <= CELL_MAX {
                    return text;
                }
                let mut cut: String = text.chars().take(CELL_MAX - 1).collect();
                cut.push('…');
                cut
            };
            let texts = cells.iter().map(|column| Ok(cell(column.value(row).try_to_string()?)));
            self.waiting.push(texts.collect::<Result<_>>()?);
        }
        self.rows += batch.num_rows() as u64;
        if self.waiting.len() > MEASURED_ROWS || !self.widths.is_empty() { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()?;
        let rows = if self.rows == 1 { "1 row".to_owned() } else { format!("{} rows", self.rows) };
        writeln!(self.out, "({rows})").map_err(failed)
    }
}
