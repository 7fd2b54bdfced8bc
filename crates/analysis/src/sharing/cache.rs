//! The private cache of each core: its lines, least recently touched first out.

/// A line in a cache.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// Number of the line's entry.
    entry: u32,
    /// When it was touched last.
    touched: u64,
}

/// One core's cache.
#[derive(Debug, Default)]
pub(super) struct Cache {
    /// Lines by set; a set has at most as many as the cache has ways.
    sets: Vec<Vec<Way>>,
    clock: u64,
}

impl Cache {
    fn set(&mut self, line: u64, sets: u64) -> &mut Vec<Way> {
        let at = usize::try_from(line % sets).unwrap_or(0);
        if at >= self.sets.len() {
            // Below the number of sets, which the options limit.
            self.sets.resize_with(at + 1, Vec::new);
        }
        self.sets.get_mut(at).expect("the set was made just now")
    }

    /// Touches a line that is in the cache.
    pub(super) fn touch(&mut self, line: u64, entry: u32, sets: u64) {
        self.clock += 1;
        let touched = self.clock;
        if let Some(way) = self.set(line, sets).iter_mut().find(|way| way.entry == entry) {
            way.touched = touched;
        }
    }

    /// Inserts a line; returns the entry of the line that was evicted for it.
    pub(super) fn insert(&mut self, line: u64, entry: u32, sets: u64, ways: usize) -> Option<u32> {
        self.clock += 1;
        let touched = self.clock;
        let set = self.set(line, sets);
        let filled = Way { entry, touched };
        if set.len() < ways {
            set.push(filled);
            return None;
        }
        let oldest = set.iter_mut().min_by_key(|way| way.touched)?;
        Some(std::mem::replace(oldest, filled).entry)
    }

    /// Drops a line.
    pub(super) fn drop_line(&mut self, line: u64, entry: u32, sets: u64) {
        let set = self.set(line, sets);
        if let Some(at) = set.iter().position(|way| way.entry == entry) {
            set.swap_remove(at);
        }
    }
}
