//! Removed regions, to determine the target of an access after the remove.

use std::collections::BTreeMap;

use crate::live_regions::LiveRegion;

/// Most removed regions remembered; the least recently removed are dropped first.
const GRAVES_MAX: usize = 1 << 20;

/// How many regions that begin before an address are examined.
const SEARCH_MAX: usize = 64;

#[derive(Debug, Clone, Copy)]
pub(super) struct Grave {
    pub(super) region: LiveRegion,
    pub(super) last: u64,
    pub(super) removed_at: u64,
    pub(super) element_bytes: u64,
}

/// By first address.
#[derive(Debug, Default)]
pub(super) struct Graves {
    by_start: BTreeMap<u64, Grave>,
    by_time: BTreeMap<u64, u64>,
}

impl Graves {
    /// Remembers a removed region; of those that begin at one address the latest.
    pub(super) fn dig(&mut self, region: LiveRegion, last: u64, removed_at: u64, element_bytes: u64) {
        let grave = Grave { region, last, removed_at, element_bytes };
        if let Some(old) = self.by_start.insert(region.start, grave) {
            self.by_time.remove(&old.removed_at);
        }
        self.by_time.insert(removed_at, region.start);
        if self.by_time.len() > GRAVES_MAX
            && let Some((_, start)) = self.by_time.pop_first()
        {
            self.by_start.remove(&start);
        }
    }

    /// Bytes that an add overlaps are no longer a removed region.
    pub(super) fn cover(&mut self, start: u64, last: u64) {
        let inside: Vec<u64> = self.by_start.range(start..=last).map(|(start, _)| *start).collect();
        let before = self.by_start.range(..start).rev().take(SEARCH_MAX);
        let reaching = before.filter(|(_, grave)| grave.last >= start).map(|(start, _)| *start);
        let all: Vec<u64> = inside.into_iter().chain(reaching).collect();
        for start in all {
            if let Some(grave) = self.by_start.remove(&start) {
                self.by_time.remove(&grave.removed_at);
            }
        }
    }

    /// The latest removed region that holds an address.
    pub(super) fn find(&self, address: u64) -> Option<&Grave> {
        let before = self.by_start.range(..=address).rev().take(SEARCH_MAX);
        before.map(|(_, grave)| grave).filter(|grave| grave.last >= address).max_by_key(|grave| grave.removed_at)
    }
}
