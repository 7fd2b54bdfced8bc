//! Packets to bytes.

use std::io::Write;

use anytrace_core::Error;

use crate::wire::parse::{EVENT_MAGIC, METADATA_MAGIC};
use crate::wire::record::{Header, Layout, Record, Scalar};
use crate::wire::session::THREAD_OPTION;

/// Writes a trace, packet by packet. [`Self::finish`] writes what is still in memory, at most 64 KiB.
///
/// ```
/// use anytrace_heph::{Header, Writer};
///
/// let mut writer = Writer::new(Vec::new());
/// writer.epoch(1_610_113_734_118_010_000)?;
/// let header = Header { stream: 1, start_ns: 100, end_ns: 200, ..Header::default() };
/// writer.event(&header, "poll").unsigned("n", 3).texts("names", &["a", "b"]).finish()?;
/// assert_eq!(writer.finish()?.len(), 23 + 74);
/// # Ok::<(), anytrace_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
    layout: Layout,
    packet: Builder,
    buffer: Vec<u8>,
    records: u64,
}

/// How much is gathered before it is written.
const BUFFER_BYTES: usize = 1 << 16;

impl<W: Write> Writer<W> {
    /// Starts an empty trace of the default layout.
    pub fn new(to: W) -> Self {
        Self::with_layout(to, &Layout::default())
    }

    /// Starts an empty trace whose packets are not longer than a layout allows.
    pub fn with_layout(to: W, layout: &Layout) -> Self {
        let buffer = Vec::with_capacity(BUFFER_BYTES);
        Self { to, layout: *layout, packet: Builder::default(), buffer, records: 0 }
    }

    /// Writes a packet. An event whose arrays of arrays were recovered is written byte for byte, so only a reader that
    /// recovers them (`recover` of the options) reads it.
    ///
    /// # Errors
    /// Unsupported when the packet is longer than the layout allows; nothing of it is written then. I/O.
    pub fn write(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let rest = match record {
            Record::Metadata(metadata) => {
                self.packet.start_metadata(metadata.option());
                metadata.value
            }
            Record::Event(event) => {
                self.packet.start_event(&event.header, event.description());
                event.attributes
            }
        };
        self.packet.bytes.extend_from_slice(rest);
        self.finish_packet()
    }

    /// Sets the zero of all times, in nanoseconds since 1970.
    ///
    /// # Errors
    /// I/O.
    pub fn epoch(&mut self, ns: u64) -> Result<(), Error> {
        self.option("epoch", &ns.to_be_bytes())
    }

    /// Sets any option.
    ///
    /// # Errors
    /// Unsupported when name or packet are too long, I/O.
    pub fn option(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        self.packet.start_metadata(name);
        self.packet.bytes.extend_from_slice(value);
        self.finish_packet()
    }

    /// Names the thread of a stream, for readers that know [`crate::THREAD_OPTION`].
    ///
    /// # Errors
    /// As [`Self::option`].
    pub fn thread(&mut self, stream: u32, name: &str) -> Result<(), Error> {
        self.packet.start_metadata(THREAD_OPTION);
        self.packet.attribute("stream", Scalar::Unsigned, false);
        self.packet.word(stream.into());
        self.packet.attribute("name", Scalar::Text, false);
        self.packet.text(name);
        self.finish_packet()
    }

    /// Starts an event.
    pub fn event(&mut self, header: &Header, description: &str) -> EventWriter<'_, W> {
        self.packet.start_event(header, description);
        EventWriter { writer: self }
    }

    /// Writes what is still in memory, flushes the destination and returns it.
    ///
    /// # Errors
    /// I/O.
    pub fn finish(mut self) -> Result<W, Error> {
        self.flush_buffer()?;
        self.to.flush()?;
        Ok(self.to)
    }

    fn finish_packet(&mut self) -> Result<(), Error> {
        let packet = self.packet.finish()?;
        let (bytes, limit) = (packet.len() as u64, self.layout.packet_bytes_max);
        if bytes > limit {
            let number = self.records;
            return Err(Error::unsupported(format!("packet {number}: size {bytes}: the layout allows {limit} bytes")));
        }
        self.buffer.extend_from_slice(packet);
        self.records += 1;
        if self.buffer.len() >= BUFFER_BYTES { self.flush_buffer() } else { Ok(()) }
    }

    fn flush_buffer(&mut self) -> Result<(), Error> {
        let written = self.to.write_all(&self.buffer);
        self.buffer.clear();
        Ok(written?)
    }
}

/// An event being written: attributes in wire order, then [`EventWriter::finish`].
#[derive(Debug)]
#[must_use = "the event is written by `finish`"]
pub struct EventWriter<'w, W: Write> {
    writer: &'w mut Writer<W>,
}

impl<W: Write> EventWriter<'_, W> {
    /// Adds an unsigned number.
    pub fn unsigned(self, name: &str, value: u64) -> Self {
        self.words(name, Scalar::Unsigned, [value])
    }

    /// Adds a signed number.
    pub fn signed(self, name: &str, value: i64) -> Self {
        self.words(name, Scalar::Signed, [value.cast_unsigned()])
    }

    /// Adds a floating-point number; all its bits are preserved.
    pub fn float(self, name: &str, value: f64) -> Self {
        self.words(name, Scalar::Float, [value.to_bits()])
    }

    /// Adds a string.
    pub fn text(self, name: &str, value: &str) -> Self {
        self.writer.packet.attribute(name, Scalar::Text, false);
        self.writer.packet.text(value);
        self
    }

    /// Adds an array of unsigned numbers.
    pub fn unsigneds(self, name: &str, values: &[u64]) -> Self {
        self.word_array(name, Scalar::Unsigned, values.len(), values.iter().copied())
    }

    /// Adds an array of signed numbers.
    pub fn signeds(self, name: &str, values: &[i64]) -> Self {
        self.word_array(name, Scalar::Signed, values.len(), values.iter().map(|value| value.cast_unsigned()))
    }

    /// Adds an array of floating-point numbers.
    pub fn floats(self, name: &str, values: &[f64]) -> Self {
        self.word_array(name, Scalar::Float, values.len(), values.iter().map(|value| value.to_bits()))
    }

    /// Adds an array of strings.
    pub fn texts(self, name: &str, values: &[&str]) -> Self {
        self.writer.packet.attribute(name, Scalar::Text, true);
        self.writer.packet.count(values.len());
        for value in values {
            self.writer.packet.text(value);
        }
        self
    }

    /// Writes the event.
    ///
    /// # Errors
    /// Unsupported when a string or an array is too long for its length field, or the packet for the layout; I/O.
    pub fn finish(self) -> Result<(), Error> {
        self.writer.finish_packet()
    }

    fn words(self, name: &str, scalar: Scalar, values: [u64; 1]) -> Self {
        self.writer.packet.attribute(name, scalar, false);
        values.into_iter().for_each(|value| self.writer.packet.word(value));
        self
    }

    fn word_array(self, name: &str, scalar: Scalar, count: usize, values: impl Iterator<Item = u64>) -> Self {
        self.writer.packet.attribute(name, scalar, true);
        self.writer.packet.count(count);
        values.for_each(|value| self.writer.packet.word(value));
        self
    }
}

/// The bytes of one packet; stores the first length that does not fit.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub(crate) bytes: Vec<u8>,
    too_long: Option<String>,
}

impl Builder {
    pub(crate) fn start_metadata(&mut self, option: &str) {
        self.start(METADATA_MAGIC);
        self.text(option);
    }

    pub(crate) fn start_event(&mut self, header: &Header, description: &str) {
        self.start(EVENT_MAGIC);
        self.bytes.extend_from_slice(&header.stream.to_be_bytes());
        self.bytes.extend_from_slice(&header.counter.to_be_bytes());
        self.word(header.substream);
        self.word(header.start_ns);
        self.word(header.end_ns);
        self.text(description);
    }

    pub(crate) fn attribute(&mut self, name: &str, scalar: Scalar, is_array: bool) {
        self.text(name);
        self.bytes.push(scalar.byte() | if is_array { 0x80 } else { 0 });
    }

    pub(crate) fn word(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.length(text.len(), "a string of", "bytes");
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn count(&mut self, count: usize) {
        self.length(count, "an array of", "elements");
    }

    /// The finished packet.
    pub(crate) fn finish(&mut self) -> Result<&[u8], Error> {
        if let Some(what) = self.too_long.take() {
            return Err(Error::unsupported(format!("{what}: the format has 16 bits for its length")));
        }
        let Ok(size) = u32::try_from(self.bytes.len()) else {
            return Err(Error::unsupported("a packet of 4 GiB or more: the format has 32 bits for its size"));
        };
        if let Some(place) = self.bytes.get_mut(4..8) {
            place.copy_from_slice(&size.to_be_bytes());
        }
        Ok(&self.bytes)
    }

    fn start(&mut self, magic: u32) {
        self.bytes.clear();
        self.too_long = None;
        self.bytes.extend_from_slice(&magic.to_be_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
    }

    fn length(&mut self, length: usize, what: &str, unit: &str) {
        let field = u16::try_from(length).unwrap_or_else(|_| {
            self.too_long.get_or_insert_with(|| format!("{what} {length} {unit}"));
            0
        });
        self.bytes.extend_from_slice(&field.to_be_bytes());
    }
}
