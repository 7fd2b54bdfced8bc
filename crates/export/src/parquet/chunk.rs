//! A column of a row group: pages of values, and the dictionary that they may refer to.

use std::ops::Range;
use std::sync::Arc;

use anytrace_core::Error;
use anytrace_core::table::{BatchColumn, Column, ColumnType, Names, Strings, Values};

use super::hybrid::{bits_for, encode};
use super::page::Pages;
use super::statistics::Statistics;
use super::{Compressor, Limits};
use crate::columns::{Bits, push_numbers};
use crate::dictionary::Dictionary;

/// Where each name occurs this often, names repeat, and a large dictionary is of use all the same. Without it a few long
/// names would make a huge file. That it takes memory ends the row group at some time.
const REPEATED: usize = 4;

/// A column of the row group at hand.
pub(super) struct Chunk {
    pub(super) column: Column,
    pub(super) pages: Pages,
    pub(super) statistics: Statistics,
    /// Values, absent ones too.
    pub(super) rows: i64,
    /// Of a column of names, until there are too many.
    dictionary: Option<Dictionary>,
    /// How many values of it refer to the dictionary.
    keyed: usize,
    open: Open,
}

/// The page that is being filled.
#[derive(Default)]
struct Open {
    rows: usize,
    /// Whether each row has a value; of nullable columns only.
    levels: Vec<bool>,
    /// Values as the format's `PLAIN` has them.
    plain: Vec<u8>,
    booleans: Bits,
    keys: Vec<u32>,
}

impl Chunk {
    pub(super) fn new(column: Column) -> Self {
        let dictionary = (column.kind == ColumnType::Name).then(Dictionary::default);
        let (pages, statistics) = (Pages::default(), Statistics::default());
        Self { column, pages, statistics, rows: 0, dictionary, keyed: 0, open: Open::default() }
    }

    /// Bytes in memory.
    pub(super) fn bytes(&self) -> usize {
        let open = self.open.plain.len() + self.open.keys.len() * 4;
        // Names are in the list and in the index.
        self.pages.bytes() + open + self.dictionary.as_ref().map_or(0, |names| names.bytes().len() * 2)
    }

    /// How many rows from `from` on may be added at once: a long name may be in a dictionary once and in the pages a
    /// thousand times.
    pub(super) fn fitting(&self, values: &BatchColumn, rows: Range<usize>, limits: &Limits) -> usize {
        let Values::Name { keys, names } = &values.values else { return rows.len() };
        if self.dictionary.is_some() {
            return rows.len();
        }
        let mut room = limits.group_bytes;
        let fits = |key: &&i32| {
            let bytes = names.get(**key).len();
            let is_fitting = room >= bytes;
            room = room.saturating_sub(bytes);
            is_fitting
        };
        keys[rows].iter().take_while(fits).count().max(1)
    }

    /// Adds rows of a batch.
    pub(super) fn add(
        &mut self,
        values: &BatchColumn,
        mut rows: Range<usize>,
        limits: &Limits,
        compressor: &mut Compressor,
    ) -> Result<(), Error> {
        while !rows.is_empty() {
            let count = rows.len().min(limits.page_rows.saturating_sub(self.open.rows).max(1));
            let count = self.add_to_page(values, rows.start..rows.start + count, limits);
            rows.start += count;
            if self.dictionary.as_ref().is_some_and(|names| self.is_too_large(names, limits)) {
                self.end_dictionary(compressor)?;
            }
            if self.open.rows >= limits.page_rows || self.open.plain.len() >= limits.page_bytes {
                self.end_page(compressor)?;
            }
        }
        Ok(())
    }

    /// Ends the last page and the chunk.
    pub(super) fn finish(&mut self, compressor: &mut Compressor) -> Result<(), Error> {
        if self.open.rows > 0 {
            self.end_page(compressor)?;
        }
        self.end_dictionary(compressor)
    }

    fn is_too_large(&self, names: &Dictionary, limits: &Limits) -> bool {
        let (bytes, max) = (names.bytes().len() + names.len() * 4, limits.dictionary_bytes);
        bytes > max && self.keyed < names.len() * REPEATED
    }

    /// Writes the dictionary; later values do without.
    fn end_dictionary(&mut self, compressor: &mut Compressor) -> Result<(), Error> {
        let Some(dictionary) = self.dictionary.take() else { return Ok(()) };
        if self.open.rows > 0 {
            self.end_keyed_page(&dictionary, compressor)?;
        }
        let mut plain = Vec::with_capacity(dictionary.bytes().len() + dictionary.len() * 4);
        for name in dictionary.names() {
            self.statistics.bytes(name);
            push_string(&mut plain, name);
        }
        self.pages.dictionary(&self.column, dictionary.len(), &plain, compressor)
    }

    /// Adds at most these rows to the page, fewer where it is full before; returns how many.
    fn add_to_page(&mut self, values: &BatchColumn, rows: Range<usize>, limits: &Limits) -> usize {
        let validity = if values.validity.is_empty() { None } else { Some(&values.validity[..]) };
        let count = match &values.values {
            Values::Text(strings) | Values::Bytes(strings) => {
                self.add_strings(|row| strings.get(row), rows.clone(), validity, limits)
            }
            Values::Name { keys, names } if self.dictionary.is_none() => {
                let name = |row: usize| keys.get(row).map_or(&[][..], |key| names.get(*key).as_bytes());
                self.add_strings(name, rows.clone(), validity, limits)
            }
            Values::Name { keys, names } => {
                self.add_keys(keys, names, rows.clone(), validity);
                rows.len()
            }
            _ => {
                self.add_numbers(&values.values, rows.clone(), validity);
                rows.len()
            }
        };
        let rows = rows.start..rows.start + count;
        self.open.rows += count;
        self.rows += count as i64;
        if let Some(validity) = validity {
            self.statistics.nulls += validity[rows.clone()].iter().filter(|is_valid| !**is_valid).count() as i64;
        }
        if self.column.is_nullable {
            match validity {
                Some(validity) => self.open.levels.extend_from_slice(&validity[rows]),
                None => self.open.levels.resize(self.open.levels.len() + count, true),
            }
        }
        count
    }

    fn add_numbers(&mut self, values: &Values, rows: Range<usize>, validity: Option<&[bool]>) {
        let (plain, statistics) = (&mut self.open.plain, &mut self.statistics);
        match values {
            Values::Boolean(values) => {
                let present = present(values, rows, validity);
                statistics.booleans(present.iter().copied());
                self.open.booleans.extend(&present);
            }
            Values::Int32(values) => {
                let present = present(values, rows, validity);
                statistics.signed(present.iter().copied());
                push_numbers(plain, &present, i32::to_le_bytes);
            }
            Values::Int64(values) => {
                let present = present(values, rows, validity);
                statistics.signed(present.iter().copied());
                push_numbers(plain, &present, i64::to_le_bytes);
            }
            Values::UInt32(values) => {
                let present = present(values, rows, validity);
                statistics.unsigned(present.iter().copied());
                push_numbers(plain, &present, u32::to_le_bytes);
            }
            Values::UInt64(values) => {
                let present = present(values, rows, validity);
                statistics.unsigned(present.iter().copied());
                push_numbers(plain, &present, u64::to_le_bytes);
            }
            Values::Float64(values) => {
                let present = present(values, rows, validity);
                statistics.floats(present.iter().copied());
                push_numbers(plain, &present, f64::to_le_bytes);
            }
            Values::Text(Strings { .. }) | Values::Bytes(_) | Values::Name { .. } => {}
        }
    }

    fn add_keys(&mut self, keys: &[i32], names: &Arc<Names>, rows: Range<usize>, validity: Option<&[bool]>) {
        let Some(dictionary) = &mut self.dictionary else { return };
        dictionary.follow(names);
        let before = self.open.keys.len();
        let present = present(keys, rows, validity);
        self.open.keys.extend(present.iter().map(|key| dictionary.number(*key)));
        self.keyed += self.open.keys.len() - before;
    }

    fn add_strings<'a>(
        &mut self,
        string: impl Fn(usize) -> &'a [u8],
        rows: Range<usize>,
        validity: Option<&[bool]>,
        limits: &Limits,
    ) -> usize {
        let start = rows.start;
        for row in rows.clone() {
            if self.open.plain.len() >= limits.page_bytes {
                return row - start;
            }
            if validity.is_none_or(|validity| validity[row]) {
                let string = string(row);
                self.statistics.bytes(string);
                push_string(&mut self.open.plain, string);
            }
        }
        rows.len()
    }

    fn end_page(&mut self, compressor: &mut Compressor) -> Result<(), Error> {
        if let Some(dictionary) = self.dictionary.take() {
            let done = self.end_keyed_page(&dictionary, compressor);
            self.dictionary = Some(dictionary);
            return done;
        }
        let mut body = self.levels();
        body.extend_from_slice(self.open.booleans.bytes());
        body.extend_from_slice(&self.open.plain);
        self.pages.plain(&self.column, self.open.rows, &body, compressor)?;
        self.open.clear();
        Ok(())
    }

    fn end_keyed_page(&mut self, dictionary: &Dictionary, compressor: &mut Compressor) -> Result<(), Error> {
        let mut body = self.levels();
        let bits = bits_for(dictionary.len());
        body.push(bits as u8);
        encode(&mut body, &self.open.keys, bits);
        self.pages.keyed(&self.column, self.open.rows, &body, compressor)?;
        self.open.clear();
        Ok(())
    }

    /// The beginning of a page: which rows have values.
    fn levels(&self) -> Vec<u8> {
        if !self.column.is_nullable {
            return Vec::new();
        }
        let mut out = vec![0; 4];
        encode(&mut out, &self.open.levels, 1);
        // A bit a row and less: a page has no 2^34 rows.
        let bytes = u32::try_from(out.len() - 4).unwrap_or(u32::MAX);
        out[..4].copy_from_slice(&bytes.to_le_bytes());
        out
    }
}

impl Open {
    fn clear(&mut self) {
        self.rows = 0;
        self.levels.clear();
        self.plain.clear();
        self.booleans.clear();
        self.keys.clear();
    }
}

/// The values of those rows that have one.
fn present<'a, T: Copy>(values: &'a [T], rows: Range<usize>, validity: Option<&[bool]>) -> std::borrow::Cow<'a, [T]> {
    let all = &values[rows.clone()];
    match validity.map(|validity| &validity[rows]) {
        Some(validity) if validity.contains(&false) => {
            let both = all.iter().zip(validity);
            both.filter(|(_, is_valid)| **is_valid).map(|(value, _)| *value).collect::<Vec<T>>().into()
        }
        _ => all.into(),
    }
}

/// Appends a string as `PLAIN` has it. One of 4 GiB cannot be: offsets of a batch have 31 bits.
fn push_string(out: &mut Vec<u8>, string: &[u8]) {
    let bytes = u32::try_from(string.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&bytes.to_le_bytes());
    out.extend_from_slice(string);
}
