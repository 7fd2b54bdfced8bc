//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_ARCHIVE: Rule =
    Rule::error("ctf/bad-archive", "bytes of the archive are not the header of a file");
pub(crate) static TRUNCATED: Rule =
    Rule::error("ctf/truncated", "a file ends inside a packet, or the archive in a file");
pub(crate) static BAD_METADATA: Rule = Rule::error("ctf/bad-metadata", "a declaration cannot be read");
pub(crate) static UNSUPPORTED_VERSION: Rule =
    Rule::error("ctf/unsupported-version", "the description is of another version of the format");
pub(crate) static NO_METADATA: Rule = Rule::error("ctf/no-metadata", "no file describes the packets");
pub(crate) static BAD_PACKET: Rule = Rule::error("ctf/bad-packet", "bytes are not a packet");
pub(crate) static BAD_EVENT: Rule = Rule::error("ctf/bad-event", "bytes of a packet are not an event");
pub(crate) static EVENT_TOO_LONG: Rule =
    Rule::error("ctf/event-too-long", "an event is longer than the limit on a record");

// What is between records: reported by `check`.
pub(crate) static EVENTS_DISCARDED: Rule =
    Rule::warning("ctf/events-discarded", "the recorder had no room for events and counted them instead");
pub(crate) static PACKETS_LOST: Rule = Rule::warning("ctf/packets-lost", "numbers of packets are missing");
pub(crate) static TIME_BACKWARDS: Rule =
    Rule::warning("ctf/time-backwards", "an event is earlier than the one before it");
pub(crate) static TIME_OUTSIDE: Rule =
    Rule::warning("ctf/time-outside", "an event is outside of the time that its packet states");
pub(crate) static OTHER_UUID: Rule = Rule::warning("ctf/other-uuid", "a packet has another UUID than the description");
pub(crate) static NO_CLOCK: Rule = Rule::note("ctf/no-clock", "events have no time: the trace has no clock");
pub(crate) static STREAM_TIME: Rule =
    Rule::note("ctf/stream-time", "times count from the first event of a stream that cannot be read twice");
pub(crate) static LIMIT: Rule = Rule::warning("ctf/limit", "more threads or names than are kept apart");

/// All of the above.
pub(crate) static RULES: [&Rule; 16] = [
    &BAD_ARCHIVE,
    &TRUNCATED,
    &BAD_METADATA,
    &UNSUPPORTED_VERSION,
    &NO_METADATA,
    &BAD_PACKET,
    &BAD_EVENT,
    &EVENT_TOO_LONG,
    &EVENTS_DISCARDED,
    &PACKETS_LOST,
    &TIME_BACKWARDS,
    &TIME_OUTSIDE,
    &OTHER_UUID,
    &NO_CLOCK,
    &STREAM_TIME,
    &LIMIT,
];
