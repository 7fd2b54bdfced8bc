//! `anytrace apitrace replay` and `dump-images` as their users meet them: pictures, crashes, other programs' names.
//!
//! `cargo xtask test` installs EGL with Mesa's software driver; without it the tests report that they are skipped.
#![allow(clippy::unwrap_used, reason = "a test may fail by panicking")]

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use anytrace_core::testing::{has_program, shared_corpus, skip};

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../apitrace/corpus").join(name)
}

fn imm() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/imm.trace")
}

fn anytrace(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
    command.args(words).env("LIBGL_ALWAYS_SOFTWARE", "1");
    command
}

fn replay(words: &[&str], trace: &Path) -> Output {
    anytrace(&["apitrace", "replay"]).args(words).arg(trace).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// False, with a note, where there is no EGL.
fn has_egl() -> bool {
    let output = anytrace(&["apitrace", "replay", "--list-devices"]).output().unwrap();
    if output.status.success() {
        return true;
    }
    skip(&format!("no EGL: {}", said(&output)));
    false
}

/// A trace made of another's calls, with more before the call that ends its first frame.
fn with_calls(folder: &Path, more: &[&str]) -> PathBuf {
    let output = anytrace(&["apitrace", "jsonl"]).arg(imm()).output().unwrap();
    let all = lines(&output);
    let at = all.iter().position(|line| line.contains("\"glXSwapBuffers\"")).unwrap();
    let text: Vec<&str> = all[..at]
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .chain(all[at..].iter().map(String::as_str))
        .collect();
    let (source, trace) = (folder.join("calls.jsonl"), folder.join("made.trace"));
    std::fs::write(&source, text.join("\n")).unwrap();
    let made = anytrace(&["apitrace", "from-jsonl", "--force", "-o"]).arg(&trace).arg(&source).output().unwrap();
    assert!(made.status.success(), "{}", said(&made));
    trace
}

const ENABLE: &str = r#"{"thread":0,"name":"glEnableClientState","args":[["array",32884]],"flags":0}"#;
const POINTER: &str = r#"{"thread":0,"name":"glVertexPointer","args":[["size",2],["type",5126],["stride",0],["pointer",{"blob":24,"base64":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]],"flags":1}"#;
/// Three vertices, 4 GB behind the array's end.
const WILD: &str =
    r#"{"thread":0,"name":"glDrawArrays","args":[["mode",4],["first",500000000],["count",3]],"flags":0}"#;

#[test]
fn a_crash_of_the_driver_is_reported_with_its_call() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = with_calls(folder.path(), &[ENABLE, POINTER, WILD]);
    let prefix = folder.path().join("f.");
    let output = replay(&["-s", prefix.to_str().unwrap()], &trace);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("call 38 glDrawArrays: the driver crashed (SIG"), "{}", said(&output));
    // No picture was finished, and nothing else is left.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_call_that_takes_too_long_and_a_killed_process_are_reported() {
    if !has_egl() {
        return;
    }
    let slow = ["--min-frame-duration", "30000000"];
    let output = replay(&[&slow[..], &["--watchdog=1"]].concat(), &imm());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    assert!(said(&output).contains("call 36 (the end of a frame): the driver took more than 1 s"), "{}", said(&output));

    let mut parent = anytrace(&["apitrace", "replay"]);
    let parent = parent.args(slow).arg(imm()).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let list = format!("/proc/{0}/task/{0}/children", parent.id());
    let started = Instant::now();
    let child = loop {
        let text = std::fs::read_to_string(&list).unwrap_or_default();
        if let Some(child) = text.split_whitespace().next() {
            break child.to_owned();
        }
        assert!(started.elapsed() < Duration::from_secs(30), "no process was started");
        std::thread::sleep(Duration::from_millis(10));
    };
    assert!(Command::new("kill").args(["-KILL", &child]).status().unwrap().success());
    let output = parent.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("the replaying process was killed (SIGKILL)"), "{}", said(&output));
}

#[test]
fn sums_are_compared_and_the_first_difference_is_named() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (sums, pictures) = (place("sums.json"), place("pictures."));
    let output = replay(&["--sums", &sums, "-s", &pictures], &imm());
    assert_eq!((output.status.code(), said(&output)), (Some(0), String::new()));
    assert!(folder.path().join("pictures.0000000036.png").exists());
    for before in [&sums, &folder.path().display().to_string()] {
        let output = replay(&["--against", before], &imm());
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(lines(&output).contains(&"All 4 pictures are equal".to_owned()));
    }
    // Nothing is replaced, and nothing is replayed in vain.
    for words in [["--sums", &sums], ["-s", &pictures]] {
        let output = replay(&words, &imm());
        assert_eq!((output.status.code(), said(&output).contains("--force")), (Some(2), true), "{words:?}");
    }
    let trace = with_calls(folder.path(), &[r#"{"thread":0,"name":"glClear","args":[["mask",16384]],"flags":0}"#]);
    let output = replay(&["--against", &sums], &trace);
    assert_eq!(output.status.code(), Some(1));
    // The call that ends the frame has another number: it has a picture that the other has not, and the other way round.
    assert!(lines(&output).iter().any(|line| line == "call 36, frame 0: no picture"), "{:?}", lines(&output));
}

#[test]
fn pictures_come_in_each_form_and_of_each_class() {
    if !has_egl() {
        return;
    }
    let trace = corpus("peer/fbo.trace");
    let frames = lines(&replay(&["-s", "-", "--snapshot-format", "MD5"], &trace));
    assert!(frames.len() >= 3 && frames.iter().all(|line| line.len() == 32), "{frames:?}");
    let draws = lines(&replay(&["-s", "-", "--snapshot-format", "md5", "-S", "*/draw,*/frame"], &trace));
    assert!(draws.len() > frames.len());
    let pnm = replay(&["-s", "-"], &imm()).stdout;
    assert!(pnm.starts_with(b"P6\n#36\n64 48\n255\n"));
    assert_eq!(pnm.len(), 4 * ("P6\n#36\n64 48\n255\n".len() + 64 * 48 * 3));
    assert_eq!(replay(&["-s", "-", "--snapshot-format=RGB", "--snapshot-alpha"], &imm()).stdout.len(), 4 * 64 * 48 * 4);
    assert_eq!(lines(&replay(&["-s", "-", "--snapshot-format=MD5", "--snapshot-interval=2"], &imm())).len(), 2);
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("imm.trace");
    std::fs::copy(imm(), &trace).unwrap();
    let output =
        anytrace(&["apitrace", "dump-images", "--call-nos=no", "imm.trace"]).current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let names = (0..4).map(|number| folder.path().join(format!("imm.{number:010}.png")));
    assert!(names.into_iter().all(|path| path.is_file()));
}

/// A renderbuffer of 16 by 16 pixels, made by this call, is drawn to.
fn offscreen(storage: &str) -> Vec<String> {
    let call =
        |name: &str, arguments: &str| format!(r#"{{"thread":0,"name":"{name}","args":[{arguments}],"flags":0}}"#);
    vec![
        call("glGenRenderbuffers", r#"["n",1],["renderbuffers",[1]]"#),
        call("glBindRenderbuffer", r#"["target",36161],["renderbuffer",1]"#),
        storage.to_owned(),
        call("glGenFramebuffers", r#"["n",1],["framebuffers",[1]]"#),
        call("glBindFramebuffer", r#"["target",36160],["framebuffer",1]"#),
        call(
            "glFramebufferRenderbuffer",
            r#"["target",36160],["attachment",36064],["renderbuffertarget",36161],["renderbuffer",1]"#,
        ),
        call("glClear", r#"["mask",16384]"#),
        call("glBindFramebuffer", r#"["target",36160],["framebuffer",0]"#),
    ]
}

#[test]
fn a_framebuffer_that_cannot_be_read_gives_no_picture_and_says_so() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let plain = r#"{"thread":0,"name":"glRenderbufferStorage","args":[["target",36161],["internalformat",32856],["width",16],["height",16]],"flags":0}"#;
    let sampled = r#"{"thread":0,"name":"glRenderbufferStorageMultisample","args":[["target",36161],["samples",4],["internalformat",32856],["width",16],["height",16]],"flags":0}"#;
    let taken = |storage: &str| {
        let calls = offscreen(storage);
        let trace = with_calls(folder.path(), &calls.iter().map(String::as_str).collect::<Vec<_>>());
        replay(&["-s", "-", "-S", "42"], &trace)
    };
    assert!(taken(plain).stdout.starts_with(b"P6\n#42\n16 16\n255\n"));
    let output = taken(sampled);
    assert!(output.stdout.is_empty());
    let why = "call 42: no picture: the framebuffer cannot be read: GL_INVALID_OPERATION";
    assert!(said(&output).contains(why), "{}", said(&output));
}

#[test]
fn what_does_not_fit_is_refused() {
    for (words, expected) in [
        (vec!["--device", "999"], "--list-devices"),
        (vec!["-S", "1"], "say where they go"),
        (vec!["--against", "/nonexistent"], "cannot read /nonexistent"),
        (vec!["-s", "x.", "-S", "1-x"], "expected"),
    ] {
        if words.first() == Some(&"--device") && !has_egl() {
            continue;
        }
        let output = replay(&words, &imm());
        assert_eq!((output.status.code(), said(&output).contains(expected)), (Some(2), true), "{}", said(&output));
    }
    let output = anytrace(&["apitrace", "replay", "-"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), said(&output).contains("twice")), (Some(2), true));
}

#[test]
fn cut_and_damaged_traces_end_with_a_verdict() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = std::fs::read(corpus("peer/vbo.trace")).unwrap();
    let path = folder.path().join("cut.trace");
    for part in 0..12 {
        std::fs::write(&path, &bytes[..bytes.len() * part / 12]).unwrap();
        let output = replay(&[], &path);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{part}: {:?} {}", output.status, said(&output));
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
    }
    let mut flipped = bytes;
    for at in (200..flipped.len()).step_by(flipped.len() / 12) {
        flipped[at] ^= 0x55;
        std::fs::write(&path, &flipped).unwrap();
        let output = replay(&["--watchdog=20"], &path);
        assert!(matches!(output.status.code(), Some(0..=2)), "{at}: {:?} {}", output.status, said(&output));
        assert!(!said(&output).contains("panicked"), "{}", said(&output));
        flipped[at] ^= 0x55;
    }
}

/// The steps of piglit's replayer: the last frame by `apitrace dump`, its picture by a player, the pixels' sum.
#[test]
fn scripts_that_call_apitrace_work_unchanged() {
    if !has_egl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = imm();
    let called = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_anytrace"));
        command.arg0(name).env("LIBGL_ALWAYS_SOFTWARE", "1");
        command
    };
    let dumped = called("/usr/bin/apitrace").args(["dump", "--calls=frame"]).arg(&trace).output().unwrap();
    let text = String::from_utf8(dumped.stdout).unwrap();
    let last = text.lines().rev().find_map(|line| line.split(' ').next()?.parse::<u64>().ok()).unwrap();
    let prefix = folder.path().join("imm.trace-");
    let words =
        ["--headless".to_owned(), format!("--snapshot={last}"), format!("--snapshot-prefix={}", prefix.display())];
    let picture = folder.path().join(format!("imm.trace-{last:010}.png"));
    // Twice: what a run before left is replaced.
    for _ in 0..2 {
        let played = called("eglretrace").args(&words).arg(&trace).output().unwrap();
        assert!(played.status.success(), "{}", said(&played));
        assert!(picture.exists());
    }
    let sums = lines(&called("glretrace").args(["-s", "-", "--snapshot-format=MD5"]).arg(&trace).output().unwrap());
    let against = replay(&["--against", folder.path().to_str().unwrap(), "-S", &last.to_string()], &trace);
    assert_eq!((against.status.code(), sums.len()), (Some(0), 4), "{}", said(&against));
}

/// Where a frame is the first of its drawable, apitrace's players show a window that is not yet as large as it will be.
#[test]
fn frames_are_those_of_apitrace() {
    let Some(corpus) = shared_corpus("apitrace") else { return };
    if !has_egl() {
        return;
    }
    let mut compared = 0;
    for entry in std::fs::read_dir(&corpus).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(expected) = std::fs::read_to_string(folder.join("snapshot-md5.txt")) else { continue };
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let output = replay(&["-s", "-", "--snapshot-format=MD5"], &folder.join(format!("{name}.trace")));
        let (found, expected) = (lines(&output), expected.lines().collect::<Vec<_>>());
        assert_eq!(found.len(), expected.len(), "{name}: {}", said(&output));
        let drawables = if name.contains("threads") { 2 } else { 1 };
        for (at, (found, expected)) in found.iter().zip(expected).enumerate().skip(drawables) {
            assert_eq!(found, expected, "{name}: picture {at}");
            compared += 1;
        }
    }
    assert!(compared >= 50, "{compared}");
}

/// An X server that ends with the test.
struct Display(std::process::Child, String);

impl Display {
    #[allow(clippy::zombie_processes, reason = "dropping waits")]
    fn open() -> Self {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp"]);
        let mut server = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(server, format!(":{}", line.trim()))
    }

    fn output(&self, words: &[&str]) -> Output {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env("DISPLAY", &self.1).env("LIBGL_ALWAYS_SOFTWARE", "1").output().unwrap()
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The frames of real programs.
#[test]
fn recorded_programs_have_the_frames_of_apitrace() {
    let programs = ["Xvfb", "timeout", "glretrace", "apitrace", "glmark2", "glmark2-es2"];
    if !programs.into_iter().all(has_program) || !has_egl() {
        return;
    }
    let (folder, display) = (tempfile::tempdir().unwrap(), Display::open());
    let scenes = |names: &[&str]| -> Vec<String> {
        let size = ["-s", "96x64", "-b", ":duration=0.05"].map(str::to_owned);
        size.into_iter().chain(names.iter().flat_map(|name| ["-b".to_owned(), (*name).to_owned()])).collect()
    };
    for (api, program, player, names) in [
        ("gl", "glmark2", "glretrace", &["build", "texture", "effect2d", "desktop", "buffer", "ideas"][..]),
        ("egl", "glmark2-es2", "eglretrace", &["shading", "bump", "jellyfish", "shadow"][..]),
    ] {
        let trace = folder.path().join(format!("{program}.trace"));
        let path = trace.to_str().unwrap();
        let scenes = scenes(names);
        let words: Vec<&str> = ["timeout", "120", "apitrace", "trace", "-a", api, "-o", path, program]
            .into_iter()
            .chain(scenes.iter().map(String::as_str))
            .collect();
        let recorded = display.output(&words);
        assert!(trace.exists(), "{}", said(&recorded));
        let theirs = lines(&display.output(&[player, "-b", "--headless", "-s", "-", "--snapshot-format=MD5", path]));
        let ours = lines(&replay(&["--size=peer", "-s", "-", "--snapshot-format=MD5"], &trace));
        assert_eq!(ours.len(), theirs.len(), "{program}");
        assert!(ours.len() > 20, "{program}: {} frames", ours.len());
        let differ: Vec<usize> = (1..ours.len()).filter(|at| ours[*at] != theirs[*at]).collect();
        assert!(differ.is_empty(), "{program}: {differ:?} of {}", ours.len());
    }
}
