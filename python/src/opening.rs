//! From a path to a trace: which format it is, and how it is opened each time that it is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anytrace_core::span::{Location, Mangling, SymbolSource, Symbols};
use anytrace_core::{
    Diagnostic, Error, Format, Input, InputOptions, Layer, OpenOptions, Sink, SpanOptions, Trace, cut_short,
};
use anytrace_formats::{Recognized, all, by_name, recognize};

use crate::failure::Failure;

/// A trace that can be read any number of times.
#[derive(Clone)]
pub(crate) struct Opening {
    path: PathBuf,
    /// The path as given.
    pub(crate) name: String,
    /// `None` for a file without a byte.
    pub(crate) format: Option<&'static dyn Format>,
    symbols: Option<Arc<dyn Symbols>>,
}

impl Opening {
    /// Finds the format of a file, and reads the files that name functions.
    pub(crate) fn new(
        path: PathBuf,
        sources: &[SymbolSource],
        format: Option<&str>,
        mangling: Mangling,
    ) -> Result<Self, Failure> {
        let name = path.display().to_string();
        if std::fs::metadata(&path).is_ok_and(|meta| !meta.is_file() && !meta.is_dir()) {
            return Err(Failure::usage(format!("{name}: not a regular file: it could be read only once")));
        }
        let input = Input::open(&path, InputOptions::default()).map_err(Failure::Bare)?;
        let format = format_of(&name, &input, format)?;
        let symbols = match format {
            Some(format) if !sources.is_empty() || format.finds_symbols() => {
                Some(Arc::from(format.symbols(sources, mangling).map_err(Failure::Bare)?))
            }
            _ => None,
        };
        Ok(Self { path, name, format, symbols })
    }

    /// The format's word for a record.
    pub(crate) fn noun(&self) -> &'static str {
        self.format.map_or("record", Format::noun)
    }

    /// The format's name.
    pub(crate) fn format_name(&self) -> &'static str {
        self.format.map_or("unknown", Format::name)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the trace to read it once, with this many threads: 0 is one per processor. `None` is a file without a byte,
    /// whose damage is reported.
    pub(crate) fn trace(&self, threads: usize, sink: &mut dyn Sink) -> Result<Option<Box<dyn Trace>>, Error> {
        let input = Input::open(&self.path, InputOptions::default())?;
        let Some(format) = self.format else {
            let damage: Vec<Diagnostic> = input.layers().iter().filter_map(Layer::damage).collect();
            damage.into_iter().try_for_each(|one| sink.report(one))?;
            return Ok(None);
        };
        let (input, _) = format.completed(&self.path, input)?;
        format.open(input, &OpenOptions { threads: workers(threads), ..OpenOptions::default() }).map(Some)
    }

    /// Names for what the trace has only numbers for.
    pub(crate) fn span_options(&self) -> SpanOptions {
        let symbols = self.symbols.as_ref().map(|symbols| Box::new(Shared(Arc::clone(symbols))) as Box<dyn Symbols>);
        SpanOptions { tail_chains: false, symbols, ..SpanOptions::default() }
    }

    /// An error about this file. What was read of a file that became shorter meanwhile is wrong, whatever came of it.
    pub(crate) fn checked<T>(&self, result: Result<T, Error>) -> Result<T, Failure> {
        match (result, cut_short()) {
            (Ok(_), Some((file, error))) if file == self.name => Err(Failure::Of(file, error)),
            (Ok(done), _) => Ok(done),
            (Err(error), _) => Err(self.failed(error)),
        }
    }

    /// An error about this file.
    pub(crate) fn failed(&self, error: Error) -> Failure {
        if error.to_string().contains(&self.name) {
            Failure::Bare(error)
        } else {
            Failure::Of(self.name.clone(), error)
        }
    }
}

/// Threads to use, unless a number is given.
pub(crate) fn workers(threads: usize) -> usize {
    let available = || std::thread::available_parallelism().map_or(1, |n| n.get().min(8));
    if threads == 0 { available() } else { threads }
}

fn format_of(name: &str, input: &Input, wanted: Option<&str>) -> Result<Option<&'static dyn Format>, Failure> {
    let known = || all().iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = wanted {
        let unknown = || Failure::usage(format!("unknown format {wanted}; known formats: {}", known()));
        let format = by_name(wanted).ok_or_else(unknown)?;
        return Ok(Some(format).filter(|_| !input.head().bytes.is_empty()));
    }
    match recognize(&input.head()) {
        Recognized::Empty => Ok(None),
        Recognized::Trace(format) => Ok(Some(format)),
        Recognized::Jsonl(format) => Err(Failure::usage(format!(
            "{name}: JSON lines of {0}; `anytrace convert {name} -o OUT --to {0}` makes a trace of them",
            format.name()
        ))),
        Recognized::Ambiguous(names) => {
            Err(Failure::usage(format!("{name}: could be {}; choose with format=", names.join(" or "))))
        }
        Recognized::Unknown => {
            Err(Failure::usage(format!("{name}: unknown format; tried {}; format= overrides", known())))
        }
    }
}

/// Symbols that several readings share.
struct Shared(Arc<dyn Symbols>);

impl Symbols for Shared {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)> {
        self.0.symbol(id)
    }

    fn notes(&self) -> &[String] {
        self.0.notes()
    }
}
