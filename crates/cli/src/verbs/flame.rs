//! `anytrace flame`: flame graphs and folded stacks.

use std::io::{BufWriter, Write};
use std::path::Path;

use anytrace_analysis::flame::{FlameGraph, Side, StackWeights, Weight};
use anytrace_analysis::pass::Pass;
use anytrace_export::flame::{FoldedLines, SvgOptions, svg};

use crate::arguments::{FlameArguments, FlameForm, WeightArgument};
use crate::failure::Failure;
use crate::output::Output;
use crate::spans::tell;
use crate::units::{counted, grouped, nanoseconds};
use crate::{Verdict, paint, terminal};

/// What is narrower than this part of an SVG is left out: it could not be seen.
const PARTS: u128 = 20_000;

/// Lines written at once.
const LINES_BYTES: usize = 1 << 16;

pub(crate) fn run(options: &FlameArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin(options.files.iter().chain(&options.diff).map(std::path::PathBuf::as_path))?;
    let output = match options.output.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => Some(Output::create(path, options.force)?),
        None => None,
    };
    let mut graph = FlameGraph::default();
    let (mut verdict, mut told) = (Verdict::Fine, 0);
    for (side, files) in [(Side::Base, &options.diff), (Side::Shown, &options.files)] {
        for file in files {
            let is_first = graph.word().is_none();
            verdict = verdict.max(add(&mut graph, side, file, options)?);
            if is_first {
                // What one trace has too many of was said when it was read.
                told = graph.folded();
            }
        }
    }
    let folded = graph.folded().saturating_sub(told);
    if folded > 0 {
        let folded = grouped(u128::from(folded));
        paint::complain(
            "note",
            format!("{folded} stacks of all traces together weigh for their callers: too many differ"),
        );
    }
    match output {
        Some(mut output) => {
            write(&graph, options, &mut output)?;
            output.commit(verdict)
        }
        None => {
            let mut out = BufWriter::with_capacity(LINES_BYTES, terminal::stdout());
            write(&graph, options, &mut out)?;
            out.flush()?;
            Ok(verdict)
        }
    }
}

fn add(graph: &mut FlameGraph, side: Side, file: &Path, options: &FlameArguments) -> Result<Verdict, Failure> {
    let mut weights = StackWeights::new(match options.by {
        WeightArgument::Time => Weight::Time,
        WeightArgument::Count => Weight::Count,
    });
    let pass = Pass::new(options.spans.filter(options.duration), true, vec![&mut weights]);
    let told = tell(file, &options.spans, &options.input, pass)?;
    if let Some(stacks) = told.done.stacks
        && told.format != "unknown"
    {
        let name = file.display().to_string();
        graph.add(side, weights, stacks, &told.done.directory).map_err(|error| Failure::of(&name, &error))?;
    }
    Ok(told.verdict)
}

fn write(graph: &FlameGraph, options: &FlameArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let is_svg = match options.format {
        Some(form) => form == FlameForm::Svg,
        None => options.output.as_deref().and_then(Path::extension).is_some_and(|end| end.eq_ignore_ascii_case("svg")),
    };
    if !is_svg {
        return visit(graph, options, 0, &mut |lines| out.write_all(lines.as_bytes()));
    }
    if graph.total(Side::Shown) == 0 {
        return Err(Failure::usage("nothing to draw: no span that counts weighs anything"));
    }
    let total = graph.total(Side::Shown).saturating_add(graph.total(Side::Base));
    let mut lines = String::new();
    let least = u64::try_from(total / PARTS).unwrap_or(u64::MAX);
    visit(graph, options, least, &mut |more| {
        lines.push_str(more);
        Ok(())
    })?;
    Ok(svg(&lines, &svg_options(graph, options), out)?)
}

/// Hands out folded lines, many at once.
fn visit(
    graph: &FlameGraph,
    options: &FlameArguments,
    least: u64,
    put: &mut dyn FnMut(&str) -> std::io::Result<()>,
) -> Result<(), Failure> {
    let mut lines = FoldedLines::new(graph.names());
    let mut reversed = Vec::new();
    graph.visit(least, &mut |path, [base, shown]| {
        let weights: &[u64] = if options.diff.is_empty() { &[shown] } else { &[base, shown] };
        if options.reverse {
            reversed.clear();
            reversed.extend(path.iter().rev());
            lines.push(&reversed, weights);
        } else {
            lines.push(path, weights);
        }
        if lines.text().len() >= LINES_BYTES {
            put(lines.text())?;
            lines.clear();
        }
        Ok(())
    })?;
    Ok(put(lines.text())?)
}

fn svg_options(graph: &FlameGraph, options: &FlameArguments) -> SvgOptions {
    let names = |files: &[std::path::PathBuf]| {
        let shown: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        shown.join(", ")
    };
    let title = options.title.clone().unwrap_or_else(|| match options.diff.as_slice() {
        [] => names(&options.files),
        base => format!("{} against {}", names(&options.files), names(base)),
    });
    let total = graph.total(Side::Shown);
    let unit = graph.word().unwrap_or("ns");
    let sum = match unit {
        "ns" => nanoseconds(total),
        "record" => format!("{} records (no clock: order is the axis)", grouped(total)),
        unit => format!("{} {}", grouped(total), plural(unit)),
    };
    let subtitle = format!("{sum}, {}", counted(graph.stack_count() as u64, "stack"));
    SvgOptions { title, subtitle, unit: plural(unit), is_inverted: options.inverted }
}

fn plural(unit: &str) -> String {
    match unit {
        "ns" | "calls" => unit.to_owned(),
        unit => format!("{unit}s"),
    }
}
