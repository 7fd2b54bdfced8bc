//! DWARF: from addresses to functions, files and lines.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use addr2line::{Context, LookupContinuation, LookupResult};
use anytrace_core::Error;
use anytrace_core::span::Location;
use gimli::{DwarfSections, EndianSlice, RunTimeEndian, SectionId};
use object::Object;

use crate::object_file::{failed, unpacked};
use crate::relocate;
use crate::split::{self, Skeleton, Split, SplitFile};
use crate::{Binary, ObjectFile};

type Bytes<'a> = EndianSlice<'a, RunTimeEndian>;
type Dwarf<'a> = gimli::Dwarf<Bytes<'a>>;

/// Deepest nesting of blocks and inlined functions. The library walks it by recursion.
const DEPTH_MAX: isize = 1000;

/// Most ranges passed in look-ups, all together: some seconds of work. Honest files have ranges that hardly overlap, and
/// need a few for each look-up.
const STEPS_MAX: u64 = 1 << 33;

/// The debug sections of an object file.
pub struct DebugData<'a> {
    name: String,
    endian: RunTimeEndian,
    sections: DwarfSections<Cow<'a, [u8]>>,
    split: Vec<SplitFile<'a>>,
    info_bytes: usize,
    line_bytes: usize,
    range_bytes: usize,
}

impl<'a> ObjectFile<'a> {
    /// Source lines and inlining, where the file has DWARF debug data.
    ///
    /// # Errors
    /// As [`Self::section`].
    pub fn debug_data(&self) -> Result<DebugData<'a>, Error> {
        DebugData::new(self)
    }
}

impl<'a> DebugData<'a> {
    fn new(object: &ObjectFile<'a>) -> Result<Self, Error> {
        let (mut info_bytes, mut line_bytes, mut range_bytes) = (0, 0, 0);
        let load = |id: SectionId| -> Result<Cow<'a, [u8]>, Error> {
            if !is_used(id) {
                return Ok(Cow::Borrowed(&[]));
            }
            let Some(section) = object.file.section_by_name(id.name()) else { return Ok(Cow::Borrowed(&[])) };
            let data = unpacked(&section).map_err(|what| failed(object.name, id.name(), what))?;
            let data = relocate::apply(&object.file, &object.layout, &section, data);
            match id {
                SectionId::DebugInfo => info_bytes = data.len(),
                SectionId::DebugLine => line_bytes = data.len(),
                SectionId::DebugRanges | SectionId::DebugRngLists => range_bytes += data.len(),
                _ => {}
            }
            Ok(data)
        };
        let endian = if object.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
        let sections = DwarfSections::load(load)?;
        let (name, split) = (object.name.to_owned(), Vec::new());
        Ok(Self { name, endian, sections, split, info_bytes, line_bytes, range_bytes })
    }

    /// The units whose debug data are in other files.
    pub(crate) fn skeletons(&self) -> Vec<Skeleton> {
        let mut dwarf = self.dwarf();
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        split::skeletons(&dwarf)
    }

    /// Adds those files. What is not there, and what cannot be read, is noted.
    pub(crate) fn add_split(&mut self, files: &'a [Binary], skeletons: &[Skeleton], notes: &mut Vec<String>) {
        let mut bytes_left = split::UNPACKED_BYTES_MAX;
        for file in files {
            match ObjectFile::parse(file, None).and_then(|object| SplitFile::load(&object)) {
                Ok(part) if part.unpacked_bytes <= bytes_left => {
                    bytes_left -= part.unpacked_bytes;
                    self.split.push(part);
                }
                Ok(_) => {
                    notes.push(format!("{}: split debug data are too long when decompressed", file.name()));
                    break;
                }
                Err(error) => notes.push(error.to_string()),
            }
        }
        let split = Split::new(&self.split);
        let is_missing = |skeleton: &&Skeleton| !skeleton.id.is_some_and(|id| split.has(id));
        let missing: Vec<&Skeleton> = skeletons.iter().filter(is_missing).collect();
        if let Some(first) = missing.first() {
            let (name, first) = (&self.name, first.file.display());
            notes.push(format!(
                "{name}: debug data of {} of {} units are in other files, which are missing or of another build, such as \
                 {first}: inlined functions there are not known",
                missing.len(),
                skeletons.len()
            ));
        }
    }

    fn dwarf(&self) -> Dwarf<'_> {
        self.sections.borrow(|bytes| EndianSlice::new(bytes, self.endian))
    }

    /// True when there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.info_bytes == 0
    }

    /// Reads the list of units, for look-ups.
    ///
    /// # Errors
    /// [`anytrace_core::Kind::Unsupported`] when it is damaged, or when units share their contents in a way that would
    /// take more work than the file is long.
    pub fn lines(&self) -> Result<Lines<'_>, Error> {
        let mut first = self.dwarf();
        first.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::All);
        let ranges = self.weigh(&first)?;
        let context = Context::from_dwarf(first).map_err(|what| self.failed(what))?;
        let mut dwarf = self.dwarf();
        dwarf.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let lookups_left = Cell::new(STEPS_MAX / longest_search(ranges));
        let split = Split::new(&self.split);
        Ok(Lines { context, dwarf, split, is_shallow: OnceCell::new(), lookups_left })
    }

    fn failed(&self, what: impl std::fmt::Display) -> Error {
        failed(&self.name, "debug data", what)
    }

    /// Counts what the library would read: address ranges of all units at once, their line programs when they are asked
    /// for. Valid units with code share neither, so both together are smaller than the bytes that encode them.
    fn weigh(&self, dwarf: &Dwarf<'_>) -> Result<Vec<gimli::Range>, Error> {
        let mut found = Vec::new();
        let mut ranges_left = self.range_bytes + self.info_bytes;
        let mut lines_left = self.line_bytes;
        let mut headers = dwarf.units();
        while let Ok(Some(header)) = headers.next() {
            // The library skips whatever cannot be read here, too.
            let Ok(unit) = dwarf.unit(header) else { continue };
            let Ok(mut ranges) = dwarf.unit_ranges(&unit) else { continue };
            let mut has_code = false;
            while let Ok(Some(range)) = ranges.next() {
                found.push(range);
                has_code = true;
                ranges_left = ranges_left.checked_sub(1).ok_or_else(|| self.failed("units share their ranges"))?;
            }
            let program = unit.line_program.as_ref().filter(|_| has_code);
            let length = program.map_or(0, |program| program.header().raw_program_buf().len());
            lines_left = lines_left.checked_sub(length).ok_or_else(|| self.failed("units share their lines"))?;
        }
        Ok(found)
    }
}

/// How many ranges the library may have to skip for one address: it searches backwards from the address, in order of
/// beginnings, as far as any range extends. At least 1.
fn longest_search(mut ranges: Vec<gimli::Range>) -> u64 {
    ranges.sort_unstable_by_key(|range| range.begin);
    let (mut longest, mut reached) = (1, Vec::with_capacity(ranges.len()));
    let mut end = 0;
    for range in &ranges {
        end = range.end.max(end);
        reached.push(end);
        let first = reached.partition_point(|&end| end <= range.begin);
        longest = longest.max(reached.len() - first);
    }
    longest as u64
}

/// True for the sections that look-ups need.
fn is_used(id: SectionId) -> bool {
    use SectionId as S;
    matches!(
        id,
        S::DebugAbbrev
            | S::DebugAddr
            | S::DebugAranges
            | S::DebugInfo
            | S::DebugLine
            | S::DebugLineStr
            | S::DebugRanges
            | S::DebugRngLists
            | S::DebugStr
            | S::DebugStrOffsets
    )
}

/// One function at an address: the one that has the instruction, or one it was inlined into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The linker's name, or the plain one where debug data have no other.
    pub name: Option<String>,
    /// The place in that function: of the instruction, or of the call that was inlined.
    pub location: Option<Location>,
}

/// Looks addresses up in debug data.
pub struct Lines<'a> {
    context: Context<Bytes<'a>>,
    dwarf: Dwarf<'a>,
    split: Split<'a>,
    /// True when the tree of every unit may be walked; determined when first asked for.
    is_shallow: OnceCell<bool>,
    /// Look-ups that may still be made.
    lookups_left: Cell<u64>,
}

impl Lines<'_> {
    /// The file and line of the instruction at an address. `None` also when debug data are made so that look-ups take
    /// more work than can be spent on them.
    pub fn location(&self, address: u64) -> Option<Location> {
        if !self.may_look_up(address) {
            return None;
        }
        self.context.find_location(address).ok().flatten().and_then(|found| location(&found))
    }

    /// The column of the instruction at an address, from 1; 0 where unknown, as debug data have it.
    pub fn column(&self, address: u64) -> u32 {
        if !self.may_look_up(address) {
            return 0;
        }
        self.context.find_location(address).ok().flatten().and_then(|found| found.column).unwrap_or(0)
    }

    /// The functions at an address: first the innermost inlined one, last the one with code of its own. Empty where
    /// debug data are damaged or nested more than 1,000 deep.
    pub fn frames(&self, address: u64) -> Vec<Frame> {
        if !self.may_look_up(address) || !*self.is_shallow.get_or_init(|| is_shallow(&self.dwarf)) {
            return Vec::new();
        }
        let mut search = self.context.find_frames(address);
        let found = loop {
            match search {
                LookupResult::Output(found) => break found,
                LookupResult::Load { load, continuation } => {
                    let unit = self.split.take(&load).filter(is_shallow).map(Arc::new);
                    search = continuation.resume(unit);
                }
            }
        };
        let Ok(mut found) = found else { return Vec::new() };
        let mut frames = Vec::new();
        while let Ok(Some(frame)) = found.next() {
            let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
            let location = frame.location.as_ref().and_then(location);
            frames.push(Frame { name: name.map(Cow::into_owned), location });
        }
        frames
    }

    fn may_look_up(&self, address: u64) -> bool {
        let left = self.lookups_left.get();
        self.lookups_left.set(left.saturating_sub(1));
        // The library looks for a range that ends after the address.
        left > 0 && address != u64::MAX
    }
}

fn location(found: &addr2line::Location<'_>) -> Option<Location> {
    let file = found.file?.to_owned();
    Some(Location { file, line: found.line.unwrap_or(0) })
}

/// True when no unit is nested deeper than may be walked by recursion.
fn is_shallow(dwarf: &Dwarf<'_>) -> bool {
    let mut headers = dwarf.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(unit) = dwarf.unit(header) else { continue };
        let Ok(mut entries) = unit.entries_raw(None) else { continue };
        while !entries.is_empty() {
            if entries.next_depth() > DEPTH_MAX {
                return false;
            }
            let Ok(abbreviation) = entries.read_abbreviation() else { break };
            let skipped = abbreviation.map_or(Ok(()), |found| entries.skip_attributes(found.attributes()));
            if skipped.is_err() {
                break;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_over_all_others_makes_searches_long() {
        let range = |begin, end| gimli::Range { begin, end };
        let apart: Vec<_> = (0..100).map(|n| range(n * 10, n * 10 + 10)).collect();
        assert_eq!((longest_search(Vec::new()), longest_search(apart.clone())), (1, 1));
        let mut covered = apart;
        covered.push(range(0, 2000));
        assert!(longest_search(covered) >= 100);
    }
}
