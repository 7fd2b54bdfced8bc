//! Tables, columns and named queries, for people and programs.

use std::io::{self, Write};

use anytrace_core::table::{ColumnType, Table};
use serde_json::{Value, json};

use crate::{Form, Session, cookbook};

/// `--tables`.
pub(crate) fn tables(session: &Session, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let rows = session.tables().iter().flat_map(|(schema, tables)| {
        tables.iter().map(move |table| {
            let name = schema.as_ref().map_or(table.name.to_owned(), |schema| format!("{schema}.{}", table.name));
            [name, table.help.to_owned()]
        })
    });
    print(["table", "a row is"], &rows.collect::<Vec<_>>(), form, out)
}

/// `--describe TABLE`.
pub(crate) fn columns(table: &Table, form: Form, out: &mut dyn Write) -> io::Result<()> {
    let rows = table.columns.iter().map(|column| {
        let null = if column.is_nullable { "?" } else { "" };
        [column.name.to_owned(), format!("{}{null}", word(column.kind)), column.help.to_owned()]
    });
    print(["column", "type", "meaning"], &rows.collect::<Vec<_>>(), form, out)
}

/// `--list`.
pub(crate) fn queries(out: &mut dyn Write) -> io::Result<()> {
    let width = cookbook::all().iter().map(|query| query.name.len()).max().unwrap_or(0);
    for query in cookbook::all() {
        writeln!(out, "{:width$}  {} ({})", query.name, query.question, query.format)?;
    }
    Ok(())
}

/// The type as SQL calls it.
fn word(kind: ColumnType) -> &'static str {
    match kind {
        ColumnType::Boolean => "BOOLEAN",
        ColumnType::Int32 => "INT",
        ColumnType::Int64 => "BIGINT",
        ColumnType::UInt32 => "INT UNSIGNED",
        ColumnType::UInt64 => "BIGINT UNSIGNED",
        ColumnType::Float64 => "DOUBLE",
        ColumnType::Text | ColumnType::Name => "VARCHAR",
        ColumnType::Bytes => "BYTEA",
    }
}

fn print<const N: usize>(header: [&str; N], rows: &[[String; N]], form: Form, out: &mut dyn Write) -> io::Result<()> {
    let object = |row: &[String; N]| -> Value {
        header.iter().zip(row).map(|(key, cell)| ((*key).to_owned(), json!(cell))).collect()
    };
    match form {
        Form::Json => writeln!(out, "{}", Value::Array(rows.iter().map(object).collect())),
        Form::Jsonl => rows.iter().try_for_each(|row| writeln!(out, "{}", object(row))),
        Form::Csv => {
            let quoted = |cell: &str| {
                if cell.contains([',', '"']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
            };
            writeln!(out, "{}", header.join(","))?;
            rows.iter().try_for_each(|row| {
                writeln!(out, "{}", row.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(","))
            })
        }
        Form::Table | Form::Parquet | Form::Arrow => {
            let width = |column: usize| rows.iter().map(|row| row[column].len()).chain([header[column].len()]).max();
            let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
            let line = |cells: Vec<&str>| {
                let cells: Vec<_> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
                cells.join("  ").trim_end().to_owned()
            };
            writeln!(out, "{}", line(header.to_vec()))?;
            rows.iter().try_for_each(|row| writeln!(out, "{}", line(row.iter().map(String::as_str).collect())))
        }
    }
}
