//! The sections that describe types, and the files they are in.

use std::borrow::Cow;
use std::path::Path;

use anytrace_core::{Error, InputOptions};
use gimli::{DwarfFileType, DwarfSections, EndianSlice, RunTimeEndian, Section as _, SectionId};
use object::Object;

use crate::object_file::{failed, unpacked};
use crate::program::separate;
use crate::{Binary, ObjectFile, relocate, split};

pub(super) type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;
pub(super) type Dwarf<'a> = gimli::Dwarf<Bytes<'a>>;

/// Most units of a package.
const COMPANIONS_MAX: usize = split::FILES_MAX;

/// Debug sections of one file.
pub(super) struct TypeSections<'a> {
    pub(super) name: &'a str,
    pub(super) endian: RunTimeEndian,
    sections: DwarfSections<Cow<'a, [u8]>>,
    is_split: bool,
    /// Where the units of a package (`.dwp`) are: of compilation and type units.
    indexes: [Cow<'a, [u8]>; 2],
    /// Length of the sections that describe types.
    pub(super) info_bytes: usize,
}

impl<'a> TypeSections<'a> {
    pub(super) fn load(object: &ObjectFile<'a>) -> Result<Self, Error> {
        let has = |name: &str| object.file.section_by_name(name).is_some();
        let is_split = !has(".debug_info") && has(".debug_info.dwo");
        let mut info_bytes = 0;
        let load = |id: SectionId| -> Result<Cow<'a, [u8]>, Error> {
            let name = if is_split { id.dwo_name() } else { Some(id.name()) };
            let Some(name) = name.filter(|_| is_used(id)) else { return Ok(Cow::Borrowed(&[])) };
            let Some(section) = object.file.section_by_name(name) else { return Ok(Cow::Borrowed(&[])) };
            let data = unpacked(&section).map_err(|what| failed(object.name, name, what))?;
            let data = relocate::apply(&object.file, &object.layout, &section, data);
            if matches!(id, SectionId::DebugInfo | SectionId::DebugTypes) {
                info_bytes += data.len();
            }
            Ok(data)
        };
        let sections = DwarfSections::load(load)?;
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let index = |name: &str| match object.file.section_by_name(name) {
            Some(section) => unpacked(&section).map_err(|what| failed(object.name, name, what)),
            None => Ok(Cow::Borrowed(&[][..])),
        };
        let indexes = [index(".debug_cu_index")?, index(".debug_tu_index")?];
        Ok(Self { name: object.name, endian, sections, is_split, indexes, info_bytes })
    }

    /// The units of a package, each as the `.dwo` file that it was; `None` for any other file.
    ///
    /// Source: DWARF 5, section 7.3.5, "DWARF Package Files".
    pub(super) fn units(&self, notes: &mut Vec<String>) -> Result<Option<Vec<TypeSections<'_>>>, Error> {
        let [compilation, types] = &self.indexes;
        if compilation.is_empty() && types.is_empty() {
            return Ok(None);
        }
        let unreadable = |what| failed(self.name, "package index", what);
        let compilation = gimli::DebugCuIndex::new(compilation, self.endian).index().map_err(unreadable)?;
        let types = gimli::DebugTuIndex::new(types, self.endian).index().map_err(unreadable)?;
        let mut units = Vec::new();
        for index in [compilation, types] {
            for row in 1..=index.unit_count() {
                if units.len() >= COMPANIONS_MAX {
                    notes.push(format!("{}: only the first {COMPANIONS_MAX} units are read", self.name));
                    return Ok(Some(units));
                }
                units.push(self.unit(index.sections(row).map_err(unreadable)?)?);
            }
        }
        Ok(Some(units))
    }

    /// The parts of the sections that belong to a unit. Texts belong to all.
    fn unit<R: gimli::Reader>(&self, parts: gimli::UnitIndexSectionIterator<'_, R>) -> Result<TypeSections<'_>, Error> {
        let parts: Vec<_> = parts.collect();
        let whole = self.dwarf();
        let mut info_bytes = 0;
        let load = |id: SectionId| -> Result<Cow<'_, [u8]>, Error> {
            let all = match id {
                SectionId::DebugStr => return Ok(Cow::Borrowed(whole.debug_str.reader().slice())),
                SectionId::DebugAbbrev => whole.debug_abbrev.reader().slice(),
                SectionId::DebugInfo => whole.debug_info.reader().slice(),
                SectionId::DebugLine => whole.debug_line.reader().slice(),
                SectionId::DebugStrOffsets => whole.debug_str_offsets.reader().slice(),
                SectionId::DebugTypes => whole.debug_types.reader().slice(),
                _ => &[],
            };
            let part = parts.iter().find(|part| part.section.section_id() == id);
            let range = part.map(|part| part.offset as usize..part.offset as usize + part.size as usize);
            let bytes = range.map_or(Some(&[][..]), |range| all.get(range));
            let bytes = bytes.ok_or_else(|| failed(self.name, "package index", "a unit is outside its section"))?;
            if matches!(id, SectionId::DebugInfo | SectionId::DebugTypes) {
                info_bytes += bytes.len();
            }
            Ok(Cow::Borrowed(bytes))
        };
        let sections = DwarfSections::load(load)?;
        let indexes = [Cow::Borrowed(&[][..]), Cow::Borrowed(&[][..])];
        Ok(TypeSections { name: self.name, endian: self.endian, sections, is_split: true, indexes, info_bytes })
    }

    pub(super) fn dwarf(&self) -> Dwarf<'_> {
        let mut dwarf = self.sections.borrow(|bytes| EndianSlice::new(bytes, self.endian));
        if self.is_split {
            dwarf.file_type = DwarfFileType::Dwo;
        }
        dwarf
    }

    /// Bytes of abbreviations, up to some end.
    pub(super) fn abbreviations(&self, end: usize) -> gimli::DebugAbbrev<Bytes<'_>> {
        self.sections
            .debug_abbrev
            .borrow(|bytes| EndianSlice::new(bytes.get(..end.min(bytes.len())).unwrap_or_default(), self.endian))
    }
}

fn is_used(id: SectionId) -> bool {
    use SectionId as S;
    // Of line programs the headers are read with each unit; lines and ranges are for sites.
    matches!(
        id,
        S::DebugAbbrev
            | S::DebugAddr
            | S::DebugInfo
            | S::DebugLine
            | S::DebugLineStr
            | S::DebugRanges
            | S::DebugRngLists
            | S::DebugStr
            | S::DebugStrOffsets
            | S::DebugTypes
    )
}

/// Files that have the debug data of this one: a separate debug file, a `.dwp` file, `.dwo` files.
pub(super) fn companions(
    path: &Path,
    file: &Binary,
    options: InputOptions,
    notes: &mut Vec<String>,
) -> Result<Vec<Binary>, Error> {
    let object = ObjectFile::parse(file, None)?;
    let sections = TypeSections::load(&object)?;
    let mut found = Vec::new();
    if sections.info_bytes == 0 {
        if let Some(debug) = separate(file, options, notes).debug {
            let further = companions(Path::new(debug.name()), &debug, options, notes)?;
            found.push(debug);
            found.extend(further);
        }
        return Ok(found);
    }
    let skeletons = split::skeletons(&sections.dwarf());
    if let Some(package) = split::package(path).filter(|_| !skeletons.is_empty()) {
        found.push(Binary::open(&package, options)?);
        return Ok(found);
    }
    if skeletons.len() > split::FILES_MAX {
        notes.push(format!("{}: only the first {} .dwo files are read", file.name(), split::FILES_MAX));
    }
    for skeleton in skeletons.iter().take(split::FILES_MAX) {
        let name = skeleton.file.display();
        match split::companion(path, skeleton) {
            Some(place) => found.push(Binary::open(&place, options)?),
            None => notes.push(format!("{}: types in {name} are missing: no such file", file.name())),
        }
    }
    Ok(found)
}
