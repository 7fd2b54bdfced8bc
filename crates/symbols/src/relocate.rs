//! Relocations: the values that a compiler left to the linker, applied to a section's bytes.

use std::borrow::Cow;

use object::read::macho::{MachHeader, MachOFile};
use object::{
    Architecture, File, Object, ObjectKind, ObjectSection, ObjectSymbol, Relocation, RelocationFlags, RelocationKind,
    RelocationTarget, SectionIndex, SymbolIndex,
};

use crate::layout::Layout;

/// The effect of a relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Writes symbol + addend.
    Absolute,
    /// Writes symbol + addend - place.
    Relative,
    /// Writes the addend plus the address the program is loaded at, which is 0 here.
    Load,
    /// Adds symbol + addend to the stored value.
    Add,
    /// Subtracts symbol + addend from the stored value.
    Subtract,
}

/// Applies the relocations of a section. Those of an unknown kind, or outside the section, leave its bytes unchanged.
pub(crate) fn apply<'a>(
    file: &object::File<'a>,
    layout: &Layout,
    section: &object::Section<'a, '_>,
    data: Cow<'a, [u8]>,
) -> Cow<'a, [u8]> {
    let mut place = Place { file, layout, address: layout.address(section), is_dynamic: false, data };
    if file.kind() == ObjectKind::Relocatable {
        match file {
            File::MachO32(macho) => place.apply_macho(macho, section.index()),
            File::MachO64(macho) => place.apply_macho(macho, section.index()),
            _ => {}
        }
        let is_macho = matches!(file, File::MachO32(_) | File::MachO64(_));
        for (offset, relocation) in section.relocations().filter(|_| !is_macho) {
            place.apply(offset, &relocation);
        }
    } else if section.address() != 0 {
        // Debug sections, at address 0, are not loaded: nothing in them is relocated then.
        place.is_dynamic = true;
        for (address, relocation) in file.dynamic_relocations().into_iter().flatten() {
            if let Some(offset) = address.checked_sub(section.address()).filter(|&offset| offset < section.size()) {
                place.apply(offset, &relocation);
            }
        }
    }
    place.data
}

struct Place<'a, 'f> {
    file: &'f object::File<'a>,
    layout: &'f Layout,
    address: u64,
    is_dynamic: bool,
    data: Cow<'a, [u8]>,
}

impl Place<'_, '_> {
    fn apply(&mut self, offset: u64, relocation: &Relocation) {
        let Some((effect, bits)) = effect(self.file, relocation) else { return };
        let Some(present) = self.read(offset, bits) else { return };
        let mut addend = relocation.addend().cast_unsigned();
        if relocation.has_implicit_addend() && !matches!(effect, Effect::Add | Effect::Subtract) {
            addend = addend.wrapping_add(sign_extended(present, bits));
        }
        let Some(symbol) = self.target(relocation.target()) else { return };
        let sum = symbol.wrapping_add(addend);
        let value = match effect {
            Effect::Absolute => sum,
            Effect::Relative => sum.wrapping_sub(self.address.wrapping_add(offset)),
            Effect::Load => addend,
            Effect::Add => present.wrapping_add(sum),
            Effect::Subtract => present.wrapping_sub(sum),
        };
        self.write(offset, bits, value);
    }

    /// Mach-O: places contain addends; of targets and subtrahends, only named symbols remain to be added.
    fn apply_macho<Mach: MachHeader>(&mut self, file: &MachOFile<'_, Mach>, index: SectionIndex) {
        let Ok(section) = file.section_by_index(index) else { return };
        let Ok(relocations) = section.macho_relocations() else { return };
        // Of x86-64 and ARM64; other processors have another kind of that number, with the same place in a pair.
        let subtractor = if file.architecture() == Architecture::Aarch64 { 1 } else { 5 };
        let mut subtracted = 0_u64;
        for relocation in relocations {
            let info = relocation.info(file.endian());
            let symbol = if info.r_extern { self.symbol(SymbolIndex(info.r_symbolnum as usize)) } else { Some(0) };
            let symbol = symbol.unwrap_or(0);
            if info.r_type.0 == subtractor {
                subtracted = symbol;
                continue;
            }
            let (offset, bits) = (u64::from(info.r_address), 8 << info.r_length);
            let less = std::mem::take(&mut subtracted);
            if info.r_type.0 == 0
                && !info.r_pcrel
                && let Some(present) = self.read(offset, bits)
            {
                self.write(offset, bits, present.wrapping_add(symbol).wrapping_sub(less));
            }
        }
    }

    fn read(&self, offset: u64, bits: u8) -> Option<u64> {
        let start = usize::try_from(offset).ok()?;
        let bytes = self.data.get(start..start.checked_add(usize::from(bits / 8))?)?;
        let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        let is_little = self.file.is_little_endian();
        Some(if is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) })
    }

    fn write(&mut self, offset: u64, bits: u8, value: u64) {
        let length = usize::from(bits / 8);
        let Ok(start) = usize::try_from(offset) else { return };
        let Some(bytes) = self.data.to_mut().get_mut(start..start.saturating_add(length)) else { return };
        if self.file.is_little_endian() {
            bytes.copy_from_slice(&value.to_le_bytes()[..length]);
        } else {
            bytes.copy_from_slice(&value.to_be_bytes()[8 - length..]);
        }
    }

    fn target(&self, target: RelocationTarget) -> Option<u64> {
        match target {
            RelocationTarget::Symbol(index) => self.symbol(index),
            RelocationTarget::Section(index) => Some(self.layout.address(&self.file.section_by_index(index).ok()?)),
            RelocationTarget::Absolute => Some(0),
            _ => None,
        }
    }

    fn symbol(&self, index: SymbolIndex) -> Option<u64> {
        if self.is_dynamic {
            let table = self.file.dynamic_symbol_table()?;
            return Some(object::ObjectSymbolTable::symbol_by_index(&table, index).ok()?.address());
        }
        let symbol = self.file.symbol_by_index(index).ok()?;
        Some(symbol.address().wrapping_add(self.layout.base(symbol.section_index())))
    }
}

/// The effect of a relocation, and its width in bits; `None` for kinds that neither maps nor debug data use.
fn effect(file: &object::File<'_>, relocation: &Relocation) -> Option<(Effect, u8)> {
    let bits = relocation.size();
    let is_sized = matches!(bits, 8 | 16 | 32 | 64);
    match relocation.kind() {
        RelocationKind::Absolute if is_sized => Some((Effect::Absolute, bits)),
        RelocationKind::Relative if is_sized => Some((Effect::Relative, bits)),
        RelocationKind::Unknown => match relocation.flags() {
            RelocationFlags::Elf { r_type } => elf_effect(file, r_type.0),
            _ => None,
        },
        _ => None,
    }
}

/// Numbers of the processors' ELF supplements.
fn elf_effect(file: &object::File<'_>, r_type: u32) -> Option<(Effect, u8)> {
    let word = if file.is_64() { 64 } else { 32 };
    let load = match file.architecture() {
        Architecture::X86_64 | Architecture::X86_64_X32 | Architecture::I386 => 8,
        Architecture::Aarch64 => 1027,
        Architecture::Arm => 23,
        Architecture::PowerPc | Architecture::PowerPc64 => 22,
        Architecture::S390x => 12,
        Architecture::Riscv32 | Architecture::Riscv64 | Architecture::LoongArch64 => 3,
        Architecture::Hexagon => 35,
        _ => u32::MAX,
    };
    match (file.architecture(), r_type) {
        (_, kind) if kind == load => Some((Effect::Load, word)),
        (Architecture::X86_64, 24) | (Architecture::PowerPc64, 44) | (Architecture::S390x, 23) => {
            Some((Effect::Relative, 64))
        }
        // A 32-bit difference (248) that is then extended to 64 bits (18).
        (Architecture::Mips64, 0x12f8) => Some((Effect::Relative, 64)),
        (Architecture::Arm, 3)
        | (Architecture::Mips, 248)
        | (Architecture::Hexagon, 31)
        | (Architecture::PowerPc | Architecture::PowerPc64, 26)
        | (Architecture::Riscv32 | Architecture::Riscv64, 57) => Some((Effect::Relative, 32)),
        (Architecture::Riscv32 | Architecture::Riscv64, 35) => Some((Effect::Add, 32)),
        (Architecture::Riscv32 | Architecture::Riscv64, 36) => Some((Effect::Add, 64)),
        (Architecture::Riscv32 | Architecture::Riscv64, 39) => Some((Effect::Subtract, 32)),
        (Architecture::Riscv32 | Architecture::Riscv64, 40) => Some((Effect::Subtract, 64)),
        _ => None,
    }
}

fn sign_extended(value: u64, bits: u8) -> u64 {
    let unused = 64 - u32::from(bits);
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}
