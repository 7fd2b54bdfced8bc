//! Miss-ratio curves: how often accesses would miss a fully associative LRU cache of any size, for all sizes in one
//! pass; exact, or from a sample. Besides, the working set over time.
//!
//! An access of some bytes touches each line it has a byte in, in ascending order; each touch counts. A touch misses
//! caches of at most as many lines as other lines were touched since the line was touched last; the first touch of a
//! line misses all. Memory follows the distinct lines: up to 50 bytes each; with a sample those of it.
//!
//! ```
//! use anytrace_analysis::reuse::{Reuse, ReuseOptions};
//! use anytrace_core::access::{Access, AccessFlags, AccessKind, AccessSink};
//!
//! let mut reuse = Reuse::new(ReuseOptions::default());
//! let touch = |seq, address| {
//!     Access { address, seq, thread: 0, bytes: 8, kind: AccessKind::Read, flags: AccessFlags::NONE }
//! };
//! reuse.accesses(&[touch(0, 0x1000), touch(1, 0x1040), touch(2, 0x1008)]).unwrap();
//! let found = reuse.finish(3);
//! assert_eq!((found.curve.misses(1), found.curve.misses(2)), (3, 2));
//! ```

mod blend;
mod curve;
mod lines;
mod order;
mod sample;
mod signals;
mod stack;
#[cfg(test)]
mod tests;
mod windows;

use anytrace_core::Error;
use anytrace_core::access::{Access, AccessSink, RegionAdded, RegionRemoved, Sieve, ThreadNumber, TypeNumber};

use crate::live_regions::{LiveRegions, Located};
use blend::Sampled;
pub use curve::Curve;
use curve::{Buckets, Exact, rounded};
pub use sample::Sample;
use stack::Stack;
use windows::Windows;
pub use windows::{Phase, Window, WorkingSet};

/// No line has this number, as lines have at least two bytes.
const NO_LINE: u64 = u64::MAX;

/// The parts of the accesses for which curves are made, besides that of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Parts {
    /// None.
    #[default]
    None,
    /// Those of each thread; all threads share a cache, so that the parts add up.
    Thread,
    /// Those of each thread, where each has a cache of its own: the curve of all is that of all these caches.
    PrivateThread,
    /// Those to each type of memory; all share a cache, so that the parts add up.
    Type,
}

/// What is counted, and how.
#[derive(Debug, Clone)]
pub struct ReuseOptions {
    /// Bytes of a line: a power of two from 2 to 2^62.
    pub line_bytes: u64,
    /// Parts with curves of their own.
    pub parts: Parts,
    /// `None` for exact curves.
    pub sample: Option<Sample>,
    /// Follow the working set over time.
    pub has_windows: bool,
    /// Records per window of the working set, if it should not depend on the trace's length.
    pub window_records: Option<u64>,
}

impl Default for ReuseOptions {
    fn default() -> Self {
        Self { line_bytes: 64, parts: Parts::None, sample: None, has_windows: false, window_records: None }
    }
}

/// The result.
#[derive(Debug, Clone, PartialEq)]
pub struct ReuseResults {
    /// Bytes of a line.
    pub line_bytes: u64,
    /// Accesses of no bytes, which touch no line.
    pub zero_size: u64,
    /// The curve of all accesses.
    pub curve: Curve,
    /// The parts, those with the most accesses first.
    pub parts: Vec<Part>,
    /// The working set over time, where it was asked for.
    pub working_set: Option<WorkingSet>,
    /// How much was looked at, where not all of it was.
    pub sampled: Option<SampledOf>,
}

/// A part of the accesses.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Thread or type.
    pub name: String,
    /// Its curve.
    pub curve: Curve,
}

/// How much was looked at.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampledOf {
    /// Share of the lines in the end.
    pub rate: f64,
    /// Lines in the sample in the end.
    pub lines: u64,
    /// Touches of lines in the sample.
    pub line_accesses: u64,
}

/// A touch put aside.
struct Touch {
    line: u64,
    stack: usize,
    part: usize,
}

/// Most touches set aside, except for those of a single access.
const PENDING_MAX: usize = 128;

/// The counters of a part.
#[derive(Debug, Default)]
struct Counts {
    line_accesses: u64,
    cold: u64,
    /// Distance 0.
    repeats: u64,
    distances: Buckets,
}

/// Makes curves of accesses.
pub struct Reuse {
    options: ReuseOptions,
    line_shift: u32,
    /// One for all, or one a thread.
    stacks: Vec<Stack>,
    /// The line touched last, in each of the stacks.
    latest: Vec<u64>,
    pending: Vec<Touch>,
    line_accesses: u64,
    zero_size: u64,
    cold: u64,
    repeats: u64,
    exact: Exact,
    parts: Vec<Counts>,
    names: Vec<String>,
    live: LiveRegions,
    /// Memory that look-ups of regions use again, and the parts they find.
    looked_up: Vec<u32>,
    found: Vec<u32>,
    windows: Option<Windows>,
    epoch: u32,
    epoch_end: u64,
    sampled: Option<Sampled>,
}

impl Reuse {
    /// A line size that is not a power of two is rounded up to one.
    pub fn new(options: ReuseOptions) -> Self {
        let line_bytes = options.line_bytes.clamp(2, 1 << 62).next_power_of_two();
        let windows = options.has_windows.then(|| Windows::new(options.window_records));
        let epoch_end = windows.as_ref().map_or(u64::MAX, |windows| windows.epoch_end(0));
        let sampled = options.sample.map(Sampled::new);
        let mut reuse = Self {
            line_shift: line_bytes.trailing_zeros(),
            options: ReuseOptions { line_bytes, ..options },
            stacks: Vec::new(),
            latest: Vec::new(),
            pending: Vec::new(),
            line_accesses: 0,
            zero_size: 0,
            cold: 0,
            repeats: 0,
            exact: Exact::default(),
            parts: Vec::new(),
            names: Vec::new(),
            live: LiveRegions::new(),
            looked_up: Vec::new(),
            found: Vec::new(),
            windows,
            epoch: 0,
            epoch_end,
            sampled,
        };
        if reuse.options.parts == Parts::Type {
            reuse.add_part("(untyped)".to_owned());
        }
        if reuse.options.parts != Parts::PrivateThread {
            reuse.add_stack();
        }
        reuse
    }

    fn add_part(&mut self, name: String) {
        self.names.push(name);
        self.parts.push(Counts::default());
    }

    fn add_stack(&mut self) {
        self.stacks.push(Stack::new());
        self.latest.push(NO_LINE);
        if let Some(sampled) = &mut self.sampled {
            sampled.add_stack();
        }
    }

    /// The part an access belongs to.
    #[inline]
    fn part_of(&mut self, access: &Access) -> usize {
        match self.options.parts {
            Parts::None => usize::MAX,
            Parts::Thread | Parts::PrivateThread => access.thread as usize,
            Parts::Type => {
                self.live.find(access.thread, access.address).map_or(0, |region| region.type_number as usize + 1)
            }
        }
    }

    #[inline]
    fn stack_of(&self, thread: ThreadNumber) -> usize {
        if self.options.parts == Parts::PrivateThread { thread as usize } else { 0 }
    }

    /// The first line of an access and how many lines it touches.
    #[inline]
    fn lines_of(&self, access: &Access) -> (u64, u64) {
        let line = access.address >> self.line_shift;
        let offset = access.address & (self.options.line_bytes - 1);
        (line, (offset + u64::from(access.bytes) + self.options.line_bytes - 1) >> self.line_shift)
    }

    fn take_exact(&mut self, batch: &[Access]) -> Result<(), Error> {
        match self.options.parts {
            Parts::None => self.take_parts(batch.iter().map(|access| (access, usize::MAX))),
            Parts::Thread | Parts::PrivateThread => {
                self.take_parts(batch.iter().map(|access| (access, access.thread as usize)))
            }
            Parts::Type => {
                let mut found = std::mem::take(&mut self.found);
                found.clear();
                self.live.locate_all(batch, &mut self.looked_up, |_, located| {
                    found.push(match located {
                        Located::Region(region) => region.type_number + 1,
                        Located::Removed | Located::Nothing => 0,
                    });
                });
                let result = self.take_parts(batch.iter().zip(found.iter().map(|part| *part as usize)));
                self.found = found;
                result
            }
        }
    }

    /// Takes accesses, each with the part it belongs to.
    #[inline]
    fn take_parts<'a>(&mut self, accesses: impl Iterator<Item = (&'a Access, usize)>) -> Result<(), Error> {
        for (access, part) in accesses {
            if access.bytes == 0 {
                self.zero_size += 1;
                continue;
            }
            let (line, lines) = self.lines_of(access);
            let stack = self.stack_of(access.thread);
            // Touches that wait belong to the epoch that ends.
            if access.seq >= self.epoch_end {
                self.take_pending()?;
                self.next_epoch(access.seq);
            }
            // Distance 0: the order of the stack does not change, so the table need not be asked. This is the most
            // frequent case.
            if lines == 1 && self.latest.get(stack) == Some(&line) {
                self.repeats += 1;
                if let Some(counts) = self.parts.get_mut(part) {
                    counts.repeats += 1;
                }
                continue;
            }
            // The last line of an access is the one touched last, whether or not it was taken from `pending` yet.
            if let Some(latest) = self.latest.get_mut(stack) {
                *latest = line.wrapping_add(lines - 1) & (u64::MAX >> self.line_shift);
            }
            for ahead in 0..lines {
                self.pending.push(Touch { line: self.line_after(line, ahead), stack, part });
            }
            if self.pending.len() >= PENDING_MAX {
                self.take_pending()?;
            }
        }
        self.take_pending()
    }

    /// Takes the touches put aside. Their places in the tables are looked at first, all at once: one after another
    /// most of the time would go by waiting for memory.
    fn take_pending(&mut self) -> Result<(), Error> {
        // Taken out, because `touch` needs all of `self`; its memory is put back below.
        let mut pending = std::mem::take(&mut self.pending);
        let looked_at = pending
            .iter()
            .fold(0, |all, touch| all ^ self.stacks.get(touch.stack).map_or(0, |stack| stack.look_at(touch.line)));
        // Without a use of the result the compiler would leave the look-ups out.
        std::hint::black_box(looked_at);
        let result = pending.iter().try_for_each(|touch| self.touch(touch.line, touch.stack, touch.part));
        pending.clear();
        self.pending = pending;
        result
    }

    /// Lines are numbered around the end of the address space.
    #[inline]
    fn line_after(&self, line: u64, ahead: u64) -> u64 {
        line.wrapping_add(ahead) & (u64::MAX >> self.line_shift)
    }

    #[inline]
    fn touch(&mut self, line: u64, stack: usize, part: usize) -> Result<(), Error> {
        self.line_accesses += 1;
        let Some(stack) = self.stacks.get_mut(stack) else { return Ok(()) };
        let before = stack.touch(line, self.epoch);
        match before {
            Some(before) => self.exact.add(before.distance),
            None if stack.is_full() => return Err(too_many_lines(self.options.line_bytes)),
            None => self.cold += 1,
        }
        if let Some(counts) = self.parts.get_mut(part) {
            counts.line_accesses += 1;
            match before {
                Some(before) => counts.distances.add(u64::from(before.distance), 1.0),
                None => counts.cold += 1,
            }
        }
        if let Some(windows) = &mut self.windows {
            windows.touch(self.epoch, before.map(|before| before.epoch), Sieve::hash(line), 1.0);
        }
        Ok(())
    }

    /// Time passes into another epoch, in which every line is touched for the first time.
    #[cold]
    fn next_epoch(&mut self, seq: u64) {
        if let Some(windows) = &self.windows {
            self.epoch = windows.epoch(seq);
            self.epoch_end = windows.epoch_end(self.epoch);
            // The shortcut for repeats must not hide a line's first touch in the new epoch.
            self.latest.fill(NO_LINE);
        }
    }

    /// The curves of a trace with this many records.
    pub fn finish(self, records: u64) -> ReuseResults {
        let is_sampled = self.sampled.as_ref().is_some_and(Sampled::is_part);
        let zero_size = self.zero_size;
        let line_bytes = self.options.line_bytes;
        let (curve, parts, sampled) = match self.sampled {
            Some(sampled) => {
                let by_type = self.options.parts == Parts::Type;
                let info = sampled.info(&self.stacks);
                let (curve, parts) = sampled.finish(records, by_type);
                (curve, parts, is_sampled.then_some(info))
            }
            None => {
                let line_accesses = self.line_accesses + self.repeats;
                let mut exact = self.exact;
                exact.add_repeats(self.repeats);
                let parts = self.parts.into_iter().map(|mut counts| {
                    counts.distances.add(0, counts.repeats as f64);
                    // Integers are used as they are: nothing is rounded.
                    let (_, distances) = rounded(counts.distances.iter().collect::<Vec<_>>().into_iter(), 0.0);
                    Curve::new(counts.line_accesses + counts.repeats, counts.cold, distances)
                });
                (Curve::new(line_accesses, self.cold, exact.into_counts()), parts.collect(), None)
            }
        };
        let parts = self.names.into_iter().zip(parts).map(|(name, curve)| Part { name, curve });
        let mut parts: Vec<_> = parts.filter(|part| part.curve.line_accesses > 0).collect();
        parts.sort_by(|a, b| b.curve.line_accesses.cmp(&a.curve.line_accesses).then_with(|| a.name.cmp(&b.name)));
        ReuseResults {
            line_bytes,
            zero_size,
            curve,
            parts,
            working_set: self.windows.map(|windows| windows.finish(records)),
            sampled,
        }
    }
}

#[cold]
fn too_many_lines(line_bytes: u64) -> Error {
    Error::limit(format!("more than 2^30 distinct lines of {line_bytes} bytes; a sample needs less memory"))
}

impl AccessSink for Reuse {
    fn sieve(&self, seq: u64) -> Option<Sieve> {
        self.sampled.as_ref()?.sieve(seq, self.line_shift)
    }

    fn sieved_out(&mut self, accesses: u64, thread: ThreadNumber) -> Result<(), Error> {
        let by_thread = matches!(self.options.parts, Parts::Thread | Parts::PrivateThread);
        if let Some(sampled) = &mut self.sampled {
            sampled.count(accesses, by_thread.then_some(thread as usize));
        }
        Ok(())
    }

    fn thread(&mut self, number: ThreadNumber, id: Option<u64>) -> Result<(), Error> {
        let is_private = self.options.parts == Parts::PrivateThread;
        if is_private || self.options.parts == Parts::Thread {
            // Numbers are announced in order.
            debug_assert_eq!(number as usize, self.parts.len());
            self.add_part(id.map_or_else(|| "(other threads)".to_owned(), |id| format!("thread {id}")));
            if is_private {
                self.add_stack();
            }
        }
        Ok(())
    }

    fn type_name(&mut self, _number: TypeNumber, name: Option<&[u8]>) -> Result<(), Error> {
        if self.options.parts == Parts::Type {
            let text = |name| String::from_utf8_lossy(name).into_owned();
            self.add_part(name.map_or_else(|| "(other types)".to_owned(), text));
        }
        Ok(())
    }

    fn region_added(&mut self, region: &RegionAdded) -> Result<(), Error> {
        if self.options.parts == Parts::Type {
            self.live.add(region)?;
        }
        Ok(())
    }

    fn region_removed(&mut self, region: &RegionRemoved) -> Result<(), Error> {
        if self.options.parts == Parts::Type {
            self.live.remove(region);
        }
        Ok(())
    }

    fn accesses(&mut self, batch: &[Access]) -> Result<(), Error> {
        if self.sampled.is_some() { self.take_sampled(batch) } else { self.take_exact(batch) }
    }
}
