//! Decisions about bytes that are not where or what they should be: pure functions over a bounded lookahead.

use anytrace_core::bytes::array_at;

use crate::wire::parse::{Need, parse_record};
use crate::wire::record::{Body, FUNCTION_BYTES, FdrRecord, METADATA_BYTES, Metadata, Orders, kind};

/// Bytes that a decision at one place may need: extents, new buffer, wall time, and the first byte of the next record.
pub(crate) const PREAMBLE_LOOK: usize = 3 * METADATA_BYTES + 1;

/// Bytes that a decision about an introducer may need: a better one may begin before its preamble ends.
pub(crate) const INTRODUCER_LOOK: usize = 4 * METADATA_BYTES + PREAMBLE_LOOK;

/// Consecutive records that make a place count as the start of a record.
const CHAIN_RECORDS: usize = 6;

/// This many consecutive records are not a coincidence, whatever follows.
pub(crate) const CHAIN_SURE: usize = 64;

/// Ids are ordinals; in a shared library, ordinals below an object number of 4 bits. With few records, an id above this
/// is more likely garbage. Text read as records yields ids above it.
const ORDINAL_MAX: u32 = 1 << 17;

/// True when buffer extents begin here. The byte alone is a false introducer when no buffer follows it
/// (`synth/v5-gap-fake-extent`). `eof`: the slice ends with the data.
pub(crate) fn is_introducer(bytes: &[u8], eof: bool, layout: Orders) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).map(|&b| b == layout.metadata_byte(number));
    if is(0, kind::BUFFER_EXTENTS) != Some(true) {
        return false;
    }
    let at_new_buffer = is(METADATA_BYTES, kind::NEW_BUFFER);
    if at_new_buffer.is_none() {
        // Nothing, or only part of the extents, follows: the last buffer of a cut file.
        return eof;
    }
    let is_empty = is_empty_extents(bytes);
    // Its new-buffer record may be damaged, or something may have been inserted before it.
    let is_headless = is(METADATA_BYTES, kind::WALL_TIME) == Some(true)
        && (is(2 * METADATA_BYTES, kind::PID) == Some(true) || is(2 * METADATA_BYTES, kind::NEW_CPU) == Some(true));
    at_new_buffer == Some(true)
        || is_headless
        || is(2 * METADATA_BYTES, kind::WALL_TIME) == Some(true)
        || (is_empty && is(METADATA_BYTES, kind::BUFFER_EXTENTS) == Some(true))
}

/// True when buffer extents begin here and there are no better ones inside the preamble of their presumed buffer: a gap
/// that ends in introducers would otherwise hide the true one. The slice has [`INTRODUCER_LOOK`] bytes, or reaches the
/// end of the data.
pub(crate) fn is_best_introducer(bytes: &[u8], eof: bool, layout: Orders) -> bool {
    if !is_introducer(bytes, eof, layout) {
        return false;
    }
    let score = introducer_score(bytes, layout);
    if score == SCORE_MAX {
        return true;
    }
    let is_certain_enough = score >= 2 || bytes.len() < PREAMBLE_LOOK || is_empty_extents(bytes);
    let is_better = |at: &usize| {
        bytes.get(*at..).is_some_and(|rest| introducer_score(rest, layout) > score) && !leads_to(bytes, *at, layout)
    };
    is_certain_enough && !(1..4 * METADATA_BYTES).any(|at| is_better(&at))
}

const SCORE_MAX: u32 = 4;

/// How many of a buffer's first records are where they should be, and whether its size is valid.
fn introducer_score(bytes: &[u8], layout: Orders) -> u32 {
    let is = |at: usize, number: u8| bytes.get(at) == Some(&layout.metadata_byte(number));
    if !is(0, kind::BUFFER_EXTENTS) {
        return 0;
    }
    let (is_new, is_wall) = (is(METADATA_BYTES, kind::NEW_BUFFER), is(2 * METADATA_BYTES, kind::WALL_TIME));
    let is_size = extents_size(bytes, layout).is_some_and(|size| size < 1 << 40);
    if is_headless_preamble(bytes.get(METADATA_BYTES..).unwrap_or_default(), layout) && !is_new {
        return 2 + u32::from(is_size);
    }
    let third = 3 * METADATA_BYTES;
    let is_third = is(third, kind::PID) || is(third, kind::NEW_CPU) || (is_new && is_wall && bytes.len() <= third);
    [is_new, is_wall, is_third, is_size].into_iter().map(u32::from).sum()
}

fn extents_size(bytes: &[u8], layout: Orders) -> Option<u64> {
    array_at(bytes, 1).map(|size| layout.endian.u64(size))
}

fn is_empty_extents(bytes: &[u8]) -> bool {
    bytes.get(1..9).is_some_and(|size| size.iter().all(|&b| b == 0))
}

/// True when the buffer of these extents may end where the next buffer's extents begin, `at` bytes later.
fn leads_to(bytes: &[u8], at: usize, layout: Orders) -> bool {
    let is = |at: usize, number: u8| bytes.get(at) == Some(&layout.metadata_byte(number));
    let is_cut = at == 2 * METADATA_BYTES || (at == 3 * METADATA_BYTES && is(2 * METADATA_BYTES, kind::WALL_TIME));
    extents_size(bytes, layout).is_some_and(|size| size.checked_add(METADATA_BYTES as u64) == Some(at as u64))
        || (is_cut && is(METADATA_BYTES, kind::NEW_BUFFER))
}

/// True when a buffer's preamble begins here: new buffer, wall time, then process or processor.
pub(crate) fn is_preamble(bytes: &[u8], layout: Orders) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    is(0, kind::NEW_BUFFER)
        && is(METADATA_BYTES, kind::WALL_TIME)
        && (is(2 * METADATA_BYTES, kind::PID) || is(2 * METADATA_BYTES, kind::NEW_CPU))
}

/// True when a preamble follows 16 bytes that should be its extents but are not.
pub(crate) fn is_behind_damaged_extents(bytes: &[u8], layout: Orders) -> bool {
    bytes.get(METADATA_BYTES..).is_some_and(|rest| is_preamble(rest, layout))
}

/// True when a preamble is here whose new-buffer record is damaged or missing.
pub(crate) fn is_headless_preamble(bytes: &[u8], layout: Orders) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    [0, METADATA_BYTES].into_iter().any(|at| {
        let next = at + METADATA_BYTES;
        is(at, kind::WALL_TIME) && (is(next, kind::PID) || is(next, kind::NEW_CPU))
    })
}

/// True when a preamble is here whose new-buffer record became a record of another kind.
pub(crate) fn is_preamble_of_another(bytes: &[u8], layout: Orders) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    let third = 2 * METADATA_BYTES;
    !is(0, kind::NEW_BUFFER)
        && is(METADATA_BYTES, kind::WALL_TIME)
        && (is(third, kind::PID) || is(third, kind::NEW_CPU))
}

/// True when at least two of the three records of a preamble are where they should be: enough where a preamble must be.
pub(crate) fn is_likely_preamble(bytes: &[u8], layout: Orders) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    let third = 2 * METADATA_BYTES;
    let marks = [
        is(0, kind::NEW_BUFFER),
        is(METADATA_BYTES, kind::WALL_TIME),
        is(third, kind::NEW_CPU) || is(third, kind::PID),
    ];
    marks.into_iter().filter(|&mark| mark).count() >= 2
}

/// True when a record that occurs only in a preamble follows after 16 bytes, which are a damaged record.
pub(crate) fn is_before_preamble_record(bytes: &[u8], layout: Orders) -> bool {
    let next = bytes.get(METADATA_BYTES).copied();
    [kind::WALL_TIME, kind::PID, kind::NEW_CPU].into_iter().any(|number| next == Some(layout.metadata_byte(number)))
}

/// How a sequence of records ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// Exactly where the slice ends.
    Exact,
    /// Exactly where the next buffer's extents begin.
    NextBuffer,
    /// Inside a record that is not complete in the slice.
    Partial,
    /// At bytes that are not a record of a buffer's body.
    Bad,
}

/// Follows records from the start of the slice; returns their number, their bytes, and how the sequence ended.
pub(crate) fn chain(bytes: &[u8], eof: bool, layout: Orders, version: u16, stop: usize) -> (usize, usize, ChainEnd) {
    let (mut count, mut at) = (0, 0);
    while count < stop {
        let rest = bytes.get(at..).unwrap_or_default();
        if rest.is_empty() {
            return (count, at, ChainEnd::Exact);
        }
        if is_introducer(rest, eof, layout) {
            return (count, at, ChainEnd::NextBuffer);
        }
        match parse_record(rest, layout, version, u64::from(u16::MAX)) {
            Ok((record, used)) if is_of_a_body(&record, rest) => {
                count += 1;
                at += used;
                if version == 1 && matches!(record, FdrRecord::Metadata(Metadata { body: Body::EndOfBuffer, .. })) {
                    return (count, at, ChainEnd::NextBuffer);
                }
            }
            Err(Need::More(_)) => return (count, at, ChainEnd::Partial),
            _ => return (count, at, ChainEnd::Bad),
        }
    }
    (count, at, ChainEnd::Partial)
}

/// How many bytes at the end of a buffer's extents are records that belong to it; 0 if they are a gap. Garbage can look
/// like a record or two: a few records count only if they lead to a clean end and all their values are plausible.
pub(crate) fn records_behind(bytes: &[u8], eof: bool, layout: Orders, version: u16, is_in_preamble: bool) -> usize {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    let mut head = 0;
    while is_in_preamble && (is(head, kind::WALL_TIME) || is(head, kind::PID)) && head < 2 * METADATA_BYTES {
        head += METADATA_BYTES;
    }
    let body = bytes.get(head..).unwrap_or_default();
    let (count, used, end) = chain(body, eof, layout, version, usize::MAX);
    let rest = body.get(used..).unwrap_or_default();
    let is_clean = match end {
        ChainEnd::NextBuffer => true,
        ChainEnd::Exact | ChainEnd::Partial => eof && rest.is_empty(),
        ChainEnd::Bad => is_preamble(rest, layout) || rest.iter().take(METADATA_BYTES).all(|&b| b == 0),
    };
    let records = body.get(..used).unwrap_or_default();
    let belongs = count >= CHAIN_SURE
        || (count >= CHAIN_RECORDS && (is_clean || end == ChainEnd::Partial))
        || (count > 0 && is_clean && (version == 2 || is_likely(records, layout, version)));
    if belongs { head + used } else { 0 }
}

/// True when no function record has an id or a delta that occurs in hardly any program.
fn is_likely(mut records: &[u8], layout: Orders, version: u16) -> bool {
    while let Ok((record, used)) = parse_record(records, layout, version, u64::from(u16::MAX)) {
        if let FdrRecord::Function(function) = record {
            let ordinal = function.id & 0x00ff_ffff;
            if ordinal > ORDINAL_MAX || function.delta > i32::MAX.cast_unsigned() {
                return false;
            }
        }
        records = records.get(used..).unwrap_or_default();
    }
    true
}

/// Records that occur in the body of a buffer. Eight zero bytes are padding, not a function with id 0.
fn is_of_a_body(record: &FdrRecord<'_>, bytes: &[u8]) -> bool {
    match record {
        FdrRecord::Function(_) => bytes.iter().take(FUNCTION_BYTES).any(|&b| b != 0),
        FdrRecord::Metadata(metadata) => !matches!(
            metadata.body,
            Body::NewBuffer { .. } | Body::BufferExtents { .. } | Body::WallTime { .. } | Body::Pid { .. }
        ),
    }
}

/// Where reading continues after a bad record at the start of the slice: the number of bytes to skip, at most all of
/// them. `reaches_end`: the slice ends where the buffer does.
pub(crate) fn resume(bytes: &[u8], reaches_end: bool, layout: Orders, version: u16, first: usize) -> usize {
    let other = if first == FUNCTION_BYTES { METADATA_BYTES } else { FUNCTION_BYTES };
    let likely = [first, other].into_iter();
    for skip in likely.chain(1..bytes.len()) {
        let Some(rest) = bytes.get(skip..) else { continue };
        let (count, _, end) = chain(rest, reaches_end, layout, version, CHAIN_RECORDS);
        let fits = match end {
            ChainEnd::NextBuffer if version == 1 => count > 0,
            ChainEnd::Exact | ChainEnd::NextBuffer => reaches_end || count >= CHAIN_RECORDS,
            ChainEnd::Partial => count >= CHAIN_RECORDS || (reaches_end && count > 0),
            ChainEnd::Bad => false,
        };
        if fits {
            return skip;
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOW: Orders = Orders { endian: anytrace_core::Endian::Little, bits: crate::wire::record::BitOrder::Low };

    #[test]
    fn an_introducer_needs_a_buffer_behind_it() {
        let mut bytes = [0_u8; 33];
        bytes[0] = 0x0f;
        bytes[1] = 8;
        bytes[16] = 0x90;
        assert!(!is_introducer(&bytes, false, LOW));
        bytes[16] = 0x01;
        assert!(is_introducer(&bytes, false, LOW));
        assert!(is_introducer(&bytes[..9], true, LOW));
        assert!(!is_introducer(&bytes[..9], false, LOW));
    }

    #[test]
    fn reading_resumes_behind_one_bad_record() {
        let mut bytes = vec![0x1e, 0, 0, 0, 1, 0, 0, 0];
        for id in 1..9_u8 {
            bytes.extend([id << 4, 0, 0, 0, 5, 0, 0, 0]);
        }
        assert_eq!(resume(&bytes, true, LOW, 5, FUNCTION_BYTES), 8);
    }

    #[test]
    fn zero_bytes_are_no_chain() {
        assert_eq!(chain(&[0; 64], true, LOW, 5, 8).2, ChainEnd::Bad);
    }
}
