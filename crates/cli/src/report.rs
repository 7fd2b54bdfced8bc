//! Takes diagnostics: counts all of them, prints or keeps as many as the limit allows.

use std::collections::BTreeSet;
use std::io::Write;

use anytrace_core::{Diagnostic, Error, Format, Severity, Sink, Target, text};
use anytrace_export::{FileReport, Findings, json};

use crate::failure::Failure;
use crate::results::print_line;
use crate::{Verdict, ledger, paint, terminal};

/// Where diagnostics go as they are found.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Way {
    /// Printed to standard output: `check` as text.
    Stdout,
    /// Printed to standard error: verbs whose output is something else.
    Stderr,
    /// Printed to standard output as lines of JSON: `check --follow`.
    Lines,
    /// Kept for a report.
    Keep,
}

/// The sink of every verb.
pub(crate) struct Reporter {
    file: String,
    noun: &'static str,
    way: Way,
    findings: Findings,
}

impl Reporter {
    /// A reporter for one file; `limit` 0 is none.
    pub(crate) fn new(file: &str, format: Option<&'static dyn Format>, way: Way, limit: u64) -> Self {
        Self { file: file.to_owned(), noun: format.map_or("record", Format::noun), way, findings: Findings::new(limit) }
    }

    /// Takes the damage of an input that gave no bytes.
    pub(crate) fn take(&mut self, damage: Vec<Diagnostic>) -> Result<(), Failure> {
        let file = self.file.clone();
        damage.into_iter().try_for_each(|one| self.report(one)).map_err(|error| Failure::of(&file, &error))
    }

    /// Exact number of diagnostics of a severity.
    pub(crate) fn count(&self, severity: Severity) -> u64 {
        self.findings.of(severity)
    }

    /// Bytes that were skipped.
    pub(crate) fn skipped_bytes(&self) -> u64 {
        self.findings.skipped_bytes()
    }

    /// At how many places records were lost.
    pub(crate) fn lost(&self) -> u64 {
        self.findings.lost()
    }

    /// True when the input is damaged and nothing came of it, not even a header: an empty output is none.
    pub(crate) fn nothing_could_be_read(&self, output: &dyn Target) -> bool {
        self.count(Severity::Error) > 0 && output.position() == 0
    }

    /// Breach when any error was reported.
    pub(crate) fn verdict(&self) -> Verdict {
        if self.count(Severity::Error) > 0 { Verdict::Breach } else { Verdict::Fine }
    }

    /// Codes of all diagnostics so far.
    pub(crate) fn codes(&self) -> BTreeSet<&'static str> {
        self.findings.counts().keys().copied().collect()
    }

    /// The diagnostics kept.
    pub(crate) fn kept(&self) -> &[Diagnostic] {
        self.findings.kept()
    }

    /// Says how many more there were of what was not shown; nothing when all were.
    pub(crate) fn print_rest(&self) -> std::io::Result<()> {
        let not_shown = self.findings.not_shown();
        if not_shown == 0 {
            return Ok(());
        }
        let mut text = format!("{}: {not_shown} more not shown (--limit); in total:\n", self.file);
        for (code, count) in self.findings.counts() {
            text.push_str(&format!("  {count:>10}  {code}\n"));
        }
        self.put(&text)
    }

    /// The report for `anytrace_export`.
    pub(crate) fn into_report(self, format: Option<&'static dyn Format>, records: u64) -> FileReport {
        self.findings.into_report(&self.file, format.map(|format| format as &dyn Format), records)
    }

    fn put(&self, line: &str) -> std::io::Result<()> {
        match self.way {
            Way::Stdout => terminal::stdout().write_all(line.as_bytes()),
            Way::Stderr => {
                // Complaints that nobody can read do not stop the work.
                let _ = terminal::stderr().write_all(line.as_bytes());
                Ok(())
            }
            Way::Keep | Way::Lines => Ok(()),
        }
    }
}

impl Sink for Reporter {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if diagnostic.is_loss() {
            ledger::lose(&self.file);
        }
        if !self.findings.count(&diagnostic) {
            return Ok(());
        }
        if matches!(self.way, Way::Keep) {
            self.findings.keep(diagnostic);
            return Ok(());
        }
        if matches!(self.way, Way::Lines) {
            let printed = print_line("diagnostic", &self.file, json::diagnostic(&diagnostic));
            return printed.map_err(|error| Error::io("cannot write", error));
        }
        let line = rendered(&self.file, self.noun, &diagnostic);
        self.put(&line).map_err(|error| Error::io("cannot write", error))
    }
}

/// The text form with file name and color.
pub(crate) fn rendered(file: &str, noun: &str, diagnostic: &Diagnostic) -> String {
    let mut body = String::new();
    // Writing to a String cannot fail.
    let _ = diagnostic.render(noun, &mut body);
    let style = paint::severity(diagnostic.severity);
    let file = text::printable(file);
    let (bold, code) = (paint::BOLD, diagnostic.code());
    let body = body.replacen(&format!("[{code}]"), &format!("[{style}{code}{style:#}]"), 1);
    format!("{bold}{file}{bold:#}: {body}\n")
}
