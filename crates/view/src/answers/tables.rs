//! The pages of a format: those of its tables that a person reads from top to bottom.

use anytrace_core::span::TimeUnit;
use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, RowSink, Scan, Table, Values};
use anytrace_core::{Error, Format, tables};
use serde_json::{Value, json};

use super::page::{Page, text};
use crate::reading::span_options;

/// Rows of a table that are shown.
const ROWS_MAX: usize = 1000;

/// Bytes of a value that are shown, of binary data and of text.
const BYTES_MAX: usize = 64;
const TEXT_MAX: usize = 1000;

/// Why reading stops although nothing is wrong.
const ENOUGH: &str = "no more rows are shown";

/// The pages, with the tables on each. A page is there if the format of some file has one of them.
pub(super) const PAGES: [(&str, &[&str]); 4] = [
    ("Losses", &["streams", "loss"]),
    ("Frames", &["frames", "blobs"]),
    ("Breaches", &["breaches"]),
    ("Types", &["types", "regions"]),
];

/// A page's tables that a format has.
pub(super) fn on(page: &str, format: &dyn Format) -> Vec<Table> {
    let wanted = PAGES.iter().find(|(name, _)| *name == page).map_or(&[][..], |(_, tables)| tables);
    let mut all = tables::all(format);
    all.retain(|table| !format.empty_tables().contains(&table.name));
    // In the order of the page: what sums up comes first.
    wanted.iter().filter_map(|name| all.iter().find(|table| table.name == *name)).copied().collect()
}

/// A page of one file.
pub(super) fn page(page: &Page<'_>, name: &str) -> Result<Vec<Value>, Error> {
    let mut blocks = Vec::new();
    let wanted = page.open()?.map_or_else(Vec::new, |(format, _)| on(name, format));
    for table in wanted {
        let Some((format, trace)) = page.open()? else { break };
        let mut rows = Rows { table, made: Vec::new(), links: Vec::new(), page };
        let options = span_options(page.work.view, page.file, format)?;
        let read = tables::read(format, trace, table.name, &Scan::default(), &options, &mut rows, &mut page.findings());
        let is_cut = match read {
            Err(error) if rows.made.len() < ROWS_MAX => return Err(error),
            read => read.is_err(),
        };
        if rows.made.is_empty() {
            blocks
                .push(text(&format!("This trace has nothing in its table {}: {}.", rows.table.name, rows.table.help)));
            continue;
        }
        blocks.push(rows.block());
        if is_cut {
            blocks.push(text(&format!("Only the first {ROWS_MAX} rows are shown: SQL has all, in {}.", table.name)));
        }
    }
    Ok(blocks)
}

/// The first rows of a table.
struct Rows<'a> {
    table: Table,
    made: Vec<Value>,
    links: Vec<Value>,
    page: &'a Page<'a>,
}

impl RowSink for Rows<'_> {
    fn rows(&mut self, batch: Batch) -> Result<(), Error> {
        let seq = ["seq", "added_seq"].iter().find_map(|name| self.table.column(name));
        let seq = seq.and_then(|at| batch.columns.get(at));
        let is_by_order = self.page.file.shelf().read().unit() == TimeUnit::Order;
        for row in 0..batch.rows {
            if self.made.len() == ROWS_MAX {
                return Err(Error::usage(ENOUGH));
            }
            let cells = self.table.columns.iter().zip(&batch.columns);
            self.made.push(cells.map(|(column, values)| shown(column, cell(values, row))).collect());
            let record = seq.filter(|_| is_by_order).and_then(|column| cell(column, row).as_u64());
            self.links.push(record.map_or(Value::Null, |record| self.page.link(record)));
        }
        Ok(())
    }
}

impl Rows<'_> {
    fn block(&self) -> Value {
        let column = |column: &Column| {
            let is_text = matches!(column.kind, ColumnType::Text | ColumnType::Bytes | ColumnType::Name);
            json!({"name": column.name, "align": if is_text { "left" } else { "right" }})
        };
        json!({
            "kind": "table",
            "title": format!("{}: {}", self.table.name, self.table.help),
            "columns": self.table.columns.iter().map(column).collect::<Vec<_>>(),
            "rows": self.made,
            "links": self.links,
        })
    }
}

/// A value as people read it: addresses in hexadecimal.
fn shown(column: &Column, value: Value) -> Value {
    let is_address = column.kind == ColumnType::UInt64 && column.name.ends_with("address");
    match (value.as_u64().filter(|_| is_address), value) {
        (Some(address), _) => format!("{address:#x}").into(),
        (None, Value::String(text)) if text.len() > TEXT_MAX => {
            let end = (0..=TEXT_MAX).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            format!("{}…", text.get(..end).unwrap_or_default()).into()
        }
        (None, value) => value,
    }
}

/// The first bytes, and how many there are: a texture has millions.
fn hex(bytes: &[u8]) -> String {
    let first: String = bytes.iter().take(BYTES_MAX).map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > BYTES_MAX { format!("{first}… ({} bytes)", bytes.len()) } else { first }
}

/// A value of a table.
pub(super) fn cell(column: &BatchColumn, row: usize) -> Value {
    let strings = |bytes: &[u8]| Value::from(String::from_utf8_lossy(bytes));
    if !column.is_valid(row) {
        return Value::Null;
    }
    match &column.values {
        Values::Boolean(values) => values.get(row).map_or(Value::Null, |value| json!(value)),
        Values::Int32(values) => values.get(row).map_or(Value::Null, |value| json!(value)),
        Values::Int64(values) => values.get(row).map_or(Value::Null, |value| json!(value)),
        Values::UInt32(values) => values.get(row).map_or(Value::Null, |value| json!(value)),
        Values::UInt64(values) => values.get(row).map_or(Value::Null, |value| json!(value)),
        Values::Float64(values) => values.get(row).map_or(Value::Null, |value| json!(value)),
        Values::Text(values) => strings(values.get(row)),
        Values::Bytes(values) => hex(values.get(row)).into(),
        Values::Name { keys, names } => {
            let at = keys.get(row).and_then(|key| usize::try_from(*key).ok());
            at.map_or(Value::Null, |at| strings(names.0.get(at)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_are_cut() {
        assert_eq!(hex(&[0xab, 0]), "ab00");
        assert_eq!(hex(&vec![1; 1 << 20]), format!("{}… (1048576 bytes)", "01".repeat(BYTES_MAX)));
        let column = Column::new("name", ColumnType::Text, "");
        let long = shown(&column, "ä".repeat(TEXT_MAX).into());
        assert_eq!(long, format!("{}…", "ä".repeat(TEXT_MAX / 2)));
        assert_eq!(shown(&column, "short".into()), "short");
        let address = Column::new("address", ColumnType::UInt64, "");
        assert_eq!((shown(&address, 255.into()), shown(&address, Value::Null)), ("0xff".into(), Value::Null));
    }
}
