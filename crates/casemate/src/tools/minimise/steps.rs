//! The records up to the first violation, with what the slice needs to know of them.

use std::ops::Range;

use anytrace_core::{Diagnostic, Error, Input, OpenOptions, Sink};

use crate::model::{Change, Checker, Options, Watch};
use crate::wire::record::{Record, Transition};
use crate::wire::walk::{Item, Walk};

/// Entries stored for one barrier or TLBI; one that changed more is relevant for all of them.
const CELLS_MAX: usize = 16;

/// A record.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) thread: u32,
    pub(super) transition: Transition,
    text: Range<usize>,
}

/// What must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) breach: &'static str,
    pub(super) message: &'static str,
    pub(super) location: Option<u64>,
    /// The bits of a live entry that decide.
    deciding: Option<u64>,
}

/// What a step gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    /// A step that is not modelled: the verdict is unknown from here on.
    Doubt(&'static str),
    Violation(Verdict),
}

impl Outcome {
    /// The first error of the last step; a doubt counts only where the step has none.
    pub(super) fn of<W: Watch>(checker: &Checker<W>) -> Self {
        let found = checker.found();
        // An error after a doubt in the same step is as unknown as one in a later step.
        match found.iter().find(|found| found.is_error() || found.breach.is_doubt) {
            None => Self::Nothing,
            Some(found) if found.breach.is_doubt => Self::Doubt(found.breach.message),
            Some(found) => Self::Violation(Verdict {
                breach: found.breach.rule.code,
                message: found.breach.message,
                location: found.location,
                deciding: found.change.map(|change| change.deciding),
            }),
        }
    }
}

/// Observes which entries a step changed.
#[derive(Debug, Default)]
pub(super) struct Changed {
    cells: Vec<u64>,
    is_over: bool,
}

impl Watch for Changed {
    const IS_ON: bool = true;
    const HEARS_UNLOCKED: bool = false;

    fn change(&mut self, cell: u64, _change: Change) {
        if self.cells.len() < CELLS_MAX {
            self.cells.push(cell);
        } else {
            self.is_over = true;
        }
    }
}

/// The records up to the first violation, which is the last of them.
pub(super) struct Steps {
    pub(super) all: Vec<Step>,
    /// Barriers and TLBIs that changed an entry: step and entry.
    pub(super) effects: Vec<(usize, u64)>,
    /// Barriers and TLBIs that changed more entries than are stored.
    pub(super) wide_effects: Vec<usize>,
    pub(super) verdict: Verdict,
    /// The machine at the violation.
    pub(super) checker: Checker<Changed>,
    texts: Vec<u8>,
}

/// What a trace has to minimize.
pub(super) enum Failing {
    /// No rule is broken.
    No,
    /// The verdict is unknown, for these reasons.
    Unknown(Vec<&'static str>),
    Yes(Box<Steps>),
}

/// Counts places at which records were lost.
struct LossCounter<'a> {
    inner: &'a mut dyn Sink,
    lost: u64,
}

impl Sink for LossCounter<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.lost += u64::from(diagnostic.is_loss());
        self.inner.report(diagnostic)
    }
}

/// Reads the records up to the first violation. The rest is read too: damage there is reported like any other.
pub(super) fn read(input: Input, open: &OpenOptions, options: Options, sink: &mut dyn Sink) -> Result<Failing, Error> {
    let mut reading = Reading {
        checker: Checker::with_watch(options, Changed::default()),
        all: Vec::new(),
        texts: Vec::new(),
        effects: Vec::new(),
        wide_effects: Vec::new(),
        reasons: Vec::new(),
        verdict: None,
    };
    let mut sink = LossCounter { inner: sink, lost: 0 };
    Walk::new(input, open)?.for_each(&mut sink, |item, _| {
        match item {
            Item::Record(record) if reading.verdict.is_none() => reading.take(record),
            Item::Lost(_) if reading.verdict.is_none() => reading.doubt("records were lost"),
            _ => {}
        }
        Ok(())
    })?;
    if reading.verdict.is_none() && sink.lost > 0 {
        reading.doubt("records were lost");
    }
    Ok(reading.finish())
}

struct Reading {
    checker: Checker<Changed>,
    all: Vec<Step>,
    texts: Vec<u8>,
    effects: Vec<(usize, u64)>,
    wide_effects: Vec<usize>,
    reasons: Vec<&'static str>,
    verdict: Option<Verdict>,
}

impl Reading {
    fn take(&mut self, record: &Record<'_>) {
        if !self.reasons.is_empty() {
            // Nothing after this can be minimized.
            return;
        }
        let at = self.all.len();
        let start = self.texts.len();
        self.texts.extend_from_slice(record.text);
        self.all.push(Step { thread: record.thread, transition: record.transition, text: start..self.texts.len() });
        self.checker.step(record.thread, &record.transition);
        let Changed { cells, is_over } = &mut self.checker.watch;
        if matches!(record.transition, Transition::Barrier(_) | Transition::Tlbi { .. }) {
            self.effects.extend(cells.iter().map(|cell| (at, *cell)));
            if *is_over {
                self.wide_effects.push(at);
            }
        }
        cells.clear();
        *is_over = false;
        if self.checker.found().is_empty() {
            return;
        }
        match Outcome::of(&self.checker) {
            Outcome::Nothing => {}
            Outcome::Doubt(why) => self.doubt(why),
            Outcome::Violation(verdict) => self.verdict = Some(verdict),
        }
    }

    fn doubt(&mut self, why: &'static str) {
        if !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
        self.all = Vec::new();
        self.texts = Vec::new();
    }

    fn finish(self) -> Failing {
        match self.verdict {
            _ if !self.reasons.is_empty() => Failing::Unknown(self.reasons),
            None => Failing::No,
            Some(verdict) => Failing::Yes(Box::new(Steps {
                all: self.all,
                effects: self.effects,
                wide_effects: self.wide_effects,
                verdict,
                checker: self.checker,
                texts: self.texts,
            })),
        }
    }
}

impl Steps {
    /// The records as they are in the trace, one per line.
    pub(super) fn text(&self, kept: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for step in kept.iter().filter_map(|at| self.all.get(*at)) {
            bytes.extend_from_slice(self.texts.get(step.text.clone()).unwrap_or_default());
            bytes.push(b'\n');
        }
        bytes
    }
}
