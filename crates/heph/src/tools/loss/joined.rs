//! One stream of a session: the counters of it that arrived.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::fate::Fate;
use super::jump::{Candidate, Verdict};
use crate::wire::counter::{self, is_plausible};
use crate::wire::record::Header;
use crate::wire::session::Counted;

/// Most stray counters and doubtful gaps that are remembered, until an account says what they are.
const DOUBTFUL_MAX: usize = 64;

/// How an event fits into a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// It is new; its counter in 64 bits.
    New(u64),
    /// It arrived before.
    Duplicate,
}

/// Counters of a stream that arrived in one go, for instance in a file that is gone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Part {
    /// Ranges that arrived: the first counter and how many.
    pub ranges: Vec<(u64, u64)>,
    /// Packets that arrived.
    pub received: u64,
    /// Of these, those that had arrived before.
    pub duplicates: u64,
    /// Of these, those whose body is damaged.
    pub malformed: u64,
    /// Arrivals out of order.
    pub out_of_order: u64,
}

/// Jumps up to here are taken as they are.
const JUMP: u64 = counter::JUMP as u64;

/// An event far ahead.
#[derive(Debug, Clone, Copy)]
struct Ahead {
    at: u64,
    end_ns: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Joined {
    pub(super) id: u32,
    /// Ranges that arrived below the highest one: from, to (exclusive).
    below: BTreeMap<u64, u64>,
    /// The highest range.
    top: u64,
    next: u64,
    /// Counters that are missing in the ranges, because there was no room for more ranges.
    unlisted: u64,
    /// Counters that arrived late and found no room for a range.
    loose: u64,
    counted: Counted,
    received: u64,
    duplicates: u64,
    malformed: u64,
    out_of_order: u64,
    last_ns: u64,
    candidate: Option<Candidate<Ahead>>,
    /// Events whose counters nothing continued.
    strays: Vec<Ahead>,
    stray_events: u64,
    stray_missing: u64,
    /// Gaps before counters that can hardly have been reached, though the stream continued there.
    gaps: Vec<(u64, u64)>,
}

/// No recording has more events: what a forged account says beyond is not believed, so that sums stay in range.
const RECORDED_MAX: u64 = 1 << 56;

impl Counted {
    /// Numbers that can be added.
    fn possible(self) -> Self {
        let recorded = self.recorded.min(RECORDED_MAX);
        Self { recorded, dropped: self.dropped.min(recorded), lost: self.lost.min(recorded) }
    }

    /// Of two accounts of the same, neither of which says more than is true, the greater numbers.
    pub(super) fn at_least(self, other: Self) -> Self {
        let other = other.possible();
        Self {
            recorded: self.recorded.max(other.recorded),
            dropped: self.dropped.max(other.dropped),
            lost: self.lost.max(other.lost),
        }
    }
}

impl Joined {
    pub(super) fn new(id: u32) -> Self {
        Self {
            id,
            below: BTreeMap::new(),
            top: 0,
            next: 0,
            unlisted: 0,
            loose: 0,
            counted: Counted::default(),
            received: 0,
            duplicates: 0,
            malformed: 0,
            out_of_order: 0,
            last_ns: 0,
            candidate: None,
            strays: Vec::new(),
            stray_events: 0,
            stray_missing: 0,
            gaps: Vec::new(),
        }
    }

    /// Takes the recorder's numbers. Counters that seemed too great may be right after all.
    pub(super) fn account(&mut self, counted: Counted, room: &mut usize) {
        self.counted = self.counted.at_least(counted);
        let recorded = self.counted.recorded;
        let is_right = |ahead: &Ahead| ahead.at < recorded;
        if self.candidate.as_ref().is_some_and(|candidate| is_right(&candidate.packet)) {
            self.settle_candidate(true, room);
        }
        let (right, strays) = self.strays.iter().partition(|stray| is_right(stray));
        let right: Vec<Ahead> = right;
        self.strays = strays;
        for ahead in right {
            self.stray_events -= 1;
            self.insert(ahead.at, ahead.at + 1, room);
        }
        self.gaps.retain(|gap| gap.1 >= recorded);
    }

    /// Takes an event.
    #[inline]
    pub(super) fn event(&mut self, header: &Header, is_damaged: bool, room: &mut usize) -> Offer {
        self.received += 1;
        self.malformed += u64::from(is_damaged);
        if header.counter == self.next as u32 && self.candidate.is_none() && self.next > 0 {
            self.next += 1;
            self.last_ns = self.last_ns.max(header.end_ns);
            return Offer::New(self.next - 1);
        }
        self.jump(header, room)
    }

    #[cold]
    #[inline(never)]
    fn jump(&mut self, header: &Header, room: &mut usize) -> Offer {
        let at = self.extended(header.counter);
        let ahead = Ahead { at, end_ns: header.end_ns };
        if let Some(candidate) = &mut self.candidate {
            let before = self.next.saturating_sub(JUMP)..=self.next.saturating_add(JUMP);
            match candidate.next(at.checked_sub(candidate.packet.at), before.contains(&at)) {
                Verdict::Continues => self.settle_candidate(true, room),
                Verdict::Stray => self.settle_candidate(false, room),
                Verdict::Open => {}
            }
        }
        // An account that says so much is right.
        let known = self.next.max(self.counted.recorded);
        if at > known + JUMP && self.candidate.is_none() {
            let missing = at - self.next;
            let is_plausible = is_plausible(missing, self.last_ns, header.end_ns);
            self.candidate = Some(Candidate::new(ahead, missing, is_plausible));
            return Offer::New(at);
        }
        self.out_of_order += u64::from(at < self.next);
        self.last_ns = self.last_ns.max(header.end_ns);
        if self.insert(at, at + 1, room) > 0 {
            return Offer::New(at);
        }
        self.duplicates += 1;
        Offer::Duplicate
    }

    /// The event far ahead is one of the stream, or is not.
    fn settle_candidate(&mut self, is_real: bool, room: &mut usize) {
        let Some(candidate) = self.candidate.take() else { return };
        let ahead = candidate.packet;
        if is_real {
            if !candidate.is_plausible && ahead.at >= self.counted.recorded && self.gaps.len() < DOUBTFUL_MAX {
                self.gaps.push((self.next, ahead.at));
            }
            self.last_ns = self.last_ns.max(ahead.end_ns);
            self.insert(ahead.at, ahead.at + 1, room);
            return;
        }
        self.stray_events += 1;
        self.stray_missing += candidate.missing;
        if self.strays.len() < DOUBTFUL_MAX {
            self.strays.push(ahead);
        }
    }

    /// Takes counters that arrived earlier.
    pub(super) fn adopt(&mut self, part: &Part, room: &mut usize) {
        self.received += part.received;
        self.duplicates += part.duplicates;
        self.malformed += part.malformed;
        self.out_of_order += part.out_of_order;
        for &(first, count) in &part.ranges {
            let to = first.saturating_add(count).min(RECORDED_MAX);
            let count = to.saturating_sub(first);
            let new = if count > 0 { self.insert(first, to, room) } else { 0 };
            self.duplicates += count - new;
        }
    }

    /// The counter in 64 bits, near those that are known.
    fn extended(&self, counter: u32) -> u64 {
        let near = self.next.max(self.counted.recorded.saturating_sub(1 << 30));
        let ahead = counter.wrapping_sub(near as u32).cast_signed();
        match near.checked_add_signed(ahead.into()) {
            Some(at) => at,
            // The first round has nothing before it.
            None => counter.into(),
        }
    }

    /// Adds a range; returns how many of its counters are new.
    fn insert(&mut self, from: u64, to: u64, room: &mut usize) -> u64 {
        if self.top == self.next {
            // The first.
            (self.top, self.next) = (from, to);
            return to - from;
        }
        if from == self.next {
            self.next = to;
            return to - from;
        }
        if from > self.next {
            if *room == 0 {
                self.unlisted += from - self.next;
            } else {
                *room -= 1;
                self.below.insert(self.top, self.next);
                self.top = from;
            }
            self.next = to;
            return to - from;
        }
        self.insert_below(from, to, room)
    }

    #[cold]
    fn insert_below(&mut self, from: u64, to: u64, room: &mut usize) -> u64 {
        // All ranges that the new one touches become one.
        let (mut low, mut high, mut known) = (from, to, 0);
        let before = self.below.range(..=from).next_back().map(|(&start, &end)| (start, end));
        let touched = before.filter(|(_, end)| *end >= from).into_iter();
        let touched: Vec<(u64, u64)> =
            touched.chain(self.below.range(from + 1..=to).map(|(&start, &end)| (start, end))).collect();
        let overlap = |start: u64, end: u64| end.min(to).saturating_sub(start.max(from));
        for &(start, end) in &touched {
            known += overlap(start, end);
            low = low.min(start);
            high = high.max(end);
            self.below.remove(&start);
            *room += 1;
        }
        if high >= self.top && self.next >= low {
            let in_top = overlap(self.top, self.next);
            // Where gaps were not stored, a late event cannot be distinguished from one that comes twice.
            let late = in_top.min(self.unlisted);
            self.unlisted -= late;
            known += in_top - late;
            self.top = self.top.min(low);
            self.next = self.next.max(high);
        } else if *room == 0 && touched.is_empty() {
            self.loose += to - from;
        } else {
            *room -= usize::from(*room > 0);
            self.below.insert(low, high);
        }
        (to - from).saturating_sub(known)
    }

    fn unique(&self) -> u64 {
        let below: u64 = self.below.iter().map(|(start, end)| end - start).sum();
        (below + (self.next - self.top) + self.loose).saturating_sub(self.unlisted)
    }

    /// The lowest counter that arrived.
    fn lowest(&self) -> u64 {
        self.below.first_key_value().map_or(self.top, |(&start, _)| start)
    }

    /// The stream if nothing comes after the event far ahead, which is then judged by itself.
    pub(super) fn settled(&self, is_closed: bool) -> Cow<'_, Self> {
        let Some(candidate) = &self.candidate else { return Cow::Borrowed(self) };
        let mut settled = self.clone();
        settled.settle_candidate(candidate.is_plausible && !is_closed, &mut 1);
        Cow::Owned(settled)
    }

    /// What became of its events, once it is [`Self::settled`]. `is_later`: the first part of the session was not given.
    pub(super) fn fate(&self, is_closed: bool, is_later: bool) -> Fate {
        let (unique, next) = (self.unique(), self.next);
        // What is above the last account's number was not recorded.
        let recorded = if is_closed && self.counted.recorded > 0 { self.counted.recorded } else { next };
        let recorded = recorded.max(self.counted.recorded);
        let beyond = next.saturating_sub(recorded);
        let unlikely: u64 = self.gaps.iter().map(|(from, to)| to - from).sum();
        let missing = recorded.saturating_sub(unique.saturating_sub(beyond));
        // Of a stream of which nothing arrived, all may have come before.
        let lowest = if unique == 0 { u64::MAX } else { self.lowest() };
        let before = if is_later { lowest.min(missing) } else { 0 };
        let doubtful = self.stray_missing + unlikely.min(missing - before);
        let lost = (missing - before).saturating_sub(unlikely);
        let dropped = self.counted.dropped.min(missing);
        Fate {
            recorded,
            received: self.received,
            duplicates: self.duplicates,
            malformed: self.malformed,
            out_of_order: self.out_of_order,
            lost,
            dropped: dropped.min(lost),
            refused: self.counted.lost.min(lost.saturating_sub(dropped)),
            before,
            doubtful,
            doubtful_events: self.stray_events,
        }
    }

    /// Ranges that did not arrive, up to the highest counter that is known.
    pub(super) fn missing(&self) -> Vec<(u64, u64)> {
        let mut ranges = Vec::new();
        let mut from = 0;
        let top = (self.next > self.top).then_some((self.top, self.next));
        let end = self.counted.recorded;
        let arrived = self.below.iter().map(|(&start, &end)| (start, end)).chain(top);
        for (start, to) in arrived.chain((end > self.next).then_some((end, end))) {
            if start > from {
                ranges.push((from, start - from));
            }
            from = to;
        }
        ranges
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn header(counter: u64) -> Header {
        Header { counter: counter as u32, start_ns: counter * 50, end_ns: counter * 50, ..Header::default() }
    }

    proptest! {
        #[test]
        fn any_order_gives_the_set_of_the_counters_that_arrived(
            counters in prop::collection::vec(0_u64..300, 1..400),
            first in prop_oneof![Just(0_u64), Just(u64::from(u32::MAX) - 150)],
        ) {
            let (mut stream, mut room) = (Joined::new(1), 1000);
            stream.account(Counted { recorded: first, ..Counted::default() }, &mut room);
            let mut seen = BTreeSet::new();
            for counter in &counters {
                let offer = stream.event(&header(first + counter), false, &mut room);
                prop_assert_eq!(offer == Offer::New(first + counter), seen.insert(first + counter));
            }
            let fate = stream.settled(false).fate(false, true);
            prop_assert_eq!((fate.received, fate.arrived()), (counters.len() as u64, seen.len() as u64));
            let (low, high) = (*seen.first().unwrap(), *seen.last().unwrap());
            prop_assert_eq!(fate.lost, high + 1 - low - seen.len() as u64);
            prop_assert_eq!(fate.before, low);
            let missing: u64 = stream.missing().iter().map(|(_, count)| count).sum();
            prop_assert_eq!(missing, fate.lost + fate.before);
            prop_assert_eq!(room + stream.below.len(), 1000);
            // Without room for ranges the sums are the same where nothing comes late or twice.
            let (mut short, mut room) = (Joined::new(1), 0);
            seen.iter().for_each(|counter| {
                short.event(&header(*counter), false, &mut room);
            });
            if first == 0 {
                prop_assert_eq!(short.settled(false).fate(false, true).lost, fate.lost);
            }
        }
    }

    #[test]
    fn a_forged_counter_is_doubtful_and_no_loss() {
        for forged in [1_000_000, 50_000, 3_000_000_000_u64] {
            let (mut stream, mut room) = (Joined::new(1), 1000);
            for counter in 0..100 {
                if counter == 40 {
                    stream.event(&Header { end_ns: 40 * 50, ..header(forged) }, false, &mut room);
                }
                stream.event(&header(counter), false, &mut room);
            }
            let fate = stream.settled(false).fate(false, false);
            if forged < 1 << 31 {
                assert_eq!((fate.lost, fate.doubtful, fate.doubtful_events), (0, forged - 40, 1), "{forged}");
            }
            assert_eq!((fate.recorded, fate.lost), (100, 0), "{forged}");
        }
    }

    #[test]
    fn a_great_loss_is_one_where_the_time_allows_it_or_the_account_says_so() {
        let (mut stream, mut room) = (Joined::new(1), 1000);
        stream.event(&header(0), false, &mut room);
        stream.event(&header(90_000), false, &mut room);
        let fate = stream.settled(false).fate(false, false);
        assert_eq!((fate.recorded, fate.lost, fate.doubtful), (90_001, 89_999, 0));
        // Not possible in the time, as long as only the counter says so.
        let (mut stream, mut room) = (Joined::new(1), 1000);
        stream.event(&header(0), false, &mut room);
        stream.event(&Header { end_ns: 100, ..header(90_000) }, false, &mut room);
        let fate = stream.settled(false).fate(false, false);
        assert_eq!((fate.recorded, fate.lost, fate.doubtful), (1, 0, 89_999));
        stream.account(Counted { recorded: 90_001, dropped: 89_000, lost: 900 }, &mut room);
        let fate = stream.settled(true).fate(true, false);
        assert_eq!((fate.recorded, fate.lost, fate.doubtful), (90_001, 89_999, 0));
        assert_eq!((fate.dropped, fate.refused, fate.lost_on_the_way()), (89_000, 900, 99));
    }
}
