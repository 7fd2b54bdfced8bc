//! `anytrace casemate check --follow`: the verdict on a trace that is still being written.

mod checkpoint;
mod shown;

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anytrace_casemate::tools::{CheckOptions, Online};
use anytrace_core::Input;
use anytrace_live::{Arrival, Arrivals};
use clap::Args;

use crate::arguments::{CheckForm, InputArguments};
use crate::failure::Failure;
use crate::interrupt::stop_on_signal;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, paint};
use checkpoint::{Checkpoint, Every, every};
use shown::Shown;

/// How often an interrupt is looked for while nothing arrives.
const WAIT: Duration = Duration::from_millis(50);

/// After an interrupt, what has arrived already is read, at most for this long.
const REST: Duration = Duration::from_secs(1);

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Checking while the trace is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Following")]
pub(super) struct FollowArguments {
    /// Check FILE while it is written, and print each violation at once. FILE is a growing file, - for standard input, a
    /// pipe, or an address to listen on for one connection: unix:PATH or tcp://127.0.0.1:PORT. A file is followed until
    /// Ctrl-C or SIGTERM, everything else until it ends
    #[arg(long)]
    pub(super) follow: bool,
    /// Continue from the state in this file if it exists, and store the state there at the end and every now and then
    #[arg(long, value_name = "STATE", requires = "follow")]
    checkpoint: Option<PathBuf>,
    /// How often the state is stored: after so much time (10s) or so many records (100000)
    #[arg(long, value_name = "TIME|RECORDS", value_parser = every, default_value = "10s", requires = "checkpoint")]
    checkpoint_every: Every,
}

/// What is to be followed, and how.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) files: &'a [PathBuf],
    pub(super) format: CheckForm,
    pub(super) follow: &'a FollowArguments,
    pub(super) input: &'a InputArguments,
}

pub(super) fn run(options: Asked<'_>, check: &CheckOptions) -> Result<Verdict, Failure> {
    let is_json = match options.format {
        CheckForm::Text => false,
        CheckForm::Json => true,
        CheckForm::Sarif | CheckForm::Junit => {
            return Err(Failure::usage("--follow prints text or, with --format json, lines of JSON"));
        }
    };
    let [path] = options.files else {
        return Err(Failure::usage("--follow takes one FILE"));
    };
    let stop = stop_on_signal();
    let mut following = Following::open(path, options, check, is_json)?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut until = None;
    loop {
        if until.is_none() && stop.load(Ordering::Relaxed) {
            until = Some(Instant::now() + REST);
        }
        let arrival = following.arrivals.read(&mut buffer, if until.is_some() { Duration::ZERO } else { WAIT });
        let arrival = arrival.map_err(|error| Failure::bare(&error))?;
        if arrival == Arrival::End || until.is_some_and(|until| arrival == Arrival::Nothing || Instant::now() > until) {
            break;
        }
        following.take(arrival, &buffer)?;
    }
    if following.arrivals.is_missing() {
        return Err(Failure::did_not_appear(&following.name));
    }
    following.end()
}

struct Following<'a> {
    name: String,
    options: Asked<'a>,
    arrivals: Arrivals,
    online: Online,
    damage: Reporter,
    shown: Shown,
    checkpoint: Option<Checkpoint>,
    /// Nothing arrived yet.
    is_new: bool,
}

impl<'a> Following<'a> {
    /// Opens the source, at the place of an earlier state if there is one.
    fn open(path: &Path, options: Asked<'a>, check: &CheckOptions, is_json: bool) -> Result<Self, Failure> {
        let name = path.display().to_string();
        let open = open::open_options(options.input);
        let follow = options.follow;
        let checkpoint = follow.checkpoint.as_deref().map(|path| Checkpoint::new(path, follow.checkpoint_every));
        let earlier = checkpoint.as_ref().map(|one| one.load(path, &open, check)).transpose()?.flatten();
        let is_new = earlier.is_none();
        let (online, place) = match earlier {
            Some((online, place)) => (online, place),
            None => (Online::new(&name, &open, *check).map_err(|error| Failure::of(&name, &error))?, None),
        };
        let arrivals = Arrivals::open(path, place.as_ref()).map_err(|error| Failure::bare(&error))?;
        let shown = Shown { name: name.clone(), is_json };
        if arrivals.is_missing() {
            shown.event("waiting", &format!("{name}: waiting until the file appears"), None)?;
        }
        if let Some(address) = arrivals.address() {
            shown.event("listening", &format!("listening on {address}"), Some(&address))?;
        }
        let damage = Reporter::new(&name, anytrace_formats::by_name("casemate"), Way::Stderr, options.input.limit);
        let mut following = Self { name, options, arrivals, online, damage, shown, checkpoint, is_new };
        if !is_new {
            following.resume()?;
        }
        Ok(following)
    }

    /// Continues from an earlier state.
    fn resume(&mut self) -> Result<(), Failure> {
        if self.arrivals.is_file() {
            self.online.forget_pending();
        } else {
            // A stream has no bytes to compare: the ids say whether it continues where it stopped.
            self.online.may_be_interrupted();
        }
        let (offset, records) = (self.online.offset() + self.online.pending_bytes() as u64, self.online.records());
        let message = format!("{}: continuing at byte {offset:#x}, transition {records}", self.name);
        self.shown.event("continuing", &message, None)
    }

    fn take(&mut self, arrival: Arrival, buffer: &[u8]) -> Result<(), Failure> {
        match arrival {
            Arrival::Bytes(length) => self.bytes(buffer.get(..length).unwrap_or_default())?,
            Arrival::Nothing | Arrival::End => {}
            Arrival::Connected(peer) => {
                let peer = if peer.is_empty() { "a program".to_owned() } else { peer };
                self.shown.event("connected", &format!("{}: {peer} connected", self.name), None)?;
            }
            Arrival::Replaced => {
                let message = format!("{}: another file has this name now; reading continues there", self.name);
                self.shown.event("replaced", &message, None)?;
            }
            Arrival::Truncated => {
                let message = format!("{}: truncated; reading continues at its first byte", self.name);
                self.online.may_be_interrupted();
                self.shown.event("truncated", &message, None)?;
            }
        }
        self.store(false)
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if std::mem::take(&mut self.is_new) {
            let head = Input::from_bytes(&self.name, bytes.to_vec());
            if !head.layers().is_empty() {
                let name = &self.name;
                return Err(Failure::usage(format!(
                    "{name}: compressed data cannot be followed; decompress them into -"
                )));
            }
            open::must_be(&self.name, &head, self.options.input, "casemate")?;
        }
        let Self { online, damage, shown, .. } = self;
        let pushed = online.push(bytes, damage, &mut |found| shown.found(found));
        pushed.map_err(|error| Failure::of(&self.name, &error))
    }

    /// Stores the state where that is due, or `now`.
    fn store(&mut self, now: bool) -> Result<(), Failure> {
        let Some(checkpoint) = &mut self.checkpoint else { return Ok(()) };
        if now || checkpoint.is_due(&self.online) {
            let is_stored = checkpoint.store(&self.online, &self.arrivals)?;
            if now && !is_stored && self.online.records() > 0 {
                let name = anytrace_core::text::printable(&self.name);
                let message = "ends in the middle of damage, where no state can be stored; the one stored before stays";
                paint::complain("warning", format_args!("{name}: {message}"));
            }
        }
        Ok(())
    }

    /// Nothing follows: the state, then the totals.
    fn end(mut self) -> Result<Verdict, Failure> {
        self.store(true)?;
        let Self { name, online, mut damage, shown, .. } = self;
        let report = online.end(&mut damage, &mut |found| shown.found(found));
        let report = report.map_err(|error| Failure::of(&name, &error))?;
        damage.print_rest()?;
        shown.end(&report)?;
        Ok(if report.is_fine() { Verdict::Fine } else { Verdict::Breach })
    }
}
