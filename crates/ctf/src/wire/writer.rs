//! Records to bytes.

use std::io::Write;

use anytrace_core::Error;

use super::place::Layout;
use super::record::Record;

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a trace, record by record, as an archive. [`Self::finish`] writes what is still in memory.
///
/// ```
/// use anytrace_ctf::{Layout, Writer, parse};
///
/// // The end of an archive is a block of zeros.
/// let end = [0; 512];
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&parse(&end, &Layout::default()).expect("it is a record").0)?;
/// assert_eq!(writer.finish()?, end);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a trace; its first record should be the header of a file.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// As [`Self::new`]: there is one layout.
    pub fn with_layout(out: W, _layout: &Layout) -> Self {
        Self { out, buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Writes a record.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.buffer.extend_from_slice(record.bytes);
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
