//! The objects of a process whose maps were kept.

use std::path::{Path, PathBuf};

use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::{Input, InputOptions, OpenOptions, Step};
use anytrace_symbols::{MappedObject, Maps, ObjectFile, Program, started};

use crate::record::{Body, Metadata};
use crate::{Reader, Record};

use super::{Map, OBJECT_MAX, is_process, numbered};

/// Records that are read to find the process.
const RECORDS_MAX: usize = 100;

/// Numbers the objects of a process as each announced itself to the runtime: the program is 0, then come those that it
/// needs, then those that it opened. Those without instrumentation, or that cannot be read, get no number.
pub fn number(maps: &mut Maps) {
    let paths: Vec<PathBuf> = maps.objects.iter().map(|object| object.path.clone()).collect();
    maps.objects.iter_mut().for_each(|object| object.number = None);
    let order = started(&paths, InputOptions::default());
    let libraries = order.iter().skip(1).filter(|path| numbered(path).is_some());
    for (number, path) in (0..=OBJECT_MAX).zip(paths.first().into_iter().chain(libraries)) {
        if let Some(object) = maps.objects.iter_mut().find(|object| object.path == *path) {
            object.number = Some(number);
        }
    }
}

/// The process of a trace, by one of its first records; `None` where none has it.
pub fn recorded_process(trace: &Path) -> Option<u32> {
    let input = Input::open(trace, InputOptions::default()).ok()?;
    let mut reader = Reader::new(input, &OpenOptions::default()).ok()?;
    for _ in 0..RECORDS_MAX {
        let process = match reader.next().ok()?? {
            Step::Record(_, Record::Basic(record)) => record.process,
            Step::Record(_, Record::Metadata(Metadata { body: Body::Pid { process }, .. })) => process.cast_unsigned(),
            _ => continue,
        };
        return (process > 0).then_some(process);
    }
    None
}

impl Map {
    /// Loads the program and the libraries of a process. What has been loaded already, because it was named, stays.
    pub(super) fn add_process(&mut self, name: &str, mut maps: Maps, sources: &[SymbolSource], mangling: Mangling) {
        self.notes.append(&mut maps.notes);
        let named = sources.iter().find(|source| is_program(source));
        let beside = named.and_then(|source| source.path.parent()).map(Path::to_owned);
        maps.objects.iter_mut().for_each(|object| object.path = place(object, beside.as_deref()));
        let is_numbered = maps.objects.iter().any(|object| object.number.is_some());
        if !is_numbered {
            number(&mut maps);
        }
        self.add_program(name, &maps.objects, named, mangling);
        let mut found = Vec::new();
        let libraries = maps.objects.iter().skip(1).filter_map(|object| Some((object.number?, object)));
        let mut libraries: Vec<(u32, &MappedObject)> = libraries.filter(|(number, _)| *number <= OBJECT_MAX).collect();
        libraries.sort_by_key(|(number, _)| *number);
        // The first counts, whether it can be opened or not.
        libraries.dedup_by_key(|(number, _)| *number);
        for (number, object) in libraries {
            let path = object.path.display();
            if self.objects.contains_key(&number) {
                continue;
            }
            match open(&object.path) {
                Ok(library) if self.is_of_another_build(number, object, &library) => {}
                Ok(library) if self.add_library(number, &library, mangling) => {
                    found.push(format!("{number} is {path}"))
                }
                Ok(_) => {}
                Err(error) => {
                    self.notes.push(format!("object {number} has no names: {error}; -m {number}=PATH names it"));
                }
            }
        }
        let is_sure = maps.is_ordered || found.len() < 2;
        if !found.is_empty() {
            let found = found.join(", ");
            let how = if is_sure {
                "as they were loaded"
            } else {
                "as they were most likely loaded; -m OBJECT=PATH names those that it is wrong for"
            };
            self.notes.push(format!("{name}: objects are numbered {how}: {found}"));
        }
    }

    /// Loads the program, unless it was named.
    fn add_program(&mut self, name: &str, objects: &[MappedObject], named: Option<&SymbolSource>, mangling: Mangling) {
        let Some(object) = objects.first() else {
            self.notes.push(format!("{name}: no program is mapped"));
            return;
        };
        if let Some(named) = named {
            if let Ok(program) = Program::open(&named.path, InputOptions::default())
                && has_another_id(object, &program)
            {
                let (named, path) = (named.path.display(), object.path.display());
                self.notes
                    .push(format!("{named} is another build than {path}, which was recorded: names may be wrong"));
            }
            return;
        }
        let path = object.path.display();
        match open(&object.path) {
            Ok(program) if self.is_of_another_build(0, object, &program) => {}
            Ok(program) => {
                if self.add_library(0, &program, mangling) {
                    self.notes.push(format!("{name}: names are those of {path}"));
                }
            }
            Err(error) => self.notes.push(format!("{name}: {error}; -m PATH names the program")),
        }
    }

    /// Whether a file was built anew, which is noted.
    fn is_of_another_build(&mut self, number: u32, object: &MappedObject, program: &Program) -> bool {
        let is_other = has_another_id(object, program);
        if is_other {
            let path = program.binary().name();
            self.notes.push(format!(
                "{path} was built anew since the trace was recorded: its functions have no names; -m {number}={path} \
                 uses it all the same"
            ));
        }
        is_other
    }
}

/// Opens a file that maps name. It may be anything: a pipe would be waited for.
fn open(path: &Path) -> Result<Program, String> {
    if !path.is_file() {
        return Err(format!("{}: no such file", path.display()));
    }
    Program::open(path, InputOptions::default()).map_err(|error| error.to_string())
}

/// Whether a source is the program.
fn is_program(source: &SymbolSource) -> bool {
    source.object.unwrap_or(0) == 0 && !is_process(&source.path)
}

fn has_another_id(object: &MappedObject, program: &Program) -> bool {
    let id = ObjectFile::parse(program.binary(), None).ok().and_then(|object| object.build_id().map(<[u8]>::to_vec));
    !object.build_id.is_empty() && id.is_some_and(|id| id != object.build_id)
}

/// Where an object is: where it was, or beside the program that was named, as what is moved is moved together.
fn place(object: &MappedObject, beside: Option<&Path>) -> PathBuf {
    if !object.path.is_file()
        && let (Some(beside), Some(name)) = (beside, object.path.file_name())
        && beside.join(name).is_file()
    {
        return beside.join(name);
    }
    object.path.clone()
}
