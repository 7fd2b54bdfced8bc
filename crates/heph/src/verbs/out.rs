//! Output that is written in large pieces.

use std::io::Write;

use anytrace_core::Error;

/// How much is buffered before it is written.
pub(crate) const FLUSH_BYTES: usize = 64 * 1024;

/// Bytes for a writer.
pub(crate) struct Out<'a> {
    pub(crate) bytes: Vec<u8>,
    pub(crate) to: &'a mut dyn Write,
}

impl<'a> Out<'a> {
    pub(crate) fn new(to: &'a mut dyn Write) -> Self {
        Self { bytes: Vec::with_capacity(FLUSH_BYTES * 2), to }
    }

    #[inline]
    pub(crate) fn flush_if_full(&mut self) -> Result<(), Error> {
        if self.bytes.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.to.write_all(&self.bytes)?;
        self.bytes.clear();
        Ok(())
    }
}
