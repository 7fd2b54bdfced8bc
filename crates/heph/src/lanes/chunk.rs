//! Events in memory until there are enough of them to sort and write.

use anytrace_core::hash::Map;

use super::event::StoredEvent;

/// A chunk is written when it reaches this size: 24 MiB with everything.
const FULL_BYTES: usize = 24 << 20;

/// What an event takes besides its own bytes: in the list and in the sort order.
const EVENT_BYTES: usize = size_of::<StoredEvent>() + size_of::<SortKey>() + 4;

/// Events in order of arrival.
#[derive(Debug, Default)]
pub(super) struct Chunk {
    events: Vec<StoredEvent>,
    /// Each event's lane: an index into `lanes`.
    lane_of: Vec<u32>,
    lanes: Vec<Lane>,
    index: Map<(u32, u64), u32>,
    last: u32,
    arena: Vec<u8>,
    order: Vec<SortKey>,
}

#[derive(Debug, Clone, Copy)]
struct Lane {
    key: (u32, u64),
    count: u32,
}

/// The sort key of events within a lane, and where the event is.
#[derive(Debug, Clone, Copy)]
struct SortKey {
    start: u64,
    end: u64,
    at: u32,
}

impl Chunk {
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.events.len() * EVENT_BYTES + self.arena.len() >= FULL_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds an event with its bytes: description, attributes, nesting.
    #[inline]
    pub(super) fn push(&mut self, mut event: StoredEvent, bytes: [&[u8]; 3]) {
        // A chunk is full long before 4 GiB: plus the longest packet.
        event.at = u32::try_from(self.arena.len()).unwrap_or(0);
        [event.description_bytes, event.attribute_bytes, event.nesting_bytes] =
            bytes.map(|bytes| u32::try_from(bytes.len()).unwrap_or(0));
        bytes.iter().for_each(|bytes| self.arena.extend_from_slice(bytes));
        let key = (event.home, event.lane);
        let lane = match self.lanes.get(self.last as usize) {
            Some(last) if last.key == key => self.last,
            _ => self.lane(key),
        };
        self.last = lane;
        if let Some(lane) = self.lanes.get_mut(lane as usize) {
            lane.count += 1;
        }
        self.lane_of.push(lane);
        self.events.push(event);
    }

    fn lane(&mut self, key: (u32, u64)) -> u32 {
        let next = u32::try_from(self.lanes.len()).unwrap_or(u32::MAX);
        let lanes = &mut self.lanes;
        *self.index.entry(key).or_insert_with(|| {
            lanes.push(Lane { key, count: 0 });
            next
        })
    }

    /// Sorts: lanes first, then each lane by the rule's key.
    pub(super) fn sort(&mut self) {
        let mut by_key: Vec<usize> = (0..self.lanes.len()).collect();
        by_key.sort_unstable_by_key(|&lane| self.lanes.get(lane).map(|lane| lane.key));
        let mut next = vec![0_usize; self.lanes.len()];
        let mut total = 0;
        for &lane in &by_key {
            if let (Some(next), Some(lane)) = (next.get_mut(lane), self.lanes.get(lane)) {
                *next = total;
                total += lane.count as usize;
            }
        }
        self.order.clear();
        self.order.resize(self.events.len(), SortKey { start: 0, end: 0, at: 0 });
        for (at, (event, &lane)) in (0..).zip(self.events.iter().zip(&self.lane_of)) {
            if let Some(next) = next.get_mut(lane as usize)
                && let Some(place) = self.order.get_mut(*next)
            {
                *place = SortKey { start: event.start, end: event.end, at };
                *next += 1;
            }
        }
        let events = &self.events;
        let tie = |place: &SortKey| events.get(place.at as usize).map(|event| (!event.order, !event.seq));
        let mut rest = self.order.as_mut_slice();
        for &lane in &by_key {
            let count = self.lanes.get(lane).map_or(0, |lane| lane.count as usize);
            let Some((own, after)) = rest.split_at_mut_checked(count) else { break };
            own.sort_unstable_by(|a, b| {
                a.start.cmp(&b.start).then(b.end.cmp(&a.end)).then_with(|| tie(a).cmp(&tie(b)))
            });
            rest = after;
        }
    }

    /// The events in the order of the last sort, with their bytes.
    pub(super) fn sorted(&self) -> impl Iterator<Item = (&StoredEvent, &[u8])> {
        self.order.iter().filter_map(|place| {
            let event = self.events.get(place.at as usize)?;
            let bytes = self.arena.get(event.at as usize..event.at as usize + event.bytes())?;
            Some((event, bytes))
        })
    }

    /// Removes all events; keeps the memory.
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.lane_of.clear();
        self.lanes.clear();
        self.index.clear();
        self.last = 0;
        self.arena.clear();
        self.order.clear();
        // The memory for one long packet must not be kept forever.
        self.arena.shrink_to(FULL_BYTES);
    }
}
