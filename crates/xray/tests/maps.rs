//! Instrumentation maps: of real programs, compared with the peer; of every processor for which clang supports XRay; of
//! old versions.

#![cfg(feature = "tools")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use anytrace_core::span::{Mangling, SymbolSource};
use anytrace_core::testing::{mutations, shared_corpus};
use anytrace_core::{Error, Format, Input, InputOptions, Kind};
use anytrace_xray::Xray;
use anytrace_xray::tools::map::{self, ExtractOptions};

mod common;
use common::elf::Elf;

fn maps() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/maps")
}

fn file(name: &str) -> Input {
    Input::open(&maps().join(name), InputOptions::default()).unwrap()
}

fn extract_from(input: Input, options: ExtractOptions<'_>) -> Result<String, Error> {
    let mut out = Vec::new();
    let notes = map::extract(input, options, &mut out)?;
    let text = String::from_utf8(out).unwrap();
    // Nothing is amiss but what was stripped, which is said once.
    assert!(notes.iter().all(|note| note.contains(" have no name: it was stripped")), "{notes:?}");
    assert!(notes.len() <= usize::from(text.contains("@(")), "{notes:?}");
    Ok(text)
}

fn named(input: Input) -> String {
    extract_from(input, ExtractOptions { names: Some(Mangling::Demangled), ..ExtractOptions::default() }).unwrap()
}

fn built(elf: &Elf) -> String {
    named(Input::from_bytes("built", elf.build()))
}

fn load(sources: &[(Option<u32>, &str)]) -> Result<map::Map, Error> {
    let sources: Vec<_> =
        sources.iter().map(|(object, name)| SymbolSource { object: *object, path: maps().join(name) }).collect();
    map::load(&sources, Mangling::Demangled)
}

fn compare_with_peer(folder: &Path) -> usize {
    let mut compared = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".elf.gz") else { continue };
        let Ok(expected) = std::fs::read_to_string(folder.join(format!("{stem}.map.yaml"))) else { continue };
        let ours = named(Input::open(&path, InputOptions::default()).unwrap());
        assert_eq!(ours, expected, "{name}");
        compared += 1;
        // Our reading of it, written again, is identical.
        assert_eq!(named(Input::from_bytes("map", expected.clone().into_bytes())), expected, "{name}");
    }
    compared
}

#[test]
fn maps_are_those_of_the_peer_byte_for_byte() {
    assert_eq!(compare_with_peer(&maps()), 6);
    if let Some(corpus) = shared_corpus("xray") {
        assert!(compare_with_peer(&corpus.join("maps")) >= 10);
    }
}

#[test]
fn names_are_left_out_or_as_the_linker_has_them_when_asked() {
    let lines = |names| {
        let text = extract_from(file("fib-14.elf.gz"), ExtractOptions { names, ..ExtractOptions::default() }).unwrap();
        text.lines().nth(1).unwrap().split(", ").nth(5).unwrap().to_owned()
    };
    assert_eq!(lines(None), "function-name: ''");
    assert_eq!(lines(Some(Mangling::AsIs)), "function-name: _ZN4demo4leafEj");
    assert_eq!(lines(Some(Mangling::Demangled)), "function-name: 'demo::leaf(unsigned int)'");
}

#[test]
fn typed_event_sleds_are_taken() {
    let text = named(file("events-14.elf.gz"));
    assert!(text.contains("kind: typed-event") && text.contains("'work(int)'"), "{text}");
}

#[test]
fn relocatable_files_of_every_processor_are_read() {
    let mut read = 0;
    for entry in std::fs::read_dir(maps()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.starts_with("three-") {
            continue;
        }
        let map = map::load(&[SymbolSource { object: None, path }], Mangling::Demangled).unwrap();
        let found: Vec<_> = (1..=4).map(|id| (map.name(id), map.location(id).map(|place| place.line))).collect();
        let expected = [(Some("leaf"), Some(2)), (Some("twice"), Some(3)), (Some("top"), Some(4)), (None, None)];
        assert_eq!(found, expected, "{name}");
        assert_eq!(map.address(1), Some(0), "{name}");
        assert!(map.address(2) < map.address(3), "{name}");
        assert!(map.location(1).unwrap().file.ends_with("three.c"), "{name}");
        read += 1;
    }
    assert_eq!(read, 11);
}

#[test]
fn a_part_of_a_fat_file_can_be_chosen() {
    let of = |architecture| {
        let options = ExtractOptions { names: None, architecture: Some(architecture) };
        extract_from(file("three-macho-fat.o.gz"), options)
    };
    let addresses = |text: String| text.lines().nth(3).unwrap().split(", ").nth(1).unwrap().to_owned();
    assert_eq!(addresses(of("arm64").unwrap()), "address: 0x58");
    assert_eq!(addresses(of("x86_64").unwrap()), "address: 0x30");
    let error = of("mips").unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert!(error.to_string().contains("only for x86_64, arm64"), "{error}");
}

/// Two functions at 0x1000 and 0x1100, of all widths and byte orders.
fn forms() -> impl Iterator<Item = Elf> {
    [(true, true, 62), (true, false, 22), (false, true, 3), (false, false, 8)].into_iter().map(
        |(is_64, little, machine)| {
            let mut elf = Elf::new(is_64, little, machine);
            elf.functions = vec![(0x1000, 0x80, "_ZN4demo4leafEj"), (0x1100, 0, "main")];
            elf
        },
    )
}

const TWO: &str = "---
- { id: 1, address: 0x1000, function: 0x1000, kind: function-enter, always-instrument: true, function-name: 'demo::leaf(unsigned int)', version: V }
- { id: 1, address: 0x1010, function: 0x1000, kind: function-exit, always-instrument: false, function-name: 'demo::leaf(unsigned int)', version: V }
- { id: 2, address: 0x1110, function: 0x1100, kind: 9, always-instrument: false, function-name: main, version: V }
...
";

#[test]
fn old_versions_have_absolute_addresses_in_either_width_and_byte_order() {
    for elf in forms() {
        for version in [0, 1] {
            let elf = elf.clone().sled(0x1000, 0x1000, [0, 1, version]).sled(0x1010, 0x1000, [1, 0, version]);
            let text = built(&elf.sled(0x1110, 0x1100, [9, 0, version]));
            assert_eq!(text, TWO.replace('V', &version.to_string()));
        }
    }
}

#[test]
fn version_2_counts_from_the_entry() {
    for elf in forms() {
        let (entry, half) = if elf.is_64 { (32, 8) } else { (16, 4) };
        let mut place = 0x2000_u64;
        let mut built_of = elf;
        for (address, function, tail) in
            [(0x1000_u64, 0x1000_u64, [0, 1, 2]), (0x1010, 0x1000, [1, 0, 2]), (0x1110, 0x1100, [9, 0, 2])]
        {
            built_of = built_of.sled(address.wrapping_sub(place), function.wrapping_sub(place + half), tail);
            place += entry;
        }
        assert_eq!(built(&built_of), TWO.replace('V', "2"));
    }
}

#[test]
fn relative_relocations_of_position_independent_programs_are_applied() {
    for mut elf in forms() {
        elf = elf.sled(0, 0, [0, 1, 1]).sled(0, 0, [1, 0, 1]).sled(0, 0, [9, 0, 1]);
        let (entry, half) = if elf.is_64 { (32, 8) } else { (16, 4) };
        elf.relative_kind = match elf.machine {
            22 => 12,
            // MIPS has no such relocation that we know; the values are in the file instead.
            8 => continue,
            _ => 8,
        };
        for (n, (address, function)) in [(0x1000, 0x1000), (0x1010, 0x1000), (0x1110, 0x1100)].into_iter().enumerate() {
            let place = 0x2000 + n as u64 * entry;
            elf.relatives.extend([(place, address), (place + half, function)]);
        }
        // Outside the section, across its end, and far away: none of them may be applied.
        elf.relatives.extend([(0x1ff8, 7), (0x2000 + 3 * entry - 1, 7), (0x2000 + 3 * entry, 7), (u64::MAX, 7)]);
        assert_eq!(built(&elf), TWO.replace('V', "1"));
    }
}

#[test]
fn functions_are_counted_whenever_the_address_changes() {
    let elf = Elf::new(true, true, 62);
    let elf = elf.sled(1, 0x10, [0, 0, 0]).sled(2, 0x20, [0, 0, 0]).sled(3, 0x10, [0, 0, 0]).sled(4, 0x10, [1, 0, 0]);
    let text = built(&elf);
    let ids: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("- { id: ")).map(|line| &line[..1]).collect();
    assert_eq!(ids, ["1", "2", "3", "3"]);
    assert!(text.contains("function-name: '@(10)'"), "{text}");
}

#[test]
fn a_map_of_a_fractional_number_of_entries_is_rejected() {
    let mut elf = Elf::new(true, true, 62).sled(1, 1, [0, 0, 0]);
    elf.map.1.push(0);
    let error = extract_from(Input::from_bytes("odd", elf.build()), ExtractOptions::default()).unwrap_err();
    assert_eq!(error.to_string(), "odd: xray_instr_map: expected a multiple of 32 bytes, found 33");
}

#[test]
fn an_object_without_a_map_is_reported() {
    let of = |bytes: &[u8]| extract_from(Input::from_bytes("x", bytes.to_vec()), ExtractOptions::default());
    let mut none = Elf::new(true, true, 62).build();
    let at = none.windows(14).position(|name| name == b"xray_instr_map").unwrap();
    none[at] = b'y';
    assert!(of(&none).unwrap_err().to_string().contains("not compiled with -fxray-instrument"));
    for text in [&b"hello\n"[..], b"", b"\n\n", b"---\nheader: { version: 1 }\n", b"\xff\xfe", b"{}"] {
        let error = of(text).unwrap_err();
        assert_eq!(error.to_string(), "x: neither an object file nor a YAML instrumentation map", "{text:?}");
    }
    assert_eq!(of(b"---\n[]\n...\n").unwrap(), "---\n[]\n...\n");
}

#[test]
fn numbers_of_libraries_have_the_object_above_24_bits() {
    let map = load(&[(None, "dso-main-22.elf.gz"), (Some(1), "dso-lib-22.elf.gz")]).unwrap();
    assert_eq!((map.name(1), map.name(2)), (Some("loc(int)"), Some("main")));
    assert_eq!(map.name(0x0100_0001), Some("libfn"));
    assert_eq!(map.address(0x0100_0001), Some(0x1890));
    for unknown in [0, 3, 0x0100_0000, 0x0100_0002, 0x0200_0001, u32::MAX] {
        assert_eq!(map.name(unknown), None, "{unknown:#x}");
    }
    let error = load(&[(Some(0), "dso-main-22.elf.gz"), (None, "dso-lib-22.elf.gz")]).unwrap_err();
    assert_eq!(error.kind(), Kind::Usage);
    assert_eq!(load(&[(Some(256), "dso-lib-22.elf.gz")]).unwrap_err().kind(), Kind::Usage);
    assert_eq!(load(&[(None, "none.elf")]).unwrap_err().kind(), Kind::Io);
}

#[test]
fn the_libraries_of_a_program_are_found_where_it_is() {
    let folder = tempfile::tempdir().unwrap();
    // Their names in the program: unpacked, as the linker has them.
    for (name, packed) in [("program", "dso-main-22.elf.gz"), ("libl.so", "dso-lib-22.elf.gz")] {
        let mut unpacked = std::fs::File::create(folder.path().join(name)).unwrap();
        std::io::copy(&mut file(packed).into_read(), &mut unpacked).unwrap();
    }
    let program = SymbolSource { object: None, path: folder.path().join("program") };
    let map = map::load(std::slice::from_ref(&program), Mangling::Demangled).unwrap();
    assert_eq!((map.name(2), map.name(0x0100_0001), map.name(0x0200_0001)), (Some("main"), Some("libfn"), None));
    let note = map.notes().iter().find(|note| note.contains("object 1 is taken to be")).unwrap();
    assert!(note.contains("libl.so"), "{note}");
    // What is named counts.
    let other = SymbolSource { object: Some(2), path: folder.path().join("libl.so") };
    let map = map::load(&[program.clone(), other], Mangling::Demangled).unwrap();
    assert_eq!((map.name(0x0100_0001), map.name(0x0200_0001)), (None, Some("libfn")));
    // Without it there are the program's own.
    std::fs::remove_file(folder.path().join("libl.so")).unwrap();
    let map = map::load(&[program], Mangling::Demangled).unwrap();
    assert_eq!((map.name(2), map.name(0x0100_0001)), (Some("main"), None));
}

/// The maps of a process name its objects, with numbers or without.
#[test]
fn the_objects_of_a_process_are_those_of_its_maps() {
    let folder = tempfile::tempdir().unwrap();
    let unpack = |name: &str, packed: &str| {
        let path = folder.path().join(name);
        std::io::copy(&mut file(packed).into_read(), &mut std::fs::File::create(&path).unwrap()).unwrap();
        path
    };
    let program = unpack("program", "dso-main-22.elf.gz");
    let library = unpack("libl.so", "dso-lib-22.elf.gz");
    let maps = folder.path().join("t.maps");
    let load = |text: &str, more: &[SymbolSource]| {
        std::fs::write(&maps, text).unwrap();
        let source = SymbolSource { object: None, path: maps.clone() };
        map::load(&[&[source], more].concat(), Mangling::Demangled)
    };
    let kernel = format!(
        "1000-2000 r-xp 00000000 fe:00 1  {}\n3000-4000 r-xp 00000000 fe:00 2  {}\n",
        program.display(),
        library.display()
    );
    let named = |map: &map::Map| [2, 0x0100_0001, 0x0700_0001].map(|id| map.name(id).map(str::to_owned));
    let expected = |far: bool| {
        let libfn = Some("libfn".to_owned());
        [Some("main".to_owned()), libfn.clone().filter(|_| !far), libfn.filter(|_| far)]
    };
    let map = load(&kernel, &[]).unwrap();
    assert_eq!(named(&map), expected(false), "{:?}", map.notes());
    let line = |number: &str, id: &str, path: &std::path::Path| format!("# object {number} {id} {}\n", path.display());
    let title = "# anytrace maps 1\n# order: loaded\n";
    // Numbers that were written count.
    let text = [title, &line("0", "-", &program), &line("7", "-", &library), &kernel].concat();
    assert_eq!(named(&load(&text, &[]).unwrap()), expected(true));
    // What is named counts more.
    let one = SymbolSource { object: Some(1), path: library.clone() };
    assert_eq!(load(&text, &[one]).unwrap().name(0x0100_0001), Some("libfn"));
    // Another build, a number that there is not, and what is gone.
    let text = [title, &line("0", "-", &program), &line("1", "0102", &library)].concat();
    let map = load(&text, &[]).unwrap();
    assert!(map.name(0x0100_0001).is_none() && map.notes().iter().any(|note| note.contains("was built anew")));
    let text = [title, &line("0", "-", &program), &line("999", "-", &library), &line("x", "zz", &library)].concat();
    assert_eq!(load(&text, &[]).unwrap().name(0x0100_0001), None);
    let text = [title, &line("0", "-", &program), &line("1", "-", std::path::Path::new("/nonexistent/l.so"))].concat();
    let map = load(&text, &[]).unwrap();
    assert!(map.name(2).is_some() && map.notes().iter().any(|note| note.contains("-m 1=PATH names it")));
    let map = load("# anytrace maps 1\n", &[]).unwrap();
    assert!(map.notes().iter().any(|note| note.contains("no program is mapped")), "{:?}", map.notes());
    let again = SymbolSource { object: None, path: maps.clone() };
    assert_eq!(load(&text, &[again]).unwrap_err().kind(), Kind::Usage);
}

#[test]
fn the_process_of_a_trace_is_that_of_its_records() {
    let corpus = maps().join("..");
    assert!(map::recorded_process(&corpus.join("basic-v3.xray")).is_some());
    assert!(map::recorded_process(&corpus.join("v5.xray")).is_some());
    assert_eq!(map::recorded_process(&corpus.join("basic-v1.xray")), None);
    assert_eq!(map::recorded_process(&corpus.join("README.md")), None);
}

#[test]
fn numbers_of_a_large_program_may_pass_24_bits() {
    let folder = tempfile::tempdir().unwrap();
    let (main, library) = (folder.path().join("main.yaml"), folder.path().join("lib.yaml"));
    let entry = |id: u32, name: &str| format!("- {{ id: {id}, function: 0x{id:x}, function-name: {name} }}\n");
    std::fs::write(&main, [entry(0x0100_0002, "far"), entry(1, "near"), entry(0x0100_0001, "hidden")].concat())
        .unwrap();
    std::fs::write(&library, entry(1, "library")).unwrap();
    let main = SymbolSource { object: None, path: main };
    let alone = map::load(std::slice::from_ref(&main), Mangling::Demangled).unwrap();
    assert_eq!([1, 0x0100_0001, 0x0100_0002].map(|id| alone.name(id)), [Some("near"), Some("hidden"), Some("far")]);
    let both = map::load(&[main, SymbolSource { object: Some(1), path: library }], Mangling::Demangled).unwrap();
    assert_eq!([1, 0x0100_0001, 0x0100_0002].map(|id| both.name(id)), [Some("near"), Some("library"), Some("far")]);
}

#[test]
fn the_format_names_functions_and_places() {
    let source = SymbolSource { object: None, path: maps().join("fib-14.elf.gz") };
    let symbols = Xray.symbols(&[source], Mangling::Demangled).unwrap();
    let (name, location) = symbols.symbol(2).unwrap();
    assert_eq!(name, "demo::fib(unsigned int)");
    let location = location.unwrap();
    assert!(location.file.ends_with("fib.cpp"), "{location:?}");
    assert_eq!(location.line, 6);
    assert!(symbols.symbol(5).is_none() && symbols.symbol(1 << 32 | 2).is_none());
    let stripped = SymbolSource { object: None, path: maps().join("fib-stripped-14.elf.gz") };
    let symbols = Xray.symbols(&[stripped], Mangling::Demangled).unwrap();
    assert_eq!(symbols.symbol(2), Some(("@(21da0)", None)));
}

#[test]
fn yaml_maps_may_be_written_by_hand() {
    let text = b"# ours\n---\n- id: 7\n  function: 0x10\n  function-name: _Z1fv\n  kind: tail-exit\n  note: more\n\n-  { function-name: 'it''s', id: 9,\n    function: 32, version: 1, kind: 77 }\n- { id: 8, function: 0 }\n...\n";
    let expected = "---
- { id: 7, address: 0x10, function: 0x10, kind: tail-exit, always-instrument: false, function-name: 'f()', version: 0 }
- { id: 9, address: 0x20, function: 0x20, kind: 77, always-instrument: false, function-name: 'it''s', version: 1 }
- { id: 8, address: 0x0, function: 0x0, kind: function-enter, always-instrument: false, function-name: '@(0)', version: 0 }
...
";
    assert_eq!(named(Input::from_bytes("m", text.to_vec())), expected);
}

#[test]
fn damage_of_a_yaml_map_is_reported_with_its_place() {
    let good = "- { id: 1, function: 0x1, kind: function-enter }\n";
    for (bad, code, line, column) in [
        ("- { id: x, function: 0x1 }\n", "xray/yaml-field", 2, 9),
        ("- { id: -1, function: 0x1 }\n", "xray/yaml-field", 2, 9),
        ("- { function: 0x1 }\n", "xray/yaml-field", 2, 3),
        ("- { id: 1 }\n", "xray/yaml-field", 2, 3),
        ("- { id: 1, function: 2, kind: what }\n", "xray/yaml-field", 2, 3),
        ("- { id: 1, function: 2, version: 300 }\n", "xray/yaml-field", 2, 34),
        ("- { id: 1, function: 2\n", "xray/yaml-syntax", 3, 1),
        ("- { id: 1, function: 2 } x\n", "xray/yaml-syntax", 2, 26),
        ("...\nrubbish\n", "xray/yaml-syntax", 3, 1),
    ] {
        let text = format!("{good}{bad}");
        let error = extract_from(Input::from_bytes("m", text.into_bytes()), ExtractOptions::default()).unwrap_err();
        assert_eq!(error.kind(), Kind::Malformed, "{bad}: {error}");
        let found = error.diagnostic().unwrap();
        assert_eq!((found.code(), found.line, found.record), (code, Some((line, column)), Some(1)), "{bad}: {error}");
    }
}

fn small() -> Vec<(String, Vec<u8>)> {
    let mut found: Vec<(String, Vec<u8>)> = Vec::new();
    for name in [
        "dso-lib-22.elf.gz",
        "three-x86-64.o.gz",
        "three-macho-fat.o.gz",
        "three-mips.o.gz",
        "three-x86-64-sections.o.gz",
    ] {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut file(name).into_read(), &mut bytes).unwrap();
        found.push((name.to_owned(), bytes));
    }
    found.push(("map".to_owned(), std::fs::read(maps().join("dso-main-22.map.yaml")).unwrap()));
    found
}

/// Whatever the bytes are, the call returns.
fn survives(bytes: &[u8]) {
    let _ = map::extract(
        Input::from_bytes("changed", bytes.to_vec()),
        ExtractOptions { names: Some(Mangling::Demangled), ..ExtractOptions::default() },
        &mut Vec::new(),
    );
}

#[test]
fn files_cut_anywhere_are_no_danger() {
    for (_, bytes) in small() {
        for length in (0..bytes.len()).step_by(1 + bytes.len() / 400) {
            survives(&bytes[..length]);
        }
    }
}

#[test]
fn damaged_files_are_no_danger() {
    for (number, (_, bytes)) in small().into_iter().enumerate() {
        mutations(&bytes, number as u64, 1500, survives);
    }
}
