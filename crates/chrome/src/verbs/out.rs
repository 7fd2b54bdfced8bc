//! Output buffer that is written in large pieces.

use std::io::Write;

use anytrace_core::Error;

/// The buffer is written when it reaches this size.
const FULL_BYTES: usize = 1 << 16;

/// Buffers bytes for a writer.
pub(crate) struct Out<'a> {
    pub(crate) buffer: Vec<u8>,
    target: &'a mut dyn Write,
}

impl<'a> Out<'a> {
    pub(crate) fn new(target: &'a mut dyn Write) -> Self {
        Self { buffer: Vec::with_capacity(2 * FULL_BYTES), target }
    }

    #[inline]
    pub(crate) fn flush_if_full(&mut self) -> Result<(), Error> {
        if self.buffer.len() >= FULL_BYTES { self.flush() } else { Ok(()) }
    }

    #[cold]
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        let written = self.target.write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| Error::io("cannot write the output", error))
    }
}
