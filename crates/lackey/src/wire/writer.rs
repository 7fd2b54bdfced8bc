//! Records to lines.

use std::io::Write;

use anytrace_core::Error;
use anytrace_core::text::{push_dec, push_hex};

use crate::wire::parse::record_of;
use crate::wire::record::{Kind, Layout, Record};

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

/// Writes a trace, record by record. [`Self::finish`] writes what is still in memory, at most 64 KiB.
///
/// ```
/// use anytrace_lackey::{Kind, Record, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// writer.write(&Record::new(Kind::Write, 0x10, 4))?;
/// assert_eq!(writer.finish()?, b" S 00000010,4\n");
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    buffer: Vec<u8>,
    records: u64,
    /// False after a record whose line has no end.
    has_line_end: bool,
}

impl<W: Write> Writer<W> {
    /// Starts an empty trace.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// As [`Self::new`]: there is one layout.
    pub fn with_layout(out: W, _layout: &Layout) -> Self {
        Self { out, buffer: Vec::with_capacity(BUFFER_BYTES + 64), records: 0, has_line_end: true }
    }

    /// Writes a record: its own line, as long as the line still says what the fields say, else the line that Valgrind
    /// would write. A line without an end gets one when another record follows.
    ///
    /// # Errors
    /// Unsupported for a superblock with a size, which has no place in its line; I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        if record.kind == Kind::Block && record.size != 0 {
            let (number, size) = (self.records, record.size);
            return Err(Error::unsupported(format!("record {number}: size {size}: a superblock has none")));
        }
        if !std::mem::replace(&mut self.has_line_end, true) {
            self.buffer.push(b'\n');
        }
        let fields = |record: &Record<'_>| (record.kind, record.address, record.size);
        if record_of(record.text).is_some_and(|line| fields(&line) == fields(record)) {
            self.buffer.extend_from_slice(record.text);
            self.has_line_end = record.text.ends_with(b"\n");
        } else {
            push_record(&mut self.buffer, record.kind, record.address, record.size);
        }
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush_buffer() } else { Ok(()) }
    }

    /// Writes what is still in memory, flushes the destination and returns it.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush_buffer()?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}

/// Appends a record's line, including the line end, as Valgrind spells it: lower-case digits, addresses of at least
/// eight.
#[inline]
pub(crate) fn push_record(out: &mut Vec<u8>, kind: Kind, address: u64, size: u16) {
    out.extend_from_slice(kind.mark());
    push_address(out, address);
    if kind != Kind::Block {
        out.push(b',');
        push_dec(out, size);
    }
    out.push(b'\n');
}

fn push_address(out: &mut Vec<u8>, address: u64) {
    let mut digits = Vec::with_capacity(18);
    push_hex(&mut digits, address);
    let digits = digits.strip_prefix(b"0x").unwrap_or(&digits);
    out.extend_from_slice(&b"00000000"[digits.len().min(8)..]);
    out.extend_from_slice(digits);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse::parse;

    fn written(records: &[Record<'_>]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        records.iter().for_each(|record| writer.write(record).unwrap());
        writer.finish().unwrap()
    }

    #[test]
    fn written_records_read_back() {
        for kind in Kind::ALL {
            for address in [0, 1, 0xffff_ffff, 0x1_0000_0000, u64::MAX] {
                for size in [0, 1, 8, 512, u16::MAX] {
                    let size = if kind == Kind::Block { 0 } else { size };
                    let out = written(&[Record::new(kind, address, size)]);
                    let (record, used) = parse(&out, &Layout::default()).expect("it is a record");
                    assert_eq!((record.kind, record.address, record.size, used), (kind, address, size, out.len()));
                    assert!(record.is_usual || size == u16::MAX, "{record:?}");
                }
            }
        }
    }

    #[test]
    fn a_line_is_kept_until_a_field_changes() {
        let record = record_of(b"S be80199c,04").unwrap();
        assert_eq!(written(&[record]), b"S be80199c,04");
        assert_eq!(written(&[record, record]), b"S be80199c,04\nS be80199c,04");
        let moved = Record { address: 16, ..record };
        assert_eq!(written(&[record, moved]), b"S be80199c,04\n S 00000010,4\n");
    }

    #[test]
    fn a_superblock_with_a_size_is_refused() {
        let mut writer = Writer::new(Vec::new());
        let error = writer.write(&Record::new(Kind::Block, 0, 4)).unwrap_err();
        assert_eq!(error.kind(), anytrace_core::Kind::Unsupported);
        assert!(writer.finish().unwrap().is_empty());
    }
}
