//! The meaning of the runtime's own events (page, section 2). Names change between versions, so this is a table.

/// What an event of the runtime shows about its stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    /// A process runs; it has attributes `id` and `name`.
    Run,
    /// The worker chooses what to run next.
    Scheduling,
    /// The worker waits for the operating system.
    Polling,
    /// Anything else that the runtime does: starting, relaying, joining.
    Runtime,
    /// A program's own event.
    User,
}

/// Description of a run of an actor that any worker may run.
pub(crate) const THREAD_SAFE_RUN: &str = "Running thread-safe process";

const TABLE: [(&str, Kind); 27] = [
    ("Running thread-local process", Kind::Run),
    (THREAD_SAFE_RUN, Kind::Run),
    ("Scheduling processes", Kind::Scheduling),
    ("Scheduling thread-local processes", Kind::Scheduling),
    ("Scheduling thread-local processes based on timers", Kind::Scheduling),
    ("Scheduling thread-local processes based on wake-up events", Kind::Scheduling),
    ("Scheduling thread-safe processes based on timers", Kind::Scheduling),
    ("Polling for OS events", Kind::Polling),
    ("Polling shared ring", Kind::Polling),
    ("Building runtime", Kind::Runtime),
    ("Checking (sync) workers", Kind::Runtime),
    ("Checking process signals", Kind::Runtime),
    ("Checking sync workers", Kind::Runtime),
    ("Checking workers", Kind::Runtime),
    ("Initialised the worker thread", Kind::Runtime),
    ("Initialising the worker thread", Kind::Runtime),
    ("Joining sync worker", Kind::Runtime),
    ("Joining worker", Kind::Runtime),
    ("Logging runtime metrics", Kind::Runtime),
    ("Printing runtime metrics", Kind::Runtime),
    ("Processing communication message", Kind::Runtime),
    ("Processing communication message(s)", Kind::Runtime),
    ("Relaying process signal to actors", Kind::Runtime),
    ("Relaying process signals", Kind::Runtime),
    ("Running user function", Kind::Runtime),
    ("Setting up the coordinator", Kind::Runtime),
    ("Spawning worker threads", Kind::Runtime),
];

impl Kind {
    /// True for events that only workers emit.
    pub(crate) fn is_of_scheduler(self) -> bool {
        matches!(self, Self::Run | Self::Scheduling)
    }
}

/// The kind of a description.
pub(crate) fn kind_of(description: &str) -> Kind {
    TABLE.iter().find(|(name, _)| *name == description).map_or(Kind::User, |(_, kind)| *kind)
}

/// The name of a stream, by the runtime's conventions: stream 0 belongs to the coordinator and to all thread-safe
/// actors; workers follow (page, section 1).
pub(crate) fn stream_name(stream: u32, is_worker: bool, is_runtime: bool) -> String {
    match stream {
        0 if is_runtime => "coordinator".to_owned(),
        _ if is_worker => format!("worker {stream}"),
        _ => format!("stream {stream}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_is_distinguished_from_the_program() {
        assert_eq!(kind_of("Running thread-safe process"), Kind::Run);
        assert_eq!((kind_of("Polling shared ring"), kind_of("handle")), (Kind::Polling, Kind::User));
        assert_eq!(
            (stream_name(0, false, true), stream_name(0, false, false)),
            ("coordinator".into(), "stream 0".into())
        );
        assert_eq!((stream_name(2, true, true), stream_name(9, false, true)), ("worker 2".into(), "stream 9".into()));
    }
}
