//! The options of `xray graph-diff`.

use std::path::PathBuf;

use anytrace_analysis::threshold::Threshold;
use anytrace_xray::tools::Stat;
use clap::Args;

use super::super::graph::{GraphForm, StatName};
use crate::arguments::{CsvArguments, InputArguments, threshold};
use crate::symbols::SymbolArguments;

/// `xray graph-diff`.
#[derive(Debug, Args)]
pub(crate) struct GraphDiffArguments {
    /// Trace to compare with
    #[arg(value_name = "BEFORE")]
    pub(super) before: PathBuf,
    /// Trace to compare
    #[arg(value_name = "AFTER")]
    pub(super) after: PathBuf,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    pub(super) output: PathBuf,
    /// Replace the output file
    #[arg(long)]
    pub(super) force: bool,
    /// Without -d: skip exits that do not match the innermost open call
    #[arg(short = 'k', long)]
    pub(super) keep_going: bool,
    /// Apply --keep-going to the first trace (-k1)
    #[arg(long = "keep-going-1")]
    pub(super) keep_going_1: bool,
    /// Apply --keep-going to the second trace (-k2)
    #[arg(long = "keep-going-2")]
    pub(super) keep_going_2: bool,
    /// End calls without an exit when the enclosing call ends; this is the default
    #[arg(short = 'd', long)]
    pub(super) deduce_sibling_calls: bool,
    /// Apply --deduce-sibling-calls to the first trace (-d1)
    #[arg(long = "deduce-sibling-calls-1")]
    pub(super) deduce_sibling_calls_1: bool,
    /// Apply --deduce-sibling-calls to the second trace (-d2)
    #[arg(long = "deduce-sibling-calls-2")]
    pub(super) deduce_sibling_calls_2: bool,
    /// Read the function names of the first trace from this file instead of -m's (-m1)
    #[arg(long = "program-1", alias = "instr-map-1", value_name = "PATH")]
    pub(super) instr_map_1: Option<PathBuf>,
    /// Read the function names of the second trace from this file instead of -m's (-m2)
    #[arg(long = "program-2", alias = "instr-map-2", value_name = "PATH")]
    pub(super) instr_map_2: Option<PathBuf>,
    /// Label edges with the change in this statistic
    #[arg(short = 'e', long, value_enum, default_value_t = StatName::None)]
    pub(super) edge_label: StatName,
    /// Color edges and set their width by the change in this statistic
    #[arg(short = 'c', long, value_enum, default_value_t = StatName::None)]
    pub(super) edge_color: StatName,
    /// Label vertices with the change in this statistic, below the name
    #[arg(short = 'v', long, value_enum, default_value_t = StatName::None)]
    pub(super) vertex_label: StatName,
    /// Color vertices by the change in this statistic
    #[arg(short = 'b', long, value_enum, default_value_t = StatName::None)]
    pub(super) vertex_color: StatName,
    /// Shorten function names in the drawing to N characters
    #[arg(short = 't', long, value_name = "N", default_value_t = 40)]
    pub(super) vertex_label_trun: usize,
    /// Exit with 1 when a statistic of a function or call grew by more: sum=10%. May be repeated
    #[arg(long, value_name = "STAT=PERCENT", value_parser = call_threshold)]
    pub(super) fail_above: Vec<Threshold<Stat>>,
    /// Ignore functions and calls with fewer than N calls in both traces, for --fail-above
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) min_count: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t = GraphForm::Dot)]
    pub(super) format: GraphForm,
    /// Stop at exits without an entry, as llvm-xray does without -k and -d
    #[arg(long)]
    pub(super) compat: bool,
    #[command(flatten)]
    pub(super) symbols: SymbolArguments,
    #[command(flatten)]
    pub(super) csv: CsvArguments,
    #[command(flatten)]
    pub(super) input: InputArguments,
}

/// `sum=10%`; below 0 for what must shrink.
fn call_threshold(text: &str) -> Result<Threshold<Stat>, String> {
    let named = |word: &str| Stat::ALL.into_iter().find(|(_, name)| *name == word).map(|(stat, _)| stat);
    let words = Stat::ALL.map(|(_, name)| name);
    threshold(Threshold::parse_signed(text, named), text, &words, "sum=10%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_statistic_and_per_cent() {
        assert_eq!(call_threshold("sum=10%"), Ok(Threshold { statistic: Stat::Sum, percent: 10.0 }));
        assert_eq!(call_threshold("99p=-5"), Ok(Threshold { statistic: Stat::P99, percent: -5.0 }));
        for bad in ["sum", "total=1%", "sum=x", "sum=inf"] {
            assert!(call_threshold(bad).is_err(), "{bad}");
        }
    }
}
