//! Where diagnostics go as they are found.

use crate::{Diagnostic, Error, Severity};

/// Receives diagnostics as they are found.
///
/// Lenient readers report and continue; with a strict caller the sink returns the error and the reader stops. There is
/// one code path, and only the sink differs.
pub trait Sink {
    /// Takes one diagnostic. An error returned here ends the reading and is returned to the caller.
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error>;
}

/// Keeps every diagnostic; for tests and small files.
#[derive(Debug, Default)]
pub struct Collect(pub Vec<Diagnostic>);

impl Sink for Collect {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        self.0.push(diagnostic);
        Ok(())
    }
}

impl Collect {
    /// How many errors were reported.
    pub fn errors(&self) -> usize {
        self.0.iter().filter(|d| d.severity == Severity::Error).count()
    }

    /// The codes, in order of report.
    pub fn codes(&self) -> Vec<&'static str> {
        self.0.iter().map(Diagnostic::code).collect()
    }
}

/// Stops at the first error; warnings and notes pass.
#[derive(Debug, Default)]
pub struct Strict;

impl Sink for Strict {
    fn report(&mut self, diagnostic: Diagnostic) -> Result<(), Error> {
        if diagnostic.severity == Severity::Error { Err(Error::malformed(diagnostic)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rule;

    static RULE: Rule = Rule::error("format/string-overrun", "a string is longer than its packet");

    #[test]
    fn strict_stops_at_an_error_and_lets_warnings_pass() {
        assert!(Strict.report(RULE.at(0).severity(Severity::Warning)).is_ok());
        let error = Strict.report(RULE.at(7)).unwrap_err();
        assert_eq!(error.diagnostic().map(|d| d.offset), Some(7));
    }
}
