//! Which records a selection contains.

use std::collections::HashMap;

use anytrace_core::text::push_dec;
use anytrace_core::{Error, Selection, TimeBound};

/// Most function ids whose result is cached.
const REMEMBERED_MAX: usize = 1 << 16;

/// A selection over one trace.
pub(crate) struct Picker<'a> {
    selection: &'a Selection,
    cycle_frequency: u64,
    first: Option<u64>,
    bounds: Option<(u64, u64)>,
    names: HashMap<u32, bool>,
}

impl<'a> Picker<'a> {
    pub(crate) fn new(selection: &'a Selection, cycle_frequency: u64, has_buffers: bool) -> Result<Self, Error> {
        let known: &[&str] = if has_buffers {
            &["records", "thread", "time", "name", "buffers"]
        } else {
            &["records", "thread", "time", "name"]
        };
        selection.only("xray", known)?;
        let is_relative = |bound| matches!(bound, TimeBound::Nanoseconds(_));
        if cycle_frequency == 0 && selection.time.is_some_and(|(from, to)| is_relative(from) || is_relative(to)) {
            return Err(Error::usage(
                "--time in seconds needs a cycle frequency, which this trace does not name; give ticks",
            ));
        }
        Ok(Self { selection, cycle_frequency, first: None, bounds: None, names: HashMap::new() })
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
            && self.selection.buffers.as_ref().is_none_or(|range| range.contains(&buffer))
    }

    /// Stores the first time on the wire.
    pub(crate) fn see_time(&mut self, tsc: u64) {
        if self.first.is_none() {
            self.first = Some(tsc);
            self.bounds =
                self.selection.time.map(|(from, to)| (self.ticks(from, tsc, 0), self.ticks(to, tsc, u64::MAX)));
        }
    }

    fn ticks(&self, bound: TimeBound, first: u64, open: u64) -> u64 {
        match bound {
            TimeBound::Native(tsc) => tsc,
            TimeBound::Open => open,
            TimeBound::Nanoseconds(ns) => {
                let ticks = u128::from(ns) * u128::from(self.cycle_frequency) / 1_000_000_000;
                first.saturating_add(u64::try_from(ticks).unwrap_or(u64::MAX))
            }
        }
    }

    pub(crate) fn has_time(&mut self, tsc: u64) -> bool {
        self.see_time(tsc);
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
