//! Output that goes out as it comes.

use std::io::{self, Write};

use crate::terminal;

/// Bytes buffered at first, so that a verb that fails early writes nothing.
const BUFFERED_BYTES_MAX: usize = 32 * 1024;

/// Standard output, begun once there is something worth writing.
pub(super) struct Stream {
    out: terminal::Stream<io::Stdout>,
    /// `None` once bytes go straight out.
    buffered: Option<Vec<u8>>,
}

impl Stream {
    pub(super) fn new() -> Self {
        Self { out: terminal::unlocked_stdout(), buffered: Some(Vec::new()) }
    }

    /// Writes what is buffered.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }

    fn begin(&mut self) -> io::Result<()> {
        self.buffered.take().map_or(Ok(()), |buffered| self.out.write_all(&buffered))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(buffered) =
            self.buffered.as_mut().filter(|buffered| buffered.len() + bytes.len() <= BUFFERED_BYTES_MAX)
        {
            buffered.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        self.begin()?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.buffered.is_none() { self.out.flush() } else { Ok(()) }
    }
}
