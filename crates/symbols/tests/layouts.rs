//! Layouts from debug data, compared with the facts that the compiled program prints about itself.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use anytrace_core::InputOptions;
use anytrace_core::layout::{Layout, Layouts, Role};
use anytrace_core::testing::has_program;
use anytrace_symbols::layouts::{TypeData, with_type_data};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// Compiles a program; `None` where the compiler is missing.
fn compiled(compiler: &str, options: &[&str], from: &str, to: &str) -> Option<PathBuf> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // `cargo xtask test` brings one clang; a newer one is tried, too, where a machine has it.
    let is_extra = compiler.ends_with("-19");
    if is_extra && Command::new(compiler).arg("--version").output().is_err() {
        // Not a test's own output, which is kept from those who run it.
        let note = format!("not tried: {compiler} is not installed\n");
        let _ = std::io::Write::write_all(&mut std::io::stderr(), note.as_bytes());
        return None;
    }
    if !has_program(compiler) {
        return None;
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layouts").join(to);
    std::fs::create_dir_all(&folder).unwrap();
    let program = folder.join("prog");
    let done = Command::new(compiler)
        .current_dir(&folder)
        .args(options)
        .arg(source(from))
        .arg("-o")
        .arg(&program)
        .output()
        .unwrap();
    assert!(done.status.success(), "{compiler} {options:?} {from}: {}", String::from_utf8_lossy(&done.stderr));
    Some(program)
}

fn layout(data: &mut TypeData<'_>, name: &str, label: &str) -> std::sync::Arc<Layout> {
    let found = data.layout(name, 0);
    let names = || data.names().into_iter().filter(|name| name.len() < 30).collect::<Vec<_>>().join("; ");
    found.unwrap_or_else(|| panic!("{label}: {name} is not found: {:?}: {}", data.notes(), names()))
}

/// Compares every line the program prints with its debug data; returns how many.
fn check_facts(program: &Path, label: &str) -> usize {
    let said = Command::new(program).output().unwrap();
    let said = String::from_utf8(said.stdout).unwrap();
    let count = with_type_data(&[program], InputOptions::default(), |data| {
        for line in said.lines() {
            let parts: Vec<&str> = line.split('|').collect();
            let number = |at: usize| parts[at].parse::<u64>().unwrap();
            let found = layout(data, parts[1], label);
            match parts[0] {
                "size" => assert_eq!(found.bytes, number(2), "{label}: {line}: {found:?}"),
                "field" => {
                    let hits = found.hits(number(3), number(4).max(1));
                    let paths: Vec<_> = hits.iter().map(|hit| found.path_at(hit.field, &hit.indices)).collect();
                    // Members of bases have the base before them; records their first members.
                    let is_named = paths.iter().any(|path| {
                        path == parts[2]
                            || path.starts_with(&format!("{}.", parts[2]))
                            || path.starts_with(&format!("{}[", parts[2]))
                    });
                    assert!(is_named, "{label}: {line}: {paths:?} of {found:#?}");
                }
                "bits" => check_bits(&found, parts[2], parts[3], label),
                other => panic!("{other}"),
            }
        }
        said.lines().count()
    });
    let count = count.unwrap();
    assert!(count > 5, "{label}: {said}");
    count
}

fn check_bits(found: &Layout, path: &str, mask: &str, label: &str) {
    let (number, field) = found.leaves().find(|(number, _)| found.path(*number) == path).unwrap();
    let bits = field.bits.unwrap();
    let mut bytes = vec![0_u8; usize::try_from(found.bytes).unwrap()];
    for bit in bits.first..bits.first + bits.count {
        bytes[usize::try_from(bit / 8).unwrap()] |= 1 << (bit % 8);
    }
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(text, mask, "{label}: {path}");
    assert!(found.touched(bits.first / 8, 1).contains(&number), "{label}: {path}");
}

#[test]
fn c_programs_have_the_offsets_that_the_compiler_says() {
    for (compiler, extra) in [
        ("gcc", "-gdwarf-5"),
        ("gcc", "-gdwarf-4"),
        ("gcc", "-gdwarf-3"),
        ("clang-14", "-gdwarf-5"),
        ("clang-14", "-gdwarf-4"),
        ("clang-14", "-gdwarf-2"),
        ("clang-19", "-g"),
    ] {
        let to = format!("c-{compiler}{extra}");
        if let Some(program) = compiled(compiler, &["-g", extra, "-w"], "facts.c", &to) {
            check_facts(&program, &to);
        }
    }
}

#[test]
fn c_plus_plus_programs_have_the_offsets_that_the_compiler_says() {
    for (compiler, extra) in [
        ("g++", "-gdwarf-5"),
        ("g++", "-gdwarf-4"),
        ("g++", "-fdebug-types-section"),
        ("g++", "-gsplit-dwarf"),
        ("g++", "-gz"),
        ("clang++-14", "-gdwarf-5"),
        ("clang++-14", "-gdwarf-4"),
        ("clang++-14", "-fdebug-types-section"),
        ("clang++-14", "-gsplit-dwarf"),
        ("clang++-19", "-g"),
    ] {
        let to = format!("cpp-{compiler}{extra}");
        if let Some(program) = compiled(compiler, &["-g", extra, "-w", "-std=c++17"], "facts.cpp", &to) {
            check_facts(&program, &to);
        }
    }
}

#[test]
fn regions_of_variables_have_the_types_of_their_elements() {
    for (compiler, extra) in [("g++", "-gdwarf-5"), ("g++", "-gdwarf-4"), ("g++", "-O2"), ("clang++-14", "-gdwarf-5")] {
        let to = format!("variables-{compiler}{extra}");
        let Some(program) = compiled(compiler, &["-g", extra], "variables.cpp", &to) else { continue };
        with_type_data(&[&program], InputOptions::default(), |data| {
            for (name, recorded, bytes, fields) in [
                ("Shape::origin (global)", 16, 16, 2),
                ("matrix (global)", 4000, 8, 0),
                ("shapes (global)", 224, 56, 4),
                ("world::first (global)", 8, 8, 0),
                ("world::all (global in libx.so)", 392, 56, 4),
                ("step(int)::calls (global)", 32, 16, 2),
                ("calls.0 (global)", 32, 16, 2),
                // Two of them: the size decides.
                ("same (global)", 4, 4, 0),
                ("same (global)", 8, 8, 0),
            ] {
                let found = data.layout(name, recorded).unwrap_or_else(|| panic!("{to}: {name}"));
                assert_eq!((found.bytes, found.fields.len()), (bytes, fields), "{to}: {name} {found:?}");
                assert_eq!(found.element_bytes(recorded), bytes, "{to}: {name}");
            }
            // No variable, and one that has no address.
            assert!(data.layout("nothing (global)", 8).is_none() && data.layout("hidden (global)", 4).is_none());
        })
        .unwrap();
    }
}

#[test]
fn members_whose_types_are_in_units_of_their_own_have_their_names() {
    for (compiler, version) in
        [("g++", "-gdwarf-4"), ("g++", "-gdwarf-5"), ("clang++-14", "-gdwarf-4"), ("clang++-14", "-gdwarf-5")]
    {
        let to = format!("type-units-{compiler}{version}");
        let options = [version, "-fdebug-types-section", "-w", "-std=c++17"];
        let Some(program) = compiled(compiler, &options, "type_units.cpp", &to) else { continue };
        with_type_data(&[&program], InputOptions::default(), |data| {
            let outer = layout(data, "Outer", &to);
            for (path, wanted) in [
                ("Below", "Below"),
                ("pair", "Pair<Pair<char>>"),
                ("pair.first", "Pair<char>"),
                ("plain", "Plain"),
                ("next", "Plain*"),
            ] {
                let field =
                    (0..outer.fields.len()).find(|number| outer.path(*number) == path).map(|n| &outer.fields[n]);
                // Compilers put spaces between closing brackets.
                let named = field.map(|field| field.type_name.replace(' ', ""));
                assert_eq!(named.as_deref(), Some(wanted), "{to}: {outer:#?}");
            }
        })
        .unwrap();
    }
}

#[test]
fn rust_programs_have_the_offsets_that_the_compiler_says() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    for extra in ["debuginfo=2", "dwarf-version=5"] {
        let options = ["-Cdebuginfo=2", "--edition=2021", "-C", extra];
        let to = format!("rust-{extra}");
        let Some(program) = compiled(&rustc, &options, "facts.rs", &to) else { return };
        check_facts(&program, &to);
        with_type_data(&[&program], InputOptions::default(), |data| {
            let shape = layout(data, "facts::inner::Shape", "rust");
            let paths: Vec<String> = shape.leaves().map(|(number, _)| shape.path(number)).collect();
            for wanted in ["Circle.0.x", "Circle.1", "Text.at.1"] {
                assert!(paths.iter().any(|path| path == wanted), "{wanted} in {paths:?}");
            }
            assert!(shape.fields.iter().any(|field| field.role == Role::Variant), "{shape:?}");
            // A variant without fields has no bytes: an access touches the tag, or another variant's bytes.
            let touched = |layout: &Layout, offset: u64| -> Vec<String> {
                layout.touched(offset, 1).into_iter().map(|number| layout.path(number)).collect()
            };
            let dot = shape.fields.iter().find(|field| field.name == "Dot").unwrap();
            assert_eq!((dot.role, dot.bytes), (Role::Variant, 0), "{shape:?}");
            let tag = shape.fields.iter().find(|field| field.role == Role::Tag).unwrap();
            assert!(touched(&shape, tag.offset_bytes).contains(&"<tag>".to_owned()), "{shape:?}");
            let circle = shape.leaves().find(|(number, _)| shape.path(*number) == "Circle.0.x").unwrap().1;
            assert!(!touched(&shape, circle.offset_bytes).contains(&"Dot".to_owned()), "{shape:?}");
            let mixed = layout(data, "facts::inner::Mixed", "rust");
            assert_eq!(touched(&mixed, 0), ["<tag>"], "{mixed:?}");
        })
        .unwrap();
    }
}

#[test]
fn damaged_debug_data_never_panic_and_never_hang() {
    let Some(program) = compiled("gcc", &["-g", "-w", "-c"], "facts.c", "damaged") else { return };
    let sound = std::fs::read(&program).unwrap();
    let path = program.with_file_name("damaged.o");
    let names = ["struct.Node", "struct.Outer", "struct.Flags", "union.Value", "Grid", "struct.Odd"];
    let mut state = 88_172_645_463_325_252_u64;
    for _ in 0..200 {
        let mut bytes = sound.clone();
        for _ in 0..8 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let at = usize::try_from(state % bytes.len() as u64).unwrap();
            // Headers of the file itself are another matter.
            bytes[at.max(64)] = (state >> 32) as u8;
        }
        std::fs::write(&path, &bytes).unwrap();
        let _ = with_type_data(&[&path], InputOptions::default(), |data| {
            for name in names {
                if let Some(found) = data.layout(name, 64) {
                    let _ = (found.holes(), found.describe(0, 64), found.hits(8, 8));
                }
            }
            data.records().len()
        });
    }
}

#[test]
fn a_program_without_debug_data_is_refused() {
    let Some(program) = compiled("gcc", &["-w", "-s"], "facts.c", "stripped") else { return };
    let error = with_type_data(&[&program], InputOptions::default(), |_| ()).unwrap_err().to_string();
    assert!(error.contains("compile with -g"), "{error}");
}

#[test]
fn separate_debug_files_are_found_beside_the_program() {
    let Some(program) = compiled("gcc", &["-g", "-w"], "facts.c", "debuglink") else { return };
    let run = |arguments: &[&str]| {
        let done = Command::new("objcopy").current_dir(program.parent().unwrap()).args(arguments).output();
        done.is_ok_and(|done| done.status.success())
    };
    let _ = std::fs::remove_file(program.with_file_name("prog.debug"));
    if run(&["--only-keep-debug", "prog", "prog.debug"])
        && run(&["--strip-debug", "--add-gnu-debuglink=prog.debug", "prog"])
    {
        check_facts(&program, "debuglink");
    }
}

/// Runs a program in a folder.
fn run(folder: &Path, words: &[&str]) {
    let (program, arguments) = words.split_first().unwrap();
    let output = Command::new(program).current_dir(folder).args(arguments).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_package_has_the_types_of_all_its_units() {
    if !has_program("clang") || !has_program("llvm-dwp") {
        return;
    }
    let many: String = (0..40).map(|n| format!("struct Many{n} {{ char a[{}]; int b; }} many{n};\n", n + 1)).collect();
    let sources = [
        ("a.c", "struct Apple { int kernel; double skin[3]; } apple; int pear(void); int main(void){return pear();}"),
        ("b.c", "struct Pear { char seed; long flesh; } p; int pear(void){ return (int)p.flesh; }"),
        ("c.c", &many),
    ];
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        for options in [&[][..], &["-fdebug-types-section"]] {
            let folder = tempfile::tempdir().unwrap();
            let here = folder.path();
            for (name, text) in sources {
                std::fs::write(here.join(name), text).unwrap();
            }
            let compile = [&["clang", "-g", version, "-gsplit-dwarf", "-c", "a.c", "b.c", "c.c"], options].concat();
            run(here, &compile);
            run(here, &["clang", "-o", "prog", "a.o", "b.o", "c.o"]);
            let program = here.join("prog");
            let types = || {
                with_type_data(&[&program], InputOptions::default(), |data| {
                    let one = |name: &str| data.layout(name, 0).map(|found| (found.bytes, found.fields.clone()));
                    let found: Vec<_> = ["Apple", "Pear", "Many0", "Many39", "int"].into_iter().map(one).collect();
                    (found, data.notes().to_vec())
                })
            };
            let (apart, notes) = types().unwrap();
            assert!(apart.iter().all(Option::is_some) && notes.is_empty(), "{version} {options:?}: {notes:?}");
            assert_eq!(apart[1].as_ref().unwrap().0, 16);
            run(here, &["llvm-dwp", "-e", "prog", "-o", "prog.dwp"]);
            ["a.dwo", "b.dwo", "c.dwo"].iter().for_each(|name| std::fs::remove_file(here.join(name)).unwrap());
            assert_eq!(types().unwrap(), (apart, Vec::new()), "{version} {options:?}");
            // Cut or spoiled anywhere, it is an error or has what is left.
            let package = std::fs::read(here.join("prog.dwp")).unwrap();
            for at in (0..package.len()).step_by(61) {
                std::fs::write(here.join("prog.dwp"), &package[..at]).unwrap();
                let _ = types();
                let mut spoiled = package.clone();
                spoiled[at] ^= 0xff;
                std::fs::write(here.join("prog.dwp"), &spoiled).unwrap();
                let _ = types();
            }
            std::fs::remove_file(here.join("prog.dwp")).unwrap();
            let (_, notes) = types().unwrap_or((Vec::new(), vec!["a.dwo are missing: no such file".to_owned()]));
            assert!(notes.iter().any(|note| note.contains("no such file")), "{notes:?}");
        }
    }
}
