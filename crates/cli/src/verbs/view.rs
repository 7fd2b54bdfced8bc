//! `anytrace view`: traces in the browser.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anytrace_core::TimeBound;
use anytrace_core::index::Choice;
use anytrace_view::{Options, Server, Source};

use crate::arguments::{InputArguments, ViewArguments};
use crate::failure::Failure;
use crate::{Verdict, indexed, only_one_stdin, open, paint, terminal};

pub(crate) fn run(options: &ViewArguments) -> Result<Verdict, Failure> {
    only_one_stdin(options.files.iter().map(std::path::PathBuf::as_path))?;
    // What is no trace is said here, where the command was typed, and not in a browser.
    for file in options.files.iter().filter(|file| !open::is_read_once(file)) {
        let opened = open::open_trace(file, &options.input)?;
        // Of a trace with memory accesses they are the programs that made them.
        if let Ok((format, _)) = opened
            && !format.has_accesses()
            && options.symbols.has_files(format, file)
        {
            options.symbols.load(format, file)?;
        }
    }
    let server = Server::bind(Options {
        files: options.files.iter().map(|file| source(file, &options.input)).collect(),
        symbols: options.symbols.sources().to_vec(),
        mangling: options.symbols.mangling(),
        port: options.port.unwrap_or(0),
        socket: options.socket.clone(),
        follow: options.follow,
        collection: None,
        query: super::query::engine_path(),
        replayer: replayer(),
        index: index(options)?,
        page_folder: options.viewer_dir.clone(),
        threads: open::open_options(&options.input).threads,
    });
    let server = server.map_err(|error| Failure::bare(&error))?;
    let (url, end) = (server.url() + &fragment(options)?, server.end());
    ctrlc::set_handler(move || end.now()).map_err(|error| Failure::usage(error.to_string()))?;
    let mut out = terminal::stdout();
    writeln!(out, "{url}")?;
    out.flush()?;
    drop(out);
    if let Some(path) = &options.socket {
        let path = path.display();
        paint::complain(
            "note",
            format_args!("the server listens on {path}: `ssh -L 8080:{path} HOST` leads a port there"),
        );
    } else if !options.no_open {
        show_where_seen(&url);
    }
    server.run().map_err(|error| Failure::bare(&error))?;
    Ok(Verdict::Fine)
}

/// The part of the address that asks the page for Perfetto's.
fn fragment(options: &ViewArguments) -> Result<String, Failure> {
    if !options.perfetto {
        return Ok(String::new());
    }
    let is_backward = match (options.from, options.to) {
        (Some(TimeBound::Native(from)), Some(TimeBound::Native(to)))
        | (Some(TimeBound::Nanoseconds(from)), Some(TimeBound::Nanoseconds(to))) => from >= to,
        _ => false,
    };
    if is_backward {
        return Err(Failure::usage("the window is empty: --to is not after --from"));
    }
    let bound = |name: &str, bound: Option<TimeBound>| match bound {
        Some(TimeBound::Native(time)) => format!("&{name}={time}"),
        Some(TimeBound::Nanoseconds(time)) => format!("&{name}={time}ns"),
        Some(TimeBound::Open) | None => String::new(),
    };
    Ok(format!("#perfetto=1{}{}", bound("from", options.from), bound("to", options.to)))
}

/// The indexes that are used, as in `query`.
fn index(options: &ViewArguments) -> Result<Choice, Failure> {
    match &options.index.index {
        Some(_) if options.files.len() > 1 => Err(Failure::usage("--index is for a single trace")),
        Some(path) => Ok(Choice::File(path.clone())),
        None if options.index.no_index => Ok(Choice::None),
        None => Ok(Choice::Auto(indexed::folder())),
    }
}

/// This program, which replays traces of graphics for pictures of their frames.
pub(crate) fn replayer() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

fn source(file: &Path, input: &InputArguments) -> Source {
    Source {
        path: file.to_owned(),
        format: input.input_format.clone(),
        no_map: input.no_mmap,
        open: open::open_options(input),
    }
}

/// True where a browser can be seen.
pub(crate) fn has_display() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    cfg!(any(target_os = "macos", windows)) || is_set("DISPLAY") || is_set("WAYLAND_DISPLAY")
}

/// Opens the user's browser, where there is one to be seen.
pub(crate) fn show_where_seen(url: &str) {
    if has_display() {
        show(url);
    }
}

/// Opens the user's browser. Where that fails, the address is on standard output.
fn show(url: &str) {
    let mut command = if cfg!(target_os = "macos") {
        Command::new("open")
    } else if cfg!(windows) {
        let mut command = Command::new("cmd");
        command.args(["/c", "start", ""]);
        command
    } else {
        Command::new("xdg-open")
    };
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    if let Ok(mut child) = command.spawn() {
        // Nobody needs to know how it ended, but the system keeps it until somebody asks.
        std::thread::spawn(move || child.wait());
    }
}
