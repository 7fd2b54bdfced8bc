//! What the group's verbs share: opening a trace that has memory accesses, and where its damage is told.

use std::io::Write;
use std::path::Path;

use anytrace_core::access::DataOnly;
use anytrace_core::{AccessSink, Diagnostic, Trace};
use serde_json::Value;

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{open, paint};

/// A trace to read, and where its damage is told.
pub(super) struct Opened {
    /// The format's name; "unknown" for an empty file.
    pub(super) format: &'static str,
    /// `None` for an empty file.
    pub(super) trace: Option<Box<dyn Trace>>,
    pub(super) reporter: Reporter,
    /// Drawn as long as it lives.
    pub(super) progress: Option<Progress>,
}

/// Opens a trace for one of the verbs.
pub(super) fn open(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    let reporter = |format| Reporter::new(&name, format, Way::Stderr, options.limit);
    let (format, input) = match open::open_trace_where(path, options, |format| format.has_accesses())? {
        Ok(found) => found,
        Err(damage) => return empty(reporter(None), damage),
    };
    if !format.has_accesses() {
        return Err(Failure::usage(format!("{name}: traces of {} have no memory accesses", format.title())));
    }
    let progress = Some(Progress::watch(&input));
    let trace = open::enter(format, input, options)?;
    Ok(Opened { format: format.name(), trace: Some(trace), reporter: reporter(Some(format)), progress })
}

fn empty(mut reporter: Reporter, damage: Vec<Diagnostic>) -> Result<Opened, Failure> {
    reporter.take(damage)?;
    Ok(Opened { format: "unknown", trace: None, reporter, progress: None })
}

/// Prints one object, or a list where several traces were asked for.
pub(super) fn print_json(mut objects: Vec<Value>, is_list: bool) -> Result<(), Failure> {
    let value = if is_list { Value::Array(objects) } else { objects.pop().unwrap_or(Value::Null) };
    if value.is_null() {
        return Ok(());
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, &value).map_err(std::io::Error::from)?;
    writeln!(out)?;
    out.flush()?;
    Ok(())
}

/// Tells a trace's accesses to an engine that has no option of its own about instruction fetches: without them unless they are
/// wanted. Gives the number of records.
pub(super) fn tell(
    trace: Box<dyn Trace>,
    path: &Path,
    out: &mut dyn AccessSink,
    with_fetches: bool,
    reporter: &mut Reporter,
) -> Result<u64, Failure> {
    let name = path.display().to_string();
    let failed = |error| Failure::of(&name, &error);
    if with_fetches {
        return Ok(trace.accesses(out, reporter).map_err(failed)?.records);
    }
    let mut data = DataOnly::new(out);
    let records = trace.accesses(&mut data, reporter).map_err(failed)?.records;
    let fetches = data.fetches();
    if fetches > 0 {
        let shown = anytrace_core::text::printable(&name);
        paint::complain("note", format!("{shown}: {fetches} instruction fetches are left out"));
    }
    Ok(records)
}
