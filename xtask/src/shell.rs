//! Running other programs.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often [`skip`] was called.
static SKIPPED: AtomicU64 = AtomicU64::new(0);

/// The project's root folder.
pub(crate) fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or(here.clone(), std::path::Path::to_path_buf)
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Runs a command to its end; an error names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = shown(command);
    println!("$ {shown}");
    let status = command.status().map_err(|error| format!("cannot start {shown}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{shown}: {status}")) }
}

/// Standard output of a command that must succeed.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let shown = shown(command);
    let output = command.output().map_err(|error| format!("cannot start {shown}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{shown}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }
}

/// True when a program of this name is on the PATH.
pub(crate) fn has_program(name: &str) -> bool {
    std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|folder| folder.join(name).is_file()))
}

/// The command as a user would type it.
pub(crate) fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    command.get_args().fold(name, |text, argument| text + " " + &argument.to_string_lossy())
}

/// A part of a chore is left out: one line `skipped: WHY`. With `ANYTRACE_REQUIRE_ALL` (neither empty nor `0`) it is an
/// error, as in the tests.
pub(crate) fn skip(why: &str) -> Result<(), String> {
    if std::env::var_os("ANYTRACE_REQUIRE_ALL").is_some_and(|value| !value.is_empty() && value != "0") {
        return Err(format!("skipped: {why}"));
    }
    eprintln!("skipped: {why}");
    SKIPPED.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

/// How many parts of this chore were left out.
pub(crate) fn skipped() -> u64 {
    SKIPPED.load(Ordering::Relaxed)
}

/// The traces in `examples/traces`: the main job of the README works on them.
pub(crate) fn examples() -> Result<Vec<PathBuf>, String> {
    traces("examples/traces", 5)
}

/// The traces in a folder of the project, at least so many.
pub(crate) fn traces(folder: &str, count_min: usize) -> Result<Vec<PathBuf>, String> {
    let folder = root().join(folder);
    let entries = std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = entries.filter_map(Result::ok).map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e != "md"));
    files.sort();
    if files.len() < count_min {
        return Err(format!("{}: expected at least {count_min} traces", folder.display()));
    }
    Ok(files)
}
