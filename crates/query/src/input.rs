//! The files of a query: their formats, how they are opened, and the damage found in them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anytrace_core::index::{self, Choice, Index, Lookup};
use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::table::{Filter, Table};
use anytrace_core::{Diagnostic, Error, Format, Head, Limits, OpenOptions, Severity, Sink, SpanOptions, Trace};
use anytrace_formats::{Recognized, by_name, recognize};
use twox_hash::XxHash3_64;

use crate::access::{Access, Files};

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
    access: Arc<dyn Access>,
    /// Digest of its first bytes.
    head: u64,
    /// It was opened by another process, which this one reads parts for.
    is_remote: bool,
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
    seen: BTreeSet<(u64, String)>,
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
        Self::open_by(path, shown, with, Arc::new(Files))
    }

    /// As [`Self::open`], of a trace that may be somewhere else than in a file.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_by(
        path: PathBuf,
        shown: Option<String>,
        with: &OpenWith,
        access: Arc<dyn Access>,
    ) -> Result<Self, Error> {
        let name = shown.unwrap_or_else(|| path.display().to_string());
        // Only its first bytes are looked at.
        let input = access.open(&path, Some(0))?;
        let bytes = access.bytes(&path)?;
        let head = digest(&input.head());
        let format = recognized(&name, &input.head(), with.format.as_deref())?;
        let mut damage = Damage::default();
        let rest = format.map(|format| format.completed(&path, input)).transpose()?.and_then(|(_, rest)| rest);
        damage.shown.extend(rest.iter().map(|rest| format!("note: {name}: {rest}")));
        // An index knows nothing of what is beside the trace.
        let index = match format
            .filter(|_| rest.is_none())
            .map(|format| access.index(&path, format.name(), &with.index))
            .transpose()?
        {
            Some(Lookup::Found(index)) => Some(Arc::from(index)),
            Some(Lookup::Unused(file, why)) => {
                damage.shown.push(format!("note: {name}: the index {} is not used: {why}", file.display()));
                None
            }
            Some(Lookup::Nothing) | None => None,
        };
        let (sources, mangling, threads) = (with.sources.clone(), with.mangling, with.threads);
        let (damage, rows) = (Mutex::new(damage), AtomicU64::new(0));
        let is_remote = false;
        Ok(Self { name, path, format, bytes, sources, mangling, threads, index, access, head, is_remote, damage, rows })
    }

    /// The parts in which a table is read by so many threads; without an index that helps, one.
    pub(crate) fn parts(&self, table: &Table, filter: &Filter, threads: usize) -> Vec<Range> {
        match &self.index {
            Some(index) if self.can_part(table) => {
                index.parts(table, filter, threads).into_iter().map(Range::Part).collect()
            }
            _ => vec![Range::Part(index::Part::default())],
        }
    }

    /// As [`Self::parts`], for other processes and at least `count`: without an index, shares of the trace by an index
    /// that they make, which is not worth it for a trace of a single part.
    pub(crate) fn shares(&self, table: &Table, filter: &Filter, threads: usize, count: usize) -> Vec<Range> {
        if self.index.is_some() || count < 2 || !self.can_part(table) {
            return self.parts(table, filter, count.max(threads));
        }
        (0..count).map(|number| Range::Share { number, of: count }).collect()
    }

    fn can_part(&self, table: &Table) -> bool {
        self.format.is_some_and(|format| format.part_tables().contains(&table.name))
    }

    /// How it is described to another process.
    #[cfg(feature = "codec")]
    pub(crate) fn identity(&self) -> Identity<'static> {
        Identity {
            name: self.name.clone(),
            path: self.path.clone(),
            format: self.format.map(Format::name),
            bytes: self.bytes,
            head: self.head,
            sources: self.sources.clone(),
            mangling: self.mangling,
        }
    }

    /// A trace that another process described; nothing is read.
    #[cfg(feature = "codec")]
    pub(crate) fn remote(identity: Identity<'_>, access: Arc<dyn Access>) -> Result<Self, Error> {
        let Identity { name, path, format, bytes, head, sources, mangling } = identity;
        let unknown = |name| Error::usage(format!("unknown format {name}"));
        let format = format.map(|name| by_name(name).ok_or_else(|| unknown(name))).transpose()?;
        let (damage, rows) = (Mutex::default(), AtomicU64::new(0));
        let (threads, index, is_remote) = (1, None, true);
        Ok(Self { name, path, format, bytes, sources, mangling, threads, index, access, head, is_remote, damage, rows })
    }

    /// The parts of a range, in order.
    pub(crate) fn parts_of(&self, range: &Range, table: &Table, filter: &Filter) -> Result<Vec<index::Part>, Error> {
        let (number, of) = match range {
            Range::Part(part) => return Ok(vec![part.clone()]),
            Range::Share { number, of } => (*number, *of),
        };
        let format = self.format.ok_or_else(|| Error::usage("an empty file has no parts"))?;
        let parts = self.access.made_index(&self.path, format)?.parts(table, filter, of);
        let at = |number: usize| parts.len() * number / of.max(1);
        Ok(parts.get(at(number)..at(number + 1)).unwrap_or_default().to_vec())
    }

    /// Opens the trace to read a part of it once.
    pub(crate) fn trace(&self, format: &'static dyn Format, part: index::Part) -> Result<Box<dyn Trace>, Error> {
        let input = self.access.open(&self.path, part.until)?;
        if self.is_remote {
            self.check(&input.head())?;
        }
        self.access.note(&self.path, &part, self.bytes);
        let part = (part != index::Part::default()).then_some(part);
        let input = match part {
            None if !self.is_remote => format.completed(&self.path, input)?.0,
            _ => input,
        };
        let options = OpenOptions { threads: self.threads, limits: Limits::default(), part, ..OpenOptions::default() };
        format.open(input, &options)
    }

    /// Names for what the trace has only numbers for.
    pub(crate) fn span_options(&self, format: &'static dyn Format) -> Result<SpanOptions, Error> {
        let symbols = format.symbols_of(&self.path, &self.sources, self.mangling)?;
        Ok(SpanOptions { tail_chains: false, symbols, ..SpanOptions::default() })
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

    /// That it is the file that the query was planned for.
    fn check(&self, head: &Head<'_>) -> Result<(), Error> {
        let found = self.access.bytes(&self.path)?;
        if found != self.bytes {
            let expected = self.bytes;
            return Err(Error::usage(format!(
                "the file has {found} bytes here and {expected} where the query was made"
            )));
        }
        if digest(head) != self.head {
            return Err(Error::usage("the file has other contents here than where the query was made"));
        }
        Ok(())
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

/// What another process must know of a trace.
#[cfg(feature = "codec")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity<'a> {
    /// The name that people know it by.
    pub(crate) name: String,
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Name of its format, if it is not empty.
    pub(crate) format: Option<&'a str>,
    /// Its length.
    pub(crate) bytes: u64,
    /// Digest of its first bytes.
    pub(crate) head: u64,
    /// Files that name functions.
    pub(crate) sources: Vec<SymbolSource>,
    /// How names are shown.
    pub(crate) mangling: Mangling,
}

/// What is read of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Range {
    /// This part.
    Part(index::Part),
    /// One of so many shares of the parts that an index of the file makes: who reads it has or makes the index.
    Share {
        /// Its number, from 0.
        number: usize,
        /// How many there are.
        of: usize,
    },
}

/// The format of a trace; `None` for an empty file.
fn recognized(name: &str, head: &Head<'_>, wanted: Option<&str>) -> Result<Option<&'static dyn Format>, Error> {
    Ok(match (wanted, recognize(head)) {
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
    })
}

fn digest(head: &Head<'_>) -> u64 {
    XxHash3_64::oneshot(head.bytes)
}

/// One diagnostic of a file, or what became of those that are not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) offset: u64,
    pub(crate) code: String,
    pub(crate) is_error: bool,
    pub(crate) text: String,
}

impl TraceFile {
    /// Adds a diagnostic, once.
    pub(crate) fn find(&self, finding: Finding) {
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.is_damaged |= finding.is_error;
        if damage.seen.contains(&(finding.offset, finding.code.clone())) {
            return;
        }
        if damage.shown.len() >= SHOWN_MAX {
            damage.others += 1;
            return;
        }
        damage.seen.insert((finding.offset, finding.code));
        damage.shown.push(finding.text);
    }

    /// Adds diagnostics that another process counted and did not send.
    #[cfg(feature = "codec")]
    pub(crate) fn find_others(&self, count: u64) {
        let mut damage = self.damage.lock().unwrap_or_else(PoisonError::into_inner);
        damage.others += count;
    }
}

/// Takes the damage that one scan of a file finds: for the file, or for whoever asked this process to read it.
pub(crate) struct DamageSink<'a> {
    file: &'a TraceFile,
    found: Vec<Finding>,
    others: u64,
}

impl<'a> DamageSink<'a> {
    /// A sink for a scan of a file.
    pub(crate) fn new(file: &'a TraceFile) -> Self {
        Self { file, found: Vec::new(), others: 0 }
    }

    /// What is for another process: diagnostics, and how many more there are.
    pub(crate) fn finish(self) -> (Vec<Finding>, u64) {
        (self.found, self.others)
    }
}

impl Sink for DamageSink<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if diagnostic.severity == Severity::Note {
            return Ok(());
        }
        let mut text = format!("{}: ", self.file.name);
        let is_error = diagnostic.severity == Severity::Error;
        // An error among those that are not shown still counts as damage.
        if self.file.is_remote
            && self.found.len() >= SHOWN_MAX
            && (!is_error || self.found.iter().any(|one| one.is_error))
        {
            self.others += 1;
            return Ok(());
        }
        let _ = diagnostic.render(self.file.format.map_or("record", Format::noun), &mut text);
        let finding = Finding { offset: diagnostic.offset, code: diagnostic.code().to_owned(), is_error, text };
        match self.file.is_remote {
            true => self.found.push(finding),
            false => self.file.find(finding),
        }
        Ok(())
    }
}
