//! Which caches the verbs about types simulate: one configuration.

use std::path::Path;

use anytrace_analysis::cache::Simulation;
use anytrace_analysis::cache::config::{Config, Level};
use anytrace_analysis::cache::config_file;
use anytrace_analysis::cache::presets::Preset;
use anytrace_core::text::printable;
use clap::Args;

use super::default_caches::default_config;
use crate::failure::Failure;
use crate::paint;

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// The caches.
#[derive(Debug, Args)]
#[command(next_help_heading = "Caches")]
pub(crate) struct CacheArguments {
    /// Cache configuration to simulate: a preset (`sim --list-presets`) or a file as for `sim`, followed by :NAME if
    /// it has several configurations [default: the preset of this machine's processor, or zen3]
    #[arg(long, value_name = "FILE|PRESET")]
    config: Option<String>,
}

impl CacheArguments {
    /// The configuration.
    pub(super) fn load(&self) -> Result<Config, Failure> {
        let Some(wanted) = &self.config else { return Ok(default_config()) };
        if let Some(preset) = Preset::of_name(wanted).filter(|_| !Path::new(wanted).is_file()) {
            return Ok(preset.config());
        }
        match wanted.rsplit_once(':') {
            Some((file, name)) if !Path::new(wanted).is_file() => of_file(file, Some(name)),
            _ => of_file(wanted, None),
        }
    }
}

/// As [`Simulation::by_type`].
pub(super) fn typed_simulation(config: &Config) -> Result<(Simulation, u64), Failure> {
    Simulation::by_type(config).map_err(|error| Failure::bare(&error))
}

fn of_file(file: &str, name: Option<&str>) -> Result<Config, Failure> {
    let (path, shown) = (Path::new(file), printable(file));
    let failed = |error| Failure::usage(format!("cannot read the configuration {shown}: {error}"));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: a configuration may have at most {FILE_BYTES_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(failed)?;
    let stem = path.file_stem().map_or_else(|| "config".into(), |stem| stem.to_string_lossy().into_owned());
    let wrong = |what: String| Failure::usage(format!("{shown}: {}", printable(&what)));
    let found = config_file::parse(&text, &stem).map_err(|one| wrong(one.to_string()))?;
    for note in &found.notes {
        paint::complain("note", format!("{shown}: {}", printable(note)));
    }
    let names: Vec<String> = found.configs.iter().map(|config| config.name.clone()).collect();
    let mut fitting = found.configs.into_iter().filter(|config| name.is_none_or(|name| config.name == name));
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(wrong(format!("unknown configuration {}", name.unwrap_or_default()))),
        _ => Err(wrong(format!("has several configurations: append :NAME, one of {}", names.join(", ")))),
    }
}

/// What a configuration has, for a heading: `L1 32 KiB 8-way, L2 1 MiB 16-way, lines of 64 bytes`.
pub(super) fn described(config: &Config) -> String {
    let line = config.levels.first().map_or(0, |level| level.line);
    let levels: Vec<_> = config.levels.iter().map(described_level).collect();
    format!("{}, lines of {line} bytes", levels.join(", "))
}

/// What a level has: `L1 32 KiB 8-way`.
pub(super) fn described_level(level: &Level) -> String {
    let ways = if level.ways == 0 { "fully associative".to_owned() } else { format!("{}-way", level.ways) };
    let policy = level.policy.word();
    let policy = if policy == "lru" { String::new() } else { format!(" {policy}") };
    format!("{} {} {ways}{policy}", printable(&level.name), bytes(level.size))
}

/// Bytes with a unit where that is short: `32 KiB`, `1,000`.
pub(super) fn bytes(count: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| count >= 1 << shift) {
        Some((unit, shift)) if count.is_multiple_of(1 << shift) => format!("{} {unit}", count >> shift),
        Some((unit, shift)) => format!("{:.1} {unit}", count as f64 / (1_u64 << shift) as f64),
        None => format!("{count} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_short() {
        assert_eq!([0, 1023, 1024, 40_000, 3 << 20].map(bytes), ["0 B", "1023 B", "1 KiB", "39.1 KiB", "3 MiB"]);
    }
}
