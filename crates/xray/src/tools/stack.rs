//! Time and calls by call stack, as `llvm-xray stack` counts them, and counted correctly.
//!
//! The rules are those of the page, section 3: an exit ends the innermost open call of its function and all calls
//! inside it; a call is a *leaf* when no call was left on its thread since it was entered; calls that are never left
//! are not counted.

pub use anytrace_analysis::stack_runs::{MakeFile, StackSums};
use anytrace_core::{Error, Input, OpenOptions, Sink};

use super::stack_files::StackFiles;
pub use super::stack_profile::{Oddities, OrphanRule, StackOptions, StackProfile};

/// Counts the stacks of one trace.
///
/// # Errors
/// I/O errors, options that the format does not have, and whatever the sink returns. Damage is reported to the sink.
pub fn stack(
    input: Input,
    open: &OpenOptions,
    options: &StackOptions,
    sink: &mut dyn Sink,
) -> Result<StackProfile, Error> {
    let mut files = StackFiles::new(*options);
    files.add(input, open, sink)?;
    Ok(files.finish())
}
