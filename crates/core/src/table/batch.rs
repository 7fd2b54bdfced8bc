//! Rows as columns.

use std::sync::Arc;

/// Some rows of a table, column by column.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// How many rows; known without a column too.
    pub rows: usize,
    /// The columns asked for, in the order of [`super::Scan::columns`].
    pub columns: Vec<BatchColumn>,
}

/// The values of one column.
#[derive(Debug, Clone, PartialEq)]
pub struct BatchColumn {
    /// A value per row; where there is none, 0 or empty.
    pub values: Values,
    /// Whether each row has a value; empty where all have.
    pub validity: Vec<bool>,
}

impl BatchColumn {
    /// True when the row has a value.
    pub fn is_valid(&self, row: usize) -> bool {
        self.validity.get(row).copied().unwrap_or(true)
    }
}

/// Values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// [`super::ColumnType::Boolean`].
    Boolean(Vec<bool>),
    /// [`super::ColumnType::Int32`].
    Int32(Vec<i32>),
    /// [`super::ColumnType::Int64`].
    Int64(Vec<i64>),
    /// [`super::ColumnType::UInt32`].
    UInt32(Vec<u32>),
    /// [`super::ColumnType::UInt64`].
    UInt64(Vec<u64>),
    /// [`super::ColumnType::Float64`].
    Float64(Vec<f64>),
    /// [`super::ColumnType::Text`].
    Text(Strings),
    /// [`super::ColumnType::Bytes`].
    Bytes(Strings),
    /// [`super::ColumnType::Name`]: a row's number in `names`.
    Name {
        /// A number per row.
        keys: Vec<i32>,
        /// What the numbers mean. Later batches share it until it grows.
        names: Arc<Names>,
    },
}

impl Values {
    /// Appends the value of a row without one.
    pub(super) fn push_default(&mut self) {
        match self {
            Self::Boolean(values) => values.push(false),
            Self::Int32(values) => values.push(0),
            Self::Int64(values) => values.push(0),
            Self::UInt32(values) => values.push(0),
            Self::UInt64(values) => values.push(0),
            Self::Float64(values) => values.push(0.0),
            Self::Text(strings) | Self::Bytes(strings) => strings.end(),
            Self::Name { keys, .. } => keys.push(0),
        }
    }

    /// Appends the values of rows without one.
    pub(super) fn push_defaults(&mut self, times: usize) {
        match self {
            Self::Boolean(values) => values.resize(values.len() + times, false),
            Self::Int32(values) => values.resize(values.len() + times, 0),
            Self::Int64(values) => values.resize(values.len() + times, 0),
            Self::UInt32(values) => values.resize(values.len() + times, 0),
            Self::UInt64(values) => values.resize(values.len() + times, 0),
            Self::Float64(values) => values.resize(values.len() + times, 0.0),
            Self::Text(strings) | Self::Bytes(strings) => (0..times).for_each(|_| strings.end()),
            Self::Name { keys, .. } => keys.resize(keys.len() + times, 0),
        }
    }
}

/// Strings one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strings {
    /// Where each begins in `bytes`, and where the last ends: one more than there are strings.
    pub offsets: Vec<i32>,
    /// The strings; UTF-8 in a column of texts.
    pub bytes: Vec<u8>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { offsets: vec![0], bytes: Vec::new() }
    }
}

impl Strings {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One string; empty beyond the last.
    pub fn get(&self, at: usize) -> &[u8] {
        let bound = |at: usize| self.offsets.get(at).and_then(|offset| usize::try_from(*offset).ok());
        match (bound(at), bound(at + 1)) {
            (Some(start), Some(end)) => self.bytes.get(start..end).unwrap_or_default(),
            _ => &[],
        }
    }

    /// Ends the string that was appended to `bytes`.
    pub(super) fn end(&mut self) {
        // Batches end long before 2 GiB; a single string that large would be cut by the limits on records.
        self.offsets.push(i32::try_from(self.bytes.len()).unwrap_or(i32::MAX));
    }
}

/// The texts of a dictionary.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names(pub Strings);

impl Names {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text of a number; empty where there is none.
    pub fn get(&self, key: i32) -> &str {
        let bytes = usize::try_from(key).map_or(&[][..], |key| self.0.get(key));
        std::str::from_utf8(bytes).unwrap_or_default()
    }
}
