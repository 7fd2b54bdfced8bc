//! Making an index, and what it is for: a call and some frames late in a large trace.

use std::path::Path;

use super::bars::{Bar, FIRST_TRIM, FIRST_TRIM_AT_LEAST, INDEX_AT_LEAST, LATE_BARS, LateBar, Unit};
use super::{Options, best, best_by_wall, peer, row, size};

/// Most memory for making an index, in MiB.
const INDEX_MIB_MAX: i64 = 64;

/// Makes the index of a trace, uses it, and removes it.
pub(super) fn bench(trace: &Path, program: &Path, options: &Options, missed: &mut Vec<String>) -> Result<(), String> {
    let size = size(program, trace)?;
    let beside = |suffix: &str| format!("{}{suffix}", trace.display());
    let (file, index, part) = (beside(""), beside(".index"), beside(".part"));
    let command = |words: &[&str], rest: &[&str]| -> Vec<String> {
        let program = program.display().to_string();
        std::iter::once(program).chain(words.iter().chain(rest).map(|word| (*word).to_owned())).collect()
    };
    let job = "apitrace apitrace trim of ten late frames";
    let trimmed = best(None, &command(FIRST_TRIM, &[&part, &file]))?;
    let bar = Bar { input: "apitrace", verb: &[], unit: Unit::Megabytes, at_least: FIRST_TRIM_AT_LEAST };
    let rate = row(job, trimmed, &size, &bar);
    if rate < FIRST_TRIM_AT_LEAST {
        missed.push(format!("{job}: {rate:.0} of {FIRST_TRIM_AT_LEAST:.0}"));
    }
    let job = "apitrace apitrace index";
    let made = best(None, &command(&["apitrace", "index", "--force"], &["--threads", "1", &file]))?;
    let bar = Bar { input: "apitrace", verb: &[], unit: Unit::Megabytes, at_least: INDEX_AT_LEAST };
    let rate = row(job, made, &size, &bar);
    if rate < INDEX_AT_LEAST {
        missed.push(format!("{job}: {rate:.0} of {INDEX_AT_LEAST:.0}"));
    }
    if made.peak_kib > INDEX_MIB_MAX * 1024 {
        missed.push(format!("{job}: peak {} KiB", made.peak_kib));
    }
    for LateBar { verb, wall_ms_max } in &LATE_BARS {
        let rest: &[&str] = if verb.ends_with(&["-o"]) { &[&part, &file] } else { &[&file] };
        let usage = best_by_wall(&command(verb, rest))?;
        let (job, wall_ms) = (verb.join(" "), usage.wall_s * 1e3);
        println!(
            "| apitrace {job} (with index) | {:.3} | {:.3} | {:.1} | {wall_ms:.1} ms | {wall_ms_max:.0} ms |",
            usage.cpu_s,
            usage.wall_s,
            usage.peak_kib as f64 / 1024.0
        );
        if wall_ms > *wall_ms_max {
            missed.push(format!("{job} with an index: {wall_ms:.1} ms of {wall_ms_max:.0}"));
        }
    }
    if options.peers {
        peer(&["apitrace", "dump", "--calls=16000000"], &file, &size);
        peer(&["apitrace", "trim", "--frames=5000-5009", "-o", &part], &file, &size);
    }
    for file in [&index, &part] {
        std::fs::remove_file(file).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(())
}
