//! What could not be recorded, counted by function.

use std::collections::BTreeMap;

/// Functions, why, and how often.
#[derive(Debug)]
pub(crate) struct Losses(BTreeMap<(&'static str, &'static str), u64>);

impl Losses {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn count(&mut self, function: &'static str, why: &'static str) {
        *self.0.entry((function, why)).or_default() += 1;
    }

    /// What, why, and how often.
    pub(crate) fn each(&self, mut take: impl FnMut(&str, &str, u64)) {
        for ((function, why), count) in &self.0 {
            take(function, why, *count);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}
