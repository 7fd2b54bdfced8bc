//! What was written and what was lost, for people.

use std::io::Write;

use anytrace_core::Outcome;
use anytrace_core::text::printable;

use crate::terminal;

/// What was written and what was lost, to standard error.
pub(crate) fn print_outcome(name: &str, outcome: &Outcome) {
    let mut err = terminal::stderr();
    let name = printable(name);
    // Complaints that nobody can read do not stop the work.
    let _ = writeln!(
        err,
        "{name}: {} of {} records written, {} bytes lost",
        outcome.records_written, outcome.records_read, outcome.bytes_lost
    );
    for note in &outcome.notes {
        let _ = writeln!(err, "  {}", printable(note));
    }
}
