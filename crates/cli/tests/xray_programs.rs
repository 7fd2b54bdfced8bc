//! From source code to names: programs of ours are built with XRay, recorded, and read.
//!
//! `cargo xtask test` installs clang and its XRay runtime from Debian; where they are missing a test says that it is
//! skipped.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_core::testing::{has_program, skip};

/// Versions of clang that may be there, newest first; each with the peer of its version.
const CLANGS: [&str; 10] = ["-22", "-21", "-20", "-19", "-18", "-17", "-16", "-15", "-14", ""];

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../xray/tests/programs")
}

/// Runs what must succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{err}", output.status);
    output
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn anytrace(arguments: &[&str]) -> Output {
    run(Command::new(env!("CARGO_BIN_EXE_anytrace")).args(arguments))
}

/// Versions of clang here that can link the XRay runtime.
fn clangs(folder: &Path) -> Vec<&'static str> {
    let source = folder.join("probe.cpp");
    std::fs::write(&source, "int main() { return 0; }\n").unwrap();
    let links = |version: &&str| {
        let mut command = Command::new(format!("clang++{version}"));
        command.arg("-fxray-instrument").arg(&source).arg("-o").arg(folder.join("probe"));
        command.output().is_ok_and(|output| output.status.success())
    };
    let found: Vec<_> = CLANGS.into_iter().filter(links).collect();
    if found.is_empty() {
        skip("no clang with the XRay runtime is installed (clang-14, libclang-rt-14-dev)");
    }
    // The unnumbered one is one of the others, where there are others.
    if found.len() > 1 { found.into_iter().filter(|version| !version.is_empty()).collect() } else { found }
}

/// The trace that a program leaves in a folder, which had none.
fn trace_in(folder: &Path) -> String {
    let found: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [trace] = found.as_slice() else { panic!("expected one trace, found {found:?}") };
    trace.display().to_string()
}

/// Records a program in flight-recorder mode and in Basic mode.
fn record(program: &Path, folder: &Path) -> [String; 2] {
    ["fdr", "basic"].map(|mode| {
        let out = folder.join(mode);
        std::fs::create_dir(&out).unwrap();
        let mut command = Command::new(program);
        command.current_dir(&out);
        if mode == "fdr" {
            command.env("XRAY_OPTIONS", "verbosity=0 xray_logfile_base=t.").arg("func_duration_threshold_us=0");
        } else {
            command.env("XRAY_OPTIONS", "patch_premain=true xray_mode=xray-basic verbosity=0 xray_logfile_base=t.");
            command.env("XRAY_BASIC_OPTIONS", "func_duration_threshold_us=0");
        }
        run(&mut command);
        trace_in(&out)
    })
}

/// Every verb on a recorded trace of a program. **New verbs of the group go here.**
fn read_by_every_verb(trace: &str, program: &str, named: &[&str]) {
    anytrace(&["check", trace]);
    let info = text(&anytrace(&["info", trace]));
    assert!(info.contains("function-enter") && info.contains("damage                     none"), "{info}");
    let dump = text(&anytrace(&["dump", trace, "--format", "jsonl"]));
    assert!(dump.lines().count() > 50, "{dump}");
    let map = text(&anytrace(&["xray", "extract", "-s", program]));
    for name in named {
        assert!(map.contains(name), "{name} is not in\n{map}");
    }
    let first = named[0].trim_matches('\'');
    for verb in [
        &["xray", "account"][..],
        &["xray", "stack", "--all-stacks"],
        &["xray", "graph"],
        &["xray", "convert", "-f", "yaml", "-y", "-o", "-"],
        &["xray", "convert", "-f", "trace_event", "-y", "-o", "-"],
        &["stats"],
        &["flame", "--format", "folded"],
    ] {
        let shown = text(&anytrace(&[verb, &["-m", program, trace]].concat()));
        assert!(shown.contains(first), "{verb:?} does not name {first}:\n{shown:.2000}");
    }
}

/// What the peer of the same version makes of a program is what we make of it.
fn extracts_as_peer(version: &str, program: &str) {
    let peer = [format!("llvm-xray{version}"), format!("/usr/lib/llvm{version}/bin/llvm-xray")];
    let Some(peer) = peer.iter().find(|peer| Command::new(peer).arg("--help").output().is_ok()) else {
        skip(&format!("llvm-xray{version} is not installed"));
        return;
    };
    for options in [&[][..], &["--symbolize"], &["-s", "--no-demangle"], &["-s", "--demangle"], &["-no-demangle"]] {
        let mut theirs = text(&run(Command::new(peer).arg("extract").args(options).arg(program)));
        // Up to version 14 the peer keeps template ends apart.
        while theirs.contains("> >") {
            theirs = theirs.replace("> >", ">>");
        }
        let ours = text(&anytrace(&[&["xray", "extract"], options, &[program]].concat()));
        assert_eq!(ours, theirs, "{version} {options:?}");
    }
}

#[test]
fn a_cpp_program_is_recorded_and_named() {
    let folder = tempfile::tempdir().unwrap();
    for version in clangs(folder.path()) {
        let here = folder.path().join(format!("clang{version}"));
        std::fs::create_dir(&here).unwrap();
        // Debug data of every kind: names must not depend on it.
        let variants: [(&str, &[&str]); 5] = [
            ("lines", &["-O1", "-gline-tables-only"]),
            ("full", &["-O2", "-g"]),
            ("nopie", &["-O1", "-g", "-fno-pie", "-no-pie"]),
            ("packed", &["-O1", "-g", "-gz"]),
            ("stripped", &["-O1", "-s"]),
        ];
        for (variant, options) in variants {
            let program = here.join(variant);
            let mut build = Command::new(format!("clang++{version}"));
            build.args(["-std=c++17", "-fxray-instrument", "-fxray-instruction-threshold=1", "-pthread"]);
            build.args(options).arg(programs().join("calls.cpp")).arg("-o").arg(&program);
            run(&mut build);
            extracts_as_peer(version, &program.display().to_string());
        }
        let program = here.join("lines");
        let names = ["'shop::fib(unsigned int)'", "'long shop::twice<long>(long)'", "'shop::Till::add(int)'", "'work("];
        for trace in record(&program, &here) {
            read_by_every_verb(&trace, &program.display().to_string(), &names);
        }
    }
}

#[test]
fn a_rust_program_is_recorded_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let Some(&version) = clangs(folder.path()).first() else { return };
    if !has_program("rustc") {
        return;
    }
    let program = folder.path().join("calls");
    // The switch is one of the nightly compiler; the linker must be clang, which adds the runtime.
    let mut build = Command::new("rustc");
    build.env("RUSTC_BOOTSTRAP", "1").args(["--edition", "2024", "-Z", "instrument-xray=always", "-C", "opt-level=1"]);
    build.arg(format!("-Clinker=clang{version}")).args(["-C", "link-arg=-fxray-instrument", "-g"]);
    build.arg(programs().join("calls.rs")).arg("-o").arg(&program);
    run(&mut build);
    let name = program.display().to_string();
    for trace in record(&program, folder.path()) {
        read_by_every_verb(&trace, &name, &["'calls::fib'", "'<calls::Till>::add'", "'calls::work'"]);
    }
    extracts_as_peer(version, &name);
}

/// The recorder's own settings leave out short calls, and those nested deeper than 64.
#[test]
fn record_keeps_every_call() {
    let folder = tempfile::tempdir().unwrap();
    for version in clangs(folder.path()) {
        let program = folder.path().join(format!("deep{version}"));
        let mut build = Command::new(format!("clang++{version}"));
        build.args(["-O1", "-fno-optimize-sibling-calls", "-fxray-instrument", "-fxray-instruction-threshold=1"]);
        run(build.args(["-pthread", "-o"]).arg(&program).arg(programs().join("deep.cpp")));
        let program = program.to_str().unwrap();
        let counts = |options: &[&str], variables: &[(&str, &str)]| -> [u64; 3] {
            let trace = folder.path().join("t.xray");
            let mut record = Command::new(env!("CARGO_BIN_EXE_anytrace"));
            record.args(["record", "--force", "-o"]).arg(&trace).args(options).args(["--", program, "3000", "20000"]);
            let output = run(record.env_remove("XRAY_OPTIONS").envs(variables.iter().copied()));
            assert!(String::from_utf8_lossy(&output.stderr).contains("max_stack_depth="), "{output:?}");
            let stats = anytrace(&["stats", "--format", "json", "-m", program, trace.to_str().unwrap()]);
            let report: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
            let rows = report["rows"].as_array().unwrap();
            ["deep(int)", "leaf()", "work(int)"].map(|name| {
                let row = rows.iter().find(|row| row["name"] == name);
                row.map_or(0, |row| row["count"].as_u64().unwrap())
            })
        };
        assert_eq!(counts(&[], &[]), [3001, 160_000, 8]);
        let few = counts(&["--min-duration", "1s"], &[]);
        assert!(few[1] == 0 && few[2] == 0, "{few:?}");
        let shallow = counts(&["--max-depth", "100"], &[]);
        assert!((90..=100).contains(&shallow[0]) && shallow[1] == 160_000, "{shallow:?}");
        // What a killed program loses is reported.
        let trace = folder.path().join("killed.xray");
        let mut record = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        record.args(["record", "--force", "-o"]).arg(&trace).args(["--", program, "3000", "20000", "9"]);
        let output = record.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(137) && said.contains("ended by signal 9: what its threads"), "{said}");
        anytrace(&["check", trace.to_str().unwrap()]);
        // What the environment says counts.
        let own = counts(&[], &[("XRAY_BASIC_OPTIONS", "max_stack_depth=50")]);
        assert!((40..=50).contains(&own[0]), "{own:?}");
    }
}

/// A program that switches its flight recorder on has every call in its trace, and one that does not is told how.
#[test]
fn record_gives_the_flight_recorder_room() {
    let folder = tempfile::tempdir().unwrap();
    for version in clangs(folder.path()) {
        let program = folder.path().join(format!("calls{version}"));
        let mut build = Command::new(format!("clang++{version}"));
        build.args(["-std=c++17", "-O1", "-fxray-instrument", "-fxray-instruction-threshold=1", "-pthread"]);
        run(build.arg(programs().join("calls.cpp")).arg("-o").arg(&program));
        let program = program.to_str().unwrap();
        let trace = folder.path().join("t.xray");
        let record = |arguments: &[&str]| {
            let mut record = Command::new(env!("CARGO_BIN_EXE_anytrace"));
            record.args(["record", "--force", "-o"]).arg(&trace).args(arguments);
            record.env_remove("XRAY_OPTIONS").output().unwrap()
        };
        let counts = |arguments: &[&str]| -> u64 {
            let output = record(arguments);
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let stats = anytrace(&["stats", "--format", "json", "-m", program, trace.to_str().unwrap()]);
            let report: serde_json::Value = serde_json::from_slice(&stats.stdout).unwrap();
            let rows = report["rows"].as_array().unwrap();
            rows.iter().filter(|row| row["name"] != "main").map(|row| row["count"].as_u64().unwrap()).sum()
        };
        // An empty text of options: those of the environment count.
        let all = counts(&["--", program]);
        assert!(all > 10 && counts(&["--mode", "fdr", "--", program, ""]) == all);
        assert!(counts(&["--mode", "fdr", "--min-duration", "1s", "--", program, ""]) < all);
        std::fs::remove_file(&trace).unwrap();
        let nothing = record(&["--mode", "fdr", "--", program]);
        let said = String::from_utf8_lossy(&nothing.stderr);
        assert!(nothing.status.code() == Some(2) && said.contains("__xray_log_flushLog"), "{said}");
        let refused = record(&["--mode", "fdr", "--max-depth", "5", "--", program, ""]);
        assert_eq!(refused.status.code(), Some(2));
    }
}

#[test]
fn the_three_commands_of_the_guide_make_a_flame_graph() {
    let folder = tempfile::tempdir().unwrap();
    let Some(version) = clangs(folder.path()).first().copied() else { return };
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/src/guide/slow-program.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let commands = guide.split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    assert_eq!(commands.lines().count(), 3, "{commands}");
    std::fs::copy(programs().join("calls.cpp"), folder.path().join("app.cpp")).unwrap();
    let which = run(Command::new("sh").args(["-c", &format!("command -v clang++{version}")]));
    let tools = folder.path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::os::unix::fs::symlink(text(&which).trim(), tools.join("clang++")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_anytrace"), tools.join("anytrace")).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    run(Command::new("sh").args(["-e", "-c", commands]).current_dir(folder.path()).env("PATH", path));
    let picture = std::fs::read_to_string(folder.path().join("app.svg")).unwrap();
    assert!(picture.contains("shop::fib(unsigned int)") && picture.contains("main"), "{picture}");
}
