//! Which records a selection contains.

use std::collections::HashMap;

use anytrace_core::text::push_dec;
use anytrace_core::{Error, Selection, TimeBound};

use crate::options::OPTIONS;

/// Most function ids whose result is cached.
const REMEMBERED_MAX: usize = 1 << 16;

/// A selection over one trace.
pub(crate) struct Picker<'a> {
    selection: &'a Selection,
    bounds: Option<(u64, u64)>,
    names: HashMap<u32, bool>,
}

impl<'a> Picker<'a> {
    /// `start` is the earliest time of the trace, for a selection that counts from it.
    pub(crate) fn new(
        selection: &'a Selection,
        start: Option<u64>,
        cycle_frequency: u64,
        has_buffers: bool,
    ) -> Result<Self, Error> {
        // Only FDR traces have buffers.
        let own = if has_buffers { OPTIONS } else { &[] };
        selection.only("xray", &["records", "thread", "time", "name"], own)?;
        if cycle_frequency == 0 && selection.has_relative_time() {
            return Err(Error::usage(
                "--time in seconds needs a cycle frequency, which this trace does not give; use ticks",
            ));
        }
        let ticks = |bound, open| match bound {
            TimeBound::Native(tsc) => tsc,
            TimeBound::Open => open,
            TimeBound::Nanoseconds(ns) => start.unwrap_or(0).saturating_add(ticks_of_ns(ns, cycle_frequency)),
        };
        let bounds = selection.time.map(|(from, to)| (ticks(from, 0), ticks(to, u64::MAX)));
        Ok(Self { selection, bounds, names: HashMap::new() })
    }

    /// The selected times, in ticks, from the first to before the second.
    #[cfg(feature = "lanes")]
    pub(crate) fn bounds(&self) -> Option<(u64, u64)> {
        self.bounds
    }

    /// True when everything is selected.
    pub(crate) fn is_all(&self) -> bool {
        self.selection.is_all()
    }

    /// True when the selection names functions or times, which context records do not have.
    pub(crate) fn is_by_content(&self) -> bool {
        self.selection.name.is_some() || self.selection.time.is_some()
    }

    pub(crate) fn has_name_condition(&self) -> bool {
        self.selection.name.is_some()
    }

    pub(crate) fn has_place(&self, seq: u64, thread: u32, buffer: u64) -> bool {
        let threads = &self.selection.threads;
        let is_thread = threads.is_empty()
            || threads.iter().any(|&t| t == u64::from(thread) || t == i64::from(thread.cast_signed()).cast_unsigned());
        is_thread
            && self.selection.has_record(seq)
            && self.selection.own.numbers("buffers").is_none_or(|numbers| numbers.contains(buffer))
    }

    pub(crate) fn has_time(&self, tsc: u64) -> bool {
        self.bounds.is_none_or(|(from, to)| from <= tsc && (tsc < to || to == u64::MAX))
    }

    /// Applies the name condition to `#ID`, the id, and the name, if there is one.
    pub(crate) fn has_name(&mut self, function: u32, name: &[u8]) -> bool {
        let Some(matches) = &self.selection.name else { return true };
        if !name.is_empty() && matches(name) {
            return true;
        }
        if let Some(&known) = self.names.get(&function) {
            return known;
        }
        let mut text = vec![b'#'];
        push_dec(&mut text, function);
        let found = matches(&text) || matches(text.get(1..).unwrap_or_default());
        if self.names.len() < REMEMBERED_MAX {
            self.names.insert(function, found);
        }
        found
    }
}

/// Ticks in a time, rounded up, as in the filters of spans: a record is selected by its exact time.
fn ticks_of_ns(ns: u64, cycle_frequency: u64) -> u64 {
    let ticks = (u128::from(ns) * u128::from(cycle_frequency)).div_ceil(1_000_000_000);
    u64::try_from(ticks).unwrap_or(u64::MAX)
}
