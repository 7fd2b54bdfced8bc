//! Complete events of a thread that overlap and do not nest: for `check`.

use anytrace_core::{Error, Place, Sink};

use super::item::{Item, Order};
use super::sorter::Sorter;
use crate::rules;
use crate::wire::event::Event;

/// Most enclosing events that are followed.
const DEPTH_MAX: usize = 65_536;

/// Gathers complete events and finds those that overlap.
#[derive(Debug)]
pub(crate) struct Overlaps(Sorter);

impl Default for Overlaps {
    fn default() -> Self {
        Self(Sorter::new(Order::Owners))
    }
}

impl Overlaps {
    /// Adds an event of a thread, which a number identifies.
    pub(crate) fn add(&mut self, thread: u64, event: &Event<'_>, at: Place) -> Result<(), Error> {
        let (start, end) = (event.start.ns, event.end_ns());
        self.0.push(Item { owner: thread, start, end, seq: at.seq, end_seq: at.offset, ..Item::default() }, &[], &[])
    }

    /// Reports each event that ends after an event in which it begins.
    pub(crate) fn report(self, sink: &mut dyn Sink) -> Result<(), Error> {
        let mut thread = None;
        let mut open: Vec<(i64, u64)> = Vec::new();
        self.0.each(&mut |item, _| {
            if thread.replace(item.owner) != Some(item.owner) {
                open.clear();
            }
            while open.last().is_some_and(|(end, _)| *end <= item.start) {
                open.pop();
            }
            match open.last() {
                Some(&(end, seq)) if end < item.end => {
                    let report = rules::OVERLAP.at(item.end_seq).record(item.seq).field("dur");
                    let report = report.expected(format!("an end with event {seq}, at {end} ns, or before"));
                    sink.report(report.found(format!("an end at {} ns", item.end)))
                }
                _ => {
                    if open.len() < DEPTH_MAX {
                        open.push((item.end, item.seq));
                    }
                    Ok(())
                }
            }
        })
    }
}
