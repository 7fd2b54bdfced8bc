//! `anytrace heph replay`.

mod json;
mod text;

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;

use anytrace_core::{Input, InputOptions, Kind};
use anytrace_live::{
    DATAGRAM_BYTES_MAX, Destination, Endpoint, OnDamage, ReplayOptions, ReplayReport, Rounds, Speed, replay,
};
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::arguments::{InputArguments, RANGE, ResultForm, range_of};
use crate::durations::duration;
use crate::failure::Failure;
use crate::interrupt::stop_on_signal;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::units::counted;
use crate::{Verdict, open, terminal};

/// `heph replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Trace; - is standard input, which is sent as it arrives
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Destination: udp://HOST:PORT, tcp://HOST:PORT, unix:PATH, unixgram:PATH or - (standard output)
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// Speed: 1 is as recorded, 2 is twice as fast, max sends without delays
    #[arg(long, value_name = "X", value_parser = speed, default_value = "1")]
    speed: Speed,
    /// Repeat until interrupted
    #[arg(long = "loop")]
    is_endless: bool,
    /// When events end
    #[arg(long, value_name = "A..B", value_parser = times, conflicts_with_all = ["from_time", "to_time"],
          help = format!("Only events that end in {RANGE}: nanoseconds since the trace's epoch, or with ns, us, ms, s, \
          m, h"))]
    time: Option<Range<u64>>,
    /// The start of --time, as it was given once
    #[arg(long, value_name = "TIME", value_parser = time, hide = true)]
    from_time: Option<u64>,
    /// The end of --time, as it was given once
    #[arg(long, value_name = "TIME", value_parser = time, hide = true)]
    to_time: Option<u64>,
    /// Combine packets into datagrams of at most this many bytes
    #[arg(long, value_name = "BYTES", value_parser = RangedU64ValueParser::<usize>::new().range(1..=DATAGRAM_BYTES_MAX as u64), default_value_t = 1472)]
    datagram: usize,
    /// Send a damaged trace without its damaged parts
    #[arg(long)]
    skip_damage: bool,
    /// How to print what was sent
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    input: InputArguments,
}

fn speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    match text.parse::<f64>() {
        Ok(times) if times.is_finite() && times > 0.0 => Ok(Speed::Times(times)),
        _ => Err("expected a number above 0, or max".to_owned()),
    }
}

fn time(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(ns) => Ok(ns),
        Err(_) => duration(text).and_then(|time| u64::try_from(time.as_nanos()).map_err(|_| "too large".to_owned())),
    }
}

fn times(text: &str) -> Result<Range<u64>, String> {
    range_of(text, time)
}

pub(crate) fn run(options: &ReplayArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    if !open::is_read_once(&options.file)
        && let Ok(input) = Input::open(&options.file, InputOptions::default())
    {
        open::must_be(&name, &input, &options.input, "heph")?;
    }
    let times = options.time.clone().unwrap_or(options.from_time.unwrap_or(0)..options.to_time.unwrap_or(u64::MAX));
    let how = ReplayOptions {
        speed: options.speed,
        rounds: if options.is_endless { Rounds::Endless } else { Rounds::One },
        from_ns: times.start,
        to_ns: Some(times.end).filter(|end| *end < u64::MAX),
        datagram_bytes: options.datagram,
        damage: if options.skip_damage { OnDamage::Skips } else { OnDamage::Refuses },
        open: open::open_options(&options.input),
        input: InputOptions { no_map: options.input.no_mmap },
    };
    let mut stdout = terminal::stdout();
    let to = match options.to.as_str() {
        "-" => Destination::Writer(&mut stdout),
        address => Destination::Address(address.parse::<Endpoint>().map_err(|error| Failure::bare(&error))?),
    };
    let stop = stop_on_signal();
    let format = anytrace_formats::by_name("heph");
    let mut reporter = Reporter::new(&name, format, Way::Stderr, options.input.limit);
    let mut progress = None;
    let mut watch = |input: &Input| progress = Some(Progress::watch(input));
    let sent = replay(&options.file, to, &how, &stop, &mut watch, &mut reporter);
    drop(progress);
    drop(stdout);
    reporter.print_rest()?;
    let report = sent.map_err(|error| match error.kind() {
        Kind::Malformed => Failure::breach(format!("{name} is damaged; use --skip-damage to send the rest of it")),
        Kind::Usage => Failure::bare(&error),
        _ => Failure::of(&name, &error),
    })?;
    print(options, &report)?;
    if report.refused > 0 {
        let message = format!("{} refused: nothing is listening there", counted(report.refused, "datagram"));
        return Err(Failure::usage(message));
    }
    Ok(reporter.verdict())
}

fn print(options: &ReplayArguments, report: &ReplayReport) -> Result<(), Failure> {
    let text = match options.format {
        ResultForm::Json => json::object(report),
        ResultForm::Text => text::page(report),
    };
    // Standard output is the recording itself where it is sent there.
    if options.to == "-" {
        let _ = terminal::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    Ok(terminal::stdout().write_all(text.as_bytes())?)
}
