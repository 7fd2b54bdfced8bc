//! Looks at a trace that a verb wrote before it gets its name: it must be recognized as what it is.

use std::path::Path;

use anytrace_core::{Format, Head, Input, InputOptions};
use anytrace_formats::{Recognized, recognize};

use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::output::Output;
use crate::paint;

/// Refuses a trace that no verb would open again. Who named the input's format may have to name it again, which is said,
/// unless there is no record in the trace.
pub(crate) fn must_open(
    output: &mut Output,
    format: &dyn Format,
    records: u64,
    (file, path): (&Path, &Path),
    options: &InputArguments,
) -> Result<(), Failure> {
    if opens(output, format, path)? {
        return Ok(());
    }
    let (file, title) = (file.display(), format.title().trim_end_matches(" trace"));
    if records == 0 || options.input_format.is_none() {
        let why = format!("the result would not be recognized as a {title} trace");
        return Err(Failure::breach(format!("{file}: {why}; nothing was written")));
    }
    let file = file.to_string();
    let file = anytrace_core::text::printable(&file);
    let option = format!("--input-format {}", format.name());
    paint::complain("note", format!("{file}: the output cannot be recognized either; use {option} to open it"));
    Ok(())
}

/// True for a trace of the format, and for one without a byte.
fn opens(output: &mut Output, format: &dyn Format, path: &Path) -> Result<bool, Failure> {
    // What went out already cannot be taken back.
    let Some(staged) = output.staged_file()? else { return Ok(true) };
    let input = Input::open(staged, InputOptions { no_map: true }).map_err(|error| Failure::bare(&error))?;
    let name = path.display().to_string();
    let head = Head { name: &name, ..input.head() };
    Ok(match recognize(&head) {
        Recognized::Empty => true,
        Recognized::Trace(found) => found.name() == format.name(),
        _ => false,
    })
}
