//! `anytrace flame`: flame graphs and folded stacks.

mod picture;

use std::io::{BufWriter, Write};
use std::path::Path;

use anytrace_analysis::flame::{FlameGraph, Side, StackWeights, Weight};
use anytrace_analysis::pass::Pass;
use anytrace_core::span::Causes;
use anytrace_export::flame::FoldedLines;

use crate::arguments::{FlameArguments, FlameForm, WeightArgument};
use crate::extension::form_of;
use crate::failure::Failure;
use crate::output::Output;
use crate::spans::{Merged, Request, read_caused};
use crate::units::grouped;
use crate::{Verdict, paint, terminal};

/// Lines written at once.
const LINES_BYTES: usize = 1 << 16;

pub(crate) fn run(options: &FlameArguments) -> Result<Verdict, Failure> {
    crate::only_one_stdin(options.files.iter().chain(&options.diff).map(std::path::PathBuf::as_path))?;
    // The form is known, and what is in the way of a file is found, before the traces are read, which may take long.
    let form = form(options)?;
    let output = match options.output.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => Some(Output::create(path, options.force)?),
        None => None,
    };
    let mut graph = FlameGraph::default();
    let (mut verdict, mut reported) = (Verdict::Fine, 0);
    for (side, files) in [(Side::Base, &options.diff), (Side::Shown, &options.files)] {
        if side == Side::Shown && options.merge.is_asked_for() {
            verdict = verdict.max(add_merged(&mut graph, options)?);
            continue;
        }
        for file in files {
            let is_first = graph.word().is_none();
            verdict = verdict.max(add(&mut graph, side, file, options)?);
            if is_first {
                // The stacks that one trace folded were reported when it was read.
                reported = graph.folded();
            }
        }
    }
    let folded = graph.folded().saturating_sub(reported);
    if folded > 0 {
        let folded = grouped(u128::from(folded));
        paint::complain(
            "note",
            format!("{folded} stacks over all traces count toward their callers: too many different stacks"),
        );
    }
    match output {
        Some(mut output) => {
            write(&graph, options, form, &mut output)?;
            output.commit(verdict)
        }
        None => {
            let mut out = BufWriter::with_capacity(LINES_BYTES, terminal::stdout());
            write(&graph, options, form, &mut out)?;
            out.flush()?;
            Ok(verdict)
        }
    }
}

fn weight(options: &FlameArguments) -> Weight {
    match options.by {
        WeightArgument::Time => Weight::Time,
        WeightArgument::Count => Weight::Count,
    }
}

/// Adds all traces as one: conditions on times are on their common axis.
fn add_merged(graph: &mut FlameGraph, options: &FlameArguments) -> Result<Verdict, Failure> {
    if options.by_cause {
        return Err(Failure::usage("--async follows what one trace says of causes; it cannot go with --merge"));
    }
    let merged = Merged::open(&options.files, &options.spans, &options.merge.place, &options.input)?;
    let mut weights = StackWeights::new(weight(options));
    let read = merged.read(Pass::new(options.spans.filter(options.duration), true, vec![&mut weights]))?;
    if let Some(stacks) = read.done.stacks {
        graph
            .add(Side::Shown, weights, stacks, &read.done.directory)
            .map_err(|error| Failure::of(&merged.name(), &error))?;
    }
    Ok(read.verdict)
}

fn add(graph: &mut FlameGraph, side: Side, file: &Path, options: &FlameArguments) -> Result<Verdict, Failure> {
    let by = weight(options);
    let spans = options.spans.of_trace(file, options.files.iter().chain(&options.diff));
    let filter = || spans.filter(options.duration);
    let request = Request {
        path: file,
        spans: &spans,
        input: &options.input,
        index: &options.index,
        filter: &filter,
        with_stacks: true,
        engine: &|| StackWeights::new(by),
    };
    let causes = match (options.by_cause, options.idle) {
        (false, _) => None,
        (true, false) => Some(Causes::Busy),
        (true, true) => Some(Causes::BusyAndWaiting),
    };
    let indexed = if causes.is_some() { None } else { request.read()? };
    let (read, weights) = match indexed {
        Some(read) => read,
        None => {
            let mut weights = StackWeights::new(by);
            let pass = Pass::new(filter(), true, vec![&mut weights]);
            (read_caused(file, &spans, causes, &options.input, pass)?, weights)
        }
    };
    if let Some(stacks) = read.done.stacks
        && read.format != "unknown"
    {
        let name = file.display().to_string();
        graph.add(side, weights, stacks, &read.done.directory).map_err(|error| Failure::of(&name, &error))?;
    }
    Ok(read.verdict)
}

/// What `--format` says, or else the output's extension.
fn form(options: &FlameArguments) -> Result<FlameForm, Failure> {
    const FORMS: [(&str, FlameForm); 2] = [("folded", FlameForm::Folded), ("svg", FlameForm::Svg)];
    let named = match (options.format, &options.output) {
        (None, Some(path)) => form_of(path, &FORMS, "--format")?,
        (chosen, _) => chosen,
    };
    Ok(named.unwrap_or(FlameForm::Folded))
}

fn write(graph: &FlameGraph, options: &FlameArguments, form: FlameForm, out: &mut dyn Write) -> Result<(), Failure> {
    if form == FlameForm::Folded {
        return visit(graph, options, 0, &mut |lines| out.write_all(lines.as_bytes()));
    }
    picture::draw(graph, options, out)
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
