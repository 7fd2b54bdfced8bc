//! Reads every table of traces by the library and prints of each column how many values it has, their sum and their
//! ends, as JSON: `cargo xtask consumers` compares that with what the readers of Parquet and Arrow find.
//!
//! `cargo run -p anytrace-formats --example table_summaries -- FOLDER TRACE…` writes `FOLDER/TRACE/TABLE.summary.json`.

#![allow(clippy::unwrap_used, reason = "a chore may fail by panicking")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anytrace_core::table::{Batch, BatchColumn, Scan, Table, Values};
use anytrace_core::tables::{all, read};
use anytrace_core::text::push_json_str;
use anytrace_core::{Collect, Error, Input, InputOptions, OpenOptions, SpanOptions};
use anytrace_formats::{Recognized, recognize};

/// What is known of a column.
#[derive(Default)]
struct About {
    rows: usize,
    nulls: usize,
    numbers: Option<(i128, i128, i128)>,
    /// Of texts, the sum is of their bytes.
    texts: Option<(usize, String, String)>,
}

impl About {
    fn add(&mut self, column: &BatchColumn) {
        for row in 0..column.values.len() {
            self.rows += 1;
            if !column.is_valid(row) {
                self.nulls += 1;
                continue;
            }
            match &column.values {
                Values::Boolean(values) => self.number(values[row].into()),
                Values::Int32(values) => self.number(values[row].into()),
                Values::Int64(values) => self.number(values[row].into()),
                Values::UInt32(values) => self.number(values[row].into()),
                Values::UInt64(values) => self.number(values[row].into()),
                // Sums of these depend on the order: those of their bits do not.
                Values::Float64(values) => self.number(values[row].to_bits().into()),
                Values::Text(strings) => self.text(std::str::from_utf8(strings.get(row)).unwrap()),
                Values::Bytes(strings) => {
                    self.text(&strings.get(row).iter().map(|byte| format!("{byte:02x}")).collect::<String>());
                }
                Values::Name { keys, names } => self.text(names.get(keys[row])),
            }
        }
    }

    fn number(&mut self, value: i128) {
        let (sum, min, max) = self.numbers.get_or_insert((0, value, value));
        (*sum, *min, *max) = (*sum + value, (*min).min(value), (*max).max(value));
    }

    fn text(&mut self, value: &str) {
        let (sum, min, max) = self.texts.get_or_insert_with(|| (0, value.to_owned(), value.to_owned()));
        *sum += value.len();
        if value < min.as_str() {
            value.clone_into(min);
        }
        if value > max.as_str() {
            value.clone_into(max);
        }
    }

    fn json(&self) -> String {
        let mut out = format!("{{\"rows\":{},\"nulls\":{}", self.rows, self.nulls);
        let ends = match (&self.numbers, &self.texts) {
            (Some((sum, min, max)), _) => Some((sum.to_string(), min.to_string(), max.to_string())),
            (_, Some((sum, min, max))) => Some((sum.to_string(), min.clone(), max.clone())),
            _ => None,
        };
        if let Some((sum, min, max)) = ends {
            write!(out, ",\"sum\":\"{sum}\",\"min\":{},\"max\":{}", quoted(&min), quoted(&max)).unwrap();
        }
        out + "}"
    }
}

fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    push_json_str(&mut out, text);
    String::from_utf8(out).unwrap()
}

fn main() {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    let folder = arguments.next().expect("a folder is given");
    for trace in arguments {
        let folder = folder.join(trace.file_name().unwrap());
        for table in tables(&trace) {
            let path = folder.join(format!("{}.summary.json", table.name));
            std::fs::write(path, summary(&trace, &table)).unwrap();
        }
    }
}

fn opened(trace: &Path) -> (&'static dyn anytrace_core::Format, Input) {
    let input = Input::open(trace, InputOptions::default()).unwrap();
    match recognize(&input.head()) {
        Recognized::Trace(format) => (format, input),
        _ => panic!("{}: not a trace", trace.display()),
    }
}

fn tables(trace: &Path) -> Vec<Table> {
    all(opened(trace).0)
}

fn summary(trace: &Path, table: &Table) -> String {
    let mut columns: Vec<About> = table.columns.iter().map(|_| About::default()).collect();
    let mut take = |batch: Batch| -> Result<(), Error> {
        columns.iter_mut().zip(&batch.columns).for_each(|(about, column)| about.add(column));
        Ok(())
    };
    let (format, input) = opened(trace);
    let entered = format.open(input, &OpenOptions::default()).unwrap();
    let options = SpanOptions::default();
    read(format, entered, table.name, &Scan::default(), &options, &mut take, &mut Collect::default()).unwrap();
    let named = table.columns.iter().zip(&columns);
    let members: Vec<_> = named.map(|(column, about)| format!("{}:{}", quoted(column.name), about.json())).collect();
    format!("{{{}}}", members.join(","))
}
