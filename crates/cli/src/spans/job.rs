//! Spans of a trace, or of several, written for other programs' timelines.

use std::path::Path;

use anytrace_analysis::select::{Lengths, Selected};
use anytrace_core::SpanSink;
use anytrace_export::limits::{self, Measured};
use anytrace_export::timeline::{Outlet, Timeline, TimelineOutput};

use crate::arguments::TimelineOutputArguments;
use crate::failure::Failure;
use crate::output::{LateSpool, Output, Packed};
use crate::paint;

/// Why spans are read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reading {
    /// Only their lengths count; what is wrong is reported the other time.
    Lengths,
    /// To write them.
    Spans,
}

/// Emits the spans of a trace, or of several; returns the number of records.
pub(crate) type Emit<'a> = dyn FnMut(&mut (dyn SpanSink + Send), Reading) -> Result<u64, Failure> + 'a;

/// A timeline to write.
pub(crate) struct Job<'a> {
    pub(crate) output: &'static TimelineOutput,
    pub(crate) path: &'a Path,
    /// Of what is read, for complaints.
    pub(crate) name: &'a str,
    pub(crate) title: &'a str,
    pub(crate) given: &'a TimelineOutputArguments,
    /// Threads that may format text.
    pub(crate) threads: usize,
}

/// What was written.
pub(crate) struct Written {
    pub(crate) records: u64,
    notes: Vec<String>,
}

impl Written {
    /// Says what the reader of the output should know.
    pub(crate) fn complain(&self, name: &str) {
        let shown = anytrace_core::text::printable(name);
        self.notes.iter().for_each(|note| paint::complain("note", format!("{shown}: {note}")));
    }
}

impl Job<'_> {
    /// Writes the spans that are asked for.
    pub(crate) fn write(&self, output: &mut Output, emit: &mut Emit<'_>) -> Result<Written, Failure> {
        let (mut spool, cells) = (LateSpool::default(), self.given.csv.cells());
        let mut packed = Packed::new(output, self.path, self.output.extension);
        let outlet = Outlet { out: &mut packed, spool: &mut spool, title: self.title, cells, threads: self.threads };
        let mut timeline = Measured::new((self.output.open)(outlet), self.output.limits);
        let (records, left_out) = self.chosen(&mut timeline, emit)?;
        timeline.finish().map_err(|error| Failure::of(self.name, &error))?;
        let (found, beside) = (timeline.found(), timeline.beside());
        drop(timeline);
        let mut notes = limits::notes(self.output.limits, &found, packed.finish()?);
        output.put_beside(beside);
        if left_out > 0 {
            let conditions = self.given.conditions().join(", ");
            notes.insert(0, format!("{left_out} spans outside {conditions} were left out"));
        }
        Ok(Written { records, notes })
    }

    /// Emits the spans that are asked for; returns the number of records read, and how many spans were left out.
    fn chosen(&self, timeline: &mut Measured<'_>, emit: &mut Emit<'_>) -> Result<(u64, u64), Failure> {
        let given = self.given;
        if given.conditions().is_empty() {
            return Ok((emit(timeline, Reading::Spans)?, 0));
        }
        let filter = || given.spans.filter(given.duration);
        let mut lengths = given.duration.map(|_| Lengths::new(timeline, filter()));
        if let Some(lengths) = &mut lengths {
            emit(lengths, Reading::Lengths)?;
        }
        let mut selected = Selected::new(timeline, filter(), lengths);
        let records = emit(&mut selected, Reading::Spans)?;
        Ok((records, selected.left_out()))
    }
}
