//! Records to bytes.

use std::io::Write;

use anytrace_core::Error;

use super::record::{Layout, Record};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a trace, record by record. [`Self::finish`] writes what is still in memory.
///
/// ```
/// use anytrace_fuchsia::{Layout, Writer, parse};
///
/// let magic = b"\x10\0\x04\x46\x78\x54\x16\0";
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&parse(magic, &Layout::default()).expect("it is a record").0)?;
/// assert_eq!(writer.finish()?, magic);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a trace; its first record should be the magic number.
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
