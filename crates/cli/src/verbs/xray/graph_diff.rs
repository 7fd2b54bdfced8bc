//! `anytrace xray graph-diff`: who calls whom in two traces, side by side.

mod arguments;

use std::io::{BufWriter, Write};
use std::path::Path;

use anytrace_core::Format;
use anytrace_core::span::{Mangling, SymbolSource, Symbols};
use anytrace_xray::Xray;
use anytrace_xray::tools::GraphView;
use anytrace_xray::tools::graph::{CallGraph, graph};
use anytrace_xray::tools::graph_diff::GraphDiff;

use super::graph::{GraphForm, pairing};
use super::reading::{self, Opened, destination, judge, put_out, say};
use crate::failure::Failure;
use crate::results::with_lost;
use crate::{Verdict, only_one_stdin, open, paint};
pub(crate) use arguments::GraphDiffArguments;

pub(crate) fn run(options: &GraphDiffArguments) -> Result<Verdict, Failure> {
    only_one_stdin([options.before.as_path(), options.after.as_path()].into_iter())?;
    let destination = destination(&options.output, options.force)?;
    let first = side(&options.before, options, options.keep_going_1, options.deduce_sibling_calls_1)?;
    let second = side(&options.after, options, options.keep_going_2, options.deduce_sibling_calls_2)?;
    let symbols_1 = symbols(options.instr_map_1.as_deref(), &options.before, options)?;
    let symbols_2 = symbols(options.instr_map_2.as_deref(), &options.after, options)?;
    let diff = GraphDiff::new([&first.0, &second.0], [symbols_1.as_deref(), symbols_2.as_deref()]);
    if diff.cycle_frequencies.iter().filter(|hz| **hz == 0).count() == 1 {
        paint::complain("note", "one trace does not give the ticks per second: times cannot be compared");
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
    put_out(destination, options.format == GraphForm::Json, verdict, |out| {
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
fn symbols(
    own: Option<&Path>,
    trace: &Path,
    options: &GraphDiffArguments,
) -> Result<Option<Box<dyn Symbols>>, Failure> {
    let Some(own) = own else { return options.symbols.load(&Xray, trace) };
    let source = SymbolSource { object: None, path: own.to_owned() };
    let mangling: Mangling = options.symbols.mangling();
    Xray.symbols_of(trace, &[source], mangling).map_err(|error| Failure::of_names(&own.display().to_string(), &error))
}
