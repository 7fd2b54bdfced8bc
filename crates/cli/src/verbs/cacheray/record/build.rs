//! What a program was linked with, as far as its bytes show.

use std::path::Path;

use crate::verbs::recording::contains;

/// What a program was linked with, as far as its bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Build {
    /// The recorder is in it.
    Recorder,
    /// ThreadSanitizer's own library is in it, or is asked for.
    Sanitizer,
    /// It calls the hooks, and expects them from elsewhere.
    Hooks,
    /// A script, or something that is found otherwise.
    Unknown,
    /// It calls no hooks.
    Plain,
}

impl Build {
    pub(super) fn of(path: &Path) -> Self {
        let wanted = [
            "anytrace cacheray recorder is linked in",
            "libtsan.so",
            "ThreadSanitizer: ",
            "libanytrace_cacheray_recorder.so",
            "__tsan_",
        ];
        let Some([is_linked, is_tsan, is_static_tsan, is_needed, has_hooks]) = contains(path, wanted) else {
            return Self::Unknown;
        };
        match () {
            () if is_linked || is_needed => Self::Recorder,
            () if is_tsan || is_static_tsan => Self::Sanitizer,
            () if has_hooks => Self::Hooks,
            () => Self::Plain,
        }
    }
}
