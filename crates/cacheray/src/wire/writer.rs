//! Records to bytes, in any layout.

use std::io::Write;

use anytrace_core::Error;

use crate::wire::record::{Body, Layout, Record, Tag, Width};

/// Writes a trace, record by record. [`Self::finish`] writes what is still in memory, at most 64 KiB.
///
/// ```
/// use anytrace_cacheray::{Body, Kind, Record, Tag, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// let body = Body::Access { size: 4 };
/// writer.write(&Record { tag: Tag::new(Kind::Write, false, false), address: 0x1000, thread: 0, body })?;
/// assert_eq!(writer.finish()?.len(), 18);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    layout: Layout,
    buffer: Vec<u8>,
    records: u64,
}

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

impl<W: Write> Writer<W> {
    /// Starts a trace of the default layout: little-endian, pointers of 8 bytes.
    pub fn new(out: W) -> Self {
        Self::with_layout(out, &Layout::default())
    }

    /// Starts a trace of a layout: that of a [`Reader`](crate::Reader) to write what it reads.
    pub fn with_layout(out: W, layout: &Layout) -> Self {
        Self { out, layout: *layout, buffer: Vec::with_capacity(BUFFER_BYTES + 64), records: 0 }
    }

    /// Writes a record; flags on RTTA tags are written unchanged.
    ///
    /// # Errors
    /// Unsupported, when the layout cannot represent the address, when a type name has 4 GiB or more, or when tag and
    /// body are of different kinds; nothing of the record is written then. I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let is_fit = if record.tag.kind() == Some(record.kind()) {
            encode_head(record, self.layout, &mut self.buffer)
        } else {
            Err(Unfit::Tag(record.tag))
        };
        is_fit.map_err(|unfit| unfit.error(format_args!("record {}", self.records)))?;
        if let Body::Add { name, .. } = record.body {
            self.push_name(name)?;
        }
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.flush_buffer()?;
        }
        Ok(())
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

    /// Long names are not copied.
    fn push_name(&mut self, name: &[u8]) -> Result<(), Error> {
        if name.len() < BUFFER_BYTES {
            self.buffer.extend_from_slice(name);
            return Ok(());
        }
        self.flush_buffer()?;
        Ok(self.out.write_all(name)?)
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}

/// A field that a layout cannot hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unfit {
    Address(u64),
    NameBytes(usize),
    /// The tag is not of the body's kind.
    Tag(Tag),
}

impl Unfit {
    /// The error, naming record and field.
    #[cold]
    pub(crate) fn error(self, record: std::fmt::Arguments<'_>) -> Error {
        Error::unsupported(match self {
            Self::Address(address) => {
                format!("{record}: address {address:#x} does not fit in a pointer of 4 bytes (--to-pointer-width)")
            }
            Self::NameBytes(bytes) => {
                format!("{record}: the length of a type name, {bytes} bytes, does not fit in 32 bits")
            }
            Self::Tag(Tag(tag)) => format!("{record}: tag {tag:#04x} does not match the record's fields"),
        })
    }
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
    use crate::wire::parse::parse_record;
    use crate::wire::record::Kind;

    #[test]
    fn written_records_read_back_in_every_layout() {
        let long = vec![b'x'; 2 * BUFFER_BYTES];
        let bodies = [
            (Kind::Read, Body::Access { size: 255 }),
            (Kind::RttaAdd, Body::Add { elemsize: 1, elemcount: u32::MAX, name: b"a\0b" }),
            (Kind::RttaAdd, Body::Add { elemsize: 1, elemcount: 1, name: &long }),
            (Kind::RttaRemove, Body::Remove),
        ];
        for layout in Layout::ALL {
            for (kind, body) in bodies {
                let record = Record { tag: Tag::new(kind, true, false), address: 0x1234_5678, thread: u64::MAX, body };
                let mut writer = Writer::with_layout(Vec::new(), &layout);
                writer.write(&record).unwrap();
                let bytes = writer.finish().unwrap();
                assert_eq!(parse_record(&bytes, layout), Ok((record, bytes.len())));
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_and_leaves_nothing_behind() {
        let layout = Layout { width: Width::Four, ..Layout::default() };
        let mut writer = Writer::with_layout(Vec::new(), &layout);
        let wide = Record { tag: Tag(0), address: 1 << 32, thread: 0, body: Body::Access { size: 1 } };
        let error = writer.write(&wide).unwrap_err();
        assert!(error.to_string().starts_with("record 0: address 0x100000000 does not fit"), "{error}");
        for tag in [2, 1, 0x74] {
            let other = Record { tag: Tag(tag), body: Body::Remove, ..wide };
            let error = writer.write(&other).unwrap_err();
            assert_eq!(error.kind(), anytrace_core::Kind::Unsupported);
            assert!(error.to_string().contains("tag 0x"), "{error}");
        }
        assert!(writer.finish().unwrap().is_empty());
    }
}
