//! Judgements on bytes that are not where or what they should be: pure, over a bounded look ahead.

use crate::parse::{Need, parse_record};
use crate::record::{Body, FUNCTION_BYTES, Layout, METADATA_BYTES, Metadata, Record, kind};

/// Bytes a judgement at one place may need: extents, new buffer, wall time, and the first byte of the record after.
pub(crate) const PREAMBLE_LOOK: usize = 3 * METADATA_BYTES + 1;

/// Records in a row that make a place count as the start of a record.
const CHAIN_RECORDS: usize = 6;

/// So many records in a row are no chance, whatever follows.
pub(crate) const CHAIN_SURE: usize = 64;

/// Ids are ordinals, in a shared library below a number of 4 bits: where few records speak, one above this is more
/// likely rubbish. Text gives ids above it.
const ORDINAL_MAX: u32 = 1 << 17;

/// True when buffer extents begin here: the byte alone is a false introducer when no buffer follows it
/// (`synth/v5-gap-fake-extent`). `eof` says that the slice ends with the data.
pub(crate) fn is_introducer(bytes: &[u8], eof: bool, layout: Layout) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).map(|&b| b == layout.metadata_byte(number));
    if is(0, kind::BUFFER_EXTENTS) != Some(true) {
        return false;
    }
    let at_new_buffer = is(METADATA_BYTES, kind::NEW_BUFFER);
    if at_new_buffer.is_none() {
        // Nothing, or only part of the extents, follows: the last buffer of a cut file.
        return eof;
    }
    let is_empty = bytes.get(1..9).is_some_and(|size| size.iter().all(|&b| b == 0));
    // Its new-buffer record may be damaged, or was left out for it.
    let is_headless = is(METADATA_BYTES, kind::WALL_TIME) == Some(true)
        && (is(2 * METADATA_BYTES, kind::PID) == Some(true) || is(2 * METADATA_BYTES, kind::NEW_CPU) == Some(true));
    at_new_buffer == Some(true)
        || is_headless
        || is(2 * METADATA_BYTES, kind::WALL_TIME) == Some(true)
        || (is_empty && is(METADATA_BYTES, kind::BUFFER_EXTENTS) == Some(true))
}

/// True when a buffer's preamble begins here: new buffer, wall time, then process or processor.
pub(crate) fn is_preamble(bytes: &[u8], layout: Layout) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    is(0, kind::NEW_BUFFER)
        && is(METADATA_BYTES, kind::WALL_TIME)
        && (is(2 * METADATA_BYTES, kind::PID) || is(2 * METADATA_BYTES, kind::NEW_CPU))
}

/// True when a preamble stands here whose new-buffer record is damaged, or missing.
pub(crate) fn is_headless_preamble(bytes: &[u8], layout: Layout) -> bool {
    let is = |at: usize, number: u8| bytes.get(at).is_some_and(|&b| b == layout.metadata_byte(number));
    [0, METADATA_BYTES].into_iter().any(|at| {
        let next = at + METADATA_BYTES;
        is(at, kind::WALL_TIME) && (is(next, kind::PID) || is(next, kind::NEW_CPU))
    })
}

/// True when a record that only a preamble has stands 16 bytes on, behind one that is damaged.
pub(crate) fn is_before_preamble_record(bytes: &[u8], layout: Layout) -> bool {
    let next = bytes.get(METADATA_BYTES).copied();
    [kind::WALL_TIME, kind::PID, kind::NEW_CPU].into_iter().any(|number| next == Some(layout.metadata_byte(number)))
}

/// How a row of records ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChainEnd {
    /// Exactly where the slice ends.
    Exact,
    /// Exactly where the next buffer's extents begin.
    NextBuffer,
    /// Inside a record that the slice does not hold whole.
    Partial,
    /// At bytes that are no record of a buffer's body.
    Bad,
}

/// Follows records from the start of the slice; returns how many, how many bytes, and how it ended.
pub(crate) fn chain(bytes: &[u8], eof: bool, layout: Layout, version: u16, stop: usize) -> (usize, usize, ChainEnd) {
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
                if version == 1 && matches!(record, Record::Metadata(Metadata { body: Body::EndOfBuffer, .. })) {
                    return (count, at, ChainEnd::NextBuffer);
                }
            }
            Err(Need::More(_)) => return (count, at, ChainEnd::Partial),
            _ => return (count, at, ChainEnd::Bad),
        }
    }
    (count, at, ChainEnd::Partial)
}

/// How many bytes at the end of a buffer's extents are records that belong to it; 0 where they are a gap. Rubbish can
/// look like a record or two: a few count only where they lead to a clean end and say nothing unlikely.
pub(crate) fn records_behind(bytes: &[u8], eof: bool, layout: Layout, version: u16, is_in_preamble: bool) -> usize {
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

/// True where no function record has an id or a delta that hardly any program has.
fn is_likely(mut records: &[u8], layout: Layout, version: u16) -> bool {
    while let Ok((record, used)) = parse_record(records, layout, version, u64::from(u16::MAX)) {
        if let Record::Function(function) = record {
            let ordinal = function.id & 0x00ff_ffff;
            if ordinal > ORDINAL_MAX || function.delta > i32::MAX.cast_unsigned() {
                return false;
            }
        }
        records = records.get(used..).unwrap_or_default();
    }
    true
}

/// Records that stand in the body of a buffer. Eight zero bytes are padding, not a function with id 0.
fn is_of_a_body(record: &Record<'_>, bytes: &[u8]) -> bool {
    match record {
        Record::Function(_) => bytes.iter().take(FUNCTION_BYTES).any(|&b| b != 0),
        Record::Metadata(metadata) => !matches!(
            metadata.body,
            Body::NewBuffer { .. } | Body::BufferExtents { .. } | Body::WallTime { .. } | Body::Pid { .. }
        ),
    }
}

/// Where reading goes on after a bad record at the start of the slice: the bytes to pass over, at most all of them.
/// `is_whole` says that the slice ends where the buffer does.
pub(crate) fn resume(bytes: &[u8], is_whole: bool, layout: Layout, version: u16, first: usize) -> usize {
    let other = if first == FUNCTION_BYTES { METADATA_BYTES } else { FUNCTION_BYTES };
    let likely = [first, other].into_iter();
    for skip in likely.chain(1..bytes.len()) {
        let Some(rest) = bytes.get(skip..) else { continue };
        let (count, _, end) = chain(rest, is_whole, layout, version, CHAIN_RECORDS);
        let fits = match end {
            ChainEnd::NextBuffer if version == 1 => count > 0,
            ChainEnd::Exact | ChainEnd::NextBuffer => is_whole || count >= CHAIN_RECORDS,
            ChainEnd::Partial => count >= CHAIN_RECORDS || (is_whole && count > 0),
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

    const LOW: Layout = Layout { endian: anytrace_core::Endian::Little, bits: crate::record::BitOrder::Low };

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
