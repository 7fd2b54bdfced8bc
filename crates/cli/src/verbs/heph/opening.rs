//! What the group's verbs share: opening a Heph trace, and where its damage is reported.

use std::path::Path;

use anytrace_core::{Diagnostic, Input};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::report::{Reporter, Way};

/// A trace to read, and where its damage is reported.
pub(super) struct Opening {
    /// The bytes; none of an empty file.
    pub(super) input: Input,
    pub(super) reporter: Reporter,
}

/// Opens a trace for one of the verbs; it must be Heph's.
pub(super) fn open(path: &Path, options: &InputArguments) -> Result<Opening, Failure> {
    let name = path.display().to_string();
    let heph = anytrace_formats::by_name("heph");
    let mut reporter = Reporter::new(&name, heph, Way::Stderr, options.limit);
    let input = match open::open(path, options)? {
        Opened::Empty(damage) => {
            take(&mut reporter, damage)?;
            Input::from_bytes(&name, Vec::new())
        }
        Opened::Trace(format, input) => {
            open::must_be_one_of(&name, format, options, |one| one.name() == "heph")?;
            input
        }
        Opened::Jsonl(format, _) => return Err(open::only_lines(&name, format)),
    };
    Ok(Opening { input, reporter })
}

fn take(reporter: &mut Reporter, damage: Vec<Diagnostic>) -> Result<(), Failure> {
    reporter.take(damage)
}
