//! `casemate explain`: for each violation, what led to it, what is missing, and the near misses.

use std::collections::BTreeSet;
use std::fmt::Write;

use anytrace_core::index::Open;
use anytrace_core::{Error, OpenOptions, Sink};
use serde_json::{Value, json};

use super::advice;
use super::check::{CheckOptions, Found, Report, check};
use super::history::{Event, Filter, History, Notes, What, Where};
use super::render;
use crate::model::{Cell, CellState, Checker, Descriptor, Miss};
use crate::wire::record::Transition;
use crate::wire::walk::{Item, Walk};
use anytrace_casemate_model::TlbiScope;

/// Near misses listed.
const NEAR_MAX: usize = 5;

/// Unclean entries listed.
const LISTED_MAX: usize = 16;

/// Writes of bases, and TLBIs, kept for violations about identifiers.
const CONTEXT_MAX: usize = 1024;

/// Steps on a lock listed.
const LOCK_STEPS_MAX: usize = 4;

/// The history of a violation.
#[derive(Debug, Clone, PartialEq)]
pub struct Story {
    /// The violation.
    pub found: Found,
    /// Its record.
    pub at: Where,
    /// The entry it concerns, in its state just before.
    pub cell: Option<Cell>,
    /// The lock of its root, and the thread that had it then.
    pub lock: Option<(u64, Option<u32>)>,
    /// What happened to the entry since it was last valid, in order.
    pub steps: Vec<Event>,
    /// Barriers and TLBIs that did not count, the nearest first.
    pub near: Vec<Event>,
    /// Last steps on the lock, in order.
    pub lock_steps: Vec<Where>,
    /// The last use of a tree whose entries TLBs may contain, and bases and TLBIs since.
    pub context: Vec<Where>,
    /// Unclean entries below the location, if they are the cause.
    pub unclean_below: Vec<Cell>,
    /// What is missing.
    pub missing: String,
    /// A correct sequence.
    pub correct: Vec<String>,
}

/// The explanation of a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Explanation {
    /// The verdict.
    pub report: Report,
    /// A history for each violation.
    pub stories: Vec<Story>,
}

/// Explains a trace, which is read twice.
///
/// # Errors
/// I/O, and whatever the sink returns.
pub fn explain(
    input: &Open<'_>,
    open: &OpenOptions,
    options: &CheckOptions,
    sink: &mut dyn Sink,
) -> Result<Explanation, Error> {
    let report = check(input()?, open, options, sink)?;
    let cells: BTreeSet<u64> = report.violations.iter().filter_map(|found| found.location).collect();
    let mut collector = StoryCollector {
        checker: Checker::with_watch(options.model, Notes::new(Filter::Cells(cells.clone()))),
        history: History::default(),
        locks: cells,
        lock_steps: Vec::new(),
        context: report.violations.iter().any(|found| found.reuse.is_some()).then(Vec::new),
        stories: Vec::new(),
    };
    let mut found = report.violations.iter().peekable();
    let ended = Walk::new(input()?, open)?.for_each(&mut anytrace_core::Collect::default(), |item, place| {
        let Item::Record(record) = item else { return Ok(()) };
        let at = || Where::of(record, place.seq);
        collector.note_lock(&record.transition, at);
        collector.note_context(record.thread, &record.transition, at);
        while let Some(next) = found.next_if(|found| found.index == place.seq) {
            collector.collect(next, at());
        }
        if found.peek().is_none() {
            return Err(Error::usage("nothing to explain"));
        }
        collector.checker.step(record.thread, &record.transition);
        for (cell, what) in std::mem::take(&mut collector.checker.watch.step) {
            collector.history.add(Event { cell, what, at: at() });
        }
        Ok(())
    });
    // It ends early when everything has been collected; the bytes were read to their end before.
    drop(ended);
    Ok(Explanation { report, stories: collector.stories })
}

struct StoryCollector {
    checker: Checker<Notes>,
    history: History,
    /// Locations of violations: some are locks.
    locks: BTreeSet<u64>,
    lock_steps: Vec<(u64, Where)>,
    /// What threads did to their contexts, if some violation is about that: the last such steps.
    context: Option<Vec<(u32, Transition, Where)>>,
    stories: Vec<Story>,
}

impl StoryCollector {
    fn note_lock(&mut self, transition: &Transition, at: impl Fn() -> Where) {
        let (Transition::Lock { address } | Transition::Trylock { address } | Transition::Unlock { address }) =
            *transition
        else {
            return;
        };
        let is_wanted =
            self.locks.contains(&address) || self.locks.iter().any(|cell| self.lock_of(*cell) == Some(address));
        if !is_wanted {
            return;
        }
        self.lock_steps.push((address, at()));
        let same = self.lock_steps.iter().filter(|(lock, _)| *lock == address).count();
        if same > LOCK_STEPS_MAX
            && let Some(oldest) = self.lock_steps.iter().position(|(lock, _)| *lock == address)
        {
            self.lock_steps.remove(oldest);
        }
    }

    fn note_context(&mut self, thread: u32, transition: &Transition, at: impl Fn() -> Where) {
        let Some(context) = &mut self.context else { return };
        let is_wanted = match transition {
            Transition::SysregWrite { register, .. } => register.is_base(),
            Transition::Tlbi { op, .. } => !matches!(op.scope(), TlbiScope::Address | TlbiScope::AnyAsid),
            _ => false,
        };
        if is_wanted {
            context.push((thread, *transition, at()));
        }
        if context.len() > 2 * CONTEXT_MAX {
            context.drain(..CONTEXT_MAX);
        }
    }

    /// The last use of the tree whose entries TLBs may contain, and what came since.
    fn context_of(&self, found: &Found) -> Vec<Where> {
        // The bits below them may be those above.
        const BASE: u64 = 0xffff_ffff_ffc0;
        let (Some(reuse), Some(context)) = (found.reuse, &self.context) else { return Vec::new() };
        let is_use = |(thread, transition, _): &(u32, Transition, Where)| {
            let base = match transition {
                Transition::SysregWrite { value, .. } => value & BASE,
                _ => return false,
            };
            *thread == reuse.thread && base == reuse.other & BASE
        };
        let from = context.iter().rposition(is_use).unwrap_or(0);
        let since = context.get(from..).unwrap_or_default();
        let used = since.iter().take(1);
        let rest = since.iter().skip(1);
        let rest: Vec<_> = rest.filter(|(_, _, at)| at.index < found.index).collect();
        let skipped = rest.len().saturating_sub(LISTED_MAX);
        used.chain(rest.into_iter().skip(skipped)).map(|(_, _, at)| at.clone()).collect()
    }

    fn lock_of(&self, cell: u64) -> Option<u64> {
        self.checker.lock_of_root(self.checker.cell(cell)?.place.root)
    }

    fn unclean_below(&self, found: &Found, location: u64) -> Vec<Cell> {
        if !matches!(found.breach.name(), "bbm-unclean-children" | "release-unclean") {
            return Vec::new();
        }
        let is_below = |cell: &Cell| {
            cell.place.root == location || self.checker.parents(cell).iter().any(|above| above.address == location)
        };
        let unclean = self.checker.unclean_entries();
        let cells = unclean.iter().filter_map(|entry| self.checker.cell(entry.address));
        cells.filter(|cell| is_below(cell)).take(LISTED_MAX).collect()
    }

    /// The state is the one before the step with the violation.
    fn collect(&mut self, found: &Found, at: Where) {
        let location = found.location.unwrap_or(u64::MAX);
        let cell = self.checker.cell(location);
        let lock =
            self.lock_of(location).or(self.lock_steps.iter().any(|(lock, _)| *lock == location).then_some(location));
        let lock_view = lock.map(|lock| (lock, self.checker.lock_holder(lock)));
        let all = self.history.of(location);
        let steps: Vec<Event> = all.iter().filter(|event| !matches!(event.what, What::Miss(_))).cloned().collect();
        let mut near: Vec<Event> = all.iter().filter(|event| matches!(event.what, What::Miss(_))).cloned().collect();
        near.reverse();
        // A DSB that only came too early or too often is the least informative near miss.
        near.sort_by_key(|event| matches!(event.what, What::Miss(Miss::NoTlbiBefore | Miss::AlreadyDone)));
        near.truncate(NEAR_MAX);
        let (missing, correct) = advice::of(found, cell.as_ref());
        let steps_on_lock = self.lock_steps.iter().filter(|(other, _)| Some(*other) == lock);
        self.stories.push(Story {
            found: found.clone(),
            at,
            cell,
            lock: lock_view,
            steps,
            near,
            lock_steps: steps_on_lock.map(|(_, at)| at.clone()).collect(),
            context: self.context_of(found),
            unclean_below: self.unclean_below(found, location),
            missing,
            correct,
        });
    }
}

/// `stage 2 entry of level 3, input addresses 0x0 to 0xfff, root 0x1000`.
pub(crate) fn place_words(cell: &Cell) -> String {
    let last = cell.place.input.wrapping_add(cell.bytes() - 1);
    format!(
        "stage {} entry of level {}, input addresses {:#x} to {last:#x}, root {:#x}",
        cell.place.stage, cell.place.level, cell.place.input, cell.place.root
    )
}

pub(crate) fn descriptor_words(descriptor: Descriptor) -> String {
    match descriptor {
        Descriptor::Invalid => "invalid".to_owned(),
        Descriptor::Table(next) => format!("table at {next:#x}"),
        Descriptor::Map(output) => format!("maps to {output:#x}"),
        Descriptor::Bad => "bad encoding".to_owned(),
    }
}

pub(crate) fn state_words(state: &CellState) -> String {
    match state {
        CellState::Valid => "valid".to_owned(),
        CellState::Unclean { thread, old, progress } => {
            format!("unclean ({}), invalidated by thread {thread}, was {old:#x}", progress.letters())
        }
        CellState::Clean { .. } => "clean".to_owned(),
    }
}

impl Explanation {
    /// For people.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for story in &self.stories {
            // Writing to a String cannot fail.
            let _ = story.write(&mut out);
        }
        let mut end = String::new();
        let _ = render::report_text(&Report { violations: Vec::new(), ..self.report.clone() }, &mut end);
        let last = end.lines().last().unwrap_or_default();
        out.push_str(last);
        out.push('\n');
        out
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let mut value = render::report_json(&self.report);
        value["stories"] = self.stories.iter().map(Story::json).collect();
        value
    }
}

impl Story {
    fn write(&self, out: &mut String) -> std::fmt::Result {
        let found = &self.found;
        writeln!(out, "{}: {} [{}]", found.severity.name(), found.breach.message, found.breach.rule.code)?;
        writeln!(out, "  {}", found.breach.rule.summary)?;
        for line in render::change_lines(found) {
            writeln!(out, "  {line}")?;
        }
        let source = found.source.as_ref().map_or(String::new(), |source| format!(", {source}"));
        writeln!(out, "  at record {} (id {}), thread {}{source}", found.index, found.record_id, found.thread)?;
        writeln!(out, "    {}", found.text)?;
        if let Some(cell) = &self.cell {
            writeln!(out, "  the location {:#x}: {}", cell.address, place_words(cell))?;
            writeln!(
                out,
                "    {}, value {:#x}, {}",
                state_words(&cell.state),
                cell.value,
                descriptor_words(cell.descriptor())
            )?;
            if let Some(stale) = &found.stale {
                writeln!(out, "    stale permissions ({}): was {:#x}", stale.progress.letters(), stale.old)?;
            }
            if cell.is_frozen {
                writeln!(out, "    an entry above it is being removed")?;
            }
        } else if let Some(location) = found.location {
            writeln!(out, "  the location {location:#x}")?;
        }
        if let Some((lock, holder)) = self.lock {
            let holder = holder.map_or("nobody".to_owned(), |thread| format!("thread {thread}"));
            writeln!(out, "  its lock {lock:#x} is held by {holder}")?;
            for step in &self.lock_steps {
                writeln!(out, "    {}: {}", step.words(), step.text)?;
            }
        }
        if !self.context.is_empty() {
            writeln!(out, "  its last use, and bases and TLBIs since")?;
        }
        for step in &self.context {
            writeln!(out, "    {}: {}", step.words(), step.text)?;
        }
        if !self.steps.is_empty() {
            writeln!(out, "  its history")?;
        }
        for step in &self.steps {
            writeln!(out, "    {}: {}\n      {}", step.at.words(), step.what.words(), step.at.text)?;
        }
        for cell in &self.unclean_below {
            writeln!(
                out,
                "  unclean below it: {:#x}: {}, {}",
                cell.address,
                place_words(cell),
                state_words(&cell.state)
            )?;
        }
        writeln!(out, "  missing: {}", self.missing)?;
        if !self.near.is_empty() {
            writeln!(out, "  near misses, closest first")?;
        }
        for step in &self.near {
            writeln!(out, "    {}: {}\n      {}", step.at.words(), step.what.words(), step.at.text)?;
        }
        if !self.correct.is_empty() {
            writeln!(out, "  correct sequence: {}", self.correct.join("; "))?;
        }
        writeln!(out)
    }

    fn json(&self) -> Value {
        let at = |at: &Where| json!({"index": at.index, "record_id": at.id, "thread": at.thread, "src": at.source, "record": at.text});
        let event = |event: &Event| {
            let mut value = at(&event.at);
            value["what"] = json!(event.what.words());
            value["state"] = json!(event.what.state());
            if let What::Miss(miss) = event.what {
                value["reason"] = json!(reason(miss));
            }
            value
        };
        json!({
            "violation": render::violation_json(&self.found),
            "entry": self.cell.as_ref().map(|cell| json!({
                "location": render::hex(cell.address),
                "root": render::hex(cell.place.root),
                "stage": cell.place.stage,
                "level": cell.place.level,
                "input_start": render::hex(cell.place.input),
                "input_bytes": cell.bytes(),
                "value": render::hex(cell.value),
                "state": state_words(&cell.state),
                "descriptor": descriptor_words(cell.descriptor()),
                "is_frozen": cell.is_frozen,
            })),
            "lock": self.lock.map(|(lock, holder)| json!({"location": render::hex(lock), "holder": holder})),
            "lock_steps": self.lock_steps.iter().map(at).collect::<Vec<_>>(),
            "context": self.context.iter().map(at).collect::<Vec<_>>(),
            "steps": self.steps.iter().map(event).collect::<Vec<_>>(),
            "unclean_below": self.unclean_below.iter().map(|cell| json!({
                "location": render::hex(cell.address), "state": state_words(&cell.state)})).collect::<Vec<_>>(),
            "missing": self.missing,
            "near_misses": self.near.iter().map(event).collect::<Vec<_>>(),
            "correct": self.correct,
        })
    }
}

/// A stable name of a reason.
fn reason(miss: Miss) -> &'static str {
    match miss {
        Miss::NotLocked => "lock-not-held",
        Miss::OtherThread => "not-the-invalidator",
        Miss::OtherWriter => "not-the-writer",
        Miss::WeakBarrier => "weak-barrier",
        Miss::LocalBarrier => "local-barrier",
        Miss::NoTlbiBefore => "no-tlbi-before",
        Miss::NotBroadcast => "not-broadcast",
        Miss::WrongStage => "wrong-stage",
        Miss::StageOneOnly => "stage-one-only",
        Miss::StageTwoAgain => "stage-two-again",
        Miss::NoBarrierBefore => "no-barrier-before",
        Miss::WrongId => "wrong-id",
        Miss::WrongAddress => "wrong-address",
        Miss::TableByAddress => "table-by-address",
        Miss::WrongLevel => "wrong-level",
        Miss::PartOfStageOne => "part-of-stage-one",
        Miss::XsAccesses => "xs-accesses",
        Miss::WrongGranule => "wrong-granule",
        Miss::TableAbove => "table-above",
        Miss::NotModelled => "not-modelled",
        Miss::AlreadyDone => "already-done",
    }
}
