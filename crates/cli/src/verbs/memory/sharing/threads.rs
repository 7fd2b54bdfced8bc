//! Threads and cores in words, and why they may not show any sharing.

use anytrace_analysis::sharing::{ALL_CORES, SharingResults};

/// Why sharing cannot be determined, if so.
pub(in super::super) fn note(found: &SharingResults) -> Option<String> {
    match found.threads.as_slice() {
        [] => Some("no thread accesses memory: sharing cannot be determined".to_owned()),
        [(Some(0), _)] => Some(
            "all accesses are by thread 0: the program has one thread, or the recorder did not distinguish threads (the \
             original one never does); sharing cannot be determined"
                .to_owned(),
        ),
        [(id, _)] => Some(format!("all accesses are by {}: sharing cannot be determined", thread(*id))),
        all if all.iter().all(|(_, core)| Some(*core) == all.first().map(|(_, first)| *first)) => {
            Some("all threads run on one core: sharing cannot be determined".to_owned())
        }
        _ => None,
    }
}

fn thread(id: Option<u64>) -> String {
    id.map_or_else(|| "other threads".to_owned(), |id| format!("thread {id}"))
}

/// A core as people know it: by its threads.
pub(in super::super) fn core_name(found: &SharingResults, core: u32) -> String {
    if core == ALL_CORES {
        return "any".to_owned();
    }
    let mut threads = found.threads_of(core);
    match (threads.next(), threads.next()) {
        (Some(Some(id)), None) => id.to_string(),
        (Some(None), None) => "others".to_owned(),
        _ => format!("core {core}"),
    }
}
