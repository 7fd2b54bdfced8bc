//! Which of the runtime's two conventions a trace follows.
//!
//! Until December 2024 (0.3, 0.4) a user's event had the actor's process id as substream; since then (0.5.0-dev) every
//! event has 0. Nothing on the wire names the version, so it is derived from the events.

use crate::wire::record::Event;

/// Number of events without substream whose names are examined.
const NAMES_MAX: u32 = 4096;

/// Least substream that counts as a process id, which is a heap address, in a trace without a runtime event.
const ADDRESS_MIN: u64 = 1 << 16;

/// The bit that tracing-heph sets in the substream of an event that covers a span's lifetime, from its creation to its
/// close.
pub(crate) const LIFE: u64 = 1 << 52;

/// Events of the runtime that only old versions write, only new versions, and both (page, section 2).
const OLD_NAMES: [&str; 9] = [
    "Setting up the coordinator",
    "Spawning worker threads",
    "Initialising the worker thread",
    "Checking process signals",
    "Checking workers",
    "Checking sync workers",
    "Checking (sync) workers",
    "Scheduling thread-local processes based on wake-up events",
    "Processing communication message(s)",
];
const NEW_NAMES: [&str; 9] = [
    "Building runtime",
    "Initialised the worker thread",
    "Relaying process signals",
    "Relaying process signal to actors",
    "Polling shared ring",
    "Logging runtime metrics",
    "Printing runtime metrics",
    "Joining worker",
    "Joining sync worker",
];
const COMMON_NAMES: [&str; 9] = [
    "Polling for OS events",
    "Scheduling processes",
    "Scheduling thread-local processes",
    "Scheduling thread-local processes based on timers",
    "Scheduling thread-safe processes based on timers",
    "Running thread-local process",
    "Running thread-safe process",
    "Running user function",
    "Processing communication message",
];

/// Collects the evidence.
#[derive(Debug, Clone, Default)]
pub(crate) struct Signs {
    substream_max: u64,
    /// All bits that are set in some substream.
    substream_bits: u64,
    names_seen: u32,
    has_runtime_events: bool,
    has_old_names: bool,
    has_new_names: bool,
    has_user_events_in_lane_0: bool,
}

impl Signs {
    #[inline]
    pub(crate) fn event(&mut self, event: &Event<'_>) {
        let substream = event.header.substream;
        if substream != 0 {
            self.substream_max = self.substream_max.max(substream);
            self.substream_bits |= substream;
        } else if self.names_seen < NAMES_MAX {
            self.name(event.description());
        }
    }

    #[cold]
    fn name(&mut self, name: &str) {
        self.names_seen += 1;
        let is_old = OLD_NAMES.contains(&name);
        let is_new = NEW_NAMES.contains(&name);
        let is_runtime = is_old || is_new || COMMON_NAMES.contains(&name);
        self.has_old_names |= is_old;
        self.has_new_names |= is_new;
        self.has_runtime_events |= is_runtime;
        self.has_user_events_in_lane_0 |= !is_runtime;
    }

    /// `old` or `new`, or `None` without enough evidence; `overlaps`: events of a lane overlap partly.
    pub(crate) fn dialect(&self, overlaps: bool) -> Option<&'static str> {
        let uses_substreams = self.substream_max > 0;
        if uses_substreams && (self.has_runtime_events || self.has_addresses()) {
            return Some("old");
        }
        if uses_substreams || !self.has_runtime_events {
            return None;
        }
        if self.has_new_names || overlaps {
            return Some("new");
        }
        if self.has_old_names {
            return Some("old");
        }
        self.has_user_events_in_lane_0.then_some("new")
    }
}

impl Signs {
    /// Heap addresses are large and aligned; other recorders number their substreams from a low value upwards.
    fn has_addresses(&self) -> bool {
        self.substream_max >= ADDRESS_MIN && self.substream_bits.is_multiple_of(8)
    }
}

/// What a dialect means, for people.
pub(crate) fn meaning(dialect: &str) -> &'static str {
    match dialect {
        "old" => "Heph 0.3 and 0.4, until December 2024: the substream of an actor's events is its process id",
        _ => "Heph 0.5.0-dev, since December 2024: every event has substream 0, actors share a lane",
    }
}
