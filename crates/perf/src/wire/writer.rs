//! Records to bytes.

use std::io::Write;

use anytrace_core::Error;

use super::record::{Layout, Record};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a recording, record by record. [`Self::finish`] writes what is still in memory.
///
/// A file's header says how long its records are. [`Writer`] writes it as it is given.
///
/// ```
/// use anytrace_perf::{Layout, Writer, parse};
///
/// let (line, _) = parse(b"app 7 1.5: cycles: \n", &Layout::default()).expect("it is a sample");
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&line)?;
/// assert_eq!(writer.finish()?, b"app 7 1.5: cycles: \n");
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a recording.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// As [`Self::new`]: records have their form.
    pub fn with_layout(out: W, _layout: &Layout) -> Self {
        Self { out, buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Writes a record. Those that a compressed record contains are in it already, and are left out.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if record.is_inside() {
            return Ok(());
        }
        self.write_bytes(record.bytes(), matches!(record, Record::Line(_)))
    }

    /// Writes the bytes of a record.
    pub(crate) fn write_bytes(&mut self, bytes: &[u8], is_line: bool) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        if is_line {
            self.buffer.push(b'\n');
        }
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
