//! JSON: an object per row.

use std::io::Write;

use anytrace_core::text::is_unsafe_char;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::json::WriterBuilder;
use datafusion::arrow::json::writer::LineDelimited;
use datafusion::error::Result;

use super::{How, Results, failed};

pub(super) struct Objects<'a> {
    out: &'a mut (dyn Write + Send),
    how: How,
    /// An array around all objects.
    is_array: bool,
    rows: u64,
}

impl<'a> Objects<'a> {
    /// One array, an object per line.
    pub(super) fn array(how: How, out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, how, is_array: true, rows: 0 }
    }

    /// An object per line.
    pub(super) fn lines(how: How, out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, how, is_array: false, rows: 0 }
    }
}

impl Results for Objects<'_> {
    fn batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, LineDelimited>(Vec::new());
        writer.write(batch)?;
        writer.finish()?;
        let text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
        for line in text.lines() {
            let line = if self.how.is_terminal { escaped(line) } else { line.to_owned() };
            let before = match (self.is_array, self.rows) {
                (false, _) => "",
                (true, 0) => "[",
                (true, _) => ",\n",
            };
            let after = if self.is_array { "" } else { "\n" };
            write!(self.out, "{before}{line}{after}").map_err(failed)?;
            self.rows += 1;
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        match (self.is_array, self.rows) {
            (false, _) => Ok(()),
            (true, 0) => writeln!(self.out, "[]").map_err(failed),
            (true, _) => writeln!(self.out, "]").map_err(failed),
        }
    }
}

/// Characters that control a terminal as escapes of JSON.
fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if is_unsafe_char(c) {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}
