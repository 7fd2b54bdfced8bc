//! The footer, as `parquet.thrift` (Apache Parquet 2.12) has it: the schema, and where everything is.

use anytrace_core::table::{Column, ColumnType};

use super::chunk::Chunk;
use super::numbers::{DATA_PAGE, DICTIONARY_PAGE, PLAIN, RLE, RLE_DICTIONARY};
use super::thrift::{BINARY, I32, STRUCT, Thrift};

const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;
const ZSTD: i32 = 6;

/// The physical type of a column.
fn physical(kind: ColumnType) -> i32 {
    match kind {
        ColumnType::Boolean => 0,
        ColumnType::Int32 | ColumnType::UInt32 => 1,
        ColumnType::Int64 | ColumnType::UInt64 => 2,
        ColumnType::Float64 => 5,
        ColumnType::Text | ColumnType::Name | ColumnType::Bytes => 6,
    }
}

/// A row group that is written.
pub(super) struct Group {
    /// Its element of the footer's list.
    columns: Vec<Thrift>,
    start: u64,
    rows: i64,
    bytes: u64,
    uncompressed_bytes: u64,
}

impl Group {
    /// Describes chunks that follow each other from `start` on.
    pub(super) fn new(chunks: &[Chunk], rows: usize, start: u64) -> Self {
        let rows = rows as i64;
        let mut group = Self { columns: Vec::new(), start, rows, bytes: 0, uncompressed_bytes: 0 };
        for chunk in chunks {
            let mut about = Thrift::default();
            about_chunk(&mut about, chunk, start + group.bytes);
            group.columns.push(about);
            group.bytes += chunk.pages.bytes() as u64;
            group.uncompressed_bytes += chunk.pages.uncompressed_bytes;
        }
        group
    }

    fn write(self, thrift: &mut Thrift) {
        thrift.list(1, STRUCT, self.columns.len());
        for column in self.columns {
            thrift.written(column);
        }
        thrift.i64(2, signed(self.uncompressed_bytes));
        thrift.i64(3, self.rows);
        thrift.i64(5, signed(self.start));
        thrift.i64(6, signed(self.bytes));
    }
}

/// `ColumnChunk`.
fn about_chunk(thrift: &mut Thrift, chunk: &Chunk, start: u64) {
    let (column, pages) = (&chunk.column, &chunk.pages);
    let has_dictionary = !pages.dictionary.is_empty();
    thrift.i64(2, 0);
    thrift.fields(3, |meta| {
        meta.i32(1, physical(column.kind));
        let encodings = [(PLAIN, true), (RLE, true), (RLE_DICTIONARY, has_dictionary)];
        meta.list(2, I32, encodings.iter().filter(|(_, is_used)| *is_used).count());
        encodings.iter().filter(|(_, is_used)| *is_used).for_each(|(encoding, _)| meta.number(*encoding));
        meta.list(3, BINARY, 1);
        meta.element(column.name.as_bytes());
        meta.i32(4, ZSTD);
        meta.i64(5, chunk.rows);
        meta.i64(6, signed(pages.uncompressed_bytes));
        meta.i64(7, signed(pages.bytes() as u64));
        meta.i64(9, signed(start + pages.dictionary.len() as u64));
        if has_dictionary {
            meta.i64(11, signed(start));
        }
        chunk.statistics.write(meta, 12, column.kind);
        page_counts(meta, chunk);
    });
}

/// `encoding_stats`: from them readers know whether all values are in the dictionary.
fn page_counts(meta: &mut Thrift, chunk: &Chunk) {
    let pages = &chunk.pages;
    let dictionaries = i32::from(!pages.dictionary.is_empty());
    let counts = [
        (DICTIONARY_PAGE, PLAIN, dictionaries),
        (DATA_PAGE, PLAIN, pages.plain_pages),
        (DATA_PAGE, RLE_DICTIONARY, pages.keyed_pages),
    ];
    meta.list(13, STRUCT, counts.iter().filter(|(_, _, count)| *count > 0).count());
    for (page, encoding, count) in counts.into_iter().filter(|(_, _, count)| *count > 0) {
        meta.nested(|element| {
            element.i32(1, page);
            element.i32(2, encoding);
            element.i32(3, count);
        });
    }
}

/// `FileMetaData`.
pub(super) fn footer(columns: &[Column], groups: Vec<Group>) -> Vec<u8> {
    let mut thrift = Thrift::default();
    // Version 2: there are logical types of integers, and pages that refer to dictionaries by RLE_DICTIONARY.
    thrift.i32(1, 2);
    thrift.list(2, STRUCT, columns.len() + 1);
    thrift.nested(|root| {
        root.bytes(4, b"schema");
        // A table has few columns.
        root.i32(5, i32::try_from(columns.len()).unwrap_or(i32::MAX));
    });
    columns.iter().for_each(|column| thrift.nested(|element| schema(element, column)));
    thrift.i64(3, groups.iter().map(|group| group.rows).sum());
    thrift.list(4, STRUCT, groups.len());
    for group in groups {
        thrift.nested(|element| group.write(element));
    }
    thrift.bytes(6, concat!("anytrace version ", env!("CARGO_PKG_VERSION")).as_bytes());
    thrift.list(7, STRUCT, columns.len());
    // TYPE_ORDER: without it, readers ignore the smallest and the largest value.
    columns.iter().for_each(|_| thrift.nested(|order| order.fields(1, |_| ())));
    thrift.finish()
}

/// `SchemaElement` of a column.
fn schema(thrift: &mut Thrift, column: &Column) {
    thrift.i32(1, physical(column.kind));
    thrift.i32(3, if column.is_nullable { OPTIONAL } else { REQUIRED });
    thrift.bytes(4, column.name.as_bytes());
    // The converted type is what readers before logical types know.
    match column.kind {
        ColumnType::Text | ColumnType::Name => {
            thrift.i32(6, 0);
            thrift.fields(10, |logical| logical.fields(1, |_| ()));
        }
        ColumnType::UInt32 => unsigned(thrift, 13, 32),
        ColumnType::UInt64 => unsigned(thrift, 14, 64),
        _ => {}
    }
}

fn unsigned(thrift: &mut Thrift, converted: i32, bits: u8) {
    thrift.i32(6, converted);
    thrift.fields(10, |logical| {
        logical.fields(10, |integer| {
            integer.byte(1, bits);
            integer.bool(2, false);
        });
    });
}

/// An offset or a size in a file, which is below 2^63.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
