//! Distributes one thread of a trace over threads of this program.
//!
//! A thread's calls depend on the calls around them. So the thread is cut into sections, and before a section is
//! counted its records are followed just for which calls they leave open ([`super::skim`]), one section after the
//! other; what takes the time, the counting, is done for several sections at once.

use std::sync::{Mutex, PoisonError};

use anytrace_core::Error;

use crate::wire::moment::Moments;

use super::Pieces;
use super::decode::Decoder;
use super::index::{Index, Owner, Piece};
use super::skim::{Between, Skim};

/// Sections for each worker: the last ones to end should end at about the same time.
const SECTIONS: usize = 4;

/// Shortest section: less is not worth a receiver of its own. In tests, small traces are cut too.
const SECTION_BYTES_MIN: u64 = if cfg!(test) { 1 } else { 1 << 20 };

/// Receives the moments of a thread, or of a section of it. An exit ends the innermost open call of its function and
/// all calls inside it; without one it has no effect on calls.
pub(crate) trait Sectioned: Moments {
    /// What it has counted depends on what came first, so that each section needs a receiver of its own; the others
    /// count one section after the other, in any order.
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
    let frontier = Mutex::new(Frontier { skim: Skim::new(pieces.layout, pieces.version), next: 0, between: None });
    let work = || -> Result<Vec<(usize, M)>, Error> {
        let mut given: Vec<(usize, M)> = Vec::new();
        while let Some(job) = next(&frontier, &sections, pieces) {
            let before = if M::NEEDS_ORDER { None } else { given.pop() };
            let mut receiver = before.map_or_else(make, |(_, receiver)| receiver);
            if let Some(between) = &job.between {
                receiver.resume((owner.process, owner.thread), between);
            }
            let mut decoder = Decoder::new(pieces.layout, pieces.version, owner);
            for (buffer, piece) in job.pieces.iter().copied() {
                decoder.start(pieces.all, buffer, piece);
                decoder.emit(&mut receiver)?;
            }
            if !job.is_last {
                receiver.pause();
            }
            given.push((job.number, receiver));
        }
        Ok(given)
    };
    let mut given = std::thread::scope(|scope| {
        let others: Vec<_> = (1..workers.min(sections.len())).map(|_| scope.spawn(work)).collect();
        let mut given = work()?;
        for other in others {
            given.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
        Ok::<_, Error>(given)
    })?;
    given.sort_by_key(|(number, _)| *number);
    Ok(given.into_iter().map(|(_, receiver)| receiver).collect())
}

/// Pieces with the numbers of their buffers.
type Section<'a> = Vec<(u64, &'a Piece)>;

/// A thread's pieces in sections of about the same length; the first is shorter, as the other workers wait until it is
/// followed.
fn cut<'a>(index: &'a Index, owner: &Owner, count: usize) -> Vec<Section<'a>> {
    let length = (owner.bytes / u64::try_from(count.max(1)).unwrap_or(u64::MAX)).max(SECTION_BYTES_MIN);
    let (mut sections, mut section, mut bytes) = (Vec::new(), Vec::new(), 0);
    for (buffer, piece) in index.pieces(owner) {
        section.push((buffer, piece));
        bytes += piece.bytes;
        let is_first = sections.is_empty();
        if bytes >= if is_first { length / 4 } else { length } {
            sections.push(std::mem::take(&mut section));
            bytes = 0;
        }
    }
    if !section.is_empty() {
        sections.push(section);
    }
    sections
}

/// How far the thread was followed.
struct Frontier {
    skim: Skim,
    /// The next section.
    next: usize,
    /// What is known where it begins; `None` for the first.
    between: Option<Between>,
}

/// A section to be counted.
struct Job<'s, 'a> {
    number: usize,
    between: Option<Between>,
    pieces: std::borrow::Cow<'s, [(u64, &'a Piece)]>,
    is_last: bool,
}

/// Takes the next section, and follows it to its end for the one behind it.
fn next<'s, 'a>(frontier: &Mutex<Frontier>, sections: &'s [Section<'a>], pieces: Pieces<'_>) -> Option<Job<'s, 'a>> {
    let mut frontier = frontier.lock().unwrap_or_else(PoisonError::into_inner);
    let number = frontier.next;
    let section = sections.get(number)?;
    let between = frontier.between.take();
    frontier.next += 1;
    if frontier.next == sections.len() {
        return Some(Job { number, between, pieces: section.into(), is_last: true });
    }
    let followed = section.iter().try_for_each(|(buffer, piece)| frontier.skim.piece(pieces.all, *buffer, piece));
    if followed.is_err() {
        // What follows is counted with it.
        frontier.next = sections.len();
        let pieces = sections.get(number..).unwrap_or_default().concat();
        return Some(Job { number, between, pieces: pieces.into(), is_last: true });
    }
    frontier.between = Some(frontier.skim.between());
    Some(Job { number, between, pieces: section.into(), is_last: false })
}
