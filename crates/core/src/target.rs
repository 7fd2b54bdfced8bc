//! Where rewritten traces go.

use std::io::{self, Write};

/// A writer whose earlier bytes can be patched: sizes that are known only later.
pub trait Target: Write {
    /// Bytes written so far.
    fn position(&self) -> u64;

    /// Replaces bytes already written, from `offset` on.
    ///
    /// # Errors
    /// When the range was not written yet, or the system fails.
    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// A [`Target`] in memory.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct MemoryTarget(pub Vec<u8>);

impl Write for MemoryTarget {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Target for MemoryTarget {
    fn position(&self) -> u64 {
        self.0.len() as u64
    }

    fn patch(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let range = usize::try_from(offset).ok().and_then(|at| Some(at..at.checked_add(bytes.len())?));
        match range.and_then(|range| self.0.get_mut(range)) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(io::Error::from(io::ErrorKind::InvalidInput)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_written_bytes_can_be_patched() {
        let mut target = MemoryTarget::default();
        target.write_all(b"abcd").unwrap();
        target.patch(1, b"XY").unwrap();
        assert_eq!(target.0, b"aXYd");
        assert!(target.patch(3, b"zz").is_err());
        assert!(target.patch(u64::MAX, b"z").is_err());
    }
}
