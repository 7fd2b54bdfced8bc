//! Records to bytes, in any layout.

use std::io::Write;

use anytrace_core::Error;

use crate::record::{Body, Layout, Record, Width};

/// Writes a trace, record by record.
///
/// ```
/// use anytrace_cacheray::{Body, Kind, Layout, Record, Tag, Writer};
///
/// let mut bytes = Vec::new();
/// let mut writer = Writer::new(&mut bytes, Layout::default());
/// let body = Body::Access { size: 4 };
/// writer.write(&Record { tag: Tag::new(Kind::Write, false, false), address: 0x1000, thread: 0, body }).unwrap();
/// assert_eq!(writer.finish().unwrap(), 1);
/// assert_eq!(bytes.len(), 18);
/// ```
pub struct Writer<W: Write> {
    out: W,
    layout: Layout,
    buffer: Vec<u8>,
    records: u64,
}

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

impl<W: Write> Writer<W> {
    /// Starts a trace of a layout.
    pub fn new(out: W, layout: Layout) -> Self {
        Self { out, layout, buffer: Vec::with_capacity(BUFFER_BYTES + 64), records: 0 }
    }

    /// Writes a record; flags on RTTA tags are written unchanged.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`] when the layout cannot represent the record, I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        encode(record, self.layout, &mut self.buffer)
            .map_err(|unfit| unfit.error(format_args!("record {}", self.records)))?;
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Writes the rest and returns how many records were written.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(mut self) -> Result<u64, Error> {
        self.out.write_all(&self.buffer)?;
        self.out.flush()?;
        Ok(self.records)
    }
}

/// A field that a layout cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    Address(u64),
    NameBytes(usize),
}

impl Unfit {
    /// The error, naming record and field.
    #[cold]
    pub(crate) fn error(self, record: std::fmt::Arguments<'_>) -> Error {
        Error::unsupported(match self {
            Self::Address(address) => {
                format!("{record}: address {address:#x} does not fit a pointer of 4 bytes (--to-pointer-width)")
            }
            Self::NameBytes(bytes) => format!("{record}: a type name of {bytes} bytes does not fit its 32-bit length"),
        })
    }
}

/// Appends a record.
fn encode(record: &Record<'_>, layout: Layout, out: &mut Vec<u8>) -> Result<(), Unfit> {
    encode_head(record, layout, out)?;
    if let Body::Add { name, .. } = record.body {
        out.extend_from_slice(name);
    }
    Ok(())
}

/// Appends a record except for its name.
#[inline]
pub(crate) fn encode_head(record: &Record<'_>, layout: Layout, out: &mut Vec<u8>) -> Result<(), Unfit> {
    let endian = layout.endian;
    let from = out.len();
    out.push(record.tag.0);
    match layout.width {
        Width::Eight => out.extend_from_slice(&endian.put_u64(record.address)),
        Width::Four => match u32::try_from(record.address) {
            Ok(address) => out.extend_from_slice(&endian.put_u32(address)),
            Err(_) => {
                out.truncate(from);
                return Err(Unfit::Address(record.address));
            }
        },
    }
    match record.body {
        Body::Access { size } => {
            out.push(size);
            out.extend_from_slice(&endian.put_u64(record.thread));
        }
        Body::Remove => out.extend_from_slice(&endian.put_u64(record.thread)),
        Body::Add { elemsize, elemcount, name } => {
            let Ok(name_bytes) = u32::try_from(name.len()) else {
                out.truncate(from);
                return Err(Unfit::NameBytes(name.len()));
            };
            out.extend_from_slice(&endian.put_u64(record.thread));
            for number in [elemsize, elemcount, name_bytes] {
                out.extend_from_slice(&endian.put_u32(number));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, Tag};

    #[test]
    fn written_records_read_back_in_every_layout() {
        let bodies = [
            (Kind::Read, Body::Access { size: 255 }),
            (Kind::RttaAdd, Body::Add { elemsize: 1, elemcount: u32::MAX, name: b"a\0b" }),
            (Kind::RttaRemove, Body::Remove),
        ];
        for layout in Layout::ALL {
            for (kind, body) in bodies {
                let record = Record { tag: Tag::new(kind, true, false), address: 0x1234_5678, thread: u64::MAX, body };
                let mut bytes = Vec::new();
                encode(&record, layout, &mut bytes).unwrap();
                assert_eq!(crate::parse(&bytes, layout), Ok((record, bytes.len())));
            }
        }
    }

    #[test]
    fn an_address_too_wide_is_refused_and_leaves_nothing_behind() {
        let layout = Layout { width: Width::Four, ..Layout::default() };
        let record = Record { tag: Tag(0), address: 1 << 32, thread: 0, body: Body::Access { size: 1 } };
        let mut bytes = Vec::new();
        assert_eq!(encode(&record, layout, &mut bytes), Err(Unfit::Address(1 << 32)));
        assert!(bytes.is_empty());
        let error = Writer::new(Vec::new(), layout).write(&record).unwrap_err();
        assert!(error.to_string().starts_with("record 0: address 0x100000000 does not fit"), "{error}");
    }
}
