//! `anytrace heph collect`.

mod arguments;
mod page;
mod screen;
mod shown;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anytrace_core::Error;
use anytrace_live::{
    Caps, CollectOptions, Earlier, EndOfFile, Endpoint, Reach, StoreOptions, collect, raise_descriptors,
};

use crate::arguments::ResultForm;
use crate::failure::Failure;
use crate::{Verdict, paint, terminal};
use arguments::SummaryForm;
use screen::Screen;
use shown::{Shown, complain};

pub(crate) use arguments::CollectArguments;

pub(crate) fn run(options: &CollectArguments) -> Result<Verdict, Failure> {
    let how = to_library(options)?;
    for endpoint in how.listen.iter().filter(|endpoint| !endpoint.is_local() && options.allow_remote) {
        let message = format!("{endpoint} can be reached by other machines; anyone who can reach it can send");
        paint::complain("warning", message);
    }
    raise_descriptors();
    let stop = stop_on_signal();
    let form = options.ends.summary;
    let wants_screen = form == SummaryForm::Auto && terminal::stdout_is_terminal();
    let screen = if wants_screen { Screen::open().ok() } else { None };
    let mut shown = Shown { form, screen, unprinted: Vec::new() };
    let collected = collect(&how, &stop, &mut shown);
    // The terminal is as it was before anything else is printed.
    shown.screen = None;
    for line in &shown.unprinted {
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
        "; use --allow-remote to allow it"
    } else if message.contains("holds an earlier collection") && !options.append {
        "; use --append to add files to it"
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
        return Err(Failure::usage("nothing to collect from: use --listen or --follow"));
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
        acknowledges: options.ack,
        store: StoreOptions {
            folder: options.output.clone(),
            earlier: if options.append { Earlier::Continues } else { Earlier::Refuses },
            rotate_bytes: files.rotate_bytes,
            rotate_events: files.rotate_events,
            rotate_after: files.rotate_time,
            keep: files.keep,
            bytes_max: files.max_bytes,
            age_max: files.max_age,
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
