//! Makes batches, row by row or many rows at once.

use std::sync::Arc;

use super::{BATCH_ROWS, Batch, BatchColumn, ColumnType, Names, RowSink, Scan, Strings, Table, Values};
use crate::Error;
use crate::hash::Map;
use crate::text::shown;

/// A batch ends early where its texts take this many bytes.
const BATCH_BYTES: usize = 4 << 20;

/// A dictionary starts again, in the next batch, where it has this many texts: a name may turn out to be different in
/// each row.
const NAMES_MAX: usize = 1 << 16;

/// Fills the columns of a table that are asked for and hands out batches.
///
/// A row is one value after the other, in the order of the table's columns, then [`Self::end`]. Values of columns that
/// are not asked for are ignored; [`Self::wants`] is for values that take time to make. `None` is the absent value of a
/// nullable column.
pub struct Rows<'a> {
    out: &'a mut dyn RowSink,
    /// Of each column of the table, its place among `columns`.
    slots: Vec<Option<usize>>,
    columns: Vec<Builder>,
    /// The columns that may end a batch early, because their values take room.
    long: Vec<usize>,
    /// The table's column that the next value belongs to.
    next: usize,
    rows: usize,
}

/// A column of the batch that is being made.
struct Builder {
    kind: ColumnType,
    column: BatchColumn,
    names: NamesBuilder,
}

/// A dictionary that grows.
#[derive(Default)]
struct NamesBuilder {
    index: Map<Box<str>, i32>,
    strings: Strings,
    /// What the last batch had; shared by the next unless something was added.
    shared: Option<Arc<Names>>,
    /// Of each number of the source, the key in this dictionary; -1 where there is none yet.
    keys: Vec<i32>,
}

impl<'a> Rows<'a> {
    /// Rows of a table for a sink.
    pub fn new(table: &Table, scan: &Scan, out: &'a mut dyn RowSink) -> Self {
        let chosen: Vec<usize> = scan.columns.clone().unwrap_or_else(|| (0..table.columns.len()).collect());
        let slots = (0..table.columns.len()).map(|column| chosen.iter().position(|wanted| *wanted == column)).collect();
        let kinds = chosen.iter().filter_map(|column| table.columns.get(*column)).map(|column| column.kind);
        let columns: Vec<Builder> = kinds.map(Builder::new).collect();
        let is_long =
            |builder: &Builder| matches!(builder.kind, ColumnType::Text | ColumnType::Bytes | ColumnType::Name);
        let long = (0..).zip(&columns).filter(|(_, builder)| is_long(builder)).map(|(at, _)| at).collect();
        Self { out, slots, columns, long, next: 0, rows: 0 }
    }

    /// True when a column is asked for; columns are numbered as in the table.
    #[inline]
    pub fn wants(&self, column: usize) -> bool {
        self.slots.get(column).is_some_and(Option::is_some)
    }

    /// True when the next value is asked for.
    #[inline]
    pub fn wants_next(&self) -> bool {
        self.wants(self.next)
    }

    /// The next value: true or false.
    #[inline]
    pub fn boolean(&mut self, value: impl Into<Option<bool>>) {
        self.value(value.into(), |values, value| match values {
            Values::Boolean(column) => column.push(value),
            _ => wrong_type(),
        });
    }

    /// The next value: 32 bits, signed.
    #[inline]
    pub fn int32(&mut self, value: impl Into<Option<i32>>) {
        self.value(value.into(), |values, value| match values {
            Values::Int32(column) => column.push(value),
            _ => wrong_type(),
        });
    }

    /// The next value: 64 bits, signed.
    #[inline]
    pub fn int64(&mut self, value: impl Into<Option<i64>>) {
        self.value(value.into(), |values, value| match values {
            Values::Int64(column) => column.push(value),
            _ => wrong_type(),
        });
    }

    /// The next value, a count or time that is unsigned in the trace: beyond 2^63 - 1 it is that.
    #[inline]
    pub fn count(&mut self, value: impl Into<Option<u64>>) {
        self.int64(value.into().map(|value| i64::try_from(value).unwrap_or(i64::MAX)));
    }

    /// The next value: 32 bits, unsigned.
    #[inline]
    pub fn uint32(&mut self, value: impl Into<Option<u32>>) {
        self.value(value.into(), |values, value| match values {
            Values::UInt32(column) => column.push(value),
            _ => wrong_type(),
        });
    }

    /// The next value: 64 bits, unsigned.
    #[inline]
    pub fn uint64(&mut self, value: impl Into<Option<u64>>) {
        self.value(value.into(), |values, value| match values {
            Values::UInt64(column) => column.push(value),
            _ => wrong_type(),
        });
    }

    /// The next value: floating point.
    #[inline]
    pub fn float64(&mut self, value: impl Into<Option<f64>>) {
        self.value(value.into(), |values, value| match values {
            Values::Float64(column) => column.push(value),
            _ => wrong_type(),
        });
    }

    /// The next value: a text.
    #[inline]
    pub fn text<'t>(&mut self, value: impl Into<Option<&'t str>>) {
        self.value(value.into(), |values, value| match values {
            Values::Text(column) => {
                column.bytes.extend_from_slice(value.as_bytes());
                column.end();
            }
            _ => wrong_type(),
        });
    }

    /// The next value: a text of the trace; bytes that are not UTF-8 are escaped.
    pub fn raw_text<'t>(&mut self, value: impl Into<Option<&'t [u8]>>) {
        if self.wants_next() {
            let text = value.into().map(shown);
            self.text(text.as_deref());
        } else {
            self.next += 1;
        }
    }

    /// The next value: a text that is only made if it is asked for.
    pub fn text_with(&mut self, make: impl FnOnce() -> Option<String>) {
        if self.wants_next() {
            self.text(make().as_deref());
        } else {
            self.next += 1;
        }
    }

    /// The next value: bytes.
    #[inline]
    pub fn bytes<'t>(&mut self, value: impl Into<Option<&'t [u8]>>) {
        self.value(value.into(), |values, value| match values {
            Values::Bytes(column) => {
                column.bytes.extend_from_slice(value);
                column.end();
            }
            _ => wrong_type(),
        });
    }

    /// The next value: a name.
    #[inline]
    pub fn name<'t>(&mut self, value: impl Into<Option<&'t str>>) {
        let Some(builder) = self.builder() else { return };
        match value.into() {
            Some(name) => {
                let key = builder.names.key(name);
                builder.push_key(key);
            }
            None => builder.null(),
        }
    }

    /// The next value: a name of the trace; bytes that are not UTF-8 are escaped.
    pub fn raw_name<'t>(&mut self, value: impl Into<Option<&'t [u8]>>) {
        if self.wants_next() {
            let name = value.into().map(shown);
            self.name(name.as_deref());
        } else {
            self.next += 1;
        }
    }

    /// The next value: the name with a number that always means the same name. `name` is called once for each number.
    #[inline]
    pub fn numbered_name<'t>(&mut self, number: u32, name: impl FnOnce() -> std::borrow::Cow<'t, str>) {
        let Some(builder) = self.builder() else { return };
        let key = match builder.names.keys.get(number as usize) {
            Some(&key) if key >= 0 => key,
            _ => builder.names.number(number, &name()),
        };
        builder.push_key(key);
    }

    /// Ends the row.
    ///
    /// # Errors
    /// What the sink returns.
    #[inline]
    pub fn end(&mut self) -> Result<(), Error> {
        debug_assert_eq!(self.next, self.slots.len(), "a row has a value for each column");
        self.next = 0;
        self.advance(1)
    }

    /// Hands out the rows of the last batch. Call it once, at the end.
    ///
    /// # Errors
    /// What the sink returns.
    pub fn finish(mut self) -> Result<(), Error> {
        self.flush()
    }

    /// How many rows still fit the batch; never 0.
    #[inline]
    pub fn room(&self) -> usize {
        BATCH_ROWS - self.rows
    }

    /// A column of the batch, if it is asked for: where many rows are added at once, each of its columns is extended
    /// by equally many values, at most [`Self::room`], and [`Self::advance`] ends them.
    #[inline]
    pub fn values(&mut self, column: usize) -> Option<&mut Values> {
        self.column(column).map(|builder| &mut builder.column.values)
    }

    /// Adds values to a column of the batch, if it is asked for, where [`Self::values`] is used for the others. The
    /// column is nullable and of type Int32.
    pub fn extend_int32(&mut self, column: usize, values: impl Iterator<Item = Option<i32>>) {
        let Some(Builder { column, .. }) = self.column(column) else { return };
        let Values::Int32(known) = &mut column.values else { return wrong_type() };
        extend(known, &mut column.validity, values);
    }

    /// As [`Self::extend_int32`], for a column of type Int64.
    pub fn extend_int64(&mut self, column: usize, values: impl Iterator<Item = Option<i64>>) {
        let Some(Builder { column, .. }) = self.column(column) else { return };
        let Values::Int64(known) = &mut column.values else { return wrong_type() };
        extend(known, &mut column.validity, values);
    }

    /// As [`Self::extend_int32`], for names that are numbered as in [`Self::numbered_name`], all of them there.
    pub fn extend_names<'t>(
        &mut self,
        column: usize,
        numbers: impl Iterator<Item = u32>,
        name: impl Fn(u32) -> std::borrow::Cow<'t, str>,
    ) {
        let Some(Builder { column, names, .. }) = self.column(column) else { return };
        let Values::Name { keys, .. } = &mut column.values else { return wrong_type() };
        keys.extend(numbers.map(|number| match names.keys.get(number as usize) {
            Some(&key) if key >= 0 => key,
            _ => names.number(number, &name(number)),
        }));
        if !column.validity.is_empty() {
            column.validity.resize(keys.len(), true);
        }
    }

    /// As [`Self::extend_int32`], for texts.
    pub fn extend_texts<'t>(&mut self, column: usize, values: impl Iterator<Item = Option<&'t str>>) {
        let Some(builder) = self.column(column) else { return };
        for value in values {
            match (value, &mut builder.column.values) {
                (Some(text), Values::Text(strings)) => {
                    strings.bytes.extend_from_slice(text.as_bytes());
                    strings.end();
                    if !builder.column.validity.is_empty() {
                        builder.column.validity.push(true);
                    }
                }
                (None, Values::Text(_)) => builder.null(),
                _ => wrong_type(),
            }
        }
    }

    /// Adds the same name to a column this many times, where [`Self::values`] is used for the others.
    pub fn repeat_name(&mut self, column: usize, name: &str, times: usize) {
        let Some(builder) = self.column(column) else { return };
        let key = builder.names.key(name);
        (0..times).for_each(|_| builder.push_key(key));
    }

    /// Adds this many absent values to a nullable column, where [`Self::values`] is used for the others.
    pub fn repeat_none(&mut self, column: usize, times: usize) {
        if let Some(builder) = self.column(column) {
            builder.nulls(times);
        }
    }

    /// The key of a name in a column's dictionary, for [`Values::Name`] of [`Self::values`]; it holds until the next
    /// [`Self::advance`].
    pub fn key(&mut self, column: usize, name: &str) -> i32 {
        self.column(column).map_or(0, |builder| builder.names.key(name))
    }

    /// Ends rows that were added to the columns at once.
    ///
    /// # Errors
    /// What the sink returns.
    #[inline]
    pub fn advance(&mut self, rows: usize) -> Result<(), Error> {
        self.rows += rows;
        let bytes = |at: &usize| self.columns.get(*at).map_or(0, Builder::bytes);
        if self.rows >= BATCH_ROWS || self.long.iter().any(|at| bytes(at) >= BATCH_BYTES) {
            self.flush()?;
        }
        Ok(())
    }

    #[cold]
    fn flush(&mut self) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        let rows = std::mem::take(&mut self.rows);
        let columns: Vec<BatchColumn> = self.columns.iter_mut().map(Builder::take).collect();
        debug_assert!(columns.iter().all(|column| column.values.len() == rows), "columns are equally long");
        self.out.rows(Batch { rows, columns })
    }

    #[inline]
    fn column(&mut self, column: usize) -> Option<&mut Builder> {
        self.columns.get_mut(self.slots.get(column).copied().flatten()?)
    }

    #[inline]
    fn builder(&mut self) -> Option<&mut Builder> {
        let slot = self.slots.get(self.next).copied().flatten();
        debug_assert!(self.next < self.slots.len(), "a row has no more values than its table has columns");
        self.next += 1;
        self.columns.get_mut(slot?)
    }

    #[inline]
    fn value<T>(&mut self, value: Option<T>, push: impl FnOnce(&mut Values, T)) {
        let Some(builder) = self.builder() else { return };
        match value {
            Some(value) => {
                push(&mut builder.column.values, value);
                if !builder.column.validity.is_empty() {
                    builder.column.validity.push(true);
                }
            }
            None => builder.null(),
        }
    }
}

/// Adds values; whether each is there is noted once one is not.
#[inline]
fn extend<T: Default>(known: &mut Vec<T>, validity: &mut Vec<bool>, values: impl Iterator<Item = Option<T>>) {
    for value in values {
        if value.is_none() && validity.is_empty() {
            validity.resize(known.len(), true);
        }
        if !validity.is_empty() || value.is_none() {
            validity.push(value.is_some());
        }
        known.push(value.unwrap_or_default());
    }
}

/// A programmer's mistake that the tests of each table find; the batch is then refused by whoever takes it.
#[cold]
fn wrong_type() {
    debug_assert!(false, "a value has the type of its column");
}

impl Builder {
    fn new(kind: ColumnType) -> Self {
        let mut builder = Self {
            kind,
            column: BatchColumn { values: Values::Boolean(Vec::new()), validity: Vec::new() },
            names: NamesBuilder::default(),
        };
        builder.column.values = builder.empty();
        builder
    }

    fn empty(&self) -> Values {
        match self.kind {
            ColumnType::Boolean => Values::Boolean(Vec::with_capacity(BATCH_ROWS)),
            ColumnType::Int32 => Values::Int32(Vec::with_capacity(BATCH_ROWS)),
            ColumnType::Int64 => Values::Int64(Vec::with_capacity(BATCH_ROWS)),
            ColumnType::UInt32 => Values::UInt32(Vec::with_capacity(BATCH_ROWS)),
            ColumnType::UInt64 => Values::UInt64(Vec::with_capacity(BATCH_ROWS)),
            ColumnType::Float64 => Values::Float64(Vec::with_capacity(BATCH_ROWS)),
            ColumnType::Text => Values::Text(Strings::default()),
            ColumnType::Bytes => Values::Bytes(Strings::default()),
            ColumnType::Name => {
                Values::Name { keys: Vec::with_capacity(BATCH_ROWS), names: Arc::new(Names::default()) }
            }
        }
    }

    #[inline]
    fn push_key(&mut self, key: i32) {
        match &mut self.column.values {
            Values::Name { keys, .. } => keys.push(key),
            _ => wrong_type(),
        }
        if !self.column.validity.is_empty() {
            self.column.validity.push(true);
        }
    }

    fn null(&mut self) {
        if self.column.validity.is_empty() {
            self.column.validity.resize(self.column.values.len(), true);
        }
        self.column.validity.push(false);
        self.column.values.push_default();
    }

    fn nulls(&mut self, times: usize) {
        self.column.validity.resize(self.column.values.len(), true);
        self.column.validity.resize(self.column.values.len() + times, false);
        self.column.values.push_defaults(times);
    }

    fn bytes(&self) -> usize {
        match &self.column.values {
            Values::Text(strings) | Values::Bytes(strings) => strings.bytes.len(),
            Values::Name { .. } => self.names.added_bytes(),
            _ => 0,
        }
    }

    /// The column so far; an empty one takes its place.
    fn take(&mut self) -> BatchColumn {
        let empty = BatchColumn { values: self.empty(), validity: Vec::new() };
        let mut column = std::mem::replace(&mut self.column, empty);
        if let Values::Name { names, .. } = &mut column.values {
            *names = self.names.share();
        }
        column
    }
}

impl NamesBuilder {
    /// The key of a name.
    fn key(&mut self, name: &str) -> i32 {
        if let Some(&key) = self.index.get(name) {
            return key;
        }
        // There are at most `NAMES_MAX` of earlier batches and as many as rows of this one.
        let key = i32::try_from(self.strings.len()).unwrap_or(i32::MAX);
        self.strings.bytes.extend_from_slice(name.as_bytes());
        self.strings.end();
        self.index.insert(name.into(), key);
        self.shared = None;
        key
    }

    #[cold]
    fn number(&mut self, number: u32, name: &str) -> i32 {
        let key = self.key(name);
        let at = number as usize;
        if at < NAMES_MAX {
            if at >= self.keys.len() {
                self.keys.resize(at + 1, -1);
            }
            self.keys[at] = key;
        }
        key
    }

    /// Bytes that were added since the last batch, or all where that is unknown.
    fn added_bytes(&self) -> usize {
        if self.shared.is_some() { 0 } else { self.strings.bytes.len().saturating_sub(BATCH_BYTES) }
    }

    fn share(&mut self) -> Arc<Names> {
        let shared = match self.shared.take() {
            Some(shared) => shared,
            None => Arc::new(Names(self.strings.clone())),
        };
        if self.strings.len() > NAMES_MAX || self.strings.bytes.len() > BATCH_BYTES {
            *self = Self::default();
        } else {
            self.shared = Some(Arc::clone(&shared));
        }
        shared
    }
}

impl Values {
    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Boolean(values) => values.len(),
            Self::Int32(values) => values.len(),
            Self::Int64(values) => values.len(),
            Self::UInt32(values) => values.len(),
            Self::UInt64(values) => values.len(),
            Self::Float64(values) => values.len(),
            Self::Text(strings) | Self::Bytes(strings) => strings.len(),
            Self::Name { keys, .. } => keys.len(),
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
