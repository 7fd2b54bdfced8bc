//! What disks say.

use std::io::ErrorKind;

use anytrace_core::Error;

/// True when the disk has no room, or its user no more of it.
pub(crate) fn is_full(error: &Error) -> bool {
    matches!(error.io_kind(), Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
}
