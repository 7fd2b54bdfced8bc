//! Relocations of every processor, written byte by byte: what the supplements of the ELF specification compute.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod elf;

use anytrace_symbols::{Binary, ObjectFile};
use elf::*;

const I386: Form = Form { is_64: false, is_big: false, machine: 3 };
const MIPS: Form = Form { is_64: false, is_big: true, machine: 8 };
const PPC: Form = Form { is_64: false, is_big: true, machine: 20 };
const PPC64: Form = Form { is_64: true, is_big: true, machine: 21 };
const S390X: Form = Form { is_64: true, is_big: true, machine: S390 };
const ARM32: Form = Form { is_64: false, is_big: false, machine: ARM };
const AMD64: Form = Form { is_64: true, is_big: false, machine: X86_64 };
const HEXAGON: Form = Form { is_64: false, is_big: false, machine: 164 };
const ARM64: Form = Form { is_64: true, is_big: false, machine: AARCH64 };
const RISCV32: Form = Form { is_64: false, is_big: false, machine: RISCV };
const RISCV64: Form = Form { is_64: true, is_big: false, machine: RISCV };
const LOONG64: Form = Form { is_64: true, is_big: false, machine: 258 };

/// Processors whose entries have no addend: it is what is stored in the place.
fn is_implicit(form: Form) -> bool {
    [I386.machine, ARM, MIPS.machine].contains(&form.machine)
}

/// An entry: place, number of the symbol, type, addend.
type Entry = (u64, u64, u64, i64);

fn table(form: Form, entries: &[Entry]) -> Vec<u8> {
    let mut out = Writer { form, bytes: Vec::new() };
    for (offset, symbol, kind, addend) in entries {
        out.word(*offset);
        out.word(if form.is_64 { symbol << 32 | kind } else { symbol << 8 | kind });
        if !is_implicit(form) {
            out.word(addend.cast_unsigned());
        }
    }
    out.bytes
}

const SYMBOLS: [Symbol; 3] = [
    Symbol { name: "a", value: 0x20, size: 4, kind: FUNC, section: 1 },
    Symbol { name: "b", value: 0x08, size: 4, kind: FUNC, section: 1 },
    Symbol { name: "d", value: 0x10, size: 4, kind: OBJECT, section: 2 },
];

/// 256 bytes of code at an address and 64 bytes of data, both with entries that name symbols of a table.
fn file(form: Form, kind: u16, addresses: [u64; 2], symbols: &[Symbol], entries: &[Entry], stored: u64) -> Binary {
    let is_linked = kind != 1;
    let mut data = Writer { form, bytes: Vec::new() };
    while data.bytes.len() < 64 {
        data.word(stored);
    }
    let plain =
        |name, kind, flags, address, bytes| Part { name, kind, flags, address, bytes, link: 0, info: 0, entry: 0 };
    let (symbol_bytes, names) = Writer::symbols(form, symbols);
    let rel = if is_implicit(form) { 9 } else { 4 };
    let entry = (if form.is_64 { 16 } else { 8 }) + if is_implicit(form) { 0 } else { if form.is_64 { 8 } else { 4 } };
    let (symtab, strtab) = if is_linked { (".dynsym", ".dynstr") } else { (".symtab", ".strtab") };
    let parts = vec![
        plain(".text", 1, 6, addresses[0], vec![0x90; 0x100]),
        plain(".data", 1, 3, addresses[1], data.bytes),
        Part {
            link: 4,
            info: 1,
            entry: if form.is_64 { 24 } else { 16 },
            ..plain(symtab, if is_linked { 11 } else { 2 }, 0, 0, symbol_bytes)
        },
        plain(strtab, 3, 0, 0, names),
        Part {
            link: 3,
            info: if is_linked { 0 } else { 2 },
            entry,
            ..plain(if is_linked { ".rela.dyn" } else { ".rela.data" }, rel, 0, 0, table(form, entries))
        },
    ];
    Binary::from_bytes("made", Writer::file(form, kind, parts))
}

/// The word of so many bits at offset 8 of the data.
fn word(binary: &Binary, bits: u32) -> u64 {
    let object = ObjectFile::parse(binary, None).unwrap();
    let section = object.section(".data").unwrap().unwrap();
    let mut bytes = section.data[8..8 + bits as usize / 8].to_vec();
    if object.is_little_endian() {
        bytes.reverse();
    }
    bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

fn cut(value: i64, bits: u32) -> u64 {
    value.cast_unsigned() & (u64::MAX >> (64 - bits))
}

/// S, A and P are the words of the supplements: symbol, addend, place. The code begins at 0 and the data behind it.
const S: i64 = 0x20;
const A: i64 = 5;
const P: i64 = 0x100 + 8;

#[test]
fn words_of_relocatable_files_are_symbols_or_distances() {
    let absolute = S + A;
    let relative = S + A - P;
    for (form, kind, bits, expected) in [
        (AMD64, 1, 64, absolute),
        (AMD64, 10, 32, absolute),
        (AMD64, 2, 32, relative),
        (AMD64, 24, 64, relative),
        (I386, 1, 32, absolute),
        (I386, 2, 32, relative),
        (ARM64, 257, 64, absolute),
        (ARM64, 258, 32, absolute),
        (ARM64, 260, 64, relative),
        (ARM64, 261, 32, relative),
        (ARM32, 2, 32, absolute),
        (ARM32, 3, 32, relative),
        (PPC64, 38, 64, absolute),
        (PPC64, 44, 64, relative),
        (PPC64, 26, 32, relative),
        (PPC, 1, 32, absolute),
        (PPC, 26, 32, relative),
        (S390X, 22, 64, absolute),
        (S390X, 4, 32, absolute),
        (S390X, 23, 64, relative),
        (RISCV64, 2, 64, absolute),
        (RISCV64, 1, 32, absolute),
        (RISCV64, 57, 32, relative),
        (RISCV32, 1, 32, absolute),
        (RISCV32, 57, 32, relative),
        (MIPS, 2, 32, absolute),
        (MIPS, 248, 32, relative),
        (LOONG64, 2, 64, absolute),
        (LOONG64, 1, 32, absolute),
        (HEXAGON, 6, 32, absolute),
        (HEXAGON, 31, 32, relative),
    ] {
        // Where the place has the addend, all words of the data have it.
        let stored = if is_implicit(form) { A.cast_unsigned() } else { 0 };
        let binary = file(form, 1, [0, 0], &SYMBOLS, &[(8, 1, kind, A)], stored);
        assert_eq!(word(&binary, bits), cut(expected, bits), "machine {}, type {kind}", form.machine);
        // The words around it stay.
        let object = ObjectFile::parse(&binary, None).unwrap();
        let data = object.section(".data").unwrap().unwrap().data;
        let untouched = file(form, 1, [0, 0], &SYMBOLS, &[], stored);
        let before = ObjectFile::parse(&untouched, None).unwrap().section(".data").unwrap().unwrap().data.into_owned();
        let end = 8 + bits as usize / 8;
        assert_eq!((&data[..8], &data[end..]), (&before[..8], &before[end..]), "machine {}", form.machine);
    }
}

#[test]
fn symbols_of_data_count_from_where_data_are_laid_out() {
    for (form, kind, bits) in [(AMD64, 1, 64), (PPC64, 38, 64), (S390X, 22, 64), (RISCV32, 1, 32), (PPC, 1, 32)] {
        let binary = file(form, 1, [0, 0], &SYMBOLS, &[(8, 3, kind, A)], 0);
        assert_eq!(word(&binary, bits), 0x100 + 0x10 + A.cast_unsigned(), "machine {}", form.machine);
    }
}

#[test]
fn differences_of_risc_v_are_made_of_two_entries() {
    for (form, add, subtract, bits) in [(RISCV64, 36, 40, 64), (RISCV64, 35, 39, 32), (RISCV32, 35, 39, 32)] {
        for (stored, entries, expected) in [
            (0, vec![(8, 1, add, 0), (8, 2, subtract, 0)], 0x18),
            (0, vec![(8, 2, add, 0), (8, 1, subtract, 0)], -0x18),
            (0, vec![(8, 1, add, 7), (8, 2, subtract, 2)], 0x18 + 5),
            (3, vec![(8, 1, add, 0), (8, 2, subtract, 0)], 3 + 0x18),
        ] {
            let binary = file(form, 1, [0, 0], &SYMBOLS, &entries, stored);
            assert_eq!(word(&binary, bits), cut(expected, bits), "{stored} {entries:?}");
        }
    }
}

#[test]
fn negative_addends_are_extended_from_the_width_of_the_place() {
    for (form, kind) in [(I386, 1), (ARM32, 2), (MIPS, 2)] {
        let binary = file(form, 1, [0, 0], &SYMBOLS, &[(8, 1, kind, 0)], u64::from(u32::MAX));
        assert_eq!(word(&binary, 32), 0x1f, "machine {}", form.machine);
    }
    for (form, kind, bits) in [(AMD64, 1, 64), (S390X, 22, 64), (PPC, 1, 32), (RISCV32, 1, 32)] {
        let binary = file(form, 1, [0, 0], &SYMBOLS, &[(8, 1, kind, -0x21)], 0);
        assert_eq!(word(&binary, bits), cut(-1, bits), "machine {}", form.machine);
    }
}

#[test]
fn words_of_linked_files_are_those_of_a_program_loaded_at_zero() {
    for (form, kind) in [
        (AMD64, 8),
        (I386, 8),
        (ARM64, 1027),
        (ARM32, 23),
        (PPC64, 22),
        (PPC, 22),
        (S390X, 12),
        (RISCV64, 3),
        (RISCV32, 3),
        (LOONG64, 3),
        (HEXAGON, 35),
    ] {
        // Hexagon is read as any other processor with addends of their own.
        let stored = if is_implicit(form) { 0x1010 } else { 0 };
        let binary = file(form, 3, [0x1000, 0x2000], &[], &[(0x2008, 0, kind, 0x1010)], stored);
        let bits = if form.is_64 { 64 } else { 32 };
        assert_eq!(word(&binary, bits), 0x1010, "machine {}", form.machine);
    }
}

#[test]
fn words_of_linked_files_may_name_symbols() {
    let symbols = [symbol("a", 0x1020, 4, FUNC, 1)];
    for (form, kind, bits) in [(AMD64, 1, 64), (ARM64, 257, 64), (S390X, 22, 64), (RISCV64, 2, 64), (PPC, 1, 32)] {
        let binary = file(form, 3, [0x1000, 0x2000], &symbols, &[(0x2008, 1, kind, A)], 0);
        assert_eq!(word(&binary, bits), 0x1020 + A.cast_unsigned(), "machine {}", form.machine);
    }
}

#[test]
fn entries_that_do_not_fit_change_nothing() {
    let plain = file(AMD64, 1, [0, 0], &SYMBOLS, &[], 9);
    let expected = ObjectFile::parse(&plain, None).unwrap().section(".data").unwrap().unwrap().data.into_owned();
    for entry in [
        // Past the end, across it, and far away.
        (64, 1, 1, A),
        (57, 1, 1, A),
        (u64::MAX, 1, 1, A),
        (u64::MAX - 3, 1, 1, A),
        // A symbol and types that do not exist.
        (8, 77, 1, A),
        (8, 1, 0, A),
        (8, 1, 200, A),
        (8, 1, u64::from(u32::MAX), A),
    ] {
        let binary = file(AMD64, 1, [0, 0], &SYMBOLS, &[entry], 9);
        let object = ObjectFile::parse(&binary, None).unwrap();
        assert_eq!(object.section(".data").unwrap().unwrap().data, expected, "{entry:?}");
    }
}
