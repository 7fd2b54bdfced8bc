//! Functions of one object, by their numbers.

use anytrace_core::Error;
use anytrace_core::span::{Location, Mangling};
use anytrace_symbols::{DebugData, Lines, Objects, Program, SymbolTable, demangle};

use super::sleds::{Sled, sleds};
use super::yaml;

/// A function of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its number within the object, from 1.
    pub id: u32,
    /// Its address in the object.
    pub address: u64,
    /// Its name; `@(hex address)` if the object has none for it.
    pub name: String,
    /// Where it begins in source code, if debug data state it.
    pub location: Option<Location>,
    /// Place of its first instruction: that of another function if it was inlined there. This is what the peer shows.
    pub first_instruction: Option<Location>,
    /// Column of that place; 0 where unknown.
    pub column: u32,
}

/// Functions of an object file or a YAML map, in order of their numbers.
pub(super) fn functions(
    program: &Program,
    mangling: Mangling,
    notes: &mut Vec<String>,
) -> Result<Vec<Function>, Error> {
    let binary = program.binary();
    if !binary.is_object() {
        let mut functions: Vec<Function> = Vec::new();
        for entry in yaml::read(binary)? {
            let name = if entry.name.is_empty() {
                address_name(entry.sled.function)
            } else {
                demangle(&entry.name, mangling).into_owned()
            };
            let (id, address) = (entry.sled.id, entry.sled.function);
            functions.push(Function { id, address, name, location: None, first_instruction: None, column: 0 });
        }
        functions.sort_by_key(|function| function.id);
        functions.dedup_by_key(|function| function.id);
        return Ok(functions);
    }
    let objects = program.objects(None)?;
    let sleds = sleds(&objects.own)?;
    notes.extend_from_slice(program.notes());
    let debug = debug_data(&objects, notes);
    let namer = Namer::new(&objects, debug.as_ref(), mangling, notes);
    let found: Vec<Function> = firsts(&sleds)
        .map(|sled| Function {
            id: sled.id,
            address: sled.function,
            name: namer.name(sled.function),
            location: namer.location(sled.function),
            first_instruction: namer.lines.as_ref().and_then(|lines| lines.location(sled.function)),
            column: namer.lines.as_ref().map_or(0, |lines| lines.column(sled.function)),
        })
        .collect();
    let nameless = found.iter().filter(|function| function.name == address_name(function.address)).count();
    notes.extend(stripped(binary.name(), &objects, nameless, found.len()));
    Ok(found)
}

/// What to do about functions without names, in a sentence.
pub(super) fn stripped(name: &str, objects: &Objects<'_>, nameless: usize, all: usize) -> Option<String> {
    let id = objects.own.build_id().map_or_else(String::new, |id| {
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        format!(" (build id {digits})")
    });
    (nameless > 0).then(|| {
        format!(
            "{name}: {nameless} of {all} functions have no name: it was stripped{id}, and its debug file was found \
             neither beside it nor in /usr/lib/debug; ANYTRACE_DEBUG_DIR names further folders, DEBUGINFOD_URLS servers"
        )
    })
}

/// The first sled of each function.
fn firsts(sleds: &[Sled]) -> impl Iterator<Item = &Sled> {
    let mut last = 0;
    sleds.iter().filter(move |sled| std::mem::replace(&mut last, sled.id) != sled.id)
}

/// The peer's name for an address without a symbol.
pub(super) fn address_name(address: u64) -> String {
    format!("@({address:x})")
}

/// Debug data as far as they are readable: without them names are still known.
pub(super) fn debug_data<'a>(objects: &Objects<'a>, notes: &mut Vec<String>) -> Option<DebugData<'a>> {
    match objects.debug_data(notes) {
        Ok(data) => Some(data).filter(|data| !data.is_empty()),
        Err(error) => {
            notes.push(format!("{error}; functions have no source locations"));
            None
        }
    }
}

/// Resolves the names of addresses of an object.
pub(super) struct Namer<'a> {
    symbols: SymbolTable<'a>,
    lines: Option<Lines<'a>>,
    mangling: Mangling,
}

impl<'a> Namer<'a> {
    pub(super) fn new(
        objects: &Objects<'a>,
        debug: Option<&'a DebugData<'_>>,
        mangling: Mangling,
        notes: &mut Vec<String>,
    ) -> Self {
        let lines = match debug.map(DebugData::lines).transpose() {
            Ok(lines) => lines,
            Err(error) => {
                notes.push(format!("{error}; functions have no source locations"));
                None
            }
        };
        Self { symbols: objects.symbols(), lines, mangling }
    }

    /// In the peer's order: the symbol table first, then debug data, then the address itself.
    pub(super) fn name(&self, address: u64) -> String {
        if let Some(symbol) = self.symbols.find(address) {
            return demangle(&String::from_utf8_lossy(symbol.name), self.mangling).into_owned();
        }
        let frames = self.lines.as_ref().map(|lines| lines.frames(address)).unwrap_or_default();
        // The last frame is the function itself; those before it were inlined where it begins.
        match frames.into_iter().next_back().and_then(|frame| frame.name) {
            Some(name) => demangle(&name, self.mangling).into_owned(),
            None => address_name(address),
        }
    }

    /// The first instruction may belong to a function that was inlined there: the last frame is the function itself.
    fn location(&self, address: u64) -> Option<Location> {
        let lines = self.lines.as_ref()?;
        lines.frames(address).pop().and_then(|frame| frame.location).or_else(|| lines.location(address))
    }
}
