//! Colours, only where a terminal looks; `NO_COLOR` and `CLICOLOR` are honoured by `anstream`.

use std::fmt::Display;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use anytrace_core::Severity;

/// Bold.
pub(crate) const BOLD: Style = Style::new().bold();

/// Faint.
pub(crate) const DIM: Style = Style::new().dimmed();

/// The colour of a severity.
pub(crate) fn severity(severity: Severity) -> Style {
    let colour = match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Note => AnsiColor::Cyan,
    };
    colour.on_default().bold()
}

/// A message of the program itself, to standard error. Nothing can be done when that fails.
pub(crate) fn complain(kind: &str, message: impl Display) {
    let style = if kind == "error" { severity(Severity::Error) } else { severity(Severity::Note) };
    let _ = writeln!(anstream::stderr(), "anytrace: {style}{kind}{style:#}: {message}");
}
