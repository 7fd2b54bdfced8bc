//! Lines and inlined functions of compiled programs, at every address, against binutils' `addr2line`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anytrace_core::InputOptions;
use anytrace_core::testing::has_program;
use anytrace_symbols::{Binary, ObjectFile};

/// Loops, inlined functions in inlined functions, a macro, a line directive, and a function in a header.
const SOURCE: &str = "\
#include \"part.h\"
#define TWICE(x) ((x) + (x))
static inline int innermost(volatile int *p) {
    return *p * 3;
}
static inline int middle(volatile int *p, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++)
        sum += innermost(p) + i;
    return sum;
}
__attribute__((noinline)) int outer(volatile int *p, int n) {
    int a = middle(p, n);
    int b = of_header(p);
    return TWICE(a) + b;
}
__attribute__((noinline)) static int many(volatile int *p) {
    switch (*p) {
    case 0: return middle(p, 1);
    case 1: return middle(p, 2);
    case 7: return outer(p, 3);
    default: return innermost(p);
    }
}
#line 500 \"elsewhere.c\"
__attribute__((noinline)) int moved(volatile int *p) {
    *p += 1;
    return many(p);
}
int main(void) {
    volatile int n = 7;
    return moved(&n);
}
";

const HEADER: &str = "\
static inline int of_header(volatile int *p) {
    *p ^= 5;

    return *p;
}
";

/// A function and a place in it.
type Row = (String, String);

fn compiled(options: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("lines{}", options.concat()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("main.c"), SOURCE).unwrap();
    std::fs::write(folder.join("part.h"), HEADER).unwrap();
    let program = folder.join("prog");
    let done = Command::new("gcc").current_dir(&folder).args(options).args(["-w", "main.c", "-o", "prog"]).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{options:?}: {}", String::from_utf8_lossy(&done.stderr));
    program
}

/// What `addr2line` says of each address: the innermost function first.
fn expected(program: &Path, addresses: &[u64]) -> Vec<Vec<Row>> {
    let list = program.with_extension("addresses");
    let text = addresses.iter().fold(String::new(), |mut text, address| {
        writeln!(text, "{address:#x}").unwrap();
        text
    });
    std::fs::write(&list, text).unwrap();
    let mut command = Command::new("addr2line");
    command.args(["-a", "-f", "-i", "-e"]).arg(program).arg(format!("@{}", list.display()));
    let done = command.output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let mut found: Vec<Vec<Row>> = Vec::new();
    let mut name = None;
    for line in text.lines() {
        if line.starts_with("0x") {
            found.push(Vec::new());
            continue;
        }
        match name.take() {
            None => name = Some(line.to_owned()),
            Some(name) => {
                // Which of several blocks of a line it is says nothing here.
                let place = line.split(" (disc").next().unwrap();
                found.last_mut().unwrap().push((name, base(place)));
            }
        }
    }
    found
}

/// A place without its folder.
fn base(place: &str) -> String {
    place.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn every_address_of_a_program_has_the_lines_and_functions_of_the_peer() {
    if !has_program("gcc") || !has_program("addr2line") {
        return;
    }
    for options in [
        &["-g", "-gdwarf-5", "-O2"][..],
        &["-g", "-gdwarf-4", "-O2"],
        &["-g", "-gdwarf-3", "-O2"],
        &["-g", "-gdwarf-2", "-O2"],
        &["-g", "-O0"],
        &["-g", "-O2", "-gz"],
        &["-g", "-O2", "-fdebug-types-section", "-ffunction-sections"],
    ] {
        let program = compiled(options);
        let binary = Binary::open(&program, InputOptions::default()).unwrap();
        let object = ObjectFile::parse(&binary, None).unwrap();
        let data = object.debug_data().unwrap();
        let lines = data.lines().unwrap();
        let table = object.symbols();
        let own = ["outer", "many", "moved", "main"].map(str::as_bytes);
        let functions: Vec<_> = table.symbols().iter().filter(|symbol| own.contains(&symbol.name)).collect();
        assert!(functions.len() >= 3, "{options:?}: {functions:?}");
        let addresses: Vec<u64> =
            functions.iter().flat_map(|symbol| symbol.address..symbol.address + symbol.size_bytes).collect();
        let (mut inlined, mut seen) = (0, std::collections::BTreeSet::new());
        for (address, expected) in addresses.iter().zip(expected(&program, &addresses)) {
            let frames = lines.frames(*address);
            let found: Vec<Row> = frames
                .iter()
                .map(|frame| {
                    let place = frame.location.as_ref().map_or("??:0".to_owned(), |location| {
                        let line = if location.line == 0 { "?".to_owned() } else { location.line.to_string() };
                        format!("{}:{line}", base(&location.file))
                    });
                    (frame.name.clone().unwrap_or_else(|| "??".to_owned()), place)
                })
                .collect();
            assert_eq!(found, expected, "{options:?}: {address:#x}");
            assert_eq!(lines.location(*address), frames[0].location, "{options:?}: {address:#x}");
            inlined += usize::from(frames.len() > 1);
            seen.extend(found.into_iter().map(|row| row.1));
        }
        assert!(options.contains(&"-O0") || inlined > 10, "{options:?}: {inlined} addresses of inlined functions");
        let has = |begins: &str| seen.iter().any(|place| place.starts_with(begins));
        assert!(has("elsewhere.c:501") && has("main.c:1"), "{options:?}: {seen:?}");
    }
}
