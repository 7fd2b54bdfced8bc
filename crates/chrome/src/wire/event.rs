//! What the fields of an event mean: times in nanoseconds, numbers and names of processes and threads, ids.

use super::excerpt::shown;
use super::json::{inner, members, unescape};
use super::number::{Time, microseconds, unsigned};
use super::record::{Kind, Raw, Record};

/// The number of a process or thread, which some writers give as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Id<'a> {
    /// A number from 0.
    Number(u64),
    /// Any other number or text, raw and without quotes.
    Text(&'a [u8]),
}

/// A field that an event needs and does not have, or that is of the wrong type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldFault {
    pub(crate) field: &'static str,
    pub(crate) expected: &'static str,
    /// What is there; `None` where there is nothing.
    pub(crate) found: Option<String>,
    /// Where it is, in bytes from the start of the event.
    pub(crate) at: usize,
}

/// An event whose fields are of the types that its kind needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Event<'a> {
    pub(crate) kind: Kind,
    pub(crate) start: Time,
    /// Nanoseconds; 0 for all but complete events.
    pub(crate) duration: Time,
    pub(crate) process: Id<'a>,
    pub(crate) thread: Id<'a>,
}

impl<'a> Event<'a> {
    /// Reads the fields.
    #[inline]
    pub(crate) fn of(record: &Record<'a>) -> Result<Self, Box<FieldFault>> {
        if record.phase_byte().is_none() {
            return Err(fault(record, "ph", "a string of one character", record.phase));
        }
        let kind = record.kind();
        let process = id(record, "pid", record.process)?;
        let thread = id(record, "tid", record.thread)?;
        let start = match record.time {
            Some(raw) => match microseconds(raw) {
                Some(time) => time,
                None if !kind.has_time() => Time::default(),
                None => return Err(fault(record, "ts", "microseconds", record.time)),
            },
            None if kind.has_time() => return Err(fault(record, "ts", "microseconds", None)),
            None => Time::default(),
        };
        let mut duration = Time::default();
        if kind == Kind::Complete {
            let end = |time: &Time| time.ns >= 0 && start.ns.checked_add(time.ns).is_some();
            match record.duration.and_then(microseconds).filter(end) {
                Some(time) => duration = time,
                None => return Err(fault(record, "dur", "microseconds, not negative", record.duration)),
            }
        }
        Ok(Self { kind, start, duration, process, thread })
    }

    /// Nanoseconds.
    pub(crate) fn end_ns(&self) -> i64 {
        self.start.ns.saturating_add(self.duration.ns)
    }
}

#[inline]
fn id<'a>(record: &Record<'a>, field: &'static str, raw: Raw<'a>) -> Result<Id<'a>, Box<FieldFault>> {
    let Some(raw) = raw else { return Ok(Id::Number(0)) };
    if let Some(number) = unsigned(raw) {
        return Ok(Id::Number(number));
    }
    match raw.first() {
        Some(b'"') => {
            let text = inner(raw).unwrap_or_default();
            Ok(unsigned(text).map_or(Id::Text(text), Id::Number))
        }
        Some(b'-' | b'0'..=b'9') => Ok(Id::Text(raw)),
        _ => Err(fault(record, field, "a number or a string", Some(raw))),
    }
}

#[cold]
fn fault(record: &Record<'_>, field: &'static str, expected: &'static str, raw: Raw<'_>) -> Box<FieldFault> {
    // The value is a part of the event's bytes.
    let at = raw.map_or(0, |raw| (raw.as_ptr() as usize).saturating_sub(record.text.as_ptr() as usize));
    Box::new(FieldFault { field, expected, found: raw.map(shown), at })
}

/// The name of an event, decoded; empty where it has none.
#[inline]
pub(crate) fn name<'a>(record: &Record<'a>, room: &'a mut Vec<u8>) -> &'a [u8] {
    text(record.name, room)
}

/// A value as text: strings decoded, others as they are written.
#[inline]
pub(crate) fn text<'a>(raw: Raw<'a>, room: &'a mut Vec<u8>) -> &'a [u8] {
    match raw {
        None => b"",
        Some(raw) => inner(raw).map_or(raw, |inner| unescape(inner, room)),
    }
}

/// What joins an event to others: its id, and how far that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Joint<'a> {
    /// Raw, without quotes.
    pub(crate) id: &'a [u8],
    /// True where the id is one of all processes.
    pub(crate) is_global: bool,
}

/// The id of an event. `id` and `id2.local` are of one process, `id2.global` of all.
pub(crate) fn joint<'a>(record: &Record<'a>) -> Option<Joint<'a>> {
    let plain = |raw: &'a [u8]| inner(raw).unwrap_or(raw);
    if let Some(id2) = record.id2 {
        let (mut local, mut global) = (None, None);
        // It was scanned: it is an object or there is nothing in it.
        let _ = members(id2, 0, |key, value| match key {
            b"local" => local = Some(value),
            b"global" => global = Some(value),
            _ => {}
        });
        if let Some(raw) = local.or(global) {
            return Some(Joint { id: plain(raw), is_global: local.is_none() });
        }
    }
    record.id.map(|raw| Joint { id: plain(raw), is_global: false })
}

/// A number for a key of several parts: the same in every run (FNV-1a, 64 bits). Only for keys that are sorted.
pub(crate) fn digest(parts: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for part in parts {
        for byte in part.iter().chain(&[0xff]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// The number of what an asynchronous event belongs to: category, scope, id and, for the older form, its name.
pub(crate) fn owner(record: &Record<'_>, event: &Event<'_>) -> Option<u64> {
    let joint = joint(record)?;
    let number;
    let process = match event.process {
        _ if joint.is_global => &b""[..],
        Id::Text(text) => text,
        Id::Number(value) => {
            number = value.to_le_bytes();
            &number
        }
    };
    let is_old = matches!(event.kind, Kind::AsyncStart | Kind::AsyncStep | Kind::AsyncFinish);
    let name = record.name.filter(|_| is_old).unwrap_or_default();
    let [category, scope] = [record.category, record.scope].map(Option::unwrap_or_default);
    Some(digest(&[process, category, scope, joint.id, name]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::parse::parse;
    use crate::wire::record::Layout;

    fn record(text: &str) -> Record<'_> {
        parse(text.as_bytes(), &Layout::default()).unwrap().0
    }

    #[test]
    fn fields_are_read_in_every_spelling() {
        let event = record(r#"{"ph":"X","ts":"-1.5","dur":2,"pid":"12","tid":"io \"1\""}"#);
        let event = Event::of(&event).unwrap();
        assert_eq!((event.start.ns, event.end_ns(), event.process), (-1500, 500, Id::Number(12)));
        assert_eq!(event.thread, Id::Text(br#"io \"1\""#));
        let negative = record(r#"{"ph":"i","ts":0,"tid":-1}"#);
        assert_eq!(Event::of(&negative).unwrap().thread, Id::Text(b"-1"));
        assert!(Event::of(&record(r#"{"ph":"M","pid":1}"#)).is_ok(), "metadata have no time");
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named_with_its_place() {
        for (text, field) in [
            (r#"{"ts":1}"#, "ph"),
            (r#"{"ph":1}"#, "ph"),
            (r#"{"ph":"XX"}"#, "ph"),
            (r#"{"ph":"B"}"#, "ts"),
            (r#"{"ph":"B","ts":null}"#, "ts"),
            (r#"{"ph":"X","ts":1}"#, "dur"),
            (r#"{"ph":"X","ts":1,"dur":-1}"#, "dur"),
            (r#"{"ph":"X","ts":9e15,"dur":9e15}"#, "dur"),
            (r#"{"ph":"B","ts":1,"pid":{}}"#, "pid"),
            (r#"{"ph":"B","ts":1,"tid":true}"#, "tid"),
        ] {
            let fault = Event::of(&record(text)).unwrap_err();
            assert_eq!(fault.field, field, "{text}");
            let at = text.find(&format!("\"{field}\":")).map_or(0, |at| at + field.len() + 3);
            assert_eq!(fault.at, at, "{text}");
        }
    }

    #[test]
    fn ids_are_of_a_process_or_of_all() {
        let owner_of = |text: &str| {
            let record = record(text);
            owner(&record, &Event::of(&record).unwrap())
        };
        let with = |rest: &str| owner_of(&format!(r#"{{"ph":"b","ts":1,"cat":"c",{rest}}}"#));
        assert_eq!(with(r#""pid":1"#), None);
        assert_eq!(with(r#""pid":1,"id":"0x1""#), with(r#""pid":1,"id2":{"local":"0x1"}"#));
        assert_ne!(with(r#""pid":1,"id":1"#), with(r#""pid":2,"id":1"#));
        assert_eq!(with(r#""pid":1,"id2":{"global":1}"#), with(r#""pid":2,"id2":{"global":1}"#));
        assert_ne!(with(r#""pid":1,"id":1"#), with(r#""pid":1,"id":1,"scope":"s""#));
    }
}
