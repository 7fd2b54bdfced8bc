//! Packets to bytes.

use std::io::Write;

use anytrace_core::Error;

use super::proto::push_varint;
use super::record::{Layout, Record, TAG};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a trace, packet by packet. [`Self::finish`] writes what is still in memory.
///
/// ```
/// use anytrace_perfetto::{Record, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&Record::new(b"\x40\x05").expect("a packet with a time"))?;
/// assert_eq!(writer.finish()?, b"\x0a\x02\x40\x05");
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Starts a trace, which has no header.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// As [`Self::new`]: there is one layout.
    pub fn with_layout(out: W, _layout: &Layout) -> Self {
        Self { out, buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        self.write_body(record.body, record.length_bytes)
    }

    /// Writes a packet by its body.
    pub(crate) fn write_body(&mut self, body: &[u8], length_bytes: u8) -> Result<(), Error> {
        self.buffer.push(TAG);
        push_varint(&mut self.buffer, body.len() as u64, length_bytes.into());
        self.buffer.extend_from_slice(body);
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
