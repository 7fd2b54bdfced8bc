//! A trace in other orders in which its threads might have run: an adapter that passes each order to an engine of its
//! own.
//!
//! What threads do between two points that order them could have happened in another order; here they take turns.
//! Points are atomic accesses and regions that are added or removed; each point orders all threads: everything before
//! it in the trace precedes it in every schedule, everything after it follows. Within a thread the order never changes.
//! A trace does not contain everything that orders threads, such as the memory of a lock or the start of a thread that
//! was not recorded: schedules are orders to compare with each other, not a promise that the program can run in them.
//!
//! Memory is bounded: accesses between two points are buffered up to a window; where there are more, the end of the
//! window is a point like the others, which [`Interleaved`] counts.

use std::collections::VecDeque;

use anytrace_core::Error;
use anytrace_core::access::{
    Access, AccessFlags, AccessSink, BATCH_ACCESSES, RegionAdded, RegionRemoved, ThreadNumber, TypeNumber,
};

/// Accesses kept between two points: 112 MiB.
pub const WINDOW_ACCESSES: usize = 1 << 22;

/// An order in which threads run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// As in the trace.
    Recorded,
    /// Threads take turns of this many accesses, in the order of their first access since the last point.
    Turns(u32),
    /// Any thread may be next, for this many accesses on average; the same for the same seed.
    Random {
        /// Accesses of a turn on average.
        turn: u32,
        /// The seed of the random numbers.
        seed: u32,
    },
}

impl Schedule {
    /// As recorded, and in turns of this many accesses.
    pub fn with_turns(turn: u32) -> Vec<Self> {
        vec![Self::Recorded, Self::Turns(turn.max(1))]
    }

    /// As recorded, in short and longer turns, and in random ones.
    pub fn auto() -> Vec<Self> {
        let random = [(4, 1), (32, 2), (256, 3)].map(|(turn, seed)| Self::Random { turn, seed });
        [Self::Recorded, Self::Turns(1), Self::Turns(16)].into_iter().chain(random).collect()
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Recorded => f.write_str("as recorded"),
            Self::Turns(turn) => write!(f, "turns of {turn}"),
            Self::Random { turn, seed } => write!(f, "random turns of {turn} (seed {seed})"),
        }
    }
}

/// What was reordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interleaved {
    /// Points that order threads.
    pub points: u64,
    /// Windows with more accesses than are buffered.
    pub exceeded: u64,
}

/// No access.
const NONE: u32 = u32::MAX;

/// One schedule and the sink that receives it.
struct Way<'a> {
    schedule: Schedule,
    sink: &'a mut dyn AccessSink,
    /// Accesses that were not passed on yet.
    out: Vec<Access>,
    random: u64,
}

/// The adaptor.
pub struct Interleaver<'a> {
    ways: Vec<Way<'a>>,
    window_max: usize,
    /// Accesses since the last point, in the order of the trace.
    window: Vec<Access>,
    /// The next access of the same thread, for each.
    next: Vec<u32>,
    /// The latest access of each thread in the window.
    tails: Vec<u32>,
    /// First accesses of the window's threads, in order.
    heads: Vec<u32>,
    done: Interleaved,
}

impl<'a> Interleaver<'a> {
    /// Passes each schedule to its sink.
    pub fn new(ways: impl IntoIterator<Item = (Schedule, &'a mut dyn AccessSink)>) -> Self {
        Self::with_window(ways, WINDOW_ACCESSES)
    }

    /// The same, with at most this many accesses buffered.
    pub fn with_window(ways: impl IntoIterator<Item = (Schedule, &'a mut dyn AccessSink)>, window_max: usize) -> Self {
        let ways = ways.into_iter().map(|(schedule, sink)| {
            let seed = if let Schedule::Random { seed, .. } = schedule { seed } else { 0 };
            // Odd, and so never 0.
            let random = u64::from(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            Way { schedule, sink, out: Vec::with_capacity(BATCH_ACCESSES), random }
        });
        Self {
            ways: ways.collect(),
            window_max: window_max.clamp(1, WINDOW_ACCESSES),
            window: Vec::new(),
            next: Vec::new(),
            tails: Vec::new(),
            heads: Vec::new(),
            done: Interleaved::default(),
        }
    }

    /// Passes on the remaining accesses.
    ///
    /// # Errors
    /// Those of the sinks.
    pub fn finish(mut self) -> Result<Interleaved, Error> {
        self.end_window()?;
        self.ways.iter_mut().try_for_each(Way::flush)?;
        Ok(self.done)
    }

    fn take(&mut self, access: &Access) -> Result<(), Error> {
        if access.flags.has(AccessFlags::ATOMIC) {
            self.end_window()?;
            self.done.points += 1;
            return self.ways.iter_mut().try_for_each(|way| way.push(access));
        }
        if self.window.len() >= self.window_max {
            self.done.exceeded += 1;
            self.end_window()?;
        }
        let at = u32::try_from(self.window.len()).expect("a window has fewer than 2^32 accesses");
        self.window.push(*access);
        self.next.push(NONE);
        // Threads are announced before their accesses, so there is a tail for each.
        let Some(tail) = self.tails.get_mut(access.thread as usize) else { return Ok(()) };
        let before = std::mem::replace(tail, at);
        match self.next.get_mut(before as usize) {
            // Each thread's accesses form a list through `next`, so that a schedule can follow one thread without a
            // copy of the window.
            Some(next) => *next = at,
            None => self.heads.push(at),
        }
        Ok(())
    }

    /// Passes the window on in each way's order.
    fn end_window(&mut self) -> Result<(), Error> {
        let (window, next, heads) = (&self.window, &self.next, &self.heads);
        self.ways.iter_mut().try_for_each(|way| way.pass(window, next, heads))?;
        // Only threads with an access in this window have a tail to reset: there may be far more threads than that.
        for head in self.heads.drain(..) {
            let thread = self.window.get(head as usize).map(|access| access.thread);
            if let Some(tail) = thread.and_then(|thread| self.tails.get_mut(thread as usize)) {
                *tail = NONE;
            }
        }
        self.window.clear();
        self.next.clear();
        Ok(())
    }

    /// A point that is not an access: everything before it has been passed on.
    fn point(&mut self) -> Result<(), Error> {
        self.done.points += 1;
        self.end_window()?;
        self.ways.iter_mut().try_for_each(Way::flush)
    }
}

impl Way<'_> {
    fn flush(&mut self) -> Result<(), Error> {
        if !self.out.is_empty() {
            self.sink.accesses(&self.out)?;
            self.out.clear();
        }
        Ok(())
    }

    fn push(&mut self, access: &Access) -> Result<(), Error> {
        self.out.push(*access);
        if self.out.len() >= BATCH_ACCESSES { self.flush() } else { Ok(()) }
    }

    fn pass(&mut self, window: &[Access], next: &[u32], heads: &[u32]) -> Result<(), Error> {
        if heads.len() < 2 {
            // One thread has only one order.
            return window.iter().try_for_each(|access| self.push(access));
        }
        match self.schedule {
            Schedule::Recorded => window.iter().try_for_each(|access| self.push(access)),
            Schedule::Turns(turn) => {
                let mut waiting: VecDeque<u32> = heads.iter().copied().collect();
                while let Some(at) = waiting.pop_front() {
                    let at = self.turn(window, next, at, turn)?;
                    if at != NONE {
                        waiting.push_back(at);
                    }
                }
                Ok(())
            }
            Schedule::Random { turn, .. } => {
                let mut waiting = heads.to_vec();
                while !waiting.is_empty() {
                    let who = self.draw(waiting.len() as u64);
                    // From 1 to one less than twice as many.
                    let accesses = 1 + self.draw(u64::from(turn.max(1)) * 2 - 1);
                    let Some(at) = usize::try_from(who).ok().and_then(|who| waiting.get_mut(who)) else { break };
                    *at = self.turn(window, next, *at, u32::try_from(accesses).unwrap_or(turn))?;
                    if *at == NONE {
                        // The order of the others does not matter: the next one is drawn.
                        waiting.swap_remove(who as usize);
                    }
                }
                Ok(())
            }
        }
    }

    /// Passes on some accesses of a thread; returns the index of the next.
    fn turn(&mut self, window: &[Access], next: &[u32], mut at: u32, accesses: u32) -> Result<u32, Error> {
        for _ in 0..accesses {
            let Some(access) = window.get(at as usize) else { return Ok(NONE) };
            self.push(access)?;
            at = next.get(at as usize).copied().unwrap_or(NONE);
        }
        Ok(at)
    }

    /// A number below another (xorshift64: Marsaglia 2003).
    fn draw(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 33) % below.max(1)
    }
}

impl AccessSink for Interleaver<'_> {
    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        self.tails.push(NONE);
        self.ways.iter_mut().try_for_each(|way| way.sink.thread(number, id))
    }

    fn type_name(&mut self, number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        self.ways.iter_mut().try_for_each(|way| way.sink.type_name(number, name))
    }

    fn fields_known(&mut self, number: TypeNumber) -> Result<(), Error> {
        self.ways.iter_mut().try_for_each(|way| way.sink.fields_known(number))
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        self.point()?;
        self.ways.iter_mut().try_for_each(|way| way.sink.region_added(region))
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        self.point()?;
        self.ways.iter_mut().try_for_each(|way| way.sink.region_removed(region))
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        batch.iter().try_for_each(|access| self.take(access))
    }
}

#[cfg(test)]
mod tests;
