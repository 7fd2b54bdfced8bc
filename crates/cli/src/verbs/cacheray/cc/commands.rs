//! Commands, run or printed.

use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};

use crate::failure::Failure;
use crate::shell::quoted;
use crate::{Verdict, terminal};

/// Runs one of several commands; gives its code.
pub(super) fn step(command: &mut Command, dry_run: bool) -> Result<u8, Failure> {
    if dry_run {
        print(command)?;
        return Ok(0);
    }
    let status = command.status().map_err(|error| cannot_run(command, &error))?;
    Ok(code(status))
}

fn code(status: ExitStatus) -> u8 {
    let number = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    number.and_then(|number| u8::try_from(number).ok()).unwrap_or(2)
}

/// Becomes the command.
pub(super) fn replace(command: &mut Command, dry_run: bool) -> Result<Verdict, Failure> {
    if dry_run {
        print(command)?;
        return Ok(Verdict::Fine);
    }
    let error = command.exec();
    Err(cannot_run(command, &error))
}

fn cannot_run(command: &Command, error: &std::io::Error) -> Failure {
    Failure::usage(format!("cannot run {}: {error}", command.get_program().display()))
}

/// Prints a command as a shell takes it.
fn print(command: &Command) -> Result<(), Failure> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut out = terminal::stdout();
    for (n, word) in words.enumerate() {
        write!(out, "{}{}", if n == 0 { "" } else { " " }, quoted(word))?;
    }
    writeln!(out)?;
    Ok(())
}
