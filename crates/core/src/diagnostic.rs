//! Diagnostics: what is wrong, where, in which field, what was expected and what was found.

use std::borrow::Cow;
use std::fmt;

/// How bad a [`Diagnostic`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Readable, but against the document.
    Warning,
    /// Data is lost or a rule is broken.
    Error,
}

impl Severity {
    /// `note`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// One rule of a format: the stable code of a diagnostic and what it means.
///
/// Each format lists its rules in a table; SARIF output and the book are generated from it.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// Kebab-case, format first: `format/string-overrun`. Never changes once published.
    pub code: &'static str,
    /// The usual severity; a diagnostic may be milder where a format's page says so.
    pub severity: Severity,
    /// One line, third person, no full stop: "a string is longer than its packet".
    pub summary: &'static str,
    /// What an error of this rule means for the reader of the trace.
    pub effect: Effect,
}

/// What an error means for the reader of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Records, or parts of them, could not be read.
    Loss,
    /// Everything could be read; the trace is not as it should be.
    Breach,
    /// Everything could be read and is as it should be; the traced program did something it must not do.
    Program,
}

impl Rule {
    /// A rule whose violation is an error: something is lost.
    pub const fn error(code: &'static str, summary: &'static str) -> Self {
        Self { code, severity: Severity::Error, summary, effect: Effect::Loss }
    }

    /// A rule whose violation is an error although everything can be read.
    pub const fn breach(code: &'static str, summary: &'static str) -> Self {
        Self { code, severity: Severity::Error, summary, effect: Effect::Breach }
    }

    /// A rule that traced programs must obey.
    pub const fn program(code: &'static str, summary: &'static str) -> Self {
        Self { code, severity: Severity::Error, summary, effect: Effect::Program }
    }

    /// A rule whose violation is a warning.
    pub const fn warning(code: &'static str, summary: &'static str) -> Self {
        Self { code, severity: Severity::Warning, summary, effect: Effect::Breach }
    }

    /// A fact worth knowing.
    pub const fn note(code: &'static str, summary: &'static str) -> Self {
        Self { code, severity: Severity::Note, summary, effect: Effect::Breach }
    }

    /// Starts a diagnostic for a violation of this rule at a byte offset.
    #[cold]
    pub fn at(&'static self, offset: u64) -> Diagnostic {
        Diagnostic {
            rule: self,
            severity: self.severity,
            offset,
            within: None,
            line: None,
            record: None,
            field: None,
            expected: None,
            found: None,
            help: None,
            skipped_bytes: 0,
            resumed_at: None,
        }
    }
}

/// One problem in a trace.
///
/// Text form:
///
/// ```text
/// app.trace: byte 0x1f40, event 212: description length: expected at most 31 (packet end), found 4096
///   [format/string-overrun] skipped 64 bytes, resumed at event 213
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// The rule that is broken; its code is the diagnostic's code.
    pub rule: &'static Rule,
    /// Severity here.
    pub severity: Severity,
    /// Byte offset, in the file or, where [`Self::within`] is set, in that stream.
    pub offset: u64,
    /// The stream [`Self::offset`] counts in when it is not the file: "decompressed stream", "file channel0_1" of a folder.
    pub within: Option<Cow<'static, str>>,
    /// Line and column, both from 1, for text formats.
    pub line: Option<(u64, u64)>,
    /// Record number, from 0, where there is one.
    pub record: Option<u64>,
    /// The field that is wrong.
    pub field: Option<Cow<'static, str>>,
    /// What the format requires there.
    pub expected: Option<Cow<'static, str>>,
    /// What the trace contains there.
    pub found: Option<Cow<'static, str>>,
    /// What the user can do, or why it matters.
    pub help: Option<Cow<'static, str>>,
    /// How many bytes the reader skipped because of it.
    pub skipped_bytes: u64,
    /// The number of the record at which reading resumed.
    pub resumed_at: Option<u64>,
}

impl Diagnostic {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        self.rule.code
    }

    /// True when records, or parts of them, are lost.
    pub fn is_loss(&self) -> bool {
        self.severity == Severity::Error && self.rule.effect == Effect::Loss
    }

    /// Sets the record number.
    pub fn record(mut self, record: u64) -> Self {
        self.record = Some(record);
        self
    }

    /// Sets the field.
    pub fn field(mut self, field: impl Into<Cow<'static, str>>) -> Self {
        self.field = Some(field.into());
        self
    }

    /// Sets what was expected.
    pub fn expected(mut self, expected: impl Into<Cow<'static, str>>) -> Self {
        self.expected = Some(expected.into());
        self
    }

    /// Sets what was found.
    pub fn found(mut self, found: impl Into<Cow<'static, str>>) -> Self {
        self.found = Some(found.into());
        self
    }

    /// Sets the hint.
    pub fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets line and column, both from 1.
    pub fn line(mut self, line: u64, column: u64) -> Self {
        self.line = Some((line, column));
        self
    }

    /// Sets how much was skipped.
    pub fn skipped(mut self, bytes: u64) -> Self {
        self.skipped_bytes = bytes;
        self
    }

    /// Sets the number of the record at which reading resumed.
    pub fn resumed(mut self, record: u64) -> Self {
        self.resumed_at = Some(record);
        self
    }

    /// Sets the stream that the offset counts in.
    pub fn within(mut self, stream: impl Into<Cow<'static, str>>) -> Self {
        self.within = Some(stream.into());
        self
    }

    /// Changes the severity.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Writes the two-line text form without the file name. `noun` is the format's word for a record.
    pub fn render(&self, noun: &str, out: &mut impl fmt::Write) -> fmt::Result {
        write!(out, "byte {:#x}", self.offset)?;
        if let Some(stream) = &self.within {
            write!(out, " of the {stream}")?;
        }
        if let Some((line, column)) = self.line {
            write!(out, ", line {line}:{column}")?;
        }
        if let Some(record) = self.record {
            write!(out, ", {noun} {record}")?;
        }
        match &self.field {
            Some(field) => write!(out, ": {field}")?,
            None => write!(out, ": {}", self.rule.summary)?,
        }
        match (&self.expected, &self.found) {
            (Some(expected), Some(found)) => write!(out, ": expected {expected}, found {found}")?,
            (Some(expected), None) => write!(out, ": expected {expected}")?,
            (None, Some(found)) => write!(out, ": {found}")?,
            (None, None) => {}
        }
        write!(out, "\n  [{}] {}", self.rule.code, self.severity.name())?;
        if self.field.is_some() {
            write!(out, ": {}", self.rule.summary)?;
        }
        if self.skipped_bytes > 0 {
            write!(out, "; skipped {} bytes", self.skipped_bytes)?;
        }
        if let Some(record) = self.resumed_at {
            write!(out, "; resumed at {noun} {record}")?;
        }
        if let Some(help) = &self.help {
            write!(out, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.render("record", f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PAST: Rule = Rule::error("format/string-overrun", "a string is longer than its packet");

    #[test]
    fn the_text_form_names_place_field_expected_and_found() {
        let mut text = String::new();
        PAST.at(0x1f40)
            .record(212)
            .field("description length")
            .expected("at most 31 (packet end)")
            .found("4096")
            .skipped(64)
            .resumed(213)
            .render("event", &mut text)
            .unwrap();
        assert_eq!(
            text,
            "byte 0x1f40, event 212: description length: expected at most 31 (packet end), found 4096\n  \
             [format/string-overrun] error: a string is longer than its packet; skipped 64 bytes; resumed at event 213"
        );
    }
}
