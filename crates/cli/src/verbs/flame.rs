//! `anytrace flame`: flame graphs and folded stacks.

use std::io::{BufWriter, Write};
use std::path::Path;

use anytrace_analysis::flame::{FlameGraph, Side, StackWeights, Weight};
use anytrace_analysis::pass::Pass;
use anytrace_export::flame::{SvgOptions, push_line, svg};

use crate::arguments::{FlameArguments, FlameForm, WeightArgument};
use crate::failure::Failure;
use crate::output::Output;
use crate::spans::tell;
use crate::units::{counted, grouped, nanoseconds};
use crate::{Verdict, paint};

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
    let mut verdict = Verdict::Fine;
    for (side, files) in [(Side::Base, &options.diff), (Side::Shown, &options.files)] {
        for file in files {
            verdict = verdict.max(add(&mut graph, side, file, options)?);
        }
    }
    if graph.folded() > 0 {
        let folded = grouped(u128::from(graph.folded()));
        paint::complain("note", format!("{folded} of too many different stacks weigh for their callers"));
    }
    match output {
        Some(mut output) => {
            write(&graph, options, &mut output)?;
            output.commit()?;
        }
        None => {
            let mut out = BufWriter::with_capacity(LINES_BYTES, std::io::stdout().lock());
            write(&graph, options, &mut out)?;
            out.flush()?;
        }
    }
    Ok(verdict)
}

fn add(graph: &mut FlameGraph, side: Side, file: &Path, options: &FlameArguments) -> Result<Verdict, Failure> {
    let mut weights = StackWeights::new(match options.by {
        WeightArgument::Time => Weight::Time,
        WeightArgument::Count => Weight::Count,
    });
    let pass = Pass::new(options.spans.filter(options.duration), true, vec![&mut weights]);
    let told = tell(file, &options.spans, &options.input, pass)?;
    if let Some(stacks) = &told.done.stacks
        && told.format != "unknown"
    {
        let name = file.display().to_string();
        graph.add(side, &weights, stacks, &told.done.directory).map_err(|error| Failure::of(&name, &error))?;
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
    let mut lines = String::with_capacity(LINES_BYTES);
    graph.visit(least, &mut |path, [base, shown]| {
        let weights = if options.diff.is_empty() { vec![shown] } else { vec![base, shown] };
        let names = path.iter().map(|&name| graph.name(name));
        if options.reverse {
            push_line(&mut lines, names.rev(), &weights);
        } else {
            push_line(&mut lines, names, &weights);
        }
        if lines.len() >= LINES_BYTES {
            put(&lines)?;
            lines.clear();
        }
        Ok(())
    })?;
    Ok(put(&lines)?)
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
