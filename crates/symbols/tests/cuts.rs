//! Object files cut at every offset, moved, and read in parts: what is found is always what the entire file has, or a
//! refusal.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;

use anytrace_core::Kind as ErrorKind;
use anytrace_core::span::Mangling;
use anytrace_symbols::{Binary, ObjectFile, demangle};
use common::{ABBREVIATIONS, debug, elf, ranged, section, symbol, unit};
use object::write::Object;
use object::{Architecture, BinaryFormat, Endianness, SectionKind, SymbolKind as Kind};

const FORMATS: [(BinaryFormat, Architecture, Endianness); 6] = [
    (BinaryFormat::Elf, Architecture::X86_64, Endianness::Little),
    (BinaryFormat::Elf, Architecture::I386, Endianness::Little),
    (BinaryFormat::Elf, Architecture::PowerPc64, Endianness::Big),
    (BinaryFormat::Elf, Architecture::Mips, Endianness::Big),
    (BinaryFormat::MachO, Architecture::Aarch64, Endianness::Little),
    (BinaryFormat::Coff, Architecture::X86_64, Endianness::Little),
];

/// A file with three functions, the same in all formats.
fn made(format: BinaryFormat, architecture: Architecture, endian: Endianness) -> Vec<u8> {
    let mut object = Object::new(format, architecture, endian);
    let text = section(&mut object, ".text", SectionKind::Text, &(0..96).collect::<Vec<u8>>());
    section(&mut object, ".data", SectionKind::Data, b"some bytes of data");
    for (name, at) in [("alpha", 0), ("beta", 32), ("gamma", 64)] {
        symbol(&mut object, text, name, at, 32, Kind::Text);
    }
    object.write().unwrap()
}

fn names(bytes: &[u8]) -> Option<BTreeSet<(u64, Vec<u8>)>> {
    let binary = Binary::from_bytes("made", bytes.to_vec());
    let object = ObjectFile::parse(&binary, None).ok()?;
    Some(object.symbols().symbols().iter().map(|symbol| (symbol.address, symbol.name.to_vec())).collect())
}

#[test]
fn a_file_cut_anywhere_is_refused_or_has_fewer_symbols_of_the_same_names() {
    for (format, architecture, endian) in FORMATS {
        let bytes = made(format, architecture, endian);
        let all = names(&bytes).unwrap();
        assert_eq!(all.len(), 3, "{format:?}");
        let mut refused = 0;
        for cut in 0..bytes.len() {
            match names(&bytes[..cut]) {
                None => refused += 1,
                Some(some) => {
                    for (_, name) in &some {
                        let is_known = all.iter().any(|(_, known)| known.starts_with(name) || name.starts_with(known));
                        assert!(is_known, "{format:?} cut at {cut}: {:?}", String::from_utf8_lossy(name));
                    }
                }
            }
        }
        assert!(refused > 16, "{format:?}: files without a complete header are no object files");
    }
}

#[test]
fn a_refusal_names_the_file() {
    for (format, architecture, endian) in FORMATS {
        let bytes = made(format, architecture, endian);
        for cut in [0, 1, 3, 7, 15] {
            let binary = Binary::from_bytes("dir/cut.o", bytes[..cut].to_vec());
            let error = ObjectFile::parse(&binary, None).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{format:?} {cut}");
            assert!(error.to_string().starts_with("dir/cut.o: "), "{error}");
        }
    }
}

#[test]
fn all_formats_have_the_same_sections_and_symbols() {
    let mut found = Vec::new();
    for (format, architecture, endian) in FORMATS {
        let bytes = made(format, architecture, endian);
        let binary = Binary::from_bytes("made", bytes);
        let object = ObjectFile::parse(&binary, None).unwrap();
        let text = object.section(if format == BinaryFormat::MachO { "__text" } else { ".text" }).unwrap();
        let text = text.or_else(|| object.section(".text").unwrap()).unwrap();
        assert_eq!(text.data.as_ref(), (0..96).collect::<Vec<u8>>(), "{format:?} {architecture:?}");
        let table = object.symbols();
        let at: Vec<_> = (0..96).step_by(16).map(|at| table.find(text.address + at).unwrap().name.to_vec()).collect();
        let bare = |name: &Vec<u8>| String::from_utf8_lossy(name).trim_start_matches('_').to_owned();
        found.push(at.iter().map(bare).collect::<Vec<_>>());
    }
    assert_eq!(found[0], ["alpha", "alpha", "beta", "beta", "gamma", "gamma"]);
    assert!(found.iter().all(|one| *one == found[0]), "{found:?}");
}

#[test]
fn every_address_of_a_function_has_its_name_and_no_other_address_has() {
    let mut object = elf();
    let text = section(&mut object, ".text", SectionKind::Text, &[0x90; 4096]);
    // Lengths and gaps that are neither equal nor multiples of each other.
    let mut places = Vec::new();
    let (mut at, mut step) = (5_u64, 1_u64);
    while at + step < 4000 {
        places.push((at, step));
        symbol(&mut object, text, &format!("f{}", places.len()), at, step, Kind::Text);
        at += step + step % 3;
        step = step * 7 % 61 + 1;
    }
    let binary = common::binary(&object);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    for address in 0..4096 {
        let expected = places.iter().position(|(at, bytes)| (*at..at + bytes).contains(&address));
        let found = table.find(address).map(|symbol| String::from_utf8_lossy(symbol.name).into_owned());
        assert_eq!(found, expected.map(|number| format!("f{}", number + 1)), "{address}");
    }
}

/// A unit with functions one after the other, each with one inlined in its middle.
fn functions(count: u64) -> Vec<u8> {
    let mut entries = ranged(1, 0, u32::try_from(count * 16).unwrap());
    for number in 0..count {
        entries.extend(ranged(2, number * 16, 16));
        entries.extend(format!("f{number}\0").bytes());
        entries.extend(ranged(3, number * 16 + 4, 4));
        entries.extend([0, 0]);
    }
    entries.push(0);
    unit(&entries)
}

#[test]
fn frames_at_each_address_are_the_entries_around_it() {
    let binary = debug(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &functions(4))]);
    let object = ObjectFile::parse(&binary, None).unwrap();
    let data = object.debug_data().unwrap();
    let lines = data.lines().unwrap();
    for address in 0..64 {
        let frames = lines.frames(address);
        let is_inlined = (4..8).contains(&(address % 16));
        assert_eq!(frames.len(), 1 + usize::from(is_inlined), "{address}");
        assert_eq!(frames.last().unwrap().name, Some(format!("f{}", address / 16)), "{address}");
    }
    assert!((64..80).all(|address| lines.frames(address).is_empty()));
}

#[test]
fn debug_data_cut_at_every_offset_are_read_as_far_as_they_go() {
    let entire = functions(3);
    let expected: Vec<Option<String>> = (0..3).map(|number| Some(format!("f{number}"))).collect();
    for cut in 0..=entire.len() {
        let binary = debug(&[(".debug_abbrev", ABBREVIATIONS), (".debug_info", &entire[..cut])]);
        let object = ObjectFile::parse(&binary, None).unwrap();
        let Ok(data) = object.debug_data() else { continue };
        let Ok(lines) = data.lines() else { continue };
        let found: Vec<Option<String>> =
            (0..3).map(|number| lines.frames(number * 16).pop().and_then(|frame| frame.name)).collect();
        if cut == entire.len() {
            assert_eq!(found, expected);
        }
        for (found, expected) in found.iter().zip(&expected) {
            assert!(found.is_none() || found == expected, "cut at {cut}: {found:?}");
        }
    }
    for cut in 0..ABBREVIATIONS.len() {
        let binary = debug(&[(".debug_abbrev", &ABBREVIATIONS[..cut]), (".debug_info", &entire)]);
        let object = ObjectFile::parse(&binary, None).unwrap();
        if let Ok(data) = object.debug_data()
            && let Ok(lines) = data.lines()
        {
            let name = lines.frames(0).pop().and_then(|frame| frame.name);
            assert!(name.is_none() || name.as_deref() == Some("f0"), "cut at {cut}");
        }
    }
}

fn mangled() -> Vec<String> {
    let text = include_str!("../corpus/mangled.txt");
    text.lines().map(str::to_owned).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[test]
fn names_cut_at_every_offset_are_returned_or_demangled_and_never_lost() {
    let names = mangled();
    assert!(names.len() > 20);
    for name in names.iter().take(400) {
        for cut in (0..=name.len()).filter(|cut| name.is_char_boundary(*cut)) {
            let part = &name[..cut];
            let shown = demangle(part, Mangling::Demangled);
            assert_eq!(shown.is_empty(), part.is_empty(), "{part:?}");
            assert_eq!(demangle(part, Mangling::AsIs), part);
        }
    }
}

#[test]
fn a_demangled_name_is_not_demangled_again() {
    for name in mangled() {
        let once = demangle(&name, Mangling::Demangled).into_owned();
        if once != name && !once.starts_with('_') {
            assert_eq!(demangle(&once, Mangling::Demangled), once, "{name}");
        }
    }
}

/// Itanium names built from their grammar, with what they mean.
fn built() -> Vec<(String, String)> {
    let types = [
        ("v", ""),
        ("i", "int"),
        ("j", "unsigned int"),
        ("c", "char"),
        ("d", "double"),
        ("b", "bool"),
        ("x", "long long"),
    ];
    let wrap = |code: &str, name: &str| {
        vec![
            (code.to_owned(), name.to_owned()),
            (format!("P{code}"), format!("{name}*")),
            (format!("R{code}"), format!("{name}&")),
            (format!("O{code}"), format!("{name}&&")),
            (format!("PK{code}"), format!("{name} const*")),
            (format!("PP{code}"), format!("{name}**")),
        ]
    };
    let mut all = Vec::new();
    for (code, name) in types {
        let arguments = if code == "v" { vec![("v".to_owned(), String::new())] } else { wrap(code, name) };
        for (code, argument) in arguments {
            for names in [vec!["f"], vec!["ns", "f"], vec!["a", "bc", "def"]] {
                let parts: String = names.iter().map(|name| format!("{}{name}", name.len())).collect();
                let path = if names.len() == 1 { parts } else { format!("N{parts}E") };
                all.push((format!("_Z{path}{code}"), format!("{}({argument})", names.join("::"))));
            }
        }
    }
    all
}

#[test]
fn names_built_from_the_grammar_mean_what_they_were_built_from() {
    let built = built();
    assert!(built.len() > 100);
    for (name, meaning) in &built {
        assert_eq!(demangle(name, Mangling::Demangled), *meaning, "{name}");
        // Mach-O puts one more underscore before each name.
        assert_eq!(demangle(&format!("_{name}"), Mangling::Demangled), *meaning, "_{name}");
    }
    let distinct: BTreeSet<_> = built.iter().map(|(_, meaning)| meaning).collect();
    assert_eq!(distinct.len(), built.len(), "different names stay different");
}
