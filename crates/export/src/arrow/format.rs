//! Messages and the footer (`format/Schema.fbs`, `Message.fbs` and `File.fbs` of Apache Arrow).

use anytrace_core::table::{Column, ColumnType};

use super::flat::{Table, Value, buffer};

/// Metadata version 5.
const V5: i16 = 4;

const SCHEMA: u8 = 1;
const DICTIONARY_BATCH: u8 = 2;
const RECORD_BATCH: u8 = 3;

/// Where a message is in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block {
    pub(super) offset: u64,
    pub(super) metadata_bytes: usize,
    pub(super) body_bytes: u64,
}

/// The arrays of a message: lengths and buffers, which follow each other in its body.
#[derive(Debug, Default)]
pub(super) struct Layout {
    rows: usize,
    /// `FieldNode`s.
    nodes: Vec<u8>,
    /// `Buffer`s.
    buffers: Vec<u8>,
    /// Where the next buffer begins.
    pub(super) body_bytes: u64,
}

impl Layout {
    pub(super) fn new(rows: usize) -> Self {
        Self { rows, ..Self::default() }
    }

    /// Adds an array; its buffers follow.
    pub(super) fn array(&mut self, nulls: usize) {
        self.nodes.extend_from_slice(&(self.rows as u64).to_le_bytes());
        self.nodes.extend_from_slice(&(nulls as u64).to_le_bytes());
    }

    /// Adds a buffer; the body has it padded.
    pub(super) fn buffer(&mut self, bytes: usize) {
        self.buffers.extend_from_slice(&self.body_bytes.to_le_bytes());
        self.buffers.extend_from_slice(&(bytes as u64).to_le_bytes());
        self.body_bytes += (bytes + super::padding(bytes as u64)) as u64;
    }

    fn table(&self) -> Table<'_> {
        Table(vec![
            (0, Value::I64(self.rows as i64)),
            (1, Value::Structs(self.nodes.clone(), self.nodes.len() / 16)),
            (2, Value::Structs(self.buffers.clone(), self.buffers.len() / 16)),
        ])
    }
}

/// The first message.
pub(super) fn schema_message(columns: &[Column]) -> Vec<u8> {
    message(SCHEMA, schema(columns), 0)
}

/// A message of rows.
pub(super) fn record_batch(layout: &Layout) -> Vec<u8> {
    message(RECORD_BATCH, layout.table(), layout.body_bytes)
}

/// A message of the texts of a column.
pub(super) fn dictionary_batch(id: usize, layout: &Layout) -> Vec<u8> {
    let table = Table(vec![(0, Value::I64(id as i64)), (1, Value::Table(layout.table()))]);
    message(DICTIONARY_BATCH, table, layout.body_bytes)
}

fn message(kind: u8, header: Table<'_>, body_bytes: u64) -> Vec<u8> {
    buffer(&Table(vec![
        (0, Value::I16(V5)),
        (1, Value::U8(kind)),
        (2, Value::Table(header)),
        (3, Value::I64(body_bytes.cast_signed())),
    ]))
}

/// The end of the file: the schema again, and where all batches are.
pub(super) fn footer(columns: &[Column], dictionaries: &[Block], batches: &[Block]) -> Vec<u8> {
    buffer(&Table(vec![
        (0, Value::I16(V5)),
        (1, Value::Table(schema(columns))),
        (2, blocks(dictionaries)),
        (3, blocks(batches)),
    ]))
}

fn blocks(blocks: &[Block]) -> Value<'static> {
    let mut bytes = Vec::with_capacity(blocks.len() * 24);
    for block in blocks {
        bytes.extend_from_slice(&block.offset.to_le_bytes());
        // A length of 32 bits and as many bits of padding.
        bytes.extend_from_slice(&(block.metadata_bytes as u64).to_le_bytes());
        bytes.extend_from_slice(&block.body_bytes.to_le_bytes());
    }
    Value::Structs(bytes, blocks.len())
}

fn schema(columns: &[Column]) -> Table<'_> {
    let fields = columns.iter().enumerate().map(|(number, column)| field(number, column));
    // Byte order: little.
    Table(vec![(0, Value::I16(0)), (1, Value::Tables(fields.collect()))])
}

fn field(number: usize, column: &Column) -> Table<'_> {
    let (kind, about) = type_of(column.kind);
    let mut fields = vec![
        (0, Value::Text(column.name)),
        (1, Value::Bool(column.is_nullable)),
        (2, Value::U8(kind)),
        (3, Value::Table(about)),
    ];
    if column.kind == ColumnType::Name {
        let (_, keys) = type_of(ColumnType::Int32);
        fields.push((4, Value::Table(Table(vec![(0, Value::I64(number as i64)), (1, Value::Table(keys))]))));
    }
    fields.push((5, Value::Tables(Vec::new())));
    Table(fields)
}

/// The number of a type, and its own table.
fn type_of(kind: ColumnType) -> (u8, Table<'static>) {
    let integer = |bits, is_signed| (2, Table(vec![(0, Value::I32(bits)), (1, Value::Bool(is_signed))]));
    match kind {
        ColumnType::Int32 => integer(32, true),
        ColumnType::Int64 => integer(64, true),
        ColumnType::UInt32 => integer(32, false),
        ColumnType::UInt64 => integer(64, false),
        // Precision: double.
        ColumnType::Float64 => (3, Table(vec![(0, Value::I16(2))])),
        ColumnType::Bytes => (4, Table(Vec::new())),
        ColumnType::Text | ColumnType::Name => (5, Table(Vec::new())),
        ColumnType::Boolean => (6, Table(Vec::new())),
    }
}
