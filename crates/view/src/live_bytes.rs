//! The bytes in live regions of memory, record by record, as a line.

use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_core::access::{Access, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber};
use anytrace_core::hash::Map;
use anytrace_core::{AccessSink, Error};

use crate::counters::Series;

/// Live regions that are remembered.
const REGIONS_MAX: usize = 1 << 22;

/// Adds up the bytes of live regions, record by record.
pub(crate) struct LiveBytes<'a> {
    /// The server ends.
    stop: &'a AtomicBool,
    /// The bytes of the regions that begin at an address, the latest last.
    live: Map<u64, Vec<u64>>,
    regions: usize,
    bytes: u64,
    series: Series,
}

impl<'a> LiveBytes<'a> {
    pub(crate) fn new(stop: &'a AtomicBool) -> Self {
        let series = Series::new("bytes in live regions".to_owned(), None);
        Self { stop, live: Map::default(), regions: 0, bytes: 0, series }
    }

    /// The line; none without regions.
    pub(crate) fn finish(self) -> Option<Series> {
        if self.series.is_empty() { None } else { Some(self.series) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a value to be drawn")]
    fn note(&mut self, record: u64) {
        self.series.push(record, self.bytes as f64);
    }
}

impl AccessSink for LiveBytes<'_> {
    fn thread(&mut self, _: ThreadNumber, _: Option<u64>) -> Result<(), Error> {
        Ok(())
    }

    fn type_name(&mut self, _: TypeNumber, _: Option<&[u8]>) -> Result<(), Error> {
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        if self.regions == REGIONS_MAX {
            return Err(Error::limit(format!("more than {REGIONS_MAX} regions are live at once")));
        }
        let bytes = region.element_bytes.saturating_mul(region.elements);
        self.regions += 1;
        self.bytes = self.bytes.saturating_add(bytes);
        self.live.entry(region.address).or_default().push(bytes);
        self.note(region.seq);
        Ok(())
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        let Some(same) = self.live.get_mut(&region.address) else { return Ok(()) };
        let bytes = same.pop().unwrap_or(0);
        if same.is_empty() {
            self.live.remove(&region.address);
        }
        self.regions -= 1;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.note(region.seq);
        Ok(())
    }

    fn accesses(&mut self, _: &[Access]) -> Result<(), Error> {
        if self.stop.load(Ordering::Relaxed) { Err(crate::gather::stopped()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_bytes_follow_what_is_added_and_removed() {
        let stop = AtomicBool::new(false);
        let mut live = LiveBytes::new(&stop);
        let add = |seq, address, elements| RegionAdded {
            seq,
            address,
            element_bytes: 8,
            elements,
            type_number: 0,
            thread: 0,
        };
        for region in [add(1, 64, 2), add(2, 64, 1), add(5, 256, 10)] {
            live.region_added(&region).unwrap();
        }
        for (seq, address) in [(6, 64), (7, 999), (8, 256)] {
            live.region_removed(&RegionRemoved { seq, address, thread: 0 }).unwrap();
        }
        let series = live.finish().unwrap();
        assert_eq!(
            series.within(0, 100, 1).iter().map(|point| (point.time, point.last)).collect::<Vec<_>>(),
            [(1, 16.0), (2, 24.0), (5, 104.0), (6, 96.0), (8, 16.0)]
        );
        assert!(LiveBytes::new(&stop).finish().is_none());
    }
}
