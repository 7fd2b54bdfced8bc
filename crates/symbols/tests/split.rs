//! Split debug data: the same frames as from a program that has all of them, and as LLVM's symbolizer has.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anytrace_core::InputOptions;
use anytrace_core::testing::{has_program, skip};
use anytrace_symbols::{Frame, Program};

const HEADER: &str = "#pragma once
#define INLINED static inline __attribute__((always_inline))
INLINED int deep(int n) { volatile int s = n; for (int i = 0; i < n; i++) s = s + i; return s; }
INLINED int twice(int n) { return deep(n) + deep(n + 1); }
";
const FIRST: &str = "#include \"inlined.h\"
namespace shop {
struct Till { int sum; __attribute__((noinline)) int add(int x) { sum += twice(x); return sum; } };
template <class T> __attribute__((noinline)) T triple(T x) { return T(twice(int(x))) * 3; }
}
int other(int);
int first(int n) { return deep(n); }
int main() { shop::Till t{0}; t.add(3); return int(shop::triple<long>(4)) + other(5) + first(2) == 1; }
";
const SECOND: &str = "#include \"inlined.h\"
__attribute__((noinline)) static int inner(int n) { return twice(n) + 1; }
int other(int n) { return inner(n) + deep(n); }
";

/// A compiler with options, and the program that makes packages of what it writes, which does not read what is
/// compressed.
const COMPILERS: [(&str, &[&str], Option<&str>); 7] = [
    ("clang++-14", &["-gdwarf-4"], Some("llvm-dwp-14")),
    ("clang++-14", &["-gdwarf-5"], Some("llvm-dwp-14")),
    ("clang++-14", &["-gdwarf-4", "-fdebug-types-section"], Some("llvm-dwp-14")),
    ("clang++-14", &["-gdwarf-5", "-fdebug-types-section"], Some("llvm-dwp-14")),
    ("clang++-14", &["-gdwarf-5", "-gz"], None),
    ("g++", &["-gdwarf-4"], Some("dwp")),
    ("g++", &["-gdwarf-5"], Some("llvm-dwp-14")),
];

fn run(folder: &Path, program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Builds `whole`, `split` and `packed`, the last without its `.dwo` files; `None` where something is missing.
fn build(compiler: &str, options: &[&'static str], packer: Option<&str>) -> Option<tempfile::TempDir> {
    for program in [compiler, packer.unwrap_or(compiler), "objcopy"] {
        if !has_program(program) {
            skip(&format!("split debug data: no {program}"));
            return None;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, text) in [("inlined.h", HEADER), ("a.cpp", FIRST), ("b.cpp", SECOND)] {
        fs::write(at.join(name), text).unwrap();
    }
    let all = |more: &[&'static str]| [&["-O1", "-g"], options, more].concat();
    for (source, object) in [("a.cpp", "a.o"), ("b.cpp", "b.o")] {
        run(at, compiler, &all(&["-gsplit-dwarf", "-c", source, "-o", object]));
    }
    // Linked twice, so that each has a name of its own.
    run(at, compiler, &["a.o", "b.o", "-o", "split"]);
    run(at, compiler, &all(&["a.cpp", "b.cpp", "-o", "whole"]));
    fs::create_dir(at.join("elsewhere")).unwrap();
    fs::copy(at.join("split"), at.join("elsewhere/packed")).unwrap();
    if let Some(packer) = packer {
        run(at, packer, &["-e", "split", "-o", "elsewhere/packed.dwp"]);
    }
    Some(folder)
}

/// Name of the function, offset in it, frames.
type Place = (String, u64, Vec<Frame>);

/// Every address of the functions that the sources define, with its frames; the addresses again; notes.
fn frames(program: &Path) -> (Vec<Place>, Vec<u64>, Vec<String>) {
    let program = Program::open(program, InputOptions::default()).unwrap();
    let objects = program.objects(None).unwrap();
    let mut notes = Vec::new();
    let debug = objects.debug_data(&mut notes).unwrap();
    let lines = debug.lines().unwrap();
    let (mut all, mut addresses) = (Vec::new(), Vec::new());
    for symbol in objects.symbols().symbols() {
        let name = String::from_utf8_lossy(symbol.name).into_owned();
        let is_ours = ["4shop", "5firsti", "5inneri", "5otheri", "main"].iter().any(|part| name.contains(part));
        if !is_ours || name.contains("libc") {
            continue;
        }
        for offset in 0..symbol.size_bytes {
            all.push((name.clone(), offset, lines.frames(symbol.address + offset)));
            addresses.push(symbol.address + offset);
        }
    }
    (all, addresses, notes)
}

/// What LLVM's symbolizer says of addresses: names and lines, the innermost first.
fn symbolized(program: &Path, addresses: &[u64]) -> Vec<Vec<(String, u32)>> {
    let mut command = Command::new("llvm-symbolizer");
    command.args(["--functions=linkage", "--inlining=true", "--output-style=LLVM", "--no-demangle"]);
    let mut child = command
        .arg(format!("--obj={}", program.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let text: String = addresses.iter().map(|address| format!("{address:#x}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    let blocks = out.trim_end().split("\n\n");
    let frame = |pair: &[&str]| (pair[0].to_owned(), pair[1].rsplit(':').nth(1).unwrap().parse().unwrap());
    blocks.map(|block| block.lines().collect::<Vec<_>>().chunks(2).map(frame).collect()).collect()
}

#[test]
fn frames_are_those_of_a_program_that_was_not_split() {
    for (compiler, options, packer) in COMPILERS {
        let Some(folder) = build(compiler, options, packer) else { continue };
        let at = folder.path();
        let (whole, _, _) = frames(&at.join("whole"));
        let deepest = whole.iter().map(|(_, _, frames)| frames.len()).max().unwrap();
        assert!(deepest >= 3 && whole.len() > 100, "{compiler} {options:?}: {deepest}");
        let (split, addresses, notes) = frames(&at.join("split"));
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(split, whole, "{compiler} {options:?}: .dwo");
        // Of GCC's split data LLVM's symbolizer in version 14 has only the outermost function.
        if compiler.starts_with("clang") && has_program("llvm-symbolizer") {
            let theirs = symbolized(&at.join("split"), &addresses);
            let ours = |frames: &[Frame]| -> Vec<(String, u32)> {
                let frame =
                    |frame: &Frame| (frame.name.clone().unwrap(), frame.location.as_ref().map_or(0, |at| at.line));
                frames.iter().map(frame).collect()
            };
            assert_eq!(theirs.len(), split.len(), "{compiler} {options:?}");
            for ((name, offset, frames), theirs) in split.iter().zip(&theirs) {
                assert_eq!(&ours(frames), theirs, "{compiler} {options:?}: {name}+{offset:#x}");
            }
        }
        // The object files and what is beside them are gone.
        for gone in ["a.dwo", "b.dwo", "a.o", "b.o"] {
            fs::remove_file(at.join(gone)).unwrap();
        }
        if packer.is_some() {
            let (packed, _, notes) = frames(&at.join("elsewhere/packed"));
            assert!(notes.is_empty(), "{notes:?}");
            assert_eq!(packed, whole, "{compiler} {options:?}: .dwp");
        }
        // Without either, names of functions and lines of instructions remain, and it is said what is missing.
        let (_, _, notes) = frames(&at.join("split"));
        assert!(notes.len() == 1 && notes[0].contains("debug data of 2 of 2 units are in other files"), "{notes:?}");
    }
}

#[test]
fn stripped_programs_have_split_debug_data_by_their_debug_files() {
    let Some(folder) = build("clang++-14", &["-gdwarf-5", "-Wl,--build-id"], Some("llvm-dwp-14")) else { return };
    let at = folder.path().join("elsewhere");
    let (whole, _, _) = frames(&folder.path().join("whole"));
    run(&at, "objcopy", &["--only-keep-debug", "packed", "packed.debug"]);
    run(&at, "objcopy", &["--strip-all", "--add-gnu-debuglink=packed.debug", "packed"]);
    for package in ["packed.dwp", "packed.debug.dwp"] {
        let (packed, _, notes) = frames(&at.join("packed"));
        assert!(packed == whole && notes.is_empty(), "{package}: {notes:?}");
        fs::rename(at.join("packed.dwp"), at.join("packed.debug.dwp")).unwrap_or_default();
    }
}

#[test]
fn files_of_another_build_are_reported() {
    let (compiler, options, packer) = COMPILERS[1];
    let Some(folder) = build(compiler, options, packer) else { return };
    let at = folder.path();
    fs::write(at.join("b.cpp"), format!("int more(int n) {{ return n; }}\n{SECOND}")).unwrap();
    let (split, _, _) = frames(&at.join("split"));
    run(at, compiler, &["-O2", "-g", options[0], "-gsplit-dwarf", "-c", "b.cpp", "-o", "b.o"]);
    let (other, _, notes) = frames(&at.join("split"));
    assert!(
        notes.len() == 1 && notes[0].contains("debug data of 1 of 2 units") && notes[0].contains("b.dwo"),
        "{notes:?}"
    );
    let of_first = |all: &[(String, u64, Vec<Frame>)]| -> Vec<_> {
        all.iter().filter(|(name, _, _)| name.contains("shop")).cloned().collect()
    };
    assert_eq!(of_first(&other), of_first(&split));
    fs::write(at.join("b.dwo"), "no object file").unwrap();
    let (_, _, notes) = frames(&at.join("split"));
    assert!(notes.len() == 2 && notes[0].contains("b.dwo: split debug data: no object file"), "{notes:?}");
}

/// Cut and changed anywhere, what is left is read, and nothing panics or takes long.
#[test]
fn damaged_files_are_answered() {
    for (compiler, options, packer) in [COMPILERS[0], COMPILERS[1]] {
        let Some(folder) = build(compiler, options, packer) else { return };
        for (program, file) in [("split", "a.dwo"), ("elsewhere/packed", "elsewhere/packed.dwp")] {
            let (program, file) = (folder.path().join(program), folder.path().join(file));
            let bytes = fs::read(&file).unwrap();
            let count =
                |all: &[(String, u64, Vec<Frame>)]| all.iter().map(|(_, _, frames)| frames.len()).sum::<usize>();
            let most = count(&frames(&program).0);
            for at in (0..bytes.len()).step_by(7) {
                fs::write(&file, &bytes[..at]).unwrap();
                assert!(count(&frames(&program).0) <= most);
                let mut bad = bytes.clone();
                bad[at] ^= 0xff;
                fs::write(&file, bad).unwrap();
                let _ = frames(&program);
            }
        }
    }
}
