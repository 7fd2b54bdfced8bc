//! Options of verbs that show several traces as one.

use std::path::{Path, PathBuf};

use anytrace_analysis::merge::Align;
use anytrace_core::TimeBound;
use clap::{Args, ValueEnum};

use super::time_bound;
use crate::failure::Failure;

/// How the clocks of several traces are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum AlignArgument {
    /// By dates, the machine's uptime, counters of one rate; those that begin over an hour apart begin together
    #[default]
    Near,
    /// The same, however far apart dates and uptimes are
    Clocks,
    /// All begin together
    Begin,
    /// All times are of one clock, as they are
    None,
}

/// Where several traces lie on their common axis.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Several traces as one")]
pub(crate) struct PlaceArguments {
    /// Move a trace, after its clock was compared with the others': by ns, us, ms or s; may be repeated
    #[arg(long, value_name = "FILE=+TIME", value_parser = offset)]
    offset: Vec<(PathBuf, i128)>,
    /// How clocks are compared [default: near]
    #[arg(long, value_enum, value_name = "HOW")]
    align: Option<AlignArgument>,
}

impl PlaceArguments {
    /// True when one of the options is given.
    pub(crate) fn is_given(&self) -> bool {
        !self.offset.is_empty() || self.align.is_some()
    }

    /// How clocks are compared.
    pub(crate) fn align(&self) -> Align {
        match self.align.unwrap_or_default() {
            AlignArgument::Near => Align::Near,
            AlignArgument::Clocks => Align::Clocks,
            AlignArgument::Begin => Align::Begin,
            AlignArgument::None => Align::AsTheyAre,
        }
    }

    /// By how much a trace is moved.
    pub(crate) fn offset_of(&self, file: &Path) -> i128 {
        self.offset.iter().filter(|(of, _)| of == file).map(|(_, offset)| offset).sum()
    }

    /// Refuses an offset of a file that is not among those read.
    pub(crate) fn check(&self, files: &[PathBuf]) -> Result<(), Failure> {
        match self.offset.iter().find(|(of, _)| !files.contains(of)) {
            Some((of, _)) => Err(Failure::usage(format!(
                "--offset {}: no trace of this name is read; write it as there",
                of.display()
            ))),
            None => Ok(()),
        }
    }
}

/// Whether several traces are shown as one.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Several traces as one")]
pub(crate) struct MergeArguments {
    /// Show all traces as one, on a common axis of time
    #[arg(long)]
    merge: bool,
    #[command(flatten)]
    pub(crate) place: PlaceArguments,
}

impl MergeArguments {
    /// True where the traces are one.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.merge || self.place.is_given()
    }
}

/// `FILE=+3ms`, `FILE=-2s`: a plain number is in nanoseconds, or in records where no trace has a clock.
fn offset(text: &str) -> Result<(PathBuf, i128), String> {
    let expected = || format!("expected FILE=+TIME or FILE=-TIME, found {text:?}");
    let (file, time) = text.rsplit_once('=').filter(|(file, _)| !file.is_empty()).ok_or_else(expected)?;
    let (sign, time) = match time.strip_prefix('-') {
        Some(time) => (-1, time),
        None => (1, time.strip_prefix('+').unwrap_or(time)),
    };
    match time_bound(time)? {
        TimeBound::Native(time) | TimeBound::Nanoseconds(time) => Ok((file.into(), sign * i128::from(time))),
        TimeBound::Open => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_has_a_file_and_a_time_with_a_sign() {
        assert_eq!(offset("a.xray=+3ms"), Ok(("a.xray".into(), 3_000_000)));
        assert_eq!(offset("a=b=-2s"), Ok(("a=b".into(), -2_000_000_000)));
        assert_eq!(offset("a=7"), Ok(("a".into(), 7)));
        for wrong in ["a", "a=", "=3ms", "a=+", "a=--3", "a=3 parsecs"] {
            assert!(offset(wrong).is_err(), "{wrong}");
        }
    }
}
