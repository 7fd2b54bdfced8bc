//! Every rule that a diagnostic of this format can name.

use anytrace_core::Rule;

pub(crate) static BAD_PACKET: Rule = Rule::error("perfetto/bad-packet", "bytes are not a packet");
pub(crate) static TRUNCATED: Rule = Rule::error("perfetto/truncated", "the data end inside a packet");
pub(crate) static PACKET_TOO_LONG: Rule =
    Rule::error("perfetto/packet-too-long", "a packet is longer than the limit on a record");

// What is inside packets: reported by `check` and by the verbs that look inside.
pub(crate) static BAD_FIELD: Rule =
    Rule::error("perfetto/bad-field", "a message in a packet has a field that cannot be read");
pub(crate) static STATE_LOST: Rule =
    Rule::error("perfetto/state-lost", "a packet refers to data of earlier packets that are not in the trace");
pub(crate) static NO_TIME: Rule = Rule::error("perfetto/no-time", "an event has no time, or one of an unknown clock");
pub(crate) static BAD_COMPRESSION: Rule =
    Rule::error("perfetto/bad-compression", "compressed packets cannot be decompressed");
pub(crate) static NOT_READ: Rule =
    Rule::warning("perfetto/not-read", "packets are compressed in a form that is not supported");
pub(crate) static ASSUMED_CLOCK: Rule =
    Rule::warning("perfetto/assumed-clock", "no snapshot relates a clock to the clock of the trace");
pub(crate) static UNKNOWN_IID: Rule =
    Rule::warning("perfetto/unknown-iid", "an event refers to interned data that the trace does not contain");
pub(crate) static PACKETS_DROPPED: Rule =
    Rule::warning("perfetto/packets-dropped", "the recorder lost packets of a sequence before this one");
pub(crate) static DATA_LOSS: Rule =
    Rule::warning("perfetto/data-loss", "the recorder's statistics say that data were lost");
pub(crate) static FTRACE_LOSS: Rule = Rule::warning("perfetto/ftrace-loss", "the kernel lost events of a processor");
pub(crate) static END_WITHOUT_BEGIN: Rule =
    Rule::warning("perfetto/end-without-begin", "a slice ends on a track on which none is open");
pub(crate) static BEGIN_WITHOUT_END: Rule =
    Rule::warning("perfetto/begin-without-end", "slices of a track are open where the trace ends");
pub(crate) static NO_DESCRIPTOR: Rule = Rule::note("perfetto/no-descriptor", "no packet describes a track with events");
pub(crate) static UNKNOWN_PACKET: Rule =
    Rule::note("perfetto/unknown-packet", "a packet has data that are not in the format's definition");
pub(crate) static STREAM_TIME: Rule =
    Rule::note("perfetto/stream-time", "times count from the first event of a stream that cannot be read twice");
pub(crate) static LIMIT: Rule = Rule::warning("perfetto/limit", "more tracks, sequences or names than are kept apart");

/// All of the above.
pub(crate) static RULES: [&Rule; 19] = [
    &BAD_PACKET,
    &TRUNCATED,
    &PACKET_TOO_LONG,
    &BAD_FIELD,
    &STATE_LOST,
    &NO_TIME,
    &BAD_COMPRESSION,
    &NOT_READ,
    &ASSUMED_CLOCK,
    &UNKNOWN_IID,
    &PACKETS_DROPPED,
    &DATA_LOSS,
    &FTRACE_LOSS,
    &END_WITHOUT_BEGIN,
    &BEGIN_WITHOUT_END,
    &NO_DESCRIPTOR,
    &UNKNOWN_PACKET,
    &STREAM_TIME,
    &LIMIT,
];
