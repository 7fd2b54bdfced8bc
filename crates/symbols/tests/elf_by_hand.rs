//! Symbols and sections of ELF files written byte by byte after the specification, in every width and byte order.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod elf;

use anytrace_symbols::{Binary, ObjectFile, SymbolTable};
use elf::*;

/// Code at 0x1000 (section 1) and data at 0x2000 (section 2).
fn loaded() -> Vec<Part> {
    let part = |name, flags, address, byte| {
        let bytes = vec![byte; 0x100];
        Part { name, kind: 1, flags, address, bytes, link: 0, info: 1, entry: 0 }
    };
    vec![part(".text", 6, 0x1000, 0x90), part(".data", 3, 0x2000, 7)]
}

/// A linked program with these symbols in `.symtab` (2) or `.dynsym` (11).
fn program(form: Form, tables: &[(u32, &[Symbol])]) -> Binary {
    let mut parts = loaded();
    for (kind, symbols) in tables {
        let (table, names) = Writer::symbols(form, symbols);
        let (name, strings) = if *kind == 2 { (".symtab", ".strtab") } else { (".dynsym", ".dynstr") };
        let link = parts.len() as u32 + 2;
        let entry = if form.is_64 { 24 } else { 16 };
        parts.push(Part { name, kind: *kind, flags: 0, address: 0, bytes: table, link, info: 1, entry });
        parts.push(Part { name: strings, kind: 3, flags: 0, address: 0, bytes: names, link: 0, info: 1, entry: 0 });
    }
    Binary::from_bytes("made", Writer::file(form, 2, parts))
}

fn rows(table: &SymbolTable<'_>) -> Vec<(u64, u64, String)> {
    let row = |symbol: &anytrace_symbols::Symbol<'_>| {
        (symbol.address, symbol.size_bytes, String::from_utf8_lossy(symbol.name).into_owned())
    };
    table.symbols().iter().map(row).collect()
}

fn row(address: u64, size: u64, name: &str) -> (u64, u64, String) {
    (address, size, name.to_owned())
}

#[test]
fn every_width_and_byte_order_has_the_same_symbols_and_sections() {
    let symbols = [
        symbol("value", 0x2008, 4, OBJECT, 2),
        symbol("main", 0x1010, 0x20, FUNC, 1),
        symbol("label", 0x1080, 0, NOTYPE, 1),
    ];
    for form in FORMS {
        let binary = program(form, &[(2, &symbols)]);
        let object = ObjectFile::parse(&binary, None).unwrap();
        assert_eq!((object.is_64(), object.is_little_endian()), (form.is_64, !form.is_big));
        let table = object.symbols();
        assert_eq!(rows(&table), [row(0x1010, 0x20, "main"), row(0x1080, 0, "label"), row(0x2008, 4, "value")]);
        let text = object.section(".text").unwrap().unwrap();
        assert_eq!((text.address, &*text.data), (0x1000, &[0x90; 0x100][..]));
        assert_eq!(object.section(".data").unwrap().unwrap().address, 0x2000);
        assert!(object.section(".bss").unwrap().is_none());
        assert_eq!(object.sections(".text").unwrap().len(), 1);
    }
}

#[test]
fn only_code_and_data_have_symbols() {
    let symbols = [
        symbol("function", 0x1000, 8, FUNC, 1),
        symbol("object", 0x2000, 8, OBJECT, 2),
        symbol("label", 0x1010, 8, NOTYPE, 1),
        symbol("section", 0x1020, 8, SECTION, 1),
        symbol("file.c", 0x1030, 8, FILE, 1),
        symbol("local_to_threads", 0x1040, 8, TLS, 1),
        symbol("undefined", 0x1060, 8, FUNC, SHN_UNDEF),
        symbol("absolute", 0x1070, 8, FUNC, SHN_ABS),
        symbol("", 0x1080, 8, FUNC, 1),
        symbol("resolver", 0x1090, 8, IFUNC, 1),
        symbol("common", 0x2010, 8, COMMON, 2),
    ];
    for form in FORMS {
        let binary = program(form, &[(2, &symbols)]);
        let table = ObjectFile::parse(&binary, None).unwrap().symbols();
        let names: Vec<String> = rows(&table).into_iter().map(|row| row.2).collect();
        for wanted in ["function", "object", "label", "resolver"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted}: {names:?}");
        }
        for unwanted in ["section", "file.c", "local_to_threads", "undefined", "absolute", ""] {
            assert!(names.iter().all(|name| name != unwanted), "{unwanted}: {names:?}");
        }
    }
}

#[test]
fn symbols_of_the_dynamic_linker_count_only_where_there_are_no_others() {
    let own = [symbol("own", 0x1000, 8, FUNC, 1)];
    let dynamic = [symbol("dynamic", 0x1010, 8, FUNC, 1)];
    // Only a file: nothing that has an address.
    let useless = [symbol("file.c", 0, 0, FILE, SHN_ABS)];
    for form in FORMS {
        for (tables, expected) in [
            (vec![(2, &own[..]), (11, &dynamic[..])], "own"),
            (vec![(11, &dynamic[..])], "dynamic"),
            (vec![(2, &useless[..]), (11, &dynamic[..])], "dynamic"),
        ] {
            let binary = program(form, &tables);
            let table = ObjectFile::parse(&binary, None).unwrap().symbols();
            assert_eq!(rows(&table).iter().map(|row| row.2.as_str()).collect::<Vec<_>>(), [expected]);
        }
        let binary = program(form, &[]);
        let table = ObjectFile::parse(&binary, None).unwrap().symbols();
        assert!(table.symbols().is_empty() && table.find(0x1000).is_none());
    }
}

#[test]
fn overlapping_symbols_are_found_by_their_beginning() {
    let symbols = [
        symbol("outer", 0x1000, 0x40, FUNC, 1),
        symbol("inner", 0x1010, 0x10, FUNC, 1),
        symbol("alias", 0x1010, 0x10, FUNC, 1),
        symbol("short", 0x1010, 4, FUNC, 1),
        symbol("unsized", 0x1030, 0, NOTYPE, 1),
        symbol("last", 0x10f0, 0x1000, FUNC, 1),
    ];
    for form in FORMS {
        let binary = program(form, &[(2, &symbols)]);
        let table = ObjectFile::parse(&binary, None).unwrap().symbols();
        let find = |address| table.find(address).map(|symbol| std::str::from_utf8(symbol.name).unwrap());
        for (address, expected) in [
            (0xfff, None),
            (0x1000, Some("outer")),
            (0x100f, Some("outer")),
            (0x1010, Some("alias")),
            (0x101f, Some("alias")),
            // As in the peer's symbolizer: the nearest beginning decides, even if it ends before.
            (0x1020, None),
            (0x1030, Some("unsized")),
            (0x10ef, Some("unsized")),
            (0x10f0, Some("last")),
            (0x20ef, Some("last")),
            (0x20f0, None),
        ] {
            assert_eq!(find(address), expected, "{address:#x}");
        }
    }
}

#[test]
fn a_symbol_at_the_end_of_the_address_space_has_its_addresses() {
    let symbols = [symbol("top", u64::MAX - 7, 8, FUNC, 1), symbol("past", u64::MAX - 3, u64::MAX, FUNC, 1)];
    let binary = program(FORMS[0], &[(2, &symbols)]);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    let name = |address| table.find(address).map(|symbol| symbol.name);
    assert_eq!(name(u64::MAX - 8), None);
    assert_eq!(name(u64::MAX - 4), Some(&b"top"[..]));
    assert_eq!(name(u64::MAX), Some(&b"past"[..]));
}

#[test]
fn marks_of_code_and_data_are_no_symbols_where_the_processor_has_them() {
    let marks = ["$a", "$t", "$d", "$x", "$d.5", "$x.foo", "$other", "$"];
    let symbols: Vec<Symbol> = (0..).zip(marks).map(|(at, name)| symbol(name, 0x1000 + at * 8, 4, NOTYPE, 1)).collect();
    for (machine, is_64, kept) in [
        (X86_64, true, &marks[..]),
        (ARM, false, &["$x", "$x.foo", "$other", "$"]),
        (AARCH64, true, &["$a", "$t", "$other", "$"]),
        (RISCV, true, &["$a", "$t", "$other", "$"]),
        (RISCV, false, &["$a", "$t", "$other", "$"]),
    ] {
        let binary = program(Form { is_64, is_big: false, machine }, &[(2, &symbols)]);
        let table = ObjectFile::parse(&binary, None).unwrap().symbols();
        let names: Vec<String> = rows(&table).into_iter().map(|row| row.2).collect();
        assert_eq!(names, kept, "machine {machine}");
    }
}

#[test]
fn thumb_functions_are_found_at_even_and_odd_addresses() {
    let symbols = [symbol("thumb", 0x1011, 8, FUNC, 1), symbol("arm", 0x1020, 8, FUNC, 1)];
    let binary = program(Form { is_64: false, is_big: false, machine: ARM }, &[(2, &symbols)]);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    let name = |address| table.find(address).map(|symbol| symbol.name);
    assert_eq!(rows(&table), [row(0x1010, 8, "thumb"), row(0x1020, 8, "arm")]);
    assert_eq!(
        (name(0x1010), name(0x1011), name(0x1017)),
        (Some(&b"thumb"[..]), Some(&b"thumb"[..]), Some(&b"thumb"[..]))
    );
    assert_eq!((name(0x1018), name(0x1021)), (None, Some(&b"arm"[..])));
    // On other processors odd addresses are addresses.
    let binary = program(FORMS[0], &[(2, &symbols)]);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    assert_eq!(table.find(0x1010), None);
}

#[test]
fn names_may_have_any_bytes_and_may_be_missing() {
    let symbols = [symbol("größe", 0x1000, 4, FUNC, 1), symbol("a b\nc", 0x1010, 4, FUNC, 1)];
    let form = FORMS[0];
    let binary = program(form, &[(2, &symbols)]);
    let table = ObjectFile::parse(&binary, None).unwrap().symbols();
    assert_eq!(rows(&table), [row(0x1000, 4, "größe"), row(0x1010, 4, "a b\nc")]);
    // The first symbol's name is put outside the table of names: only that symbol is lost.
    let mut bytes = binary.bytes().to_vec();
    let entry = bytes.windows(8).position(|window| window == [1, 0, 0, 0, 0x12, 0, 1, 0]).unwrap();
    bytes[entry..entry + 4].copy_from_slice(&0x00ff_ffff_u32.to_le_bytes());
    let damaged = Binary::from_bytes("made", bytes);
    let table = ObjectFile::parse(&damaged, None).unwrap().symbols();
    assert_eq!(rows(&table), [row(0x1010, 4, "a b\nc")]);
}

/// Whatever is cut off or changed, look-ups give symbols that contain the address.
#[test]
fn damaged_files_give_no_wrong_ranges() {
    let symbols =
        [symbol("one", 0x1000, 8, FUNC, 1), symbol("two", 0x1010, 8, FUNC, 1), symbol("x", 0x2000, 0, OBJECT, 2)];
    for form in FORMS {
        let good = program(form, &[(2, &symbols), (11, &symbols)]).bytes().to_vec();
        let check = |bytes: Vec<u8>| {
            let binary = Binary::from_bytes("made", bytes);
            let Ok(object) = ObjectFile::parse(&binary, None) else { return };
            let table = object.symbols();
            let all = table.symbols();
            assert!(all.windows(2).all(|pair| pair[0].address < pair[1].address));
            for symbol in all {
                assert_eq!(table.find(symbol.address), Some(symbol));
                let behind = symbol.address.wrapping_add(symbol.size_bytes);
                if symbol.size_bytes > 0 && behind > symbol.address {
                    assert_ne!(table.find(behind), Some(symbol));
                }
            }
            let _ = (object.section(".text"), object.sections(".data"), object.debug_data().is_ok());
        };
        for cut in 0..good.len() {
            check(good[..cut].to_vec());
        }
        for at in 0..good.len() {
            // Contents matter little; headers and tables do.
            if (0x100..0x200).contains(&at) {
                continue;
            }
            for value in [0, 0x7f, 0xff, good[at] ^ 1] {
                let mut bad = good.clone();
                bad[at] = value;
                check(bad);
            }
        }
    }
}
