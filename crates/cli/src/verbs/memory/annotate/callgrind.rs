//! `annotate` in Callgrind's format: costs of lines in functions of files. It has no word for types.

use anytrace_analysis::cache::results::Tally;
use anytrace_export::callgrind::{Header, Profile, UNKNOWN};

use super::Results;
use super::levels::misses;

/// The whole file.
pub(super) fn lines(results: &Results) -> String {
    let levels: Vec<_> =
        results.config.levels.iter().map(|level| format!("{}m", level.name.replace(' ', "_"))).collect();
    let events: Vec<_> = ["Dr", "Dw"].into_iter().chain(levels.iter().map(String::as_str)).collect();
    let header = Header { command: &results.name, positions: "instr line", events: &events };
    let mut profile = Profile::new(&header);
    let costs = |tally: &Tally| -> Vec<u64> {
        let misses = misses(&results.config, tally).map(|(_, misses)| misses);
        [tally.reads, tally.writes].into_iter().chain(misses).collect()
    };
    profile.summary(&costs(&results.found.total));
    for row in &results.found.rows {
        let object = row.file.as_ref().map_or_else(|| UNKNOWN.to_owned(), |file| file.display().to_string());
        let (file, line) =
            row.location.as_ref().map_or((UNKNOWN, 0), |location| (location.file.as_str(), location.line));
        profile.object(&object);
        profile.file(file);
        profile.function(row.function.as_deref().unwrap_or(UNKNOWN));
        profile.costs(&format!("{:#x} {line}", row.address.unwrap_or(0)), &costs(&row.total));
    }
    if results.found.unknown.accesses() > 0 {
        profile.object(UNKNOWN);
        profile.file(UNKNOWN);
        profile.function(UNKNOWN);
        profile.costs("0x0 0", &costs(&results.found.unknown));
    }
    profile.take()
}
