//! `anytrace cacheray cc`: a compiler's call, so that what comes out can be recorded.
//!
//! Sources are compiled with `-fsanitize=thread`; what is linked gets the recorder and not that option, which would
//! bring the sanitizer's own library. A call that does both is done in two steps, as compilers do themselves.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus};

use clap::Args;

use super::recorder_library::{self, Library};
use crate::Verdict;
use crate::failure::Failure;
use crate::{paint, terminal};

mod line;

use line::{Line, Step};

/// `cacheray cc`.
#[derive(Debug, Args)]
pub(crate) struct CcArguments {
    /// Keep the reads that clang drops where a write to the same place follows (x += 1)
    #[arg(long)]
    all_reads: bool,
    /// Print the commands instead of running them
    #[arg(long)]
    dry_run: bool,
    /// Print cacheray.h, by which a program tells types, and do nothing else
    #[arg(long)]
    print_header: bool,
    /// Print the folder of the recorder's libraries, for other build tools, and do nothing else
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
        return Err(Failure::usage("--all-reads is for clang: gcc drops such reads before it instruments"));
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

/// What instruments.
fn compile_options(line: &Line, all_reads: bool, is_clang: bool) -> Vec<OsString> {
    let mut options = vec!["-fsanitize=thread".into(), "-DCACHERAY".into()];
    if !line.has_debug_option {
        options.push("-g".into());
    }
    if line.has_lto {
        // Code that is made while linking would have to be instrumented there, with the sanitizer's library.
        options.push("-fno-lto".into());
    }
    if is_clang {
        options.push("-Qunused-arguments".into());
    }
    if all_reads {
        options.extend(["-mllvm".into(), "-tsan-instrument-read-before-write=1".into()]);
    }
    options
}

/// Functions of the C library that gcc would expand in place or replace, behind the back of its own instrumentation. As
/// calls they reach the recorder. (clang instruments what it expands.)
const CALLS: [&str; 34] = [
    "memcpy",
    "memmove",
    "memset",
    "mempcpy",
    "memcmp",
    "memchr",
    "bcopy",
    "bzero",
    "bcmp",
    "strlen",
    "strnlen",
    "strcpy",
    "stpcpy",
    "strncpy",
    "stpncpy",
    "strcat",
    "strncat",
    "strcmp",
    "strncmp",
    "strcasecmp",
    "strncasecmp",
    "strchr",
    "strrchr",
    "index",
    "rindex",
    "strstr",
    "strspn",
    "strcspn",
    "strpbrk",
    "strdup",
    "strndup",
    "sprintf",
    "snprintf",
    "vsnprintf",
];

/// Keeps gcc from expanding the C library's functions, also under their names with `__builtin_`.
fn library_calls() -> Vec<OsString> {
    let mut options: Vec<OsString> = CALLS.iter().map(|name| format!("-fno-builtin-{name}").into()).collect();
    match recorder_library::builtins() {
        Ok(header) => options.extend(["-include".into(), header.into_os_string()]),
        Err(failure) => {
            failure.print();
            paint::complain("note", "what __builtin_memcpy copies within a function may not be recorded");
        }
    }
    options
}

/// Compiles what is to be compiled, and links.
fn link(compiler: &OsStr, line: &Line, compile: &[OsString], dry_run: bool) -> Result<Verdict, Failure> {
    if line.is_static {
        return Err(Failure::usage(
            "a program that is linked statically cannot be recorded (nor can ThreadSanitizer's): leave -static out",
        ));
    }
    let work = tempfile::Builder::new()
        .prefix("anytrace-cc-")
        .tempdir()
        .map_err(|error| Failure::usage(format!("cannot make a temporary folder: {error}")))?;
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
    // `-x c` was for the sources; what stands there now is told by its name.
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

/// What brings the recorder in.
fn link_options(line: &Line, library: &Library) -> Vec<OsString> {
    if line.is_shared {
        // Libraries that must have no holes get the shared recorder; the one of the program goes before it.
        let mut path = OsString::from("-Wl,-rpath,");
        path.push(library.shared.parent().unwrap_or(Path::new(".")));
        return vec![library.shared.clone().into_os_string(), path];
    }
    let mut options: Vec<OsString> = vec![library.archive.clone().into_os_string()];
    // Instrumented libraries that are loaded at run time find the recorder in the program.
    if line.is_gold {
        options.push("-rdynamic".into());
    } else {
        let names = ["__tsan_*", "__cacheray_*", "__malloc_recorded", "__calloc_recorded", "__realloc_recorded"];
        let names = names.into_iter().chain(["__free_recorded"]);
        options.extend(names.map(|name| format!("-Wl,--export-dynamic-symbol={name}").into()));
    }
    options.extend(["-lgcc_s", "-lpthread", "-ldl", "-lm"].map(OsString::from));
    options
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

/// Runs one of several commands; gives its code.
fn step(command: &mut Command, dry_run: bool) -> Result<u8, Failure> {
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
fn replace(command: &mut Command, dry_run: bool) -> Result<Verdict, Failure> {
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
        let text = word.to_string_lossy();
        let is_plain =
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=./,+:%@".contains(&byte));
        let shown = if is_plain { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) };
        write!(out, "{}{shown}", if n == 0 { "" } else { " " })?;
    }
    writeln!(out)?;
    Ok(())
}
