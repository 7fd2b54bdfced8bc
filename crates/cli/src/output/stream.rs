//! Output that goes out as it comes.

use std::io::{self, Write};

use crate::terminal::Stdout;

/// Bytes kept back at first: what fails as early as that leaves nothing behind.
const HELD_BYTES: usize = 32 * 1024;

/// Standard output, begun once there is something worth writing.
pub(super) struct Stream {
    out: Stdout,
    /// `None` once bytes go straight out.
    held: Option<Vec<u8>>,
}

impl Stream {
    pub(super) fn new(out: Stdout) -> Self {
        Self { out, held: Some(Vec::new()) }
    }

    /// Writes what was kept back.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.begin()?;
        self.out.flush()
    }

    fn begin(&mut self) -> io::Result<()> {
        self.held.take().map_or(Ok(()), |held| self.out.write_all(&held))
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(held) = self.held.as_mut().filter(|held| held.len() + bytes.len() <= HELD_BYTES) {
            held.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        self.begin()?;
        self.out.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.held.is_none() { self.out.flush() } else { Ok(()) }
    }
}
