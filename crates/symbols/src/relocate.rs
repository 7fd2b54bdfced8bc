//! Relocations: what the linker left for later, applied to a section's bytes.

use std::borrow::Cow;

use object::{
    Architecture, BinaryFormat, Object, ObjectKind, ObjectSection, ObjectSymbol, Relocation, RelocationFlags,
    RelocationKind, RelocationTarget, SymbolIndex,
};

use crate::layout::Layout;

/// What a relocation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Writes symbol + addend.
    Absolute,
    /// Writes symbol + addend - place.
    Relative,
    /// Writes the addend plus the address the program is loaded at, which is 0 here.
    Load,
    /// Adds symbol + addend to what stands there.
    Add,
    /// Subtracts symbol + addend from what stands there.
    Subtract,
}

/// Applies what belongs to a section. What is of an unknown kind, or outside the section, leaves its bytes alone.
pub(crate) fn apply<'a>(
    file: &object::File<'a>,
    layout: &Layout,
    section: &object::Section<'a, '_>,
    data: Cow<'a, [u8]>,
) -> Cow<'a, [u8]> {
    let mut place = Place { file, layout, address: layout.address(section), is_dynamic: false, data };
    if file.kind() == ObjectKind::Relocatable {
        for (offset, relocation) in section.relocations() {
            place.apply(offset, &relocation);
        }
    } else if section.address() != 0 {
        // Debug sections, at address 0, are not loaded: nothing of them is relocated then.
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
        let Ok(start) = usize::try_from(offset) else { return };
        let length = usize::from(bits / 8);
        let Some(range) = start.checked_add(length).map(|end| start..end) else { return };
        let Some(present) = self.data.get(range.clone()) else { return };
        let is_little = self.file.is_little_endian();
        let present = number(present, is_little);
        let mut addend = relocation.addend().cast_unsigned();
        if relocation.has_implicit_addend() && !matches!(effect, Effect::Add | Effect::Subtract) {
            addend = addend.wrapping_add(sign_extended(present, bits));
        }
        let Some(symbol) = self.target(relocation.target()) else { return };
        let sum = symbol.wrapping_add(addend);
        let subtracted = relocation.subtractor().and_then(|index| self.symbol(index)).unwrap_or(0);
        let value = match effect {
            Effect::Absolute => sum.wrapping_sub(subtracted),
            Effect::Relative => sum.wrapping_sub(self.address.wrapping_add(offset)),
            Effect::Load => addend,
            Effect::Add => present.wrapping_add(sum),
            Effect::Subtract => present.wrapping_sub(sum),
        };
        let Some(bytes) = self.data.to_mut().get_mut(range) else { return };
        if is_little {
            bytes.copy_from_slice(&value.to_le_bytes()[..length]);
        } else {
            bytes.copy_from_slice(&value.to_be_bytes()[8 - length..]);
        }
    }

    fn target(&self, target: RelocationTarget) -> Option<u64> {
        match target {
            RelocationTarget::Symbol(index) => self.symbol(index),
            // Mach-O: the place holds the target's address already.
            RelocationTarget::Section(_) if self.file.format() == BinaryFormat::MachO => Some(0),
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

/// What a relocation does, and to how many bits; `None` for kinds that neither maps nor debug data use.
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
        (Architecture::Arm, 3) => Some((Effect::Relative, 32)),
        (Architecture::Riscv32 | Architecture::Riscv64, 35) => Some((Effect::Add, 32)),
        (Architecture::Riscv32 | Architecture::Riscv64, 36) => Some((Effect::Add, 64)),
        (Architecture::Riscv32 | Architecture::Riscv64, 39) => Some((Effect::Subtract, 32)),
        (Architecture::Riscv32 | Architecture::Riscv64, 40) => Some((Effect::Subtract, 64)),
        _ => None,
    }
}

fn number(bytes: &[u8], is_little: bool) -> u64 {
    let add = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    if is_little { bytes.iter().rev().fold(0, add) } else { bytes.iter().fold(0, add) }
}

fn sign_extended(value: u64, bits: u8) -> u64 {
    let unused = 64 - u32::from(bits);
    ((value << unused).cast_signed() >> unused).cast_unsigned()
}
