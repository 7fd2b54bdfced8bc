//! The library's interface, used by a C program; and what the library consists of.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may panic")]

mod common;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use anytrace_core::testing::has_program;
use common::{PLAIN, SANITIZED, TARGETS, VALGRIND, library, run};

#[test]
fn every_function_callback_and_refusal_works_from_c() {
    for variant in [PLAIN, SANITIZED, VALGRIND] {
        let folder = tempfile::tempdir().unwrap();
        let Some(output) = run(folder.path(), "interface", &variant, &[]) else { continue };
        let errors = String::from_utf8_lossy(&output.stderr);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown == "fine\n" && errors.is_empty(), "{}: {shown}{errors}", variant.name);
    }
}

/// The text of a block of the README.
fn block(language: &str) -> &'static str {
    let start = format!("```{language}\n");
    include_str!("../README.md").split(&start).nth(1).unwrap().split("```").next().unwrap()
}

#[test]
fn the_program_of_the_readme_prints_what_the_readme_says() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = common::own_library().filter(|_| has_program("gcc")) else { return };
    let (source, program) = (folder.path().join("readme.c"), folder.path().join("readme"));
    std::fs::write(&source, block("c")).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-no-pie", "-I"]).arg(include);
    assert!(gcc.arg(&source).arg(library).arg("-o").arg(&program).status().unwrap().success());
    let output = Command::new(&program).output().unwrap();
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stdout).as_ref()), (Some(1), block("text")));
}

/// The member of the library that has its functions: all of the crate, the engine and what they use of Rust's own.
fn member(folder: &Path, library: &Path) -> std::path::PathBuf {
    assert!(Command::new("ar").arg("x").arg(library).current_dir(folder).status().unwrap().success());
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_own = |path: &std::path::PathBuf| {
        path.file_name().unwrap().to_string_lossy().starts_with("anytrace_casemate_recorder")
    };
    let own: Vec<_> = names.filter(is_own).collect();
    assert_eq!(own.len(), 1, "{own:?}");
    own.into_iter().next().unwrap()
}

/// What a tool of LLVM says of a file: those of binutils know one kind of machine only.
fn tool(name: &str, arguments: &[&str], file: &Path) -> Option<String> {
    if !has_program(name) {
        return None;
    }
    let output = Command::new(name).args(arguments).arg(file).output().unwrap();
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn the_library_needs_four_functions_and_has_no_path_to_a_panic() {
    for target in TARGETS {
        let Some(library) = library(target) else { continue };
        if !has_program("ar") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let member = member(folder.path(), &library);
        let Some(symbols) = tool("llvm-nm", &["-P"], &member) else { continue };
        let mut needed = BTreeSet::new();
        let mut offered = BTreeSet::new();
        for line in symbols.lines() {
            let mut words = line.split_whitespace();
            let (name, kind) = (words.next().unwrap(), words.next().unwrap());
            // The panic handler names a function that does not exist.
            assert!(!name.contains("panic") && !name.contains("alloc_error"), "{target}: {line}");
            match kind {
                "U" => drop(needed.insert(name)),
                "T" => drop(offered.insert(name)),
                _ => {}
            }
        }
        let functions =
            ["initialise", "memory", "report", "step", "step_name", "verdict"].map(|name| format!("casemate_{name}"));
        assert!(offered.iter().copied().eq(functions.iter().map(String::as_str)), "{target}: {offered:?}");
        let known = BTreeSet::from(["memcmp", "memcpy", "memmove", "memset", "bcmp"]);
        assert!(needed.is_subset(&known), "{target}: {needed:?}");
    }
}

#[test]
fn the_library_uses_no_floating_point_and_no_vectors() {
    for (target, has_register) in TARGETS.into_iter().zip([is_vector_x86 as fn(&str) -> bool, is_vector_arm]) {
        let Some(library) = library(target) else { continue };
        if !has_program("ar") {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let member = member(folder.path(), &library);
        let arguments = ["-d", "--no-show-raw-insn"];
        let Some(code) = tool("llvm-objdump", &arguments, &member) else { continue };
        let instructions = code.lines().filter_map(|line| line.split_once(":\t").or_else(|| line.split_once(": ")));
        let mut count = 0;
        for (_, instruction) in instructions {
            count += 1;
            assert!(!has_register(instruction), "{target}: {instruction}");
        }
        assert!(count > 10_000, "{target}: {count} instructions");
    }
}

fn words(instruction: &str) -> impl Iterator<Item = &str> {
    instruction.split(|c: char| !c.is_ascii_alphanumeric())
}

/// `xmm0`, `ymm0`, `zmm0`, `mm0`, `st`.
fn is_vector_x86(instruction: &str) -> bool {
    let operands = instruction.split_once(['\t', ' ']).map_or("", |(_, operands)| operands);
    let operands = operands.split('<').next().unwrap_or_default();
    words(operands).any(|word| word.trim_start_matches(['x', 'y', 'z']).starts_with("mm") || word == "st")
}

/// `v0`, `q0`, `d0`, `s0`, `h0`, `b0`, followed by nothing but digits.
fn is_vector_arm(instruction: &str) -> bool {
    let operands = instruction.trim().split_once(['\t', ' ']).map_or("", |(_, operands)| operands);
    let operands = operands.split('<').next().unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    words(operands).any(|word| word.strip_prefix(['v', 'q', 'd', 's', 'h', 'b']).is_some_and(is_number))
}

#[test]
fn registers_of_vectors_are_recognized() {
    for text in ["movups\t%xmm0, (%rdi)", "fld %st(0)", "vmovdqa %ymm1, %ymm2", "movq %mm0, %rax"] {
        assert!(is_vector_x86(text), "{text}");
    }
    assert!(!is_vector_x86("callq\t0x10 <memmove+0x1>") && !is_vector_x86("movq\t%rax, %rcx"));
    for text in ["ldr\tq0, [x1]", "fmov\td0, x1", "str s3, [sp]", "movi v0.2d, #0"] {
        assert!(is_vector_arm(text), "{text}");
    }
    assert!(!is_vector_arm("b\t0x10 <casemate_step+0xd0>") && !is_vector_arm("ldr\tx0, [x1]"));
}
