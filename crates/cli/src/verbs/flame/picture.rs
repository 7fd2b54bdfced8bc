//! A flame graph as SVG.

use std::io::Write;

use anytrace_analysis::flame::{FlameGraph, Side};
use anytrace_export::flame::{SvgOptions, svg};

use super::visit;
use crate::arguments::FlameArguments;
use crate::failure::Failure;
use crate::units::{counted, grouped, nanoseconds};

/// What is narrower than this part of an SVG is left out: it could not be seen.
const PARTS: u128 = 20_000;

/// Draws the stacks that can be seen.
pub(super) fn draw(graph: &FlameGraph, options: &FlameArguments, out: &mut dyn Write) -> Result<(), Failure> {
    if graph.total(Side::Shown) == 0 {
        return Err(Failure::usage("nothing to draw: all selected spans have weight 0"));
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
        "record" => format!("{} records (no clock: the axis is record order)", grouped(total)),
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
