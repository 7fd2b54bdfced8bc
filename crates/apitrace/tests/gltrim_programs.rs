//! `apitrace gltrim` on third-party programs: each is recorded here by apitrace's own tracer on a separate display, and
//! frames from all parts of the recording must look the same before and after trimming when apitrace's own `glretrace`
//! replays them.
//!
//! Recordings are too large to keep. `cargo xtask test` installs the programs from Debian; missing ones are reported as
//! skipped.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod display;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anytrace_apitrace::Reader;
use anytrace_apitrace::tools::callset::CallSet;
use anytrace_apitrace::tools::gltrim::{GltrimOptions, plan};
use anytrace_core::testing::{has_program, skip};
use anytrace_core::{Collect, Input, MemoryTarget, OpenOptions};

use display::{Display, Pictures, frame_ends};

/// Frames of each program that are compared.
const FRAMES: usize = 8;

/// Recordings made of a program before it counts as one that cannot be replayed.
const RECORDINGS_MAX: usize = 3;

/// Programs that must have been compared if all are installed.
const PROGRAMS_MIN: usize = 6;

/// The first pictures of a replay are not the program's, because windows get their sizes late.
const FIRST_FRAME: usize = 2;

/// Frames beyond these are ignored: programs that draw little draw thousands per second.
const FRAMES_MAX: usize = 400;

/// A program, the interface it is traced by, and its arguments.
struct Program {
    path: &'static str,
    api: &'static str,
    arguments: &'static [&'static str],
}

const fn program(path: &'static str, api: &'static str, arguments: &'static [&'static str]) -> Program {
    Program { path, api, arguments }
}

/// Old and new OpenGL, OpenGL ES, GLX and EGL; display lists, programs, rendering to textures.
const PROGRAMS: [Program; 9] = [
    program("/usr/bin/glmark2", "gl", &["-s", "200x150", "-b", ":duration=0.02"]),
    program("/usr/bin/glmark2-es2", "egl", &["-s", "200x150", "-b", ":duration=0.02"]),
    program("/usr/bin/glxgears", "gl", &["-geometry", "200x150"]),
    program("/usr/bin/es2gears_x11", "egl", &[]),
    program("/usr/games/etr", "gl", &[]),
    program("/usr/games/armagetronad", "gl", &[]),
    program("/usr/games/billard-gl", "gl", &[]),
    program("/usr/libexec/xscreensaver/pipes", "egl", &["-window", "-geometry", "200x150"]),
    program("/usr/libexec/xscreensaver/molecule", "egl", &["-window", "-geometry", "200x150"]),
];

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Records a program until there are enough frames. It is terminated after a time limit, because most of these never
/// end.
fn record(program: &Program, display: &Display, folder: &Path) -> Option<PathBuf> {
    let trace = folder.join("whole.trace");
    for seconds in [2, 6, 20] {
        let _ = std::fs::remove_file(&trace);
        let mut command = Command::new("timeout");
        command.args(["-s", "TERM", "-k", "5", &seconds.to_string(), "apitrace", "trace", "-a", program.api, "-o"]);
        command.arg(&trace).arg(program.path).args(program.arguments);
        command.env("DISPLAY", display.name()).env("HOME", folder).env("LIBGL_ALWAYS_SOFTWARE", "1");
        command.current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().ok()?;
        let bytes = std::fs::read(&trace).unwrap_or_default();
        if !bytes.is_empty() && frame_ends(&bytes).len() > FRAMES + 2 * FIRST_FRAME {
            return Some(trace);
        }
    }
    None
}

/// Frames from all parts of a recording, except the last, which may be incomplete.
fn frames(count: usize) -> Vec<usize> {
    let last = count.min(FRAMES_MAX) - 2;
    (0..FRAMES).map(|n| FIRST_FRAME + n * (last - FIRST_FRAME) / (FRAMES - 1)).collect()
}

fn trimmed(bytes: &[u8], frame: usize) -> Vec<u8> {
    let open = |bytes: &[u8]| Reader::new(Input::from_bytes("x", bytes.to_vec()), &OpenOptions::default()).unwrap();
    let frames = CallSet::parse([frame.to_string().as_str()], &mut |_| Err(std::io::Error::other("no files"))).unwrap();
    let options = GltrimOptions { frames: Some(frames), ..GltrimOptions::default() };
    let plan = plan(&mut open(bytes), &options, &mut Collect::default()).unwrap();
    let mut out = MemoryTarget::default();
    plan.write(open(bytes), None, None, &mut out).unwrap();
    out.0
}

/// A recording, the calls that end the frames that are compared, and the pictures of two replays.
struct Recording {
    trace: PathBuf,
    wanted: Vec<(usize, u64)>,
    pictures: [Pictures; 2],
}

/// Records a program until apitrace's player can replay it: programs are terminated wherever they are, and some of the
/// recordings make the player itself fail.
fn replayable(program: &Program, display: &Display, folder: &Path) -> Option<Recording> {
    for _ in 0..RECORDINGS_MAX {
        let trace = record(program, display, folder)?;
        let ends = frame_ends(&std::fs::read(&trace).unwrap());
        let wanted: Vec<_> = frames(ends.len()).into_iter().map(|frame| (frame, ends[frame])).collect();
        let calls: Vec<u64> = wanted.iter().map(|(_, call)| *call).collect();
        let replay = || display.pictures(&trace, program.api == "egl", Some(&calls), folder);
        match (replay(), replay()) {
            (Ok(first), Ok(second)) => return Some(Recording { trace, wanted, pictures: [first, second] }),
            (first, second) => say(&format!("{}: {:?}", program.path, first.err().or(second.err()))),
        }
    }
    None
}

/// Compares frames of a program; how many could be, and those that differ.
fn compare(program: &Program, display: &Display, folder: &Path) -> (usize, Vec<String>) {
    let Some(recording) = replayable(program, display, folder) else { return (0, Vec::new()) };
    let bytes = std::fs::read(&recording.trace).unwrap();
    let [first, second] = &recording.pictures;
    let (mut compared, mut different) = (0, Vec::new());
    for (frame, call) in &recording.wanted {
        let picture = first.get(call);
        if picture.is_none() || picture != second.get(call) {
            say(&format!("{}: frame {frame} does not replay the same twice and is not looked at", program.path));
            continue;
        }
        let part = folder.join("part.trace");
        std::fs::write(&part, trimmed(&bytes, *frame)).unwrap();
        let replay = || display.pictures(&part, program.api == "egl", None, folder);
        compared += 1;
        // A player that fails under load gets a second chance; a wrong picture does not.
        match replay().or_else(|_| replay()) {
            Ok(pictures) if pictures.last_key_value().map(|(_, picture)| picture) == picture => {}
            Ok(_) => different.push(format!("{frame} differs")),
            Err(why) => different.push(format!("{frame}: {why}")),
        }
    }
    (compared, different)
}

#[test]
fn frames_of_real_programs_look_the_same_after_trimming() {
    let Some(display) = Display::open() else { return };
    if !has_program("apitrace") {
        return;
    }
    let (mut wrong, mut looked_at, mut missing) = (Vec::new(), 0, 0);
    for program in &PROGRAMS {
        if !Path::new(program.path).exists() {
            skip(&format!("{} is not installed", program.path));
            missing += 1;
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let (compared, different) = compare(program, &display, folder.path());
        // Games take varying times to start, and some draw by the clock. Those with too few frames this time are not
        // counted.
        if compared * 2 >= FRAMES {
            looked_at += 1;
        } else {
            say(&format!("{}: only {compared} frames could be recorded and compared", program.path));
        }
        if !different.is_empty() {
            wrong.push(format!("{}: of {compared} frames {different:?}", program.path));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(looked_at + missing >= PROGRAMS_MIN, "only {looked_at} programs could be recorded and compared");
}
