//! The index that every format has (`FILE.atx`), for verbs that look for a call or a frame.

use anytrace_core::index::Index as Parts;
use anytrace_core::{Compression, Input, OpenOptions};

use crate::lanes::flags::{CallFlags, call_flags};
use crate::tools::index::{Index, IndexTotals, name_of};
use crate::wire::container::{self, Container};
use crate::wire::marks::{Shared, decode};
use crate::wire::record::ends_frame;

/// What an index of parts says about calls. `None` where it has no points, or something is wrong in the trace: reading
/// from the start reports it in its place.
///
/// # Errors
/// Why it cannot be used.
pub(super) fn index(parts: &Parts, file: &Input, options: &OpenOptions) -> Result<Option<Index>, String> {
    let Some(shared) = parts.shared.as_deref() else { return Ok(None) };
    if parts.chunks.iter().any(|chunk| chunk.is_damaged) {
        return Ok(None);
    }
    let unknown = || "it has something unknown".to_owned();
    let shared = Shared::decode(shared, &options.limits).ok_or_else(unknown)?.map_err(|error| error.to_string())?;
    let Shared { limits, header, longest_event, most_open, definitions, enters } = shared;
    let points = parts.chunks.iter().skip(1).map(|chunk| decode(&chunk.mark, &definitions));
    let points = points.collect::<Option<Vec<_>>>().ok_or_else(unknown)?;
    let head = file.head();
    let is_zstd = Compression::detect(head.bytes) == Some(Compression::Zstd);
    let [functions, ..] = &definitions;
    let has_plain_frames = functions.iter().all(|(_, definition)| {
        let name = name_of(definition);
        ends_frame(name) == call_flags(name).has(CallFlags::END_FRAME)
    });
    Ok(Some(Index {
        totals: IndexTotals { file_bytes: parts.pieces.file_bytes, ..IndexTotals::default() },
        pieces: parts.pieces.clone(),
        own: if is_zstd { Container::Raw } else { container::guess(&head).own },
        is_zstd,
        is_seekable: false,
        record_bytes_max: limits.record_bytes_max,
        longest_event,
        most_open,
        first_error: None,
        obstacle: None,
        header,
        definitions,
        frame_step: 1,
        frames: Vec::new(),
        has_plain_frames,
        points,
        enters,
    }))
}
