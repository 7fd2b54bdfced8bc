//! Room on disk for outputs that need a track's edges together.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// A temporary file that is made when something is written to it: most outputs need none.
#[derive(Default)]
pub(crate) struct LateSpool(Option<File>);

impl LateSpool {
    fn file(&mut self) -> io::Result<&mut File> {
        if self.0.is_none() {
            self.0 = Some(tempfile::tempfile()?);
        }
        self.0.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Read for LateSpool {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file()?.read(bytes)
    }
}

impl Write for LateSpool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.as_mut().map_or(Ok(()), File::flush)
    }
}

impl Seek for LateSpool {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file()?.seek(to)
    }
}
