//! `anytrace formats`: what there is.

use std::io::Write;

use anytrace_core::tables::all;

use crate::Verdict;
use crate::failure::Failure;
use crate::paint;
use crate::terminal;
use crate::verbs::report::HTML;

pub(crate) fn run() -> Result<Verdict, Failure> {
    let mut out = terminal::stdout();
    let (bold, dim) = (paint::BOLD, paint::DIM);
    for format in anytrace_formats::all() {
        writeln!(out, "{bold}{:<10}{bold:#} {}", format.name(), format.title())?;
        for (name, help) in format.targets() {
            writeln!(out, "  {dim}--to{dim:#} {name:<8} {help}")?;
        }
    }
    let with_tables: Vec<_> = anytrace_formats::all().iter().filter(|format| !all(**format).is_empty()).collect();
    if !with_tables.is_empty() {
        writeln!(out, "{bold}tables{bold:#}     by --table NAME, of")?;
        for format in with_tables {
            let names: Vec<_> = all(*format).iter().map(|table| table.name).collect();
            writeln!(out, "  {:<13} {}", format.name(), names.join(", "))?;
        }
        for output in &anytrace_export::tables::OUTPUTS {
            let extensions = output.extensions.join(", .");
            writeln!(out, "  {dim}--to{dim:#} {:<10} {} (.{extensions})", output.name, output.help)?;
        }
    }
    let with_spans: Vec<_> = anytrace_formats::all().iter().filter(|format| format.has_spans()).collect();
    if !with_spans.is_empty() {
        let names: Vec<_> = with_spans.iter().map(|format| format.name()).collect();
        writeln!(out, "{bold}timelines{bold:#}  of traces with spans: {}", names.join(", "))?;
        for output in &anytrace_export::timeline::OUTPUTS {
            let extension = output.extension;
            writeln!(out, "  {dim}--to{dim:#} {:<10} {} (.{extension})", output.name, output.help)?;
        }
    }
    let with_accesses: Vec<_> = anytrace_formats::all().iter().filter(|format| format.has_accesses()).collect();
    if !with_accesses.is_empty() {
        let names: Vec<_> = with_accesses.iter().map(|format| format.name()).collect();
        writeln!(out, "{bold}accesses{bold:#}   of traces with memory accesses: {}", names.join(", "))?;
        for output in &anytrace_export::accesses::OUTPUTS {
            let extension = output.extension;
            writeln!(out, "  {dim}--to{dim:#} {:<10} {} (.{extension})", output.name, output.help)?;
        }
    }
    writeln!(out, "{bold}page{bold:#}       of any trace")?;
    writeln!(out, "  {dim}--to{dim:#} {HTML:<10} timeline, flame graph, statistics, damage, for a browser (.html)")?;
    out.flush()?;
    Ok(Verdict::Fine)
}
