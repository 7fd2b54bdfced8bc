//! Why something could not be done, as `anytrace.Error`.

use anytrace_core::{Diagnostic, Error, Kind};
use anytrace_export::{Findings, json};
use pyo3::prelude::*;

/// A failure that becomes a Python exception when it reaches Python.
pub(crate) enum Failure {
    /// About a file.
    Of(String, Error),
    /// About no file, or one that the error names itself.
    Bare(Error),
    /// Python's own: an interrupt, a warning that is an error.
    Python(PyErr),
}

impl Failure {
    /// The caller asked for something that makes no sense.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Bare(Error::usage(message))
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Of(file, error) => format!("{file}: {error}"),
            Self::Bare(error) => error.to_string(),
            Self::Python(error) => error.to_string(),
        }
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let message = failure.message();
        match failure {
            Failure::Python(error) => error,
            Failure::Of(_, error) | Failure::Bare(error) => {
                Python::attach(|py| exception(py, &message, &error).unwrap_or_else(|problem| problem))
            }
        }
    }
}

fn exception(py: Python<'_>, message: &str, error: &Error) -> PyResult<PyErr> {
    let kind = match error.kind() {
        Kind::Malformed => "malformed",
        Kind::Unsupported => "unsupported",
        Kind::Limit => "limit",
        Kind::Usage => "usage",
        Kind::Io => "io",
        _ => "other",
    };
    let diagnostic = error.diagnostic().map(|diagnostic| shown(diagnostic, "record"));
    let made = py.import("anytrace._errors")?.getattr("_error")?.call1((message, kind, diagnostic))?;
    Ok(PyErr::from_value(made))
}

/// A diagnostic as the JSON object of `check --format json`, with its text under `text`.
pub(crate) fn shown(diagnostic: &Diagnostic, noun: &str) -> String {
    let mut object = json::diagnostic(diagnostic);
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = diagnostic.render(noun, &mut text);
    object["text"] = text.into();
    object.to_string()
}

/// Damage that was found, for `anytrace.DamageWarning`.
pub(crate) struct Damage {
    /// Errors and warnings as JSON, as many as are shown.
    shown: Vec<String>,
    /// How many there were.
    count: u64,
}

/// Most diagnostics that become warnings.
const SHOWN_MAX: usize = 20;

impl Damage {
    /// The errors and warnings of what was found; notes are no damage.
    pub(crate) fn of(findings: &Findings, noun: &str) -> Self {
        use anytrace_core::Severity::{Error, Note, Warning};
        let kept = findings.kept().iter().filter(|one| one.severity != Note);
        let shown = kept.take(SHOWN_MAX).map(|one| shown(one, noun)).collect();
        Self { shown, count: findings.of(Error) + findings.of(Warning) }
    }

    /// Warns of it.
    pub(crate) fn warn(self, py: Python<'_>, file: &str) -> PyResult<()> {
        if self.count == 0 {
            return Ok(());
        }
        py.import("anytrace._errors")?.getattr("_warn")?.call1((file, self.shown, self.count)).map(drop)
    }
}
