//! Is this a trace of Chrome's events? Examines the first bytes as JSON.

use anytrace_core::{Confidence, Head};

use super::frame::{Frame, Stopped};
use super::json::{members, skip_space};
use super::parse::is_plausible;
use super::record::{Form, Record};

/// Byte order mark of UTF-8, which some programs write.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// Most events examined.
const EVENTS_MAX: usize = 8;

/// The answer for the first bytes of a file, at most 64 KiB.
pub(crate) fn probe(head: &Head<'_>) -> Confidence {
    let bytes = head.bytes.strip_prefix(BOM).unwrap_or(head.bytes);
    let start = skip_space(bytes, 0);
    let rest = bytes.get(start..).unwrap_or_default();
    match rest.first() {
        Some(b'[') => events(rest.get(1..).unwrap_or_default(), Confidence::No),
        Some(b'{') => {
            let inside = rest.get(1..).unwrap_or_default();
            match Frame::new().scan(inside) {
                // Only traces have the key; what is in it may be damaged.
                Stopped::Events(used) => events(inside.get(used..).unwrap_or_default(), Confidence::Likely),
                _ if form_of_object(rest) == Some(Form::Lines) => events(rest, Confidence::No),
                _ => Confidence::No,
            }
        }
        _ => Confidence::No,
    }
}

/// How sure the first events make: those that look real, against those that do not.
fn events(bytes: &[u8], without_any: Confidence) -> Confidence {
    let (mut at, mut real, mut others) = (0, 0, 0);
    while real + others < EVENTS_MAX {
        while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',') = bytes.get(at) {
            at += 1;
        }
        let rest = bytes.get(at..).unwrap_or_default();
        let mut record = Record::default();
        let end = members(rest, 0, |key, value| record.set(key, value));
        let is_real = is_plausible(&record)
            && [record.time, record.process, record.thread, record.name].iter().flatten().count() >= 2;
        match end {
            Ok(used) => {
                (real, others) = (real + usize::from(is_real), others + usize::from(!is_real));
                at += used;
            }
            // The first event may be longer than these bytes, or damaged behind what shows that it is one.
            Err(_) if is_real && real + others == 0 => return Confidence::Likely,
            Err(_) => break,
        }
    }
    match (real, others) {
        (0, 0) => without_any,
        (0, _) => without_any.min(Confidence::Maybe),
        (real, 0) if real >= 1 => Confidence::Certain,
        (real, others) if real >= others => Confidence::Likely,
        _ => Confidence::Maybe,
    }
}

/// What an object at the start of a file is: one of many events, or what is around them. `None` where these bytes
/// do not show it.
pub(crate) fn form_of_object(bytes: &[u8]) -> Option<Form> {
    let (mut has_phase, mut has_events) = (false, false);
    let end = members(bytes, 0, |key, value| {
        has_phase |= key == b"ph" && value.starts_with(b"\"");
        has_events |= key == b"traceEvents";
    });
    match (has_phase, has_events, end) {
        (_, true, _) => Some(Form::Object),
        (true, ..) => Some(Form::Lines),
        (_, _, Err(super::json::Stop::End)) => None,
        _ => Some(Form::Object),
    }
}

#[cfg(test)]
mod tests {
    use anytrace_core::Input;

    use super::*;

    fn sure(text: &str) -> Confidence {
        probe(&Input::from_bytes("x.json", text.as_bytes().to_vec()).head())
    }

    #[test]
    fn arrays_objects_and_lines_of_events_are_certain() {
        let event = r#"{"ph":"X","ts":1,"dur":2,"pid":1,"tid":1,"name":"a"}"#;
        for text in [
            format!("[{event}"),
            format!("\u{feff}\r\n [ {event},\n"),
            format!("{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"a\":[1]}},\"traceEvents\":[{event}]}}"),
            format!("{event}\n{event}\n"),
            format!("[{event},{}", &event[..20]),
        ] {
            assert_eq!(sure(&text), Confidence::Certain, "{text}");
        }
        assert_eq!(sure("{\"traceEvents\":[]}"), Confidence::Likely);
        let long = format!("[{},\"args\":{{\"a\":\"{}\"}}}}]", event.trim_end_matches('}'), "x".repeat(100_000));
        assert_eq!(sure(&long), Confidence::Likely, "longer than what is examined");
        let deep =
            format!("[{},\"args\":{}1{}}}]", event.trim_end_matches('}'), "{\"a\":".repeat(500), "}".repeat(500));
        assert_eq!(sure(&deep), Confidence::Likely, "nested too deep to be read");
        assert_eq!(sure("{\"traceEvents\": [{\"a\":1}]}"), Confidence::Maybe);
    }

    #[test]
    fn other_json_is_not_claimed() {
        for text in [
            "",
            "[",
            "[]",
            "[1,2,3]",
            "[{\"name\":\"a\",\"ts\":1}]",
            "{\"name\":\"package\",\"version\":\"1.0.0\"}",
            "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":[{\"type\":\"evented\"}]}",
            "{\"meta\":{\"interval\":1},\"libs\":[],\"threads\":[{\"samples\":{}}]}",
            "{\"resourceSpans\":[{\"scopeSpans\":[]}]}\n",
            "{\"anytrace\":\"jsonl\",\"version\":1,\"format\":\"chrome\"}\n{\"kind\":\"complete\"}\n",
            "traceEvents: [",
        ] {
            assert!(sure(text) < Confidence::Maybe, "{text}");
        }
    }
}
