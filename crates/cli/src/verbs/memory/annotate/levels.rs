//! Misses of each level, from the levels that served records.

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::results::Tally;

/// Names of the levels with the records that each of them did not serve, nor one above it.
pub(in super::super) fn misses<'a>(config: &'a Config, tally: &'a Tally) -> impl Iterator<Item = (&'a str, u64)> {
    let beyond = move |level: usize| tally.served_beyond_first.iter().skip(level).sum();
    config.levels.iter().enumerate().map(move |(at, level)| (level.name.as_str(), beyond(at)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anytrace_analysis::cache::presets::Preset;

    #[test]
    fn what_a_level_serves_all_levels_above_have_missed() {
        let config = Preset::documented().config();
        let tally = Tally { reads: 100, writes: 0, served_beyond_first: vec![10, 5, 2] };
        let found: Vec<_> = misses(&config, &tally).map(|(_, misses)| misses).collect();
        assert_eq!(found[..], [17, 7, 2][..config.levels.len()]);
        assert_eq!(misses(&config, &Tally::default()).map(|(_, misses)| misses).sum::<u64>(), 0);
    }
}
