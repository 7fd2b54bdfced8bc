//! Instrumentation maps: which function a number in a trace denotes, from programs, libraries and YAML maps (page,
//! section 1.7).

mod extract;
mod functions;
mod process;
mod sleds;
mod yaml;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anytrace_core::span::{Location, Mangling, SymbolSource, Symbols};
use anytrace_core::{Error, InputOptions};
use anytrace_symbols::{Binary, Maps, ObjectFile, Program, libraries};

pub use extract::{ExtractOptions, extract};
pub use functions::Function;
pub use process::{number, recorded_process};
pub use sleds::{Sled, SledKind, sleds};

/// Bits of a function number that are the number within its object; the bits above are the object's (page, section 1.3).
const LOCAL_BITS: u32 = 24;

/// Names, addresses and places of the functions of a program and its libraries, by the numbers that traces have.
///
/// Everything is looked up when the map is loaded. A function's number is `object << 24 | number within the object`;
/// numbers of object 0, the program itself, may exceed 24 bits, as far as no other object claims them.
#[derive(Debug, Clone, Default)]
pub struct Map {
    objects: BTreeMap<u32, Vec<Function>>,
    notes: Vec<String>,
}

/// Loads the maps of a program: object files, or YAML maps as `extract` writes them; or the maps of a process
/// (`/proc/PID/maps`), which name the program and its libraries.
///
/// ```no_run
/// use anytrace_core::span::{Mangling, SymbolSource};
/// use anytrace_xray::tools::map;
///
/// let program = SymbolSource { object: None, path: "server".into() };
/// let library = SymbolSource { object: Some(1), path: "libstore.so".into() };
/// let map = map::load(&[program, library], Mangling::Demangled)?;
/// assert_eq!(map.name(1), Some("main"));
/// # Ok::<(), anytrace_core::Error>(())
/// ```
///
/// # Errors
/// I/O errors; [`anytrace_core::Kind::Usage`] when two sources name the same object, or an object's number is invalid;
/// [`anytrace_core::Kind::Unsupported`] when an object file is damaged or has no map;
/// [`anytrace_core::Kind::Malformed`] when a YAML map is damaged.
pub fn load(sources: &[SymbolSource], mangling: Mangling) -> Result<Map, Error> {
    let mut map = Map::default();
    let mut process = None;
    for source in sources {
        let program = Program::open(&source.path, InputOptions::default())?;
        let (name, bytes) = (program.binary().name(), program.binary().bytes());
        if let Some(maps) = Maps::parse(name, bytes) {
            if let Some(object) = source.object {
                return Err(Error::usage(format!(
                    "{name} has the maps of a process, and names no object {object} alone"
                )));
            }
            if process.replace((name.to_owned(), maps)).is_some() {
                return Err(Error::usage(format!("{name}: a trace is of one process, and has the maps of one")));
            }
            continue;
        }
        let object = source.object.unwrap_or(0);
        if object > OBJECT_MAX {
            return Err(Error::usage(format!("expected an object number from 0 to 255, found {object}")));
        }
        let functions = functions::functions(&program, mangling, &mut map.notes)?;
        if map.objects.insert(object, functions).is_some() {
            let path = source.path.display();
            return Err(Error::usage(format!(
                "{path}: object {object} already has a map; use OBJECT=PATH to name another object"
            )));
        }
    }
    match process {
        Some((name, maps)) => map.add_process(&name, maps, sources, mangling),
        None => map.find_libraries(sources, mangling),
    }
    Ok(map)
}

/// Whether a file has the maps of a process, which name the objects of a trace: what [`load`] takes as such.
pub fn is_process(path: &Path) -> bool {
    let mut head = Vec::new();
    // Nothing is waited for: a pipe or a terminal is not such a file.
    let file = std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file).and_then(|_| File::open(path).ok());
    file.is_some_and(|file| file.take(HEAD_BYTES).read_to_end(&mut head).is_ok()) && Maps::is_like(&head)
}

/// The largest number of an object.
const OBJECT_MAX: u32 = u32::MAX >> LOCAL_BITS;

/// Longer than any first line of maps.
const HEAD_BYTES: u64 = 8192;

/// The section that a library has where it was compiled for XRay.
const SLEDS: &str = "xray_instr_map";

/// The function by which a library announces itself to the program's runtime, which numbers it (LLVM 20 and later).
const REGISTER: &str = "__xray_register_dso";

/// A library that gets a number when it is started. Its debug files are not looked for: most libraries are none.
fn numbered(path: &Path) -> Option<Binary> {
    let binary = Binary::open(path, InputOptions::default()).ok()?;
    let is_numbered =
        ObjectFile::parse(&binary, None).is_ok_and(|object| object.has_section(SLEDS) && object.imports(REGISTER));
    is_numbered.then_some(binary)
}

impl Map {
    /// Loads the libraries of a program that is named alone. Their objects are numbered from 1 in the order in which
    /// they are started, as each announces itself then.
    fn find_libraries(&mut self, sources: &[SymbolSource], mangling: Mangling) {
        let [SymbolSource { object: None | Some(0), path }] = sources else { return };
        // A YAML map has none.
        let Ok(found) = libraries(path, InputOptions::default()) else { return };
        let numbered = found.iter().filter_map(|path| Some((path, numbered(path)?)));
        for (object, (path, library)) in (1..=OBJECT_MAX).zip(numbered) {
            let library = Program::of(library, InputOptions::default());
            if self.add_library(object, &library, mangling) {
                let shown = path.display();
                self.notes.push(format!("object {object} is taken to be {shown}, which the program needs"));
            }
        }
    }

    /// Adds the functions of a library; where they cannot be read, that is noted.
    fn add_library(&mut self, object: u32, library: &Program, mangling: Mangling) -> bool {
        match functions::functions(library, mangling, &mut self.notes) {
            Ok(functions) => {
                self.objects.insert(object, functions);
                true
            }
            Err(error) => {
                let name = library.binary().name();
                self.notes.push(format!("object {object}, {name}, has no names: {error}"));
                false
            }
        }
    }

    /// What is known of a function; `None` if no map has its number.
    pub fn function(&self, id: u32) -> Option<&Function> {
        let (object, local) = (id >> LOCAL_BITS, id & ((1 << LOCAL_BITS) - 1));
        let library = (object != 0).then(|| self.find(object, local)).flatten();
        library.or_else(|| self.find(0, id))
    }

    fn find(&self, object: u32, id: u32) -> Option<&Function> {
        let functions = self.objects.get(&object)?;
        // Numbers count from 1 without gaps, except in hand-written YAML maps.
        let guess = functions.get((id as usize).wrapping_sub(1)).filter(|function| function.id == id);
        guess
            .or_else(|| functions.binary_search_by_key(&id, |function| function.id).ok().and_then(|n| functions.get(n)))
    }

    /// A function's name; `@(hex address)` if its object has none for it, `None` if its number is unknown.
    pub fn name(&self, id: u32) -> Option<&str> {
        self.function(id).map(|function| function.name.as_str())
    }

    /// Where a function begins in source code, if debug data state it.
    pub fn location(&self, id: u32) -> Option<&Location> {
        self.function(id)?.location.as_ref()
    }

    /// A function's address in its object.
    pub fn address(&self, id: u32) -> Option<u64> {
        self.function(id).map(|function| function.address)
    }

    /// What could not be read, and what that means; one line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The functions of an object, in order of their numbers.
    pub fn functions(&self, object: u32) -> &[Function] {
        self.objects.get(&object).map_or(&[], Vec::as_slice)
    }
}

impl Symbols for Map {
    fn symbol(&self, id: u64) -> Option<(&str, Option<&Location>)> {
        let function = self.function(u32::try_from(id).ok()?)?;
        Some((&function.name, function.location.as_ref()))
    }

    fn notes(&self) -> &[String] {
        Map::notes(self)
    }
}
