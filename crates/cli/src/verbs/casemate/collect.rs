//! `anytrace casemate collect`: one trace out of the ring buffers that `casemate_trace.h` writes.

mod memory;
mod process;
mod summary;
mod written;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anytrace_casemate::tools::rings::{End, Rings, State};
use clap::Args;

use crate::arguments::{ResultForm, byte_count};
use crate::failure::Failure;
use crate::interrupt::stop_on_signal;
use crate::output::one_on_stdout;
use crate::report::{Reporter, Way};
use crate::{Verdict, paint};
use memory::Region;
use process::Process;
use summary::{EndedBy, Summary};
use written::Written;

/// How long to wait where nothing is there: while records come, and otherwise.
const SOON: Duration = Duration::from_millis(1);
const LATER: Duration = Duration::from_millis(10);

/// How long a processor may be at work on a record until a note says so, and how long after an interrupt.
const PATIENCE: Duration = Duration::from_secs(2);
const REST: Duration = Duration::from_secs(1);

/// `casemate collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArguments {
    /// The memory with the ring buffers: a shared file such as /dev/shm/trace, a device, or an image of memory
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Take the records out while the program runs, and give their room back to it: until it closes the trace, until its
    /// process is gone, or until Ctrl-C or SIGTERM. Without this, FILE is only read
    #[arg(long)]
    follow: bool,
    /// The trace; with --follow it is written as records come. - is standard output
    #[arg(short, long, value_name = "OUT", default_value = "-")]
    output: PathBuf,
    /// Replace the output
    #[arg(long)]
    force: bool,
    /// Where the memory begins in FILE, such as 0x80000000. Without this, an image is searched for ring buffers
    #[arg(long, value_name = "BYTES", value_parser = place)]
    offset: Option<u64>,
    /// How long the memory is; to the end of FILE if it has one
    #[arg(long, value_name = "BYTES", value_parser = place)]
    length: Option<u64>,
    /// End when the process N is gone, instead of the one that the program named by `cmt_process`
    #[arg(long, value_name = "N", requires = "follow")]
    pid: Option<u64>,
    /// How to print the totals: text on standard error, or JSON on standard output
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// How many diagnostics to print; 0 is all
    #[arg(long, value_name = "N", default_value_t = 1000)]
    limit: u64,
}

/// A number of bytes: hexadecimal after `0x`, otherwise decimal with an optional suffix.
fn place(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => {
            u64::from_str_radix(digits, 16).map_err(|_| "expected a hexadecimal number of 64 bits after 0x".to_owned())
        }
        None if text == "0" => Ok(0),
        None => byte_count(text),
    }
}

pub(crate) fn run(options: &CollectArguments) -> Result<Verdict, Failure> {
    let is_json = options.format == ResultForm::Json;
    one_on_stdout(&[
        (options.output.as_os_str() == "-").then_some("the trace"),
        is_json.then_some("the result of --format"),
    ])?;
    let name = options.file.display().to_string();
    let stop = stop_on_signal();
    let is_over = || stop.load(Ordering::Relaxed);
    let create = || Written::create(&options.output, options.force, options.follow);
    let (rings, written) = if options.follow {
        // Nobody waits for rings to learn that a file is in the way, and none is touched before there are rings.
        Written::look(&options.output, options.force)?;
        (wait_for_rings(options, &name, &is_over)?, create()?)
    } else {
        let written = create()?;
        (Some(open_image(options, &name)?), written)
    };
    let damage = Reporter::new(&name, anytrace_formats::by_name("casemate"), Way::Stderr, options.limit);
    let Some(rings) = rings else {
        // An interrupt came first.
        let summary = Summary { name, ..Summary::default() };
        return summary.print(is_json, written);
    };
    let mut collecting = Collecting { name, rings, written, damage, text: Vec::new() };
    let ended_by = if options.follow { collecting.follow(options.pid, &is_over)? } else { collecting.image()? };
    collecting.end(ended_by, is_json)
}

/// Opens an image, at the place where its ring buffers are.
fn open_image(options: &CollectArguments, name: &str) -> Result<Rings<Region>, Failure> {
    let mut region = Region::open(options, false).map_err(|error| Failure::bare(&error))?;
    if options.offset.is_none() {
        region.search().map_err(|error| Failure::of(name, &error))?;
    }
    let offset = region.offset();
    let rings = Rings::open(region).map_err(|error| Failure::of(name, &error))?;
    rings.ok_or_else(|| {
        Failure::usage(format!("{name}: no ring buffers at byte {offset:#x}: expected the characters CMTRACE1"))
    })
}

/// Opens shared memory, and waits until a program has prepared it; none after an interrupt.
fn wait_for_rings(
    options: &CollectArguments,
    name: &str,
    is_over: &dyn Fn() -> bool,
) -> Result<Option<Rings<Region>>, Failure> {
    let mut was_noted = false;
    loop {
        let rings = match Region::open(options, true) {
            Ok(region) => Rings::open(region).map_err(|error| Failure::of(name, &error))?,
            Err(error) if error.io_kind() == Some(std::io::ErrorKind::NotFound) => None,
            Err(error) => return Err(Failure::bare(&error)),
        };
        if rings.is_some() || is_over() {
            return Ok(rings);
        }
        if !std::mem::replace(&mut was_noted, true) {
            paint::complain("note", format_args!("{name}: waiting until a program prepares ring buffers there"));
        }
        std::thread::sleep(LATER);
    }
}

struct Collecting {
    name: String,
    rings: Rings<Region>,
    written: Written,
    damage: Reporter,
    text: Vec<u8>,
}

impl Collecting {
    /// Reads an image.
    fn image(&mut self) -> Result<EndedBy, Failure> {
        let state = self.rings.state().map_err(|error| Failure::of(&self.name, &error))?;
        while self.step(End::Final)? > 0 {}
        Ok(if state == State::Closed { EndedBy::Closed } else { EndedBy::Image })
    }

    /// Reads until the program ends, or an interrupt.
    fn follow(&mut self, pid: Option<u64>, is_over: &dyn Fn() -> bool) -> Result<EndedBy, Failure> {
        let mut process = Process::new(pid);
        let mut waits = Waits::default();
        let mut until = None;
        loop {
            // Before reading: what was written before the end is read after it.
            let ended_by = self.ended_by(&mut process)?;
            if is_over() && until.is_none() {
                until = Some(Instant::now() + REST);
            }
            if let Some(ended_by) = ended_by {
                while self.step(End::Final)? > 0 {}
                return Ok(ended_by);
            }
            let bytes = self.step(End::Open)?;
            let now = Instant::now();
            if let Some(until) = until
                && (now > until || bytes == 0 && self.rings.waits_for().is_none())
            {
                if self.rings.waits_for().is_some() {
                    self.step(End::Final)?;
                }
                return Ok(EndedBy::Interrupt);
            }
            if bytes == 0 {
                if let Some(number) = waits.note(self.rings.waits_for(), now) {
                    let name = &self.name;
                    let message = format!("{name}: later records wait for record {number}, which a CPU began");
                    paint::complain("note", message);
                }
                std::thread::sleep(if waits.is_idle(now) { LATER } else { SOON });
            } else {
                waits.last_bytes = Some(now);
            }
        }
    }

    fn ended_by(&self, process: &mut Process) -> Result<Option<EndedBy>, Failure> {
        let failed = |error| Failure::of(&self.name, &error);
        Ok(match self.rings.state().map_err(failed)? {
            State::Closed => Some(EndedBy::Closed),
            State::Replaced => Some(EndedBy::Replaced),
            State::Writing => process.gone(self.rings.process().map_err(failed)?).map(EndedBy::Process),
        })
    }

    /// Reads, writes and gives room back; returns the bytes written.
    fn step(&mut self, end: End) -> Result<usize, Failure> {
        self.text.clear();
        let read = self.rings.read(end, &mut self.text, &mut self.damage);
        self.written.write(&self.text)?;
        read.map_err(|error| Failure::of(&self.name, &error))?;
        if self.written.is_followed() {
            self.rings.release().map_err(|error| Failure::of(&self.name, &error))?;
        }
        Ok(self.text.len())
    }

    fn end(mut self, ended_by: EndedBy, is_json: bool) -> Result<Verdict, Failure> {
        if ended_by == EndedBy::Replaced {
            self.written
                .write(b"; the program began again: what was not read is gone\n; anytrace: records were lost here\n")?;
        }
        self.damage.print_rest()?;
        let summary = Summary {
            name: self.name,
            cpus: self.rings.count(),
            counts: self.rings.counts(),
            damaged: self.damage.lost(),
            ended_by,
        };
        summary.print(is_json, self.written)
    }
}

/// What is waited for, and since when.
#[derive(Default)]
struct Waits {
    last_bytes: Option<Instant>,
    record: Option<(u64, Instant, bool)>,
}

impl Waits {
    /// The record that has been waited for long enough to say so, once.
    fn note(&mut self, number: Option<u64>, now: Instant) -> Option<u64> {
        let number = number?;
        match &mut self.record {
            Some((known, since, was_noted)) if *known == number => {
                let is_due = !*was_noted && now.duration_since(*since) > PATIENCE;
                *was_noted |= is_due;
                is_due.then_some(number)
            }
            record => {
                *record = Some((number, now, false));
                None
            }
        }
    }

    fn is_idle(&self, now: Instant) -> bool {
        self.last_bytes.is_none_or(|last| now.duration_since(last) > PATIENCE)
    }
}
