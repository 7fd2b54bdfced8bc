//! The state of the checker as bytes, so that a later run continues where this one stopped.
//!
//! What follows from the rest is not stored but made again. Tables with keys are written in the order of the keys: the
//! same state is the same bytes.

mod bytes;
mod parts;

use alloc::vec::Vec;

pub use bytes::{In, Out};

use super::Checker;
use super::quirk::Options;
use super::table::{Map, MapKey};

/// The pairs of a table, by key.
fn sorted<K: MapKey + Ord, V>(map: &Map<K, V>) -> Vec<(K, &V)> {
    let mut pairs: Vec<_> = map.iter().map(|(key, value)| (*key, value)).collect();
    pairs.sort_unstable_by_key(|(key, _)| *key);
    pairs
}

impl Checker {
    /// Writes the state between two steps.
    pub fn save(&self, out: &mut Out) {
        self.memory.save(out);
        self.unclean.save(out);
        self.stale.save(out);
        self.locks.save(out);
        self.roots.save(out);
        self.threads.save(out);
        self.tags.save(out);
        out.list(self.nested.iter().collect::<Vec<_>>().into_iter(), |out, (page, root)| {
            out.number(page);
            out.number(*root);
        });
        out.flag(self.has_thread_owners);
        out.flag(self.is_irregular);
        out.list(sorted(&self.shown).into_iter(), |out, (cell, value)| {
            out.number(cell);
            out.number(*value);
        });
    }

    /// Reads what [`Self::save`] wrote for the same options; `None` where it did not write these bytes.
    pub fn restore(options: Options, input: &mut In<'_>) -> Option<Self> {
        let mut checker = Self::new(options);
        checker.memory.restore(input)?;
        checker.unclean.restore(input)?;
        checker.stale.restore(input)?;
        checker.locks.restore(input)?;
        checker.roots.restore(input)?;
        checker.threads.restore(input)?;
        checker.tags.restore(input)?;
        for (page, root) in input.list(|input| Some((input.number()?, input.number()?)))? {
            checker.nested.insert(page, root);
        }
        checker.has_thread_owners = input.flag()?;
        checker.is_irregular = input.flag()?;
        for (cell, value) in input.list(|input| Some((input.number()?, input.number()?)))? {
            checker.shown.insert(cell, value);
        }
        Some(checker)
    }
}

impl Options {
    /// Writes the options, so that a later run with other ones is refused.
    pub fn save(&self, out: &mut Out) {
        out.number(u64::from(self.quirks.bits()));
        for flag in [self.is_racy, self.ignores_uninitialised, self.no_sysreg, self.goes_on] {
            out.flag(flag);
        }
        out.number(self.bbm as u64);
    }
}
