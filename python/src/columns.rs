//! From the tables of a trace to arrays of Apache Arrow; numbers are not copied.

use std::sync::Arc;

use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Names, Strings, Table, Values};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// Columns of a table as a schema.
pub(crate) fn schema(table: &Table, columns: &[usize]) -> SchemaRef {
    let fields = columns.iter().filter_map(|column| table.columns.get(*column)).map(field);
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn field(column: &Column) -> Field {
    Field::new(column.name, data_type(column.kind), column.is_nullable)
}

fn data_type(kind: ColumnType) -> DataType {
    match kind {
        ColumnType::Boolean => DataType::Boolean,
        ColumnType::Int32 => DataType::Int32,
        ColumnType::Int64 => DataType::Int64,
        ColumnType::UInt32 => DataType::UInt32,
        ColumnType::UInt64 => DataType::UInt64,
        ColumnType::Float64 => DataType::Float64,
        ColumnType::Text => DataType::Utf8,
        ColumnType::Bytes => DataType::Binary,
        ColumnType::Name => DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
    }
}

/// Makes record batches of a scan; keeps the dictionaries that batches share.
pub(crate) struct Converter {
    schema: SchemaRef,
    /// Of each column, the names of the last batch as an array.
    dictionaries: Vec<Option<(Arc<Names>, ArrayRef)>>,
}

impl Converter {
    /// A converter to the columns that are scanned.
    pub(crate) fn new(schema: SchemaRef) -> Self {
        let dictionaries = vec![None; schema.fields().len()];
        Self { schema, dictionaries }
    }

    /// The rows as arrays.
    pub(crate) fn convert(&mut self, batch: Batch) -> Result<RecordBatch, ArrowError> {
        let options = RecordBatchOptions::new().with_row_count(Some(batch.rows));
        let columns = batch.columns.into_iter().zip(&mut self.dictionaries);
        let arrays = columns.map(|(column, known)| array(column, known)).collect::<Result<_, _>>()?;
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
    }
}

fn array(column: BatchColumn, known: &mut Option<(Arc<Names>, ArrayRef)>) -> Result<ArrayRef, ArrowError> {
    let nulls = (!column.validity.is_empty()).then(|| NullBuffer::from(column.validity));
    Ok(match column.values {
        Values::Boolean(values) => Arc::new(BooleanArray::new(values.into(), nulls)),
        Values::Int32(values) => Arc::new(Int32Array::try_new(values.into(), nulls)?),
        Values::Int64(values) => Arc::new(Int64Array::try_new(values.into(), nulls)?),
        Values::UInt32(values) => Arc::new(UInt32Array::try_new(values.into(), nulls)?),
        Values::UInt64(values) => Arc::new(UInt64Array::try_new(values.into(), nulls)?),
        Values::Float64(values) => Arc::new(Float64Array::try_new(values.into(), nulls)?),
        Values::Text(strings) => {
            let (offsets, bytes) = parts(strings);
            Arc::new(StringArray::try_new(offsets, bytes, nulls)?)
        }
        Values::Bytes(strings) => {
            let (offsets, bytes) = parts(strings);
            Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?)
        }
        Values::Name { keys, names } => {
            let keys = Int32Array::try_new(keys.into(), nulls)?;
            let values = dictionary(&names, known)?;
            Arc::new(DictionaryArray::<Int32Type>::try_new(keys, values)?)
        }
    })
}

fn parts(strings: Strings) -> (OffsetBuffer<i32>, Buffer) {
    (OffsetBuffer::new(ScalarBuffer::from(strings.offsets)), Buffer::from_vec(strings.bytes))
}

/// The names as an array: that of the batch before, if it had the same.
fn dictionary(names: &Arc<Names>, known: &mut Option<(Arc<Names>, ArrayRef)>) -> Result<ArrayRef, ArrowError> {
    if let Some((of, array)) = known
        && Arc::ptr_eq(of, names)
    {
        return Ok(Arc::clone(array));
    }
    let (offsets, bytes) = parts(names.0.clone());
    let array: ArrayRef = Arc::new(StringArray::try_new(offsets, bytes, None)?);
    *known = Some((Arc::clone(names), Arc::clone(&array)));
    Ok(array)
}
