//! Lanes of a home: spans that overlap without nesting, or belong to other ids, are on lanes of their own.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

use anytrace_core::hash::Map;
use anytrace_core::span::{NameId, TrackId};

use super::item::Item;

/// Lanes that are searched for one with room, before one without any open span is taken.
const SEARCHED_MAX: usize = 16;

/// An open span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) end: i64,
    pub(super) owner: u64,
    pub(super) name: NameId,
    pub(super) end_seq: u64,
    pub(super) flags: u8,
}

/// A lane: its track, and its open spans, outermost first.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) track: Option<TrackId>,
    pub(super) open: Vec<Open>,
}

/// All lanes of a home.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) lanes: Vec<Lane>,
    /// Lanes without open spans.
    free: BTreeSet<usize>,
    /// When the outermost span of a lane ends.
    ends: BinaryHeap<Reverse<(i64, usize)>>,
    /// The lane with open spans of an owner.
    owners: Map<u64, usize>,
    /// The lane of the last span that began.
    last: usize,
}

impl Rows {
    /// A lane whose outermost span has ended when an item begins: the caller ends its spans.
    pub(super) fn next_ended(&mut self, item: &Item) -> Option<usize> {
        let &Reverse((end, lane)) = self.ends.peek()?;
        if end > item.start || end == item.start && item.class != super::item::Class::Span {
            return None;
        }
        self.ends.pop();
        Some(lane)
    }

    /// Says that no span of a lane is open.
    pub(super) fn set_free(&mut self, lane: usize, owner: u64) {
        if self.owners.get(&owner) == Some(&lane) {
            self.owners.remove(&owner);
        }
        self.free.insert(lane);
    }

    /// The lane for a span. The spans of lanes that are over were ended.
    pub(super) fn for_span(&mut self, item: &Item) -> usize {
        let has_room = |lane: &Lane| match lane.open.iter().rev().find(|open| open.end > item.start) {
            Some(open) => open.owner == item.owner && open.end >= item.end,
            None => lane.open.is_empty() || lane.open.iter().all(|open| open.owner == item.owner),
        };
        let own = match item.owner {
            0 => self.lanes.iter().take(SEARCHED_MAX).position(has_room),
            owner => self.owners.get(&owner).copied().filter(|lane| self.lanes.get(*lane).is_some_and(has_room)),
        };
        let lane = own.or_else(|| self.free.first().copied()).unwrap_or_else(|| {
            self.lanes.push(Lane::default());
            self.lanes.len() - 1
        });
        self.last = lane;
        lane
    }

    /// The lane for a point: that of its owner, or of the span around it that began last.
    pub(super) fn for_point(&mut self, item: &Item, owner: u64) -> usize {
        let is_around = |lane: &usize| {
            self.lanes.get(*lane).is_some_and(|lane| lane.open.iter().any(|open| open.end >= item.start))
        };
        let own = if owner == 0 { Some(self.last).filter(is_around) } else { self.owners.get(&owner).copied() };
        if self.lanes.is_empty() {
            self.lanes.push(Lane::default());
            self.free.insert(0);
        }
        own.unwrap_or(0)
    }

    /// Begins a span on a lane.
    pub(super) fn begin(&mut self, lane: usize, open: Open) {
        let Some(row) = self.lanes.get_mut(lane) else { return };
        if row.open.is_empty() {
            self.ends.push(Reverse((open.end, lane)));
            self.free.remove(&lane);
            if open.owner != 0 {
                self.owners.insert(open.owner, lane);
            }
        }
        row.open.push(open);
    }
}
