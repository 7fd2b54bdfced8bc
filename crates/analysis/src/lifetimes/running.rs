//! What is counted of a type while a pass runs.

use super::results::{Amount, TypeLife};
use crate::quantiles::Quantiles;
use crate::type_profile::Series;

#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) regions: u64,
    pub(super) bytes: u64,
    pub(super) lifetimes: Quantiles,
    pub(super) leaked: u64,
    pub(super) leaked_bytes: u64,
    pub(super) untouched: u64,
    pub(super) untouched_bytes: u64,
    pub(super) unread: Amount,
    pub(super) unwritten: Amount,
    pub(super) short_lived: Amount,
    pub(super) at_peak: AtPeak,
    pub(super) live: Living,
    pub(super) unwritten_reads: u64,
    pub(super) after_remove: u64,
}

/// Live bytes.
#[derive(Debug, Default)]
pub(super) struct Living {
    pub(super) bytes: u64,
    pub(super) peak: u64,
    pub(super) peak_at: u64,
    /// How many maxima there were so far.
    pub(super) peaks: u64,
    pub(super) series: Series,
}

impl Living {
    pub(super) fn change(&mut self, seq: u64, bytes: u64) {
        // The old value was valid up to this record, so it counts in this slot, too.
        self.series.put(seq, self.bytes);
        self.bytes = bytes;
        self.series.put(seq, bytes);
        if bytes > self.peak {
            (self.peak, self.peak_at) = (bytes, seq);
            self.peaks += 1;
        }
    }
}

/// The bytes of a type when all types together had most. New maxima come with almost every add of a program that
/// grows, so a type notes its bytes only when they change after the last one.
#[derive(Debug, Default)]
pub(super) struct AtPeak {
    bytes: u64,
    /// The maximum to which `bytes` belongs, counted from 0.
    peak: u64,
}

impl AtPeak {
    /// Call before the bytes of the type change from `bytes`; `peak` is the number of the last maximum.
    pub(super) fn note(&mut self, peak: u64, bytes: u64) {
        if self.peak < peak {
            (self.bytes, self.peak) = (bytes, peak);
        }
    }
}

impl Running {
    /// The regions of this type have `bytes` from record `seq` on; `peak` is as for [`AtPeak::note`].
    pub(super) fn change(&mut self, seq: u64, bytes: u64, peak: u64) {
        self.at_peak.note(peak, self.live.bytes);
        self.live.change(seq, bytes);
    }

    /// The result; `last` is the last record.
    pub(super) fn finish(mut self, last: u64, peak: u64) -> TypeLife {
        self.at_peak.note(peak, self.live.bytes);
        self.live.series.put(last, self.live.bytes);
        TypeLife {
            regions: self.regions,
            bytes: self.bytes,
            lifetimes: self.lifetimes.sorted(),
            leaked: self.leaked,
            leaked_bytes: self.leaked_bytes,
            untouched: self.untouched,
            untouched_bytes: self.untouched_bytes,
            unread: self.unread,
            unwritten: self.unwritten,
            short_lived: self.short_lived,
            bytes_at_peak: self.at_peak.bytes,
            live_bytes_peak: self.live.peak,
            peak_at: self.live.peak_at,
            live: self.live.series,
            unwritten_reads: self.unwritten_reads,
            after_remove: self.after_remove,
        }
    }
}
