//! `anytrace memory sim -- ./app`: records a program and reads its trace at once, through a pipe; no file is written.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use clap::Args;
use nix::fcntl::{FcntlArg, OFlag, fcntl, open};
use nix::sys::stat::Mode;
use nix::unistd::{dup2_stdin, mkfifo};

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
    files.push(PathBuf::from("-"));
    let verdict = verb(options);
    if verdict.is_err() {
        paint::complain("note", "nothing reads the recording any more; waiting for the program to end");
    }
    drain();
    let ended = recording.end()?;
    match verdict? {
        Verdict::Fine if !ended.success() => Ok(Verdict::Program(code(ended))),
        verdict => Ok(verdict),
    }
}

/// Reads what the verb did not: a program must not wait for a reader that is gone. The pipe stays open for that, as a
/// recorder that finds it closed from the beginning would wait for one too.
fn drain() {
    // What cannot be read is lost to nobody.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
}

/// A program that is being recorded into a pipe, which is our standard input from now on.
struct Recording {
    process: JoinHandle<std::io::Result<ExitStatus>>,
    /// Removed at the end.
    _folder: tempfile::TempDir,
}

impl Recording {
    fn start(program: &[OsString]) -> Result<Self, Failure> {
        let failed = |what: &str, error: std::io::Error| Failure::usage(format!("cannot {what}: {error}"));
        let no_pipe = |error: nix::Error| failed("create a pipe", error.into());
        let folder = tempfile::tempdir().map_err(|error| failed("create a temporary folder", error))?;
        let pipe = folder.path().join("trace");
        mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).map_err(no_pipe)?;
        // Both ends are open from the beginning: neither the recorder nor who reads waits for the other to come, and what a
        // program leaves that has ended long before stays. `O_NONBLOCK` is for the first opening alone.
        let reader =
            open(&pipe, OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty()).map_err(no_pipe)?;
        let writer = open(&pipe, OFlag::O_WRONLY | OFlag::O_CLOEXEC, Mode::empty()).map_err(no_pipe)?;
        fcntl(&reader, FcntlArg::F_SETFL(OFlag::empty())).map_err(no_pipe)?;
        let own = std::env::current_exe().map_err(|error| failed("find this program", error))?;
        let mut command = Command::new(own);
        command.args(["cacheray", "record", "--quiet", "--no-pc", "--output"]).arg(&pipe).arg("--").args(program);
        leave_interrupts();
        // The program has the standard input that we had.
        let mut recorder = command.spawn().map_err(|error| failed("start the recorder", error))?;
        dup2_stdin(&reader).map_err(no_pipe)?;
        let process = std::thread::spawn(move || {
            let ended = recorder.wait();
            drop(writer);
            ended
        });
        Ok(Self { process, _folder: folder })
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
