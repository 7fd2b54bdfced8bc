//! What is worth knowing about a trace of memory accesses: which type and which part of it misses, or how the caches do.

use std::path::{Path, PathBuf};

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::presets::Preset;
use anytrace_analysis::type_profile::{TypeProfile, TypeProfiler};

use super::site_types::Traces;
use super::type_data::TypeDataArguments;
use super::type_label::type_label;
use super::{caches, opening};
use crate::arguments::InputArguments;
use crate::failure::Failure;
use crate::highlight::{Highlight, Highlights};
use crate::units::{grouped, percent};

/// The highlights of a trace of any format with accesses. The caches are those of one documented processor, so that the
/// same trace has the same highlights on every machine.
pub(crate) fn highlights(path: &Path, programs: &[PathBuf], input: &InputArguments) -> Result<Highlights, Failure> {
    let name = path.display().to_string();
    let config = Preset::documented().config();
    let files = [path.to_owned()];
    TypeDataArguments::of(programs).with(Traces { files: &files, input }, |layouts| {
        let opened = opening::open(path, input)?;
        let (simulation, line_bytes) = caches::typed_simulation(&config)?;
        let mut profiler = TypeProfiler::new(layouts, simulation, line_bytes);
        let read = opened.read(&mut profiler)?;
        let profile = profiler.finish().map_err(|error| Failure::of(&name, &error))?;
        Ok((vec![by_type(&profile, &config).unwrap_or_else(|| by_level(&profile, &config))], read.verdict))
    })
}

/// The type with most misses, and the part of its elements that has most of them.
fn by_type(profile: &TypeProfile, config: &Config) -> Option<Highlight> {
    let all: u64 = profile.types.iter().map(|one| one.counts.misses).sum::<u64>() + profile.untyped.misses;
    let most = (0..).zip(&profile.types).max_by_key(|(number, one)| (one.counts.misses, std::cmp::Reverse(*number)));
    let (number, one) = most.filter(|(_, one)| one.counts.misses > 0)?;
    let name = type_label(profile.table.name(number));
    let mut text = format!(
        "{name} has {} of {} misses ({}) in {}",
        grouped(u128::from(one.counts.misses)),
        grouped(u128::from(all)),
        percent(one.counts.misses as f64, all as f64),
        first_level(config)
    );
    let row =
        profile.rows(number).into_iter().max_by_key(|row| (row.counts.misses, std::cmp::Reverse(row.offset_bytes)));
    if let Some(row) = row.filter(|row| row.counts.misses > 0) {
        let field = match row.path.is_empty() {
            true => format!("the {} bytes at offset {}", row.bytes, row.offset_bytes),
            false => format!("field {}", row.path),
        };
        let misses = grouped(u128::from(row.counts.misses));
        text.push_str(&format!("; most of them, {misses}, in {field}"));
    }
    Some(Highlight::new(format!("{text}."), "memory types --config zen3"))
}

/// How many accesses each level serves, where no region has a type.
fn by_level(profile: &TypeProfile, config: &Config) -> Highlight {
    let counts = &profile.untyped;
    let (accesses, misses) = (counts.accesses(), counts.misses);
    let hits = percent(accesses.saturating_sub(misses) as f64, accesses as f64);
    let text = format!(
        "No region has a type. {hits} of {} accesses hit {}.",
        grouped(u128::from(accesses)),
        first_level(config)
    );
    Highlight::new(text, "memory sim --config zen3")
}

/// The first level of the caches.
fn first_level(config: &Config) -> String {
    config.levels.first().map(caches::described_level).unwrap_or_default()
}
