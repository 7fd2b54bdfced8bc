//! Where events are drawn: rows that lanes share, one after the other in time.
//!
//! Events come in order of their starts. A lane that has a span open has a row to itself; when its last span ends, the
//! row is free for another. So there are as many rows as spans were open at once, and none is ever missing.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use anytrace_core::hash::Map;
use anytrace_core::span::{NameId, TrackId};

use crate::lanes::event::Sorted;
use crate::lanes::rule::Sweep;

/// Lanes that share rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Group {
    /// All lanes of a stream.
    Stream,
    /// An actor of the runtime.
    Actor(u64),
    /// Lives of spans below roots of this name.
    Root(NameId),
}

/// Index of a row.
pub(super) type RowId = u32;

/// An open span on a row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    pub(super) end: u64,
    pub(super) identity: u64,
    pub(super) seq: u64,
    pub(super) name: NameId,
}

/// A track and its open spans, outermost first.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) track: TrackId,
    pub(super) open: Vec<Shown>,
    group: Group,
}

/// A lane with a span open: its spans by the rule, each with its row and identity. A point has those of the span around
/// it.
#[derive(Debug)]
struct Lane {
    sweep: Sweep<(RowId, Option<u64>)>,
    until: u64,
    group: Group,
}

/// Rows of a home and the lanes that are on them.
#[derive(Debug, Default)]
pub(super) struct Rows {
    rows: Vec<Row>,
    lanes: Map<u64, Lane>,
    spare: Vec<Sweep<(RowId, Option<u64>)>>,
    /// When the spans of lanes and rows end.
    lane_ends: BinaryHeap<Reverse<(u64, u64)>>,
    row_ends: BinaryHeap<Reverse<(u64, RowId)>>,
    free: BTreeMap<Group, BTreeSet<RowId>>,
}

/// The place of an event in its lane.
pub(super) struct Place {
    /// Row and identity of the span around it.
    pub(super) parent: Option<(RowId, Option<u64>)>,
    pub(super) group: Group,
    lane: Option<u64>,
}

impl Rows {
    /// A row that is free when an event begins. Its spans have ended.
    pub(super) fn next_ended(&mut self, event: &Sorted<'_>) -> Option<RowId> {
        let Reverse((end, row)) = *self.row_ends.peek()?;
        let is_over = end < event.start || end == event.start && event.start != event.end;
        if !is_over {
            return None;
        }
        self.row_ends.pop();
        let group = self.rows.get(row as usize)?.group;
        self.free.entry(group).or_default().insert(row);
        Some(row)
    }

    /// Places an event in its lane. `group` says what the lane belongs to if it begins here.
    pub(super) fn place(&mut self, lane: u64, event: &Sorted<'_>, group: impl FnOnce() -> Group) -> Place {
        while let Some(&Reverse((end, ended))) = self.lane_ends.peek()
            && end < event.start
        {
            self.lane_ends.pop();
            if self.lanes.get(&ended).is_some_and(|lane| lane.until == end)
                && let Some(mut lane) = self.lanes.remove(&ended)
            {
                lane.sweep.finish(&mut |_| {});
                self.spare.push(lane.sweep);
            }
        }
        let is_point = event.start == event.end;
        let spare = &mut self.spare;
        let known = match self.lanes.entry(lane) {
            std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
            // A point alone makes no lane.
            std::collections::hash_map::Entry::Vacant(_) if is_point => {
                return Place { parent: None, group: group(), lane: None };
            }
            std::collections::hash_map::Entry::Vacant(entry) => {
                let sweep = spare.pop().unwrap_or_else(Sweep::new);
                entry.insert(Lane { sweep, until: 0, group: group() })
            }
        };
        let own = Some(event.identity());
        let placed = known.sweep.place(event.start, event.end, (RowId::MAX, own), &mut |_| {});
        if placed.parent.is_none() && event.end >= known.until {
            known.until = event.end;
            self.lane_ends.push(Reverse((event.end, lane)));
        }
        Place { parent: placed.parent, group: known.group, lane: placed.is_open.then_some(lane) }
    }

    /// Says on which row the event is that was placed last.
    pub(super) fn set_row(&mut self, place: &Place, row: RowId, identity: Option<u64>) {
        if let Some(lane) = place.lane.and_then(|lane| self.lanes.get_mut(&lane)) {
            lane.sweep.set_top((row, identity));
        }
    }

    /// Begins a span on a row.
    pub(super) fn begin(&mut self, row: RowId, shown: Shown) {
        let Some(entry) = self.rows.get_mut(row as usize) else { return };
        if entry.open.is_empty() {
            self.row_ends.push(Reverse((shown.end, row)));
            if let Some(free) = self.free.get_mut(&entry.group) {
                free.remove(&row);
            }
        }
        entry.open.push(shown);
    }

    /// The lowest row of a group that is free.
    pub(super) fn free(&self, group: Group) -> Option<RowId> {
        self.free.get(&group)?.first().copied()
    }

    /// Adds a row, which is free.
    pub(super) fn add(&mut self, track: TrackId, group: Group) -> RowId {
        let row = RowId::try_from(self.rows.len()).unwrap_or(RowId::MAX);
        self.rows.push(Row { track, open: Vec::new(), group });
        self.free.entry(group).or_default().insert(row);
        row
    }

    pub(super) fn get(&mut self, row: RowId) -> Option<&mut Row> {
        self.rows.get_mut(row as usize)
    }

    /// The spans that are open on each row, and its track.
    pub(super) fn into_open(self) -> impl Iterator<Item = (Vec<Shown>, TrackId)> {
        self.rows.into_iter().map(|row| (row.open, row.track))
    }
}
