//! A program together with the files that have its symbols and debug data where it has none itself.

mod separate;

use std::cell::OnceCell;
use std::path::Path;

use anytrace_core::{Error, InputOptions};

use crate::{Binary, DebugData, ObjectFile, SymbolTable, split};
use separate::Search;
pub(crate) use separate::Separate;

/// A program, library or other file, and its separate debug files.
pub struct Program {
    own: Binary,
    separate: Separate,
    notes: Vec<String>,
    options: InputOptions,
    /// Files with split debug data; opened when debug data are first asked for.
    split: OnceCell<Vec<Binary>>,
}

impl Program {
    /// Opens a file. Where it was stripped, the files that have its symbols and debug data are searched as debuggers do:
    /// by its build id, by the name in its section `.gnu_debuglink`, and in its section `.gnu_debugdata`
    /// (MiniDebugInfo). Servers are asked only where the environment names them (`DEBUGINFOD_URLS`).
    ///
    /// # Errors
    /// As [`Binary::open`]. What is wrong with the other files is in [`Self::notes`].
    pub fn open(path: &Path, options: InputOptions) -> Result<Self, Error> {
        Ok(Self::of(Binary::open(path, options)?, options))
    }

    /// The same of a file that is open already; others are searched beside what its name names.
    pub fn of(own: Binary, options: InputOptions) -> Self {
        let mut notes = Vec::new();
        let separate = separate(&own, options, &mut notes);
        Self { own, separate, notes, options, split: OnceCell::new() }
    }

    /// The file itself.
    pub fn binary(&self) -> &Binary {
        &self.own
    }

    /// What could not be found or read of its debug files, in sentences.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads the headers of all files.
    ///
    /// # Errors
    /// As [`ObjectFile::parse`], about the file itself.
    pub fn objects(&self, architecture: Option<&str>) -> Result<Objects<'_>, Error> {
        let own = ObjectFile::parse(&self.own, architecture)?;
        let (debug, mini) = (readable(&self.separate.debug), readable(&self.separate.mini));
        Ok(Objects { program: self, own, debug, mini })
    }
}

fn readable(file: &Option<Binary>) -> Option<ObjectFile<'_>> {
    file.as_ref().and_then(|file| ObjectFile::parse(file, None).ok())
}

/// The separate debug files of a file; none of one that is no object file, as its damage is reported by who reads it.
pub(crate) fn separate(file: &Binary, options: InputOptions, notes: &mut Vec<String>) -> Separate {
    match ObjectFile::parse(file, None) {
        Ok(object) => Search { path: Path::new(file.name()), object: &object, options }.run(notes),
        Err(_) => Separate::default(),
    }
}

/// The object files of a [`Program`].
pub struct Objects<'a> {
    program: &'a Program,
    /// The file itself: its sections and segments.
    pub own: ObjectFile<'a>,
    debug: Option<ObjectFile<'a>>,
    mini: Option<ObjectFile<'a>>,
}

impl<'a> Objects<'a> {
    /// Functions and data objects by address: from the first file with a symbol table, or else what a library exports
    /// together with MiniDebugInfo, which has the rest.
    pub fn symbols(&self) -> SymbolTable<'a> {
        let complete = [Some(&self.own), self.debug.as_ref()].into_iter().flatten().find(|object| object.has_symbols());
        match (complete, &self.mini) {
            (Some(object), _) => object.symbols(),
            (None, None) => self.own.symbols(),
            (None, Some(mini)) => self.own.symbols().with(mini.symbols()),
        }
    }

    /// Debug data for lines and inlined functions: the file's own, or else those of its debug file. Where they are split,
    /// the rest is searched in `PROGRAM.dwp` and in `.dwo` files; what is missing is noted.
    ///
    /// # Errors
    /// As [`ObjectFile::debug_data`].
    pub fn debug_data(&self, notes: &mut Vec<String>) -> Result<DebugData<'a>, Error> {
        let own = self.own.debug_data()?;
        let (mut data, name) = match &self.debug {
            Some(debug) if own.is_empty() => (debug.debug_data()?, debug.name()),
            _ => (own, self.own.name()),
        };
        let skeletons = data.skeletons();
        if !skeletons.is_empty() {
            let places = [Path::new(self.own.name()), Path::new(name)];
            let open = || split::open(&places, &skeletons, self.program.options, notes);
            let files = self.program.split.get_or_init(open);
            data.add_split(files, &skeletons, notes);
        }
        Ok(data)
    }
}
