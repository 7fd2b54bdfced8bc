//! Where pages lie, and who misses in them.

use anytrace_core::hash::Map;

/// All pages that were touched.
#[derive(Debug)]
pub(super) struct Pages {
    shift: u32,
    nodes: usize,
    by_number: Map<u64, u32>,
    latest: Option<(u64, u32)>,
    homes: Vec<u32>,
    /// Misses by page and node.
    misses: Vec<u64>,
}

impl Pages {
    /// `bytes`: a power of two.
    pub(super) fn new(bytes: u64, nodes: usize) -> Self {
        let shift = bytes.trailing_zeros();
        Self { shift, nodes, by_number: Map::default(), latest: None, homes: Vec::new(), misses: Vec::new() }
    }

    /// The page of an address, which lies on the given node if it is new; true where it is.
    pub(super) fn touch(&mut self, address: u64, node: usize) -> (u32, bool) {
        let number = address >> self.shift;
        if let Some((latest, page)) = self.latest
            && latest == number
        {
            return (page, false);
        }
        let next = self.homes.len() as u32;
        let page = *self.by_number.entry(number).or_insert(next);
        self.latest = Some((number, page));
        if page == next {
            self.homes.push(node as u32);
            self.misses.resize(self.misses.len() + self.nodes, 0);
        }
        (page, page == next)
    }

    pub(super) fn home(&self, page: u32) -> usize {
        self.homes.get(page as usize).map_or(0, |home| *home as usize)
    }

    pub(super) fn miss(&mut self, page: u32, node: usize) {
        if let Some(count) = self.misses.get_mut(page as usize * self.nodes + node) {
            *count += 1;
        }
    }

    /// The system takes back the pages that lie entirely in a range of addresses: what is touched there again is new.
    pub(super) fn give_back(&mut self, start: u64, last: u64) {
        let first = start.div_ceil(1 << self.shift);
        // One more than the last page of which all bytes are in the range.
        let Some(end) = last.checked_add(1).map(|end| end >> self.shift) else { return };
        self.latest = None;
        if end.saturating_sub(first) > self.by_number.len() as u64 {
            self.by_number.retain(|number, _| !(first..end).contains(number));
        } else {
            for number in first..end {
                self.by_number.remove(&number);
            }
        }
    }

    /// Pages by the node that they lie on.
    pub(super) fn by_node(&self) -> Vec<u64> {
        let mut counts = vec![0; self.nodes];
        for home in &self.homes {
            if let Some(count) = counts.get_mut(*home as usize) {
                *count += 1;
            }
        }
        counts
    }

    /// Misses that would be remote if each page were on the node that misses in it most.
    pub(super) fn best_remote_misses(&self) -> u64 {
        self.misses.chunks(self.nodes).map(|page| page.iter().sum::<u64>() - page.iter().max().unwrap_or(&0)).sum()
    }
}
