//! `anytrace apitrace diff-images`.

mod address;
mod row;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anytrace_apitrace::tools::diff_images::{Row, find_images, write_page};
use clap::Args;

use crate::failure::Failure;
use crate::output::{Output, commit_all};
use crate::{Verdict, terminal};

/// `apitrace diff-images`.
#[derive(Debug, Args)]
pub(crate) struct DiffImagesArguments {
    /// The first set: a folder, or a folder and a file name prefix
    #[arg(value_name = "REF_PREFIX")]
    a: String,
    /// The second set
    #[arg(value_name = "SRC_PREFIX")]
    b: String,
    /// Report for each image whether it matches
    #[arg(short, long)]
    verbose: bool,
    /// HTML page to write; - is standard output
    #[arg(short, long, value_name = "FILE", default_value = "index.html")]
    output: PathBuf,
    /// Maximum pixel difference, as a fraction of the full range
    #[arg(short, long, value_name = "RATIO", default_value_t = 0.05, value_parser = parse_ratio)]
    fuzz: f64,
    /// Also compare alpha
    #[arg(short, long)]
    alpha: bool,
    /// Write the page, differences and thumbnails again where there are some
    #[arg(long, alias = "overwrite")]
    force: bool,
    /// Also show images that match
    #[arg(long)]
    show_all: bool,
    /// Measure as apitrace does, which ignores differences in blue alone
    #[arg(long)]
    compat: bool,
}

fn parse_ratio(text: &str) -> Result<f64, String> {
    let ratio: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if (0.0..=1.0).contains(&ratio) { Ok(ratio) } else { Err("expected a number from 0 to 1".to_owned()) }
}

pub(crate) fn run(options: &DiffImagesArguments) -> Result<Verdict, Failure> {
    let find = |prefix: &str| {
        find_images(prefix).map_err(|error| Failure::usage(format!("cannot look for images at {prefix}: {error}")))
    };
    let (in_a, in_b) = (find(&options.a)?, find(&options.b)?);
    for (prefix, found) in [(&options.a, &in_a), (&options.b, &in_b)] {
        if found.is_empty() {
            return Err(Failure::usage(format!("{prefix}: no PNG images there")));
        }
    }
    let page = Output::create(&options.output, options.force)?;
    let mut names: Vec<&String> = in_a.keys().chain(in_b.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let base = options.output.parent().map(Path::to_owned).unwrap_or_default();
    let mut rows = Vec::new();
    // The page and its pictures appear together, or none of them.
    let mut pictures = Vec::new();
    for name in names {
        let pair = [in_a.get(name), in_b.get(name)];
        let row = row::compare_pair(name, pair, &base, options, &mut pictures)?;
        if options.verbose {
            say(options, name, &row)?;
        }
        rows.push(row);
    }
    let mut out = BufWriter::new(page);
    write_page([&options.a, &options.b], &rows, &mut out)?;
    let verdict = if rows.iter().all(Row::is_match) { Verdict::Fine } else { Verdict::Breach };
    let page = out.into_inner().map_err(|error| Failure::output(error.error()))?;
    commit_all(pictures)?;
    page.commit(verdict)
}

fn say(options: &DiffImagesArguments, name: &str, row: &Row) -> Result<(), Failure> {
    let word = match row.comparison {
        Some(comparison) if comparison.is_match() => "MATCH",
        Some(_) => "MISMATCH",
        None => "MISSING",
    };
    let line = format!("Comparing {0}{name} and {1}{name} ... {word}", options.a, options.b);
    // The page alone belongs to standard output where that is its place.
    if options.output.as_os_str() == "-" {
        writeln!(terminal::stderr(), "{line}")?;
    } else {
        writeln!(terminal::stdout(), "{line}")?;
    }
    Ok(())
}
