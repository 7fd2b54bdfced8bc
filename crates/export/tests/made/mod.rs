//! Made-up tables with everything that is hard, for the tests of outputs of tables and for the programs that read them.

#![allow(dead_code, reason = "not every user needs everything")]

use std::sync::Arc;

use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Names, Strings, Table, Values};
use anytrace_export::arrow::{ArrowWriter, Limits as ArrowLimits};
use anytrace_export::parquet::{Limits as ParquetLimits, ParquetWriter};
use serde_json::{Value, json};

const fn column(name: &'static str, kind: ColumnType) -> Column {
    Column::new(name, kind, "")
}

const fn nullable(name: &'static str, kind: ColumnType) -> Column {
    Column::nullable(name, kind, "")
}

/// Every type, where values must be there and where they need not.
pub(crate) static TYPES: Table = Table {
    name: "types",
    help: "",
    columns: &[
        column("boolean", ColumnType::Boolean),
        column("int32", ColumnType::Int32),
        column("int64", ColumnType::Int64),
        column("uint32", ColumnType::UInt32),
        column("uint64", ColumnType::UInt64),
        column("float64", ColumnType::Float64),
        column("text", ColumnType::Text),
        column("bytes", ColumnType::Bytes),
        column("name", ColumnType::Name),
        nullable("boolean?", ColumnType::Boolean),
        nullable("int32?", ColumnType::Int32),
        nullable("int64?", ColumnType::Int64),
        nullable("uint32?", ColumnType::UInt32),
        nullable("uint64?", ColumnType::UInt64),
        nullable("float64?", ColumnType::Float64),
        nullable("text?", ColumnType::Text),
        nullable("bytes?", ColumnType::Bytes),
        nullable("name?", ColumnType::Name),
    ],
};

/// Names only.
pub(crate) static NAMES: Table =
    Table { name: "names", help: "", columns: &[column("seq", ColumnType::Int64), nullable("name", ColumnType::Name)] };

/// A table, its rows, and how they come.
pub(crate) struct Made {
    pub(crate) name: &'static str,
    pub(crate) table: &'static Table,
    pub(crate) batches: Vec<Batch>,
}

/// A column of a batch of a type, from one value a row; `None` is absent.
pub(crate) fn values(kind: ColumnType, cells: &[Value]) -> BatchColumn {
    let validity: Vec<bool> = cells.iter().map(|cell| !cell.is_null()).collect();
    let validity = if validity.contains(&false) { validity } else { Vec::new() };
    let strings = |bytes: fn(&Value) -> Vec<u8>| {
        let mut strings = Strings::default();
        for cell in cells {
            strings.bytes.extend(bytes(cell));
            strings.offsets.push(i32::try_from(strings.bytes.len()).unwrap());
        }
        strings
    };
    let signed = |cell: &Value| cell.as_i64().unwrap_or_default();
    let unsigned = |cell: &Value| cell.as_u64().unwrap_or_default();
    let values = match kind {
        ColumnType::Boolean => Values::Boolean(cells.iter().map(|cell| cell.as_bool().unwrap_or_default()).collect()),
        ColumnType::Int32 => Values::Int32(cells.iter().map(|cell| i32::try_from(signed(cell)).unwrap()).collect()),
        ColumnType::Int64 => Values::Int64(cells.iter().map(signed).collect()),
        ColumnType::UInt32 => Values::UInt32(cells.iter().map(|cell| u32::try_from(unsigned(cell)).unwrap()).collect()),
        ColumnType::UInt64 => Values::UInt64(cells.iter().map(unsigned).collect()),
        ColumnType::Float64 => Values::Float64(cells.iter().map(float).collect()),
        ColumnType::Text => Values::Text(strings(|cell| cell.as_str().unwrap_or_default().into())),
        ColumnType::Bytes => Values::Bytes(strings(unhex)),
        ColumnType::Name => names(cells),
    };
    BatchColumn { values, validity }
}

/// Floating point as JSON: what JSON has no number for is a text.
fn float(cell: &Value) -> f64 {
    match cell.as_str() {
        Some(text) => text.parse().unwrap(),
        None => cell.as_f64().unwrap_or_default(),
    }
}

fn unhex(cell: &Value) -> Vec<u8> {
    let digits = cell.as_str().unwrap_or_default();
    (0..digits.len() / 2).map(|at| u8::from_str_radix(&digits[at * 2..at * 2 + 2], 16).unwrap()).collect()
}

/// Each batch has a dictionary of its own, in the order of first use.
fn names(cells: &[Value]) -> Values {
    let (mut texts, mut keys) = (Vec::new(), Vec::new());
    for cell in cells {
        let Some(text) = cell.as_str() else {
            keys.push(0);
            continue;
        };
        let known = texts.iter().position(|known| *known == text);
        keys.push(i32::try_from(known.unwrap_or(texts.len())).unwrap());
        if known.is_none() {
            texts.push(text);
        }
    }
    Values::Name { keys, names: Arc::new(dictionary(texts.into_iter().map(str::to_owned))) }
}

/// A dictionary of these names.
pub(crate) fn dictionary(texts: impl Iterator<Item = String>) -> Names {
    let mut strings = Strings::default();
    for text in texts {
        strings.bytes.extend_from_slice(text.as_bytes());
        strings.offsets.push(i32::try_from(strings.bytes.len()).unwrap());
    }
    Names(strings)
}

/// Rows of [`TYPES`] in batches of `batch_rows`.
pub(crate) fn typed(rows: &[Vec<Value>], batch_rows: usize) -> Vec<Batch> {
    let batch = |rows: &[Vec<Value>]| {
        let cells = |at: usize| rows.iter().map(|row| row[at].clone()).collect::<Vec<_>>();
        let columns = TYPES.columns.iter().enumerate().map(|(at, column)| values(column.kind, &cells(at)));
        Batch { rows: rows.len(), columns: columns.collect() }
    };
    rows.chunks(batch_rows).map(batch).collect()
}

/// A few rows with the ends of each type.
pub(crate) fn ends() -> Vec<Vec<Value>> {
    let long = "long ".repeat(20) + "ä";
    let rows = [
        json!([true, i32::MIN, i64::MIN, 0, 0, "-inf", "", "", ""]),
        json!([false, i32::MAX, i64::MAX, u32::MAX, u64::MAX, "inf", "ä€😀", "00ff80", "main"]),
        json!([true, -1, -1, 1_u32 << 31, 1_u64 << 63, -0.0, "a\"b\n\0c", "7f", "a::b<c>"]),
        json!([true, 0, 0, 7, 7, "NaN", long, "ff".repeat(70), "main"]),
        json!([false, 7, 1_i64 << 53, 8, (1_u64 << 53) + 1, 0.1, "z", "00", "ä"]),
    ];
    let rows = rows.iter().map(|row| row.as_array().unwrap().clone());
    let is_absent = |row: usize, column: usize| (row + column).is_multiple_of(3);
    let both = rows.enumerate().map(|(row, cells)| {
        let present = cells.clone().into_iter().enumerate();
        let optional = present.map(|(at, cell)| if is_absent(row, at) { Value::Null } else { cell });
        cells.clone().into_iter().chain(optional).collect()
    });
    both.collect()
}

/// Many rows, the same in every run.
pub(crate) fn random(count: usize) -> Vec<Vec<Value>> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut cells = |seq: usize| -> Vec<Value> {
        let (a, b, c) = (next(), next(), next());
        let text = "text ".repeat((a % 30) as usize) + &b.to_string();
        let float = f64::from_bits(c);
        let float = if float.is_finite() { json!(float) } else { json!("NaN") };
        vec![
            // Long runs, then short ones.
            json!(if seq.is_multiple_of(200) { a.is_multiple_of(2) } else { seq % 1000 < 500 }),
            json!(a as i32),
            json!(seq as i64 - 500),
            json!(b as u32),
            json!(b),
            float,
            json!(text),
            json!(format!("{:0width$x}", a, width = (16 + c % 8 * 2) as usize)),
            json!(format!("function {}", (a % 17) * (seq as u64 / 300 + 1))),
        ]
    };
    (0..count)
        .map(|seq| {
            let present = cells(seq);
            let optional = cells(seq).into_iter().enumerate().map(|(at, cell)| {
                let is_absent = if seq < 400 { at.is_multiple_of(2) } else { (seq + at).is_multiple_of(at + 2) };
                if is_absent { Value::Null } else { cell }
            });
            present.into_iter().chain(optional.collect::<Vec<_>>()).collect()
        })
        .collect()
}

/// Rows of [`TYPES`] in which everything that may be absent is.
pub(crate) fn absent(count: usize) -> Vec<Vec<Value>> {
    let mut rows = random(count);
    rows.iter_mut().for_each(|row| row[9..].fill(Value::Null));
    rows
}

/// A dictionary that grows with each batch, starts again, and is shared by batches.
pub(crate) fn growing() -> Vec<Batch> {
    let mut batches = Vec::new();
    let name = |number: usize| format!("name {number} {}", "x".repeat(number % 40));
    let mut add = |first: i64, keys: Vec<i32>, names: &Arc<Names>, validity: Vec<bool>| {
        let seq = (first..).take(keys.len()).collect::<Vec<_>>();
        let names = Values::Name { keys, names: Arc::clone(names) };
        batches.push(Batch {
            rows: seq.len(),
            columns: vec![
                BatchColumn { values: Values::Int64(seq), validity: vec![] },
                BatchColumn { values: names, validity },
            ],
        });
    };
    for size in 1..40 {
        let names = Arc::new(dictionary((0..size * 25).map(name)));
        let keys: Vec<i32> = (0..100).map(|row| (row * row + 7) % (size as i32 * 25)).collect();
        add(size as i64 * 1000, keys.clone(), &names, vec![]);
        let validity = (0..100).map(|row| row % 7 != size % 7).collect();
        add(size as i64 * 1000 + 500, keys, &names, validity);
    }
    let names = Arc::new(dictionary((200..300).rev().map(name)));
    add(50_000, (0..100).collect(), &names, vec![]);
    add(60_000, vec![0; 100], &Arc::new(Names::default()), vec![false; 100]);
    batches
}

/// All of them.
pub(crate) fn all() -> Vec<Made> {
    let made = |name, table, batches| Made { name, table, batches };
    vec![
        made("empty", &TYPES, Vec::new()),
        made("ends", &TYPES, typed(&ends(), 5)),
        made("absent", &TYPES, typed(&absent(50), 20)),
        made("random", &TYPES, typed(&random(5000), 700)),
        made("growing", &NAMES, growing()),
    ]
}

/// Limits under which a few thousand rows are many row groups and pages, and names do not fit a dictionary.
pub(crate) fn small() -> ParquetLimits {
    ParquetLimits { group_rows: 1300, group_bytes: 1 << 20, page_rows: 250, page_bytes: 3000, dictionary_bytes: 1200 }
}

/// The table as a Parquet file.
pub(crate) fn parquet(made: &Made, limits: ParquetLimits) -> Vec<u8> {
    let mut writer = ParquetWriter::with_limits(Vec::new(), made.table, None, limits).unwrap();
    made.batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap()
}

/// The table as an Arrow file.
pub(crate) fn arrow(made: &Made, limits: ArrowLimits) -> Vec<u8> {
    let mut writer = ArrowWriter::with_limits(Vec::new(), made.table, None, limits).unwrap();
    made.batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.finish().unwrap()
}

/// The rows as JSON: bytes in hexadecimal, floating point that JSON does not have as texts.
pub(crate) fn rows(made: &Made) -> Value {
    let cell = |column: &BatchColumn, row: usize| {
        let is_valid = column.is_valid(row);
        is_valid.then(|| match &column.values {
            Values::Boolean(values) => json!(values[row]),
            Values::Int32(values) => json!(values[row]),
            Values::Int64(values) => json!(values[row]),
            Values::UInt32(values) => json!(values[row]),
            Values::UInt64(values) => json!(values[row]),
            Values::Float64(values) if values[row].is_finite() => json!(values[row]),
            Values::Float64(values) => json!(values[row].to_string()),
            Values::Text(strings) => json!(String::from_utf8_lossy(strings.get(row))),
            Values::Bytes(strings) => {
                json!(strings.get(row).iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            }
            Values::Name { keys, names } => json!(names.get(keys[row])),
        })
    };
    let rows = made.batches.iter().flat_map(|batch| {
        (0..batch.rows).map(move |row| batch.columns.iter().map(|column| cell(column, row)).collect::<Value>())
    });
    let names: Vec<_> = made.table.columns.iter().map(|column| column.name).collect();
    json!({ "columns": names, "rows": rows.collect::<Vec<_>>() })
}
