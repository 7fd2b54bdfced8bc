//! `apitrace replay -o`: what was measured, as a timeline for other programs.

use std::cmp::Reverse;
use std::path::Path;

use anytrace_core::{Target, text};
use anytrace_export::limits::{self, LimitCounts, Measured};
use anytrace_export::timeline::{OUTPUTS, Outlet, TimelineOutput, by_name};

use anytrace_heph::tools::written::SpanWriter;

use crate::failure::Failure;
use crate::output::{LateSpool, Output};
use crate::{Verdict, paint};

/// What was measured as a Heph trace, which all verbs of this program read.
static HEPH: TimelineOutput = TimelineOutput {
    name: "heph",
    extension: "heph",
    help: "a Heph trace, for `stats`, `flame`, `view` and all other verbs",
    limits: &[],
    folder: None,
    is_parallel: false,
    open: |outlet| Box::new(SpanWriter::new(outlet.out)),
};

/// A timeline that was asked for.
pub(super) struct TimelineFile {
    form: &'static TimelineOutput,
    title: String,
    out: Output,
}

impl TimelineFile {
    /// Begins it; the form is that of the name.
    pub(super) fn create(path: &Path, trace: &Path, force: bool) -> Result<Self, Failure> {
        let title = trace.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Self { form: form(path)?, title, out: Output::create(path, force)? })
    }

    /// What writes it.
    pub(super) fn open<'t>(&'t mut self, spool: &'t mut LateSpool) -> Measured<'t> {
        let cells = anytrace_export::cells::Cells::default();
        let outlet = Outlet { out: &mut self.out, spool, title: &self.title, cells, threads: 1 };
        Measured::new((self.form.open)(outlet), self.form.limits)
    }

    /// Puts it in place. `found`: what was written, which may be more than some programs read.
    pub(super) fn commit(self, found: LimitCounts, verdict: Verdict) -> Result<(), Failure> {
        for note in limits::notes(self.form.limits, &found, self.out.position()) {
            paint::complain("note", format!("{}: {note}", text::printable(&self.title)));
        }
        self.out.commit(verdict)?;
        Ok(())
    }
}

/// The form that a name asks for; that of Chrome where it asks for none.
fn form(path: &Path) -> Result<&'static TimelineOutput, Failure> {
    let files = OUTPUTS.iter().filter(|output| output.folder.is_none());
    let mut forms: Vec<_> = files.chain([&HEPH]).map(|output| (output.extension, output)).collect();
    // The longest says most: `x.speedscope.json` is more than JSON. Of equals the first.
    forms.sort_by_key(|(extension, _)| Reverse(extension.len()));
    let form = crate::extension::form_of(path, &forms, "")?;
    form.or_else(|| by_name("chrome")).ok_or_else(|| Failure::usage("no timelines are known"))
}
