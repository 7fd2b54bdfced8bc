//! What the replaying process says of itself in memory that outlives it: the call it is at, and whether the driver is at
//! work. Between calls it reads the trace, which takes as long as it takes.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use memmap2::{MmapMut, MmapOptions};

/// Bytes of the memory: the call's number plus one, how many things were begun, whether one is being done, its name.
const BYTES: usize = 128;

/// Where the number of things begun is.
const COUNT: usize = 8;

/// Where it says that one is being done.
const BUSY: usize = 16;

/// Where its name is.
const NAME: usize = 17;

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
        self.busy();
        let Some(memory) = &mut self.0 else { return };
        let (place, rest) = memory.split_at_mut(NAME);
        if let Some(place) = place.first_chunk_mut() {
            *place = (number + 1).to_le_bytes();
        }
        let length = name.len().min(rest.len() - 1);
        if let (Some(to), Some(from)) = (rest.get_mut(..length), name.as_bytes().get(..length)) {
            to.copy_from_slice(from);
        }
        if let Some(end) = rest.get_mut(length) {
            *end = 0;
        }
    }

    /// The driver is given something to do, which belongs to the call before or to the next one.
    pub(crate) fn busy(&mut self) {
        let Some(memory) = &mut self.0 else { return };
        if let Some(count) = memory.get_mut(COUNT..BUSY).and_then(<[u8]>::first_chunk_mut) {
            *count = u64::from_le_bytes(*count).wrapping_add(1).to_le_bytes();
        }
        self.set_busy(1);
    }

    /// The driver has nothing to do.
    pub(crate) fn idle(&mut self) {
        self.set_busy(0);
    }

    fn set_busy(&mut self, busy: u8) {
        if let Some(byte) = self.0.as_mut().and_then(|memory| memory.get_mut(BUSY)) {
            *byte = busy;
        }
    }

    /// How many things the driver has been given to do, if it is at one of them.
    pub(crate) fn work(&self) -> Option<u64> {
        let memory = self.0.as_ref()?;
        let count = memory.get(COUNT..BUSY)?.first_chunk()?;
        (*memory.get(BUSY)? != 0).then(|| u64::from_le_bytes(*count))
    }

    /// The call that the replaying process was at; `None` before the first.
    pub fn read(&self) -> Option<(u64, String)> {
        let memory = self.0.as_ref()?;
        let number = u64::from_le_bytes(*memory.first_chunk()?).checked_sub(1)?;
        let name = memory.get(NAME..)?.split(|byte| *byte == 0).next().unwrap_or_default();
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
        assert_eq!(reader.read().unwrap().1.len(), BYTES - NAME - 1);
        Watch::default().at(1, "glEnd");
    }

    #[test]
    fn the_other_process_sees_whether_the_driver_is_at_work() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let reader = Watch::create(file.path()).unwrap();
        let mut writer = Watch::open(file.path()).unwrap();
        assert_eq!(reader.work(), None);
        writer.at(3, "glFlush");
        assert_eq!(reader.work(), Some(1));
        // The same call in the next round of a loop is something else.
        writer.at(3, "glFlush");
        writer.busy();
        assert_eq!((reader.work(), reader.read()), (Some(3), Some((3, "glFlush".to_owned()))));
        writer.idle();
        assert_eq!((reader.work(), reader.read()), (None, Some((3, "glFlush".to_owned()))));
        assert!(Watch::open("/nonexistent".as_ref()).is_err());
    }
}
