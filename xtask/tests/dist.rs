//! `cargo xtask dist` with small programs in place of the command. `cargo xtask test` runs it with the command itself.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Answers what the chore asks the command; `FAILS` is the verb that ends with 2, or `alone` where it needs more than
/// itself.
const PROGRAM: &str = r#"
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words[0] == "FAILS" {
        std::process::exit(2);
    }
    if "FAILS" == "alone" && !std::path::Path::new("/proc/self").exists() {
        std::process::exit(2);
    }
    match words[0].as_str() {
        "--version" => {
            let own = std::env::current_exe().unwrap();
            println!("{} VERSION", own.file_name().unwrap().to_string_lossy());
        }
        "query" => println!("has_events\ntrue"),
        "completions" => println!("complete -W info anytrace"),
        "man" => {
            std::fs::create_dir_all(&words[3]).unwrap();
            let page = ".TH anytrace 1\n.SH NAME\nanytrace \\- a program\n";
            std::fs::write(format!("{}/anytrace.1", words[3]), page).unwrap();
        }
        _ => println!("{words:?}"),
    }
}
"#;

/// Compiles it statically into a folder.
fn program(folder: &Path, fails: &str) -> PathBuf {
    let source = folder.join("program.rs");
    std::fs::write(&source, PROGRAM.replace("FAILS", fails).replace("VERSION", env!("CARGO_PKG_VERSION"))).unwrap();
    let program = folder.join("program");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "-C", "target-feature=+crt-static", "-C", "strip=symbols", "-o"]);
    let output = rustc.arg(&program).arg(source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn dist(program: &Path, folder: &Path) -> Output {
    let mut xtask = Command::new(env!("CARGO_BIN_EXE_xtask"));
    xtask.args(["dist", "--target", "x86_64-unknown-linux-gnu", "--binary"]).arg(program);
    xtask.arg("--query").arg(program);
    xtask.arg("--output").arg(folder).env("SOURCE_DATE_EPOCH", "1000000000").output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).map(|entries| entries.map(|entry| entry.unwrap().file_name())).unwrap();
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_tarball_and_a_debian_package_appear_and_are_the_same_each_time() {
    let temporary = tempfile::tempdir().unwrap();
    let program = program(temporary.path(), "nothing");
    let folders = ["one", "two"].map(|name| temporary.path().join(name));
    for folder in &folders {
        let output = dist(&program, folder);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let version = env!("CARGO_PKG_VERSION");
    let tarball = format!("anytrace-{version}-x86_64-unknown-linux-gnu.tar.gz");
    let deb = format!("anytrace_{version}_amd64.deb");
    let [one, two] = folders;
    let query_tarball = format!("anytrace-query-{version}-x86_64-unknown-linux-gnu.tar.gz");
    let query_deb = format!("anytrace-query_{version}_amd64.deb");
    assert_eq!(names(&one), [&tarball, &query_tarball, &query_deb, &deb].map(String::as_str));
    for name in [&tarball, &deb, &query_tarball, &query_deb] {
        assert_eq!(std::fs::read(one.join(name)).unwrap(), std::fs::read(two.join(name)).unwrap(), "{name}");
    }
    let paths_of = |name: &str| {
        let bytes = std::fs::File::open(one.join(name)).unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
        let path = |entry: std::io::Result<tar::Entry<'_, _>>| entry.unwrap().path().unwrap().into_owned();
        archive.entries().unwrap().map(path).collect::<Vec<PathBuf>>()
    };
    let paths = paths_of(&tarball);
    let top = format!("anytrace-{version}-x86_64-unknown-linux-gnu");
    for path in ["bin/anytrace", "LICENSE-MIT", "LICENSES-DEPENDENCIES", "README.md", "share/man/man1/anytrace.1"] {
        assert!(paths.contains(&Path::new(&top).join(path)), "{path} in {paths:?}");
    }
    let engine = paths_of(&query_tarball);
    for path in ["bin/anytrace-query", "LICENSE-MIT", "LICENSES-DEPENDENCIES-anytrace-query"] {
        assert!(engine.contains(&Path::new(&top).join(path)), "{path} in {engine:?}");
    }
    assert!(!paths.iter().any(|path| path.ends_with("anytrace-query")), "the command's package is the small one");
}

#[test]
fn a_program_that_fails_its_trial_leaves_no_file() {
    // The trial in an empty root folder needs root.
    let alone = nix::unistd::geteuid().is_root().then_some("alone");
    for verb in ["info", "man", "completions", "--version", "query"].into_iter().chain(alone) {
        let temporary = tempfile::tempdir().unwrap();
        let program = program(temporary.path(), verb);
        let folder = temporary.path().join("out");
        let output = dist(&program, &folder);
        assert_eq!(output.status.code(), Some(1), "{verb}");
        assert_eq!(names(&folder), [] as [&str; 0], "{verb}");
    }
}

#[test]
fn a_program_that_needs_a_loader_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("out");
    let output = dist(Path::new(env!("CARGO_BIN_EXE_xtask")), &folder);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a statically linked ELF program was expected"));
    assert!(!folder.exists());
}
