//! The form in which records are written, as target options ask for it.

use anytrace_core::{Error, TargetOptions};

use crate::NAME;
use crate::options::OPTIONS;

/// The form in which records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordForm {
    /// Their own bytes.
    Copy,
    /// As Valgrind spells them.
    Canonical,
    Jsonl,
}

impl RecordForm {
    /// Reads the target options.
    pub(crate) fn new(target: &TargetOptions) -> Result<Self, Error> {
        target.only(NAME, &[], OPTIONS)?;
        match (target.to.as_deref(), target.own.word("style")) {
            (None | Some(NAME), None) => Ok(Self::Copy),
            (None | Some(NAME), Some(_)) => Ok(Self::Canonical),
            (Some("jsonl"), None) => Ok(Self::Jsonl),
            (Some("jsonl"), Some(_)) => Err(Error::usage("--style does not apply to JSON lines")),
            (Some(other), _) => Err(Error::usage(format!("a lackey trace cannot be written as {other}"))),
        }
    }
}
