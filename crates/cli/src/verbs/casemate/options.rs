//! Options that every verb with a rule set has.

use anytrace_casemate::model::{BbmLevel, Options, QUIRKS, Quirk, Quirks};
use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// A rule set that is not the reference's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RuleSet {
    /// Allow the changes that the architecture allows in place: permissions, execute-never, access flag, ignored bits
    Architecture,
    /// Every change to a live entry needs break-before-make, except software bits 58:55 of blocks and pages
    Strict,
}

/// The rule set.
#[derive(Debug, Args, Clone)]
#[command(next_help_heading = "Rules")]
pub(crate) struct RuleArguments {
    /// Changes allowed in a live entry: those the architecture allows in place, or software bits only
    #[arg(long, value_enum, default_value_t = RuleSet::Architecture, conflicts_with = "compat")]
    rules: RuleSet,
    /// Use the rules and messages of the reference checker
    #[arg(long)]
    compat: bool,
    /// Level of FEAT_BBM of the traced processors: 0 none, 1 changes of block size with nT, 2 without
    #[arg(long, value_name = "0|1|2", default_value = "0", value_parser = bbm, conflicts_with = "compat")]
    bbm: BbmLevel,
    /// Switch one rule; `anytrace casemate rules` lists them. May be repeated
    #[arg(long = "rule", value_name = "NAME=on|off", value_parser = switch)]
    switches: Vec<(Quirk, bool)>,
    /// Do not require locks for writes, and apply barriers and TLBIs to all entries
    #[arg(short = 'R', long)]
    racy: bool,
    /// Ignore accesses to uninitialized memory
    #[arg(short = 'I', long)]
    ignore_uninit: bool,
    /// Do not assume default values of system registers
    #[arg(short = 'S', long)]
    no_sysreg: bool,
    /// TLBIs by VMID or ASID drop only what they name (the same as --rule by-id-promoted=off)
    #[arg(long)]
    strict_id: bool,
}

impl RuleArguments {
    /// The library's options; an error where an option would have no effect.
    pub(crate) fn model(&self) -> Result<Options, Failure> {
        if self.rules == RuleSet::Strict && self.bbm != BbmLevel::Zero {
            let message = "--bbm has no effect with --rules strict, which requires a break for every change of size";
            return Err(Failure::usage(message));
        }
        let mut quirks = match (self.compat, self.rules) {
            (true, _) => Quirks::COMPAT,
            (_, RuleSet::Architecture) => Quirks::ARCHITECTURE,
            (_, RuleSet::Strict) => Quirks::STRICT,
        };
        if self.strict_id {
            quirks = quirks.with(Quirk::ByIdPromoted, false);
        }
        for (quirk, is_on) in &self.switches {
            quirks = quirks.with(*quirk, *is_on);
        }
        Ok(Options {
            quirks,
            is_racy: self.racy,
            ignores_uninitialised: self.ignore_uninit,
            no_sysreg: self.no_sysreg,
            bbm: self.bbm,
            goes_on: false,
        })
    }
}

fn bbm(text: &str) -> Result<BbmLevel, String> {
    match text {
        "0" => Ok(BbmLevel::Zero),
        "1" => Ok(BbmLevel::One),
        "2" => Ok(BbmLevel::Two),
        _ => Err("expected 0, 1 or 2".to_owned()),
    }
}

fn switch(text: &str) -> Result<(Quirk, bool), String> {
    let (name, state) = text.split_once('=').ok_or("expected NAME=on or NAME=off")?;
    let names = || QUIRKS.iter().map(|row| row.name).collect::<Vec<_>>().join(", ");
    let quirk = Quirk::from_name(name).ok_or_else(|| format!("unknown rule {name}; known rules: {}", names()))?;
    match state {
        "on" => Ok((quirk, true)),
        "off" => Ok((quirk, false)),
        _ => Err("expected on or off after the name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_of_the_feature() {
        assert_eq!(["0", "1", "2"].map(bbm), [BbmLevel::Zero, BbmLevel::One, BbmLevel::Two].map(Ok));
        assert!(bbm("3").is_err() && bbm("").is_err() && bbm("two").is_err());
    }

    #[test]
    fn switches_are_read_by_name() {
        assert_eq!(switch("af-inverted=on"), Ok((Quirk::AfInverted, true)));
        assert_eq!(switch("ttl-ignored=off"), Ok((Quirk::TtlIgnored, false)));
        assert!(switch("af-inverted").is_err() && switch("x=on").is_err() && switch("af-inverted=1").is_err());
    }
}
