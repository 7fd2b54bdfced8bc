//! What the replaying process says of itself in memory that outlives it: the call it is at.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use memmap2::{MmapMut, MmapOptions};

/// Bytes of the memory: the call's number plus one, and its name.
const BYTES: usize = 128;

/// Memory shared with the process that waits.
#[derive(Debug, Default)]
pub struct Watch(Option<MmapMut>);

impl Watch {
    /// Makes the file that both processes map.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        std::fs::write(path, [0; BYTES])?;
        Self::open(path)
    }

    /// Maps the file that another process made.
    ///
    /// # Errors
    /// It cannot be opened, or is too short.
    #[allow(unsafe_code, reason = "the file is this program's own")]
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() < BYTES as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // SAFETY: the file is a temporary one of this program, which nothing shortens. The other process only reads bytes
        // that may be half written, and takes any bytes for text.
        let memory = unsafe { MmapOptions::new().len(BYTES).map_mut(&file)? };
        Ok(Self(Some(memory)))
    }

    /// The next thing that happens is this call.
    pub(crate) fn at(&mut self, number: u64, name: &str) {
        let Some(memory) = &mut self.0 else { return };
        let (place, rest) = memory.split_at_mut(8);
        place.copy_from_slice(&(number + 1).to_le_bytes());
        let length = name.len().min(rest.len() - 1);
        if let (Some(to), Some(from)) = (rest.get_mut(..length), name.as_bytes().get(..length)) {
            to.copy_from_slice(from);
        }
        if let Some(end) = rest.get_mut(length) {
            *end = 0;
        }
    }

    /// The call that the replaying process was at; `None` before the first.
    pub fn read(&self) -> Option<(u64, String)> {
        let memory = self.0.as_ref()?;
        let (number, name) = memory.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number).checked_sub(1)?;
        let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
        Some((number, String::from_utf8_lossy(name).into_owned()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    #[test]
    fn the_other_process_reads_the_call() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = Watch::create(file.path()).unwrap();
        let mut writer = Watch::open(file.path()).unwrap();
        assert_eq!(reader.read(), None);
        writer.at(0, "glDrawElementsInstancedBaseVertexBaseInstance");
        writer.at(12, "glEnd");
        assert_eq!(reader.read(), Some((12, "glEnd".to_owned())));
        writer.at(13, &"x".repeat(500));
        assert_eq!(reader.read().unwrap().1.len(), BYTES - 9);
        Watch::default().at(1, "glEnd");
        assert!(Watch::open("/nonexistent".as_ref()).is_err());
    }
}
