//! Colors, only where a terminal looks; `NO_COLOR` and `CLICOLOR` are honored by [`crate::terminal`].

use std::fmt::{self, Display};
use std::io::Write;

use anstyle::{AnsiColor, Style};
use anytrace_core::Severity;

use crate::terminal;

/// A style whose sequences [`crate::terminal`] knows as ours: `{style}` begins it, `{style:#}` ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Paint(Style);

/// Bold.
pub(crate) const BOLD: Paint = Paint(Style::new().bold());

/// Faint.
pub(crate) const DIM: Paint = Paint(Style::new().dimmed());

/// As text is without a style.
pub(crate) const PLAIN: Paint = Paint(Style::new());

/// Text in a color.
pub(crate) const fn color(color: AnsiColor) -> Paint {
    Paint(color.on_default())
}

/// The color of a severity.
pub(crate) fn severity(severity: Severity) -> Paint {
    let color = match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Note => AnsiColor::Cyan,
    };
    Paint(color.on_default().bold())
}

/// A heading over a part of a page.
pub(crate) fn heading(text: &str) -> String {
    format!("\n{BOLD}{text}{BOLD:#}\n")
}

impl Display for Paint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sequences = if f.alternate() { self.0.render_reset().to_string() } else { self.0.render().to_string() };
        // At once, so that a mark is never split.
        f.write_str(&terminal::marked(&sequences))
    }
}

/// A message of the program itself, to standard error. Nothing can be done when that fails.
pub(crate) fn complain(kind: &str, message: impl Display) {
    let style = if kind == "error" { severity(Severity::Error) } else { severity(Severity::Note) };
    let _ = writeln!(terminal::stderr(), "anytrace: {style}{kind}{style:#}: {message}");
}
