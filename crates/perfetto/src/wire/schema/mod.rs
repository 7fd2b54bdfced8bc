//! The format's definition as tables: the names and kinds of the fields of the messages this crate knows.

pub(crate) mod messages;
mod packet;

pub(crate) use packet::TRACE_PACKET;

use super::numbers::is_number_field;
use super::proto::{Fields, Malformed, Value, varint};

/// Deepest nesting of messages that is looked into; what is deeper is bytes.
pub(crate) const DEPTH_MAX: usize = 24;

/// What a field holds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A varint: unsigned, a truth value or an enumerator.
    Unsigned,
    /// A varint in two's complement.
    Signed,
    /// `double`.
    Double,
    /// `fixed64` or `fixed32`.
    Fixed,
    Text,
    /// Bytes, packed numbers, or a message of which no fields are known.
    Bytes,
    Message(&'static Message),
}

/// A field of a message.
pub(crate) struct Row {
    pub(crate) number: u32,
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
}

/// A message.
pub(crate) struct Message {
    /// In the order of their numbers.
    pub(crate) fields: &'static [Row],
    /// For small numbers: the wire types that the field may have, a bit each, and [`LOOK`]. All for numbers that are not
    /// known.
    short: [u8; SHORT],
}

/// Numbers of fields below this are looked up in a table. The greatest of `TrackEvent` is 54.
const SHORT: usize = 64;

/// The bytes of a field of wire type 2 need a look.
const LOOK: u8 = 1 << 7;

/// Any wire type that is no group.
const ANY: u8 = 1 | 1 << 1 | 1 << 2 | 1 << 5;

const fn row(number: u32, name: &'static str, kind: Kind) -> Row {
    Row { number, name, kind }
}

impl Message {
    const fn of(fields: &'static [Row]) -> Self {
        let mut short = [ANY; SHORT];
        let mut at = 0;
        while at < fields.len() {
            if (fields[at].number as usize) < SHORT {
                short[fields[at].number as usize] = match fields[at].kind {
                    // A number, or several that are packed.
                    Kind::Unsigned | Kind::Signed => 1 | 1 << 2 | LOOK,
                    Kind::Double | Kind::Fixed => 1 << 1 | 1 << 2 | 1 << 5,
                    Kind::Text | Kind::Bytes => 1 << 2,
                    Kind::Message(_) => 1 << 2 | LOOK,
                };
            }
            at += 1;
        }
        Self { fields, short }
    }

    /// The field of a number.
    pub(crate) fn field(&self, number: u32) -> Option<&'static Row> {
        // Most messages number their fields from 1 on.
        let guess = self.fields.get((number as usize).wrapping_sub(1)).filter(|row| row.number == number);
        guess.or_else(|| {
            let at = self.fields.binary_search_by_key(&number, |row| row.number).ok()?;
            self.fields.get(at)
        })
    }

    /// The field of a name.
    pub(crate) fn named(&self, name: &str) -> Option<&'static Row> {
        self.fields.iter().find(|row| row.name == name)
    }
}

/// Numbers of `TracePacket` below this are looked up in a table of bits.
const BITS: usize = 192;

const KNOWN: [bool; BITS] = {
    let mut known = [false; BITS];
    let mut at = 0;
    while at < TRACE_PACKET.fields.len() {
        let number = TRACE_PACKET.fields[at].number as usize;
        if number < BITS {
            known[number] = true;
        }
        at += 1;
    }
    known
};

/// True for the data of `TracePacket` in the format's definition: fields with a length.
#[inline]
pub(crate) fn is_known(number: u32) -> bool {
    KNOWN.get(number as usize).copied().unwrap_or(false) && !is_number_field(number)
}

/// The name of a field of `TracePacket`.
pub(crate) fn packet_field_name(number: u32) -> &'static str {
    TRACE_PACKET.field(number).map_or("unknown field", |row| row.name)
}

/// The name of a packet's kind: that of its data.
pub(crate) fn kind_name(number: u32, has_interned: bool, has_defaults: bool) -> &'static str {
    match (TRACE_PACKET.field(number), has_interned, has_defaults) {
        (Some(row), ..) => row.name,
        (None, true, _) if number == 0 => "interned_data",
        (None, _, true) if number == 0 => "trace_packet_defaults",
        (None, ..) if number == 0 => "empty",
        (None, ..) => "unknown",
    }
}

/// A field in the messages of a packet that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BadField {
    /// Its place, from the start of the packet's body.
    pub(crate) at: usize,
    /// The names of the messages and fields that lead to it, from the outermost.
    pub(crate) path: String,
    pub(crate) expected: &'static str,
}

/// Looks for a field that cannot be read in the messages of a packet that are known; `None` if all can.
pub(crate) fn validate(body: &[u8]) -> Option<BadField> {
    if is_plain(body, &TRACE_PACKET, 0) { None } else { validate_message(body, &TRACE_PACKET, 0) }
}

/// True if a `TrackEvent` in a packet has no field that cannot be read; false where it takes [`validate`] to know.
#[inline]
pub(crate) fn is_plain_track_event(event: &[u8]) -> bool {
    is_plain(event, &messages::TRACK_EVENT, 1)
}

/// True if all fields of a message can be read, and those in it, as nearly all packets are; false where it takes a closer
/// look to know.
fn is_plain(bytes: &[u8], message: &Message, depth: usize) -> bool {
    let mut at = 0;
    while let Some(&tag) = bytes.get(at) {
        let wire = tag & 7;
        // Tags of one or two bytes.
        let (number, value) = match bytes.get(at + 1) {
            Some(&second @ 1..0x80) if tag >= 0x80 => (u32::from(second) << 4 | u32::from(tag & 0x7f) >> 3, at + 2),
            _ => (u32::from(tag >> 3), at + 1),
        };
        let allowed = message.short.get(number as usize).copied().unwrap_or(0);
        if number == 0 || (tag >= 0x80 && value == at + 1) || allowed & ANY & 1 << wire == 0 {
            let Some(next) = plain_other(bytes, at, message, depth) else { return false };
            at = next;
            continue;
        }
        let next = match wire {
            0 => varint(bytes, value).map(|(_, next)| next),
            2 => match bytes_at(bytes, value) {
                Some((inside, next)) if allowed & LOOK == 0 || inside.is_empty() => Some(next),
                Some((inside, next)) => is_plain_inside(inside, message, number, depth).then_some(next),
                None => None,
            },
            1 => Some(value + 8).filter(|&next| next <= bytes.len()),
            _ => Some(value + 4).filter(|&next| next <= bytes.len()),
        };
        let Some(next) = next else { return false };
        at = next;
    }
    true
}

/// A field with a longer tag, or of another wire type; where it ends.
#[inline(never)]
fn plain_other(bytes: &[u8], at: usize, message: &Message, depth: usize) -> Option<usize> {
    let (tag, next) = varint(bytes, at)?;
    let number = u32::try_from(tag >> 3).ok().filter(|number| (1..1 << 29).contains(number))?;
    let row = message.field(number);
    match (tag & 7, row.map(|row| row.kind)) {
        (0, None | Some(Kind::Unsigned | Kind::Signed)) => varint(bytes, next).map(|(_, next)| next),
        (1, None | Some(Kind::Double | Kind::Fixed)) => Some(next + 8).filter(|&next| next <= bytes.len()),
        (2, None | Some(Kind::Text | Kind::Bytes | Kind::Double | Kind::Fixed)) => {
            bytes_at(bytes, next).map(|(_, next)| next)
        }
        (2, Some(Kind::Unsigned | Kind::Signed)) => {
            let (inside, next) = bytes_at(bytes, next)?;
            is_packed(inside).then_some(next)
        }
        (2, Some(Kind::Message(inner))) if depth < DEPTH_MAX => {
            let (inside, next) = bytes_at(bytes, next)?;
            is_plain(inside, inner, depth + 1).then_some(next)
        }
        _ => None,
    }
}

/// The bytes of a field of a number or a message.
#[inline(never)]
fn is_plain_inside(inside: &[u8], message: &Message, number: u32, depth: usize) -> bool {
    match message.field(number).map(|row| row.kind) {
        Some(Kind::Message(inner)) => depth < DEPTH_MAX && is_plain(inside, inner, depth + 1),
        _ => is_packed(inside),
    }
}

/// A length and that many bytes; and where they end.
#[inline(always)]
fn bytes_at(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (length, start) = varint(bytes, at)?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    Some((bytes.get(start..end)?, end))
}

fn validate_message(bytes: &[u8], message: &Message, depth: usize) -> Option<BadField> {
    let mut fields = Fields::of(bytes);
    for field in fields.by_ref() {
        let Some(row) = message.field(field.number) else { continue };
        let bad = |expected| Some(BadField { at: field.at, path: row.name.to_owned(), expected });
        match (row.kind, field.value) {
            (Kind::Message(inner), Value::Bytes(inside)) if depth < DEPTH_MAX => {
                if let Some(mut found) = validate_message(inside, inner, depth + 1) {
                    found.at += field.value_at;
                    found.path = format!("{}.{}", row.name, found.path);
                    return Some(found);
                }
            }
            // Packed: several numbers in one field.
            (Kind::Unsigned | Kind::Signed, Value::Bytes(inside)) if is_packed(inside) => {}
            (Kind::Unsigned | Kind::Signed, Value::Varint(_)) => {}
            (Kind::Unsigned | Kind::Signed, _) => return bad("a varint"),
            (Kind::Double | Kind::Fixed, Value::Varint(_)) => return bad("eight bytes"),
            (Kind::Text | Kind::Bytes | Kind::Message(_), value) if !matches!(value, Value::Bytes(_)) => {
                return bad("a length and bytes");
            }
            _ => {}
        }
    }
    fields.fault().map(|fault| of_fault(fault, message))
}

fn is_packed(bytes: &[u8]) -> bool {
    let mut at = 0;
    while let Some((_, next)) = varint(bytes, at) {
        at = next;
    }
    at == bytes.len()
}

#[cold]
fn of_fault(fault: Malformed, message: &Message) -> BadField {
    let path = match message.field(fault.number) {
        Some(row) => row.name.to_owned(),
        None if fault.number == 0 => "tag".to_owned(),
        None => format!("field {}", fault.number),
    };
    BadField { at: fault.at, path, expected: fault.expected }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::record::{Record, data};

    #[test]
    fn fields_are_in_the_order_of_their_numbers() {
        fn check(message: &Message, depth: usize) {
            assert!(message.fields.is_sorted_by(|a, b| a.number < b.number));
            for row in message.fields.iter().filter(|_| depth < 5) {
                assert_eq!(message.named(row.name).map(|found| found.number), Some(row.number));
                if let Kind::Message(inner) = row.kind {
                    check(inner, depth + 1);
                }
            }
        }
        check(&TRACE_PACKET, 0);
        assert!(
            TRACE_PACKET
                .fields
                .iter()
                .all(|row| is_number_field(row.number) || row.number > 191 || is_known(row.number))
        );
        assert!(!is_known(8) && !is_known(200) && is_known(11));
    }

    #[test]
    fn a_bad_field_has_its_path_and_place() {
        let found = validate(b"\x40\x05\x5a\x06\x48\x01\x22\x02\x52\x05").unwrap_or_else(|| panic!("it is bad"));
        assert_eq!((found.at, found.path.as_str()), (8, "track_event.debug_annotations.name"));
        let found = validate(b"\x5a\x03\x4a\x01\x07").map(|found| (found.at, found.path));
        assert_eq!(found, None, "a packed type is legal");
        let found = validate(b"\x5a\x02\xf8\x80").map(|found| (found.at, found.path));
        assert_eq!(found, Some((2, "track_event.tag".to_owned())));
        assert_eq!(validate(b"\x5a\x04\x48\x01\x5a\x00"), None, "an empty packed field");
        assert_eq!(validate(b"\x5a\x03\xf8\x3e\x01"), None, "a field that nobody knows");
    }

    #[test]
    fn what_is_plain_is_valid() {
        // Random bytes that look like fields, and real ones with changed bytes.
        let mut state = 88_172_645_463_325_252_u64;
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 24) % below
        };
        let real = b"\x40\x05\x50\x07\x5a\x16\x48\x01\x50\x03\x58\x65\x22\x06\x52\x01a\x18\x80\x01\xfa\x01\x02\x05\x06\x62\x01\x07";
        let (mut plain, mut odd, mut events) = (0, 0, 0);
        for _ in 0..200_000 {
            let mut bytes = real.to_vec();
            for _ in 0..random(4) {
                let at = usize::try_from(random(bytes.len() as u64)).unwrap();
                bytes[at] = u8::try_from(random(256)).unwrap();
            }
            bytes.truncate(usize::try_from(random(bytes.len() as u64 + 8)).unwrap());
            let found = validate_message(&bytes, &TRACE_PACKET, 0);
            assert_eq!(validate(&bytes), found, "{bytes:x?}");
            // The same of a packet that has nothing else to look at.
            if let Ok(record) = Record::new(&bytes)
                && record.kind() == data::TRACK_EVENT
                && !record.head.is_mixed
                && record.interned().is_none()
                && record.defaults().is_none()
                && is_plain_track_event(record.data())
            {
                events += 1;
                assert_eq!(found, None, "{bytes:x?}");
            }
            (plain, odd) = (plain + u32::from(is_plain(&bytes, &TRACE_PACKET, 0)), odd + u32::from(found.is_some()));
        }
        assert!(plain > 10_000 && odd > 10_000 && events > 1000, "{plain} {odd} {events}");
        assert!(is_plain(real, &TRACE_PACKET, 0));
    }

    #[test]
    fn kinds_have_names() {
        assert_eq!(kind_name(11, true, true), "track_event");
        assert_eq!((kind_name(0, true, true), kind_name(0, false, true)), ("interned_data", "trace_packet_defaults"));
        assert_eq!((kind_name(0, false, false), kind_name(999, true, false)), ("empty", "unknown"));
    }
}
