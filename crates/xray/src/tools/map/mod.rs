//! Instrumentation maps: which function a number in a trace denotes, from programs, libraries and YAML maps (page,
//! section 1.7).

mod extract;
mod functions;
mod sleds;
mod yaml;

use std::collections::BTreeMap;

use anytrace_core::span::{Location, Mangling, SymbolSource, Symbols};
use anytrace_core::{Error, InputOptions};
use anytrace_symbols::{ObjectFile, Program, libraries};

pub use extract::{ExtractOptions, extract};
pub use functions::Function;
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

/// Loads the maps of a program: object files, or YAML maps as `extract` writes them.
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
    for source in sources {
        let object = source.object.unwrap_or(0);
        if object > u32::MAX >> LOCAL_BITS {
            return Err(Error::usage(format!("expected an object number from 0 to 255, found {object}")));
        }
        let program = Program::open(&source.path, InputOptions::default())?;
        let functions = functions::functions(&program, mangling, &mut map.notes)?;
        if map.objects.insert(object, functions).is_some() {
            let path = source.path.display();
            return Err(Error::usage(format!(
                "{path}: object {object} already has a map; use OBJECT=PATH to name another object"
            )));
        }
    }
    map.find_libraries(sources, mangling);
    Ok(map)
}

/// The section that a library has where it was compiled for XRay.
const SLEDS: &str = "xray_instr_map";

impl Map {
    /// Loads the libraries of a program that is named alone. Their objects are numbered from 1 in the order in which they
    /// are started, as each announces itself then.
    fn find_libraries(&mut self, sources: &[SymbolSource], mangling: Mangling) {
        let [SymbolSource { object: None | Some(0), path }] = sources else { return };
        // A YAML map has none.
        let Ok(found) = libraries(path, InputOptions::default()) else { return };
        let mut next = 1;
        for path in found {
            let Ok(library) = Program::open(&path, InputOptions::default()) else { continue };
            let has_sleds = ObjectFile::parse(library.binary(), None).is_ok_and(|object| object.has_section(SLEDS));
            if !has_sleds || next > u32::MAX >> LOCAL_BITS {
                continue;
            }
            let shown = path.display();
            match functions::functions(&library, mangling, &mut self.notes) {
                Ok(functions) => {
                    self.notes.push(format!("object {next} is taken to be {shown}, which the program needs"));
                    self.objects.insert(next, functions);
                }
                Err(error) => self.notes.push(format!("object {next}, {shown}, has no names: {error}")),
            }
            next += 1;
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
