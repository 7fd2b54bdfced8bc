//! From the tables of a trace to arrays of Apache Arrow; numbers are not copied.
//!
//! ```
//! use anytrace_arrow::{Converter, schema};
//! use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Table, Values};
//!
//! const SEQ: Column = Column::new("seq", ColumnType::Int64, "the record's number");
//! const EVENTS: Table = Table { name: "events", help: "all records", columns: &[SEQ] };
//!
//! let mut converter = Converter::new(schema(&EVENTS).into());
//! let seq = BatchColumn { values: Values::Int64(vec![0, 1, 2]), validity: Vec::new() };
//! let rows = converter.convert(Batch { rows: 3, columns: vec![seq] })?;
//! assert_eq!((rows.num_rows(), rows.schema().field(0).name().as_str()), (3, "seq"));
//! # Ok::<(), arrow_schema::ArrowError>(())
//! ```

use std::sync::Arc;

use anytrace_core::table::{Batch, BatchColumn, Column, ColumnType, Names, Strings, Table, Values};
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchOptions, StringArray, UInt32Array, UInt64Array,
};
use arrow_buffer::{Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};

/// The columns of a table as a schema.
pub fn schema(table: &Table) -> Schema {
    Schema::new(table.columns.iter().map(field).collect::<Vec<_>>())
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
#[derive(Debug)]
pub struct Converter {
    schema: SchemaRef,
    /// Of each column, the names of the last batch as an array.
    dictionaries: Vec<Option<(Arc<Names>, ArrayRef)>>,
}

impl Converter {
    /// A converter to the columns that are scanned.
    pub fn new(schema: SchemaRef) -> Self {
        let dictionaries = vec![None; schema.fields().len()];
        Self { schema, dictionaries }
    }

    /// The rows as arrays.
    ///
    /// # Errors
    ///
    /// If the columns are not those of the schema: another number or type of them, another length, a null where the
    /// schema has none, text that is not UTF-8, or a key outside its dictionary.
    pub fn convert(&mut self, batch: Batch) -> Result<RecordBatch, ArrowError> {
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may fail by panicking")]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;

    fn converter(columns: &[(ColumnType, bool)]) -> Converter {
        let of = |(kind, is_nullable): &(ColumnType, bool)| Field::new("c", data_type(*kind), *is_nullable);
        Converter::new(Arc::new(Schema::new(columns.iter().map(of).collect::<Vec<_>>())))
    }

    fn batch(values: Vec<Values>, validity: &[bool], rows: usize) -> Batch {
        let columns = values.into_iter().map(|values| BatchColumn { values, validity: validity.to_vec() });
        Batch { rows, columns: columns.collect() }
    }

    fn strings(of: &[&str]) -> Strings {
        let ends = of.iter().scan(0, |end, text| {
            *end += i32::try_from(text.len()).unwrap();
            Some(*end)
        });
        Strings { offsets: std::iter::once(0).chain(ends).collect(), bytes: of.concat().into_bytes() }
    }

    #[test]
    fn every_type_of_column_keeps_its_values_and_its_nulls() {
        use ColumnType::{Boolean, Bytes, Float64, Int32, Int64, Name, Text, UInt32, UInt64};
        let kinds = [Boolean, Int32, Int64, UInt32, UInt64, Float64, Text, Bytes, Name];
        let values = vec![
            Values::Boolean(vec![true, false]),
            Values::Int32(vec![i32::MIN, 0]),
            Values::Int64(vec![i64::MIN, 0]),
            Values::UInt32(vec![u32::MAX, 0]),
            Values::UInt64(vec![u64::MAX, 0]),
            Values::Float64(vec![-0.5, 0.0]),
            Values::Text(strings(&["\u{e9}", ""])),
            Values::Bytes(strings(&["x", ""])),
            Values::Name { keys: vec![1, 0], names: Arc::new(Names(strings(&["a", "b"]))) },
        ];
        let rows = converter(&kinds.map(|kind| (kind, true))).convert(batch(values, &[true, false], 2)).unwrap();
        assert!(rows.columns().iter().all(|column| column.is_valid(0) && column.is_null(1)));
        assert!(rows.column(0).as_boolean().value(0));
        assert_eq!(rows.column(2).as_primitive::<Int64Type>().value(0), i64::MIN);
        assert_eq!(rows.column(6).as_string::<i32>().value(0), "\u{e9}");
        assert_eq!(rows.column(7).as_binary::<i32>().value(0), b"x");
        let name = rows.column(8).as_dictionary::<Int32Type>();
        assert_eq!(name.values().as_string::<i32>().value(usize::try_from(name.keys().value(0)).unwrap()), "b");
    }

    #[test]
    fn batches_with_the_same_names_share_an_array_and_others_do_not() {
        let mut converter = converter(&[(ColumnType::Name, false)]);
        let names = Arc::new(Names(strings(&["a", "b"])));
        let mut values = |names: &Arc<Names>| {
            let column = Values::Name { keys: vec![0], names: Arc::clone(names) };
            let rows = converter.convert(batch(vec![column], &[], 1)).unwrap();
            Arc::clone(rows.column(0).as_dictionary::<Int32Type>().values())
        };
        let (first, again) = (values(&names), values(&names));
        assert!(Arc::ptr_eq(&first, &again));
        let grown = values(&Arc::new(Names(strings(&["a", "b", "c"]))));
        assert_eq!((first.len(), grown.len()), (2, 3));
    }

    #[test]
    fn rows_without_columns_are_counted() {
        assert_eq!(converter(&[]).convert(batch(Vec::new(), &[], 8_192)).unwrap().num_rows(), 8_192);
    }

    #[test]
    fn what_does_not_fit_is_an_error() {
        let refused = |kind: (ColumnType, bool), values: Values, validity: &[bool], rows: usize| {
            converter(&[kind]).convert(batch(vec![values], validity, rows)).unwrap_err().to_string()
        };
        let (required, two) = ((ColumnType::Int64, false), || Values::Int64(vec![1, 2]));
        assert!(refused(required, Values::Int32(vec![1, 2]), &[], 2).contains("column types must match"));
        assert!(refused(required, two(), &[true, false], 2).contains("non-nullable"));
        refused(required, two(), &[], 3);
        refused((ColumnType::Int64, true), two(), &[true], 2);
        let not_utf8 = Strings { offsets: vec![0, 1], bytes: vec![0xff] };
        refused((ColumnType::Text, false), Values::Text(not_utf8), &[], 1);
        let outside = Values::Name { keys: vec![2], names: Arc::new(Names(strings(&["a", "b"]))) };
        refused((ColumnType::Name, false), outside, &[], 1);
    }
}
