//! Which caches are simulated: `--config`, `--list-presets`, `--cores`, for all verbs that simulate.

use std::path::{Path, PathBuf};

use anytrace_analysis::cache::CorePlan;
use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::config_file;
use anytrace_analysis::cache::presets::{PRESETS, Preset};
use anytrace_core::text::printable;
use clap::Args;

use super::what_if::WhatIfArguments;
use crate::failure::Failure;
use crate::paint;
use crate::table::{Align, Table};

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Caches and who uses them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Caches")]
pub(super) struct ConfigArguments {
    /// What to simulate: a preset, or a file with one or more configurations (JSON, or upstream's JSON or INI); may be
    /// repeated
    #[arg(long, value_name = "FILE|PRESET", required_unless_present = "list_presets")]
    config: Vec<String>,
    /// Of the configurations named, only this one; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the presets and where their figures are from
    #[arg(long)]
    pub(super) list_presets: bool,
    /// Cores: N, that threads take in turn, or ID=CORE,… for threads by their ids. Where no level is private, all but
    /// the last become so, or the only one [default: each thread has its own core]
    #[arg(long, value_name = "N|ID=CORE,…", value_parser = core_plan)]
    cores: Option<CorePlan>,
    /// Instruction fetches are reads, instead of being left out
    #[arg(long)]
    pub(super) fetches: bool,
    #[command(flatten)]
    pub(super) what_if: WhatIfArguments,
}

impl ConfigArguments {
    /// The configurations, in the order named.
    pub(super) fn load(&self) -> Result<Vec<Config>, Failure> {
        let mut configs: Vec<Config> = Vec::new();
        for wanted in &self.config {
            let named = load(wanted)?;
            configs.extend(named.into_iter().filter(|c| self.only.is_empty() || self.only.contains(&c.name)));
        }
        if let Some(missing) = self.only.iter().find(|name| !configs.iter().any(|config| config.name == **name)) {
            return Err(Failure::usage(format!("no configuration is called {missing}")));
        }
        let mut names: Vec<&str> = configs.iter().map(|config| config.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::usage(format!("two configurations are called {}", pair[1])));
        }
        if self.cores.is_some() {
            configs.iter_mut().for_each(make_private);
        }
        Ok(configs)
    }

    /// The same caches with other layouts, or with those of the trace.
    pub(super) fn with_remap(&self, remap: Option<PathBuf>) -> Self {
        let mut other = self.clone();
        other.what_if.remap = remap;
        other
    }

    /// The file that says how types are laid out, where they are not as traced.
    pub(super) fn remap(&self) -> Option<&Path> {
        self.what_if.remap.as_deref()
    }

    /// Which thread runs on which core.
    pub(super) fn cores(&self) -> CorePlan {
        self.cores.clone().unwrap_or_default()
    }
}

/// All levels but the last become each core's own; a single level too.
fn make_private(config: &mut Config) {
    if config.levels.iter().any(|level| level.is_private) {
        return;
    }
    let private = config.levels.len().saturating_sub(1).max(1);
    config.levels.iter_mut().take(private).for_each(|level| level.is_private = true);
    config.tlb.iter_mut().for_each(|level| level.is_private = true);
}

fn load(wanted: &str) -> Result<Vec<Config>, Failure> {
    let path = Path::new(wanted);
    if let Some(preset) = Preset::of_name(wanted).filter(|_| !path.is_file()) {
        return Ok(vec![preset.config()]);
    }
    let shown = printable(wanted);
    let metadata = std::fs::metadata(path).map_err(|error| {
        let about = if wanted.contains(['/', '.']) { "" } else { "; no preset is called so either (--list-presets)" };
        Failure::usage(format!("cannot read the configuration {shown}: {error}{about}"))
    })?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: a configuration has at most {FILE_BYTES_MAX} bytes")));
    }
    let bytes = std::fs::read(path).map_err(|error| Failure::usage(format!("cannot read {shown}: {error}")))?;
    let text = String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{shown}: expected UTF-8 text")))?;
    let stem = path.file_stem().map_or_else(|| "config".into(), |stem| stem.to_string_lossy().into_owned());
    let found = config_file::parse(&text, &stem)
        .map_err(|wrong| Failure::usage(format!("{shown}: {}", printable(&wrong.to_string()))))?;
    for note in found.notes {
        paint::complain("note", format!("{shown}: {}", printable(&note)));
    }
    Ok(found.configs)
}

fn core_plan(text: &str) -> Result<CorePlan, String> {
    let most = anytrace_analysis::cache::config::CORES_MAX;
    let core = |number: usize| {
        if number < most { Ok(number) } else { Err(format!("expected a core below {most}, found {number}")) }
    };
    if let Ok(count) = text.parse::<usize>() {
        let fits = (1..=most).contains(&count);
        return if fits { Ok(CorePlan::Count(count)) } else { Err(format!("expected 1 to {most} cores")) };
    }
    if text == "per-thread" {
        return Ok(CorePlan::PerThread);
    }
    let pairs = text.split(',').map(|pair| {
        let parts = pair.split_once('=').and_then(|(id, core)| Some((id.parse().ok()?, core.parse().ok()?)));
        let (id, number) = parts.ok_or_else(|| format!("expected a number, or ID=CORE,…, found {pair:?}"))?;
        Ok((id, core(number)?))
    });
    pairs.collect::<Result<_, String>>().map(CorePlan::Map)
}

/// The list of presets.
pub(super) fn preset_list() -> String {
    let mut table = Table::new(&[("preset", Align::Left), ("caches", Align::Left), ("what it is", Align::Left)]);
    for preset in PRESETS {
        let config = preset.config();
        let levels: Vec<_> = config.levels.iter().map(|level| bytes(level.size)).collect();
        table.row(vec![preset.name.to_owned(), levels.join(" + "), preset.title.to_owned()]);
    }
    let mut out = table.render();
    out.push_str("\nSources\n");
    for preset in PRESETS {
        out.push_str(&format!("  {}: {}\n", preset.name, preset.source));
    }
    out
}

/// A size in bytes with a unit of powers of 1024: `32 KiB`.
pub(super) fn bytes(size: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.iter().find(|(_, shift)| size >= 1 << shift && size.is_multiple_of(1 << (shift - 2))) {
        Some((unit, shift)) => {
            let whole = size >> shift;
            let quarters = ((size >> (shift - 2)) & 3) * 25;
            let part = if quarters == 0 { String::new() } else { format!(".{quarters}") };
            format!("{whole}{} {unit}", part.trim_end_matches('0'))
        }
        None => format!("{size} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        let sizes = [64, 4096, 48 << 10, 1280 << 10, 3 << 30, 1000];
        assert_eq!(sizes.map(bytes), ["64 B", "4 KiB", "48 KiB", "1.25 MiB", "3 GiB", "1000 B"]);
    }

    #[test]
    fn cores_are_a_number_or_a_map() {
        assert_eq!(core_plan("4"), Ok(CorePlan::Count(4)));
        assert_eq!(core_plan("7=0,9=1"), Ok(CorePlan::Map(vec![(7, 0), (9, 1)])));
        assert!(core_plan("0").is_err() && core_plan("65").is_err() && core_plan("a").is_err());
        assert!(core_plan("7=64").is_err());
    }
}
