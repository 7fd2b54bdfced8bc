//! What the group's verbs share: opening a trace that has memory accesses, and where its damage is reported.

use std::path::Path;

use anytrace_core::access::DataOnly;
use anytrace_core::{AccessSink, Error, Trace, text};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::report::{Reporter, Way};
use crate::{Verdict, open, paint};

/// A trace to read, and where its damage is reported.
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

/// What reading a trace gave.
pub(super) struct AccessesRead {
    /// The format's name; "unknown" for an empty file.
    pub(super) format: &'static str,
    /// Records read.
    pub(super) records: u64,
    pub(super) verdict: Verdict,
}

impl Opened {
    /// Passes all accesses to an engine, then reports the damage.
    pub(super) fn read(self, out: &mut dyn AccessSink) -> Result<AccessesRead, Failure> {
        self.read_by(|trace, reporter| Ok(trace.accesses(out, reporter)?.records))
    }

    /// The same for an engine that has no option of its own about instruction fetches: leaves them out, with a note.
    pub(super) fn read_data(self, out: &mut dyn AccessSink) -> Result<AccessesRead, Failure> {
        let shown = text::printable(&self.name);
        self.read_by(|trace, reporter| {
            let mut data = DataOnly::new(out);
            let records = trace.accesses(&mut data, reporter)?.records;
            let fetches = data.fetches();
            if fetches > 0 {
                paint::complain("note", format!("{shown}: {fetches} instruction fetches ignored"));
            }
            Ok(records)
        })
    }

    /// `by` gives the number of records.
    pub(super) fn read_by(
        mut self,
        by: impl FnOnce(Box<dyn Trace>, &mut Reporter) -> Result<u64, Error>,
    ) -> Result<AccessesRead, Failure> {
        let records = match self.trace {
            Some(trace) => by(trace, &mut self.reporter).map_err(|error| Failure::of(&self.name, &error))?,
            None => 0,
        };
        drop(self.progress);
        self.reporter.print_rest()?;
        Ok(AccessesRead { format: self.format, records, verdict: self.reporter.verdict() })
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
    open::must_be_one_of(&name, format, options, |one| one.has_accesses())?;
    let progress = Some(Progress::watch(&input));
    let trace = open::enter(format, input, options)?;
    let reporter = reporter(Some(format));
    Ok(Opened { name, format: format.name(), trace: Some(trace), reporter, progress })
}
