//! `anytrace repair`: the valid trace that can be saved.

mod json;
mod proof;
mod text;

use anytrace_core::{Format, Input, Layer, LayerEnd, Outcome, Plan, TargetOptions};

use crate::arguments::{RepairArguments, ResultForm};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::written::Beside;
use crate::{Verdict, open, paint};
use proof::{Proof, prove};
pub(crate) use text::print_outcome;

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
    let output = Output::create_like(&options.file, &options.output.output, options.output.force)?;
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
        json::print(&name, &saved, options, &reporter)?;
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
    let beside = Beside::copy(format, (&options.file, &options.output.output), options.output.force)?;
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
                beside.commit()?;
                let total_bytes = kept_bytes.saturating_add(lost_bytes);
                return Ok(Saved { outcome, kept_bytes, total_bytes, is_written: true });
            }
            Proof::Broken(input) if pass < PASSES_MAX => {
                let mut next = Output::create_like(&options.file, &options.output.output, options.output.force)?;
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
    let title = format.title().trim_end_matches(" trace");
    Err(Failure::breach(format!("{name}: the recovered data is not a valid {title} trace; nothing was written")))
}

/// Bytes after the place at which reading the compressed data had to stop.
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
    let what = if saved.is_written { "" } else { "; nothing could be recovered; nothing was written" };
    let help = if options.allow_loss || !saved.is_written { "" } else { "; use --allow-loss to accept that" };
    paint::complain(kind, format!("{name}: kept {kept_bytes} of {total_bytes} bytes{what}{help}"));
    match (options.allow_loss, saved.is_written) {
        (true, _) => Verdict::Fine,
        (false, true) => Verdict::Breach,
        (false, false) => Verdict::NoResult,
    }
}
