//! `cargo xtask replay`: programs of others, recorded by apitrace's tracer or by anytrace's, replayed by anytrace and by
//! apitrace's players: frames, late frames alone, processor time and memory. Or both recorders in one run, whose traces
//! must have the same frames.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::bench::measure::measure;
use crate::shell::{cargo, has_program, output, root, run, skip};

pub(crate) const USAGE: &str = "\
replay [--recorder apitrace|anytrace|both] [--seconds N] [--binary PATH] [PROGRAM…]
                               record programs of Debian with apitrace's tracer or ours, N seconds each (10), and compare
                               frames, late frames alone, processor time and memory with apitrace's players; or record
                               with both at once, and compare what apitrace's players make of the two traces (Xvfb,
                               apitrace, and the programs, which apt-get installs as root; --binary: the program, instead
                               of building it and the recorder)";

/// A program: the tracer's interface, the player, the package, the command.
struct Program {
    api: &'static str,
    player: &'static str,
    package: &'static str,
    command: &'static [&'static str],
}

const PROGRAMS: [Program; 8] = [
    Program {
        api: "gl",
        player: "glretrace",
        package: "glmark2",
        command: &["glmark2", "-s", "160x120", "-b", ":duration=0.2"],
    },
    Program {
        api: "egl",
        player: "eglretrace",
        package: "glmark2-es2",
        command: &["glmark2-es2", "-s", "160x120", "-b", ":duration=0.2"],
    },
    Program { api: "gl", player: "glretrace", package: "mesa-utils", command: &["glxgears"] },
    Program { api: "egl", player: "eglretrace", package: "mesa-utils", command: &["es2gears_x11"] },
    Program { api: "gl", player: "glretrace", package: "armagetronad", command: &["/usr/games/armagetronad"] },
    Program { api: "gl", player: "glretrace", package: "neverball", command: &["/usr/games/neverball"] },
    Program { api: "gl", player: "glretrace", package: "extremetuxracer", command: &["/usr/games/etr"] },
    Program { api: "gl", player: "glretrace", package: "kitty", command: &["kitty", "-o", "update_check_interval=0"] },
];

/// Late frames that are replayed alone.
const LATE: usize = 10;

/// Who records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recorder {
    Apitrace,
    Anytrace,
    Both,
}

struct Options {
    recorder: Recorder,
    seconds: u64,
    binary: Option<PathBuf>,
    wanted: Vec<String>,
}

pub(crate) fn run_all(arguments: &[String]) -> Result<(), String> {
    let mut options = Options { recorder: Recorder::Apitrace, seconds: 10, binary: None, wanted: Vec::new() };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let number = words.next().and_then(|word| word.parse().ok());
                options.seconds = number.ok_or("--seconds needs a number")?;
            }
            "--recorder" => {
                options.recorder = match words.next().map(String::as_str) {
                    Some("apitrace") => Recorder::Apitrace,
                    Some("anytrace") => Recorder::Anytrace,
                    Some("both") => Recorder::Both,
                    _ => return Err("--recorder takes apitrace, anytrace or both".to_owned()),
                };
            }
            "--binary" => options.binary = Some(words.next().ok_or("--binary needs a path")?.into()),
            _ => options.wanted.push(word.clone()),
        }
    }
    for tool in ["Xvfb", "apitrace", "glretrace", "timeout"] {
        if !has_program(tool) {
            return skip(&format!("{tool} is not installed: nothing was replayed"));
        }
    }
    let binary = match &options.binary {
        Some(path) => path.clone(),
        None => {
            let packages = ["--package", "anytrace", "--package", "anytrace-recorder-apitrace"];
            run(cargo().args(["build", "--release", "--locked"]).args(packages))?;
            root().join("target/release/anytrace")
        }
    };
    let folder = root().join("target/replay");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let display = Display::open()?;
    let head = match options.recorder {
        Recorder::Both => "| program | frames | equal | bytes | apitrace's |\n|---|---|---|---|---|",
        _ => {
            "| program | frames | equal | late frames alone | CPU s | apitrace's | MiB | apitrace's |\n|---|---|---|---|---|---|---|---|"
        }
    };
    println!("{head}");
    let mut wrong = Vec::new();
    for program in &PROGRAMS {
        let name = program.command.first().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
        if !options.wanted.is_empty() && !options.wanted.iter().any(|wanted| wanted == name) {
            continue;
        }
        install(program)?;
        let trace = folder.join(format!("{name}.trace"));
        let compared = match options.recorder {
            Recorder::Both => display
                .record_twice(&binary, program, &folder.join(name), options.seconds)
                .and_then(|traces| compare_recorders(program, name, &traces, &display)),
            one => display
                .record(one, &binary, program, &trace, options.seconds)
                .and_then(|()| compare(&binary, program, name, &trace, &display)),
        };
        if let Err(why) = compared {
            wrong.push(format!("{name}: {why}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

fn install(program: &Program) -> Result<(), String> {
    if program.command.first().is_some_and(|path| has_program(path) || Path::new(path).exists()) {
        return Ok(());
    }
    run(Command::new("apt-get").args(["install", "--yes", "--no-install-recommends", program.package]))
}

/// An X server that ends with it.
struct Display(Child, String);

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Display {
    fn open() -> Result<Self, String> {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp"]);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn().map_err(|error| format!("Xvfb: {error}"))?;
        let mut line = String::new();
        if let Some(pipe) = server.stdout.take() {
            BufReader::new(pipe).read_line(&mut line).map_err(|error| format!("Xvfb: {error}"))?;
        }
        Ok(Self(server, format!(":{}", line.trim())))
    }

    /// A command that draws there, with the processor.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("DISPLAY", &self.1).env("LIBGL_ALWAYS_SOFTWARE", "1");
        command
    }

    fn record(
        &self,
        recorder: Recorder,
        binary: &Path,
        program: &Program,
        trace: &Path,
        seconds: u64,
    ) -> Result<(), String> {
        let _ = std::fs::remove_file(trace);
        let mut command = self.command("timeout");
        command.args(["--signal=INT", "--kill-after=5", &seconds.to_string()]);
        if recorder == Recorder::Anytrace {
            command.arg(binary);
        }
        // Ours is called as apitrace's is.
        command.args(["apitrace", "trace", "-a", program.api, "-o"]).arg(trace).args(program.command);
        // It is interrupted, and says so.
        let ended = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        ended.map_err(|error| format!("timeout: {error}"))?;
        if trace.exists() { Ok(()) } else { Err(format!("{} recorded nothing", program.package)) }
    }
}

impl Display {
    /// Records with both tracers in one run, ours outside; returns our trace and the other one.
    fn record_twice(
        &self,
        binary: &Path,
        program: &Program,
        folder: &Path,
        seconds: u64,
    ) -> Result<[PathBuf; 2], String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        if folder.exists() {
            std::fs::remove_dir_all(folder).map_err(failed)?;
        }
        std::fs::create_dir_all(folder).map_err(failed)?;
        let wrapper = if program.api == "egl" { "egltrace.so" } else { "glxtrace.so" };
        let wrapper = format!("/usr/lib/{}-linux-gnu/apitrace/wrappers/{wrapper}", std::env::consts::ARCH);
        let ours = binary.with_file_name("libanytrace_apitrace_recorder.so");
        let traces = ["anytrace.trace", "apitrace.trace"].map(|name| folder.join(name));
        let mut command = self.command("timeout");
        command.args(["--signal=INT", "--kill-after=5", &seconds.to_string()]).args(program.command);
        command.env("LD_PRELOAD", format!("{}:{wrapper}", ours.display()));
        command.env("ANYTRACE_APITRACE_FILE", &traces[0]).env("TRACE_FILE", &traces[1]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(failed)?;
        if traces.iter().all(|trace| trace.is_file()) { Ok(traces) } else { Err("not both recorded".to_owned()) }
    }
}

/// Whether apitrace's player makes the same frames of two traces of one run.
fn compare_recorders(program: &Program, name: &str, traces: &[PathBuf; 2], display: &Display) -> Result<(), String> {
    let frames_of = |trace: &Path| {
        let mut player = display.command(program.player);
        player.args(["-b", "--headless", "-s", "-", "--snapshot-format=MD5"]).arg(trace);
        output(&mut player).map(|bytes| lines(&bytes))
    };
    let [ours, theirs] = traces;
    let (our_frames, their_frames) = (frames_of(ours)?, frames_of(theirs)?);
    // Only one of the two has the signal that ends the program: the other lacks what came after its last chunk.
    let frames = our_frames.len().min(their_frames.len());
    let equal = our_frames.iter().zip(&their_frames).filter(|(one, other)| one == other).count();
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |it| it.len());
    println!("| {name} | {frames} | {equal} | {} | {} |", bytes(ours), bytes(theirs));
    // The first frame of each window is garbage.
    if frames == 0 || equal + 2 < frames {
        Err(format!("{} of {frames} frames differ", frames - equal))
    } else {
        Ok(())
    }
}

fn lines(bytes: &[u8]) -> Vec<String> {
    // Programs' own messages are between the sums.
    let is_sum = |line: &&str| line.len() == 32 && line.bytes().all(|byte| byte.is_ascii_hexdigit());
    String::from_utf8_lossy(bytes).lines().filter(is_sum).map(str::to_owned).collect()
}

fn compare(binary: &Path, program: &Program, name: &str, trace: &Path, display: &Display) -> Result<(), String> {
    let (binary, trace_text) = (binary.display().to_string(), trace.display().to_string());
    let ours = [&binary, "apitrace", "replay", "--size=peer", "-s", "-", "--snapshot-format=MD5", &trace_text];
    let theirs = [program.player, "-b", "--headless", "-s", "-", "--snapshot-format=MD5", &trace_text];
    let of = |words: &[&str]| {
        let (first, rest) = words.split_first().ok_or("no program")?;
        output(display.command(first).args(rest)).map(|bytes| lines(&bytes))
    };
    let (our_frames, their_frames) = (of(&ours)?, of(&theirs)?);
    let frames = our_frames.len().max(their_frames.len());
    let equal = our_frames.iter().zip(&their_frames).filter(|(one, other)| one == other).count();
    let late = late_frames(&binary, trace)?;
    let plain = |words: &[&str]| -> Vec<String> {
        let variables = ["env".to_owned(), format!("DISPLAY={}", display.1), "LIBGL_ALWAYS_SOFTWARE=1".to_owned()];
        variables.into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect()
    };
    let our_use = measure(None, &plain(&[&binary, "apitrace", "replay", &trace_text]))?;
    let their_use = measure(None, &plain(&[program.player, "-b", "--headless", &trace_text]))?;
    let mebibytes = |kib: i64| kib / 1024;
    println!(
        "| {name} | {frames} | {equal} | {} of {} | {:.2} | {:.2} | {} | {} |",
        late.0,
        late.1,
        our_use.cpu_s,
        their_use.cpu_s,
        mebibytes(our_use.peak_kib),
        mebibytes(their_use.peak_kib)
    );
    // The first frame of each window is garbage of 32 by 32 pixels in apitrace's players.
    if equal + 2 < frames {
        return Err(format!("{} of {frames} frames differ", frames - equal));
    }
    if late.0 < late.1 { Err(format!("{} of {} late frames differ", late.1 - late.0, late.1)) } else { Ok(()) }
}

/// How many late frames have the pixels alone that they have in the whole, of how many.
fn late_frames(binary: &str, trace: &Path) -> Result<(usize, usize), String> {
    let sums = |words: &[&str]| -> Result<Vec<Value>, String> {
        let file = trace.with_extension("sums.json");
        let mut command = Command::new(binary);
        command.args(["apitrace", "replay", "--force", "--sums"]).arg(&file).args(words).arg(trace);
        output(command.env("LIBGL_ALWAYS_SOFTWARE", "1"))?;
        let text = std::fs::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
        let value: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
        Ok(value.get("pictures").and_then(Value::as_array).cloned().unwrap_or_default())
    };
    let whole = sums(&[])?;
    let mut equal = 0;
    let count = LATE.min(whole.len());
    for number in 0..count {
        let at = whole.len() / 2 + number * (whole.len() / 2) / count;
        let Some(expected) = whole.get(at) else { continue };
        let frame = expected.get("frame").map(Value::to_string).unwrap_or_default();
        equal += usize::from(sums(&["--frames", &frame])?.as_slice() == std::slice::from_ref(expected));
    }
    Ok((equal, count))
}
