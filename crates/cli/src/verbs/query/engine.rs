//! Runs the program that runs SQL, `anytrace-query` or `anytrace-cluster`.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::Verdict;
use crate::failure::Failure;
use crate::output::Output;
use crate::shell::become_program;

/// Runs the engine. It says itself what goes wrong; its results go to standard output, or to a file that is written
/// completely or not at all.
pub(super) fn run(
    engine: &Path,
    request: &Value,
    files: &[PathBuf],
    output: Option<&Path>,
    force: bool,
) -> Result<Verdict, Failure> {
    let mut command = Command::new(engine);
    command.arg(request.to_string()).args(files);
    let failed = |error: io::Error| Failure::usage(format!("{}: {error}", engine.display()));
    if request["action"] == "prompt" {
        // The terminal and its signals are the prompt's.
        return become_program(&mut command).map(verdict).map_err(failed);
    }
    // Ctrl-C ends the engine's work; this program then ends with the engine. Other signals reach only this program:
    // closing the lifeline ends the engine too.
    let lifeline = Lifeline::default();
    let handled = lifeline.clone();
    ctrlc::set_handler(move || handled.cut()).map_err(|error| Failure::usage(error.to_string()))?;
    command.stdin(Stdio::piped());
    let Some(output) = output else {
        let mut child = command.spawn().map_err(failed)?;
        // Closed when this program ends, however it ends: the engine then ends too.
        lifeline.hold(child.stdin.take());
        let status = child.wait().map_err(failed)?;
        return Ok(verdict(status.code()));
    };
    let mut out = Output::create(output, force)?;
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(failed)?;
    lifeline.hold(child.stdin.take());
    let stored = child.stdout.take().map_or(Ok(()), |mut from| store(&mut from, &mut out));
    if stored.is_err() {
        // It would write on to a pipe that nobody reads.
        let _ = child.kill();
    }
    let status = child.wait().map_err(failed)?;
    stored?;
    match verdict(status.code()) {
        // It was interrupted: what there is of the results is not all of them.
        Verdict::Program(code) => Ok(Verdict::Program(code)),
        verdict => out.commit(verdict),
    }
}

/// The engine's standard input: when it is closed, the engine ends.
#[derive(Clone, Default)]
struct Lifeline(Arc<Mutex<Held>>);

#[derive(Default)]
enum Held {
    /// The engine has not started.
    #[default]
    Nothing,
    End {
        _stdin: Option<ChildStdin>,
    },
    /// A signal came, maybe before the engine started.
    Cut,
}

impl Lifeline {
    fn hold(&self, stdin: Option<ChildStdin>) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !matches!(*held, Held::Cut) {
            *held = Held::End { _stdin: stdin };
        }
    }

    fn cut(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Held::Cut;
    }
}

fn store(from: &mut dyn Read, out: &mut Output) -> Result<(), Failure> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(length) => out.write_all(&buffer[..length])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The exit code of the engine is that of the verb.
fn verdict(code: Option<i32>) -> Verdict {
    match code {
        Some(0) => Verdict::Fine,
        Some(1) => Verdict::Breach,
        Some(130) => Verdict::Program(130),
        _ => Verdict::Failed,
    }
}
