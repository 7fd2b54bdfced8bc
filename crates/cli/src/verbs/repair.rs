//! `anytrace repair`: the valid trace that can be saved.

mod proof;

use std::io::Write;

use anytrace_core::{Format, Input, Layer, LayerEnd, Outcome, Plan, TargetOptions};
use anytrace_export::json;
use serde_json::json;

use crate::arguments::{RepairArguments, ResultForm};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, paint, terminal};
use proof::{Proof, prove};

/// Repairs of what a repair wrote, before it is given up: mending one thing may bring another to light.
const PASSES_MAX: u32 = 4;

/// What was saved, and out of how much.
struct Saved {
    outcome: Outcome,
    kept_bytes: u64,
    total_bytes: u64,
    is_written: bool,
}

/// Exit 0 when most was saved: making a valid file of a damaged one is the job. Exit 1 when less than half of the bytes
/// was, or no record, in which case there is no file; `--allow-loss` is content with either.
pub(crate) fn run(options: &RepairArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let output = Output::create(&options.output.output, options.output.force)?;
    let is_text = options.format == ResultForm::Text;
    let way = if is_text { Way::Stderr } else { Way::Keep };
    let opened = open::open_trace(&options.file, &options.input)?;
    let format = opened.as_ref().ok().map(|(format, _)| *format);
    let mut reporter = Reporter::new(&name, format, way, options.input.limit);
    let saved = match opened {
        Err(damage) => {
            reporter.take(damage)?;
            Saved { outcome: Outcome::default(), kept_bytes: 0, total_bytes: size(options), is_written: false }
        }
        Ok((format, input)) => mend(format, input, options, output, &mut reporter)?,
    };
    reporter.print_rest()?;
    if is_text {
        print_outcome(&name, &saved.outcome);
    } else {
        print_object(&name, &saved, options, &reporter)?;
    }
    Ok(judge(&name, &saved, options))
}

/// Bytes of the file, where it has a length.
fn size(options: &RepairArguments) -> u64 {
    std::fs::metadata(&options.file).map_or(0, |meta| meta.len())
}

/// Writes what can be saved, and puts it in place once it is proven to be a valid trace of the same format.
fn mend(
    format: &'static dyn Format,
    input: Input,
    options: &RepairArguments,
    mut output: Output,
    reporter: &mut Reporter,
) -> Result<Saved, Failure> {
    let name = options.file.display().to_string();
    let (file_bytes, layers) = (input.file_bytes(), input.layers().to_vec());
    let mut outcome = {
        let _progress = Progress::watch(&input);
        let trace = open::enter(format, input, &options.input)?;
        let plan = Plan::Repair(TargetOptions::default());
        trace.rewrite(&plan, &mut output, reporter).map_err(|error| Failure::of(&name, &error))?
    };
    let mut lost_bytes = outcome.bytes_lost.max(reporter.skipped_bytes()).saturating_add(unread(file_bytes, &layers));
    for pass in 0.. {
        if outcome.records_written == 0 {
            let total_bytes = lost_bytes.max(size(options));
            return Ok(Saved { outcome, kept_bytes: 0, total_bytes, is_written: false });
        }
        match prove(&mut output, format, options)? {
            Proof::Valid(kept_bytes) => {
                output.commit(Verdict::Fine)?;
                let total_bytes = kept_bytes.saturating_add(lost_bytes);
                return Ok(Saved { outcome, kept_bytes, total_bytes, is_written: true });
            }
            Proof::Broken(input) if pass < PASSES_MAX => {
                let mut next = Output::create(&options.output.output, options.output.force)?;
                let again = proof::repair_again(format, input, options, &mut next)?;
                lost_bytes = lost_bytes.saturating_add(again.bytes_lost);
                outcome.bytes_lost = outcome.bytes_lost.saturating_add(again.bytes_lost);
                outcome.records_written = again.records_written;
                outcome.notes.extend(again.notes);
                output = next;
            }
            Proof::Broken(_) | Proof::Other => break,
        }
    }
    let title = format.title();
    Err(Failure::breach(format!(
        "{name}: what could be saved is no trace that can be recognised as {title} and passes its check; nothing was written"
    )))
}

/// Bytes behind the place at which compressed data could not be read on.
fn unread(file_bytes: Option<u64>, layers: &[Layer]) -> u64 {
    match layers.first() {
        Some(layer) if matches!(layer.end(), LayerEnd::Truncated | LayerEnd::Corrupt(_)) => {
            file_bytes.unwrap_or_default().saturating_sub(layer.compressed_bytes())
        }
        _ => 0,
    }
}

fn judge(name: &str, saved: &Saved, options: &RepairArguments) -> Verdict {
    let name = anytrace_core::text::printable(name);
    let Saved { kept_bytes, total_bytes, .. } = *saved;
    let is_enough = saved.is_written && kept_bytes >= total_bytes.saturating_sub(kept_bytes);
    if is_enough {
        return Verdict::Fine;
    }
    let kind = if options.allow_loss { "note" } else { "error" };
    let what = if saved.is_written { "" } else { "; nothing could be saved; nothing was written" };
    let help = if options.allow_loss || !saved.is_written { "" } else { "; --allow-loss accepts that" };
    paint::complain(kind, format!("{name}: kept {kept_bytes} of {total_bytes} bytes{what}{help}"));
    match (options.allow_loss, saved.is_written) {
        (true, _) => Verdict::Fine,
        (false, true) => Verdict::Breach,
        (false, false) => Verdict::NoResult,
    }
}

fn print_object(name: &str, saved: &Saved, options: &RepairArguments, reporter: &Reporter) -> Result<(), Failure> {
    let outcome = &saved.outcome;
    let value = json!({
        "version": json::VERSION,
        "file": name,
        "output": options.output.output.display().to_string(),
        "written": saved.is_written,
        "records_read": outcome.records_read,
        "records_written": outcome.records_written,
        "bytes_kept": saved.kept_bytes,
        "bytes_total": saved.total_bytes,
        "bytes_lost": outcome.bytes_lost,
        "lost": reporter.lost(),
        "notes": outcome.notes,
        "diagnostics": reporter.kept().iter().map(json::diagnostic).collect::<Vec<_>>(),
    });
    // The trace itself has standard output when it was asked for there.
    if options.output.output.as_os_str() == "-" {
        terminal::stderr().json(true).write_all(format!("{value:#}\n").as_bytes())?;
        return Ok(());
    }
    crate::results::print_json(vec![value], false)
}

/// What was written and what was lost, to standard error.
pub(crate) fn print_outcome(name: &str, outcome: &Outcome) {
    let mut err = terminal::stderr();
    let name = anytrace_core::text::printable(name);
    // Complaints that nobody can read do not stop the work.
    let _ = writeln!(
        err,
        "{name}: {} of {} records written, {} bytes lost",
        outcome.records_written, outcome.records_read, outcome.bytes_lost
    );
    for note in &outcome.notes {
        let _ = writeln!(err, "  {}", anytrace_core::text::printable(note));
    }
}
