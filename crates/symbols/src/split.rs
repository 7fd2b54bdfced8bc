//! Split debug data: what a compiler puts beside the object files (`.dwo`), or a packager beside the program (`.dwp`).
//!
//! The program has only skeletons of its units, with a number that the rest has, too. Sources: DWARF 5, sections 3.1.2,
//! 3.1.3 and 7.3.5, and appendix F; of DWARF 4 the extension that they came from, which GCC and LLVM write with
//! `-gsplit-dwarf -gdwarf-4`.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addr2line::SplitDwarfLoad;
use anytrace_core::{Error, InputOptions};
use gimli::{
    AbbreviationsCacheStrategy, DwarfFileType, DwarfPackageSections, DwarfSections, EndianSlice, RunTimeEndian,
    Section as _, SectionId,
};
use object::Object;

use crate::libraries::PATH_BYTES_MAX;
use crate::object_file::{failed, unpacked};
use crate::{Binary, ObjectFile};

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Bytes<'a>>;

/// Most `.dwo` files looked for.
pub(crate) const FILES_MAX: usize = 4096;

/// What a program has of a unit whose debug data are elsewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skeleton {
    /// The number that both have; `None` where it cannot be read.
    pub(crate) id: Option<u64>,
    /// The `.dwo` file; empty where it is not looked for.
    pub(crate) file: PathBuf,
    /// The folder that the compiler was called in.
    pub(crate) folder: Option<PathBuf>,
}

/// The skeletons among the units of a program.
pub(crate) fn skeletons(dwarf: &Dwarf<'_>) -> Vec<Skeleton> {
    let mut found = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(Some(name)) = unit.dwo_name() else { continue };
        let Ok(name) = dwarf.attr_string(&unit, name) else { continue };
        // Units may share one long name: what is not looked for is not kept.
        let is_sought = found.len() < FILES_MAX;
        let path = |bytes: Bytes<'_>| {
            let is_path = is_sought && bytes.len() <= PATH_BYTES_MAX;
            is_path.then(|| PathBuf::from(bytes.to_string_lossy().into_owned()))
        };
        let (file, folder) = (path(name).unwrap_or_default(), unit.comp_dir.and_then(path));
        found.push(Skeleton { id: unit.dwo_id.map(|id| id.0), file, folder });
    }
    found
}

/// The package of a program, which has what all `.dwo` files had: they are often gone by then.
pub(crate) fn package(program: &Path) -> Option<PathBuf> {
    let mut name = program.as_os_str().to_owned();
    name.push(".dwp");
    Some(PathBuf::from(name)).filter(|package| package.is_file())
}

/// Where the `.dwo` file of a skeleton is: where the compiler left it, or beside the program.
pub(crate) fn companion(program: &Path, skeleton: &Skeleton) -> Option<PathBuf> {
    let beside = program.parent().unwrap_or(Path::new("")).join(skeleton.file.file_name()?);
    let left = skeleton.folder.as_ref().map(|folder| folder.join(&skeleton.file));
    left.into_iter().chain([beside]).find(|place| place.is_file())
}

/// Opens what is found of the split debug data of a program, which may be in several places. What cannot be opened is
/// noted.
pub(crate) fn open(
    programs: &[&Path],
    skeletons: &[Skeleton],
    options: InputOptions,
    notes: &mut Vec<String>,
) -> Vec<Binary> {
    let mut places: Vec<PathBuf> = programs.iter().find_map(|program| package(program)).into_iter().collect();
    if places.is_empty() {
        let mut known = BTreeSet::new();
        for skeleton in skeletons.iter().take(FILES_MAX) {
            let place = programs.iter().find_map(|program| companion(program, skeleton));
            let place = place.and_then(|place| place.canonicalize().ok());
            places.extend(place.filter(|place| known.insert(place.clone())));
        }
        if skeletons.len() > FILES_MAX {
            notes.push(format!("only the first {FILES_MAX} .dwo files are read"));
        }
    }
    let mut files = Vec::new();
    for place in places {
        match Binary::open(&place, options) {
            Ok(file) if ObjectFile::parse(&file, None).is_ok() => files.push(file),
            Ok(_) => notes.push(format!("{}: split debug data: no object file", place.display())),
            Err(error) => notes.push(format!("split debug data are not used: {error}")),
        }
    }
    files
}

/// The sections of one file with split debug data.
pub(crate) struct SplitFile<'a> {
    endian: RunTimeEndian,
    sections: Sections<'a>,
}

enum Sections<'a> {
    Package(Box<DwarfPackageSections<Cow<'a, [u8]>>>),
    Units(Box<DwarfSections<Cow<'a, [u8]>>>),
}

/// Why sections cannot be read.
struct Unreadable(String);

impl From<gimli::Error> for Unreadable {
    fn from(error: gimli::Error) -> Self {
        Self(error.to_string())
    }
}

impl<'a> SplitFile<'a> {
    pub(crate) fn load(object: &ObjectFile<'a>) -> Result<Self, Error> {
        let is_package = object.has_section(".debug_cu_index");
        let load = |id: SectionId| -> Result<Cow<'a, [u8]>, Unreadable> {
            // A unit of a package is only found if all sections are there that its index names.
            let name = id.dwo_name().filter(|_| is_package || is_used(id));
            let Some(name) = name else { return Ok(Cow::Borrowed(&[])) };
            let Some(section) = object.file.section_by_name(name) else { return Ok(Cow::Borrowed(&[])) };
            unpacked(&section).map_err(|what| Unreadable(format!("{name}: {what}")))
        };
        let read = |what: Unreadable| failed(object.name, "split debug data", what.0);
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let sections = if is_package {
            Sections::Package(Box::new(DwarfPackageSections::load(load).map_err(read)?))
        } else {
            Sections::Units(Box::new(DwarfSections::load(load).map_err(read)?))
        };
        Ok(Self { endian, sections })
    }
}

/// The units of split debug data, for look-ups.
pub(crate) struct Split<'a> {
    packages: Vec<gimli::DwarfPackage<Bytes<'a>>>,
    units: RefCell<BTreeMap<u64, Dwarf<'a>>>,
    /// Each is given once: in a valid program each has one skeleton.
    given: RefCell<BTreeSet<u64>>,
    /// Bytes that may still be given: valid units do not share them.
    bytes_left: Cell<usize>,
}

impl<'a> Split<'a> {
    pub(crate) fn new(files: &'a [SplitFile<'_>]) -> Self {
        let mut split = Self {
            packages: Vec::new(),
            units: RefCell::default(),
            given: RefCell::default(),
            bytes_left: Cell::new(0),
        };
        let mut bytes = 0;
        for file in files {
            let borrow = |bytes: &'a Cow<'_, [u8]>| EndianSlice::new(bytes, file.endian);
            match &file.sections {
                Sections::Package(sections) => {
                    bytes += sections.debug_info.borrow(borrow).reader().len();
                    let empty = EndianSlice::new(&[], file.endian);
                    split.packages.extend(sections.borrow(borrow, empty).ok());
                }
                Sections::Units(sections) => {
                    let whole = sections.debug_info.borrow(borrow).reader().slice();
                    bytes += whole.len();
                    for (id, range) in units_of(&sections.borrow(borrow)) {
                        let mut dwarf = sections.borrow(borrow);
                        // The unit alone: there may be units of types around it.
                        dwarf.debug_info = gimli::DebugInfo::new(whole.get(range).unwrap_or_default(), file.endian);
                        split.units.get_mut().entry(id).or_insert(dwarf);
                    }
                }
            }
        }
        split.bytes_left.set(bytes);
        split
    }

    /// True where a unit is here.
    pub(crate) fn has(&self, id: u64) -> bool {
        let in_package = self.packages.iter().any(|package| package.cu_index.find(id).is_some());
        in_package || self.units.borrow().contains_key(&id)
    }

    /// The unit that a skeleton asks for, once.
    pub(crate) fn take(&self, load: &SplitDwarfLoad<Bytes<'a>>) -> Option<Dwarf<'a>> {
        let id = load.dwo_id;
        if !self.given.borrow_mut().insert(id.0) {
            return None;
        }
        let packed = self.packages.iter().find_map(|package| package.find_cu(id, &load.parent).ok().flatten());
        let dwarf = packed.or_else(|| {
            let mut dwarf = self.units.borrow_mut().remove(&id.0)?;
            dwarf.make_dwo(&load.parent);
            Some(dwarf)
        })?;
        let left = self.bytes_left.get().checked_sub(dwarf.debug_info.reader().len())?;
        self.bytes_left.set(left);
        Some(dwarf)
    }
}

/// The units of a `.dwo` file that have a number, and where each is.
fn units_of(dwarf: &Dwarf<'_>) -> Vec<(u64, std::ops::Range<usize>)> {
    let mut dwarf = gimli::Dwarf { debug_info: dwarf.debug_info, debug_abbrev: dwarf.debug_abbrev, ..Dwarf::default() };
    dwarf.file_type = DwarfFileType::Dwo;
    // Units share tables of abbreviations: each is read once.
    dwarf.populate_abbreviations_cache(AbbreviationsCacheStrategy::Duplicates);
    let mut found = Vec::new();
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let start = header.debug_info_offset().map_or(0, |offset| offset.0);
        let end = start.saturating_add(header.length_including_self());
        if let Ok(gimli::Unit { dwo_id: Some(id), .. }) = dwarf.unit(header) {
            found.push((id.0, start..end));
        }
    }
    found
}

/// True for the sections of a `.dwo` file that look-ups need.
fn is_used(id: SectionId) -> bool {
    use SectionId as S;
    matches!(id, S::DebugAbbrev | S::DebugInfo | S::DebugLine | S::DebugRngLists | S::DebugStr | S::DebugStrOffsets)
}
