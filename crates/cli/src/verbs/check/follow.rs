//! `anytrace check --follow`: what is wrong with a trace that is still being written.
//!
//! Nothing in the formats knows of this: they read a stream, whose reader waits for bytes.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anytrace_core::{Format, Input, Severity};
use anytrace_formats::{Recognized, by_name, recognize};
use anytrace_live::{Arrival, Arrivals};
use serde_json::json;

use super::print_totals;
use crate::arguments::{CheckArguments, CheckForm};
use crate::failure::Failure;
use crate::interrupt::stop_on_signal;
use crate::report::{Reporter, Way};
use crate::results::print_line;
use crate::{Verdict, open, paint};

/// How often an interrupt is looked for while nothing arrives.
const WAIT: Duration = Duration::from_millis(50);

/// After an interrupt, what has arrived already is read, at most for this long.
const REST: Duration = Duration::from_secs(1);

/// How long a few bytes may be all there is before they are taken for what they look like most.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes that suffice to recognize any format.
const HEAD_BYTES: usize = 64 << 10;

pub(super) fn run(options: &CheckArguments) -> Result<Verdict, Failure> {
    let is_json = match options.format {
        CheckForm::Text => false,
        CheckForm::Json => true,
        CheckForm::Sarif | CheckForm::Junit => {
            return Err(Failure::usage("--follow prints text or, with --format json, lines of JSON"));
        }
    };
    let [path] = options.files.as_slice() else {
        return Err(Failure::usage("--follow takes one FILE"));
    };
    let name = path.display().to_string();
    let mut feed = Feed::open(path, &name, is_json)?;
    let was_cut = Arc::clone(&feed.was_cut);
    let (format, head) = recognized(&name, &mut feed, options)?;
    let way = if is_json { Way::Lines } else { Way::Stdout };
    let mut reporter = Reporter::new(&name, format, way, options.input.limit);
    let mut records = 0;
    if let Some(format) = format {
        let trace = open::enter(format, Input::live(&name, head, Box::new(feed)), &options.input)?;
        records = trace.check(&mut reporter).map_err(|error| Failure::of(&name, &error))?.records;
    }
    let mut verdict = reporter.verdict();
    if was_cut.load(Ordering::Relaxed) {
        verdict = verdict.max(Verdict::Breach);
    }
    if !is_json {
        reporter.print_rest()?;
        print_totals(&name, format.map_or("record", Format::noun), records, &reporter)?;
        return Ok(verdict);
    }
    let totals = json!({
        "format": format.map(Format::name), "records": records, "errors": reporter.count(Severity::Error),
        "warnings": reporter.count(Severity::Warning), "notes": reporter.count(Severity::Note), "lost": reporter.lost(),
    });
    print_line("summary", &name, totals)?;
    Ok(verdict)
}

/// Waits for enough bytes to know the format; none where there are no bytes at all.
fn recognized(
    name: &str,
    feed: &mut Feed,
    options: &CheckArguments,
) -> Result<(Option<&'static dyn Format>, Vec<u8>), Failure> {
    let mut head = Vec::new();
    let mut since = None;
    loop {
        let wait = if head.is_empty() { None } else { Some(WAIT) };
        let is_over = !feed.more(&mut head, wait)?;
        let since = *since.get_or_insert_with(Instant::now);
        if feed.arrivals.is_missing() {
            return Err(Failure::did_not_appear(name));
        }
        if head.is_empty() {
            return Ok((None, head));
        }
        let input = if is_over { Input::from_bytes_as_is(name, head.clone()) } else { live(name, &head) };
        let is_enough = is_over || head.len() >= HEAD_BYTES || since.elapsed() > PATIENCE;
        if !Input::from_bytes(name, head.clone()).layers().is_empty() {
            return Err(Failure::usage(format!("{name}: compressed data cannot be followed; decompress them into -")));
        }
        let format = match &options.input.input_format {
            Some(wanted) => by_name(wanted),
            None => match recognize(&input.head()) {
                Recognized::Trace(format) if is_enough || is_sure(format, &input) => Some(format),
                Recognized::Jsonl(format) => {
                    let format = format.title();
                    return Err(Failure::usage(format!("{name}: lines of JSON of a {format} trace are not a trace")));
                }
                Recognized::Ambiguous(names) if is_enough => {
                    let names = names.join(" or ");
                    return Err(Failure::usage(format!("{name}: could be {names}; choose with --input-format")));
                }
                Recognized::Unknown if is_over || head.len() >= HEAD_BYTES => {
                    return Err(Failure::usage(format!("{name}: unknown format; --input-format overrides")));
                }
                _ => None,
            },
        };
        let Some(format) = format else { continue };
        if let Some(why) = format.needs_end(&input.head()) {
            let title = format.title();
            let help = "check it when it is complete";
            return Err(Failure::usage(format!("{name}: this {title} trace cannot be followed: {why}; {help}")));
        }
        return Ok((Some(format), head));
    }
}

/// True where more bytes would not change what the format is.
fn is_sure(format: &dyn Format, input: &Input) -> bool {
    format.probe(&input.head()) == anytrace_core::Confidence::Certain
}

fn live(name: &str, head: &[u8]) -> Input {
    Input::live(name, head.to_vec(), Box::new(io::empty()))
}

/// The bytes as they arrive, as a reader: it waits, and ends where nothing more will come, or after an interrupt.
struct Feed {
    name: String,
    is_json: bool,
    arrivals: Arrivals,
    stop: Arc<AtomicBool>,
    until: Option<Instant>,
    is_over: bool,
    /// The file was replaced or truncated: what follows is another trace.
    was_cut: Arc<AtomicBool>,
}

impl Feed {
    fn open(path: &Path, name: &str, is_json: bool) -> Result<Self, Failure> {
        let arrivals = Arrivals::open(path, None).map_err(|error| Failure::bare(&error))?;
        let feed = Self {
            name: name.to_owned(),
            is_json,
            arrivals,
            stop: stop_on_signal(),
            until: None,
            is_over: false,
            was_cut: Arc::default(),
        };
        if feed.arrivals.is_missing() {
            feed.event("waiting", &format!("{name}: waiting until the file appears"), None)?;
        }
        if let Some(address) = feed.arrivals.address() {
            feed.event("listening", &format!("listening on {address}"), Some(&address))?;
        }
        Ok(feed)
    }

    /// Adds bytes to the head; waits at most so long, if that is limited. False at the end.
    fn more(&mut self, head: &mut Vec<u8>, wait: Option<Duration>) -> Result<bool, Failure> {
        let mut buffer = [0; 4096];
        let until = wait.map(|wait| Instant::now() + wait);
        let got = self.next(&mut buffer, until).map_err(|error| Failure::of(&self.name, &error))?;
        head.extend_from_slice(buffer.get(..got.unwrap_or(0)).unwrap_or_default());
        Ok(!self.is_over)
    }

    /// The next bytes, 0 at the end; none where the time is over.
    fn next(&mut self, buffer: &mut [u8], limit: Option<Instant>) -> Result<Option<usize>, anytrace_core::Error> {
        while !self.is_over {
            if self.until.is_none() && self.stop.load(Ordering::Relaxed) {
                self.until = Some(Instant::now() + REST);
            }
            let arrival = self.arrivals.read(buffer, if self.until.is_some() { Duration::ZERO } else { WAIT })?;
            if self.until.is_some_and(|until| arrival == Arrival::Nothing || Instant::now() > until) {
                self.is_over = true;
            }
            match arrival {
                Arrival::Bytes(bytes) => return Ok(Some(bytes)),
                Arrival::Nothing => {}
                Arrival::End => self.is_over = true,
                Arrival::Connected(peer) => {
                    let peer = if peer.is_empty() { "a program".to_owned() } else { peer };
                    self.note("connected", &format!("{}: {peer} connected", self.name))?;
                }
                Arrival::Replaced | Arrival::Truncated => {
                    let what = if arrival == Arrival::Replaced { "replaced" } else { "truncated" };
                    self.is_over = true;
                    self.was_cut.store(true, Ordering::Relaxed);
                    let message = format!("{}: {what}; what follows is another trace, which is not checked", self.name);
                    self.note(what, &message)?;
                }
            }
            if limit.is_some_and(|limit| Instant::now() >= limit) && !self.is_over {
                return Ok(None);
            }
        }
        Ok(Some(0))
    }

    fn note(&self, kind: &str, message: &str) -> Result<(), anytrace_core::Error> {
        let printed = self.event(kind, message, None);
        printed.map_err(|error| anytrace_core::Error::io("cannot write", io::Error::other(error.message().to_owned())))
    }

    /// Something that happened to the source: a note on standard error, or a line of JSON.
    fn event(&self, kind: &str, message: &str, address: Option<&str>) -> Result<(), Failure> {
        if self.is_json {
            return Ok(print_line(kind, &self.name, json!({ "message": message, "address": address }))?);
        }
        paint::complain("note", anytrace_core::text::printable(message));
        Ok(())
    }
}

impl Read for Feed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.next(buffer, None).map(|bytes| bytes.unwrap_or(0)).map_err(io::Error::other)
    }
}
