//! `anytrace apitrace trace`: what is recorded is what was drawn. The programs in `tracing/` write the pixels of each
//! frame themselves, and a replay of their traces must have the same ones.
//!
//! `cargo xtask test` installs EGL with Mesa's software driver, a C compiler and apitrace; without them the tests report
//! that they are skipped.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

mod replaying;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use anytrace_core::testing::{has_program, skip};
use replaying::{Display, anytrace, has_egl, lines, replay, said};

/// The recorder, built once.
fn recorder() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let program = Path::new(env!("CARGO_BIN_EXE_anytrace"));
        let mut command = Command::new(env!("CARGO"));
        command.args(["build", "--quiet", "--locked", "-p", "anytrace-recorder-apitrace", "--message-format=json"]);
        let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let library = program.with_file_name("libanytrace_apitrace_recorder.so");
        assert!(library.is_file(), "{} is not there", library.display());
        library
    })
}

/// A program of `tracing/`, compiled; `None`, with a note, where that cannot be.
fn program(folder: &Path, name: &str) -> Option<PathBuf> {
    if !has_egl() || !has_program("gcc") {
        skip("no EGL or no gcc: nothing is recorded");
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/tracing/{name}.c"));
    let made = folder.join(name);
    let mut command = Command::new("gcc");
    command.args(["-O1", "-o"]).arg(&made).arg(source).args(["-l:libEGL.so.1", "-lpthread"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    Some(made)
}

fn trace(folder: &Path, words: &[&str], command: &[&str]) -> Output {
    let mut trace = anytrace(&["apitrace", "trace"]);
    trace.args(words).arg("--").args(command).current_dir(folder).env("ANYTRACE_APITRACE_RECORDER", recorder());
    trace.output().unwrap()
}

/// The pixels of a picture in the form PPM.
fn pixels(path: &Path) -> Vec<u8> {
    // A comment has the call's number.
    let bytes = fs::read(path).unwrap();
    let (header, pixels) = bytes.split_at(bytes.len() - 64 * 48 * 3);
    assert!(header.starts_with(b"P6\n") && header.ends_with(b"\n64 48\n255\n"), "{}", path.display());
    pixels.to_vec()
}

/// Files whose names begin so, sorted.
fn named(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_of_this = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(start);
    let mut found: Vec<PathBuf> = entries.filter(is_of_this).collect();
    found.sort();
    found
}

/// The last lines of the dump of all calls.
fn last_calls(trace: &Path, count: usize) -> Vec<String> {
    let output = anytrace(&["apitrace", "dump", "-v"]).arg(trace).output().unwrap();
    let all = lines(&output);
    all[all.len().saturating_sub(count)..].to_vec()
}

fn check(trace: &Path) -> Output {
    anytrace(&["check"]).arg(trace).output().unwrap()
}

#[test]
fn a_replay_has_the_pixels_that_the_program_itself_read() {
    for (name, frames) in [("desktop", 22), ("es", 10), ("threads", 22)] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), name) else { return };
        let output = trace(folder.path(), &["-o", "t.trace"], &[program.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{name}: {}", said(&output));
        assert!(said(&output).contains(&format!(" calls, {frames} frames, ")), "{}", said(&output));
        let recorded = folder.path().join("t.trace");
        let found = check(&recorded);
        assert_eq!(found.status.code(), Some(0), "{name}: {}", lines(&found).join("\n"));
        let prefix = folder.path().join("ours.");
        let output = replay(&["--snapshot-format=PNM", "-s", prefix.to_str().unwrap()], &recorded);
        assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()), "{name}");
        let (own, replayed) = (named(folder.path(), "frame."), named(folder.path(), "ours."));
        assert_eq!((own.len(), replayed.len()), (frames, frames), "{name}");
        for (own, replayed) in own.iter().zip(&replayed) {
            assert!(fs::read(own).unwrap() == pixels(replayed), "{name}: {} differs", own.display());
        }
    }
}

/// What apitrace's player makes of a trace: a sum a frame. It does not always start: it may find no display at first.
fn played(display: &Display, player: &str, trace: &str) -> Output {
    let play = || display.output(&[player, "-b", "--headless", "-s", "-", "--snapshot-format", "MD5", trace]);
    let first = play();
    if first.stdout.is_empty() { play() } else { first }
}

#[test]
fn apitraces_own_player_has_the_same_frames() {
    if !has_program("eglretrace") || !has_program("Xvfb") {
        skip("no eglretrace or no Xvfb: apitrace's player is not asked");
        return;
    }
    let display = Display::open();
    for name in ["desktop", "es"] {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = program(folder.path(), name) else { return };
        trace(folder.path(), &["-o", "t.trace"], &[program.to_str().unwrap()]);
        let recorded = folder.path().join("t.trace");
        let path = recorded.to_str().unwrap();
        let peer = played(&display, "eglretrace", path);
        let ours = replay(&["--size=peer", "-s", "-", "--snapshot-format=MD5"], &recorded);
        let (peer, ours) = (lines(&peer), lines(&ours));
        // Its first frame is that of a window of another size.
        assert!(peer.len() > 9 && peer[1..] == ours[1..], "{name}: {peer:?} {ours:?}");
    }
}

#[test]
fn programs_of_others_are_recorded_as_they_draw() {
    if ["glretrace", "Xvfb", "glxgears", "timeout", "glmark2-es2"].iter().any(|name| !has_program(name)) || !has_egl() {
        skip("no glretrace, Xvfb, glxgears or glmark2-es2: no program of others is recorded");
        return;
    }
    let display = Display::open();
    let folder = tempfile::tempdir().unwrap();
    let recorder = format!("ANYTRACE_APITRACE_RECORDER={}", recorder().display());
    let scenes = ["-b", "build:duration=0.5:use-vbo=false", "-b", "buffer:duration=0.5", "-b", "shadow:duration=0.5"];
    let mark = [&["glmark2-es2", "-s", "128x96"], &scenes[..]].concat();
    for (name, command) in [("gears", &["timeout", "-s", "KILL", "2", "glxgears"][..]), ("mark", &mark[..])] {
        let recorded = folder.path().join(name);
        let path = recorded.to_str().unwrap();
        let ours = env!("CARGO_BIN_EXE_anytrace");
        let words = [&["env", &recorder, ours, "apitrace", "trace", "-o", path, "--"], command].concat();
        let output = display.output(&words);
        assert!(!said(&output).contains("not recorded"), "{}", said(&output));
        let player = if name == "gears" { "glretrace" } else { "eglretrace" };
        let peer = played(&display, player, path);
        let ours = replay(&["--size=peer", "-s", "-", "--snapshot-format=MD5"], &recorded);
        let why = format!("{}\n{}\n{}", said(&output), said(&peer), said(&ours));
        let (peer, ours) = (lines(&peer), lines(&ours));
        assert!(peer.len() > 3, "{name}: {} and {} frames: {why}", peer.len(), ours.len());
        assert!(peer[1..] == ours[1..], "{name}: frames differ");
    }
}

#[test]
fn the_trace_is_whole_however_the_program_ends() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "threads") else { return };
    let program = program.to_str().unwrap();
    for (end, code) in [
        ("abort", 128 + 6),
        ("segment", 128 + 11),
        ("terminate", 128 + 15),
        ("_exit", 7),
        ("exec", 3),
        ("fork", 0),
        // What was there for longer than the timer's interval.
        ("kill", 128 + 9),
    ] {
        let output = trace(folder.path(), &["--force", "-o", "t.trace"], &[program, end]);
        assert_eq!(output.status.code(), Some(code), "{end}: {}", said(&output));
        assert_eq!(said(&output).contains("was killed"), end == "kill", "{}", said(&output));
        let recorded = folder.path().join("t.trace");
        assert_eq!(named(folder.path(), "t.trace").len(), 1, "{end}");
        assert_eq!(check(&recorded).status.code(), Some(0), "{end}: {:?}", check(&recorded));
        let last = last_calls(&recorded, 1).concat();
        let expected = if end == "fork" { "glClear(" } else { "eglMakeCurrent(" };
        assert!(last.contains(expected), "{end}: {last}");
    }
    // The call that crashes is the last, without what could not be read; whoever handles the crash.
    for (end, code) in [("return in the driver", 128 + 11), ("handler", 9)] {
        let output = trace(folder.path(), &["--force", "-o", "t.trace"], &[program, end]);
        assert_eq!(output.status.code(), Some(code), "{end}: {}", said(&output));
        let last = last_calls(&folder.path().join("t.trace"), 1).concat();
        assert!(last.contains("glTexImage2D(") && last.ends_with("pixels = ?) // incomplete"), "{end}: {last}");
    }
}

#[test]
fn each_process_that_draws_has_its_own_trace() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "threads") else { return };
    let output = trace(folder.path(), &["-o", "t.trace"], &[program.to_str().unwrap(), "children"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let made = named(folder.path(), "t.trace");
    assert_eq!(made.len(), 2, "{made:?}");
    for recorded in made {
        assert_eq!(check(&recorded).status.code(), Some(0));
        assert!(said(&output).contains(&format!("{}: ", recorded.file_name().unwrap().display())), "{}", said(&output));
    }
}

#[test]
fn what_cannot_be_recorded_or_written_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "es") else { return };
    let program = program.to_str().unwrap();
    let output = trace(folder.path(), &["-o", "/dev/full"], &[program]);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the trace is incomplete: No space left on device"), "{}", said(&output));
    // The program draws all the same.
    assert_eq!(named(folder.path(), "frame.").len(), 10);
    let output = trace(folder.path(), &[], &["true"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("true.trace: nothing was recorded"), "{}", said(&output));
    let output = trace(folder.path(), &["-q"], &[program]);
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    assert!(folder.path().join("es.trace").is_file());
    // The next has a number, and a name that is given is not replaced.
    let output = trace(folder.path(), &[], &[program]);
    assert!(output.status.success() && folder.path().join("es.1.trace").is_file(), "{}", said(&output));
    let output = trace(folder.path(), &["-o", "es.trace"], &[program]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("es.trace exists; use --force to replace it"), "{}", said(&output));
    let output = trace(folder.path(), &["-o", "x"], &["./nothing-here"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert_eq!(output.status.signal(), None);
}

#[test]
fn stacks_are_recorded_where_one_wants_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "es") else { return };
    let words = ["-a", "egl", "-o", "t.trace", "--backtrace=glDraw*,glLinkProgram"];
    let output = trace(folder.path(), &words, &[program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let output = anytrace(&["apitrace", "dump"]).arg(folder.path().join("t.trace")).output().unwrap();
    let all = lines(&output);
    let after = |name: &str| all.iter().position(|line| line.contains(name)).map(|at| all[at + 1].clone());
    assert_eq!(after("glDrawArrays(").as_deref(), Some("Backtrace:"));
    assert_eq!(after("glLinkProgram(").as_deref(), Some("Backtrace:"));
    assert_ne!(after("glClear(").as_deref(), Some("Backtrace:"));
    assert!(all.iter().any(|line| line.contains("/es+0x")), "{all:?}");
}

#[test]
fn record_chooses_what_fits_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "es") else { return };
    let record = |words: &[&str]| {
        let mut record = anytrace(&["record"]);
        record.args(words).current_dir(folder.path()).env("ANYTRACE_APITRACE_RECORDER", recorder());
        record.output().unwrap()
    };
    let output = record(&["--", program.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(said(&output).contains("recording calls of OpenGL of "), "{}", said(&output));
    assert_eq!(check(&folder.path().join("es.trace")).status.code(), Some(0));
    // A script that starts it.
    let output = record(&["-q", "-o", "s.trace", "--", "sh", "-c", program.to_str().unwrap()]);
    assert_eq!(
        (output.status.code(), said(&output).contains("nothing to record")),
        (Some(2), true),
        "sh draws nothing"
    );
    fs::write(folder.path().join("run"), format!("#!/bin/sh\nexec {}\n", program.display())).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path().join("run"), mode).unwrap();
    let output = record(&["-q", "-o", "s.trace", "--", "./run"]);
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    assert_eq!(check(&folder.path().join("s.trace")).status.code(), Some(0));
    let output = record(&["--", "true"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(said(&output).contains("true: nothing to record"), "{}", said(&output));
}

#[test]
fn record_takes_the_log_of_xray() {
    if !has_program("clang") {
        skip("no clang: no program with XRay is recorded");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = "int work(int n) { return n < 2 ? n : work(n - 1) + work(n - 2); }\n\
                  int main(int count, char **words) { (void)words; return work(9 + count) == 55 ? 5 : 1; }\n";
    fs::write(folder.path().join("app.c"), source).unwrap();
    let mut command = Command::new("clang");
    command.args(["-O0", "-fxray-instrument", "-fxray-instruction-threshold=1", "-o", "app", "app.c"]);
    let output = command.current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let record = |words: &[&str]| anytrace(&["record"]).args(words).current_dir(folder.path()).output().unwrap();
    let output = record(&["--", "./app"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(said(&output).contains("app.xray: "), "{}", said(&output));
    let trace = folder.path().join("app.xray");
    assert_eq!(check(&trace).status.code(), Some(0));
    let stats = anytrace(&["stats", "-m"]).arg(folder.path().join("app")).arg(&trace).output().unwrap();
    assert!(lines(&stats).iter().any(|line| line.contains("work")), "{:?}", lines(&stats));
    assert_eq!(record(&["-o", "app.xray", "--", "./app"]).status.code(), Some(2), "it exists");
    assert_eq!(named(folder.path(), ".anytrace").len(), 0);
}

#[test]
fn nine_threads_at_once_are_recorded_and_killed_midway() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "threads") else { return };
    for (end, code) in [("race", 128 + 15), ("race and kill", 128 + 9)] {
        let output = trace(folder.path(), &["--force", "-o", "t.trace"], &[program.to_str().unwrap(), end]);
        assert_eq!(output.status.code(), Some(code), "{end}: {}", said(&output));
        let recorded = folder.path().join("t.trace");
        let found = check(&recorded);
        let text = lines(&found).join("\n");
        // A chunk may end anywhere, and what follows it is gone with SIGKILL.
        let is_cut =
            end == "race and kill" && text.contains("[apitrace/truncated-event]") && text.contains(" 1 error,");
        assert!(found.status.success() || is_cut, "{end}: {text}");
        let info = anytrace(&["info", "--format=json"]).arg(&recorded).output().unwrap();
        let info: serde_json::Value = serde_json::from_slice(&info.stdout).unwrap();
        assert!(info["records"].as_u64().unwrap() > 2000, "{end}: {info}");
        let threads = anytrace(&["apitrace", "stats", "--by=thread", "--format=csv"]).arg(&recorded).output().unwrap();
        assert!(lines(&threads).len() > 9, "{end}: {:?}", lines(&threads));
    }
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let Some(program) = program(folder.path(), "threads") else { return };
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = Command::new("head").args(["-c", "2"]).arg(&pipe).stdout(std::process::Stdio::null()).spawn();
    let output = trace(folder.path(), &["-o", "pipe"], &[program.to_str().unwrap()]);
    reader.unwrap().wait().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("the trace is incomplete: Broken pipe"), "{}", said(&output));
    // It has drawn all its frames.
    assert_eq!(named(folder.path(), "frame.").len(), 22);
}
