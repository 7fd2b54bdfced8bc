//! The files of a query: their formats, how they are opened, and the damage found in them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::index::{self, Choice, Index, Lookup};
use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::table::{Filter, Table};
use anytrace_core::{
    Diagnostic, Error, Format, Input, InputOptions, Limits, OpenOptions, Severity, Sink, SpanOptions, Trace,
};
use anytrace_formats::{Recognized, by_name, recognize};

/// Most diagnostics that are printed of one file.
const SHOWN_MAX: usize = 20;

/// A trace that is queried.
pub struct TraceFile {
    /// The path as given.
    pub name: String,
    path: PathBuf,
    /// The format; `None` for an empty file.
    pub format: Option<&'static dyn Format>,
    /// Bytes of the file.
    pub bytes: u64,
    sources: Vec<SymbolSource>,
    mangling: Mangling,
    threads: usize,
    index: Option<Arc<Index>>,
    damage: Mutex<Damage>,
    rows: AtomicU64,
}

impl std::fmt::Debug for TraceFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TraceFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What was wrong with a file: a table may be scanned more than once, and damage is reported once.
#[derive(Default)]
struct Damage {
    seen: BTreeSet<(u64, &'static str)>,
    /// Errors and warnings, rendered; only the first are kept.
    shown: Vec<String>,
    others: u64,
    is_damaged: bool,
}

/// How files are opened.
#[derive(Debug, Clone)]
pub struct OpenWith {
    /// The format, where it is not to be recognized.
    pub format: Option<String>,
    /// Files that name functions.
    pub sources: Vec<SymbolSource>,
    /// How names are shown.
    pub mangling: Mangling,
    /// Threads that read one file.
    pub threads: usize,
    /// Which index is used.
    pub index: Choice,
}

impl Default for OpenWith {
    /// Formats are recognized, an index beside the trace is used, and each file is read by one thread.
    fn default() -> Self {
        Self { format: None, sources: Vec::new(), mangling: Mangling::Demangled, threads: 1, index: Choice::Auto(None) }
    }
}

impl TraceFile {
    /// Finds the format of a file, and its index. `shown` is its name where that is not the path.
    ///
    /// # Errors
    /// When the file cannot be read, when its format is not known, and when an index that was named cannot be used.
    pub fn open(path: PathBuf, shown: Option<String>, with: &OpenWith) -> Result<Self, Error> {
        let name = shown.unwrap_or_else(|| path.display().to_string());
        let input = Input::open(&path, InputOptions::default())?;
        let bytes = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        let format = match (&with.format, recognize(&input.head())) {
            (_, Recognized::Empty) => None,
            (Some(wanted), _) => Some(by_name(wanted).ok_or_else(|| Error::usage(format!("unknown format {wanted}")))?),
            (None, Recognized::Trace(format)) => Some(format),
            (None, Recognized::Jsonl(format)) => {
                let format = format.name();
                return Err(Error::usage(format!(
                    "{name}: JSON lines of {format}; `anytrace convert {name} -o OUT --to {format}` makes a trace of them"
                )));
            }
            (None, Recognized::Ambiguous(names)) => {
                let names = names.join(" or ");
                return Err(Error::usage(format!("{name}: could be {names}; choose with --input-format")));
            }
            (None, Recognized::Unknown) => {
                return Err(Error::usage(format!("{name}: unknown format; --input-format overrides")));
            }
        };
        let mut damage = Damage::default();
        let index = match format.map(|format| index::find(&path, format.name(), &with.index)).transpose()? {
            Some(Lookup::Found(index)) => Some(Arc::from(index)),
            Some(Lookup::Unused(file, why)) => {
                damage.shown.push(format!("note: {name}: the index {} is not used: {why}", file.display()));
                None
            }
            Some(Lookup::Nothing) | None => None,
        };
        let (sources, mangling, threads) = (with.sources.clone(), with.mangling, with.threads);
        let (damage, rows) = (Mutex::new(damage), AtomicU64::new(0));
        Ok(Self { name, path, format, bytes, sources, mangling, threads, index, damage, rows })
    }

    /// The parts in which a table is read by so many threads; without an index that helps, one.
    pub(crate) fn parts(&self, table: &Table, filter: &Filter, threads: usize) -> Vec<index::Part> {
        let can_part = self.format.is_some_and(|format| format.part_tables().contains(&table.name));
        match &self.index {
            Some(index) if can_part => index.parts(table, filter, threads),
            _ => vec![index::Part::default()],
        }
    }

    /// Opens the trace to read a part of it once.
    pub(crate) fn trace(&self, format: &'static dyn Format, part: index::Part) -> Result<Box<dyn Trace>, Error> {
        let input = Input::open(&self.path, InputOptions::default())?;
        let part = (part != index::Part::default()).then_some(part);
        let options = OpenOptions { threads: self.threads, limits: Limits::default(), part, ..OpenOptions::default() };
        format.open(input, &options)
    }

    /// Names for what the trace has only numbers for.
    pub(crate) fn span_options(&self, format: &'static dyn Format) -> Result<SpanOptions, Error> {
        let symbols = (!self.sources.is_empty()).then(|| format.symbols(&self.sources, self.mangling)).transpose()?;
        Ok(SpanOptions { tail_chains: false, symbols })
    }

    /// Counts rows that were read.
    pub(crate) fn add_rows(&self, rows: usize) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// Rows that were read so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// The programs that name addresses.
    pub(crate) fn sources(&self) -> &[SymbolSource] {
        &self.sources
    }

    /// The path as a location of DataFusion's, which begins at the root.
    pub(crate) fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// What was wrong so far, for standard error, and whether records were lost.
    pub fn damage(&self) -> (Vec<String>, bool) {
        let damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = damage.shown.clone();
        if damage.others > 0 {
            lines.push(format!("{}: {} more diagnostics; `anytrace check` prints all", self.name, damage.others));
        }
        (lines, damage.is_damaged)
    }
}

/// Takes the damage that one scan of a file finds.
pub(crate) struct DamageSink<'a>(pub(crate) &'a TraceFile);

impl Sink for DamageSink<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if diagnostic.severity == Severity::Note {
            return Ok(());
        }
        let file = self.0;
        let mut damage = file.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.is_damaged |= diagnostic.severity == Severity::Error;
        if damage.shown.len() >= SHOWN_MAX {
            damage.others += 1;
            return Ok(());
        }
        if damage.seen.insert((diagnostic.offset, diagnostic.code())) {
            let mut text = format!("{}: ", file.name);
            let noun = file.format.map_or("record", Format::noun);
            let _ = diagnostic.render(noun, &mut text);
            damage.shown.push(text);
        }
        Ok(())
    }
}
