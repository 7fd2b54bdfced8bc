//! Looks at the head of what is written: will it be opened in the layout it was written in?

use std::io::{self, Write};

use anytrace_core::Head;

use crate::detect;
use crate::record::Layout;

/// As much as a probe sees.
const HEAD_BYTES: usize = 64 * 1024;

/// Passes bytes on and keeps a copy of the first; or holds them back until they are more than a head.
pub(crate) struct Held<'a> {
    out: &'a mut dyn Write,
    head: Vec<u8>,
    written: u64,
    is_holding: bool,
}

impl<'a> Held<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, is_holding: bool) -> Self {
        Self { out, head: Vec::new(), written: 0, is_holding }
    }

    /// All that was written, while it is held back.
    pub(crate) fn whole(&mut self) -> Option<&mut Vec<u8>> {
        self.is_holding.then_some(&mut self.head)
    }

    /// Writes what is held back. Says so when the result, opened without options, is read in another layout.
    pub(crate) fn finish(mut self, layout: Layout) -> io::Result<Option<String>> {
        if self.is_holding {
            self.out.write_all(&self.head)?;
            self.written = self.head.len() as u64;
        }
        let total_bytes = Some(self.written);
        self.head.truncate(HEAD_BYTES);
        let found = detect::layout(&Head { bytes: &self.head, total_bytes, name: "", layers: &[] }, |_| true);
        Ok((found != layout && !self.head.is_empty()).then(|| {
            let (order, width) = (layout.endian.name(), layout.width.bytes());
            format!("the result alone does not show its layout: open it with --endian {order} --pointer-width {width}")
        }))
    }
}

impl Write for Held<'_> {
    fn write(&mut self, new: &[u8]) -> io::Result<usize> {
        self.written += new.len() as u64;
        let room = if self.is_holding { new.len() } else { HEAD_BYTES.saturating_sub(self.head.len()) };
        self.head.extend_from_slice(new.get(..room).unwrap_or(new));
        if !self.is_holding {
            self.out.write_all(new)?;
        } else if self.head.len() > HEAD_BYTES {
            self.is_holding = false;
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
    fn what_is_written_comes_out_whole_however_it_was_held() {
        for is_holding in [false, true] {
            for pieces in [1, 100, 9000] {
                let mut out = Vec::new();
                let mut held = Held::new(&mut out, is_holding);
                for _ in 0..pieces {
                    held.write_all(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]).unwrap();
                }
                held.finish(Layout::default()).unwrap();
                assert_eq!(out.len(), pieces * 10);
            }
        }
    }

    #[test]
    fn a_lone_record_of_a_rare_layout_is_told() {
        let layout = Layout::ALL[1];
        let zero_thread_read = [0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut out = Vec::new();
        let mut held = Held::new(&mut out, false);
        held.write_all(&zero_thread_read).unwrap();
        let note = held.finish(layout).unwrap().unwrap();
        assert!(note.ends_with("--endian big --pointer-width 8"), "{note}");
    }
}
