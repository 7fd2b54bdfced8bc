//! Rules and severities: those of `anytrace-core` with the feature `hosted`, their names and texts alone without it.

#[cfg(feature = "hosted")]
pub use anytrace_core::{Rule, Severity};

#[cfg(not(feature = "hosted"))]
pub use plain::{Rule, Severity};

#[cfg(not(feature = "hosted"))]
mod plain {
    /// How bad a finding is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Severity {
        /// Suspicious, or not known to be wrong.
        Warning,
        /// A rule is broken.
        Error,
    }

    /// A check with a code.
    #[derive(Debug, PartialEq, Eq)]
    pub struct Rule {
        /// The same code as in reports of the command.
        pub code: &'static str,
        /// How bad it is to break it.
        pub severity: Severity,
        /// One line.
        pub summary: &'static str,
    }

    impl Rule {
        pub(crate) const fn program(code: &'static str, summary: &'static str) -> Self {
            Self { code, severity: Severity::Error, summary }
        }

        pub(crate) const fn warning(code: &'static str, summary: &'static str) -> Self {
            Self { code, severity: Severity::Warning, summary }
        }
    }
}
