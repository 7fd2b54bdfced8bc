//! Field numbers of `TracePacket` that this crate handles by themselves.

/// Fields of `TracePacket` beside its data (`perfetto/trace/trace_packet.proto`).
pub(crate) mod field {
    pub(crate) const TRUSTED_UID: u32 = 3;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const STATE_CLEARED: u32 = 41;
    pub(crate) const PACKET_DROPPED: u32 = 42;
    pub(crate) const TIMESTAMP_CLOCK: u32 = 58;
    pub(crate) const DEFAULTS: u32 = 59;
    pub(crate) const TRUSTED_PID: u32 = 79;
    pub(crate) const FIRST_ON_SEQUENCE: u32 = 87;
    pub(crate) const MACHINE_ID: u32 = 98;
}

/// Data of a packet that this crate reads.
pub(crate) mod data {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const TRACE_STATS: u32 = 35;
    pub(crate) const PROCESS_DESCRIPTOR: u32 = 43;
    pub(crate) const THREAD_DESCRIPTOR: u32 = 44;
    pub(crate) const COMPRESSED: u32 = 50;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    pub(crate) const ZSTD_COMPRESSED: u32 = 133;
}

/// True for the fields of `TracePacket` that are numbers.
#[inline]
pub(crate) fn is_number_field(number: u32) -> bool {
    matches!(
        number,
        field::TRUSTED_UID
            | field::TIMESTAMP
            | field::SEQUENCE_ID
            | field::SEQUENCE_FLAGS
            | field::STATE_CLEARED
            | field::PACKET_DROPPED
            | field::TIMESTAMP_CLOCK
            | field::TRUSTED_PID
            | field::FIRST_ON_SEQUENCE
            | field::MACHINE_ID
    )
}
