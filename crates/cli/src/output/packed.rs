//! Outputs that are compressed where their name says so.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::Output;
use crate::failure::Failure;

/// An output for programs that read gzip, too. Call [`Self::finish`] after the last byte.
pub(crate) struct Packed<'a> {
    inner: Inner<'a>,
    bytes: u64,
}

enum Inner<'a> {
    Plain(&'a mut Output),
    // Larger than the other by its tables.
    Gzip(Box<GzEncoder<&'a mut Output>>),
}

impl<'a> Packed<'a> {
    /// Compresses if the name ends in `.gz` and that is not part of the form's own extension.
    pub(crate) fn new(output: &'a mut Output, path: &Path, extension: &str) -> Self {
        let inner = if is_packed(path) && !extension.ends_with(".gz") {
            Inner::Gzip(Box::new(GzEncoder::new(output, Compression::default())))
        } else {
            Inner::Plain(output)
        };
        Self { inner, bytes: 0 }
    }

    /// Writes the end. Returns the number of bytes, before compression.
    pub(crate) fn finish(self) -> Result<u64, Failure> {
        let done = match self.inner {
            Inner::Plain(output) => output.flush(),
            Inner::Gzip(encoder) => encoder.finish().and_then(Write::flush),
        };
        done.map_err(|error| Failure::output(&error))?;
        Ok(self.bytes)
    }
}

/// True where the name asks for gzip.
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

impl Write for Packed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = match &mut self.inner {
            Inner::Plain(output) => output.write(bytes)?,
            Inner::Gzip(encoder) => encoder.write(bytes)?,
        };
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.inner {
            Inner::Plain(output) => output.flush(),
            // What is not complete yet need not go out: that would cost compression.
            Inner::Gzip(_) => Ok(()),
        }
    }
}
