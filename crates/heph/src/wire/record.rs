//! The contents of the wire: packets, attributes and their values, borrowed from the bytes.

use std::fmt;

use anytrace_core::Limits;
use anytrace_core::bytes::array_at;

/// First four bytes of an event packet (seed, "Event Packet").
pub const EVENT_MAGIC: u32 = 0xC1FC_1FB7;

/// Most array levels that recovery searches: `[[[[u64]]]]` has three above the innermost.
pub(crate) const NESTING_MAX: u8 = 4;

/// What a reader must know to read a packet, and a writer to write one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Bytes of the longest packet that is read or written. The default is that of [`Limits`].
    pub packet_bytes_max: u64,
}

impl Default for Layout {
    fn default() -> Self {
        Self { packet_bytes_max: Limits::default().record_bytes_max }
    }
}

/// One packet of either kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Record<'a> {
    /// An option of the entire trace.
    Metadata(Metadata<'a>),
    /// An event.
    Event(Event<'a>),
}

/// An option of the entire trace, such as its epoch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Metadata<'a> {
    pub(crate) option: &'a [u8],
    pub(crate) value: &'a [u8],
}

impl<'a> Metadata<'a> {
    /// The option's name; it may be empty.
    pub fn option(&self) -> &'a str {
        text(self.option)
    }

    /// The option's value as stored in the packet.
    pub fn value(&self) -> &'a [u8] {
        self.value
    }

    /// The epoch in nanoseconds since 1970, if the option is `epoch`.
    pub fn epoch_ns(&self) -> Option<u64> {
        if self.option != b"epoch" {
            return None;
        }
        self.value.try_into().ok().map(u64::from_be_bytes)
    }
}

impl fmt::Debug for Metadata<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata").field("option", &self.option()).field("value", &self.value).finish()
    }
}

/// The fixed fields of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Stream, in practice a thread.
    pub stream: u32,
    /// Number of the event in its stream, modulo 2^32.
    pub counter: u32,
    /// Substream: 0, or the task that runs on the stream.
    pub substream: u64,
    /// Start, in nanoseconds since the trace's epoch.
    pub start_ns: u64,
    /// End, in nanoseconds since the trace's epoch.
    pub end_ns: u64,
}

impl Header {
    /// Reads the fixed fields of an event packet (seed, "Event Packet": bits 64 to 319).
    #[inline(always)]
    pub(crate) fn from_packet(head: &[u8; 42]) -> Self {
        let [_, _, _, _, _, _, _, _, rest @ ..] = head;
        let word = |at: usize| rest[at..].first_chunk().copied().map_or(0, u64::from_be_bytes);
        let half = |at: usize| rest[at..].first_chunk().copied().map_or(0, u32::from_be_bytes);
        Self { stream: half(0), counter: half(4), substream: word(8), start_ns: word(16), end_ns: word(24) }
    }
}

/// An event: something that occupied time on a stream.
#[derive(Clone, Copy, PartialEq)]
pub struct Event<'a> {
    /// The fixed fields.
    pub header: Header,
    pub(crate) description: &'a [u8],
    pub(crate) attributes: &'a [u8],
    pub(crate) nesting: &'a [u8],
}

impl<'a> Event<'a> {
    /// The description of the event; it may be empty.
    pub fn description(&self) -> &'a str {
        text(self.description)
    }

    /// The attributes in wire order; names may repeat.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes { bytes: self.attributes, nesting: self.nesting.iter() }
    }

    /// True when arrays of arrays, which the format cannot express, were recovered in it.
    pub fn is_recovered(&self) -> bool {
        !self.nesting.is_empty()
    }
}

impl fmt::Debug for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attributes: Vec<_> = self.attributes().collect();
        let mut event = f.debug_struct("Event");
        event.field("header", &self.header).field("description", &self.description());
        event.field("attributes", &attributes).field("is_recovered", &self.is_recovered()).finish()
    }
}

/// A name and a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attribute<'a> {
    /// Name; it may be empty or repeat.
    pub name: &'a str,
    /// Value.
    pub value: Value<'a>,
}

/// A value of one of the format's types.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Type 1.
    Unsigned(u64),
    /// Type 2.
    Signed(i64),
    /// Type 3; the bits are preserved, including those of a NaN.
    Float(f64),
    /// Type 4.
    Text(&'a str),
    /// Types 0x81 to 0x84.
    Array(Array<'a>),
}

/// The type of a value that is not an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scalar {
    /// `u64`, type 1.
    Unsigned,
    /// `i64`, type 2.
    Signed,
    /// `f64`, type 3.
    Float,
    /// `str`, type 4.
    Text,
}

impl Scalar {
    /// The type for the low bits of a type byte.
    pub(crate) fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            1 => Some(Self::Unsigned),
            2 => Some(Self::Signed),
            3 => Some(Self::Float),
            4 => Some(Self::Text),
            _ => None,
        }
    }

    /// The type byte, without the array marker.
    pub(crate) fn byte(self) -> u8 {
        match self {
            Self::Unsigned => 1,
            Self::Signed => 2,
            Self::Float => 3,
            Self::Text => 4,
        }
    }

    /// `u64`, `i64`, `f64` or `str`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unsigned => "u64",
            Self::Signed => "i64",
            Self::Float => "f64",
            Self::Text => "str",
        }
    }
}

/// An array as stored in the packet.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Array<'a> {
    scalar: Scalar,
    depth: u8,
    count: u16,
    bytes: &'a [u8],
}

impl<'a> Array<'a> {
    /// Type of the innermost elements.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// Levels of arrays inside this one: 0 for every array that the format can express.
    pub fn depth(&self) -> u8 {
        self.depth
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        usize::from(self.count)
    }

    /// True if there are no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The elements; arrays again where [`Self::depth`] is above 0.
    pub fn values(&self) -> Values<'a> {
        Values { scalar: self.scalar, depth: self.depth, left: self.count, bytes: self.bytes }
    }
}

impl fmt::Debug for Array<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.values()).finish()
    }
}

/// The elements of an [`Array`].
#[derive(Debug, Clone)]
pub struct Values<'a> {
    scalar: Scalar,
    depth: u8,
    left: u16,
    bytes: &'a [u8],
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Value<'a>> {
        self.left = self.left.checked_sub(1)?;
        let (value, used) = match self.depth.checked_sub(1) {
            None => read_scalar(self.scalar, self.bytes)?,
            Some(depth) => {
                let (array, used) = read_array(self.scalar, depth, self.bytes)?;
                (Value::Array(array), used)
            }
        };
        self.bytes = self.bytes.get(used..)?;
        Some(value)
    }
}

/// The attributes of an event that has been parsed, so every length in them is known to fit.
#[derive(Debug, Clone)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    nesting: std::slice::Iter<'a, u8>,
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        if self.bytes.is_empty() {
            return None;
        }
        let depth = self.nesting.next().copied().unwrap_or(0);
        let name_bytes = usize::from(u16::from_be_bytes(array_at(self.bytes, 0)?));
        let name = self.bytes.get(2..2 + name_bytes)?;
        let kind = *self.bytes.get(2 + name_bytes)?;
        let rest = self.bytes.get(3 + name_bytes..)?;
        let scalar = Scalar::from_byte(kind & 0x7f)?;
        let (value, used) = if kind & 0x80 == 0 {
            read_scalar(scalar, rest)?
        } else {
            let (array, used) = read_array(scalar, depth, rest)?;
            (Value::Array(array), used)
        };
        self.bytes = rest.get(used..)?;
        Some(Attribute { name: text(name), value })
    }
}

impl<'a> Attributes<'a> {
    /// The attributes at the start of any bytes; they end where the bytes are none.
    pub(crate) fn unchecked(bytes: &'a [u8]) -> Self {
        Self { bytes, nesting: [].iter() }
    }
}

fn read_scalar(scalar: Scalar, bytes: &[u8]) -> Option<(Value<'_>, usize)> {
    Some(match scalar {
        Scalar::Unsigned => (Value::Unsigned(u64::from_be_bytes(array_at(bytes, 0)?)), 8),
        Scalar::Signed => (Value::Signed(i64::from_be_bytes(array_at(bytes, 0)?)), 8),
        Scalar::Float => (Value::Float(f64::from_be_bytes(array_at(bytes, 0)?)), 8),
        Scalar::Text => {
            let length = usize::from(u16::from_be_bytes(array_at(bytes, 0)?));
            (Value::Text(text(bytes.get(2..2 + length)?)), 2 + length)
        }
    })
}

fn read_array(scalar: Scalar, depth: u8, bytes: &[u8]) -> Option<(Array<'_>, usize)> {
    let used = array_bytes(scalar, depth, bytes)?;
    let count = u16::from_be_bytes(array_at(bytes, 0)?);
    Some((Array { scalar, depth, count, bytes: bytes.get(2..used)? }, used))
}

/// How many bytes an array takes, its count included, if it fits; recursion is bounded by `depth`, which
/// is at most [`NESTING_MAX`].
pub(crate) fn array_bytes(scalar: Scalar, depth: u8, bytes: &[u8]) -> Option<usize> {
    let count = usize::from(u16::from_be_bytes(array_at(bytes, 0)?));
    if depth == 0 && scalar != Scalar::Text {
        let end = 2 + 8 * count;
        return (end <= bytes.len()).then_some(end);
    }
    let mut at = 2;
    for _ in 0..count {
        let rest = bytes.get(at..)?;
        at += match depth.checked_sub(1) {
            Some(depth) => array_bytes(scalar, depth, rest)?,
            None => {
                let length = usize::from(u16::from_be_bytes(array_at(rest, 0)?));
                rest.get(2..2 + length)?.len() + 2
            }
        };
    }
    Some(at)
}

/// Text that the parser checked to be UTF-8.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
