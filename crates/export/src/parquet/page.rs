//! The pages of a column chunk, compressed, and what the footer says of them.

use anytrace_core::Error;
use anytrace_core::table::Column;

use super::Compressor;
use super::numbers::{DATA_PAGE, DICTIONARY_PAGE, PLAIN, RLE, RLE_DICTIONARY};
use super::thrift::Thrift;

/// Finished pages of a column chunk.
#[derive(Debug, Default)]
pub(super) struct Pages {
    /// The dictionary's, which comes first, although its content is known last.
    pub(super) dictionary: Vec<u8>,
    /// The others.
    pub(super) data: Vec<u8>,
    /// Headers and pages as they were before compression.
    pub(super) uncompressed_bytes: u64,
    /// Pages of values.
    pub(super) plain_pages: i32,
    /// Pages of keys.
    pub(super) keyed_pages: i32,
}

impl Pages {
    /// Bytes of all.
    pub(super) fn bytes(&self) -> usize {
        self.dictionary.len() + self.data.len()
    }

    /// Adds a page of values.
    pub(super) fn plain(
        &mut self,
        column: &Column,
        rows: usize,
        body: &[u8],
        compressor: &mut Compressor,
    ) -> Result<(), Error> {
        self.plain_pages += 1;
        self.data_page(column, rows, PLAIN, body, compressor)
    }

    /// Adds a page of keys of the dictionary.
    pub(super) fn keyed(
        &mut self,
        column: &Column,
        rows: usize,
        body: &[u8],
        compressor: &mut Compressor,
    ) -> Result<(), Error> {
        self.keyed_pages += 1;
        self.data_page(column, rows, RLE_DICTIONARY, body, compressor)
    }

    /// Sets the dictionary.
    pub(super) fn dictionary(
        &mut self,
        column: &Column,
        names: usize,
        body: &[u8],
        compressor: &mut Compressor,
    ) -> Result<(), Error> {
        let names = small(names, column)?;
        let page = page(column, DICTIONARY_PAGE, body, compressor, |header| {
            header.fields(7, |dictionary| {
                dictionary.i32(1, names);
                dictionary.i32(2, PLAIN);
            });
        })?;
        self.dictionary = self.take(body, page, compressor);
        Ok(())
    }

    fn data_page(
        &mut self,
        column: &Column,
        rows: usize,
        encoding: i32,
        body: &[u8],
        compressor: &mut Compressor,
    ) -> Result<(), Error> {
        let rows = small(rows, column)?;
        let header = page(column, DATA_PAGE, body, compressor, |header| {
            header.fields(5, |data| {
                data.i32(1, rows);
                data.i32(2, encoding);
                data.i32(3, RLE);
                data.i32(4, RLE);
            });
        })?;
        let page = self.take(body, header, compressor);
        self.data.extend_from_slice(&page);
        Ok(())
    }

    /// A page of its header and what the compressor made of its body.
    fn take(&mut self, body: &[u8], mut header: Vec<u8>, compressor: &Compressor) -> Vec<u8> {
        self.uncompressed_bytes += (header.len() + body.len()) as u64;
        header.extend_from_slice(compressor.compressed());
        header
    }
}

/// Compresses a page; returns its header.
fn page(
    column: &Column,
    kind: i32,
    body: &[u8],
    compressor: &mut Compressor,
    more: impl FnOnce(&mut Thrift),
) -> Result<Vec<u8>, Error> {
    compressor.compress(body)?;
    let mut header = Thrift::default();
    header.i32(1, kind);
    header.i32(2, small(body.len(), column)?);
    header.i32(3, small(compressor.compressed().len(), column)?);
    more(&mut header);
    Ok(header.finish())
}

/// A size as the format has it.
fn small(size: usize, column: &Column) -> Result<i32, Error> {
    let too_large = |_| Error::limit(format!("column {}: a page of 2 GiB, which Parquet does not have", column.name));
    i32::try_from(size).map_err(too_large)
}
