//! Another form of a trace: `convert`.

use std::path::PathBuf;

use anytrace_core::table::Scan;
use anytrace_core::{Error, Format, Plan, Severity, Target, TargetOptions, Trace, tables};
use anytrace_export::cells::Cells;
use anytrace_export::limits::{self, Measured};
use anytrace_export::timeline::Outlet;
use anytrace_export::{accesses, forms, tables as table_outputs, timeline};
use anytrace_formats::{Recognized, recognize};
use pyo3::prelude::*;

use crate::failure::{Damage, Failure};
use crate::opening::Opening;
use crate::output::{LateSpool, Output};
use crate::work::{Stop, StoppableFindings};

/// Diagnostics kept.
const KEPT_MAX: u64 = 100;

/// What is written where.
#[derive(FromPyObject)]
pub(crate) struct Request {
    #[pyo3(item)]
    out: PathBuf,
    #[pyo3(item)]
    to: Option<String>,
    #[pyo3(item)]
    table: Option<String>,
    #[pyo3(item)]
    force: bool,
}

/// A conversion in progress.
struct Conversion<'a> {
    opening: &'a Opening,
    format: &'static dyn Format,
    trace: Box<dyn Trace>,
    sink: &'a mut StoppableFindings,
    out: &'a mut Output,
}

/// What came of it.
#[derive(Default)]
struct Written {
    /// Records read, or written to a trace.
    records: u64,
    /// What the form has no room for.
    notes: Vec<String>,
    /// True for a trace of the same format.
    is_trace: bool,
}

/// Writes a trace in another form; returns notes, and the damage on the way.
pub(crate) fn convert(opening: &Opening, stop: &Stop, request: &Request) -> Result<(Vec<String>, Damage), Failure> {
    let mut out = Output::create(&request.out, request.force, stop)?;
    let mut sink = StoppableFindings::new(KEPT_MAX, stop);
    let trace = opening.trace(0, &mut sink).map_err(|error| opening.failed(error))?;
    let (Some(format), Some(trace)) = (opening.format, trace) else {
        return Err(Failure::usage(format!("{}: no bytes; nothing was written", opening.name)));
    };
    let to = match &request.to {
        Some(to) => Some(to.clone()),
        None => forms::of_name(format, &request.out).map_err(Failure::Bare)?,
    };
    let conversion = Conversion { opening, format, trace, sink: &mut sink, out: &mut out };
    let written = opening.checked(conversion.write(to.as_deref(), request.table.as_deref()))?;
    let is_nothing = sink.findings.of(Severity::Error) > 0 && (written.records == 0 || out.position() == 0);
    if is_nothing {
        return Err(Failure::usage(format!("{}: nothing could be read; nothing was written", opening.name)));
    }
    if written.is_trace {
        must_open(&mut out, format, opening)?;
    }
    out.commit()?;
    Ok((written.notes, Damage::of(&sink.findings, opening.noun())))
}

/// Refuses a trace that nothing would open again.
fn must_open(out: &mut Output, format: &dyn Format, opening: &Opening) -> Result<(), Failure> {
    let is_known = |head: &anytrace_core::Head<'_>| match recognize(head) {
        Recognized::Empty => true,
        Recognized::Trace(found) => found.name() == format.name(),
        _ => false,
    };
    if out.looks_like(is_known).map_err(|error| opening.failed(error))? {
        return Ok(());
    }
    let (name, title) = (&opening.name, format.title().trim_end_matches(" trace"));
    Err(Failure::usage(format!("{name}: the result would not be recognized as a {title} trace; nothing was written")))
}

impl Conversion<'_> {
    fn write(self, to: Option<&str>, table: Option<&str>) -> Result<Written, Error> {
        let Some(name) = to.filter(|to| !forms::is_own(self.format, to)) else {
            refuse_table(table)?;
            return self.rewrite(to);
        };
        let format = self.format;
        if let Some(output) = table_outputs::by_name(name).filter(|_| !tables::all(format).is_empty()) {
            return self.table(output, table);
        }
        refuse_table(table)?;
        if let Some(output) = timeline::by_name(name).filter(|_| format.has_spans()) {
            return self.timeline(output);
        }
        if let Some(output) = accesses::by_name(name).filter(|_| format.has_accesses()) {
            return self.accesses(output);
        }
        let (of, known) = (format.name(), forms::names(format).join(", "));
        Err(Error::usage(format!("{of} traces cannot be written as {name}; to= accepts {known}")))
    }

    fn rewrite(self, to: Option<&str>) -> Result<Written, Error> {
        let target = TargetOptions { to: to.map(str::to_owned), ..TargetOptions::default() };
        let outcome = self.trace.rewrite(&Plan::Convert(target), self.out, self.sink)?;
        let is_trace = to != Some("jsonl");
        // An empty trace may be right; where nothing could be read, nothing is in the output.
        Ok(Written { records: u64::MAX, notes: outcome.notes.iter().map(ToString::to_string).collect(), is_trace })
    }

    fn table(self, output: &table_outputs::TableOutput, table: Option<&str>) -> Result<Written, Error> {
        let tables = tables::all(self.format);
        let names = || tables.iter().map(|table| table.name).collect::<Vec<_>>().join(", ");
        let name = table.ok_or_else(|| {
            Error::usage(format!("a file of {} has one table: choose with table=, one of {}", output.name, names()))
        })?;
        let table = tables.iter().find(|one| one.name == name);
        let table = table.ok_or_else(|| Error::usage(format!("no table {name}; there are {}", names())))?;
        let mut writer = (output.open)(self.out, table)?;
        let options = self.opening.span_options();
        let scan = Scan::default();
        let summary = tables::read(self.format, self.trace, name, &scan, &options, &mut *writer, self.sink)?;
        writer.finish()?;
        Ok(Written { records: summary.records, ..Written::default() })
    }

    fn timeline(self, output: &timeline::TimelineOutput) -> Result<Written, Error> {
        if output.folder.is_some() {
            let text = format!("{0} is a folder, not a file: use the command, anytrace convert --to {0}", output.name);
            return Err(Error::usage(text));
        }
        let mut spool = LateSpool::default();
        let path = self.opening.path();
        let title = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let threads = crate::opening::workers(0);
        let outlet = Outlet { out: &mut *self.out, spool: &mut spool, title: &title, cells: Cells::default(), threads };
        let mut measured = Measured::new((output.open)(outlet), output.limits);
        let summary = self.trace.spans(&self.opening.span_options(), &mut measured, self.sink)?;
        timeline::Timeline::finish(&mut measured)?;
        let found = measured.found();
        drop(measured);
        let notes = limits::notes(output.limits, &found, self.out.position());
        Ok(Written { records: summary.records, notes, is_trace: false })
    }

    fn accesses(self, output: &accesses::AccessOutput) -> Result<Written, Error> {
        let mut writer = (output.open)(self.out);
        let summary = self.trace.accesses(&mut *writer, self.sink)?;
        let notes = writer.finish()?;
        Ok(Written { records: summary.records, notes, is_trace: false })
    }
}

fn refuse_table(table: Option<&str>) -> Result<(), Error> {
    table.map_or(Ok(()), |_| Err(Error::usage("table= applies only to tables: to=\"arrow\", \"parquet\"")))
}
