//! Which caches are simulated: `--config`, `--list-presets`, `--cores`, for all verbs that simulate.

mod cores;
mod text;

use std::path::{Path, PathBuf};

use anytrace_analysis::cache::config::Config;
use anytrace_analysis::cache::presets::Preset;
use anytrace_analysis::cache::{CorePlan, config_file};
use anytrace_core::text::printable;
use clap::Args;

use super::default_caches::default_config;
use super::what_if::WhatIfArguments;
use crate::failure::Failure;
use crate::paint;
use cores::core_plan;

pub(super) use text::{bytes, preset_list};

/// Largest configuration file.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Caches and who uses them.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Caches")]
pub(super) struct ConfigArguments {
    /// Cache configuration to simulate: a preset, or a file with one or more configurations (JSON, or upstream's JSON
    /// or INI); may be repeated [default: the preset of this machine's processor, or zen3]
    #[arg(long, value_name = "FILE|PRESET")]
    config: Vec<String>,
    /// Use only this configuration of those given; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// List the presets and the sources of their figures
    #[arg(long)]
    pub(super) list_presets: bool,
    /// Cores: N, assigned to threads in turn, or ID=CORE,… for threads by id. If no level is private, all but the last
    /// become private, or the only one [default: one core per thread]
    #[arg(long, value_name = "N|ID=CORE,…", value_parser = core_plan)]
    cores: Option<CorePlan>,
    /// Treat instruction fetches as reads instead of ignoring them
    #[arg(long)]
    pub(super) fetches: bool,
    #[command(flatten)]
    pub(super) what_if: WhatIfArguments,
}

impl ConfigArguments {
    /// The configurations, in the order named.
    pub(super) fn load(&self) -> Result<Vec<Config>, Failure> {
        let mut configs: Vec<Config> = Vec::new();
        if self.config.is_empty() {
            configs.push(default_config());
        }
        for wanted in &self.config {
            let named = load(wanted)?;
            configs.extend(named.into_iter().filter(|c| self.only.is_empty() || self.only.contains(&c.name)));
        }
        if let Some(missing) = self.only.iter().find(|name| !configs.iter().any(|config| config.name == **name)) {
            return Err(Failure::usage(format!("unknown configuration {missing}")));
        }
        let mut names: Vec<&str> = configs.iter().map(|config| config.name.as_str()).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::usage(format!("two configurations are named {}", pair[1])));
        }
        if self.cores.is_some() {
            configs.iter_mut().for_each(Config::make_private);
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

fn load(wanted: &str) -> Result<Vec<Config>, Failure> {
    let path = Path::new(wanted);
    if let Some(preset) = Preset::of_name(wanted).filter(|_| !path.is_file()) {
        return Ok(vec![preset.config()]);
    }
    let shown = printable(wanted);
    let metadata = std::fs::metadata(path).map_err(|error| {
        let about = if wanted.contains(['/', '.']) { "" } else { "; it is not a preset either (--list-presets)" };
        Failure::usage(format!("cannot read the configuration {shown}: {error}{about}"))
    })?;
    if metadata.len() > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown}: a configuration may have at most {FILE_BYTES_MAX} bytes")));
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
