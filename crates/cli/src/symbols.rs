//! Options that name functions from programs, libraries and maps.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anytrace_core::Format;
use anytrace_core::span::{Location, Mangling, SymbolSource, Symbols};
use clap::Args;
use clap::builder::{OsStringValueParser, TypedValueParser};

use crate::failure::Failure;
use crate::paint;

/// Where names come from.
#[derive(Debug, Args, Clone)]
pub(crate) struct SymbolArguments {
    /// Program, library or YAML map with the names of the trace's functions; a program's libraries are found where it is
    /// and where they are installed. Or the maps of the recorded process (/proc/PID/maps), which name the program and its
    /// libraries; TRACE.maps beside the trace is used by itself. OBJECT= assigns it to one of the program's objects (XRay:
    /// 0 is the program itself); `stats`, `flame`, `timeline`, `merge` and `convert` of several traces take TRACE= before
    /// it. May be repeated
    #[arg(short = 'm', long = "program", aliases = ["instr-map", "maps"], value_name = "[OBJECT=]PATH", value_parser = OsStringValueParser::new().map(|text| source(&text)))]
    sources: Vec<SymbolSource>,
    #[command(flatten)]
    mangling: ManglingArguments,
}

/// How names are shown.
#[derive(Debug, Args, Clone, Copy)]
pub(crate) struct ManglingArguments {
    /// Show C++ and Rust names as written in the source; this is the default
    #[arg(long, overrides_with = "no_demangle")]
    demangle: bool,
    /// Show mangled names
    #[arg(long, overrides_with = "demangle")]
    no_demangle: bool,
}

impl ManglingArguments {
    /// The library's word for it.
    pub(crate) fn mangling(self) -> Mangling {
        if self.no_demangle { Mangling::AsIs } else { Mangling::Demangled }
    }
}

impl SymbolArguments {
    /// The files.
    pub(crate) fn sources(&self) -> &[SymbolSource] {
        &self.sources
    }

    /// The files, with the one that is beside a trace.
    pub(crate) fn with_beside(&self, format: &dyn Format, trace: &Path) -> Vec<SymbolSource> {
        self.sources.iter().cloned().chain(format.symbols_beside(trace, &self.sources)).collect()
    }

    /// True where a file is named, or one is beside a trace.
    pub(crate) fn has_files(&self, format: &dyn Format, trace: &Path) -> bool {
        !self.with_beside(format, trace).is_empty()
    }

    /// The files' paths.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        self.sources.iter().map(|source| source.path.clone()).collect()
    }

    /// How names are shown.
    pub(crate) fn mangling(&self) -> Mangling {
        self.mangling.mangling()
    }

    /// The files for one of several traces: those of all, and those with the trace's name before them.
    pub(crate) fn of_trace<'a>(&self, trace: &Path, traces: impl Iterator<Item = &'a PathBuf>) -> Self {
        let traces: Vec<&PathBuf> = traces.collect();
        let named = |one: &SymbolSource| {
            let text = one.path.as_os_str().as_encoded_bytes();
            let name = |of: &&&PathBuf| {
                let name = of.as_os_str().as_encoded_bytes();
                one.object.is_none() && text.strip_prefix(name).is_some_and(|rest| rest.starts_with(b"="))
            };
            let of = traces.iter().find(name)?;
            let rest = one.path.to_str()?.get(of.as_os_str().len() + 1..)?;
            Some((of.as_path(), source(OsStr::new(rest))))
        };
        let mine = |one: &SymbolSource| match named(one) {
            Some((of, source)) => (of == trace).then_some(source),
            None => Some(one.clone()),
        };
        Self { sources: self.sources.iter().filter_map(mine).collect(), mangling: self.mangling }
    }

    /// Names for a trace of a format; `None` where no file is named and none is beside it.
    pub(crate) fn load(&self, format: &dyn Format, trace: &Path) -> Result<Option<Box<dyn Symbols>>, Failure> {
        let symbols = self.load_quietly(format, trace)?;
        symbols.iter().for_each(|symbols| complain(symbols.as_ref()));
        Ok(symbols)
    }

    /// As [`Self::load`], for a caller that may have to begin again: [`complain`] prints what is to be said.
    fn load_quietly(&self, format: &dyn Format, trace: &Path) -> Result<Option<Box<dyn Symbols>>, Failure> {
        format.symbols_of(trace, &self.sources, self.mangling()).map_err(|error| self.failure(&error))
    }

    /// Why the files could not be read; names them where the error does not.
    pub(crate) fn failure(&self, error: &anytrace_core::Error) -> Failure {
        let files: Vec<_> = self.sources.iter().map(|source| source.path.display().to_string()).collect();
        match files.iter().find(|file| error.to_string().contains(*file)) {
            Some(file) => Failure::of_names(file, error),
            None => Failure::of_names(&files.join(", "), error),
        }
    }

    /// As [`Self::load`], and counts which functions have names.
    pub(crate) fn load_counted(&self, format: &dyn Format, trace: &Path) -> Result<Option<CountedSymbols>, Failure> {
        Ok(self.load(format, trace)?.map(counted))
    }

    /// As [`Self::load_counted`], but prints nothing yet.
    pub(crate) fn load_counted_quietly(
        &self,
        format: &dyn Format,
        trace: &Path,
    ) -> Result<Option<CountedSymbols>, Failure> {
        Ok(self.load_quietly(format, trace)?.map(counted))
    }
}

fn counted(symbols: Box<dyn Symbols>) -> CountedSymbols {
    let named = Named::default();
    (Box::new(Counted { symbols, named: named.clone() }), named)
}

/// Prints what could not be read of the files.
pub(crate) fn complain(symbols: &dyn Symbols) {
    for note in symbols.notes() {
        paint::complain("note", anytrace_core::text::printable(note));
    }
}

/// Symbols, and what they were asked.
pub(crate) type CountedSymbols = (Box<dyn Symbols>, Named);

/// Functions that were asked for, each with whether it has a name; clones count together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named(Arc<Mutex<BTreeMap<u64, bool>>>);

impl Named {
    /// Says so where functions have no name: most likely the files are of another program.
    pub(crate) fn complain(&self, name: &str) {
        let Ok(functions) = self.0.lock() else { return };
        let nameless = functions.values().filter(|is_named| !**is_named).count();
        if nameless > 0 {
            let (name, all) = (anytrace_core::text::printable(name), functions.len());
            let note = format!(
                "{name}: {nameless} of {all} functions are not in any file given with -m or beside the trace: do the \
                 files belong to this program?"
            );
            paint::complain("note", note);
        }
    }
}

/// Symbols that remember what they were asked.
struct Counted {
    symbols: Box<dyn Symbols>,
    named: Named,
}

impl Symbols for Counted {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)> {
        let symbol = self.symbols.symbol(id);
        if let Ok(mut functions) = self.named.0.lock() {
            functions.insert(id, symbol.is_some());
        }
        symbol
    }

    fn function(&self, path: &[u8], build_id: &[u8], offset: u64) -> Option<std::borrow::Cow<'_, str>> {
        self.symbols.function(path, build_id, offset)
    }

    fn notes(&self) -> &[String] {
        self.symbols.notes()
    }
}

/// `PATH`, or `OBJECT=PATH` with a number.
fn source(text: &OsStr) -> SymbolSource {
    let numbered = text.to_str().and_then(|text| text.split_once('=')).and_then(|(object, path)| {
        let is_number = object.bytes().all(|byte| byte.is_ascii_digit());
        Some((object.parse().ok().filter(|_| is_number)?, path))
    });
    match numbered {
        Some((object, path)) => SymbolSource { object: Some(object), path: path.into() },
        None => SymbolSource { object: None, path: PathBuf::from(text) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_may_belong_to_one_of_several_traces() {
        let traces: [PathBuf; 3] = ["a.xray".into(), "b.xray".into(), "x".into()];
        let mangling = ManglingArguments { demangle: false, no_demangle: false };
        let texts = ["all", "a.xray=prog", "b.xray=2=lib.so", "c.xray=other", "1=one.so", "x=a=b"];
        let symbols =
            SymbolArguments { sources: texts.iter().map(|text| source(OsStr::new(text))).collect(), mangling };
        let of = |trace: &str| {
            let sources = symbols.of_trace(Path::new(trace), traces.iter()).sources;
            sources.iter().map(|one| (one.object, one.path.display().to_string())).collect::<Vec<_>>()
        };
        let all = [(None, "all".to_owned()), (None, "c.xray=other".to_owned()), (Some(1), "one.so".to_owned())];
        let with = |at: usize, own: (Option<u32>, &str)| {
            let mut all = all.to_vec();
            all.insert(at, (own.0, own.1.to_owned()));
            all
        };
        assert_eq!(of("a.xray"), with(1, (None, "prog")));
        assert_eq!(of("b.xray"), with(1, (Some(2), "lib.so")));
        assert_eq!(of("x"), with(3, (None, "a=b")));
    }

    #[test]
    fn a_number_before_the_path_is_the_object() {
        let of = |text: &str| source(OsStr::new(text));
        assert_eq!(of("a/b"), SymbolSource { object: None, path: "a/b".into() });
        assert_eq!(of("1=lib.so"), SymbolSource { object: Some(1), path: "lib.so".into() });
        assert_eq!(of("x=1"), SymbolSource { object: None, path: "x=1".into() });
        assert_eq!(of("=y"), SymbolSource { object: None, path: "=y".into() });
        assert_eq!(of("+1=y"), SymbolSource { object: None, path: "+1=y".into() });
    }
}
