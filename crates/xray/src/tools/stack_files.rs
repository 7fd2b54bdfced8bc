//! Several traces counted together: calls that are open at the end of one continue in the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Place, Sink};

use super::stack_counter::{Counter, Left, LeftOpen};
use super::stack_hash;
use super::stack_profile::{Oddities, OrphanRule, StackOptions, StackProfile};
use super::wire::{WireFacts, in_wire_order};
use crate::lanes::ordered::Ordered;
use crate::wire::fdr::{FdrWalk, Run, Visitor};
use crate::wire::moment::{Moment, Moments};
use crate::wire::open::{Form, Opened, XrayTrace};
use crate::wire::record::{Body, Metadata, TYPE_FDR};

/// Counts the stacks of several traces, which should be added in the order of [`begin`].
///
/// A thread of a process that is in two of them is one thread: if its time continues, so do its open calls.
#[derive(Debug)]
pub struct StackFiles {
    options: StackOptions,
    profile: StackProfile,
    left: Arc<LeftOpen>,
}

impl StackFiles {
    /// Starts.
    pub fn new(options: StackOptions) -> Self {
        Self { options, profile: StackProfile::default(), left: Arc::default() }
    }

    /// Counts one trace; returns what it has that is not a plain call, except for the calls it leaves open. Nothing is
    /// counted after [`StackProfile::failure`].
    ///
    /// # Errors
    /// I/O errors, options that the format does not have, whatever the sink returns, and [`anytrace_core::Kind::Usage`]
    /// when traces count time at different rates. Damage is reported to the sink.
    pub fn add(&mut self, input: Input, open: &OpenOptions, sink: &mut dyn Sink) -> Result<Oddities, Error> {
        if self.profile.failure.is_some() {
            return Ok(Oddities::default());
        }
        let (parts, cycle_frequency) = match self.count(input, open, sink)? {
            Counted::Parts(parts, cycle_frequency) => (parts, cycle_frequency),
            Counted::Tops(profile) => {
                self.profile = *profile;
                return Ok(self.profile.oddities);
            }
        };
        let mut oddities = Oddities::default();
        // The order of threads depends on the workers; the code that prints them sorts them.
        for part in parts {
            let (profile, left) = part.finish()?;
            oddities.add(&profile.oddities);
            self.profile.merge(StackProfile { cycle_frequency, ..profile })?;
            Arc::make_mut(&mut self.left).extend(left);
        }
        if self.profile.threads.is_empty() {
            self.profile.cycle_frequency = cycle_frequency;
        }
        Ok(oddities)
    }

    fn count(&self, input: Input, open: &OpenOptions, sink: &mut dyn Sink) -> Result<Counted, Error> {
        if self.options.orphans != OrphanRule::Pass {
            let start = |facts: WireFacts| Counter::new(self.options, facts.is_fdr, Arc::clone(&self.left));
            let (facts, counter) = in_wire_order(input, open, start, sink)?;
            return Ok(Counted::Parts(vec![counter], facts.cycle_frequency));
        }
        let trace = Ordered::open(input, open, sink)?;
        let (cycle_frequency, threads) = (trace.header().cycle_frequency, open.threads.max(1));
        let make = || Counter::new(self.options, true, Arc::clone(&self.left));
        if let (Some(rows_max), Some(pieces)) = (self.options.tops, trace.pieces())
            && self.profile.threads.is_empty()
        {
            let is_full = Arc::new(AtomicBool::new(false));
            let look = || make().until_full(Arc::clone(&is_full));
            match pieces.parallel(threads, look) {
                Ok(parts) => return Ok(Counted::Parts(parts, cycle_frequency)),
                Err(error) if !is_full.load(Ordering::Relaxed) => return Err(error),
                // There are too many stacks for tables.
                Err(_) => {}
            }
            if let Some((tops, oddities)) = stack_hash::tops(&pieces, threads, rows_max)? {
                let (threads, tops) = (pieces.threads(), Some(tops));
                let profile = StackProfile { threads, tops, oddities, cycle_frequency, ..StackProfile::default() };
                return Ok(Counted::Tops(Box::new(profile)));
            }
        }
        Ok(Counted::Parts(trace.by_thread_parallel(threads, make, sink)?.0, cycle_frequency))
    }

    /// All traces together; calls that are open now are counted as unfinished.
    pub fn finish(mut self) -> StackProfile {
        self.profile.oddities.unfinished += self.left.values().map(Left::count).sum::<u64>();
        self.profile
    }
}

/// The result of one trace.
enum Counted {
    /// The receivers, and the trace's frequency.
    Parts(Vec<Counter>, u64),
    /// Only the top lists.
    Tops(Box<StackProfile>),
}

/// When a trace begins, as far as its first bytes show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Beginning {
    /// Seconds and microseconds of the first buffer (FDR).
    pub wall: Option<(u64, u32)>,
    /// Ticks of the first record.
    pub tsc: Option<u64>,
}

/// Reads the beginning of a trace from its first bytes, uncompressed; some 64 KiB are enough.
pub fn begin(head: &[u8], open: &OpenOptions) -> Beginning {
    let mut first = First::default();
    let input = || Input::from_bytes("head", head.to_vec());
    // Damage in these bytes is reported when the trace is read; an error is the way to stop.
    if let Ok(Opened { cursor, form: Form::Binary(header, layout), limits }) =
        XrayTrace::new(input(), open).start(&mut Nowhere)
        && header.type_code == TYPE_FDR
    {
        let _ = FdrWalk::new(cursor, header, layout, &limits).walk(&mut first);
    }
    let mut tsc = FirstTick(None);
    let found = in_wire_order(input(), open, |_| &mut tsc, &mut Nowhere);
    drop(found);
    first.0.tsc = tsc.0;
    first.0
}

/// The order in which traces follow one another: by the wall clock if all that have records have one, else by ticks,
/// else as given.
pub fn order(beginnings: &[Beginning]) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..beginnings.len()).collect();
    let of = |number: &usize| beginnings.get(*number).copied().unwrap_or_default();
    let known: Vec<Beginning> = beginnings.iter().copied().filter(|b| *b != Beginning::default()).collect();
    if known.iter().all(|beginning| beginning.wall.is_some()) {
        numbers.sort_by_key(|number| (of(number).wall, of(number).tsc));
    } else if known.iter().all(|beginning| beginning.tsc.is_some()) {
        numbers.sort_by_key(|number| of(number).tsc);
    }
    numbers
}

/// Stores the first wall clock.
#[derive(Default)]
struct First(Beginning);

impl Visitor for First {
    fn functions(&mut self, _run: Run<'_>) -> Result<(), Error> {
        Ok(())
    }

    fn metadata(&mut self, metadata: &Metadata<'_>, _raw: &[u8], _at: Place) -> Result<(), Error> {
        if let Body::WallTime { seconds, micros } = metadata.body {
            self.0.wall = Some((seconds, micros));
            return Err(enough());
        }
        Ok(())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// Stores the first time.
struct FirstTick(Option<u64>);

impl Moments for &mut FirstTick {
    fn moment(&mut self, moment: &Moment<'_>) -> Result<(), Error> {
        self.0 = Some(moment.tsc);
        Err(enough())
    }

    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

fn enough() -> Error {
    Error::usage("enough was read".to_owned())
}

/// Discards reports.
struct Nowhere;

impl Sink for Nowhere {
    fn report(&mut self, _diagnostic: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}
