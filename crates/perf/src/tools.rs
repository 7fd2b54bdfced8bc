//! Names of functions, from the programs and libraries that a recording names.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use anytrace_core::span::{Location, Mangling, SymbolSource, Symbols};
use anytrace_core::text::shown;
use anytrace_core::{Error, InputOptions};
use anytrace_symbols::{Program, demangle};

/// Functions of some files, by the name of the file or its build id.
#[derive(Debug, Default)]
pub struct Programs {
    files: Vec<Loaded>,
    notes: Vec<String>,
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
        let mut programs = Self::default();
        for source in sources {
            let program = Program::open(&source.path, InputOptions::default())?;
            let objects = program.objects(None)?;
            let symbols = objects.symbols();
            let function = |symbol: &anytrace_symbols::Symbol<'_>| {
                let name = demangle(&shown(symbol.name), mangling).into_owned();
                (symbol.address, symbol.size_bytes, name)
            };
            programs.files.push(Loaded {
                name: file_name(&source.path),
                build_id: objects.own.build_id().unwrap_or_default().to_vec(),
                ranges: objects.own.loaded(),
                functions: symbols.symbols().iter().map(function).collect(),
            });
            programs.notes.extend(program.notes().iter().cloned());
        }
        Ok(programs)
    }
}

fn file_name(path: &Path) -> Vec<u8> {
    path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default()
}

impl Loaded {
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
        self.files.iter().filter(|file| file.is(path, build_id)).find_map(|file| file.find(offset)).map(Cow::Borrowed)
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
