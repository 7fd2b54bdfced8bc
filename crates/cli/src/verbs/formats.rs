//! `anytrace formats`: what there is.

use std::io::Write;

use crate::Verdict;
use crate::failure::Failure;
use crate::paint;

pub(crate) fn run() -> Result<Verdict, Failure> {
    let mut out = anstream::stdout();
    let (bold, dim) = (paint::BOLD, paint::DIM);
    for format in anytrace_formats::all() {
        writeln!(out, "{bold}{:<10}{bold:#} {}", format.name(), format.title())?;
        for (name, help) in format.targets() {
            writeln!(out, "  {dim}--to{dim:#} {name:<8} {help}")?;
        }
    }
    out.flush()?;
    Ok(Verdict::Fine)
}
