//! Places the calls of one thread as properly nested spans. Calls that overlap without nesting go to further lanes.
//!
//! Calls of one thread nest, as long as the trace specifies their thread. Before version 4 it does not: calls of all
//! threads are assigned to thread 0, and overlap arbitrarily.

use anytrace_core::Error;
use anytrace_core::span::{EdgeFlags, EdgeKind, NameId, TrackId};

/// Most lanes of a thread; further overlapping calls are shortened to nest.
const LANES_MAX: usize = 64;

/// Most groups open on a thread. Drivers accept 64; more is an error there.
const GROUPS_MAX: usize = 256;

/// A time that is not known.
const UNKNOWN: u64 = u64::MAX;

/// Receives edges.
pub(super) trait Out {
    /// Creates a lane; returns its track.
    fn lane(&mut self, thread: usize, lane: usize) -> Result<TrackId, Error>;

    /// Emits an edge of a call or group.
    fn edge(&mut self, track: TrackId, kind: EdgeKind, name: NameId, time: u64, flags: EdgeFlags) -> Result<(), Error>;

    /// Emits the attributes of the call whose begin was emitted last.
    fn attributes(&mut self) -> Result<(), Error>;

    /// A frame ended.
    fn frame(&mut self, track: TrackId, number: u64, time: u64) -> Result<(), Error>;
}

/// What follows the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    /// The frame with this number ended.
    Frame(u64),
    /// A group with this name begins.
    Group(NameId),
}

/// A call to be placed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) number: u64,
    pub(super) name: NameId,
    pub(super) start: u64,
    /// `None`: never left, or not left yet.
    pub(super) end: Option<u64>,
    pub(super) then: Then,
    /// It ends the innermost group.
    pub(super) ends_group: bool,
}

/// A call or group that is open.
#[derive(Debug, Clone, Copy)]
struct Open {
    /// Number of the call; of groups, of the call that began it.
    number: u64,
    is_group: bool,
    name: NameId,
    /// Its own end, if known.
    end: u64,
    /// The earliest end of this and of everything that encloses it.
    bound: u64,
    then: Then,
}

/// The nested spans of one track.
#[derive(Debug)]
struct Lane {
    track: TrackId,
    stack: Vec<Open>,
    /// The time of the last edge emitted.
    last: u64,
}

/// The lanes of a thread.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: Vec<Lane>,
    groups: usize,
    /// Groups beyond the limit, whose ends must be skipped.
    groups_skipped: u64,
}

impl Lane {
    fn bound(&self) -> u64 {
        self.stack.last().map_or(UNKNOWN, |open| open.bound)
    }

    fn emit(
        &mut self,
        kind: EdgeKind,
        name: NameId,
        time: u64,
        flags: EdgeFlags,
        out: &mut dyn Out,
    ) -> Result<(), Error> {
        self.last = self.last.max(time);
        out.edge(self.track, kind, name, self.last, flags)
    }

    fn begin(&mut self, open: Open, start: u64, out: &mut dyn Out) -> Result<(), Error> {
        self.stack.push(Open { bound: open.end.min(self.bound()), ..open });
        self.emit(EdgeKind::Begin, open.name, start, EdgeFlags::NONE, out)
    }
}

impl Lanes {
    /// Places a call. Calls come in the order of their enters.
    pub(super) fn place(&mut self, call: &Placed, thread: usize, out: &mut dyn Out) -> Result<(), Error> {
        let end = call.end.unwrap_or(UNKNOWN);
        let mut chosen = None;
        for at in 0..self.lanes.len() {
            self.settle(at, call.start, out)?;
            let bound = self.lanes.get(at).map_or(UNKNOWN, Lane::bound);
            if chosen.is_none() && (bound == UNKNOWN || end < bound) {
                chosen = Some(at);
            }
        }
        if call.ends_group {
            self.end_group(call.start, out)?;
        }
        if chosen.is_none() && self.lanes.len() < LANES_MAX {
            chosen = Some(self.lanes.len());
            let track = out.lane(thread, self.lanes.len())?;
            self.lanes.push(Lane { track, stack: Vec::new(), last: 0 });
        }
        let at = chosen.unwrap_or(LANES_MAX - 1);
        let Some(lane) = self.lanes.get_mut(at) else { return Ok(()) };
        let &Placed { number, name, start, then, .. } = call;
        lane.begin(Open { number, is_group: false, name, end, bound: end, then }, start, out)?;
        out.attributes()
    }

    /// Records the end of a call that was placed without one.
    pub(super) fn left(&mut self, number: u64, end: u64) {
        for lane in &mut self.lanes {
            // Groups come after the calls that began them.
            let at = lane.stack.partition_point(|open| (open.number, open.is_group) < (number, false));
            let Some(open) = lane.stack.get_mut(at).filter(|open| open.number == number && !open.is_group) else {
                continue;
            };
            open.end = end;
            for open in lane.stack.iter_mut().skip(at) {
                open.bound = open.bound.min(end);
            }
            return;
        }
    }

    /// Ends everything. Spans without an end are unfinished.
    pub(super) fn finish(&mut self, out: &mut dyn Out) -> Result<(), Error> {
        for at in 0..self.lanes.len() {
            self.settle(at, UNKNOWN - 1, out)?;
            while let Some(lane) = self.lanes.get_mut(at)
                && let Some(open) = lane.stack.pop()
            {
                lane.emit(EdgeKind::End, open.name, lane.last, EdgeFlags::UNFINISHED, out)?;
                if let Then::Frame(number) = open.then {
                    out.frame(lane.track, number, lane.last)?;
                }
            }
        }
        Ok(())
    }

    /// Emits the ends up to a time.
    #[inline]
    fn settle(&mut self, at: usize, time: u64, out: &mut dyn Out) -> Result<(), Error> {
        while let Some(lane) = self.lanes.get_mut(at)
            && lane.bound() <= time
        {
            let Some(open) = lane.stack.pop() else { return Ok(()) };
            let is_own = open.end == open.bound;
            let flags = if is_own { EdgeFlags::NONE } else { EdgeFlags::DEDUCED };
            lane.emit(EdgeKind::End, open.name, open.bound, flags, out)?;
            self.groups -= usize::from(open.is_group);
            match open.then {
                Then::Frame(number) => out.frame(lane.track, number, lane.last)?,
                Then::Group(name) if is_own && self.groups < GROUPS_MAX => {
                    self.groups += 1;
                    let number = open.number;
                    let group =
                        Open { number, is_group: true, name, end: UNKNOWN, bound: UNKNOWN, then: Then::Nothing };
                    lane.begin(group, open.bound, out)?;
                }
                Then::Group(_) => self.groups_skipped += u64::from(is_own),
                Then::Nothing => {}
            }
        }
        Ok(())
    }

    /// Ends the innermost group, if no call is open inside it.
    fn end_group(&mut self, time: u64, out: &mut dyn Out) -> Result<(), Error> {
        if self.groups_skipped > 0 {
            self.groups_skipped -= 1;
            return Ok(());
        }
        for lane in &mut self.lanes {
            if lane.stack.last().is_some_and(|open| open.is_group)
                && let Some(open) = lane.stack.pop()
            {
                self.groups -= 1;
                return lane.emit(EdgeKind::End, open.name, time, EdgeFlags::NONE, out);
            }
        }
        Ok(())
    }
}
