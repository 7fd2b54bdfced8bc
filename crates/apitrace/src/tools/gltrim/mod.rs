//! Extracts a part of a trace that replays like the entire trace: frames, and everything before them that they depend
//! on.
//!
//! There are two passes over the trace and one over notes. The first tracks bindings and notes for each call what it
//! reads, changes and overwrites (`model`, `log`). Then the notes are read backwards (`slice`): a call stays if a call
//! that stays needs its effect, and the effect is not overwritten in between. The last pass writes the calls that stay
//! as [`crate::tools::trim`] does, each event unchanged.
//!
//! Memory: notes beyond 16 MiB are written to a temporary file. Memory grows by one bit per call, about 100 bytes for
//! each tracked object, state and part of a texture or buffer, and the commands of display lists (at most 16 MiB).

use std::collections::BTreeMap;
use std::io::Write;

use anytrace_core::{Diagnostic, Error, Outcome, Sink, Target};

use crate::lanes::calls::{Call, CallOptions, CallVisitor, read_calls};
use crate::lanes::dictionary::{Definition, Dictionary};
use crate::lanes::flags::CallFlags;
use crate::tools::callset::CallSet;
use crate::tools::gl::values::Values;
use crate::tools::gltrim::explain::{Explainer, Extent, Reasons};
use crate::tools::gltrim::model::{At, Model};
use crate::tools::gltrim::numbers::Numbers;
use crate::tools::gltrim::rules::{Rule, rule};
use crate::tools::trim::{TrimOptions, trim};
use crate::wire::container::Container;
use crate::wire::reader::{Reader, Totals};
use crate::wire::record::{Header, VERSION_THREADS};

mod apply;
mod buffers;
mod context;
mod context_state;
mod draws;
mod explain;
mod framebuffers;
mod image_rules;
mod list_commands;
mod lists;
mod live;
mod log;
mod model;
mod nodes;
mod numbers;
mod objects;
mod programs;
mod rules;
mod setting;
mod slice;
mod stacks;
mod textures;

pub use explain::ExplainForm;

/// Options of [`plan`].
#[derive(Debug, Clone, Default)]
pub struct GltrimOptions {
    /// Frames to keep, from 0, counted as calls that end one are left.
    pub frames: Option<CallSet>,
    /// Frames before them whose calls are kept too, all but those that end a frame.
    pub setup: Option<CallSet>,
    /// Keep all calls that set state.
    pub keeps_states: bool,
    /// Remember why calls are kept, for [`Plan::explain`].
    pub explains: bool,
    /// Count the calls of this many frames, those with the most calls.
    pub top: usize,
}

/// What to keep of a trace.
pub struct Plan {
    kept: Numbers,
    model: Model,
    dictionary: Dictionary,
    reasons: Option<Reasons>,
    setup: Numbers,
    /// Frames with most calls, the largest first: number and calls.
    pub top: Vec<(u64, u64)>,
    /// Frames that were read, the last of them perhaps without an end.
    pub frames: u64,
    /// Calls of the selected frames.
    pub wanted: u64,
    /// The totals of reading the trace.
    pub totals: Totals,
}

/// Reads a trace up to the last selected frame and decides which of its calls are kept.
///
/// # Errors
/// I/O, limits, and what the sink returns.
pub fn plan(reader: &mut Reader, options: &GltrimOptions, sink: &mut dyn Sink) -> Result<Plan, Error> {
    let mut scan = Scan {
        options,
        dictionary: Dictionary::default(),
        model: Model::new(true, options.keeps_states),
        frame: 0,
        calls: 0,
        has_calls: false,
        wanted: Numbers::default(),
        setup: Numbers::default(),
        targets: 0,
        top: BTreeMap::new(),
    };
    let totals = read_calls(reader, CallOptions::default(), &mut scan, sink)?;
    scan.end_frame();
    let Scan { mut model, dictionary, frame, has_calls, wanted, setup, targets, top, .. } = scan;
    model.log.finish()?;
    // Before slicing: with too many nodes the notes no longer tell things apart, and too few calls could stay.
    model.nodes.check()?;
    let mut reasons = options.explains.then(Reasons::new);
    let kept = if targets == 0 {
        Numbers::default()
    } else {
        slice::slice(&model.nodes, &mut model.log, &wanted, reasons.as_mut())?
    };
    let mut top: Vec<(u64, u64)> = top.into_iter().map(|((calls, frame), ())| (u64::MAX - frame, calls)).collect();
    top.reverse();
    let frames = frame + u64::from(has_calls);
    Ok(Plan { kept, model, dictionary, reasons, setup, top, frames, wanted: targets, totals })
}

impl Plan {
    /// True when a call of this number is kept.
    pub fn keeps(&self, call: u64) -> bool {
        self.kept.has(call)
    }

    /// The calls that are kept.
    pub fn kept(&self) -> CallSet {
        CallSet::of_numbers(self.kept.words())
    }

    /// The number of calls kept.
    pub fn calls(&self) -> u64 {
        self.kept.count()
    }

    /// Unknown functions, and how often they are called: all their calls are kept.
    pub fn unknown(&self) -> Vec<(String, u64)> {
        let name = |slot: u32| self.dictionary.function(slot).map_or(&b"?"[..], |function| function.name());
        let unknown = self.model.unknown.iter();
        let mut rows: Vec<_> =
            unknown.map(|(slot, count)| (String::from_utf8_lossy(name(*slot)).into_owned(), *count)).collect();
        rows.sort();
        rows
    }

    /// Writes why each call is kept, in the order of the calls. `lost`, used in JSON, is the number of places where the
    /// trace lost something.
    ///
    /// # Errors
    /// When writing fails, and I/O of temporary files.
    pub fn explain(&mut self, form: ExplainForm, lost: u64, out: &mut dyn Write) -> Result<(), Error> {
        let Some(reasons) = &mut self.reasons else { return Ok(()) };
        let explainer = Explainer {
            nodes: &self.model.nodes,
            objects: &self.model.objects,
            dictionary: &self.dictionary,
            kept: &self.kept,
            setup: &self.setup,
        };
        let read = self.totals.extent();
        explainer.write(reasons, form, &Extent { top: &self.top, read: &read, lost }, out)
    }

    /// Writes what is kept, from a reader of the same trace. Damage was reported when the plan was made and is not
    /// reported again.
    ///
    /// # Errors
    /// I/O and limits.
    pub fn write(
        &self,
        reader: Reader,
        container: Option<Container>,
        level: Option<i32>,
        out: &mut dyn Target,
    ) -> Result<Outcome, Error> {
        let options = TrimOptions { calls: Some(self.kept()), container, level, ..TrimOptions::default() };
        trim(reader, &options, out, &mut Discard)
    }
}

/// Discards diagnostics: the first pass reported them.
struct Discard;

impl Sink for Discard {
    fn report(&mut self, _: Diagnostic) -> Result<(), Error> {
        Ok(())
    }
}

/// The first pass.
struct Scan<'a> {
    options: &'a GltrimOptions,
    dictionary: Dictionary,
    model: Model,
    /// Calls that ended a frame so far.
    frame: u64,
    /// Calls of the current frame.
    calls: u64,
    has_calls: bool,
    /// Calls that stay in any case.
    wanted: Numbers,
    setup: Numbers,
    targets: u64,
    /// Calls and, from the last to the first, frames.
    top: BTreeMap<(u64, u64), ()>,
}

impl Scan<'_> {
    fn end_frame(&mut self) {
        let calls = std::mem::take(&mut self.calls);
        if self.options.top == 0 || calls == 0 {
            return;
        }
        // The complement orders earlier frames after later ones, so that of equal frames the earlier stays.
        self.top.insert((calls, u64::MAX - self.frame), ());
        if self.top.len() > self.options.top {
            self.top.pop_first();
        }
    }

    fn take(&mut self, call: &Call<'_>) -> Result<(), Error> {
        let function = self.dictionary.function(call.function);
        let flags = function.map_or(CallFlags::default(), |function| function.flags);
        let ends_frame = flags.has(CallFlags::END_FRAME);
        let has = |set: &Option<CallSet>| set.as_ref().is_some_and(|set| set.has(self.frame, flags));
        let is_target = has(&self.options.frames);
        let is_setup = !is_target && !ends_frame && has(&self.options.setup);
        self.targets += u64::from(is_target);
        if is_target || is_setup {
            self.wanted.add(call.number);
        }
        if is_setup {
            self.setup.add(call.number);
        }
        // After the last selected frame calls are only counted, for `--top`.
        let is_read = self.options.frames.as_ref().is_some_and(|frames| self.frame <= frames.last());
        if is_read {
            let rule = self.model.rules.get(call.function as usize).copied().unwrap_or(Rule::Unknown);
            let values = Values::new(call, &self.dictionary);
            let at = At {
                call: call.number,
                thread: call.thread,
                function: call.function,
                is_forced: is_target || is_setup,
                is_target,
                is_early: self.targets == 0,
                depth: 0,
            };
            self.model.call(rule, &values, at, call.enter)?;
        }
        self.calls += 1;
        self.has_calls = true;
        if ends_frame {
            self.end_frame();
            self.frame += 1;
            self.has_calls = false;
        }
        Ok(())
    }
}

impl CallVisitor for Scan<'_> {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        self.model = Model::new(header.version >= VERSION_THREADS, self.options.keeps_states);
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        self.dictionary.define(definition);
        if definition.space == crate::wire::record::Space::Function
            && let Some(function) = self.dictionary.function(definition.slot)
        {
            let at = definition.slot as usize;
            if self.model.rules.len() <= at {
                self.model.rules.resize(at + 1, Rule::Unknown);
            }
            if let Some(place) = self.model.rules.get_mut(at) {
                *place = rule(function.name());
            }
        }
    }

    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if self.is_done() { Ok(()) } else { self.take(call) }
    }

    fn open(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        // It was not left within the selected frames.
        let _ = call;
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.options.top == 0 && self.options.frames.as_ref().is_none_or(|frames| self.frame > frames.last())
    }
}
