//! Counts calls.

use std::collections::{BTreeMap, HashMap};

use anytrace_core::{Error, Sink};

use super::frames::Frames;
use super::state::{Arguments, Role, StateTracker, Verdict};
use super::sums::Sums;
use super::{Figures, Label, Row, Rows, Statistics, StatsOptions};
use crate::lanes::calls::{Call, CallVisitor};
use crate::lanes::dictionary::{Definition, Dictionary, number};
use crate::lanes::flags::CallFlags;
use crate::lanes::text::until_nul;
use crate::lanes::wire::{Detail, Value, Wire};
use crate::rules;
use crate::tools::callset::CallSet;
use crate::wire::reader::Totals;
use crate::wire::record::{Header, Space, VERSION_ENUM_SETS};
use crate::wire::visitor::RAW;

/// Most threads counted per function, and for all functions together.
const THREADS_MAX: usize = 1024;
const ALL_THREADS_MAX: usize = 1 << 19;

/// Most states distinguished per function, and for all functions together.
const STATES_MAX: usize = 64;
const ALL_STATES_MAX: usize = 1 << 16;

/// What is known about a function.
#[derive(Debug, Default)]
struct Function {
    role: Role,
    /// Its index among the rows.
    row: usize,
}

/// Figures of a row.
#[derive(Debug, Default)]
struct Counts {
    sums: Sums,
    threads: Vec<u64>,
    last_thread: Option<u64>,
    states: Vec<StateCounts>,
}

/// The figures of those calls of a function that set one state.
#[derive(Debug, Clone, Default)]
struct StateCounts {
    /// Enumeration and value of the first argument, if that is a name.
    name: Option<(u64, i64)>,
    sets: u64,
    redundant: u64,
    first: u64,
    last: u64,
}

impl Counts {
    #[inline]
    fn add_thread(&mut self, thread: u64, spare: &mut usize) {
        if self.last_thread == Some(thread) {
            return;
        }
        self.last_thread = Some(thread);
        if let Err(place) = self.threads.binary_search(&thread)
            && self.threads.len() < THREADS_MAX
            && *spare > 0
        {
            *spare -= 1;
            self.threads.insert(place, thread);
        }
    }

    fn add_state(&mut self, call: &Call<'_>, name: Option<(u64, i64)>, verdict: Verdict, spare: &mut usize) {
        let at = match self.states.iter().position(|state| state.name == name) {
            Some(at) => at,
            None if self.states.len() >= STATES_MAX || *spare == 0 => self.states.len().saturating_sub(1),
            None => {
                *spare -= 1;
                // The last entry is for all others.
                let name = name.filter(|_| self.states.len() < STATES_MAX - 1 && *spare > 0);
                self.states.push(StateCounts { name, ..StateCounts::default() });
                self.states.len() - 1
            }
        };
        let Some(state) = self.states.get_mut(at) else { return };
        state.sets += 1;
        if verdict == Verdict::Same {
            if state.redundant == 0 {
                state.first = call.number;
            }
            state.redundant += 1;
            state.last = call.number;
        }
    }
}

/// Consecutive calls of one frame and thread.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    frame: u64,
    thread: u64,
    sums: Sums,
}

/// Which calls are counted.
#[derive(Debug)]
struct Selection {
    calls: Option<CallSet>,
    frames: Option<CallSet>,
}

impl Selection {
    #[inline]
    fn has(&self, call: &Call<'_>, flags: CallFlags) -> bool {
        match (&self.calls, &self.frames) {
            (None, None) => true,
            (calls, frames) => {
                calls.as_ref().is_some_and(|set| set.has(call.number, flags))
                    || frames.as_ref().is_some_and(|set| set.has(call.frame, flags))
            }
        }
    }

    /// True when no later call can be counted.
    #[inline]
    fn is_behind(&self, call: &Call<'_>) -> bool {
        let are_calls = self.calls.as_ref().is_none_or(|set| call.number > set.last());
        let are_frames = self.frames.as_ref().is_none_or(|set| call.frame > set.last());
        (self.calls.is_some() || self.frames.is_some()) && are_calls && are_frames
    }
}

/// The counters.
#[derive(Debug)]
pub(super) struct Counter {
    selection: Selection,
    dictionary: Dictionary,
    /// Functions by slot, and the rows by name.
    functions: Vec<Function>,
    by_name: HashMap<Box<[u8]>, usize>,
    rows: Vec<Counts>,
    /// Index of the row of functions beyond the limit, or without a name.
    others: Option<usize>,
    threads: HashMap<u64, usize>,
    thread_rows: Vec<(u64, Sums)>,
    last_thread: Option<(u64, usize)>,
    frames: Frames,
    run: Run,
    state: StateTracker,
    incomplete: u64,
    spare_threads: usize,
    spare_states: usize,
    unknown_states: u64,
    followed_states: u64,
    distinct_max: usize,
    has_enum_values: bool,
    is_done: bool,
}

impl Counter {
    pub(super) fn new(options: &StatsOptions, distinct_max: usize) -> Self {
        let StatsOptions { calls, frames, assumes_contexts } = options.clone();
        Self {
            selection: Selection { calls, frames },
            dictionary: Dictionary::default(),
            functions: Vec::new(),
            by_name: HashMap::new(),
            rows: Vec::new(),
            others: None,
            threads: HashMap::new(),
            thread_rows: Vec::new(),
            last_thread: None,
            frames: Frames::new(),
            run: Run::default(),
            state: StateTracker::new(assumes_contexts),
            incomplete: 0,
            spare_threads: ALL_THREADS_MAX,
            spare_states: ALL_STATES_MAX,
            unknown_states: 0,
            followed_states: 0,
            distinct_max,
            has_enum_values: true,
            is_done: false,
        }
    }

    /// The row of a function's name.
    fn row_of(&mut self, name: &[u8]) -> usize {
        if let Some(&row) = self.by_name.get(name) {
            return row;
        }
        if self.by_name.len() >= self.distinct_max {
            return self.other_row();
        }
        self.rows.push(Counts::default());
        self.by_name.insert(name.into(), self.rows.len() - 1);
        self.rows.len() - 1
    }

    #[cold]
    fn other_row(&mut self) -> usize {
        if self.others.is_none() {
            self.rows.push(Counts::default());
            self.others = Some(self.rows.len() - 1);
        }
        self.others.unwrap_or(0)
    }

    /// The row of a thread.
    #[inline]
    fn thread_of(&mut self, thread: u64) -> usize {
        if let Some((last, row)) = self.last_thread
            && last == thread
        {
            return row;
        }
        let row = match self.threads.get(&thread) {
            Some(&row) => row,
            None if self.threads.len() >= self.distinct_max => {
                // All others share the row after the last, under a number that no thread has.
                if self.thread_rows.len() == self.threads.len() {
                    self.thread_rows.push((u64::MAX, Sums::default()));
                }
                self.thread_rows.len() - 1
            }
            None => {
                self.thread_rows.push((thread, Sums::default()));
                self.threads.insert(thread, self.thread_rows.len() - 1);
                self.thread_rows.len() - 1
            }
        };
        self.last_thread = Some((thread, row));
        row
    }

    fn count(&mut self, call: &Call<'_>, role: Role, row: usize, figures: &Figures) {
        let ends = role.flags.has(CallFlags::END_FRAME);
        self.incomplete += u64::from(call.is_incomplete);
        if (self.run.frame, self.run.thread) != (call.frame, call.thread) {
            self.end_run();
            (self.run.frame, self.run.thread) = (call.frame, call.thread);
        }
        self.run.sums.add(call, ends, figures);
        if let Some(counts) = self.rows.get_mut(row) {
            counts.sums.add(call, ends, figures);
            counts.add_thread(call.thread, &mut self.spare_threads);
        }
    }

    /// Adds the sums of consecutive calls of one frame and thread.
    fn end_run(&mut self) {
        let Run { frame, thread, sums } = std::mem::take(&mut self.run);
        if sums.figures.calls == 0 {
            return;
        }
        self.frames.add(frame, &sums);
        let thread = self.thread_of(thread);
        if let Some((_, row)) = self.thread_rows.get_mut(thread) {
            row.merge(&sums);
        }
    }

    fn count_state(&mut self, call: &Call<'_>, row: usize, of: &Arguments<'_>, verdict: Verdict) {
        match verdict {
            Verdict::Nothing | Verdict::Recorded => return,
            Verdict::Unknown => {
                self.unknown_states += 1;
                return;
            }
            Verdict::New | Verdict::Same => self.followed_states += 1,
        }
        let name = match of.wire(0).map(|mut wire| wire.value()) {
            Some(Value::Enum(id, Some(value))) => Some((id, number(value))),
            Some(Value::Enum(id, None)) => self.dictionary.enumeration(id).map(|names| (id, names.value(None))),
            _ => None,
        };
        if let Some(counts) = self.rows.get_mut(row) {
            counts.add_state(call, name, verdict, &mut self.spare_states);
        }
    }

    pub(super) fn into_statistics(mut self) -> Statistics {
        self.end_run();
        let mut names: BTreeMap<usize, String> =
            self.by_name.iter().map(|(name, row)| (*row, String::from_utf8_lossy(name).into_owned())).collect();
        if let Some(others) = self.others {
            names.insert(others, "?".to_owned());
        }
        let mut functions = Vec::new();
        let mut states = Vec::new();
        for (at, counts) in self.rows.iter().enumerate().filter(|(_, counts)| counts.sums.figures.calls > 0) {
            let name = names.get(&at).cloned().unwrap_or_default();
            for state in &counts.states {
                states.push(state_row(&name, state, &self.dictionary, self.has_enum_values));
            }
            functions.push(counts.sums.row(Label::Name(name), counts.threads.len()));
        }
        functions.sort_by_key(|row| row.first);
        let threads = self.thread_rows.iter();
        let threads = threads.map(|(thread, sums)| match *thread {
            u64::MAX => sums.row(Label::Name("others".to_owned()), 0),
            thread => sums.row(Label::Number(thread), 0),
        });
        let (mut total, mut frames_ended) = (Figures::default(), 0);
        for (_, sums) in &self.thread_rows {
            total.add(&sums.figures);
            frames_ended += sums.frames;
        }
        let rows = [functions, self.frames.rows().collect(), threads.collect(), states].map(Rows);
        Statistics {
            total,
            frames_ended,
            incomplete: self.incomplete,
            unknown_states: self.unknown_states,
            followed_states: self.followed_states,
            forgotten: self.state.forgotten,
            frames_each: self.frames.each(),
            totals: Totals::default(),
            rows,
        }
    }
}

fn state_row(function: &str, state: &StateCounts, dictionary: &Dictionary, has_enum_values: bool) -> Row {
    let argument = state.name.map(|(id, value)| {
        let signed = crate::wire::record::Signed { is_negative: value < 0, magnitude: value.unsigned_abs() };
        // Before version 3 the enumeration is its only value.
        let name = dictionary.enumeration(id).and_then(|names| names.name(has_enum_values.then_some(signed)));
        name.map_or_else(|| value.to_string(), |name| String::from_utf8_lossy(until_nul(name)).into_owned())
    });
    let name = argument.map_or_else(|| function.to_owned(), |argument| format!("{function}({argument})"));
    let figures =
        Figures { calls: state.sets, state_changes: state.sets, redundant: state.redundant, ..Figures::default() };
    Row { label: Label::Name(name), figures, threads: 0, frames: 0, first: state.first, last: state.last }
}

/// Reads a call's values: their sizes, and the positions of arguments.
#[inline]
fn measure<'a>(call: &Call<'a>, dictionary: &Dictionary, role: Role) -> (Figures, Arguments<'a>) {
    let mut figures = Figures { calls: 1, raw_bytes: call.raw_bytes, ..Figures::default() };
    let mut arguments = Arguments::new(dictionary.wire(call.enter), dictionary.wire(call.leave));
    for (details, is_enter) in [(call.enter, true), (call.leave, false)] {
        let mut wire = dictionary.wire(details);
        let before = figures.blob_bytes;
        loop {
            match wire.detail() {
                Detail::End => break,
                Detail::Argument(index) => {
                    if role.acts() {
                        arguments.add(index, &wire, is_enter);
                    }
                }
                Detail::Return => arguments.set_returned(&wire, is_enter),
                Detail::Backtrace(count) => {
                    for _ in 0..count.min(details.len() as u64) {
                        wire.uint();
                    }
                    continue;
                }
                Detail::Flags(flags) => {
                    arguments.is_fake |= flags & 1 == 1;
                    continue;
                }
                Detail::Thread(_) => continue,
            }
            measure_value(&mut wire, dictionary, &mut figures);
        }
        if is_enter && !role.asks {
            figures.upload_bytes += figures.blob_bytes - before;
        }
    }
    (figures, arguments)
}

/// Skips a value and adds its sizes.
#[inline]
fn measure_value(wire: &mut Wire<'_>, dictionary: &Dictionary, figures: &mut Figures) {
    let mut left = 1_u64;
    while left > 0 {
        left -= 1;
        match wire.value() {
            Value::Text(text) => figures.string_bytes += text.len() as u64,
            Value::Wide(mut chars) => {
                while !chars.rest().is_empty() {
                    chars.uint();
                    figures.string_bytes += 4;
                }
            }
            Value::Blob(length, _) => figures.blob_bytes = figures.blob_bytes.saturating_add(length),
            Value::Array(count) => {
                figures.array_values = figures.array_values.saturating_add(count);
                left = left.saturating_add(count - wire.floats(count, |_| {}));
            }
            Value::Struct(id) => left = left.saturating_add(dictionary.members(id)),
            Value::Repr => left = left.saturating_add(2),
            // A value that was cut ends here, whatever its counts say.
            Value::Unknown => return,
            _ => {}
        }
        if wire.rest().is_empty() {
            return;
        }
    }
}

impl CallVisitor for Counter {
    fn header(&mut self, header: &Header) -> Result<(), Error> {
        self.dictionary = Dictionary::new(header.version);
        self.has_enum_values = header.version >= VERSION_ENUM_SETS;
        Ok(())
    }

    fn define(&mut self, definition: &Definition<'_>) {
        match definition.space {
            // Stack frames and the names of bits are not shown.
            Space::Frame | Space::Bitmask => return,
            Space::Function => {
                let name = Wire::new(definition.bytes, true).string();
                let name = until_nul(name);
                let at = definition.slot as usize;
                // Functions whose definitions are lost have no row of their own.
                if self.functions.len() <= at && !definition.bytes.is_empty() {
                    let others = if self.functions.len() < at { self.other_row() } else { 0 };
                    self.functions.resize_with(at + 1, || Function { role: Role::default(), row: others });
                }
                let row = self.row_of(name);
                if let Some(place) = self.functions.get_mut(at) {
                    *place = Function { role: Role::of(name), row };
                }
                return;
            }
            Space::Struct | Space::Enum => {}
        }
        self.dictionary.define(definition);
    }

    #[inline]
    fn call(&mut self, call: &Call<'_>, _: &mut dyn Sink) -> Result<(), Error> {
        if self.is_done {
            return Ok(());
        }
        if self.selection.is_behind(call) {
            self.is_done = true;
            return Ok(());
        }
        let (role, row) = match self.functions.get(call.function as usize) {
            Some(function) => (function.role, function.row),
            None => (Role::default(), self.other_row()),
        };
        let is_counted = self.selection.has(call, role.flags);
        if !is_counted && !role.acts() {
            return Ok(());
        }
        let (mut figures, arguments) = measure(call, &self.dictionary, role);
        let verdict = match role.acts() {
            true => self.state.call(role, call, &arguments, &self.dictionary),
            false if role.sets_state && self.state.is_recording(call.thread) => Verdict::Recorded,
            false => Verdict::Nothing,
        };
        if is_counted {
            figures.draws = u64::from(role.flags.has(CallFlags::RENDER));
            figures.state_changes = u64::from(role.sets_state && verdict != Verdict::Recorded);
            figures.redundant = u64::from(verdict == Verdict::Same);
            self.count(call, role, row, &figures);
            if role.acts() {
                self.count_state(call, row, &arguments, verdict);
            }
        }
        Ok(())
    }

    fn open(&mut self, call: &Call<'_>, sink: &mut dyn Sink) -> Result<(), Error> {
        let role = self.functions.get(call.function as usize).map_or(Role::default(), |function| function.role);
        if self.selection.has(call, role.flags) {
            let diagnostic = rules::LATE_CALL.at(call.offset).within(RAW).record(call.seq);
            sink.report(diagnostic.found(format!("call {}", call.number)))?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }
}
