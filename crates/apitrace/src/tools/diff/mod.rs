//! The difference of two traces: aligned by frames, then by calls, with old and new of each argument.
//!
//! There are two passes: the first computes a few numbers per frame, by which frames are aligned; the second compares
//! the calls of frames that differ. Each trace is read by its own thread. Memory is bounded by windows of calls and by
//! the number of frames, not by the traces.
//!
//! The forms of the peer ([`DiffForm::Python`], [`DiffForm::Lines`]) are aligned by the peer's method while both traces
//! are short; see [`PEER_CALLS_MAX`].

mod engine;
mod entry;
mod frames;
mod gnu;
mod json;
mod lines;
mod number;
mod python;
mod short;
mod side;
mod text;
mod value;

use std::io::Write;

use anytrace_core::Error;

use crate::lanes::style::Style;
use crate::lanes::text::Escape;
use crate::tools::callset::CallSet;

pub use entry::Entry;
pub use side::{Open, Source};

use entry::{Form, MakeOptions};

/// Appends a number as printed by Python's `repr`.
pub(crate) fn push_python_f64(out: &mut Vec<u8>, value: f64) {
    number::push_f64(out, value, number::Digits::Python);
}

/// The peer's forms are aligned by the peer's own method up to this many calls per side, and by frames beyond.
pub const PEER_CALLS_MAX: usize = 16_384;

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffForm {
    /// Differences by frame with some calls around them, and totals.
    Text,
    /// JSON with a version field.
    Json,
    /// As the peer's `--tool=python`.
    Python,
    /// As the peer's other tools, which compare the text of `apitrace dump`.
    Lines(LineForm),
}

/// How lines are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineForm {
    /// One below the other: `diff`.
    Below,
    /// Side by side: `sdiff`.
    Beside,
    /// Words within lines: `wdiff`.
    Words,
}

/// Options of [`diff`].
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub struct DiffOptions {
    /// What is printed.
    pub form: DiffForm,
    /// Call numbers.
    pub has_numbers: bool,
    /// Omit what both traces have.
    pub hides_common: bool,
    /// For [`DiffForm::Text`]: calls shown around differences.
    pub context_calls: usize,
    /// Calls on different threads are different.
    pub has_threads: bool,
    /// Ignore pointers that differ consistently.
    pub ignores_pointers: bool,
    /// Colors for terminals.
    pub has_color: bool,
    /// Columns, for [`LineForm::Beside`].
    pub width: usize,
    /// The names of the traces.
    pub names: [String; 2],
}

impl Default for DiffOptions {
    fn default() -> Self {
        Self {
            form: DiffForm::Text,
            has_numbers: true,
            hides_common: false,
            context_calls: 3,
            has_threads: false,
            ignores_pointers: false,
            has_color: false,
            width: 80,
            names: ["a".to_owned(), "b".to_owned()],
        }
    }
}

impl DiffOptions {
    fn make_options(&self, side: u64) -> MakeOptions {
        let form = match self.form {
            DiffForm::Text | DiffForm::Json => Form::Plain,
            DiffForm::Python => Form::Python,
            DiffForm::Lines(_) => Form::Dump,
        };
        let style = Style {
            has_color: false,
            has_numbers: self.has_numbers,
            has_threads: false,
            has_argument_names: false,
            has_lines: true,
            escape: Escape::Peer,
        };
        MakeOptions { form, ignores_pointers: self.ignores_pointers, has_threads: self.has_threads, style, side }
    }

    /// True when what both sides have is shown.
    fn shows_common(&self) -> bool {
        !self.hides_common && matches!(self.form, DiffForm::Python | DiffForm::Lines(_))
    }
}

/// Counts of what is the same and what differs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiffTotals {
    /// Calls both have.
    pub same: u64,
    /// Calls only the first has.
    pub removed: u64,
    /// Calls only the second has.
    pub added: u64,
    /// Calls of the same function with other values.
    pub changed: u64,
    /// Properties that differ. The peer's forms count lines that differ.
    pub properties: u64,
    /// Frames: same, only in the first, only in the second, changed. Not counted if the peer's method is used.
    pub frames: [u64; 4],
}

impl DiffTotals {
    /// True when nothing differs.
    pub fn is_equal(&self) -> bool {
        self.removed == 0 && self.added == 0 && self.changed == 0 && self.properties == 0
    }
}

/// Compares two traces and prints what differs.
///
/// # Errors
/// I/O, limits, and what the sinks return.
pub fn diff(
    mut a: Source<'_>,
    mut b: Source<'_>,
    options: &DiffOptions,
    out: &mut dyn Write,
) -> Result<DiffTotals, Error> {
    if matches!(options.form, DiffForm::Python | DiffForm::Lines(_))
        && let Some(totals) = short::diff(&mut a, &mut b, options, out)?
    {
        return Ok(totals);
    }
    match options.form {
        DiffForm::Text => engine::run(a, b, options, &mut text::Text::new(options, out)),
        DiffForm::Json => engine::run(a, b, options, &mut json::Json::new(options, out)),
        DiffForm::Python => engine::run(a, b, options, &mut python::Python::new(options, out)),
        DiffForm::Lines(form) => engine::run(a, b, options, &mut lines::LineDiff::new(form, options, out)),
    }
}

impl<'a> Source<'a> {
    /// All calls of a trace.
    pub fn new(open: &'a side::Open<'a>, sink: &'a mut (dyn anytrace_core::Sink + Send)) -> Self {
        Self { open, calls: CallSet::default(), sink }
    }
}
