//! `anytrace memory sim -- ./app`: records a program and reads its trace at once, through a pipe; no file is written.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use clap::Args;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use crate::failure::Failure;
use crate::verbs::recording::{code, leave_interrupts};
use crate::{Verdict, paint};

/// A program in place of traces.
#[derive(Debug, Args)]
pub(super) struct ProgramArguments {
    /// Record this program, as `cacheray record` does, and read the trace at once
    #[arg(last = true, conflicts_with = "files", value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// The arguments of a verb that reads traces, or a program's.
pub(super) trait OfProgram {
    /// Its traces, and the program.
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments);
}

/// Runs a verb, on the trace of a program where one is given. The program's exit code is ours if the verb has nothing
/// worse to say.
pub(super) fn run<A: OfProgram>(
    options: &mut A,
    verb: impl FnOnce(&A) -> Result<Verdict, Failure>,
) -> Result<Verdict, Failure> {
    let (files, program) = options.parts();
    if program.program.is_empty() {
        return verb(options);
    }
    let recording = Recording::start(&program.program)?;
    files.push(recording.trace.clone());
    let verdict = verb(options);
    let ended = recording.end()?;
    match verdict? {
        Verdict::Fine if !ended.success() => Ok(Verdict::Program(code(ended))),
        verdict => Ok(verdict),
    }
}

/// A program that is being recorded into a pipe.
struct Recording {
    /// The pipe, called like the program.
    trace: PathBuf,
    process: JoinHandle<std::io::Result<ExitStatus>>,
    /// Removed at the end.
    _folder: tempfile::TempDir,
}

impl Recording {
    fn start(program: &[OsString]) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| Failure::usage(format!("cannot {what}: {error}"));
        let folder = tempfile::tempdir().map_err(|error| failed("create a temporary folder", error))?;
        let name = program.first().and_then(|program| Path::new(program).file_name()).unwrap_or_default();
        let trace = folder.path().join(name);
        mkfifo(&trace, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|error| failed("create a pipe", error.into()))?;
        let own = std::env::current_exe().map_err(|error| failed("find this program", error))?;
        let mut command = Command::new(own);
        command.args(["cacheray", "record", "--quiet", "--no-pc", "--output"]).arg(&trace).arg("--").args(program);
        leave_interrupts();
        let mut recorder = command.spawn().map_err(|error| failed("start the recorder", error))?;
        let pipe = trace.clone();
        let process = std::thread::spawn(move || {
            let ended = recorder.wait();
            // Whoever still waits for the pipe's other end, as nothing was recorded, finds it closed.
            drop(open(&pipe, OFlag::O_WRONLY | OFlag::O_NONBLOCK, Mode::empty()));
            ended
        });
        Ok(Self { trace, process, _folder: folder })
    }

    /// Waits for the program.
    fn end(self) -> Result<ExitStatus, Failure> {
        let lost = || Failure::usage("the recorder was lost");
        let ended = self.process.join().map_err(|_| lost())?.map_err(|_| lost())?;
        if !ended.success() {
            paint::complain("note", format!("the program or its recording ended with exit code {}", code(ended)));
        }
        Ok(ended)
    }
}
