//! `anytrace repair`: the valid trace that can be saved.

use std::io::Write;

use anytrace_core::{Outcome, Plan, TargetOptions};
use anytrace_export::json;
use serde_json::json;

use crate::arguments::{RepairArguments, ResultForm};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, terminal};

/// Exit 0 when the file was written, whatever was lost: making a valid file of a damaged one is the job. Exit 1, and no
/// file, when there was nothing to save.
pub(crate) fn run(options: &RepairArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let mut output = Output::create(&options.output.output, options.output.force)?;
    let is_text = options.format == ResultForm::Text;
    let way = if is_text { Way::Stderr } else { Way::Keep };
    let opened = open::open_trace(&options.file, &options.input)?;
    let format = opened.as_ref().ok().map(|(format, _)| *format);
    let mut reporter = Reporter::new(&name, format, way, options.input.limit);
    let outcome = match opened {
        Err(damage) => {
            reporter.take(damage)?;
            Outcome::default()
        }
        Ok((format, input)) => {
            let _progress = Progress::watch(&input);
            let trace = open::enter(format, input, &options.input)?;
            let plan = Plan::Repair(TargetOptions::default());
            trace.rewrite(&plan, &mut output, &mut reporter).map_err(|error| Failure::of(&name, &error))?
        }
    };
    reporter.print_rest()?;
    if reporter.nothing_could_be_read(&output) {
        return Err(Failure::breach(format!("{name}: nothing could be saved; nothing was written")));
    }
    output.commit()?;
    let to_stdout = options.output.output.as_os_str() == "-";
    if is_text {
        print_outcome(&name, &outcome);
    } else {
        let value = json!({
            "version": json::VERSION,
            "file": name,
            "output": options.output.output.display().to_string(),
            "records_read": outcome.records_read,
            "records_written": outcome.records_written,
            "bytes_lost": outcome.bytes_lost,
            "notes": outcome.notes,
            "diagnostics": reporter.kept().iter().map(json::diagnostic).collect::<Vec<_>>(),
        });
        let text = format!("{value:#}\n");
        // The trace itself has standard output when it was asked for there.
        if to_stdout {
            terminal::stderr().json(true).write_all(text.as_bytes())?;
        } else {
            terminal::stdout().json(true).write_all(text.as_bytes())?;
        }
    }
    Ok(Verdict::Fine)
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
