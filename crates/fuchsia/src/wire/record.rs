//! A record: words of eight bytes, the first of which says the type and the length ("Record header" of the format's
//! document, fuchsia.dev, *Fuchsia trace format*).

use super::words::bits;

/// The format's name, in codes and JSON.
pub(crate) const NAME: &str = "fuchsia";

/// The record with which every trace begins: metadata of the trace, its magic number.
pub(crate) const MAGIC: u64 = 0x0016_5478_4604_0010;

/// What a reader must know to read a record: nothing. Strings, threads and clocks are for those who look inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Layout {}

/// Types of records.
pub(crate) mod kind {
    pub(crate) const METADATA: u8 = 0;
    pub(crate) const INITIALIZATION: u8 = 1;
    pub(crate) const STRING: u8 = 2;
    pub(crate) const THREAD: u8 = 3;
    pub(crate) const EVENT: u8 = 4;
    pub(crate) const BLOB: u8 = 5;
    pub(crate) const USERSPACE_OBJECT: u8 = 6;
    pub(crate) const KERNEL_OBJECT: u8 = 7;
    pub(crate) const SCHEDULING: u8 = 8;
    pub(crate) const LOG: u8 = 9;
    pub(crate) const LARGE: u8 = 15;
}

/// A record, borrowed from the reader's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    pub(crate) head: u64,
    pub(crate) bytes: &'a [u8],
}

impl<'a> Record<'a> {
    /// Its type: 4 for an event.
    pub fn kind(&self) -> u8 {
        (self.head & 15) as u8
    }

    /// Its type as a word; of an event that of the event: `duration_begin`.
    pub fn kind_name(&self) -> &'static str {
        let names: &[&str] = match self.kind() {
            kind::METADATA => &["metadata", "provider_info", "provider_section", "provider_event", "magic"],
            kind::INITIALIZATION => return "initialization",
            kind::STRING => return "string",
            kind::THREAD => return "thread",
            kind::EVENT => &EVENTS,
            kind::BLOB => return "blob",
            kind::USERSPACE_OBJECT => return "userspace_object",
            kind::KERNEL_OBJECT => return "kernel_object",
            kind::SCHEDULING => &["legacy_context_switch", "context_switch", "thread_wakeup"],
            kind::LOG => return "log",
            kind::LARGE => return if bits(self.head, 36, 39) == 0 { "large_blob" } else { "unknown" },
            _ => return "unknown",
        };
        let at = if self.kind() == kind::SCHEDULING { bits(self.head, 60, 63) } else { bits(self.head, 16, 19) };
        usize::try_from(at).ok().and_then(|at| names.get(at)).copied().unwrap_or("unknown")
    }

    /// All its bytes.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Types of events.
pub(crate) const EVENTS: [&str; 11] = [
    "instant",
    "counter",
    "duration_begin",
    "duration_end",
    "duration_complete",
    "async_begin",
    "async_instant",
    "async_end",
    "flow_begin",
    "flow_step",
    "flow_end",
];
