//! A column of the record batch at hand.

use anytrace_core::Error;
use anytrace_core::table::{BatchColumn, Column, ColumnType, Strings, Values};

use super::format::Layout;
use crate::columns::{Bits, push_numbers};
use crate::dictionary::Dictionary;

/// Values of a column, as the buffers of an array.
pub(super) struct Array {
    pub(super) column: Column,
    validity: Bits,
    nulls: usize,
    /// Where strings end; of columns of strings only.
    offsets: Vec<u8>,
    values: Vec<u8>,
    booleans: Bits,
    /// Of a column of names: those of all batches of the file.
    pub(super) dictionary: Dictionary,
}

impl Array {
    pub(super) fn new(column: Column) -> Self {
        Self {
            column,
            validity: Bits::default(),
            nulls: 0,
            offsets: Vec::new(),
            values: Vec::new(),
            booleans: Bits::default(),
            dictionary: Dictionary::default(),
        }
    }

    /// Bytes of values.
    pub(super) fn bytes(&self) -> usize {
        self.values.len()
    }

    /// Adds the rows of a batch.
    pub(super) fn add(&mut self, column: &BatchColumn) -> Result<(), Error> {
        let rows = column.values.len();
        if column.validity.is_empty() {
            self.validity.extend_ones(rows);
        } else {
            self.validity.extend(&column.validity);
            self.nulls += column.validity.iter().filter(|is_valid| !**is_valid).count();
        }
        match &column.values {
            Values::Boolean(values) => self.booleans.extend(values),
            Values::Int32(values) => push_numbers(&mut self.values, values, i32::to_le_bytes),
            Values::Int64(values) => push_numbers(&mut self.values, values, i64::to_le_bytes),
            Values::UInt32(values) => push_numbers(&mut self.values, values, u32::to_le_bytes),
            Values::UInt64(values) => push_numbers(&mut self.values, values, u64::to_le_bytes),
            Values::Float64(values) => push_numbers(&mut self.values, values, f64::to_le_bytes),
            Values::Text(strings) | Values::Bytes(strings) => return self.add_strings(strings),
            Values::Name { keys, names } => {
                self.dictionary.follow(names);
                let dictionary = &mut self.dictionary;
                let number = |(row, key): (usize, &i32)| if column.is_valid(row) { dictionary.number(*key) } else { 0 };
                let numbers: Vec<u32> = keys.iter().enumerate().map(number).collect();
                push_numbers(&mut self.values, &numbers, u32::to_le_bytes);
            }
        }
        Ok(())
    }

    fn add_strings(&mut self, strings: &Strings) -> Result<(), Error> {
        if self.offsets.is_empty() {
            self.offsets.extend_from_slice(&[0; 4]);
        }
        let [first, last] =
            [strings.offsets.first(), strings.offsets.last()].map(|offset| offset.copied().unwrap_or(0));
        let range = usize::try_from(first).unwrap_or(0)..usize::try_from(last).unwrap_or(0);
        let start = i32::try_from(self.values.len()).ok();
        self.values.extend_from_slice(strings.bytes.get(range).unwrap_or_default());
        let name = self.column.name;
        let too_large = || Error::limit(format!("column {name}: texts of 2 GiB in one batch"));
        let start = start.filter(|_| i32::try_from(self.values.len()).is_ok()).ok_or_else(too_large)?;
        let ends = strings.offsets.get(1..).unwrap_or_default();
        push_numbers(&mut self.offsets, ends, |end| (end - first + start).to_le_bytes());
        Ok(())
    }

    /// Adds the array to a batch's layout and its buffers to `parts`.
    pub(super) fn lay_out<'a>(&'a self, layout: &mut Layout, parts: &mut Vec<&'a [u8]>) {
        layout.array(self.nulls);
        let mut part = |bytes: &'a [u8]| {
            layout.buffer(bytes.len());
            parts.push(bytes);
        };
        part(if self.nulls == 0 { &[] } else { self.validity.bytes() });
        match self.column.kind {
            ColumnType::Boolean => part(self.booleans.bytes()),
            ColumnType::Text | ColumnType::Bytes => {
                part(&self.offsets);
                part(&self.values);
            }
            _ => part(&self.values),
        }
    }

    /// Removes all rows.
    pub(super) fn clear(&mut self) {
        self.validity.clear();
        self.nulls = 0;
        self.offsets.clear();
        self.values.clear();
        self.booleans.clear();
    }
}
