//! From a path to an opened trace: probing, options, and what to say when nothing fits.

use std::path::Path;

use anytrace_core::{Diagnostic, Error, Format, Input, InputOptions, Layer, Limits, OpenOptions, Trace};
use anytrace_formats::{Recognized, all, by_name, recognize};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::paint;

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
    let trace = |format: &'static dyn Format, input| Ok(Opened::Trace(format, completed(format, path, input)?));
    if let Some(wanted) = &options.input_format {
        let format = by_name(wanted)
            .ok_or_else(|| Failure::usage(format!("unknown format {wanted}; known formats: {}", names())))?;
        if input.head().bytes.is_empty() {
            return Ok(Opened::Empty(damage(&input)));
        }
        let is_jsonl = format.recognizes_jsonl(&input.head());
        return if is_jsonl { Ok(Opened::Jsonl(format, input)) } else { trace(format, input) };
    }
    match recognize(&input.head()) {
        Recognized::Empty => Ok(Opened::Empty(damage(&input))),
        Recognized::Trace(format) => trace(format, input),
        Recognized::Jsonl(format) => Ok(Opened::Jsonl(format, input)),
        Recognized::Ambiguous(names) => {
            let fitting: Vec<_> = names.iter().filter_map(|name| by_name(name)).filter(|one| fits(*one)).collect();
            match fitting.as_slice() {
                [only] => trace(*only, input),
                _ => {
                    Err(Failure::usage(format!("{name}: could be {}; choose with --input-format", names.join(" or "))))
                }
            }
        }
        Recognized::Unknown => Err(unknown(&name, &input, fits)),
    }
}

/// Adds what belongs to a trace beside its file, and says so.
pub(crate) fn completed(format: &dyn Format, path: &Path, input: Input) -> Result<Input, Failure> {
    let name = anytrace_core::text::printable(&path.display().to_string());
    let (input, note) = format.completed(path, input).map_err(|error| Failure::of(&name, &error))?;
    if let Some(note) = note {
        paint::complain("note", format!("{name}: {note}"));
    }
    Ok(input)
}

/// What to report of bytes that no format knows. Where some formats do not count, naming one would help little.
fn unknown(name: &str, input: &Input, fits: fn(&dyn Format) -> bool) -> Failure {
    let tried: Vec<_> = all().iter().filter(|format| fits(**format)).map(|format| format.name()).collect();
    let help = if tried.len() == all().len() { "; --input-format overrides" } else { "" };
    Failure::usage(format!(
        "{name}: unknown format; tried {} on {}{}{help}",
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
        Opened::Jsonl(format, _) => Err(only_lines(&path.display().to_string(), format)),
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
        own: options.own.0.clone(),
        limits: limits(options),
        threads: threads(options),
        part: None,
    }
}

/// How many threads may work: as many as asked for, or as there are processors, at most 8.
pub(crate) fn threads(options: &InputArguments) -> usize {
    options.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get().min(8)))
}

/// True for what can be read once only: standard input, a pipe, a socket. A file that is not there is none: whoever opens
/// it says so.
pub(crate) fn is_read_once(path: &Path) -> bool {
    path.as_os_str() == "-" || std::fs::metadata(path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
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

/// Refuses an input of one format's own verb that is clearly another format's. True when the bytes, or the user, say that
/// it is this format's: one whose head is damaged is read all the same, so that the damage is reported with its place.
pub(crate) fn must_be(name: &str, input: &Input, options: &InputArguments, wanted: &str) -> Result<bool, Failure> {
    match (options.input_format.as_deref(), recognize(&input.head())) {
        (Some(given), _) => {
            by_name(given)
                .map_or(Ok(()), |format| must_be_one_of(name, format, options, |one| one.name() == wanted))?;
            Ok(true)
        }
        (None, Recognized::Trace(format)) => {
            must_be_one_of(name, format, options, |one| one.name() == wanted).map(|()| true)
        }
        (None, Recognized::Jsonl(format)) => Err(only_lines(name, format)),
        (None, found) => Ok(!matches!(found, Recognized::Unknown)),
    }
}

/// Refuses a trace of another format than those that fit a group of verbs, and says how it is read anyway.
pub(crate) fn must_be_one_of(
    name: &str,
    found: &dyn Format,
    options: &InputArguments,
    fits: impl Fn(&dyn Format) -> bool,
) -> Result<(), Failure> {
    if fits(found) {
        return Ok(());
    }
    let fitting: Vec<_> = all().iter().filter(|format| fits(**format)).collect();
    let expected: Vec<_> = fitting.iter().map(|format| a_trace(format.title())).collect();
    let ways: Vec<_> = fitting.iter().map(|format| format!("--input-format={}", format.name())).collect();
    let (expected, ways) = (expected.join(" or "), ways.join(" or "));
    Err(Failure::usage(match &options.input_format {
        Some(given) => format!("{name}: expected {expected}, but --input-format is {given}"),
        None => format!("{name}: expected {expected}, found {}; use {ways} to read it anyway", a_trace(found.title())),
    }))
}

/// JSON lines where a trace is needed.
pub(crate) fn only_lines(name: &str, format: &dyn Format) -> Failure {
    let format = format.name();
    Failure::usage(format!(
        "{name}: JSON lines of {format}; `anytrace convert {name} -o OUT --to {format}` makes a trace of them"
    ))
}

/// A format's title as a trace, with its article: `an LLVM XRay trace`.
fn a_trace(title: &str) -> String {
    let mut letters = title.chars();
    let (first, second) = (letters.next().unwrap_or('x'), letters.next().unwrap_or('x'));
    // Abbreviations are spelled out: an L, an X.
    let vowels = if second.is_uppercase() { "AEFHILMNORSX" } else { "AEIOUaeiou" };
    let article = if vowels.contains(first) { "an" } else { "a" };
    let noun = if title.ends_with("trace") { "" } else { " trace" };
    format!("{article} {title}{noun}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_become_traces_with_an_article() {
        let titles = ["apitrace", "LLVM XRay", "Heph", "Casemate offline trace"];
        let expected = ["an apitrace", "an LLVM XRay trace", "a Heph trace", "a Casemate offline trace"];
        assert_eq!(titles.map(a_trace), expected);
    }
}
