//! `anytrace heph collect`.

mod page;
mod screen;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anytrace_core::{Diagnostic, Error, text};
use anytrace_live::{
    Caps, CollectOptions, Earlier, EndOfFile, Endpoint, Fsync, ListenerReport, Observer, Reach, SourceName,
    StoreOptions, Summary, collect,
};
use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};

use super::durations::{duration, some_duration};
use crate::arguments::{ResultForm, byte_count};
use crate::failure::Failure;
use crate::{Verdict, paint, terminal};
use screen::Screen;

/// `heph collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    /// Address to listen on: udp://HOST:PORT, tcp://HOST:PORT, unix:PATH or unixgram:PATH; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<String>,
    /// Growing file to follow, across truncation and renaming; may be repeated
    #[arg(long, value_name = "FILE")]
    follow: Vec<PathBuf>,
    /// Folder for the files; made where there is none
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Use a folder that holds an earlier collection; its files stay as they are
    #[arg(long)]
    append: bool,
    /// Listen on addresses that other machines can reach: whoever reaches them can send
    #[arg(long)]
    allow_remote: bool,
    /// Read followed files to their end and do not wait for more
    #[arg(long)]
    no_follow: bool,
    #[command(flatten)]
    ends: EndArguments,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    caps: CapArguments,
}

/// When it ends and what it shows meanwhile.
#[derive(Debug, Args)]
struct EndArguments {
    /// End after this time
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    duration: Option<Duration>,
    /// End once so many events are kept
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    max_events: Option<u64>,
    /// What to show while it runs
    #[arg(long, value_enum, default_value_t = SummaryForm::Auto)]
    summary: SummaryForm,
    /// Time between two summaries
    #[arg(long, value_name = "TIME", value_parser = some_duration, default_value = "1s")]
    interval: Duration,
    /// How to print the report at the end
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
}

/// How summaries are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SummaryForm {
    /// A screen where standard output is a terminal, else nothing
    Auto,
    /// One JSON object a line on standard output
    Json,
    /// Nothing
    None,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
struct FileArguments {
    /// Begin a new file before one gets longer than this; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count)]
    rotate_bytes: Option<u64>,
    /// Begin a new file after so many events
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    rotate_events: Option<u64>,
    /// Begin a new file after this time
    #[arg(long, value_name = "TIME", value_parser = some_duration)]
    rotate_time: Option<Duration>,
    /// Keep so many closed files of each source and remove older ones
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    keep: Option<usize>,
    /// Force bytes to the disk: never, batch (before more is received) or about so often
    #[arg(long, value_name = "never|batch|TIME", value_parser = fsync, default_value = "1s")]
    fsync: Fsync,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Limits")]
struct CapArguments {
    /// Longest packet, in bytes; suffixes k, M, G
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "16M")]
    max_packet: u64,
    /// Most connections at a time; more are closed at once
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_536), default_value_t = 64)]
    max_connections: usize,
    /// Most sources at a time: senders of datagrams, connections, files
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=65_536), default_value_t = 256)]
    max_sources: usize,
    /// Most streams of a source whose counters are followed
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..), default_value_t = 65_536)]
    max_streams: usize,
    /// How long half a packet may stand, and how long a connection may stay without any packet
    #[arg(long, value_name = "TIME", value_parser = some_duration, default_value = "60s")]
    idle_timeout: Duration,
    /// Bytes a second from one sender, 0 is all it sends: a stream is read no faster, datagrams above it are dropped
    #[arg(long, value_name = "BYTES", value_parser = rate, default_value = "256M")]
    rate_limit: u64,
    /// Memory for what was received and is not written yet and for what is known of streams
    #[arg(long, value_name = "BYTES", value_parser = byte_count, default_value = "64M")]
    memory: u64,
}

fn fsync(text: &str) -> Result<Fsync, String> {
    match text {
        "never" => Ok(Fsync::Never),
        "batch" => Ok(Fsync::Batch),
        time => duration(time).map(|time| if time.is_zero() { Fsync::Batch } else { Fsync::Every(time) }),
    }
}

fn rate(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { byte_count(text) }
}

pub(crate) fn run(options: &CollectArguments) -> Result<Verdict, Failure> {
    let how = to_library(options)?;
    for endpoint in how.listen.iter().filter(|endpoint| !endpoint.is_local() && options.allow_remote) {
        let message = format!("{endpoint} can be reached by other machines; whoever reaches it can send");
        paint::complain("warning", message);
    }
    let stop = stop_on_signal();
    let form = options.ends.summary;
    let wants_screen = form == SummaryForm::Auto && terminal::stdout_is_terminal();
    let screen = if wants_screen { Screen::open().ok() } else { None };
    let mut shown = Shown { form, screen, untold: Vec::new() };
    let collected = collect(&how, &stop, &mut shown);
    // The terminal is as it was before anything else is printed.
    shown.screen = None;
    for line in &shown.untold {
        complain(line);
    }
    let report = collected.map_err(|error| failure(&error, options))?;
    let is_json = options.ends.format == ResultForm::Json || form == SummaryForm::Json;
    let mut out = terminal::stdout().json(is_json);
    match (options.ends.format, form) {
        (ResultForm::Json, _) | (_, SummaryForm::Json) => writeln!(out, "{}", report.to_json())?,
        (ResultForm::Text, _) => out.write_all(page::page(&report, &options.output).as_bytes())?,
    }
    out.flush()?;
    Ok(Verdict::Fine)
}

/// What the library says, with the option that helps.
fn failure(error: &Error, options: &CollectArguments) -> Failure {
    if error.io_kind() == Some(std::io::ErrorKind::BrokenPipe) {
        // Whoever read the summaries is gone.
        return Failure::bare(error);
    }
    let message = error.to_string();
    let help = if message.contains("can be reached by other machines") {
        "; --allow-remote allows it"
    } else if message.contains("holds an earlier collection") && !options.append {
        "; --append puts new files beside it"
    } else {
        ""
    };
    Failure::usage(format!("{message}{help}"))
}

fn to_library(options: &CollectArguments) -> Result<CollectOptions, Failure> {
    let CollectArguments { ends, files, caps, .. } = options;
    let parse = |word: &String| word.parse::<Endpoint>().map_err(|error| Failure::bare(&error));
    let listen = options.listen.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    if listen.is_empty() && options.follow.is_empty() {
        return Err(Failure::usage("nothing to collect from: give --listen or --follow"));
    }
    let memory_bytes = usize::try_from(caps.memory).unwrap_or(usize::MAX);
    if memory_bytes < 4 << 20 {
        return Err(Failure::usage("--memory: expected at least 4M"));
    }
    Ok(CollectOptions {
        listen,
        follow: options.follow.clone(),
        end_of_file: if options.no_follow { EndOfFile::Ends } else { EndOfFile::Waits },
        reach: if options.allow_remote { Reach::Network } else { Reach::Loopback },
        store: StoreOptions {
            folder: options.output.clone(),
            earlier: if options.append { Earlier::Continues } else { Earlier::Refuses },
            rotate_bytes: files.rotate_bytes,
            rotate_events: files.rotate_events,
            rotate_after: files.rotate_time,
            keep: files.keep,
            fsync: files.fsync,
        },
        caps: Caps {
            packet_bytes: caps.max_packet,
            connections: caps.max_connections,
            sources: caps.max_sources,
            streams: caps.max_streams,
            idle: caps.idle_timeout,
            rate_bytes: Some(caps.rate_limit).filter(|rate| *rate > 0),
            memory_bytes,
        },
        interval: ends.interval,
        duration: ends.duration,
        events_max: ends.max_events,
    })
}

/// A flag that an interrupt sets. A second interrupt ends the program at once.
pub(super) fn stop_on_signal() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let of_handler = Arc::clone(&stop);
    // Without a handler an interrupt ends the program; what was received is in the files all the same.
    let _ = ctrlc::set_handler(move || {
        if of_handler.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    });
    stop
}

/// What is shown while it runs.
struct Shown {
    form: SummaryForm,
    screen: Option<Screen>,
    /// Complaints that wait until the screen is gone.
    untold: Vec<String>,
}

/// Most complaints kept for the end.
const UNTOLD_MAX: usize = 100;

impl Observer for Shown {
    fn listening(&mut self, listeners: &[ListenerReport]) -> Result<(), Error> {
        if self.form == SummaryForm::Json {
            let addresses: Vec<&str> = listeners.iter().map(|listener| listener.address.as_str()).collect();
            let line = serde_json::json!({ "version": 1, "type": "listening", "addresses": addresses });
            return put(&line);
        }
        for listener in listeners.iter().filter(|_| self.screen.is_none()) {
            let buffer = listener.receive_buffer_bytes.map_or(String::new(), |bytes| {
                format!(", receive buffer {} KiB", crate::units::grouped(u128::from(bytes / 1024)))
            });
            let _ = writeln!(terminal::stderr(), "listening on {}{buffer}", listener.address);
        }
        Ok(())
    }

    fn summary(&mut self, summary: &Summary) -> Result<(), Error> {
        match (&mut self.screen, self.form) {
            (Some(screen), _) => Ok(screen.draw(summary, self.untold.last().map_or("", String::as_str))?),
            (None, SummaryForm::Json) => put(&summary.to_json()),
            (None, _) => Ok(()),
        }
    }

    fn damage(&mut self, source: &SourceName, diagnostic: Diagnostic) -> Result<(), Error> {
        let mut line = format!("{}: ", source.peer);
        // Writing to a string cannot fail.
        let _ = diagnostic.render("packet", &mut line);
        if self.screen.is_none() {
            complain(&line);
        } else if self.untold.len() < UNTOLD_MAX {
            self.untold.push(line);
        }
        Ok(())
    }
}

/// A complaint about what was received; nothing in it may move a terminal.
fn complain(line: &str) {
    let safe: Vec<_> = line.lines().map(text::printable).collect();
    let _ = writeln!(terminal::stderr(), "{}", safe.join("\n"));
}

/// One line of JSON, at once.
fn put(line: &serde_json::Value) -> Result<(), Error> {
    let mut out = terminal::stdout().json(true);
    Ok(writeln!(out, "{line}").and_then(|()| out.flush())?)
}
