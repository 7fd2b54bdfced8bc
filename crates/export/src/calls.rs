//! Self time of functions and time of calls between them, in Callgrind's format, for `callgrind_annotate` and
//! KCachegrind.
//!
//! A function is a name with its file; it begins at its line where the source knows one. Memory grows with distinct
//! functions, pairs of caller and callee, and open spans. The outermost function of every track is the track itself, as
//! `(below main)` is in Callgrind's own files, in a file of the name [`THREADS`], so that every call has a caller.
//!
//! Recursion: a call counts each time, its cost only if its function is not open already around it. A function's
//! inclusive cost, which `callgrind_annotate` sums over its calls, is thus the time in which it was open, as in
//! `stats`. No call out of a cycle or into one is affected, so that the costs of cycles, which KCachegrind finds, are
//! right, too.
//! Callgrind itself would split such a function by depth (`f`, `f'2`) and count the time of inner calls repeatedly.

use std::io::Write;

use anytrace_core::hash::Map;
use anytrace_core::span::{Edge, EdgeBatch, EdgeKind, Location, NameId, SpanSource, Track, TrackId};
use anytrace_core::{Error, SpanSink};

use crate::callgrind::{Header, Profile, UNKNOWN, one_line};
use crate::pen::Pen;
use crate::timeline::clock::Clock;
use crate::timeline::output::{Outlet, Timeline};
use crate::timeline::words::{full_label, shown};

/// The file of the functions that are threads.
const THREADS: &str = "[threads]";

/// Number of a function.
type FunctionId = u32;

/// A profile of calls being counted; everything is written in [`Timeline::finish`].
pub(crate) struct Calls<'a> {
    out: &'a mut (dyn Write + Send),
    title: String,
    clock: Clock,
    functions: Functions,
    /// The function of each name.
    names: Vec<FunctionId>,
    threads: Vec<Thread>,
    calls: Map<(FunctionId, FunctionId), Called>,
}

/// Distinct functions.
#[derive(Default)]
struct Functions {
    numbers: Map<(String, String), FunctionId>,
    all: Vec<Function>,
}

struct Function {
    name: String,
    file: String,
    line: u32,
    is_used: bool,
    /// In the source's unit.
    own: u64,
}

/// Calls of one function by another.
#[derive(Default, Clone, Copy)]
struct Called {
    count: u64,
    /// Time of those that were not inside a call of the same function, in the source's unit.
    time: u64,
}

/// The state of a track. `depths` has the functions in `open`, each with how often it occurs there.
struct Thread {
    function: FunctionId,
    open: Vec<Open>,
    depths: Map<FunctionId, u32>,
    /// When `open` last changed.
    since: u64,
}

#[derive(Clone, Copy)]
struct Open {
    function: FunctionId,
    start: u64,
}

impl Functions {
    fn number(&mut self, name: &str, location: Option<&Location>) -> FunctionId {
        // Names are compared as they are written: a reader would not distinguish them either.
        let (file, line) = location.map_or((UNKNOWN, 0), |location| (location.file.as_str(), location.line));
        let (name, file) = (one_line(name), one_line(file));
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry((name.clone(), file.clone())).or_insert(next);
        if number == next {
            self.all.push(Function { name, file, line, is_used: false, own: 0 });
        }
        number
    }
}

impl<'a> Calls<'a> {
    pub(crate) fn new(outlet: Outlet<'a>) -> Self {
        Self {
            out: outlet.out,
            title: outlet.title.to_owned(),
            clock: Clock::default(),
            functions: Functions::default(),
            names: Vec::new(),
            threads: Vec::new(),
            calls: Map::default(),
        }
    }

    #[inline]
    fn edge(&mut self, edge: &Edge) {
        let is_begin = match edge.kind {
            EdgeKind::Begin => true,
            EdgeKind::End => false,
            _ => return,
        };
        let Some(thread) = self.threads.get_mut(edge.track as usize) else { return };
        let top = thread.open.last().map(|open| open.function);
        if let Some(function) = top.and_then(|top| self.functions.all.get_mut(top as usize)) {
            function.own = function.own.saturating_add(edge.time.saturating_sub(thread.since));
        }
        thread.since = thread.since.max(edge.time);
        if is_begin {
            let Some(&function) = self.names.get(edge.name as usize) else { return };
            for used in [Some(function), top.is_none().then_some(thread.function)].into_iter().flatten() {
                if let Some(used) = self.functions.all.get_mut(used as usize) {
                    used.is_used = true;
                }
            }
            *thread.depths.entry(function).or_default() += 1;
            thread.open.push(Open { function, start: thread.since });
        } else if let Some(open) = thread.open.pop() {
            let caller = thread.open.last().map_or(thread.function, |around| around.function);
            let called = self.calls.entry((caller, open.function)).or_default();
            called.count += 1;
            if thread.leave(open.function) {
                called.time = called.time.saturating_add(thread.since.saturating_sub(open.start));
            }
        }
    }

    /// The header, with the sum of what is written.
    fn profile(&self) -> Profile {
        let header = Header { command: &self.title, positions: "line", events: &[self.clock.word()] };
        let mut profile = Profile::new(&header);
        let own = self.functions.all.iter().map(|function| self.clock.length(function.own));
        profile.summary(&[own.fold(0, u64::saturating_add)]);
        if let Some(note) = self.clock.note() {
            profile.comment(&note);
        }
        profile
    }
}

impl Thread {
    /// Counts one call of a function less; true when it was the outermost.
    fn leave(&mut self, function: FunctionId) -> bool {
        match self.depths.get_mut(&function) {
            Some(depth) if *depth > 1 => {
                *depth -= 1;
                false
            }
            _ => {
                self.depths.remove(&function);
                true
            }
        }
    }
}

impl SpanSink for Calls<'_> {
    fn source(&mut self, source: &SpanSource) -> Result<(), Error> {
        self.clock = Clock::new(source);
        Ok(())
    }

    fn wants_lives(&self) -> bool {
        false
    }

    fn wants_attributes(&self) -> bool {
        false
    }

    fn track(&mut self, _id: TrackId, track: &Track) -> Result<(), Error> {
        let place = Location { file: THREADS.to_owned(), line: 0 };
        let function = self.functions.number(&full_label(track), Some(&place));
        self.threads.push(Thread { function, open: Vec::new(), depths: Map::default(), since: 0 });
        Ok(())
    }

    fn name(&mut self, _id: NameId, name: &[u8], location: Option<&Location>) -> Result<(), Error> {
        let function = self.functions.number(&shown(name), location);
        self.names.push(function);
        Ok(())
    }

    fn edges(&mut self, batch: &EdgeBatch) -> Result<(), Error> {
        batch.edges().iter().for_each(|edge| self.edge(edge));
        Ok(())
    }
}

impl Timeline for Calls<'_> {
    fn finish(&mut self) -> Result<(), Error> {
        let mut profile = self.profile();
        let mut calls: Vec<_> = self.calls.iter().map(|(pair, called)| (*pair, *called)).collect();
        calls.sort_unstable_by_key(|(pair, _)| *pair);
        let (clock, all) = (self.clock, &self.functions.all);
        // Time of each function's calls that are written. Their sum is rounded as one number, not once for each caller.
        let mut written = vec![0_u64; all.len()];
        let mut pen = Pen::new(&mut *self.out);
        for (number, function) in (0..).zip(all).filter(|(_, function)| function.is_used) {
            profile.file(&function.file);
            profile.function(&function.name);
            let line = function.line.to_string();
            if function.own > 0 || function.file != THREADS {
                profile.costs(&line, &[clock.length(function.own)]);
            }
            let start = calls.partition_point(|((caller, _), _)| *caller < number);
            let own = calls.get(start..).unwrap_or_default().iter().take_while(|((caller, _), _)| *caller == number);
            for ((_, callee), called) in own {
                let at = *callee as usize;
                let (Some(callee), Some(written)) = (all.get(at), written.get_mut(at)) else { continue };
                let before = clock.length(*written);
                *written = written.saturating_add(called.time);
                profile.calls(&callee.file, &callee.name, called.count, callee.line);
                profile.costs(&line, &[clock.length(*written).saturating_sub(before)]);
            }
            pen.push(&profile.take());
            pen.push("\n");
            pen.rest()?;
        }
        pen.push(&profile.take());
        pen.finish()
    }
}
