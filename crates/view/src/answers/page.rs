//! What the pages besides the timeline are made with: a file, its trace opened anew, and its diagnostics.

use anytrace_core::{Diagnostic, Error, Format, Sink, Trace};
use serde_json::{Value, json};

use super::Work;
use crate::axis::Axis;
use crate::view::File;

/// Diagnostics that are listed.
const FINDINGS_MAX: usize = 1000;

/// A line of prose.
pub(super) fn text(text: &str) -> Value {
    json!({"kind": "text", "text": text})
}

/// A trace and its format.
pub(super) type Opened = (&'static dyn Format, Box<dyn Trace>);

/// A page of one file.
pub(super) struct Page<'a> {
    pub(super) work: &'a Work<'a>,
    pub(super) file: &'a File,
    pub(super) axis: Axis,
}

impl Page<'_> {
    pub(super) fn open(&self) -> Result<Option<Opened>, Error> {
        let Some((format, input)) = crate::reading::open(&self.file.current())? else { return Ok(None) };
        Ok(Some((format, format.open(input, &self.file.source.open)?)))
    }

    pub(super) fn findings(&self) -> Findings<'_> {
        Findings { work: self.work, first: Vec::new(), count: 0 }
    }

    /// Where a record is on an axis of records.
    pub(super) fn link(&self, record: u64) -> Value {
        let (start, end) = (self.axis.place(record), self.axis.place(record.saturating_add(1)));
        json!({"start": start, "end": end, "track": Value::Null})
    }
}

/// The first diagnostics, and how many there are.
pub(super) struct Findings<'a> {
    work: &'a Work<'a>,
    pub(super) first: Vec<Diagnostic>,
    pub(super) count: u64,
}

impl Sink for Findings<'_> {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.work.check().map_err(|problem| Error::usage(problem.text))?;
        self.count += 1;
        if self.first.len() < FINDINGS_MAX {
            self.first.push(diagnostic);
        }
        Ok(())
    }
}
