//! Records to lines.

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::text::push_dec;

use crate::wire::record::{HEADER, Layout, Record};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a trace, record by record. [`Self::finish`] writes what is still in memory.
///
/// ```
/// use anytrace_newformat::{Record, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&Record { number: 7, text: b"seven" })?;
/// assert_eq!(writer.finish()?, b"newformat 1\n7 seven\n");
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
    records: u64,
}

impl<W: Write> Writer<W> {
    /// Starts a trace with its header.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// As [`Self::new`]: there is one layout.
    pub fn with_layout(out: W, _layout: &Layout) -> Self {
        let mut buffer = Vec::with_capacity(BUFFER_BYTES);
        buffer.extend_from_slice(HEADER);
        buffer.push(b'\n');
        Self { out, buffer, records: 0 }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// Unsupported for text with a line end, which has no place in a line; I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if memchr::memchr(b'\n', record.text).is_some() {
            let number = self.records;
            return Err(Error::unsupported(format!("record {number}: its text has a line end")));
        }
        push_dec(&mut self.buffer, record.number);
        self.buffer.push(b' ');
        self.buffer.extend_from_slice(record.text);
        self.buffer.push(b'\n');
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush_buffer() } else { Ok(()) }
    }

    /// Writes what is still in memory, flushes the destination and returns it.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush_buffer()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}
