//! Records to bytes.

use anytrace_core::{Endian, Target};

use crate::wire::record::{
    BasicBody, BasicRecord, Body, CustomTime, FUNCTION_BYTES, Function, Header, METADATA_BYTES, Metadata, Orders,
};

/// Appends the 32 bytes of a header.
pub(crate) fn put_header(out: &mut Vec<u8>, header: &Header, endian: Endian) {
    out.extend_from_slice(&endian.put_u16(header.version));
    out.extend_from_slice(&endian.put_u16(header.type_code));
    out.extend_from_slice(&endian.put_u32(header.flags));
    out.extend_from_slice(&endian.put_u64(header.cycle_frequency));
    out.extend_from_slice(&endian.put_u64(header.buffer_size));
    out.extend_from_slice(&endian.put_u64(header.reserved));
}

/// Appends the eight bytes of a function record. The id is cut to 28 bits.
#[inline]
pub(crate) fn put_function(out: &mut Vec<u8>, function: &Function, layout: Orders) {
    let mut bytes = [0; FUNCTION_BYTES];
    let (word, delta) = bytes.split_at_mut(4);
    word.copy_from_slice(&layout.put_function_word(function.kind, function.id));
    delta.copy_from_slice(&layout.endian.put_u32(function.delta));
    out.extend_from_slice(&bytes);
}

/// Appends a metadata record: 16 bytes and the payload. Reserved bytes that are missing are 0.
pub(crate) fn put_metadata(out: &mut Vec<u8>, metadata: &Metadata<'_>, layout: Orders) {
    let (start, endian) = (out.len(), layout.endian);
    out.push(layout.metadata_byte(metadata.body.number()));
    let mut data: &[u8] = &[];
    match metadata.body {
        Body::EndOfBuffer => {}
        Body::NewBuffer { thread: number } | Body::Pid { process: number } => {
            out.extend_from_slice(&endian.put_i32(number))
        }
        Body::NewCpu { cpu, tsc } => {
            out.extend_from_slice(&endian.put_u16(cpu));
            out.extend_from_slice(&endian.put_u64(tsc));
        }
        Body::TscWrap { tsc: number }
        | Body::CallArgument { value: number }
        | Body::BufferExtents { bytes: number } => {
            out.extend_from_slice(&endian.put_u64(number));
        }
        Body::WallTime { seconds, micros } => {
            out.extend_from_slice(&endian.put_u64(seconds));
            out.extend_from_slice(&endian.put_u32(micros));
        }
        Body::CustomEvent { time, data: payload } => {
            data = payload;
            out.extend_from_slice(&endian.put_i32(size_of_payload(data)));
            match time {
                CustomTime::Delta { delta } => out.extend_from_slice(&endian.put_i32(delta)),
                CustomTime::Absolute { tsc } => out.extend_from_slice(&endian.put_u64(tsc)),
                CustomTime::OnCpu { tsc, cpu } => {
                    out.extend_from_slice(&endian.put_u64(tsc));
                    out.extend_from_slice(&endian.put_u16(cpu));
                }
            }
        }
        Body::TypedEvent { delta, event_type, data: payload } => {
            data = payload;
            out.extend_from_slice(&endian.put_i32(size_of_payload(data)));
            out.extend_from_slice(&endian.put_i32(delta));
            out.extend_from_slice(&endian.put_u16(event_type));
        }
    }
    let room = (start + METADATA_BYTES).saturating_sub(out.len());
    out.extend_from_slice(metadata.reserved.get(..room).unwrap_or(metadata.reserved));
    out.resize(start + METADATA_BYTES, 0);
    out.extend_from_slice(data);
}

/// Payloads come from records whose size was an `i32`, or are bounded by the limit on records.
fn size_of_payload(data: &[u8]) -> i32 {
    i32::try_from(data.len()).unwrap_or(i32::MAX)
}

/// Appends the 32 bytes of a Basic record.
pub(crate) fn put_basic(out: &mut Vec<u8>, record: &BasicRecord, endian: Endian) {
    match record.body {
        BasicBody::Function { kind, cpu, tsc } => {
            out.extend_from_slice(&[0, 0, cpu, kind as u8]);
            out.extend_from_slice(&endian.put_i32(record.id));
            out.extend_from_slice(&endian.put_u64(tsc));
            out.extend_from_slice(&endian.put_u32(record.thread));
            out.extend_from_slice(&endian.put_u32(record.process));
        }
        BasicBody::Argument { value, pad } => {
            out.extend_from_slice(&endian.put_u16(1));
            out.extend_from_slice(&pad);
            out.extend_from_slice(&endian.put_i32(record.id));
            out.extend_from_slice(&endian.put_u32(record.thread));
            out.extend_from_slice(&endian.put_u32(record.process));
            out.extend_from_slice(&endian.put_u64(value));
        }
    }
    out.extend_from_slice(&record.padding);
}

/// How many bytes are buffered before they are written.
const FLUSH_BYTES: usize = 128 * 1024;

/// Buffers output for a [`Target`] and patches what was written before.
pub(crate) struct Out<'t> {
    target: &'t mut dyn Target,
    start: u64,
    base: u64,
    /// Append to this, then call [`Self::settle`].
    pub(crate) buffer: Vec<u8>,
}

impl<'t> Out<'t> {
    pub(crate) fn new(target: &'t mut dyn Target) -> Self {
        let start = target.position();
        Self { target, start, base: 0, buffer: Vec::with_capacity(FLUSH_BYTES + 4096) }
    }

    /// Bytes written so far, including buffered ones.
    pub(crate) fn position(&self) -> u64 {
        self.base + self.buffer.len() as u64
    }

    /// Writes the buffer once it is large enough.
    #[inline]
    pub(crate) fn settle(&mut self) -> std::io::Result<()> {
        if self.buffer.len() >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    pub(crate) fn flush(&mut self) -> std::io::Result<()> {
        self.target.write_all(&self.buffer)?;
        self.base += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Appends a piece of any size.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.settle()
    }

    /// Replaces bytes written before.
    pub(crate) fn patch(&mut self, position: u64, bytes: &[u8]) -> std::io::Result<()> {
        if position < self.base {
            self.flush()?;
            return self.target.patch(self.start + position, bytes);
        }
        let at = usize::try_from(position - self.base).unwrap_or(usize::MAX);
        match self.buffer.get_mut(at..at.saturating_add(bytes.len())) {
            Some(place) => {
                place.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(std::io::ErrorKind::InvalidInput.into()),
        }
    }
}
