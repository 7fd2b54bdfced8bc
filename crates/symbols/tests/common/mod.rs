//! Object files made for tests by the library's writer, and DWARF by hand.

#![allow(dead_code, clippy::unwrap_used, unreachable_pub, reason = "each test uses a part; a test fails by panicking")]

use anytrace_symbols::Binary;
use object::write::{Object, SectionId, Symbol, SymbolSection};
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolFlags, SymbolKind as Kind, SymbolScope};

/// An empty relocatable file.
pub fn elf() -> Object<'static> {
    Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little)
}

pub fn section(object: &mut Object<'_>, name: &str, kind: SectionKind, bytes: &[u8]) -> SectionId {
    let id = object.add_section(Vec::new(), name.as_bytes().to_vec(), kind);
    object.append_section_data(id, bytes, 1);
    id
}

/// A symbol of a kind in a section: address in it and length.
pub fn symbol(object: &mut Object<'_>, section: SectionId, name: &str, value: u64, size: u64, kind: Kind) {
    object.add_symbol(Symbol {
        name: name.as_bytes().to_vec(),
        value,
        size,
        kind,
        scope: SymbolScope::Linkage,
        weak: false,
        section: SymbolSection::Section(section),
        flags: SymbolFlags::None,
    });
}

pub fn binary(object: &Object<'_>) -> Binary {
    Binary::from_bytes("made", object.write().unwrap())
}

/// Abbreviations: 1 a unit, 2 a function, 3 an inlined function, all with an address and a length and with children; 4
/// a unit with a list of ranges; 5 an inlined function without attributes.
pub const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    2, 0x2e, 1, 0x11, 0x01, 0x12, 0x06, 0x03, 0x08, 0, 0, //
    3, 0x1d, 1, 0x11, 0x01, 0x12, 0x06, 0, 0, //
    4, 0x11, 0, 0x55, 0x17, 0, 0, //
    5, 0x1d, 1, 0, 0, //
    0,
];

/// A unit of DWARF 4 around entries.
pub fn unit(entries: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let length = u32::try_from(entries.len()).unwrap() + 7;
    out.extend(length.to_le_bytes());
    out.extend(4_u16.to_le_bytes());
    out.extend(0_u32.to_le_bytes());
    out.push(8);
    out.extend(entries);
    out
}

/// An entry with an address and a length.
pub fn ranged(abbreviation: u8, address: u64, length: u32) -> Vec<u8> {
    let mut out = vec![abbreviation];
    out.extend(address.to_le_bytes());
    out.extend(length.to_le_bytes());
    out
}

/// A file of debug sections.
pub fn debug(sections: &[(&str, &[u8])]) -> Binary {
    let mut object = elf();
    section(&mut object, ".text", SectionKind::Text, &[0x90; 64]);
    for (name, bytes) in sections {
        section(&mut object, name, SectionKind::Debug, bytes);
    }
    binary(&object)
}
