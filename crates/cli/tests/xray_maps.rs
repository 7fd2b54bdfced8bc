//! Names of libraries, linked and opened, by the maps that `record` keeps beside a trace.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anytrace_core::testing::skip;

const FILES: [&str; 6] = ["program", "libbase.so", "libmid.so", "libdep.so", "libzoo.so", "libant.so"];

/// The objects by their numbers: each library after those that it needs, those that are opened last.
const NUMBERED: [&str; 6] = ["program", "libbase.so", "libmid.so", "libdep.so", "libzoo.so", "libant.so"];

/// Every path through the program.
const PATHS: [&str; 11] = [
    "main",
    "main;mid_work;mid_step",
    "main;mid_work;base_work",
    "main;mid_work;base_work;base_step",
    "main;open_and_work",
    "main;zoo_work",
    "main;zoo_work;zoo_step",
    "main;zoo_work;dep_work",
    "main;zoo_work;dep_work;dep_step",
    "main;ant_work",
    "main;ant_work;ant_step",
];

fn anytrace(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    for variable in ["XRAY_OPTIONS", "XRAY_BASIC_OPTIONS", "DEBUGINFOD_URLS"] {
        command.env_remove(variable);
    }
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn good(folder: &Path, arguments: &[&str]) -> (String, String) {
    let output = anytrace(folder, arguments);
    let texts = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{arguments:?}: {}\n{}", output.status, texts[1]);
    let [out, err] = texts;
    (out, err)
}

/// The program and its libraries in a folder; `None`, and a line that says so, where it does not run here.
fn plugins() -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plugins");
    for name in FILES {
        let file = fs::File::open(packed.join(format!("{name}.gz"))).unwrap();
        let mut unpacked = fs::File::create(folder.path().join(name)).unwrap();
        std::io::copy(&mut flate2::read::GzDecoder::new(file), &mut unpacked).unwrap();
        unpacked.set_permissions(fs::Permissions::from_mode(0o755)).unwrap();
    }
    let runs = Command::new(folder.path().join("program")).current_dir(folder.path()).status();
    if !runs.is_ok_and(|status| status.success()) {
        skip("the program that was built by clang 22 does not run here");
        return None;
    }
    Some(folder)
}

/// The lines about objects of a file of maps: number and name.
fn objects(maps: &Path) -> Vec<(Option<u32>, String)> {
    let text = fs::read_to_string(maps).unwrap();
    assert!(text.starts_with("# anytrace maps 1\n"), "{text}");
    let lines = text.lines().filter_map(|line| line.strip_prefix("# object "));
    let object = |line: &str| {
        let (number, path) = (line.split(' ').next().unwrap(), line.splitn(3, ' ').nth(2).unwrap());
        let name = Path::new(path).file_name().unwrap().to_string_lossy().into_owned();
        (number.parse().ok(), name)
    };
    lines.map(object).collect()
}

fn has_all_paths(folded: &str) {
    for path in PATHS {
        assert!(folded.lines().any(|line| line.rsplit_once(' ').unwrap().0 == path), "{path} is not in\n{folded}");
    }
    assert!(!folded.contains('#') && !folded.contains('@'), "{folded}");
}

fn numbered(maps: &Path) -> Vec<String> {
    let mut found: Vec<_> = objects(maps).into_iter().filter_map(|(number, name)| Some((number?, name))).collect();
    found.sort();
    assert!(found.iter().zip(0..).all(|((number, _), at)| *number == at), "{found:?}");
    found.into_iter().map(|(_, name)| name).collect()
}

#[test]
fn functions_of_linked_and_opened_libraries_have_names_without_being_told() {
    let Some(folder) = plugins() else { return };
    let folder = folder.path();
    let (_, said) = good(folder, &["record", "-o", "t.xray", "--", "./program", "100"]);
    for part in ["t.xray.maps: the program and 5 instrumented libraries", "next: anytrace stats t.xray\n"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(numbered(&folder.join("t.xray.maps")), NUMBERED);
    let (folded, notes) = good(folder, &["flame", "--format", "folded", "t.xray"]);
    has_all_paths(&folded);
    assert!(notes.contains("as they were loaded: 1 is ") && notes.contains("libant.so"), "{notes}");
    // Every verb that shows functions, without -m and with the program's.
    for verb in [
        &["stats"][..],
        &["timeline"],
        &["highlights"],
        &["convert", "--to", "chrome", "-o", "-"],
        &["convert", "--to", "csv", "-o", "-"],
        &["merge", "-o", "-", "--to", "chrome"],
        &["xray", "account"],
        &["xray", "stack"],
        &["xray", "graph"],
        &["xray", "convert", "-f", "yaml", "-y", "-o", "-"],
    ] {
        for named in [&[][..], &["-m", "program"]] {
            let (out, _) = good(folder, &[verb, named, &["t.xray"]].concat());
            let name = if verb == ["highlights"] { "main" } else { "zoo_work" };
            assert!(out.contains(name), "{verb:?} {named:?} does not name {name}:\n{out}");
        }
    }
    let (out, _) = good(folder, &["xray", "graph-diff", "t.xray", "t.xray"]);
    assert!(out.contains("dep_step"), "{out}");
    let report = ["report", "t.xray", "-o", "t.html"];
    good(folder, &report);
    assert!(fs::read_to_string(folder.join("t.html")).unwrap().contains("ant_step"));
}

#[test]
fn a_program_that_is_killed_or_over_at_once_has_its_maps() {
    let Some(folder) = plugins() else { return };
    let folder = folder.path();
    let output = anytrace(folder, &["record", "-o", "k.xray", "--", "./program", "100", "kill"]);
    assert_eq!(output.status.code(), Some(137));
    assert_eq!(numbered(&folder.join("k.xray.maps")), NUMBERED);
    // What is opened in the last moments of a short run may be missed; what it is linked with is not.
    for run in 0..5 {
        good(folder, &["record", "--force", "-o", "s.xray", "--", "./program"]);
        let found = numbered(&folder.join("s.xray.maps"));
        assert!(
            found.len() >= 3 && NUMBERED.starts_with(&found.iter().map(String::as_str).collect::<Vec<_>>()),
            "{run}"
        );
    }
}

#[test]
fn each_process_has_its_own_maps() {
    let Some(folder) = plugins() else { return };
    let folder = folder.path();
    let script = "cp program other; ./other 60; exec ./program 80";
    good(folder, &["record", "--with", "xray", "-o", "t.xray", "--", "sh", "-c", script]);
    let process = |maps: &str| {
        let text = fs::read_to_string(folder.join(maps)).unwrap();
        text.lines().find_map(|line| line.strip_prefix("# process ").map(str::to_owned)).unwrap()
    };
    let programs: Vec<String> =
        ["t.xray.maps", "t.xray.1.maps"].map(|maps| numbered(&folder.join(maps))[0].clone()).to_vec();
    assert_eq!(programs, ["program", "other"]);
    assert_ne!(process("t.xray.maps"), process("t.xray.1.maps"));
    for trace in ["t.xray", "t.xray.1"] {
        has_all_paths(&good(folder, &["flame", "--format", "folded", trace]).0);
    }
}

#[test]
fn maps_are_not_replaced_unless_that_is_asked_for() {
    let Some(folder) = plugins() else { return };
    let folder = folder.path();
    fs::write(folder.join("t.xray.maps"), "mine").unwrap();
    let output = anytrace(folder, &["record", "-o", "t.xray", "--", "./program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("t.xray.maps exists"), "{output:?}");
    assert!(!folder.join("t.xray").exists());
    good(folder, &["record", "--force", "-o", "t.xray", "--", "./program"]);
    assert!(!objects(&folder.join("t.xray.maps")).is_empty());
    // By itself it takes a name of which neither is there.
    fs::write(folder.join("program.xray.maps"), "mine").unwrap();
    good(folder, &["record", "--", "./program"]);
    assert!(folder.join("program.1.xray").exists() && folder.join("program.1.xray.maps").exists());
    // What is no file of maps is not taken for one.
    fs::write(folder.join("t.xray.maps"), "mine").unwrap();
    assert!(good(folder, &["stats", "t.xray"]).0.contains('#'));
}

/// Changes the build id of a file, which its line in the maps has.
fn build_anew(file: &Path, maps: &str) {
    let name = file.file_name().unwrap().to_str().unwrap();
    let line = maps.lines().find(|line| line.starts_with("# object ") && line.ends_with(&format!("/{name}"))).unwrap();
    let digits = line.split(' ').nth(3).unwrap();
    let id: Vec<u8> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
    let mut bytes = fs::read(file).unwrap();
    let at = bytes.windows(id.len()).position(|window| window == id).unwrap();
    bytes[at] ^= 1;
    fs::write(file, bytes).unwrap();
}

/// What was moved, removed or built anew.
#[test]
fn objects_that_are_no_longer_what_was_recorded_are_reported() {
    let Some(home) = plugins() else { return };
    let folder = home.path().join("old");
    fs::create_dir(&folder).unwrap();
    FILES.iter().for_each(|name| fs::rename(home.path().join(name), folder.join(name)).unwrap());
    good(&folder, &["record", "-o", "t.xray", "--", "./program", "100"]);
    // Another build of one library: its build id differs.
    let library = folder.join("libant.so");
    let bytes = fs::read(&library).unwrap();
    let maps = fs::read_to_string(folder.join("t.xray.maps")).unwrap();
    build_anew(&library, &maps);
    let (folded, notes) = good(&folder, &["flame", "--format", "folded", "t.xray"]);
    assert!(folded.contains("zoo_step") && !folded.contains("ant_step"), "{folded}");
    assert!(notes.contains("libant.so was built anew since the trace was recorded"), "{notes}");
    let (folded, _) = good(&folder, &["flame", "--format", "folded", "-m", "5=libant.so", "t.xray"]);
    has_all_paths(&folded);
    fs::remove_file(&library).unwrap();
    let (folded, notes) = good(&folder, &["flame", "--format", "folded", "t.xray"]);
    assert!(folded.contains("zoo_step") && notes.contains("object 5 has no names: "), "{notes}");
    fs::write(&library, bytes).unwrap();
    // Moved as a whole, the program is named, and its libraries are beside it.
    let moved = home.path().join("new");
    fs::rename(&folder, &moved).unwrap();
    let (folded, notes) = good(&moved, &["flame", "--format", "folded", "t.xray"]);
    assert!(!folded.contains("zoo_step") && notes.contains("-m PATH names the program"), "{notes}");
    has_all_paths(&good(&moved, &["flame", "--format", "folded", "-m", "./program", "t.xray"]).0);
    // Another build of the program that is named.
    let program: PathBuf = moved.join("program");
    build_anew(&program, &maps);
    let (_, notes) = good(&moved, &["stats", "-m", "./program", "t.xray"]);
    assert!(notes.contains("is another build than"), "{notes}");
}

/// The kernel's own file, as a user copies it.
#[test]
fn maps_of_the_kernel_alone_name_libraries_too() {
    let Some(folder) = plugins() else { return };
    let folder = folder.path();
    good(folder, &["record", "-o", "t.xray", "--", "./program", "100"]);
    let kept = fs::read_to_string(folder.join("t.xray.maps")).unwrap();
    let mut lines: Vec<&str> = kept.lines().filter(|line| !line.starts_with('#')).collect();
    lines.sort_unstable();
    fs::write(folder.join("maps"), lines.join("\n") + "\n").unwrap();
    fs::remove_file(folder.join("t.xray.maps")).unwrap();
    let unnamed = good(folder, &["stats", "t.xray"]).0;
    assert!(unnamed.contains('#'), "{unnamed}");
    for option in ["--maps", "-m"] {
        let (folded, notes) = good(folder, &["flame", "--format", "folded", option, "maps", "t.xray"]);
        assert!(notes.contains("as they were most likely loaded"), "{notes}");
        for path in &PATHS[..5] {
            assert!(folded.lines().any(|line| line.starts_with(&format!("{path} "))), "{path}: {folded}");
        }
    }
    let (_, notes) = good(folder, &["stats", "--maps", "maps", "-m", "program", "-m", "4=libzoo.so", "t.xray"]);
    assert!(notes.contains("5 is "), "{notes}");
    let output = anytrace(folder, &["stats", "--maps", "maps", "--maps", "maps", "t.xray"]);
    assert_eq!(output.status.code(), Some(2));
    // A damaged file: what is readable counts.
    fs::write(folder.join("maps"), lines.join("\n") + "\nrubbish\n").unwrap();
    let (_, notes) = good(folder, &["stats", "--maps", "maps", "t.xray"]);
    assert!(notes.contains(&format!("maps: line {}: expected a mapping", lines.len() + 1)), "{notes}");
}

#[test]
fn what_is_made_of_a_trace_has_its_names_too() {
    let Some(folder) = plugins() else { return };
    let at = folder.path();
    for name in ["t.xray", "u.xray"] {
        good(at, &["record", "-o", name, "--", "./program", "100"]);
    }
    let maps = fs::read(at.join("t.xray.maps")).unwrap();
    good(at, &["trim", "--records", "..", "t.xray", "-o", "trimmed.xray"]);
    good(at, &["convert", "t.xray", "-o", "converted.xray"]);
    good(at, &["repair", "t.xray", "-o", "repaired.xray"]);
    for name in ["trimmed.xray", "converted.xray", "repaired.xray"] {
        assert_eq!(fs::read(at.join(format!("{name}.maps"))).unwrap(), maps, "{name}");
        has_all_paths(&good(at, &["flame", "--format", "folded", name]).0);
    }
    // Of the file itself, of standard output and of another form nothing is copied.
    good(at, &["repair", "t.xray", "-o", "t.xray", "--force"]);
    assert_eq!(fs::read(at.join("t.xray.maps")).unwrap(), maps);
    good(at, &["convert", "t.xray", "-o", "t.json", "--to", "chrome"]);
    good(at, &["convert", "t.xray", "-o", "-"]);
    assert!(!at.join("t.json.maps").exists() && !at.join("-.maps").exists());
    // What is there already is not replaced, and names of another trace are not passed over in silence.
    fs::write(at.join("new.xray.maps"), "mine").unwrap();
    let refused = anytrace(at, &["convert", "t.xray", "-o", "new.xray"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(2) && why.contains("new.xray.maps exists; use --force"), "{why}");
    assert!(!at.join("new.xray").exists());
    fs::copy(at.join("t.xray"), at.join("bare.xray")).unwrap();
    let (_, said) = good(at, &["convert", "bare.xray", "-o", "converted.xray", "--force"]);
    assert!(said.contains("converted.xray.maps is from before"), "{said}");
}

#[test]
fn traces_of_one_program_are_counted_together_by_their_names() {
    let Some(folder) = plugins() else { return };
    let at = folder.path();
    for name in ["t.xray", "u.xray"] {
        good(at, &["record", "-o", name, "--", "./program", "100"]);
    }
    let stack = |more: &[&str]| {
        let form = ["xray", "stack", "--stack-format=flame", "--aggregate-threads", "t.xray", "u.xray"];
        good(at, &[&form[..], more].concat()).0
    };
    let together = stack(&[]);
    assert!(together.contains("main;mid_work;base_work;base_step") && !together.contains('#'), "{together}");
    assert!(stack(&["--per-file"]).matches("main;ant_work;ant_step").count() == 2);
    // Of two builds, names are those of neither.
    let other = fs::read_to_string(at.join("u.xray.maps")).unwrap().replacen("# object 1 ", "# object 1 00", 1);
    fs::write(at.join("u.xray.maps"), other).unwrap();
    assert!(!stack(&[]).contains("main"));
}
