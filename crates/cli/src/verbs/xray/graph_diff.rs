//! `anytrace xray graph-diff`: who calls whom in two traces, side by side.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anytrace_core::Format;
use anytrace_core::span::{Mangling, SymbolSource, Symbols};
use anytrace_xray::Xray;
use anytrace_xray::tools::graph::{CallGraph, graph};
use anytrace_xray::tools::graph_diff::{GraphDiff, Threshold};
use anytrace_xray::tools::{GraphView, Stat};
use clap::Args;

use super::graph::{GraphForm, StatName, pairing};
use super::reading::{self, Opened, judge, put_out, say};
use crate::arguments::{CsvArguments, InputArguments};
use crate::failure::Failure;
use crate::results::with_lost;
use crate::symbols::SymbolArguments;
use crate::{Verdict, only_one_stdin, open, paint};

/// `xray graph-diff`.
#[derive(Debug, Args)]
pub(crate) struct GraphDiffArguments {
    /// Trace to compare with
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// Trace that may have changed
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file
    #[arg(long)]
    force: bool,
    /// Without -d: pass over exits of other calls than the innermost
    #[arg(short = 'k', long)]
    keep_going: bool,
    /// The same, for the first trace (-k1)
    #[arg(long = "keep-going-1")]
    keep_going_1: bool,
    /// The same, for the second trace (-k2)
    #[arg(long = "keep-going-2")]
    keep_going_2: bool,
    /// End calls without an exit with the call around them: the default
    #[arg(short = 'd', long)]
    deduce_sibling_calls: bool,
    /// The same, for the first trace (-d1)
    #[arg(long = "deduce-sibling-calls-1")]
    deduce_sibling_calls_1: bool,
    /// The same, for the second trace (-d2)
    #[arg(long = "deduce-sibling-calls-2")]
    deduce_sibling_calls_2: bool,
    /// Names of the first trace's functions instead of -m's (-m1)
    #[arg(long = "instr-map-1", value_name = "PATH")]
    instr_map_1: Option<PathBuf>,
    /// Names of the second trace's functions instead of -m's (-m2)
    #[arg(long = "instr-map-2", value_name = "PATH")]
    instr_map_2: Option<PathBuf>,
    /// Change of what stands at edges
    #[arg(short = 'e', long, value_enum, default_value_t = StatName::None)]
    edge_label: StatName,
    /// Change of what colours edges and makes them thick
    #[arg(short = 'c', long, value_enum, default_value_t = StatName::None)]
    edge_color: StatName,
    /// Change of what stands at vertices, under the name
    #[arg(short = 'v', long, value_enum, default_value_t = StatName::None)]
    vertex_label: StatName,
    /// Change of what colours vertices
    #[arg(short = 'b', long, value_enum, default_value_t = StatName::None)]
    vertex_color: StatName,
    /// Characters of a function's name in the drawing
    #[arg(short = 't', long, value_name = "N", default_value_t = 40)]
    vertex_label_trun: usize,
    /// Exit with 1 when a statistic of a function or call grew by more: sum=10%. May be repeated
    #[arg(long, value_name = "STAT=PERCENT", value_parser = threshold)]
    fail_above: Vec<Threshold>,
    /// Pass over functions and calls with fewer calls in both traces, for --fail-above
    #[arg(long, value_name = "N", default_value_t = 1)]
    min_count: u64,
    /// How to print
    #[arg(long, value_enum, default_value_t = GraphForm::Dot)]
    format: GraphForm,
    /// Stop at exits without an entry, as llvm-xray does without -k and -d
    #[arg(long)]
    compat: bool,
    #[command(flatten)]
    symbols: SymbolArguments,
    #[command(flatten)]
    csv: CsvArguments,
    #[command(flatten)]
    input: InputArguments,
}

pub(crate) fn run(options: &GraphDiffArguments) -> Result<Verdict, Failure> {
    only_one_stdin([options.before.as_path(), options.after.as_path()].into_iter())?;
    let first = side(&options.before, options, options.keep_going_1, options.deduce_sibling_calls_1)?;
    let second = side(&options.after, options, options.keep_going_2, options.deduce_sibling_calls_2)?;
    let symbols_1 = symbols(options.instr_map_1.as_deref(), options)?;
    let symbols_2 = symbols(options.instr_map_2.as_deref(), options)?;
    let diff = GraphDiff::new([&first.0, &second.0], [symbols_1.as_deref(), symbols_2.as_deref()]);
    if diff.cycle_frequencies.iter().filter(|hz| **hz == 0).count() == 1 {
        paint::complain("note", "one trace does not say how many ticks a second has: times cannot be compared");
    }
    let breaches = diff.breaches(&options.fail_above, options.min_count);
    let view = GraphView {
        edge_label: options.edge_label.into(),
        vertex_label: options.vertex_label.into(),
        edge_color: options.edge_color.into(),
        vertex_color: options.vertex_color.into(),
    };
    let verdict = if breaches.is_empty() { Verdict::Fine } else { Verdict::Breach };
    let verdict = verdict.max(first.1).max(second.1);
    put_out(&options.output, options.force, options.format == GraphForm::Json, verdict, |out| {
        let mut out = BufWriter::new(out);
        match options.format {
            GraphForm::Dot => diff.dot(&view, options.vertex_label_trun, &mut out),
            GraphForm::Json => with_lost(&mut out, |out| diff.json(&breaches, out)),
            GraphForm::Csv => diff.csv(options.csv.cells(), &mut out),
        }?;
        out.flush()
    })?;
    for breach in &breaches {
        paint::complain("error", anytrace_core::text::printable(&breach.line()));
    }
    Ok(verdict)
}

/// Reads one of the two.
fn side(
    path: &Path,
    options: &GraphDiffArguments,
    keep_going: bool,
    deduce: bool,
) -> Result<(CallGraph, Verdict), Failure> {
    let name = path.display().to_string();
    let Opened { input, reporter: mut damage, has_evidence, .. } = reading::open(path, &options.input)?;
    let (keep_going, deduce) = (keep_going || options.keep_going, deduce || options.deduce_sibling_calls);
    let pairing = pairing(options.compat, keep_going, deduce);
    let drawn = graph(input, &open::open_options(&options.input), pairing, &mut damage)
        .map_err(|error| Failure::of(&name, &error))?;
    damage.print_rest()?;
    if let Some(failure) = drawn.failure {
        return Err(Failure::breach(format!("{name}: Error encountered generating the call graph.\n{failure}")));
    }
    say(&name, &drawn.oddities.lines());
    Ok((drawn, judge(&damage, has_evidence, &options.output)))
}

/// Names for one of the two.
fn symbols(own: Option<&Path>, options: &GraphDiffArguments) -> Result<Option<Box<dyn Symbols>>, Failure> {
    let Some(path) = own else { return options.symbols.load(&Xray) };
    let source = SymbolSource { object: None, path: path.to_owned() };
    let mangling: Mangling = options.symbols.mangling();
    Xray.symbols(&[source], mangling).map(Some).map_err(|error| Failure::bare(&error))
}

/// `sum=10%`.
fn threshold(text: &str) -> Result<Threshold, String> {
    let (name, percent) = text.split_once('=').ok_or("expected STAT=PERCENT, as in sum=10%")?;
    let stat = Stat::ALL.iter().find(|(_, other)| *other == name).map(|(stat, _)| *stat);
    let stat = stat.ok_or_else(|| format!("{name:?} is none of count, min, med, 90p, 99p, max, sum"))?;
    let number: f64 = percent.trim_end_matches('%').parse().map_err(|_| format!("{percent:?} is no percentage"))?;
    if !number.is_finite() {
        return Err(format!("{percent:?} is no percentage"));
    }
    Ok(Threshold { stat, change_max: number / 100.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_statistic_and_per_cent() {
        assert_eq!(threshold("sum=10%"), Ok(Threshold { stat: Stat::Sum, change_max: 0.1 }));
        assert_eq!(threshold("99p=-5"), Ok(Threshold { stat: Stat::P99, change_max: -0.05 }));
        for bad in ["sum", "total=1%", "sum=x", "sum=inf"] {
            assert!(threshold(bad).is_err(), "{bad}");
        }
    }
}
