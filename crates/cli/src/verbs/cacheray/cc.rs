//! `anytrace cacheray cc`: a compiler's call, so that what comes out can be recorded.
//!
//! Sources are compiled with `-fsanitize=thread`; what is linked gets the recorder and not that option, which would
//! bring the sanitizer's own library. A call that does both is done in two steps, as compilers do themselves.

mod commands;
mod line;
mod options;

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use clap::Args;

use super::recorder_library;
use crate::failure::Failure;
use crate::{Verdict, terminal};
use commands::{replace, step};
use line::{Line, Step};
use options::{compile_options, library_calls, link_options};

/// `cacheray cc`.
#[derive(Debug, Args)]
pub(crate) struct CcArguments {
    /// Keep reads that clang drops when a write to the same location follows (x += 1)
    #[arg(long)]
    all_reads: bool,
    /// Print the commands instead of running them
    #[arg(long)]
    dry_run: bool,
    /// Print cacheray.h, which programs include to declare types, and exit
    #[arg(long)]
    print_header: bool,
    /// Print the folder with the recorder's libraries, for other build tools, and exit
    #[arg(long)]
    print_folder: bool,
    /// Compiler and its arguments
    #[arg(
        required_unless_present_any = ["print_header", "print_folder"],
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMPILER"
    )]
    command: Vec<OsString>,
}

pub(crate) fn run(options: &CcArguments) -> Result<Verdict, Failure> {
    if options.print_header {
        terminal::stdout().write_all(recorder_library::HEADER.as_bytes())?;
        return Ok(Verdict::Fine);
    }
    if options.print_folder {
        let library = recorder_library::find()?;
        let folder = library.shared.parent().unwrap_or(Path::new("."));
        terminal::stdout().write_all(folder.as_os_str().as_bytes())?;
        terminal::stdout().write_all(b"\n")?;
        return Ok(Verdict::Fine);
    }
    let [compiler, arguments @ ..] = options.command.as_slice() else {
        return Err(Failure::usage("no compiler to run"));
    };
    let line = Line::parse(arguments).map_err(Failure::usage)?;
    let is_clang = is_clang(compiler);
    if options.all_reads && !is_clang {
        return Err(Failure::usage("--all-reads works only with clang: gcc drops such reads before instrumenting"));
    }
    let mut compile = compile_options(&line, options.all_reads, is_clang);
    if !is_clang && line.step != Step::Ask {
        compile.extend(library_calls());
    }
    match line.step {
        Step::Ask => replace(Command::new(compiler).args(arguments), options.dry_run),
        Step::Compile => replace(Command::new(compiler).args(&line.arguments).args(compile), options.dry_run),
        Step::Link => link(compiler, &line, &compile, options.dry_run),
    }
}

/// Compiles what is to be compiled, and links.
fn link(compiler: &OsStr, line: &Line, compile: &[OsString], dry_run: bool) -> Result<Verdict, Failure> {
    if line.is_static {
        return Err(Failure::usage(
            "statically linked programs cannot be recorded (or used with ThreadSanitizer): remove -static",
        ));
    }
    let work = tempfile::Builder::new()
        .prefix("anytrace-cc-")
        .tempdir()
        .map_err(|error| Failure::usage(format!("cannot create a temporary folder: {error}")))?;
    crate::output::remove_on_signal(work.path());
    let mut arguments = line.arguments.clone();
    for (n, source) in line.sources.iter().enumerate() {
        let object = work.path().join(format!("{n}-{}.o", stem(&source.name)));
        let mut command = Command::new(compiler);
        command.args(&source.options).args(compile).arg("-c").arg(&source.name).arg("-o").arg(&object);
        let status = step(&mut command, dry_run)?;
        if status != 0 {
            return Ok(Verdict::Program(status));
        }
        if let Some(place) = arguments.get_mut(source.place) {
            *place = object.into_os_string();
        }
    }
    // `-x c` was for the sources; the compiler recognizes what replaced them by its name.
    if !line.sources.is_empty() && line.has_language {
        arguments = line::without_language(&arguments);
    }
    let library = if line.needs_library() { Some(recorder_library::find()?) } else { None };
    let mut command = Command::new(compiler);
    command.args(&arguments);
    if line.has_lto {
        command.arg("-fno-lto");
    }
    if let Some(library) = &library {
        command.args(link_options(line, library));
    }
    Ok(Verdict::Program(step(&mut command, dry_run)?))
}

/// The name without folders and ending, for messages of the linker.
fn stem(source: &OsStr) -> String {
    Path::new(source).file_stem().map_or_else(|| "stdin".to_owned(), |stem| stem.to_string_lossy().into_owned())
}

/// True for clang, by name or by what it says of itself.
fn is_clang(compiler: &OsStr) -> bool {
    let name = Path::new(compiler).file_name().unwrap_or_default().as_bytes();
    if name.windows(5).any(|part| part == b"clang") {
        return true;
    }
    let is_plain = matches!(name, b"cc" | b"c++");
    let said = is_plain.then(|| Command::new(compiler).arg("--version").output().ok()).flatten();
    said.is_some_and(|said| said.stdout.windows(5).any(|part| part == b"clang"))
}
