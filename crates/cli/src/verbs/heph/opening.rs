//! What the group's verbs share: opening a Heph trace, and where its damage is told.

use std::path::Path;

use anytrace_core::{Diagnostic, Input};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open::{self, Opened};
use crate::report::{Reporter, Way};

/// A trace to read, and where its damage is told.
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
        Opened::Trace(format, input) if format.name() == "heph" => input,
        Opened::Trace(format, _) => {
            let other = format.name();
            return Err(Failure::usage(format!("{name}: a trace of {other}; `anytrace heph` is for Heph traces")));
        }
        Opened::Jsonl(format, _) => {
            let format = format.name();
            let help = format!("`anytrace convert {name} -o OUT --to {format}` makes a trace of them");
            return Err(Failure::usage(format!("{name}: JSON lines of {format}; {help}")));
        }
    };
    Ok(Opening { input, reporter })
}

fn take(reporter: &mut Reporter, damage: Vec<Diagnostic>) -> Result<(), Failure> {
    reporter.take(damage)
}
