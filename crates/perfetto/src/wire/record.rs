//! The contents of a trace: packets, the repeated field 1 of the message `Trace` (`perfetto/trace/trace.proto`).

pub(crate) use super::numbers::{data, field, is_number_field};
use super::proto::{Field, Fields, Value, varint};
use super::schema;

/// The format's name, in file names, codes and JSON.
pub(crate) const NAME: &str = "perfetto";

/// The tag with which each packet begins: field 1, with a length.
pub(crate) const TAG: u8 = 0x0a;

/// The field of a fault that shows that the packet's length is wrong rather than its contents.
pub(crate) const TWO_DATA: &str = "data";

/// Most bytes of a packet.
pub(crate) const BODY_BYTES_MAX: u64 = 0xffff_ffff;

/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const FLAG_CLEARED: u64 = 1;
/// `SEQ_NEEDS_INCREMENTAL_STATE`.
const FLAG_NEEDS: u64 = 2;

/// What a reader must know to read a record: nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Layout {}

/// What is wrong with bytes that are no packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The part of the packet: `tag`, `length`, or the name of a field.
    pub field: &'static str,
    /// The field's number; 0 where there is none.
    pub number: u32,
    /// What was expected.
    pub expected: &'static str,
    /// Its place, in bytes from the packet's tag.
    pub at: usize,
    /// The length of the packet from its tag in bytes, if that could be read.
    pub packet_bytes: Option<u64>,
}

/// Where a part of a packet's body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Part {
    at: u32,
    bytes: u32,
}

impl Part {
    fn of(field: &Field<'_>) -> Self {
        Self::at(field.value_at, field.value.bytes().len())
    }

    #[inline]
    fn at(at: usize, bytes: usize) -> Self {
        let short = |length| u32::try_from(length).unwrap_or(0);
        Self { at: short(at), bytes: short(bytes) }
    }

    fn get(self, body: &[u8]) -> &[u8] {
        let (at, bytes) = (self.at as usize, self.bytes as usize);
        body.get(at..).and_then(|rest| rest.get(..bytes)).unwrap_or_default()
    }
}

/// The fields that every packet may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Head {
    pub(crate) timestamp: Option<u64>,
    /// The clock that the packet names.
    pub(crate) clock: Option<u32>,
    pub(crate) sequence: u32,
    /// Earlier interned data of the sequence is invalid.
    pub(crate) is_cleared: bool,
    /// It refers to what earlier packets of the sequence say.
    pub(crate) needs_state: bool,
    /// The recorder lost packets of the sequence before this one.
    pub(crate) is_after_loss: bool,
    pub(crate) is_first: bool,
    /// The field number of its data; 0 for none.
    pub(crate) kind: u32,
    /// It has other fields that could be its data: an unknown one beside a known one.
    pub(crate) is_mixed: bool,
    data: Part,
    interned: Option<Part>,
    defaults: Option<Part>,
}

/// A packet, borrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// The message `TracePacket`.
    pub(crate) body: &'a [u8],
    /// How many bytes its length has on the wire where they are more than needed; else 0.
    pub(crate) length_bytes: u8,
    pub(crate) head: Head,
}

impl<'a> Record<'a> {
    /// A packet of the bytes of a message `TracePacket`.
    ///
    /// # Errors
    /// A field that cannot be read; places count from the start of the message.
    pub fn new(body: &'a [u8]) -> Result<Self, Fault> {
        Ok(Self { body, length_bytes: 0, head: read_head(body)? })
    }

    /// The message `TracePacket`.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    /// Its time, in nanoseconds or whatever its clock counts; on many sequences the difference to the packet before.
    pub fn timestamp(&self) -> Option<u64> {
        self.head.timestamp
    }

    /// The sequence of packets it belongs to (`trusted_packet_sequence_id`); 0 where it names none.
    pub fn sequence(&self) -> u32 {
        self.head.sequence
    }

    /// The field number of its data: 11 for `track_event`; 0 where it has none.
    pub fn kind(&self) -> u32 {
        self.head.kind
    }

    /// The name of its data: `track_event`; `unknown` for a number that is not in the format's definition.
    pub fn kind_name(&self) -> &'static str {
        schema::kind_name(self.head.kind, self.head.interned.is_some(), self.head.defaults.is_some())
    }

    /// The message that is its data.
    pub fn data(&self) -> &'a [u8] {
        self.head.data.get(self.body)
    }

    /// Where its data begin in the body.
    pub(crate) fn data_at(&self) -> usize {
        self.head.data.at as usize
    }

    pub(crate) fn interned(&self) -> Option<&'a [u8]> {
        self.head.interned.map(|part| part.get(self.body))
    }

    pub(crate) fn defaults(&self) -> Option<&'a [u8]> {
        self.head.defaults.map(|part| part.get(self.body))
    }

    /// Bytes of tag and length before the body.
    pub(crate) fn prefix_bytes(&self) -> usize {
        1 + super::proto::varint_bytes(self.body.len() as u64).max(usize::from(self.length_bytes))
    }
}

/// Reads the fields of a packet's body, down to their lengths; what is in them is not looked at.
#[inline]
pub(crate) fn read_head(body: &[u8]) -> Result<Head, Fault> {
    read_usual(body).map_or_else(|| read_any(body), Ok)
}

/// A body as nearly all are: known numbers, and one kind of data. `None` where it takes a closer look to know.
#[inline]
fn read_usual(body: &[u8]) -> Option<Head> {
    let mut head = Head::default();
    let mut at = 0;
    while let Some(&tag) = body.get(at) {
        // A tag of one or two bytes.
        let (number, value_at) = match body.get(at + 1) {
            Some(&second @ 1..0x80) if tag >= 0x80 => (u32::from(second) << 4 | u32::from(tag & 0x7f) >> 3, at + 2),
            Some(_) if tag < 0x80 => (u32::from(tag >> 3), at + 1),
            _ => return None,
        };
        let (value, next) = varint(body, value_at)?;
        at = match tag & 7 {
            0 if head.number(number, value) => next,
            2 if number > 0 && !is_number_field(number) => {
                let end = next.checked_add(usize::try_from(value).ok()?)?;
                let part = Part::at(next, body.get(next..end)?.len());
                match number {
                    field::INTERNED_DATA => head.interned = Some(part),
                    field::DEFAULTS => head.defaults = Some(part),
                    _ if head.kind != 0 => return None,
                    _ => (head.kind, head.data) = (number, part),
                }
                end
            }
            _ => return None,
        };
    }
    Some(head)
}

#[inline(never)]
fn read_any(body: &[u8]) -> Result<Head, Fault> {
    let mut head = Head::default();
    let mut fields = Fields::of(body);
    for one in fields.by_ref() {
        match (one.number, one.value) {
            (number, Value::Varint(value)) if head.number(number, value) => {}
            (field::INTERNED_DATA, Value::Bytes(_)) => head.interned = Some(Part::of(&one)),
            (field::DEFAULTS, Value::Bytes(_)) => head.defaults = Some(Part::of(&one)),
            (number, Value::Bytes(_)) if !is_number_field(number) => {
                // Packets that a damaged length covers look like data of one packet: field 1 is `ftrace_events`.
                if head.kind != 0 && schema::is_known(number) && schema::is_known(head.kind) {
                    return Err(Fault { field: TWO_DATA, ..fault(number, "one kind of data in a packet", one.at) });
                }
                head.is_mixed |= head.kind != 0;
                (head.kind, head.data) = (number, Part::of(&one));
            }
            (number, _) => {
                if is_number_field(number) || schema::is_known(number) {
                    let expected = if is_number_field(number) { "a varint" } else { "a length and bytes" };
                    return Err(fault(number, expected, one.at));
                }
                head.is_mixed |= head.kind != 0;
                head.kind = number;
            }
        }
    }
    match fields.fault() {
        None => Ok(head),
        Some(bad) => Err(fault(bad.number, bad.expected, bad.at)),
    }
}

impl Head {
    /// Takes the value of a field that is a number; false for any other field.
    #[inline(always)]
    fn number(&mut self, number: u32, value: u64) -> bool {
        match number {
            field::TIMESTAMP => self.timestamp = Some(value),
            field::SEQUENCE_ID => self.sequence = low(value),
            field::SEQUENCE_FLAGS => {
                self.is_cleared |= value & FLAG_CLEARED != 0;
                self.needs_state = value & FLAG_NEEDS != 0;
            }
            field::TIMESTAMP_CLOCK => self.clock = Some(low(value)),
            field::STATE_CLEARED => self.is_cleared |= value != 0,
            field::PACKET_DROPPED => self.is_after_loss = value != 0,
            field::FIRST_ON_SEQUENCE => self.is_first = value != 0,
            field::TRUSTED_UID | field::TRUSTED_PID | field::MACHINE_ID => {}
            _ => return false,
        }
        true
    }
}

#[cold]
fn fault(number: u32, expected: &'static str, at: usize) -> Fault {
    let field = if number == 0 { "tag" } else { schema::packet_field_name(number) };
    Fault { field, number, expected, at, packet_bytes: None }
}

/// A number of 32 bits, cut as readers of protocol buffers do.
fn low(value: u64) -> u32 {
    u32::try_from(value & u64::from(u32::MAX)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_fields_and_the_data_are_found() {
        let body = b"\x40\x05\x50\x07\x68\x03\xd0\x03\x40\x5a\x02\x48\x01\x62\x00";
        let record = Record::new(body).unwrap_or_else(|fault| panic!("{fault:?}"));
        assert_eq!((record.timestamp(), record.sequence(), record.kind()), (Some(5), 7, 11));
        assert_eq!((record.data(), record.head.clock, record.interned()), (&b"\x48\x01"[..], Some(64), Some(&b""[..])));
        assert!(record.head.is_cleared && record.head.needs_state && record.defaults().is_none());
        assert_eq!(record.kind_name(), "track_event");
    }

    #[test]
    fn what_is_usual_is_read_as_anything_is() {
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = move |below: usize| {
            // xorshift64 (Marsaglia 2003).
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state >> 24).unwrap_or(0) % below
        };
        // Fields as they are, and with changed bytes.
        let parts: [&[u8]; 12] = [
            b"\x40\x85\x80\x01",
            b"\x50\x07",
            b"\x68\x03",
            b"\xd0\x03\x40",
            b"\xf8\x04\xd8\x36",
            b"\x18\x01",
            b"\xb8\x05\x01",
            b"\x5a\x02\x48\x01",
            b"\x62\x02\x12\x00",
            b"\xda\x03\x00",
            b"\xc2\x3e\x01a",
            b"\xc8\x3e\x01",
        ];
        let (mut usual, mut any) = (0, 0);
        for _ in 0..100_000 {
            let mut body: Vec<u8> = (0..random(6)).flat_map(|_| parts[random(parts.len())]).copied().collect();
            if !body.is_empty() && random(2) == 0 {
                let at = random(body.len());
                body[at] = u8::try_from(random(256)).unwrap_or(0);
                body.truncate(random(body.len() + 8));
            }
            let found = read_any(&body);
            match read_usual(&body) {
                Some(head) => assert_eq!(Ok(head), found, "{body:x?}"),
                None => any += 1,
            }
            usual += u32::from(found.is_ok());
        }
        assert!(usual > 10_000 && any > 10_000, "{usual} {any}");
    }

    #[test]
    fn a_known_field_of_another_wire_type_is_a_fault() {
        let fault = |body| Record::new(body).map_err(|fault| (fault.field, fault.at)).err();
        assert_eq!(fault(b"\x50\x01\x42\x01x"), Some(("timestamp", 2)));
        assert_eq!(fault(b"\x58\x01"), Some(("track_event", 0)));
        assert_eq!(fault(b"\x5a\x05ab"), Some(("track_event", 0)));
        assert_eq!(fault(b"\x00"), Some(("tag", 0)));
        assert_eq!(fault(b"\xc8\x3e\x01"), None, "a field that nobody knows");
        assert_eq!(fault(b"\x5a\x00\x0a\x00"), Some(("data", 2)), "a packet has one kind of data");
    }
}
