//! What counters of a stream can do, for all who follow them.

/// A jump this far means that the writer restarted, and is not a loss (page, section 4).
pub(crate) const RESTART: u32 = 1 << 20;

/// Jumps up to here are taken as they are. Further ones are doubtful where the time between the events is too short, or
/// where the next events continue before them: a forged or damaged counter must not pass for a million losses.
pub(crate) const JUMP: u32 = 4096;

/// No stream has more than one event in this time, in nanoseconds. The fastest recorders need several times as long,
/// and to drop an event takes longer too.
const FASTEST_NS: u64 = 2;

/// True when this many events can have been between two that ended at these times. Times of 0 say nothing.
pub(crate) fn is_plausible(missing: u64, from_ns: u64, to_ns: u64) -> bool {
    missing <= u64::from(JUMP) || to_ns == 0 || missing <= to_ns.saturating_sub(from_ns) / FASTEST_NS
}
