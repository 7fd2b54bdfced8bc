//! Layouts of types from a program's DWARF: C, C++ and Rust.
//!
//! All entries are read once, to list the names of types; a type is built when it is asked for. So a program of 100 MB
//! takes about a second, and memory of the order of its distinct names.

mod build;
mod find;
mod index;
mod json;
mod sections;
mod sites;
mod spelling;
mod types;

use std::path::Path;
use std::sync::Arc;

use anytrace_core::layout::{Layout, Layouts};
use anytrace_core::{Error, InputOptions};

pub use json::{read_layouts, write_layouts};

use crate::sites::Site;
use crate::{Binary, ObjectFile};
use find::Finder;
use sections::TypeSections;
use sites::Sites;
use types::Types;

/// Type data of several files; for a type in several of them the first file decides.
pub struct TypeData<'a> {
    parts: Vec<Part<'a>>,
    notes: Vec<String>,
}

enum Part<'a> {
    Dwarf(Box<Program<'a>>),
    Listed(Finder),
}

/// A file with debug data.
struct Program<'a> {
    types: Types<'a>,
    object: &'a ObjectFile<'a>,
    /// Read when a site is asked for.
    sites: Option<Sites>,
}

impl TypeData<'_> {
    /// Notes for the user: types defined in several ways, debug data that could not be found or read. Some appear only
    /// when a type is asked for.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Names of all types that have a size, ascending; with duplicates from several files.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for part in &self.parts {
            match part {
                Part::Dwarf(program) => names.extend(program.types.names().map(str::to_owned)),
                Part::Listed(finder) => names.extend(finder.names().map(str::to_owned)),
            }
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// All records that have a name, by name, each definition that differs once.
    pub fn records(&mut self) -> Vec<Arc<Layout>> {
        let mut all = Vec::new();
        for part in &mut self.parts {
            match part {
                Part::Dwarf(program) => all.extend(program.types.records()),
                Part::Listed(finder) => all.extend(finder.records()),
            }
        }
        all.sort_by(|a, b| (&a.name, a.bytes).cmp(&(&b.name, b.bytes)));
        all.dedup();
        all
    }

    /// True where a program is known, so that types of allocations can be inferred.
    pub fn has_code(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Dwarf(_)))
    }

    /// The type of blocks that are allocated at the first of these places, which is called from the next, with the
    /// [`Origin`](anytrace_core::layout::Origin) `Inferred`: a record whose bytes divide all `sizes`. `None` where
    /// nothing says which, or evidence conflicts. Reads source files, where debug data say that they are.
    pub fn infer(&mut self, places: &[Site<'_>], sizes: &[u64]) -> Option<Arc<Layout>> {
        self.parts.iter_mut().find_map(|part| match part {
            Part::Dwarf(program) => {
                let index = program.types.index();
                let sites = program.sites.get_or_insert_with(|| Sites::new(index, program.object));
                sites.infer(index, places, sizes).map(Arc::new)
            }
            Part::Listed(_) => None,
        })
    }
}

impl Layouts for TypeData<'_> {
    fn layout(&mut self, trace_name: &str, recorded_bytes: u64) -> Option<Arc<Layout>> {
        for part in &mut self.parts {
            let found = match part {
                Part::Dwarf(program) => program.types.find(trace_name, recorded_bytes, &mut self.notes),
                Part::Listed(finder) => finder.find(trace_name, recorded_bytes, &mut self.notes),
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// Opens files with type data (programs, libraries, object files, `.dwo` and `.dwp` files, and JSON: our own and that of
/// dwarf2json, version 4), and passes them to `work`. Split DWARF (`.dwo`) and separate debug files (`.gnu_debuglink`)
/// are searched where compilers and Debian put them.
///
/// # Errors
/// I/O; [`anytrace_core::Kind::Unsupported`] when a file is none of these, is damaged, or has no type data.
pub fn with_type_data<T>(
    paths: &[&Path],
    options: InputOptions,
    work: impl FnOnce(&mut TypeData<'_>) -> T,
) -> Result<T, Error> {
    let mut notes = Vec::new();
    let mut files = Vec::new();
    for path in paths {
        files.push(Binary::open(path, options)?);
    }
    let mut more = Vec::new();
    for (path, file) in paths.iter().zip(&files).filter(|(_, file)| file.is_object()) {
        more.extend(sections::companions(path, file, options, &mut notes)?);
    }
    let named_count = files.len();
    files.extend(more);
    let objects = files.iter().map(object_of).collect::<Result<Vec<_>, Error>>()?;
    let mut all = Vec::new();
    for object in &objects {
        all.push(object.as_ref().map(TypeSections::load).transpose()?);
    }
    let mut packages = Vec::new();
    for sections in &all {
        packages.push(sections.as_ref().map(|sections| sections.units(&mut notes)).transpose()?.flatten());
    }
    let mut parts = Vec::new();
    for (number, (((file, object), sections), package)) in
        files.iter().zip(&objects).zip(&all).zip(&packages).enumerate()
    {
        match (sections, object) {
            (Some(sections), Some(object)) => {
                let units = package.as_deref().unwrap_or(std::slice::from_ref(sections));
                for sections in units {
                    let types = Types::new(sections, &mut notes)?;
                    parts.push(Part::Dwarf(Box::new(Program { types, object, sites: None })));
                }
            }
            _ if number < named_count => parts.push(Part::Listed(Finder::new(read_layouts(file)?))),
            _ => {}
        }
    }
    let is_empty = parts.iter().all(|part| match part {
        Part::Dwarf(program) => program.types.is_empty(),
        Part::Listed(_) => false,
    });
    if is_empty && !parts.is_empty() {
        let names: Vec<_> = files.iter().map(Binary::name).collect();
        return Err(Error::unsupported(format!("{}: no type data: compile with -g", names.join(", "))));
    }
    Ok(work(&mut TypeData { parts, notes }))
}

fn object_of(file: &Binary) -> Result<Option<ObjectFile<'_>>, Error> {
    file.is_object().then(|| ObjectFile::parse(file, None)).transpose()
}
