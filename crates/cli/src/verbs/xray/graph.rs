//! `anytrace xray graph`: who calls whom, as a drawing or a table.

use std::io::BufWriter;
use std::path::PathBuf;

use anytrace_xray::tools::graph::{Pairing, graph};
use anytrace_xray::tools::{GraphReport, GraphView, Stat};
use clap::{Args, ValueEnum};

use super::reading::{self, Opened, destination, judge, put_out, say};
use crate::Verdict;
use crate::arguments::{CsvArguments, InputArguments};
use crate::failure::Failure;
use crate::open;
use crate::progress::Progress;
use crate::results::with_lost;
use crate::symbols::SymbolArguments;

/// `xray graph`.
#[derive(Debug, Args)]
pub(crate) struct GraphArguments {
    /// Trace; - is standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Replace the output file
    #[arg(long)]
    force: bool,
    /// Without -d: skip exits that do not match the innermost open call
    #[arg(short = 'k', long)]
    keep_going: bool,
    /// End calls without an exit when the enclosing call ends; this is the default
    #[arg(short = 'd', long)]
    deduce_sibling_calls: bool,
    /// Label edges with this statistic
    #[arg(short = 'e', long, value_enum, default_value_t = StatName::None)]
    edge_label: StatName,
    /// Label vertices with this statistic, below the name
    #[arg(short = 'v', long, value_enum, default_value_t = StatName::None)]
    vertex_label: StatName,
    /// Color edges by this statistic
    #[arg(short = 'c', long, value_enum, default_value_t = StatName::None)]
    color_edges: StatName,
    /// Color vertices by this statistic
    #[arg(short = 'b', long, value_enum, default_value_t = StatName::None)]
    color_vertices: StatName,
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

/// The statistics, as llvm-xray calls them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum StatName {
    /// Nothing
    None,
    /// Calls
    Count,
    /// Shortest call
    Min,
    /// Median
    Med,
    /// 90th percentile
    #[value(name = "90p")]
    P90,
    /// 99th percentile
    #[value(name = "99p")]
    P99,
    /// Longest call
    Max,
    /// Sum over all calls
    Sum,
}

impl From<StatName> for Stat {
    fn from(name: StatName) -> Self {
        match name {
            StatName::None => Self::None,
            StatName::Count => Self::Count,
            StatName::Min => Self::Min,
            StatName::Med => Self::Med,
            StatName::P90 => Self::P90,
            StatName::P99 => Self::P99,
            StatName::Max => Self::Max,
            StatName::Sum => Self::Sum,
        }
    }
}

/// Outputs of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum GraphForm {
    /// For Graphviz
    Dot,
    Json,
    Csv,
}

pub(crate) fn run(options: &GraphArguments) -> Result<Verdict, Failure> {
    let name = options.file.display().to_string();
    let destination = destination(&options.output, options.force)?;
    let symbols = options.symbols.load(&anytrace_xray::Xray, &options.file)?;
    let Opened { input, reporter: mut damage, has_evidence, .. } = reading::open(&options.file, &options.input)?;
    let pairing = pairing(options.compat, options.keep_going, options.deduce_sibling_calls);
    let drawn = {
        let _progress = Progress::watch(&input);
        graph(input, &open::open_options(&options.input), pairing, &mut damage)
            .map_err(|error| Failure::of(&name, &error))?
    };
    damage.print_rest()?;
    if let Some(failure) = drawn.failure {
        return Err(Failure::breach(format!("Error encountered generating the call graph.\n{failure}")));
    }
    say(&name, &drawn.oddities.lines());
    let view = GraphView {
        edge_label: options.edge_label.into(),
        vertex_label: options.vertex_label.into(),
        edge_color: options.color_edges.into(),
        vertex_color: options.color_vertices.into(),
    };
    let report = GraphReport::new(&drawn, symbols.as_deref());
    let verdict = judge(&damage, has_evidence, &options.output);
    put_out(destination, options.format == GraphForm::Json, verdict, |out| {
        let mut out = BufWriter::new(out);
        match options.format {
            GraphForm::Dot => report.dot(&view, &mut out),
            GraphForm::Json => with_lost(&mut out, |out| report.json(out)),
            GraphForm::Csv => report.csv(options.csv.cells(), &mut out),
        }?;
        std::io::Write::flush(&mut out)
    })
}

/// How calls are paired. As in `account`, `-k` without `-d` skips exits of calls other than the innermost.
pub(super) fn pairing(is_compat: bool, keep_going: bool, deduce: bool) -> Pairing {
    let is_peer = is_compat || (keep_going && !deduce);
    if is_peer { Pairing::Compat { keep_going, deduce } } else { Pairing::Right }
}
