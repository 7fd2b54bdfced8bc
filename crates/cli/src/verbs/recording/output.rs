//! The files that a recording makes: the trace and those of forked processes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The name that a trace of a program has by default: its own, and a number where there are such traces already, as
/// apitrace names them. `force`: the first name, whose file is replaced.
pub(crate) fn named_for(program: &OsStr, extension: &str, force: bool) -> PathBuf {
    let program = Path::new(program).file_name().unwrap_or(program);
    let numbered = |number: u32| {
        let mut name = program.to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.push(format!(".{extension}"));
        PathBuf::from(name)
    };
    let first = numbered(0);
    if force {
        return first;
    }
    let is_there = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
    // The maps of a program are beside its trace.
    let maps = |path: &PathBuf| path.with_extension(format!("{extension}.maps"));
    (0..10_000).map(numbered).find(|path| !is_there(path) && !is_there(&maps(path))).unwrap_or(first)
}

/// Refuses to replace a file; true when the trace will be one.
pub(crate) fn look_at_output(path: &Path, force: bool) -> Result<bool, Failure> {
    if path.as_os_str() == "-" {
        return Err(Failure::usage("standard output belongs to the program; use a FIFO to stream a trace"));
    }
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(Failure::usage(format!("cannot write {}: it is a directory", path.display()))),
        Ok(meta) if meta.is_file() && !force => {
            Err(Failure::usage(format!("{} exists; use --force to replace it", path.display())))
        }
        Ok(meta) if meta.is_file() => {
            // What is reported afterwards must be of this run.
            fs::remove_file(path)
                .map_err(|error| Failure::usage(format!("cannot replace {}: {error}", path.display())))?;
            Ok(true)
        }
        Ok(_) => Ok(false),
        Err(_) => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
            if folder.is_dir() {
                return Ok(true);
            }
            Err(Failure::usage(format!("cannot write {}: {} is not a directory", path.display(), folder.display())))
        }
    }
}

/// The trace and those of forked processes, in order of their names.
pub(crate) fn traces(output: &Path) -> Vec<PathBuf> {
    let name = output.file_name().unwrap_or_default().as_bytes();
    let folder = output.parent().filter(|folder| !folder.as_os_str().is_empty());
    let is_of_this = |file: &OsStr| {
        let rest = file.as_bytes().strip_prefix(name);
        rest.is_some_and(|rest| {
            rest.is_empty()
                || (rest.starts_with(b".") && rest.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.'))
        })
    };
    let entries = fs::read_dir(folder.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name()).filter(|file| is_of_this(file));
    let mut found: Vec<_> =
        names.map(|file| folder.map_or_else(|| file.clone().into(), |folder| folder.join(&file))).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_is_named_for_its_program() {
        assert_eq!(named_for(OsStr::new("/usr/bin/glxgears"), "trace", false), Path::new("glxgears.trace"));
        // This is there in the folder that tests run in.
        assert_eq!(named_for(OsStr::new("x/Cargo"), "toml", false), Path::new("Cargo.1.toml"));
        assert_eq!(named_for(OsStr::new("x/Cargo"), "toml", true), Path::new("Cargo.toml"));
    }
}
