//! The making of an index beside a check of the same trace.

use std::path::Path;

use super::bars::{Bar, Unit};
use super::{Size, best, row};

/// An index may be made at this rate where a check is faster, in MB of the trace a second of CPU time.
const ENOUGH_MB_S: f64 = 300.0;

/// Prints a row each for `check` and `index`, on one thread; the index must be as fast as the check, or fast enough.
pub(super) fn bench(
    name: &str,
    program: &Path,
    path: &Path,
    size: &Size,
    missed: &mut Vec<String>,
) -> Result<(), String> {
    let (program, file) = (program.display().to_string(), path.display().to_string());
    let command = |words: &[&str]| {
        let words = words.iter().copied().chain(["--threads", "1", "--limit", "1", &file]);
        std::iter::once(program.as_str()).chain(words).map(str::to_owned).collect::<Vec<_>>()
    };
    let bar = Bar { input: "", verb: &[], unit: Unit::Megabytes, at_least: 0.0 };
    let check = row(&format!("{name} check, beside index"), best(None, &command(&["check"]))?, size, &bar);
    let at_least = check.min(ENOUGH_MB_S);
    let made = best(None, &command(&["index", "--force", "-o", "/dev/null"]))?;
    let rate = row(&format!("{name} index"), made, size, &Bar { at_least, ..bar });
    if rate < at_least {
        missed.push(format!("{name} index: {rate:.0} of {at_least:.0} MB/s"));
    }
    Ok(())
}
