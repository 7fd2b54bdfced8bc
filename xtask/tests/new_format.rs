//! `cargo xtask new-format`: what it makes compiles, passes the suite that all formats share, and is registered.

#![allow(missing_docs)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const NAME: &str = "qqtrace";

/// Left out of the copy: large, and nothing there is changed or compiled.
const LEFT_OUT: [&str; 6] = ["target", "corpus", "artifacts", "images", "templates", "cmd"];

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name(), entry.path());
        if LEFT_OUT.iter().any(|left_out| name == *left_out) || name.to_string_lossy().starts_with('.') {
            continue;
        }
        // Links, which the licenses are, stay links.
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            copy(&path, &to.join(name));
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(path).unwrap(), to.join(name)).unwrap();
        } else {
            fs::copy(path, to.join(name)).unwrap();
        }
    }
}

/// What the build is for is whether it works: it is as fast as can be, not its result.
const FAST_BUILD: &str = "\n[profile.dev]\ndebug = false\n\n[profile.test]\ndebug = false\n";

/// A copy of the project's sources, and a folder to build it in.
fn project(folder: &Path) -> (PathBuf, PathBuf) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (root, target) = (folder.join("project"), folder.join("target"));
    fs::create_dir(&root).unwrap();
    for name in ["crates", "recorders", "xtask", "fuzz", "docs"] {
        copy(&here.join(name), &root.join(name));
    }
    for name in ["Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml", "LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(here.join(name), root.join(name)).unwrap();
    }
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let (manifest, _) = manifest.split_once("\n# What `cargo run --release`").unwrap();
    fs::write(root.join("Cargo.toml"), manifest.to_owned() + FAST_BUILD).unwrap();
    (root, target)
}

fn new_format(name: &str, root: &Path) -> Output {
    let mut chore = Command::new(env!("CARGO_BIN_EXE_xtask"));
    chore.args(["new-format", name, "--root", root.to_str().unwrap()]).env("CARGO", env!("CARGO")).output().unwrap()
}

fn cargo(root: &Path, target: &Path, arguments: &[&str]) -> String {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(arguments).current_dir(root).env("CARGO_TARGET_DIR", target);
    let output = cargo.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "cargo {arguments:?}:\n{out}\n{err}");
    out.into_owned()
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            contents(&path, found);
        } else if !kind.is_symlink() {
            let bytes = fs::read(&path).unwrap();
            found.push((path, bytes));
        }
    }
    found.sort();
}

/// Leaves one format in the list of formats, so that checking it does not compile the others.
fn leave_one_format(root: &Path) {
    let list = fs::read_to_string(root.join("crates/formats/src/lib.rs")).unwrap();
    let others = list.lines().filter(|line| line.starts_with("    &anytrace_") && !line.contains(NAME)).count();
    assert!(others >= 6, "{list}");
    for (path, prefix) in [("crates/formats/Cargo.toml", "anytrace-"), ("crates/formats/src/lib.rs", "    &anytrace_")]
    {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let is_left = |line: &&str| !line.starts_with(prefix) || line.contains(NAME) || line.contains("anytrace-core");
        let lines: Vec<_> = text.lines().filter(is_left).collect();
        assert_eq!(text.lines().count() - lines.len(), others, "{path}: the other formats");
        fs::write(root.join(path), lines.join("\n") + "\n").unwrap();
    }
}

/// What stands in for libfuzzer-sys, which needs a nightly toolchain: a target becomes a program that runs its function
/// once on each file it is given.
const FUZZ_TARGET: &str = r#"
#[macro_export]
macro_rules! fuzz_target {
    (|$bytes:ident: &[u8]| $body:expr) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn main(_count: i32, _arguments: *const *const u8) -> i32 {
            let one_input = |$bytes: &[u8]| $body;
            let mut inputs = 0;
            for path in std::env::args_os().skip(1) {
                one_input(&std::fs::read(path).unwrap());
                inputs += 1;
            }
            println!("{inputs} inputs");
            0
        }
    };
}
"#;

/// Compiles the fuzz targets that were made, as programs, and runs them on the samples that were made.
fn run_fuzz_targets(root: &Path, target: &Path, targets: &[String]) {
    let package = root.join("fuzz-programs");
    fs::create_dir_all(package.join("libfuzzer-sys/src")).unwrap();
    fs::write(package.join("libfuzzer-sys/src/lib.rs"), FUZZ_TARGET).unwrap();
    let manifest = "[package]\nname = \"libfuzzer-sys\"\nversion = \"0.4.13\"\nedition = \"2024\"\n";
    fs::write(package.join("libfuzzer-sys/Cargo.toml"), manifest).unwrap();
    let mut manifest = format!(
        "[package]\nname = \"fuzz-programs\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         anytrace-{NAME} = {{ path = \"../crates/{NAME}\" }}\n\
         anytrace-core = {{ path = \"../crates/core\", features = [\"testing\"] }}\n\
         libfuzzer-sys = {{ path = \"libfuzzer-sys\" }}\n{FAST_BUILD}"
    );
    for target in targets {
        manifest += &format!("\n[[bin]]\nname = \"{target}\"\npath = \"../fuzz/fuzz_targets/{target}.rs\"\n");
    }
    fs::write(package.join("Cargo.toml"), manifest).unwrap();
    fs::copy(root.join("Cargo.lock"), package.join("Cargo.lock")).unwrap();
    let corpus = root.join("crates").join(NAME).join("corpus");
    let mut samples = Vec::new();
    contents(&corpus, &mut samples);
    let samples: Vec<&str> = samples.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert!(samples.len() > 4, "{samples:?}");
    for name in targets {
        let run = [&["run", "--quiet", "--offline", "--bin", name, "--"], samples.as_slice()].concat();
        assert_eq!(cargo(&package, target, &run), format!("{} inputs\n", samples.len()), "{name}");
    }
}

#[test]
fn a_new_format_is_registered_compiles_and_passes_the_shared_suite() {
    let folder = tempfile::tempdir().unwrap();
    let (root, target) = project(folder.path());
    let made = new_format(NAME, &root);
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let metadata = cargo(&root, &target, &["metadata", "--offline", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.iter().any(|package| package["name"] == format!("anytrace-{NAME}").as_str()));
    cargo(&root, &target, &["fmt", "--all", "--check"]);
    let summary = fs::read_to_string(root.join("docs/book/src/SUMMARY.md")).unwrap();
    assert!(
        summary.contains("- [perfetto](formats/perfetto.md)\n- [qqtrace](formats/qqtrace.md)\n- [xray]"),
        "{summary}"
    );
    let fuzz = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    let targets = ["parse", "roundtrip"].map(|what| format!("{what}_{NAME}"));
    for name in &targets {
        let path = format!("fuzz_targets/{name}.rs");
        assert!(fuzz.contains(&format!("path = \"{path}\"")) && root.join("fuzz").join(path).is_file(), "{name}");
    }

    // A package outside the workspace's defaults: it and `core` are all that is compiled.
    let tested = cargo(&root, &target, &["test", "--offline", "--package", "anytrace-qqtrace"]);
    for suite in [
        "undamaged_samples_stay_as_they_are",
        "a_copy_of_all_records_is_the_same_trace",
        "every_record_is_a_row_of_each_table",
        "every_sample_is_the_same_in_parts",
    ] {
        assert!(tested.contains(&format!("test {suite} ... ok")), "{tested}");
    }
    run_fuzz_targets(&root, &target, &targets);
    leave_one_format(&root);
    cargo(&root, &target, &["check", "--offline", "--package", "anytrace-formats"]);
}

#[test]
fn a_name_that_is_taken_or_no_name_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (root, _) = project(folder.path());
    fs::write(root.join("docs/book/src/formats/mine.md"), "notes").unwrap();
    let (mut before, mut after) = (Vec::new(), Vec::new());
    contents(&root, &mut before);
    for (name, why) in [
        ("lackey", "taken"),
        ("core", "taken"),
        ("mine", "docs/book/src/formats/mine.md exists"),
        ("measure", "xtask/src/bench/measure.rs exists"),
        ("Upper", "lower-case"),
        ("../out", "lower-case"),
        ("match", "reserved"),
    ] {
        let output = new_format(name, &root);
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && err.contains(why), "{name}: {err}");
    }
    contents(&root, &mut after);
    assert!(before == after);
}
