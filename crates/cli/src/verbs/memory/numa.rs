//! `anytrace memory numa`.

mod json;
mod text;

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use anytrace_analysis::numa::{NODES_MAX, Nodes, Numa, NumaOptions, NumaResults};
use clap::Args;

use super::live::{OfProgram, ProgramArguments};
use super::opening;
use crate::arguments::{InputArguments, ResultForm, TOP, byte_count, rows};
use crate::failure::Failure;
use crate::results::print_json;
use crate::{Verdict, for_each_file, terminal};

/// `memory numa`.
#[derive(Debug, Args)]
pub(crate) struct NumaArguments {
    /// Traces; - is standard input
    #[arg(required_unless_present = "program", value_name = "TRACE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    program: ProgramArguments,
    /// Assign threads to N nodes in turn, in order of appearance [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(NODES_MAX)))]
    nodes: Option<u32>,
    /// Assign threads to nodes; threads not named run on node 0
    #[arg(long, value_name = "THREAD[-THREAD]=NODE,…", value_parser = entry, value_delimiter = ',', conflicts_with = "nodes")]
    map: Vec<(RangeInclusive<u64>, u32)>,
    /// Bytes of a page: a power of two
    #[arg(long, value_name = "BYTES", default_value = "4k", value_parser = page_bytes)]
    page: u64,
    /// Bytes per thread's cache
    #[arg(long, value_name = "BYTES", default_value = "256k", value_parser = cache_bytes)]
    size: u64,
    /// Lines per set
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    ways: u64,
    /// Types and regions
    #[arg(short = 'n', long, value_name = "N", value_parser = rows, help = format!("{TOP} [default: 10 in text, all in JSON]"))]
    top: Option<usize>,
    /// Output format
    #[arg(long, value_enum, default_value_t = ResultForm::Text)]
    format: ResultForm,
    #[command(flatten)]
    input: InputArguments,
}

impl OfProgram for NumaArguments {
    fn parts(&mut self) -> (&mut Vec<PathBuf>, &ProgramArguments) {
        (&mut self.files, &self.program)
    }
}

fn entry(text: &str) -> Result<(RangeInclusive<u64>, u32), String> {
    let (threads, node) = text.split_once('=').ok_or("expected THREAD=NODE or FIRST-LAST=NODE")?;
    let node = node.parse().ok().filter(|node| *node < NODES_MAX).ok_or("a node is a number below 64")?;
    let number = |text: &str| text.parse().map_err(|_| "a thread is a number".to_owned());
    let (first, last) = threads.split_once('-').unwrap_or((threads, threads));
    let (first, last) = (number(first)?, number(last)?);
    if first > last { Err(format!("no thread is in {threads}")) } else { Ok((first..=last, node)) }
}

fn page_bytes(text: &str) -> Result<u64, String> {
    let is_good = |bytes: &u64| bytes.is_power_of_two() && (64..=1 << 40).contains(bytes);
    byte_count(text).ok().filter(is_good).ok_or_else(|| "expected a power of two from 64 to 1024G".to_owned())
}

fn cache_bytes(text: &str) -> Result<u64, String> {
    let is_good = |bytes: &u64| (64..=1 << 30).contains(bytes);
    byte_count(text).ok().filter(is_good).ok_or_else(|| "expected 64 bytes to 1G".to_owned())
}

/// What is printed of one trace.
struct Results {
    name: String,
    format: &'static str,
    found: NumaResults,
    top: Option<usize>,
}

impl Results {
    fn top<'a, T>(&self, all: &'a [T], usual: usize) -> &'a [T] {
        all.get(..self.top.unwrap_or(usual)).unwrap_or(all)
    }
}

pub(crate) fn run(options: &NumaArguments) -> Result<Verdict, Failure> {
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let opened = opening::open(path, &options.input)?;
        let mut numa = Numa::new(options.model());
        let read = opened.read_data(&mut numa)?;
        let name = path.display().to_string();
        let results = Results { name, format: read.format, found: numa.finish(), top: options.top };
        if options.format == ResultForm::Json {
            objects.push(json::object(&results));
        } else {
            let gap = if is_first { "" } else { "\n" };
            write!(terminal::stdout(), "{gap}{}", text::page(&results))?;
        }
        is_first = false;
        Ok(read.verdict)
    })?;
    if options.format == ResultForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

impl NumaArguments {
    fn model(&self) -> NumaOptions {
        let nodes =
            if self.map.is_empty() { Nodes::Count(self.nodes.unwrap_or(2)) } else { Nodes::Map(self.map.clone()) };
        NumaOptions { nodes, page_bytes: self.page, cache_bytes: self.size, ways: self.ways }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_name_threads_and_nodes() {
        assert_eq!(entry("3=1"), Ok((3..=3, 1)));
        assert_eq!(entry("0-7=63"), Ok((0..=7, 63)));
        for wrong in ["3", "3=64", "=1", "7-3=0", "a=1", "1-=1"] {
            assert!(entry(wrong).is_err(), "{wrong}");
        }
    }
}
