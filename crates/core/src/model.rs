//! Results that every format returns in the same shape.

use std::collections::BTreeMap;

use crate::{Endian, Layer};

/// Version of every JSON result of the command line and of libraries that give the same.
pub const JSON_VERSION: u64 = 1;

/// What `anytrace info` reports about one file.
#[derive(Debug, Clone, PartialEq)]
pub struct Info {
    /// The format's name, or `unknown`.
    pub format: &'static str,
    /// Version, where the format has one.
    pub format_version: Option<String>,
    /// Byte order, where it can vary or matters.
    pub byte_order: Option<Endian>,
    /// Container or outer compression, outermost first, joined by `+`: `gzip`, `gzip+snappy`.
    pub container: Option<String>,
    /// Which of several habits of real files this one follows.
    pub dialect: Option<String>,
    /// Bytes of the trace as the format reads it, without an outer gzip or zstd layer.
    pub bytes: u64,
    /// Records on the wire.
    pub records: u64,
    /// Records by kind; they add up to [`Self::records`]. Kinds that do not occur are left out.
    pub kinds: Vec<(String, u64)>,
    /// Records by thread (or what the format has instead), by number; the last row is "other", for keys beyond the limit of
    /// distinct keys.
    pub threads: Vec<(String, u64)>,
    /// First and last time, where the format has a clock and the trace a time.
    pub time: Option<TimeRange>,
    /// What only this format has, by key in snake case.
    pub details: Vec<(&'static str, serde_json::Value)>,
}

impl Info {
    /// An empty result for a format.
    pub fn new(format: &'static str) -> Self {
        Self {
            format,
            format_version: None,
            byte_order: None,
            container: None,
            dialect: None,
            bytes: 0,
            records: 0,
            kinds: Vec::new(),
            threads: Vec::new(),
            time: None,
            details: Vec::new(),
        }
    }

    /// Sets the container from the compression layers and the format's own container, if any.
    pub fn set_container(&mut self, layers: &[Layer], own: Option<&str>) {
        let names: Vec<&str> = layers.iter().map(|layer| layer.compression.name()).chain(own).collect();
        self.container = (!names.is_empty()).then(|| names.join("+"));
    }

    /// Sets [`Self::kinds`] from a table of names and counts, leaving out zeros.
    pub fn set_kinds<'a>(&mut self, counts: impl IntoIterator<Item = (&'a str, u64)>) {
        self.kinds = counts.into_iter().filter(|(_, n)| *n > 0).map(|(name, n)| (name.to_owned(), n)).collect();
    }
}

/// First and last time of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeRange {
    /// Earliest, in units.
    pub start: u64,
    /// Latest, in units.
    pub end: u64,
    /// `ns` or `tick`.
    pub unit: &'static str,
    /// Ticks a second, for `tick`, where known.
    pub per_second: Option<u64>,
    /// Nanoseconds from 1970 to the zero of the unit, where the trace contains it.
    pub epoch_ns: Option<u64>,
}

/// The result of a pass over the records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Summary {
    /// Records read.
    pub records: u64,
    /// Bytes read, after decompression.
    pub bytes: u64,
}

/// The result of a rewrite.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Records read.
    pub records_read: u64,
    /// Records written.
    pub records_written: u64,
    /// Bytes of the input that could not be carried over because they were damaged.
    pub bytes_lost: u64,
    /// What was lost, changed or made up: one sentence each, for people.
    pub notes: Vec<String>,
}

/// Counts by key, with a bound on distinct keys and a small cache in front of the map; fast enough for a hot loop.
#[derive(Debug, Clone)]
pub struct Tally {
    cache: Box<[(u64, u64); CACHE_SLOTS]>,
    counts: BTreeMap<u64, u64>,
    distinct_max: usize,
    other: u64,
}

const CACHE_SLOTS: usize = 64;

impl Tally {
    /// Counts at most `distinct_max` keys apart.
    pub fn new(distinct_max: usize) -> Self {
        Self { cache: Box::new([(0, 0); CACHE_SLOTS]), counts: BTreeMap::new(), distinct_max, other: 0 }
    }

    /// Adds `n` to a key.
    #[inline]
    pub fn add(&mut self, key: u64, n: u64) {
        // The high bits of a product depend on all bits of the key (Fibonacci hashing).
        let slot = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % CACHE_SLOTS;
        let (cached, count) = &mut self.cache[slot];
        if *cached == key {
            *count += n;
        } else {
            let evicted = (*cached, *count);
            (*cached, *count) = (key, n);
            self.settle(evicted);
        }
    }

    #[cold]
    fn settle(&mut self, (key, n): (u64, u64)) {
        if n == 0 {
            return;
        }
        if let Some(count) = self.counts.get_mut(&key) {
            *count += n;
        } else if self.counts.len() < self.distinct_max {
            self.counts.insert(key, n);
        } else {
            self.other += n;
        }
    }

    /// The counts by key, ascending, and the count of all keys past the bound.
    pub fn finish(mut self) -> (BTreeMap<u64, u64>, u64) {
        for slot in 0..CACHE_SLOTS {
            let entry = std::mem::take(&mut self.cache[slot]);
            self.settle(entry);
        }
        (self.counts, self.other)
    }

    /// As rows for [`Info::threads`]: keys shown by `name`, then "other".
    pub fn into_rows(self, name: impl Fn(u64) -> String) -> Vec<(String, u64)> {
        let (counts, other) = self.finish();
        let mut rows: Vec<_> = counts.into_iter().map(|(key, n)| (name(key), n)).collect();
        if other > 0 {
            rows.push(("other".to_owned(), other));
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tally_counts_as_a_plain_map_does() {
        let mut tally = Tally::new(1000);
        let mut plain = BTreeMap::new();
        let mut x = 1_u64;
        for _ in 0..10_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            tally.add(x >> 56, 1);
            *plain.entry(x >> 56).or_insert(0) += 1;
        }
        assert_eq!(tally.finish(), (plain, 0));
    }

    #[test]
    fn keys_past_the_bound_are_counted_together() {
        let mut tally = Tally::new(10);
        for key in 0..1000 {
            tally.add(key, 2);
        }
        let (counts, other) = tally.finish();
        assert_eq!(counts.len(), 10);
        assert_eq!(counts.values().sum::<u64>() + other, 2000);
    }
}
