//! Reading a trace once before, where a configuration has to know the future.

use std::path::Path;

use anytrace_analysis::cache::Cores;
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::next_use::{Foreseen, NextUse};
use anytrace_core::Collect;

use super::super::configs::ConfigArguments;
use super::super::opening;
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::open;

/// Reads the trace once before, where a configuration has to know the future.
pub(super) fn foresee(
    path: &Path,
    configs: &[Config],
    caches: &ConfigArguments,
    input: &InputArguments,
) -> Result<Foreseen, Failure> {
    let Some(mut next_use) = NextUse::new(configs, Cores::new(caches.cores()), caches.fetches) else {
        return Ok(Foreseen::default());
    };
    if open::is_read_once(path) {
        return Err(Failure::usage("the policy opt reads a trace twice: give a file, not a pipe"));
    }
    let opened = opening::open(path, input)?;
    if let Some(trace) = opened.trace {
        // The second reading reports damage.
        let mut silent = Collect::default();
        trace.accesses(&mut next_use, &mut silent).map_err(|error| Failure::of(&path.display().to_string(), &error))?;
    }
    Ok(next_use.finish())
}
