//! From a path to an opened trace: probing, options, and what to say when nothing fits.

use std::path::Path;

use anytrace_core::{Diagnostic, Error, Format, Input, InputOptions, Layer, Limits, OpenOptions, Trace};
use anytrace_formats::{Recognised, all, by_name, recognise};

use crate::arguments::InputArguments;
use crate::failure::Failure;

/// An input whose format is known.
pub(crate) enum Opened {
    /// No bytes: an empty file, or compressed data damaged before their first byte.
    Empty(Vec<Diagnostic>),
    /// A trace, not yet read.
    Trace(&'static dyn Format, Input),
    /// JSON lines of a format.
    Jsonl(&'static dyn Format, Input),
}

/// Opens an input and finds its format.
pub(crate) fn open(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    open_where(path, options, |_| true)
}

/// The same, for a verb that some formats cannot have: they do not count where several formats are equally sure.
fn open_where(path: &Path, options: &InputArguments, fits: fn(&dyn Format) -> bool) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    let input = Input::open(path, InputOptions { no_map: options.no_mmap }).map_err(|error| Failure::bare(&error))?;
    if let Some(wanted) = &options.input_format {
        let format = by_name(wanted)
            .ok_or_else(|| Failure::usage(format!("no format is called {wanted}; there are {}", names())))?;
        if input.head().bytes.is_empty() {
            return Ok(Opened::Empty(damage(&input)));
        }
        let is_jsonl = format.recognises_jsonl(&input.head());
        return Ok(if is_jsonl { Opened::Jsonl(format, input) } else { Opened::Trace(format, input) });
    }
    match recognise(&input.head()) {
        Recognised::Empty => Ok(Opened::Empty(damage(&input))),
        Recognised::Trace(format) => Ok(Opened::Trace(format, input)),
        Recognised::Jsonl(format) => Ok(Opened::Jsonl(format, input)),
        Recognised::Ambiguous(names) => {
            let fitting: Vec<_> = names.iter().filter_map(|name| by_name(name)).filter(|one| fits(*one)).collect();
            match fitting.as_slice() {
                [only] => Ok(Opened::Trace(*only, input)),
                _ => Err(Failure::usage(format!("{name}: could be {}; --input-format chooses", names.join(" or ")))),
            }
        }
        Recognised::Unknown => Err(unknown(&name, &input, fits)),
    }
}

/// What to say of bytes that no format knows. Where some formats do not count, naming one would help little.
fn unknown(name: &str, input: &Input, fits: fn(&dyn Format) -> bool) -> Failure {
    let tried: Vec<_> = all().iter().filter(|format| fits(**format)).map(|format| format.name()).collect();
    let help = if tried.len() == all().len() { "; --input-format overrides" } else { "" };
    Failure::usage(format!(
        "{name}: fits no format; tried {} on {}{}{help}",
        tried.join(", "),
        first_bytes(input),
        if input.layers().is_empty() { "" } else { " (after decompression)" },
    ))
}

/// A trace, or what kept an input from being one.
pub(crate) type Found = Result<(&'static dyn Format, Input), Vec<Diagnostic>>;

/// Opens an input that must be a trace. An empty one is `Err` with what is wrong with its compression, if
/// anything is.
pub(crate) fn open_trace(path: &Path, options: &InputArguments) -> Result<Found, Failure> {
    open_trace_where(path, options, |_| true)
}

/// The same, for a verb that some formats cannot have: they do not count where several formats are equally sure.
pub(crate) fn open_trace_where(
    path: &Path,
    options: &InputArguments,
    fits: fn(&dyn Format) -> bool,
) -> Result<Found, Failure> {
    match open_where(path, options, fits)? {
        Opened::Empty(damage) => Ok(Err(damage)),
        Opened::Trace(format, input) => Ok(Ok((format, input))),
        Opened::Jsonl(format, _) => Err(Failure::usage(format!(
            "{0}: JSON lines of {1}; `anytrace convert {0} -o OUT --to {1}` makes a trace of them",
            path.display(),
            format.name()
        ))),
    }
}

/// What is wrong with the compression of an input that gave no bytes.
fn damage(input: &Input) -> Vec<Diagnostic> {
    input.layers().iter().filter_map(Layer::damage).collect()
}

/// Passes the door of a format.
pub(crate) fn enter(
    format: &'static dyn Format,
    input: Input,
    options: &InputArguments,
) -> Result<Box<dyn Trace>, Failure> {
    let name = input.name().to_owned();
    format.open(input, &open_options(options)).map_err(|error: Error| Failure::of(&name, &error))
}

/// The library's options.
pub(crate) fn open_options(options: &InputArguments) -> OpenOptions {
    OpenOptions {
        endian: options.endian,
        pointer_width: options.pointer_width,
        radix: options.input_radix,
        recover: options.recover,
        limits: limits(options),
        threads: options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(8))),
    }
}

/// The library's limits.
pub(crate) fn limits(options: &InputArguments) -> Limits {
    let limits = Limits::default();
    options.record_limit.map_or(limits, |bytes| limits.with_record_bytes_max(bytes))
}

fn names() -> String {
    all().iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

fn first_bytes(input: &Input) -> String {
    let head = input.head().bytes;
    let shown: Vec<String> = head.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("a file that begins with {}", shown.join(" "))
}
