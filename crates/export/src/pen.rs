//! The target of outputs: a buffer that is written in large pieces.

use std::io::Write;

use anytrace_core::Error;

/// The buffer is written when it contains this much.
const FULL_BYTES: usize = 64 * 1024;

/// Collects bytes and writes them out in large pieces.
pub(crate) struct Pen<'a> {
    out: &'a mut (dyn Write + Send),
    /// Bytes not written yet.
    pub(crate) bytes: Vec<u8>,
}

impl<'a> Pen<'a> {
    pub(crate) fn new(out: &'a mut (dyn Write + Send)) -> Self {
        Self { out, bytes: Vec::with_capacity(FULL_BYTES + FULL_BYTES / 4) }
    }

    /// Appends text.
    #[inline]
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Writes the buffer, once it is large.
    #[inline]
    pub(crate) fn rest(&mut self) -> Result<(), Error> {
        if self.bytes.len() >= FULL_BYTES { self.write_out() } else { Ok(()) }
    }

    /// Writes a long text.
    pub(crate) fn put(&mut self, text: &[u8]) -> Result<(), Error> {
        if self.bytes.len() + text.len() < FULL_BYTES {
            self.bytes.extend_from_slice(text);
            return Ok(());
        }
        self.write_out()?;
        self.out.write_all(text).map_err(failed)
    }

    /// Writes out everything.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.write_out()?;
        self.out.flush().map_err(failed)
    }

    #[cold]
    fn write_out(&mut self) -> Result<(), Error> {
        self.out.write_all(&self.bytes).map_err(failed)?;
        self.bytes.clear();
        Ok(())
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::io("writing", error)
}
