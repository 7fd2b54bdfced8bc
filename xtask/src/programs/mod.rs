//! `cargo xtask programs`: records programs that nobody here wrote, and checks what the recorder and the verbs say of them.
//!
//! Their sources are in crates that other people use (`xtask/programs/Cargo.toml`); each has a small program of ours that
//! puts it to work. Each is built twice, with the recorder and without, and must print the same.

mod build;
mod calls;
mod checks;
mod list;
mod times;

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::packages;
use crate::shell::{cargo, has_program, root, run as run_command, skip};
use build::Sources;
use list::{PROGRAMS, Program};

/// For `cargo xtask`.
pub(crate) const USAGE: &str = "\
programs [--times | --calls] [--binary PATH] [NAME…]
                               record real programs and check what is said of them; --times: a table of what recording
                               costs beside Valgrind's cachegrind and heaptrack, on more work (NAME: lua, sqlite, …);
                               --calls: nine kinds of programs by XRay, whose calls an independent count repeats";

/// Runs the chore.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let (mut names, mut binary, mut is_timed, mut has_calls) = (Vec::new(), None, false, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--times" => is_timed = true,
            "--calls" => has_calls = true,
            "--binary" => binary = Some(PathBuf::from(rest.next().ok_or("--binary takes a path")?)),
            name if has_calls && !name.starts_with('-') => names.push(name),
            name if PROGRAMS.iter().any(|program| program.name == name) => names.push(name),
            other => return Err(format!("programs does not know {other}")),
        }
    }
    let chosen: Vec<_> = PROGRAMS.iter().filter(|one| names.is_empty() || names.contains(&one.name)).collect();
    let binary = match binary {
        Some(binary) => binary,
        None => {
            run_command(cargo().args(["build", "--quiet", "--locked", "--release", "--package", "anytrace"]))?;
            root().join("target/release/anytrace")
        }
    };
    if has_calls {
        return calls::all(&names, &std::path::absolute(&binary).map_err(|error| error.to_string())?);
    }
    all(&chosen, &binary, is_timed)
}

/// The part that the tests run: what compiles in seconds.
pub(crate) fn short(binary: &Path) -> Result<(), String> {
    if !has_program("gcc") {
        return skip("real programs: no gcc");
    }
    let chosen: Vec<_> = PROGRAMS.iter().filter(|program| program.is_short).collect();
    all(&chosen, binary, false)?;
    if !has_program("clang++") {
        return skip("calls of real programs: no clang");
    }
    let binary = std::path::absolute(binary).map_err(|error| error.to_string())?;
    calls::all(&["exceptions", "longjmp", "tail", "threads", "deep", "ring"], &binary)
}

fn all(programs: &[&Program], binary: &Path, is_timed: bool) -> Result<(), String> {
    if is_timed && !has_program("heaptrack") {
        packages::install(&["heaptrack"]);
    }
    // The programs have folders of their own.
    let binary = &std::path::absolute(binary).map_err(|error| error.to_string())?;
    let sources = Sources::find()?;
    let folder = root().join("target/programs");
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    println!("{}", if is_timed { times::HEAD } else { checks::HEAD });
    let mut failed = Vec::new();
    for program in programs {
        let bench = Bench { program, folder: folder.join(program.name), binary, sources: &sources };
        let row = bench.build().and_then(|()| if is_timed { times::row(&bench) } else { checks::row(&bench) });
        match row {
            Ok(row) => println!("{row}"),
            Err(what) => {
                println!(
                    "| {} | {} |",
                    program.name,
                    what.chars().take_while(|c| *c != '\n').take(200).collect::<String>()
                );
                failed.push(format!("{}: {what}", program.name));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

/// One program, and where it is built.
struct Bench<'a> {
    program: &'a Program,
    folder: PathBuf,
    /// `anytrace`.
    binary: &'a Path,
    sources: &'a Sources,
}

impl Bench<'_> {
    /// `anytrace` in the program's folder.
    fn anytrace(&self) -> Command {
        let mut command = Command::new(self.binary);
        command.current_dir(&self.folder).env_remove("CACHERAY_OPTIONS");
        command
    }

    /// A program in its folder, with its arguments.
    fn started(&self, mut command: Command, arguments: &[&str]) -> Command {
        let own = root().join("xtask/programs");
        command.current_dir(&self.folder);
        for argument in arguments {
            match argument.strip_prefix('@') {
                Some(file) => command.arg(own.join(file)),
                None => command.arg(argument),
            };
        }
        command
    }
}
