//! Which bytes after damage may be a record of `perf.data`: a guess that every caller reports as one.

use anytrace_core::Endian;

use super::event::{frame, kind, kind_name};
use super::fault::Need;

/// Records that must follow each other.
const CHAIN: usize = 3;

/// What the bytes at a place are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plausible {
    /// Something else.
    No,
    /// As far as they go, a record; this many bytes are needed to know.
    Unknown(u64),
    /// A record, and behind it others or the end.
    Yes,
}

/// Judges the bytes with which a window begins: a chain of records of known kinds whose lengths are multiples of 8,
/// where they are not of a kind that may have any.
/// `left` is the distance to the end of the records.
pub(crate) fn plausible(window: &[u8], is_last: bool, left: u64, endian: Endian) -> Plausible {
    let mut at = 0_usize;
    for _ in 0..CHAIN {
        let rest = window.get(at..).unwrap_or_default();
        if at as u64 == left || (is_last && rest.is_empty()) {
            return if at == 0 { Plausible::No } else { Plausible::Yes };
        }
        let found = match frame(rest, endian) {
            Ok(found) => found,
            Err(Need::More(need)) if !is_last => return Plausible::Unknown(need.saturating_add(at as u64)),
            Err(_) => return Plausible::No,
        };
        let end = found.bytes.saturating_add(at as u64);
        let has_any_length = matches!(found.kind, kind::HEADER_FEATURE | kind::COMPRESSED);
        let is_aligned = found.bytes.is_multiple_of(8) || has_any_length;
        if kind_name(found.kind) == "unknown" || !is_aligned || end > left {
            return Plausible::No;
        }
        let Ok(end) = usize::try_from(end) else { return Plausible::No };
        if end > window.len() && is_last {
            return Plausible::No;
        }
        at = end;
    }
    Plausible::Yes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_of_records_is_plausible() {
        let round = [68, 0, 0, 0, 0, 0, 8, 0];
        let judge = |bytes: &[u8], is_last, left| plausible(bytes, is_last, left, Endian::Little);
        assert_eq!(judge(&round.repeat(3), false, 99), Plausible::Yes);
        assert_eq!(judge(&round, false, 8), Plausible::Yes);
        assert_eq!(judge(&round, true, u64::MAX), Plausible::Yes);
        assert_eq!(judge(&round, false, 99), Plausible::Unknown(16));
        assert_eq!(judge(&[&round[..], &[0; 8]].concat(), false, 99), Plausible::No);
        assert_eq!(judge(&round, false, 7), Plausible::No);
        assert_eq!(judge(&[], true, 0), Plausible::No);
    }
}
