//! Descriptors: each source needs some, and the system gives a process only so many.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Descriptors of a source: its socket, its file, and that file once more while it is synced.
const OF_SOURCE: usize = 3;

/// For all others: threads' wake-ups, the index, the report, the folder.
const RESERVED: usize = 16;

/// Has the system give this process as many descriptors as it may have. Without, newcomers are refused earlier.
pub fn raise_descriptors() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}

/// How many there can be at a time, by the descriptors that are left. Who is there already must not suffer from a newcomer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) sources: usize,
    /// Connections that have not sent a packet.
    pub(crate) waiting: usize,
}

/// Most connections that wait.
const WAITING_MAX: usize = 256;

pub(crate) fn room() -> Room {
    let Ok((soft, _)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Room { sources: usize::MAX, waiting: WAITING_MAX };
    };
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    let left = usize::try_from(soft).unwrap_or(usize::MAX).saturating_sub(open + RESERVED);
    let waiting = (left / 4).min(WAITING_MAX);
    Room { sources: (left - waiting) / OF_SOURCE, waiting }
}
