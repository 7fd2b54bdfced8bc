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

/// The most bytes that split debug data may have when they are decompressed, all files together.
pub(crate) const UNPACKED_BYTES_MAX: usize = 2 << 30;

/// Slots that are looked at for a unit of a package, on average, at most: in a table that is two thirds full, two.
const STEPS_OF_A_UNIT_MAX: u64 = 16;

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
    /// Bytes of sections that had to be decompressed.
    pub(crate) unpacked_bytes: usize,
    sections: Sections<'a>,
}

enum Sections<'a> {
    /// With the units that its index has.
    Package(BTreeSet<u64>, Box<DwarfPackageSections<Cow<'a, [u8]>>>),
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
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let (mut unpacked_bytes, mut units) = (0, None);
        let load = |id: SectionId| -> Result<Cow<'a, [u8]>, Unreadable> {
            // A unit of a package is only found if all sections are there that its index names.
            let name = id.dwo_name().filter(|_| is_package || is_used(id));
            let Some(name) = name else { return Ok(Cow::Borrowed(&[])) };
            let Some(section) = object.file.section_by_name(name) else { return Ok(Cow::Borrowed(&[])) };
            let bytes = unpacked(&section).map_err(|what| Unreadable(format!("{name}: {what}")))?;
            if id == SectionId::DebugCuIndex {
                units = indexed(&EndianSlice::new(&bytes, endian));
            }
            unpacked_bytes += if let Cow::Owned(bytes) = &bytes { bytes.len() } else { 0 };
            Ok(bytes)
        };
        let read = |what: Unreadable| failed(object.name, "split debug data", what.0);
        let sections = if is_package {
            let sections = DwarfPackageSections::load(load).map_err(read)?;
            let units = units.ok_or_else(|| failed(object.name, "split debug data", "the index is damaged"))?;
            Sections::Package(units, Box::new(sections))
        } else {
            Sections::Units(Box::new(DwarfSections::load(load).map_err(read)?))
        };
        Ok(Self { endian, unpacked_bytes, sections })
    }
}

/// The units of split debug data, for look-ups.
pub(crate) struct Split<'a> {
    packages: Vec<(&'a BTreeSet<u64>, gimli::DwarfPackage<Bytes<'a>>)>,
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
                Sections::Package(units, sections) => {
                    bytes += sections.debug_info.borrow(borrow).reader().len();
                    let empty = EndianSlice::new(&[], file.endian);
                    split.packages.extend(sections.borrow(borrow, empty).ok().map(|package| (units, package)));
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
        let in_package = self.packages.iter().any(|(units, _)| units.contains(&id));
        in_package || self.units.borrow().contains_key(&id)
    }

    /// The unit that a skeleton asks for, once.
    pub(crate) fn take(&self, load: &SplitDwarfLoad<Bytes<'a>>) -> Option<Dwarf<'a>> {
        let id = load.dwo_id;
        if !self.given.borrow_mut().insert(id.0) {
            return None;
        }
        let mut holders = self.packages.iter().filter(|(units, _)| units.contains(&id.0));
        let packed = holders.find_map(|(_, package)| package.find_cu(id, &load.parent).ok().flatten());
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

/// The units that an index of a package has (DWARF 5, section 7.3.5.3: a hash table of twice as many slots; the second
/// hash is the step). `None` for one in which units are found so slowly that it was not made for that.
fn indexed(index: &Bytes<'_>) -> Option<BTreeSet<u64>> {
    use gimli::Reader as _;
    let mut index = *index;
    index.skip(12).ok()?;
    let slots = u64::from(index.read_u32().ok()?);
    let ids: Vec<u64> = (0..slots).map_while(|_| index.read_u64().ok()).collect();
    let mask = slots.wrapping_sub(1);
    let mut steps_left = ids.len() as u64 * STEPS_OF_A_UNIT_MAX;
    let mut found = BTreeSet::new();
    for (id, slot) in ids.iter().zip(0..).filter(|(id, _)| **id != 0) {
        let mut at = id & mask;
        while at != slot {
            steps_left = steps_left.checked_sub(1)?;
            // An empty slot, or the unit once more: a search ends there.
            if [0, *id].contains(ids.get(usize::try_from(at).ok()?)?) {
                break;
            }
            at = at.wrapping_add((id >> 32) & mask | 1) & mask;
        }
        if at == slot {
            found.insert(*id);
        }
    }
    Some(found)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn index(ids: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [5, 0, 1, u32::try_from(ids.len()).unwrap()] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(ids.iter().flat_map(|id| id.to_le_bytes()));
        bytes
    }

    fn units(ids: &[u64]) -> Option<Vec<u64>> {
        indexed(&EndianSlice::new(&index(ids), RunTimeEndian::Little)).map(|units| units.into_iter().collect())
    }

    #[test]
    fn units_of_an_index_are_those_that_a_search_finds() {
        // 5 and 13 have the same first slot; the step of 13 is 3. 6 is where no search for it ends.
        let (five, thirteen) = (5, 13 | 2 << 32);
        assert_eq!(units(&[thirteen, 6, 0, 0, 0, five, 0, 0]).unwrap(), [five, thirteen]);
        assert!(units(&[]).unwrap().is_empty() && units(&[0; 8]).unwrap().is_empty());
        assert!(indexed(&EndianSlice::new(&[0; 15], RunTimeEndian::Little)).is_none());
        // A table that ends before its slots do.
        let cut = &index(&[8, 1, 2, 3, 0, 0, 0, 0])[..16 + 8];
        assert_eq!(indexed(&EndianSlice::new(cut, RunTimeEndian::Little)).unwrap().len(), 1);
    }

    #[test]
    fn an_index_in_which_searches_take_long_is_refused() {
        // All units begin at slot 0 and go on by one.
        let slots = 1 << 12;
        let ids: Vec<u64> = (0..slots).map(|at| at * slots).map(|id| if id == 0 { slots << 20 } else { id }).collect();
        assert!(units(&ids).is_none());
        let sparse: Vec<u64> = (0..slots).map(|at| if at % 2 == 0 { 0 } else { at | at << 32 }).collect();
        assert_eq!(units(&sparse).unwrap().len(), 1 << 11);
    }
}
