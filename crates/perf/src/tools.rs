//! Names of functions, from the programs and libraries that a recording names.

use std::borrow::Cow;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anytrace_core::hash::Map;
use anytrace_core::span::{Location, Mangling, SymbolSource, Symbols};
use anytrace_core::text::shown;
use anytrace_core::{Error, InputOptions};
use anytrace_symbols::{Binary, ObjectFile, Program, demangle};

/// Most files that are found by the names in a recording.
const FOUND_MAX: usize = 1000;

/// Functions of some files, by the name of the file or its build id.
///
/// A file that a recording names with its build id is read where it is, if that is its build id still: what was recorded
/// on this machine has names without further ado, as for `perf report`.
#[derive(Debug)]
pub struct Programs {
    files: Vec<Loaded>,
    notes: Vec<String>,
    mangling: Mangling,
    /// By build id; `None` where there is no such file any more.
    found: Mutex<Map<Vec<u8>, Option<Loaded>>>,
}

/// A file with its functions.
#[derive(Debug)]
struct Loaded {
    name: Vec<u8>,
    build_id: Vec<u8>,
    /// Ranges of the file, and the address of the first byte of each.
    ranges: Vec<(Range<u64>, u64)>,
    /// First address, length in bytes (0: to the next one) and name, in order of addresses.
    functions: Vec<(u64, u64, String)>,
}

impl Programs {
    /// Reads the symbols of files, or of the separate files that have them.
    ///
    /// # Errors
    /// I/O; [`anytrace_core::Kind::Unsupported`] for a file that is no object file.
    pub fn load(sources: &[SymbolSource], mangling: Mangling) -> Result<Self, Error> {
        let mut programs = Self { files: Vec::new(), notes: Vec::new(), mangling, found: Mutex::default() };
        for source in sources {
            let program = Program::open(&source.path, InputOptions::default())?;
            programs.files.push(Loaded::of(&program, &source.path, mangling)?);
            programs.notes.extend(program.notes().iter().cloned());
        }
        Ok(programs)
    }

    /// The name of a function of a file that the recording names.
    fn find(&self, path: &[u8], build_id: &[u8], offset: u64) -> Option<String> {
        if build_id.is_empty() || path.first() != Some(&b'/') {
            return None;
        }
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.contains_key(build_id) {
            if found.len() >= FOUND_MAX {
                return None;
            }
            let path = PathBuf::from(shown(path).as_ref());
            found.insert(build_id.to_vec(), Loaded::with_id(&path, build_id, self.mangling));
        }
        found.get(build_id)?.as_ref()?.find(offset).map(str::to_owned)
    }
}

fn file_name(path: &Path) -> Vec<u8> {
    path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default()
}

impl Loaded {
    fn of(program: &Program, path: &Path, mangling: Mangling) -> Result<Self, Error> {
        let objects = program.objects(None)?;
        let symbols = objects.symbols();
        let function = |symbol: &anytrace_symbols::Symbol<'_>| {
            let name = demangle(&shown(symbol.name), mangling).into_owned();
            (symbol.address, symbol.size_bytes, name)
        };
        Ok(Self {
            name: file_name(path),
            build_id: objects.own.build_id().unwrap_or_default().to_vec(),
            ranges: objects.own.loaded(),
            functions: symbols.symbols().iter().map(function).collect(),
        })
    }

    /// A file of a build id; `None` where it is another, or none.
    fn with_id(path: &Path, build_id: &[u8], mangling: Mangling) -> Option<Self> {
        // Nothing but files is opened because a recording names it.
        if !path.is_file() {
            return None;
        }
        let binary = Binary::open(path, InputOptions::default()).ok()?;
        let is_it = ObjectFile::parse(&binary, None).is_ok_and(|object| object.build_id() == Some(build_id));
        if !is_it {
            return None;
        }
        Self::of(&Program::of(binary, InputOptions::default()), path, mangling).ok()
    }

    fn is(&self, path: &[u8], build_id: &[u8]) -> bool {
        if !build_id.is_empty() && !self.build_id.is_empty() {
            return self.build_id == build_id;
        }
        path.rsplit(|byte| *byte == b'/').next() == Some(self.name.as_slice())
    }

    fn find(&self, offset: u64) -> Option<&str> {
        let (range, address) = self.ranges.iter().find(|(range, _)| range.contains(&offset))?;
        let address = address.wrapping_add(offset - range.start);
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, name) = self.functions.get(behind.checked_sub(1)?)?;
        (*bytes == 0 || address - start < *bytes).then_some(name.as_str())
    }
}

impl Symbols for Programs {
    fn symbol(&self, _id: u64) -> Option<(&str, Option<&Location>)> {
        None
    }

    fn function(&self, path: &[u8], build_id: &[u8], offset: u64) -> Option<Cow<'_, str>> {
        let mut named = self.files.iter().filter(|file| file.is(path, build_id)).peekable();
        if named.peek().is_none() {
            return self.find(path, build_id, offset).map(Cow::Owned);
        }
        named.find_map(|file| file.find(offset)).map(Cow::Borrowed)
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
