//! Distributes one thread of a trace over threads of this program.
//!
//! A thread's calls depend on the calls around them. So a worker without work follows the records just for which calls
//! they leave open ([`super::skim`]), until what lies ahead is its share of what is left, and counts from there on. What
//! takes the time, the counting, is done at several places of the thread at once, and how many records are followed
//! before depends on how fast the others are. With two workers one counts the first half or more, the other follows
//! that and counts the rest.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anytrace_core::Error;

use crate::wire::moment::Moments;

use super::Pieces;
use super::decode::Decoder;
use super::index::{Index, Owner, Piece};
use super::skim::{Between, Skim};

/// Sections for each worker: between them it looks how far the others are.
const SECTIONS: usize = 32;

/// Shortest section. In tests, small traces are cut too.
const SECTION_BYTES_MIN: u64 = if cfg!(test) { 1 } else { 1 << 20 };

/// How many records are followed in the time in which one is counted, at least.
const AHEAD: usize = 4;

/// Receives the moments of a thread, or of a range of it. An exit ends the innermost open call of its function and
/// all calls inside it; without one it has no effect on calls.
pub(crate) trait Sectioned: Moments {
    /// What it has counted depends on what came first, so that each range needs a receiver of its own; the others count
    /// one range after the other, in any order.
    const NEEDS_ORDER: bool = true;

    /// Whether it can begin inside a thread. Those of one trace all can, or none can.
    fn can_resume(&self) -> bool {
        false
    }

    /// Begins inside a thread (process and thread id), before its first moment.
    fn resume(&mut self, _key: (u32, u32), _between: &Between) {}

    /// Ends inside a thread: the calls that are open go on in another receiver.
    fn pause(&mut self) {}
}

/// The thread that takes longer than a worker's share of the trace, if it can be cut.
pub(crate) fn longest(index: &Index, workers: usize) -> Option<&Owner> {
    let total: u64 = index.owners.iter().map(|owner| owner.bytes).sum();
    let longest = index.owners.iter().max_by_key(|owner| owner.bytes)?;
    let share = total / u64::try_from(workers.max(1)).unwrap_or(u64::MAX);
    (workers > 1 && longest.bytes > share / 8 * 9 && longest.bytes >= 2 * SECTION_BYTES_MIN).then_some(longest)
}

/// Emits a thread to several receivers; returns them, in order where they need it.
pub(crate) fn emit<M: Sectioned + Send>(
    pieces: Pieces<'_>,
    owner: &Owner,
    workers: usize,
    make: &(impl Fn() -> M + Sync),
) -> Result<Vec<M>, Error> {
    let sections = cut(pieces.index, owner, workers * SECTIONS);
    let workers = workers.clamp(1, sections.len().max(1));
    let shared = Shared::new(pieces, workers);
    let work = || -> Result<Vec<(usize, M)>, Error> {
        let mut given: Vec<(usize, M)> = Vec::new();
        while let Some(job) = shared.job(&sections, pieces) {
            let before = if M::NEEDS_ORDER { None } else { given.pop() };
            let mut receiver = before.map_or_else(make, |(_, receiver)| receiver);
            if let Some(between) = &job.between {
                receiver.resume((owner.process, owner.thread), between);
            }
            let mut decoder = Decoder::new(pieces.layout, pieces.version, owner);
            while let Some(section) = job.range.take().and_then(|number| sections.get(number)) {
                for (buffer, piece) in section.iter().copied() {
                    decoder.start(pieces.all, buffer, piece);
                    decoder.emit(&mut receiver)?;
                }
            }
            if job.range.now().end < sections.len() {
                receiver.pause();
            }
            given.push((job.first, receiver));
            shared.idle.fetch_add(1, Ordering::Relaxed);
        }
        Ok(given)
    };
    let mut given = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers).map(|_| scope.spawn(work)).collect();
        let mut given = work()?;
        for other in others {
            given.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, Error>(given)
    })?;
    given.sort_by_key(|(first, _)| *first);
    Ok(given.into_iter().map(|(_, receiver)| receiver).collect())
}

/// Pieces with the numbers of their buffers.
type Section<'a> = Vec<(u64, &'a Piece)>;

/// A thread's pieces in sections of about the same length.
fn cut<'a>(index: &'a Index, owner: &Owner, count: usize) -> Vec<Section<'a>> {
    let length = (owner.bytes / u64::try_from(count.max(1)).unwrap_or(u64::MAX)).max(SECTION_BYTES_MIN);
    let (mut sections, mut section, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (buffer, piece) in index.pieces(owner) {
        section.push((buffer, piece));
        bytes += piece.bytes;
        if bytes >= length {
            sections.push(std::mem::take(&mut section));
            bytes = 0;
        }
    }
    if !section.is_empty() {
        sections.push(section);
    }
    sections
}

/// Sections that one worker counts, one after the other; others may take those at its end.
#[derive(Debug)]
struct Range(Mutex<std::ops::Range<usize>>);

impl Range {
    fn lock(&self) -> MutexGuard<'_, std::ops::Range<usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is left of it.
    fn now(&self) -> std::ops::Range<usize> {
        self.lock().clone()
    }

    /// The next section to be counted.
    fn take(&self) -> Option<usize> {
        self.lock().next()
    }

    /// Gives its sections from `first` on away, if none of them is counted yet.
    fn split(&self, first: usize) -> Option<std::ops::Range<usize>> {
        let mut range = self.lock();
        let rest = first..range.end;
        (range.start <= first && !rest.is_empty()).then(|| {
            range.end = first;
            rest
        })
    }
}

/// What all workers know of a thread.
struct Shared {
    /// Workers without a range.
    idle: AtomicUsize,
    frontier: Mutex<Frontier>,
}

/// How far the thread was followed.
struct Frontier {
    /// `None` when it is not followed any further.
    skim: Option<Skim>,
    /// The section where it is.
    at: usize,
    /// The range that begins there, up to the end of the thread.
    last: Option<Arc<Range>>,
}

/// A range to be counted.
struct Job {
    range: Arc<Range>,
    first: usize,
    /// What is known where it begins; `None` at the begin of the thread.
    between: Option<Between>,
}

impl Shared {
    fn new(pieces: Pieces<'_>, workers: usize) -> Self {
        let skim = Some(Skim::new(pieces.layout, pieces.version));
        Self { idle: AtomicUsize::new(workers), frontier: Mutex::new(Frontier { skim, at: 0, last: None }) }
    }

    /// A range for a worker that has none; `None` if what is left is not worth it.
    fn job(&self, sections: &[Section<'_>], pieces: Pieces<'_>) -> Option<Job> {
        let mut frontier = self.frontier.lock().unwrap_or_else(PoisonError::into_inner);
        let found = match frontier.last.clone() {
            None => Some((0..sections.len(), None)),
            Some(last) => self.follow(&mut frontier, &last, sections, pieces).map(|(rest, know)| (rest, Some(know))),
        };
        self.idle.fetch_sub(1, Ordering::Relaxed);
        let Some((rest, between)) = found else {
            frontier.skim = None;
            return None;
        };
        let first = rest.start;
        let range = Arc::new(Range(Mutex::new(rest)));
        frontier.last = Some(Arc::clone(&range));
        Some(Job { range, first, between })
    }

    /// Follows the thread from where its last range began, until what was followed and is not counted yet is as much as
    /// each worker without work would get of the rest. The rest is taken from the range.
    fn follow(
        &self,
        frontier: &mut Frontier,
        last: &Range,
        sections: &[Section<'_>],
        pieces: Pieces<'_>,
    ) -> Option<(std::ops::Range<usize>, Between)> {
        let end = sections.len();
        loop {
            let (at, counted) = (frontier.at, last.now().start);
            let idle = self.idle.load(Ordering::Relaxed).max(1);
            let skim = frontier.skim.as_mut()?;
            // The range's own worker was as fast: nothing is left.
            if at >= end {
                return None;
            }
            if at.checked_sub(counted).is_some_and(|ahead| ahead * idle >= end - at) {
                let Some(rest) = last.split(at) else { continue };
                return Some((rest, skim.between()));
            }
            // Half of what is left: when that is followed, nothing may be.
            let middle = counted + (end - counted) / 2;
            if counted + middle.saturating_sub(at) / AHEAD >= end {
                return None;
            }
            let section = sections.get(at)?;
            // Where the calls cannot be followed, the rest is counted with what came before it.
            section.iter().try_for_each(|(buffer, piece)| skim.piece(pieces.all, *buffer, piece)).ok()?;
            frontier.at += 1;
        }
    }
}
