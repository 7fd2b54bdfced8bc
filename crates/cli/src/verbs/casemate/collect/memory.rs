//! A part of a file as the memory of another program.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};

use anytrace_casemate::tools::rings::Memory;
use anytrace_core::Error;
use nix::fcntl::{Flock, FlockArg};

use super::CollectArguments;

/// Where ring buffers can begin.
const ALIGNED: usize = 64;

/// Bytes searched at once.
const CHUNK_BYTES: usize = 1 << 20;

/// Places listed where there are several.
const PLACES_MAX: usize = 8;

/// A part of a file. Where it is written to, no other collector has it.
pub(super) struct Region {
    file: Opened,
    offset: u64,
    length: Option<u64>,
}

enum Opened {
    Image(File),
    Shared(Flock<File>),
}

impl Region {
    pub(super) fn open(options: &CollectArguments, is_shared: bool) -> Result<Self, Error> {
        let name = options.file.display();
        let failed = |error| Error::io(format_args!("cannot open {name}"), error);
        let file = File::options().read(true).write(is_shared).open(&options.file).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        let kind = meta.file_type();
        if !kind.is_file() && !kind.is_char_device() && !kind.is_block_device() {
            return Err(Error::usage(format!("{name}: expected a file or a device with ring buffers")));
        }
        let offset = options.offset.unwrap_or(0);
        let length = match (kind.is_file(), options.length) {
            (false, length) => length,
            (true, length) => {
                let rest = meta.len().saturating_sub(offset);
                Some(length.map_or(rest, |length| length.min(rest)))
            }
        };
        let file = if is_shared {
            Opened::Shared(
                Flock::lock(file, FlockArg::LockExclusiveNonblock)
                    .map_err(|(_, error)| Error::usage(format!("{name}: another collector has it ({error})")))?,
            )
        } else {
            Opened::Image(file)
        };
        Ok(Self { file, offset, length })
    }

    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    fn file(&self) -> &File {
        match &self.file {
            Opened::Image(file) => file,
            Opened::Shared(file) => file,
        }
    }

    /// Moves to the only ring buffers in the file, where they are not at its beginning.
    pub(super) fn search(&mut self) -> Result<(), Error> {
        let Some(length) = self.length else { return Ok(()) };
        let mut places = Vec::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut at = 0;
        while at < length && places.len() <= PLACES_MAX {
            let bytes = usize::try_from(length - at).unwrap_or(usize::MAX).min(CHUNK_BYTES);
            let chunk = chunk.get_mut(..bytes).unwrap_or_default();
            self.read_at(at, chunk).map_err(|error| Error::io("cannot search for ring buffers", error))?;
            for (number, line) in chunk.chunks(ALIGNED).enumerate() {
                if line.starts_with(b"CMTRACE1") || line.starts_with(b"1ECARTMC") {
                    places.push(at + (number * ALIGNED) as u64);
                }
            }
            at += bytes as u64;
        }
        match places.as_slice() {
            [] | [0, ..] => Ok(()),
            [one] => {
                self.offset += one;
                self.length = Some(length - one);
                Ok(())
            }
            several => {
                let list = several.iter().take(PLACES_MAX).map(|place| format!("{place:#x}")).collect::<Vec<_>>();
                let more = if several.len() > PLACES_MAX { ", …" } else { "" };
                let list = list.join(", ");
                Err(Error::usage(format!("ring buffers at several places ({list}{more}); choose by --offset")))
            }
        }
    }

    fn place(&self, offset: u64, bytes: usize) -> io::Result<u64> {
        let end = offset.checked_add(bytes as u64).filter(|end| self.length.is_none_or(|length| *end <= length));
        let place = end.and_then(|_| self.offset.checked_add(offset));
        place.ok_or_else(|| io::Error::new(io::ErrorKind::UnexpectedEof, "past the end of the memory"))
    }
}

impl Memory for Region {
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file().read_exact_at(bytes, self.place(offset, bytes.len())?)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file().write_all_at(bytes, self.place(offset, bytes.len())?)
    }

    fn length_bytes(&self) -> io::Result<Option<u64>> {
        Ok(self.length)
    }
}
