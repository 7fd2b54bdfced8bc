//! Jumps of counters that a recorder can hardly have made wait until other events show what they are.

use crate::wire::counter::JUMP;

/// After this many events that continue before a jump, the jump was none.
const STRAY_AFTER: u32 = 3;

/// An event far ahead of its stream, until others show whether the stream continues there.
#[derive(Debug, Clone)]
pub(super) struct Candidate<P> {
    pub(super) packet: P,
    /// Counters between it and the stream.
    pub(super) missing: u64,
    /// Whether the stream can have got that far in the time.
    pub(super) is_plausible: bool,
    /// Events since that continue before it.
    behind: u32,
}

/// What the next event says of a candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The stream continues there.
    Continues,
    /// The stream continues where it was before.
    Stray,
    /// Nothing yet.
    Open,
}

impl<P> Candidate<P> {
    pub(super) fn new(packet: P, missing: u64, is_plausible: bool) -> Self {
        Self { packet, missing, is_plausible, behind: 0 }
    }

    /// `after`: how far behind the candidate the next event is, if it is; `is_before`: it continues what was before.
    pub(super) fn next(&mut self, after: Option<u64>, is_before: bool) -> Verdict {
        match after {
            Some(after) if after <= u64::from(JUMP) => Verdict::Continues,
            _ if is_before => {
                self.behind += 1;
                if self.behind >= STRAY_AFTER { Verdict::Stray } else { Verdict::Open }
            }
            // A third place: whatever it is, the candidate is judged by itself.
            _ if self.is_plausible => Verdict::Continues,
            _ => Verdict::Stray,
        }
    }
}
