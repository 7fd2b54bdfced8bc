//! What programs have at the code addresses of a run.

use std::path::{Path, PathBuf};

use anytrace_core::access::codes::{Module, Place};
use anytrace_core::span::Mangling;
use anytrace_core::text::shown;
use anytrace_core::{Error, InputOptions};
use object::{Object, ObjectSegment};

use crate::{Binary, ObjectFile, Program, demangle};

/// Where the loaders of Linux put programs that may be anywhere: as linked, by Valgrind, without randomization.
const USUAL_BASES: [u64; 3] = [0, 0x10_8000, 0x5555_5555_4000];

/// Codes that decide which of them it was.
const TRIED: usize = 1000;

/// Where the code of a run came from.
#[derive(Debug, Clone, Copy)]
pub struct CodeFiles<'a> {
    /// What the run says.
    pub modules: &'a [Module],
    /// Files that are named by the user: in place of modules with the same build id or name, and without such a module for
    /// all addresses.
    pub programs: &'a [PathBuf],
    /// How names are shown.
    pub mangling: Mangling,
}

/// A range of the run's addresses with the file that has them.
struct Mapped<'a> {
    start: u64,
    end: u64,
    path: PathBuf,
    /// `None`: all addresses, as the file has them.
    module: Option<&'a Module>,
    /// The user named it, so that errors end the command.
    is_named: bool,
}

impl CodeFiles<'_> {
    /// Finds what is at each of the addresses. Files that cannot be read are noted, in sentences.
    ///
    /// # Errors
    /// A file that the user named cannot be read.
    pub fn places(&self, codes: &[u64]) -> Result<(Vec<Place>, Vec<String>), Error> {
        let mut places: Vec<Place> = codes.iter().map(|code| Place { address: *code, ..Place::default() }).collect();
        let mut notes = Vec::new();
        for mapped in self.mapped() {
            let is_in = |code: u64| code >= mapped.start && code <= mapped.end && code != 0;
            let wanted: Vec<usize> = (0..codes.len())
                .filter(|at| places.get(*at).is_some_and(|place| place.file.is_none()))
                .filter(|at| codes.get(*at).is_some_and(|code| is_in(*code)))
                .collect();
            if wanted.is_empty() {
                continue;
            }
            match self.look_up(&mapped, codes, &wanted, &mut places) {
                Ok(note) => notes.extend(note),
                Err(error) if mapped.is_named => return Err(error),
                Err(error) => notes.push(format!("its functions have no names: {error}")),
            }
        }
        Ok((places, notes))
    }

    /// The ranges, the last that were mapped first.
    fn mapped(&self) -> Vec<Mapped<'_>> {
        let mut used = vec![false; self.programs.len()];
        let mut all = Vec::new();
        for module in self.modules.iter().rev() {
            let own = PathBuf::from(shown(&module.path).into_owned());
            let stands_for = |program: &PathBuf| program.file_name() == own.file_name() || has_id(program, module);
            let named = self.programs.iter().position(stands_for);
            if let Some(used) = named.and_then(|at| used.get_mut(at)) {
                *used = true;
            }
            let path = named.and_then(|at| self.programs.get(at)).cloned().unwrap_or(own);
            let is_named = named.is_some();
            let end = module.end.saturating_sub(1);
            all.push(Mapped { start: module.start, end, path, module: Some(module), is_named });
        }
        let rest = self.programs.iter().zip(used).filter(|(_, used)| !used);
        all.extend(rest.map(|(path, _)| Mapped {
            start: 0,
            end: u64::MAX,
            path: path.clone(),
            module: None,
            is_named: true,
        }));
        all
    }

    fn look_up(
        &self,
        mapped: &Mapped<'_>,
        codes: &[u64],
        wanted: &[usize],
        places: &mut [Place],
    ) -> Result<Vec<String>, Error> {
        let program = Program::open(&mapped.path, InputOptions::default())?;
        let objects = program.objects(None)?;
        let object = &objects.own;
        let shown_path = mapped.path.display();
        if let Some(module) = mapped.module.filter(|module| !module.build_id.is_empty())
            && object.build_id().is_some_and(|own| own != module.build_id)
        {
            let note = format!("{shown_path} was built anew since the trace was recorded: its functions have no names");
            return if mapped.is_named { Err(Error::usage(note)) } else { Ok(vec![note]) };
        }
        let symbols = objects.symbols();
        let mut notes = program.notes().to_vec();
        let debug = objects.debug_data(&mut notes)?;
        // Without debug data, or with damaged ones, symbols remain.
        let lines = debug.lines().ok();
        let of_run: Vec<u64> = wanted.iter().filter_map(|at| codes.get(*at).copied()).collect();
        let bias = match mapped.module {
            Some(module) => object.bias(module).unwrap_or(0),
            None => {
                let found = |base: &u64| {
                    let tried = of_run.iter().step_by(of_run.len().div_ceil(TRIED).max(1));
                    tried.filter(|code| code.checked_sub(*base).is_some_and(|at| symbols.find(at).is_some())).count()
                };
                // The first of those that are equally good.
                let best = USUAL_BASES.iter().rev().max_by_key(|base| found(base));
                best.copied().unwrap_or(0)
            }
        };
        for (at, code) in wanted.iter().zip(of_run) {
            let address = code.wrapping_sub(bias);
            let symbol = symbols.find(address);
            let frames = lines.as_ref().map_or(Vec::new(), |lines| lines.frames(address));
            if mapped.module.is_none() && symbol.is_none() && frames.is_empty() {
                continue;
            }
            let own = frames.last().and_then(|frame| frame.name.clone());
            let name = symbol.map(|symbol| shown(symbol.name).into_owned()).or(own);
            let location = frames.first().and_then(|frame| frame.location.clone());
            let location = location.or_else(|| lines.as_ref().and_then(|lines| lines.location(address)));
            if let Some(place) = places.get_mut(*at) {
                *place = Place {
                    function: name.map(|name| demangle(&name, self.mangling).into_owned()),
                    location,
                    file: Some(mapped.path.clone()),
                    address,
                };
            }
        }
        Ok(notes)
    }
}

/// Whether a file has the build id of a module.
fn has_id(path: &Path, module: &Module) -> bool {
    if module.build_id.is_empty() {
        return false;
    }
    let Ok(binary) = Binary::open(path, InputOptions::default()) else { return false };
    ObjectFile::parse(&binary, None).is_ok_and(|object| object.build_id() == Some(&module.build_id[..]))
}

/// The build id of a file; `None` where it is no object file, or has none.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    // A pipe would be waited for, and a device may have no end.
    if !path.is_file() {
        return None;
    }
    let binary = Binary::open(path, InputOptions::default()).ok()?;
    ObjectFile::parse(&binary, None).ok()?.build_id().map(<[u8]>::to_vec)
}

impl<'a> ObjectFile<'a> {
    /// What the linker made of the file's contents, to tell builds apart; `None` where it did not.
    pub fn build_id(&self) -> Option<&'a [u8]> {
        self.file.build_id().ok().flatten()
    }

    /// The ranges of the file that are loaded, in bytes, and the address at which the first byte of each is linked.
    pub fn loaded(&self) -> Vec<(std::ops::Range<u64>, u64)> {
        let range = |segment: object::Segment<'a, '_>| {
            let (offset, bytes) = segment.file_range();
            (offset..offset.saturating_add(bytes), segment.address())
        };
        self.file.segments().map(range).collect()
    }

    /// What is added to the file's addresses where it is mapped; `None` where it does not have what is mapped.
    pub fn bias(&self, module: &Module) -> Option<u64> {
        let has = |segment: &object::Segment<'a, '_>| {
            let (offset, bytes) = segment.file_range();
            // Mappings begin at pages, segments anywhere in them.
            let is_in = module.offset.checked_add(0xfff)? >= offset && module.offset < offset.checked_add(bytes)?;
            is_in.then(|| segment.address().wrapping_sub(offset))
        };
        let code = self.file.segments().filter(|segment| segment.size() > 0);
        let candidates: Vec<u64> = code.filter_map(|segment| has(&segment)).collect();
        // Of neighbours that share a page the later one is the one that is mapped there.
        let shift = candidates.last()?;
        Some(module.start.wrapping_sub(module.offset).wrapping_sub(*shift))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]
    use super::*;

    /// This program's own mapping of the page with this function.
    fn own() -> (Module, u64) {
        let code = own as fn() -> (Module, u64) as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let line = maps.lines().find(|line| {
            let (start, end) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
            (number(start)..number(end)).contains(&code)
        });
        let words: Vec<&str> = line.unwrap().split_whitespace().collect();
        let (start, end) = words[0].split_once('-').unwrap();
        let (start, end, offset) = (number(start), number(end), number(words[2]));
        (Module { start, end, offset, build_id: Vec::new(), path: words[5].as_bytes().to_vec() }, code)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_function_is_found_in_this_program() {
        let (module, code) = own();
        let files = CodeFiles { modules: std::slice::from_ref(&module), programs: &[], mangling: Mangling::Demangled };
        let (places, notes) = files.places(&[code, 0, 5]).unwrap();
        assert!(notes.is_empty(), "{notes:?}");
        assert!(places[0].function.as_ref().unwrap().ends_with("places::tests::own"), "{places:?}");
        assert!(places[0].location.as_ref().unwrap().file.ends_with("places.rs"), "{places:?}");
        assert_eq!((&places[1].function, &places[2].file, places[2].address), (&None, &None, 5));
        // Another build gets no names, and is an error where the user named it.
        let other = Module { build_id: vec![1, 2, 3], ..module };
        let own_path = PathBuf::from(shown(&other.path).into_owned());
        let files = CodeFiles { modules: std::slice::from_ref(&other), programs: &[], mangling: Mangling::Demangled };
        let (places, notes) = files.places(&[code]).unwrap();
        if places[0].function.is_none() {
            assert!(notes[0].contains("was built anew"), "{notes:?}");
            let files = CodeFiles { programs: &[own_path], ..files };
            assert!(files.places(&[code]).unwrap_err().to_string().contains("was built anew"));
        }
    }

    #[test]
    fn a_program_without_modules_is_tried_where_loaders_put_it() {
        let (module, code) = own();
        let path = PathBuf::from(shown(&module.path).into_owned());
        let binary = Binary::open(&path, InputOptions::default()).unwrap();
        let object = ObjectFile::parse(&binary, None).unwrap();
        let in_file = code - object.bias(&module).unwrap();
        // A run has code all over a program.
        let symbols = object.symbols();
        let all = symbols.symbols().iter().step_by(50).map(|symbol| symbol.address);
        let all: Vec<u64> = std::iter::once(in_file).chain(all).collect();
        for base in USUAL_BASES {
            let files =
                CodeFiles { modules: &[], programs: std::slice::from_ref(&path), mangling: Mangling::Demangled };
            let moved: Vec<u64> = all.iter().map(|address| address + base).collect();
            let (places, _) = files.places(&moved).unwrap();
            let name = places[0].function.clone().unwrap_or_default();
            assert!(name.ends_with("places::tests::own"), "{base:#x}: {:?}", places[0]);
        }
    }

    #[test]
    fn files_that_are_not_there_are_noted_or_errors() {
        let module = Module { start: 1, end: 9, offset: 0, build_id: Vec::new(), path: b"/nonexistent/x".to_vec() };
        let files = CodeFiles { modules: &[module], programs: &[], mangling: Mangling::AsIs };
        let (places, notes) = files.places(&[4]).unwrap();
        assert!(places[0].function.is_none() && notes[0].contains("/nonexistent/x"), "{notes:?}");
        let files = CodeFiles { programs: &[PathBuf::from("/nonexistent/x")], ..files };
        assert!(files.places(&[4]).is_err());
    }
}
