//! Checks the head of the output: will it be opened in the layout it was written in?

use std::io::{self, Write};

use anytrace_core::Head;

use crate::wire::detect;
use crate::wire::record::Layout;

/// As much as a probe sees.
const HEAD_BYTES: usize = 64 * 1024;

/// Passes bytes on and keeps a copy of the first; or buffers them until they are more than a head.
pub(crate) struct HeadCheck<'a> {
    out: &'a mut dyn Write,
    head: Vec<u8>,
    written: u64,
    is_buffering: bool,
}

impl<'a> HeadCheck<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, is_buffering: bool) -> Self {
        Self { out, head: Vec::new(), written: 0, is_buffering }
    }

    /// All bytes written so far, while they are buffered.
    pub(crate) fn buffered(&mut self) -> Option<&mut Vec<u8>> {
        self.is_buffering.then_some(&mut self.head)
    }

    /// Writes the buffered bytes. Returns a note when the result, opened without options, is read in another layout.
    pub(crate) fn finish(mut self, layout: Layout) -> io::Result<Option<String>> {
        if self.is_buffering {
            self.out.write_all(&self.head)?;
            self.written = self.head.len() as u64;
        }
        let total_bytes = Some(self.written);
        self.head.truncate(HEAD_BYTES);
        let found = detect::layout(&Head { bytes: &self.head, total_bytes, name: "", layers: &[] }, |_| true);
        Ok((found != layout && !self.head.is_empty()).then(|| {
            let (order, width) = (layout.endian.name(), layout.width.bytes());
            format!(
                "the layout of the result cannot be detected: open it with --endian {order} --pointer-width {width}"
            )
        }))
    }
}

impl Write for HeadCheck<'_> {
    fn write(&mut self, new: &[u8]) -> io::Result<usize> {
        self.written += new.len() as u64;
        let room = if self.is_buffering { new.len() } else { HEAD_BYTES.saturating_sub(self.head.len()) };
        self.head.extend_from_slice(new.get(..room).unwrap_or(new));
        if !self.is_buffering {
            self.out.write_all(new)?;
        } else if self.head.len() > HEAD_BYTES {
            self.is_buffering = false;
            self.out.write_all(&self.head)?;
            self.head.truncate(HEAD_BYTES);
        }
        Ok(new.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_written_bytes_are_passed_on_whether_buffered_or_not() {
        for is_buffering in [false, true] {
            for pieces in [1, 100, 9000] {
                let mut out = Vec::new();
                let mut check = HeadCheck::new(&mut out, is_buffering);
                for _ in 0..pieces {
                    check.write_all(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
                }
                check.finish(Layout::default()).unwrap();
                assert_eq!(out.len(), pieces * 10);
            }
        }
    }

    #[test]
    fn a_lone_record_of_a_rare_layout_is_reported() {
        let layout = Layout::ALL[1];
        let zero_thread_read = [0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut out = Vec::new();
        let mut check = HeadCheck::new(&mut out, false);
        check.write_all(&zero_thread_read).unwrap();
        let note = check.finish(layout).unwrap().unwrap();
        assert!(note.ends_with("--endian big --pointer-width 8"), "{note}");
    }
}
