//! Numbers of fields, from `perfetto/trace/trace_packet.proto` and the files it names.

/// `Trace.packet`.
pub(super) const PACKET: u32 = 1;

/// Fields of `TracePacket`.
pub(super) mod packet {
    pub(in crate::perfetto) const CLOCK_SNAPSHOT: u32 = 6;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 8;
    pub(in crate::perfetto) const SEQUENCE_ID: u32 = 10;
    pub(in crate::perfetto) const TRACK_EVENT: u32 = 11;
    pub(in crate::perfetto) const INTERNED_DATA: u32 = 12;
    pub(in crate::perfetto) const SEQUENCE_FLAGS: u32 = 13;
    pub(in crate::perfetto) const TIMESTAMP_CLOCK: u32 = 58;
    pub(in crate::perfetto) const DEFAULTS: u32 = 59;
    pub(in crate::perfetto) const TRACK_DESCRIPTOR: u32 = 60;
    pub(in crate::perfetto) const FIRST_ON_SEQUENCE: u32 = 87;
}

/// Fields of `ClockSnapshot.Clock`.
pub(super) mod clock {
    pub(in crate::perfetto) const ID: u32 = 1;
    pub(in crate::perfetto) const TIMESTAMP: u32 = 2;
    pub(in crate::perfetto) const IS_INCREMENTAL: u32 = 3;
}

/// Fields of `TrackEvent`.
pub(super) mod event {
    pub(in crate::perfetto) const ANNOTATION: u32 = 4;
    pub(in crate::perfetto) const TYPE: u32 = 9;
    pub(in crate::perfetto) const NAME_IID: u32 = 10;
    pub(in crate::perfetto) const TRACK_UUID: u32 = 11;
    pub(in crate::perfetto) const COUNTER_VALUE: u32 = 30;
    pub(in crate::perfetto) const SOURCE_IID: u32 = 34;
    pub(in crate::perfetto) const DOUBLE_COUNTER_VALUE: u32 = 44;
    pub(in crate::perfetto) const FLOW: u32 = 47;
    pub(in crate::perfetto) const TERMINATING_FLOW: u32 = 48;
}

/// Fields of `DebugAnnotation`.
pub(super) mod annotation {
    pub(in crate::perfetto) const NAME_IID: u32 = 1;
    pub(in crate::perfetto) const BOOL: u32 = 2;
    pub(in crate::perfetto) const UINT: u32 = 3;
    pub(in crate::perfetto) const INT: u32 = 4;
    pub(in crate::perfetto) const DOUBLE: u32 = 5;
    pub(in crate::perfetto) const STRING: u32 = 6;
    pub(in crate::perfetto) const POINTER: u32 = 7;
    pub(in crate::perfetto) const NAME: u32 = 10;
    pub(in crate::perfetto) const DICTIONARY: u32 = 11;
    pub(in crate::perfetto) const ARRAY: u32 = 12;
}

/// Fields of `TrackDescriptor`.
pub(super) mod descriptor {
    pub(in crate::perfetto) const UUID: u32 = 1;
    pub(in crate::perfetto) const NAME: u32 = 2;
    pub(in crate::perfetto) const PROCESS: u32 = 3;
    pub(in crate::perfetto) const THREAD: u32 = 4;
    pub(in crate::perfetto) const PARENT: u32 = 5;
    pub(in crate::perfetto) const COUNTER: u32 = 8;
    pub(in crate::perfetto) const DESCRIPTION: u32 = 14;
}

/// Fields of `InternedData`.
pub(super) mod interned {
    pub(in crate::perfetto) const EVENT_NAME: u32 = 2;
    pub(in crate::perfetto) const ANNOTATION_NAME: u32 = 3;
    pub(in crate::perfetto) const SOURCE: u32 = 4;
}
