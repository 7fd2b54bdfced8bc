//! `anytrace heph loss`.

use std::io::Write;
use std::path::{Path, PathBuf};

use anytrace_core::{Input, InputOptions};
use anytrace_heph::tools::loss::{LossOptions, LossReport, SourceLoss, StreamLoss, read_datagrams, read_file};
use clap::Args;

use super::opening;
use crate::arguments::{InputArguments, ResultForm};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::results::{lost, print_json};
use crate::table::{Align, Table};
use crate::units::{counted, grouped, percent};
use crate::{Verdict, for_each_file, open, terminal};

/// Most ranges named in a row.
const RANGES_SHOWN: usize = 8;

/// `heph loss`.
#[derive(Debug, Args)]
pub(crate) struct LossArguments {
    /// Traces, each a source of its own; - is standard input
    #[arg(value_name = "FILE", required_unless_present = "datagrams")]
    files: Vec<PathBuf>,
    /// A capture of datagrams: sender's port (2 bytes), length (4), bytes, big-endian, repeated
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    datagrams: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    /// Exit with 1 when more than this share of the events is lost, as 0.1%
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    fail_above: Option<f64>,
    /// For how many packets of its stream a missing counter may still come
    #[arg(long, value_name = "PACKETS", default_value_t = LossOptions::default().window_packets)]
    window: u32,
    #[command(flatten)]
    input: InputArguments,
}

/// Per cent as a share.
fn share(text: &str) -> Result<f64, String> {
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("{text:?} is no share, as 0.1%"))?;
    if (0.0..=100.0).contains(&number) {
        Ok(number / 100.0)
    } else {
        Err(format!("{text:?} is not between 0 and 100%"))
    }
}

pub(crate) fn run(options: &LossArguments) -> Result<Verdict, Failure> {
    let counting = LossOptions { window_packets: options.window, ..LossOptions::default() };
    let mut report = LossReport::default();
    let verdict = match &options.datagrams {
        Some(path) => {
            let (found, verdict) = capture(path, &counting, options)?;
            report = found;
            verdict
        }
        None => for_each_file(&options.files, |path| {
            let (source, verdict) = file(path, &counting, options)?;
            report.sources.push(source);
            Ok(verdict)
        })?,
    };
    match options.format {
        ResultForm::Json => {
            let mut value = report.to_json();
            // `lost` says which counters are missing; this is what the file itself has lost since.
            value["lost_to_damage"] = lost(None).into();
            print_json(vec![value], false)?;
        }
        ResultForm::Text => terminal::stdout().write_all(page(&report).as_bytes())?,
    }
    let is_over = options.fail_above.is_some_and(|most| report.lost_share() > most);
    Ok(if is_over { verdict.max(Verdict::Breach) } else { verdict })
}

fn file(path: &Path, counting: &LossOptions, options: &LossArguments) -> Result<(SourceLoss, Verdict), Failure> {
    let name = path.display().to_string();
    let opening::Opening { input, mut reporter } = opening::open(path, &options.input)?;
    let _progress = Progress::watch(&input);
    let source = read_file(&name, input, &open::open_options(&options.input), counting, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    Ok((source, reporter.verdict()))
}

fn capture(path: &Path, counting: &LossOptions, options: &LossArguments) -> Result<(LossReport, Verdict), Failure> {
    let name = path.display().to_string();
    let input = Input::open(path, InputOptions { no_map: options.input.no_mmap });
    let input = input.map_err(|error| Failure::bare(&error))?;
    let mut reporter = Reporter::new(&name, None, Way::Stderr, options.input.limit);
    let _progress = Progress::watch(&input);
    let report = read_datagrams(input, &open::limits(&options.input), counting, &mut reporter)
        .map_err(|error| Failure::of(&name, &error))?;
    reporter.print_rest()?;
    Ok((report, reporter.verdict()))
}

fn page(report: &LossReport) -> String {
    let mut table = Table::new(&[
        ("source", Align::Left),
        ("stream", Align::Right),
        ("sent", Align::Right),
        ("received", Align::Right),
        ("lost", Align::Right),
        ("", Align::Right),
        ("twice", Align::Right),
        ("malformed", Align::Right),
        ("out of order", Align::Right),
        ("restarts", Align::Right),
        ("lost counters", Align::Left),
    ]);
    let number = |n: u64| grouped(n.into());
    let mut out = String::new();
    for source in &report.sources {
        let shown = anytrace_core::text::printable(&source.name);
        for stream in &source.streams {
            let sent = stream.sent_at_least();
            table.row(vec![
                shown.clone(),
                stream.stream.to_string(),
                number(sent),
                number(stream.received),
                number(stream.lost),
                if stream.lost > 0 { percent(stream.lost as f64, sent as f64) } else { String::new() },
                number(stream.duplicates),
                number(stream.malformed),
                number(stream.out_of_order),
                number(stream.restarts),
                ranges(stream),
            ]);
        }
    }
    let events = counted(report.received(), "event");
    let lost = report.sum(|stream| stream.lost);
    out.push_str(&format!("{events} received, {} lost\n", grouped(lost.into())));
    if report.received() == 0 {
        return out;
    }
    out.push_str(&table.render());
    for source in &report.sources {
        notes(source, &mut out);
    }
    let head = report.sum(|stream| stream.lost_at_head);
    if head > 0 {
        let words = "before the first event that arrived: lost, or sent before anyone listened";
        out.push_str(&format!("{} of the lost counters are {words}\n", grouped(head.into())));
    }
    out.push_str("what was lost behind the last event of a stream leaves no gap and is not counted\n");
    out
}

/// What a row does not say of a source.
fn notes(source: &SourceLoss, out: &mut String) {
    let name = anytrace_core::text::printable(&source.name);
    if source.bad_datagrams > 0 {
        out.push_str(&format!(
            "{name}: {} hold no whole packet at their end\n",
            counted(source.bad_datagrams, "datagram")
        ));
    }
    if source.epochs_ns.is_empty() {
        out.push_str(&format!(
            "{name}: no epoch arrived; metadata has no counter, so whether it was lost is not known\n"
        ));
    }
    if source.uncounted > 0 {
        out.push_str(&format!("{name}: {} of further streams are not followed\n", counted(source.uncounted, "event")));
    }
}

/// `3, 7..9`, as many as fit.
fn ranges(stream: &StreamLoss) -> String {
    let shown = stream.lost_ranges.iter().take(RANGES_SHOWN).map(|&(first, count)| match count {
        1 => first.to_string(),
        _ => format!("{first}..{}", first.wrapping_add((count - 1) as u32)),
    });
    let mut out = shown.collect::<Vec<_>>().join(", ");
    let left = stream.lost_ranges.len().saturating_sub(RANGES_SHOWN);
    if left > 0 {
        out.push_str(&format!(" … and {left} more"));
    }
    out
}
