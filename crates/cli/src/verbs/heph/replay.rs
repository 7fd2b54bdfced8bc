//! `anytrace heph replay`.

use std::io::Write;
use std::path::PathBuf;

use anytrace_core::{InputOptions, Kind};
use anytrace_live::{
    DATAGRAM_BYTES_MAX, Destination, Endpoint, OnDamage, ReplayOptions, ReplayReport, Rounds, Speed, replay,
};
use clap::Args;
use clap::builder::RangedU64ValueParser;
use serde_json::json;

use super::collect::stop_on_signal;
use super::durations::duration;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::units::{counted, grouped, nanoseconds};
use crate::{Verdict, open, terminal};

/// `heph replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// Trace; - is standard input, which is sent as it comes
    #[arg(value_name = "TRACE")]
    file: PathBuf,
    /// Where to: udp://HOST:PORT, tcp://HOST:PORT, unix:PATH, unixgram:PATH or - (standard output)
    #[arg(long, value_name = "ADDRESS")]
    to: String,
    /// How fast: 1 is as recorded, 2 twice as fast, max as fast as it is taken
    #[arg(long, value_name = "X", value_parser = speed, default_value = "1")]
    speed: Speed,
    /// Send it again and again until interrupted
    #[arg(long = "loop")]
    is_endless: bool,
    /// Leave out events that end before this: nanoseconds since the trace's epoch, or with ns, us, ms, s, m, h
    #[arg(long, value_name = "TIME", value_parser = time)]
    from_time: Option<u64>,
    /// Leave out events that end at this or later
    #[arg(long, value_name = "TIME", value_parser = time)]
    to_time: Option<u64>,
    /// Longest datagram of more than one packet, in bytes
    #[arg(long, value_name = "BYTES", value_parser = RangedU64ValueParser::<usize>::new().range(1..=DATAGRAM_BYTES_MAX as u64), default_value_t = 1472)]
    datagram: usize,
    /// Send a damaged trace too, without its damaged places
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

pub(crate) fn run(options: &ReplayArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let how = ReplayOptions {
        speed: options.speed,
        rounds: if options.is_endless { Rounds::Endless } else { Rounds::One },
        from_ns: options.from_time.unwrap_or(0),
        to_ns: options.to_time,
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
    let mut watch = |input: &anytrace_core::Input| progress = Some(Progress::watch(input));
    let sent = replay(&options.file, to, &how, &stop, &mut watch, &mut reporter);
    drop(progress);
    drop(stdout);
    reporter.print_rest()?;
    let report = sent.map_err(|error| match error.kind() {
        Kind::Malformed => Failure::breach(format!("{name} is damaged; --skip-damage sends the rest of it")),
        Kind::Usage => Failure::bare(&error),
        _ => Failure::of(&name, &error),
    })?;
    print(options, &report)?;
    if report.refused > 0 {
        let message = format!("{} refused: nobody listens there", counted(report.refused, "datagram"));
        return Err(Failure::usage(message));
    }
    Ok(reporter.verdict())
}

fn print(options: &ReplayArguments, report: &ReplayReport) -> Result<(), Failure> {
    let text = match options.format {
        ResultForm::Json => to_json(report),
        ResultForm::Text => to_text(report),
    };
    // Standard output is the recording itself where it is sent there.
    if options.to == "-" {
        let _ = terminal::stderr().write_all(text.as_bytes());
        return Ok(());
    }
    Ok(terminal::stdout().write_all(text.as_bytes())?)
}

fn to_json(report: &ReplayReport) -> String {
    let made = json!({
        "version": 1,
        "packets": report.packets,
        "events": report.events,
        "bytes": report.bytes,
        "datagrams": report.datagrams,
        "refused_datagrams": report.refused,
        "rounds": report.rounds,
        "events_left_out": report.left_out,
        "damaged_places": report.damaged,
        "elapsed_s": report.elapsed.as_secs_f64(),
        "late_max_ns": u64::try_from(report.late_max.as_nanos()).unwrap_or(u64::MAX),
        "was_stopped": report.was_stopped,
    });
    format!("{made}\n")
}

fn to_text(report: &ReplayReport) -> String {
    let number = |number: u64| grouped(u128::from(number));
    let mut rows = vec![
        ("packets", format!("{} ({} events)", number(report.packets), number(report.events))),
        ("bytes", number(report.bytes)),
    ];
    let mut add = |name, figure: u64, shown: String| {
        if figure > 0 {
            rows.push((name, shown));
        }
    };
    add("datagrams", report.datagrams, number(report.datagrams));
    add("rounds", report.rounds.saturating_sub(1), number(report.rounds));
    add("left out", report.left_out, format!("{} events outside the times", number(report.left_out)));
    add("damaged", report.damaged, format!("{} places, not sent", number(report.damaged)));
    let late = report.late_max.as_millis();
    add("late", u64::from(late > 0), format!("at most {}", nanoseconds(report.late_max.as_nanos())));
    rows.push(("time", nanoseconds(report.elapsed.as_nanos())));
    if report.was_stopped {
        rows.push(("stopped", "before its end".to_owned()));
    }
    rows.into_iter().map(|(name, shown)| format!("  {name:9}  {shown}\n")).collect()
}
