//! The forms that `--to` takes for a format, and what is refused.

use anytrace_core::{Format, TargetOptions};
use anytrace_export::forms;
pub(super) use anytrace_export::forms::is_own;

use crate::arguments::ConvertArguments;
use crate::failure::Failure;
use crate::open::Opened;

/// Refuses a `--to` the format does not have, saying which there are.
pub(super) fn known_target(format: &dyn Format, target: &TargetOptions) -> Result<(), Failure> {
    let Some(to) = &target.to else { return Ok(()) };
    if is_own(format, to) {
        return Ok(());
    }
    let names = forms::names(format).join(", ");
    Err(Failure::usage(format!("{} traces cannot be written as {to}; --to accepts {names}", format.name())))
}

/// True where an output for other programs may be meant: the format `has` what it contains and no form of that name.
pub(super) fn may_mean(opened: &Opened, name: &str, has: impl Fn(&dyn Format) -> bool) -> bool {
    match opened {
        Opened::Trace(format, _) | Opened::Jsonl(format, _) => has(*format) && !is_own(*format, name),
        Opened::Empty(_) => true,
    }
}

/// Refuses what goes with no output for other programs: JSON lines, options for forms of a format.
pub(super) fn refuse_others(
    opened: &Opened,
    name: &str,
    target: &TargetOptions,
    options: &ConvertArguments,
) -> Result<(), Failure> {
    refuse_jsonl(opened, options)?;
    target.only(name, &[], &[]).map_err(|error| Failure::bare(&error))
}

/// Refuses JSON lines where a trace is needed.
fn refuse_jsonl(opened: &Opened, options: &ConvertArguments) -> Result<(), Failure> {
    let Opened::Jsonl(format, _) = opened else { return Ok(()) };
    Err(Failure::usage(format!(
        "{0}: JSON lines of {1}; first convert them with `anytrace convert {0} -o OUT --to {1}`",
        options.file.display(),
        format.name()
    )))
}
