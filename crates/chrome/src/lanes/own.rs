//! What the export of anytrace puts into a trace beyond its spans: the clock of the source, flags, processors, places.

use anytrace_core::span::{EdgeFlags, NO_CPU};

use crate::wire::frame::Fact;
use crate::wire::json::{inner, members, unescape};
use crate::wire::number::unsigned;
use crate::wire::record::Record;

/// The clock of a trace, from the keys beside its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Clock {
    /// True for a trace that anytrace wrote.
    pub(super) is_own: bool,
    /// Nanoseconds to add to each time, for that of the source.
    pub(super) shift_ns: i64,
    /// Nanoseconds from 1970 to time 0 of the source.
    pub(super) epoch_ns: Option<i128>,
}

impl Clock {
    pub(super) fn of(facts: &[Fact]) -> Self {
        let mut clock = Self::default();
        let value = |key: &[u8]| facts.iter().find(|fact| fact.key == key).map(|fact| fact.value.as_slice());
        // `clang -ftime-trace`: microseconds from 1970 to time 0.
        if let Some(us) = value(b"beginningOfTime").and_then(unsigned) {
            clock.epoch_ns = Some(i128::from(us) * 1000);
        }
        let Some(other) = value(b"otherData") else { return clock };
        let (mut lead, mut origin, mut unix) = (None, None, None);
        let _ = members(other, 0, |key, raw| {
            let text = inner(raw).unwrap_or_default();
            match key {
                b"exporter" => clock.is_own = text.starts_with(b"anytrace "),
                b"origin-ts-ns" => lead = signed(text),
                b"origin-ns" => origin = signed(text),
                b"origin-unix-ns" => unix = signed(text),
                _ => {}
            }
        });
        if clock.is_own
            && let (Some(lead), Some(origin)) = (lead, origin)
        {
            clock.shift_ns = origin.saturating_sub(lead);
            clock.epoch_ns = unix.map(|unix| i128::from(unix) - i128::from(origin));
        }
        clock
    }
}

fn signed(text: &[u8]) -> Option<i64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// What is in the arguments of an event of anytrace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extras<'a> {
    pub(super) flags: EdgeFlags,
    pub(super) cpu: u16,
    /// Raw, without quotes.
    pub(super) place: Option<&'a [u8]>,
}

impl<'a> Extras<'a> {
    pub(super) fn of(record: &Record<'a>) -> Self {
        let mut extras = Self { flags: EdgeFlags::NONE, cpu: NO_CPU, place: None };
        let Some(arguments) = record.arguments else { return extras };
        let _ = members(arguments, 0, |key, raw| match key {
            b"cpu" => extras.cpu = unsigned(raw).and_then(|cpu| u16::try_from(cpu).ok()).unwrap_or(NO_CPU),
            b"flags" => extras.flags = flags(inner(raw).unwrap_or_default()),
            b"src" => extras.place = inner(raw),
            _ => {}
        });
        extras
    }
}

/// True for an argument that [`Extras`] has.
pub(super) fn is_extra(key: &[u8]) -> bool {
    matches!(key, b"cpu" | b"flags" | b"src")
}

/// The name of an attribute without what keeps it apart from those.
pub(super) fn plain_key(key: &[u8]) -> &[u8] {
    key.strip_suffix(b" (attribute)").filter(|key| is_extra(key)).unwrap_or(key)
}

fn flags(words: &[u8]) -> EdgeFlags {
    let all = [EdgeFlags::TAIL, EdgeFlags::DEDUCED, EdgeFlags::UNFINISHED, EdgeFlags::ORPHAN, EdgeFlags::CHAINED];
    let has =
        |flag: &EdgeFlags| words.split(|byte| *byte == b' ').any(|word| flag.words().any(|w| w.as_bytes() == word));
    all.into_iter().filter(has).fold(EdgeFlags::NONE, EdgeFlags::with)
}

/// The source's own numbers in a `thread_name` event: process, thread, lane.
pub(super) fn source_of(record: &Record<'_>) -> Option<(u64, u64, u32)> {
    let (mut process, mut thread, mut lane) = (None, None, None);
    let _ = members(record.arguments?, 0, |key, raw| {
        let number = unsigned(inner(raw).unwrap_or(raw));
        match key {
            b"pid" => process = number,
            b"tid" => thread = number,
            b"lane" => lane = number.and_then(|lane| u32::try_from(lane).ok()),
            _ => {}
        }
    });
    Some((process?, thread?, lane?))
}

/// The argument `name` of a metadata event, decoded.
pub(super) fn name_of<'a>(record: &Record<'a>, room: &'a mut Vec<u8>) -> Option<&'a [u8]> {
    let mut found = None;
    let _ = members(record.arguments?, 0, |key, raw| {
        if key == b"name" {
            found = Some(raw);
        }
    });
    let raw = found?;
    Some(inner(raw).map_or(raw, |inner| unescape(inner, room)))
}
