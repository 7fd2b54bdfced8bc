//! Addresses of sections. Linked files have them; in relocatable ones all sections begin at 0 and are laid out here.

use object::{BinaryFormat, Object, ObjectKind, ObjectSection, SectionIndex, SectionKind};

/// Where each section begins.
#[derive(Debug)]
pub(crate) struct Layout {
    /// Added to addresses in a section, by its index; empty where addresses are already final.
    bases: Vec<u64>,
}

impl Layout {
    /// Code comes first and from 0, so that a file with one code section keeps its addresses, then data. Debug sections
    /// are not loaded: addresses in each of them count from 0.
    pub(crate) fn new(file: &object::File<'_>) -> Result<Self, &'static str> {
        let is_laid_out = file.kind() != ObjectKind::Relocatable || file.format() == BinaryFormat::MachO;
        if is_laid_out {
            return Ok(Self { bases: Vec::new() });
        }
        let mut bases = Vec::new();
        let mut next = 0_u64;
        for is_code in [true, false] {
            for section in file.sections() {
                if !is_loaded(section.kind()) || (section.kind() == SectionKind::Text) != is_code {
                    continue;
                }
                let start = next.checked_next_multiple_of(section.align().max(1)).ok_or("addresses overflow")?;
                next = start.checked_add(section.size()).ok_or("addresses overflow")?;
                let index = section.index().0;
                if bases.len() <= index {
                    bases.resize(index + 1, 0);
                }
                bases[index] = start;
            }
        }
        Ok(Self { bases })
    }

    /// Address of a section's first byte.
    pub(crate) fn address(&self, section: &object::Section<'_, '_>) -> u64 {
        section.address().wrapping_add(self.base(Some(section.index())))
    }

    /// The value to add to an address in a section of the file.
    pub(crate) fn base(&self, section: Option<SectionIndex>) -> u64 {
        section.and_then(|index| self.bases.get(index.0).copied()).unwrap_or(0)
    }
}

fn is_loaded(kind: SectionKind) -> bool {
    matches!(
        kind,
        SectionKind::Text
            | SectionKind::Data
            | SectionKind::ReadOnlyData
            | SectionKind::ReadOnlyDataWithRel
            | SectionKind::ReadOnlyString
            | SectionKind::UninitializedData
    )
}
