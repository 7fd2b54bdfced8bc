//! Sections, symbols and layout of object files made for the purpose.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use anytrace_core::{Input, InputOptions, Kind as ErrorKind};
use anytrace_symbols::{Binary, ObjectFile};
use common::{binary, elf, section, symbol};
use object::write::{Object, Relocation};
use object::{
    Architecture, BinaryFormat, Endianness, RelocationEncoding, RelocationFlags, RelocationKind, SectionKind,
    SymbolKind as Kind,
};
use proptest::prelude::*;

#[test]
fn a_symbol_has_its_addresses_and_no_others() {
    let mut object = elf();
    let text = section(&mut object, ".text", SectionKind::Text, &[0; 256]);
    symbol(&mut object, text, "sized", 0x10, 8, Kind::Text);
    symbol(&mut object, text, "open", 0x40, 0, Kind::Text);
    symbol(&mut object, text, "last", 0x80, 1, Kind::Data);
    let binary = binary(&object);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    let name = |address| table.find(address).map(|symbol| std::str::from_utf8(symbol.name).unwrap());
    assert_eq!([0, 0xf, 0x10, 0x17, 0x18, 0x3f].map(name), [None, None, Some("sized"), Some("sized"), None, None]);
    assert_eq!([0x40, 0x7f, 0x80, 0x81, u64::MAX].map(name), [Some("open"), Some("open"), Some("last"), None, None]);
}

#[test]
fn of_several_names_the_largest_and_then_the_last_is_taken() {
    let mut object = elf();
    let text = section(&mut object, ".text", SectionKind::Text, &[0; 256]);
    for (name, size) in [("big", 8), ("first", 16), ("second", 16), ("none", 0)] {
        symbol(&mut object, text, name, 0x10, size, Kind::Text);
    }
    let binary = binary(&object);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    assert_eq!(table.find(0x10).unwrap().name, b"second");
    assert_eq!(table.symbols().len(), 1);
}

#[test]
fn sections_of_relocatable_files_do_not_overlap() {
    let mut object = elf();
    let data = section(&mut object, ".data", SectionKind::Data, &[0; 16]);
    let one = section(&mut object, ".text.one", SectionKind::Text, &[0; 33]);
    let two = object.add_section(Vec::new(), b".text.two".to_vec(), SectionKind::Text);
    object.append_section_data(two, &[0; 8], 32);
    symbol(&mut object, data, "value", 0, 4, Kind::Data);
    symbol(&mut object, one, "one", 0, 33, Kind::Text);
    symbol(&mut object, two, "two", 0, 8, Kind::Text);
    let binary = binary(&object);
    let object = ObjectFile::parse(&binary, None).unwrap();
    let found: Vec<_> = object.symbols().symbols().iter().map(|symbol| (symbol.address, symbol.name)).collect();
    assert_eq!(found, [(0, &b"one"[..]), (64, b"two"), (72, b"value")]);
    assert_eq!(object.section(".text.two").unwrap().unwrap().address, 64);
    assert!(object.section(".none").unwrap().is_none());
}

/// A word that refers to `target`, 4 bytes into its section, at offset 8 of `.data`.
fn referring(
    format: BinaryFormat,
    architecture: Architecture,
    endian: Endianness,
    kind: RelocationKind,
    bits: u8,
) -> Binary {
    let mut object = Object::new(format, architecture, endian);
    let text = section(&mut object, ".text", SectionKind::Text, &[0x90; 32]);
    let data = section(&mut object, ".data", SectionKind::Data, &[0; 24]);
    symbol(&mut object, text, "target", 4, 4, Kind::Text);
    let symbol = object.symbol_id(b"target").unwrap();
    let flags = RelocationFlags::Generic { kind, encoding: RelocationEncoding::Generic, size: bits };
    object.add_relocation(data, Relocation { offset: 8, symbol, addend: 3, flags }).unwrap();
    binary(&object)
}

#[test]
fn relocations_are_applied_in_every_format() {
    use BinaryFormat::{Coff, Elf, MachO};
    use Endianness::{Big, Little};
    for (format, architecture, endian, bits, name) in [
        (Elf, Architecture::X86_64, Little, 64, ".data"),
        (Elf, Architecture::I386, Little, 32, ".data"),
        (Elf, Architecture::Aarch64, Little, 64, ".data"),
        (Elf, Architecture::PowerPc64, Big, 64, ".data"),
        (Elf, Architecture::S390x, Big, 64, ".data"),
        (Elf, Architecture::Riscv64, Little, 64, ".data"),
        (Elf, Architecture::Arm, Little, 32, ".data"),
        (MachO, Architecture::X86_64, Little, 64, ".data"),
        (MachO, Architecture::Aarch64, Little, 64, ".data"),
        (Coff, Architecture::X86_64, Little, 64, ".data"),
    ] {
        let binary = referring(format, architecture, endian, RelocationKind::Absolute, bits);
        let object = ObjectFile::parse(&binary, None).unwrap();
        let section = object.section(name).unwrap().unwrap();
        let bytes: Vec<u8> = section.data[8..8 + usize::from(bits / 8)].to_vec();
        let value = if endian == Big { bytes[bytes.len() - 1] } else { bytes[0] };
        assert_eq!(value, 7, "{format:?} {architecture:?}: {bytes:?}");
        assert_eq!(bytes.iter().filter(|&&byte| byte == 0).count(), bytes.len() - 1, "{format:?} {architecture:?}");
        assert_eq!((object.is_64(), object.is_little_endian()), (bits == 64, endian == Little));
        assert_eq!(object.symbols().find(4).unwrap().name, b"target", "{format:?}");
    }
}

#[test]
fn relative_relocations_count_from_their_place() {
    let binary = referring(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little, RelocationKind::Relative, 32);
    let object = ObjectFile::parse(&binary, None).unwrap();
    let section = object.section(".data").unwrap().unwrap();
    let value = i32::from_le_bytes(*section.data[8..].first_chunk().unwrap());
    assert_eq!(i64::from(value), 4 + 3 - (i64::try_from(section.address).unwrap() + 8));
}

#[test]
fn a_packed_section_that_claims_too_much_is_refused() {
    // ELF64 header of a packed section: kind (1 is zlib), reserved, length, alignment.
    let packed = |length: u64, bytes: &[u8]| {
        let mut out = [1_u32.to_le_bytes(), [0; 4]].concat();
        out.extend(length.to_le_bytes());
        out.extend(1_u64.to_le_bytes());
        out.extend(bytes);
        let mut object = elf();
        let id = section(&mut object, ".debug_info", SectionKind::Debug, &out);
        object.section_mut(id).flags =
            object::SectionFlags::Elf { sh_type: object::elf::SHT_PROGBITS, sh_flags: object::elf::SHF_COMPRESSED };
        binary(&object)
    };
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut encoder, &[7; 10_000]).unwrap();
    let bytes = encoder.finish().unwrap();
    let good = packed(10_000, &bytes);
    let object = ObjectFile::parse(&good, None).unwrap();
    assert_eq!(object.section(".debug_info").unwrap().unwrap().data, vec![7; 10_000]);
    for (length, says) in [(u64::MAX, "claims"), (1 << 40, "claims"), (10_001, "other than declared")] {
        let bad = packed(length, &bytes);
        let error = ObjectFile::parse(&bad, None).unwrap().section(".debug_info").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(says), "{error}");
    }
    let bad = packed(10, b"no zlib");
    assert!(ObjectFile::parse(&bad, None).unwrap().section(".debug_info").is_err());
    assert!(ObjectFile::parse(&bad, None).unwrap().debug_data().is_err());
}

#[test]
fn other_files_are_not_taken_for_object_files() {
    for bytes in
        [&b""[..], b"text", &[0; 4096], b"\x7fELF", b"\xca\xfe\xba\xbe\0\0\0\0", b"\xca\xfe\xba\xbe\xff\xff\xff\xff"]
    {
        let binary = Binary::from_bytes("x", bytes.to_vec());
        let error = ObjectFile::parse(&binary, None).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{bytes:?}");
        assert!(error.to_string().starts_with("x: "), "{error}");
    }
    let wrong = binary(&elf());
    assert_eq!(ObjectFile::parse(&wrong, Some("arm64")).err().unwrap().kind(), ErrorKind::Usage);
    assert_eq!(ObjectFile::architectures(&wrong).unwrap(), ["x86_64"]);
}

#[test]
fn compressed_files_are_decompressed_and_damaged_ones_refused() {
    let plain = elf().write().unwrap();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, &plain).unwrap();
    let packed = encoder.finish().unwrap();
    let binary = Binary::from_input(Input::from_bytes("x.gz", packed.clone())).unwrap();
    assert!(binary.is_object());
    assert_eq!(binary.bytes(), plain);
    let cut = Binary::from_input(Input::from_bytes("x.gz", packed[..packed.len() - 5].to_vec()));
    assert!(cut.err().unwrap().to_string().contains("damaged"));
    assert!(Binary::open("no/such".as_ref(), InputOptions::default()).is_err());
}

/// The slow, obvious look-up: the nearest address below, the largest there, the last of those.
fn slow(symbols: &[(u64, u64, String)], address: u64) -> Option<&str> {
    let nearest = symbols.iter().map(|symbol| symbol.0).filter(|&start| start <= address).max()?;
    let largest = symbols.iter().filter(|symbol| symbol.0 == nearest).map(|symbol| symbol.1).max()?;
    let found = symbols.iter().rfind(|symbol| (symbol.0, symbol.1) == (nearest, largest))?;
    (largest == 0 || address < nearest + largest).then_some(found.2.as_str())
}

proptest! {
    #[test]
    fn lookups_are_those_of_the_slow_version(
        symbols in proptest::collection::vec((0_u64..64, prop_oneof![Just(0_u64), 0_u64..20]), 0..24)
    ) {
        let symbols: Vec<_> = symbols.into_iter().enumerate().map(|(n, (at, size))| (at, size, format!("s{n}"))).collect();
        let mut object = elf();
        let text = section(&mut object, ".text", SectionKind::Text, &[0; 128]);
        for (at, size, name) in &symbols {
            symbol(&mut object, text, name, *at, *size, Kind::Text);
        }
        let binary = binary(&object);
        let table = ObjectFile::parse(&binary, None).unwrap().symbols();
        for address in 0..100 {
            let found = table.find(address).map(|symbol| std::str::from_utf8(symbol.name).unwrap());
            prop_assert_eq!(found, slow(&symbols, address), "{}", address);
        }
    }

    #[test]
    fn damaged_files_are_answered(at in 0_usize..2000, value: u8, cut in 0_usize..2000) {
        let made = referring(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little, RelocationKind::Absolute, 64);
        let mut bytes = made.bytes().to_vec();
        let length = bytes.len();
        bytes[at % length] = value;
        bytes.truncate(length - cut % 64);
        let binary = Binary::from_bytes("x", bytes);
        if let Ok(object) = ObjectFile::parse(&binary, None) {
            let _ = (object.section(".data"), object.symbols().find(4), object.debug_data().map(|data| data.is_empty()));
        }
    }
}
