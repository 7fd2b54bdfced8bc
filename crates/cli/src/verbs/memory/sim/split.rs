//! `sim --I1 --D1 --LL`: a cache for instructions, one for data, and a last one for both, as Valgrind's cachegrind has
//! them and counts them.

use std::path::Path;

use anytrace_analysis::cache::config::Level;
use anytrace_analysis::cache::split::{SplitCaches, SplitConfig, SplitCounts, SplitResults};
use anytrace_core::text::printable;
use anytrace_export::json::VERSION;
use clap::Args;
use serde_json::{Value, json};

use super::super::opening;
use super::{SimArguments, SimForm};
use crate::arguments::byte_count;
use crate::failure::Failure;
use crate::results::print_json;
use crate::table::{Align, Table};
use crate::units::{grouped, percent};
use crate::{Verdict, for_each_file, paint, terminal};

/// Options that say something else about the caches, or ask for what this model does not count.
const OTHERS: [&str; 8] = ["config", "cores", "fetches", "types", "per_set", "per_thread", "classes", "remap"];

/// Where instructions and data part.
#[derive(Debug, Args)]
#[command(next_help_heading = "Caches for instructions and data, counted as cachegrind does")]
pub(super) struct SplitArguments {
    /// Instruction cache, for traces with fetches; the other two are 32768,8,64 and 8M,16,64 unless given [default:
    /// 32768,8,64]
    #[arg(long = "I1", id = "i1", value_name = "SIZE,WAYS,LINE", value_parser = shape,
          conflicts_with_all = OTHERS)]
    i1: Option<Shape>,
    /// First-level data cache, beside that for instructions
    #[arg(long = "D1", id = "d1", value_name = "SIZE,WAYS,LINE", value_parser = shape,
          conflicts_with_all = OTHERS)]
    d1: Option<Shape>,
    /// Last level, which takes what both miss
    #[arg(long = "LL", id = "ll", value_name = "SIZE,WAYS,LINE", value_parser = shape,
          conflicts_with_all = OTHERS)]
    ll: Option<Shape>,
}

/// Size in bytes, ways and bytes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    size: u64,
    ways: u64,
    line: u64,
}

/// Reads `32768,8,64`.
fn shape(text: &str) -> Result<Shape, String> {
    let wrong = || "expected SIZE,WAYS,LINE: 32768,8,64".to_owned();
    let parts: Vec<&str> = text.split(',').collect();
    let [size, ways, line] = parts.as_slice() else { return Err(wrong()) };
    let ways = ways.parse().map_err(|_| wrong())?;
    Ok(Shape { size: byte_count(size)?, ways, line: byte_count(line)? })
}

impl Shape {
    fn level(self, name: &str) -> Level {
        Level::new(name, self.size, self.line, self.ways)
    }
}

impl SplitArguments {
    /// The caches, if any was named.
    pub(super) fn config(&self) -> Option<SplitConfig> {
        const FIRST: Shape = Shape { size: 32 << 10, ways: 8, line: 64 };
        const LAST: Shape = Shape { size: 8 << 20, ways: 16, line: 64 };
        let is_any = self.i1.is_some() || self.d1.is_some() || self.ll.is_some();
        is_any.then(|| SplitConfig {
            i1: self.i1.unwrap_or(FIRST).level("I1"),
            d1: self.d1.unwrap_or(FIRST).level("D1"),
            ll: self.ll.unwrap_or(LAST).level("LL"),
        })
    }
}

/// One trace's results.
struct Simulated<'c> {
    name: String,
    format: &'static str,
    config: &'c SplitConfig,
    results: SplitResults,
}

pub(super) fn run(options: &SimArguments, config: &SplitConfig) -> Result<Verdict, Failure> {
    if options.format == SimForm::Csv || options.schedules.is_any() {
        return Err(Failure::usage("--I1, --D1 and --LL have no CSV form, and no other orders of threads"));
    }
    let mut objects = Vec::new();
    let mut is_first = true;
    let verdict = for_each_file(&options.files, |path| {
        let (simulated, verdict) = one(path, options, config)?;
        if options.format == SimForm::Json {
            objects.push(object(&simulated));
        } else {
            let gap = if is_first { "" } else { "\n" };
            terminal::put(&format!("{gap}{}", page(&simulated)))?;
        }
        is_first = false;
        Ok(verdict)
    })?;
    if options.format == SimForm::Json {
        print_json(objects, options.files.len() > 1)?;
    }
    Ok(verdict)
}

fn one<'c>(path: &Path, options: &SimArguments, config: &'c SplitConfig) -> Result<(Simulated<'c>, Verdict), Failure> {
    let name = path.display().to_string();
    let mut caches = SplitCaches::new(config).map_err(|error| Failure::bare(&error))?;
    let read = opening::open(path, &options.input)?.read(&mut caches)?;
    let results = caches.finish();
    if results.fetches.refs == 0 && read.records > 0 {
        let what = "the trace has no instruction fetches, so nothing goes through I1";
        paint::complain("note", format!("{}: {what}", printable(&name)));
    }
    Ok((Simulated { name, format: read.format, config, results }, read.verdict))
}

fn page(simulated: &Simulated<'_>) -> String {
    let SplitConfig { i1, d1, ll } = simulated.config;
    let shown = |level: &Level| format!("{} {},{},{}", level.name, level.size, level.ways, level.line);
    let mut out = format!("{}: {}, {}, {}\n\n", printable(&simulated.name), shown(i1), shown(d1), shown(ll));
    let columns = [
        ("", Align::Left),
        ("refs", Align::Right),
        ("L1 misses", Align::Right),
        ("rate", Align::Right),
        ("LL misses", Align::Right),
        ("rate", Align::Right),
    ];
    let mut table = Table::new(&columns);
    for (name, counts) in rows(&simulated.results) {
        table.row(vec![
            name.to_owned(),
            grouped(counts.refs.into()),
            grouped(counts.l1_misses.into()),
            percent(counts.l1_misses as f64, counts.refs as f64),
            grouped(counts.ll_misses.into()),
            percent(counts.ll_misses as f64, counts.refs as f64),
        ]);
    }
    out.push_str(&table.render());
    out
}

fn rows(results: &SplitResults) -> [(&'static str, SplitCounts); 4] {
    let SplitResults { fetches, reads, writes, .. } = *results;
    let data = SplitCounts {
        refs: reads.refs + writes.refs,
        l1_misses: reads.l1_misses + writes.l1_misses,
        ll_misses: reads.ll_misses + writes.ll_misses,
    };
    [("instructions", fetches), ("data", data), ("  reads", reads), ("  writes", writes)]
}

fn object(simulated: &Simulated<'_>) -> Value {
    let level = |level: &Level| json!({"size": level.size, "ways": level.ways, "line": level.line});
    let counts = |counts: SplitCounts| json!({"refs": counts.refs, "l1_misses": counts.l1_misses, "ll_misses": counts.ll_misses});
    let SplitConfig { i1, d1, ll } = simulated.config;
    let SplitResults { fetches, reads, writes, zero_size } = simulated.results;
    json!({
        "version": VERSION,
        "file": simulated.name,
        "format": simulated.format,
        "caches": {"I1": level(i1), "D1": level(d1), "LL": level(ll)},
        "instructions": counts(fetches),
        "reads": counts(reads),
        "writes": counts(writes),
        "zero_size_records": zero_size,
    })
}
