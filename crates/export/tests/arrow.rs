//! Arrow files read back by a reader that shares nothing with the writer: FlatBuffers by their vtables, messages,
//! dictionaries and buffers as the columnar format's document describes them.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod made;

use std::collections::BTreeMap;

use anytrace_core::table::ColumnType;
use anytrace_export::arrow::Limits;
use made::Made;
use serde_json::{Value, json};

fn uint(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
}

/// A table of a FlatBuffer: the buffer, and where the table begins.
#[derive(Clone, Copy)]
struct Flat<'a>(&'a [u8], usize);

impl<'a> Flat<'a> {
    fn root(bytes: &'a [u8]) -> Self {
        Self(bytes, uint(bytes, 0, 4) as usize)
    }

    /// Where a field is; `None` for its default.
    fn field(self, number: usize) -> Option<usize> {
        let back = (uint(self.0, self.1, 4) as u32).cast_signed();
        let vtable = self.1.checked_add_signed(-(back as isize)).unwrap();
        let (length, bytes) = (uint(self.0, vtable, 2) as usize, uint(self.0, vtable + 2, 2) as usize);
        let place = 4 + 2 * number;
        let offset = if place < length { uint(self.0, vtable + place, 2) as usize } else { 0 };
        assert!(offset < bytes, "a field lies in its table");
        (offset != 0).then_some(self.1 + offset)
    }

    /// A number, at a multiple of its length.
    fn number(self, number: usize, length: usize) -> u64 {
        self.field(number).map_or(0, |at| {
            assert_eq!(at % length, 0, "field {number}");
            uint(self.0, at, length)
        })
    }

    fn follow(self, at: usize) -> usize {
        at + uint(self.0, at, 4) as usize
    }

    fn table(self, number: usize) -> Option<Self> {
        self.field(number).map(|at| Self(self.0, self.follow(at)))
    }

    /// Where the elements of a list begin, and how many there are.
    fn list(self, number: usize) -> (usize, usize) {
        let at = self.follow(self.field(number).unwrap());
        (at + 4, uint(self.0, at, 4) as usize)
    }

    fn tables(self, number: usize) -> Vec<Self> {
        let (at, count) = self.list(number);
        (0..count).map(|n| Self(self.0, self.follow(at + 4 * n))).collect()
    }

    /// Structs of some words of 64 bits.
    fn structs(self, number: usize, words: usize) -> Vec<Vec<u64>> {
        let (at, count) = self.list(number);
        assert_eq!(at % 8, 0, "structs of words begin at a multiple of 8");
        let word = |n: usize, word: usize| uint(self.0, at + (n * words + word) * 8, 8);
        (0..count).map(|n| (0..words).map(|w| word(n, w)).collect()).collect()
    }

    fn text(self, number: usize) -> &'a str {
        let (at, length) = self.list(number);
        assert_eq!(self.0[at + length], 0, "texts end with a zero");
        std::str::from_utf8(&self.0[at..at + length]).unwrap()
    }
}

/// Name, whether it may be absent, number of the type and what it says, whether there is a dictionary.
type Field = (String, bool, u64, Vec<u64>, Option<u64>);

fn fields(schema: Flat<'_>) -> Vec<Field> {
    assert_eq!(schema.number(0, 2), 0, "little");
    let field = |field: Flat<'_>| {
        let about = field.table(3).unwrap();
        let kind = field.number(2, 1);
        let words = match kind {
            2 => vec![about.number(0, 4), about.number(1, 1)],
            3 => vec![about.number(0, 2)],
            _ => vec![],
        };
        let dictionary = field.table(4).map(|dictionary| {
            let keys = dictionary.table(1).unwrap();
            assert_eq!((keys.number(0, 4), keys.number(1, 1)), (32, 1), "keys are signed numbers of 32 bits");
            dictionary.number(0, 8)
        });
        (field.text(0).to_owned(), field.number(1, 1) == 1, kind, words, dictionary)
    };
    schema.tables(1).into_iter().map(field).collect()
}

fn wanted(made: &Made) -> Vec<Field> {
    let field = |(n, column): (usize, &anytrace_core::table::Column)| {
        let (kind, words) = match column.kind {
            ColumnType::Boolean => (6, vec![]),
            ColumnType::Int32 => (2, vec![32, 1]),
            ColumnType::Int64 => (2, vec![64, 1]),
            ColumnType::UInt32 => (2, vec![32, 0]),
            ColumnType::UInt64 => (2, vec![64, 0]),
            ColumnType::Float64 => (3, vec![2]),
            ColumnType::Text | ColumnType::Name => (5, vec![]),
            ColumnType::Bytes => (4, vec![]),
        };
        let dictionary = (column.kind == ColumnType::Name).then_some(n as u64);
        (column.name.to_owned(), column.is_nullable, kind, words, dictionary)
    };
    made.table.columns.iter().enumerate().map(field).collect()
}

/// The arrays of a message, taken one after the other.
struct Body<'a> {
    bytes: &'a [u8],
    nodes: std::vec::IntoIter<Vec<u64>>,
    buffers: std::vec::IntoIter<Vec<u64>>,
}

impl<'a> Body<'a> {
    fn of(batch: Flat<'_>, bytes: &'a [u8]) -> Self {
        let buffers = batch.structs(2, 2);
        let mut end = 0;
        for buffer in &buffers {
            assert!(buffer[0] % 64 == 0 && buffer[0] >= end, "buffers follow each other");
            end = buffer[0] + buffer[1];
        }
        assert!(end as usize <= bytes.len());
        Self { bytes, nodes: batch.structs(1, 2).into_iter(), buffers: buffers.into_iter() }
    }

    fn buffer(&mut self) -> &'a [u8] {
        let buffer = self.buffers.next().unwrap();
        &self.bytes[buffer[0] as usize..][..buffer[1] as usize]
    }

    /// Which rows are present.
    fn validity(&mut self) -> Vec<bool> {
        let node = self.nodes.next().unwrap();
        let (bits, rows) = (self.buffer(), node[0] as usize);
        let is_valid = |row: usize| bits.is_empty() || bits[row / 8] >> (row % 8) & 1 == 1;
        let all: Vec<bool> = (0..rows).map(is_valid).collect();
        assert_eq!(all.iter().filter(|is_valid| !**is_valid).count() as u64, node[1], "absent values are counted");
        all
    }

    fn strings(&mut self, rows: usize) -> Vec<&'a [u8]> {
        let (offsets, bytes) = (self.buffer(), self.buffer());
        let at = |n: usize| if offsets.is_empty() { 0 } else { uint(offsets, n * 4, 4) as usize };
        assert!(offsets.len() == (rows + 1) * 4 || rows == 0);
        assert_eq!((at(0), at(rows)), (0, bytes.len()));
        (0..rows).map(|n| &bytes[at(n)..at(n + 1)]).collect()
    }

    fn is_used_up(&self) -> bool {
        self.nodes.len() == 0 && self.buffers.len() == 0
    }
}

/// The values of a column of a batch as JSON.
fn column(kind: ColumnType, body: &mut Body<'_>, names: Option<&Vec<String>>) -> Vec<Value> {
    let valid = body.validity();
    let rows = valid.len();
    let cells: Vec<Value> = match kind {
        ColumnType::Text => body.strings(rows).into_iter().map(|b| json!(std::str::from_utf8(b).unwrap())).collect(),
        ColumnType::Bytes => {
            let hex = |bytes: &[u8]| json!(bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
            body.strings(rows).into_iter().map(hex).collect()
        }
        ColumnType::Boolean => {
            let bits = body.buffer();
            (0..rows).map(|row| json!(bits[row / 8] >> (row % 8) & 1 == 1)).collect()
        }
        _ => {
            let width = if matches!(kind, ColumnType::Int32 | ColumnType::UInt32 | ColumnType::Name) { 4 } else { 8 };
            let buffer = body.buffer();
            assert_eq!(buffer.len(), rows * width);
            let cell = |row: usize| {
                let bits = uint(buffer, row * width, width);
                match kind {
                    ColumnType::Int32 => json!((bits as u32).cast_signed()),
                    ColumnType::Int64 => json!(bits.cast_signed()),
                    ColumnType::Float64 => match f64::from_bits(bits) {
                        number if number.is_finite() => json!(number),
                        number => json!(number.to_string()),
                    },
                    ColumnType::Name if valid[row] => json!(names.unwrap()[bits as usize]),
                    _ => json!(bits),
                }
            };
            (0..rows).map(cell).collect()
        }
    };
    cells.into_iter().zip(valid).map(|(cell, is_valid)| if is_valid { cell } else { Value::Null }).collect()
}

/// The message at a place: its kind, its header, its body.
fn message<'a>(file: &'a [u8], block: &[u64]) -> (u64, Flat<'a>, &'a [u8]) {
    let (offset, metadata, body) = (block[0] as usize, block[1] as usize, block[2] as usize);
    assert_eq!((file[offset..offset + 4].to_vec(), offset % 8, metadata % 8), (vec![0xff; 4], 0, 0));
    assert_eq!(uint(file, offset + 4, 4) as usize, metadata - 8);
    let root = Flat::root(&file[offset + 8..offset + metadata]);
    assert_eq!((root.number(0, 2), root.number(3, 8) as usize), (4, body), "version 5");
    (root.number(1, 1), root.table(2).unwrap(), &file[offset + metadata..][..body])
}

/// The rows of each batch, and the dictionaries by number.
fn read(file: &[u8], made: &Made) -> (Vec<Vec<Value>>, BTreeMap<u64, Vec<String>>) {
    assert!(file.starts_with(b"ARROW1\0\0") && file.ends_with(b"ARROW1"));
    let end = file.len() - 10;
    let footer = Flat::root(&file[end - uint(file, end, 4) as usize..end]);
    let (first, header, _) = message(file, &[64, 8 + uint(file, 68, 4), 0]);
    assert_eq!((first, fields(header)), (1, wanted(made)), "a schema comes first");
    assert_eq!(fields(footer.table(1).unwrap()), wanted(made), "and again at the end");
    let mut names = BTreeMap::new();
    for block in footer.structs(2, 3) {
        let (kind, header, body) = message(file, &block);
        let mut body = Body::of(header.table(1).unwrap(), body);
        let rows = body.validity().len();
        let texts = body.strings(rows).into_iter().map(|text| std::str::from_utf8(text).unwrap().to_owned());
        assert_eq!(kind, 2);
        assert!(names.insert(header.number(0, 8), texts.collect()).is_none(), "one dictionary a column");
        assert!(body.is_used_up());
    }
    let mut batches = Vec::new();
    for block in footer.structs(3, 3) {
        let (kind, header, body) = message(file, &block);
        let mut body = Body::of(header, body);
        let columns: Vec<Vec<Value>> =
            (0_u64..).zip(made.table.columns).map(|(n, one)| column(one.kind, &mut body, names.get(&n))).collect();
        assert!(kind == 3 && body.is_used_up());
        let rows = header.number(0, 8) as usize;
        assert!(columns.iter().all(|column| column.len() == rows));
        batches.push((0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect());
    }
    (batches, names)
}

fn assert_reads(made: &Made, limits: Limits) -> (Vec<Vec<Value>>, BTreeMap<u64, Vec<String>>) {
    let (batches, names) = read(&made::arrow(made, limits), made);
    let expected = made::rows(made);
    let expected = expected["rows"].as_array().unwrap();
    assert_eq!(batches.iter().map(Vec::len).sum::<usize>(), expected.len());
    for (n, (found, expected)) in batches.iter().flatten().zip(expected).enumerate() {
        assert_eq!(found, expected, "{}, row {n}", made.name);
    }
    (batches, names)
}

#[test]
fn every_value_of_every_table_is_read_back() {
    for made in made::all() {
        for (batch_rows, batch_bytes) in [(1 << 16, 16 << 20), (1, 1 << 20), (300, 1 << 20), (5000, 2000)] {
            assert_reads(&made, Limits { batch_rows, batch_bytes, ..Limits::default() });
        }
    }
}

#[test]
fn a_batch_ends_with_the_rows_that_fill_it() {
    let rows = made::random(500);
    let made = Made { name: "random", table: &made::TYPES, batches: made::typed(&rows, 30) };
    for (batch_rows, expected) in [(1, 30), (30, 30), (31, 60), (90, 90), (1000, 500)] {
        let (batches, _) = assert_reads(&made, Limits { batch_rows, ..Limits::default() });
        assert!(batches[..batches.len() - 1].iter().all(|batch| batch.len() == expected), "{batch_rows}");
    }
}

#[test]
fn dictionaries_have_each_name_once_in_order_of_first_use() {
    for made in made::all() {
        let (_, names) = assert_reads(&made, Limits::default());
        let expected = made::rows(&made);
        for (n, _) in made.table.columns.iter().enumerate().filter(|(_, column)| column.kind == ColumnType::Name) {
            let mut wanted: Vec<&str> = Vec::new();
            for row in expected["rows"].as_array().unwrap() {
                wanted.extend(row[n].as_str().filter(|name| !wanted.contains(name)));
            }
            assert_eq!(names[&(n as u64)], wanted, "{}", made.name);
        }
    }
}
