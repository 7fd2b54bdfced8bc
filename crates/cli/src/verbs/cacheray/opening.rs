//! What the group's verbs share: opening a trace that has memory accesses, and where its damage is told.

use std::path::Path;

use anytrace_core::access::DataOnly;
use anytrace_core::{AccessSink, Error, Trace, text};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, paint};

/// A trace to read, and where its damage is told.
pub(super) struct Opened {
    name: String,
    /// The format's name; "unknown" for an empty file.
    pub(super) format: &'static str,
    /// `None` for an empty file.
    pub(super) trace: Option<Box<dyn Trace>>,
    pub(super) reporter: Reporter,
    /// Drawn as long as it lives.
    pub(super) progress: Option<Progress>,
}

/// What is left of a trace that was told to an engine.
pub(super) struct Told {
    /// The format's name; "unknown" for an empty file.
    pub(super) format: &'static str,
    /// Records read.
    pub(super) records: u64,
    pub(super) verdict: Verdict,
}

impl Opened {
    /// Tells all accesses to an engine, then what is damaged.
    pub(super) fn tell(self, out: &mut dyn AccessSink) -> Result<Told, Failure> {
        self.tell_by(|trace, reporter| Ok(trace.accesses(out, reporter)?.records))
    }

    /// The same for an engine that has no option of its own about instruction fetches: without them, which is said.
    pub(super) fn tell_data(self, out: &mut dyn AccessSink) -> Result<Told, Failure> {
        let shown = text::printable(&self.name);
        self.tell_by(|trace, reporter| {
            let mut data = DataOnly::new(out);
            let records = trace.accesses(&mut data, reporter)?.records;
            let fetches = data.fetches();
            if fetches > 0 {
                paint::complain("note", format!("{shown}: {fetches} instruction fetches are left out"));
            }
            Ok(records)
        })
    }

    /// `by` gives the number of records.
    fn tell_by(
        mut self,
        by: impl FnOnce(Box<dyn Trace>, &mut Reporter) -> Result<u64, Error>,
    ) -> Result<Told, Failure> {
        let records = match self.trace {
            Some(trace) => by(trace, &mut self.reporter).map_err(|error| Failure::of(&self.name, &error))?,
            None => 0,
        };
        drop(self.progress);
        self.reporter.print_rest()?;
        Ok(Told { format: self.format, records, verdict: self.reporter.verdict() })
    }
}

/// Opens a trace for one of the verbs.
pub(super) fn open(path: &Path, options: &InputArguments) -> Result<Opened, Failure> {
    let name = path.display().to_string();
    let reporter = |format| Reporter::new(&name, format, Way::Stderr, options.limit);
    let (format, input) = match open::open_trace_where(path, options, |format| format.has_accesses())? {
        Ok(found) => found,
        Err(damage) => {
            let mut reporter = reporter(None);
            reporter.take(damage)?;
            return Ok(Opened { name, format: "unknown", trace: None, reporter, progress: None });
        }
    };
    if !format.has_accesses() {
        return Err(Failure::usage(format!("{name}: traces of {} have no memory accesses", format.title())));
    }
    let progress = Some(Progress::watch(&input));
    let trace = open::enter(format, input, options)?;
    let reporter = reporter(Some(format));
    Ok(Opened { name, format: format.name(), trace: Some(trace), reporter, progress })
}
